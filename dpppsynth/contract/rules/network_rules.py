"""Default settings on linear networks, tuned on the streets of two towns (docs/results/network_rules.md).

Lengths scale with the network's extent, the square root of the area it spans.
"""

import math
from typing import Any

import numpy as np

from dpppsynth.contract.rules.planar_rules import box_shape
from dpppsynth.linear_network import LinearNetwork, NetworkMesh, network_mesh
from dpppsynth.models.recipes import around, trace_mesh
from dpppsynth.models.regular_meshes import Finder, regular_grid
from dpppsynth.models.street_fields import MOST_MEETING, most_meeting
from dpppsynth.privacy.relations import AddRemove, CappedRelation
from dpppsynth.spatial.mesh import Floats, Mesh

# Length scales the posterior averages over, in extents.
LENGTH_SCALES = (0.1, 0.2, 0.4, 0.8)
# Standard deviation of a dense field fitted to a private statistic (log scale): streets differ less than places.
FITTED_SIGMA = 1.6
# Longest segments, in extents: of the field's mesh, and of a mesh finer than what any mechanism resolves.
FIELD_SEGMENT, FINE_SEGMENT = 0.075, 0.04
# Most vertices along edges of a drawn field, and of one fitted to a private statistic: both work with dense matrices.
# Networks with more get a field in the plane, with so many vertices along the longer side of the bounding box.
MOST_DRAWN, MOST_FITTED, PLANE_SIDE = 700, 1500, 27
# Segments of a kernel, about, at most: the time for its bandwidth grows with their cube.
KERNEL_SEGMENTS = 600
# Vertices along the longer side of a mesh of fields with bounded slope.
SMOOTH_SIDE = 15
# Tents along the longer side of the bounding box, at most, and segments of cells tried.
MOST_TENTS, MOST_CELLS = 60, 2000
# Segments into which the extent is divided to see which tents a network touches.
STEPS = 400
# Points that a tent or a cell holds at least, in multiples of max(1, the noise's standard deviation): a posterior
# borrows from neighbours, a projection does not, and cells must end at every crossing.
POSTERIOR_HOLDS, TENTS_HOLD, CELLS_HOLD = 1.0, 3.0, 4.0
# Of counts with a field along streets behind them: points that a segment holds at least on average, in standard
# deviations of the noise and in points, and the longest segment, in mean edges, so that most are not cut, and extents.
STREETS_HOLD, STREETS_HOLD_POINTS, EDGES, STREET_SEGMENT = 0.3, 0.1, 2.0, 0.02
# Standard deviations of the noise that a segment holds where edges are cut shorter than LONGEST extents.
SETTLED, LONGEST = 32.0, 0.1
# Times as many points that one holds on networks on which a field along streets stands behind tents as well.
SMALL = 2.0
# Vertices of the field of the plane beneath it along the longer side, and its ranges, in extents.
STREET_PLANE_SIDE, PLANE_RANGES = 30, (0.1, 0.25, 0.6, 1.5)
# Standard deviations of the field along streets; its ranges, and detours that a turn counts as, in extents. With the
# range 0 every edge has a number of its own.
STREET_SIGMAS, STREET_RANGES, DETOURS = (0.1, 0.4, 1.2), (0.0, 2.0), (0.0, 2.0, 60.0)
# Of points moved off the streets: nodes of the lattice in a scale of the noise, 1 / rate, and along the longer side of
# the box at least and at most; segments of the field in a scale, and most of them, but for edges; shortest range.
MOVED_SPACING, MOVED_SIDES, MOVED_SEGMENTS, MOST_SEGMENTS = 2.0, (32, 400), 1.0, 3000
MOVED_RANGES, MOVED_STREET_SIGMAS = (0.04, 0.1, 0.25, 0.6, 1.5), (0.1, 0.4, 1.2, 2.5)
MOVED_STREET_RANGES = (0.1, 0.5, 2.0)
# Moved points are taken on streets where a square of the noise's scale holds fewer points than this, on average over
# the extent's square, and on so many edges at most: their field takes minutes on more.
MOVED_POINTS, MOVED_EDGES = 0.15, 10_000
# Spacing of tents behind a posterior, in length scales of the drawn field, at least.
SPACING = 0.13


