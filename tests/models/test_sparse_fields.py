"""Sparse Matern fields against closed forms of their covariance, and against dense matrices on small meshes."""

import numpy as np
import pytest
import scipy.sparse as sp
import shapely
from support.fields import matern
from support.networks import web

from dpppsynth import InputError, LinearNetwork, Window
from dpppsynth.core.errors import QualityError
from dpppsynth.linear_network import network_mesh
from dpppsynth.models import regular_squares, regular_triangulation, trace_mesh
from dpppsynth.models.finite_elements import mesh_elements
from dpppsynth.models.sparse_fields import MOST_UNKNOWNS, SparseMatern, field_of_precision
from dpppsynth.models.sparse_solver import SparseFactor
from dpppsynth.spatial.mesh import Mesh

SQUARE = Window.rectangle(0, 0, 1000, 1000)
HOLED = Window(
    shapely.Polygon(
        [(0, 0), (1000, 0), (1000, 1000), (600, 1000), (0, 700)], [[(300, 300), (600, 300), (600, 600), (300, 600)]]
    )
)
STREET = LinearNetwork([[0, 0], [1000, 0]], [[0, 1]])
# A closed street of length 1000: one edge from a vertex to itself.
RING = LinearNetwork([[0, 0]], [[0, 0]], lines=[shapely.LineString([(0, 0), (250, 0), (250, 250), (0, 250), (0, 0)])])


def arrays(window, side):
    """A mesh that nothing is known of but its triangles."""
    regular = regular_triangulation(window, shape=(side, side))
    return Mesh.from_arrays(regular.vertices, regular.elements, window)


PLANAR = {
    "square": regular_triangulation(SQUARE, shape=(21, 21)),
    "holed": regular_triangulation(HOLED, shape=(21, 21)),
    "squares": regular_squares(SQUARE, shape=(21, 21)),
    "arrays": arrays(SQUARE, 21),
    "trace": trace_mesh(LinearNetwork([[0, 0], [900, 700], [1000, 0]], [[0, 1], [1, 2]]), shape=(21, 21)),
}


@pytest.mark.parametrize("nu", [1.0, 3.0])
@pytest.mark.parametrize("mesh", PLANAR.values(), ids=PLANAR.keys())
def test_standard_deviations_are_right_everywhere(mesh, nu):
    """At borders, corners and holes; without correction they are 40 to 100 % too large there."""
    for range_ in (150.0, 300.0, 600.0):
        covariance = SparseMatern(1.6, range_, nu).on(mesh).covariance()
        np.testing.assert_allclose(np.sqrt(np.diag(covariance)), 1.6, rtol=1e-8)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "nu", "range_", "error"),
    [(name, nu, 300.0, 0.06) for name in ("square", "holed", "squares", "trace") for nu in (1.0, 3.0)]
    + [("square", 1.0, 600.0, 0.1), ("holed", 1.0, 600.0, 0.1)],
)
def test_correlations_are_those_of_the_closed_form(name, nu, range_, error):
    """All over a padded mesh, pairs of border vertices included; a range off by a fifth would be seen."""
    mesh = PLANAR[name]
    covariance = SparseMatern(2.0, range_, nu).on(mesh).covariance() / 4
    right, long, short = (np.abs(covariance - matern(mesh.metric, range_ * share, nu)) for share in (1, 1.2, 1 / 1.2))
    assert right.max() < error
    assert right.mean() < min(long.mean(), short.mean())


@pytest.mark.parametrize("nu", [1.0, 3.0])
def test_closed_forms_of_a_grid_are_those_of_its_matrices(nu):
    """Variances and determinants, with unequal steps: a cosine or a corner's mass put wrong changes them."""
    mesh = regular_triangulation(Window.rectangle(0, 0, 700, 1000), shape=(8, 6))
    field = SparseMatern(1.0, 400.0, nu).on(mesh)
    factor = SparseFactor(field.precision)
    assert field.log_det == pytest.approx(factor.log_det, rel=1e-10)
    variances = field.placement.power(2) @ np.diag(factor.solve(np.eye(field.size)))
    np.testing.assert_allclose(variances, 1.0, rtol=1e-8)


@pytest.mark.slow
def test_correlations_approach_the_closed_form_as_meshes_are_refined():
    errors = []
    for side in (11, 21, 41):
        mesh = regular_triangulation(SQUARE, shape=(side, side))
        covariance = SparseMatern(1.0, 400.0, 3.0).on(mesh).covariance()
        inner = np.abs(mesh.vertices - 500).max(axis=1) < 250
        error = np.abs(covariance - matern(mesh.metric, 400.0, 3.0))
        errors.append(error[np.ix_(inner, inner)].max())
    # Away from the border, which the padding leaves a little wrong.
    assert errors[1] < 0.4 * errors[0]
    assert errors[2] < 0.4 * errors[1]


