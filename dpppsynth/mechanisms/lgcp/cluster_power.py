"""Clusters that private sums over pairs can tell, by public numbers alone: noise, caps, radii and number of points.

The posterior of the laws of clusters is approximated without a pattern: sums are normal about what pairs of evenly
spread points and of a law's clusters add to them. An original shows where clusters are likelier than none even though
noise and chance take away what they exceed with probability .9.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from dpppsynth.models.cluster_posterior import SIZES, SLACK, ClusterPrior
from dpppsynth.spatial.mesh import Floats

# Probability with which what is stated shows.
SURE = 0.9
# Variance of the sums of evenly spread points over their mean: the mean square of a pair's weight over its mean.
EVEN = 0.5
# Relative variance of the sums of clusters, in clusters, about.
OF_CLUSTERS = 3.0
# Pairs of one crowded place that are tried.
TRIED = np.geomspace(1.0, 1e9, 361)


@dataclass(frozen=True, eq=False)
class ClusterPower:
    """Smallest clusters that private sums tell from none.

    Attributes
    ----------
    prior : ClusterPrior
    caps : tuple of int
        One for each radius.
    noise_sd : tuple of float
        Of the sums, in pairs.
    n : float
        Number of points, or the guess of it.
    even : (L,) array
        Sums without clusters, in pairs.
    """

    prior: ClusterPrior
    caps: tuple[int, ...]
    noise_sd: tuple[float, ...]
    n: float
    even: Floats

    def none(self, sums: Floats) -> Floats:
        """(k,) posterior probabilities of no clusters given sums (k, L), about."""
        excess = np.asarray(sums)[:, None, :] - self.even - self._added
        variance = self._variance
        logs = np.log(self.prior.table[:, 3]) - 0.5 * ((excess**2 / variance) + np.log(variance)).sum(axis=2)
        weight = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(weight[:, 0] / weight.sum(axis=1))

    @property
    def _added(self) -> Floats:
        """(M, L) pairs that clusters of each law add to the sums: each point no more than the cap."""
        return np.asarray(self.n / 2 * np.minimum(self.prior.neighbours, self.caps))

    @property
    def _variance(self) -> Floats:
        """(M, L) variances of the sums under each law."""
        size = self.prior.table[:, :1]
        chance = EVEN * self.even + (SLACK * self.even) ** 2
        return np.asarray(np.square(self.noise_sd) + chance + OF_CLUSTERS * (size + 1) / self.n * self._added**2)

    def _shows(self, added: Floats, variance: Floats) -> np.ndarray:
        """(k,) whether pairs (k, L) that are added to the sums show, even if noise and chance take some away."""
        return self.none(self.even + added - scipy.special.ndtri(SURE) * np.sqrt(variance)) < 0.5

    @property
    def pairs(self) -> float:
        """Pairs at places that are shared, over what the intensity explains, from which on they show; else infinite.

        Each point counts up to the cap. A single crowded place is high intensity to the model, which explains it.
        """
        shown = self._shows(np.repeat(TRIED[:, None], len(self.caps), axis=1), self._variance[:1])
        return float(TRIED[np.argmax(shown)]) if shown.any() else np.inf

    @property
    def size(self) -> tuple[float, float]:
        """Mean number of further places in clusters of all points from which on they show, and their spread."""
        spread = self.prior.spreads[len(self.prior.spreads) // 3]
        rows = [int(np.argmax(self._law(size, spread))) for size in SIZES]
        shown = self._shows(self._added[rows], self._variance[rows])
        return (float(SIZES[np.argmax(shown)]) if shown.any() else np.inf), float(spread)

    def _law(self, size: float, spread: float) -> np.ndarray:
        """(M,) the one law of this size and spread without shared places."""
        table = self.prior.table
        near = np.isclose(table[:, 0], size, rtol=1e-4) & np.isclose(table[:, 1], spread, rtol=1e-4)
        return np.asarray(near & (table[:, 2] == 0))

    def to_dict(self) -> dict[str, float | None]:
        """JSON form; None stands for what no number of points shows."""
        found = {"visible_cluster_size": self.size[0], "visible_pairs": self.pairs}
        return {name: value if np.isfinite(value) else None for name, value in found.items()}

    def words(self, unit: str) -> str:
        """Clusters that show, and so those that may be there unseen."""
        size, spread = self.size
        if not np.isfinite(size):
            return f"no clusters show; {self.unseen()}"
        least = f"{_few(1 + size)} places within about {spread:.3g} {unit}"
        return f"clusters of all points show from {least} on, {SURE:.0%} of the time; {self.unseen()}"

    def unseen(self) -> str:
        """Clusters that may be there unseen."""
        few = f"an excess of fewer than {_few(self.pairs)} pairs at shared places (each point counted up to "
        return (
            f"{few}{min(self.caps)}) may not show at this budget, and one crowded place may not, however many share it"
        )


def even_sums(radii: tuple[float, ...], n: float, size: float, *, streets: bool) -> Floats:
    """(L,) sums over pairs of n points spread evenly over a domain of this area or length."""
    r = np.asarray(radii)
    return np.asarray(n**2 / (2 * size) * (r if streets else np.pi * r**2 / 3))


def _few(number: float) -> str:
    """A number of two digits, rounded up."""
    step = 10.0 ** max(0, int(np.floor(np.log10(number))) - 1)
    return f"{np.ceil(number / step - 1e-9) * step:,.0f}"