def length_scale(network: LinearNetwork, n: float) -> float:
    """Length scale `extent clip(0.8 (n / 100)^(-1/8), 0.2, 1)`: longer than in windows, as paths are rough."""
    return float(network.extent * np.clip(0.8 * (n / 100) ** (-1 / 8), 0.2, 1.0))


def length_scales(network: LinearNetwork) -> tuple[float, ...]:
    """Scales that a posterior averages over where none is given."""
    return tuple(share * network.extent for share in LENGTH_SCALES)


def draw_mesh(network: LinearNetwork) -> Mesh:
    """Mesh of a field that the budget is spent on, along the edges; of a network with too many, in the plane."""
    return _field_mesh(network, MOST_DRAWN)


def _field_mesh(network: LinearNetwork, most: int) -> Mesh:
    """Segments, as long as their vertices are few enough for dense matrices; else triangles laid over the network."""
    along = _along_edges(network, most)
    return trace_mesh(network, shape=box_shape(around(network), PLANE_SIDE)) if along is None else along


def _along_edges(network: LinearNetwork, most: int) -> NetworkMesh | None:
    """Segments along the edges, unless they have more vertices than so many."""
    if len(network.vertices) >= most:
        return None
    along = network_mesh(network, FIELD_SEGMENT * network.extent)
    return along if len(along.vertices) <= most else None


def kim_lim_mesh(network: LinearNetwork) -> Mesh:
    """Mesh of a drawn field in Kim & Lim's experiments: along the edges, however many."""
    return network_mesh(network, FIELD_SEGMENT * network.extent)


def smooth_mesh(network: LinearNetwork) -> Mesh:
    """Mesh of a field of bounded slope, in the plane: on short segments the slopes of a rough field have no bound."""
    return trace_mesh(network, shape=box_shape(around(network), SMOOTH_SIDE))


def fine_mesh(network: LinearNetwork) -> Mesh:
    """Mesh finer than what any mechanism resolves, as far as matrices allow: for surrogate truths."""
    fine = network_mesh(network, FINE_SEGMENT * network.extent)
    return fine if len(fine.vertices) <= MOST_FITTED else _field_mesh(network, MOST_FITTED)


def field_mesh(tents: Mesh) -> Mesh:
    """Mesh of the field inferred from private tents."""
    if tents.kind == "segment" and len(tents.vertices) <= MOST_FITTED:
        return tents
    return _field_mesh(tents.domain, MOST_FITTED)  # type: ignore[arg-type]


def street_segments(network: LinearNetwork, n: float, epsilon: float, relation: CappedRelation) -> float:
    """Longest segment of a field along streets: two mean edges or 0.02 extents.

    Where that holds fewer than `max(0.1, 0.3 sqrt2 Delta / epsilon)` points on average, what holds so many.
    """
    shortest = min(STREET_SEGMENT * network.extent, EDGES * network.length / len(network.edges))
    return max(shortest, network.length * _street_points(epsilon, relation) / n)


def street_cells(network: LinearNetwork, n: float, epsilon: float, relation: CappedRelation) -> NetworkMesh:
    """Segments of counts from which a field along streets is inferred, and of that field.

    They may be longer than `street_segments`: as long as what holds 32 standard deviations of a count's noise, up to a
    tenth of the extent, since cutting an edge multiplies its noise.
    """
    deviation = math.sqrt(2) * _moved(relation, math.inf) / epsilon
    settled = min(SETTLED * deviation * network.length / n, LONGEST * network.extent)
    return network_mesh(network, max(street_segments(network, n, epsilon, relation), settled))


def fits_along(network: LinearNetwork) -> bool:
    """Whether the network is small enough for a dense field along its edges."""
    return _along_edges(network, MOST_FITTED) is not None


def crowded(network: LinearNetwork) -> bool:
    """Whether too many streets meet for a field along them."""
    return most_meeting(network) > MOST_MEETING


