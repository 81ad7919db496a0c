"""Networks from lines, graphs and files: what is cut, joined, contracted, left out, refused."""

import json
import math

import geopandas
import networkx
import numpy as np
import pytest
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from shapely import LineString

from dpppsynth import io
from dpppsynth.errors import InputError
from dpppsynth.linear_network import LinearNetwork

CROSS = [[(0, 0), (4, 4)], [(0, 4), (4, 0)]]
T_SHAPE = [[(0, 0), (10, 0)], [(4, 0), (4, 3)]]


def series(*lines, crs=None):
    return geopandas.GeoSeries([LineString(line) for line in lines], crs=crs)


def build(*lines, **options):
    return LinearNetwork.from_geodataframe(series(*lines), **options)


def courses(network):
    """The lines of a network as a set, whatever their order and direction."""
    return {tuple(shapely.get_coordinates(line.normalize()).ravel().round(6)) for line in network.lines}


class TestLines:
    def test_equal_ends_meet_and_parts_count_as_lines(self):
        parts = shapely.MultiLineString([[(0, 0), (1, 0)], [(1, 0), (1, 1), (2, 1)]])
        network = LinearNetwork.from_geodataframe(geopandas.GeoSeries([parts, LineString([(2, 1), (2, 5)])]))
        assert network.edges.tolist() == [[0, 1], [1, 2], [2, 3]]
        assert network.vertices.tolist() == [[0, 0], [1, 0], [2, 1], [2, 5]]
        assert network.lengths.tolist() == [1, 2, 4]
        assert network.changes == ()

    def test_ends_meet_exactly_or_not_at_all(self):
        with pytest.raises(InputError, match=r"2 components.*join="):
            build([(0, 0), (1, 0)], [(np.nextafter(1, 2), 0), (2, 0)])

    def test_nothing_is_cut_unless_asked_because_of_bridges(self):
        with pytest.raises(InputError, match=r"2 components.*node=True"):
            build(*CROSS)

    def test_negative_zero_is_zero(self):
        assert len(build([(0, 0.0), (1, 0)], [(0, -0.0), (0, 1)]).vertices) == 3

    def test_heights_are_left_out(self):
        network = build([(0, 0, 5), (3, 4, 9)])
        assert network.lengths.tolist() == [5]
        assert not network.lines[0].has_z

    def test_loops_and_parallel_edges_of_different_course_stay(self):
        loop, straight, bent = [(0, 0), (1, 0), (0, 1), (0, 0)], [(0, 0), (-4, 0)], [(-4, 0), (-2, 1), (0, 0)]
        assert build(loop, straight, bent).edges.tolist() == [[0, 0], [0, 1], [1, 0]]

    @pytest.mark.parametrize("again", [[(0, 0), (1, 0), (1, 1)], [(1, 1), (1, 0), (0, 0)]], ids=["same", "reversed"])
    def test_a_street_drawn_twice_is_refused(self, again):
        with pytest.raises(InputError, match=r"1 line drawn twice.*normalize"):
            build([(0, 0), (1, 0), (1, 1)], again)

    @pytest.mark.parametrize(
        ("geometry", "said"),
        [
            (shapely.Point(0, 0), "found Point"),
            (shapely.box(0, 0, 1, 1), "found Polygon"),
            (None, "found nothing"),
            (LineString(), "1 of 2 are empty"),
            (LineString([(1, 0), (1, 0)]), r"1 of 2 have no length.*lines.length > 0"),
            (LineString([(1, 0), (1e300, 0)]), "must be finite"),
        ],
    )
    @pytest.mark.parametrize("node", [False, True])
    def test_other_geometries_are_refused_by_name(self, geometry, said, node):
        with pytest.raises(InputError, match=said):
            LinearNetwork.from_geodataframe(geopandas.GeoSeries([LineString([(0, 0), (1, 0)]), geometry]), node=node)

    def test_no_lines_and_no_table_are_refused(self):
        with pytest.raises(InputError, match="found nothing"):
            LinearNetwork.from_geodataframe(geopandas.GeoSeries([]))
        with pytest.raises(InputError, match="must be a GeoDataFrame"):
            LinearNetwork.from_geodataframe([LineString([(0, 0), (1, 0)])])


