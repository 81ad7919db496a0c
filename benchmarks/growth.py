"""Time and memory of every mechanism against the number of points, the size of the mesh and that of the network.

A release with its plan and one synthetic pattern where there are patterns, in a process of its own. A row ends where a
release takes more than two minutes of the processor, or where the plan refuses. R's spatstat stands beside K-functions,
kernel intensities and Poisson sampling where Rscript is at hand. About an hour:

    python benchmarks/growth.py --folder out/growth --out docs/results/scale.md
"""

import json
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measuring import in_fresh_process, memory, run_case
from pages import command_line, fill, table

import dpppsynth as dps
from dpppsynth.core.errors import DpppsynthError, QualityError
from dpppsynth.models import regular_triangulation

SIDE, ALPHA, LONGEST = 30_000.0, 50.0, 120
# Edges of a street are this long.
STEP = 100.0
POINTS, VERTICES, EDGES = (
    (10**3, 10**4, 10**5, 10**6, 10**7),
    (10**2, 10**3, 10**4, 10**5),
    (10**2, 10**3, 10**4, 10**5),
)
MARKS = dps.Marks(dps.Types("kind", ["a", "b", "c"]), dps.Times.day("hour"))
RELATION = dps.AlphaNeighbours(ALPHA, time=1.0, types="public")
STILL = dps.AlphaNeighbours(ALPHA, time="public", types="public")
Build = Callable[[Any, int], Any]

BY_POINTS: dict[str, Build] = {
    "laplace-cells": lambda *_: dps.LaplaceSynthesizer(1.0, alpha=ALPHA, postprocess="plain"),
    "laplace-tents": lambda *_: dps.LaplaceSynthesizer(1.0, alpha=ALPHA, basis="tents"),
    "lgcp-tents": lambda *_: dps.LGCPSynthesizer(1.0, alpha=ALPHA),
    "lgcp-clusters": lambda *_: dps.LGCPSynthesizer(1.0, alpha=ALPHA, clusters=0.3),
    "lgcp-moved": lambda *_: dps.LGCPSynthesizer(1.0, alpha=ALPHA, mechanism="moved"),
    "lgcp-field": lambda *_: dps.LGCPSynthesizer(1.0, alpha=ALPHA, delta=1e-8, mechanism="field"),
    "lgcp-posterior-draw": lambda *_: dps.LGCPSynthesizer(1.0, alpha=ALPHA, delta=1e-8, mechanism="posterior-draw"),
    "lgcp-lipschitz": lambda *_: dps.LGCPSynthesizer(1.0, alpha=ALPHA, mechanism="lipschitz"),
    "lgcp-kim-lim-3.8": lambda *_: dps.LGCPSynthesizer(1.0, alpha=ALPHA, delta=1e-8, mechanism="kim-lim-3.8"),
    "lgcp-kim-lim-3.9": lambda *_: dps.LGCPSynthesizer(1.0, alpha=ALPHA, delta=1e-8, mechanism="kim-lim-3.9"),
    "kernel": lambda *_: dps.KernelSynthesizer(10.0, delta=1e-8, alpha=ALPHA),
    "planar-laplace": lambda *_: dps.PlanarLaplaceSynthesizer(1.0, alpha=ALPHA),
    "bounded-cells": lambda *_: dps.BoundedErrorSynthesizer(epsilon=1.0, alpha=ALPHA, max_error=50),
    "marked-tents": lambda *_: dps.MarkedSynthesizer(1.0, marks=MARKS, relation=RELATION),
    "marked-moved": lambda *_: dps.MarkedSynthesizer(1.0, marks=MARKS, relation=STILL, mechanism="moved"),
    "heatmap": lambda *_: dps.HeatmapSynthesizer(1.0),
    "pair-sums": lambda *_: dps.PairSums(1.0, radii=[STEP], cap=10, alpha=ALPHA),
    "pair-sums-persons": lambda *_: dps.PairSums(1.0, radii=[2 * STEP], cap=10, user="user"),
    "disk-area": lambda *_: dps.local.DiskAreaMechanism(3.0),
    "hybrid-area": lambda *_: dps.local.HybridUniformExponential(3.0),
    "square-wave": lambda *_: dps.local.MultidimensionalSquareWave(3.0),
    "subset-exponential": lambda *_: dps.local.SEMGeoI(3.0),
    "uniform-grid": lambda window, _: dps.local.UniformGrid(window, epsilon=1.0),
    "adaptive-grid": lambda window, _: dps.local.AdvancedAdaptiveGrid(window, epsilon=1.0),
    "range-hierarchy": lambda *_: dps.local.RangeHierarchy(1.0),
    "trajectories": lambda *_: dps.local.LDPTrace(1.0, cells=8),
    "displacements": lambda *_: dps.local.LineTrace(1.0, cells=8),
}
BY_VERTICES: dict[str, Build] = {
    "laplace-cells": lambda _, k: dps.LaplaceSynthesizer(1.0, alpha=ALPHA, spacing=spacing(k), postprocess="plain"),
    "lgcp-tents": lambda window, k: dps.LGCPSynthesizer(
        1.0, alpha=ALPHA, mesh=regular_triangulation(window, spacing=spacing(k)), prior="sparse"
    ),
    "marked-tents": lambda _, k: dps.MarkedSynthesizer(1.0, marks=MARKS, relation=RELATION, spacing=spacing(k / 12)),
    "heatmap": lambda _, k: dps.HeatmapSynthesizer(1.0, shape=(round(k**0.5),) * 2),
}
BY_EDGES: dict[str, Build] = {
    "laplace-cells": lambda *_: dps.LaplaceSynthesizer(1.0, alpha=ALPHA, postprocess="plain"),
    "lgcp-tents": lambda *_: dps.LGCPSynthesizer(1.0, alpha=ALPHA),
    "lgcp-cells": lambda *_: dps.LGCPSynthesizer(1.0, alpha=ALPHA, mechanism="cells"),
    "kernel-diffusion": lambda *_: dps.KernelSynthesizer(10.0, delta=1e-8, alpha=ALPHA),
    "marked-tents": lambda *_: dps.MarkedSynthesizer(1.0, marks=MARKS, relation=RELATION),
    "pair-sums": lambda *_: dps.PairSums(1.0, radii=[STEP], cap=10, alpha=ALPHA),
}
TABLES = {"points": (BY_POINTS, POINTS), "vertices": (BY_VERTICES, VERTICES), "edges": (BY_EDGES, EDGES)}


