"""`MarkedRelease`: a private intensity of places, times and types, and synthetic points with their marks."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from dpppsynth.core.arguments import one_of
from dpppsynth.inference.risk import RelativeRisk
from dpppsynth.mechanisms.marked.inference import GridInference
from dpppsynth.mechanisms.marked.intensity import (
    MarkedIntensity,
    MarkedMean,
    chosen_times,
    chosen_types,
    over_whiles,
    time_basis,
    while_of,
)
from dpppsynth.mechanisms.marked.statistic import MarkedStatistic
from dpppsynth.release.cox import CoxRelease, tails
from dpppsynth.spatial.intensity import Intensity
from dpppsynth.spatial.mark_space import Marks, Times
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.sampling import require_room


@dataclass(frozen=True, eq=False, repr=False)
class MarkedRelease(CoxRelease[Any]):
    """Result of a release of points with marks; attributes as in `CoxRelease`.

    `intensity(xy)` is per unit of area (or length), `intensity(xy, time=17.5, type="theft")` per unit of time as well
    and of that type alone, `intensity(xy, during=(15, 18))` over these three hours.
    """

    @property
    def marks(self) -> Marks:
        """Public types and range of times."""
        return cast(MarkedStatistic, self.statistic.definition).marks

    @cached_property
    def risk(self) -> RelativeRisk:
        """Posterior of the relative risk of all types over all times."""
        return self.risk_of()

    def risk_of(self, *, time: float | None = None, type: str | None = None) -> RelativeRisk:  # noqa: A002
        """Posterior of the relative risk of a type, or of all, at a time, or over all times.

        1 is the average of that type, or of all, over the population and all times. So the risk at a time says where
        and when it is high. It is linear on the log scale between the vertices of the field's mesh. Types, and times,
        with offsets of their own weigh at a vertex as much as they have people near it.
        """
        mean = self.model.posterior_mean(self._require_draws())
        grid, kinds = mean.grid, chosen_types(mean.grid, type)
        times, people = grid.marks.times, grid.nearby[kinds]
        at = None if time is None else chosen_times(grid, time, 1)
        if at is not None:
            people = people[:, while_of(times, at)]
        # Where nobody lives all weigh alike.
        people = np.where(people.sum(axis=(0, 1)) > 0, people, 1.0)
        people = people / people.sum(axis=(0, 1))

        def risks(logs: Floats) -> Floats:
            """(V,) averages over types, and over all times unless one is asked for, of exp of logarithms (C, K, V)."""
            if times is None or at is None:
                found = over_whiles(times, logs) / (1.0 if times is None else times.spacing)
            else:
                found = np.exp(np.einsum("mk,ckv->cmv", time_basis(times, at).toarray(), logs))
            return np.asarray((people * found).sum(axis=(0, 1)))

        draws = list(mean.draws())
        fields = np.log([risks(each.log_values[kinds]) for each in draws])
        population = grid.measure.reshape(grid.shape)[kinds].sum()
        average = np.array([each.masses[kinds].sum() for each in draws]) / population
        of_all = "" if self.statistic.definition.n is None else " in all"
        terms = self.terms if type is None else f"{type}, {self.terms}{of_all}"
        # Beside averages it only matters whether there is an offset.
        return RelativeRisk(grid.space, fields, cast(Any, grid.offset), average, terms)

    @property
    def model(self) -> GridInference:
        """Field inferred from what was measured."""
        return cast(GridInference, self.estimator)

    def marginal(self, mark: str, level: float = 0.9) -> Any:
        """Expected points of each type, or around each instant, as a `pandas.DataFrame` with credible intervals.

        Parameters
        ----------
        mark : {"types", "time"}
            Or the name of the mark.
        level : float
            Probability of the intervals.
        """
        import pandas as pd

        types, times = self.marks.types, self.marks.times
        known = {name: each for name, each in (("types", types), ("time", times)) if each is not None}
        one_of("mark", mark, (*known, *(each.name for each in known.values())))
        kind = next(name for name, each in known.items() if mark in (name, each.name))
        axes = {"types": (1, 2), "time": (0, 2)}[kind]
        mean = self.model.posterior_mean(self._require_draws())
        found = np.array([each.masses.sum(axis=axes) for each in mean.draws()])
        lower, upper = np.quantile(found, tails(level), axis=0)
        released = cast(MarkedIntensity, self.intensity).masses.sum(axis=axes)
        values = {"points": released, "mean": found.mean(axis=0), "lower": lower, "upper": upper}
        index = types.values if types is not None and kind == "types" else cast(Times, times).nodes
        return pd.DataFrame(values, index=pd.Index(index, name=known[kind].name))

    def drawn(self, intensity: Intensity, n: int | None, rng: np.random.Generator, source: str) -> PointPattern:
        require_room(intensity)
        marked = cast(MarkedIntensity | MarkedMean, intensity)
        n = int(rng.poisson(marked.total)) if n is None else n
        positions, kinds, times = marked.draw_points(n, rng)
        times = times if self.marks.times is None else self.marks.times.settled(times)
        return PointPattern.at(positions, self.domain, self.marks.columns(kinds, times), synthetic=True)
