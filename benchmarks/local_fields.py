"""Experiments of benchmarks/local.py on the field behind local reports, beside the published estimators.

Both estimate from the same counts. Errors are distances to the persons' own histogram.
"""

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

import numpy as np
from local_areas import truth
from local_data import SEED, Points, area_data, source
from pages import table

from dpppsynth.local import (
    DiskAreaMechanism,
    HybridUniformExponential,
    MultidimensionalSquareWave,
    SEMGeoI,
    wasserstein2,
)
from dpppsynth.mechanisms.local.synthesizer import CellMechanism
from dpppsynth.spatial.mesh import Floats

SIZE = 300_000
EPSILONS, NUMBERS, SIDE = (0.7, 1.4, 3.5, 5.0), (2000, 20_000, 200_000), 15
# The setting that other mechanisms, other sides and both footprints are compared at, and one of few and vague reports.
RICH, POOR = (3.5, 20_000), (1.4, 2000)
UNSEEN = ("spikes", "ring", "slope", "coast")
# Budget of the subset mechanism, per cell: it is told as a share of that for a whole district.
DISTRICT = 3.0
RIVALS = {
    "hybrid area": lambda epsilon: HybridUniformExponential(epsilon, cells=SIDE),
    "square wave": lambda epsilon: MultidimensionalSquareWave(epsilon, cells=SIDE),
    "subset exponential": lambda epsilon: SEMGeoI(epsilon / DISTRICT, cells=SIDE),
    "disk area, shrunken border": lambda epsilon: DiskAreaMechanism(epsilon, cells=SIDE, shrink=True),
    "disk area, 5 x 5": lambda epsilon: DiskAreaMechanism(epsilon, cells=5, shrink=False),
    "disk area, 25 x 25": lambda epsilon: DiskAreaMechanism(epsilon, cells=25, shrink=False),
}


@lru_cache(maxsize=1)
def data() -> list[Points]:
    """Those of the other experiments, then some that the prior was not chosen with, but for the last two."""
    rng = np.random.default_rng([SEED, 4])
    turn, side = rng.uniform(0, 2 * np.pi, SIZE), rng.random((SIZE, 2))
    weights = 1 / np.arange(1, 26)
    spikes = rng.random((25, 2))[rng.choice(25, SIZE, p=weights / weights.sum())] + rng.normal(0, 0.002, (SIZE, 2))
    ring = np.column_stack([np.cos(turn), np.sin(turn)]) * rng.normal(0.3, 0.02, (SIZE, 1)) + 0.5
    slope = -np.log1p(side * np.expm1([-3.0, -1.0])) / [3.0, 1.0]
    coast = np.where(side.sum(axis=1, keepdims=True) > 1, 1 - side, side)
    made = {
        "spikes": spikes,
        "ring": ring,
        "slope": slope,
        "coast": coast,
        "uniform": rng.random((SIZE, 2)),
        "one point": np.full((SIZE, 2), [0.77, 0.52]),
    }
    return [*area_data(), *(Points(name, (0, 0, 1, 1), np.clip(xy, 0, 1)) for name, xy in made.items())]


@cache
def persons(points: Points, n: int) -> Points:
    """So many persons, drawn with replacement."""
    chosen = source(points.name, "persons", n).integers(len(points.xy), size=n)
    return Points(points.name, points.bounds, points.xy[chosen])


def both(points: Points, mechanism: CellMechanism, *key: object) -> list[float]:
    """W2 in cells and total variation distance of the field, then of the published estimator."""
    d, rng = mechanism.cells, source(points.name, "fields", *key)
    counts = mechanism.counts(points.values(d), rng, fast=not isinstance(mechanism, SEMGeoI))
    found = [mechanism.estimate(counts, estimator=name) for name in ("field", mechanism.randomizer.published)]
    return [error for shares in found for error in errors(truth(points, d), shares)]


