"""Intensities on a mesh: values, integrals, bounds."""

from decimal import Decimal, getcontext

import numpy as np
import pytest
import scipy.integrate
import shapely
from shapely.geometry import Polygon

from dpppsynth.core.errors import InputError
from dpppsynth.models import regular_squares, regular_triangulation
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.intensity import LogLinear, LogLinearMean, PiecewiseConstant, PiecewiseLinear
from dpppsynth.spatial.mesh import Mesh, exp_divided_difference, gathered_rule, gauss_exp, gauss_rule
from dpppsynth.spatial.offset import Offset

HOLED = Window.polygon(shapely.box(0, 0, 4, 3).difference(Polygon([(1.1, 0.7), (3.2, 1.1), (2.2, 2.6)])))
RECTANGLE = Window.rectangle(0, 0, 4, 3)
BUILDERS = {"triangles": regular_triangulation, "squares": regular_squares}
MESHES = {
    f"{b}, {w}": build(window, shape=(6, 5))
    for b, build in BUILDERS.items()
    for w, window in (("rectangle", RECTANGLE), ("hole", HOLED))
}
OFFSET = Offset.from_grid([[1, 3, 0.5], [2, 0, 4]], (0, 0, 4, 3))
every_mesh = pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)


def normal(mesh, *shape, seed=0, sd=1.5):
    return np.random.default_rng(seed).normal(0, sd, (*shape, len(mesh.vertices)))


def inside(window, n=2000, seed=0):
    x0, y0, x1, y1 = window.bounds
    xy = np.random.default_rng(seed).uniform((x0, y0), (x1, y1), (n, 2))
    return xy[window.contains(xy)]


def quadrature(intensity, order=24):
    """Reference integral: every element's part triangulated, a fine Gauss rule, values by the intensity's own call."""
    mesh, total = intensity.mesh, 0.0
    x, w = np.polynomial.legendre.leggauss(order)
    u, v = (g.ravel() for g in np.meshgrid((x + 1) / 2, (x + 1) / 2, indexing="ij"))
    rule = np.outer(w, w).ravel() / 4 * u
    for element, polygon in enumerate(mesh.element_polygons):
        part = shapely.intersection(polygon, mesh.domain.geometry)
        for triangle in shapely.constrained_delaunay_triangles(part).geoms:
            a, b, c = shapely.get_coordinates(triangle)[:3]
            xy = a + np.outer(u * (1 - v), b - a) + np.outer(u * v, c - a)
            which = np.full(len(xy), element)
            total += abs(np.linalg.det([b - a, c - a])) * rule @ intensity.at(which, mesh.weights(which, xy), xy)
    return total


def families(mesh):
    """One of each kind, with and without an offset."""
    t, v = len(mesh.elements), len(mesh.vertices)
    rng = np.random.default_rng(3)
    return {
        "constant": PiecewiseConstant(mesh, rng.exponential(5, t)),
        "linear": PiecewiseLinear(mesh, rng.exponential(5, v) * rng.integers(0, 2, v)),
        "log-linear": LogLinear(mesh, normal(mesh)),
        "log-linear, offset": LogLinear(mesh, normal(mesh), OFFSET),
        "mean": LogLinearMean(mesh, normal(mesh, 5)),
        "mean, offset": LogLinearMean(mesh, normal(mesh, 5), OFFSET),
    }


KINDS = ["constant", "linear", "log-linear", "log-linear, offset", "mean", "mean, offset"]


