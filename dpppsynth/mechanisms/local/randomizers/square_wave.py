"""The multidimensional square wave mechanism on a grid: a randomised report of one of two coordinates.

Which coordinate is a fair random bit, so each report spends the whole budget on a single axis. The two marginals are
estimated apart, and the estimate of the plane is their product: it knows nothing of how the coordinates depend on each
other, however many clients report.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import positive, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.randomizers.em import (
    Fit,
    binomial_smoothing,
    em_settings,
    expectation_maximisation,
)
from dpppsynth.mechanisms.local.randomizers.exact_sampling import (
    BITS,
    TOTAL,
    ExcessLaw,
    draws,
    excess_law,
)
from dpppsynth.mechanisms.local.randomizers.randomizer import CellRandomizer
from dpppsynth.models.channel_likelihood import AxisChannel, Multinomial, ReportLikelihood
from dpppsynth.spatial.simplex import possible

# Cells along an axis, and cells that a window may reach to either side.
MOST_SIDE = 4096

# Default tolerance of the log-likelihood: natural logarithms, of raw counts.
TOLERANCE = 1e-3
# Beyond this `e^epsilon` is no double, and the window narrower than any cell.
LARGEST_EXPONENT = 700.0


@dataclass(frozen=True, kw_only=True, eq=False)
class SquareWave(CellRandomizer):
    """Reports of one coordinate of a cell, moved within a window of likely cells or to any other.

    Given the axis, an output within `half_width` cells of the coordinate has probability p and every other one p/e^eps.

    Attributes
    ----------
    cells : int
        Along each axis of the square grid; the value of cell (i, j) is `i * cells + j`.
    half_width : int
        Cells from the coordinate to either end of its window; `square_wave_half_width` gives the usual one. Reports run
        from -half_width to cells - 1 + half_width.

    References
    ----------
    Li et al. (2020), Estimating numerical distributions under local differential privacy, SIGMOD, sections 5 and 6.

    Examples
    --------
    >>> law = SquareWave(epsilon=1.0, cells=5, half_width=1)
    >>> law.matrix().shape, law.matrix()[:7, 0].round(4).tolist()
    ((14, 25), [0.1118, 0.1118, 0.1118, 0.0411, 0.0411, 0.0411, 0.0411])
    """

    half_width: int
    kind: ClassVar[str] = "square-wave"
    columns: ClassVar[tuple[str, ...]] = ("axis", "cell")

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", whole("cells", self.cells, 1, most=MOST_SIDE))
        object.__setattr__(self, "half_width", whole("half_width", self.half_width, 0, most=MOST_SIDE))
        super().__post_init__()

    @property
    def outputs(self) -> int:
        """Cells that a coordinate may be reported in."""
        return self.cells + 2 * self.half_width

    @property
    def size(self) -> int:
        """Counts of the outputs of the first axis, then of the second."""
        return 2 * self.outputs

    @cached_property
    def law(self) -> ExcessLaw:
        """Integer weights out of 2^61 of the outputs of one axis; the 62nd bit chooses the axis."""
        weights = np.full(2 * self.half_width + 1, math.exp(min(self.epsilon, LARGEST_EXPONENT)))
        return excess_law(weights, self.outputs, self.epsilon, total=TOTAL // 2)

    @property
    def spent(self) -> float:
        return self.law.spent

    def matrix(self) -> Floats:
        """(2 outputs, cells^2) probabilities of (axis, cell) given each value."""
        given = np.array([self._weights(each) / TOTAL for each in range(self.cells)]).T
        return np.concatenate([np.repeat(given, self.cells, axis=1), np.tile(given, (1, self.cells))])

    def column(self, value: int) -> Ints:
        i, j = divmod(whole("value", value, 0, most=self.inputs - 1), self.cells)
        return np.concatenate([self._weights(i), self._weights(j)])

    @cached_property
    def channel(self) -> AxisChannel:
        return AxisChannel(self.cells, self.law.base / (TOTAL // 2), self.law.excess / (TOTAL // 2))

    def field_estimate(self, counts: Ints, n: int, inside: npt.NDArray[np.bool_]) -> Floats:
        allowed = self._allowed(inside)
        sides = allowed.any(axis=1), allowed.any(axis=0)
        halves = zip(counts.reshape(2, self.outputs), sides, strict=True)
        return self._joint(allowed, *(self._field_marginal(half, np.asarray(side)) for half, side in halves))

    def _field_marginal(self, counts: Ints, allowed: np.ndarray) -> Floats:
        if not counts.any():
            return np.asarray(allowed / allowed.sum())
        # Devices draw reports without it.
        from dpppsynth.models.channel_posterior import field_shares

        law = Multinomial(float(counts.sum()))
        return field_shares(ReportLikelihood(self.channel, counts / 1.0, law, allowed / 1.0))

    def published_estimate(self, counts: Ints, n: int, *, inside: Any = None, **settings: Any) -> Floats:
        first, second = (fit.warned().shares for fit in self.fit(counts, n, inside=inside, **settings))
        return self._joint(self._allowed(inside), first, second)

    def _joint(self, allowed: np.ndarray, first: Floats, second: Floats) -> Floats:
        """(cells^2,) product of two marginals where cells exist."""
        joint = np.where(allowed, np.outer(first, second), 0.0)
        # Marginals may meet outside alone, or in numbers too small for a double.
        return np.asarray((joint if joint.any() else allowed / 1.0).ravel() / (joint.sum() or allowed.sum()))

    def fit(self, counts: Ints, n: int, *, inside: Any = None, **settings: Any) -> tuple[Fit, Fit]:
        """Marginals along the first and the second axis, by expectation maximisation smoothed after every step.

        An axis that nobody reported keeps equal shares.

        Parameters
        ----------
        counts : (2 outputs,) array of int
        n : int
            Number of reports: the sum of the counts.
        inside : (cells^2,) array of bool, optional
            Cells that exist; a coordinate that no such cell has gets nothing.
        **settings
            `tolerance` of the log-likelihood (1e-3) and `max_iter` (10000).
        """
        chosen, tallies = self.published_settings(**settings), self.counts_of(counts, n)
        allowed = self._allowed(inside)
        sides = np.asarray(allowed.any(axis=1)), np.asarray(allowed.any(axis=0))
        halves = tallies.reshape(2, self.outputs)
        return self._marginal(halves[0], sides[0], chosen), self._marginal(halves[1], sides[1], chosen)

    def published_settings(self, **given: Any) -> dict[str, Any]:
        return em_settings(given, tolerance=TOLERANCE)

    def _weights(self, coordinate: int) -> Ints:
        """(outputs,) weights out of 2^61 given a coordinate."""
        weights = self.law.base
        weights[coordinate : coordinate + len(self.law.excess)] += self.law.excess
        return weights

    def _drawn(self, values: Ints, rng: np.random.Generator) -> Ints:
        bits = draws(rng, len(values), bits=BITS)
        axis, rest = bits & 1, bits >> 1
        output, near = self.law.split(rest)
        coordinate = np.where(axis == 0, values // self.cells, values % self.cells)
        return np.column_stack([axis, np.where(near < 0, output, coordinate + near) - self.half_width])

    def places(self, reports: Ints) -> Ints:
        axis, cell = reports.T
        low, high = -self.half_width, self.cells - 1 + self.half_width
        if ((axis < 0) | (axis > 1) | (cell < low) | (cell > high)).any():
            msg = f"reports: no client sends such; the axis is 0 or 1, the cell from {low} to {high}."
            raise InputError(msg)
        return np.asarray(axis * self.outputs + cell - low)

    def _allowed(self, inside: Any) -> np.ndarray:
        """(cells, cells) cells that exist."""
        return possible(inside, self.inputs).reshape(self.cells, self.cells)

    def _marginal(self, counts: Ints, allowed: np.ndarray, settings: dict[str, Any]) -> Fit:
        start = allowed / allowed.sum()
        if not counts.any():
            return Fit(start, 0, 0.0, converged=True, log_likelihood=0.0)
        return expectation_maximisation(
            self.channel.forward,
            self.channel.backward,
            counts,
            start=start,
            smooth=lambda shares: binomial_smoothing(shares, inside=allowed),
            **settings,
        )


def square_wave_half_width(epsilon: float, cells: int) -> int:
    """Half-width in cells that maximises a bound of the information that a report carries, for `cells` along the axis.

    References
    ----------
    Li et al. (2020), Estimating numerical distributions under local differential privacy, SIGMOD, section 5.3.

    Examples
    --------
    >>> square_wave_half_width(1.0, 15)
    3
    """
    # A half-width that is a whole number up to rounding is that number.
    return math.floor(whole("cells", cells, 1, most=MOST_SIDE) * _relative_half_width(epsilon) + 1e-9)


def _relative_half_width(epsilon: float) -> float:
    """Best half-width as a share of the axis: from 1/2 at epsilon 0 down to 0.

    It is `(eps - 1 + e^-eps) / (2 (e^eps - 1 - eps))`, where for small epsilon both sides cancel.
    """
    epsilon = positive("epsilon", epsilon)
    if epsilon > LARGEST_EXPONENT:
        return 0.0
    return _beyond_tangent(-epsilon) / (2 * _beyond_tangent(epsilon))


def _beyond_tangent(x: float) -> float:
    """`(e^x - 1 - x) / x^2`, by its series where the difference would cancel."""
    if abs(x) < 0.01:
        return 1 / 2 + x / 6 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6 * (1 + x / 7))))
    return (math.expm1(x) - x) / x**2
