"""Accuracy of the density estimated from trajectories: disk area mechanism, LDPTrace and PivotTrace, like for like.

Writes docs/results/local_trajectories.csv and fills the tables of docs/results/local_trajectories.md:

    OMP_NUM_THREADS=1 python benchmarks/local_trajectories.py --out docs/results

Nothing here is private: truths are compared with estimates, and the noise is seeded.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pages
from baselines.city_walks import points_budget, random_trajectories
from baselines.pivot_trace import pivot_trace
from baselines.trajectories import Trajectories

from dpppsynth.mechanisms.local.displacements import LineTrace, trajectory_values
from dpppsynth.mechanisms.local.trajectories.paths import (
    GridTrajectories,
)
from dpppsynth.mechanisms.local.trajectory_synthesizer import LDPTrace
from dpppsynth.randomizers import DiskArea, DisplacementLaw, grid_radius
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.transport import wasserstein2

SEED, RUNS, PERSONS, LONGEST = 811, 10, 1000, 200
SQUARE = Window.rectangle(0, 0, 1, 1)
CELLS, EPSILONS = (1, 5, 10, 15, 20), (0.5, 1.0, 1.5, 2.0, 2.5)
D, EPSILON = 15, 1.5
# PivotTrace compares every point with every place: it has the first so many persons, and their own truth.
PIVOT = 100
CROWDS, CROWD_RUNS = (1000, 10_000, 100_000), 3
METHODS = ("DAM, each point", "DAM, shared", "DAM, one point", "LDPTrace", "PivotTrace", "its places", "uniform")
# Seeds and sizes of the comparison with one report for each trajectory, whose settings were chosen on another city.
LINE_SEED, LINE_RUNS, LINE_CELLS = 20261, 5, (5, 10, 15)
LINES = ("DAM, one point", "one point, field", "LineTrace", "LDPTrace", "uniform")


def city(rng: np.random.Generator, n: int = 100_000) -> np.ndarray:
    """Points (n, 2) of a simulated city: 40 quarters of unequal size and weight, and 3 % anywhere."""
    centres, weights = rng.normal(0.5, 0.16, (40, 2)), rng.pareto(1.2, 40) + 0.1
    quarter = rng.choice(40, 2 * n, p=weights / weights.sum())
    points = centres[quarter] + rng.uniform(0.01, 0.06, 40)[quarter, None] * rng.normal(size=(2 * n, 2))
    points = np.where(rng.random(2 * n)[:, None] < 0.03, rng.random((2 * n, 2)), points)
    return points[((points >= 0) & (points <= 1)).all(axis=1)][:n]


def disks(values: np.ndarray, cells: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """(d, d) estimate from one report for each value."""
    randomizer = DiskArea(epsilon=epsilon, cells=cells, radius=grid_radius(epsilon, cells))
    counts = randomizer.count(randomizer.draw(values, rng))
    return randomizer.estimate(counts, len(values)).reshape(cells, cells)


def one_each(walks: GridTrajectories, rng: np.random.Generator) -> np.ndarray:
    """(T,) a random cell of every trajectory."""
    return walks.values[walks.offsets[:-1] + rng.integers(walks.lengths)]


def traced(walks: GridTrajectories, cells: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """(d, d) histogram of as many synthetic trajectories as there are true ones."""
    mechanism = LDPTrace(epsilon=epsilon, cells=cells, max_length=LONGEST)
    return mechanism.estimate(*mechanism.simulate(walks, rng, fast=True)).synthesize(rng=rng).histogram()


def scores(
    walks: Trajectories, pivots: Trajectories, cells: int, epsilon: float, rng: np.random.Generator
) -> Iterator[tuple[str, float]]:
    """W2 in cells of every method at one setting."""
    on_grid = walks.on_grid(SQUARE, cells)
    truth = on_grid.histogram()
    estimates = (
        disks(on_grid.values, cells, epsilon, rng),
        disks(on_grid.values, cells, epsilon / LONGEST, rng),
        disks(one_each(on_grid, rng), cells, epsilon, rng),
        traced(on_grid, cells, epsilon, rng),
    )
    yield from ((name, wasserstein2(truth, each)) for name, each in zip(METHODS, estimates, strict=False))
    own = on_grid.part(0, PIVOT).histogram()
    yield METHODS[4], wasserstein2(own, pivots.on_grid(SQUARE, cells).histogram())
    yield METHODS[5], wasserstein2(own, places(walks).on_grid(SQUARE, cells).histogram())
    yield METHODS[6], wasserstein2(truth, np.ones((cells, cells)))


def places(walks: Trajectories) -> Trajectories:
    """All that PivotTrace may report for the first persons, each place once: what it tells at no budget at all."""
    own = np.unique(walks.xy[: walks.offsets[PIVOT]], axis=0)
    return Trajectories(own, np.array([0, len(own)]))


def experiment(points: np.ndarray, runs: int) -> Iterator[list]:
    """Rows (run, d, epsilon, method, W2, largest epsilon per person) of both sweeps."""
    settings = [(d, EPSILON) for d in CELLS] + [(D, epsilon) for epsilon in EPSILONS if epsilon != EPSILON]
    for run in range(runs):
        rng = np.random.default_rng([SEED, run])
        walks = random_trajectories(points, SQUARE, number=PERSONS, longest=LONGEST, rng=rng)
        few = Trajectories(walks.xy[: walks.offsets[PIVOT]], walks.offsets[: PIVOT + 1])
        pivots = {epsilon: pivot_trace(few, epsilon=epsilon, rng=rng).trajectories for epsilon in EPSILONS}
        for d, epsilon in settings:
            most = points_budget(walks, epsilon).most
            for method, score in scores(walks, pivots[epsilon], d, epsilon, rng):
                spent = {METHODS[0]: most, METHODS[6]: 0.0} | dict.fromkeys(METHODS[4:6], np.inf)
                yield [run, d, epsilon, method, f"{score:.6g}", f"{spent.get(method, epsilon):g}"]


def crowds(points: np.ndarray) -> Iterator[list]:
    """Rows (run, persons, method, W2) of methods that protect a person, with more and more of them."""
    for persons in CROWDS:
        for run in range(CROWD_RUNS):
            rng = np.random.default_rng([SEED, persons, run])
            walks = random_trajectories(points, SQUARE, number=persons, longest=LONGEST, rng=rng).on_grid(SQUARE, D)
            truth = walks.histogram()
            yield [run, persons, METHODS[2], wasserstein2(truth, disks(one_each(walks, rng), D, EPSILON, rng))]
            yield [run, persons, METHODS[3], wasserstein2(truth, traced(walks, D, EPSILON, rng))]


def by_field(values: np.ndarray, cells: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """(d, d) estimate from one report for each value, with a field behind the reports."""
    law = DiskArea(epsilon=epsilon, cells=cells, radius=grid_radius(epsilon, cells), shrink=False)
    shares = law.estimate(law.count(law.draw(values, rng)), len(values), estimator="field")
    return shares.reshape(cells, cells)


def lines(runs: int) -> Iterator[list]:
    """Rows (run, persons, cells, method, W2, of ends) of methods with one report a person and of LDPTrace.

    A city of its own. Ends: total variation distance of the law of the displacement from start to end.
    """
    points = city(np.random.default_rng(LINE_SEED))
    for persons in CROWDS:
        for run in range(runs):
            rng = np.random.default_rng([LINE_SEED, persons, run])
            places = random_trajectories(points, SQUARE, number=persons, longest=LONGEST, rng=rng)
            for d in LINE_CELLS:
                walks = places.on_grid(SQUARE, d)
                truth, mechanism = walks.histogram(), LineTrace(epsilon=EPSILON, cells=d)
                law = mechanism.randomizer
                trace = LDPTrace(epsilon=EPSILON, cells=d, max_length=LONGEST)
                synthetic = {
                    LINES[2]: mechanism.estimate(mechanism.simulate(walks, rng)),
                    LINES[3]: trace.estimate(*trace.simulate(walks, rng, fast=True)),
                }
                one = one_each(walks, rng)
                found = {
                    LINES[0]: disks(one, d, EPSILON, rng),
                    LINES[1]: by_field(one, d, EPSILON, rng),
                    **{name: model.expected_visits for name, model in synthetic.items()},
                    LINES[4]: np.ones((d, d)),
                }
                ends = {
                    name: total_variation(walks, model.synthesize(100_000, rng), law)
                    for name, model in synthetic.items()
                }
                for name, estimate in found.items():
                    yield [run, persons, d, name, f"{wasserstein2(truth, estimate):.6g}", ends.get(name, "")]


def total_variation(walks: GridTrajectories, others: GridTrajectories, law: DisplacementLaw) -> float:
    """Distance of the laws of displacements of two sets of trajectories."""
    shares = [
        np.bincount(trajectory_values(law, each) % law.displacements, minlength=law.displacements) / len(each)
        for each in (walks, others)
    ]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def line_tables(rows: list[list]) -> tuple[list[str], list[str]]:
    """Tables of W2 and of displacements, by persons and cells."""
    places = list(dict.fromkeys((row[1], row[2]) for row in rows))

    def row(place: tuple, names: tuple[str, ...], score: int) -> list[str]:
        found = [[float(r[score]) for r in rows if (r[1], r[2]) == place and r[3] == name] for name in names]
        return [f"{np.mean(each):.2f} ± {np.std(each, ddof=1) / np.sqrt(len(each)):.2f}" for each in found]

    heads = ["persons", "d"]
    both = (LINES, 4), (LINES[2:4], 5)
    return tuple(  # type: ignore[return-value]
        pages.table([*heads, *names], [[f"{p}", f"{d}", *row((p, d), names, score)] for p, d in places])
        for names, score in both
    )


def table(rows: list[list], place: int, head: str, methods: tuple[str, ...], score: int) -> list[str]:
    """Means and standard errors: values of one column down, methods across."""
    lines = []
    for value in dict.fromkeys(row[place] for row in rows):
        found = [[float(row[score]) for row in rows if row[place] == value and name in row] for name in methods]
        errors = [np.std(each, ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.nan for each in found]
        cells = (f"{np.mean(each):.2f} ± {error:.2f}" for each, error in zip(found, errors, strict=True))
        lines.append([f"{value:g}", *cells])
    return pages.table([head, *methods], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of local_trajectories.md")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--lines", action="store_true", help="only the tables of one report for each trajectory")
    given = parser.parse_args()
    document = given.out / "local_trajectories.md"
    found = list(lines(LINE_RUNS))
    pages.write_rows(
        given.out / "local_lines.csv", ["run", "persons", "cells", "method", "w2_cells", "tv_displacement"], found
    )
    for name, filled in zip(("lines", "displacements"), line_tables(found), strict=True):
        pages.fill(document, name, filled)
    if given.lines:
        return
    points = city(np.random.default_rng(SEED))
    rows, crowd = list(experiment(points, given.runs)), list(crowds(points))
    heads = ["run", "cells", "epsilon", "method", "w2_cells", "epsilon_per_person"]
    pages.write_rows(given.out / "local_trajectories.csv", heads, rows)
    most = np.mean([float(row[5]) for row in rows if row[1:4] == [D, EPSILON, METHODS[0]]])
    print(f"{METHODS[0]}: at worst epsilon {most:g} of a person")
    pages.fill(document, "cells", table([row for row in rows if row[2] == EPSILON], 1, "d", METHODS, 4))
    pages.fill(
        document, "epsilon", table(sorted((r for r in rows if r[1] == D), key=lambda r: r[2]), 2, "eps", METHODS, 4)
    )
    pages.fill(document, "crowds", table(crowd, 1, "persons", METHODS[2:4], 3))


if __name__ == "__main__":
    main()
