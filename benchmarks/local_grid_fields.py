"""Experiment of benchmarks/local.py on the field behind reports on grids, beside the cells' own estimates.

All estimate from the same counts. Errors are those of range queries over 1 % of the area, and total variation distances
to the persons on 32 x 32 cells.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from baselines.range_queries import average_query_error, query_workload, true_answers
from local_data import Points, source
from local_fields import UNSEEN, data, persons
from pages import table

from dpppsynth.grids import uniform_grid
from dpppsynth.local import AdvancedAdaptiveGrid, PrivAG, UniformGrid
from dpppsynth.spatial.mesh import Floats

EPSILONS, NUMBERS = (0.7, 1.4, 3.5), (20_000, 200_000)
AREA, QUERIES, SIDE = 0.01, 300, 32
KINDS = ("UG", "PrivAG", "AAG")
# Errors of queries by unbiased estimates, by the nearest non-negative ones and by the field; distances of the last two.
MEASURES = ("AQE", "AQE, norm-sub", "AQE, field", "TV, norm-sub", "TV, field")


def mechanism(kind: str, points: Points, epsilon: float, n: int):
    if kind == "UG":
        return UniformGrid.sized(points.bounds, epsilon=epsilon, n=n)
    return (PrivAG if kind == "PrivAG" else AdvancedAdaptiveGrid)(points.bounds, epsilon=epsilon)


def grids(repeats: int) -> Iterator[list]:
    """Rows (data, epsilon, n, mechanism, run, errors and distances as in `MEASURES`)."""
    for points in data():
        for epsilon in EPSILONS:
            for n in NUMBERS:
                for kind in KINDS:
                    for run in range(max(1, repeats // 10)):
                        yield [points.name, epsilon, n, kind, run, *scores(persons(points, n), kind, epsilon, n, run)]


def scores(points: Points, kind: str, epsilon: float, n: int, run: int) -> list[float]:
    rng = source(points.name, "grids", kind, epsilon, n, run)
    field = mechanism(kind, points, epsilon, n).simulate(points.xy, rng, fast=True).release()
    plain = replace(field, estimator=replace(field.estimator, post="norm-sub"))
    queries = query_workload(points.bounds, AREA, QUERIES, rng=source(points.name, "queries"))
    truth = true_answers(points.xy, queries, points.bounds)
    answers = field.query(queries), plain.query(queries, unbiased=False), field.query(queries, unbiased=False)
    cells = uniform_grid(points.bounds, SIDE, SIDE)
    exact = cells.count(points.xy)
    distances = (np.abs(each.query(cells.cells, unbiased=False) - exact).sum() / 2 / n for each in (plain, field))
    return [*(average_query_error(truth, each, n) for each in answers), *map(float, distances)]


EXPERIMENTS = {"grids": grids}

Key = tuple[str, float, int, str]


def of_grids(rows: Iterable[list[str]]) -> dict[str, list[str]]:
    """Tables of the page by name."""
    runs: dict[Key, list[list[float]]] = {}
    for name, epsilon, n, kind, _, *found in rows:
        runs.setdefault((name, float(epsilon), int(n), kind), []).append([float(each) for each in found])
    means = {key: np.mean(found, axis=0) for key, found in runs.items()}
    return {"grids-settings": by_setting(means), "grids-data": by_data(means)}


def ratios(means: Iterable[Floats]) -> str:
    """Geometric means of the field's errors over those of unbiased answers, and of distances over the nearest's."""
    found = np.array(list(means))
    each = (np.exp(np.mean(np.log(found[:, a] / found[:, b]))) for a, b in ((2, 0), (2, 1), (4, 3)))
    return " / ".join(f"{ratio:.2f}" for ratio in each)


def by_setting(means: dict[Key, Floats]) -> list[str]:
    lines = []
    for kind in KINDS:
        for epsilon in EPSILONS:
            cells = [ratios(each for key, each in means.items() if key[1:] == (epsilon, n, kind)) for n in NUMBERS]
            lines.append([kind, f"{epsilon:g}", *cells])
    return table(["mechanism", "eps", *(f"n = {n:,}".replace(",", " ") for n in NUMBERS)], lines)


def by_data(means: dict[Key, Floats]) -> list[str]:
    lines = []
    for points in [*data(), None]:
        chosen = {key: each for key, each in means.items() if points is None or key[0] == points.name}
        worst = max(chosen, key=lambda key: float(chosen[key][4] / chosen[key][3]))
        name = "**all**" if points is None else f"{points.name}, unseen" if points.name in UNSEEN else points.name
        ratio = chosen[worst][4] / chosen[worst][3]
        lines.append([name, ratios(chosen.values()), f"{ratio:.2f} ({worst[3]}, eps {worst[1]:g}, n = {worst[2]})"])
    return table(["data", "AQE / AQE of norm-sub / TV", "worst TV"], lines)
