"""Running time and memory of K-functions in a window.

Ripley's isotropic correction at 513 distances, on uniform points in the unit square, against two plain implementations
of the same definition in the same run: all distances by numpy, and the list of close pairs by scipy's k-d tree. Then on
windows with many corners.

    OMP_NUM_THREADS=1 python benchmarks/planar_k.py --out docs/results/planar_k.md
"""

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import shapely
from measuring import memory
from pages import command_line, fill, table
from scipy.spatial import cKDTree

from dpppsynth.evaluation.kfunction import k_function
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern

# Seconds that an established implementation with a core in C needed for 10 000 points, on one core.
ESTABLISHED = 0.20
R = np.linspace(0, 0.178, 513)


def uniform(window: Window, n: int, rng: np.random.Generator) -> PointPattern:
    x0, y0, x1, y1 = window.bounds
    xy = rng.uniform((x0, y0), (x1, y1), (int(2 * n * (x1 - x0) * (y1 - y0) / window.area) + 100, 2))
    return PointPattern(xy[window.contains(xy)][:n], window)


def weights(xy: np.ndarray, d: np.ndarray) -> np.ndarray:
    """One over the share in the unit square of circles around xy (m, 2) of radius d (m,)."""
    margin = np.column_stack([xy, 1 - xy])
    angle = np.arccos(np.minimum(margin / d[:, None], 1))
    outside = 2 * angle.sum(axis=1) - np.maximum(angle + np.roll(angle, 1, axis=1) - np.pi / 2, 0).sum(axis=1)
    return np.minimum(1 / (1 - outside / (2 * np.pi)), 100)


def plain(pattern: PointPattern, r: np.ndarray) -> np.ndarray:
    """All distances, a few points at a time."""
    xy, n, total = pattern.xy, len(pattern), np.zeros(len(r))
    for start in range(0, n, 100):
        d = np.hypot(*(xy[start : start + 100, None] - xy).T).T
        i, j = np.nonzero((d <= r[-1]) & (d > 0))
        close = d[i, j]
        total += np.bincount(np.searchsorted(r, close), weights(xy[start + i], close), minlength=len(r))
    return np.cumsum(total) / (n * (n - 1))


def by_tree(pattern: PointPattern, r: np.ndarray) -> np.ndarray:
    """Close pairs by a k-d tree, all of them in memory."""
    xy, n = pattern.xy, len(pattern)
    i, j = cKDTree(xy).query_pairs(r[-1], output_type="ndarray").T
    d = np.hypot(*(xy[i] - xy[j]).T)
    both = weights(xy[i], d) + weights(xy[j], d)
    return np.cumsum(np.bincount(np.searchsorted(r, d), both, minlength=len(r))) / (n * (n - 1))


def seconds(run: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Smallest wall time and smallest CPU time of all threads."""
    wall, cpu = [], []
    for _ in range(repeats):
        start = time.perf_counter(), time.process_time()
        run()
        wall.append(time.perf_counter() - start[0])
        cpu.append(time.process_time() - start[1])
    return min(wall), min(cpu)


def clocks(wall: float, cpu: float) -> list[str]:
    return [f"{wall:.2f} s", f"{cpu:.2f} s"]


def held() -> float:
    """Memory of this process now, MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def ragged(corners: int, rng: np.random.Generator) -> Window:
    angle, radius = np.linspace(0, 2 * np.pi, corners, endpoint=False), 1 + 0.1 * rng.random(corners)
    return Window.polygon(shapely.Polygon(np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])))


def streets() -> Window:
    """A grid of streets, whose overlaps with itself jump so that nothing is interpolated."""
    along = [shapely.box(0, i, 10, i + 0.05) for i in range(11)]
    return Window.polygon(shapely.union_all(along + [shapely.box(i, 0, i + 0.05, 10.05) for i in range(11)]))


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    load, rng, square = os.getloadavg()[0], np.random.default_rng(1), Window.rectangle(0, 0, 1, 1)
    k_function(uniform(square, 10, rng), R)
    many, near = uniform(square, 100_000, rng), np.linspace(0, 0.05, 513)
    before = held()
    wall, cpu = seconds(lambda: k_function(many, near), 3)
    rows = [["100 000, r to 0.05", "cells, compiled", "3", *clocks(wall, cpu), f"< {memory() - before:.0f} MiB"]]
    pattern = uniform(square, 10_000, rng)
    runs = {
        "cells, compiled": (lambda: k_function(pattern, R), arguments.repeats),
        "k-d tree and numpy": (lambda: by_tree(pattern, R), 2),
        "numpy": (lambda: plain(pattern, R), 1),
    }
    for expected in (plain(pattern, R), by_tree(pattern, R)):
        np.testing.assert_allclose(k_function(pattern, R).k, expected, rtol=1e-9)
    times = {}
    for name, (run, repeats) in runs.items():
        times[name] = seconds(run, repeats)
        rows.append(["10 000, r to 0.178", name, f"{repeats}", *clocks(*times[name]), ""])
    shapes = {f"ragged disc, {corners} corners": ragged(corners, rng) for corners in (50, 500, 5000)}
    for name, shape in (shapes | {"streets, 10 x 10, 0.05 wide": streets()}).items():
        inside, far = uniform(shape, 2000, rng), np.linspace(0, shape.diameter / 4, 513)
        for correction in ("isotropic", "translation", "border"):
            k_function(uniform(shape, 10, rng), far, correction=correction)
            repeats = 1 if correction == "translation" else 3
            found = seconds(lambda c=correction, p=inside, r=far: k_function(p, r, correction=c), repeats)
            rows.append([f"2000, {name}, r to {far[-1]:.2g}", correction, f"{repeats}", *clocks(*found), ""])
    ours = times["cells, compiled"]
    pairs = len(many) ** 2 / 2 * np.pi * near[-1] ** 2
    lines = table(["points", "how", "runs", "clock", "CPU", "memory"], rows)
    print(*lines, sep="\n")
    print(
        f"established implementation: {ESTABLISHED / ours[1]:.1f} times our CPU time; {pairs / 1e6:.0f} million pairs"
    )
    print(f"{os.cpu_count()} cores, jobs of others at the beginning: {load:.1f}")
    fill(arguments.out, "times", lines)


if __name__ == "__main__":
    main()
