"""The Gaussian field statistic: its sensitivity on the lattice, the discrete Gaussian's profile, and its likelihood.

Statistical thresholds have a false-alarm rate below 1e-6; seeds are fixed.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.spatial
import scipy.stats
import shapely
from support.seams import randomise_by
from support.slopes import central_differences

from dpppsynth import LGCPSynthesizer, datasets
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.inference.lgcp_inference import LGCPInference
from dpppsynth.mechanisms.lgcp.bound.fields import discrete_mu, field_sensitivity, field_statistic, largest_field_sigma
from dpppsynth.mechanisms.lgcp.field_statistic import BATCH, FieldMasses, lattice_field
from dpppsynth.models import (
    NoisyField,
    PoweredExponential,
    build_noise_aware,
    covariance_from_dict,
    factor,
    laplace_posterior,
    refine,
    regular_squares,
    regular_triangulation,
    square_root,
)
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne, delta_gaussian, gaussian_mu
from dpppsynth.privacy.noise import SeededGaussian
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.intensity import LogLinear
from dpppsynth.spatial.mesh import Mesh
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.sampling import binomial_pattern

UNIT = Window.rectangle(0, 0, 1, 1)
STAR = shapely.Polygon([(0, 0), (9, 2), (14, 0), (12, 7), (14, 12), (6, 10), (1, 13), (3, 6)])
HOLED = Window.polygon(STAR.difference(shapely.Point(7, 6).buffer(2.3)))
BITS = (2, 4, 8, 20)


def delaunay(seed):
    points = np.random.default_rng(seed).uniform(0.15, 0.85, (25, 2))
    vertices = np.vstack([[(0, 0), (1, 0), (1, 1), (0, 1)], points])
    return Mesh.from_arrays(vertices, scipy.spatial.Delaunay(vertices).simplices, UNIT)


# Mesh, and a covariance whose length scale is a few elements.
CASES = {
    "random triangles": (delaunay(0), PoweredExponential(1.3, 0.4)),
    "rough field": (delaunay(1), PoweredExponential(0.7, 0.3, 1.0)),
    "triangles on a rectangle": (
        regular_triangulation(Window.rectangle(-1, 2, 5, 4), shape=(9, 6)),
        PoweredExponential(0.5, 2.0),
    ),
    "squares": (regular_squares(Window.rectangle(-1, 2, 5, 4), shape=(9, 6)), PoweredExponential(1.0, 1.5)),
    "triangles, polygon": (regular_triangulation(HOLED, shape=(9, 8)), PoweredExponential(1.0, 4.0)),
    "soho": (
        regular_triangulation(datasets.soho_deaths().domain, shape=(9, 9)),
        PoweredExponential(2.0, 150.0),
    ),
}
every_case = pytest.mark.parametrize(("mesh", "covariance"), CASES.values(), ids=CASES)


def root_of(mesh, covariance):
    return square_root(covariance.matrix(mesh))


def spacing(mesh):
    return 2 / mesh.tent_slope


def random_moves(mesh, alpha, n, rng):
    """Pairs of points joined by a segment of length alpha inside the window."""
    x0, y0, x1, y1 = mesh.domain.bounds
    start, angle = rng.uniform((x0, y0), (x1, y1), (n, 2)), rng.uniform(0, 2 * np.pi, n)
    stop = start + alpha * (1 - 1e-12) * np.column_stack([np.cos(angle), np.sin(angle)])
    kept = shapely.covers(mesh.domain.geometry, shapely.linestrings(np.stack([start, stop], axis=1)))
    return start[kept], stop[kept]


def steepest_moves(mesh, covariance, alpha):
    """Moves of length alpha, where elements allow, in the direction in which the field of each element varies most.

    Around the centre of triangles, close to the corners of squares.
    """
    matrix = covariance.matrix(mesh)
    local = matrix[mesh.elements[:, :, None], mesh.elements[:, None, :]]
    spread = np.einsum("tcka,tkl,tclb->tcab", mesh.gradients, local, mesh.gradients)
    way = np.linalg.eigh(spread)[1][..., -1] * alpha * (1 - 1e-12)
    corner = mesh.vertices[mesh.elements]
    centre = corner.mean(axis=1, keepdims=True)
    middle = centre if mesh.kind == "triangle" else corner + alpha * np.sign(centre - corner)
    start, stop = middle - way / 2, middle + way / 2
    start, stop = start.reshape(-1, 2), stop.reshape(-1, 2)
    kept = mesh.domain.contains(start) & mesh.domain.contains(stop)
    return start[kept], stop[kept]


class Violation(Exception):
    """The checker's verdict: an implementation broke its promise."""


