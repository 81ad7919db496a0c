"""One posterior draw: divergences of posteriors by quadrature, bounds on increments by search, calibration.

Posteriors of two neighbouring patterns differ by the factor `exp(-t)`, `t = Y(x) - Y(x')` up to its normalisation, so
their hockey-stick divergences are attained on half-lines of t and need its one-dimensional law only.
"""

import json
import math

import numpy as np
import pytest
import scipy.spatial
import shapely

from dpppsynth import datasets
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.mechanisms.lgcp.bound.increments import RELATIVE, PlanarIncrements, element_pairs, increments
from dpppsynth.models import PoweredExponential, regular_squares, regular_triangulation
from dpppsynth.models.target_posterior import proximal_factor
from dpppsynth.privacy import (
    AddRemove,
    AlphaNeighbours,
    GaussianDP,
    ReplaceOne,
    delta_gaussian,
    gaussian_mu,
    guarantee_from_dict,
    increment_sd,
    largest_intercept_sd,
    largest_sigma,
    lipschitz,
    point_sd,
    posterior_mu,
    theorem_a,
)
from dpppsynth.privacy.catalogue import Statement
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Mesh

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.3, 0.8]])
TRIANGLE = Mesh.from_arrays(CORNERS, [[0, 1, 2]], Window.polygon(shapely.Polygon(CORNERS)))
EPSILONS = (0.0, 0.05, 0.2, 0.5, 1.0, 2.0)
UNIT = Window.rectangle(0, 0, 1, 1)


class Matrix:
    """A covariance given as a matrix."""

    def __init__(self, root):
        self.root = root

    def matrix(self, points):
        return self.root @ self.root.T


class Pair:
    """The law of the statistic t under the posteriors of two neighbours, on a grid.

    `change` is what the first pattern has more than the second, in tent masses; `root` maps prior coefficients to the
    log-intensity at the vertices, a Gaussian intercept included.
    """

    def __init__(self, root, masses, change, *, flat=False, level=0.0, allowed=None, points=801):
        direction = root.T @ change
        self.sd = np.linalg.norm(direction)
        turn = np.linalg.qr(np.column_stack([direction, np.eye(len(direction))]))[0]
        turn *= np.sign(turn[:, 0] @ direction)
        u, others = np.linspace(-8, 8, points), np.linspace(-6.5, 6.5, 33)
        grid = np.meshgrid(u, *[others] * (len(direction) - 1), indexing="ij")
        z = np.stack(grid, axis=-1).reshape(-1, len(direction))
        field = z @ (root @ turn).T + level
        size = np.exp(field) @ TRIANGLE.measure
        log_density = -(z**2).sum(axis=1) / 2 + field @ masses
        log_density -= masses.sum() * np.log(size) if flat else size
        if allowed is not None:
            log_density[~allowed(field)] = -np.inf
        weight = np.exp(log_density - log_density.max()).reshape(points, -1).sum(axis=1)
        self.statistic = self.sd * u
        other = weight * np.exp(-self.statistic + self.statistic[np.argmax(weight)])
        self.p, self.q = weight / weight.sum(), other / other.sum()

    def divergence(self, epsilon):
        """Larger of the two hockey-stick divergences; cutting between grid points only ever loses a little."""
        factor = math.exp(epsilon)
        upper = np.max(_tail(self.p) - factor * _tail(self.q))
        lower = np.max(_tail(self.q[::-1]) - factor * _tail(self.p[::-1]))
        return max(0.0, upper, lower)

    def worst(self, mu):
        """Largest ratio of divergence to Gaussian profile; sums over 801 points are good to two parts in a thousand."""
        return max(self.divergence(e) / delta_gaussian(e, mu) for e in EPSILONS if delta_gaussian(e, mu) > 1e-13)


def _tail(probability):
    return np.cumsum(probability[::-1])


def basis(points):
    return TRIANGLE.basis(np.atleast_2d(points)).toarray()


def random_pattern(rng, n):
    """n points of the triangle, spread or in one cluster."""
    weight = rng.dirichlet(np.full(3, rng.choice([0.05, 1.0, 20.0])), size=n)
    return (weight if rng.random() < 0.5 else weight[[0] * n]) @ CORNERS


def random_move(rng, alpha):
    """Two points of the triangle at most alpha apart."""
    start, goal = rng.dirichlet(np.ones(3), size=2) @ CORNERS
    step = goal - start
    return start, start + step * min(1.0, alpha / np.linalg.norm(step))


