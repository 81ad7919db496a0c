"""Kernel intensities against closed forms, quadrature and other software's numbers."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import shapely

from dpppsynth.core.errors import InputError
from dpppsynth.evaluation.smoothing import kernel_intensity
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.models import regular_triangulation
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern

SQUARE = Window.rectangle(0, 0, 1, 1)
HOLE = Window.polygon(
    shapely.Polygon(
        [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)], [[(0.2, 0.2), (0.2, 0.6), (0.6, 0.6), (0.6, 0.2)]]
    )
)
STREET = LinearNetwork([[0, 0], [10, 0]], [[0, 1]])


def test_values_equal_an_independent_implementation():
    path = Path(__file__).parents[1] / "data" / "soho_planar_density_sigma80_diggle.csv"
    *xy, expected = np.loadtxt(path, delimiter=",", skiprows=1).T
    pattern = PointPattern(np.transpose(xy), Window.rectangle(528900, 180500, 530000, 181500))
    np.testing.assert_allclose(kernel_intensity(pattern, 80)(pattern.xy), expected, rtol=1e-6)


@pytest.mark.exhaustive
@pytest.mark.parametrize("correction", ["diggle", "uniform", "none"])
def test_totals_are_integrals(correction):
    xy = np.random.default_rng(1).random((60, 2)) * 2
    pattern = PointPattern(xy[HOLE.contains(xy)], HOLE)
    found = kernel_intensity(pattern, 0.15, correction)
    nodes, _, area = regular_triangulation(HOLE, spacing=0.03).pieces.quadrature()
    assert found.total == pytest.approx(found(nodes) @ area, rel=1e-6)
    share = {"diggle": 1, "uniform": 1, "none": 0.8}[correction]
    assert found.total / len(pattern) == pytest.approx(share, abs=0.1)


@pytest.mark.parametrize("bandwidth", [4.0, 9.0, 1000.0])
def test_totals_under_wide_kernels(bandwidth):
    xy = np.add(np.random.default_rng(2).random((20, 2)), [0.8, 0])
    found = kernel_intensity(PointPattern(xy, HOLE), bandwidth, "uniform")
    nodes, _, area = regular_triangulation(HOLE, spacing=0.03).pieces.quadrature()
    assert found.total == pytest.approx(found(nodes) @ area, rel=1e-5)
    # Flat, and with all digits: each kernel divided by its mass.
    for correction in ("uniform", "diggle"):
        flat = kernel_intensity(PointPattern(xy, HOLE), 1000.0, correction)(xy)
        np.testing.assert_allclose(flat, 20 / HOLE.area, rtol=5e-6)


def test_corrections_at_a_corner():
    # A quarter of the kernel at the corner is inside, all of that in the middle.
    middle, corner, peak = [0.5, 0.5], [0.0, 0.0], 1 / (2 * np.pi * 0.05**2)
    at_corner, in_middle = (PointPattern([place], SQUARE) for place in (corner, middle))
    across = peak * np.exp(-((0.1 / 0.05) ** 2) / 2)
    for correction, expected in (("diggle", [4, 4]), ("uniform", [4, 2]), ("none", [1, 1])):
        f = kernel_intensity(at_corner, 0.05, correction)
        assert f([corner])[0] == pytest.approx(expected[0] * peak)
        # At the middle of a side, half of a kernel there is inside, but for the corner two standard deviations away.
        inside = 0.5 * 0.9772498680518208 if correction == "uniform" else 1 / expected[1]
        assert f([[0.1, 0]])[0] == pytest.approx(across / inside)
        assert kernel_intensity(in_middle, 0.05, correction)([middle])[0] == pytest.approx(peak)


def test_heat_on_a_long_street_is_a_gaussian():
    pattern = STREET.pattern([0, 0, 0], [0.5, 0.5, 0.0])
    f = kernel_intensity(pattern, 0.5)
    x = np.linspace(0, 10, 401)
    y = f(np.column_stack([x, np.zeros(401)]))
    kernel = np.exp(-((x - 5) ** 2) / 0.5) / (0.5 * np.sqrt(2 * np.pi))
    # At the end of the street the kernel is reflected.
    end = 2 * np.exp(-(x**2) / 0.5) / (0.5 * np.sqrt(2 * np.pi))
    assert np.abs(y - 2 * kernel - end).max() < 0.02 * kernel.max()
    assert np.trapezoid(y, x) == pytest.approx(f.total, rel=1e-4)
    assert f.total == 3


def test_heat_passes_crossings():
    cross = LinearNetwork([[0, 0], [5, 0], [-5, 0], [0, 5]], [[0, 1], [0, 2], [0, 3]])
    f = kernel_intensity(cross.pattern([0], [0.0]), 1.0)
    left, right, up = f([[-1.03, 0], [1.03, 0], [0, 1.03]])
    assert left == pytest.approx(right)
    assert up == pytest.approx(right)
    # Three ways share what two have on a street.
    assert right == pytest.approx(2 / 3 * np.exp(-(1.03**2) / 2) / np.sqrt(2 * np.pi), rel=0.02)


@pytest.mark.parametrize("domain", [SQUARE, STREET])
def test_empty_synthetic_patterns_have_no_intensity(domain):
    f = kernel_intensity(PointPattern.at(np.empty((0, 2)), domain, synthetic=True), 0.5)
    assert f.total == 0
    assert f([[0.5, 0.0]]).tolist() == [0]


def test_nothing_of_the_points_is_shown():
    pattern = PointPattern([[0.123, 0.456], [0.789, 0.5]], SQUARE, {"age": [31, 32]})
    f = kernel_intensity(pattern, 0.25)
    assert repr(f) == f"GaussianIntensity({SQUARE!r}, bandwidth 0.25)"
    assert "123" not in repr(kernel_intensity(STREET.pattern([0], [0.123]), 1.0))
    assert pickle.loads(pickle.dumps(f))(pattern.xy).tolist() == f(pattern.xy).tolist()


@pytest.mark.parametrize("domain", [SQUARE, STREET])
@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"bandwidth": 0}, "bandwidth"),
        ({"bandwidth": np.nan}, "bandwidth"),
        ({"bandwidth": True}, "bandwidth"),
        ({"bandwidth": 1e-20}, "bandwidth:"),
        ({"bandwidth": 1e6}, "bandwidth:"),
        ({"correction": ["none"]}, "correction"),
        ({"bandwidth": "wide"}, "bandwidth"),
        ({"correction": "ripley"}, "correction"),
        ({"pattern": [[0, 0]]}, "PointPattern"),
    ],
)
def test_bad_arguments_are_refused(domain, change, match):
    arguments = {"pattern": PointPattern([[0.5, 0.0]], domain), "bandwidth": 1.0} | change
    with pytest.raises(InputError, match=match):
        kernel_intensity(**arguments)


@pytest.mark.parametrize("domain", [SQUARE, STREET])
@pytest.mark.parametrize(
    "xy", [[[np.nan, 0.5]], [[0.5, np.inf]], "abc", [[0.5], [0.5, 0.5]], [0.1, 0.2, 0.3], [["0", "1"]]]
)
def test_bad_coordinates_are_refused(domain, xy):
    with pytest.raises(InputError, match=r"^xy:"):
        kernel_intensity(PointPattern([[0.5, 0.0]], domain), 1.0)(xy)


def test_a_grid_and_single_places_agree():
    rng = np.random.default_rng(8)
    f = kernel_intensity(PointPattern(rng.random((300, 2)), Window.rectangle(0, 0, 1, 1)), 0.1)
    xy = np.stack(np.meshgrid(np.linspace(0, 1, 7), np.linspace(0, 1, 5)), axis=-1).reshape(-1, 2)
    np.testing.assert_allclose(f(xy), [f(each)[0] for each in xy], rtol=1e-12)
    np.testing.assert_allclose(f(rng.permutation(xy)).sum(), f(xy).sum(), rtol=1e-12)


def test_nowhere_there_are_no_values():
    f = kernel_intensity(PointPattern([[0.5, 0.5]], Window.rectangle(0, 0, 1, 1)), 0.1)
    assert f(np.empty((0, 2))).shape == (0,)