def check_lattice(mesh, covariance, bits, reaches, sensitivity=field_sensitivity, moves=150):
    """Move one point at a time and compare exact integers with the sensitivity; return the largest ratio seen."""
    rng, worst, root = np.random.default_rng(bits), 0.0, root_of(mesh, covariance)
    for alpha in reaches:
        bound = sensitivity(mesh, covariance, AlphaNeighbours(alpha), bits=bits)
        pairs = [random_moves(mesh, alpha, moves, rng), steepest_moves(mesh, covariance, alpha)]
        for a, b in zip(*(np.vstack([p[i] for p in pairs]) for i in (0, 1)), strict=True):
            step = lattice_field(mesh, root, a[None], bits) - lattice_field(mesh, root, b[None], bits)
            change = math.sqrt(int(step @ step))
            if change > bound:
                msg = f"one move of {alpha:g} changes the statistic by {change}, and the bound is {bound}"
                raise Violation(msg)
            worst = max(worst, change / bound)
    return worst


class TestSensitivity:
    @pytest.mark.exhaustive
    @every_case
    @pytest.mark.parametrize("bits", BITS)
    def test_moves_never_exceed_it(self, mesh, covariance, bits):
        check_lattice(mesh, covariance, bits, [share * spacing(mesh) for share in (1e-3, 0.1, 0.6, 2.0)])

    @every_case
    def test_it_is_attained(self, mesh, covariance):
        """Steep moves inside one element; on a finer lattice than the release's, so that rounding hides nothing."""
        share = 1e-3 if mesh.kind == "square" else 0.2
        assert 0.999 < check_lattice(mesh, covariance, 28, [share * spacing(mesh)], moves=0) <= 1

    @every_case
    def test_appearance_of_a_point(self, mesh, covariance):
        root = root_of(mesh, covariance)
        start, _ = random_moves(mesh, 1e-9, 100, np.random.default_rng(0))
        points = np.vstack([start, mesh.vertices[mesh.domain.contains(mesh.vertices)]])
        for bits in BITS:
            bound = field_sensitivity(mesh, covariance, AddRemove(), bits=bits)
            size = [np.linalg.norm(lattice_field(mesh, root, p[None], bits).astype(float)) for p in points]
            assert max(size) <= bound
        assert max(size) > 0.999 * bound

    def test_all_points_of_a_person_may_change(self):
        mesh, covariance = CASES["soho"]
        for one, many in (
            (AlphaNeighbours(20.0), AlphaNeighbours(20.0, max_points_per_person=4)),
            (AddRemove(), AddRemove(4)),
        ):
            several = field_sensitivity(mesh, covariance, many)
            assert several == pytest.approx(4 * field_sensitivity(mesh, covariance, one), rel=1e-12)

    def test_replace_one_is_the_farthest_move(self):
        mesh, covariance = CASES["triangles on a rectangle"]
        far = field_sensitivity(mesh, covariance, ReplaceOne())
        assert far == field_sensitivity(mesh, covariance, AlphaNeighbours(1e9))
        assert far == pytest.approx(2**20 * math.sqrt(2) * covariance.sigma, rel=1e-3)

    def test_far_coordinates_and_huge_covariances_are_refused(self):
        mesh = regular_triangulation(Window.rectangle(9e11, 0, 9e11 + 1, 1), shape=(3, 3))
        with pytest.raises(InputError, match="elements are too small"):
            field_sensitivity(mesh, PoweredExponential(1.0, 1.0), 0.1)
        with pytest.raises(InputError, match="at most 1000"):
            field_sensitivity(delaunay(0), PoweredExponential(1001.0, 1.0), 1e-6)


