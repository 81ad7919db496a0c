"""Meshes of networks: segments along the edges, and triangles of the plane laid over them."""

import json
from itertools import pairwise

import numpy as np
import pytest
import shapely
from scipy.integrate import quad
from scipy.stats import binom, poisson

from dpppsynth.contract.additive_noise import cell_counts, lattice_masses
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.linear_network.mesh import SegmentCells, common
from dpppsynth.linear_network.shortest_paths import distances
from dpppsynth.models import build_lgcp, domain_from_geojson, laplace_approximation, mesh_from_recipe, trace_mesh
from dpppsynth.models.covariances import PoweredExponential
from dpppsynth.models.quadrature import dual_measure, dual_mesh
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne, tents
from dpppsynth.privacy.bounds import tents_sensitivity
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.intensity import LogLinear, LogLinearMean, PiecewiseConstant, PiecewiseLinear
from dpppsynth.spatial.mesh import integrate_exp
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.sampling import binomial_pattern, poisson_pattern

# A bridge across a street, a bent street, a loop, two streets between the same corners, a dead end of a centimetre.
ARC = shapely.LineString([(0, 0), (40, 30), (100, 0)])
LOOP = shapely.LineString([(100, 0), (130, 20), (130, -20), (100, 0)])
CORNERS = np.array([[0.0, 0.0], [100.0, 0.0], [50.0, 90.0], [50.0, -60.0], [50.01, 90.0]])
ENDS = np.array([[0, 1], [0, 1], [1, 1], [0, 2], [2, 1], [2, 3], [1, 3], [2, 4]])
STRAIGHT = [shapely.LineString(CORNERS[pair]) for pair in ENDS]
TOWN = LinearNetwork(CORNERS, ENDS, "EPSG:27700", lines=[ARC, STRAIGHT[1], LOOP, *STRAIGHT[3:]])
STREET = LinearNetwork([[0, 0], [60, 0], [100, 0]], [[0, 1], [1, 2]])
MESHES = {
    "segments": network_mesh(TOWN, 15.0),
    "coarse segments": network_mesh(TOWN, 1e4),
    "triangles": trace_mesh(TOWN, spacing=30.0),
}
over_meshes = pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)


def somewhere(network, n, seed=0):
    """(n, 2) uniform positions."""
    rng = np.random.default_rng(seed)
    edge = rng.choice(len(network.edges), size=n, p=network.lengths / network.length)
    return np.column_stack([edge, network.lengths[edge] * rng.random(n)])


def integral(network, f):
    """Integral along the network of f(positions), by quadrature of its own."""
    total = 0.0
    for edge, length in enumerate(network.lengths):
        x, w = np.polynomial.legendre.leggauss(8)
        cells = np.linspace(0, length, 1201)
        along = (cells[:-1, None] + cells[1:, None] + np.diff(cells)[:, None] * x) / 2
        value = f(np.column_stack([np.full(along.size, edge), along.ravel()])).reshape(along.shape)
        total += (value @ w @ np.diff(cells)) / 2
    return total


