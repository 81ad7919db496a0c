"""Likelihoods of a field of shares given counts of reports through a channel.

Cell v has the share `p_v` proportional to `a_v exp(w_v)`, with a the measure of the cells, and a report of kind k the
probability `q = M p`, M the channel. The channel is seen through its two products alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.core.types import Floats, Ints

Product = Callable[[Floats], Floats]
# Chances are at least this: rounding of fast products may leave less than nothing.
LEAST_CHANCE = 1e-20
# Chances next to 1 are of numbers that are known.
ALMOST_NONE = 1e-12


class Channel:
    """Probabilities M (K, V) of reports given the cell of a grid, whose cells are in C order."""

    @property
    def shape(self) -> tuple[int, int]:
        """Cells of the grid along both axes."""
        raise NotImplementedError

    @cached_property
    def matrix(self) -> Floats:
        """(K, V) dense matrix M."""
        return np.column_stack([self.forward(one) for one in np.eye(self.shape[0] * self.shape[1])])

    def forward(self, values: Floats) -> Floats:
        """(..., K) products with M, linear in values (..., V) of any sign."""
        raise NotImplementedError

    def backward(self, numbers: Floats) -> Floats:
        """(..., V) products of numbers (..., K) with the transpose of M."""
        raise NotImplementedError

    def groups(self, side: int) -> Ints:
        """(K,) groups of reports, from 0; within one, reports hardly tell apart the cells in a block of side x side."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class MatrixChannel(Channel):
    """Channel given by a dense matrix.

    Attributes
    ----------
    sides : (int, int)
    matrix : (K, V) array
    """

    sides: tuple[int, int]
    matrix: Floats = field()

    @property
    def shape(self) -> tuple[int, int]:
        return self.sides

    def forward(self, values: Floats) -> Floats:
        return np.asarray(self.matrix @ values)

    def backward(self, numbers: Floats) -> Floats:
        return np.asarray(numbers @ self.matrix)

    def groups(self, side: int) -> Ints:
        """Every report is a group of its own."""
        return np.arange(len(self.matrix))


