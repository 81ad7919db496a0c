"""Experiment of benchmarks/local.py on the one-round hierarchy, beside the adaptive grid of two rounds.

Data and queries are those of the published tables of range queries. The adaptive grid answers by both rounds' reports,
and by a field behind the same reports.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from local_data import source
from local_ranges import EPSILONS, LARGEST, RHOS, Workload, answers, workloads
from pages import table

from dpppsynth.grids import uniform_grid
from dpppsynth.local import AdvancedAdaptiveGrid, RangeHierarchy
from dpppsynth.spatial.mesh import Floats, Ints

HIERARCHY, AAG, FIELD = "hierarchy", "AAG, consistent", "AAG, field"
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
            grid = AdvancedAdaptiveGrid(points.bounds, epsilon=epsilon)
            for run in range(runs):
                counts = grid.simulate(points.xy, source(points.name, AAG, epsilon, run), fast=True)
                yield [points.name, epsilon, AAG, run, len(counts.grid), *work.errors(counts.query(work.queries))]
                if epsilon <= LARGEST_FIELD and run < max(1, repeats // FEWER):
                    found = counts.release().query(work.queries, unbiased=False)
                    yield [points.name, epsilon, FIELD, run, len(counts.grid), *work.errors(found)]


def of_tree(work: Workload, tree: RangeHierarchy, values: Ints, rng: np.random.Generator) -> list[float]:
    """Errors of the answers to all queries from one lot of reports."""
    n, grid = len(values), uniform_grid(work.points.bounds, tree.cells, tree.cells)
    shares = tree.estimate(tree.counts(values, rng, fast=True))
    return work.errors(answers(grid, n * shares.T.reshape(-1, 1), work.queries)[:, 0])


EXPERIMENTS = {"hierarchy": hierarchy}

Key = tuple[str, float, str]


def of_hierarchy(rows: Iterable[list[str]]) -> dict[str, list[str]]:
    """Tables of the page by name."""
    runs: dict[Key, list[list[float]]] = {}
    for name, epsilon, method, _, _, *found in rows:
        runs.setdefault((name, float(epsilon), method), []).append([float(each) for each in found])
    means = {key: np.mean(found, axis=0) for key, found in runs.items()}
    return {"hierarchy-ratios": by_area(means, AAG), "hierarchy-field": by_area(means, FIELD)}


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