class TestCRS:
    def test_crs_of_the_lines_is_kept_and_may_be_named(self):
        line = [(529000, 180000), (529100, 180000)]
        assert LinearNetwork.from_geodataframe(series(line, crs=27700)).crs == "EPSG:27700"
        assert build(line, crs=27700).crs == "EPSG:27700"
        assert build(line).crs is None

    def test_contradiction_and_degrees_are_refused(self):
        with pytest.raises(InputError, match=r"the lines are in EPSG:27700, not EPSG:32630"):
            LinearNetwork.from_geodataframe(series([(0, 0), (1, 0)], crs=27700), 32630)
        with pytest.raises(InputError, match=r"in degrees.*to_crs="):
            LinearNetwork.from_geodataframe(series([(0, 51), (1, 51)], crs=4326))
        with pytest.raises(InputError, match="do not say which CRS"):
            build([(0, 51), (1, 51)], to_crs=27700)

    def test_to_crs_moves_every_coordinate(self):
        lines = series([(-0.14, 51.51), (-0.135, 51.515), (-0.13, 51.51)], [(-0.13, 51.51), (-0.13, 51.5)], crs=4326)
        network = LinearNetwork.from_geodataframe(lines, to_crs=32630)
        assert network.crs == "EPSG:32630"
        expected = shapely.get_coordinates(lines.to_crs(32630))
        assert shapely.get_coordinates(network.lines) == pytest.approx(expected, abs=1e-6)


class TestNode:
    def test_crossings_become_vertices(self):
        network = build(*CROSS, node=True)
        assert len(network.vertices) == 5
        assert np.bincount(network.edges.ravel()).max() == 4
        assert network.length == pytest.approx(8 * math.sqrt(2))
        assert network.changes == ("cut lines where they cross or touch: 2 lines became 4",)

    def test_touching_ends_cut_a_line_even_a_rounding_error_away(self):
        rng = np.random.default_rng(0)
        for _ in range(20):
            a, b, away = rng.uniform(4e5, 6e5, (3, 2))
            foot = a + rng.uniform(0.2, 0.8) * (b - a)
            network = build([a, b], [foot, away], node=True)
            assert sorted(np.bincount(network.edges.ravel())) == [1, 1, 1, 3]

    @pytest.mark.parametrize("seed", [0, 1, 140])
    def test_five_lines_through_one_place_meet_in_one_vertex(self, seed):
        # With seed 140 two crossings come out 6e-11 apart.
        rng = np.random.default_rng(seed)
        centre, arms = rng.uniform(4e5, 6e5, 2), rng.normal(0, 100, (5, 2))
        network = build(*[[centre - arm, centre + arm] for arm in arms], node=True)
        assert len(network.edges) == 10
        assert np.bincount(network.edges.ravel()).max() == 10
        assert network.lengths.min() > 1

    def test_shared_stretches_are_kept_once_and_said(self):
        network = build([(0, 0), (3, 0)], [(1, 0), (4, 0)], node=True)
        assert courses(network) == {(0, 0, 1, 0), (1, 0, 3, 0), (3, 0, 4, 0)}
        assert network.changes == (
            "cut lines where they cross or touch: 2 lines became 3, 2 unit drawn twice kept once",
        )

    def test_the_same_line_twice_is_kept_once_and_said(self):
        network = build([(0, 0), (3, 0)], [(0, 0), (3, 0)], node=True)
        assert network.length == 3
        assert "3 unit drawn twice kept once" in network.changes[0]

    def test_nothing_to_cut_changes_nothing(self):
        network = build([(0, 0), (1, 0)], [(1, 0), (1, 1)], node=True)
        assert network.changes == ()
        assert network.length == 2


