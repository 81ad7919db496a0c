"""Points at distances along broken lines: those of shapely, to the last digit."""

import numpy as np
import pytest
import shapely

from dpppsynth.linear_network import LinearNetwork
from dpppsynth.linear_network.skeleton import PointsAlong
from dpppsynth.spatial.patterns import PointPattern


def wiggling(rng, corners):
    return np.array([shapely.linestrings(5e5 + np.cumsum(rng.normal(size=(k, 2)), axis=0)) for k in corners])


@pytest.mark.parametrize("corners", [[2], [2, 2, 2], [5], [2, 9, 3, 2, 40, 4]])
def test_points_are_those_of_shapely(corners):
    rng = np.random.default_rng(3)
    lines = wiggling(rng, corners)
    line = rng.integers(len(lines), size=2000)
    along = rng.random(2000) * shapely.length(lines)[line]
    # At the beginning, at the end, beyond it by a rounding error, and on corners.
    along[:50] = 0
    along[50:100] = shapely.length(lines)[line[50:100]] * (1 + 1e-12)
    whole = shapely.get_coordinates(lines[line[100]])
    line[100:110] = line[100]
    along[100:110] = np.hypot(*(whole[1] - whole[0]))
    expected = shapely.get_coordinates(shapely.line_interpolate_point(lines[line], along))
    np.testing.assert_array_equal(PointsAlong(lines).at(line, along), expected)


def test_distances_below_zero_are_the_beginning():
    lines = wiggling(np.random.default_rng(1), [4])
    found = PointsAlong(lines).at(np.array([0]), np.array([-1e-9]))
    np.testing.assert_array_equal(found[0], shapely.get_coordinates(lines)[0])


def test_positions_of_synthetic_points_are_on_curved_edges():
    ends = np.array([[0.0, 0.0], [10.0, 0.0]])
    curve = shapely.linestrings([[0, 0], [3, 4], [7, 4], [10, 0]])
    network = LinearNetwork(ends, np.array([[0, 1]]), lines=np.array([curve]))
    drawn = PointPattern.drawn(np.array([[0.0, 2.5], [0.0, 7.0]]), network)
    np.testing.assert_allclose(drawn.xy, [[1.5, 2.0], [5.0, 4.0]], atol=1e-6)
    assert network.contains(drawn.xy).all()
    assert not drawn.xy.flags.writeable
    assert not drawn.positions.flags.writeable
