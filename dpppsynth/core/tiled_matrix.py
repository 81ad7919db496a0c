"""`TiledMatrix`: a matrix whose rows come in tiles and are zero outside columns that a tile has in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpppsynth.core.types import Floats, Ints


@dataclass(frozen=True, eq=False, repr=False)
class TiledMatrix:
    """(T, U) matrix of dense blocks.

    Attributes
    ----------
    tiles : tuple of (b,) arrays
        Rows of each tile; every row is in one.
    columns : tuple of (u,) arrays
        Columns, in rising order, outside which the tile's rows are zero; each is some tile's.
    values : tuple of (b, u) arrays

    Examples
    --------
    >>> near = TiledMatrix((np.array([0]), np.array([1])), (np.array([0, 1]), np.array([1])),
    ...                    (np.array([[0.5, 0.5]]), np.array([[1.0]])))
    >>> near.rows(np.array([1, 0]))
    array([[0. , 1. ],
           [0.5, 0.5]])
    """

    tiles: tuple[Ints, ...]
    columns: tuple[Ints, ...]
    values: tuple[Floats, ...]

    @classmethod
    def of(cls, matrix: Floats) -> TiledMatrix:
        """A dense matrix (T, U), as one tile."""
        rows, columns = (np.arange(size) for size in matrix.shape)
        return cls((rows,), (columns,), (matrix,))

    @cached_property
    def _tile(self) -> Ints:
        """(T,) tile of each row."""
        out = np.empty(sum(map(len, self.tiles)), dtype=np.int64)
        for number, tile in enumerate(self.tiles):
            out[tile] = number
        return out

    @cached_property
    def _place(self) -> Ints:
        """(T,) number of each row in its tile."""
        out = np.empty(len(self), dtype=np.int64)
        for tile in self.tiles:
            out[tile] = np.arange(len(tile))
        return out

    @cached_property
    def _width(self) -> int:
        return 1 + max(int(each[-1]) for each in self.columns)

    def __len__(self) -> int:
        return len(self._tile)

    def row(self, number: int) -> tuple[Ints, Floats]:
        """Columns (u,) and values (u,) of a row."""
        tile = self._tile[number]
        return self.columns[tile], self.values[tile][self._place[number]]

    def rows(self, numbers: Ints) -> Floats:
        """(n, U) rows with these numbers (n,)."""
        return self._filled(numbers, np.arange(self._width))

    def summed(self, weights: Floats) -> Floats:
        """(U,) sum of the rows with weights (T,)."""
        out = np.zeros(self._width)
        for tile, columns, values in zip(self.tiles, self.columns, self.values, strict=True):
            out[columns] += weights[tile] @ values
        return out

    def squared(self, columns: tuple[Ints, ...]) -> TiledMatrix:
        """The square of a square matrix, of which each tile keeps the given columns alone."""
        values = []
        for mine, kept in enumerate(columns):
            reached = self.columns[mine]
            out, through = np.zeros((len(self.tiles[mine]), len(self))), self._tile[reached]
            for tile in np.unique(through):
                among = np.flatnonzero(through == tile)
                onward = self.values[tile][self._place[reached[among]]]
                out[:, self.columns[tile]] += self.values[mine][:, among] @ onward
            values.append(out[:, kept])
        return TiledMatrix(self.tiles, columns, tuple(values))

    def blocks(self, pairs: Ints) -> Iterator[tuple[Ints, Floats, Ints]]:
        """Pairs of rows (m, 2) by parts that fit into memory.

        Yields
        ------
        numbers : (k,) array
            Those of the part among all pairs.
        block : (r, u) array
            Rows of the part, in all columns where one of them may differ from zero.
        local : (k, 2) array
            Its pairs, as rows of the block.
        """
        first = self._tile[pairs[:, 0]]
        for tile in np.unique(first):
            numbers = np.flatnonzero(first == tile)
            needed, local = np.unique(pairs[numbers], return_inverse=True)
            columns = [self.columns[each] for each in np.unique(self._tile[needed])]
            together = columns[0] if len(columns) == 1 else np.unique(np.concatenate(columns))
            yield numbers, self._filled(needed, together), local.reshape(-1, 2)

    def _filled(self, numbers: Ints, columns: Ints) -> Floats:
        """(n, u) rows in columns that hold all of theirs."""
        out, tiles = np.zeros((len(numbers), len(columns))), self._tile[numbers]
        for tile in np.unique(tiles):
            at = np.flatnonzero(tiles == tile)
            out[np.ix_(at, np.searchsorted(columns, self.columns[tile]))] = self.values[tile][self._place[numbers[at]]]
        return out