class TestTotals:
    @every_mesh
    @pytest.mark.parametrize("kind", ["constant", "linear", "log-linear", "mean"])
    def test_against_quadrature(self, mesh, kind):
        intensity = families(mesh)[kind]
        assert intensity.total == pytest.approx(quadrature(intensity), rel=1e-9 if mesh.kind == "square" else 1e-12)

    @pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
    def test_against_adaptive_quadrature(self, build):
        mesh = build(Window.rectangle(0, 0, 2, 1), shape=(2, 2))
        intensity = LogLinear(mesh, np.array([0.3, 1.7, -1.1, 0.9]))
        if mesh.kind == "square":
            want, _ = scipy.integrate.dblquad(lambda y, x: intensity([[x, y]])[0], 0, 2, 0, 1, epsabs=1e-11)
        else:
            below, _ = scipy.integrate.dblquad(
                lambda y, x: intensity([[x, y]])[0], 0, 2, 0, lambda x: x / 2, epsabs=1e-11
            )
            above, _ = scipy.integrate.dblquad(
                lambda y, x: intensity([[x, y]])[0], 0, 2, lambda x: x / 2, 1, epsabs=1e-11
            )
            want = below + above
        assert intensity.total == pytest.approx(want, rel=1e-9)

    @pytest.mark.parametrize("mesh", [MESHES["triangles, hole"], MESHES["squares, hole"]], ids=["triangles", "squares"])
    def test_global_exponential_minus_a_hole(self, mesh):
        # exp(ax + by + c) is log-linear on any mesh; the window is a box less a box, where it factorises.
        a, b, c = 0.9, -0.6, 0.4
        window = Window.polygon(shapely.box(0, 0, 4, 3).difference(shapely.box(0.7, 1.1, 2.9, 2.3)))
        mesh = BUILDERS[f"{mesh.kind}s"](window, shape=(7, 4))
        intensity = LogLinear(mesh, mesh.vertices @ (a, b) + c)

        def box(x0, y0, x1, y1):
            return np.exp(c) * (np.exp(a * x1) - np.exp(a * x0)) / a * (np.exp(b * y1) - np.exp(b * y0)) / b

        assert intensity.total == pytest.approx(box(0, 0, 4, 3) - box(0.7, 1.1, 2.9, 2.3), rel=1e-12)

    def test_piecewise_constant_and_linear_are_weighted_sums(self):
        mesh = MESHES["triangles, hole"]
        ones = PiecewiseConstant(mesh, np.ones(len(mesh.elements))), PiecewiseLinear(mesh, np.ones(len(mesh.vertices)))
        for one in ones:
            assert one.total == pytest.approx(HOLED.area, rel=1e-12)
        ramp = PiecewiseLinear(mesh, mesh.vertices[:, 0])
        assert ramp.total == pytest.approx(HOLED.area * HOLED.geometry.centroid.x, rel=1e-12)

    @pytest.mark.parametrize("sd", [0.5, 2, 6])
    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("window", [RECTANGLE, HOLED], ids=["rectangle", "hole"])
    def test_a_coarser_rule_bounds_the_error_on_squares(self, window, seed, sd):
        for build in BUILDERS.values():
            mesh = build(window, shape=(4, 4))
            intensity = LogLinear(mesh, normal(mesh, seed=seed, sd=sd))
            actual = abs(intensity.total - quadrature(intensity, order=40))
            coarse = gauss_exp(mesh, mesh.pieces, intensity.log_values[None], order=5)[0]
            stated = abs(coarse - intensity.total) if mesh.kind == "square" else 0.0
            assert actual <= stated + (1e-12 + 1e-13) * intensity.total

    @pytest.mark.parametrize("log_value", [-600.0, 0.0, 600.0])
    def test_extreme_levels(self, log_value):
        mesh = MESHES["triangles, hole"]
        want = np.exp(log_value) * HOLED.area
        assert LogLinear(mesh, np.full(len(mesh.vertices), log_value)).total == pytest.approx(want, rel=1e-11)


def divided_difference(values):
    """Reference: `sum_k h_k(f) / (k + 2)!` in two hundred digits, h_k the complete symmetric polynomials."""
    getcontext().prec = 200
    f = [Decimal(float(v)) for v in values]
    # The lowest value is taken out, exp[f] = e^low exp[f - low], so that all terms are positive.
    low = min(f)
    a, b, c = (v - low for v in f)
    h1, h2, h3 = Decimal(1), Decimal(1), Decimal(1)
    total, factorial = Decimal(1) / 2, Decimal(2)
    for k in range(1, 600):
        h1 = a * h1
        h2 = h1 + b * h2
        h3 = h2 + c * h3
        factorial *= k + 2
        total += h3 / factorial
    return float(low.exp() * total)


