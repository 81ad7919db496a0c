"""Fields along streets: closed forms on a line and a ring, Kirchhoff's condition, crossings, and sums of fields.

Statistical thresholds have a false-alarm rate below 1e-6; seeds are fixed.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from dpppsynth import datasets
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.linear_network.heat_kernels import conductances
from dpppsynth.linear_network.mesh import SegmentCells
from dpppsynth.models import NoisyMasses, laplace_posterior
from dpppsynth.models.recipes import trace_mesh
from dpppsynth.models.sparse_fields import SparseMatern, constant, moved, scaled, summed
from dpppsynth.models.sparse_posterior import sparse_posterior
from dpppsynth.models.street_fields import MOST_MEETING, StreetMatern, edge_numbers, street_ties

# A crossing of two straight streets, 400 m each way, and one that bends.
CROSS = LinearNetwork(
    [[0, 0], [400, 0], [-400, 0], [0, 400], [0, -400], [700, 300]], [[0, 1], [2, 0], [0, 3], [4, 0], [1, 5]]
)
SOHO = datasets.soho_deaths(on="streets").domain


def correlation(field):
    covariance = field.covariance()
    sd = np.sqrt(np.diag(covariance))
    return covariance / np.outer(sd, sd)


def at(mesh, edge, along):
    return int(mesh.locate(np.array([[edge, along]], dtype=float))[0])


def test_a_long_street_has_the_exponential_covariance():
    mesh = network_mesh(LinearNetwork([[0, 0], [20_000, 0]], [[0, 1]]), 10.0)
    found = StreetMatern(1.5, 400.0, 50.0).on(mesh).covariance()
    middle, away = at(mesh, 0, 10_000), np.arange(0, 80)
    np.testing.assert_allclose(found[middle, middle + away], 1.5**2 * np.exp(-2 * 10 * away / 400), atol=2e-3)


@pytest.mark.parametrize("detour", [0.0, 1e6])
def test_a_ring_has_its_closed_form(detour):
    """On a circle of circumference c the correlation at distance d is cosh(kappa (c/2 - d)) / cosh(kappa c/2)."""
    angle = 2 * np.pi * np.arange(64) / 64
    ring = LinearNetwork(np.column_stack([np.cos(angle), np.sin(angle)]) * 100, [[k, (k + 1) % 64] for k in range(64)])
    mesh, half, kappa = network_mesh(ring, 1.0), ring.length / 2, 2 / 300.0
    found = correlation(StreetMatern(1.0, 300.0, detour).on(mesh))
    away = network_distances(mesh)
    np.testing.assert_allclose(found, np.cosh(kappa * (half - away)) / np.cosh(kappa * half), atol=1e-3)


def test_numbers_of_edges_are_shared_within_an_edge_alone():
    mesh = network_mesh(CROSS, 70.0)
    field = scaled(edge_numbers(mesh), 1.5)
    np.testing.assert_allclose(field.covariance(), 1.5**2 * (mesh.edge[:, None] == mesh.edge), atol=1e-12)
    # Its determinant enters the evidence, by which it is weighed against other fields.
    assert field.log_det == pytest.approx(np.linalg.slogdet(field.precision.toarray())[1], abs=1e-12)


def network_distances(mesh):
    middles = SegmentCells.of(mesh).positions
    from dpppsynth.linear_network.shortest_paths import distances

    return distances(mesh.domain, middles, middles)


def test_equal_weights_are_the_whittle_matern_field_of_the_network():
    """Its Laplacian without detours is that of the heat equation with Kirchhoff's condition."""
    mesh = network_mesh(CROSS, 5.0)
    field, flow, kappa = StreetMatern(1.0, 300.0).on(mesh), conductances(mesh), 2 / 300.0
    laplacian = sp.diags_array(flow.sum(axis=1)) - flow
    wanted = (kappa**2 * sp.diags_array(mesh.element_measure) + laplacian) / (2 * kappa)
    np.testing.assert_allclose(field.precision.toarray(), wanted.toarray(), atol=1e-12)
    finer = network_mesh(CROSS, 2.5)
    elements = moved(SparseMatern(1.0, 300.0, 0.5).on(finer), finer.basis(SegmentCells.of(mesh).positions))
    np.testing.assert_allclose(correlation(field), correlation(elements), atol=0.02)


