"""Entropic transport between histograms on large grids, after Cuturi: an upper bound on exact distances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import positive, whole
from dpppsynth.core.errors import DpppsynthError
from dpppsynth.core.types import Floats
from dpppsynth.spatial.minimum_cost_flow import unit_pair
from dpppsynth.spatial.transport import cell_sides, squared_distances

# The regularisation grows by this factor until it is the one asked for; plans on the way need be no better than this.
GROWTH, ROUGH = 4.0, 1e-2
# Exponents of larger ones have no digits left for the prices.
MOST_REGULARISATION = 1e6
# Terms of sums held in memory at once.
MOST_TERMS = 2**20


def sinkhorn2(
    p: npt.ArrayLike,
    q: npt.ArrayLike,
    *,
    regularisation: float = 5.0,
    tolerance: float = 1e-6,
    max_iter: int = 100_000,
    unit: Any = 1.0,
) -> float:
    """Root of the mean squared distance moved by the entropic transport plan, for large grids.

    The plan has the form `u(a) exp(-regularisation |a - b|^2) v(b)`, with distances in cells. It costs no less than the
    cheapest plan, so up to its tolerance the result is never below `wasserstein2`, and it is positive between equal
    histograms. More regularisation brings both closer and takes more steps.

    Parameters
    ----------
    p, q, unit
        As in `wasserstein2`.
    regularisation : float
        Inverse of the entropy's weight, per squared side of a cell along the first axis.
    tolerance : float
        Of the plan's marginals: sum of absolute differences from the histogram.
    max_iter : int
        Most steps.

    Raises
    ------
    InputError
        An argument breaks its rule.
    DpppsynthError
        The steps were not enough.

    References
    ----------
    Cuturi (2013), Sinkhorn distances: lightspeed computation of optimal transport, NeurIPS 26; Peyre and Cuturi (2019),
    Computational optimal transport, section 4, for logarithms, separable kernels and growing regularisation.

    Examples
    --------
    >>> round(sinkhorn2([[1, 0], [0, 0]], [[0, 0], [0, 1]], unit=3.0), 6)
    4.242641
    """
    one, other = unit_pair(p, q)
    sides = cell_sides(unit)
    wanted = float(positive("regularisation", regularisation, most=MOST_REGULARISATION))
    tolerance, left = positive("tolerance", tolerance), whole("max_iter", max_iter, 1)
    squares = squared_distances(one.shape, sides)
    strength = min(wanted, 1 / max(1.0, *(float(each.max()) for each in squares)))
    price = np.zeros(one.shape)
    # Each plan starts from the prices of a weaker one, which hardly differ; from nothing it would take far more steps.
    while strength < wanted:
        plan = _Plan(one, other, (strength * squares[0], strength * squares[1]))
        steps, price = plan.balance(price, max(tolerance, ROUGH), left)
        grown = min(wanted, GROWTH * strength)
        price, strength, left = price * (grown / strength), grown, left - steps
    plan = _Plan(one, other, (wanted * squares[0], wanted * squares[1]))
    _, price = plan.balance(price, tolerance, left)
    return float(sides[0] * math.sqrt(plan.mean(price, squares)))


@dataclass(frozen=True, eq=False)
class _Plan:
    """Plans `p(a) exp(f(a) - exponent(a, b) + g(b)) q(b)`, whose exponents are sums over the axes.

    Attributes
    ----------
    p, q : (nx, ny) arrays
    exponents : (nx, nx) and (ny, ny) arrays
    """

    p: Floats
    q: Floats
    exponents: tuple[Floats, Floats]

    def balance(self, price: Floats, tolerance: float, most: int) -> tuple[int, Floats]:
        """Steps taken, and g (nx, ny) of a plan whose second marginal is q and the first nearly p, from some g."""
        change, before = np.inf, self._answer(price, self.q)
        for step in range(1, most + 1):
            price = self._answer(before, self.p)
            after = self._answer(price, self.q)
            # The first marginal of the plan with f and the g that answers it. It lacks as much as it has too much, and
            # what it lacks is no more than there is, whereas the rest may overflow.
            change = -2 * float((self.p * np.expm1(np.minimum(before - after, 0.0))).sum())
            before = after
            if change <= tolerance:
                return step, price
        msg = (
            f"sinkhorn2: the marginals are off by {change:.1g} after all steps; take a larger max_iter or "
            "tolerance, or less regularisation."
        )
        raise DpppsynthError(msg)

    def mean(self, price: Floats, squares: tuple[Floats, Floats]) -> float:
        """Mean under the plan with this g of squares (nx, nx) and (ny, ny), added."""
        ahead, back = price + _logs(self.q), self._answer(price, self.q) + _logs(self.p)
        return sum(self._mean_along(axis, back, ahead, squares[axis]) for axis in (0, 1))

    def _mean_along(self, axis: int, back: Floats, ahead: Floats, square: Floats) -> float:
        # The other axis comes first: where its moves end does not matter here.
        rest = _log_product(ahead, self.exponents[1 - axis], 1 - axis)
        total = 0.0
        for a, b in zip(np.moveaxis(back, axis, 1), np.moveaxis(rest, axis, 1), strict=True):
            total += float((np.exp(np.add.outer(a, b) - self.exponents[axis]) * square).sum())
        return total

    def _answer(self, price: Floats, masses: Floats) -> Floats:
        """The f that gives the right marginal with a g at masses q, or the g with an f at masses p."""
        return -_log_product(_log_product(price + _logs(masses), self.exponents[0], 0), self.exponents[1], 1)


def _log_product(logs: Floats, exponents: Floats, axis: int) -> Floats:
    """Logarithms of the product of `exp(-exponents)` (k, k) and `exp(logs)` along an axis of length k."""
    rows = np.moveaxis(logs, axis, 1)
    at_once = max(1, MOST_TERMS // exponents.size)
    parts = [_log_sums(rows[i : i + at_once, None, :] - exponents) for i in range(0, len(rows), at_once)]
    return np.moveaxis(np.concatenate(parts), 1, axis)


def _log_sums(logs: Floats) -> Floats:
    """Logarithms of sums of `exp(logs)` over the last axis; -inf where all of them are."""
    most = np.maximum(logs.max(axis=-1, keepdims=True), -np.finfo(float).max)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logs - most).sum(axis=-1)) + most[..., 0])


def _logs(masses: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(masses))
