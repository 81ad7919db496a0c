"""Experiments of benchmarks/local.py on grids for range queries."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from baselines.central_grids import CentralAdaptiveGrid, CentralUniformGrid
from baselines.range_queries import (
    average_query_error,
    constant_density_answers,
    query_workload,
    true_answers,
    zero_answers_error,
)
from local_data import SEED, Points, range_data, source

from dpppsynth.grids import Rectangles, first_side, uniform_side
from dpppsynth.local import AdaptiveCounts, AdvancedAdaptiveGrid, PrivAG, UniformGrid
from dpppsynth.spatial.mesh import Floats, Ints

EPSILONS = (0.5, 1.0, 3.0, 5.0)
SMALL = (0.00005, 0.0001, 0.0005, 0.001, 0.005)
LARGE = (0.02, 0.04, 0.06, 0.08, 0.1)
RHOS = (*SMALL, *LARGE)
QUERIES = 500
SIDES = (4, 5, 6, 7, 8, 9, 10, 12, 15, 17, 20, 25, 30, 40, 50, 60)
ZERO, CONSTANT = "answer 0", "constant density"
# Repeats of the largest data, of variants, and where a curator's grid has up to a million cells.
LARGEST = 2_000_000


@dataclass(frozen=True)
class EvenCuts(AdvancedAdaptiveGrid):
    """The advanced adaptive grid's constants with even cuts."""

    cuts = "even"


@dataclass(frozen=True, eq=False)
class Workload:
    """Queries (R, 4) of all areas, one after the other, and their true answers (R,)."""

    points: Points
    queries: Floats
    truth: Ints

    def errors(self, answers: Floats) -> list[float]:
        """Average query error for each area."""
        n, parts = len(self.points.xy), zip(self._split(self.truth), self._split(answers), strict=True)
        return [average_query_error(true, found, n) for true, found in parts]

    def zero(self) -> list[float]:
        return [zero_answers_error(true, len(self.points.xy)) for true in self._split(self.truth)]

    def _split(self, values: Floats | Ints) -> list:
        return np.split(values, len(RHOS))


@lru_cache(maxsize=1)
def workloads() -> list[Workload]:
    found = []
    for points in range_data():
        parts = [query_workload(points.bounds, rho, QUERIES, rng=SEED + k) for k, rho in enumerate(RHOS)]
        queries = np.concatenate(parts)
        found.append(Workload(points, queries, true_answers(points.xy, queries, points.bounds)))
    return found


def answers(grid: Rectangles, masses: Floats, queries: Floats) -> Floats:
    """(R, V) answers for V lots of masses (T, V) at once."""
    found = np.zeros((len(queries), masses.shape[1]))
    for part, shares in grid.batches(queries):
        found[part] = shares @ masses
    return found