class TestPlantedFaults:
    """The checker is worth something only if it fails for wrong implementations."""

    @every_case
    def test_half_the_sensitivity(self, mesh, covariance):
        def half(*args, **options):
            return field_sensitivity(*args, **options) / 2

        with pytest.raises(Violation):
            check_lattice(mesh, covariance, 20, [0.01 * spacing(mesh)], half, moves=0)

    @every_case
    def test_no_room_for_rounding(self, mesh, covariance):
        def tight(mesh, covariance, relation, *, bits):
            return 2.0 ** (bits - 20) * field_sensitivity(mesh, covariance, relation)

        with pytest.raises(Violation):
            check_lattice(mesh, covariance, 4, [5e-3 * spacing(mesh)], tight)

    @pytest.mark.parametrize("name", ["random triangles", "rough field", "squares"])
    def test_mean_gradient_instead_of_the_largest(self, name):
        """The mean over elements, or the gradient in the middle of a square."""
        mesh, covariance = CASES[name]
        matrix, gradient = covariance.matrix(mesh), mesh.gradients.mean(axis=1)
        local = matrix[mesh.elements[:, :, None], mesh.elements[:, None, :]]
        spread = np.einsum("tka,tkl,tlb->tab", gradient, local, gradient)
        mean = math.sqrt(np.linalg.eigvalsh(spread)[..., -1].mean())

        def wrong(mesh, covariance, relation, *, bits):
            return 2**bits * mean * relation.reach + math.sqrt(len(mesh.vertices))

        with pytest.raises(Violation):
            check_lattice(mesh, covariance, 20, [0.01 * spacing(mesh)], wrong, moves=0)


class TestStatistic:
    def test_points_add_up_in_any_order(self):
        """More points than one batch holds: every point's integers are its own."""
        mesh, covariance = CASES["soho"]
        root = root_of(mesh, covariance)
        points, _ = random_moves(mesh, 1e-9, 2 * BATCH, np.random.default_rng(1))
        assert len(points) > BATCH
        total = lattice_field(mesh, root, points, 20)
        order = np.random.default_rng(2).permutation(len(points))
        np.testing.assert_array_equal(lattice_field(mesh, root, points[order], 20), total)
        one = sum(lattice_field(mesh, root, p[None], 20) for p in points[:300])
        np.testing.assert_array_equal(lattice_field(mesh, root, points[:300], 20), one)
        assert not lattice_field(mesh, root, points[:0], 20).any()

    @every_case
    def test_is_the_root_times_the_tent_masses(self, mesh, covariance):
        points, _ = random_moves(mesh, 1e-9, 200, np.random.default_rng(3))
        exact = root_of(mesh, covariance) @ np.asarray(mesh.basis(points).sum(axis=0)).ravel()
        np.testing.assert_allclose(
            lattice_field(mesh, root_of(mesh, covariance), points, 20) / 2**20, exact, atol=len(points) * 2.0**-20
        )

    @every_case
    def test_the_root_does_not_depend_on_how_it_was_computed(self, mesh, covariance):
        """Vertices in another order: the same numbers, as no matrix of eigenvectors would give."""
        matrix = covariance.matrix(mesh)
        order = np.random.default_rng(0).permutation(len(matrix))
        root = square_root(matrix)
        np.testing.assert_allclose(root @ root, matrix, atol=1e-12 * np.trace(matrix))
        np.testing.assert_allclose(square_root(matrix[np.ix_(order, order)]), root[np.ix_(order, order)], atol=1e-7)


class TestDiscreteGaussian:
    """Exact privacy profiles by enumeration, against the mu of docs/theory/field.md, section 3."""

    @pytest.mark.parametrize("scale", [16, 17.3, 40])
    @pytest.mark.parametrize("share", [0.02, 0.3, 1.0, 2.5])
    def test_profile_of_one_number(self, scale, share):
        shift = max(1, round(share * scale))
        mu, tight = discrete_mu(shift, scale), []
        for epsilon in np.linspace(0, 3 * mu, 7):
            delta = profile(scale, [shift], epsilon)
            assert delta <= delta_gaussian(epsilon, mu)
            tight.append(delta > delta_gaussian(epsilon, 0.98 * mu))
        assert any(tight)

    @pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
    def test_profile_of_two_numbers(self, epsilon):
        mu = discrete_mu(5.0, 16.0)
        delta = profile(16.0, [3, 4], epsilon)
        assert delta_gaussian(epsilon, 0.97 * mu) < delta <= delta_gaussian(epsilon, mu)

    def test_coarse_noise_is_refused(self):
        with pytest.raises(InputError, match="at least 16 lattice units, got 15"):
            discrete_mu(1.0, 15.9)


