"""Experiment of benchmarks/local.py on where people are: the one-round hierarchy, from even spreads to one spot."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from baselines.range_queries import average_query_error, query_workload, true_answers
from local_data import SEED, Points, source
from local_ranges import answers
from pages import table

from dpppsynth.grids import uniform_grid
from dpppsynth.local import AdvancedAdaptiveGrid, RangeHierarchy
from dpppsynth.spatial.mesh import Floats

BOUNDS = (0.0, 0.0, 1.0, 1.0)
AREAS = (0.001, 0.01, 0.1)
PERSONS = (1000, 4000, 20_000, 100_000)
EPSILONS = (0.5, 1.0, 2.0, 3.0)
QUERIES = 300
# Ratio of errors from which a setting counts as lost.
MORE = 1.15


@dataclass(frozen=True)
class Shape:
    """Persons around places at random, of standard deviation `spread` of a side; evenly spread without centres."""

    name: str
    centres: int
    spread: float

    def places(self, n: int, epsilon: float) -> Floats:
        """(n, 2) places in the unit square, other ones for each setting, by a fixed seed."""
        rng = source("crowds", self.name, n, epsilon)
        if not self.centres:
            return rng.random((n, 2))
        at = rng.uniform(0.2, 0.8, (self.centres, 2))[rng.integers(self.centres, size=n)]
        return np.clip(rng.normal(at, self.spread), 0.0, np.nextafter(1.0, 0.0))


SHAPES = (
    Shape("even", 0, 0.0),
    Shape("one wide hill", 1, 0.15),
    Shape("20 places", 20, 0.03),
    Shape("one spot, .04 wide", 1, 0.04),
    Shape("one spot, .01 wide", 1, 0.01),
    Shape("one spot, .002 wide", 1, 0.002),
)


def crowds(repeats: int) -> Iterator[list]:
    """Rows (shape, persons, epsilon, method, run, error for each area)."""
    queries = [query_workload(BOUNDS, area, QUERIES, rng=SEED + k) for k, area in enumerate(AREAS)]
    asked = np.concatenate(queries)
    for shape, n, epsilon in itertools.product(SHAPES, PERSONS, EPSILONS):
        points = Points(shape.name, BOUNDS, shape.places(n, epsilon))
        truth = np.split(true_answers(points.xy, asked, BOUNDS), len(AREAS))
        tree = RangeHierarchy.sized(epsilon, n=n)
        cells, grid = uniform_grid(BOUNDS, tree.cells, tree.cells), AdvancedAdaptiveGrid(BOUNDS, epsilon=epsilon)
        values = points.values(tree.cells)
        for run in range(repeats):
            rng = source("crowds", shape.name, n, epsilon, run)
            shares = tree.estimate(tree.counts(values, rng, fast=True))
            found = {
                "hierarchy": answers(cells, n * shares.T.reshape(-1, 1), asked)[:, 0],
                "AAG": grid.simulate(points.xy, rng, fast=True).query(asked),
            }
            for method, got in found.items():
                parts = zip(truth, np.split(got, len(AREAS)), strict=True)
                yield [shape.name, n, epsilon, method, run, *(average_query_error(true, est, n) for true, est in parts)]


EXPERIMENTS = {"crowds": crowds}


def of_crowds(rows: Iterable[list[str]]) -> dict[str, list[str]]:
    """Tables of the page by name."""
    runs: dict[tuple[str, ...], list[list[float]]] = {}
    for shape, n, epsilon, method, _, *errors in rows:
        runs.setdefault((shape, n, epsilon, method), []).append([float(each) for each in errors])
    means = {key: np.mean(found, axis=0) for key, found in runs.items()}
    lines = []
    for shape in SHAPES:
        keys = [key[:3] for key in means if key[0] == shape.name and key[3] == "AAG"]
        ratios = np.array([means[*key, "hierarchy"] / means[*key, "AAG"] for key in keys])
        at, area = np.unravel_index(ratios.argmax(), ratios.shape)
        _, n, epsilon = keys[at]
        worst = f"{ratios.max():.2f} ({int(n):,} persons, eps {float(epsilon):g}, {100 * AREAS[area]:g} %)"
        cells = [f"{each:.2f}" for each in np.exp(np.log(ratios).mean(axis=0))]
        lines.append([shape.name, *cells, worst, f"{(ratios > MORE).sum()} of {ratios.size}"])
    return {"crowds": table(["persons", *(f"{100 * area:g} %" for area in AREAS), "worst", f"above {MORE}"], lines)}
