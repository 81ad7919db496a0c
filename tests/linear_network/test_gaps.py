"""Severed networks: each gap is told with its remedy, and the remedy takes it away."""

import re
import time

import numpy as np
import pytest
import shapely
from shapely import LineString

import dpppsynth as dps
from dpppsynth.contract.cautions import cautions
from dpppsynth.privacy import AlphaNeighbours, Guarantee, PureDP

LADDER = [
    LineString([(0, 0), (0, 100)]),
    LineString([(0, 100), (300, 100)]),
    LineString([(300, 100), (300, 0)]),
    LineString([(0, 0), (-300, 0)]),
]


def network(*lines, **options):
    import geopandas

    return dps.LinearNetwork.from_geodataframe(geopandas.GeoSeries([*LADDER, *lines]), **options)


def said_of(domain, alpha=50.0):
    """Cautions about the domain."""
    found = cautions(Guarantee(AlphaNeighbours(alpha), PureDP(1.0), "theorem", ()), domain, 1000)
    return tuple(each for each in found if each.startswith("domain"))


def test_a_plain_network_is_whole():
    assert said_of(network()) == ()


@pytest.mark.parametrize(
    "line",
    [
        LineString([(0, 0), (150, 200)]),
        LineString([(0, 0), (150, 100)]),
        LineString([(0, 0), (150, 100 + 1e-8)]),
    ],
    ids=["crosses", "touches", "touches to rounding"],
)
def test_streets_that_meet_without_a_vertex(line):
    (said,) = [each for each in said_of(network(line)) if "common vertex" in each]
    assert "in 1 place without" in said
    assert "node=True" in said
    assert said_of(network(line, node=True)) == ()


def test_a_street_that_crosses_itself():
    loop = LineString([(0, 0), (100, -100), (100, -200), (0, -100), (150, -100)])
    assert "in 1 place" in said_of(network(loop))[0]
    assert said_of(network(loop, node=True), alpha=20) == ()


def test_an_end_that_stops_short():
    line = LineString([(0, 0), (150, 99.9)])
    (said,) = said_of(network(line))
    assert "1 dead end stops short of another street by less than 50 units" in said
    tolerance = float(re.search(r"join=([0-9.e-]+[0-9])", said)[1])
    assert tolerance == pytest.approx(0.1)
    assert said_of(network(line, join=tolerance)) == ()
    # A path as short leads there, or none is as near.
    assert said_of(network(line), alpha=0.05) == ()
    assert said_of(network(LineString([(150, 100), (150, 70)]), node=True)) == ()


def test_parts_that_were_left_out():
    beside = [LineString([(150, 95), (160, 20)]), LineString([(400, 300), (500, 300)])]
    (said,) = said_of(network(*beside, largest_component=True))
    assert "1 part left out of the network, nearer to it than 50 units" in said
    assert "the nearest at 5" in said
    assert not [each for each in said_of(network(*beside, join=6.0, largest_component=True)) if "left out" in each]


def test_ten_thousand_edges_take_no_time():
    side = 71
    place = np.arange(side * side).reshape(side, side)
    pairs = ((place[:-1], place[1:]), (place[:, :-1], place[:, 1:]))
    edges = np.concatenate([np.stack(pair, axis=-1).reshape(-1, 2) for pair in pairs])
    xy = 100.0 * np.stack(np.divmod(np.arange(side * side), side), axis=1)
    # Dead ends of 40 on every second vertex of a side, and a diagonal through all vertices between two corners.
    start = np.arange(0, side, 2)
    dead = np.column_stack([start, side * side + np.arange(len(start))])
    vertices = np.vstack([xy, xy[start] - (40, 0)])
    streets = dps.LinearNetwork(vertices, np.vstack([edges, dead, [[0, side * side - 1]]]))
    begin = time.perf_counter()
    (places,) = said_of(streets, alpha=100.0)
    assert time.perf_counter() - begin < 10
    assert len(streets.edges) > 9900
    assert f"in {side - 2} places" in places
    # From end to end it is 280 along streets, and 140 to the street between.
    (_, ends) = said_of(streets, alpha=139.0)
    assert f"{len(start)} dead ends stop short" in ends


def test_remedies_in_real_streets():
    streets = dps.datasets.soho_streets()
    (ends,) = [each for each in said_of(streets, alpha=25.0) if "dead ends" in each]
    mended = dps.LinearNetwork.from_geodataframe(streets.to_geodataframe().geometry, node=True, join=0.01)
    left = [each for each in said_of(mended, alpha=25.0) if "common vertex" in each]
    assert left == []
    assert shapely.length(mended.lines).sum() == pytest.approx(streets.length, rel=1e-3)
    smaller = [each for each in said_of(mended, alpha=25.0) if "dead ends" in each]
    assert int(re.search(r"(\d+) dead", smaller[0])[1]) < int(re.search(r"(\d+) dead", ends)[1])
