"""Shortest paths on networks: an independent implementation, the refined graph, and the laws of a distance."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import shapely
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra
from support.networks import random_places, random_web

from dpppsynth import datasets
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork, shortest_paths
from dpppsynth.linear_network.shortest_paths import diameter, distances, from_positions

DATA = Path(__file__).parents[1] / "data"


def streets(city):
    vertices = np.loadtxt(datasets.path(f"{city}_vertices"), delimiter=",", skiprows=1)[:, 1:]
    edges = np.loadtxt(datasets.path(f"{city}_edges"), delimiter=",", skiprows=1).astype(int)
    return LinearNetwork(vertices, edges)


def refined(network, positions):
    """Shortest paths through a graph in which every position is a vertex."""
    number, links = len(network.vertices), []
    for e, (a, b) in enumerate(network.edges):
        here = np.flatnonzero(positions[:, 0] == e)
        here = here[np.argsort(positions[here, 1], kind="stable")]
        nodes, along = [a, *(number + here), b], [0, *positions[here, 1], network.lengths[e]]
        links += [(u, v, t - s) for (u, v), (s, t) in zip(pairwise(nodes), pairwise(along), strict=True)]
    u, v, length = (np.array(x) for x in zip(*links, strict=True))
    # Links of length zero would be no links at all, and of parallel ones the shortest counts.
    matrix = np.full((number + len(positions),) * 2, np.inf)
    np.minimum.at(matrix, (u.astype(int), v.astype(int)), np.maximum(length, 1e-300))
    i, j = np.nonzero(np.isfinite(matrix))
    graph = coo_array((matrix[i, j], (i, j)), shape=matrix.shape).tocsr()
    return dijkstra(graph, directed=False)[number:, number:]


@pytest.mark.parametrize("city", ["soho", "geodanet"])
def test_distances_equal_an_independent_implementation(city):
    _, _, edge, t = np.loadtxt(DATA / f"network_{city}_points.csv", delimiter=",", skiprows=1).T
    network = streets(city)
    expected = np.loadtxt(DATA / f"network_{city}_pairdist_first12.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(network.distance(network.pattern(edge[:12], t[:12])), expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_distances_equal_those_through_the_refined_graph(seed):
    rng = np.random.default_rng(seed)
    network = random_web(rng)
    at = random_places(network, 40, rng)
    np.testing.assert_allclose(distances(network, at, at), refined(network, at), rtol=1e-12, atol=1e-12)


def test_distances_are_a_metric():
    rng = np.random.default_rng(20)
    network = random_web(rng)
    at = random_places(network, 40, rng)
    d = distances(network, at, at)
    assert (d == d.T).all()
    assert (np.diag(d) == 0).all()
    assert (d[:, :, None] <= d[:, None, :] + d[None] + 1e-12).all()
    assert d.max() <= network.diameter


def test_blocks_and_columns_make_no_difference(monkeypatch):
    rng = np.random.default_rng(21)
    network = random_web(rng)
    a, b = random_places(network, 30, rng), random_places(network, 7, rng)
    whole = distances(network, a, b)
    expected = network.diameter
    monkeypatch.setattr(shortest_paths, "BLOCK", 50)
    np.testing.assert_array_equal(distances(network, a, b), whole)
    np.testing.assert_allclose(distances(network, b, a).T, whole, rtol=1e-13)
    assert diameter(network) == pytest.approx(expected, rel=1e-14)
    assert distances(network, a[:0], b).shape == (0, 7)
    assert distances(network, a, b[:0]).shape == (30, 0)


def test_paths_within_the_limit_are_exact():
    rng = np.random.default_rng(22)
    network = random_web(rng)
    at, limit = random_places(network, 30, rng), 6.0
    whole, short = np.empty((30, 12)), np.empty((30, 12))
    for out, most in ((whole, np.inf), (short, limit)):
        for part, known in from_positions(network, at, most):
            out[part] = known
    near = whole <= limit
    assert near.any()
    assert not near.all()
    np.testing.assert_array_equal(short[near], whole[near])
    assert (short[~near] > limit).all()


def test_diameter_of_simple_networks():
    tree = LinearNetwork([[0, 0], [3, 0], [-4, 0], [0, 1]], [[0, 1], [0, 2], [3, 0]])
    assert tree.diameter == pytest.approx(7)
    # On a circle half way round is farthest, which is exact for one edge and a bound for four.
    ring = shapely.LineString([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]])
    assert LinearNetwork([[0, 0]], [[0, 0]], lines=[ring]).diameter == pytest.approx(2)
    square = LinearNetwork([[0, 0], [1, 0], [1, 1], [0, 1]], [[0, 1], [1, 2], [2, 3], [3, 0]])
    assert 2 <= square.diameter <= 2.5


@pytest.mark.parametrize("seed", range(8))
def test_search_for_the_diameter_ends_no_sooner_than_it_may(seed, monkeypatch):
    # One edge at a time.
    monkeypatch.setattr(shortest_paths, "BLOCK", 1)
    network = random_web(np.random.default_rng(seed))
    d = shortest_paths.vertex_distances(network.adjacency, np.arange(12))
    (u, v), length = network.edges.T, network.lengths
    between = (d[u][:, u] + d[u][:, v] + d[v][:, u] + d[v][:, v]) / 4 + (length[:, None] + length) / 2
    np.fill_diagonal(between, (length + d[u, v]) / 2)
    assert diameter(network) == pytest.approx(between.max(), rel=1e-14)


class TestPlacesAreTakenAsUsersHoldThem:
    """Patterns, coordinates and positions of one pattern give the same distances."""

    @pytest.mark.parametrize("measure", ["distance", "resistance"])
    def test_one_answer(self, measure):
        network = datasets.soho_streets()
        pattern = network.snap(datasets.soho_deaths().xy[:30], tolerance=60.0)
        of = getattr(network, measure)
        expected = of(pattern)
        assert expected.max() > 100
        assert np.array_equal(of(pattern.positions), expected)
        assert np.allclose(of(pattern.xy), expected, atol=1e-6)
        assert np.allclose(of(pattern, pattern.positions[:3]), expected[:, :3], rtol=1e-12, atol=1e-9)

    def test_coordinates_on_the_network_stay_coordinates(self):
        """(0, 1) and (0, 3) are on the streets; as positions they would be one apart along the first of them."""
        network = LinearNetwork([[0, 0], [0, 9], [5, 0], [9, 9]], [[2, 3], [0, 1], [0, 2]])
        assert network.distance([[0, 1], [0, 3]])[0, 1] == 2
        assert network.distance([[0, 1], [5, 0]])[0, 1] == 6

    @pytest.mark.parametrize("wrong", [[[0.5, 1]], [[3, 0]], [[0, 50.0]], [[-1, 0]], [[0, np.nan]]])
    def test_other_numbers_are_refused(self, wrong):
        network = LinearNetwork([[100, 100], [100, 109], [105, 100]], [[0, 1], [0, 2]])
        assert network.distance([[0, 1], [1, 2]])[0, 1] == 3
        with pytest.raises(InputError):
            network.distance(wrong)
