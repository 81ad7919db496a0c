"""Running time of K-functions on networks, and of the resistance metric on a large one.

K up to the diameter, so that every pair of points counts, against a plain implementation of the same definition in the
same run: shortest paths by scipy, then for each point the number m(u, d) of places at each distance d by comparing all
distances with all edges. Resistances on a grid of streets with 10 000 crossings.

    OMP_NUM_THREADS=1 python benchmarks/network_k.py --out docs/results/network_k.md
"""

import os
import tracemalloc

import numpy as np
from measuring import timed
from pages import command_line, fill, table
from scipy.sparse.csgraph import minimum_spanning_tree

from dpppsynth.linear_network import LinearNetwork, k_function
from dpppsynth.linear_network.shortest_paths import from_positions
from dpppsynth.spatial.patterns import PointPattern

# Seconds that an established implementation with a core in C needed for n points on 503 edges, on two cores.
ESTABLISHED = {2000: 8.7, 5000: 47.0}


def streets(side: int, edges: int | None, rng: np.random.Generator) -> LinearNetwork:
    """A square grid with shifted crossings, of which so many edges are kept that it stays connected."""
    number = np.arange(side**2).reshape(side, side)
    pairs = [number[:, :-1], number[:, 1:]], [number[:-1], number[1:]]
    ends = np.concatenate([np.column_stack([a.ravel(), b.ravel()]) for a, b in pairs])
    vertices = 100 * (np.column_stack(np.divmod(number.ravel(), side)) + rng.uniform(-0.3, 0.3, (side**2, 2)))
    if edges is not None:
        whole = LinearNetwork(vertices, ends)
        weights = whole.adjacency.copy()
        weights.data = rng.random(len(weights.data)) + 1
        tree = minimum_spanning_tree(weights).tocoo()
        kept = np.sort(np.column_stack([tree.row, tree.col]), axis=1)
        others = np.array(sorted(set(map(tuple, ends)) - set(map(tuple, kept))))
        chosen = rng.permutation(len(others))[: edges - len(kept)]
        ends = np.concatenate([kept, others[chosen]])
    return LinearNetwork(vertices, ends)


def uniform(network: LinearNetwork, n: int, rng: np.random.Generator) -> PointPattern:
    edge = rng.choice(len(network.edges), n, p=network.lengths / network.length)
    return network.pattern(edge, rng.random(n))


def plain(pattern: PointPattern, r: np.ndarray) -> np.ndarray:
    """The definition, for points in general position: places on the two ways into every edge, as far as they meet."""
    network, positions = pattern.domain, pattern.positions
    edge, along = positions[:, 0].astype(int), positions[:, 1]
    (u, v), lengths = network.edges.T, network.lengths
    total, n = np.zeros(len(r)), len(pattern)
    for part, to_vertices in from_positions(network, positions):
        for i, d in zip(part, to_vertices, strict=True):
            du, dv = d[u], d[v]
            # The point's own edge falls into two.
            own = edge[i]
            start = np.concatenate([np.delete(du, own), np.delete(dv, own), [0, 0], d[[u[own], v[own]]]])
            halves = (d[[u[own], v[own]]] + [along[i], lengths[own] - along[i]]) / 2
            meet = np.delete((du + dv + lengths) / 2, own)
            end = np.concatenate([meet, meet, halves, halves])
            to = np.minimum(d[u[edge]] + along, d[v[edge]] + lengths[edge] - along)
            to = np.where(edge == own, np.minimum(to, np.abs(along - along[i])), to)
            m = ((start < to[:, None]) & (to[:, None] <= end)).sum(axis=1)
            weight = 1 / np.maximum(m, 1)
            weight[i] = 0
            total += np.bincount(np.searchsorted(r, to), weight, len(r) + 1)[: len(r)]
    return np.cumsum(total) * network.length / (n * (n - 1))


def k_lines(sizes: list[int], repeats: int) -> list[str]:
    rng = np.random.default_rng(503)
    network = streets(18, 503, rng)
    r = np.linspace(0, network.diameter, 101)
    k_function(uniform(network, 10, rng), r)
    lines = table(["n", "ours, median", "ours, largest", "plain numpy", "plain / ours", "established / ours"], ())
    for n in sizes:
        pattern = uniform(network, n, rng)
        runs = [timed(lambda p=pattern: k_function(p, r)) for _ in range(repeats)]
        times = [seconds for _, seconds in runs]
        reference, slow = timed(lambda p=pattern: plain(p, r))
        assert np.allclose(runs[0][0].k, reference, rtol=1e-9)
        median = np.median(times)
        lines.append(
            f"| {n} | {median:.3f} s | {max(times):.3f} s | {slow:.1f} s | {slow / median:.0f} | "
            f"{ESTABLISHED[n] / median:.0f} |"
        )
        print(lines[-1], flush=True)
    return lines


def resistance_lines() -> list[str]:
    rng = np.random.default_rng(1)
    network = streets(100, None, rng)
    few, many = uniform(network, 100, rng), uniform(network, 10_000, rng)
    lines = table(["points", "time", "memory, largest"], ())
    for name, other in (("100 x 100", few), ("100 x 10 000", many)):
        _, seconds = timed(lambda points=other: network.resistance(few, points))
        tracemalloc.start()
        network.resistance(few, other)
        peak = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        lines.append(f"| {name} | {seconds:.2f} s | {peak:.0f} MiB |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(ESTABLISHED))
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    load = os.getloadavg()[0]
    tables = {"k": k_lines(args.sizes, args.repeats), "resistance": resistance_lines()}
    print(f"{os.cpu_count()} cores, jobs of others at the beginning: {load:.1f}")
    for name, lines in tables.items():
        fill(args.out, name, lines)


if __name__ == "__main__":
    main()
