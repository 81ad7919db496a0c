"""Time and memory of heat maps, for benchmarks/heatmaps.py --scale. Every case runs in a process of its own."""

import sys
import time
from collections.abc import Callable

import numpy as np
from baselines.flat_heatmaps import laplace_aggregate
from baselines.heatmap_arrays import Users, select_cells, sparse_aggregate
from baselines.heatmap_programs import compact_lp, full_lp, objective
from measuring import in_fresh_process, memory, run_case, timed
from pages import table

from dpppsynth.mechanisms.heatmap.bound import layout
from dpppsynth.mechanisms.heatmap.reconstruction import solve
from dpppsynth.mechanisms.heatmap.tree import pyramid

ROWS = 5
SOLVERS = {
    "tree": solve,
    "compact-lp": lambda tree: compact_lp(tree).masses,
    "full-lp": lambda tree: full_lp(tree).masses,
}


def columns(people: int, side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Five check-ins for each person, around 40 places."""
    rng = np.random.default_rng([people, side])
    user = np.repeat(np.arange(people), ROWS)
    places = rng.uniform(size=(40, 2))
    at = places[rng.integers(40, size=len(user))] + 0.03 * rng.standard_normal((len(user), 2))
    i, j = np.floor((at % 1) * side).astype(np.int64).T
    return user, i, j


def aggregation(people: int, side: int, method: str) -> dict[str, float]:
    """CPU seconds from columns to the estimate with secret noise, peak memory in MB, and that before."""
    user, i, j = columns(people, side)
    # What is loaded and compiled once is no part of a release.
    sparse_aggregate(Users.from_columns([0], [0], [0], side=2), epsilon=1.0)
    before, start = memory(), time.process_time()
    users = Users.from_columns(user, i, j, side=side)
    built = time.process_time()
    if method == "sparse":
        sparse_aggregate(users, epsilon=1.0)
    else:
        laplace_aggregate(users, epsilon=1.0)
    end = time.process_time()
    return {"users": built - start, "release": end - built, "memory": memory(), "before": before}


def noisy_levels(side: int, first: int, seed: int = 1) -> list[np.ndarray]:
    """Noisy counts of 200 persons of a mixture, noise as of epsilon 1; simulated, so of any sampler."""
    rng = np.random.default_rng([side, seed])
    at = rng.uniform(size=(20, 2))[rng.integers(20, size=1000)] + 0.04 * rng.standard_normal((1000, 2))
    i, j = np.floor((at % 1) * side).astype(int).T
    masses = np.zeros((side, side))
    np.add.at(masses, (i, j), 0.2)
    return [level + rng.laplace(scale=10, size=level.shape) for level in pyramid(masses)[first:]]


def solver(side: int, w: int, which: str) -> dict[str, float]:
    """CPU seconds to reconstruct, median of nine runs, and the weighted distance reached."""
    levels = noisy_levels(side, 2)
    solve_by = SOLVERS[which]
    # Loaded once, so no part of a solution.
    solve_by(select_cells(noisy_levels(8, 2), w))
    seconds, found = median_of(9, lambda: solve_by(select_cells(levels, w)))
    return {"seconds": seconds, "objective": objective(select_cells(levels, w), found)}


def tree(side: int, w: int) -> dict[str, float]:
    """CPU seconds of the tree solver alone, median of 15 runs; the cells are selected before."""
    selected = select_cells(noisy_levels(side, 2), w)
    solve(selected)
    return {"seconds": median_of(15, lambda: solve(selected))[0]}


def median_of(runs: int, run: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    """Median CPU seconds of runs, and what the last of them found."""
    times = [timed(run, time.process_time) for _ in range(runs)]
    return float(np.median([seconds for _, seconds in times])), times[-1][0]


def measured(name: str, *values: int | str) -> dict[str, float]:
    return in_fresh_process(__file__, name, *values)


def scale_tables() -> dict[str, list[str]]:
    """Tables by their names in the document."""
    return {"scale": aggregations(), "solvers": solvers(), "linearity": linearity()}


def aggregations() -> list[str]:
    rows = []
    for method, people, side in (
        *(("sparse", *size) for size in ((100_000, 256), (100_000, 1024), (1_000_000, 256))),
        *(("Laplace", *size) for size in ((100_000, 256), (100_000, 1024))),
    ):
        got = measured("aggregation", people, side, method)
        seconds, space = (got["users"], got["release"]), (got["memory"], got["before"])
        cells = [method, f"{people:,}".replace(",", " "), f"{side} x {side}"]
        rows.append([*cells, *(f"{each:.2f} s" for each in seconds), *(f"{each:.0f} MB" for each in space)])
    return table(["method", "persons", "grid", "`Users`", "release", "peak memory", "of it before"], rows)


def solvers() -> list[str]:
    found = {which: measured("solver", 256, 20, which) for which in SOLVERS}
    rows = []
    for which, got in found.items():
        ratio = got["seconds"] / found["tree"]["seconds"]
        rows.append(["256 x 256", which, f"{got['seconds']:.4f}", f"{ratio:.0f}", f"{got['objective']:.9f}"])
    return table(["grid", "solver", "seconds", "multiple of the tree's", "objective"], rows)


def linearity() -> list[str]:
    rows = []
    for side, w in ((256, 20), (256, 320), (256, 5120), (1024, 20), (1024, 5120)):
        seconds, depth = measured("tree", side, w)["seconds"], side.bit_length() - 1
        cells = sum(layout(2, depth, w))
        sizes = f"{side} x {side}", f"{w}", f"{w * (depth - 1)}", f"{cells}"
        rows.append([*sizes, f"{1e3 * seconds:.2f}", f"{1e6 * seconds / cells:.2f}"])
    return table(["grid", "w", "w x levels", "cells looked at", "milliseconds", "microseconds per cell"], rows)


if __name__ == "__main__":
    run_case(sys.argv[-1], aggregation, solver, tree)