class TestJoin:
    def test_a_gap_between_two_ends_closes_and_the_later_end_moves(self):
        network = build([(0, 0), (10, 0)], [(10.4, 0.3), (20, 0)], join=0.6)
        assert courses(network) == {(0, 0, 10, 0), (10, 0, 20, 0)}
        assert network.changes == ("joined 1 dangling end, moved by up to 0.5 unit",)

    def test_an_end_short_of_a_line_is_joined_onto_it(self):
        network = build([(0, 0), (10, 0)], [(4, 0.4), (4, 3)], join=0.5)
        assert courses(network) == {(0, 0, 4, 0), (4, 0, 10, 0), (4, 0, 4, 3)}
        assert network.changes == ("joined 1 dangling end, moved by up to 0.4 unit",)

    def test_a_vertex_comes_before_a_nearer_line(self):
        network = build([(0, 0), (10, 0)], [(10, 0), (10, -5)], [(9.6, 0.2), (9, 5)], join=0.5)
        assert courses(network) == {(0, 0, 10, 0), (10, -5, 10, 0), (9, 5, 10, 0)}

    def test_several_ends_cut_one_line_in_order(self):
        network = build([(0, 0), (10, 0)], [(7, 0.1), (7, 3)], [(2, -0.1), (2, -3)], [(7, -0.1), (7, -3)], join=0.15)
        assert {(0, 0, 2, 0), (2, 0, 7, 0), (7, 0, 10, 0), (7, 0, 7, 3)} <= courses(network)
        assert len(network.edges) == 6

    def test_ends_beyond_the_tolerance_stay(self):
        with pytest.raises(InputError, match="2 components"):
            build([(0, 0), (10, 0)], [(4, 0.6), (4, 3)], join=0.5)

    def test_vertices_where_lines_meet_never_move(self):
        lines = [(0, 0), (5, 0)], [(5, 0), (10, 0)], [(5, 0.3), (5, 9)], [(5, 0.3), (8, 9)]
        with pytest.raises(InputError, match="2 components"):
            build(*lines, join=0.5)

    def test_short_dead_ends_stay(self):
        lines = [(0, 0), (10, 0)], [(0, 0), (0.3, 0.1)]
        network = build(*lines, join=0.5)
        assert courses(network) == courses(build(*lines))
        assert network.changes == ()

    def test_three_ends_near_each_other_become_one_vertex(self):
        network = build([(0, 0), (10, 0)], [(10.1, 0), (20, 5)], [(10, 0.1), (20, -5)], join=0.5)
        assert sorted(np.bincount(network.edges.ravel())) == [1, 1, 1, 3]
        assert [10, 0] in network.vertices.tolist()

    def test_a_short_line_is_never_joined_with_both_ends_in_one_place(self):
        astride = build([(0, 0), (10, 0)], [(4, 0.2), (4, -0.2)], join=0.5)
        assert courses(astride) == {(0, 0, 4, 0), (4, 0, 10, 0), (4, -0.2, 4, 0)}
        beyond = build([(0, 0), (10, 0)], [(10.1, 0), (10.3, 0)], join=0.5)
        assert courses(beyond) == {(0, 0, 10, 0), (10, 0, 10.3, 0)}

    def test_ends_that_overlap_side_by_side_leave_one_line_between_them(self):
        network = build([(0, 0), (10, 0)], [(9, 0.2), (20, 0.2)], join=0.5)
        assert courses(network) == {(0, 0, 9, 0), (9, 0, 10, 0.2), (10, 0.2, 20, 0.2)}
        assert len(network.edges) == 3
        assert network.changes[1] == "left out 1 line that joining laid upon another"

    @pytest.mark.parametrize("join", [0, -1, math.nan, math.inf, True, "1"])
    def test_the_tolerance_must_be_a_distance(self, join):
        with pytest.raises(InputError, match="join: must be a positive distance"):
            build(*T_SHAPE, join=join)

    @settings(max_examples=30, deadline=None)
    @given(st.integers(0, 10**6))
    def test_only_dangling_ends_move_and_by_no_more_than_the_tolerance(self, seed):
        rng = np.random.default_rng(seed)
        lines = shapely.linestrings(rng.uniform(0, 10, (8, 2, 2)))
        before = LinearNetwork.from_geodataframe(geopandas.GeoSeries(lines), node=True, largest_component=True)
        gapped = geopandas.GeoSeries(before.lines)
        after = LinearNetwork.from_geodataframe(gapped, join=0.5, largest_component=True)
        degree = np.bincount(before.edges.ravel())
        kept = {tuple(v) for v in after.vertices}
        assert {tuple(v) for v in before.vertices[degree > 1]} <= kept
        assert shapely.hausdorff_distance(before.geometry, after.geometry) <= 0.5 + 1e-9


