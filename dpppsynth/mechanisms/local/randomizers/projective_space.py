"""Points and hyperplanes of a projective space over a field of prime order, numbered, in whole numbers.

A point is a vector of `dimension` numbers modulo the order whose first one that is not zero is 1. Read as digits, these
vectors are the numbers from `order^m` up to, without, `2 order^m` for m = 0, 1, ..., and points are numbered in their
order. Hyperplanes are named by points as well: that of u holds all y whose product with u is zero.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpppsynth.core.types import Ints


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
