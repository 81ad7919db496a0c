"""Total variation distances against closed forms on windows and networks."""

import numpy as np
import pytest
import shapely
from scipy.stats import norm

from dpppsynth.core.errors import InputError
from dpppsynth.evaluation.distances import misplaced_share, quadrature, total_variation
from dpppsynth.evaluation.smoothing import kernel_intensity
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.models.regular_meshes import regular_squares
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.intensity import PiecewiseConstant
from dpppsynth.spatial.patterns import PointPattern

SQUARE = Window.rectangle(0, 0, 1, 1)
# Coordinates as in a national grid, an annulus, so that cells are cut.
RING = Window.polygon(shapely.Point(529400, 181000).buffer(400).difference(shapely.Point(529450, 180950).buffer(150)))
STREET = LinearNetwork([[0, 0], [1, 0], [1, 3]], [[0, 1], [1, 2]])


def flat(xy):
    return np.ones(len(xy))


def bump(centre, deviation):
    return lambda xy: np.exp(-((xy - centre) ** 2).sum(axis=1) / (2 * deviation**2))


@pytest.mark.parametrize("deviation", [0.05, 0.02])
@pytest.mark.parametrize("shift", [0.01, 0.05, 0.1])
def test_shifted_bumps_are_as_far_apart_as_normal_laws(deviation, shift):
    other = np.array([0.45, 0.4]) + shift * np.array([0.6, 0.8])
    found = total_variation(bump([0.45, 0.4], deviation), bump(other, deviation), SQUARE)
    assert found == pytest.approx(2 * norm.cdf(shift / deviation / 2) - 1, abs=1e-4)


def test_each_intensity_is_divided_by_its_integral():
    def slope(xy):
        return xy[:, 0]

    assert total_variation(slope, flat, SQUARE) == pytest.approx(0.25, abs=1e-6)
    assert total_variation(lambda xy: 1e6 * slope(xy), flat, SQUARE) == pytest.approx(0.25, abs=1e-6)
    assert total_variation(flat, slope, SQUARE) == pytest.approx(0.25, abs=1e-6)
    assert total_variation(slope, lambda xy: 3 * slope(xy), SQUARE) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("cells", [7, 20, 37])
def test_jumps_cost_a_few_thousandths(cells, rng):
    p, q = rng.gamma(0.5, size=(2, cells, cells))
    mesh = regular_squares(SQUARE, shape=(cells + 1, cells + 1))
    found = total_variation(PiecewiseConstant(mesh, p.ravel()), PiecewiseConstant(mesh, q.ravel()), SQUARE)
    assert found == pytest.approx(np.abs(p / p.sum() - q / q.sum()).sum() / 2, abs=5e-3)


@pytest.mark.slow
def test_only_the_part_inside_the_window_counts():
    inner = shapely.Point(529300, 181200).buffer(90)
    shapely.prepare(inner)
    found = total_variation(flat, lambda xy: shapely.contains_xy(inner, *xy.T), RING)
    assert found == pytest.approx(1 - inner.area / RING.area, abs=1e-3)
    assert quadrature(RING)[1].sum() == pytest.approx(RING.area, rel=1e-9)
    assert RING.contains(quadrature(RING)[0]).all()


def test_on_a_network_lengths_count():
    """A rule by vertices, edges or the plane would weight the two edges alike, or fail altogether."""
    assert total_variation(flat, lambda xy: xy[:, 1] > 0, STREET) == pytest.approx(1 / 4, abs=1e-9)
    assert total_variation(flat, lambda xy: xy[:, 1], STREET) == pytest.approx(1 / 4 + 1.125 / 8, abs=1e-6)
    mesh = network_mesh(STREET, 1.5)
    values = np.array([1.0, 0.0, 2.0])[np.argsort(np.argsort(mesh.edge * 10 + mesh.start))]
    # Masses 1, 0, 3 of segments 1, 1.5, 1.5 long.
    found = total_variation(PiecewiseConstant(mesh, values), flat, STREET)
    assert found == pytest.approx((abs(1 / 4 - 1 / 4) + 3 / 8 + (3 / 4 - 3 / 8)) / 2, abs=1e-4)


@pytest.mark.parametrize("domain", [SQUARE, STREET], ids=["window", "network"])
def test_disjoint_intensities_are_one_apart(domain):
    left, right = (lambda xy: xy[:, 1] < 0.5), (lambda xy: xy[:, 1] > 0.5)
    assert total_variation(left, right, domain) == pytest.approx(1)


