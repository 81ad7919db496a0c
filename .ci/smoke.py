"""Try an installed dpppsynth as a user would: names, data, command line and how quickly it starts."""

import importlib.metadata
import importlib.resources
import importlib.util
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import dpppsynth
from dpppsynth.contract import registry

PROMISED, ALLOWED = 1.0, 3.0  # seconds; a busy machine may take longer than promised, not this much longer
PROGRAM = str(Path(sysconfig.get_path("scripts")) / "dpppsynth")
DATASETS = ["soho_deaths", "soho_pumps", "geodanet_crimes"]
CHECK = ["check", "--method", "laplace", "--epsilon", "1", "--alpha", "25", "--window", "0,0,100,100", "--n", "50"]


def require(condition: bool, message: str) -> None:
    """Stop with the message unless the condition holds."""
    if not condition:
        sys.exit(f"smoke test: {message}")


def starting_time(command: list[str]) -> float:
    """Return the least of three wall-clock times of a command, in seconds."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return min(times)


def try_package() -> None:
    """Load every public name and every packaged file."""
    require(dpppsynth.__version__ == importlib.metadata.version("dpppsynth"), "two versions")
    for name in dpppsynth.__all__:
        getattr(dpppsynth, name)
    for folder in ("models", "linear_network"):
        require(importlib.util.find_spec(folder) is None, f"a top-level package {folder!r} was installed")
    package = importlib.resources.files("dpppsynth")
    require(package.joinpath("py.typed").is_file(), "py.typed is missing")
    require(any(f.name.endswith(".json") for f in package.joinpath("release").iterdir()), "no certificate schema")
    missing = [name for name in registry.names() if registry.mechanism(name).name != name]
    require(not missing and len(dpppsynth.privacy.__all__) > 50, f"mechanisms or bounds are missing: {missing}")
    for dataset in DATASETS:
        require(len(getattr(dpppsynth.datasets, dataset)()) > 0, f"data set {dataset} is empty")
    require(len(dpppsynth.datasets.soho_deaths(on="streets")) > 0, "the streets of Soho are empty")


def try_program() -> None:
    """Run a check on the command line and time how quickly the package starts."""
    result = subprocess.run([PROGRAM, *CHECK], capture_output=True, text=True, check=False)
    require(result.returncode == 0 and result.stdout != "", f"dpppsynth check failed:\n{result.stdout}{result.stderr}")
    for label, command in {
        "import dpppsynth": [sys.executable, "-I", "-c", "import dpppsynth"],
        "dpppsynth --help": [PROGRAM, "--help"],
    }.items():
        seconds = starting_time(command)
        print(f"{label}: {seconds:.2f} s (promised {PROMISED:.0f} s, allowed {ALLOWED:.0f} s)")
        require(seconds < ALLOWED, f"{label} takes {seconds:.2f} s")


if __name__ == "__main__":
    try_package()
    try_program()
    print(f"dpppsynth {dpppsynth.__version__} works on Python {sys.version.split()[0]}")
