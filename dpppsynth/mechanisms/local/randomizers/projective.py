"""Projective geometry response: a report is one point, likelier if in the hyperplane of the client's value.

A point is a vector of `dimension` numbers modulo the order whose first one that is not zero is 1. Read as digits, these
vectors are the numbers from `order^m` up to, without, `2 order^m` for m = 0, 1, ..., and points are numbered in their
order. Hyperplanes are named by points as well: that of u holds all y whose product with u is zero.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import shown, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.randomizers.exact_sampling import uniform_below
from dpppsynth.mechanisms.local.randomizers.frequency import DesignOracle, checked_budget, ideal_variance


@dataclass(frozen=True)
class ProjectiveSpace:
    """Projective space of vectors with `dimension` digits below `order`, a prime.

    Examples
    --------
    >>> plane = ProjectiveSpace(2, 3)
    >>> plane.points, plane.vectors(np.arange(7)).tolist()
    (7, [[0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 0, 1], [1, 1, 0], [1, 1, 1]])
    """

    order: int
    dimension: int

    @property
    def points(self) -> int:
        """Number of points, and of hyperplanes."""
        return (self.order**self.dimension - 1) // (self.order - 1)

    @cached_property
    def _powers(self) -> Ints:
        return self.order ** np.arange(self.dimension, dtype=np.int64)

    @cached_property
    def _starts(self) -> Ints:
        """Number of the first point with its leading 1 at each digit, from the last one on."""
        return (self._powers - 1) // (self.order - 1)

    @cached_property
    def _inverses(self) -> Ints:
        return np.array([0] + [pow(a, -1, self.order) for a in range(1, self.order)], dtype=np.int64)

    def codes(self, points: Ints) -> Ints:
        """(n,) vectors of points (n,), read as numbers."""
        m = np.searchsorted(self._starts, points, side="right") - 1
        return points - self._starts[m] + self._powers[m]

    def vectors(self, points: Ints) -> Ints:
        """(n, dimension) vectors of points (n,)."""
        return self.codes(points)[:, None] // self._powers[::-1] % self.order

    def numbers(self, vectors: Ints) -> Ints:
        """(n,) points that vectors (n, dimension), none of them zero, stand for."""
        leading = (vectors != 0).argmax(axis=1)
        scale = self._inverses[vectors[np.arange(len(vectors)), leading]]
        m = self.dimension - 1 - leading
        return vectors * scale[:, None] % self.order @ self._powers[::-1] - self._powers[m] + self._starts[m]

    def products(self, points: Ints, others: Ints) -> Ints:
        """(n,) products of the vectors of points, modulo the order: zero where one lies in the other's hyperplane."""
        return (self.vectors(points) * self.vectors(others)).sum(axis=1) % self.order

    def within(self, planes: Ints, which: Ints) -> Ints:
        """(n,) points number `which` (n,) of the hyperplanes (n,), in some order.

        Without the digit where the hyperplane's vector has its leading 1, the points of a hyperplane are those of a
        space with one dimension less.
        """
        below, normal = ProjectiveSpace(self.order, self.dimension - 1), self.vectors(planes)
        leading = (normal != 0).argmax(axis=1)
        others = np.arange(self.dimension - 1) + (np.arange(self.dimension - 1) >= leading[:, None])
        rows = np.arange(len(planes))
        found = np.zeros_like(normal)
        found[rows[:, None], others] = below.vectors(which)
        found[rows, leading] = -(found * normal).sum(axis=1) % self.order
        return self.numbers(found)

    def hyperplane_sums(self, values: Ints) -> Ints:
        """(points,) sums of whole numbers (points,) over each hyperplane; exact for sums far below 2^50.

        A number that stands at all multiples of its point has a Fourier transform that is `order` times the sum over a
        hyperplane, less the sum over all points: whole numbers `order` apart, from which rounding leads back.
        """
        from scipy.fft import fftn

        spread = np.zeros(self.order**self.dimension)
        vectors = self.vectors(np.arange(self.points))
        for scale in range(1, self.order):
            spread[vectors * scale % self.order @ self._powers[::-1]] = values
        transform = fftn(spread.reshape((self.order,) * self.dimension)).real.ravel()
        return np.rint((transform[self.codes(np.arange(self.points))] + values.sum()) / self.order).astype(np.int64)


# Vectors of the largest space whose hyperplanes are summed over.
LARGEST_SPACE = 2**22


def space_dimension(order: int, domain: int) -> int:
    """Least number of digits, at least two, with which a space over a field has as many points as there are values."""
    dimension = 2
    while ProjectiveSpace(order, dimension).points < domain:
        dimension += 1
    return dimension


def field_order(epsilon: float, domain: int) -> int:
    """Prime order of the field with the least total variance; near `e^epsilon + 1` where values are many.

    Raises
    ------
    InputError
        When values are so many that no space is small enough.

    Examples
    --------
    >>> [field_order(epsilon, 4096) for epsilon in (0.5, 1.0, 3.0, 5.0)]
    [3, 3, 23, 149]
    """
    epsilon, domain = checked_budget(epsilon, domain)
    tried = [order for order in _primes(math.isqrt(LARGEST_SPACE)) if _fits(order, domain)]
    if not tried:
        msg = "domain: so many values have no projective space of a size that can be counted; take local-hashing."
        raise InputError(msg)

    def variance(order: int) -> float:
        return ideal_variance(epsilon, domain, *map(float, _shares(order, space_dimension(order, domain))))

    return min(tried, key=variance)


