"""Files, functions and upward calls that one release passes through.

    python benchmarks/call_path.py

A call is upward where a function of a lower room, as the import contract of pyproject.toml orders them, calls one of
a higher room, by itself or through a library. What runs during an import is left out. `--show` lists files and calls.
"""

import sys
import tempfile
import tomllib
import warnings
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = {"models": "models", "linear_network": "linear_network"}


def rooms():
    """Height of each room: the lowest is 0."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["type"] == "layers")
    return {name.strip(): height for height, row in enumerate(reversed(layers)) for name in row.split("|")}


HEIGHTS = rooms()


def place(code):
    """File of a function of this package, relative to the root, or None."""
    name = code.co_filename
    if not name.startswith(str(ROOT)) or "/.venv/" in name or code.co_name in {"<module>", "<lambda>"}:
        return None
    path = Path(name).relative_to(ROOT)
    parts = path.parts
    if parts[0] == "dpppsynth" and len(parts) > 2 and parts[1] in FOLDERS:
        path = Path(*parts[1:])
    return path if path.parts[0] in {"dpppsynth", *FOLDERS} else None


def room(path):
    """Room of a file."""
    return path.parts[0] if path.parts[0] in FOLDERS else Path(path.parts[1]).stem


class Trace:
    """Functions that are called, and calls from lower rooms into higher ones."""

    def __init__(self):
        self.functions, self.upward, self.importing = set(), Counter(), 0

    def __call__(self, frame, event, _):
        if frame.f_code.co_name == "<module>":
            self.importing += {"call": 1, "return": -1}.get(event, 0)
        here = place(frame.f_code)
        if event != "call" or self.importing or here is None:
            return
        self.functions.add((here, frame.f_code.co_qualname, frame.f_code.co_firstlineno))
        caller = frame.f_back
        while caller is not None and place(caller.f_code) is None:
            caller = caller.f_back
        there = caller and place(caller.f_code)
        if there and HEIGHTS.get(room(there), -1) < HEIGHTS.get(room(here), -1):
            self.upward[f"{there}:{caller.f_code.co_name} -> {here}:{frame.f_code.co_qualname}"] += 1


def traced(title, run, *, show):
    """Run once and print what was passed."""
    trace = Trace()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.setprofile(trace)
        try:
            run()
        finally:
            sys.setprofile(None)
    files = sorted({path for path, *_ in trace.functions})
    lines = sum(len((ROOT / path).read_text().splitlines()) for path in files)
    total = sum(trace.upward.values())
    print(f"{title:32} {len(files):4} files {lines:6} lines {len(trace.functions):4} functions {total:4} upward calls")
    if show:
        print("\n".join(f"    {path}" for path in files))
        print("\n".join(f"    {number:4} {call}" for call, number in trace.upward.most_common()))


def main():
    """Four releases of the deaths in Soho."""
    show = "--show" in sys.argv[1:]
    import dpppsynth as dps

    deaths = dps.datasets.soho_deaths()
    traced(
        "lgcp-tents in Python",
        lambda: dps.LGCPSynthesizer(epsilon=1, alpha=25, mechanism="tents").release(deaths),
        show=show,
    )
    traced(
        "kernel in Python", lambda: dps.KernelSynthesizer(epsilon=10, delta=1e-6, alpha=25).release(deaths), show=show
    )
    area = dps.local.DiskAreaMechanism(epsilon=2, cells=10)
    traced("disk-area in Python", lambda: area.release(deaths), show=show)
    from dpppsynth.cli import main as command

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "points.csv"
        rows = [f"{x!r},{y!r}" for x, y in deaths.xy.tolist()]
        source.write_text("\n".join(["x,y", *rows, ""]))
        x0, y0, x1, y1 = deaths.domain.bounds
        window = f"{x0},{y0},{x1},{y1}"
        options = [
            "--mechanism",
            "lgcp-tents",
            "--window",
            window,
            "--crs",
            "EPSG:27700",
            "--epsilon",
            "1",
            "--alpha",
            "25",
        ]
        arguments = ["dpppsynth", "synthesize", str(source), *options, "--out", str(Path(folder) / "public")]

        def run():
            try:
                sys.argv = arguments
                command()
            except SystemExit as stopped:
                if stopped.code:
                    raise

        traced("lgcp-tents on the command line", run, show=show)


if __name__ == "__main__":
    main()
