"""Grid-based filter and smoother of series with truncated Laplace noise: deterministic, and slower than particles.

They solve the model of `particle_filter` up to the width of the grid's cells. The smoother uses later answers as well
as earlier ones, which are all public once released, and is the more accurate of the two.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpppsynth.core.errors import InputError
from dpppsynth.inference.filters.series import of_series, positive_size, released_series
from dpppsynth.privacy.truncated.truncated_laplace import TruncatedLaplace
from dpppsynth.spatial.mesh import Floats

# Cells per step, per scale and per bound, by default: means are then right to a few parts in 10^4 of the noise. One
# cell per step is enough, since a Gaussian of that width on whole numbers has the right variance to eight digits.
PER_STEP, PER_SCALE, PER_BOUND = 1, 20, 100
MOST_CELLS = 200_000
# Cells between observations whose numbers are exact.
FARTHEST = 2**40
# States further than this many scales outside all that was released are left out: e^-40 of the noise.
BEYOND = 40.0
# Steps of more standard deviations are left out, whose density is at the end of the range of floats.
LONGEST_STEP = 37.0


def grid_filter(
    observations: Any, *, scale: float, bound: float, step: Any = "likely", spacing: float | None = None
) -> Floats:
    """Mean of every answer given the noisy answers up to it, where answers are a random walk.

    Parameters
    ----------
    observations : (N,) or (N, T) array
        Released numbers in the order of time: one series, or T independent ones side by side, solved one by one.
    scale, bound : float
        Of the noise, as released; the bound may be infinite.
    step : {"likely", "differences"}, float or (T,) array
        Standard deviation of the change from one answer to the next, as in `particle_filter`.
    spacing : float, optional
        Width of the cells, at most `step`; by default a fraction of step, scale and bound.

    Returns
    -------
    (N,) or (N, T) array
        Each within `bound` of the released number. Where no walk leads from the states of one step to those of the
        next the series begins anew.

    Raises
    ------
    InputError
        An argument breaks its rule, or the grid has too many cells.

    Examples
    --------
    >>> grid_filter([1, 2, 4], scale=1.0, bound=4.0, step=1.0).round(3)
    array([1.   , 1.65 , 2.948])
    """
    return _solved(_filtered, observations, scale, bound, step, spacing)


def grid_smoother(
    observations: Any, *, scale: float, bound: float, step: Any = "likely", spacing: float | None = None
) -> Floats:
    """Mean of every answer given all noisy answers, earlier and later, where answers are a random walk.

    It costs no more privacy than `grid_filter`.

    Parameters
    ----------
    observations, scale, bound, step, spacing
        As in `grid_filter`.

    Returns
    -------
    (N,) or (N, T) array
        Each within `bound` of the released number. Where no walk leads from one step to the next, the answers on either
        side say nothing about those on the other.

    Raises
    ------
    InputError
        An argument breaks its rule, or the grid has too many cells.

    Examples
    --------
    >>> grid_smoother([1, 2, 4], scale=1.0, bound=4.0, step=1.0).round(2)
    array([1.67, 2.21, 2.95])
    """
    return _solved(_smoothed, observations, scale, bound, step, spacing)


@dataclass(frozen=True)
class _Grid:
    """Cells around every observation, numbered from the first observation on; the noise; the step in cells."""

    observations: Floats
    law: TruncatedLaplace
    step: float
    spacing: float

    def forward(self) -> list[Floats]:
        """Densities of each state given the observations up to it, up to factors."""
        densities = [self.likelihood(0)]
        for k in range(1, len(self.observations)):
            density = self.carried(densities[-1], k - 1, k) * self.likelihood(k)
            densities.append(_scaled(density, self.likelihood(k)))
        return densities

    def backward(self) -> list[Floats]:
        """Densities of all later observations given each state, up to factors."""
        last = len(self.observations) - 1
        messages = [np.ones(len(self.likelihood(last)))]
        for k in range(last - 1, -1, -1):
            message = self.carried(messages[0] * self.likelihood(k + 1), k + 1, k)
            # Later observations that no state here leads to say nothing about it.
            messages.insert(0, _scaled(message, np.ones(len(message))))
        return messages

    def cells(self, k: int) -> tuple[int, int]:
        """First cell that the k-th state may lie in, and their number."""
        reach = min(self.law.bound, np.ptp(self.observations) + BEYOND * self.law.scale)
        seen = self.observations[k] - self.observations[0]
        low = math.ceil((seen - reach) / self.spacing - 0.5)
        high = math.floor((seen + reach) / self.spacing + 0.5)
        return low, high - low + 1

    def offsets(self, k: int) -> Floats:
        """Centres of those cells, relative to the k-th observation."""
        low, number = self.cells(k)
        return self.spacing * (low + np.arange(number)) - (self.observations[k] - self.observations[0])

    def likelihood(self, k: int) -> Floats:
        """Probabilities of the errors that lead from each cell to the k-th observation, largest 1 about."""
        # Both ends in the lower tail, where the distribution function has all its digits.
        centres = -np.abs(self.offsets(k))
        half = self.spacing / 2
        return np.asarray(self.law.cdf(centres + half) - self.law.cdf(centres - half))

    def carried(self, density: Floats, start: int, end: int) -> Floats:
        """Density around one observation after a step, in the cells around another."""
        (low, number), (to, wanted) = self.cells(start), self.cells(end)
        farthest = math.ceil(LONGEST_STEP * self.step / self.spacing)
        first = max(-farthest, to - low - number + 1)
        last = min(farthest, to + wanted - 1 - low)
        if first > last:
            return np.zeros(wanted)
        jumps = np.arange(first, last + 1) * (self.spacing / self.step)
        spread = np.convolve(density, np.exp(-(jumps**2) / 2))
        found, at = np.zeros(wanted), low + first - to
        inside = slice(max(0, at), min(wanted, at + len(spread)))
        found[inside] = spread[inside.start - at : inside.stop - at]
        return found

    def mean(self, k: int, density: Floats) -> float:
        """Mean of the k-th state, within the bound of its observation."""
        bound, mean = self.law.bound, float(density @ self.offsets(k) / density.sum())
        return float(self.observations[k] + min(max(mean, -bound), bound))


def _scaled(density: Floats, otherwise: Floats) -> Floats:
    """The density with the largest value 1; another where it is zero throughout."""
    top = density.max()
    return density / top if top > 0 else otherwise


def _filtered(grid: _Grid) -> Floats:
    return np.array([grid.mean(k, density) for k, density in enumerate(grid.forward())])


def _smoothed(grid: _Grid) -> Floats:
    both = zip(grid.forward(), grid.backward(), strict=True)
    return np.array([grid.mean(k, _scaled(past * later, past)) for k, (past, later) in enumerate(both)])


def _solved(
    solve: Callable[[_Grid], Floats], observations: Any, scale: Any, bound: Any, step: Any, spacing: Any
) -> Floats:
    """(N,) or (N, T) means, one series after another; all are validated before the first is solved."""
    noisy, law = released_series(observations), TruncatedLaplace(scale, bound)
    width = None if spacing is None else positive_size("spacing", spacing)
    series = noisy[:, None] if noisy.ndim == 1 else noisy
    steps = np.broadcast_to(of_series(step, noisy, law), series.shape[1:])
    grids = [_grid(column, law, float(each), width) for column, each in zip(series.T, steps, strict=True)]
    return np.column_stack([solve(grid) for grid in grids]).reshape(noisy.shape)


def _grid(noisy: Floats, law: TruncatedLaplace, step: float, spacing: float | None) -> _Grid:
    width = min(step / PER_STEP, law.scale / PER_SCALE, law.bound / PER_BOUND) if spacing is None else spacing
    if width > step:
        msg = f"spacing: must be at most step = {step:g}, got {width:g}; wider cells cannot tell a step from none."
        raise InputError(msg)
    spread = float(np.ptp(noisy))
    reach = min(law.bound, spread + BEYOND * law.scale)
    if not (2 * reach / width <= MOST_CELLS and spread / width <= FARTHEST):
        msg = (
            f"spacing: cells of {width:g} are too many, more than {MOST_CELLS} for each state or {FARTHEST} in all; "
            "take wider ones, or particle_filter."
        )
        raise InputError(msg)
    return _Grid(noisy, law, step, width)
