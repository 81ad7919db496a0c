"""Linear networks as domains: validation, identity, positions, snapping and the diameter."""

import json
import math
import re

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist

from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.patterns import PointPattern

SQUARE = [[0, 0], [4, 0], [4, 3], [0, 3]]
RING = [[0, 1], [1, 2], [2, 3], [3, 0]]
BEND = shapely.LineString([(0, 0), (0, 3), (4, 3), (4, 0)])


def random_network(seed: int, tree: bool = False) -> LinearNetwork:
    """A spanning tree of random places, with extra edges, a parallel edge and a curved loop unless a tree is wanted."""
    rng = np.random.default_rng(seed)
    xy = rng.uniform(-50, 50, (rng.integers(3, 12), 2))
    edges = np.argwhere(minimum_spanning_tree(cdist(xy, xy)).toarray() > 0)
    lines = list(shapely.linestrings(xy[edges]))
    if not tree:
        extra = np.array([[0, 1], [0, 2], [1, 1]])
        loop = shapely.LineString([xy[1], xy[1] + (5, 1), xy[1] + (2, 7), xy[1]])
        curved = shapely.LineString([xy[0], xy[0] + (3, 4), xy[2]])
        edges, lines = np.vstack([edges, extra]), [*lines, shapely.LineString(xy[[0, 1]]), curved, loop]
    return LinearNetwork(xy, edges, lines=lines)


