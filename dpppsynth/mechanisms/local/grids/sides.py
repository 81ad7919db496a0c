"""Grid sizes that balance the noise of a query against non-uniformity inside cells, and the split of users by level.

Under local privacy, `n` reports and budget epsilon, a reference query over half the width and half the height meets
noise that grows with the side g and cells cut by its border that shrink with it; the minimum of the sum of their
squares is the rule of `ideal_side`. Under central privacy the rules are those of Qardaji, Yang & Li.
All of them need public numbers, or numbers that are private already.
"""

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dpppsynth.core.arguments import one_of, positive, probability, real, shown
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.grids.rectangles import LARGEST, MOST_CELLS, reals, users

ROUNDINGS = ("nearest", "ceil", "floor")
# Range of epsilon: below it reports carry no usable information, beyond it they hide nothing.
LEAST_EPSILON, LARGEST_EPSILON = 1e-9, 50
# A side is whole when it is so up to rounding in the roots.
CLOSE = 1e-12
SMALL = "take 1.0 or so"


class Constants(NamedTuple):
    """Public constants of a two-level grid under local privacy.

    Attributes
    ----------
    first : float
        Share alpha of the mass of border cells that counts as error, at the first level.
    second : float
        At the second level.
    sigma : float
        Share of the users who report on the first level.
    """

    first: float
    second: float
    sigma: float


PRIVAG = Constants(0.02, 0.02, 0.2)
AAG = Constants(0.02, 0.25, 0.5)
# The best sides of published tables, found with the truth, have 0.04 to 0.08.
UNIFORM_ALPHA = 0.05


def ideal_side(epsilon: float, n: int, alpha: float) -> float:
    """Side `sqrt(2 alpha (e^eps - 1) sqrt(n / e^eps))` of a grid on which n users report, not rounded.

    Parameters
    ----------
    epsilon : float
        Budget of a report, at most 50.
    n : int
        Number of users whom answers speak of.
    alpha : float
        Share of the mass of cells on a query's border that counts as error.

    References
    ----------
    Yang, Wang, Li, Cheng & Su (2022), Answering multi-dimensional range queries under local differential privacy.

    Examples
    --------
    >>> round(ideal_side(1.0, 1_000_000, 0.02), 7)
    6.4565954
    """
    alpha = positive("alpha", alpha, remedy="0.02 is usual", most=LARGEST)
    return math.sqrt(2 * alpha * report_signal(epsilon) * math.sqrt(users("n", n)))


def ideal_sides(frequencies: Any, epsilon: float, n: int, *, alpha: float, sigma: float) -> Floats:
    """(K,) sides inside first-level cells, not rounded: `ideal_side` for `(1 - sigma) n` users and `alpha f_k`.

    Parameters
    ----------
    frequencies : (K,) array
        Shares of the users in the first-level cells, from 0 to 1: no counts.
    epsilon : float
    n : int
        Number of all users.
    alpha : float
        Of the second level.
    sigma : float
        Share of users who reported on the first level.

    Raises
    ------
    InputError
        Also when the frequencies are counts, or negative; `clipped_frequencies` gives them.

    Examples
    --------
    >>> ideal_sides([0.1], 1.0, 573_703, alpha=0.25, sigma=0.5).round(7).tolist()
    [5.2829057]
    """
    shares = reals("frequencies", frequencies, (None,))
    if not ((shares >= 0) & (shares <= 1)).all():
        msg = "frequencies: must be shares of the users, from 0 to 1, no counts; clipped_frequencies() gives them."
        raise InputError(msg)
    sigma = probability("sigma", sigma, remedy="0.2 or 0.5 is usual")
    alpha = positive("alpha", alpha, remedy="0.02 or 0.25 is usual", most=LARGEST)
    return np.sqrt(2 * alpha * shares * report_signal(epsilon) * math.sqrt((1 - sigma) * users("n", n)))


def uniform_side(epsilon: float, n: int, *, alpha: float = UNIFORM_ALPHA, rounding: str = "nearest") -> int:
    """Side of a grid of one level under local privacy, at least 1; see `ideal_side`."""
    return first_side(epsilon, n, alpha=alpha, rounding=rounding)


