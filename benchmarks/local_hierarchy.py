"""Experiment of benchmarks/local.py on the one-round hierarchy, beside the adaptive grid of two rounds.

Data and queries are those of the published tables of range queries. The adaptive grid answers by both rounds' reports
of its published oracle, and of the best one, and by a field behind the former.
"""

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from local_data import source
from local_ranges import EPSILONS, LARGEST, RHOS, Workload, answers, workloads
from pages import table, write_rows

from dpppsynth.grids import uniform_grid
from dpppsynth.local import AdvancedAdaptiveGrid, RangeHierarchy
from dpppsynth.spatial.mesh import Floats, Ints

HIERARCHY, AAG, BEST, FIELD = "hierarchy", "AAG, consistent", "AAG, best oracle", "AAG, field"
ORACLES = {AAG: "local-hashing", BEST: "auto"}
# Runs of a field for each run of the others, and its largest epsilon: on thousands of cells it takes minutes.
FEWER, LARGEST_FIELD = 10, 3.0


def hierarchy(repeats: int) -> Iterator[list]:
    """Rows (data, epsilon, method, run, cells, error for each area)."""
    for work in workloads():
        points = work.points
        runs = max(2, repeats // 2) if len(points.xy) > LARGEST else repeats
        for epsilon in EPSILONS:
            tree = RangeHierarchy.sized(epsilon, n=len(points.xy))
            values = points.values(tree.cells)
            for run in range(runs):
                errors = of_tree(work, tree, values, source(points.name, HIERARCHY, epsilon, run))
                yield [points.name, epsilon, HIERARCHY, run, tree.cells**2, *errors]
            for run, (rival, oracle) in itertools.product(range(runs), ORACLES.items()):
                grid = AdvancedAdaptiveGrid(points.bounds, epsilon=epsilon, oracle=oracle)
                counts = grid.simulate(points.xy, source(points.name, rival, epsilon, run), fast=True)
                yield [points.name, epsilon, rival, run, len(counts.grid), *work.errors(counts.query(work.queries))]
                if rival == AAG and epsilon <= LARGEST_FIELD and run < max(1, repeats // FEWER):
                    found = counts.release().query(work.queries, unbiased=False)
                    yield [points.name, epsilon, FIELD, run, len(counts.grid), *work.errors(found)]


def of_tree(work: Workload, tree: RangeHierarchy, values: Ints, rng: np.random.Generator) -> list[float]:
    """Errors of the answers to all queries from one lot of reports."""
    n, grid = len(values), uniform_grid(work.points.bounds, tree.cells, tree.cells)
    shares = tree.estimate(tree.counts(values, rng, fast=True))
    return work.errors(answers(grid, n * shares.T.reshape(-1, 1), work.queries)[:, 0])


EXPERIMENTS = {"hierarchy": hierarchy}

Key = tuple[str, float, str]
HEADS = [f"{what} {100 * rho:g} %" for what in ("aqe", "standard error") for rho in RHOS]


def of_hierarchy(rows: Iterable[list[str]]) -> dict[str, list[str]]:
    """Tables of the page by name."""
    means = {key: np.mean(found, axis=0)[1:] for key, found in by_method(rows).items()}
    names = {"hierarchy-ratios": AAG, "hierarchy-best": BEST, "hierarchy-field": FIELD}
    return {name: by_area(means, rival) for name, rival in names.items()}


def by_method(rows: Iterable[list[str]]) -> dict[Key, Floats]:
    """Number of cells and errors of all runs, (runs, 1 + areas), by data, epsilon and method."""
    runs: dict[Key, list[list[float]]] = {}
    for name, epsilon, method, _, *found in rows:
        runs.setdefault((name, float(epsilon), method), []).append([float(each) for each in found])
    return {key: np.array(found) for key, found in runs.items()}


def write_csv(out: Path, rows: Iterable[list[str]]) -> None:
    """All means, and standard errors where there are several runs."""
    lines = []
    for key, found in by_method(rows).items():
        cells, *means = found.mean(axis=0)
        spread = found[:, 1:].std(axis=0, ddof=1) / len(found) ** 0.5 if len(found) > 1 else None
        errors = [""] * len(means) if spread is None else [f"{each:.2g}" for each in spread]
        lines.append([*key, f"{cells:.0f}", *(f"{each:.4g}" for each in means), *errors])
    write_rows(out / "local_hierarchy.csv", ["data", "epsilon", "method", "cells", *HEADS], lines)


def by_area(means: dict[Key, Floats], rival: str) -> list[str]:
    """Geometric means over data of the hierarchy's errors over a rival's, and the largest of all."""
    lines = []
    for epsilon in (*EPSILONS, None):
        known = [key for key in means if key[2] == HIERARCHY and epsilon in (None, key[1])]
        keys = [key for key in known if (*key[:2], rival) in means]
        if not keys:
            continue
        ratios = np.array([means[key] / means[*key[:2], rival] for key in keys])
        worst = np.unravel_index(ratios.argmax(), ratios.shape)
        name = "**all**" if epsilon is None else f"{epsilon:g}"
        cells = [f"{each:.2f}" for each in np.exp(np.log(ratios).mean(axis=0))]
        lost = f"{ratios.max():.2f} ({keys[worst[0]][0]}, {100 * RHOS[worst[1]]:g} %)"
        lines.append([name, *cells, lost, f"{(ratios < 1).sum()} of {ratios.size}"])
    return table(["eps", *(f"{100 * rho:g} %" for rho in RHOS), "worst", "better"], lines)
