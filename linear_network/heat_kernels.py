"""Heat kernels and heat flow along networks.

A point is snapped to its segment and leaves a Poisson number of children, one on average. Each falls into segment j
with probability `K[i, j]`, `K = exp(-(h^2 / 2) L)`, and is uniform there; on a long street of short segments it is the
Gaussian of standard deviation h. `L` is the finite-volume Laplacian of the network: heat flows between segments that
share a vertex, at a rate `g_ij / length_i`, through the star of half-segments around the vertex:

    g_ij = c_i c_j / sum_k c_k,    c_k = 2 / length_k.

The exponential is a sum and then squares of matrices without a negative entry. Nothing cancels, so every entry is right
to a relative error, even in the tails: that is what a privacy loss, the logarithm of a ratio of two entries, asks for.

Up to 3000 segments it is `diffusion_matrix`. Beyond, segments are gathered in tiles, and heat that is too far from the
tile it came from is left out, after each step of the same series and squares. Products of blocks take the place of
those of whole matrices: 10 000 segments in seconds. Which entries are left out follows from the network and the
bandwidth, never from the size of an entry.

Privacy losses ask for entries right to a relative error, `spread` for sums of masses alone: there `exp(-t L)` is the
contour integral of `e^z / (z + t L)`, by the trapezoidal rule on a parabola a sum of sparse solutions (Weideman &
Trefethen 2007), whatever the shortest segment.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra
from scipy.sparse.linalg import splu

from dpppsynth.core.arguments import positive
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.tiled_matrix import TiledMatrix
from dpppsynth.core.types import Floats, Ints
from dpppsynth.core.wording import either, mention
from dpppsynth.linear_network.mesh import NetworkMesh
from dpppsynth.linear_network.shortest_paths import vertex_distances

# Segments beyond which the squares of a dense matrix take minutes; `diffusion_rows` goes on.
MOST_SEGMENTS = 3000
# Terms of the exponential's series for a matrix of row sum one: what is left out is below 1e-50.
TERMS = 40
# Smaller entries count as zero, so that no product of two is a subnormal number.
SMALLEST = 1e-150
# All entries together lose less than this by the two, whatever the number of squarings in reach.
CUT = 1e-35
UNIT_ROUNDOFF = 2.0**-53
# Relative error of the entries beyond which they say little about privacy losses.
MOST_ERROR = 0.01


def conductances(mesh: NetworkMesh) -> sp.csr_array:
    """(T, T) sparse symmetric `g_ij` between segments, zero on the diagonal."""
    count, half = len(mesh.elements), 2 / mesh.element_measure
    # A segment that begins and ends at one vertex meets the others there twice.
    where = (np.repeat(np.arange(count), 2), mesh.elements.ravel())
    star = sp.csr_array((np.repeat(half, 2), where), shape=(count, len(mesh.vertices)))
    flow = sp.coo_array(star @ sp.diags_array(1 / star.sum(axis=0)) @ star.T)
    apart = flow.row != flow.col
    return sp.csr_array((flow.data[apart], (flow.row[apart], flow.col[apart])), shape=(count, count))


def diffusion_matrix(mesh: NetworkMesh, bandwidth: float) -> Floats:
    """(T, T) probabilities that a child of a point in segment i, of at most 3000, falls into segment j; read-only.

    The bandwidth is the kernel's standard deviation on a long straight street. Rows are non-negative and of sum one,
    with `length_i K_ij = length_j K_ji`. Every entry is within a share `matrix_error` of the true one, up to `CUT`.
    InputError for a bandwidth that is not positive, or so wide beside the shortest segment that rounding spoils the
    matrix, and for too many segments.

    Examples
    --------
    >>> from dpppsynth.linear_network import LinearNetwork
    >>> from dpppsynth.linear_network.mesh import network_mesh
    >>> street = network_mesh(LinearNetwork([[0, 0], [1, 0]], [[0, 1]]), 0.5)
    >>> diffusion_matrix(street, 0.5).round(4)
    array([[0.6839, 0.3161],
           [0.3161, 0.6839]])
    """
    require_bandwidth(bandwidth)
    require_few_segments(mesh, MOST_SEGMENTS)
    require_precise(mesh, bandwidth)
    flow, root = conductances(mesh), np.sqrt(mesh.element_measure)
    leave = flow.sum(axis=1) / mesh.element_measure
    squarings = halvings(leave, bandwidth)
    step = math.ldexp(bandwidth**2 / 2, -squarings)
    # exp(-step L) = e^-1 exp(I - step L), and step L has no diagonal entry above one half. Scaled by the roots of the
    # lengths all is symmetric, and a square costs half as much.
    between = flow.multiply(step / root[:, None]).multiply(1 / root)
    jump = sp.csr_array(between + sp.diags_array(1 - step * leave))
    matrix = np.eye(len(leave))
    for k in range(TERMS, 0, -1):
        matrix = jump @ matrix / k
        matrix.flat[:: len(matrix) + 1] += 1
    matrix /= math.e
    for _ in range(squarings):
        matrix = matrix @ matrix.T
        matrix[matrix < SMALLEST] = 0
    matrix *= root / root[:, None]
    matrix /= matrix.sum(axis=1, keepdims=True)
    matrix.flags.writeable = False
    return np.asarray(matrix)


def require_few_segments(mesh: NetworkMesh, most: int) -> None:
    """Refuse a mesh with more than `most` segments, with an InputError."""
    if len(mesh.elements) > most:
        msg = (
            f"mesh: heat flow takes at most {most} segments, got {len(mesh.elements)}; take longer ones "
            f"({mention('spacing')}), a part of the network, or {either('LGCPSynthesizer', '--method lgcp')}, which "
            "takes networks of any size."
        )
        raise InputError(msg)


def matrix_error(mesh: NetworkMesh, bandwidth: float) -> float:
    """Bound on the relative error of the entries of `diffusion_matrix` by rounding, in whatever order sums are made.

    A sum of n products of non-negative numbers loses at most a share `n u`, `u = 2^-53`. Terms of the series are up to
    `TERMS` such sums deep, and each squaring doubles what was lost before (docs/theory/diffusion.md, section 2).
    """
    flow = conductances(mesh)
    widest = int(np.diff(flow.indptr).max(initial=0))
    first = (TERMS * (widest + 12) + flow.shape[0]) * UNIT_ROUNDOFF
    # Capped only where it is hopeless anyway, below the range of numbers.
    return math.ldexp(first, min(1000, 2 + halvings(flow.sum(axis=1) / mesh.element_measure, bandwidth)))


def sample_children(mesh: NetworkMesh, matrix: TiledMatrix, positions: Floats, rng: RngLike = None) -> Floats:
    """(m, 2) positions of one Poisson pattern with the kernel at each point (n, 2), on the network's public grid.

    The matrix is that of `diffusion_rows`; `rng` is secret where the pattern is to be private. Children are in the
    order of their parents: shuffle them before release.
    """
    rng = generator(rng)
    parents = np.repeat(mesh.locate(positions), rng.poisson(1.0, len(positions)))
    uniform, child = rng.random(len(parents)), np.empty(len(parents), dtype=np.int64)
    for segment in np.unique(parents):
        reached, chances = matrix.row(segment)
        here, cumulative = parents == segment, np.cumsum(chances)
        found = np.searchsorted(cumulative, uniform[here] * cumulative[-1], side="right")
        # Where rounding makes it the total, the last segment that can be reached counts.
        child[here] = reached[np.minimum(found, np.searchsorted(cumulative, cumulative[-1]))]
    along = mesh.start[child] + (mesh.end - mesh.start)[child] * rng.random(len(child))
    return mesh.domain.on_grid(np.column_stack([mesh.edge[child], along]))


def diffusion_density(mesh: NetworkMesh, matrix: TiledMatrix, positions: Floats, at: Floats) -> Floats:
    """(k,) intensity at positions (k, 2), in children per unit of length, of the patterns that `sample_children` draws.

    Not private: it is a function of the points (n, 2).
    """
    parents = np.bincount(mesh.locate(positions), minlength=len(matrix))
    return (matrix.summed(parents.astype(np.float64)) / mesh.element_measure)[mesh.locate(at)]


def halvings(leave: Floats, bandwidth: float) -> int:
    """Number of halvings of the time after which no segment loses more than half of its heat in one step."""
    fastest = float(np.max(leave, initial=0.0))
    return max(0, math.ceil(2 * math.log2(bandwidth) + math.log2(fastest))) if fastest > 0 else 0


def require_bandwidth(bandwidth: float) -> None:
    """Refuse a bandwidth that is not positive, with an InputError."""
    remedy = "smallest_diffusion_bandwidth gives one"
    positive("bandwidth", bandwidth, rule="be positive and finite", remedy=remedy)


def require_precise(mesh: NetworkMesh, bandwidth: float) -> None:
    """Refuse a bandwidth at which rounding errors of the matrix are too large, with an InputError."""
    error = matrix_error(mesh, bandwidth)
    if error > MOST_ERROR:
        unit, least = mesh.domain.unit, float(mesh.element_measure.min())
        msg = (
            f"bandwidth: {bandwidth:g} {unit} is too wide for segments as short as {least:.3g} {unit}, rounding may "
            f"change probabilities by a share of {error:.1g}; network.collapse_short(tolerance) takes short edges out, "
            "or take a narrower bandwidth."
        )
        raise InputError(msg)


# Segments whose near ones are found in some seconds.
MOST_TILED = 30_000
# Most segments of a tile: larger ones reach farther than their rows need, smaller ones make small products.
TILE = 128
# Terms of the series where heat is cut off; what is left out is below 1e-22.
TILED_TERMS = 22
# Distance beyond which heat is left out, in bandwidths: a normal law has 2e-19 there. Where segments are longer than
# the bandwidth it jumps farther, and fewer bandwidths and some segments are more.
FAR, NEAR, JUMPS = 9.0, 4.5, 6.0
# Most entries, of 480 MB, and products of one square, of some twenty seconds.
MOST_ENTRIES, MOST_PRODUCTS = 6 * 10**7, 3 * 10**11


def diffusion_rows(mesh: NetworkMesh, bandwidth: float) -> TiledMatrix:
    """(T, T) rows of probabilities that a child of a point in segment i falls into segment j, read-only.

    Up to 3000 segments those of `diffusion_matrix`. Beyond, rows of sum one that end at the distance of a public rule,
    nine bandwidths if segments are short, every entry within a share `matrix_error` of what it would be without
    rounding. InputError as there, and where too many segments are within reach.
    """
    require_bandwidth(bandwidth)
    # A bandwidth that was found is checked, and then drawn with.
    return mesh.last_diffusion.get(float(bandwidth), lambda: _rows(mesh, bandwidth))


def segment_distances(mesh: NetworkMesh, segments: Ints | None = None, limit: float = np.inf) -> Floats:
    """(k, T) lengths of the shortest paths from segments (k,), or all, to the nearest points of others.

    They join two of their ends, and are infinite beyond the limit; from a segment to itself it is zero.
    """
    segments = np.arange(len(mesh.elements)) if segments is None else segments
    ends, place = np.unique(mesh.elements[segments], return_inverse=True)
    paths, place = vertex_distances(mesh.adjacency, ends, limit), place.reshape(-1, 2)
    to_vertices = np.minimum(paths[place[:, 0]], paths[place[:, 1]])
    apart = np.minimum(to_vertices[:, mesh.elements[:, 0]], to_vertices[:, mesh.elements[:, 1]])
    apart[np.arange(len(segments)), segments] = 0
    return apart


def _rows(mesh: NetworkMesh, bandwidth: float) -> TiledMatrix:
    if len(mesh.elements) <= MOST_SEGMENTS:
        return TiledMatrix.of(diffusion_matrix(mesh, bandwidth))
    require_few_segments(mesh, MOST_TILED)
    require_precise(mesh, bandwidth)
    flow, length, tiles = conductances(mesh), mesh.element_measure, _tiles(mesh)
    leave = flow.sum(axis=1) / length
    squarings = halvings(leave, bandwidth)
    # Bandwidths of the steps. Doubled two by two and by a root of two: all machines round these alike.
    widths = [math.ldexp(bandwidth, -(k // 2)) / (math.sqrt(2.0) if k % 2 else 1.0) for k in range(squarings, -1, -1)]
    jumps = JUMPS * float(length.max())
    reached = _columns(mesh, tiles, [max(FAR * width, NEAR * width + jumps) for width in widths])
    _require_room(mesh, bandwidth, tiles, reached[-1])
    step = math.ldexp(bandwidth**2 / 2, -squarings)
    jump = sp.csr_array(sp.csr_array(flow.multiply(step / length[:, None])) + sp.diags_array(1 - step * leave))
    first = tuple(_series(jump, tile, columns) for tile, columns in zip(tiles, reached[0], strict=True))
    matrix = TiledMatrix(tiles, reached[0], first)
    for columns in reached[1:]:
        matrix = matrix.squared(columns)
        for values in matrix.values:
            values[values < SMALLEST] = 0
    for values in matrix.values:
        np.divide(values, values.sum(axis=1, keepdims=True), out=values)
        values.flags.writeable = False
    return matrix


def _series(jump: sp.csr_array, tile: Ints, columns: Ints) -> Floats:
    """(b, u) rows of `e^-1 exp(jump)`, by paths that stay within the columns."""
    within = sp.csr_array(jump[columns][:, columns].T)
    home = np.searchsorted(columns, tile), np.arange(len(tile))
    out = np.zeros((len(columns), len(tile)))
    out[home] = 1
    for k in range(TILED_TERMS, 0, -1):
        out = within @ out / k
        out[home] += 1
    return np.ascontiguousarray(out.T) / math.e


def _tiles(mesh: NetworkMesh) -> tuple[Ints, ...]:
    """Segments (b,) of each tile: halves of halves, across the longer side."""
    middles = mesh.domain.coordinates(np.column_stack([mesh.edge, (mesh.start + mesh.end) / 2]))
    open_, tiles = [np.arange(len(middles))], []
    while open_:
        part = open_.pop()
        if len(part) <= TILE:
            tiles.append(np.sort(part))
            continue
        sides = np.ptp(middles[part], axis=0)
        order = part[np.argsort(middles[part, int(sides[1] > sides[0])], kind="stable")]
        open_ += [order[len(order) // 2 :], order[: len(order) // 2]]
    return tuple(tiles)


def _columns(mesh: NetworkMesh, tiles: tuple[Ints, ...], reaches: list[float]) -> list[tuple[Ints, ...]]:
    """For each reach the segments (u,) that far at most from each tile."""
    ends = mesh.elements
    search: dict[str, Any] = {"directed": True, "limit": max(reaches), "min_only": True}
    apart = [dijkstra(mesh.adjacency, indices=np.unique(ends[tile]), **search)[ends].min(axis=1) for tile in tiles]
    return [tuple(np.flatnonzero(each <= reach) for each in apart) for reach in reaches]


def _require_room(mesh: NetworkMesh, bandwidth: float, tiles: tuple[Ints, ...], columns: tuple[Ints, ...]) -> None:
    rows, wide = (np.array([len(each) for each in arrays], dtype=np.float64) for arrays in (tiles, columns))
    if rows @ wide > MOST_ENTRIES or rows @ wide**2 > MOST_PRODUCTS:
        msg = (
            f"mesh: a kernel of {bandwidth:.4g} {mesh.domain.unit} reaches {wide.mean():.0f} of its "
            f"{len(mesh.elements)} segments from each, more than there is room for; take longer ones "
            f"({mention('spacing')}), a narrower kernel ({mention('bandwidth')}), a part of the network, or "
            f"{either('LGCPSynthesizer', '--method lgcp')}, which takes networks of any size."
        )
        raise InputError(msg)


# Segments beyond which factors take more than about 4 GiB.
MOST_SPREAD = 250_000
# Nodes on the parabola: its error falls like 2.85^-NODES, to rounding.
NODES = 24


def spread(mesh: NetworkMesh, bandwidth: float, masses: Floats) -> Floats:
    """(T,) masses on the segments after heat flow from given masses (T,), `masses @ diffusion_matrix`.

    The error is below 1e-9 of the largest density. InputError for too many segments.
    """
    require_few_segments(mesh, MOST_SPREAD)
    flow, root = conductances(mesh), np.sqrt(mesh.element_measure)
    laplacian = sp.diags_array(flow.sum(axis=1)) - flow
    # Scaled by the roots of the lengths it is symmetric.
    symmetric = (sp.diags_array(bandwidth**2 / 2 / root) @ laplacian @ sp.diags_array(1 / root)).tocsc()
    angle = np.pi * (2 * np.arange(NODES // 2) + 1) / NODES
    node = NODES * (0.1309 - 0.1194 * angle**2 + 0.2500j * angle)
    slope = NODES * (-2 * 0.1194 * angle + 0.2500j)
    out = np.zeros(len(root))
    for z, weight in zip(node, np.exp(node) * slope, strict=True):
        shifted = sp.csc_matrix(symmetric + z * sp.eye_array(len(root)))
        solved = splu(shifted, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}).solve(masses / root + 0j)
        # Nodes below the real axis give the conjugate.
        out += 2 * np.imag(weight * solved) / NODES
    return np.asarray(np.maximum(out * root, 0.0))