def spacing(vertices: float) -> float:
    """Spacing of a square mesh with about so many vertices."""
    return SIDE / max(vertices**0.5 - 1, 1)


# Marks that a mechanism asks for.
ASKED = {
    "marked-tents": ("kind", "hour"),
    "marked-moved": ("kind", "hour"),
    "heatmap": ("user",),
    "pair-sums-persons": ("user",),
    "trajectories": ("trajectory",),
    "displacements": ("trajectory",),
}


def pattern(domain: Any, n: int, name: str) -> Any:
    """Points about forty centres, with the marks that a mechanism asks for."""
    rng = np.random.default_rng(1)
    centres = rng.uniform(0.1 * SIDE, 0.9 * SIDE, (40, 2))
    if isinstance(domain, dps.Window):
        at = np.clip(centres[rng.integers(40, size=n)] + rng.normal(0, 900, (n, 2)), 0, SIDE)
    else:
        edge = rng.integers(len(domain.lengths), size=n)
        at = np.column_stack([edge, rng.random(n) * domain.lengths[edge]])
    kind, hour = rng.integers(3, size=n), rng.uniform(0, 24, n)
    marks = {"kind": np.array(["a", "b", "c"])[kind], "hour": hour}
    marks |= {"user": np.arange(n) // 3, "trajectory": np.arange(n) // 10}
    return dps.PointPattern.at(at, domain, {each: marks[each] for each in ASKED.get(name, ())} or None)


def streets(edges: int) -> dps.LinearNetwork:
    """Square blocks with about so many edges."""
    k = max(round((edges / 2) ** 0.5), 2)
    x, y = (each.ravel() for each in np.meshgrid(np.arange(k + 1), np.arange(k + 1)))
    number = np.arange((k + 1) ** 2).reshape(k + 1, k + 1)
    ends = np.concatenate([
        np.column_stack([number[:, :-1].ravel(), number[:, 1:].ravel()]),
        np.column_stack([number[:-1].ravel(), number[1:].ravel()]),
    ])  # fmt: skip
    return dps.LinearNetwork(STEP * np.column_stack([x, y]), ends)


def case(by: str, name: str, size: int) -> dict[str, Any]:
    """CPU seconds and peak memory (MB) of a release and a pattern; the reason where the plan refuses, or NUTS fails."""
    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST))
    if by == "edges":
        domain, n = streets(size), 10_000
    else:
        domain, n = dps.Window.rectangle(0, 0, SIDE, SIDE), size if by == "points" else 10**5
    points = pattern(domain, n, name)
    before, start = memory(), time.process_time()
    try:
        release = TABLES[by][0][name](domain, size).release(points)
    except DpppsynthError as error:
        return {"failed" if isinstance(error, QualityError) else "refused": str(error)}
    if not hasattr(release, "patterns") and hasattr(release, "sample"):
        release.sample(1)
    return {"seconds": time.process_time() - start, "memory": memory(), "before": before}


