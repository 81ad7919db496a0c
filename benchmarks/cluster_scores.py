"""Scores of benchmarks/clusters.py: second-order statistics of synthetic patterns beside those of their original."""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from cluster_originals import STEP, TICKS, Original, in_squares, of_grid, uniform
from scipy.spatial import cKDTree
from scipy.stats import ks_2samp

import dpppsynth as dps
from dpppsynth.evaluation.kfunction import default_distances
from dpppsynth.linear_network import LinearNetwork

RADII = (5.0, 10.0, 25.0, 50.0, 100.0)
FINE = np.linspace(0, 150, 61)
BANDWIDTH = 2.5
# Simulations of a 5 % test, and of one at ten thousand points.
SIMULATIONS, FEW, MANY, LEVEL = 999, 199, 5000, 0.95
OWN, NEAR = 199, 50.0


def excess(pattern: dps.PointPattern, r: np.ndarray = FINE) -> np.ndarray:
    """L(r) - r; along streets K(r) - r."""
    found = dps.evaluation.k_function(pattern, r)
    return (found.k if isinstance(pattern.domain, LinearNetwork) else found.l) - r


def nearest(pattern: dps.PointPattern) -> np.ndarray:
    """Distance of each point to its nearest other one."""
    if isinstance(pattern.domain, LinearNetwork):
        apart = pattern.domain.distance(pattern)
        np.fill_diagonal(apart, np.inf)
        return apart.min(axis=1)
    return cKDTree(pattern.xy).query(pattern.xy, 2)[0][:, 1]


@dataclass(frozen=True, eq=False)
class Scored:
    """A pattern, with what is compared."""

    pattern: dps.PointPattern

    @cached_property
    def excess(self) -> np.ndarray:
        return excess(self.pattern)

    @cached_property
    def far(self) -> object:
        """K-function up to a quarter of the side, or of a network's extent."""
        return dps.evaluation.k_function(self.pattern, default_distances(self.pattern.domain))

    @cached_property
    def nearest(self) -> np.ndarray:
        return nearest(self.pattern)

    def row(self, original: "Scored") -> dict[str, object]:
        """Scores beside the original's; its own are distances of zero."""
        r = np.array(RADII)
        g = dps.evaluation.pair_correlation(self.pattern, np.concatenate([[0.0], r]), bandwidth=BANDWIDTH)
        return {
            "excess": np.interp(r, FINE, self.excess).tolist(),
            "largest": float(self.excess.max()),
            "pairs": g.g[1:].tolist(),
            "coincident": float((self.nearest < 1e-6).mean()),
            "nearest": float(ks_2samp(self.nearest, original.nearest).statistic),
            "mise": dps.evaluation.mean_integrated_squared_error(original.far, self.far),
            "misplaced": dps.evaluation.misplaced_share(original.pattern, self.pattern, 50.0),
        }


@cache
def largest_by_chance(n: int) -> float:
    """Largest L(r) - r up to 150 m that one uniform pattern in twenty exceeds."""
    rng = np.random.default_rng([54, n])
    runs = SIMULATIONS if n <= MANY else FEW
    window = dps.Window.rectangle(0, 0, *[STEP * len(TICKS)] * 2, "EPSG:27700")
    found = [excess(dps.PointPattern(uniform(rng, n)[0], window)).max() for _ in range(runs)]
    return float(np.quantile(found, LEVEL))


def beyond_own(original: Original, patterns: list[dps.PointPattern], rng: np.random.Generator) -> list[bool]:
    """Whether L(r) exceeds what 19 in 20 patterns of the original's true intensity stay within, up to 50 m."""
    n, window, near = len(original.pattern), original.pattern.domain, FINE[FINE <= NEAR]
    own = [excess(dps.PointPattern(of_grid(original.truth, n, rng), window), near) for _ in range(OWN)]
    middle = np.mean(own, axis=0)
    most = np.quantile([(each - middle).max() for each in own], LEVEL)
    return [bool((excess(each, near) - middle).max() > most) for each in patterns]


def misplaced_mass(original: Original, release: object) -> float | None:
    """Total variation distance of the released intensity to the true one, in squares of 50 m."""
    if original.truth is None:
        return None
    at = np.stack(np.meshgrid(TICKS, TICKS, indexing="ij"), axis=-1).reshape(-1, 2)
    found = in_squares(release.intensity(at).reshape(len(TICKS), len(TICKS)))
    return float(0.5 * np.abs(found - original.shares).sum())
