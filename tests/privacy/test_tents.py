"""Sensitivities of counts and tent masses: bounds that always hold, are nearly attained, and catch planted faults."""

import math

import numpy as np
import pytest
import scipy.spatial
import shapely
from shapely.geometry import MultiPolygon, Polygon

from dpppsynth import datasets
from dpppsynth.contract.additive_noise import cell_counts, lattice_masses
from dpppsynth.core.errors import InputError
from dpppsynth.models import regular_squares, regular_triangulation
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne, counts_sensitivity
from dpppsynth.privacy.bounds import tents_sensitivity
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Mesh

STAR = Polygon([(0, 0), (9, 2), (14, 0), (12, 7), (14, 12), (6, 10), (1, 13), (3, 6)])
HOLED = Window.polygon(STAR.difference(shapely.Point(7, 6).buffer(2.3)))
UNIT = Window.rectangle(0, 0, 1, 1)
BITS = (2, 4, 8, 20)


def delaunay(seed, flat=None):
    """A random triangulation of the unit square, with one flat triangle of the given height on its lower side."""
    points = np.random.default_rng(seed).uniform(0.15, 0.85, (25, 2))
    extra = [] if flat is None else [(0.5, flat)]
    vertices = np.vstack([[(0, 0), (1, 0), (1, 1), (0, 1), *extra], points])
    return Mesh.from_arrays(vertices, scipy.spatial.Delaunay(vertices).simplices, UNIT)


MESHES = {
    "random triangles": delaunay(0),
    "one flat triangle": delaunay(1, flat=1e-3),
    "triangles on a rectangle": regular_triangulation(Window.rectangle(-1, 2, 5, 4), shape=(9, 6)),
    "squares on a rectangle": regular_squares(Window.rectangle(-1, 2, 5, 4), shape=(9, 6)),
    "triangles, polygon": regular_triangulation(HOLED, shape=(9, 8)),
    "squares, polygon": regular_squares(HOLED, shape=(9, 8)),
    "soho": regular_triangulation(datasets.soho_deaths().domain, shape=(11, 11)),
}
every_mesh = pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)


