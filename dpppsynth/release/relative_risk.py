"""Relative risk: how much more, or less, happens at a place than the population there would make one expect."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dpppsynth.core.arguments import positive
from dpppsynth.spatial.intensity import LogLinearMean
from dpppsynth.spatial.loglinear_integrals import chunks, integrate_exp
from dpppsynth.spatial.mesh import Floats, Ints, Mesh
from dpppsynth.spatial.offset import Offset, weighted_pieces


@dataclass(frozen=True, eq=False, repr=False)
class RelativeRisk:
    """Posterior of `exp(effects + field)`, without the offset, such that 1 is the average risk of the population.

    In every draw the risk is divided by its average over the offset: the intensity's integral over that of the offset.
    So the mean risk of the population is 1, place by place weighted with how many live there; without an offset every
    area weighs alike. It is a measure of how risk is spread, whatever the total.

    Attributes
    ----------
    mesh : Mesh
    fields : (K, V) array
        Draws of the log-intensity's ratio to the offset.
    offset : Offset or None
    average : (K,) array, optional
        What the draws are divided by, instead of their averages over the offset: of all times, where the risk is that
        at one time.
    """

    mesh: Mesh
    fields: Floats
    offset: Offset | None = None
    average: Floats | None = None

    @cached_property
    def surface(self) -> LogLinearMean:
        """Risk as an average of log-linear functions, draw by draw."""
        pieces = weighted_pieces(self.mesh, self.offset)
        average = self.average
        if average is None:
            average = integrate_exp(self.mesh, pieces, self.fields) / pieces.weight.sum()
        return LogLinearMean(self.mesh, self.fields - np.log(average)[:, None])

    def __call__(self, xy: ArrayLike) -> Floats:
        """(n,) posterior mean at coordinates (n, 2)."""
        return self.surface(np.asarray(xy, dtype=np.float64))

    def quantiles(self, xy: ArrayLike, levels: Floats) -> Floats:
        """(len(levels), n) posterior quantiles at coordinates (n, 2)."""
        return self.surface.quantiles(np.asarray(xy, dtype=np.float64), levels)

    def exceedance(self, threshold: float) -> "Exceedance":
        """Probability that the risk is above a threshold, as a function of the place."""
        return Exceedance(self.surface, float(positive("threshold", threshold)))


@dataclass(frozen=True, eq=False, repr=False)
class Exceedance:
    """Posterior probability that a relative risk is above a threshold; callable at coordinates (n, 2).

    Attributes
    ----------
    risk : LogLinearMean
    threshold : float
    """

    risk: LogLinearMean
    threshold: float

    @property
    def mesh(self) -> Mesh:
        """Mesh of the risk."""
        return self.risk.mesh

    def __call__(self, xy: ArrayLike) -> Floats:
        """(n,) probabilities; a place outside the domain takes those of the nearest element."""
        positions = self.mesh.domain.positions(np.asarray(xy, dtype=np.float64).reshape(-1, 2))
        return self.at(*self.mesh.values(positions), positions)

    def at(self, element: Ints, weight: Floats, positions: Floats) -> Floats:
        """(n,) probabilities at positions in the given elements."""
        level, out = np.log(self.threshold), np.empty(len(element))
        for part in chunks(len(element), len(self.risk.fields)):
            values = self.mesh.gather(element[part], weight[part]) @ self.risk.fields.T
            out[part] = (values > level).mean(axis=1)
        return out
