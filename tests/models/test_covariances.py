"""Covariance functions: closed forms, where each is valid, and that what is refused would have been wrong."""

import json
import math

import numpy as np
import pytest
import scipy.integrate
import shapely
from scipy.spatial.distance import cdist
from scipy.special import gamma

from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.linear_network.resistance import resistances
from dpppsynth.linear_network.shortest_paths import distances
from dpppsynth.models import covariances, regular_triangulation
from dpppsynth.models.covariances import (
    GeneralisedCauchy,
    Matern,
    PoweredExponential,
    covariance_from_dict,
    require_semidefinite,
)
from dpppsynth.spatial.domains import Window

PLANE = regular_triangulation(Window.rectangle(-1, 2, 5, 6), shape=(7, 6))
EVERYWHERE = [
    PoweredExponential(0.7, 1.5, 1.0),
    PoweredExponential(1.0, 3.0, 0.4),
    Matern(0.7, 1.5, 0.5),
    Matern(2.0, 0.6, 0.2),
    GeneralisedCauchy(0.7, 1.5, 1.0, 2.0),
    GeneralisedCauchy(1.0, 0.5, 0.6, 0.3),
]
PLANE_ONLY = [
    PoweredExponential(0.7, 1.5),
    PoweredExponential(0.7, 1.5, 1.2),
    Matern(0.7, 1.5, 0.6),
    Matern(0.7, 1.5, 2.5),
    GeneralisedCauchy(0.7, 1.5, 1.2, 2.0),
    GeneralisedCauchy(0.7, 1.5, 2.0, 0.5),
]


def network(*edges, seed=0):
    """Network with vertices at random places; parallel edges and loops get courses of their own."""
    vertices = np.random.default_rng(seed).uniform(0, 4, (1 + max(map(max, edges)), 2))
    lines, seen = [], {}
    for a, b in edges:
        bends = seen[a, b] = seen.get((a, b), -1) + 1
        middle = (vertices[a] + vertices[b]) / 2 + [bends, 0.7 * bends]
        course = [vertices[a], vertices[a] + [0.5, 0], vertices[a] + [0.5, 0.4], vertices[a]] if a == b else None
        lines.append(course or ([vertices[a], middle, vertices[b]] if bends else [vertices[a], vertices[b]]))
    return LinearNetwork(vertices, edges, lines=[shapely.LineString(line) for line in lines])


def star(legs, length):
    angle = np.arange(legs) * 2 * np.pi / legs
    vertices = np.vstack([[0, 0], length * np.column_stack([np.cos(angle), np.sin(angle)])])
    return network_mesh(LinearNetwork(vertices, [(0, i + 1) for i in range(legs)]), 10 * length)


SHARED = {
    "tree": network((0, 1), (1, 2), (1, 3), (3, 4)),
    "cycle": network((0, 1), (1, 2), (2, 0)),
    "cycles at a vertex": network((0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 2)),
    "cycles joined by a street": network((0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)),
    "double edge": network((0, 1), (0, 1), (1, 2)),
    "loop": network((0, 0), (0, 1)),
    "loop alone": network((0, 0)),
    "loops at a cycle": network((0, 1), (1, 2), (2, 0), (2, 2), (2, 2)),
}
TANGLED = {
    "triple edge": network((0, 1), (0, 1), (0, 1)),
    "doubled side": network((0, 1), (1, 2), (2, 0), (0, 1)),
    "K23": network(*((a, b) for a in (0, 1) for b in (2, 3, 4))),
    "K4": network((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)),
    "wheel": network(*((0, i) for i in range(1, 6)), (1, 2), (2, 3), (3, 4), (4, 5), (5, 1)),
}
NETWORKS = SHARED | TANGLED
every_network = pytest.mark.parametrize("name", NETWORKS)


