"""The main job, from the shell's point of view: the cholera deaths of Soho, London, 1854.

Checks the guarantee, synthesizes three patterns, verifies the certificate and draws pictures, into out/demo/:

    public/        what may be published: synthetic patterns, certificate, window, private statistic, posterior draws
    pictures/      pictures of it, public as well
    CONFIDENTIAL/  the original beside a synthetic pattern, for the custodian's eyes

Run it with `make demo`, or `python examples/demo.py [folder]`.
"""

import json
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from dpppsynth.datasets import path

OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "out/demo")
PUBLIC, PICTURES, CONFIDENTIAL = OUT / "public", OUT / "pictures", OUT / "CONFIDENTIAL"
DEATHS = ["--count", "deaths", "--crs", "EPSG:27700"]
WINDOW = ["--window", "529100,180680,529770,181350"]
PRIVACY = ["--method", "lgcp", "--epsilon", "1", "--alpha", "25"]
PUMPS = ["--landmarks", path("soho_pumps"), "--landmarks-label", "pump"]


def dpppsynth(*arguments: object, quiet: bool = False) -> str:
    """Run one command, showing it, what it prints and how long it takes."""
    words = [str(argument) for argument in arguments]
    print(f"\n$ dpppsynth {shlex.join(words)}", flush=True)
    start = time.perf_counter()
    command = [sys.executable, "-m", "dpppsynth.cli", *words]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
    seconds = time.perf_counter() - start
    if not quiet:
        print(result.stdout, end="")
    print(f"[exit code {result.returncode}, {seconds:.1f} s of wall time]", flush=True)
    if result.returncode:
        sys.exit(result.returncode)
    return result.stdout


def clear() -> None:
    """Remove what an earlier run of this script left, and nothing else."""
    for folder in (PUBLIC, PICTURES, CONFIDENTIAL):
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    clear()
    deaths = path("soho_addresses")

    print("1. What would be promised? Public parameters alone; no data file is opened.")
    dpppsynth("check", *PRIVACY, *WINDOW, "--crs", "EPSG:27700", "--n", 392)

    print("\n2. Spend the budget once, on a file of addresses with their numbers of deaths.")
    said = dpppsynth(
        "synthesize", deaths, *DEATHS, *WINDOW, *PRIVACY, "--patterns", 3, "--out", PUBLIC, "--json", quiet=True
    )
    release = json.loads(said)
    print(f"epsilon {release['guarantee']['profile']['epsilon']:.6g}, delta 0, by {release['guarantee']['theorem']}")
    print(f"written to {PUBLIC}: {', '.join(release['files'])}")

    print("\n3. What an auditor sees, who has no access to the data.")
    dpppsynth("verify", PUBLIC / "certificate.json")

    print("\n4. Pictures of the release, with the public pumps for orientation.")
    dpppsynth("plot", PUBLIC, "--out", PICTURES, *PUMPS)

    print("\n5. For the custodian alone: the original beside a synthetic pattern, outside the public folder.")
    dpppsynth("plot", PUBLIC, "--original", deaths, *DEATHS, "--confidential", CONFIDENTIAL, *PUMPS)

    print(f"\nLook at {PICTURES / 'pattern.png'}: the deaths gather around the Broad Street pump.")


if __name__ == "__main__":
    main()