@pytest.mark.parametrize("nu", [0.5, 1.5])
def test_fields_on_a_long_street_have_the_covariance_of_the_line(nu):
    mesh = network_mesh(STREET, 5.0)
    covariance = SparseMatern(1.5, 100.0, nu).on(mesh).covariance()
    np.testing.assert_allclose(np.diag(covariance), 1.5**2, rtol=1e-9)
    along = mesh.vertices[:, 0]
    inner = (along > 250) & (along < 750)
    distance = np.abs(along[inner, None] - along[inner])
    np.testing.assert_allclose(covariance[np.ix_(inner, inner)] / 1.5**2, matern(distance, 100.0, nu), atol=0.01)


def test_fields_on_a_ring_have_the_closed_form_of_the_circle():
    mesh = network_mesh(RING, 5.0)
    covariance = SparseMatern(1.0, 400.0, 0.5).on(mesh).covariance()
    kappa = 2 / 400.0
    around = np.abs(mesh.positions[:, 1] - mesh.positions[0, 1])
    expected = np.cosh(kappa * (500 - around)) / np.cosh(kappa * 500)
    np.testing.assert_allclose(covariance[0], expected, atol=2e-4)


@pytest.mark.parametrize("nu", [0.5, 1.5])
def test_dead_ends_and_crossings_have_the_same_standard_deviation(nu):
    covariance = SparseMatern(0.8, 2.0, nu).on(network_mesh(web(), 0.3)).covariance()
    np.testing.assert_allclose(np.diag(covariance), 0.64, rtol=1e-9)
    assert np.linalg.eigvalsh(covariance).min() > 0


@pytest.mark.parametrize(
    ("mesh", "nu"),
    [(PLANAR["holed"], 1.0), (PLANAR["holed"], 3.0), (PLANAR["arrays"], 1.0)]
    + [(network_mesh(web(), 0.5), nu) for nu in (0.5, 1.5)],
)
def test_precision_root_and_determinant_belong_together(mesh, nu):
    field = SparseMatern(1.3, 0.3 * mesh.domain.diameter, nu).on(mesh)
    for each in (field, field.with_intercept(2.0)):
        dense = each.precision.toarray()
        np.testing.assert_allclose((each.root @ each.root.T).toarray(), dense, rtol=1e-9, atol=1e-9 * dense.max())
        assert each.log_det == pytest.approx(np.linalg.slogdet(dense)[1], rel=1e-9, abs=1e-6)
    np.testing.assert_allclose(field.with_intercept(2.0).covariance(), field.covariance() + 4.0, rtol=1e-6)


def test_mass_is_that_of_whole_elements_and_gradients_integrate():
    """On triangles, halved squares and segments: a linear function's squared slope is integrated exactly."""
    for mesh in (PLANAR["square"], PLANAR["squares"]):
        elements = mesh_elements(mesh)
        assert elements.mass.sum() == pytest.approx(1e6)
        plane = mesh.vertices @ [3.0, -4.0]
        assert plane @ (elements.stiffness @ plane) == pytest.approx(25e6)
    elements = mesh_elements(network_mesh(STREET, 30.0))
    along = network_mesh(STREET, 30.0).vertices[:, 0]
    assert elements.mass.sum() == pytest.approx(1000)
    assert along @ (elements.stiffness @ along) == pytest.approx(1000)


def test_a_precision_of_ones_own_is_taken_as_it_is():
    mesh = regular_triangulation(SQUARE, shape=(4, 4))
    root = sp.random_array((16, 16), density=0.3, rng=np.random.default_rng(5))
    precision = (root @ root.T + sp.eye_array(16)).tocsc()
    field = field_of_precision(precision, mesh)
    np.testing.assert_allclose(field.covariance(), np.linalg.inv(precision.toarray()), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose((field.root @ field.root.T).toarray(), precision.toarray(), atol=1e-12)
    for wrong in (sp.eye_array(15), sp.csc_array(np.triu(np.ones((16, 16)))), np.nan * sp.eye_array(16)):
        with pytest.raises(InputError, match=r"a precision needs to be a symmetric matrix \(16, 16\)"):
            field_of_precision(wrong, mesh)
    with pytest.raises(QualityError, match="not positive definite"):
        field_of_precision(-sp.eye_array(16), mesh)


def test_smoothness_belongs_to_the_dimension():
    for mesh, nu in ((PLANAR["square"], 0.5), (network_mesh(STREET, 50.0), 1.0)):
        with pytest.raises(InputError, match="smoothness: must be"):
            SparseMatern(1.0, 100.0, nu).on(mesh)
    for wrong in ({"smoothness": 2.0}, {"sigma": 0.0}, {"range": -1.0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            SparseMatern(**({"sigma": 1.0, "range": 100.0, "smoothness": 1.0} | wrong))


def test_fields_too_large_for_memory_are_refused():
    with pytest.raises(InputError, match=f"more than {MOST_UNKNOWNS}"):
        SparseMatern(1.0, 1e6, 1.0).on(regular_triangulation(SQUARE, shape=(400, 400)))
    assert SparseMatern(1.0, 150.0, 1.0).unknowns(PLANAR["square"]) == 25**2
