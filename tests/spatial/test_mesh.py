"""The finite-element mesh: integrals, basis, adjacency, gradients, and what `from_arrays` refuses."""

import numpy as np
import pytest
import scipy.spatial
import shapely
from shapely.geometry import MultiPolygon, Polygon

from dpppsynth import datasets
from dpppsynth.core.errors import InputError
from dpppsynth.models import dual_measure, dual_mesh, regular_squares, regular_triangulation
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Mesh

HOLED = shapely.box(0, 0, 10, 10).difference(Polygon([(3.1, 2.3), (7.7, 3.9), (5.2, 6.1), (3.4, 8.9)]))
TWO_PARTS = MultiPolygon([shapely.box(0, 0, 2, 3), shapely.box(4, 1, 7, 6).difference(shapely.box(5, 2, 6, 4))])
# Edges on grid lines, edges across cells, a vertex of the window on a grid vertex, a slit narrower than a cell.
ON_LINES = shapely.box(0, 0, 10, 8).difference(shapely.union_all([shapely.box(2, 4, 5, 7), shapely.box(6, 0, 6.01, 4)]))
WINDOWS = {
    "rectangle": Window.rectangle(1, 2, 4, 4),
    "triangle": Window.polygon(Polygon([(0, 0), (5, 1), (2, 4)])),
    "L-shape": Window.polygon(Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])),
    "hole": Window.polygon(HOLED),
    "two parts": Window.polygon(TWO_PARTS),
    "disc": Window.polygon(shapely.Point(529400, 181000).buffer(300)),
    "edges on grid lines": Window.polygon(ON_LINES),
    "soho": datasets.soho_deaths().domain,
    "pumps": datasets.soho_pumps().domain,
    "crimes": datasets.geodanet_crimes().domain,
}
BUILDERS = {"triangles": regular_triangulation, "squares": regular_squares}
SHAPE = (11, 9)
MESHES = [pytest.param(w, b, id=f"{w}, {b}") for w in WINDOWS for b in BUILDERS]
SQUARE = [[0, 0], [1, 0], [1, 1], [0, 1]]
UNIT = Window.rectangle(0, 0, 1, 1)


def built(window, builder):
    return BUILDERS[builder](WINDOWS[window], shape=SHAPE)


def reference_measure(mesh):
    """Integrals of the basis by another route: nodal equations solved, parts triangulated, a 4 x 4 Gauss rule."""
    x, w = np.polynomial.legendre.leggauss(4)
    u, v = (g.ravel() for g in np.meshgrid((x + 1) / 2, (x + 1) / 2, indexing="ij"))
    rule = np.outer(w, w).ravel() / 4 * u
    total = np.zeros(len(mesh.vertices))
    for nodes in mesh.elements:
        corner = mesh.vertices[nodes]
        centre = corner.mean(axis=0)
        nodal = np.linalg.inv(monomials(corner - centre, len(nodes)))
        part = shapely.intersection(Polygon(corner), mesh.domain.geometry)
        for triangle in shapely.constrained_delaunay_triangles(part).geoms:
            a, b, c = shapely.get_coordinates(triangle)[:3] - centre
            points = a + np.outer(u * (1 - v), b - a) + np.outer(u * v, c - a)
            twice = abs(np.linalg.det([b - a, c - a]))
            total[nodes] += twice * rule @ (monomials(points, len(nodes)) @ nodal)
    return total


def monomials(xy, k):
    """1, x, y and, for squares, x y."""
    return np.column_stack([np.ones(len(xy)), xy, xy.prod(axis=1)])[:, :k]


def delaunay(points, window=UNIT):
    points = np.vstack([window.geometry.exterior.coords[:-1], points])
    tri = scipy.spatial.Delaunay(points).simplices.astype(np.int64)
    corner = points[tri]
    turned = np.linalg.det(corner[:, 1:] - corner[:, :1]) < 0
    tri[turned] = tri[turned][:, [0, 2, 1]]
    return Mesh.from_arrays(points, tri, window)


def inside(window, n, seed=0):
    x0, y0, x1, y1 = window.bounds
    xy = np.random.default_rng(seed).uniform((x0, y0), (x1, y1), (20 * n, 2))
    return xy[window.contains(xy)][:n]


def altitudes(mesh):
    corner = mesh.vertices[mesh.elements]
    sides = np.linalg.norm(corner - np.roll(corner, -1, axis=1), axis=2)
    return 2 * mesh.area / sides.max(axis=1)


