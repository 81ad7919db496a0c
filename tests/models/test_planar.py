"""Regular meshes of planar windows: recipes, refinement, refusals, and why basis integrals are the right areas."""

import json

import numpy as np
import pytest
import scipy.spatial
import shapely
from shapely.geometry import Polygon

from dpppsynth import datasets
from dpppsynth.core.errors import InputError
from dpppsynth.models import (
    NoisyMasses,
    PoweredExponential,
    factor,
    laplace_posterior,
    mesh_from_recipe,
    refine,
    regular_squares,
    regular_triangulation,
)
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Mesh

STAR = Polygon([(0, 0), (9, 2), (14, 0), (12, 7), (14, 12), (6, 10), (1, 13), (3, 6)])
HOLED = Window.polygon(STAR.difference(shapely.Point(7, 6).buffer(2.3)))
TWO_PARTS = Window.polygon(shapely.union(HOLED.geometry, shapely.box(15.3, 1, 18, 9)))
DISC = Window.polygon(shapely.Point(529400, 181000).buffer(300))
RECTANGLE = Window.rectangle(0, 0, 3, 2)
SHIPPED = {
    "soho": datasets.soho_deaths().domain,
    "pumps": datasets.soho_pumps().domain,
    "crimes": datasets.geodanet_crimes().domain,
}
BUILDERS = {"triangles": regular_triangulation, "squares": regular_squares}
both = pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)


class TestShape:
    def test_counts_on_a_rectangle(self):
        triangles, squares = (build(RECTANGLE, shape=(11, 6)) for build in BUILDERS.values())
        assert (len(triangles.vertices), len(triangles.elements)) == (66, 100)
        assert (len(squares.vertices), len(squares.elements)) == (66, 50)

    @both
    def test_vertices_reach_the_bounding_box(self, build):
        mesh = build(HOLED, shape=(9, 8))
        np.testing.assert_array_equal(mesh.vertices.min(axis=0), HOLED.bounds[:2])
        np.testing.assert_array_equal(mesh.vertices.max(axis=0), HOLED.bounds[2:])

    @both
    def test_elements_outside_are_left_out_and_no_vertex_is_idle(self, build):
        mesh = build(TWO_PARTS, shape=(40, 30))
        assert len(mesh.elements) < 39 * 29 * (2 if mesh.kind == "triangle" else 1)
        assert shapely.area(shapely.intersection(mesh.element_polygons, TWO_PARTS.geometry)).min() > 0
        np.testing.assert_array_equal(np.unique(mesh.elements), np.arange(len(mesh.vertices)))

    @pytest.mark.parametrize(
        ("spacing", "shape"), [(67, (11, 11)), (66.9, (11, 11)), (67.1, (10, 10)), (670, (2, 2)), (25, (27, 27))]
    )
    def test_spacing_is_the_smallest_side_of_a_cell(self, spacing, shape):
        mesh = regular_triangulation(SHIPPED["soho"], spacing=spacing)
        assert mesh.recipe["shape"] == list(shape)

    def test_spacing_may_exceed_the_shorter_side(self):
        assert regular_squares(Window.rectangle(0, 0, 10, 1), spacing=2.5).recipe["shape"] == [5, 2]

    @pytest.mark.parametrize("both_given", [{}, {"spacing": 1.0, "shape": (3, 3)}], ids=["neither", "both"])
    def test_needs_one_of_spacing_and_shape(self, both_given):
        with pytest.raises(InputError, match="either `spacing` or `shape`"):
            regular_triangulation(RECTANGLE, **both_given)

    @pytest.mark.parametrize("spacing", [0, -1.0, 3.001, np.inf, np.nan])
    def test_spacing_refused(self, spacing):
        with pytest.raises(
            InputError, match=r"spacing: must be positive and at most the longer side of the domain, got .*uni"
        ):
            regular_triangulation(RECTANGLE, spacing=spacing)

    @pytest.mark.parametrize("shape", [(1, 5), (5,), (3, 3, 3), (2.5, 4), (0, 0), (-3, 4)])
    def test_shape_refused(self, shape):
        with pytest.raises(InputError, match="shape: needs two whole numbers of at least 2 vertices, got"):
            regular_squares(RECTANGLE, shape=shape)


class TestThreads:
    BLOCK = shapely.box(0, 0, 10, 10)

    @both
    def test_a_window_with_a_thread_is_refused(self, build):
        thread = Window.polygon(shapely.union(self.BLOCK, shapely.box(9, 5.5, 20, 5.5 + 1e-13)))
        with pytest.raises(InputError, match="window: it has parts far thinner than a mesh element; widen"):
            build(thread, shape=(21, 11))

    @both
    def test_a_sliver_along_kept_elements_is_no_thread(self, build):
        window = Window.polygon(shapely.union(shapely.box(0, 0, 10, 5 + 1e-13), shapely.box(0, 0, 2.5, 10)))
        mesh = build(window, shape=(11, 11))
        assert abs(mesh.measure.sum() - window.area) < 1e-10 * window.area
        beyond = np.array([[8.3, 5 + 1e-13]])
        np.testing.assert_allclose(mesh.basis(beyond) @ mesh.vertices, beyond, atol=1e-12)

    @both
    def test_a_thin_part_that_a_mesh_can_hold_is_kept(self, build):
        window = Window.polygon(shapely.union(self.BLOCK, shapely.box(9, 5.5, 20, 5.5 + 1e-6)))
        points = np.column_stack([np.linspace(10, 20, 50), np.full(50, 5.5 + 5e-7)])
        mesh = build(window, shape=(21, 11))
        np.testing.assert_allclose(mesh.basis(points) @ mesh.vertices, points, atol=1e-12)