class TestComponents:
    VERTICES = ((0, 0), (1, 0), (5, 5), (6, 5), (9, 9), (5, 6))
    EDGES = ((2, 3), (0, 1), (3, 5))

    def test_the_component_with_most_vertices_stays(self):
        network = LinearNetwork.largest_component(self.VERTICES, self.EDGES, 27700)
        assert network.vertices.tolist() == [[5, 5], [6, 5], [5, 6]]
        assert network.edges.tolist() == [[0, 1], [1, 2]]
        assert [line.wkt for line in network.dropped] == ["LINESTRING (0 0, 1 0)"]
        assert network.changes == ("left out 3 vertices and 1 edge outside the largest component",)
        assert network.crs == "EPSG:27700"

    def test_at_a_tie_the_lowest_vertex_decides(self):
        network = LinearNetwork.largest_component([[0, 0], [5, 5], [6, 5], [1, 0]], [[1, 2], [3, 0]])
        assert network.vertices.tolist() == [[0, 0], [1, 0]]
        assert network.edges.tolist() == [[1, 0]]

    def test_a_connected_network_stays_whole(self):
        network = LinearNetwork.largest_component([[0, 0], [1, 0]], [[0, 1]])
        assert network.changes == ()
        assert len(network.dropped) == 0

    def test_courses_go_with_their_edges(self):
        lines = [LineString([(5, 5), (5.5, 9), (6, 5)]), LineString([(0, 0), (1, 0)]), LineString([(6, 5), (5, 6)])]
        network = LinearNetwork.largest_component(self.VERTICES, self.EDGES, lines=lines)
        assert network.lines[0].equals(lines[0])

    def test_readers_keep_it_on_request(self):
        network = build([(0, 0), (1, 0)], [(5, 5), (6, 5)], [(6, 5), (7, 7)], largest_component=True)
        assert network.vertices[0].tolist() == [5, 5]
        assert "left out 2 vertices and 1 edge" in network.changes[0]