class TestMeasure:
    @pytest.mark.parametrize(("window", "builder"), MESHES)
    def test_sums_to_the_area_and_is_positive(self, window, builder):
        mesh = built(window, builder)
        area = WINDOWS[window].area
        assert abs(mesh.measure.sum() - area) < 1e-10 * area
        assert abs(mesh.element_measure.sum() - area) < 1e-10 * area
        assert mesh.measure.min() > 0
        assert mesh.element_measure.min() > 0

    @pytest.mark.parametrize(("window", "builder"), MESHES)
    def test_is_the_integral_of_the_basis_over_the_window(self, window, builder):
        mesh = BUILDERS[builder](WINDOWS[window], shape=(7, 6))
        np.testing.assert_allclose(mesh.measure, reference_measure(mesh), rtol=0, atol=1e-11 * WINDOWS[window].area)

    def test_closed_form_on_two_triangles(self):
        mesh = Mesh.from_arrays(SQUARE, [[0, 1, 2], [0, 2, 3]], UNIT)
        np.testing.assert_allclose(mesh.measure, [1 / 3, 1 / 6, 1 / 3, 1 / 6])

    def test_holes_subtract(self):
        # One square element with a hole in its corner region: integral of (1-x)(1-y) over [1/2, 3/4]^2 is (3/32)^2.
        hole = Window.polygon(shapely.box(0, 0, 1, 1).difference(shapely.box(0.5, 0.5, 0.75, 0.75)))
        mesh = regular_squares(hole, shape=(2, 2))
        np.testing.assert_allclose(mesh.measure[0], 1 / 4 - (3 / 32) ** 2, rtol=1e-13)

    @pytest.mark.parametrize("gap", [1e-6, pytest.param(1e-8)])
    def test_stays_positive_when_a_hole_ends_just_short_of_grid_lines(self, gap):
        x0, y0 = 529100, 180680
        hole = shapely.box(x0 + 201 + gap, y0 + 134 + gap, x0 + 536 - gap, y0 + 469 - gap)
        window = Window.polygon(shapely.box(x0, y0, x0 + 670, y0 + 670).difference(hole))
        for build in BUILDERS.values():
            assert build(window, shape=(11, 11)).measure.min() > 0


class TestBasis:
    @pytest.mark.parametrize(("window", "builder"), MESHES)
    def test_partition_of_unity_that_reproduces_linear_functions(self, window, builder):
        mesh, domain = built(window, builder), WINDOWS[window]
        border = shapely.get_coordinates(shapely.segmentize(domain.geometry, np.sqrt(domain.area) / 40))
        grid = mesh.vertices[domain.contains(mesh.vertices)]
        points = np.vstack([inside(domain, 400), border, grid])
        basis = mesh.basis(points)
        assert basis.shape == (len(points), len(mesh.vertices))
        assert basis.data.min() >= 0
        np.testing.assert_allclose(basis.sum(axis=1), 1, rtol=0, atol=1e-14)
        scale = np.ptp(mesh.vertices, axis=0).max()
        np.testing.assert_allclose(basis @ mesh.vertices, points, rtol=0, atol=1e-9 * scale)

    @pytest.mark.parametrize("builder", BUILDERS)
    def test_is_one_at_its_own_vertex(self, builder):
        mesh = built("hole", builder)
        own = WINDOWS["hole"].contains(mesh.vertices)
        np.testing.assert_allclose(mesh.basis(mesh.vertices).toarray()[own], np.eye(len(own))[own], atol=1e-14)

    def test_squares_reproduce_products(self):
        mesh = built("hole", "squares")
        points = inside(WINDOWS["hole"], 300)
        np.testing.assert_allclose(mesh.basis(points) @ mesh.vertices.prod(axis=1), points.prod(axis=1), atol=1e-11)

    @pytest.mark.parametrize("builder", BUILDERS)
    def test_does_not_depend_on_which_element_holds_a_shared_border(self, builder):
        mesh = built("rectangle", builder)
        ends = mesh.vertices[np.vstack([mesh.elements[:, :2], mesh.elements[:, 1:3]])]
        middle = ends.mean(axis=1)
        step = 1e-9 * (ends[:, 1] - ends[:, 0])[:, ::-1] * (-1, 1)
        np.testing.assert_allclose(
            mesh.basis(middle + step).toarray(), mesh.basis(middle - step).toarray(), rtol=0, atol=1e-8
        )

    def test_parallelograms(self):
        shear = np.array([[0, 0], [1, 0.5], [1.5, 1.5], [0.5, 1]])
        mesh = Mesh.from_arrays(shear, [[0, 1, 2, 3]], Window.polygon(Polygon(shear)))
        assert mesh.measure == pytest.approx(np.full(4, 0.75 / 4))
        points = inside(mesh.domain, 100)
        np.testing.assert_allclose(mesh.basis(points) @ shear, points, atol=1e-13)

    @pytest.mark.parametrize(("window", "builder"), MESHES)
    def test_fast_location_agrees_with_geometry(self, window, builder):
        mesh = built(window, builder)
        points = inside(WINDOWS[window], 300, seed=1)
        element = mesh.locate(points)
        # A hair of room: coordinates of half a million metres carry rounding errors of 1e-10.
        distance = shapely.distance(mesh.element_polygons[element], shapely.points(points))
        assert distance.max() <= 1e-9 * np.sqrt(WINDOWS[window].area)

    def test_no_points(self):
        assert built("hole", "triangles").basis(np.empty((0, 2))).shape[0] == 0