class TestRecipe:
    @pytest.mark.parametrize("window", [RECTANGLE, HOLED, TWO_PARTS, DISC], ids=["rectangle", "hole", "parts", "disc"])
    @both
    def test_rebuilds_the_same_regular_mesh(self, build, window):
        self.assert_rebuilt(build(window, spacing=window.diameter / 14))

    def test_rebuilds_the_same_mesh_from_arrays(self):
        points = np.vstack([[(0, 0), (3, 0), (3, 2), (0, 2)], np.random.default_rng(0).uniform(0.2, 1.8, (20, 2))])
        elements = scipy.spatial.Delaunay(points).simplices
        self.assert_rebuilt(Mesh.from_arrays(points, elements, RECTANGLE))

    def assert_rebuilt(self, mesh):
        again = mesh_from_recipe(json.loads(json.dumps(mesh.recipe)), mesh.domain)
        assert again.kind == mesh.kind
        assert again.recipe == mesh.recipe
        for name in ("vertices", "elements", "measure", "element_measure"):
            np.testing.assert_array_equal(getattr(again, name), getattr(mesh, name))
        assert again.tent_slope == mesh.tent_slope

    @pytest.mark.parametrize(
        "recipe",
        [{}, {"builder": "magic"}, {"builder": "regular", "kind": "hexagon", "shape": [3, 3]}, {"builder": "regular"}],
    )
    def test_unknown_recipes_are_refused(self, recipe):
        with pytest.raises(InputError, match=r"mesh: recipe .* is not known"):
            mesh_from_recipe(recipe, RECTANGLE)

    @pytest.mark.parametrize(
        "recipe", [{"builder": "arrays"}, {"builder": "regular", "kind": "square", "shape": [3]}], ids=str
    )
    def test_incomplete_recipes_are_refused(self, recipe):
        with pytest.raises(InputError):
            mesh_from_recipe(recipe, RECTANGLE)


class TestRefine:
    @pytest.mark.parametrize("window", [RECTANGLE, HOLED, TWO_PARTS, DISC], ids=["rectangle", "hole", "parts", "disc"])
    @pytest.mark.parametrize("factor_", [1, 2, 3])
    @both
    def test_meshes_are_nested(self, build, window, factor_):
        coarse = build(window, shape=(8, 7))
        fine = refine(coarse, factor_)
        assert fine.kind == coarse.kind
        tents = coarse.basis(fine.vertices)
        np.testing.assert_allclose(tents.sum(axis=1), 1, atol=1e-14)
        # Every coarse tent is the P1 (bilinear) interpolant of its own values on the fine mesh.
        np.testing.assert_allclose(tents.T @ fine.measure, coarse.measure, rtol=0, atol=1e-12 * coarse.measure.max())

    def test_a_mesh_that_is_not_nested_would_be_seen(self):
        coarse, other = (regular_triangulation(HOLED, shape=shape) for shape in ((8, 7), (16, 14)))
        assert np.abs(coarse.basis(other.vertices).T @ other.measure - coarse.measure).max() > 1e-3

    def test_needs_a_regular_mesh(self):
        mesh = Mesh.from_arrays([[0, 0], [3, 0], [3, 2], [0, 2]], [[0, 1, 2], [0, 2, 3]], RECTANGLE)
        with pytest.raises(InputError):
            refine(mesh, 2)


def uniform_mode(mesh, areas, n=392, fixed_total=True):
    """Posterior mode of the field given the tent masses of a perfectly uniform pattern."""
    area = mesh.domain.area
    root = factor(PoweredExponential(1.6, 0.2 * np.sqrt(area)).matrix(mesh))
    tents = np.eye(len(areas))
    likelihood = NoisyMasses(n * mesh.measure / area, 0.0, areas, tents, n if fixed_total else None)
    return laplace_posterior(likelihood, root, np.log(n / area)).field_mode


def clipped_voronoi_areas(mesh):
    frame = shapely.box(*mesh.domain.bounds).buffer(mesh.domain.diameter)
    cells = shapely.voronoi_polygons(shapely.multipoints(mesh.vertices), extend_to=frame, ordered=True)
    return shapely.area(shapely.intersection(shapely.get_parts(cells), mesh.domain.geometry))


class TestUniformMasses:
    @pytest.mark.parametrize("fixed_total", [True, False])
    @pytest.mark.parametrize(
        "window", [*SHIPPED.values(), HOLED, TWO_PARTS, DISC], ids=[*SHIPPED, "hole", "parts", "disc"]
    )
    @both
    def test_give_a_constant_mode(self, build, window, fixed_total):
        mesh = build(window, shape=(10, 10))
        mode = uniform_mode(mesh, mesh.measure, fixed_total=fixed_total)
        np.testing.assert_allclose(mode, np.log(392 / window.area), rtol=0, atol=1e-8)

    @pytest.mark.parametrize("window", [SHIPPED["soho"], HOLED, DISC], ids=["soho", "hole", "disc"])
    def test_do_not_with_voronoi_areas(self, window):
        mesh = regular_triangulation(window, shape=(10, 10))
        areas = clipped_voronoi_areas(mesh)
        assert areas.sum() == pytest.approx(window.area)
        # A vertex without any area would be pushed up without limit.
        assert np.ptp(uniform_mode(mesh, np.maximum(areas, 1e-3 * areas.mean()))) > 0.01