def errors(exact: Floats, shares: Floats) -> tuple[float, float]:
    return wasserstein2(exact, shares), float(np.abs(exact - shares).sum() / 2)


def fields(repeats: int) -> Iterator[list]:
    """Rows (data, epsilon, n, mechanism, run, W2, TV, published W2, published TV)."""
    for points in data():
        for epsilon in EPSILONS:
            for n in NUMBERS:
                mechanism = DiskAreaMechanism(epsilon, cells=SIDE, shrink=False)
                for run in range(max(1, repeats // 5)):
                    found = both(persons(points, n), mechanism, epsilon, n, run)
                    yield [points.name, epsilon, n, "disk area", run, *found]
        for name, make in RIVALS.items():
            for epsilon, n in (RICH, POOR):
                yield [points.name, epsilon, n, name, 0, *both(persons(points, n), make(epsilon), name, epsilon, n)]


EXPERIMENTS = {"fields": fields}

Key = tuple[str, float, int, str]


def of_fields(rows: Iterable[list[str]]) -> dict[str, list[str]]:
    """Tables of the page by name."""
    runs: dict[Key, list[list[float]]] = {}
    for name, epsilon, n, mechanism, _, *found in rows:
        runs.setdefault((name, float(epsilon), int(n), mechanism), []).append([float(each) for each in found])
    # Means over runs of W2 and total variation, and their ratios.
    means = {key: np.split(np.mean(found, axis=0), 2) for key, found in runs.items()}
    ratios = {key: np.divide(*each) for key, each in means.items()}
    return {
        "fields-settings": by_setting(ratios),
        "fields-data": by_data(ratios),
        "fields-mechanisms": by_mechanism(ratios, {key: field for key, (field, _) in means.items()}),
    }


def typical(ratios: Iterable[Floats]) -> str:
    """Geometric means of W2 and of total variation, or of ratios of them."""
    w2, tv = np.exp(np.mean(np.log(list(ratios)), axis=0))
    return f"{w2:.2f} / {tv:.2f}"


def by_setting(ratios: dict[Key, Floats]) -> list[str]:
    rows = []
    for epsilon in EPSILONS:
        cells = [typical(each for key, each in ratios.items() if key[1:] == (epsilon, n, "disk area")) for n in NUMBERS]
        rows.append([f"{epsilon:g}", *cells])
    return table(["eps", *(f"n = {n:,}".replace(",", " ") for n in NUMBERS)], rows)


def by_data(ratios: dict[Key, Floats]) -> list[str]:
    rows = []
    for points in [*data(), None]:
        chosen = {
            key: each for key, each in ratios.items() if key[3] == "disk area" and (not points or key[0] == points.name)
        }
        worst = max(chosen, key=lambda key: float(chosen[key][0]))
        where = "" if points else f"{worst[0]}, "
        name = "**all**" if points is None else f"{points.name}, unseen" if points.name in UNSEEN else points.name
        rows.append(
            [name, typical(chosen.values()), f"{chosen[worst][0]:.2f} ({where}eps {worst[1]:g}, n = {worst[2]})"]
        )
    return table(["data", "W2 / TV", "worst W2"], rows)


def by_mechanism(ratios: dict[Key, Floats], errors_of_fields: dict[Key, Floats]) -> list[str]:
    rows = []
    for mechanism in ("disk area", *RIVALS):
        cells = []
        for setting in (RICH, POOR):
            chosen = {key: each for key, each in ratios.items() if key[1:] == (*setting, mechanism)}
            w2 = typical(errors_of_fields[key] for key in chosen).partition(" ")[0]
            cells += [typical(chosen.values()), f"{max(each[0] for each in chosen.values()):.2f}", w2]
        rows.append([mechanism, *cells])
    heads = [[f"eps {epsilon:g}, n = {n}", "worst W2", "W2 of the field"] for epsilon, n in (RICH, POOR)]
    return table(["mechanism", *heads[0], *heads[1]], rows)