def random_case(seed, intercept):
    """Pair of neighbours under a random prior, singular ones included, and the privacy radius."""
    rng = np.random.default_rng([seed, len(intercept)])
    rank = rng.integers(1, 3 if intercept == "gaussian" else 4)
    root = rng.normal(size=(3, rank)) * rng.choice([0.2, 0.7, 1.5])
    alpha, n = rng.uniform(0.05, 0.6), rng.integers(0, 15)
    start, stop = random_move(rng, alpha)
    pattern = np.vstack([random_pattern(rng, n), start])
    column = [np.full((3, 1), rng.uniform(0.3, 2.0))] if intercept == "gaussian" else []
    level = math.log((n + 1) / TRIANGLE.measure.sum()) + rng.normal()
    pair = Pair(
        np.hstack([root, *column]),
        basis(pattern).sum(axis=0),
        (basis(start) - basis(stop))[0],
        flat=intercept == "flat",
        level=level,
    )
    return pair, Matrix(root), alpha


class TestDivergence:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("intercept", ["fixed", "flat", "gaussian"])
    @pytest.mark.parametrize("seed", range(14))
    def test_stays_below_the_profile_for_every_pattern(self, seed, intercept):
        pair, covariance, alpha = random_case(seed, intercept)
        assert pair.sd <= posterior_mu(TRIANGLE, covariance, alpha)
        assert pair.worst(pair.sd) < 1.002

    @pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.5])
    def test_comes_close_to_it(self, epsilon):
        """Few points, steepest move: nearly the prior itself, tilted."""
        root, alpha = 0.3 * np.eye(3), 0.2
        start, stop = self._steepest(root, alpha)
        pair = Pair(root, basis(start)[0], (basis(start) - basis(stop))[0], level=-3.0)
        profile = theorem_a(TRIANGLE, Matrix(root), alpha, delta=1e-6).profile
        assert 0.95 * profile.delta(epsilon) < pair.divergence(epsilon) <= profile.delta(epsilon) * 1.002

    def test_catches_a_field_twice_too_large(self):
        root, alpha = 0.3 * np.eye(3), 0.2
        start, stop = self._steepest(root, alpha)
        pair = Pair(2 * root, basis(start)[0], (basis(start) - basis(stop))[0], level=-3.0)
        assert pair.worst(posterior_mu(TRIANGLE, Matrix(root), alpha)) > 1.9

    def test_truncation_does_not_lower_the_parameter(self):
        """A prior cut to |t| < .2 has a smaller sd, and a larger divergence than that sd would allow."""
        root, change = np.array([[0.5], [0.0], [0.0]]), np.array([1.0, -1.0, 0.0])
        pair = Pair(root, np.zeros(3), change, level=-20.0, allowed=lambda w: np.abs(w[:, 0] + 20) < 0.2, points=16001)
        truncated = math.sqrt(pair.statistic**2 @ (pair.p + pair.q) / 2)
        assert truncated < 0.12 < pair.sd
        assert pair.worst(truncated) > 1.05
        assert pair.worst(pair.sd) < 1

    @staticmethod
    def _steepest(root, alpha):
        """Move of length alpha through the middle of the triangle along which the field varies most."""
        gradient = TRIANGLE.gradients[0, 0].T @ root
        way = np.linalg.svd(gradient)[0][:, 0]
        middle = CORNERS.mean(axis=0)
        return middle - alpha / 2 * way, middle + alpha / 2 * way

    def test_points_of_one_person_add_up(self):
        root, alpha = 0.3 * np.eye(3), 0.2
        start, stop = self._steepest(root, alpha)
        pair = Pair(root, 2 * basis(start)[0], 2 * (basis(start) - basis(stop))[0], level=-3.0)
        assert pair.worst(posterior_mu(TRIANGLE, Matrix(root), AlphaNeighbours(alpha, max_points_per_person=2))) < 1.002
        assert pair.worst(posterior_mu(TRIANGLE, Matrix(root), alpha)) > 1.9