class TestDividedDifference:
    CASES = (
        (0, 0, 0),
        (1, 1, 1),
        (-30, -30, -30),
        (0, 1e-8, 2e-8),
        (3, 3 + 1e-8, 3),
        (5, 5, 5 + 1e-8),
        (0, 0, 1),
        (0, 1, 1),
        (0, 1 + 1e-12, 1),
        (0, 0.5, 1 - 1e-9),
        (0, 0.5, 1 + 1e-9),
        (0, 1e-8, 3),
        (0, 3 - 1e-8, 3),
        (-25, 0, 25),
        (0, 0, 50),
        (0, 50, 50),
        (0, 50, 50 - 1e-8),
        (-700, -650, -700),
        (0.1, 0.2, 0.3),
    )

    @pytest.mark.parametrize("values", CASES, ids=str)
    def test_against_two_hundred_digits(self, values):
        got = exp_divided_difference(np.array([values], dtype=float))[0]
        assert got == pytest.approx(divided_difference(values), rel=2e-14)

    def test_random_values_in_any_order(self):
        rng = np.random.default_rng(0)
        values = rng.normal(size=(60, 3)) * 10.0 ** rng.uniform(-9, 1.2, (60, 1))
        got = exp_divided_difference(values)
        np.testing.assert_allclose(got, [divided_difference(v) for v in values], rtol=2e-14)
        np.testing.assert_array_equal(exp_divided_difference(values[:, [2, 0, 1]]), got)

    def test_distinct_values_by_the_textbook_formula(self):
        a, b, c = 0.3, 2.1, -1.4
        e = np.exp
        want = e(a) / ((a - b) * (a - c)) + e(b) / ((b - a) * (b - c)) + e(c) / ((c - a) * (c - b))
        assert exp_divided_difference(np.array([[a, b, c]]))[0] == pytest.approx(want, rel=1e-13)

    def test_many_fields_at_once(self):
        values = np.random.default_rng(1).normal(size=(7, 3, 4))
        got = exp_divided_difference(values)
        assert got.shape == (7, 4)
        np.testing.assert_array_equal(got[:, 2], exp_divided_difference(values[:, :, 2]))

    def test_spread_beyond_the_range_of_exponentials(self):
        with np.errstate(all="ignore"):
            got = exp_divided_difference(np.array([[-1000.0, -900.0, 0.0]]))[0]
        assert got == pytest.approx(1 / 900_000, rel=1e-12)


class TestEvaluation:
    @every_mesh
    def test_between_vertices(self, mesh):
        points = inside(mesh.domain)
        basis = mesh.basis(points)
        fields = families(mesh)
        np.testing.assert_allclose(fields["linear"](points), basis @ fields["linear"].values, rtol=1e-10, atol=1e-10)
        log = basis @ fields["log-linear"].log_values
        np.testing.assert_allclose(fields["log-linear"](points), np.exp(log), rtol=1e-10)
        np.testing.assert_array_equal(fields["constant"](points), fields["constant"].values[mesh.locate(points)])

    @every_mesh
    def test_at_vertices(self, mesh):
        own = mesh.vertices[mesh.domain.contains(mesh.vertices)]
        log = LogLinear(mesh, normal(mesh))
        np.testing.assert_allclose(log(own), np.exp(log.log_values[mesh.domain.contains(mesh.vertices)]), rtol=1e-12)

    def test_continuous_across_elements(self):
        for mesh in MESHES.values():
            intensity = LogLinear(mesh, normal(mesh))
            ends = mesh.vertices[mesh.elements[:, :2]]
            middle = ends.mean(axis=1)
            off = 1e-9 * (ends[:, 1] - ends[:, 0])[:, ::-1] * (-1, 1)
            keep = mesh.domain.contains(middle + off) & mesh.domain.contains(middle - off)
            np.testing.assert_allclose(intensity((middle + off)[keep]), intensity((middle - off)[keep]), rtol=1e-6)

    @every_mesh
    @pytest.mark.parametrize("kind", KINDS)
    def test_parts_of_elements_outside_the_window_follow_the_same_formula(self, mesh, kind):
        intensity = families(mesh)[kind]
        centre = mesh.vertices[mesh.elements].mean(axis=1)
        element = np.arange(len(mesh.elements))
        k = mesh.elements.shape[1]
        values = intensity.at(element, np.full((len(element), k), 1 / k), centre)
        np.testing.assert_allclose(intensity(centre), values, rtol=1e-12)

    def test_single_points_and_lists(self):
        intensity = families(MESHES["triangles, rectangle"])["log-linear"]
        assert intensity([1.0, 2.0]).shape == (1,)
        assert intensity([[1.0, 2.0], [0.5, 0.5]]).shape == (2,)
        assert intensity(np.empty((0, 2))).shape == (0,)

    def test_repr_shows_the_mesh_alone(self):
        assert (
            repr(families(MESHES["triangles, rectangle"])["linear"])
            == "PiecewiseLinear(Mesh(30 vertices, 40 triangles))"
        )