class TestGradients:
    @pytest.mark.parametrize("builder", BUILDERS)
    def test_against_finite_differences(self, builder):
        mesh = built("hole", builder)
        element = np.arange(len(mesh.elements))
        step = 1e-6
        corners = range(mesh.gradients.shape[1])
        assert len(corners) == (1 if builder == "triangles" else 4)
        for c in corners:
            at = mesh.vertices[mesh.elements[:, c]]
            for axis in range(2):
                move = step * np.eye(2)[axis]
                slope = (mesh.weights(element, at + move) - mesh.weights(element, at - move)) / (2 * step)
                np.testing.assert_allclose(mesh.gradients[:, c, :, axis], slope, rtol=0, atol=1e-7)

    @pytest.mark.parametrize("seed", range(4))
    def test_slope_is_two_over_the_smallest_altitude(self, seed):
        mesh = delaunay(np.random.default_rng(seed).uniform(0.02, 0.98, (40, 2)))
        assert mesh.tent_slope == pytest.approx(2 / altitudes(mesh).min(), rel=1e-10)

    def test_one_flat_triangle_decides(self):
        mesh = delaunay(np.vstack([[[0.5, 1e-4]], np.random.default_rng(1).uniform(0.3, 0.7, (20, 2))]))
        assert mesh.tent_slope == pytest.approx(2e4, rel=1e-9)

    def test_squares_and_rectangles(self):
        square = regular_squares(Window.rectangle(0, 0, 10, 10), shape=(6, 6))
        assert square.tent_slope == pytest.approx(2 * np.sqrt(2) / 2, rel=1e-12)
        flat = regular_squares(Window.rectangle(0, 0, 10, 10), shape=(3, 21))
        assert flat.tent_slope == pytest.approx(2 * np.hypot(1 / 5, 1 / 0.5), rel=1e-12)

    def test_parallelogram(self):
        # Delta s = a.v and Delta t = b.v: the constant is 2 max(|a + b|, |a - b|).
        e1, e2 = np.array([2.0, 0.5]), np.array([0.5, 1.0])
        corners = np.array([[0, 0], e1, e1 + e2, e2])
        mesh = Mesh.from_arrays(corners, [[0, 1, 2, 3]], Window.polygon(Polygon(corners)))
        a, b = np.linalg.inv(np.column_stack([e1, e2]))
        assert mesh.tent_slope == pytest.approx(2 * max(np.linalg.norm(a + b), np.linalg.norm(a - b)), rel=1e-12)


def plain_voronoi(mesh):
    """Cells of the vertices in the plane, clipped by the window."""
    frame = mesh.domain.geometry.buffer(mesh.domain.diameter)
    cells = shapely.voronoi_polygons(shapely.multipoints(mesh.vertices), extend_to=frame, ordered=True)
    return shapely.intersection(shapely.get_parts(cells), mesh.domain.geometry)