def random_positions(network: LinearNetwork, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    edge = rng.integers(0, len(network.edges), n)
    return np.column_stack([edge, rng.uniform(0, 1, n) * network.lengths[edge]])


class TestValidation:
    @pytest.mark.parametrize(
        "vertices",
        [[[0, math.nan], [1, 1]], [[0, math.inf], [1, 1]], [[0, 1e300], [1, 1]], [0, 1], [[0, 0, 0]], [], "ab", None],
    )
    def test_vertices_must_be_finite_pairs(self, vertices):
        with pytest.raises(InputError, match="vertices: need finite coordinates"):
            LinearNetwork(vertices, [[0, 1]])

    @pytest.mark.parametrize(
        "edges", [[[0, 0.5]], [[0, math.nan]], [[0, math.inf]], [[0, 1e300]], [], [0, 1], [["a", 1]]]
    )
    def test_edges_must_be_pairs_of_whole_numbers(self, edges):
        with pytest.raises(InputError, match="edges: need whole vertex numbers"):
            LinearNetwork([[0, 0], [1, 0]], edges)

    @pytest.mark.parametrize("wrap", [lambda masked: masked, list], ids=["array", "rows"])
    def test_masked_values_stay_masked(self, wrap):
        xy = np.ma.array([[0.0, 0.0], [4.0, 99.0]], mask=[[0, 0], [0, 1]])
        with pytest.raises(InputError, match="vertices: need finite coordinates"):
            LinearNetwork(wrap(xy), [[0, 1]])
        ends = np.ma.array([[0, 1], [1, 2]], mask=[[0, 0], [0, 1]])
        with pytest.raises(InputError, match="edges: need whole vertex numbers"):
            LinearNetwork([[0, 0], [1, 0], [2, 0]], wrap(ends))
        assert LinearNetwork(np.ma.array([[0.0, 0.0], [4.0, 3.0]]), [[0, 1]]).length == 5

    @pytest.mark.parametrize("edges", [[[0, 2]], [[-1, 0]]])
    def test_edges_must_name_existing_vertices(self, edges):
        with pytest.raises(InputError, match="edges: vertex numbers must run from 0 to 1"):
            LinearNetwork([[0, 0], [1, 0]], edges)

    def test_whole_numbers_held_as_floats_are_vertex_numbers(self):
        assert LinearNetwork([[0, 0], [1, 0]], np.array([[0.0, 1.0]])).edges.dtype == np.int64

    def test_edges_without_length_are_refused(self):
        with pytest.raises(InputError, match=r"1 of 2 have none, the first is number 1.*loop needs its course"):
            LinearNetwork([[0, 0], [1, 0]], [[0, 1], [1, 1]])

    def test_components_are_refused_with_their_sizes(self):
        with pytest.raises(InputError, match=r"2 components, of 3, 2 vertices.*largest_component"):
            LinearNetwork([[0, 0], [1, 0], [5, 5], [6, 5], [6, 6]], [[0, 1], [2, 3], [3, 4]])

    def test_a_vertex_without_edges_is_a_component(self):
        with pytest.raises(InputError, match=r"2 components, of 2, 1 vertices"):
            LinearNetwork([[0, 0], [1, 0], [5, 5]], [[0, 1]])

    @pytest.mark.parametrize(
        ("lines", "said"),
        [
            ([], "one LineString per edge"),
            ([shapely.Point(0, 0)], "one LineString per edge"),
            ([None], "one LineString per edge"),
            ([shapely.LineString()], "one LineString per edge"),
            ([shapely.LineString([(4, 0), (0, 0)])], "start at its edge's first vertex"),
            ([shapely.LineString([(0, 0), (1e300, 1), (4, 0)])], "must be finite"),
        ],
    )
    def test_lines_must_join_the_vertices_of_their_edges(self, lines, said):
        with pytest.raises(InputError, match=said):
            LinearNetwork([[0, 0], [4, 0]], [[0, 1]], lines=lines)

    def test_degrees_are_refused(self):
        with pytest.raises(InputError, match=r"in degrees.*to_crs="):
            LinearNetwork(SQUARE, RING, 4326)

    def test_arrays_are_copied_and_read_only(self):
        vertices = np.array(SQUARE, dtype=float)
        network = LinearNetwork(vertices, RING)
        vertices[0] = 9
        assert network.vertices[0].tolist() == [0, 0]
        for array in (network.vertices, network.edges, network.lines):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = array[1]


class TestIdentity:
    def test_it_is_a_domain_with_a_telling_repr(self):
        network = LinearNetwork(SQUARE, RING, 27700)
        assert isinstance(network, Domain)
        assert repr(network) == "LinearNetwork(4 vertices, 4 edges, length 14, EPSG:27700, metre)"
        assert network.lengths.tolist() == [4, 3, 4, 3]
        assert network.bounds == (0, 0, 4, 3)

    def test_fingerprint_survives_json(self):
        network = LinearNetwork([[0.1, 1 / 3], [4, -0.0]], [[0, 1]], "EPSG:27700")
        back = LinearNetwork.from_geojson(json.loads(json.dumps(network.to_geojson())))
        assert back.fingerprint() == network.fingerprint()
        assert back.crs == "EPSG:27700"
        assert LinearNetwork([[0.1, 1 / 3], [4, 0.0]], [[0, 1]], "EPSG:27700").fingerprint() == network.fingerprint()

    def test_fingerprint_tells_course_direction_and_crs_apart(self):
        ends = [[0, 0], [4, 0]]
        networks = [
            LinearNetwork(ends, [[0, 1]]),
            LinearNetwork(ends, [[1, 0]]),
            LinearNetwork(ends, [[0, 1]], 27700),
            LinearNetwork(ends, [[0, 1]], lines=[BEND]),
        ]
        assert len({network.fingerprint() for network in networks}) == 4

    def test_geojson_without_crs_is_in_degrees(self):
        data = LinearNetwork(SQUARE, RING).to_geojson()
        del data["crs"]
        with pytest.raises(InputError, match=r"no 'crs' member.*degrees"):
            LinearNetwork.from_geojson(data)

    @pytest.mark.parametrize("numbers", [(0, 2), (5, 6), (-1, 0), (0.5, 1), ("a", "b"), (None, 1)])
    def test_geojson_needs_vertex_numbers_counted_from_zero(self, numbers):
        data = LinearNetwork([[0, 0], [4, 0]], [[0, 1]]).to_geojson()
        data["features"][0]["properties"] = dict(zip(("from", "to"), numbers, strict=True))
        with pytest.raises(InputError, match="numbers of their vertices"):
            LinearNetwork.from_geojson(data)

    def test_geojson_with_one_number_for_two_places_is_refused(self):
        data = LinearNetwork(SQUARE, RING).to_geojson()
        data["features"][1]["properties"]["from"] = 0
        with pytest.raises(InputError, match="each in one place"):
            LinearNetwork.from_geojson(data)


class TestPaths:
    def test_adjacency_takes_the_shortest_of_parallel_edges_and_no_loops(self):
        loop = shapely.LineString([(4, 0), (5, 0), (5, 1), (4, 0)])
        straight = shapely.LineString([(4, 0), (0, 0)])
        network = LinearNetwork([[0, 0], [4, 0]], [[0, 1], [1, 0], [1, 1]], lines=[BEND, straight, loop])
        assert network.adjacency.toarray().tolist() == [[0, 4], [4, 0]]
        assert network.lengths.tolist() == pytest.approx([10, 4, 2 + math.sqrt(2)])

    def test_a_loop_is_walked_the_short_way(self):
        loop = shapely.LineString([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)])
        network = LinearNetwork([[0, 0]], [[0, 0]], lines=[loop])
        at = network.pattern([0, 0, 0], [0.125, 0.875, 0.5])
        assert network.distance(at)[0].tolist() == pytest.approx([0, 1, 1.5])
        assert network.diameter == 2

    @settings(max_examples=25)
    @given(st.integers(0, 10**6))
    def test_no_distance_exceeds_the_diameter(self, seed):
        network = random_network(seed)
        at = PointPattern.at(random_positions(network, 60, seed + 1), network)
        assert network.distance(at).max() <= network.diameter * (1 + 1e-12)

    @settings(max_examples=25)
    @given(st.integers(0, 10**6))
    def test_on_trees_the_diameter_is_the_longest_path_between_vertices(self, seed):
        network = random_network(seed, tree=True)
        longest = network.distance(network.vertices).max()
        assert network.diameter == pytest.approx(longest, rel=1e-12)


