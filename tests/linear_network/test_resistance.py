"""The resistance metric: closed forms, the graph Laplacian's pseudo-inverse, exact fractions, and its laws."""

from fractions import Fraction
from itertools import pairwise

import networkx
import numpy as np
import pytest
import shapely
import shapely.ops
from support.networks import random_places, random_web

from dpppsynth.linear_network import LinearNetwork, resistance
from dpppsynth.linear_network.resistance import resistances
from dpppsynth.linear_network.shortest_paths import distances


def refined(network, positions):
    """Links (u, v, length) of the graph in which every inner position is a vertex, and the vertex of each position."""
    node, links, fresh = np.empty(len(positions), dtype=int), [], len(network.vertices)
    for e, (a, b) in enumerate(network.edges):
        here = np.flatnonzero(positions[:, 0] == e)
        nodes, along = [int(a)], [0.0]
        for i in here[np.argsort(positions[here, 1], kind="stable")]:
            t = positions[i, 1]
            if t == network.lengths[e]:
                node[i] = b
                continue
            if t > along[-1]:
                nodes, along, fresh = [*nodes, fresh], [*along, t], fresh + 1
            node[i] = nodes[-1]
        ends = zip(pairwise([*nodes, int(b)]), pairwise([*along, network.lengths[e]]), strict=True)
        links += [(u, v, t - s) for (u, v), (s, t) in ends if u != v]
    return links, node, fresh


@pytest.mark.parametrize("seed", range(5))
def test_resistances_equal_those_of_the_refined_graph(seed):
    rng = np.random.default_rng(seed)
    network = random_web(rng)
    at = random_places(network, 40, rng)
    links, node, size = refined(network, at)
    laplacian = np.zeros((size, size))
    for u, v, length in links:
        laplacian[[u, v, u, v], [u, v, v, u]] += np.array([1, 1, -1, -1]) / length
    inverse = np.linalg.pinv(laplacian, hermitian=True)
    diagonal = np.diag(inverse)
    expected = (diagonal[:, None] + diagonal - 2 * inverse)[np.ix_(node, node)]
    np.testing.assert_allclose(resistances(network, at, at), expected, rtol=1e-8, atol=1e-10)


def test_resistances_equal_those_of_networkx():
    network = random_web(np.random.default_rng(30))
    graph = networkx.MultiGraph()
    for (a, b), length in zip(network.edges.tolist(), network.lengths, strict=True):
        if a != b:
            graph.add_edge(a, b, length=length)
    # Each vertex by an edge that begins or ends there.
    at = np.array([[e, (network.edges[e, 1] == v) * network.lengths[e]] for v in range(12)
                   for e in [np.flatnonzero((network.edges == v).any(axis=1))[0]]])  # fmt: skip
    found = resistances(network, at, at)
    expected = networkx.resistance_distance(graph, weight="length", invert_weight=True)
    for u in range(12):
        for v in range(12):
            assert found[u, v] == pytest.approx(expected[u][v], rel=1e-9, abs=1e-11)


def test_resistances_are_a_metric_below_the_paths():
    rng = np.random.default_rng(31)
    network = random_web(rng)
    at = random_places(network, 40, rng)
    r, d = resistances(network, at, at), distances(network, at, at)
    assert (r == r.T).all()
    assert (np.diag(r) == 0).all()
    assert (r[:, :, None] <= r[:, None, :] + r[None] + 1e-12).all()
    assert (r <= d + 1e-12).all()
    assert (r < d / 2).any()


def test_on_trees_resistances_are_lengths_of_paths():
    rng = np.random.default_rng(32)
    tree = random_web(rng, extra=0)
    at = random_places(tree, 60, rng)
    np.testing.assert_allclose(resistances(tree, at, at), distances(tree, at, at), rtol=1e-12, atol=1e-11)