def test_bad_intensities_are_named():
    mesh = regular_squares(Window.rectangle(0, 0, 2, 1), spacing=1.0)
    elsewhere = PiecewiseConstant(mesh, np.ones(len(mesh.elements)))
    refused = [
        lambda xy: -flat(xy),
        lambda xy: flat(xy) * np.nan,
        lambda xy: 0 * flat(xy),
        lambda xy: 1.0,
        lambda xy: ["a"] * len(xy),
        lambda xy: [[1], [1, 2]],
        lambda xy: 1j * flat(xy),
        elsewhere,
        kernel_intensity(PointPattern([[0.5, 0.5]], mesh.domain), 0.1),
        3.0,
    ]
    for bad in refused:
        with pytest.raises(InputError, match=r"^other:"):
            total_variation(flat, bad, SQUARE)
    with pytest.raises(TypeError, match="no len"):
        total_variation(flat, lambda xy: len(3), SQUARE)
    with pytest.raises(InputError, match=r"^domain:"):
        total_variation(flat, flat, shapely.box(0, 0, 1, 1))


def pattern(xy, domain=SQUARE):
    return PointPattern.synthetic(xy, domain)


@pytest.mark.parametrize("side", [0.5, 0.3, 0.1, 0.07, 1.0, 5.0])
def test_points_on_the_upper_border_belong_to_the_last_square(side):
    """A histogram whose last edge falls short of the border by a rounding error loses them: a distance of 0 or 1/2."""
    corner, beside = [[1.0, 1.0], [0, 0]], [[1 - 1e-9, 1 - 1e-9], [1e-9, 1e-9]]
    assert misplaced_share(pattern(corner), pattern(beside), side) == 0
    assert misplaced_share(pattern(corner[:1]), pattern(corner[1:]), side) == float(side < 1)


def test_a_box_of_three_squares_has_no_fourth():
    """2.1 / 0.7 is 3.0000000000000004 in floating point."""
    window = Window.rectangle(0, 0, 2.1, 2.1)
    assert misplaced_share(pattern([[2.1, 2.1]], window), pattern([[2.05, 2.05]], window), 0.7) == 0


def test_shares_not_counts_are_compared(rng):
    xy = rng.random((40, 2))
    assert misplaced_share(pattern(xy), pattern(np.concatenate([xy, xy, xy])), 0.1) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("side", [0.25, 0.4, 1e-12])
def test_misplaced_share_is_half_the_difference_of_histograms(side, rng):
    ours, theirs = rng.random((50, 2)) * 0.99, rng.random((70, 2)) ** 2 * 0.99
    found = misplaced_share(pattern(ours), pattern(theirs), side)
    if side < 1e-6:
        assert found == pytest.approx(1)
        return
    edges = np.arange(0, 1 + side, side)
    shares = [np.histogram2d(*xy.T, bins=(edges, edges))[0] / len(xy) for xy in (ours, theirs)]
    assert found == pytest.approx(np.abs(shares[0] - shares[1]).sum() / 2)


def test_squares_start_at_the_corner_of_the_box_on_networks_too():
    shifted = LinearNetwork(STREET.vertices + 529000.5, STREET.edges)
    ours, theirs = (shifted.pattern([1, 1], along) for along in ([0.2 / 3, 2.2 / 3], [0.8 / 3, 0.4]))
    assert misplaced_share(ours, theirs, 1.0) == 0.5
    assert misplaced_share(ours, theirs, 3.0) == 0


def test_an_empty_pattern_has_nothing_in_common():
    assert misplaced_share(pattern([[0.5, 0.5]]), pattern([]), 0.1) == 1
    assert misplaced_share(pattern([]), pattern([[0.5, 0.5]]), 0.1) == 1
    assert misplaced_share(pattern([]), pattern([]), 0.1) == 0


def test_bad_arguments_of_the_misplaced_share():
    some = pattern([[0.123, 0.456]])
    for side in (0, -1.0, np.nan, np.inf, True, "1"):
        with pytest.raises(InputError, match=r"^side:"):
            misplaced_share(some, some, side)
    with pytest.raises(InputError, match=r"^synthetic:") as refused:
        misplaced_share(some, pattern([[0.123, 0.456]], Window.rectangle(0, 0, 2, 1)), 0.1)
    assert "0.123" not in str(refused.value)
    with pytest.raises(InputError, match=r"^synthetic:"):
        misplaced_share(some, [[0, 0]], 0.1)


def test_equal_domains_need_not_be_one_object():
    twin = Window.rectangle(0, 0, 1, 1)
    assert misplaced_share(pattern([[0.5, 0.5]]), pattern([[0.5, 0.5]], twin), 0.1) == 0


@pytest.fixture
def rng():
    return np.random.default_rng(20240607)
