"""Matrices of tiles against the same ones written out."""

import numpy as np
import pytest

from dpppsynth.core.tiled_matrix import TiledMatrix

SIZE, TILES = 23, 5


def scattered(seed):
    """Tiles of scattered rows and columns, and the matrix written out."""
    rng = np.random.default_rng(seed)
    tiles = tuple(np.sort(part) for part in np.array_split(rng.permutation(SIZE), TILES))
    columns = tuple(np.union1d(tile, rng.choice(SIZE, 6, replace=False)) for tile in tiles)
    values = tuple(rng.random((len(tile), len(each))) for tile, each in zip(tiles, columns, strict=True))
    full = np.zeros((SIZE, SIZE))
    for tile, each, value in zip(tiles, columns, values, strict=True):
        full[np.ix_(tile, each)] = value
    return TiledMatrix(tiles, columns, values), full


@pytest.mark.parametrize("seed", range(5))
class TestScattered:
    def test_rows_and_sums(self, seed):
        tiled, full = scattered(seed)
        rng = np.random.default_rng(seed)
        numbers, weights = rng.integers(0, SIZE, 40), rng.random(SIZE)
        assert len(tiled) == SIZE
        assert np.array_equal(tiled.rows(numbers), full[numbers])
        np.testing.assert_allclose(tiled.summed(weights), weights @ full, rtol=1e-13)
        for number in range(SIZE):
            columns, values = tiled.row(number)
            assert np.array_equal(full[number, columns], values)
            assert values.sum() == pytest.approx(full[number].sum(), rel=1e-13)

    def test_square_within_other_columns(self, seed):
        tiled, full = scattered(seed)
        rng = np.random.default_rng(seed + 100)
        kept = tuple(np.union1d(tile, rng.choice(SIZE, 9, replace=False)) for tile in tiled.tiles)
        square = tiled.squared(kept)
        for tile, columns in zip(tiled.tiles, kept, strict=True):
            wanted = np.zeros((len(tile), SIZE))
            wanted[:, columns] = (full @ full)[np.ix_(tile, columns)]
            np.testing.assert_allclose(square.rows(tile), wanted, rtol=1e-13, atol=0)

    def test_blocks_hold_every_pair_once_with_all_that_is_not_zero(self, seed):
        """Columns of one of two rows alone count: what the other lacks is an infinite loss."""
        tiled, full = scattered(seed)
        pairs = np.random.default_rng(seed + 200).integers(0, SIZE, (60, 2))
        seen = []
        for numbers, block, local in tiled.blocks(pairs):
            seen.append(numbers)
            for number, (i, j) in zip(numbers, local, strict=True):
                first, second = full[pairs[number]]
                either = (first > 0) | (second > 0)
                assert sorted(zip(first[either], second[either], strict=True)) == sorted(
                    (p, q) for p, q in zip(block[i], block[j], strict=True) if p or q
                )
        assert np.array_equal(np.sort(np.concatenate(seen)), np.arange(len(pairs)))


def test_a_dense_matrix_need_not_be_square():
    matrix = np.random.default_rng(0).random((2, 7))
    tiled = TiledMatrix.of(matrix)
    assert np.array_equal(tiled.rows(np.array([1, 0])), matrix[::-1])
    ((numbers, block, local),) = tiled.blocks(np.array([[0, 1]]))
    assert np.array_equal(block[local[0]], matrix)
    assert numbers.tolist() == [0]
