"""Default settings on windows, tuned on four simulated intensities and a Soho-like one (docs/theory/defaults.md)."""

import math

import numpy as np

from dpppsynth.models.recipes import triangles_within
from dpppsynth.models.regular_meshes import refine, regular_squares, regular_triangulation
from dpppsynth.privacy.relations import AddRemove, AlphaNeighbours, CappedRelation
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Mesh

# Length scales the posterior averages over, in units of sqrt(area).
LENGTH_SCALES = (0.1, 0.15, 0.2, 0.3, 0.45)
# Vertices or cells to a side, at most.
MOST_VERTICES = 200
# Vertices along the longer side of a drawn field's mesh, and in Kim & Lim's experiments.
DRAW_SIDE, KIM_LIM_SIDE = 21, 11
# Standard deviation of a dense field fitted to a private statistic (log scale).
FITTED_SIGMA = 2.0
# Spacing of the field's mesh in units of sqrt(area), and vertices per side beyond which tents are not refined.
FIELD_SPACING, FIELD_SIDE = 0.06, 31
# Tents behind a Matern field, with an expected n: at most `MATERN_TENTS n^MATERN_POWER`, each holding at least one
# point and `MATERN_HOLDS` standard deviations of its noise, or `MATERN_HOLDS_NEAR` where that grows as tents are finer;
# cells of the field's mesh along the side of a tent.
MATERN_TENTS, MATERN_POWER, MATERN_HOLDS, MATERN_HOLDS_NEAR, MATERN_REFINED = 250.0, 0.3, 1.5, 2.0, 3
# Of cells with a Matern field behind them: standard deviations of the noise that each holds, their number at most,
# `CELLS_MOST n^0.4` and not above `CELLS_LIMIT`, and parts of a cell's side.
CELLS_HOLD, CELLS_MOST, CELLS_LIMIT, CELLS_REFINED = 1.0, 90.0, 11_000, 2
# Vertices of the field's mesh up to which it may be of smoothness 3, and at most, about. Its ranges: the shortest in
# spacings of the tents, the longest in units of sqrt(area), and the ratio of one to the next.
SMOOTH_VERTICES, MATERN_VERTICES = 2500, 45_000
SHORTEST_RANGE, LONGEST_RANGE, RANGE_RATIO = 2.0, 1.6, 1.7
# Values at most of a field of several kinds of points, types times instants: they cost less than unknowns.
MARKED_VALUES = 90_000
# Vertices over the box of a window that fills little of it, at most: the field lives on all of it.
MATERN_BOX = 100_000
# Of counts of moved points: nodes in a scale of the noise, 1 / rate; nodes along the longer side at least and at most,
# and all of them at most. Standard deviations of the field behind them, its shortest range, in scales and in spacings,
# and ranges at most.
MOVED_SPACING, MOVED_SIDES, MOVED_NODES, MOVED_SIGMAS = 3.0, (32, 640), 256**2, (1.0, 1.5, 2.5, 4.0, 6.0)
MOVED_SCALES, MOVED_SPACINGS, MOVED_RANGES = 1.0, 2.0, 8
# Standard deviations of details of such a field, of an eighth of its range.
MOVED_DETAILS = (0.0, 0.5, 1.0, 2.0)
# Points in a square of the noise's scale, on average, up to which moved points tell more than tents; a smaller limit
# where there are fewer points than a thousand in all, as tents then have a dense field behind them.
MOVED_POINTS, MANY, MOVED_FEW = 0.7, 1000, 0.1
# Smaller standard deviations of a field beside a population: risk varies less than numbers of points do.
RISK_SIGMAS = (1.0, 0.5, 0.25)


def length_scale(window: Window, n: float) -> float:
    """Length scale that sizes the mesh: `sqrt|S| clip(0.35 (n / 100)^(-1/8), 0.1, 0.5)`."""
    return float(window.extent * np.clip(0.35 * (n / 100) ** (-1 / 8), 0.1, 0.5))


def length_scales(window: Window) -> tuple[float, ...]:
    """Scales that a posterior averages over where none is given."""
    return tuple(share * window.extent for share in LENGTH_SCALES)