class TestCollapse:
    def test_chains_become_their_lowest_vertex(self):
        network = build([(0, 0), (10, 0)], [(10, 0), (10.5, 0)], [(10.5, 0), (11, 0)], [(11, 0), (20, 0), (20, 9)])
        short = network.collapse_short(1)
        assert courses(short) == {(0, 0, 10, 0), (10, 0, 20, 0, 20, 9)}
        assert short.changes == ("contracted 2 edges shorter than 1 unit, 1 unit in all",)

    def test_short_loops_vanish_and_long_ones_stay(self):
        small, big = [(0, 0), (0.2, 0), (0, 0.2), (0, 0)], [(0.5, 0), (3, 3), (0, 0)]
        network = build([(-9, 0), (0, 0)], small, big, [(0, 0), (0.5, 0)])
        short = network.collapse_short(1)
        assert short.edges.tolist() == [[0, 1], [1, 1]]
        assert courses(short) == {(-9, 0, 0, 0), (0, 0, 3, 3, 0, 0)}
        assert "contracted 2 edges" in short.changes[0]

    def test_an_edge_flattened_by_the_contraction_of_a_chain_vanishes(self):
        network = build([(-9, 0), (0, 0)], [(0, 0), (0.9, 0)], [(0.9, 0), (1.8, 0)], [(0, 0), (1.8, 0)], node=False)
        assert courses(network.collapse_short(1)) == {(-9, 0, 0, 0)}

    def test_edges_as_long_as_the_tolerance_stay(self):
        network = build([(0, 0), (1, 0)], [(1, 0), (1, 5)])
        assert network.collapse_short(1).fingerprint() == network.fingerprint()

    def test_contracting_everything_is_refused(self):
        with pytest.raises(InputError, match="every edge would be contracted"):
            build([(0, 0), (1, 0)]).collapse_short(2)

    @pytest.mark.parametrize("tolerance", [0, -1, math.nan, "1", True])
    def test_the_tolerance_must_be_a_distance(self, tolerance):
        with pytest.raises(InputError, match="tolerance: must be a positive distance"):
            build([(0, 0), (1, 0)]).collapse_short(tolerance)

    @settings(max_examples=30, deadline=None)
    @given(st.integers(0, 10**6))
    def test_no_edge_is_shorter_than_the_tolerance_afterwards(self, seed):
        lines = shapely.linestrings(np.random.default_rng(seed).uniform(0, 10, (10, 2, 2)))
        network = LinearNetwork.from_geodataframe(geopandas.GeoSeries(lines), node=True, largest_component=True)
        tolerance = network.lengths.max() / 2
        try:
            collapsed = network.collapse_short(tolerance)
        except InputError:
            # Moved ends can shorten every edge there is; rare, or the test would prove nothing.
            assume(False)
        assert collapsed.lengths.min() >= tolerance


def street_graph():
    """OSMnx style: a curved street drawn backwards, two straight parallels, a loop, string names and odd keys."""
    graph = networkx.MultiGraph(crs="EPSG:27700")
    for name, x, y in (("c", 4.0, 0.0), (17, 0.0, 0.0), ((1, 2), 4.0, 9.0)):
        graph.add_node(name, x=x, y=y)
    graph.add_edge(17, "c", key=5, geometry=LineString([(4, 0), (3, 3), (0, 0)]), length=7.2)
    graph.add_edge(17, "c", key="b")
    graph.add_edge(17, "c", key=0, length=4.0)
    graph.add_edge("c", (1, 2), geometry=LineString([(4, 0, 7), (4, 9, 7)]), oneway=False)
    graph.add_edge((1, 2), (1, 2), key=3, geometry=LineString([(4, 9), (5, 9), (5, 10), (4, 9)]))
    return graph