class TestFunctions:
    @pytest.mark.parametrize(
        ("smoothness", "closed"),
        [
            (0.5, lambda t: np.exp(-t)),
            (1.5, lambda t: (1 + t) * np.exp(-t)),
            (2.5, lambda t: (1 + t + t**2 / 3) * np.exp(-t)),
        ],
    )
    def test_matern_at_half_integers(self, smoothness, closed):
        t = np.concatenate([[0.0], np.geomspace(1e-12, 500, 200)])
        np.testing.assert_allclose(Matern(1.0, 3.0, smoothness).correlation(3 * t), closed(t), rtol=1e-12, atol=1e-300)

    @pytest.mark.parametrize("smoothness", [0.05, 0.31, 4.2, 20.0])
    def test_matern_by_quadrature(self, smoothness):
        """K_nu(t) is the integral of exp(-t cosh u) cosh(nu u)."""
        for t in (0.3, 1.0, 7.0):
            bessel, _ = scipy.integrate.quad(
                lambda u, t=t: math.exp(-t * math.cosh(u)) * math.cosh(smoothness * u), 0, 12, epsabs=0, epsrel=1e-12
            )
            expected = 2 ** (1 - smoothness) / gamma(smoothness) * t**smoothness * bessel
            assert Matern(1.0, 1.0, smoothness).correlation(np.array(t)) == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize("covariance", EVERYWHERE + PLANE_ONLY + [Matern(1.0, 2.0, 20.0), Matern(1.0, 2.0, 0.01)])
    def test_from_one_down_to_zero(self, covariance):
        """No overflow near 0 or far out, and no rise on the way."""
        distance = np.concatenate([[0.0], np.geomspace(1e-150, 1e30, 3000)])
        value = covariance.correlation(distance)
        assert value[0] == 1
        assert value[-1] < 1e-8
        assert np.all(np.diff(value) <= 1e-13)
        assert np.all(value >= 0)
        assert covariance.correlation(np.zeros((2, 3))).shape == (2, 3)

    def test_generalised_cauchy(self):
        t = np.array([0.0, 0.3, 2.0, 50.0])
        np.testing.assert_allclose(GeneralisedCauchy(1.0, 2.0, 2.0, 2.0).correlation(2 * t), 1 / (1 + t**2), rtol=1e-14)
        np.testing.assert_allclose(
            GeneralisedCauchy(1.0, 2.0, 0.5, 1.0).correlation(2 * t), (1 + np.sqrt(t)) ** -2.0, rtol=1e-14
        )

    @pytest.mark.parametrize("covariance", EVERYWHERE + PLANE_ONLY)
    def test_exponent_is_that_of_the_correlation_near_zero(self, covariance):
        """The exponent decides on which domains it is valid; slowly reached just below a smoothness of 1."""
        near = covariance.length_scale * np.array([1e-4, 2e-4])
        fall = 1 - covariance.correlation(near)
        assert math.log2(fall[1] / fall[0]) == pytest.approx(covariance.exponent, abs=0.03)

    @pytest.mark.parametrize("covariance", EVERYWHERE + PLANE_ONLY)
    def test_json(self, covariance):
        for each in (covariance, type(covariance)(**covariance.__dict__ | {"metric": "shortest-path"})):
            assert covariance_from_dict(json.loads(json.dumps(each.to_dict()))) == each

    def test_json_of_the_plane_is_unchanged(self):
        """Older certificates hold it."""
        data = PoweredExponential(0.5, 150.0).to_dict()
        assert list(data.items()) == [
            ("kind", "powered-exponential"),
            ("sigma", 0.5),
            ("length_scale", 150.0),
            ("power", 2.0),
        ]

    @pytest.mark.parametrize(
        ("data", "match"),
        [
            (
                {"kind": "dagum"},
                r"^covariance: kind 'dagum' is not known to this version; expected one of 'powered-exp",
            ),
            ({"kind": "matern", "sigma": 1.0, "length_scale": 1.0, "power": 1.0}, r"^covariance: .* parameters of Mat"),
            (
                {"kind": "matern", "sigma": 1.0, "length_scale": 1.0},
                r"^covariance: .* are not the parameters of Matern",
            ),
            ({"kind": "matern", "sigma": 1.0, "length_scale": 1.0, "smoothness": 21.0}, r"^smoothness: must lie in"),
        ],
    )
    def test_json_of_others_is_refused(self, data, match):
        with pytest.raises(InputError, match=match):
            covariance_from_dict(data)

    @pytest.mark.parametrize(
        ("build", "match"),
        [
            (lambda: PoweredExponential(0.0, 1.0), r"^sigma: must be positive and finite, got 0\.0"),
            (lambda: Matern(1.0, math.inf, 0.5), r"^length_scale: must be positive and finite, got inf"),
            (lambda: PoweredExponential(1.0, 1.0, 2.1), r"^power: must lie in \(0, 2\] .*, got 2\.1"),
            (lambda: GeneralisedCauchy(1.0, 1.0, math.nan, 1.0), r"^power: must lie in \(0, 2\]"),
            (lambda: GeneralisedCauchy(1.0, 1.0, 1.0, math.inf), r"^tail: must be positive and finite"),
            (lambda: Matern(1.0, 1.0, 0.0), r"^smoothness: must lie in \(0, 20\]"),
            (lambda: Matern(1.0, 1.0, 0.5, metric="crow"), r"^metric: expected one of 'resistance', 'shortest-path'"),
        ],
    )
    def test_parameters(self, build, match):
        with pytest.raises(InputError, match=match):
            build()