class TestBounds:
    @every_mesh
    @pytest.mark.parametrize("kind", KINDS)
    def test_no_value_exceeds_the_bound_of_its_element(self, mesh, kind):
        intensity = families(mesh)[kind]
        rng = np.random.default_rng(4)
        element = rng.integers(len(mesh.elements), size=20_000)
        weight = rng.dirichlet(np.full(3, 0.3), len(element))
        if mesh.kind == "square":
            s, t = rng.beta(0.3, 0.3, (2, len(element)))
            weight = np.stack([(1 - s) * (1 - t), s * (1 - t), s * t, (1 - s) * t], axis=1)
        xy = np.einsum("nk,nkd->nd", weight, mesh.vertices[mesh.elements[element]])
        assert np.all(intensity.at(element, weight, xy) <= intensity.element_bound[element] * (1 + 1e-12))

    @every_mesh
    def test_bounds_are_attained_at_vertices(self, mesh):
        element = np.repeat(np.arange(len(mesh.elements)), mesh.elements.shape[1])
        corner = np.tile(np.eye(mesh.elements.shape[1]), (len(mesh.elements), 1))
        for kind in ("constant", "linear", "log-linear"):
            intensity = families(mesh)[kind]
            top = np.zeros(len(mesh.elements))
            np.maximum.at(top, element, intensity.at(element, corner, mesh.vertices[mesh.elements.ravel()]))
            np.testing.assert_allclose(intensity.element_bound, top, rtol=1e-12)


class TestMean:
    @every_mesh
    @pytest.mark.parametrize("offset", [None, OFFSET], ids=["plain", "offset"])
    def test_is_the_average_of_its_draws(self, mesh, offset):
        mean = LogLinearMean(mesh, normal(mesh, 7), offset)
        draws = [mean.draw(k) for k in range(7)]
        points = inside(mesh.domain, 500)
        np.testing.assert_allclose(mean(points), np.mean([d(points) for d in draws], axis=0), rtol=1e-12)
        np.testing.assert_allclose(mean.totals, [d.total for d in draws], rtol=1e-12)
        assert mean.total == pytest.approx(np.mean(mean.totals), rel=1e-14)

    @pytest.mark.parametrize("offset", [None, OFFSET], ids=["plain", "offset"])
    def test_quantiles(self, offset):
        mesh = MESHES["triangles, hole"]
        mean = LogLinearMean(mesh, normal(mesh, 9), offset)
        points = inside(mesh.domain, 300)
        draws = np.stack([mean.draw(k)(points) for k in range(9)])
        low, quarter, middle, high = mean.quantiles(points, np.array([0, 0.25, 0.5, 1]))
        np.testing.assert_allclose(low, draws.min(axis=0), rtol=1e-12)
        np.testing.assert_allclose(high, draws.max(axis=0), rtol=1e-12)
        np.testing.assert_allclose(middle, np.median(draws, axis=0), rtol=1e-12)
        assert np.all((low <= quarter) & (quarter <= middle))

    def test_float32_fields_and_many_points(self):
        # 4e6 / 2000 draws = 2000 points a chunk: the seams between chunks must not show.
        mesh = MESHES["triangles, rectangle"]
        mean = LogLinearMean(mesh, normal(mesh, 2000).astype(np.float32))
        points = inside(mesh.domain, 4100)
        np.testing.assert_allclose(mean(points)[1990:2010], mean(points[1990:2010]), rtol=1e-6)


