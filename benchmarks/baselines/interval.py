"""Interval release of Blum, Ligett & Roth: a one-dimensional data set as intervals of equal mass.

For comparisons: the noise is floating-point, so nothing drawn here may be released.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from baselines.baseline_arguments import checked_epsilon, noise_scale
from dpppsynth.core.arguments import positive, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.mechanisms.local.grids.rectangles import reals
from dpppsynth.spatial.mesh import Floats, Ints

# Cells are told apart by floats, and probes are made one after the other.
DEEPEST, MOST_INTERVALS = 50, 100_000


@dataclass(frozen=True, eq=False, repr=False)
class Intervals:
    """Intervals of equal mass that stand for values in [0, 1): never to be released.

    Attributes
    ----------
    edges : (m + 1,) array
        From 0 on, increasing; beyond the last one there is no mass.
    mass : float
        Share of the values in each interval, spread evenly. The sum need not be 1.
    n : int
        Public number of values.
    epsilon, delta : float
        Spent at most, under replacement of one value; delta is 0.
    cap : int
        Number of intervals that the budget was divided for.
    probes : int
        Noisy answers drawn, at most `cap * bits`.
    seeded : bool
        Whether the noise can be reproduced.

    Examples
    --------
    >>> found = blum_intervals(np.arange(1000) / 1000, epsilon=500.0, accuracy=0.9, bits=8, rng=1)
    >>> found.n, found.cap
    (1000, 9)
    """

    edges: Floats
    mass: float
    n: int
    epsilon: float
    delta: float
    cap: int
    probes: int
    seeded: bool

    def __repr__(self) -> str:
        return f"Intervals({len(self.edges) - 1}, n={self.n}, epsilon={self.epsilon:g}: not to be released)"

    def count(self, ranges: Any) -> Floats:
        """(R,) estimated numbers of values in ranges (R, 2) from low to high."""
        corners = reals("ranges", ranges, (None, 2))
        if (corners[:, 0] > corners[:, 1]).any():
            msg = "ranges: must be (low, high) with low <= high; some are inverted, swap their ends."
            raise InputError(msg)
        share = np.interp(corners, self.edges, self.mass * np.arange(len(self.edges)))
        return self.n * (share[:, 1] - share[:, 0])


def blum_intervals(values: Any, *, epsilon: float, accuracy: float, bits: int = 10, rng: RngLike = None) -> Intervals:
    """Cut [0, 1) into intervals that hold about `accuracy / 6` of the values each, by noisy binary searches.

    At most `ceil(8 / accuracy)` intervals are cut, with at most `bits` probes each. Every probe asks for a share of the
    values, which replacing one changes by 1 / n, and has that part of the budget.

    Parameters
    ----------
    values : (n,) array
        In [0, 1), at least one; n is public.
    epsilon : float
    accuracy : float
        Error of a range's share that is aimed at, below 1.
    bits : int
        Edges are multiples of `2^-bits`.
    rng : None, int or Generator

    Raises
    ------
    InputError

    References
    ----------
    Blum, Ligett & Roth (2008), A learning theory approach to non-interactive database privacy, STOC.

    Examples
    --------
    >>> import numpy as np
    >>> result = blum_intervals(np.arange(1000) / 1000, epsilon=500.0, accuracy=0.9, bits=8, rng=1)
    >>> len(result.edges), bool(abs(result.count([[0.2, 0.6]])[0] - 400) < 100)
    (8, True)
    """
    epsilon, accuracy, bits = checked_epsilon(epsilon), _share(accuracy), whole("bits", bits, 1, most=DEEPEST)
    cells, source = _cells(values, bits), generator(rng)
    n, end, mass, cap = len(cells), 2**bits, accuracy / 6, math.ceil(8 / accuracy)
    scale = noise_scale(bits * cap / epsilon / n)
    edges, probes = [0], 0
    # Past the cap the budget would be exceeded, whatever is left of the domain.
    while edges[-1] < end and len(edges) <= cap:
        low, high = edges[-1], end
        while high - low > 1:
            middle = (low + high) // 2
            inside = np.searchsorted(cells, middle) - np.searchsorted(cells, edges[-1])
            probes += 1
            low, high = (low, middle) if inside / n + source.laplace(0, scale) > mass else (middle, high)
        edges.append(high)
    return Intervals(np.array(edges) / end, mass, n, epsilon, 0.0, cap, probes, rng is not None)


def _share(accuracy: Any) -> float:
    """The accuracy as a float, such that not too many intervals are cut."""
    rule, remedy = "be a number above 0 and below 1", "0.1 is usual"
    share = float(positive("accuracy", accuracy, rule=rule, remedy=remedy, most=1 - 1e-9))
    if not 8 / share <= MOST_INTERVALS:
        msg = f"accuracy: asks for more than {MOST_INTERVALS} intervals, got {share!r}; {remedy}."
        raise InputError(msg)
    return share


def _cells(values: Any, bits: int) -> Ints:
    """(n,) sorted numbers of the cells of values in [0, 1)."""
    array = reals("values", values, (None,))
    if not len(array) or not ((array >= 0) & (array < 1)).all():
        msg = "values: needs at least one value, and all in [0, 1); divide by the length of the domain beforehand."
        raise InputError(msg)
    return np.sort(np.floor(array * 2.0**bits).astype(np.int64))