def random_moves(mesh, alpha, n, rng):
    """Pairs of points joined by a segment inside the window, of length up to alpha, most of them exactly alpha."""
    x0, y0, x1, y1 = mesh.domain.bounds
    start = rng.uniform((x0, y0), (x1, y1), (n, 2))
    # A third of the starts lie on vertices and edges, where the basis has its kinks.
    nodes = mesh.vertices[mesh.elements[rng.integers(len(mesh.elements), size=n // 3), :2]]
    t = rng.choice([0.0, 0.5, 1.0], size=(n // 3, 1))
    start[: n // 3] = (1 - t) * nodes[:, 0] + t * nodes[:, 1]
    angle, length = rng.uniform(0, 2 * np.pi, n), alpha * np.minimum(1, rng.uniform(0, 2, n))
    stop = start + (length * (1 - 1e-12))[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    path = shapely.linestrings(np.stack([start, stop], axis=1))
    shapely.prepare(mesh.domain.geometry)
    kept = shapely.covers(mesh.domain.geometry, path)
    return start[kept], stop[kept]


def steepest_moves(mesh, alpha):
    """Moves of length alpha along the altitude of the flattest triangle, or out of square corners along a diagonal."""
    corner = mesh.vertices[mesh.elements]
    if mesh.kind == "square":
        hx, hy = np.ptp(corner[0], axis=0)
        way = np.array([hy, hx]) / np.hypot(hx, hy)
        start = corner[:, 0]
    else:
        side = np.roll(corner, -1, axis=1) - corner
        longest = np.linalg.norm(side, axis=2).argmax(axis=1)
        index = np.arange(len(corner))
        foot, along, apex = corner[index, longest], side[index, longest], corner[index, longest - 1]
        height = apex - foot
        t = (height * along).sum(axis=1) / (along**2).sum(axis=1)
        start = foot + t[:, None] * along
        way = (apex - start) / np.linalg.norm(apex - start, axis=1)[:, None]
    stop = start + alpha * way
    inside = mesh.domain.contains(start) & mesh.domain.contains(stop)
    return start[inside], stop[inside]


def l1_change(mesh, start, stop):
    return np.abs(mesh.basis(stop) - mesh.basis(start)).sum(axis=1)


def smallest_height(mesh):
    return 2 / mesh.tent_slope


class TestSlope:
    @every_mesh
    @pytest.mark.parametrize("share", [0.01, 0.3, 1.0, 3.0])
    def test_random_moves_never_exceed_the_bound(self, mesh, share):
        alpha = share * smallest_height(mesh)
        start, stop = random_moves(mesh, alpha, 4000, np.random.default_rng(2))
        assert len(start) > 500
        assert l1_change(mesh, start, stop).max() <= min(2, mesh.tent_slope * alpha) * (1 + 1e-9)

    @every_mesh
    def test_the_bound_is_attained(self, mesh):
        # On squares the steepest slope holds in the corner only, so the ratio tends to 1 as alpha tends to 0.
        alpha = smallest_height(mesh) * (1e-4 if mesh.kind == "square" else 0.999)
        change = l1_change(mesh, *steepest_moves(mesh, alpha))
        assert 0.999 < change.max() / (mesh.tent_slope * alpha) <= 1 + 1e-7

    def test_across_a_gap_regular_meshes_hold_for_euclidean_distance_too(self):
        boxes = [shapely.box(0, 0, 1, 1), shapely.box(1.001, 0, 2, 1)]
        y = np.linspace(0, 1, 50)
        start, stop = np.column_stack([np.full(50, 1.0), y]), np.column_stack([np.full(50, 1.001), y])
        for build in (regular_triangulation, regular_squares):
            mesh = build(Window.polygon(MultiPolygon(boxes)), shape=(6, 4))
            assert l1_change(mesh, start, stop).max() <= mesh.tent_slope * 0.001 * (1 + 1e-9)

    def test_separate_meshes_either_side_of_a_gap_hold_for_paths_only(self):
        # No path leads across, so a hop is no neighbour: it changes the masses by 2 and that is no fault.
        boxes = np.array([[(0, 0), (1, 0), (1, 1), (0, 1)], [(1.001, 0), (2.001, 0), (2.001, 1), (1.001, 1)]])
        window = Window.polygon(MultiPolygon([Polygon(b) for b in boxes]))
        mesh = Mesh.from_arrays(boxes.reshape(8, 2), np.arange(8).reshape(2, 4), window)
        assert l1_change(mesh, np.array([[1, 0.5]]), np.array([[1.001, 0.5]]))[0] == pytest.approx(2)
        start, stop = random_moves(mesh, 0.3, 3000, np.random.default_rng(0))
        assert l1_change(mesh, start, stop).max() <= mesh.tent_slope * 0.3


class Violation(Exception):
    """The checker's verdict: an implementation broke its promise."""


def check_lattice(mesh, bits, reaches, sensitivity=tents_sensitivity, masses=lattice_masses, moves=600):
    """Move one point at a time and compare exact integers with the sensitivity; return the largest ratio seen."""
    rng, worst = np.random.default_rng(bits), 0.0
    for alpha in reaches:
        bound = sensitivity(mesh, AlphaNeighbours(alpha), bits=bits)
        pairs = [random_moves(mesh, alpha, moves, rng), steepest_moves(mesh, alpha * (1 - 1e-12))]
        start, stop = (np.vstack([p[i] for p in pairs]) for i in (0, 1))
        for a, b in zip(rows_of(mesh, start, bits, masses), rows_of(mesh, stop, bits, masses), strict=True):
            change = sum(abs(a.get(j, 0) - b.get(j, 0)) for j in a.keys() | b.keys())
            if change > bound:
                msg = f"one move of {alpha:g} changes the masses by {change}, and the bound is {bound}"
                raise Violation(msg)
            worst = max(worst, change / max(1, bound))
    return worst


def rows_of(mesh, points, bits, masses):
    """Masses of every point on its own, as {vertex: integer}, checked to be non-negative and to sum to one point."""
    rows = []
    for point in points:
        row = masses(mesh, point[None], bits)
        if row.dtype != np.int64 or row.sum() != 2**bits or row.min() < 0:
            msg = "the masses of a point are not integers >= 0 that sum to 2^bits"
            raise Violation(msg)
        rows.append({int(j): int(row[j]) for j in np.flatnonzero(row)})
    return rows


def reaches_of(mesh, bits):
    """Moves of a few lattice units, where rounding decides, up to moves across several elements."""
    unit = smallest_height(mesh) / 2**bits
    return [0.2 * unit, 0.9 * unit, 3 * unit, 0.05 * 2**bits * unit, 0.7 * 2**bits * unit, 2 * 2**bits * unit]


class TestLattice:
    @pytest.mark.exhaustive
    @every_mesh
    @pytest.mark.parametrize("bits", BITS)
    def test_moves_never_exceed_the_sensitivity(self, mesh, bits):
        check_lattice(mesh, bits, reaches_of(mesh, bits), moves=100)

    @every_mesh
    def test_the_sensitivity_is_nearly_attained(self, mesh):
        share = 1e-3 if mesh.kind == "square" else 0.9
        assert check_lattice(mesh, 20, [share * smallest_height(mesh)], moves=10) > 0.99

    @pytest.mark.exhaustive
    @every_mesh
    @pytest.mark.parametrize("bits", BITS)
    def test_masses_sum_exactly_and_stay_within_one_unit_of_the_basis(self, mesh, bits):
        points, _ = random_moves(mesh, 1e-9 * mesh.domain.diameter, 500, np.random.default_rng(3))
        total = lattice_masses(mesh, points, bits)
        assert total.sum() == len(points) * 2**bits
        one = lattice_masses(mesh, points[:1], bits)
        exact = mesh.basis(points[:1]).toarray()[0] * 2**bits
        assert np.abs(one - exact).max() < 1
        np.testing.assert_array_equal(total, sum(lattice_masses(mesh, p[None], bits) for p in points))

    @pytest.mark.parametrize(("mesh", "most"), [(MESHES["soho"], 4 / 3), (MESHES["squares on a rectangle"], 2)])
    def test_rounding_costs_at_most_what_lemma_3_says(self, mesh, most):
        points, _ = random_moves(mesh, 1e-9, 2000, np.random.default_rng(4))
        exact = mesh.basis(points).toarray() * 2**6
        cost = [np.abs(lattice_masses(mesh, p[None], 6) - e).sum() for p, e in zip(points, exact, strict=True)]
        assert 0.9 * most < max(cost) <= most + 1e-9

    def test_points_on_vertices_and_coincident_points_count_exactly(self):
        mesh = MESHES["triangles on a rectangle"]
        np.testing.assert_array_equal(lattice_masses(mesh, mesh.vertices, 20), np.full(len(mesh.vertices), 2**20))
        point = np.array([[0.123, 2.789]])
        once = lattice_masses(mesh, point, 20)
        np.testing.assert_array_equal(lattice_masses(mesh, np.repeat(point, 392, axis=0), 20), 392 * once)
        assert lattice_masses(mesh, np.empty((0, 2)), 20).sum() == 0

    @every_mesh
    def test_adding_a_point_changes_the_masses_by_one_point_exactly(self, mesh):
        points, _ = random_moves(mesh, 1e-9, 100, np.random.default_rng(5))
        for bits in BITS:
            added = lattice_masses(mesh, points, bits) - lattice_masses(mesh, points[3:], bits)
            assert np.abs(added).sum() == 3 * 2**bits == tents_sensitivity(mesh, AddRemove(3), bits=bits)

    def test_all_points_of_a_person_may_move(self):
        mesh, k = MESHES["one flat triangle"], 5
        alpha = 0.6 * smallest_height(mesh)
        start, stop = steepest_moves(mesh, alpha * (1 - 1e-12))
        bound = tents_sensitivity(mesh, AlphaNeighbours(alpha, max_points_per_person=k))
        assert bound == k * tents_sensitivity(mesh, AlphaNeighbours(alpha))
        changes = [
            np.abs(
                lattice_masses(mesh, np.repeat([a], k, 0), 20) - lattice_masses(mesh, np.repeat([b], k, 0), 20)
            ).sum()
            for a, b in zip(start, stop, strict=True)
        ]
        assert 0.999 * bound < max(changes) <= bound


class TestPlantedFaults:
    """The checker is worth something only if it fails for wrong implementations."""

    @every_mesh
    def test_half_the_sensitivity(self, mesh):
        def half(mesh, relation, *, bits):
            return tents_sensitivity(mesh, relation, bits=bits) // 2

        with pytest.raises(Violation, match="one move of"):
            check_lattice(mesh, 20, [(1e-3 if mesh.kind == "square" else 0.9) * smallest_height(mesh)], half)

    @pytest.mark.exhaustive
    @every_mesh
    @pytest.mark.parametrize("bits", BITS)
    def test_no_room_for_rounding(self, mesh, bits):
        def tight(mesh, relation, *, bits):
            return min(2 ** (bits + 1), math.floor(2**bits * mesh.tent_slope * relation.reach))

        with pytest.raises(Violation, match="one move of"):
            check_lattice(mesh, bits, reaches_of(mesh, bits)[:3], tight)

    @pytest.mark.parametrize("average", [np.mean, np.max])
    def test_another_altitude_than_the_smallest(self, average):
        mesh = MESHES["one flat triangle"]

        def wrong(mesh, relation, *, bits):
            corner = mesh.vertices[mesh.elements]
            longest = np.linalg.norm(corner - np.roll(corner, 1, axis=1), axis=2).max(axis=1)
            slope = 2 / average(2 * mesh.area / longest)
            return math.floor(2**bits * min(2, slope * relation.reach)) + 4

        with pytest.raises(Violation, match="one move of"):
            check_lattice(mesh, 20, [0.5 * smallest_height(mesh)], wrong)

    @pytest.mark.parametrize("rounding", [np.floor, np.rint, np.ceil])
    @pytest.mark.parametrize("mesh", [MESHES["soho"], MESHES["squares, polygon"]], ids=["triangles", "squares"])
    def test_rounding_that_loses_the_sum(self, mesh, rounding):
        def careless(mesh, xy, bits):
            return rounding(mesh.basis(xy).toarray() * 2**bits).astype(np.int64).sum(axis=0)

        with pytest.raises(Violation, match="sum to"):
            check_lattice(mesh, 8, [0.5 * smallest_height(mesh)], masses=careless)

    def test_rounding_that_depends_on_more_than_the_place(self):
        rng = np.random.default_rng(0)

        def shaken(mesh, xy, bits):
            return lattice_masses(mesh, xy, bits)[rng.permutation(len(mesh.vertices))]

        with pytest.raises(Violation, match="one move of"):
            check_lattice(MESHES["soho"], 8, [1e-3 * smallest_height(MESHES["soho"])], masses=shaken)


class TestSensitivity:
    @pytest.mark.parametrize("bits", BITS)
    def test_formula(self, bits):
        triangles, squares = MESHES["triangles on a rectangle"], MESHES["squares on a rectangle"]
        hx, hy = 6 / 8, 2 / 5
        for mesh, slope, room in (
            (triangles, 2 * np.hypot(hx, hy) / (hx * hy), 4),
            (squares, 2 * np.hypot(1 / hx, 1 / hy), 6),
        ):
            for alpha in (0.01, 0.1, 0.15):
                want = min(2 ** (bits + 1), math.floor(2**bits * slope * alpha) + room)
                assert tents_sensitivity(mesh, AlphaNeighbours(alpha), bits=bits) == want

    @every_mesh
    @pytest.mark.parametrize("bits", BITS)
    def test_two_points_are_the_most_a_move_can_change(self, mesh, bits):
        whole = 2 ** (bits + 1)
        assert tents_sensitivity(mesh, ReplaceOne(), bits=bits) == whole
        assert tents_sensitivity(mesh, AlphaNeighbours(1e9), bits=bits) == whole
        assert tents_sensitivity(mesh, ReplaceOne(7), bits=bits) == 7 * whole
        assert tents_sensitivity(mesh, AddRemove(), bits=bits) == whole // 2

    def test_grows_with_the_reach(self):
        mesh, relation = MESHES["soho"], AlphaNeighbours(25.0)
        curve = [tents_sensitivity(mesh, relation, reach=d) for d in np.linspace(0, 100, 201)]
        assert curve[0] == 4
        assert np.all(np.diff(curve) >= 0)
        assert curve[50] == tents_sensitivity(mesh, relation)
        assert curve[-1] == 2**21

    @pytest.mark.parametrize(
        ("origin", "side"), [(0, 1e-11), (5e5, 1e-4), (9e11, 25.0)], ids=["tiny", "metres, tiny", "far away"]
    )
    def test_refuses_elements_too_small_for_their_coordinates(self, origin, side):
        window = (
            Window.rectangle(0, 0, 2, 2) if not origin else Window.rectangle(origin, 0, origin + 9 * side, 9 * side)
        )
        corners = np.array([(0, 0), (2, 0), (2, 2), (0, 2), (1, side)])
        mesh = (
            regular_triangulation(window, shape=(10, 10))
            if origin
            else Mesh.from_arrays(corners, [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]], window)
        )
        for relation in (AlphaNeighbours(side), ReplaceOne(), AddRemove()):
            with pytest.raises(InputError, match=r"mesh: elements are too small .* coarsen"):
                tents_sensitivity(mesh, relation)

    def test_every_shipped_window_takes_fine_meshes(self):
        for pattern in (datasets.soho_deaths(), datasets.soho_pumps(), datasets.geodanet_crimes()):
            assert tents_sensitivity(regular_squares(pattern.domain, shape=(101, 101)), ReplaceOne()) == 2**21


class TestCounts:
    @every_mesh
    def test_moves_change_at_most_two_counts(self, mesh):
        start, stop = random_moves(mesh, 0.5 * smallest_height(mesh), 300, np.random.default_rng(6))
        for a, b in zip(start, stop, strict=True):
            before, after = (cell_counts(mesh, p[None]) for p in (a, b))
            assert before.sum() == after.sum() == 1
            assert np.abs(before - after).sum() in (0, 2)

    def test_the_shortest_step_across_a_border_changes_two(self):
        mesh = MESHES["squares on a rectangle"]
        border = -1 + 6 / 8
        counts = [cell_counts(mesh, np.array([[x, 2.1]])) for x in (border - 1e-12, border + 1e-12)]
        assert np.abs(counts[1] - counts[0]).sum() == counts_sensitivity(AlphaNeighbours(1e-11)) == 2

    @every_mesh
    def test_points_on_borders_count_once(self, mesh):
        ends = mesh.vertices[np.vstack([mesh.elements[:, :2], mesh.elements[:, 1:3]])]
        points = np.vstack([mesh.vertices, ends.mean(axis=1)])
        points = points[mesh.domain.contains(points)]
        counts = cell_counts(mesh, points)
        assert counts.shape == (len(mesh.elements),)
        assert counts.dtype == np.int64
        assert counts.sum() == len(points)

    def test_counts_against_geometry(self):
        mesh = MESHES["squares, polygon"]
        points, _ = random_moves(mesh, 1e-6, 2000, np.random.default_rng(7))
        inside = shapely.contains_xy(mesh.element_polygons[:, None], points[None, :, 0], points[None, :, 1])
        counts, sure = cell_counts(mesh, points), inside.sum(axis=0) == 1
        np.testing.assert_array_equal(counts - cell_counts(mesh, points[~sure]), inside[:, sure].sum(axis=1))

    @pytest.mark.parametrize("k", [1, 4])
    def test_sensitivity(self, k):
        assert counts_sensitivity(AddRemove(k)) == k
        assert counts_sensitivity(ReplaceOne(k)) == 2 * k
        assert counts_sensitivity(AlphaNeighbours(1e-9, max_points_per_person=k)) == 2 * k