class TestRefusals:
    MESH = Mesh.from_arrays([[0, 0], [1, 0], [0, 1]], [[0, 1, 2]], Window.polygon(Polygon([(0, 0), (1, 0), (0, 1)])))

    @pytest.mark.parametrize("kind", [PiecewiseConstant, PiecewiseLinear])
    def test_negative(self, kind):
        with pytest.raises(InputError, match="values: an intensity cannot be negative; clip"):
            kind(self.MESH, np.array([-1e-300] + [1.0] * (0 if kind is PiecewiseConstant else 2)))

    @pytest.mark.parametrize("kind", [PiecewiseConstant, PiecewiseLinear, LogLinear])
    @pytest.mark.parametrize("values", [np.ones(4), np.ones((3, 1)), np.array([]), np.array([1, np.nan, 1])], ids=str)
    def test_wrong_length_or_not_finite(self, kind, values):
        with pytest.raises(InputError, match=r"values: needs \d finite numbers"):
            kind(self.MESH, values)

    @pytest.mark.parametrize("fields", [np.array([[0.0, np.inf, 0.0]]), np.array([[0.0, 0.0, np.nan]])])
    def test_fields_not_finite(self, fields):
        with pytest.raises(InputError, match="fields: needs"):
            LogLinearMean(self.MESH, fields)

    @pytest.mark.parametrize(
        "fields", [np.zeros((2, 4)), np.zeros((0, 3)), np.zeros(3)], ids=["length", "none", "flat"]
    )
    def test_fields_of_wrong_shape(self, fields):
        with pytest.raises(InputError, match="fields: needs"):
            LogLinearMean(self.MESH, fields)


@pytest.mark.parametrize("build", [regular_triangulation, regular_squares])
def test_rounding_makes_no_intensity_negative(build):
    """Basis values of points on a border are -1e-15 here; beside a vertex of value zero that would show."""
    mesh = build(Window.rectangle(0, 0, 1, 1), shape=(11, 11))
    xy = np.random.default_rng(0).random((40_000, 2)).round(2)
    element = mesh.locate(xy)
    weight = mesh.weights(element, xy)
    lowest = np.unravel_index(weight.argmin(), weight.shape)
    assert weight[lowest] < 0
    values = np.zeros(121)
    values[mesh.elements[element[lowest[0]], lowest[1]]] = 1.0
    assert PiecewiseLinear(mesh, values)(xy).min() == 0


@pytest.mark.parametrize("build", [regular_triangulation, regular_squares])
def test_a_gathered_rule_keeps_masses_and_means_of_exponentials(build):
    """Four points for all cells of an element: no mass lost, and masses of vertices as by all points."""
    mesh = build(Window.rectangle(0, 0, 4, 3), shape=(6, 5))
    values = np.random.default_rng(1).gamma(0.5, 1.0, (40, 40)) * (np.arange(40) > 9)
    pieces = Offset.from_grid(values, (0, 0, 4, 3)).restrict(mesh)
    whole, weight = gauss_rule(mesh, pieces, 2)
    basis, few = gathered_rule(mesh, pieces, 2)
    assert len(few) <= 4 * len(mesh.elements) < len(weight)
    np.testing.assert_allclose(basis.sum(axis=1), 1, atol=1e-12)
    if mesh.kind == "triangle":
        np.testing.assert_allclose(basis.T @ few, whole.T @ weight, atol=1e-9)
    field = np.random.default_rng(2).normal(0, 0.7, len(mesh.vertices))
    assert few @ np.exp(basis @ field) == pytest.approx(weight @ np.exp(whole @ field), rel=3e-3)
