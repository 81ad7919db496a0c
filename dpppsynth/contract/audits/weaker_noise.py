"""Law of the likelihood ratio of noised numbers with too little noise by a factor.

It is made of public parameters and a pair that is made up, and by a fixed seed: so it costs no privacy. An audit is
rated by it, and not by what the claim would allow.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from dpppsynth.contract.audits.target import Scores
from dpppsynth.spatial.mesh import Floats, Ints

SEED, COUNT = 20261123, 20_000


@dataclass(frozen=True, eq=False)
class LessLaplace:
    """Numbers with discrete Laplace noise, in so far as the two inputs' differ, by `change` (k,).

    The noise is of one scale, or of scales (k,).
    """

    change: Ints
    scale: float | Floats

    def __call__(self, factor: float) -> Scores:
        """Scores (N,), (N,) of the likelihood ratio; the second input's are the first's with the sign changed."""
        rng = np.random.default_rng(SEED)
        up, down = rng.geometric(-np.expm1(-factor / self.scale), (2, COUNT, len(self.change)))
        ratio = ((np.abs(up - down + self.change) - np.abs(up - down)) / self.scale).sum(axis=1)
        return ratio, -ratio


@dataclass(frozen=True, eq=False)
class LessGaussian:
    """Numbers with Gaussian noise, which tell the inputs apart as well as `N(0, 1)` and `N(mu, 1)`."""

    mu: float

    def __call__(self, factor: float) -> Scores:
        """Quantiles of the ratio, up to its scale."""
        noise = scipy.special.ndtri((np.arange(COUNT) + 0.5) / COUNT)
        return noise + factor * self.mu, noise
