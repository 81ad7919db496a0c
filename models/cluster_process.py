"""Clustered patterns over a given intensity: Thomas clusters in the plane, diffused ones along streets.

A cluster has a parent and a Poisson number of places about it; at a place there are one or several points. Parents are
so dense, and places so likely about them, that the intensity of the points is the given one: a place x belongs to a
parent c with density proportional to `g(c - x) Lambda(x)`, for a symmetric kernel g, and parents have the intensity
`(g * Lambda)(c)` divided by the mean number of places. So a first place is drawn from the intensity, its parent from g
about it, and the other places about the parent in the same way, as one of some candidates.

First places need not be independent. Where the intensity has hills because the original had clusters there, a Poisson
number of clusters in each hill would count them twice, and first places vary less (`first_places`).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from dpppsynth.linear_network import LinearNetwork
from dpppsynth.linear_network.street_walks import StreetWalks
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.grid_cells import hilbert_order
from dpppsynth.spatial.intensity import Intensity
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.sampling import binomial_pattern

# Candidates for a place, of which one is taken in proportion to the intensity: more and more, until together with the
# cluster's first place they are worth so many of equal intensity. And candidates that are held in memory at once.
CANDIDATES, WORTH, AT_ONCE = (8, 64, 512), 3.0, 2**20
# From parents (k, 2) to independent places (k, 2) about them, which may lie outside a window.
Displace = Callable[[Floats], Floats]


@dataclass(frozen=True)
class ClusterLaw:
    """Law of clusters.

    Attributes
    ----------
    size : float
        Mean number of places about a parent; 0: no clusters.
    spread : float
        Standard deviation of places about their parent along an axis, or along a street, in the domain's unit.
    coincident : float
        Share of points that lie where another does, below 1: places have geometric numbers of points.
    """

    size: float
    spread: float
    coincident: float = 0.0


NO_CLUSTERS = ClusterLaw(0.0, 1.0)


def clustered_pattern(
    intensity: Intensity, law: ClusterLaw, n: int, rng: np.random.Generator, *, variance: float = 1.0
) -> PointPattern:
    """`n` points of clusters over an intensity; the last cluster is cut short.

    Parameters
    ----------
    intensity : Intensity
    law : ClusterLaw
    n : int
    rng : Generator
    variance : float
        Of the number of clusters in a region, over that of independent ones.

    Raises
    ------
    InputError
        When the intensity is zero everywhere.
    """
    if not (law.size or law.coincident) or not n:
        return binomial_pattern(intensity, n, rng)
    sizes, points = _numbers(law, n, rng)
    first = first_places(intensity, len(sizes), variance, rng)
    positions = np.repeat(first, sizes, axis=0)
    later = np.ones(len(positions), dtype=bool)
    later[np.cumsum(sizes) - sizes] = False
    if later.any():
        positions[later] = other_places(intensity, first, sizes - 1, law.spread, rng)
    positions = np.repeat(positions, points, axis=0)[:n]
    return PointPattern.at(rng.permutation(positions), intensity.mesh.domain, synthetic=True)


def first_places(intensity: Intensity, count: int, variance: float, rng: np.random.Generator) -> Floats:
    """(count, 2) places with the density of the intensity, with less variable counts in regions than independent ones.

    Of `1 / variance` times as many independent candidates, in the order of a curve that fills the plane, every so
    manieth is taken. Each candidate is as likely as any other, so the density is exact.
    """
    tried = binomial_pattern(intensity, int(np.ceil(count / variance)), rng).positions
    if len(tried) == count:
        return tried
    at = ((rng.random() + np.arange(count)) * (len(tried) / count)).astype(np.int64)
    order = hilbert_order(intensity.mesh.domain.coordinates(tried))
    # In random order: the last cluster, which is cut short, may be anywhere.
    return rng.permutation(tried[order[np.minimum(at, len(tried) - 1)]])


def other_places(intensity: Intensity, first: Floats, counts: Ints, spread: float, rng: np.random.Generator) -> Floats:
    """Places of the further points of clusters, by their first places (k, 2) and numbers (k,), cluster by cluster."""
    displace = displacement(intensity.mesh.domain, spread, rng)
    parents = np.repeat(displace(first), counts, axis=0)
    return _about(parents, np.repeat(_values(intensity, first)[0], counts), intensity, displace, rng)


def displacement(domain: Domain, spread: float, rng: np.random.Generator) -> Displace:
    """Independent displacements of a spread, in the plane or along streets."""
    if isinstance(domain, LinearNetwork):
        walks = StreetWalks(domain)
        return lambda positions: walks.displaced(positions, spread, rng)
    return lambda positions: positions + spread * rng.standard_normal(positions.shape)


def _numbers(law: ClusterLaw, n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Places (k,) of clusters, and points at each place, that are n points at least, without a place too many."""
    size = law.size / -np.expm1(-law.size) if law.size else 1.0
    tries = int(1.2 * n * (1 - law.coincident) / size) + 20
    while True:
        sizes = _positive_poisson(law.size, tries, rng)
        points = rng.geometric(1 - law.coincident, size=int(sizes.sum()))
        total = np.cumsum(points)
        if total[-1] >= n:
            break
        tries *= 2
    places = int(np.searchsorted(total, n)) + 1
    ends = np.cumsum(sizes)
    clusters = int(np.searchsorted(ends, places)) + 1
    kept = sizes[:clusters].copy()
    kept[-1] -= ends[clusters - 1] - places
    return kept, points[:places]


