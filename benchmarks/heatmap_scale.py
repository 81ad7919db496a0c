"""Time and memory of heat maps, for benchmarks/heatmaps.py --scale. Every case runs in a process of its own."""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dpppsynth.mechanisms.heatmap.aggregation import sparse_aggregate
from dpppsynth.mechanisms.heatmap.bound import layout
from dpppsynth.mechanisms.heatmap.dense_laplace import laplace_aggregate
from dpppsynth.mechanisms.heatmap.linear_programs import objective
from dpppsynth.mechanisms.heatmap.pyramid import pyramid
from dpppsynth.mechanisms.heatmap.reconstruct import reconstruct, select_cells, solve
from dpppsynth.mechanisms.heatmap.users import Users

ROWS = 5


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


def memory() -> float:
    """Peak memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


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
    # What is loaded once is no part of a solution.
    reconstruct(noisy_levels(8, 2), w, solver=which)
    times = []
    for _ in range(9):
        start = time.process_time()
        found = reconstruct(levels, w, solver=which)
        times.append(time.process_time() - start)
    return {"seconds": float(np.median(times)), "objective": objective(select_cells(levels, w), found)}


def tree(side: int, w: int) -> dict[str, float]:
    """CPU seconds of the tree solver alone, median of 15 runs; the cells are selected before."""
    selected = select_cells(noisy_levels(side, 2), w)
    solve(selected)
    times = []
    for _ in range(15):
        start = time.process_time()
        solve(selected)
        times.append(time.process_time() - start)
    return {"seconds": float(np.median(times))}


CASES: dict[str, Callable[..., dict[str, float]]] = {"aggregation": aggregation, "solver": solver, "tree": tree}


def measured(name: str, *values: int | str) -> dict[str, float]:
    """A case in a fresh process, so that peak memory is its own."""
    command = [sys.executable, str(Path(__file__)), json.dumps([name, *values])]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return json.loads(done.stdout)


def scale_tables() -> dict[str, list[str]]:
    """Tables by their names in the document."""
    return {"scale": aggregations(), "solvers": solvers(), "linearity": linearity()}


def aggregations() -> list[str]:
    lines = ["| method | persons | grid | `Users` | release | peak memory | of it before |", "|" + "---|" * 7]
    for method in ("sparse", "Laplace"):
        for people, side in ((100_000, 256), (100_000, 1024), (1_000_000, 256)):
            if method == "Laplace" and people > 100_000:
                continue
            print(method, people, side, flush=True)
            got = measured("aggregation", people, side, method)
            lines.append(
                f"| {method} | {people:,} | {side} x {side} | {got['users']:.2f} s | {got['release']:.2f} s | "
                f"{got['memory']:.0f} MB | {got['before']:.0f} MB |".replace(",", " ")
            )
    return lines


def solvers() -> list[str]:
    lines = ["| grid | solver | seconds | multiple of the tree's | objective |", "|" + "---|" * 5]
    first = measured("solver", 256, 20, "tree")
    for which in ("tree", "compact-lp", "full-lp"):
        print(which, flush=True)
        got = first if which == "tree" else measured("solver", 256, 20, which)
        ratio = got["seconds"] / first["seconds"]
        lines.append(f"| 256 x 256 | {which} | {got['seconds']:.4f} | {ratio:.0f} | {got['objective']:.9f} |")
    return lines


def linearity() -> list[str]:
    lines = ["| grid | w | w x levels | cells looked at | milliseconds | microseconds per cell |", "|" + "---|" * 6]
    for side, w in ((256, 20), (256, 320), (256, 5120), (1024, 20), (1024, 5120)):
        seconds, depth = measured("tree", side, w)["seconds"], side.bit_length() - 1
        cells = sum(layout(2, depth, w))
        each = f"{1e3 * seconds:.2f} | {1e6 * seconds / cells:.2f}"
        lines.append(f"| {side} x {side} | {w} | {w * (depth - 1)} | {cells} | {each} |")
    return lines


if __name__ == "__main__":
    case, *values = json.loads(sys.argv[1])
    print(json.dumps(CASES[case](*values)))