class TestDualCells:
    def test_areas_on_a_rectangle(self):
        mesh = regular_triangulation(Window.rectangle(2, 3, 8, 6), shape=(7, 6))
        cells, cell = shapely.area(mesh.dual_cells()), 1.0 * 0.6
        x0, y0, x1, y1 = mesh.domain.bounds
        on_border = np.isclose(mesh.vertices, (x0, y0)) | np.isclose(mesh.vertices, (x1, y1))
        sides = on_border.sum(axis=1)
        np.testing.assert_allclose(cells, cell / 2.0**sides, rtol=1e-7)
        np.testing.assert_allclose(cells[sides == 0], mesh.measure[sides == 0], rtol=1e-7)
        np.testing.assert_allclose(mesh.measure[sides == 1], cell / 2, rtol=1e-12)
        np.testing.assert_allclose(sorted(mesh.measure[sides == 2]), cell / np.array([6, 6, 3, 3]), rtol=1e-12)

    @pytest.mark.parametrize(("window", "builder"), MESHES)
    def test_tile_the_window(self, window, builder):
        """Nothing is lost at borders and in holes, and nothing counted twice."""
        mesh = built(window, builder)
        cells = mesh.dual_cells()
        assert shapely.area(cells).sum() == pytest.approx(mesh.domain.area, rel=1e-7)
        assert shapely.union_all(cells).symmetric_difference(mesh.domain.geometry).area < 1e-7 * mesh.domain.area
        # On a rectangle every cell is one polygon: no slits between the parts of elements.
        if mesh.domain.is_rectangle:
            assert set(shapely.get_type_id(cells)) == {shapely.GeometryType.POLYGON}

    @pytest.mark.parametrize(("window", "builder"), MESHES)
    def test_are_voronoi_cells_where_these_are_enough(self, window, builder):
        """Those of the plane, clipped, at vertices that have no neighbour whose cell is hardly anything."""
        mesh = built(window, builder)
        cells, plain = mesh.dual_cells(), plain_voronoi(mesh)
        at_corner = np.any(mesh.sites != mesh.vertices[mesh.elements], axis=-1)
        moved = np.unique(mesh.elements[at_corner])
        # What is small is moved; what is no longer enough after that is moved too.
        assert np.isin(np.flatnonzero(shapely.area(plain) < 0.099 * mesh.measure), moved).all()
        rest = np.setdiff1d(np.arange(len(cells)), mesh.elements[at_corner.any(axis=1)])
        assert window in ("triangle", "two parts") or len(rest) > len(cells) / 2
        apart = shapely.area(shapely.symmetric_difference(cells[rest], plain[rest]))
        assert apart.max(initial=0) < 1e-7 * mesh.domain.area

    @pytest.mark.parametrize(("window", "builder"), MESHES)
    def test_leave_no_vertex_without_a_cell(self, window, builder):
        """Plain Voronoi cells leave up to 16 here, one of them in the middle of a hole."""
        mesh = built(window, builder)
        assert (dual_measure(mesh) > 0.1 * mesh.measure).all()

    @pytest.mark.parametrize(("width", "side"), [(4, 25), (4, 40), (9, 25), (13, 25), (11, 40)])
    def test_are_looked_at_again_where_a_neighbour_took_them(self, width, side):
        """Thin rings: one round in each element leaves cells of next to nothing to tents as large as others."""
        disc = shapely.Point(0, 0)
        ring = Window.polygon(disc.buffer(100).difference(disc.buffer(100 - width)))
        mesh = regular_triangulation(ring, spacing=side)
        assert (dual_measure(mesh) > 0.1 * mesh.measure).all()
        assert dual_measure(mesh).sum() == pytest.approx(ring.area, rel=1e-7)

    def test_of_another_domain_are_refused(self):
        with pytest.raises(InputError, match=r"domain: .*mesh\.domain"):
            dual_mesh(UNIT, built("disc", "triangles"))


def _moved(index, xy, base=SQUARE):
    return [xy if i == index else v for i, v in enumerate(base)]


CENTRE = [*SQUARE, [0.5, 0.5]]
FAN = [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]]
REFUSED = {
    "a gap at the border": (_moved(2, [1, 0.9]), [[0, 1, 2], [0, 2, 3]]),
    "a missing element": (CENTRE, FAN[:3]),
    "an element twice": (CENTRE, [*FAN, FAN[0]]),
    "an element twice and another missing": (CENTRE, [FAN[0], FAN[0], FAN[2], FAN[3]]),
    "two triangulations on top of each other": (CENTRE, [*FAN, [0, 1, 2], [0, 2, 3]]),
    "a hanging vertex": (CENTRE, [[0, 1, 2], [0, 4, 3], [4, 2, 3]]),
    "a doubled vertex": ([*CENTRE, [0.5, 0.5]], [[0, 1, 4], [1, 2, 5], [2, 3, 4], [3, 0, 4]]),
    "doubled vertices along an edge": ([*SQUARE, [0, 0], [1, 1]], [[0, 1, 2], [4, 5, 3]]),
    "a flat element": ([*SQUARE, [0.5, 0]], [[0, 1, 2], [0, 2, 3], [0, 4, 1]]),
    "a clockwise element": (SQUARE, [[0, 2, 1], [0, 2, 3]]),
    "all clockwise": (SQUARE, [[0, 2, 1], [0, 3, 2]]),
    "a square that crosses itself": (SQUARE, [[0, 1, 3, 2]]),
    "pentagons": ([*SQUARE, [0, 0.5]], [[0, 1, 2, 3, 4]]),
}


