"""Simulators against closed forms: numbers, K-functions, and what is reached along streets.

Means of independent runs are compared with their expectations; six standard errors are a false alarm of 2e-9 each.
"""

import numpy as np
import pytest
from scipy.spatial import cKDTree
from shapely import Polygon

import dpppsynth as dps
from dpppsynth import simulate
from dpppsynth.core.errors import InputError
from dpppsynth.evaluation import simulated_patterns

WINDOW = dps.Window.rectangle(0, 0, 200, 100)
INNER = np.array([[40, 40], [160, 60]])
# A triangle of streets with a dead end, so that paths go round and come back.
STREETS = dps.LinearNetwork([(0, 0), (60, 0), (0, 80), (-30, 0)], [(0, 1), (1, 2), (2, 0), (0, 3)])


def compare(values, expected):
    values = np.asarray(values, dtype=float)
    assert abs(values.mean() - expected) < 6 * values.std(ddof=1) / np.sqrt(len(values)), (values.mean(), expected)


def near_pairs(pattern, r):
    """Points of the inner rectangle and others within r: no edge is near them."""
    tree = cKDTree(pattern.xy)
    inside = ((pattern.xy >= INNER[0]) & (pattern.xy <= INNER[1])).all(axis=1)
    return sum(len(found) - 1 for found in tree.query_ball_point(pattern.xy[inside], r))


def thomas_k(r, parents, spread):
    return np.pi * r**2 + (1 - np.exp(-(r**2) / (4 * spread**2))) / parents


class TestPoisson:
    def test_numbers_are_poisson_and_places_uniform(self):
        triangle = dps.Window.polygon(Polygon([(0, 0), (100, 0), (0, 100)]))
        rng = np.random.default_rng(1)
        drawn = [simulate.poisson(triangle, 0.01, rng=rng) for _ in range(600)]
        numbers = np.array([len(each) for each in drawn])
        compare(numbers, 50)
        # The variance of a Poisson number's sample variance is (m + 2 m^2) / k, about.
        assert abs(numbers.var(ddof=1) - 50) < 6 * np.sqrt((50 + 2 * 50**2) / 600)
        compare([(each.xy.sum(axis=1) < 50).sum() for each in drawn], 12.5)

    def test_a_function_thins(self):
        rng = np.random.default_rng(2)
        drawn = [simulate.poisson(STREETS, lambda xy: 0.01 * (xy[:, 0] < 0), largest=0.5, rng=rng) for _ in range(400)]
        compare([len(each) for each in drawn], 0.3)
        assert all((each.xy[:, 0] < 0).all() for each in drawn)

    @pytest.mark.parametrize(
        "values", [lambda xy: np.full(len(xy), 0.2), lambda xy: -0.01 + 0 * xy[:, 0], lambda xy: 1]
    )
    def test_functions_that_break_their_bound(self, values):
        with pytest.raises(InputError, match="between 0 and largest"):
            simulate.poisson(WINDOW, values, largest=0.1, rng=1)


class TestClustersInWindows:
    def test_thomas(self):
        rng, parents, spread = np.random.default_rng(3), 0.002, 8.0
        drawn = [simulate.thomas(WINDOW, parents, 5, spread, rng=rng) for _ in range(500)]
        compare([len(each) for each in drawn], 200)
        # Without parents outside the window there would be fewer points near its border.
        compare([(each.xy[:, 1] < 5).sum() for each in drawn], 10)
        for r in (6.0, 20.0):
            expected = 0.01**2 * 120 * 20 * thomas_k(r, parents, spread)
            compare([near_pairs(each, r) for each in drawn], expected)


class TestClustersOnStreets:
    def test_thomas_has_one_intensity_everywhere(self):
        rng = np.random.default_rng(5)
        drawn = [simulate.thomas(STREETS, 0.02, 4, 10.0, rng=rng) for _ in range(800)]
        compare([len(each) for each in drawn], 0.08 * STREETS.size)
        # The last ten of a dead end, and the ten about the crossing on the street to it.
        compare([(each.xy[:, 0] < -20).sum() for each in drawn], 0.8)
        compare([((each.xy[:, 0] < 0) & (each.xy[:, 0] > -10)).sum() for each in drawn], 0.8)


class TestLogGaussianCox:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("domain", [WINDOW, STREETS])
    def test_numbers_have_the_mean_and_the_variance_of_the_model(self, domain):
        rng, intensity = np.random.default_rng(7), 0.02 if domain is WINDOW else 0.3
        covariance = dps.models.PoweredExponential(0.8, 100.0, power=1.0)
        drawn = np.array([len(simulate.lgcp(domain, intensity, covariance, rng=rng)) for _ in range(500)])
        # A few percent are lost between the vertices, where the field is linear and so varies less.
        assert drawn.mean() == pytest.approx(intensity * domain.size, rel=0.12)
        mesh = simulated_patterns._mesh(domain, 5.0 if domain is WINDOW else 2.0)
        weight = mesh.measure
        between = weight @ np.expm1(covariance.matrix(mesh)) @ weight * intensity**2
        assert drawn.var() == pytest.approx(intensity * domain.size + between, rel=0.45)

    def test_a_short_length_scale_needs_a_mesh(self):
        with pytest.raises(InputError, match="mesh"):
            simulate.lgcp(WINDOW, 1.0, dps.models.PoweredExponential(1.0, 0.5))


@pytest.mark.parametrize(
    ("numbers", "said"),
    [((0, 1, 1), "parents"), ((1, -1, 1), "size"), ((1, 1, np.nan), "spread"), ((1e6, 1e6, 1), "points")],
)
def test_refusals(numbers, said):
    with pytest.raises(InputError, match=said):
        simulate.thomas(WINDOW, *numbers)


def test_a_seed_repeats():
    one, two = (simulate.thomas(STREETS, 0.05, 3, 5.0, rng=8) for _ in range(2))
    assert np.array_equal(one.xy, two.xy)
