"""Experiments of benchmarks/local.py on area mechanisms, the square wave and the subset exponential mechanism."""

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any

import numpy as np
from baselines import LiteralHybridUniformExponential
from baselines.area_theory import discrete_radius
from baselines.local_matching import matched_epsilon
from local_data import Points, area_data, source

from dpppsynth.core.errors import InputError
from dpppsynth.local import (
    CellMechanism,
    Counts,
    DiskAreaMechanism,
    HybridUniformExponential,
    MultidimensionalSquareWave,
    SEMGeoI,
    wasserstein2,
)
from dpppsynth.randomizers import grid_radius, optimal_radius
from dpppsynth.spatial.mesh import Floats

# Settings (d, epsilon) of each published experiment; d = 1 has one cell and no error.
SETTINGS = {
    "small d": [(2, 3.5), (3, 3.5), (4, 3.5), (5, 3.5)],
    "small eps": [(5, 0.7), (5, 1.4), (5, 2.1), (5, 2.8), (5, 3.5)],
    "large d": [(5, 5.0), (10, 5.0), (15, 5.0), (20, 5.0)],
    "large eps": [(15, 5.0), (15, 6.0), (15, 7.0), (15, 8.0), (15, 9.0)],
}
ALL = tuple(dict.fromkeys(setting for each in SETTINGS.values() for setting in each))
MULTIPLIERS = (0.33, 0.67, 1.0, 1.33, 1.67)
RADIUS_AT = (15, 3.5)
# Where the rule for whole cells takes another radius than the published one.
RULES_AT = ((5, 0.7), (5, 2.1), (5, 3.5), (20, 3.5))
STOPPING_AT = ((5, 0.1), (15, 0.1), (5, 0.7), (5, 3.5), (15, 5.0), (15, 9.0))
PRINTED_AT = ((5, 3.5), (15, 5.0), (20, 5.0))
LONG, TIGHT = 10_000, 1e-6
# Settings, and methods, that are repeated less often.
SLOW_EPSILON = 1.5

# Settings of the disk area mechanism as it was published.
PUBLISHED: dict[str, Any] = {"shrink": True, "estimator": "em"}
Make = Callable[[float, int], CellMechanism]
AREAS: dict[str, Make] = {
    "DAM": lambda epsilon, d: DiskAreaMechanism(epsilon, cells=d, **PUBLISHED),
    "DAM-NS": lambda epsilon, d: DiskAreaMechanism(epsilon, cells=d, shrink=False, estimator="em"),
    "HUEM": lambda epsilon, d: HybridUniformExponential(epsilon, cells=d, estimator="em"),
    "HUEM as printed": lambda epsilon, d: LiteralHybridUniformExponential(epsilon, cells=d, unsafe=True),
    "MDSW": lambda epsilon, d: MultidimensionalSquareWave(epsilon, cells=d, estimator="em"),
}
SEM, OTHER, UNIFORM = "SEM", "SEM, other side", "uniform"
METHODS = (*AREAS, SEM, OTHER, UNIFORM)


@lru_cache(maxsize=1)
def data() -> list[Points]:
    return area_data()


@cache
def subset_mechanisms(epsilon: float, d: int) -> dict[str, SEMGeoI]:
    """The matched mechanism, and where the match lies in a jump of local privacy, that on the other side of it."""
    try:
        match = matched_epsilon(epsilon, d)
    except InputError:
        return {}
    found = {SEM: SEMGeoI(match.epsilon, cells=d, subset=match.subset, estimator="least-squares")}
    if match.jump:
        low, high = match.bracket
        other = (high, match.subset - 1) if match.epsilon == low else (low, match.subset + 1)
        found[OTHER] = SEMGeoI(other[0], cells=d, subset=other[1], estimator="least-squares")
    return found


def truth(points: Points, d: int) -> Floats:
    counts = np.bincount(points.values(d), minlength=d * d)
    return (counts / counts.sum()).reshape(d, d)


def score(points: Points, mechanism: CellMechanism, *key: object) -> float:
    """W2 in cells of one run; clients of the subset exponential mechanism are run one by one."""
    d, rng = mechanism.cells, source(points.name, *key)
    counts = mechanism.counts(points.values(d), rng, fast=not isinstance(mechanism, SEMGeoI))
    return wasserstein2(truth(points, d), mechanism.estimate(counts))


