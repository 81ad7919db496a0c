"""Law of the likelihood ratio of a posterior draw whose prior is too wide, by Laplace's approximation.

It is made of public parameters and a pair that is made up, so it costs no privacy.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from dpppsynth.contract.audits.neighbouring_pairs import Pair
from dpppsynth.contract.audits.target import Scores
from dpppsynth.contract.audits.weaker_noise import COUNT
from dpppsynth.core.errors import QualityError
from dpppsynth.mechanisms.lgcp.posterior_sampling.posterior_draw_statistic import PosteriorDrawStatistic
from dpppsynth.models.lgcp import tent_masses
from dpppsynth.models.target_posterior import FieldPrior
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern

# Factors at which a posterior is worked out; between them its mean and its spread are interpolated.
FACTORS = 2.0 ** np.arange(0, 7)


@dataclass(frozen=True, eq=False)
class WiderPrior:
    """A posterior draw whose prior's sigma is too large: the number `weight . Y` (V,), by Laplace's approximation.

    Where n is secret the intercept's prior is wider by the same factor: it protects n.
    """

    plan: PosteriorDrawStatistic
    pair: Pair
    weight: Floats

    @cached_property
    def _moments(self) -> Floats:
        """(2, F, 2) mean and logarithm of the standard deviation, for either pattern and each factor."""
        return np.array([[self._posterior(pattern, factor) for factor in FACTORS] for pattern in self.pair])

    def _posterior(self, pattern: PointPattern, factor: float) -> tuple[float, float]:
        prior = self.plan.prior
        wider = np.full(prior.basis.shape[1], factor)
        wider[-1] = 1.0 if self.plan.intercept_sd is None else factor
        basis = prior.basis * wider
        posterior = FieldPrior(prior.centre, basis, prior.precision, prior.measure).posterior(
            tent_masses(pattern, self.plan.mesh)
        )
        sought = self.weight @ basis
        try:
            mode = posterior.mode()
        except QualityError:
            return np.nan, np.nan
        variance = sought @ np.linalg.solve(posterior.information(mode), sought)
        return float(sought @ mode), float(np.log(variance) / 2)

    def __call__(self, factor: float) -> Scores:
        """Quantiles of the number, up to a constant; beyond what can be worked out, of the last factor that can."""
        noise = scipy.special.ndtri((np.arange(COUNT) + 0.5) / COUNT)
        sides = []
        for moments in self._moments:
            known = np.isfinite(moments).all(axis=1)
            if not known.any():
                return noise, noise
            at = np.log(FACTORS[known])
            mean, spread = (np.interp(np.log(factor), at, column) for column in moments[known].T)
            sides.append(mean + np.exp(spread) * noise)
        return sides[0], sides[1]
