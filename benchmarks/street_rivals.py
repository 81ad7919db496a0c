"""Releases along irregular streets beside plain noisy counts, and noisy counts smoothed by heat flow.

Crossings are uniform in a square, one to the hectare. Streets are a spanning tree of their Delaunay triangulation and
as many others of its edges as make three for two crossings, the shorter the likelier. The intensity is that of eight
Gaussian hot spots, and a tenth of it anywhere (`equal streets`), times 8 along the shortest paths between twelve pairs
of crossings (`arterials`), or times a factor exp(N(0, 1)) of each edge (`own factors`). Heat flows along the streets,
for the best of thirty times in hindsight. Total variation distance to the truth on edges; privacy radius 30 m.

    OMP_NUM_THREADS=1 python benchmarks/street_rivals.py --out docs/results/street_rivals.md
"""

import itertools

import numpy as np
import scipy
import scipy.sparse as sp
from measuring import timed
from pages import command_line, fill, table
from streets import distance, on_edges

import dpppsynth as dps
from dpppsynth.contract.additive_noise import LaplaceMasses
from dpppsynth.linear_network import LinearNetwork, NetworkMesh, network_mesh
from dpppsynth.models.street_fields import street_ties
from dpppsynth.spatial.simplex import norm_sub

STEP, SPOTS, RADIUS, EPSILON = 100.0, 8, 30.0, 1.0
ARTERIALS, FACTOR = 12, 8.0
TRUTHS = ("equal streets", "arterials", "own factors")
EDGES, SIZES = (500, 4000), (500, 2000, 8000, 50_000)
# Standard deviations of the heat kernel, in metres.
WIDTHS = np.geomspace(5.0, 3000.0, 30)
HEADS = ("streets", "edges", "n", "uniform", "plain counts", "heat, in hindsight", "default", "of plain", "of heat")
HEADS += ("mechanism", "seconds")


def streets(edges: int, seed: int) -> LinearNetwork:
    """Irregular streets, about three for two crossings."""
    crossings = 2 * edges // 3
    rng = np.random.default_rng([seed, edges])
    xy = rng.uniform(0, STEP * crossings**0.5, (crossings, 2))
    corners = scipy.spatial.Delaunay(xy).simplices
    pairs = np.unique(np.sort(np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])), axis=0)
    length = np.linalg.norm(np.subtract(*xy[pairs].transpose(1, 0, 2)), axis=1)
    tree = sp.csgraph.minimum_spanning_tree(sp.coo_array((length, pairs.T), shape=(crossings, crossings))).tocoo()
    kept = {tuple(sorted(map(int, each))) for each in zip(tree.row, tree.col, strict=True)}
    for k in np.argsort(length * rng.exponential(size=len(length))):
        if len(kept) < edges:
            kept.add(tuple(map(int, pairs[k])))
    return LinearNetwork(xy, np.array(sorted(kept)))


def shares(network: LinearNetwork, truth: str, seed: int) -> np.ndarray:
    """Shares of the edges."""
    rng = np.random.default_rng([seed, len(network.edges), TRUTHS.index(truth)])
    middle, side = network.vertices[network.edges].mean(axis=1), network.extent
    centres, weight = rng.uniform(0, side, (SPOTS, 2)), rng.dirichlet(np.ones(SPOTS))
    hills = sum(
        w * np.exp(-((middle - c) ** 2).sum(axis=1) / (2 * (side / 12) ** 2))
        for w, c in zip(weight, centres, strict=True)
    )
    level = 0.9 * hills / (hills @ network.lengths) + 0.1 / network.length
    if truth == "arterials":
        level = level * np.where(arterial(network, rng), FACTOR, 1.0)
    if truth == "own factors":
        level = level * np.exp(rng.standard_normal(len(level)))
    return level * network.lengths / (level @ network.lengths)


def arterial(network: LinearNetwork, rng: np.random.Generator) -> np.ndarray:
    """(M,) whether an edge lies on a shortest path between two of some crossings."""
    count = len(network.vertices)
    graph = sp.coo_array((network.lengths, network.edges.T), shape=(count, count)).tocsr()
    ends = rng.integers(0, count, (ARTERIALS, 2))
    before = sp.csgraph.dijkstra(graph, directed=False, indices=ends[:, 0], return_predecessors=True)[1]
    number = {tuple(sorted(map(int, each))): k for k, each in enumerate(network.edges)}
    found = np.zeros(len(network.edges), dtype=bool)
    for back, (start, end) in zip(before, ends, strict=True):
        at = int(end)
        while at != start:
            at, last = int(back[at]), at
            found[number[tuple(sorted((at, last)))]] = True
    return found


def smoothed(mesh: NetworkMesh, counts: np.ndarray) -> list[np.ndarray]:
    """Counts of segments after heat flows for longer and longer, by four implicit steps each."""
    ties, length = street_ties(mesh), mesh.element_measure
    i, j = ties.pair.T
    flow = sp.coo_array((ties.crossing, (i, j)), shape=(len(length),) * 2)
    flow = (flow + flow.T).tocsr()
    laplacian = sp.diags_array(flow.sum(axis=1)) - flow
    density, found, before = counts / length, [], 0.0
    for width in WIDTHS:
        step = (width**2 - before**2) / 2 / 4
        solve = scipy.sparse.linalg.factorized((sp.diags_array(length) + step * laplacian).tocsc())
        for _ in range(4):
            density = solve(length * density)
        found.append(density * length)
        before = width
    return found


def run(truth: str, edges: int, n: int, seed: int) -> list[str]:
    """Row of the table: distances of a uniform intensity, the rivals and the default."""
    network = streets(edges, seed)
    share = shares(network, truth, seed)
    rng = np.random.default_rng([seed, n])
    pattern = network.pattern(rng.choice(len(share), n, p=share), rng.random(n))
    relation, mesh = dps.AlphaNeighbours(RADIUS), network_mesh(network, 1e6)
    noisy = LaplaceMasses("cells", mesh, relation, n, None, EPSILON).measure(pattern, rng).masses
    warm = min(distance(norm_sub(each, float(n)), share) for each in smoothed(mesh, noisy))
    settings = dps.LGCPSynthesizer(EPSILON, relation=relation, inference="laplace")
    release, seconds = timed(lambda: settings.release(pattern, rng))
    own, plain = distance(on_edges(release.intensity, network), share), distance(norm_sub(noisy, float(n)), share)
    scores = (distance(network.lengths, share), plain, warm, own)
    ratios = (f"{own / plain:.2f}", f"{own / warm:.2f}")
    return [
        truth,
        f"{edges}",
        f"{n}",
        *(f"{each:.3f}" for each in scores),
        *ratios,
        release.mechanism,
        f"{seconds:.0f}",
    ]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rows = []
    for edges, truth, n in itertools.product(EDGES, TRUTHS, SIZES):
        rows.append(run(truth, edges, n, given.seed))
        print(rows[-1], flush=True)
    fill(given.out, "distances", table(HEADS, rows))


if __name__ == "__main__":
    main()