def runs_of(points: Points, method: str, d: int, epsilon: float, repeats: int) -> int:
    """Repeats: half as many for shipped data and small epsilon, fewer still where clients are run one by one."""
    if method in (SEM, OTHER):
        return max(2, repeats // (3 if d >= 10 else 2))
    return max(2, repeats // 2) if points.name in ("Soho", "Arizona") or epsilon < SLOW_EPSILON else repeats


def compared(repeats: int) -> Iterator[list]:
    """Rows (data, d, epsilon, method, run, W2) of all methods at all settings."""
    for points in data():
        for d, epsilon in ALL:
            made = {name: make(epsilon, d) for name, make in AREAS.items()} | subset_mechanisms(epsilon, d)
            for method, mechanism in made.items():
                for run in range(runs_of(points, method, d, epsilon, repeats)):
                    yield [points.name, d, epsilon, method, run, score(points, mechanism, d, epsilon, method, run)]
            yield [points.name, d, epsilon, UNIFORM, 0, wasserstein2(truth(points, d), np.ones((d, d)))]


def radii(repeats: int) -> Iterator[list]:
    """Rows (data, multiplier, radius, method, run, W2): the disk area mechanism with other radii."""
    d, epsilon = RADIUS_AT
    for points in data():
        for times in MULTIPLIERS:
            radius = int(times * d * optimal_radius(epsilon))
            for smoothing in (0.0, 0.25):
                mechanism = DiskAreaMechanism(epsilon, cells=d, radius=radius, smoothing=smoothing, **PUBLISHED)
                for run in range(runs_of(points, "DAM", d, epsilon, repeats)):
                    found = score(points, mechanism, "radius", times, smoothing, run)
                    yield [points.name, times, radius, "smoothed" if smoothing else "DAM", run, found]


def rules(repeats: int) -> Iterator[list]:
    """Rows (data, d, epsilon, method, run, W2): the published radius, and the best one of a grid."""
    for points in data():
        for d, epsilon in RULES_AT:
            for name, rule in (("published", grid_radius), ("of the grid", discrete_radius)):
                radius = rule(epsilon, d)
                mechanism = DiskAreaMechanism(epsilon, cells=d, radius=radius, **PUBLISHED)
                for run in range(runs_of(points, "DAM", d, epsilon, repeats)):
                    found = score(points, mechanism, "rules", d, epsilon, name, run)
                    yield [points.name, d, epsilon, f"{name}:{radius}", run, found]


def stopping(repeats: int) -> Iterator[list]:
    """Rows (data, d, epsilon, tolerance, run, W2, iterations, converged) of expectation maximisation."""
    for points in data()[:3]:
        for d, epsilon in STOPPING_AT:
            mechanism = DiskAreaMechanism(epsilon, cells=d, **PUBLISHED)
            for run in range(max(2, repeats // 5)):
                rng = source("stopping", points.name, d, epsilon, run)
                counts = mechanism.counts(points.values(d), rng, fast=True)
                for name, tolerance in (("usual", 1e-3 * np.exp(epsilon)), ("tight", TIGHT)):
                    yield [points.name, d, epsilon, name, run, *fitted(points, mechanism, counts, tolerance)]


def printed(repeats: int) -> Iterator[list]:
    """Rows as of `stopping`: the printed hybrid law, stopped by epsilon and by the 1 that it spends."""
    for points in data()[:3]:
        for d, epsilon in PRINTED_AT:
            mechanism = AREAS["HUEM as printed"](epsilon, d)
            for run in range(max(2, repeats // 5)):
                counts = mechanism.counts(points.values(d), source("printed", points.name, d, epsilon, run), fast=True)
                for name, spent in (("epsilon", epsilon), ("spent", 1.0)):
                    yield [points.name, d, epsilon, name, run, *fitted(points, mechanism, counts, 1e-3 * np.exp(spent))]


def fitted(points: Points, mechanism: CellMechanism, counts: Counts, tolerance: float) -> tuple[float, int, int]:
    """W2, iterations, and whether they stopped by themselves."""
    law: Any = mechanism.randomizer
    fit = law.fit(counts.values, counts.n, tolerance=tolerance, max_iter=LONG)
    shares = fit.shares.reshape(mechanism.cells, mechanism.cells)
    return wasserstein2(truth(points, mechanism.cells), shares), fit.iterations, int(fit.converged)


EXPERIMENTS = {"compared": compared, "radii": radii, "rules": rules, "stopping": stopping, "printed": printed}