class TestMatrix:
    @pytest.mark.parametrize("covariance", EVERYWHERE + PLANE_ONLY)
    def test_in_the_plane(self, covariance):
        matrix = covariance.matrix(PLANE)
        distance = cdist(PLANE.vertices, PLANE.vertices)
        np.testing.assert_array_equal(matrix, covariance.sigma**2 * covariance.correlation(distance))
        assert np.linalg.eigvalsh(matrix)[0] > -1e-12

    def test_squared_exponential_is_computed_as_ever(self):
        """The same bits: certificates recompute mu from them."""
        distance = cdist(PLANE.vertices, PLANE.vertices)
        for power in (0.7, 1.0, 2.0):
            expected = 0.7**2 * np.exp(-((distance / 1.5) ** power))
            np.testing.assert_array_equal(PoweredExponential(0.7, 1.5, power).matrix(PLANE), expected)

    @every_network
    @pytest.mark.parametrize("covariance", EVERYWHERE)
    def test_of_the_resistance_metric(self, name, covariance):
        mesh = network_mesh(NETWORKS[name], 0.3)
        matrix = covariance.matrix(mesh)
        resistance = resistances(NETWORKS[name], mesh.positions, mesh.positions)
        np.testing.assert_allclose(matrix, covariance.sigma**2 * covariance.correlation(resistance), rtol=1e-6)
        np.testing.assert_array_equal(matrix, matrix.T)
        assert np.linalg.eigvalsh(matrix)[0] > 0

    def test_too_many_vertices(self, monkeypatch):
        monkeypatch.setattr(covariances, "MOST_POINTS", 41)
        with pytest.raises(InputError, match=r"^mesh: a covariance over 42 vertices is too large; take at most 41"):
            PoweredExponential(1.0, 1.0).matrix(PLANE)


