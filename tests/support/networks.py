"""Networks and points on them."""

import numpy as np
import shapely

from dpppsynth.linear_network import LinearNetwork


def uniform(network, n, rng):
    edge = rng.choice(len(network.edges), n, p=network.lengths / network.length)
    return network.pattern(edge, rng.random(n))


def web():
    """Irregular streets with a dead end, a loop, parallel and curved edges; crossings in general position."""
    vertices = [[0, 0], [3.1, 0.2], [5, 2.7], [2.2, 4.1], [-0.7, 2.9], [7.3, 0.4]]
    edges = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0], [1, 3], [1, 5], [2, 2], [0, 1]]
    lines = [[vertices[a], vertices[b]] for a, b in edges]
    lines[7] = [vertices[2], [6, 3], [5.5, 3.9], vertices[2]]
    lines[8] = [vertices[0], [1.4, -1.3], vertices[1]]
    return LinearNetwork(vertices, edges, lines=[shapely.LineString(line) for line in lines])


def random_web(rng, extra=8):
    """Twelve vertices, a spanning tree, further edges, parallel ones and a loop, all curved to random lengths."""
    vertices = rng.uniform(0, 10, (12, 2))
    edges = [(i, int(rng.integers(i))) for i in range(1, 12)]
    if extra:
        edges += [tuple(rng.integers(0, 12, 2)) for _ in range(extra)] + [edges[0], edges[0][::-1], (3, 3)]
    bends = rng.uniform(0, 10, (len(edges), 2, 2))
    lines = [shapely.LineString([vertices[a], *bend, vertices[b]]) for (a, b), bend in zip(edges, bends, strict=True)]
    return LinearNetwork(vertices, edges, lines=lines)


def random_places(network, n, rng):
    """(n, 2) edges and places along them."""
    edge = rng.integers(0, len(network.edges), n)
    # Ends of edges are among them.
    share = np.where(rng.random(n) < 0.2, rng.integers(0, 2, n), rng.random(n))
    return np.column_stack([edge, share * network.lengths[edge]])