@dataclass(frozen=True, eq=False)
class AxisChannel(Channel):
    """Channel along one axis: coordinates next to the true one have an excess of probability.

    Attributes
    ----------
    cells : int
        Coordinates.
    base : (cells + 2 h,) array
        Probabilities of reports -h .. cells - 1 + h, whatever the coordinate.
    excess : (2 h + 1,) array
        Probabilities above the base of reports at -h .. h from the coordinate.
    """

    cells: int
    base: Floats
    excess: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Cells of the axis, as a grid of one row."""
        return self.cells, 1

    def forward(self, values: Floats) -> Floats:
        return np.asarray(self.base * values.sum() + np.convolve(values, self.excess))

    def backward(self, numbers: Floats) -> Floats:
        return np.asarray(self.base @ numbers + np.convolve(numbers, self.excess[::-1], mode="valid"))

    def groups(self, side: int) -> Ints:
        """Blocks of neighbouring reports."""
        place = (np.arange(len(self.base)) - len(self.excess) // 2) // side
        return np.asarray(place - place[0])


@dataclass(frozen=True, eq=False)
class FootprintChannel(Channel):
    """Channel of a grid: cells around the true one have an excess of probability; by fast Fourier transforms.

    Reports are the cells that `outputs` marks, in lexicographic order, of a box that is wider than the grid by as much
    on either side of an axis.

    Attributes
    ----------
    sides : (int, int)
        Cells along both axes.
    excess : (2 rx + 1, 2 ry + 1) array
        Probabilities above the base of reports at offsets -rx .. rx and -ry .. ry from the true cell.
    base : float
        Probability that every report has whatever the cell.
    outputs : array of bool
        Wider than the grid by rx and ry cells at most; it may be narrower.
    """

    sides: tuple[int, int]
    excess: Floats
    base: float
    outputs: npt.NDArray[np.bool_]

    @property
    def shape(self) -> tuple[int, int]:
        return self.sides

    def forward(self, values: Floats, least: float = -np.inf) -> Floats:
        """(..., K) products with the matrix; sums of excesses below `least`, which rounding makes, are raised to it."""
        grids = values.reshape(*values.shape[:-1], *self.shape)
        box = self._back(self._ahead(grids) * self._transform)[..., *self._box]
        spread = box.reshape(*values.shape[:-1], -1) if self._all else box[..., self.outputs]
        return np.asarray(self.base * values.sum(axis=-1, keepdims=True) + np.maximum(spread, least))

    def backward(self, numbers: Floats, least: float = -np.inf) -> Floats:
        """(..., V) products of numbers (..., K) with its transpose; `least` as in `forward`."""
        lead, (nx, ny) = numbers.shape[:-1], self.sides
        box = np.zeros([*lead, *(place.stop for place in self._box)])
        if self._all:
            box[..., *self._box] = numbers.reshape(*lead, *self.outputs.shape)
        else:
            box[..., *self._box][..., self.outputs] = numbers
        gathered = self._back(self._ahead(box) * self._transform.conj())[..., :nx, :ny].reshape(*lead, nx * ny)
        return np.asarray((self.base * numbers).sum(axis=-1, keepdims=True) + np.maximum(gathered, least))

    def groups(self, side: int) -> Ints:
        """Blocks of the box."""
        i, j = (np.argwhere(self.outputs) - self._margins).T // side
        return np.unique(i * max(self.outputs.shape) + j, return_inverse=True)[1]

    @cached_property
    def _all(self) -> bool:
        """Whether every cell of the box is a report."""
        return bool(self.outputs.all())

    @cached_property
    def _margins(self) -> Ints:
        """(2,) cells by which the box is wider than the grid, on one side."""
        return np.array([(wide - side) // 2 for wide, side in zip(self.outputs.shape, self.sides, strict=True)])

    @cached_property
    def _box(self) -> tuple[slice, slice]:
        """Place of the box in the full convolution."""
        first = np.array(self.excess.shape) // 2 - self._margins
        x, y = (slice(start, start + side) for start, side in zip(first.tolist(), self.outputs.shape, strict=True))
        return x, y

    @cached_property
    def _size(self) -> tuple[int, int]:
        """Periods long enough that nothing wraps around into the box."""
        from scipy import fft  # devices draw reports without it

        nx, ny = (int(fft.next_fast_len(place.stop, real=True)) for place in self._box)
        return nx, ny

    @cached_property
    def _transform(self) -> Any:
        return self._ahead(self.excess)

    def _ahead(self, values: Floats) -> Any:
        from scipy import fft

        return fft.rfft2(values, self._size)

    def _back(self, transformed: Any) -> Floats:
        from scipy import fft

        return np.asarray(fft.irfft2(transformed, self._size))


@dataclass(frozen=True, eq=False)
class WithRest(Channel):
    """Channel that loses some reports of another one; the lost ones count as one more report, the last.

    Attributes
    ----------
    kept : Channel
        Of probabilities that sum to less than 1.
    """

    kept: Channel

    @property
    def shape(self) -> tuple[int, int]:
        return self.kept.shape

    def forward(self, values: Floats) -> Floats:
        return np.concatenate([self.kept.forward(values), (values @ self._lost)[..., None]], axis=-1)

    def backward(self, numbers: Floats) -> Floats:
        return self.kept.backward(numbers[..., :-1]) + numbers[..., -1:] * self._lost

    def groups(self, side: int) -> Ints:
        """Groups of the other channel, and one of the lost reports."""
        groups = self.kept.groups(side)
        return np.append(groups, groups.max() + 1)

    @cached_property
    def _lost(self) -> Floats:
        """(V,) probability that a report is lost."""
        kept = self.kept.backward(np.ones(len(self.kept.forward(np.zeros(self.shape[0] * self.shape[1])))))
        return np.maximum(1.0 - kept, 0.0)


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
        """(K, ...) products of changes (K, ...) of the chances, of sum zero, with the expected information on them."""
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
        """(K, ...) products of changes (K, ...) of the chances with the expected information on them."""
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
        return self.value_and_gradient(w)[1]

    def value_and_gradient(self, w: Floats) -> tuple[float, Floats]:
        """Both, with one product of the channel less."""
        shares = self.shares(w)
        chances = self.chances(shares)
        pull = self.channel.backward(self.law.slope(self.counts, chances))
        return self.law.log_density(self.counts, chances), np.asarray(shares * (pull - shares @ pull))

    def information(self, w: Floats) -> Product:
        """Function from changes (V,) of the field, or (..., V), to their products with the expected information."""
        shares = self.shares(w)
        chances = self.chances(shares)

        def product(direction: Floats) -> Floats:
            moved = shares * (direction - (direction @ shares)[..., None])
            pull = self.channel.backward(self.law.information(chances, self.channel.forward(moved).T).T)
            return np.asarray(shares * (pull - (pull @ shares)[..., None]))

        return product

    def information_matrix(self, w: Floats) -> Floats:
        """(V, V) expected information of the field; builds the channel's dense matrix."""
        shares = self.shares(w)
        chances = self.chances(shares)
        slopes = (self.channel.matrix - chances[:, None]) * shares
        return np.asarray(slopes.T @ self.law.information(chances, slopes))

    def expectation_step(self, shares: Floats) -> Floats:
        """(V,) shares after one step of expectation maximisation, where every report counts once."""
        stepped = shares * np.maximum(self.channel.backward(self.counts / self.chances(shares)), 0.0)
        return np.asarray(stepped / stepped.sum())

    def in_blocks(self, side: int) -> "ReportLikelihood":
        """The likelihood for groups of reports and blocks of side x side cells, with equal cells in a block."""
        nx, ny = self.channel.shape
        i, j = np.divmod(np.arange(nx * ny), ny)
        shape = -(-nx // side), -(-ny // side)
        block, group = (i // side) * shape[1] + j // side, self.channel.groups(side)
        measure = np.bincount(block, self.measure, minlength=shape[0] * shape[1])
        within = self.measure / np.where(measure > 0, measure, 1.0)[block]
        columns = [np.bincount(group, self.channel.forward(within * (block == b))) for b in range(len(measure))]
        channel = MatrixChannel(shape, np.column_stack(columns))
        return ReportLikelihood(channel, np.bincount(group, self.counts) / 1.0, self.law, measure / 1.0)