def first_side(epsilon: float, n: int, *, alpha: float = AAG.first, rounding: str = "nearest") -> int:
    """Side of the first level of two, at least 1; n counts all users, though only some report on this level.

    Examples
    --------
    >>> [first_side(epsilon, 573_703) ** 2 for epsilon in (0.5, 1, 3, 5)]
    [16, 36, 121, 361]
    """
    return int(rounded_sides([ideal_side(epsilon, n, alpha)], rounding)[0])


def second_sides(
    frequencies: Any,
    epsilon: float,
    n: int,
    *,
    alpha: float = AAG.second,
    sigma: float = AAG.sigma,
    rounding: str = "floor",
) -> Ints:
    """(K,) sides inside first-level cells, at least 1; see `ideal_sides`.

    No side is larger than keeps the whole grid within 2^22 cells.
    """
    return rounded_sides(ideal_sides(frequencies, epsilon, n, alpha=alpha, sigma=sigma), rounding)


def clipped_frequencies(counts: Any, reports: int) -> Floats:
    """(K,) shares of those who reported, from estimated counts: between 0 and 1.

    Parameters
    ----------
    counts : (K,) array
        Unbiased estimates of how many of the reporting users are in each cell; may be negative.
    reports : int
        Number of users who reported, not of all users.
    """
    return np.clip(reals("counts", counts, (None,)) / users("reports", reports), 0.0, 1.0)


def rounded_sides(sides: Any, rounding: str) -> Ints:
    """(K,) whole sides of at least 1, with no more cells in all than fit into a grid.

    Parameters
    ----------
    sides : (K,) array
        Not negative.
    rounding : {"nearest", "ceil", "floor"}
    """
    ideal, rounding = reals("sides", sides, (None,)), one_of("rounding", rounding, ROUNDINGS)
    if (ideal < 0).any():
        msg = "sides: must not be negative; those of empty cells are 0."
        raise InputError(msg)
    if rounding == "nearest":
        found = np.floor(ideal + 0.5)
    else:
        found = np.floor(ideal * (1 + CLOSE)) if rounding == "floor" else np.ceil(ideal * (1 - CLOSE))
    most = max(1, math.isqrt(MOST_CELLS // max(1, len(ideal))))
    return np.clip(found, 1, most).astype(np.int64)


def report_signal(epsilon: float) -> float:
    """Signal `(e^eps - 1) / sqrt(e^eps)`: two over the deviation of an estimated count, per report of somebody else."""
    number = real(epsilon)
    if number is None or not LEAST_EPSILON <= number <= LARGEST_EPSILON:
        msg = f"epsilon: must lie between {LEAST_EPSILON:g} and {LARGEST_EPSILON}, got {shown(epsilon)}; {SMALL}."
        raise InputError(msg)
    return 2 * math.sinh(number / 2)


def group_sizes(n: int, sigma: float) -> tuple[int, int]:
    """Numbers of users who report on the first level, `floor(sigma n)`, and on the second.

    Raises
    ------
    InputError
        When one of the groups would be empty.

    Examples
    --------
    >>> group_sizes(100, 0.29)
    (29, 71)
    """
    n, sigma = users("n", n), probability("sigma", sigma, remedy="0.2 or 0.5 is usual")
    # As written: 0.29 * 100 is below 29 in binary.
    first = math.floor(Fraction(repr(float(sigma))) * n)
    if not 0 < first < n:
        msg = f"n: with sigma = {sigma:g} one of the groups of users would be empty, got {shown(n)}; needs more users."
        raise InputError(msg)
    return first, n - first


def split_users(n: int, sigma: float, rng: RngLike = None) -> tuple[Ints, Ints]:
    """Numbers of the users of both groups, drawn uniformly: every user reports once, on one level.

    Files are sorted by person or time, so their order must not decide.
    """
    first, _ = group_sizes(n, sigma)
    order = generator(rng).permutation(n)
    return np.sort(order[:first]), np.sort(order[first:])