def streets_tell(network: LinearNetwork, n: float, epsilon: float, relation: CappedRelation) -> bool:
    """Whether counts in street segments are more informative than tents over the streets.

    So it is where segments no longer than two mean edges, nor than 0.075 extents, hold enough points:
    `n / segments >= h`, with `h = max(0.1, 0.3 sqrt2 Delta / epsilon)` where no dense field fits along the edges; where
    one does, and a field along streets stands behind tents as well, twice as many. Nowhere where too many
    streets meet for such a field.
    """
    if crowded(network):
        return False
    coarse = network_mesh(network, min(EDGES * network.length / len(network.edges), FIELD_SEGMENT * network.extent))
    times = SMALL if fits_along(network) else 1.0
    return n / len(coarse.elements) >= times * _street_points(epsilon, relation)


def moved_points(_network: LinearNetwork, _n: float) -> float:
    """Points in a square of the noise's scale, on average over the extent's, up to which they are moved."""
    return MOVED_POINTS


def unmoved(network: LinearNetwork) -> str:
    """Reason why points are not moved, however short the noise; empty where they may be."""
    if len(network.edges) > MOVED_EDGES:
        return f"there are more than {MOVED_EDGES} edges"
    return f"more than {MOST_MEETING} streets meet" if crowded(network) else ""


def _street_points(epsilon: float, relation: CappedRelation) -> float:
    """Points that a segment of counts holds at least on average."""
    return max(STREETS_HOLD_POINTS, STREETS_HOLD * math.sqrt(2) * _moved(relation, math.inf) / epsilon)


def moved_mesh(network: LinearNetwork, scale: float) -> Mesh:
    """Mesh over the network's box at whose nodes points moved by planar Laplace noise are counted.

    Parameters
    ----------
    network : LinearNetwork
    scale : float
        Of the noise, alpha / epsilon for persons with one point: a length on the map.
    """
    x0, y0, x1, y1 = around(network)
    least, most = MOVED_SIDES
    wanted = 1 + math.ceil(min(MOVED_SPACING * max(x1 - x0, y1 - y0) / scale, most))
    return trace_mesh(network, shape=box_shape(around(network), min(max(wanted, least), most)))


def moved_cells(network: LinearNetwork, scale: float) -> NetworkMesh:
    """Segments of the field behind points that were moved off the streets.

    None is longer than 0.02 extents, nor than the noise's scale or what makes some 3000 of them, where that is longer.
    """
    return network_mesh(
        network, min(STREET_SEGMENT * network.extent, max(scale / MOVED_SEGMENTS, network.length / MOST_SEGMENTS))
    )


def moved_street_lists(network: LinearNetwork) -> dict[str, Any]:
    """Settings of that field, by their names in `StreetInference`."""
    extents = {"ranges": MOVED_RANGES, "street_ranges": MOVED_STREET_RANGES, "detours": DETOURS}
    lengths: dict[str, Any] = {
        name: tuple(network.extent * each for each in shares) for name, shares in extents.items()
    }
    return lengths | {"street_sigmas": MOVED_STREET_SIGMAS}


def street_plane(network: LinearNetwork) -> tuple[int, int]:
    """Vertices along x and y of the planar part of a field along streets."""
    return box_shape(around(network), STREET_PLANE_SIDE)


def bandwidth(network: LinearNetwork, n: float) -> float:
    """Kernel bandwidth `0.35 extent n^(-1/5)`, where privacy does not ask for a larger one."""
    return float(0.35 * network.extent * n ** (-1 / 5))


def kernel_mesh(network: LinearNetwork, relation: CappedRelation) -> NetworkMesh:
    """Segments for a kernel's points and children, about as long as a move: the bandwidth grows with both lengths."""
    shortest = max(relation.reach, network.length / KERNEL_SEGMENTS)
    return network_mesh(network, min(shortest, FIELD_SEGMENT * network.extent))


def spaced_mesh(network: LinearNetwork, basis: str, spacing: float) -> Mesh:
    """Mesh of counts ("cells"), segments no longer than the spacing, or of masses ("tents") that far apart."""
    return network_mesh(network, spacing) if basis == "cells" else trace_mesh(network, spacing=spacing)


