"""Partition of users over the two levels of a grid: each reports once, with the whole budget."""

import math
from fractions import Fraction

import numpy as np

from dpppsynth.core.arguments import probability, shown
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.types import Ints
from dpppsynth.mechanisms.local.grids.grid_arguments import users


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
