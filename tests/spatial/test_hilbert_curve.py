"""Hilbert's curve: what follows on it lies near."""

import numpy as np
import pytest

from dpppsynth.spatial.grid_cells import hilbert_order


@pytest.mark.parametrize("side", [2, 8, 64])
def test_each_place_of_a_grid_is_followed_by_an_adjacent_one(side):
    xy = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2) * 3.5 + [1e6, -2e5]
    # Middles of the squares of a grid whose corners are in the box.
    corners = np.array([[-0.5, -0.5], [side - 0.5, side - 0.5]]) * 3.5 + [1e6, -2e5]
    order = hilbert_order(np.concatenate([xy, corners]))
    visited = xy[order[order < len(xy)]]
    assert np.abs(np.diff(visited, axis=0)).sum(axis=1).tolist() == [3.5] * (side**2 - 1)


@pytest.mark.parametrize("xy", [np.empty((0, 2)), np.ones((1, 2)), np.ones((7, 2)), np.array([[0, 5.0], [0, 3]])])
def test_any_points_have_an_order(xy):
    assert sorted(hilbert_order(xy)) == list(range(len(xy)))
