"""`Filtered`: estimates and diagnostics of a filter."""

from dataclasses import dataclass
from typing import Any

from dpppsynth.spatial.mesh import Floats


@dataclass(frozen=True, eq=False, repr=False)
class Filtered:
    """A filtered series: post-processing of what was released, and as private.

    Attributes
    ----------
    estimate : (N,), (N, T) or (N, 2) array
        As the observations: one series, T of them side by side, or points.
    restarts : int
        How often, in all series together, the particles lost the series and began anew at an observation. Many
        restarts say that the series is not as smooth as its `step`. The proposals "uniform" and "gaussian" do not begin
        anew at a jump that no walk makes: their estimate ends near the edge of the bound. Always 0 for a smoother,
        to which jumps are part of the series.
    step : float, (T,) array or tuple of float
        Standard deviation of what the hidden series was taken to change by per step; of distance and angle in polar
        coordinates.
    bound : float
        No estimate is further from the truth: twice the bound of the release, infinite without one.

    Examples
    --------
    >>> from dpppsynth.filters import particle_filter
    >>> found = particle_filter([0, 0, 1000, 1000], scale=1.0, bound=5.0, step=1.0, rng=1)
    >>> found, float(found.estimate[2])
    (Filtered(shape=(4,), restarts=1, bound=10), 1000.0)
    """

    estimate: Floats
    restarts: int
    step: Any
    bound: float

    def __repr__(self) -> str:
        return f"Filtered(shape={self.estimate.shape}, restarts={self.restarts}, bound={self.bound:g})"
