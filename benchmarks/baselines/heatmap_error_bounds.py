"""Upper and lower error bounds of private heat maps, from public numbers.

Errors are Earth Mover's Distances between the average distribution of n persons and its estimate. Functions named
`..._bound` are proved with the constants they return (docs/theory/heatmaps.md, section 4), the others (`..._order`)
state how the error grows: the theorems name no constant.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import instance, positive, probability, real_array, shown, whole
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.heatmap.bound import DECAY, DEEPEST, LevelBudgets, start_level
from dpppsynth.mechanisms.heatmap.tree import pyramid

# Packings of k-sparse distributions are known to be large below this separation times sqrt(k).
LARGEST_SEPARATION = 0.01


@dataclass(frozen=True)
class SparseParameters:
    """Settings of the proof of the upper bound.

    Attributes
    ----------
    recovery, alignment : float
        eta' = lambda / 4 and eta = eta' / 6.
    w : int
        Cells kept per level, for the constant that was asked for.
    start : int
        q, the level with the largest budget.
    decay : float
        Of the budgets of all levels.
    """

    recovery: float
    alignment: float
    w: int
    start: int
    decay: float


def sparse_parameters(factor: float, k: int, *, constant: float = 1.0) -> SparseParameters:
    """Settings that make the estimate a `(factor, O(sparse_order))`-approximation with probability 0.99.

    Parameters
    ----------
    factor : float
        lambda, between 0 and 1: the error is at most lambda times that of the best k-sparse distribution, plus noise.
    k : int
    constant : float
        Of `w = O(k / eta'**2)`; the theorem states none, so the default gives the order of w and no promise.

    Examples
    --------
    >>> sparse_parameters(0.5, 4)
    SparseParameters(recovery=0.125, alignment=0.020833333333333332, w=256, start=4, decay=0.8)
    """
    factor, k = probability("factor", factor, remedy="0.5 is a common choice"), whole("k", k, 1)
    recovery = factor / 4
    needed = 16 * positive("constant", constant) * k / factor / factor
    if needed == math.inf:
        msg = "factor, k, constant: ask for more cells than floating-point numbers count; take a larger factor."
        raise InputError(msg)
    w = math.ceil(needed)
    return SparseParameters(recovery, recovery / 6, w, start_level(w, DEEPEST), DECAY["theory"])


def sparse_order(factor: float, k: int, epsilon: float, n: int) -> float:
    """Additive error `sqrt(k) / (lambda epsilon n)` of the sparse algorithm, up to a constant that is not stated."""
    factor = probability("factor", factor, remedy="0.5 is a common choice")
    return lower_order(k, epsilon, n) / factor


def noise_term(budgets: LevelBudgets, w: int) -> float:
    """`sum_i 2**-i min(w, 4**i) / epsilon_i` over the measured levels: the noise that selection lets through.

    Examples
    --------
    >>> from dpppsynth.mechanisms.heatmap.bound import level_budgets
    >>> round(noise_term(level_budgets(1.0, 8), 20), 1)
    45.3
    """
    budgets, w = instance("budgets", budgets, LevelBudgets), whole("w", w, 1)
    if budgets.step > 1:
        msg = "budgets: the bound is proved where every level from the first on is measured; take level_budgets()."
        raise InputError(msg)
    return math.fsum(2.0**-i * min(w, 4**i) / e for i, e in zip(budgets.levels, budgets.epsilons, strict=True))


def sparse_bound(budgets: LevelBudgets, w: int, n: int) -> float:
    """Bound of the expected error for n persons' masses on at most w cells in all.

    `60 (2**(b + 1) - 1 + 2**(b - depth)) noise_term / n`, b the first measured level. Far above what is seen.

    Examples
    --------
    >>> from dpppsynth.mechanisms.heatmap.bound import level_budgets
    >>> sparse_bound(level_budgets(1.0, 8, variant="theory"), 20, 100_000) < 0.06
    True
    """
    noise = noise_term(budgets, w) / whole("n", n, 1)
    return 60 * domination(budgets.first, budgets.depth) * noise


def domination(first: int, depth: int) -> float:
    """`2**(b + 1) - 1 + 2**(b - depth)`: Earth Mover's norms are at most this times the pyramid norm from level b on.

    Examples
    --------
    >>> domination(0, 8), domination(2, 8)
    (1.00390625, 7.015625)
    """
    depth = whole("depth", depth, 0, most=DEEPEST)
    first = whole("first", first, 0, most=depth)
    return 2.0 ** (first + 1) - 1 + 2.0 ** (first - depth)


def pyramid_norm(z: Any) -> float:
    """The sum over all levels i of `2^-i` times the absolute sums over its cells.

    It is at least the earth mover's norm of an array that sums to zero, and of any array after `|sum(z)| / side` is
    added.

    Parameters
    ----------
    z : (side, side) array

    Examples
    --------
    >>> pyramid_norm([[4, 3], [2, 1]])
    15.0
    """
    return float(sum(2.0**-level * np.abs(sums).sum() for level, sums in enumerate(pyramid(np.asarray(z)))))


def normalised_bound(distance: float, n: float) -> float:
    """`2 distance / n`: error of normalised masses whose Earth Mover's norm is `distance` from n persons' masses.

    It holds for any distance, as long as the estimate has some mass.
    """
    return 2 * positive("distance", distance) / positive("n", n)


def decay_cost(decay: float) -> float:
    """`1 / ((1 - g) (1 - 1 / (2 g)))`: factor of the noise term for budgets that decay like `g**|i - q|`, g above 1/2.

    Least at `g = 1 / sqrt(2)`, where it is `1 / (1.5 - sqrt(2))`.

    Examples
    --------
    >>> round(decay_cost(2**-0.5), 5), round(decay_cost(0.8), 4)
    (11.65685, 13.3333)
    """
    decay = probability("decay", decay, remedy="2**-0.5 is best")
    if decay <= 0.5:
        msg = f"decay: must lie above 1/2, where the noise of fine levels adds up, got {shown(decay)}; 2**-0.5 is best."
        raise InputError(msg)
    return 1 / ((1 - decay) * (1 - 1 / (2 * decay)))


def dense_noise_bound(depth: int, epsilon: float) -> float:
    """`sqrt(2) (depth + 1) 2**depth / epsilon`: bound of the expected pyramid norm of Laplace noise on all grid cells.

    Examples
    --------
    >>> round(dense_noise_bound(4, 1.0), 1)
    113.1
    """
    depth = whole("depth", depth, 0, most=DEEPEST)
    return math.sqrt(2) * (depth + 1) * 2**depth / positive("epsilon", epsilon)


def dense_bound(depth: int, epsilon: float, n: int) -> float:
    """Bound of the expected error of dense aggregation of n persons on a grid of side `2**depth`, snapping included.

    `4 sqrt(2) ((depth + 1) 2**depth + 1) / (epsilon n) + 2 / 2**depth`.
    """
    noise = dense_noise_bound(depth, epsilon) + math.sqrt(2) / epsilon
    return 4 * noise / whole("n", n, 1) + 2.0 ** (1 - depth)


def dense_order(epsilon: float, n: int) -> float:
    """`1 / sqrt(epsilon n)`: error that no algorithm avoids without sparsity; dense ones have it but for logs."""
    return 1 / math.sqrt(positive("epsilon", epsilon) * whole("n", n, 1))


def lower_order(k: int, epsilon: float, n: int) -> float:
    """`sqrt(k) / (epsilon n)`: additive error that no algorithm can avoid, whatever its lambda, up to a constant.

    Raises
    ------
    InputError
        The theorem asks for `k >= epsilon` and `n >= k / epsilon`.
    """
    k, epsilon, n = _sparse_case(k, epsilon, n)
    return math.sqrt(k) / (epsilon * n)


def kmedian_order(k: int, epsilon: float) -> float:
    """`sqrt(k) / epsilon`: additive error of the cost of k centres on a private coreset, however many persons."""
    return math.sqrt(whole("k", k, 1)) / positive("epsilon", epsilon)


@dataclass(frozen=True)
class Packing:
    """Distributions that no private algorithm can tell apart, from the proof of the lower bound.

    Attributes
    ----------
    side : int
        t: they live on a t x t grid, t the largest power of two up to `sqrt(k)`.
    persons : int
        n0 = floor(k / epsilon) persons hold the distribution; all others hold none of it.
    separation : float
        Least Earth Mover's Distance between two of them.
    radius : float
        `0.4 separation n0 / n`: a smaller error tells which one it was.
    log_size : float
        Natural logarithm of `10 e**k`; so many distributions contradict privacy.
    """

    side: int
    persons: int
    separation: float
    radius: float
    log_size: float


def packing(k: int, epsilon: float, n: int, *, separation: float | None = None) -> Packing:
    """The packing of the lower bound for k-sparse distributions, n persons and pure differential privacy.

    Parameters
    ----------
    k, epsilon, n
        With `k >= epsilon` and `n >= k / epsilon`.
    separation : float, optional
        At most `0.01 / sqrt(k)`, which None takes. Packings of size `2**Omega(k log(1 / (separation sqrt(k))))` exist;
        as the constant in Omega is not stated, how small it must be for `log_size` is not known.

    Examples
    --------
    >>> found = packing(20, 1.0, 1000)
    >>> found.side, found.persons, round(found.radius * 1e6, 2)
    (4, 20, 17.89)
    """
    k, epsilon, n = _sparse_case(k, epsilon, n)
    most = LARGEST_SEPARATION / math.sqrt(k)
    gap = (
        most
        if separation is None
        else positive("separation", separation, most=most, remedy="None takes 0.01 / sqrt(k)")
    )
    persons = math.floor(k / epsilon)
    return Packing(2 ** start_level(k, DEEPEST), persons, gap, 0.4 * gap * persons / n, k + math.log(10))


def separation_bound(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """`|p - q|_1 / (2 t)`: lower bound of the Earth Mover's Distance of two distributions on a t x t grid.

    Examples
    --------
    >>> separation_bound([[1, 0], [0, 0]], [[0, 0], [0, 1]])
    0.5
    """
    one, other = real_array(p), real_array(q)
    if one is None or other is None or one.ndim != 2 or one.shape[0] != one.shape[1] or one.shape != other.shape:
        msg = "p, q: need two distributions on the same square grid, arrays (t, t)."
        raise InputError(msg)
    return float(np.abs(one - other).sum() / (2 * len(one)))


def _sparse_case(k: int, epsilon: float, n: int) -> tuple[int, float, int]:
    """The case that the sparse lower bound is about; InputError outside it."""
    k, epsilon, n = whole("k", k, 1), positive("epsilon", epsilon), whole("n", n, 1)
    if k < epsilon or n * epsilon < k:
        msg = "k, epsilon, n: the lower bound needs k >= epsilon and n >= k / epsilon; take another k."
        raise InputError(msg)
    return k, epsilon, n
