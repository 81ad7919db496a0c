"""`MarkedRelease`: a private intensity of places, times and types, and synthetic points with their marks."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from dpppsynth.core.arguments import one_of
from dpppsynth.core.errors import InputError
from dpppsynth.inference.risk import RelativeRisk
from dpppsynth.mechanisms.marked.inference import MarkedInference
from dpppsynth.mechanisms.marked.intensity import (
    MarkedIntensity,
    MarkedMean,
    chosen_times,
    chosen_types,
    coordinates,
    marked_pattern,
    over_time,
    time_basis,
)
from dpppsynth.mechanisms.marked.statistic import MarkedMasses
from dpppsynth.release.cox import CoxRelease, CredibleInterval
from dpppsynth.spatial.intensity import Intensity
from dpppsynth.spatial.mark_space import Marks
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.sampling import require_room


def marked_risk(mean: MarkedMean, time: float | None, type_: str | None) -> RelativeRisk:
    """The intensity without the offset, in every draw over its average over the offset and all times.

    Parameters
    ----------
    mean : MarkedMean
        Draws of the intensity.
    time : float or None
        All times where none is given.
    type_ : str or None
        All types where none is given.

    Raises
    ------
    InputError
    """
    grid, kinds = mean.grid, chosen_types(mean.grid, type_)
    at = None if time is None else time_basis(grid.marks.times, chosen_times(grid, time, 1)).toarray()[0]
    population = grid.space.weighted_pieces(grid.offset).weight.sum()
    length = 1.0 if grid.marks.times is None or at is None else grid.marks.times.length

    def risks(logs: Floats) -> Floats:
        """(V,) sums over types at the time, or integrals over all times, of exp of logarithms (C, K, V)."""
        found = over_time(grid.marks.times, logs) if at is None else np.exp(np.einsum("k,ckv->cv", at, logs))
        return np.asarray(found.sum(axis=0))

    draws = list(mean.draws())
    fields = np.log([risks(each.log_values[kinds]) for each in draws])
    average = np.array([each.masses[kinds].sum() for each in draws]) / (population * length)
    return RelativeRisk(grid.space, fields, grid.offset, average)


MARGINALS = ("types", "time")


@dataclass(frozen=True, eq=False, repr=False)
class MarkedRelease(CoxRelease[MarkedMasses]):
    """Result of a release of points with marks; attributes as in `CoxRelease`.

    `intensity(xy)` is per unit of area (or length), `intensity(xy, time=17.5, type="theft")` per unit of time as well
    and of that type alone.
    """

    @property
    def marks(self) -> Marks:
        """Public types and range of times."""
        return self.statistic.definition.marks

    @cached_property
    def risk(self) -> RelativeRisk:
        """Posterior of the relative risk of all types over all times."""
        return self.risk_of()

    def risk_of(self, *, time: float | None = None, type: str | None = None) -> RelativeRisk:  # noqa: A002
        """Posterior of the relative risk of a type, or of all, at a time, or over all times.

        1 is the average of that type, or of all, over the population and all times. So the risk at a time says where
        and when it is high. It is linear on the log scale between the vertices of the field's mesh.
        """
        return marked_risk(self.model.posterior_mean(self._require_draws()), time, type)

    def relative_risk(
        self,
        xy: ArrayLike,
        *,
        time: float | None = None,
        type: str | None = None,  # noqa: A002
    ) -> Floats:
        """(n,) posterior mean of the relative risk at coordinates (n, 2); `time` and `type` as in `risk_of`."""
        return self.risk_of(time=time, type=type)(coordinates(xy))

    def risk_interval(
        self,
        xy: ArrayLike,
        level: float = 0.9,
        *,
        time: float | None = None,
        type: str | None = None,  # noqa: A002
    ) -> CredibleInterval:
        """Pointwise credible interval of the relative risk at coordinates (n, 2); `time` and `type` as in `risk_of`."""
        lower, upper = self.risk_of(time=time, type=type).quantiles(coordinates(xy), _tails(level))
        return CredibleInterval(lower, upper, level)

    def exceedance(
        self,
        threshold: float,
        xy: ArrayLike,
        *,
        time: float | None = None,
        type: str | None = None,  # noqa: A002
    ) -> Floats:
        """(n,) posterior probability that the relative risk is above a threshold; `time` and `type` as in `risk_of`."""
        return self.risk_of(time=time, type=type).exceedance(threshold)(coordinates(xy))

    @property
    def model(self) -> MarkedInference:
        """Field behind the noised masses."""
        return cast(MarkedInference, self.estimator)

    def interval(
        self,
        xy: ArrayLike,
        level: float = 0.9,
        *,
        time: ArrayLike | None = None,
        type: str | None = None,  # noqa: A002
    ) -> CredibleInterval:
        """Pointwise credible interval of the intensity at points (n, 2); `time` and `type` as in `intensity`."""
        tails = _tails(level)
        mean = self.model.posterior_mean(self._require_draws())
        values = np.array([each(xy, time=time, type=type) for each in mean.draws()])
        lower, upper = np.quantile(values, tails, axis=0)
        return CredibleInterval(lower, upper, level)

    def marginal(self, mark: str, level: float = 0.9) -> Any:
        """Expected points of each type, or around each instant, as a `pandas.DataFrame` with credible intervals.

        Parameters
        ----------
        mark : {"types", "time"}
            Or the name of the mark.
        level : float
            Probability of the intervals.

        Raises
        ------
        InputError
        """
        import pandas as pd

        kind = self._named(mark)
        axes = {"types": (1, 2), "time": (0, 2)}[kind]
        found = np.array(
            [each.masses.sum(axis=axes) for each in self.model.posterior_mean(self._require_draws()).draws()]
        )
        lower, upper = np.quantile(found, _tails(level), axis=0)
        released = cast(MarkedIntensity, self.intensity).masses.sum(axis=axes)
        index = self._index(kind)
        return pd.DataFrame(
            {"points": released, "mean": found.mean(axis=0), "lower": lower, "upper": upper}, index=index
        )

    def _named(self, mark: str) -> str:
        own = {"types": self.marks.types, "time": self.marks.times}
        there = {name: each.name for name, each in own.items() if each is not None}
        one_of("mark", mark, (*there, *there.values()))
        return next(name for name, column in there.items() if mark in (name, column))

    def _index(self, kind: str) -> Any:
        import pandas as pd

        if kind == "types" and self.marks.types is not None:
            return pd.Index(self.marks.types.values, name=self.marks.types.name)
        if self.marks.times is not None:
            return pd.Index(self.marks.times.nodes, name=self.marks.times.name)
        msg = "mark: the points have none of that kind."
        raise InputError(msg)

    def drawn(self, intensity: Intensity, n: int | None, rng: np.random.Generator, source: str) -> PointPattern:
        require_room(intensity)
        marked = cast(MarkedIntensity | MarkedMean, intensity)
        return marked_pattern(marked, int(rng.poisson(marked.total)) if n is None else n, rng)


def _tails(level: float) -> Floats:
    if not 0 < level < 1:
        msg = f"level: must lie strictly between 0 and 1, got {level!r}."
        raise InputError(msg)
    return np.array([(1 - level) / 2, (1 + level) / 2])