def draw_mesh(window: Window) -> Mesh:
    """Mesh of a field that the budget is spent on."""
    return regular_triangulation(window, shape=shape(window, DRAW_SIDE))


smooth_mesh = draw_mesh


def kim_lim_mesh(window: Window) -> Mesh:
    """Mesh of a drawn field in Kim & Lim's experiments."""
    return regular_triangulation(window, shape=shape(window, KIM_LIM_SIDE))


def fine_mesh(window: Window) -> Mesh:
    """Mesh finer than what any mechanism resolves: for surrogate truths."""
    return regular_triangulation(window, shape=shape(window, FIELD_SIDE))


def spaced_mesh(window: Window, basis: str, spacing: float) -> Mesh:
    """Mesh of counts ("cells") or masses ("tents") with the given spacing."""
    return (regular_squares if basis == "cells" else regular_triangulation)(window, spacing=spacing)


def mesh(
    window: Window, basis: str, n: float, epsilon: float, relation: CappedRelation, *, scale: float | None = None
) -> Mesh:
    """Mesh of counts ("cells") or masses ("tents") by `cells_shape` or `tents_shape`."""
    if basis == "cells":
        return regular_squares(window, shape=cells_shape(window, n, epsilon, relation))
    return regular_triangulation(window, shape=tents_shape(window, n, epsilon, relation, scale=scale))


def tents_shape(
    window: Window, n: float, epsilon: float, relation: CappedRelation, *, scale: float | None = None
) -> tuple[int, int]:
    """Finest mesh whose vertices hold enough points against the noise.

    With a posterior behind it (`scale`, the field's length scale, given): spacing at least `0.55 scale` and
    `n / vertices >= 2 max(1, sqrt2 Delta / epsilon)`. Without: `n / vertices >= max(1, 2 sqrt2 Delta / epsilon)`.

    Returns
    -------
    (int, int)
        Vertices along x and y, at least three along the longer side.
    """
    best = shape(window, 3)
    for m in range(4, MOST_VERTICES + 1):
        candidate = shape(window, m)
        side, delta, vertices = _geometry(window, candidate, relation)
        noise = math.sqrt(2) * float(delta) / epsilon
        need = 2 * max(0.5 if scale is None else 1.0, noise)
        fine_enough = scale is None or side >= 0.55 * scale * (1 - 1e-9)
        if n / vertices >= need and fine_enough:
            best = candidate
    return best


def matern_tents_shape(window: Window, n: float, epsilon: float, relation: CappedRelation) -> tuple[int, int]:
    """Finest mesh of tents from which a Matern field is inferred: at most `250 n^0.3` vertices.

    Each holds at least `max(1, c sqrt2 Delta / epsilon)` points, c = 1.5, or 2 under `AlphaNeighbours`.
    The field, finer than the tents, sees within them.

    Returns
    -------
    (int, int)
        Vertices along x and y, at least three along the longer side.
    """
    best = shape(window, 3)
    holds = MATERN_HOLDS_NEAR if isinstance(relation, AlphaNeighbours) else MATERN_HOLDS
    for m in range(4, MOST_VERTICES + 1):
        candidate = shape(window, m)
        _, delta, vertices = _geometry(window, candidate, relation)
        need = max(1.0, holds * math.sqrt(2) * delta / epsilon)
        if vertices <= MATERN_TENTS * n**MATERN_POWER and n / vertices >= need:
            best = candidate
    return best


def tents_size(window: Window, m: int, relation: CappedRelation) -> tuple[float, float]:
    """Vertices in the window of tents with m along the longer side, and change of the masses when a point moves."""
    _, delta, vertices = _geometry(window, shape(window, m), relation)
    return vertices, delta / relation.max_points_per_person


def sided_mesh(window: Window, m: int) -> Mesh:
    """Mesh of tents with m vertices along the longer side."""
    return regular_triangulation(window, shape=shape(window, m))


