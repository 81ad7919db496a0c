"""Likelihoods of a field of shares given counts of reports that a channel has made of its cells.

Cell v has the share `p_v` proportional to `a_v exp(w_v)`, with a the measure of the cells, and a report of kind k the
probability `q = M p`, M the channel. The channel is seen through its two products alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from dpppsynth.core.types import Floats, Ints

Product = Callable[[Floats], Floats]
# Chances are at least this: rounding of fast products may leave less than nothing.
LEAST_CHANCE = 1e-20
# Chances next to 1 are of numbers that are known.
ALMOST_NONE = 1e-12


class Channel(Protocol):
    """Probabilities M (K, V) of reports given the cell of a grid, whose cells are in C order."""

    @property
    def shape(self) -> tuple[int, int]:
        """Cells of the grid along both axes."""

    @property
    def matrix(self) -> Floats:
        """(K, V) M."""

    def forward(self, values: Floats) -> Floats:
        """(K,) product with M, linear in values (V,) of any sign."""

    def backward(self, numbers: Floats) -> Floats:
        """(V,) product of numbers (K,) with the transpose of M."""

    def groups(self, side: int) -> Ints:
        """(K,) groups of reports, from 0, that hardly tell apart the cells in a block of side x side."""


@dataclass(frozen=True, eq=False)
class MatrixChannel:
    """Channel of a matrix.

    Attributes
    ----------
    shape : (int, int)
    matrix : (K, V) array
    """

    shape: tuple[int, int]
    matrix: Floats

    def forward(self, values: Floats) -> Floats:
        """(K,) product with the matrix."""
        return np.asarray(self.matrix @ values)

    def backward(self, numbers: Floats) -> Floats:
        """(V,) product with its transpose."""
        return np.asarray(numbers @ self.matrix)

    def groups(self, side: int) -> Ints:
        """Every report is a group of its own."""
        return np.arange(len(self.matrix))


@dataclass(frozen=True, eq=False)
class FastChannel:
    """Channel of products that need no matrix.

    Attributes
    ----------
    shape : (int, int)
    forward, backward : function
    groups : function
    """

    shape: tuple[int, int]
    forward: Product
    backward: Product
    groups: Callable[[int], Ints]

    @cached_property
    def matrix(self) -> Floats:
        """(K, V) the forward product of every cell."""
        return np.column_stack([self.forward(one) for one in np.eye(self.shape[0] * self.shape[1])])


@dataclass(frozen=True)
class Multinomial:
    """Law of counts of n reports each of which counts once."""

    n: float

    def log_density(self, counts: Floats, chances: Floats) -> float:
        """Logarithm of the density, up to a constant."""
        seen = counts > 0
        return float(counts[seen] @ np.log(chances[seen]))

    def slope(self, counts: Floats, chances: Floats) -> Floats:
        """(K,) derivatives in the chances."""
        return counts / chances

    def information(self, chances: Floats, moves: Floats) -> Floats:
        """(K, ...) product of moves (K, ...) of the chances, their sum kept, with the expected information on them."""
        return np.asarray((moves.T * (self.n / chances)).T)


@dataclass(frozen=True)
class Subsets:
    """Law of hits in n subsets and of the number of empty ones, which comes last.

    The latter is binomial. Hits of a subset that is not empty are taken for independent, though their number is fixed.
    """

    n: float

    def log_density(self, counts: Floats, chances: Floats) -> float:
        """Logarithm of the density, up to a constant."""
        hits, full, hit, some = self._parts(counts, chances)
        value = hits @ np.log(hit) + (full - hits) @ np.log(_other(hit))
        return float(value + full * np.log(some) + counts[-1] * np.log(chances[-1]))

    def slope(self, counts: Floats, chances: Floats) -> Floats:
        """(K,) derivatives in the chances."""
        hits, full, hit, some = self._parts(counts, chances)
        pull = (hits / hit - (full - hits) / _other(hit)) / some
        return np.append(pull, pull @ hit - full / some + counts[-1] / chances[-1])

    def information(self, chances: Floats, moves: Floats) -> Floats:
        """(K, ...) product of moves (K, ...) of the chances with the expected information on them."""
        _, _, hit, some = self._parts(np.zeros_like(chances), chances)
        moved = (moves[:-1] + np.multiply.outer(hit, moves[-1])) / some
        pull = (moved.T * (self.n / (hit * _other(hit)))).T
        last = np.tensordot(hit, pull, 1) + moves[-1] * (self.n / (some * chances[-1]))
        return np.concatenate([pull, last[None]])

    def _parts(self, counts: Floats, chances: Floats) -> tuple[Floats, float, Floats, float]:
        """Hits, number of subsets with some, chances of a hit in such a subset, and the chance of one."""
        some = float(_other(chances[-1]))
        return counts[:-1], self.n - float(counts[-1]), np.minimum(chances[:-1] / some, 1.0), some


def _other(chances: Floats) -> Floats:
    """Chances of the other answer; not none, for where an answer is certain."""
    return np.maximum(1 - chances, ALMOST_NONE)


Law = Multinomial | Subsets


@dataclass(frozen=True, eq=False)
class ReportLikelihood:
    """Likelihood of a field w given counts of reports.

    Attributes
    ----------
    channel : Channel
    counts : (K,) array
    law : Multinomial or Subsets
        Of the counts.
    measure : (V,) array
        Of the cells, not negative; 0 where nobody can be.
    """

    channel: Channel
    counts: Floats
    law: Law
    measure: Floats

    def shares(self, w: Floats) -> Floats:
        """(V,) shares of the cells under a field (V,)."""
        # Nothing is larger than the largest, but for cells where nobody can be.
        mass = self.measure * np.exp(np.minimum(w - w[self.measure > 0].max(), 0.0))
        return np.asarray(mass / mass.sum())

    def chances(self, shares: Floats) -> Floats:
        """(K,) probabilities of the reports."""
        return np.maximum(self.channel.forward(shares), LEAST_CHANCE)

    def log_density(self, w: Floats) -> float:
        """Logarithm of the density, up to a constant."""
        return self.law.log_density(self.counts, self.chances(self.shares(w)))

    def gradient(self, w: Floats) -> Floats:
        """(V,) derivatives in the field."""
        shares = self.shares(w)
        pull = self.channel.backward(self.law.slope(self.counts, self.chances(shares)))
        return np.asarray(shares * (pull - shares @ pull))

    def information(self, w: Floats) -> Product:
        """Product with the expected information (V, V) of the field."""
        shares = self.shares(w)
        chances = self.chances(shares)

        def product(direction: Floats) -> Floats:
            moved = shares * (direction - shares @ direction)
            pull = self.channel.backward(self.law.information(chances, self.channel.forward(moved)))
            return np.asarray(shares * (pull - shares @ pull))

        return product

    def information_matrix(self, w: Floats) -> Floats:
        """(V, V) expected information of the field; makes the channel's matrix."""
        shares = self.shares(w)
        chances = self.chances(shares)
        slopes = (self.channel.matrix - chances[:, None]) * shares
        return np.asarray(slopes.T @ self.law.information(chances, slopes))

    def expectation_step(self, shares: Floats) -> Floats:
        """(V,) shares after one step of expectation maximisation, where every report counts once."""
        stepped = shares * np.maximum(self.channel.backward(self.counts / self.chances(shares)), 0.0)
        return np.asarray(stepped / stepped.sum())

    def in_blocks(self, side: int) -> "ReportLikelihood":
        """The same of blocks of side x side cells, in which all cells are alike, and of groups of reports."""
        nx, ny = self.channel.shape
        i, j = np.divmod(np.arange(nx * ny), ny)
        shape = -(-nx // side), -(-ny // side)
        block, group = (i // side) * shape[1] + j // side, self.channel.groups(side)
        measure = np.bincount(block, self.measure, minlength=shape[0] * shape[1])
        within = self.measure / np.where(measure > 0, measure, 1.0)[block]
        columns = [np.bincount(group, self.channel.forward(within * (block == b))) for b in range(len(measure))]
        channel = MatrixChannel(shape, np.column_stack(columns))
        return ReportLikelihood(channel, np.bincount(group, self.counts) / 1.0, self.law, measure / 1.0)