def _fits(order: int, domain: int) -> bool:
    return order ** space_dimension(order, domain) <= LARGEST_SPACE


def _primes(most: int) -> list[int]:
    sieve = np.ones(most + 1, dtype=bool)
    sieve[:2] = False
    for number in range(2, math.isqrt(most) + 1):
        sieve[number * number :: number] = False
    return np.flatnonzero(sieve).tolist()


def _shares(order: int, dimension: int) -> tuple[Fraction, Fraction]:
    """Shares of the points that lie in a hyperplane, and in two."""
    all_of, one, both = ((order ** (dimension - less) - 1) // (order - 1) for less in range(3))
    return Fraction(one, all_of), Fraction(both, all_of)


@dataclass(frozen=True, kw_only=True, eq=False)
class ProjectiveResponse(DesignOracle):
    """Projective geometry response: values are hyperplanes, reports points, those in the client's hyperplane likelier.

    A point of the own hyperplane is `e^epsilon` times as likely as another one. Its variance is nearly that of subset
    selection, and a report is one number. Counts are those of the points; `fast_counts` have exactly the law of counts
    of reports.

    Attributes
    ----------
    order : int
        A prime, of the field; `field_order(epsilon, domain)` if not given.

    References
    ----------
    Feldman, Nelson, Nguyen and Talwar (2022), Private frequency estimation via projective geometry, ICML.

    Examples
    --------
    >>> oracle = ProjectiveResponse(epsilon=3.0, domain=1024)
    >>> oracle.order, oracle.size, round(float(oracle.p), 6)
    (19, 7240, 0.527343)
    """

    order: Any = None
    kind: ClassVar[str] = "projective-response"
    columns: ClassVar[tuple[str, ...]] = ("point",)
    categorical: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super()._settled_domain()
        asked = field_order(float(self.epsilon), self.domain) if self.order is None else self.order
        order = whole("order", asked, 2, most=math.isqrt(LARGEST_SPACE), remedy="leave it out for the best one")
        if any(order % factor == 0 for factor in range(2, math.isqrt(order) + 1)) or not _fits(order, self.domain):
            msg = f"order: must be a prime whose space is small enough, got {shown(order)}; leave it out for the best."
            raise InputError(msg)
        object.__setattr__(self, "order", order)
        super().__post_init__()

    @cached_property
    def space(self) -> ProjectiveSpace:
        """Points that are reported; the first of its hyperplanes are the values."""
        return ProjectiveSpace(self.order, space_dimension(self.order, self.domain))

    @property
    def shares(self) -> tuple[Fraction, Fraction]:
        return _shares(self.space.order, self.space.dimension)

    @property
    def size(self) -> int:
        """Number of points."""
        return self.space.points

    @property
    def own_points(self) -> int:
        """Number of points in a hyperplane."""
        return ProjectiveSpace(self.space.order, self.space.dimension - 1).points

    @property
    def _width(self) -> int:
        return 4 * self.space.dimension

    def matrix(self) -> Floats:
        self._room(self.size)
        own, other = float(self.p / self.own_points), float((1 - self.p) / (self.size - self.own_points))
        points = self.space.vectors(np.arange(self.size))
        return np.where(points @ points[: self.domain].T % self.space.order == 0, own, other)

    def _drawn(self, values: Ints, rng: np.random.Generator) -> Ints:
        kept = self.kept(len(values), rng)
        found = np.empty(len(values), dtype=np.int64)
        inside = np.flatnonzero(kept)
        found[inside] = self.space.within(values[inside], _below(self.own_points, len(inside), rng))
        left = np.flatnonzero(~kept)
        while len(left):
            found[left] = _below(self.size, len(left), rng)
            # Points of the hyperplane are drawn again: all others stay alike.
            left = left[self.space.products(values[left], found[left]) == 0]
        return found[:, None]

    def _checked(self, reports: Any) -> Ints:
        checked = self.rows(reports)
        if len(checked) and not ((checked >= 0) & (checked < self.size)).all():
            msg = f"reports: a point must be a whole number from 0 to {self.size - 1}; some are not."
            raise InputError(msg)
        return checked

    def count(self, reports: Ints) -> Ints:
        return np.bincount(self._checked(reports)[:, 0], minlength=self.size).astype(np.int64)

    def supported(self, reports: Ints, value: int) -> npt.NDArray[np.bool_]:
        return self.space.products(reports[:, 0], np.array([value])) == 0

    def supports(self, counts: Ints) -> Ints:
        return self.space.hyperplane_sums(self.tallies(counts))[: self.domain]

    def fast_counts(self, true_counts: Ints, rng: np.random.Generator) -> Ints:
        counts = self.true_numbers(true_counts, rng)
        # Any point at all, whatever the value, or else one of the own hyperplane.
        anywhere = float((1 - self.p) * self.size / (self.size - self.own_points))
        own = rng.binomial(counts, 1 - anywhere)
        total = rng.multinomial(counts.sum() - own.sum(), np.full(self.size, 1 / self.size)).astype(np.int64)
        which, even = np.arange(self.own_points), np.full(self.own_points, 1 / self.own_points)
        for value in np.flatnonzero(own):
            points = self.space.within(np.full(self.own_points, value), which)
            total[points] += rng.multinomial(own[value], even)
        return total


def _below(bound: int, n: int, rng: np.random.Generator) -> Ints:
    return uniform_below(np.full(n, bound, dtype=np.int64), rng)
