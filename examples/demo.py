"""The main job, from the shell's point of view: the cholera deaths of Soho, London, 1854.

Checks the guarantee, synthesizes three patterns, verifies the certificate and draws pictures, into out/demo/:

    public/        what may be published: synthetic patterns, certificate, window, private statistic, posterior draws
    pictures/      pictures of it, public as well
    CONFIDENTIAL/  the original beside a synthetic pattern, for the custodian's eyes
    streets/       the same once more, with the deaths on the streets instead of in a window

Run it with `make demo`, or `python examples/demo.py [folder [nuts | laplace]]`; nuts, the default, takes longer.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

from dpppsynth.datasets import path, soho_streets

OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "out/demo")
INFERENCE = sys.argv[2] if len(sys.argv) > 2 else "nuts"
PUBLIC, PICTURES, CONFIDENTIAL = "public", "pictures", "CONFIDENTIAL"
STREETS = OUT / "streets"
POINTS = path("soho_addresses")
DEATHS = ["--count", "deaths", "--crs", "EPSG:27700"]
PRIVACY = ["--method", "lgcp", "--epsilon", "1", "--alpha", "25"]
PUMPS = ["--landmarks", path("soho_pumps"), "--landmarks-label", "pump"]


def dpppsynth(*arguments: object, quiet: bool = False) -> str:
    """Run one command, showing it, what it prints and how long it takes."""
    words = [str(argument) for argument in arguments]
    print(f"\n$ dpppsynth {shlex.join(words)}", flush=True)
    start = time.perf_counter()
    command = [sys.executable, "-m", "dpppsynth", *words]
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
    for folder in (OUT, STREETS):
        for name in (PUBLIC, PICTURES, CONFIDENTIAL):
            shutil.rmtree(folder / name, ignore_errors=True)


def run(out: Path, place: list[str], snap: list[str], decided: list[str], inference: str) -> None:
    """Check, synthesize, verify and draw, with the points in a window or on streets."""
    public = out / PUBLIC

    print("1. What would be promised? Public parameters alone; no data file is opened.")
    dpppsynth("check", *PRIVACY, *place, "--crs", "EPSG:27700", "--n", 392)

    print("\n2. Spend the budget once, on a file of addresses with their numbers of deaths.")
    how = [*DEATHS, *place, *snap, *decided, *PRIVACY, "--inference", inference]
    said = dpppsynth("synthesize", POINTS, *how, "--patterns", 3, "--out", public, "--json", quiet=True)
    release = json.loads(said)
    print(f"epsilon {release['guarantee']['profile']['epsilon']:.6g}, delta 0, by {release['guarantee']['theorem']}")
    print(f"written to {public}: {', '.join(release['files'])}")

    print("\n3. What an auditor sees, who has no access to the data.")
    dpppsynth("verify", public / "certificate.json")

    print("\n4. Pictures of the release, with the public pumps for orientation.")
    dpppsynth("plot", public, "--out", out / PICTURES, *PUMPS)

    print("\n5. For the custodian alone: the original beside a synthetic pattern, outside the public folder.")
    dpppsynth("plot", public, "--original", POINTS, *DEATHS, *snap, "--out", out / CONFIDENTIAL, *PUMPS)


def main() -> None:
    clear()
    STREETS.mkdir(parents=True, exist_ok=True)

    print("A. In a window of the plane.\n")
    run(OUT, place=["--window", "529100,180680,529770,181350"], snap=[], decided=[], inference=INFERENCE)

    print("\nB. On the streets, which are public; every death moves to the nearest street, at most 30 metres away.")
    print("   Distances, and with them the privacy radius, run along the streets. Crossings without a vertex, and dead")
    print("   ends near other streets, are taken as they are: --yes answers the warnings of them.\n")
    streets = STREETS / "streets.geojson"
    streets.write_text(json.dumps(soho_streets().to_geojson()))
    place = ["--network", str(streets)]
    run(STREETS, place, snap=["--snap", "30"], decided=["--yes"], inference="laplace")

    print(f"\nLook at {OUT / PICTURES / 'pattern.png'} and {STREETS / PICTURES / 'intensity.png'}: the deaths gather")
    print("around the Broad Street pump.")
    program = Path(sysconfig.get_path("scripts")) / "dpppsynth"
    if program.exists():
        print(f"\nCall it yourself: {os.path.relpath(program)} --help, or put it on the path of this shell:")
        print(f"    export PATH={shlex.quote(str(program.parent))}:$PATH")


if __name__ == "__main__":
    main()