def profile(scale, shifts, epsilon):
    """Exact `sum (p - e^epsilon p')_+` of discrete Gaussian vectors shifted by `shifts`; tails are below 1e-30."""
    k = np.arange(-int(14 * scale), int(14 * scale) + 1)
    total, neighbour = np.ones(1), np.ones(1)
    for shift in shifts:
        p, q = (np.exp(-((k - s) ** 2) / (2 * scale**2)) for s in (0, shift))
        norm = p.sum()
        total, neighbour = np.outer(total, p / norm).ravel(), np.outer(neighbour, q / norm).ravel()
    return np.maximum(total - math.exp(epsilon) * neighbour, 0).sum()


MESH = regular_triangulation(Window.rectangle(0, 0, 10, 10), shape=(7, 7))
RELATIONS = [AlphaNeighbours(0.7), AlphaNeighbours(0.7, max_points_per_person=3), ReplaceOne(), AddRemove(2)]


def planned(relation, epsilon=1.0, *, mesh=MESH, share=1.0, length_scale=3.0, n=400):
    mu = gaussian_mu(epsilon, 1e-6)
    sigma = share * largest_field_sigma(mesh, PoweredExponential(1.0, length_scale), relation, mu)
    sizes = (n, None) if relation.n_is_public else (None, float(n))
    return FieldMasses(mesh, PoweredExponential(sigma, length_scale), relation, *sizes, epsilon, 1e-6)


class TestGuarantee:
    @pytest.mark.parametrize("relation", RELATIONS, ids=repr)
    @pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
    def test_the_largest_sigma_spends_the_budget_and_no_more(self, relation, epsilon):
        plan = planned(relation, epsilon)
        guarantee = plan.guarantee
        assert (1 - 1e-6) * epsilon < guarantee.epsilon(1e-6) <= epsilon
        assert guarantee.mu == plan.mu == discrete_mu(plan.sensitivity, plan.scale)
        assert guarantee.theorem == "field-statistic"
        assert guarantee.profile.at == 1e-6
        with pytest.raises(PrivacyCheckError, match="sigma must be at most") as refused:
            planned(relation, epsilon, share=1 + 1e-6)
        said = float(str(refused.value).split("at most ")[1].split()[0])
        assert said == pytest.approx(plan.covariance.sigma, rel=1e-8)

    def test_a_smaller_sigma_spends_less(self):
        assert planned(RELATIONS[0], share=0.5).guarantee.epsilon() < 0.6

    def test_what_can_be_told_apart_by_distance(self):
        """For one point; at alpha the curve is the guarantee itself."""
        alpha = MESH.domain.diameter / 20
        guarantee = planned(AlphaNeighbours(alpha)).guarantee
        distance, epsilon = np.array(guarantee.by_distance).T
        assert np.all(np.diff(epsilon) >= 0)
        assert (distance[1], distance[-1]) == pytest.approx((alpha, MESH.domain.diameter))
        assert epsilon[1] == pytest.approx(guarantee.epsilon(), rel=1e-9)
        many = planned(AlphaNeighbours(alpha, max_points_per_person=3)).guarantee
        assert many.by_distance[5][1] == pytest.approx(many.epsilon(), rel=0.05)
        assert planned(AddRemove()).guarantee.by_distance == ()

    def test_mu_beyond_the_proof_is_refused(self):
        with pytest.raises(InputError, match="at most 30 is proved"):
            field_statistic(MESH, PoweredExponential(100.0, 1.0), ReplaceOne(), delta=1e-6)

    def test_a_plan_beyond_the_proof_is_refused_whatever_the_budget(self):
        assert planned(RELATIONS[0], 1000.0).mu == pytest.approx(30, rel=1e-6)
        with pytest.raises(PrivacyCheckError, match="sigma must be at most"):
            planned(RELATIONS[0], 1000.0, share=1.01)

    def test_a_budget_below_the_rounding_is_refused(self):
        with pytest.raises(PrivacyCheckError, match="rounding to the lattice"):
            largest_field_sigma(MESH, PoweredExponential(1.0, 3.0), AlphaNeighbours(0.7), 1e-6)

    def test_parameters_make_the_plan_again(self):
        plan = planned(RELATIONS[0])
        stated = plan.parameters()
        assert covariance_from_dict(stated["covariance"]) == plan.covariance
        again = field_statistic(
            MESH,
            covariance_from_dict(stated["covariance"]),
            plan.relation,
            delta=stated["delta"],
        )
        assert (stated["scale"], stated["lattice_bits"]) == (2.0**20, 20)
        assert again == plan.guarantee
        with pytest.raises(InputError, match="kind 'spline' is not known"):
            covariance_from_dict({"kind": "spline"})


