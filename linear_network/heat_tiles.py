"""Heat kernel on networks of any number of segments: rows that end some bandwidths away (docs/theory/diffusion.md).

Up to 3000 segments it is `diffusion_matrix`. Beyond, segments are gathered in tiles, and heat that is too far from the
tile it came from is left out, after each step of the same series and squares. Products of blocks take the place of
those of whole matrices: 10 000 segments in seconds. Which entries are left out follows from the network and the
bandwidth, never from the size of an entry.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from dpppsynth.core.errors import InputError
from dpppsynth.core.tiled_matrix import TiledMatrix
from dpppsynth.core.wording import either, mention
from dpppsynth.linear_network.diffusion import (
    MOST_SEGMENTS,
    SMALLEST,
    conductances,
    diffusion_matrix,
    halvings,
    require_bandwidth,
    require_few_segments,
    require_precise,
)
from dpppsynth.linear_network.mesh import NetworkMesh
from dpppsynth.linear_network.shortest_paths import nearest_distances, vertex_distances
from dpppsynth.spatial.mesh import Floats, Ints

# Segments whose near ones are found in some seconds.
MOST_TILED = 30_000
# Most segments of a tile: larger ones reach farther than their rows need, smaller ones make small products.
TILE = 128
# Terms of the series; what is left out is below 1e-22.
TERMS = 22
# Distance beyond which heat is left out, in bandwidths: a normal law has 2e-19 there. Where segments are longer than
# the bandwidth it jumps farther, and fewer bandwidths and some segments are more.
FAR, NEAR, JUMPS = 9.0, 4.5, 6.0
# Most entries, of 480 MB, and products of one square, of some twenty seconds.
MOST_ENTRIES, MOST_PRODUCTS = 6 * 10**7, 3 * 10**11


def diffusion_rows(mesh: NetworkMesh, bandwidth: float) -> TiledMatrix:
    """Rows of probabilities that a child of a point in segment i falls into segment j.

    Parameters
    ----------
    mesh : NetworkMesh
    bandwidth : float
        Standard deviation of the kernel on a long straight street, in the network's unit.

    Returns
    -------
    TiledMatrix
        (T, T), read-only. Up to 3000 segments that of `diffusion_matrix`. Beyond, rows of sum one that end at the
        distance of a public rule, nine bandwidths if segments are short, every entry within a share `matrix_error` of
        what it would be without rounding.

    Raises
    ------
    InputError
        When the bandwidth is not positive, or so wide beside the shortest segment that rounding spoils the matrix; when
        there are too many segments, or too many within reach.
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
    paths, place = vertex_distances(mesh, ends, limit), place.reshape(-1, 2)
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
    reached = _columns(mesh, tiles, [_reach(mesh, width) for width in widths])
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
    for k in range(TERMS, 0, -1):
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


def _reach(mesh: NetworkMesh, bandwidth: float) -> float:
    return max(FAR * bandwidth, NEAR * bandwidth + JUMPS * float(mesh.element_measure.max()))


def _columns(mesh: NetworkMesh, tiles: tuple[Ints, ...], reaches: list[float]) -> list[tuple[Ints, ...]]:
    """For each reach the segments (u,) that far at most from each tile."""
    ends = mesh.elements
    apart = [nearest_distances(mesh, np.unique(ends[tile]), max(reaches))[ends].min(axis=1) for tile in tiles]
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