def mesh(
    network: LinearNetwork,
    basis: str,
    n: float,
    epsilon: float,
    relation: CappedRelation,
    *,
    scale: float | None = None,
) -> Mesh:
    """Mesh of counts ("cells") or masses ("tents"), the finest that holds enough points against the noise.

    `n / vertices >= k max(1, sqrt2 Delta / epsilon)` with k = 3 for tents and 4 for the segments of cells. With a
    posterior behind tents (`scale` given) k = 1, and a spacing of at least `0.13 scale`.
    """
    if basis == "cells":
        need = CELLS_HOLD * _against_noise(relation, epsilon, math.inf)
        return network_mesh(network, max(network.length * need / n, network.length / MOST_CELLS))
    return trace_mesh(network, shape=tents_shape(network, n, epsilon, relation, scale=scale))


def field_statistic_mesh(
    network: LinearNetwork, basis: str, n: float, epsilon: float, relation: CappedRelation
) -> Mesh:
    """Mesh of counts or masses for a field along streets: `street_cells`, or `mesh` with a posterior."""
    if basis == "cells":
        return street_cells(network, n, epsilon, relation)
    return mesh(network, basis, n, epsilon, relation, scale=length_scale(network, n))


def tents_shape(
    network: LinearNetwork, n: float, epsilon: float, relation: CappedRelation, *, scale: float | None = None
) -> tuple[int, int]:
    """Vertices of the finest tents along x and y; the condition is that of `mesh`."""
    bounds = around(network)
    courses = network_mesh(network, network.extent / STEPS)
    longest = max(bounds[2] - bounds[0], bounds[3] - bounds[1])
    hold = TENTS_HOLD if scale is None else POSTERIOR_HOLDS
    best = box_shape(bounds, 3)
    for m in range(4, MOST_TENTS + 1):
        shape = box_shape(bounds, m)
        hx, hy = (bounds[2] - bounds[0]) / (shape[0] - 1), (bounds[3] - bounds[1]) / (shape[1] - 1)
        need = hold * _against_noise(relation, epsilon, 2 * math.hypot(1 / hx, 1 / hy))
        # Across a straight street cells are thin whatever m is: what the field resolves is the spacing along it.
        coarse_enough = scale is None or longest / (m - 1) >= SPACING * scale * (1 - 1e-9)
        if coarse_enough and n / _touched(bounds, shape, courses.vertices) >= need:
            best = shape
    return best


def tents_size(network: LinearNetwork, m: int, relation: CappedRelation) -> tuple[float, float]:
    """Vertices near the network of tents with m along the longer side, and change of the masses when a point moves."""
    bounds = around(network)
    nx, ny = box_shape(bounds, m)
    hx, hy = (bounds[2] - bounds[0]) / (nx - 1), (bounds[3] - bounds[1]) / (ny - 1)
    courses = network_mesh(network, network.extent / STEPS)
    moved = _moved(relation, 2 * math.hypot(1 / hx, 1 / hy)) / relation.max_points_per_person
    return _touched(bounds, (nx, ny), courses.vertices), moved


def sided_mesh(network: LinearNetwork, m: int) -> Mesh:
    """Mesh of tents with m vertices along the longer side of the network's box."""
    return trace_mesh(network, shape=box_shape(around(network), m))


def _against_noise(relation: CappedRelation, epsilon: float, slope: float) -> float:
    """One point, or the standard deviation of the noise on masses with the given slope where that is larger."""
    return max(1.0, math.sqrt(2) * _moved(relation, slope) / epsilon)


def _moved(relation: CappedRelation, slope: float) -> float:
    """L1 sensitivity, in points, of masses with the given slope."""
    one = 1.0 if isinstance(relation, AddRemove) else min(2.0, slope * relation.reach)
    return relation.max_points_per_person * one


def _touched(bounds: tuple[float, float, float, float], shape: tuple[int, int], xy: Floats) -> int:
    """Number of vertices of the triangles in which coordinates (n, 2) lie."""
    nx, ny = shape
    elements = regular_grid(bounds, nx, ny, "triangle")[1]
    found = Finder(bounds, nx - 1, ny - 1, "triangle", np.arange(len(elements)))(xy)
    return len(np.unique(elements[found]))