def run(by: str, name: str, size: int) -> dict[str, Any]:
    """A case in a process of its own, which the system ends when it takes too long."""
    try:
        return in_fresh_process(__file__, "case", by, name, size)
    except subprocess.CalledProcessError as error:
        if error.returncode != -signal.SIGKILL:
            raise
        return {"longer": True}


def cell(found: dict[str, Any]) -> str:
    """A case in a cell of the table."""
    if "seconds" not in found:
        return next((word for word in ("refused", "failed") if word in found), f"over {LONGEST} s")
    return f"{found['seconds']:.2g} s, {found['memory']:.0f} MB"


def rows(folder: Path, by: str) -> Iterator[list[str]]:
    """One mechanism a row: seconds and memory by size, and the exponent of the last tenfold step."""
    built, sizes = TABLES[by]
    for name in built:
        found: list[dict[str, Any]] = []
        for size in sizes:
            if found and "seconds" not in found[-1]:
                break
            file = folder / f"{by} {name} {size}.json"
            if not file.exists():
                file.write_text(json.dumps(run(by, name, size)))
            found.append(json.loads(file.read_text()))
        cells = [cell(each) for each in found]
        times = [each["seconds"] for each in found if "seconds" in each]
        exponent = f"{np.log10(times[-1] / times[-2]):.1f}" if len(times) > 1 else ""
        yield [name, *cells, *[""] * (len(sizes) - len(cells)), exponent]


def reasons(folder: Path) -> list[str]:
    """Table of refusals and failures, in the words of plans and releases."""
    lines = []
    for by, (built, sizes) in TABLES.items():
        for name in built:
            for size in sizes:
                file = folder / f"{by} {name} {size}.json"
                found = json.loads(file.read_text()) if file.exists() else {}
                lines += [
                    [name, f"{size:,} {by}".replace(",", " "), word, found[word]]
                    for word in ("refused", "failed")
                    if word in found
                ]
    return table(["mechanism", "size", "end", "reason"], lines)


def main() -> None:
    parser = command_line(str(__doc__), "page whose tables are filled")
    parser.add_argument("--case")
    parser.add_argument("--folder", type=Path, help="finished cases are kept here, and taken up again")
    parser.add_argument("--only", choices=list(TABLES))
    given = parser.parse_args()
    if given.case:
        run_case(given.case, case)
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    for by, (_, sizes) in TABLES.items():
        if given.only in (None, by):
            heads = ["mechanism", *(f"{size:,} {by}".replace(",", " ") for size in sizes), "exponent"]
            lines = table(heads, rows(given.folder, by))
            print(*lines, sep="\n")
            fill(given.out, by, lines)
    fill(given.out, "refused", reasons(given.folder))


if __name__ == "__main__":
    main()