def _positive_poisson(mean: float, count: int, rng: np.random.Generator) -> Ints:
    """(count,) Poisson numbers given that none is zero: the first of a Poisson process' points before time `mean`."""
    if not mean:
        return np.ones(count, dtype=np.int64)
    # The first arrival is before `mean`; the others are a Poisson number in what is left.
    arrival = -np.log1p(rng.random(count) * np.expm1(-mean))
    return 1 + rng.poisson(mean - arrival)


def _about(
    parents: Floats, known: Floats, intensity: Intensity, displace: Displace, rng: np.random.Generator
) -> Floats:
    """(k, 2) places about parents (k, 2), in proportion to kernel and intensity."""
    places, left = np.empty_like(parents), np.arange(len(parents))
    for count in CANDIDATES:
        found = np.zeros(len(left), dtype=bool)
        for part in np.array_split(np.arange(len(left)), -(-len(left) * count // AT_ONCE) or 1):
            value, tried = _values(intensity, displace(np.repeat(parents[left[part]], count, axis=0)))
            value = value.reshape(-1, count)
            sums, own = value.cumsum(axis=1), known[left[part]]
            worth = (sums[:, -1] + own) ** 2 / ((value**2).sum(axis=1) + own**2)
            found[part] = (sums[:, -1] > 0) & ((worth >= WORTH) | (count == CANDIDATES[-1]))
            chosen = (rng.random(len(part))[:, None] * sums[:, -1:] >= sums).sum(axis=1)
            kept = np.flatnonzero(found[part])
            places[left[part[kept]]] = tried.reshape(-1, count, 2)[kept, chosen[kept]]
        left = left[~found]
    # Parents far outside the domain have their places anywhere in it.
    places[left] = binomial_pattern(intensity, len(left), rng).positions
    return places


def _values(intensity: Intensity, positions: Floats) -> tuple[Floats, Floats]:
    """Intensity (k,) at positions (k, 2) on the domain's grid, 0 outside the domain; and the positions."""
    mesh = intensity.mesh
    on_grid = mesh.domain.on_grid(positions)
    inside = mesh.domain.holds(on_grid)
    value = np.zeros(len(on_grid))
    value[inside] = intensity.at(*mesh.values(on_grid[inside]), on_grid[inside])
    return value, on_grid


# Least variance over that of independent clusters: so many times as many candidates are drawn for first places.
LEAST = 1 / 12
# Pairs of points by which pairs under one tent are counted, and the seed that makes a release's rule one rule.
PAIRS, SEED = 4000, 1
# Variances that are averaged over.
NODES = (np.arange(50) + 0.5) / 50
# Basis values (k, V) of the statistic at positions (k, 2).
Basis = Callable[[Floats], "scipy.sparse.csr_array"]


@dataclass(frozen=True, eq=False)
class SharedTents:
    """Expected `sum_j phi_j(x) phi_j(y)` for points x, y of the intensity: of a point, and of two in a cluster.

    Attributes
    ----------
    alone : float
        Where y is x.
    spreads, together : (k,) arrays
        By the spread of a cluster.
    """

    alone: float
    spreads: Floats
    together: Floats

    @classmethod
    def of(cls, intensity: Intensity, basis: Basis, spreads: Floats) -> "SharedTents":
        """Estimates from simulated pairs of points."""
        rng = np.random.default_rng(SEED)
        first = binomial_pattern(intensity, PAIRS, rng).positions
        one, counts = basis(first), np.ones(PAIRS, dtype=np.int64)
        others = [basis(other_places(intensity, first, counts, spread, rng)) for spread in spreads]
        shared = [float(one.multiply(each).sum()) / PAIRS for each in (one, *others)]
        return cls(shared[0], np.asarray(spreads), np.array(shared[1:]))

    def within(self, law: ClusterLaw) -> float:
        """Expected sum over the other points of a point's cluster."""
        near = np.interp(np.log(law.spread), np.log(self.spreads), self.together)
        return float((law.size * near + 2 * law.coincident * self.alone) / (1 - law.coincident))


@dataclass(frozen=True, eq=False)
class ParentRule:
    """Rule by which numbers of clusters vary over one intensity.

    Attributes
    ----------
    tents : SharedTents
    points : float
        Number of points.
    left : float
        Pairs of the original's points under one tent that the intensity does not explain, as `sum_j m_j^2` counts them.
    sd : float
        Its standard deviation, from noise.
    """

    tents: SharedTents
    points: float
    left: float
    sd: float

    @classmethod
    def of(
        cls, tents: SharedTents, masses: Floats, noise_variance: float, expected: Floats, *, fixed: bool
    ) -> "ParentRule":
        """The rule for noised masses (V,) and those (V,) that an intensity expects.

        Parameters
        ----------
        tents : SharedTents
        masses, expected : (V,) arrays
        noise_variance : float
            Of one mass.
        fixed : bool
            Whether the number of points is public.
        """
        points, square = float(expected.sum()), float((expected**2).sum())
        explained = square * (1 - 1 / points if fixed else 1) + tents.alone * points
        found = float((masses**2).sum()) - noise_variance * len(masses)
        # A Laplace variable of variance v has the fourth moment 6 v^2.
        sd = np.sqrt(5 * noise_variance**2 * len(masses) + 4 * noise_variance * square)
        return cls(tents, points, found - explained, float(sd))

    def variance(self, law: ClusterLaw) -> float:
        """Variance of the number of clusters in a region, over that of independent ones, from `LEAST` to 1.

        Its mean given the masses, if any from none to all of the pairs of clusters may be missing.
        """
        full = self.points * self.tents.within(law)
        if not full:
            return 1.0
        log = -0.5 * ((self.left - full * NODES) / self.sd) ** 2
        weight = np.exp(log - log.max())
        missing = 1 - float(weight @ NODES / weight.sum())
        return max(LEAST, 1 - missing * _between(law))


def _between(law: ClusterLaw) -> float:
    """Share of the excess of pairs in clusters that is gone if their numbers do not vary at all."""
    places = law.size / -np.expm1(-law.size) if law.size else 1.0
    return float((law.size + 2 * law.coincident) / places)