class TestSegments:
    def test_are_no_longer_than_asked_and_as_few_as_that_allows(self):
        mesh = network_mesh(TOWN, 15.0)
        length = mesh.end - mesh.start
        assert length.max() <= 15 * (1 + 1e-9)
        for edge, whole in enumerate(TOWN.lengths):
            own = length[mesh.edge == edge]
            np.testing.assert_allclose(own, whole / len(own), rtol=1e-12)
            assert len(own) == 1 or whole / (len(own) - 1) > 15 or (edge == 2 and len(own) == 2)

    def test_multiples_are_not_cut_once_more_by_rounding(self):
        for length, pieces in ((150.0, 3), (0.3, 3), (70.0, 1)):
            street = LinearNetwork([[0, 0], [length, 0]], [[0, 1]])
            assert len(network_mesh(street, {150.0: 50.0, 0.3: 0.1, 70.0: 70.0}[length]).elements) == pieces

    def test_a_loop_has_two_at_least(self):
        mesh = network_mesh(TOWN, 1e6)
        own = mesh.elements[mesh.edge == 2]
        assert len(own) == 2
        assert (own[0, 0], own[1, 1]) == (1, 1)
        assert own[0, 1] == own[1, 0] >= len(TOWN.vertices)

    def test_first_vertices_are_those_of_the_network(self):
        mesh = MESHES["segments"]
        np.testing.assert_array_equal(mesh.vertices[: len(CORNERS)], CORNERS)
        np.testing.assert_allclose(TOWN.coordinates(mesh.positions), mesh.vertices, atol=1e-9)
        np.testing.assert_array_equal(np.unique(mesh.elements), np.arange(len(mesh.vertices)))

    @pytest.mark.parametrize("resolution", [0, -1.0, np.nan, np.inf, "50", True, None])
    def test_resolution_refused(self, resolution):
        with pytest.raises(InputError, match=r"^resolution: must be a positive length \(metre\), got .*for instance"):
            network_mesh(TOWN, resolution)

    def test_too_fine(self):
        with pytest.raises(InputError, match=r"^resolution: 1e-06 needs more than 1000000 segments; take a larger one"):
            network_mesh(TOWN, 1e-6)

    def test_metric_is_the_resistance_of_the_refined_graph(self):
        mesh = network_mesh(TOWN, 30.0)
        v = len(mesh.vertices)
        laplacian = np.zeros((v, v))
        for (a, b), length in zip(mesh.elements, mesh.end - mesh.start, strict=True):
            laplacian[[a, b], [a, b]] += 1 / length
            laplacian[[a, b], [b, a]] -= 1 / length
        inverse = np.linalg.pinv(laplacian)
        expected = np.diag(inverse)[:, None] + np.diag(inverse) - 2 * inverse
        np.testing.assert_allclose(mesh.metric, expected, atol=1e-9)

    def test_paths_are_those_of_the_network(self):
        mesh = MESHES["segments"]
        expected = TOWN.distance(PointPattern.at(mesh.positions, TOWN))
        np.testing.assert_allclose(mesh.path_lengths, expected, rtol=1e-12)


