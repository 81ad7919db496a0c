"""Networks from lines, graphs and files: what is cut, joined, contracted, left out, refused."""

import json
import math
import re

import geopandas
import networkx
import numpy as np
import pytest
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import dijkstra
from shapely import LineString

from dpppsynth import io
from dpppsynth.core.errors import InputError
from dpppsynth.io.reading import stated_crs
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
        with pytest.raises(InputError, match=r"1 line drawn twice.*undirected=True"):
            build([(0, 0), (1, 0), (1, 1)], again)

    @pytest.mark.parametrize(
        ("geometry", "said"),
        [
            (shapely.Point(0, 0), "found Point"),
            (shapely.box(0, 0, 1, 1), "found Polygon"),
            (None, "1 of 2 has no geometry.*collapse_short=0.5"),
            (LineString(), "1 of 2 has an empty geometry.*collapse_short=0.5"),
            (LineString([(1, 0), (1, 0)]), r"1 of 2 has no length.*lines.length > 0.*collapse_short=0.5"),
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
        with pytest.raises(InputError, match=r"lines: must be a GeoDataFrame .* or a GeoSeries; got list"):
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

    def test_lost_length_is_said_when_as_many_lines_remain(self):
        network = build([(0, 0), (200, 0)], [(0, 0), (100, 0)], node=True)
        assert network.length == 200
        assert network.changes == (
            "cut lines where they cross or touch: 2 lines became 2, 100 unit drawn twice kept once",
        )

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

    @settings(max_examples=30)
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


class TestOverlaps:
    SAID = r"kept {} along the same course as another, in whole or in part.*count twice.*node=True or undirected=True"

    @pytest.mark.parametrize(
        ("lines", "count"),
        [
            ([[(0, 0), (200, 0)], [(0, 0), (100, 0)]], "1 edge"),
            ([[(0, 0), (3, 1)], [(0, 0), (-3, 4)], [(2, 2 / 3), (-1, -1 / 3), (-3, 4)]], "1 edge"),
            ([[(0, 0), (4, 0)], [(4, 0), (4, 2), (2, 0), (1, 0), (1, 5), (4, 0)]], "1 edge"),
            ([[(0, 0), (9, 0)], [(0, 0), (6, 0)], [(0, 0), (3, 0)]], "2 edges"),
            ([[(0, 0), (9, 0)], [(0, 0), (6, 0)], [(6, 0), (9, 0)]], "2 edges"),
        ],
        ids=["part", "slanted", "between corners", "three", "whole and parts"],
    )
    def test_shared_stretches_are_said_and_kept(self, lines, count):
        network = build(*lines)
        assert len(network.edges) == len(lines)
        assert re.match(self.SAID.format(count), network.changes[0])

    def test_far_from_the_origin_too(self):
        rng = np.random.default_rng(0)
        for _ in range(20):
            a, b = rng.uniform(4e5, 6e5, (2, 2))
            foot, beyond = a + 0.3 * (b - a), a + 1.2 * (b - a)
            assert len(build([a, b], [foot, beyond], [a, foot + np.array([1, 9]), foot]).changes) == 1

    def test_crossings_meetings_and_narrow_angles_are_none(self):
        crossing = [(0, 0), (4, 4), (4, 0)], [(0, 0), (0, 4), (4, 0)], [(4, 0), (9, 0)], [(4, 0), (9, 1e-5)]
        assert build(*crossing).changes == ()
        back_and_forth = [(0, 0), (5, 0), (2, 0), (2, 4)]
        assert build(back_and_forth).changes == ()

    def test_random_streets_have_none_unless_one_is_drawn_again(self):
        lines = shapely.linestrings(np.random.default_rng(3).uniform(4e5, 6e5, (30, 4, 2)))
        cut = LinearNetwork.from_geodataframe(geopandas.GeoSeries(lines), node=True, largest_component=True)
        again = LinearNetwork.from_geodataframe(geopandas.GeoSeries(cut.lines))
        assert again.changes == ()
        part = shapely.LineString(shapely.get_coordinates(cut.lines[17])[::-1])
        doubled = geopandas.GeoSeries([*cut.lines, shapely.LineString([*part.coords, (7e5, 7e5)])])
        assert re.match(self.SAID.format("1 edge"), LinearNetwork.from_geodataframe(doubled).changes[0])

    def test_two_way_streets_held_twice_by_a_graph_are_said(self):
        ways = networkx.MultiDiGraph()
        ways.add_node(0, x=0, y=0)
        ways.add_node(1, x=5, y=0)
        ways.add_edges_from([(0, 1, 0), (1, 0, 1)])
        doubled = LinearNetwork.from_networkx(ways.to_undirected())
        assert doubled.length == 10
        assert re.match(self.SAID.format("1 edge"), doubled.changes[0])
        assert LinearNetwork.from_networkx(street_graph()).changes[0].startswith("kept 1 edge along")

    def test_streets_left_out_do_not_count(self):
        far = [(50, 50), (60, 50)], [(52, 50), (60, 50)]
        network = build([(0, 0), (1, 0)], [(1, 0), (2, 0)], [(2, 0), (2, 1)], *far, largest_component=True)
        assert len(network.changes) == 1


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
    def test_short_edges_become_part_of_what_follows_them(self):
        network = build([(0, 0), (10, 0)], [(10.5, 0), (10, 0)], [(10.5, 0), (11, 0)], [(11, 0), (20, 0), (20, 9)])
        short = network.collapse_short(1)
        assert short.vertices.tolist() == [[0, 0], [20, 9]]
        assert courses(short) == {(0, 0, 10, 0, 10.5, 0, 11, 0, 20, 0, 20, 9)}
        assert short.changes == ("merged the two edges at 3 vertices, one of them shorter than 1 unit",)

    @pytest.mark.parametrize("turned", [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
    @pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 0, 1)])
    def test_merged_courses_follow_each_other_whatever_their_directions(self, turned, order):
        lines = [[(0, 0), (1, 1), (2, 0)], [(2, 0), (2, 0.5)], [(2, 0.5), (5, 5), (9, 0)]]
        lines = [line[::-1] if k in turned else line for k, line in enumerate(lines)]
        short = build(*(lines[k] for k in order)).collapse_short(1)
        assert courses(short) == {(0, 0, 1, 1, 2, 0, 2, 0.5, 5, 5, 9, 0)}
        assert (short.vertices[short.edges[0, 0]] == shapely.get_coordinates(short.lines[0])[0]).all()

    def test_a_ring_without_junctions_becomes_a_loop(self):
        corners = [(0, 0), (1, 0), (1, 1), (0, 1)]
        ring = LinearNetwork(corners, [[0, 1], [1, 2], [2, 3], [3, 0]]).collapse_short(2)
        assert ring.edges.tolist() == [[0, 0]]
        assert ring.length == 4

    def test_vertices_between_long_edges_stay(self):
        network = build([(0, 0), (1, 0)], [(1, 0), (1, 5)])
        assert network.collapse_short(1).fingerprint() == network.fingerprint()
        assert network.collapse_short(1).changes == ()

    def test_a_straight_street_beside_a_chain_of_short_edges_stays(self):
        vertices = [[0, 0], [10, 0], [0, 2], [2, 3], [5, 3], [8, 3], [10, 2], [-50, 0]]
        edges = [[0, 1], [0, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 1], [0, 7]]
        network = LinearNetwork(vertices, edges)
        short = network.collapse_short(4.0)
        assert short.length == pytest.approx(network.length)
        assert short.geometry.equals(network.geometry)
        assert short.changes == ("merged the two edges at 6 vertices, one of them shorter than 4 unit",)
        # With side streets at every vertex nothing merges.
        sides = [[x, y + 20] for x, y in vertices[2:7]]
        network = LinearNetwork([*vertices, *sides, [10, -20]], [*edges, *([2 + k, 8 + k] for k in range(5)), [1, 13]])
        short = network.collapse_short(4.0)
        assert "contracted 3 edges" in short.changes[0]
        assert LineString([(0, 0), (10, 0)]).within(short.geometry)

    def test_a_road_drawn_in_pieces_keeps_its_length_and_its_side_streets(self):
        x = np.arange(101) * 3.0
        vertices = [*([v, 0.0] for v in x), [0, 100], [0, -100], [300, 100], [300, -100]]
        edges = [*([k, k + 1] for k in range(100)), [0, 101], [0, 102], [100, 103], [100, 104]]
        short = LinearNetwork(vertices, edges).collapse_short(5)
        assert sorted(short.lengths.tolist()) == pytest.approx([100, 100, 100, 100, 300])
        assert short.distance([[0, 100]], [[300, -100]]) == pytest.approx(500)
        assert short.changes == ("merged the two edges at 99 vertices, one of them shorter than 5 unit",)

    def test_junctions_close_together_become_the_lowest(self):
        network = build(
            [(-9, 9), (0, 0)], [(0, 0), (-9, -9)], [(0, 0), (0.8, 0)], [(0.8, 0), (9, 9)], [(9, -9), (0.8, 0)]
        )
        short = network.collapse_short(1)
        assert courses(short) == {(-9, 9, 0, 0), (-9, -9, 0, 0), (0, 0, 9, 9), (0, 0, 9, -9)}
        said = f"contracted 1 edge shorter than 1 unit: length {network.length:.10g} became {short.length:.10g} unit"
        assert short.changes == (f"{said}, vertices moved by up to 0.8 unit",)

    def test_where_short_dead_ends_went_the_rest_merges(self):
        beyond = [(5, -0.9), (9, 0)], [(5, -0.9), (0, -9)]
        short = build([(0, 0), (5, 0)], [(5, 0), (5, 0.5)], [(5, 0), (5, -0.9)], *beyond).collapse_short(1)
        assert courses(short) == {(0, 0, 5, 0, 5, -0.9), (5, -0.9, 9, 0), (0, -9, 5, -0.9)}
        assert "merged the two edges at 1 vertex" in short.changes[0]
        assert "contracted 1 edge" in short.changes[1]

    def test_groups_wider_than_the_tolerance_keep_short_edges(self):
        # Two pairs of junctions 0.6 apart, and 0.9 from each other.
        row = [(0.6, 0), (1.5, 0), (0, 0), (2.1, 0)]
        sides = [[p, (9 * k, 9)] for k, p in enumerate(row * 2)]
        short = build([row[0], row[1]], [row[2], row[0]], [row[3], row[1]], *sides).collapse_short(1)
        assert "contracted 2 edges shorter than 1 unit" in short.changes[0]
        assert short.changes[1] == "left 1 edge shorter than 1 unit in groups wider than the tolerance"
        assert short.lengths.min() == pytest.approx(0.9)

    def test_short_loops_vanish_and_long_ones_stay(self):
        small, big = [(0, 0), (0.2, 0), (0, 0.2), (0, 0)], [(0.5, 0), (3, 3), (0, 0)]
        network = build([(-9, 0), (0, 0)], small, big, [(0, 0), (0.5, 0)])
        short = network.collapse_short(1)
        assert short.edges.tolist() == [[0, 1], [1, 1]]
        assert courses(short) == {(-9, 0, 0, 0), (0, 0, 3, 3, 0.5, 0, 0, 0)}
        assert "contracted 1 edge" in short.changes[-1]

    def test_streets_that_come_to_lie_on_one_another_are_said_once(self):
        triangle = [(0, 0), (0, 0.5)], [(0, 0), (20, 0)], [(0, 0.5), (20, 0)]
        short = build(*triangle, [(-9, 9), (0, 0)], [(-9, 0), (0, 0.5)], [(20, 0), (30, 0)]).collapse_short(1)
        assert len(short.changes) == 2
        assert "kept 1 edge along the same course" in short.changes[1]
        assert short.collapse_short(1).changes == short.changes

    def test_a_curve_between_contracted_vertices_becomes_a_loop_that_encloses_as_much(self):
        feet = [(-9, 9), (-9, -9)], [(20, 9), (20, -9)]
        sides = [[end, foot] for end, pair in zip([(0, 0), (6, 0)], feet, strict=True) for foot in pair]
        short = build([(0, 0), (6, 0)], [(0, 0), (3, 1), (6, 0)], *sides).collapse_short(6.2)
        (loop,) = short.lines[short.edges[:, 0] == short.edges[:, 1]]
        assert shapely.Polygon(loop).area == pytest.approx(3)

    def test_a_long_edge_is_not_shortened_from_both_sides(self):
        a, b, u, v = (0.9, 0.1), (0.15, 0.1), (0, 0), (1.05, 0)
        sides = [[p, (9 * k, 9 * way)] for k, (p, way) in enumerate([(a, 1), (b, 1), (u, -1), (v, -1)] * 2)]
        network = build([a, u], [b, v], *sides, [u, v])
        short = network.collapse_short(1)
        assert "contracted 2 edges" in short.changes[0]
        assert short.lengths.min() > 1
        assert (*a, *u, *v, *b) in {tuple(shapely.get_coordinates(line).ravel()) for line in short.lines}

    def test_contracting_everything_is_refused(self):
        with pytest.raises(InputError, match="every edge would be contracted"):
            build([(0, 0), (1, 0)]).collapse_short(2)

    @pytest.mark.parametrize("tolerance", [0, -1, math.nan, "1", True])
    def test_the_tolerance_must_be_a_distance(self, tolerance):
        with pytest.raises(InputError, match="tolerance: must be a positive distance"):
            build([(0, 0), (1, 0)]).collapse_short(tolerance)

    @pytest.mark.slow
    @settings(max_examples=60)
    @given(st.integers(0, 10**6), st.floats(0.02, 0.8))
    def test_nothing_moves_farther_than_the_tolerance_and_changes_say_the_rest(self, seed, share):
        lines = shapely.linestrings(np.random.default_rng(seed).uniform(0, 10, (5, 5, 2)))
        network = LinearNetwork.from_geodataframe(geopandas.GeoSeries(lines), node=True, largest_component=True)
        network = LinearNetwork.from_networkx(network.to_networkx())
        tolerance = float(np.quantile(network.lengths, share))
        try:
            short = network.collapse_short(tolerance)
        except InputError:
            assume(False)
        kept = list(short.labels.nodes)
        assert short.vertices.tolist() == network.vertices[kept].tolist()
        assert (shapely.distance(shapely.points(network.vertices), short.geometry) <= tolerance).all()
        assert shapely.hausdorff_distance(short.geometry, network.geometry) <= 1.5 * tolerance + 1e-9
        assert short.lengths.min() >= min(tolerance, network.lengths.min()) - 1e-9
        said = " ".join(short.changes)
        lengths = re.search(r"length (\S+) became (\S+) unit", said)
        before, after = map(float, lengths.groups()) if lengths else (network.length, network.length)
        assert (before, after) == pytest.approx((network.length, short.length))
        left = re.search(r"left (\d+) edge", said)
        assert (short.lengths < tolerance).sum() == (int(left[1]) if left else 0)
        # A path meets each contracted group once at most, where its two edges move and it crosses the group.
        groups = re.search(r"contracted (\d+) edge", said)
        bound = 3 * tolerance * (int(groups[1]) if groups else 0) + 1e-9
        old = dijkstra(network.adjacency)[np.ix_(kept, kept)]
        assert np.abs(dijkstra(short.adjacency) - old).max() <= bound


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

    def test_degrees_are_refused_with_a_remedy_that_graphs_take(self):
        graph = street_graph()
        graph.graph["crs"] = "epsg:4326"
        with pytest.raises(InputError, match=r"^graph: .*in degrees.*to_crs="):
            LinearNetwork.from_networkx(graph)
        with pytest.raises(InputError, match="the lines are in EPSG:27700, not EPSG:32630"):
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
        assert network.changes[0] == "moved the ends of 1 line to their nodes, by up to 0.0001"
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

    def test_metres_in_a_file_that_claims_degrees_are_refused_with_the_reason(self, tmp_path):
        path = tmp_path / "streets.geojson"
        path.write_text(json.dumps(series([(529000, 180000), (529100, 180000)]).__geo_interface__))
        with pytest.raises(InputError, match=r"not EPSG:27700.*without a 'crs' member claims to be in degrees"):
            io.read_network(path, crs=27700)
        with pytest.raises(InputError) as caught:
            LinearNetwork.from_geodataframe(series([(529000, 180000), (529100, 180000)], crs=27700), 32630)
        assert "claims" not in str(caught.value)

    def test_csv_is_refused(self, tmp_path):
        with pytest.raises(InputError, match="CSV does not hold"):
            io.read_network(tmp_path / "streets.csv")

    def test_malformed_geometries_are_refused(self, tmp_path):
        path = tmp_path / "streets.geojson"
        feature = {"type": "Feature", "properties": {}, "geometry": {"type": "LineString", "coordinates": ["x"]}}
        path.write_text(json.dumps({"type": "FeatureCollection", "crs": None, "features": [feature]}))
        with pytest.raises(InputError, match="not valid GeoJSON"):
            io.read_network(path)


@pytest.mark.parametrize("crs", ["EPSG:27700", "epsg:4326", None])
def test_the_crs_of_a_graphml_file_is_found_without_its_streets(crs, tmp_path, monkeypatch):
    graph = networkx.MultiGraph(**({} if crs is None else {"crs": crs}), created_with="a program")
    graph.add_node("crs", x=0.0, y=0.0, crs="of a node")
    graph.add_edge("crs", "b")
    networkx.write_graphml(graph, tmp_path / "g.graphml")
    assert networkx.read_graphml(tmp_path / "g.graphml").graph.get("crs") == crs
    monkeypatch.setattr(networkx, "read_graphml", None)
    assert stated_crs(tmp_path / "g.graphml") == crs


def test_a_graphml_file_that_is_none_is_refused_by_name(tmp_path):
    (tmp_path / "g.graphml").write_text("x,y\n1,2\n")
    with pytest.raises(InputError, match=r"g\.graphml cannot be read as GraphML"):
        stated_crs(tmp_path / "g.graphml")