class TestNetworkx:
    def test_names_keys_and_courses_come_back(self):
        graph = street_graph()
        back = LinearNetwork.from_networkx(graph).to_networkx()
        assert list(back.nodes) == list(graph.nodes)
        assert sorted(map(repr, back.edges(keys=True))) == sorted(map(repr, graph.edges(keys=True)))
        assert back.graph["crs"] == "EPSG:27700"
        assert back.nodes["c"] == {"x": 4.0, "y": 0.0}
        curved = back.edges["c", 17, 5]
        assert curved["geometry"].equals(LineString([(0, 0), (3, 3), (4, 0)]))
        assert curved["length"] == pytest.approx(math.sqrt(18) + math.sqrt(10))
        again = LinearNetwork.from_networkx(back)
        assert again.fingerprint() == LinearNetwork.from_networkx(graph).fingerprint()

    def test_geometries_are_turned_to_run_along_their_edges(self):
        network = LinearNetwork.from_networkx(street_graph())
        starts = shapely.get_coordinates(shapely.get_point(network.lines, 0))
        assert starts.tolist() == network.vertices[network.edges[:, 0]].tolist()
        assert network.changes == ()

    def test_names_are_not_part_of_the_identity(self):
        graph = street_graph()
        renamed = networkx.relabel_nodes(graph, {"c": "corner"})
        one, other = LinearNetwork.from_networkx(graph), LinearNetwork.from_networkx(renamed)
        assert one.fingerprint() == other.fingerprint()
        assert other.labels.nodes[0] == "corner"

    def test_plain_graphs_and_networks_without_names(self):
        graph = networkx.Graph()
        graph.add_node("a", x=0, y=0)
        graph.add_node("b", x=3, y=4)
        graph.add_edge("a", "b")
        assert LinearNetwork.from_networkx(graph, 27700).lengths.tolist() == [5]
        double = LinearNetwork([[0, 0], [1, 0]], [[0, 1], [1, 0]]).to_networkx()
        assert list(double.edges(keys=True)) == [(0, 1, 0), (0, 1, 1)]

    def test_names_survive_what_leaves_parts_out(self):
        graph = street_graph()
        graph.add_node("far", x=100.0, y=100.0)
        network = LinearNetwork.from_networkx(graph, largest_component=True)
        assert network.labels.nodes == ("c", 17, (1, 2))
        assert "left out 1 vertex and 0 edges" in network.changes[0]
        short = network.collapse_short(4.5)
        assert short.labels.nodes == ("c", (1, 2))
        assert short.to_networkx().number_of_edges() == len(short.edges)

    @pytest.mark.parametrize("kind", [networkx.DiGraph, networkx.MultiDiGraph])
    def test_directed_graphs_are_refused_with_the_remedy(self, kind):
        with pytest.raises(InputError, match=r"every two-way street twice.*osmnx.convert.to_undirected\(G\)"):
            LinearNetwork.from_networkx(kind(street_graph()))

    def test_what_is_not_a_graph_or_has_no_edges_is_refused(self):
        with pytest.raises(InputError, match="got dict"):
            LinearNetwork.from_networkx({})
        with pytest.raises(InputError, match="has no edges"):
            LinearNetwork.from_networkx(networkx.MultiGraph())

    @pytest.mark.parametrize("value", [None, "east", math.nan])
    def test_nodes_need_coordinates(self, value):
        graph = street_graph()
        graph.nodes["c"]["y"] = value
        with pytest.raises(InputError, match="node 'c' has no such y"):
            LinearNetwork.from_networkx(graph)

    def test_degrees_are_refused_with_the_remedy_of_osmnx(self):
        graph = street_graph()
        graph.graph["crs"] = "epsg:4326"
        with pytest.raises(InputError, match=r"in degrees.*project_graph"):
            LinearNetwork.from_networkx(graph)
        with pytest.raises(InputError, match="the graph says EPSG:27700"):
            LinearNetwork.from_networkx(street_graph(), 32630)

    @pytest.mark.parametrize("length", [4.5, 13.1, "long", math.nan])
    def test_lengths_that_contradict_the_course_are_refused(self, length):
        graph = street_graph()
        graph.edges[17, "c", 0]["length"] = length
        with pytest.raises(InputError, match=r"its course is 4 long.*geometry is missing.*another unit"):
            LinearNetwork.from_networkx(graph)

    @pytest.mark.parametrize(
        ("geometry", "said"),
        [
            (shapely.Point(4, 0), "must be a LineString"),
            (LineString([(0, 0), (4, 1)]), "does not run between its nodes"),
            (LineString(), "must be a LineString"),
        ],
    )
    def test_geometries_must_join_their_nodes(self, geometry, said):
        graph = street_graph()
        graph.edges[17, "c", "b"]["geometry"] = geometry
        with pytest.raises(InputError, match=said):
            LinearNetwork.from_networkx(graph)

    def test_ends_that_miss_their_nodes_by_little_are_moved_and_said(self):
        graph = street_graph()
        graph.edges[17, "c", "b"]["geometry"] = LineString([(0, 0), (4.0001, 0)])
        network = LinearNetwork.from_networkx(graph)
        assert network.changes == ("moved the ends of 1 line to their nodes, by up to 0.0001",)
        assert network.lengths[:3].tolist() == pytest.approx([math.sqrt(18) + math.sqrt(10), 4, 4], abs=1e-12)

    def test_a_loop_needs_a_geometry(self):
        graph = street_graph()
        del graph.edges[(1, 2), (1, 2), 3]["geometry"]
        with pytest.raises(InputError, match="starts and ends in one place"):
            LinearNetwork.from_networkx(graph)