def steepest_pair(alpha):
    """The two patterns of one point, alpha apart, that `MESH` tells apart best."""
    root = root_of(MESH, PoweredExponential(1.0, 3.0))
    pairs = list(zip(*steepest_moves(MESH, PoweredExponential(1.0, 3.0), alpha), strict=True))
    change = [lattice_field(MESH, root, a[None], 20) - lattice_field(MESH, root, b[None], 20) for a, b in pairs]
    best = pairs[int(np.argmax([np.linalg.norm(c) for c in change]))]
    return [PointPattern(point[None], MESH.domain) for point in best]


def audit(plan, pattern, neighbour, runs=1500):
    """Lower confidence bound of mu, wrong less than once in 1e6: five standard errors, from the best linear test."""
    rng = np.random.default_rng(1)
    way = (plan.exact(pattern.xy) - plan.exact(neighbour.xy)).astype(float)
    seen = [[plan.measure(p, rng).lattice @ way for _ in range(runs)] for p in (pattern, neighbour)]
    spread = math.sqrt((np.var(seen[0]) + np.var(seen[1])) / 2)
    mu = (np.mean(seen[0]) - np.mean(seen[1])) / spread
    return mu - 5 * math.sqrt((2 + mu**2 / 4) / runs)


class TestRelease:
    def test_claim_stands_and_halved_noise_is_caught(self, monkeypatch):
        pattern, neighbour = steepest_pair(0.7)
        plan = planned(AlphaNeighbours(0.7), 10.0, n=1)
        assert 0.8 * plan.guarantee.mu < audit(plan, pattern, neighbour) <= plan.guarantee.mu
        rng = np.random.default_rng(8)
        randomise_by(monkeypatch, lambda plan, draw, exact: SeededGaussian(plan.scale / 2, rng).add(exact))
        assert audit(plan, pattern, neighbour) > plan.guarantee.mu

    def test_opendp_confirms_the_budget_before_noise_is_drawn(self):
        pattern, _ = steepest_pair(0.7)
        plan = planned(AlphaNeighbours(0.7), n=1)
        statistic = plan.measure(pattern)
        assert not statistic.seeded
        assert statistic.noise == "discrete-gaussian"
        assert statistic.noise_scale == 1.0

        class Careless(FieldMasses):
            mu, scale = plan.mu, 2.0**19

        careless = object.__new__(Careless)
        careless.__dict__.update(plan.__dict__)
        with pytest.raises(PrivacyCheckError, match="spends mu"):
            careless.measure(pattern)

    def test_noise_has_unit_variance(self):
        """400 patterns, 49 numbers each: the standard error of the mean square is 1 %, six of them are allowed."""
        pattern, _ = steepest_pair(0.7)
        plan, rng = planned(AlphaNeighbours(0.7), n=1), np.random.default_rng(5)
        exact = plan.exact(pattern.xy) / 2**20
        noise = np.array([plan.measure(pattern, rng).values - exact for _ in range(400)])
        assert abs((noise**2).mean() - 1) < 0.06
        assert abs(np.cov(noise.T) - np.eye(49)).max() < 0.4

    def test_wrong_patterns_are_refused(self):
        plan = planned(AlphaNeighbours(0.7), n=3)
        with pytest.raises(InputError, match="another number of points"):
            plan.measure(steepest_pair(0.7)[0])
        with pytest.raises(InputError, match="its domain differs"):
            plan.measure(PointPattern(np.full((3, 2), 0.5), UNIT))

    def test_json_form(self):
        statistic = planned(AlphaNeighbours(0.7), n=1).measure(steepest_pair(0.7)[0], 1)
        again = statistic.definition.restore(statistic.to_dict())
        np.testing.assert_array_equal(again.values, statistic.values)
        assert len(statistic.to_dict()["lattice"]) == len(MESH.vertices)