class TestTriangles:
    def test_cover_the_network_alone(self):
        mesh = MESHES["triangles"]
        touched = shapely.intersects(mesh.element_polygons, TOWN.geometry)
        assert touched.all()
        everything = shapely.union_all(mesh.element_polygons)
        assert shapely.covers(shapely.buffer(everything, 1e-9), TOWN.geometry)

    def test_pieces_lie_in_their_triangles(self):
        mesh = MESHES["triangles"]
        first, last = mesh.pieces.corners[:, 0], mesh.pieces.corners[:, 1]
        assert (first[:, 0] == last[:, 0]).all()
        for share in (0.0, 0.3, 1.0):
            inside = mesh.weights(mesh.pieces.element, (1 - share) * first + share * last)
            assert inside.min() > -1e-9

    def test_straight_streets_have_room(self):
        for angle in (0.0, np.pi / 2, 0.7):
            end = 100 * np.array([np.cos(angle), np.sin(angle)])
            street = LinearNetwork([[0, 0], end], [[0, 1]])
            mesh = trace_mesh(street, shape=(5, 5))
            assert mesh.measure.sum() == pytest.approx(100, rel=1e-9)
            assert mesh.measure.min() >= 0

    def test_streets_along_the_grid_count_once(self):
        box = LinearNetwork([[0, 0], [30, 0], [30, 30], [0, 30]], [[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])
        mesh = trace_mesh(box, shape=(4, 4))
        assert mesh.measure.sum() == pytest.approx(box.length, rel=1e-12)

    def test_spacing_or_shape(self):
        with pytest.raises(InputError, match=r"^mesh: give either `spacing` or `shape`"):
            trace_mesh(TOWN)
        with pytest.raises(InputError, match=r"^spacing: must be positive and at most the longer side of the domain"):
            trace_mesh(TOWN, spacing=1e5)


class TestBasis:
    @over_meshes
    def test_sums_to_one_and_reproduces_linear_functions(self, mesh):
        at = somewhere(TOWN, 500)
        basis = mesh.basis(at)
        np.testing.assert_allclose(basis.sum(axis=1), 1, rtol=1e-12)
        assert basis.min() >= 0
        assert np.diff(basis.indptr).max() <= mesh.elements.shape[1]
        if mesh.kind == "triangle":
            np.testing.assert_allclose(basis @ mesh.vertices, TOWN.coordinates(at), atol=1e-9)
        else:
            edge = at[:, 0].astype(int)
            own = mesh.locate(at)
            along = (basis.multiply(np.ones(len(mesh.vertices)))).sum(axis=1)
            assert (mesh.edge[own] == edge).all()
            assert ((mesh.start[own] <= at[:, 1]) & (at[:, 1] <= mesh.end[own])).all()
            np.testing.assert_allclose(along, 1)

    @over_meshes
    def test_is_continuous_at_every_vertex_of_the_network(self, mesh):
        """All ends of edges that meet give the same values: positions differ, the place does not."""
        for vertex in range(len(CORNERS)):
            ends = [(e, 0.0 if side == 0 else TOWN.lengths[e]) for e, side in np.argwhere(vertex == ENDS)]
            values = mesh.basis(np.array(ends)).toarray()
            np.testing.assert_allclose(values, np.broadcast_to(values[0], values.shape), atol=1e-9)

    def test_bridge_and_street_below_are_apart(self):
        """Edges 1 and 5 cross without a vertex."""
        mesh, cross = MESHES["segments"], TOWN.coordinates([[1, 50.0]])
        np.testing.assert_allclose(TOWN.coordinates([[5, 90.0]]), cross, atol=1e-9)
        above, below = mesh.basis(np.array([[5, 90.0], [1, 50.0]])).toarray()
        assert (above * below).sum() == 0
        pattern = TOWN.pattern([5, 1], [90 / 150, 0.5])
        np.testing.assert_allclose(pattern.positions, [[5, 90], [1, 50]], atol=1e-9)
        assert TOWN.distance(pattern)[0, 1] > 80

    @over_meshes
    def test_measure_is_the_integral_of_the_basis(self, mesh):
        assert mesh.measure.sum() == pytest.approx(TOWN.length, rel=1e-12)
        assert mesh.element_measure.sum() == pytest.approx(TOWN.length, rel=1e-12)
        for j in (0, len(mesh.measure) // 2, len(mesh.measure) - 1):
            exact = integral(TOWN, lambda at, j=j: mesh.basis(at)[:, [j]].toarray()[:, 0])
            assert mesh.measure[j] == pytest.approx(exact, rel=1e-6, abs=1e-6)

    @over_meshes
    def test_gradients_are_differences(self, mesh):
        at, step = somewhere(TOWN, 300, seed=4), 1e-6
        at[:, 1] = np.clip(at[:, 1], 2 * step, TOWN.lengths[at[:, 0].astype(int)] - 2 * step)
        ahead = at + np.array([0, step])
        element = mesh.locate(at)
        measured = (mesh.weights(element, ahead) - mesh.weights(element, at)) / step
        if mesh.kind == "segment":
            expected = mesh.gradients[element, 0, :, 0]
        else:
            way = (TOWN.coordinates(ahead) - TOWN.coordinates(at)) / step
            expected = np.einsum("nka,na->nk", mesh.gradients[element, 0], way)
        np.testing.assert_allclose(measured, expected, atol=1e-6 * np.abs(mesh.gradients).max() + 1e-7)

    def test_dual_cells_of_segments_end_at_their_middles(self):
        mesh = MESHES["segments"]
        half = np.zeros(len(mesh.vertices))
        np.add.at(half, mesh.elements, (mesh.end - mesh.start)[:, None] / 2)
        for quadrature in ("voronoi", "basis"):
            np.testing.assert_allclose(dual_measure(mesh, quadrature), half, rtol=1e-12)

    def test_dual_cells_of_segments_are_nearest_along_the_streets(self):
        """Points on a cell are no farther from its vertex than from any other; bends and loops are followed."""
        mesh = MESHES["segments"]
        cells = dual_mesh(TOWN, mesh)
        assert shapely.length(cells).sum() == pytest.approx(TOWN.length, rel=1e-12)
        at = somewhere(TOWN, 400)
        way = distances(TOWN, at, mesh.positions)
        off = shapely.distance(cells, shapely.points(TOWN.coordinates(at))[:, None])
        own = off < 1e-9
        assert own.any(axis=1).all()
        assert (np.where(own, way, np.inf).min(axis=1) <= way.min(axis=1) + 1e-9).all()

    @pytest.mark.parametrize("shape", [(2, 2), (4, 4), (11, 9)])
    def test_dual_cells_of_triangles_tile_the_streets(self, shape):
        """Also where a street runs along the border of two cells, or of two triangles: counted once."""
        for streets in (TOWN, LinearNetwork([[0, 0], [10, 0], [10, 10], [0, 10]], [[0, 1], [1, 2], [2, 3], [0, 2]])):
            mesh = trace_mesh(streets, shape=shape)
            cells = dual_mesh(streets, mesh)
            assert shapely.length(cells).sum() == pytest.approx(streets.length, rel=1e-9)
            # As lines that lie on each other would count once here.
            assert shapely.length(shapely.union_all(cells)) == pytest.approx(
                shapely.length(shapely.union_all(streets.lines)), rel=1e-9
            )

    def test_cells_of_segments_with_one_number_each_are_the_segments(self):
        mesh = SegmentCells.of(MESHES["segments"])
        np.testing.assert_allclose(shapely.length(dual_mesh(TOWN, mesh)), mesh.measure, rtol=1e-9)


class TestRecipe:
    @over_meshes
    def test_makes_the_mesh_again(self, mesh):
        domain = domain_from_geojson(json.loads(json.dumps(TOWN.to_geojson())))
        assert domain.fingerprint() == TOWN.fingerprint()
        again = mesh_from_recipe(json.loads(json.dumps(mesh.recipe)), domain)
        np.testing.assert_array_equal(again.vertices, mesh.vertices)
        np.testing.assert_array_equal(again.elements, mesh.elements)
        np.testing.assert_array_equal(again.measure, mesh.measure)

    @pytest.mark.parametrize(
        ("recipe", "domain"),
        [
            ({"builder": "network", "resolution": 50.0}, Window.rectangle(0, 0, 1, 1)),
            ({"builder": "trace", "shape": [3, 3]}, Window.rectangle(0, 0, 1, 1)),
            ({"builder": "regular", "kind": "triangle", "shape": [3, 3]}, STREET),
            ({"builder": "arrays", "vertices": [[0, 0]], "elements": [[0, 0, 0]]}, STREET),
            ({"builder": "network"}, STREET),
            ({}, STREET),
        ],
    )
    def test_of_another_domain(self, recipe, domain):
        with pytest.raises(InputError, match=r"^mesh: recipe .* is not known for this domain"):
            mesh_from_recipe(recipe, domain)

    def test_windows_are_still_windows(self):
        window = Window.polygon(shapely.Point(0, 0).buffer(9), "EPSG:27700")
        assert domain_from_geojson(window.to_geojson()).fingerprint() == window.fingerprint()


def moved(network, positions, reach, seed):
    """Points at the end of random walks of at most `reach` along the network."""
    rng = np.random.default_rng(seed)
    out = positions.copy()
    for k, position in enumerate(positions):
        edge, along = int(position[0]), position[1]
        left, ahead = reach * (1 if k % 2 else rng.random()), rng.random() < 0.5
        while True:
            room = network.lengths[edge] - along if ahead else along
            if left <= room:
                out[k] = edge, along + left if ahead else along - left
                break
            left -= room
            vertex = network.edges[edge, 1 if ahead else 0]
            ways = np.argwhere(network.edges == vertex)
            edge, side = ways[rng.integers(len(ways))]
            ahead, along = side == 0, 0.0 if side == 0 else network.lengths[edge]
    return out


class TestSensitivity:
    """Masses before and after a walk of length alpha, from far more pairs than any one test would need."""

    @pytest.mark.exhaustive
    @over_meshes
    @pytest.mark.parametrize("alpha", [0.004, 1.0, 12.0])
    def test_moves_never_exceed_the_bound(self, mesh, alpha):
        start = somewhere(TOWN, 3000, seed=7)
        # Many walks begin at the corners, where several streets meet.
        start[::3, 1] = np.where(start[::3, 1] < 40, 0.0, start[::3, 1])
        end = moved(TOWN, start, alpha, seed=8)
        for bits in (2, 8, 20):
            bound = tents_sensitivity(mesh, AlphaNeighbours(alpha), bits=bits)
            worst = max(
                np.abs(lattice_masses(mesh, start[[k]], bits) - lattice_masses(mesh, end[[k]], bits)).sum()
                for k in range(0, 3000, 3 if bits == 20 else 10)
            )
            assert worst <= bound <= 2 ** (bits + 1)

    def test_bound_is_reached_on_the_shortest_segment(self):
        mesh = network_mesh(STREET, 25.0)
        exact = mesh.basis(np.array([[1, 1.0], [1, 15.0]])).toarray()
        change = np.abs(exact[0] - exact[1]).sum()
        assert mesh.tent_slope == pytest.approx(2 / 20)
        assert change == pytest.approx(14 * mesh.tent_slope, rel=1e-12)
        assert tents_sensitivity(mesh, AlphaNeighbours(14.0)) == int(2**20 * change) + 4

    def test_short_edges_do_not_make_triangles_steep(self):
        """The centimetre-long edge alone costs segments all; triangles do not notice it."""
        unit = 2**20
        assert tents_sensitivity(MESHES["segments"], AlphaNeighbours(1.0)) == 2 * unit
        across = MESHES["triangles"].gradients
        assert tents_sensitivity(MESHES["triangles"], AlphaNeighbours(1.0)) < 0.11 * unit
        assert MESHES["triangles"].tent_slope == pytest.approx(2 * np.sqrt((across**2).sum(axis=-1)).max(), rel=1e-9)

    @over_meshes
    def test_other_relations(self, mesh):
        assert tents_sensitivity(mesh, ReplaceOne(2), bits=4) == 64
        assert tents_sensitivity(mesh, AddRemove(), bits=4) == 16

    def test_curve_and_words(self):
        guarantee = tents(MESHES["triangles"], AlphaNeighbours(5.0), scale=2.0**20)
        assert guarantee.by_distance[-1][0] <= TOWN.diameter
        assert all(a <= b for (_, a), (_, b) in pairwise(guarantee.by_distance))
        assert "along a path inside the domain" in str(guarantee)

    def test_masses_and_counts_add_up(self):
        at = somewhere(TOWN, 777)
        for mesh in MESHES.values():
            assert lattice_masses(mesh, at, 20).sum() == 777 * 2**20
            assert cell_counts(mesh, at).sum() == 777


class TestExponential:
    @over_meshes
    def test_closed_form(self, mesh):
        field = np.random.default_rng(1).normal(0, 2, len(mesh.vertices))
        exact = integral(TOWN, lambda at: np.exp(mesh.basis(at) @ field))
        assert integrate_exp(mesh, mesh.pieces, field[None])[0] == pytest.approx(exact, rel=1e-6)

    def test_one_segment(self):
        mesh = network_mesh(LinearNetwork([[0, 0], [3, 4]], [[0, 1]]), 9.0)
        for a, b in ((0.0, 0.0), (1.0, 1.0 + 1e-12), (-30.0, 4.0), (2.0, -700.0)):
            exact = quad(lambda s, a=a, b=b: np.exp(a + (b - a) * s), 0, 1, epsabs=0, epsrel=1e-12, limit=500)[0]
            got = integrate_exp(mesh, mesh.pieces, np.array([[a, b]]))[0]
            assert got == pytest.approx(5 * exact, rel=1e-10)


class TestShares:
    @pytest.mark.parametrize("tents", ["segments", "coarse segments", "triangles"])
    @pytest.mark.parametrize("field", ["segments", "coarse segments"])
    def test_are_integrals_of_products(self, field, tents):
        one, other = MESHES[field], MESHES[tents]
        shares = one.shares(other)
        np.testing.assert_allclose(shares.sum(axis=0), 1, rtol=1e-9)
        np.testing.assert_allclose(shares @ one.measure, other.measure, atol=1e-9 * TOWN.length)
        for j, v in ((0, 0), (3, 1), (len(other.vertices) - 1, 2)):
            exact = integral(
                TOWN, lambda at, j=j, v=v: (other.basis(at)[:, [j]] * one.basis(at)[:, [v]]).toarray()[:, 0]
            )
            assert shares[j, v] * one.measure[v] == pytest.approx(exact, rel=1e-5, abs=1e-5)

    def test_common_parts_tile_the_network(self):
        parts = common(MESHES["segments"].pieces, MESHES["triangles"].pieces)
        assert parts.weight.sum() == pytest.approx(TOWN.length, rel=1e-12)
        middle = parts.corners.mean(axis=1)
        np.testing.assert_array_equal(MESHES["segments"].locate(middle), parts.element)


class TestSampling:
    @over_meshes
    @pytest.mark.parametrize("kind", ["constant", "linear", "log-linear", "mean"])
    def test_counts_follow_the_intensity(self, mesh, kind):
        """Points in thirds of every edge, false-alarm rate below 1e-6 by binomial tails over all of them."""
        rng = np.random.default_rng(3)
        intensity = {
            "constant": lambda: PiecewiseConstant(mesh, 0.2 + rng.random(len(mesh.elements))),
            "linear": lambda: PiecewiseLinear(mesh, rng.random(len(mesh.vertices))),
            "log-linear": lambda: LogLinear(mesh, rng.normal(0, 1, len(mesh.vertices))),
            "mean": lambda: LogLinearMean(mesh, rng.normal(0, 1, (3, len(mesh.vertices)))),
        }[kind]()
        n = 40_000
        pattern = binomial_pattern(intensity, n, 5)
        at = pattern.positions
        third = np.minimum((3 * at[:, 1] / TOWN.lengths[at[:, 0].astype(int)]).astype(int), 2)
        seen = np.bincount(3 * at[:, 0].astype(int) + third, minlength=3 * len(ENDS))
        for cell, count in enumerate(seen):
            edge, part = divmod(cell, 3)
            grid = (part + (np.arange(3000) + 0.5) / 3000) / 3 * TOWN.lengths[edge]
            here = np.column_stack([np.full(3000, edge), grid])
            element = mesh.locate(here)
            share = intensity.at(element, mesh.weights(element, here), here).mean() * TOWN.lengths[edge] / 3
            p = share / intensity.total
            # The quadrature's own error is allowed for by a thousandth of p.
            assert binom.cdf(count, n, p * 1.001) > 1e-8
            assert binom.sf(count - 1, n, p * 0.999) > 1e-8

    def test_numbers_are_poisson(self):
        mesh = MESHES["triangles"]
        level = LogLinear(mesh, np.full(len(mesh.vertices), np.log(1000 / TOWN.length)))
        counts = [len(poisson_pattern(level, seed)) for seed in range(60)]
        assert poisson.cdf(sum(counts), 60_000) > 1e-7
        assert poisson.sf(sum(counts), 60_000) > 1e-7
        assert 400 < np.var(counts) < 2200

    def test_points_lie_on_the_public_grid_of_the_network(self):
        pattern = poisson_pattern(
            PiecewiseConstant(MESHES["segments"], np.full(len(MESHES["segments"].elements), 1.0)), 1
        )
        edge, along = pattern.positions[:, 0].astype(int), pattern.positions[:, 1]
        steps = along / TOWN.resolution
        on_grid = np.abs(steps - np.round(steps)) < 1e-3
        assert (on_grid | (along == TOWN.lengths[edge])).all()
        assert TOWN.contains(pattern.xy).all()

    def test_none(self):
        empty = poisson_pattern(PiecewiseConstant(MESHES["segments"], np.zeros(len(MESHES["segments"].elements))), 1)
        assert len(empty) == 0
        assert empty.positions.shape == (0, 2)


class TestOffset:
    LEFT = Offset([shapely.box(-1, -100, 50, 100), shapely.box(50, -100, 200, 100)], [1.0, 3.0])

    @over_meshes
    def test_weighs_lengths(self, mesh):
        inside = shapely.length(shapely.intersection(TOWN.geometry, self.LEFT.polygons[0]))
        # The bridge runs along the border, where the first polygon counts for values and both for lengths.
        along = TOWN.lengths[5]
        level = LogLinear(mesh, np.zeros(len(mesh.vertices)), self.LEFT)
        right = TOWN.length - inside
        assert level.total == pytest.approx(inside + 3 * right + 3 * along, rel=1e-9)

    def test_no_point_where_it_is_zero(self):
        mesh = MESHES["segments"]
        offset = Offset([shapely.box(60, -100, 200, 100)], [2.0])
        pattern = poisson_pattern(LogLinear(mesh, np.zeros(len(mesh.vertices)), offset), 2)
        assert len(pattern) > 50
        assert pattern.xy[:, 0].min() >= 60 - 1e-6


def test_uniform_masses_give_a_constant_mode():
    mesh = MESHES["segments"]
    from dpppsynth.models.likelihood import NoisyMasses

    tents_ = MESHES["triangles"]
    masses = 400 * tents_.measure / TOWN.length
    likelihood = NoisyMasses(masses, 0.0, mesh.measure, mesh.shares(tents_).toarray(), 400)
    root = np.linalg.cholesky(PoweredExponential(1.0, 50.0, 1.0).matrix(mesh) + 1e-12 * np.eye(len(mesh.vertices)))
    mode = laplace_approximation.laplace_posterior(likelihood, root, 0.0).field_mode
    assert np.ptp(mode) < 1e-6


@pytest.mark.slow
def test_lgcp_for_research_runs_on_streets():
    import pymc as pm

    pattern = TOWN.pattern([0, 0, 0, 1, 3], [0.1, 0.12, 0.2, 0.5, 0.9])
    with build_lgcp(pattern, network_mesh(TOWN, 60.0), PoweredExponential(1.0, 80.0, 1.0)):
        mode = pm.find_MAP(progressbar=False)
    assert np.isfinite(mode["log_intensity"]).all()
