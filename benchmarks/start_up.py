"""CPU seconds and modules of commands that touch no points, each beside the libraries that it loads, alone.

python benchmarks/start_up.py --out docs/results/start_up.md
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any

from measuring import in_fresh_process, run_case
from pages import command_line, fill, table

RUNS = 5
PLACE = ("--epsilon", "1", "--window", "0,0,4000,4000")
MECHANISMS = ("lgcp-tents", "laplace-cells")
CHECKED = (*PLACE, "--alpha", "100", "--n", "1500")
HEADS = ("command", "CPU", "libraries alone", "ratio", "modules", "of the package")
OWN = "dpppsynth"


def command(*words: str) -> dict[str, Any]:
    """CPU seconds and modules of a command."""
    from contextlib import redirect_stdout, suppress
    from io import StringIO

    from dpppsynth.cli import main

    sys.argv = [OWN, *words]
    with redirect_stdout(StringIO()), suppress(SystemExit):
        main()
    return told()


def libraries(file: str) -> dict[str, Any]:
    """The same of the modules in a file alone, in its order."""
    from contextlib import suppress
    from importlib import import_module

    for name in Path(file).read_text().split():
        # Some are made by others and cannot be imported.
        with suppress(ImportError):
            import_module(name)
    return told()


def told() -> dict[str, Any]:
    """CPU seconds of this process so far, and names of the modules that it has loaded, in their order."""
    return {"seconds": time.process_time(), "modules": list(sys.modules)}


def row(name: str, words: Sequence[str]) -> list[str]:
    """One command: medians over fresh processes, which take turns with those of its libraries."""
    whole = [in_fresh_process(__file__, "command", *words)]
    modules = whole[0]["modules"]
    alone = []
    with NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(each for each in modules if each.split(".")[0] not in (OWN, "__main__")))
        file.flush()
        for _ in range(RUNS):
            alone.append(in_fresh_process(__file__, "libraries", file.name))
            whole.append(in_fresh_process(__file__, "command", *words))
    seconds, least = (median(each["seconds"] for each in runs) for runs in (whole[1:], alone))
    own = sum(each.split(".")[0] == OWN for each in modules)
    return [name, f"{seconds:.2f} s", f"{least:.2f} s", f"{seconds / least:.1f}", str(len(modules)), str(own)]


def rows(folder: Path) -> list[list[str]]:
    """All commands; the release that is verified is made first."""
    (folder / "points.csv").write_text("x,y\n" + "".join(f"{7 * k % 4000},{11 * k % 4000}\n" for k in range(1500)))
    for name in MECHANISMS:
        spent = (str(folder / "points.csv"), "--mechanism", name, *PLACE, "--alpha", "100")
        made = [sys.executable, "-m", "dpppsynth", "synthesize", *spent, "--out", str(folder / name)]
        subprocess.run(made, check=True, capture_output=True)  # noqa: S603
    return [
        row("`--help`", ["--help"]),
        *(row(f"`check`, `{name}`", ["check", "--mechanism", name, *CHECKED]) for name in MECHANISMS),
        *(row(f"`verify`, `{name}`", ["verify", str(folder / name)]) for name in MECHANISMS),
        row("`local perturb --help`", ["local", "perturb", "--help"]),
    ]


def main() -> None:
    parser = command_line(str(__doc__), "page whose table is filled")
    parser.add_argument("--case")
    given = parser.parse_args()
    if given.case:
        run_case(given.case, command, libraries)
        return
    with TemporaryDirectory() as folder:
        lines = table(HEADS, rows(Path(folder)))
    print("\n".join(lines))
    fill(given.out, "commands", lines)


if __name__ == "__main__":
    main()