class TestAddRemove:
    @staticmethod
    def pair(seed, tau=1.0):
        """Two vertices matter: the third has the value of the first. The pattern keeps at least one point."""
        rng = np.random.default_rng(seed)
        root = np.hstack([rng.normal(size=(2, 2))[[0, 1, 0]] * rng.choice([0.3, 1.0]), np.full((3, 1), tau)])
        extra = basis(CORNERS[np.argmax((root**2).sum(axis=1))])[0]
        masses = basis(random_pattern(rng, rng.integers(1, 10))).sum(axis=0) + extra
        return Pair(root, masses, extra, level=rng.normal()), root

    @pytest.mark.parametrize("seed", range(12))
    def test_stays_below_the_profile(self, seed):
        pair, root = self.pair(seed)
        mu = posterior_mu(TRIANGLE, Matrix(root[:, :2]), AddRemove(), intercept_sd=1.0)
        assert mu == pytest.approx(pair.sd, rel=1e-8)
        assert pair.worst(mu) < 1.002

    def test_the_intercept_counts(self):
        rng = np.random.default_rng(0)
        root = np.hstack([0.2 * rng.normal(size=(3, 2)), np.full((3, 1), 1.0)])
        pair = Pair(root, basis(CORNERS[:2]).sum(axis=0), basis(CORNERS[0])[0], level=-3.0)
        assert pair.worst(point_sd(root[:, :2] @ root[:, :2].T)) > 1.9
        assert pair.worst(math.hypot(1.0, point_sd(root[:, :2] @ root[:, :2].T))) < 1.002

    @pytest.mark.parametrize("intercept_sd", [None, 0.0, -1.0, math.inf, math.nan])
    def test_needs_a_gaussian_intercept(self, intercept_sd):
        with pytest.raises(InputError, match=r"^intercept_sd: add/remove needs a Gaussian intercept"):
            posterior_mu(TRIANGLE, Matrix(np.eye(3)), AddRemove(), intercept_sd=intercept_sd)


def delaunay(seed):
    vertices = np.vstack([UNIT.geometry.exterior.coords[:4], np.random.default_rng(seed).uniform(0.1, 0.9, (20, 2))])
    return Mesh.from_arrays(vertices, scipy.spatial.Delaunay(vertices).simplices, UNIT)


STAR = [(0, 0), (0.64, 0.14), (1, 0), (0.86, 0.5), (1, 0.86), (0.43, 0.71), (0.07, 0.93), (0.21, 0.43)]
HOLED = Window.polygon(shapely.Polygon(STAR).difference(shapely.Point(0.5, 0.43).buffer(0.16)))
MESHES = {
    "delaunay 0": delaunay(0),
    "delaunay 1": delaunay(1),
    "squares": regular_squares(UNIT, shape=(6, 4)),
    "holed": regular_triangulation(HOLED, shape=(8, 7)),
    "holed squares": regular_squares(HOLED, shape=(7, 8)),
}
every_mesh = pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)