def test_streets_carry_on_straight_more_than_they_turn():
    plus = LinearNetwork([[0, 0], [400, 0], [-400, 0], [0, 400], [0, -400]], [[0, 1], [2, 0], [0, 3], [4, 0]])
    mesh = network_mesh(plus, 20.0)
    west, east, north = at(mesh, 1, 390.0), at(mesh, 0, 10.0), at(mesh, 2, 10.0)
    straight, turned = [], []
    for detour in (0.0, 100.0, 2000.0, 1e12):
        found = correlation(StreetMatern(1.0, 600.0, detour).on(mesh))
        straight.append(found[west, east])
        turned.append(found[west, north])
    assert straight[0] == pytest.approx(turned[0], abs=1e-9)
    assert (np.diff(straight) > 0).all()
    assert (np.diff(turned) < 0).all()
    assert turned[-1] < 1e-8
    assert straight[-1] == pytest.approx(np.exp(-2 * 20 / 600), abs=0.01)


def test_a_bend_is_one_street_whatever_its_angle():
    mesh = network_mesh(CROSS, 20.0)
    before, after = at(mesh, 0, 390.0), at(mesh, 4, 10.0)
    alone = network_mesh(LinearNetwork([[0, 0], [400, 0]], [[0, 1]]), 20.0)
    for detour in (0.0, 1e12):
        found = correlation(StreetMatern(1.0, 600.0, detour).on(mesh))
        assert found[before, after] > 0.9
    assert len(street_ties(alone).pair) == len(alone.elements) - 1


@pytest.mark.parametrize(
    ("towards", "straight"),
    [
        (((1, 0), (-1, 0), (0, 1)), {(0, 1)}),
        (((1, 0), (-1, 0.9), (0, 1)), {(0, 1)}),
        (((1, 0), (-1, 1.1), (0, 1)), set()),
        (((1, 0), (-0.5, 0.866), (-0.5, -0.866)), set()),
        (((1, 0), (-1, 0.1), (-1, -0.2), (0, 1)), {(0, 1)}),
        (((1, 0), (-1, 0), (0, 1), (0.1, -1)), {(0, 1), (2, 3)}),
    ],
)
def test_who_carries_on_at_a_crossing(towards, straight):
    """The straightest pairs, up to 45 degrees; what is said does not depend on the order or direction of edges."""
    tips = 100 * np.array(towards, dtype=float)
    edges = np.column_stack([np.zeros(len(tips), dtype=int), np.arange(1, len(tips) + 1)])
    for order in (np.arange(len(tips)), np.arange(len(tips))[::-1]):
        flipped = np.where(np.arange(len(tips))[:, None] % 2 == 0, edges[order], edges[order][:, ::-1])
        ties = street_ties(network_mesh(LinearNetwork(np.vstack([[0, 0], tips]), flipped), 1000.0))
        found = {tuple(sorted(order[list(pair)])) for pair in ties.pair[ties.street > 0]}
        assert {tuple(map(int, pair)) for pair in found} == straight
        assert len(ties.pair) == len(tips) * (len(tips) - 1) // 2


@pytest.mark.parametrize("detour", [0.0, 3000.0, 1e9])
def test_variance_is_right_everywhere(detour):
    """Soho has a street of a centimetre, dead ends and crossings of five."""
    mesh = network_mesh(SOHO, 40.0)
    field = StreetMatern(1.7, 500.0, detour).on(mesh)
    covariance = field.covariance()
    np.testing.assert_allclose(np.diag(covariance), 1.7**2, rtol=1e-6)
    np.testing.assert_allclose(covariance, covariance.T, atol=1e-8)
    assert abs(field.precision - field.precision.T).max() == 0
    np.testing.assert_allclose((field.root @ field.root.T).toarray(), field.precision.toarray(), rtol=1e-10, atol=1e-10)
    assert field.log_det == pytest.approx(np.linalg.slogdet(field.precision.toarray())[1], rel=1e-9)


def test_cutting_streets_finer_changes_little():
    coarse, fine = (network_mesh(CROSS, size) for size in (40.0, 40.0 / 3))
    cov = [correlation(StreetMatern(1.0, 800.0, 300.0).on(mesh)) for mesh in (coarse, fine)]
    places = [
        [at(mesh, edge, along) for edge, along in ((0, 20.0), (0, 380.0), (2, 200.0), (4, 100.0))]
        for mesh in (coarse, fine)
    ]
    one, other = (c[np.ix_(p, p)] for c, p in zip(cov, places, strict=True))
    np.testing.assert_allclose(one, other, atol=0.03)