@pytest.fixture
def bridge():
    """Two vertices in one place, a street drawn twice, a curve: only the numbers of vertices tell all of it."""
    vertices = [[0.1, 0], [4, 1 / 3], [4, 1 / 3], [9, 9]]
    edges = [[2, 3], [0, 1], [1, 0], [3, 0]]
    lines = [LineString([vertices[a], vertices[b]]) for a, b in edges]
    lines[3] = LineString([(9, 9), (0, 9), (0.1, 0)])
    return LinearNetwork(vertices, edges, 27700, lines=lines)


class TestFiles:
    def test_geojson_comes_back_exactly(self, bridge, tmp_path):
        path = tmp_path / "streets.geojson"
        path.write_text(json.dumps(bridge.to_geojson()))
        assert io.read_network(path).fingerprint() == bridge.fingerprint()

    @pytest.mark.parametrize("name", ["streets.gpkg", "streets.parquet"])
    def test_tables_come_back_exactly(self, bridge, tmp_path, name):
        frame = bridge.to_geodataframe()
        assert list(frame.columns) == ["from", "to", "length", "geometry"]
        frame.to_file(tmp_path / name) if name.endswith("gpkg") else frame.to_parquet(tmp_path / name)
        back = io.read_network(tmp_path / name)
        assert back.fingerprint() == bridge.fingerprint()

    def test_columns_from_and_to_of_another_meaning_are_ignored(self, tmp_path):
        frame = geopandas.GeoDataFrame(
            {"from": ["Soho", "Strand"], "to": [7, 8]}, geometry=series([(0, 0), (1, 0)], [(1, 0), (1, 1)]), crs=27700
        )
        assert LinearNetwork.from_geodataframe(frame).edges.tolist() == [[0, 1], [1, 2]]
        frame["from"], frame["to"] = [0, 1], [1, 0]
        assert LinearNetwork.from_geodataframe(frame).edges.tolist() == [[0, 1], [1, 2]]

    def test_options_reach_the_builder(self, tmp_path):
        path = tmp_path / "streets.parquet"
        gapped = series([(0, 0), (10, 0)], [(4, 0.2), (4, 3)], [(2, -1), (2, 1)], [(50, 50), (51, 50)], crs=27700)
        gapped.to_frame("geometry").to_parquet(path)
        network = io.read_network(path, node=True, join=0.5, largest_component=True)
        assert len(network.changes) == 3
        assert len(network.edges) == 6

    def test_plain_geojson_is_in_degrees(self, tmp_path):
        path = tmp_path / "streets.json"
        lines = series([(-0.14, 51.51), (-0.13, 51.51)])
        path.write_text(json.dumps(lines.__geo_interface__))
        with pytest.raises(InputError, match=r"in degrees.*to_crs="):
            io.read_network(path)
        assert io.read_network(path, to_crs=27700).length == pytest.approx(694, rel=0.01)

    def test_csv_is_refused(self, tmp_path):
        with pytest.raises(InputError, match="CSV does not hold"):
            io.read_network(tmp_path / "streets.csv")

    def test_malformed_geometries_are_refused(self, tmp_path):
        path = tmp_path / "streets.geojson"
        feature = {"type": "Feature", "properties": {}, "geometry": {"type": "LineString", "coordinates": ["x"]}}
        path.write_text(json.dumps({"type": "FeatureCollection", "crs": None, "features": [feature]}))
        with pytest.raises(InputError, match="not valid GeoJSON"):
            io.read_network(path)