def test_parallel_edges_share_the_current():
    lines = [shapely.LineString([[0, 0], [3, 0]]), shapely.LineString([[0, 0], [0, 2], [3, 2], [3, 0]])]
    pair = LinearNetwork([[0, 0], [3, 0]], [[0, 1], [0, 1]], lines=lines)
    ends = np.array([[0, 0], [0, 3], [1, 0], [1, 7]])
    expected = np.array([[0, 2.1, 0, 2.1], [2.1, 0, 2.1, 0]] * 2)
    np.testing.assert_allclose(resistances(pair, ends, ends), expected, atol=1e-14)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_circle(count):
    corners = 28
    angle = 2 * np.pi * np.arange(corners + 1) / corners
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    ring[-1] = ring[0]
    cuts = np.arange(0, corners + 1, corners // count)
    lines = [shapely.LineString(ring[a : b + 1]) for a, b in pairwise(cuts)]
    edges = [[i, (i + 1) % count] for i in range(count)]
    circle = LinearNetwork(ring[cuts[:-1]], edges, lines=lines)
    around, share = circle.length, np.linspace(0, 1, 11)
    total = share * around
    edge = np.minimum((share * count).astype(int), count - 1)
    at = np.column_stack([edge, total - edge * around / count])
    s = np.abs(total[:, None] - total)
    np.testing.assert_allclose(resistances(circle, at, at), s * (around - s) / around, atol=1e-13)


def test_anchor_orientation_and_cuts_make_no_difference():
    rng = np.random.default_rng(33)
    network = random_web(rng)
    at = random_places(network, 30, rng)
    expected = resistances(network, at, at)
    for anchor in (3, 11):
        np.testing.assert_allclose(resistances(network, at, at, anchor), expected, rtol=1e-11, atol=1e-12)
    turned = LinearNetwork(network.vertices, network.edges[:, ::-1], lines=shapely.reverse(network.lines))
    other = np.column_stack([at[:, 0], network.lengths[at[:, 0].astype(int)] - at[:, 1]])
    np.testing.assert_allclose(resistances(turned, other, other), expected, rtol=1e-11, atol=1e-12)
    middle = shapely.line_interpolate_point(network.lines, 0.5, normalized=True)
    halves = [
        shapely.ops.substring(line, *cut, normalized=True) for line in network.lines for cut in ((0, 0.5), (0.5, 1))
    ]
    number = 12 + np.arange(len(network.edges))
    ends = np.column_stack([network.edges[:, 0], number, number, network.edges[:, 1]]).reshape(-1, 2)
    cut = LinearNetwork(np.concatenate([network.vertices, shapely.get_coordinates(middle)]), ends, lines=halves)
    half = network.lengths[at[:, 0].astype(int)] / 2
    moved = np.column_stack([2 * at[:, 0] + (at[:, 1] > half), np.where(at[:, 1] > half, at[:, 1] - half, at[:, 1])])
    np.testing.assert_allclose(resistances(cut, moved, moved), expected, rtol=1e-10, atol=1e-10)


def test_rows_columns_and_blocks_make_no_difference(monkeypatch):
    rng = np.random.default_rng(34)
    network = random_web(rng)
    a, b = random_places(network, 30, rng), random_places(network, 7, rng)
    whole = resistances(network, np.concatenate([a, b]), np.concatenate([a, b]))[:30, 30:]
    monkeypatch.setattr(resistance, "COLUMNS", 3)
    np.testing.assert_allclose(resistances(network, a, b), whole, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(resistances(network, b, a), whole.T, rtol=1e-12, atol=1e-13)
    assert resistances(network, a[:0], b).shape == (0, 7)
    assert resistances(network, a, b[:0]).shape == (30, 0)
    assert resistances(network, a[:0], b[:0]).shape == (0, 0)


def test_a_centimetre_beside_ten_kilometres_in_exact_fractions():
    vertices = np.array([[0, 0], [0.0078125, 0], [8192, 0], [8192, 0.0078125], [4096, 1024], [0, 8192]])
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 4], [4, 2], [5, 0], [4, 1]])
    network = LinearNetwork(vertices, edges)
    size, lengths = len(vertices), [Fraction(length) for length in network.lengths]
    # Gauss on the Laplacian without its first row and column: exact.
    matrix = [[Fraction(0)] * size for _ in range(size)]
    for (u, v), length in zip(edges.tolist(), lengths, strict=True):
        for i, j, sign in ((u, u, 1), (v, v, 1), (u, v, -1), (v, u, -1)):
            matrix[i][j] += sign / length
    rows = [row[1:] + [Fraction(int(i == k)) for k in range(1, size)] for i, row in enumerate(matrix) if i]
    for k in range(size - 1):
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in set(range(size - 1)) - {k}:
            rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    inverse = [[Fraction(0)] * size] + [[Fraction(0), *row[size - 1 :]] for row in rows]
    first = [(int(np.flatnonzero((edges == v).any(axis=1))[0]), v) for v in range(size)]
    at = np.array([[e, (edges[e, 1] == v) * network.lengths[e]] for e, v in first])
    for anchor in range(size):
        found = resistances(network, at, at, anchor)
        for u in range(size):
            for v in range(u):
                exact = inverse[u][u] + inverse[v][v] - 2 * inverse[u][v]
                # The ratio of lengths is 1e6; near vertices keep their digits as well as far ones.
                assert found[u, v] == pytest.approx(float(exact), rel=5e-10)