def test_what_is_no_field_is_refused():
    for detour in (-0.1, np.inf, np.nan):
        with pytest.raises(InputError, match=r"^detour: must be a length"):
            StreetMatern(1.0, 100.0, detour)
    angle = np.linspace(0, 2 * np.pi, MOST_MEETING + 2)[:-1]
    tips = np.column_stack([np.cos(angle), np.sin(angle)])
    star = LinearNetwork(np.vstack([[0, 0], tips]), [[0, k + 1] for k in range(len(tips))])
    with pytest.raises(InputError, match=r"^network: 65 edges meet at one vertex"):
        StreetMatern(1.0, 1.0).on(network_mesh(star, 1.0))


class TestSums:
    """A field of the plane, one along streets, and an intercept."""

    MESH = network_mesh(CROSS, 60.0)
    CELLS = SegmentCells.of(MESH)
    PLANE = trace_mesh(CROSS, shape=(9, 9))

    def parts(self):
        plane = moved(SparseMatern(1.5, 500.0, 1.0).on(self.PLANE), self.PLANE.basis(self.CELLS.positions))
        return plane, scaled(StreetMatern(1.0, 900.0, 200.0).on(self.MESH), 0.7), constant(len(self.MESH.elements), 2.0)

    def test_covariances_add_up(self):
        parts = self.parts()
        np.testing.assert_allclose(summed(*parts).covariance(), sum(part.covariance() for part in parts), rtol=1e-8)
        np.testing.assert_allclose(parts[2].covariance(), 4.0)
        assert summed(*parts).log_det == pytest.approx(sum(part.log_det for part in parts))

    def test_unknowns_of_a_field_give_it_back(self):
        prior = summed(*self.parts())
        field = np.linspace(-1, 1, len(self.MESH.elements))
        assert np.abs(prior.placement @ prior.unknowns_of(field) - field).max() < 0.2

    @pytest.mark.parametrize("n", [120.0, None])
    def test_posterior_is_that_of_dense_matrices(self, n):
        """Mode, variances, and the evidence up to a constant shared by priors."""
        rng, count = np.random.default_rng(3), len(self.MESH.elements)
        masses = rng.poisson(120 * rng.dirichlet(np.ones(count))) + rng.laplace(scale=2.0, size=count)
        measure, centre, evidence = self.CELLS.measure, 0.0 if n else float(np.log(120 / CROSS.length)), []
        plane, streets, one = self.parts()
        for factor in (1.0, 2.0):
            prior = summed(plane, scaled(streets, factor), *([] if n else [one]))
            likelihood = NoisyMasses(masses, 2.0, measure, sp.eye_array(count, format="csr"), n)
            sparse = sparse_posterior(likelihood, prior, centre, tolerance=1e-9)
            root = np.linalg.cholesky(prior.covariance() + 1e-9 * np.eye(count))
            dense = laplace_posterior(NoisyMasses(masses, 2.0, measure, np.eye(count), n), root, centre)
            np.testing.assert_allclose(sparse.field_mode, dense.field_mode, atol=2e-3)
            inner = np.linalg.inv(np.eye(count) + dense.root.T @ dense.root)
            placed = prior.placement.toarray()
            found = np.diag(placed @ sparse.precision.solve(placed.T))
            np.testing.assert_allclose(found, np.diag(root @ inner @ root.T), rtol=1e-3)
            evidence.append(sparse.log_evidence - dense.log_evidence)
        assert evidence[0] == pytest.approx(evidence[1], abs=1e-3)

    @pytest.mark.slow
    def test_draws_have_the_posterior_covariance(self):
        count = len(self.MESH.elements)
        likelihood = NoisyMasses(
            np.ones(count), 1.0, self.CELLS.measure, sp.eye_array(count, format="csr"), float(count)
        )
        posterior = sparse_posterior(likelihood, summed(*self.parts()[:2]))
        draws = posterior.draw(20_000, np.random.default_rng(5)) - posterior.field_mode
        # Relative error of a variance from k draws: sqrt(2/k) = 1 %; six of those.
        placed = posterior.prior.placement.toarray()
        variances = np.diag(placed @ posterior.precision.solve(placed.T))
        np.testing.assert_allclose((draws**2).mean(axis=0), variances, rtol=0.06)
