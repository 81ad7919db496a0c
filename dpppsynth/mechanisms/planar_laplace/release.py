"""`PointRelease`: points that were each moved by planar Laplace noise."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike
from dpppsynth.inference.filters.planar import cartesian_filter
from dpppsynth.inference.filters.series import Filtered
from dpppsynth.mechanisms.planar_laplace.statistic import MovedPoints
from dpppsynth.release.release import PatternRelease, StatisticRelease
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern


@dataclass(frozen=True, eq=False, repr=False)
class PointRelease(StatisticRelease[MovedPoints], PatternRelease):
    """Result of moving points: everything in it is public. Points carry no marks, and rows are in random order.

    Moving the points once more is a new spend. Of a track, the points of one person in public order, rows keep it.
    """

    @property
    def max_error(self) -> float | None:
        """Largest distance between a point and its `raw` position, in the window's unit; None without a bound."""
        return self.statistic.definition.max_error

    @property
    def error_bound(self) -> float:
        """Largest distance between a point and its place in `pattern`: of a window not convex, twice `max_error`."""
        return self.statistic.definition.error_bound

    @cached_property
    def raw(self) -> Floats:
        """(n, 2) positions as they were drawn; some may lie outside the window."""
        positions = self.statistic.definition.positions(self.statistic)
        positions.flags.writeable = False
        return positions

    @cached_property
    def pattern(self) -> PointPattern:
        """The moved points; those drawn outside the window are in its nearest place."""
        plan = self.statistic.definition
        return PointPattern.at(plan.inside(self.raw), plan.window, synthetic=True)

    @property
    def patterns(self) -> list[PointPattern]:
        return [self.pattern]

    @cached_property
    def filtered(self) -> Floats:
        """(n, 2) positions of a track, made smoother by `filter` with its own settings; as private as `raw`."""
        return self.filter(rng=0).estimate

    def filter(
        self, *, step: Any = "likely", particles: int = 1000, resample: bool = True, rng: RngLike = None
    ) -> Filtered:
        """Track estimated from the raw positions by a particle filter; free, since it uses nothing else.

        It helps where a person moves little between two positions, beside the noise. The error of a filtered position
        may be twice `max_error`, and it may lie outside the window.

        Parameters
        ----------
        step : {"likely", "differences"} or float
            Standard deviation along each axis of the way from one position to the next, in the window's unit; as in
            `filters.cartesian_filter`, like the others.
        particles, resample, rng
            As in `filters.cartesian_filter`.

        Raises
        ------
        InputError
            When the release is no track: points in random order follow no path.
        """
        plan = self.statistic.definition
        if not plan.track:
            msg = "filter: the rows of this release are in random order; only a track, `track=True`, has one to follow."
            raise InputError(msg)
        law: dict[str, Any] = {"epsilon": plan.rate, "bound": plan.bound + plan.step}
        return cartesian_filter(self.raw, **law, step=step, particles=particles, resample=resample, rng=rng)