class TestPositions:
    @settings(max_examples=25)
    @given(st.integers(0, 10**6))
    def test_coordinates_come_back(self, seed):
        network = random_network(seed)
        xy = network.coordinates(random_positions(network, 40, seed))
        assert network.contains(xy).all()
        assert network.coordinates(network.positions(xy)) == pytest.approx(xy, abs=1e-9)

    def test_nearest_edge_and_lowest_number_at_ties(self):
        network = LinearNetwork(SQUARE, RING)
        found = network.positions([[2, 1], [5, 2], [4, 0], [2, 1.5], [-1, -1]])
        assert found.tolist() == [[0, 2], [1, 2], [0, 4], [0, 2], [0, 0]]

    def test_nearest_edge_agrees_with_brute_force(self):
        network = random_network(7)
        xy = np.random.default_rng(0).uniform(-80, 80, (300, 2))
        away = np.array([[line.distance(shapely.Point(p)) for line in network.lines] for p in xy])
        assert network.positions(xy)[:, 0].tolist() == away.argmin(axis=1).tolist()
        assert network.away(xy) == pytest.approx(away.min(axis=1))

    def test_curved_edges_are_measured_along_their_course(self):
        network = LinearNetwork([[0, 0], [4, 0]], [[0, 1]], lines=[BEND])
        assert network.positions([[2, 3.1], [4.5, 1]]).tolist() == [[0, 5], [0, 9]]
        assert network.coordinates([[0, 5]]).tolist() == [[2, 3]]

    def test_no_points_have_no_positions(self):
        network = LinearNetwork(SQUARE, RING)
        assert network.positions(np.empty((0, 2))).shape == (0, 2)
        assert network.coordinates(np.empty((0, 2))).shape == (0, 2)
        assert network.contains(np.empty((0, 2))).shape == (0,)

    def test_contains_to_rounding_only(self):
        network = LinearNetwork(SQUARE, RING)
        xy = [[2, 1e-10], [2, 1e-6], [math.nan, 0], [math.inf, 0], [2, 1]]
        assert network.contains(xy).tolist() == [True, False, False, False, False]

    def test_rounding_to_the_public_grid_stays_on_the_edge(self):
        network = LinearNetwork(SQUARE, RING)
        rounded = network.on_grid(network.positions([[4, 0.1234567891], [3.99999999999, 0]]))
        assert rounded[0, 1] == pytest.approx(0.123457, abs=5e-7)
        assert (rounded[:, 1] <= network.lengths[rounded[:, 0].astype(int)]).all()


class TestPattern:
    def test_parallel_edges_with_one_course_keep_their_numbers(self):
        network = LinearNetwork([[0, 0], [4, 0]], [[0, 1], [0, 1], [1, 0]])
        pattern = network.pattern([1, 2, 0], [0.5, 0.25, 1], marks={"kind": ["a", "b", "c"]})
        assert pattern.positions.tolist() == [[1, 2], [2, 1], [0, 4]]
        assert pattern.xy.tolist() == [[2, 0], [3, 0], [4, 0]]
        assert pattern.marks["kind"].tolist() == ["a", "b", "c"]

    @pytest.mark.parametrize("edge", [-1, 4, 0.5, math.nan, math.inf])
    def test_bad_edges(self, edge):
        with pytest.raises(InputError, match="edge: numbers must be whole and run from 0 to 3"):
            LinearNetwork(SQUARE, RING).pattern([edge], [0.5])

    @pytest.mark.parametrize("t", [-0.1, 1.1, math.nan])
    def test_bad_fractions(self, t):
        with pytest.raises(InputError, match="t: fractions"):
            LinearNetwork(SQUARE, RING).pattern([0], [t])

    @pytest.mark.parametrize(("edge", "t"), [([0, 1], [0.5]), ([[0]], [[0.5]])])
    def test_bad_lengths(self, edge, t):
        with pytest.raises(InputError, match="one edge number and one fraction per point"):
            LinearNetwork(SQUARE, RING).pattern(edge, t)