def quick_answers(grid: Rectangles, masses: Floats, queries: Floats) -> Floats:
    """(R,) the same for large grids: whole first-level cells by sums over corners, the others cell by cell."""
    columns, rows, cells, pieces = grid.columns, grid.rows, grid.cells, grid.pieces
    coarse = np.add.reduceat(masses, grid.starts[:-1]).reshape(len(rows) - 1, -1)
    summed = np.pad(coarse.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    left, right = (np.searchsorted(columns, queries[:, 0], "right") - 1, np.searchsorted(columns, queries[:, 2]))
    low, high = (np.searchsorted(rows, queries[:, 1], "right") - 1, np.searchsorted(rows, queries[:, 3]))
    found = np.zeros(len(queries))
    for k, query in enumerate(queries):
        number, inside = border(left[k], right[k], low[k], high[k], len(columns) - 1)
        lengths = pieces[number]
        chosen = np.repeat(grid.starts[number] - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        x0, y0, x1, y1 = cells[chosen].T
        across = np.clip(np.minimum(x1, query[2]) - np.maximum(x0, query[0]), 0, None) / (x1 - x0)
        along = np.clip(np.minimum(y1, query[3]) - np.maximum(y0, query[1]), 0, None) / (y1 - y0)
        found[k] = masses[chosen] @ (across * along)
        if inside:
            a, b, c, d = inside
            found[k] += summed[d, b] - summed[c, b] - summed[d, a] + summed[c, a]
    return found


def border(left: int, right: int, low: int, high: int, columns: int) -> tuple[Ints, tuple[int, int, int, int] | None]:
    """Numbers of the cells on the rim of a block of them, and what lies inside the rim."""
    i, j = np.meshgrid(np.arange(left, right), np.arange(low, high))
    rim = (i == left) | (i == right - 1) | (j == low) | (j == high - 1)
    inside = (left + 1, right - 1, low + 1, high - 1) if right - left > 2 and high - low > 2 else None
    return (j * columns + i)[rim], inside


def uniform_grids(work: Workload, repeats: int) -> Iterator[list]:
    """Uniform grids of all sides; the best of them is picked afterwards, with the truth."""
    points, n = work.points, len(work.points.xy)
    sized = {uniform_side(epsilon, n): epsilon for epsilon in EPSILONS}
    for side in sorted({*SIDES, *sized}):
        runs = [(epsilon, run) for epsilon in EPSILONS for run in range(repeats)]
        values = UniformGrid(points.bounds, epsilon=1.0, cells=side).values(points.xy)
        masses = []
        for epsilon, run in runs:
            counts = UniformGrid(points.bounds, epsilon=epsilon, cells=side).counts(
                values, source(points.name, "UG", side, epsilon, run), fast=True
            )
            masses.append(counts.fitted.masses)  # type: ignore[attr-defined]
        grid = UniformGrid(points.bounds, epsilon=1.0, cells=side).grid
        for (epsilon, run), found in zip(runs, answers(grid, np.column_stack(masses), work.queries).T, strict=True):
            errors = work.errors(found)
            if side in SIDES:
                yield [points.name, epsilon, f"UG {side}", run, side**2, *errors]
            if sized.get(side) == epsilon:
                yield [points.name, epsilon, "UG, rule", run, side**2, *errors]


def adaptive_grids(work: Workload, repeats: int) -> Iterator[list]:
    """Grids in two rounds, with what else is made of the same reports."""
    points = work.points
    for epsilon in EPSILONS:
        made: dict[str, PrivAG | AdvancedAdaptiveGrid] = {
            "PrivAG": PrivAG(points.bounds, epsilon=epsilon, consistent=False),
            "AAG": AdvancedAdaptiveGrid(points.bounds, epsilon=epsilon, consistent=False),
        }
        if epsilon == 1.0:
            made["AAG, even cuts"] = EvenCuts(points.bounds, epsilon=epsilon, consistent=False)
            made["AAG, alpha1 = .25"] = replace(made["AAG"], alpha1=0.25)
        for name, mechanism in made.items():
            for run in range(repeats):
                counts = mechanism.simulate(points.xy, source(points.name, name, epsilon, run), fast=True)
                for variant, errors in variants(work, counts).items():
                    if name in ("PrivAG", "AAG") or not variant:
                        yield [points.name, epsilon, name + variant, run, len(counts.grid), *errors]


def variants(work: Workload, counts: AdaptiveCounts) -> dict[str, list[float]]:
    """Errors as published, with both rounds' reports, and where the second round's are not scaled up to everybody."""
    agreed = replace(counts, mechanism=replace(counts.mechanism, consistent=True))
    masses = np.column_stack([counts.fitted.masses, agreed.fitted.masses])
    plain, consistent = answers(counts.grid, masses, work.queries).T
    lots = {"": plain, ", consistent": consistent, ", unscaled": plain * counts.second.n / counts.n}
    return {name: work.errors(found) for name, found in lots.items()}


def central_grids(work: Workload, repeats: int) -> Iterator[list]:
    """A curator's grids at the same epsilon."""
    points = work.points
    for epsilon in EPSILONS:
        for name, kind in (("central UG", CentralUniformGrid), ("central AG", CentralAdaptiveGrid)):
            mechanism = kind(points.bounds, epsilon=epsilon, expected_n=len(points.xy))
            for run in range(repeats):
                found = mechanism.release_counts(points.xy, source(points.name, name, epsilon, run))
                errors = work.errors(quick_answers(found.rectangles, found.masses, work.queries))
                yield [points.name, epsilon, name, run, len(found.rectangles), *errors]


def ranges(repeats: int) -> Iterator[list]:
    """Rows (data, epsilon, method, run, cells, error for each area)."""
    for work in workloads():
        points = work.points
        flat = constant_density_answers(work.queries, points.bounds, len(points.xy))
        for epsilon in EPSILONS:
            yield [points.name, epsilon, ZERO, 0, 0, *work.zero()]
            yield [points.name, epsilon, CONSTANT, 0, 1, *work.errors(flat)]
        yield from uniform_grids(work, repeats)
        yield from adaptive_grids(work, max(2, repeats // 2) if len(points.xy) > LARGEST else repeats)
        yield from central_grids(work, 2)


def first_levels() -> dict[str, list[int]]:
    """Cells of the first level by data and epsilon: no points are needed."""
    return {
        work.points.name: [first_side(epsilon, len(work.points.xy)) ** 2 for epsilon in EPSILONS]
        for work in workloads()
    }


EXPERIMENTS = {"ranges": ranges}