def matern_ranges(tents: Mesh) -> tuple[float, ...]:
    """Ranges of a Matern field inferred from tents, from twice their spacing to 1.6 sqrt(area)."""
    longest = LONGEST_RANGE * tents.domain.extent
    shortest = min(SHORTEST_RANGE * _spacing(tents), longest)
    count = 1 + math.floor(math.log(longest / shortest) / math.log(RANGE_RATIO))
    return tuple(shortest * RANGE_RATIO**k for k in range(count))


def moved_mesh(window: Window, scale: float) -> Mesh:
    """Mesh at whose vertices points moved by planar Laplace noise are counted.

    Nodes lie at most a third of the noise's scale apart, but there are no more than 65 536 of them over the window's
    box, and 32 to 640 along its longer side: 256 of a square.

    Parameters
    ----------
    window : Window
    scale : float
        Of the noise, alpha / epsilon for persons with one point: a length on the map.
    """
    x0, y0, x1, y1 = window.bounds
    short, long = sorted((x1 - x0, y1 - y0))
    least, most = MOVED_SIDES
    most = math.floor(min(most, math.sqrt(MOVED_NODES * long / short)))
    wanted = 1 + math.ceil(min(MOVED_SPACING * long / scale, most))
    return regular_triangulation(window, shape=shape(window, min(max(wanted, least), most)))


def moved_points(_window: Window, n: float) -> float:
    """Points in a square of the noise's scale, on average, up to which they are moved."""
    return MOVED_POINTS if n >= MANY else MOVED_FEW


def unmoved(_window: Window) -> str:
    """Reason why points are not moved, however short the noise: none in windows."""
    return ""


def moved_ranges(counts: Mesh, scale: float) -> tuple[float, ...]:
    """Ranges of a field inferred from moved points, from the noise's scale, or two spacings, to 1.6 sqrt(area).

    They are 8 at most, each at least twice the one before.
    """
    longest = LONGEST_RANGE * counts.domain.extent
    shortest = min(max(MOVED_SCALES * scale, MOVED_SPACINGS * _spacing(counts)), longest)
    count = min(MOVED_RANGES, 1 + math.floor(math.log2(longest / shortest)))
    return tuple(np.geomspace(shortest, longest, count).tolist())


def cells_shape(
    window: Window,
    n: float,
    epsilon: float,
    relation: CappedRelation,
    *,
    holds: float = 2.0,
    most: float = math.inf,
) -> tuple[int, int]:
    """Finest grid of at most `most` cells with `n / cells >= max(1, holds sqrt2 Delta / epsilon)`.

    Returns
    -------
    (int, int)
        Vertices along x and y.
    """
    delta = relation.max_points_per_person * (1 if isinstance(relation, AddRemove) else 2)
    best = shape(window, 2)
    for m in range(3, MOST_VERTICES + 1):
        nx, ny = shape(window, m)
        cells = (nx - 1) * (ny - 1) * filled(window)
        if cells <= most and n / cells >= max(1.0, holds * math.sqrt(2) * delta / epsilon):
            best = (nx, ny)
    return best


def field_statistic_mesh(window: Window, basis: str, n: float, epsilon: float, relation: CappedRelation) -> Mesh:
    """Mesh of counts ("cells") or masses ("tents") from which a Matern field is inferred.

    Tents are those of `matern_tents_shape`; cells the finest with `n / cells >= max(1, sqrt2 Delta / epsilon)`, at most
    `90 n^0.4` and 11 000.
    """
    if basis == "cells":
        most = min(CELLS_MOST * n**0.4, CELLS_LIMIT)
        return regular_squares(window, shape=cells_shape(window, n, epsilon, relation, holds=CELLS_HOLD, most=most))
    return regular_triangulation(window, shape=matern_tents_shape(window, n, epsilon, relation))


def bandwidth(window: Window, n: float) -> float:
    """Kernel bandwidth `0.1 sqrt|S| n^(-1/6)`, where privacy does not ask for a larger one."""
    return float(0.1 * window.extent * n ** (-1 / 6))