FINE = refine(MESH, 2)
TENTS = MESH.basis(FINE.vertices).toarray().T.copy()
COLUMNS = factor(PoweredExponential(1.5, 3.0).matrix(MESH))


def make(n, seed=0, *, values=None, noise_sd=1.0):
    """A likelihood at an uneven estimate, and a field."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=len(FINE.vertices)) + (0 if n else np.log(0.4))
    start = NoisyField(np.zeros(COLUMNS.shape[1]), COLUMNS, noise_sd, FINE.measure, TENTS, n, FINE.measure)
    m = start.expected_masses(w)
    values = COLUMNS.T @ m + rng.normal(size=COLUMNS.shape[1]) if values is None else values
    return replace(start, values=values, estimate=start.vertex_masses(w)), w


@pytest.mark.parametrize("n", [40, None])
class TestLikelihood:
    def test_gradient_is_the_slope(self, n):
        likelihood, w = make(n)
        slope = central_differences(lambda x: likelihood.evaluate(x).value, w)
        np.testing.assert_allclose(likelihood.evaluate(w).gradient, slope, atol=2e-8)

    def test_root_squares_to_the_information(self, n):
        """The information is minus the Hessian if the statistic equals its mean."""
        likelihood, w = make(n)
        likelihood = replace(likelihood, values=COLUMNS.T @ likelihood.expected_masses(w))
        hessian = central_differences(lambda x: likelihood.evaluate(x).gradient, w)
        root = likelihood.evaluate(w).root
        np.testing.assert_allclose(likelihood.evaluate(w).gradient, 0, atol=1e-12)
        np.testing.assert_allclose(root.T @ root, -hessian, atol=1e-7)

    def test_value_is_the_gaussian_log_density(self, n):
        likelihood, w = make(n, noise_sd=0.8)
        q = likelihood.vertex_masses(w)
        spread = TENTS @ (np.diag(q) - (0 if n is None else np.outer(q, q) / n)) @ TENTS.T
        law = scipy.stats.multivariate_normal(cov=COLUMNS.T @ spread @ COLUMNS + 0.64 * np.eye(COLUMNS.shape[1]))
        other = np.random.default_rng(1).normal(size=len(w))
        got = likelihood.evaluate(w).value - likelihood.evaluate(other).value
        want = [law.logpdf(likelihood.values - COLUMNS.T @ likelihood.expected_masses(x)) for x in (w, other)]
        assert got == pytest.approx(want[0] - want[1], rel=1e-9)

    def test_whitened_statistics_of_real_counts_have_unit_covariance(self, n):
        """40 000 draws: standard errors below 0.01, six of them are allowed."""
        likelihood, w = make(n)
        rng, q = np.random.default_rng(8), likelihood.vertex_masses(w)
        counts = rng.poisson(q, (40_000, len(w))) if n is None else rng.multinomial(n, q / n, 40_000)
        values = counts @ TENTS.T @ COLUMNS + rng.normal(size=(40_000, COLUMNS.shape[1]))
        whiten = np.array([replace(likelihood, values=unit).arguments[0] for unit in np.eye(COLUMNS.shape[1])])
        residual = values @ whiten - likelihood.arguments[2] @ q
        assert abs(residual.mean(axis=0)).max() < 0.06
        assert abs(np.cov(residual.T) - np.eye(COLUMNS.shape[1])).max() < 0.06

    def test_laplace_mode_is_the_maximum(self, n):
        likelihood, _ = make(n)
        basis = factor(PoweredExponential(1.6, 3.0).matrix(FINE))
        basis = basis if n else np.column_stack([basis, np.full(len(basis), 2.0)])
        fit = laplace_posterior(likelihood, basis, tolerance=1e-14)

        def log_posterior(z):
            return likelihood.evaluate(basis @ z).value - z @ z / 2

        rng = np.random.default_rng(0)
        nearby = [log_posterior(fit.mode + 0.02 * rng.normal(size=len(fit.mode))) for _ in range(100)]
        assert max(nearby) < log_posterior(fit.mode)

    @pytest.mark.slow
    def test_pymc_model_evaluates_the_same_formula(self, n):
        likelihood, _ = make(n)
        basis = factor(PoweredExponential(1.6, 3.0).matrix(FINE))
        model = build_noise_aware(likelihood, basis, centre=-0.3)
        z = np.random.default_rng(2).normal(size=basis.shape[1])
        here = likelihood.evaluate(basis @ z - 0.3)
        normal = -0.5 * z @ z - 0.5 * len(z) * np.log(2 * np.pi)
        assert model.compile_logp()({"z": z}) == pytest.approx(here.value + normal, rel=1e-12)
        np.testing.assert_allclose(model.compile_dlogp()({"z": z}), basis.T @ here.gradient - z, rtol=1e-9, atol=1e-10)


def coverage(noise_sd):
    """Share of the truth in 90 % intervals of the Laplace approximation, and the total variation distance of its mean.

    True length scale, 30 patterns of 400 points, the noise taken to have the given standard deviation.
    """
    rng = np.random.default_rng(6)
    plan, model = planned(AlphaNeighbours(0.7)), LGCPInference(FINE, (3.0,), inference="laplace")
    root, hits, error = model.prior_factor(3.0, intercept=False), [], []
    for _ in range(30):
        w = root @ rng.normal(size=root.shape[1])
        w += np.log(400 / LogLinear(FINE, w).total)
        likelihood = model.likelihood(plan.measure(binomial_pattern(LogLinear(FINE, w), 400, rng), rng))
        likelihood = replace(likelihood, noise_sd=noise_sd)
        for _ in range(2):
            fit = laplace_posterior(likelihood, root)
            likelihood = likelihood.at(likelihood.vertex_masses(fit.field_mode))
        q, draws = 400 * FINE.measure * np.exp(w) / (FINE.measure @ np.exp(w)), fit.draw(300, rng)
        masses = likelihood.vertex_masses(draws)
        low, high = np.quantile(masses, (0.05, 0.95), axis=0)
        hits.append(((low <= q) & (q <= high)).mean())
        error.append(np.abs(masses.mean(axis=0) - q).sum() / 800)
    return np.mean(hits), np.mean(error)


@pytest.mark.slow
def test_intervals_cover_and_notice_a_model_that_forgets_the_noise():
    """Patterns' shares have a standard deviation of 0.06, their mean one of 0.012: six of them either side."""
    covered, error = coverage(1.0)
    assert abs(covered - 0.85) < 0.07
    assert error < 0.2
    assert coverage(0.1)[0] < 0.78


def test_secret_n_is_estimated():
    """Under add/remove the posterior's total follows the statistic, not the public guess."""
    rng = np.random.default_rng(7)
    plan = planned(AddRemove(), 5.0, n=100)
    pattern = binomial_pattern(LogLinear(MESH, np.zeros(49)), 300, rng)
    model = LGCPInference(MESH, (3.0,), inference="laplace")
    statistic = plan.measure(pattern, rng)
    assert 240 < model.posterior_mean(model.fit(statistic, rng)).total < 360
    assert 240 < model.intensity(statistic).total < 360


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("n", "given", "taken"), [(10**6, "auto", "nuts"), (10**7, "auto", "laplace"), (10**7, "nuts", "nuts")]
)
def test_chains_behind_too_many_points_are_not_started(n, given, taken):
    """Ten million points were paid for, and NUTS did not mix behind them."""
    plan = LGCPSynthesizer(1.0, alpha=0.5, delta=1e-8, mechanism="field", inference=given).plan(MESH.domain, n=n)
    assert plan.estimator.inference == taken
