"""Variance of the numbers of clusters in regions, given what the released intensity shows of them already.

Noised masses tell how unevenly the points of the original lie: `sum_j m_j^2`, less its noise and what single points
contribute, counts pairs of points under one tent (or in one cell). Of these the intensity explains some. Clusters over
it whose first places are independent add as many as their law has; if the original has no more than the intensity
explains, its clusters are the hills of the intensity, and there should be as many as there is mass.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from dpppsynth.models.cluster_process import ClusterLaw, other_places
from dpppsynth.spatial.intensity import Intensity
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.sampling import binomial_pattern

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
        """From simulated pairs of points."""
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
    """Share of the excess of pairs in clusters that is gone if their numbers do not vary at all.

    With S points in a cluster, a region's number of points has excess variance `E S^2 / E S - 1` over its mean, and
    `E S` less where the number of clusters is fixed.
    """
    places = law.size / -np.expm1(-law.size) if law.size else 1.0
    return float((law.size + 2 * law.coincident) / places)
