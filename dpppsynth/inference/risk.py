"""Summaries of posteriors: relative risk, and effects of covariates."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpppsynth.core.arguments import positive, probability
from dpppsynth.core.errors import InputError
from dpppsynth.spatial.covariates import Design
from dpppsynth.spatial.intensity import LogLinearMean
from dpppsynth.spatial.mesh import Floats, Ints, Mesh, chunks, integrate_exp
from dpppsynth.spatial.offset import Offset


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
    terms: str
        Budget and public number of points of the release, for titles: "ε = 1, n = 1,500".
    """

    mesh: Mesh
    fields: Floats
    offset: Offset | None = None
    average: Floats | None = None
    terms: str = ""

    @cached_property
    def surface(self) -> LogLinearMean:
        """Risk as an average of log-linear functions, draw by draw."""
        average = self.average
        if average is None:
            pieces = self.mesh.weighted_pieces(self.offset)
            average = integrate_exp(self.mesh, pieces, self.fields) / pieces.weight.sum()
        return LogLinearMean(self.mesh, self.fields - np.log(average)[:, None])

    def __call__(self, xy: ArrayLike) -> Floats:
        """(n,) posterior mean at coordinates (n, 2)."""
        return self.surface(np.asarray(xy, dtype=np.float64))

    def exceedance(self, threshold: float) -> "Exceedance":
        """Probability that the risk is above a threshold, as a function of the place."""
        return Exceedance(self.surface, float(positive("threshold", threshold)))


@dataclass(frozen=True, eq=False, repr=False)
class Exceedance:
    """Posterior probability that a relative risk is above a threshold; callable at coordinates (n, 2)."""

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


class Effects(Mapping[str, Floats]):
    """Posterior draws of effects by the names of covariates, on the log scale, per standard deviation.

    `exp` of an effect is the factor by which the intensity, or the risk, changes where the covariate is one standard
    deviation larger and all else is the same.

    Parameters
    ----------
    design : Design
    draws : (k, p) array
    """

    def __init__(self, design: Design, draws: Floats) -> None:
        self._design, self._draws = design, draws

    def __getitem__(self, name: str) -> Floats:
        if name not in self._design.names:
            raise KeyError(name)
        return self._draws[:, self._design.names.index(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._design.names)

    def __len__(self) -> int:
        return len(self._design.names)

    def __repr__(self) -> str:
        parts = (f"{name}: {self[name].mean():.3g} +- {self[name].std():.2g}" for name in self)
        return f"Effects({', '.join(parts)} per sd)"

    def per_unit(self, name: str) -> Floats:
        """(k,) draws of one effect per unit of its covariate."""
        return self[name] / self._design.sd[self._design.names.index(name)]

    def summary(self, level: float = 0.9) -> Any:
        """Table (`pandas.DataFrame`): mean, standard deviation and central interval, per sd and per unit.

        Parameters
        ----------
        level : float
            Posterior probability of the intervals.
        """
        import pandas as pd

        tail = (1 - probability("level", level)) / 2
        rows = {name: [*_figures(self[name], tail), *_figures(self.per_unit(name), tail)] for name in self}
        figures = ["mean", "sd", f"{100 * tail:g} %", f"{100 - 100 * tail:g} %"]
        columns = pd.MultiIndex.from_product([["per sd", "per unit"], figures])
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def _figures(draws: Floats, tail: float) -> list[float]:
    low, high = np.quantile(draws, [tail, 1 - tail])
    return [float(draws.mean()), float(draws.std()), float(low), float(high)]


def require_effects(design: Design | None) -> Design:
    """The covariates of a release, which it must have."""
    if design is None:
        msg = "effects: this release has no covariates; give covariates= to the synthesizer."
        raise InputError(msg)
    return design