def moves(mesh, alpha, count, seed):
    """Pairs of points at most alpha apart, joined by a segment inside the window; vertices among the starts."""
    rng = np.random.default_rng(seed)
    start = rng.uniform(*np.reshape(mesh.domain.bounds, (2, 2)), (count, 2))
    start[: count // 3] = mesh.vertices[rng.integers(len(mesh.vertices), size=count // 3)]
    angle, length = rng.uniform(0, 2 * np.pi, count), alpha * np.minimum(1, rng.uniform(0, 2, count))
    stop = start + length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    kept = shapely.covers(mesh.domain.geometry, shapely.linestrings(np.stack([start, stop], axis=1)))
    return start[kept], stop[kept]


def spread(mesh, matrix, start, stop):
    """Largest sd of the increment over the moves."""
    change = (mesh.basis(start) - mesh.basis(stop)).toarray()
    return math.sqrt(np.einsum("na,ab,nb->n", change, matrix, change).max())


class TestIncrements:
    @pytest.mark.exhaustive
    @every_mesh
    @pytest.mark.parametrize("power", [1.0, 2.0])
    @pytest.mark.parametrize("alpha", [0.02, 0.3, 0.9])
    def test_never_exceeded(self, mesh, power, alpha):
        matrix = PoweredExponential(1.3, 0.3, power).matrix(mesh)
        start, stop = moves(mesh, alpha, 4000, seed=5)
        reached, bound = spread(mesh, matrix, start, stop), increment_sd(mesh, matrix, alpha)
        assert 0.4 * bound < reached <= bound

    @every_mesh
    def test_tight_for_short_moves(self, mesh):
        """720 directions from the middles of all triangles, and from the corners of squares."""
        matrix, alpha = PoweredExponential(1.0, 0.4).matrix(mesh), 1e-4
        corner = mesh.vertices[mesh.elements]
        middle = corner.mean(axis=1, keepdims=True)
        start = (middle if mesh.kind == "triangle" else corner + 1e-3 * (middle - corner)).reshape(-1, 2)
        angle = np.arange(720) * np.pi / 360
        way = np.column_stack([np.cos(angle), np.sin(angle)])
        element = np.repeat(np.arange(len(corner)), len(start) // len(corner))
        reached = max(self._spread_within(mesh, matrix, element, start, alpha * each) for each in way)
        assert 0.999 < reached / increment_sd(mesh, matrix, alpha) <= 1

    @staticmethod
    def _spread_within(mesh, matrix, element, start, step):
        change = mesh.weights(element, start) - mesh.weights(element, start + step)
        local = matrix[mesh.elements[element][:, :, None], mesh.elements[element][:, None, :]]
        return math.sqrt(np.einsum("na,nab,nb->n", change, local, change).max())

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("name", ["delaunay 0", "squares"])
    def test_faults_show(self, name):
        """The mean gradient, or the one at the centre of squares, is exceeded by far."""
        mesh, alpha = MESHES[name], 0.02
        matrix = PoweredExponential(1.0, 0.15, 1.0).matrix(mesh)
        local = matrix[mesh.elements[:, :, None], mesh.elements[:, None, :]]
        centre = mesh.gradients.mean(axis=1)
        sd = np.sqrt(np.linalg.eigvalsh(np.einsum("tka,tkl,tlb->tab", centre, local, centre)).max(axis=1))
        faulty = alpha * (sd.max() if mesh.kind == "square" else sd.mean())
        start, stop = moves(mesh, alpha, 30_000, seed=6)
        assert spread(mesh, matrix, start, stop) > 1.1 * faulty

    def test_element_bound_takes_over(self):
        """A rough field on a fine mesh: far moves change it by less than the slope suggests."""
        mesh = regular_triangulation(UNIT, shape=(15, 15))
        matrix = PoweredExponential(1.0, 0.5, 1.0).matrix(mesh)
        bounds = increments(mesh, matrix)
        assert bounds.within(0.3) < 0.5 * bounds.slope * 0.3
        start, stop = moves(mesh, 0.3, 4000, seed=7)
        assert 0.8 < spread(mesh, matrix, start, stop) / bounds.within(0.3) <= 1

    def test_infinite_reach_takes_all_pairs_of_vertices(self):
        mesh = MESHES["delaunay 0"]
        matrix = PoweredExponential(1.0, 0.4).matrix(mesh)
        assert increment_sd(mesh, matrix, math.inf) == pytest.approx(math.sqrt(2 - 2 * matrix.min()), rel=1e-8)

    @every_mesh
    def test_one_table_serves_every_distance(self, mesh):
        matrix = PoweredExponential(1.0, 0.3, 1.5).matrix(mesh)
        table = increments(mesh, matrix)
        for reach in (0.01, 0.1, 0.37, 0.8, 2.0, math.inf):
            assert table.within(reach) == increment_sd(mesh, matrix, reach)

    @pytest.mark.parametrize("corner", [0.1, 529100.1])
    def test_elements_at_exactly_the_reach_count(self, corner):
        """Cells of a third, two apart: coordinates in between are rounded, and must not hide a pair."""
        mesh = regular_squares(Window.rectangle(corner, corner, corner + 4, corner + 1 / 3), shape=(13, 2))
        assert len(element_pairs(mesh, RELATIVE / 3)[0]) == 12 + 11 + 10

    @pytest.mark.parametrize("reach", [0.3, 0.3 * (1 - 1e-10)])
    def test_a_table_counts_elements_at_exactly_the_reach(self, reach):
        table = PlanarIncrements(slope=100.0, distance=np.array([0.0, 0.3]), sd=np.array([1.0, 2.0]))
        assert table.within(reach) >= 2
        assert table.within(0.29) < 1.1

    def test_nearly_constant_fields_keep_a_margin(self):
        """Subtracting covariances that agree in all digits must not give zero."""
        mesh = MESHES["delaunay 0"]
        covariance = PoweredExponential(1.0, 1e9)
        exact = math.sqrt(2) * 0.1 / 1e9
        assert exact < increment_sd(mesh, covariance.matrix(mesh), 0.1) < 1e-5


class TestGuarantee:
    soho = datasets.soho_deaths().domain

    @pytest.mark.parametrize(("vertices", "sigma"), [(11, 1.0101), (21, 1.0047)])
    @pytest.mark.parametrize("build", [regular_triangulation, regular_squares])
    def test_calibrates_soho(self, build, vertices, sigma):
        """In the continuum mu l / (sqrt 2 alpha) = 1.0042; a mesh smooths the field a little."""
        mesh = build(self.soho, shape=(vertices, vertices))
        mu = gaussian_mu(1.0, 1e-6)
        largest = largest_sigma(mesh, PoweredExponential(1.0, 150.0), 25.0, mu)
        assert largest == pytest.approx(sigma, abs=5e-5)
        assert largest > mu * 150 / (math.sqrt(2) * 25)
        guarantee = theorem_a(mesh, PoweredExponential(largest, 150.0), 25.0, delta=1e-6)
        assert 1 - 1e-9 < guarantee.epsilon() <= 1.0
        assert guarantee.mu == pytest.approx(mu, rel=1e-9)

    @pytest.mark.parametrize(("delta", "ratio"), [(1 / 128, 0.51), (1e-6, 0.237)])
    def test_ratio_of_sigma_to_length_scale(self, delta, ratio):
        """Side 10, alpha = .707, epsilon = 1: where Kim & Lim's condition allows 3.8e-4."""
        mesh = regular_triangulation(Window.rectangle(0, 0, 10, 10), shape=(11, 11))
        sigma = largest_sigma(mesh, PoweredExponential(1.0, 4.0), 0.707, gaussian_mu(1.0, delta))
        assert sigma / 4.0 == pytest.approx(ratio, rel=5e-3)

    def test_add_remove_shares_the_budget(self):
        mesh, unit = MESHES["squares"], PoweredExponential(1.0, 0.3)
        for relation, factor in ((AddRemove(), 1.0), (AddRemove(3), 1.2)):
            sigma = largest_sigma(mesh, unit, relation, 0.5, factor=factor)
            tau = largest_intercept_sd(relation, 0.5, sigma, factor=factor)
            assert sigma == pytest.approx(tau, rel=1e-6)
            spent = factor * posterior_mu(mesh, PoweredExponential(sigma, 0.3), relation, intercept_sd=tau)
            assert 0.5 * (1 - 1e-7) < spent <= 0.5 * (1 + 3e-9)
        given = largest_sigma(mesh, unit, AddRemove(), 0.5, intercept_sd=0.3)
        assert given == pytest.approx(0.4, rel=1e-6)
        with pytest.raises(PrivacyCheckError, match=r"^intercept_sd: must be below 0\.5"):
            largest_sigma(mesh, unit, AddRemove(), 0.5, intercept_sd=0.5)
        with pytest.raises(PrivacyCheckError, match=r"^sigma: must be below 0\.5"):
            largest_intercept_sd(AddRemove(), 0.5, 0.6)

    @pytest.mark.parametrize(
        "relation", [AlphaNeighbours(0.1), AlphaNeighbours(0.1, max_points_per_person=3), ReplaceOne()]
    )
    def test_largest_sigma_spends_the_budget(self, relation):
        mesh = MESHES["holed"]
        sigma = largest_sigma(mesh, PoweredExponential(1.0, 0.3), relation, 0.5, factor=1.1)
        spent = 1.1 * posterior_mu(mesh, PoweredExponential(sigma, 0.3), relation)
        assert 0.5 * (1 - 1e-9) < spent <= 0.5

    @pytest.mark.parametrize("relation", [AlphaNeighbours(0.1), ReplaceOne(2)])
    def test_curve_by_distance(self, relation):
        mesh, covariance = MESHES["delaunay 0"], PoweredExponential(0.3, 0.3)
        guarantee = theorem_a(mesh, covariance, relation, delta=1e-6)
        distance, epsilon = np.array(guarantee.by_distance).T
        assert len(distance) == 40
        assert distance[-1] == UNIT.diameter
        assert np.all(np.diff(epsilon) >= 0)
        matrix = covariance.matrix(mesh)
        for d, e in guarantee.by_distance[::9]:
            assert e == GaussianDP(increment_sd(mesh, matrix, d), 1e-6).epsilon(1e-6)
        if relation == ReplaceOne(2):
            assert epsilon[-1] < guarantee.epsilon()

    def test_says_what_it_assumes(self):
        kwargs = {"delta": 1e-6, "intercept_sd": 0.5}
        exact = theorem_a(TRIANGLE, Matrix(np.eye(3)), AddRemove(2), **kwargs)
        nuts = theorem_a(TRIANGLE, Matrix(np.eye(3)), AddRemove(2), sampler="nuts", **kwargs)
        assert exact.theorem == nuts.theorem == "posterior-draw"
        assert exact.profile == nuts.profile
        assert exact.by_distance == ()
        chain = {"chain-mixed", "chain-diagnostics-elsewhere", "chain-seed-secret"}
        assert chain <= set(nuts.assumptions)
        assert not chain & set(exact.assumptions)
        assert {"not-empty", Statement("points-per-person", most=2)} <= set(exact.assumptions)
        assert guarantee_from_dict(json.loads(json.dumps(nuts.to_dict()))) == nuts
        with pytest.raises(
            InputError, match=r"^sampler: expected one of 'exact', 'nuts', 'proximal' here, got 'gibbs'"
        ):
            theorem_a(TRIANGLE, Matrix(np.eye(3)), 0.1, delta=1e-6, sampler="gibbs")

    def test_proximal_sampler_costs_its_factor(self):
        exact = theorem_a(TRIANGLE, Matrix(np.eye(3)), 0.1, delta=1e-6)
        proximal = theorem_a(TRIANGLE, Matrix(np.eye(3)), 0.1, delta=1e-6, sampler="proximal")
        assert proximal.theorem == "proximal-sampler"
        assert proximal.mu == pytest.approx(exact.mu * proximal_factor(), rel=1e-12)
        ratio = [GaussianDP(exact.mu, 1e-6).epsilon(1e-6), GaussianDP(proximal.mu, 1e-6).epsilon(1e-6)]
        assert ratio == [exact.epsilon(), proximal.epsilon()]
        d, e = proximal.by_distance[0]
        matrix = np.eye(3)
        assert e == GaussianDP(proximal_factor() * increment_sd(TRIANGLE, matrix, d), 1e-6).epsilon(1e-6)


class TestLipschitz:
    @pytest.mark.parametrize("points", [0, 3, 300])
    def test_likelihood_ratio_is_bounded(self, points):
        """One coefficient, bounded slope, a heap of points on the side moved to: e^(2 slope alpha) is approached."""
        slope, alpha = 2.0, 0.4
        start, stop = np.array([0.1, 0.0]), np.array([0.5, 0.0])
        root = np.array([[0.0], [1.0], [CORNERS[2, 0]]])
        masses = points * basis(CORNERS[1])[0] + basis(start)[0]
        pair = Pair(
            root,
            masses,
            (basis(start) - basis(stop))[0],
            flat=True,
            allowed=lambda w: np.abs(w[:, 1] - w[:, 0]) <= slope * (1 + 1e-12),
        )
        inside = pair.p > 0
        loss = np.abs(np.log(pair.p[inside] / pair.q[inside])).max()
        guarantee = lipschitz(TRIANGLE, alpha, slope=slope)
        assert guarantee.epsilon() == 2 * slope * alpha
        assert loss <= guarantee.epsilon()
        if points == 300:
            assert loss > 0.9 * guarantee.epsilon()

    def test_at_every_distance_at_once(self):
        guarantee = lipschitz(MESHES["squares"], AlphaNeighbours(0.1, max_points_per_person=3), slope=2.0)
        assert guarantee.epsilon() == pytest.approx(3 * 2 * 2.0 * 0.1)
        assert guarantee.theorem == "lipschitz-field"
        assert all(e == pytest.approx(4 * d) for d, e in guarantee.by_distance)
        assert guarantee.delta(guarantee.epsilon()) == 0.0

    def test_relations(self):
        square, holed = MESHES["squares"], MESHES["holed"]
        assert lipschitz(square, ReplaceOne(), slope=0.5).epsilon() == pytest.approx(math.sqrt(2))
        assert lipschitz(square, AlphaNeighbours(9.0), slope=0.5).epsilon() == pytest.approx(math.sqrt(2))
        assert lipschitz(holed, AlphaNeighbours(9.0), slope=0.5).epsilon() == pytest.approx(9.0)
        with pytest.raises(InputError, match=r"^relation: 'replace-one' needs a convex window .* AlphaNeighbours"):
            lipschitz(holed, ReplaceOne(), slope=0.5)
        with pytest.raises(InputError, match=r"^relation: 'add-remove' has no guarantee from the slope"):
            lipschitz(square, AddRemove(), slope=0.5)

    def test_samplers(self):
        nuts = lipschitz(MESHES["squares"], 0.1, slope=5.0, sampler="nuts")
        assert "chain-diagnostics-elsewhere" in nuts.assumptions
        for bad in ("proximal", "gibbs"):
            with pytest.raises(InputError, match=r"^sampler: expected one of 'exact', 'nuts' here"):
                lipschitz(MESHES["squares"], 0.1, slope=5.0, sampler=bad)