class TestValidity:
    @pytest.mark.parametrize("covariance", PLANE_ONLY)
    def test_smooth_functions_are_refused_on_networks(self, covariance):
        """Rightly: with short legs, 1 - c t^p at distance t and 1 - c (2t)^p at 2t cannot both be, for p > 1."""
        mesh = star(60, covariance.length_scale / 50)
        with pytest.raises(InputError, match=r"^covariance: .* is not a covariance on linear networks.* power=1\)"):
            covariance.matrix(mesh)
        wrong = covariance.sigma**2 * covariance.correlation(mesh.metric)
        assert np.linalg.eigvalsh(wrong)[0] < -1e-6 * covariance.sigma**2
        with pytest.raises(PrivacyCheckError, match=r"^covariance: its matrix has a negative eigenvalue"):
            require_semidefinite(wrong)

    def test_squared_exponential_on_a_star_in_closed_form(self):
        """Five legs of half a length scale: the part that treats all legs alike has this determinant."""
        near, far = math.exp(-0.25), math.exp(-1)
        assert 1 + 4 * far - 5 * near**2 < 0
        mesh = star(5, 0.5)
        value = np.linalg.eigvalsh(PoweredExponential(1.0, 1.0).correlation(mesh.metric))
        assert np.prod(value) == pytest.approx((1 - far) ** 4 * (1 + 4 * far - 5 * near**2), rel=1e-9)

    @pytest.mark.parametrize("name", SHARED)
    @pytest.mark.parametrize("covariance", EVERYWHERE)
    def test_shortest_paths_where_cycles_share_no_edge(self, name, covariance):
        mesh = network_mesh(SHARED[name], 0.3)
        matrix = type(covariance)(**covariance.__dict__ | {"metric": "shortest-path"}).matrix(mesh)
        path = distances(SHARED[name], mesh.positions, mesh.positions)
        np.testing.assert_allclose(matrix, covariance.sigma**2 * covariance.correlation(path), rtol=1e-6)
        assert np.linalg.eigvalsh(matrix)[0] > 0
        if name == "tree":
            np.testing.assert_allclose(matrix, covariance.matrix(mesh), rtol=1e-6)

    @pytest.mark.parametrize("name", TANGLED)
    def test_shortest_paths_are_refused_elsewhere(self, name):
        with pytest.raises(InputError, match=r"^metric: 'shortest-path' .* no two cycles share .*'resistance'"):
            PoweredExponential(1.0, 1.0, 1.0, metric="shortest-path").matrix(network_mesh(TANGLED[name], 0.5))

    def test_rightly(self):
        """K_{2,3} with streets of equal length: a negative eigenvalue under shortest paths, none under resistance."""
        places = [(0, 1), (0, -1), (-math.sqrt(3), 0), (0, 0), (math.sqrt(3), 0)]
        edges = [(a, b) for a in (0, 1) for b in (2, 3, 4)]
        lines = [
            shapely.LineString([places[a], places[b]] if b != 3 else [places[a], (0.75**0.5, places[a][1] / 2), (0, 0)])
            for a, b in edges
        ]
        mesh = network_mesh(LinearNetwork(places, edges, lines=lines), 5.0)
        np.testing.assert_allclose(mesh.path_lengths[0], [0, 4, 2, 2, 2])
        wrong = np.exp(-mesh.path_lengths / 40)
        assert np.linalg.eigvalsh(wrong)[0] < -1e-3
        assert np.linalg.eigvalsh(PoweredExponential(1.0, 40.0, 1.0).matrix(mesh))[0] > 1e-3
        with pytest.raises(PrivacyCheckError, match=r"^covariance: its matrix has a negative eigenvalue"):
            require_semidefinite(wrong)

    def test_shortest_paths_are_for_networks(self):
        with pytest.raises(InputError, match=r"^metric: 'shortest-path' is for linear networks"):
            PoweredExponential(1.0, 1.0, metric="shortest-path").matrix(PLANE)

    def test_a_function_that_only_looks_right_is_caught_on_the_mesh(self):
        """The triangular one is a covariance on the line, and starts like the exponential; on nine legs it is none."""

        class Triangular(PoweredExponential):
            def correlation(self, distance):
                return np.maximum(1 - distance / self.length_scale, 0)

        Triangular(1.0, 1.0, 1.0).matrix(star(2, 0.5))
        with pytest.raises(PrivacyCheckError, match=r"^covariance: its matrix has a negative eigenvalue"):
            Triangular(1.0, 1.0, 1.0).matrix(star(9, 0.5))

    def test_singular_matrices_pass(self):
        """Fields of one coefficient, and nearly constant ones, exist."""
        values = np.random.default_rng(0).normal(size=300)
        require_semidefinite(np.outer(values, values))
        PoweredExponential(1.0, 1e13, 1.0).matrix(network_mesh(SHARED["tree"], 0.05))