class TestFromArrays:
    def test_accepts_any_conforming_mesh(self):
        mesh = Mesh.from_arrays(CENTRE, FAN, UNIT)
        np.testing.assert_allclose(mesh.measure, [1 / 6] * 4 + [1 / 3])
        assert repr(mesh) == "Mesh(5 vertices, 4 triangles)"

    def test_accepts_elements_that_stick_out_of_the_window(self):
        mesh = Mesh.from_arrays(np.array(CENTRE) * 12 - 1, FAN, WINDOWS["hole"])
        assert mesh.measure.sum() == pytest.approx(HOLED.area, rel=1e-12)

    def test_accepts_separate_vertices_on_the_two_sides_of_a_wall(self):
        apart = Window.polygon(MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(1.001, 0, 2.001, 1)]))
        vertices = np.vstack([SQUARE, np.add(SQUARE, (1.001, 0))])
        assert Mesh.from_arrays(vertices, [[0, 1, 2, 3], [4, 5, 6, 7]], apart).measure.sum() == pytest.approx(2)

    @pytest.mark.parametrize("fault", REFUSED)
    def test_refuses(self, fault):
        with pytest.raises(InputError, match="elements: "):
            Mesh.from_arrays(*REFUSED[fault], UNIT)

    def test_refuses_squares_that_are_no_parallelograms(self):
        vertices = [[0, 0], [0.7, 0], [1, 0], [1, 1], [0.3, 1], [0, 1]]
        with pytest.raises(InputError, match=r"elements: .*parallelogram"):
            Mesh.from_arrays(vertices, [[0, 1, 4, 5], [1, 2, 3, 4]], UNIT)

    def test_refuses_to_cover_one_part_twice_and_the_other_not_at_all(self):
        apart = Window.polygon(MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(2, 0, 3, 1)]))
        with pytest.raises(InputError, match="cover"):
            Mesh.from_arrays([*SQUARE, *SQUARE], [[0, 1, 2], [0, 2, 3], [4, 5, 6], [4, 6, 7]], apart)

    def test_refuses_vertices_whose_tents_miss_the_window(self):
        with pytest.raises(InputError, match="vert"):
            Mesh.from_arrays([*SQUARE, [5, 5]], [[0, 1, 2], [0, 2, 3]], UNIT)

    @pytest.mark.parametrize(
        ("vertices", "elements"),
        [(SQUARE, [[0, 1, 2], [0, 2, 9]]), (SQUARE, [[0, 1, 2], [0, 2, -1]]), (SQUARE, [0, 1, 2])],
        ids=["no such vertex", "negative", "one dimension"],
    )
    def test_refuses_malformed_elements(self, vertices, elements):
        with pytest.raises(InputError, match="elements: "):
            Mesh.from_arrays(vertices, elements, UNIT)

    def test_arrays_are_read_only(self):
        mesh = Mesh.from_arrays(CENTRE, FAN, UNIT)
        for array in (mesh.vertices, mesh.elements):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


class TestPinchedWindows:
    """A closed window may hold together at a single point, and a path may go through it."""

    BOW_TIE = Window.polygon(
        shapely.MultiPolygon([[[(0, 0), (-10, -5), (-10, 5)], []], [[(0, 0), (10, -5), (10, 5)], []]])
    )
    SHARED = ([[0, 0], [-10, 5], [-10, -5], [10, -5], [10, 5]], [[0, 1, 2], [0, 3, 4]])
    DOUBLED = ([[0, 0], [-10, 5], [-10, -5], [0, 0], [10, -5], [10, 5]], [[0, 1, 2], [3, 4, 5]])

    def test_a_shared_vertex_is_fine(self):
        assert Mesh.from_arrays(*self.SHARED, self.BOW_TIE).measure.sum() == pytest.approx(100)

    def test_a_doubled_vertex_would_let_the_tents_jump(self):
        with pytest.raises(InputError, match=r"elements: .*doubled vertices"):
            Mesh.from_arrays(*self.DOUBLED, self.BOW_TIE)

    def test_an_uncovered_thread_would_too(self):
        thread = shapely.union_all(
            [shapely.box(0, 0, 10, 10), shapely.box(20, 0, 30, 10), shapely.box(9, 5, 21, 5 + 1e-9)]
        )
        corners = [[0, 0], [10, 0], [10, 10], [0, 10], [20, 0], [30, 0], [30, 10], [20, 10]]
        with pytest.raises(InputError, match=r"elements: .*gaps"):
            Mesh.from_arrays(corners, [[0, 1, 2, 3], [4, 5, 6, 7]], Window.polygon(thread))