def field_mesh(tents: Mesh) -> Mesh:
    """Mesh of the field: the tents' regular mesh refined to `0.06 sqrt|S|`, so interpolation does not limit the fit."""
    if tents.recipe["builder"] != "regular":
        return tents
    longest = max(tents.recipe["shape"])
    x0, y0, x1, y1 = tents.domain.bounds
    side = max(x1 - x0, y1 - y0) / (longest - 1)
    wanted = int(np.ceil(side / (FIELD_SPACING * tents.domain.extent)))
    return refine(tents, max(1, min(wanted, (FIELD_SIDE - 1) // (longest - 1))))


def matern_smoothness(mesh: Mesh) -> tuple[float, ...]:
    """Smoothness that a Matern field averages over: on fine meshes only the rougher, whose factors are smaller."""
    return (1.0, 3.0) if len(mesh.vertices) <= SMOOTH_VERTICES else (1.0,)


def matern_mesh(tents: Mesh) -> Mesh:
    """Mesh of a Matern field inferred from tents: their regular mesh, refined by `times_finer`."""
    return refine(tents, times_finer(tents)) if tents.recipe["builder"] == "regular" else tents


def times_finer(tents: Mesh, kinds: int = 1) -> int:
    """Cells of a field's mesh along the side of a tent of a regular mesh: 3.

    Fewer where it would have more than `MATERN_VERTICES`, or `MATERN_BOX` over the window's box. Of several kinds of
    points, which share a field, all have `MARKED_VALUES` together.
    """
    most = MATERN_VERTICES if kinds == 1 else MARKED_VALUES // kinds
    allowed = min(most // len(tents.vertices), MATERN_BOX // math.prod(tents.recipe["shape"]))
    return max(1, min(MATERN_REFINED, math.isqrt(allowed)))


def matern_cells_mesh(cells: Mesh) -> Mesh:
    """Mesh of a Matern field inferred from counts: triangles, of which each cell has a vertex of its own.

    So it is with squares cut 2 times, and with triangles cut 3 times. Regular cells are not cut where that would make
    more than `MATERN_BOX` vertices over the window's box.
    """
    if cells.recipe["builder"] != "regular":
        return triangles_within(cells)
    parts = CELLS_REFINED if cells.kind == "square" else MATERN_REFINED
    return triangles_within(cells, max(1, min(parts, math.isqrt(MATERN_BOX // math.prod(cells.recipe["shape"])))))


def shape(window: Window, m: int) -> tuple[int, int]:
    """Give m vertices along the longer side and as nearly square cells as fit along the shorter."""
    return box_shape(window.bounds, m)


def box_shape(bounds: tuple[float, float, float, float], m: int) -> tuple[int, int]:
    """Vertices along x and y for a box (x0, y0, x1, y1), as in `shape`."""
    x0, y0, x1, y1 = bounds
    width, height = x1 - x0, y1 - y0
    short = max(2, round(min(width, height) / max(width, height) * (m - 1)) + 1)
    return (m, short) if width >= height else (short, m)


def _spacing(mesh: Mesh) -> float:
    """Side of a regular mesh's cells; of other elements that of squares as large as they, or as pairs of triangles."""
    if mesh.recipe["builder"] != "regular":
        return mesh.domain.extent * math.sqrt((2 if mesh.kind == "triangle" else 1) / len(mesh.elements))
    x0, y0, x1, y1 = mesh.domain.bounds
    return float(max(x1 - x0, y1 - y0) / (max(mesh.recipe["shape"]) - 1))


def _geometry(window: Window, shape: tuple[int, int], relation: CappedRelation) -> tuple[float, float, float]:
    """Shorter side of a cell, sensitivity of the tents in points, expected number of vertices in the window."""
    x0, y0, x1, y1 = window.bounds
    hx, hy = (x1 - x0) / (shape[0] - 1), (y1 - y0) / (shape[1] - 1)
    altitude = hx * hy / np.hypot(hx, hy)
    moved = 1.0 if isinstance(relation, AddRemove) else min(2.0, 2 * relation.reach / altitude)
    return min(hx, hy), relation.max_points_per_person * moved, shape[0] * shape[1] * filled(window)


def filled(window: Window) -> float:
    """Share of the bounding box that the window fills."""
    x0, y0, x1, y1 = window.bounds
    return window.area / ((x1 - x0) * (y1 - y0))