class TestSnap:
    def test_moves_to_the_nearest_edge(self):
        pattern = LinearNetwork(SQUARE, RING).snap([[1, 0.2], [3.9, 2]], 0.5)
        assert pattern.xy.tolist() == [[1, 0], [4, 2]]
        assert pattern.positions.tolist() == [[0, 1], [1, 2]]

    def test_needs_a_tolerance(self):
        with pytest.raises(TypeError):
            LinearNetwork(SQUARE, RING).snap([[1, 0.2]])

    @pytest.mark.parametrize("tolerance", [0, -1, math.nan, math.inf, True, "5", None])
    def test_tolerance_must_be_a_distance(self, tolerance):
        with pytest.raises(InputError, match="tolerance: must be a positive distance"):
            LinearNetwork(SQUARE, RING).snap([[1, 0.2]], tolerance)

    def test_far_points_are_refused_without_coordinates_or_counts(self):
        with pytest.raises(InputError) as caught:
            LinearNetwork(SQUARE, RING).snap([[1.7, 0.77], [1.7, 0.77], [1, 0.1]], 0.5)
        assert not any(digit in str(caught.value) for digit in "0123456789")

    def test_points_nearer_to_a_dropped_edge_are_refused(self):
        network = LinearNetwork.largest_component([[0, 0], [10, 0], [20, 0], [0, 5], [10, 5]], [[0, 1], [1, 2], [3, 4]])
        assert len(network.dropped) == 1
        assert len(network.snap([[5, 2.4]], 5)) == 1
        for xy in ([5, 2.6], [5, 5.0], [5, 7.0]):
            with pytest.raises(InputError, match="nearer to an edge that was left out"):
                network.snap([xy], 10)

    def test_points_of_another_domain_have_no_distances_here(self):
        other = LinearNetwork([[0, 0], [4, 0]], [[0, 1]]).pattern([0], [0.5])
        with pytest.raises(InputError, match="another domain"):
            LinearNetwork(SQUARE, RING).distance(other)


def test_distances_of_tables_of_points():
    network = LinearNetwork([[0, 0], [4, 0], [4, 3]], [[0, 1], [1, 2]], crs="EPSG:27700")
    points = network.pattern([0, 1], [0.5, 1.0])
    frame = points.to_geodataframe()
    for table in (frame, frame.geometry, frame.set_crs(None, allow_override=True)):
        np.testing.assert_array_equal(network.distance(table), network.distance(points))
    # The remedies are calls that work.
    for table in (frame.to_crs(4326), frame.set_geometry(frame.translate(0, 0.5))):
        with pytest.raises(InputError, match="take PointPattern") as caught:
            network.distance(table)
        call = re.search(r"take (PointPattern.from_geodataframe\(.*\)), which", str(caught.value))[1]
        moved = eval(call, {"PointPattern": PointPattern, "points": table, "domain": network})
        np.testing.assert_allclose(network.distance(moved), network.distance(points), atol=0.6)
    with pytest.raises(InputError, match="missing coordinate"):
        network.distance(frame.set_geometry([None, None]))


def test_distances_below_zero_are_the_beginning():
    network = LinearNetwork([[5e5, 1], [5e5, 3], [5e5 + 3, 3]], [[0, 1], [1, 2]])
    np.testing.assert_array_equal(network.coordinates([[0, -1e-9], [1, -1e-9]]), network.vertices[:2])


def test_positions_of_synthetic_points_are_on_curved_edges():
    ends = np.array([[0.0, 0.0], [10.0, 0.0]])
    curve = shapely.linestrings([[0, 0], [3, 4], [7, 4], [10, 0]])
    network = LinearNetwork(ends, np.array([[0, 1]]), lines=np.array([curve]))
    drawn = PointPattern.drawn(np.array([[0.0, 2.5], [0.0, 7.0]]), network)
    np.testing.assert_allclose(drawn.xy, [[1.5, 2.0], [5.0, 4.0]], atol=1e-6)
    assert network.contains(drawn.xy).all()
    assert not drawn.xy.flags.writeable
    assert not drawn.positions.flags.writeable
