"""Scale factors of map projections: ratios of lengths on the map to true lengths.

True lengths are those on the ellipsoid of the coordinate reference system. A path of true length d is at most k d long
on the map, k the largest scale factor along it in any direction, so a radius of k d on the map protects d on the ground
(docs/theory/scale.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import shapely
from numpy.typing import NDArray

from dpppsynth.core.crs import crs_label, horizontal_crs, utm_zone
from dpppsynth.core.crs import remedy as reprojection
from dpppsynth.core.errors import InputError
from dpppsynth.core.local_crs import middle
from dpppsynth.core.types import Floats

if TYPE_CHECKING:
    from pyproj import CRS, Geod, Transformer

Factors = Callable[[Floats], tuple[Floats, Floats]]

# Lengths on a map may differ from true ones by this share; then the radius would be no longer the one meant.
TOLERANCE = 0.05
# Factors are rounded up to whole multiples of 1 / STEPS, which covers the error of differences along a geodesic.
STEPS = 1_000_000
# Half the length of the geodesics along which factors are measured, in radii of the ellipsoid: 64 m on earth. Curvature
# then costs 1e-10, and rounding of coordinates as much.
STEP = 1e-5
# Two-way conversions that miss by more than this share of a step left the projection's range.
MISSED = 0.1
# Cells along each side of the bounding box, how often those that decide are halved, and how many these may be.
CELLS, ROUNDS, MOST_CELLS = 32, 16, 2048
# Halving ends once the largest factor is known this well, or is small enough to make no difference.
KNOWN = 1e-6
# The observed bend of the factors between neighbouring cells is taken this many times.
SAFETY = 4.0


class Scale(NamedTuple):
    """Smallest and largest length on the map of one unit of true length, in any direction and anywhere in a domain."""

    smallest: float
    largest: float


def scale_factor(geometry: Any, crs: str | None) -> float:
    """Largest length on the map of one unit of true length in a region, at least 1; 1 on a plane without a projection.

    Where all factors are below 1 a smaller radius on the map would do; the larger one is kept.

    Raises
    ------
    InputError
        Lengths on the map differ from true ones by more than a twentieth, or the region leaves the projection's range.
    """
    scale = lengths_on_map(geometry, crs)
    if not _is_true(scale):
        order = "With x and y exchanged they would fit: are they in the right order? " * _fits_exchanged(geometry, crs)
        msg = (
            f"crs: lengths on the map of {crs_label(crs or '')} are {scale.smallest:.4g} to {scale.largest:.4g} times "
            "true lengths in this domain, so a privacy radius on it would not be the one on the ground; 5 % is the "
            f"most. {order}{remedy(geometry, crs)}"
        )
        raise InputError(msg)
    return max(1.0, scale.largest)


def _is_true(scale: Scale) -> bool:
    return scale.largest <= 1 + TOLERANCE and scale.smallest >= 1 - TOLERANCE


def _fits_exchanged(geometry: Any, crs: str | None) -> bool:
    """Whether lengths were true if x and y were exchanged."""
    exchanged = shapely.transform(geometry, lambda xy: xy[:, ::-1])
    try:
        return _is_true(lengths_on_map(exchanged, crs))
    except InputError:
        return False


def is_plane(crs: str) -> bool:
    """Whether a CRS is a local plane, such as an engineering system, without a projection and scale factors."""
    return horizontal_crs(crs).geodetic_crs is None


def lengths_on_map(geometry: Any, crs: str | None) -> Scale:
    """Scale factors in a region: bounds that hold everywhere in it, border included, rounded outwards.

    Raises
    ------
    InputError
        The region leaves the projection's range, or the projection cannot be computed.
    """
    return Scale(1.0, 1.0) if crs is None else _lengths(shapely.to_wkb(geometry), crs)


@lru_cache(maxsize=32)
def _lengths(wkb: bytes, crs: str) -> Scale:
    factors, geometry = _factors(crs), shapely.from_wkb(wkb)
    if factors is None:
        return Scale(1.0, 1.0)
    measured = _remembered(factors)
    largest = supremum(lambda xy: measured(xy)[1], geometry, 1 - KNOWN)
    smallest = -supremum(lambda xy: -measured(xy)[0], geometry, TOLERANCE - 1)
    if not 0 < smallest <= largest < math.inf:
        msg = (
            f"crs: the domain lies partly outside the range of the projection of {crs_label(crs)}, where coordinates "
            f"stand for no place; correct the coordinates, or {reprojection()}"
        )
        raise InputError(msg)
    return Scale(math.floor(smallest * STEPS) / STEPS, math.ceil(largest * STEPS) / STEPS)


def _remembered(factors: Factors) -> Factors:
    """Scale factors in a region, cached by its cells: both extremes begin with the same ones."""
    known: dict[bytes, tuple[Floats, Floats]] = {}

    def measured(xy: Floats) -> tuple[Floats, Floats]:
        key = xy.tobytes()
        if key not in known:
            known[key] = factors(xy)
        return known[key]

    return measured


def supremum(values: Callable[[Floats], Floats], geometry: Any, enough: float) -> float:
    """Upper bound on a function over a geometry: about `KNOWN` above its supremum, or any bound of at most `enough`.

    In a cell, a function that bends down by at most b along its diagonal exceeds the largest value at its corners by
    b / 8 at most (docs/theory/scale.md). The cells that meet the geometry cover it; those that decide are halved.
    Infinite where a value is not finite.
    """
    x0, y0, x1, y1 = geometry.bounds
    # A street along an axis has a box without height.
    pad = 1e-6 * max(x1 - x0, y1 - y0)
    low = np.array([x0 - pad, y0 - pad])
    side = (np.array([x1 + pad, y1 + pad]) - low) / CELLS
    meets = _meeting(geometry)
    cells = _those(meets, low, side, np.argwhere(np.ones((CELLS, CELLS), dtype=bool)))
    corners = _at_corners(values, low, side, cells)
    bulge, settled = SAFETY * _bend(corners, cells) / 8, -math.inf
    for _ in range(ROUNDS):
        top = corners.max(axis=(1, 2)) + bulge
        largest, least = float(top.max()), float(corners.min(axis=(1, 2)).max()) - bulge
        if not math.isfinite(largest) or largest <= enough or largest - least <= KNOWN or len(cells) > MOST_CELLS:
            break
        # Cells that are left out count by their own bound.
        settled = max(settled, float(np.max(top, initial=-math.inf, where=top < least)))
        side, bulge = side / 2, bulge / 4
        quarters = 2 * cells[top >= least][:, None] + np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
        cells = _those(meets, low, side, quarters.reshape(-1, 2))
        corners = _at_corners(values, low, side, cells)
    return max(largest, settled)


def _meeting(geometry: Any) -> Callable[[Any], NDArray[np.bool_]]:
    """Tell which boxes meet a geometry: areas by themselves, lines by an index of their straight pieces."""
    if shapely.get_dimensions(geometry) == 2:
        shapely.prepare(geometry)
        return partial(shapely.intersects, geometry)
    xy, line = shapely.get_coordinates(shapely.get_parts(geometry), return_index=True)
    joined = line[1:] == line[:-1]
    tree = shapely.STRtree(shapely.linestrings(np.stack([xy[:-1][joined], xy[1:][joined]], axis=1)))

    def meets(boxes: Any) -> NDArray[np.bool_]:
        found = np.zeros(len(boxes), dtype=bool)
        found[tree.query(boxes, predicate="intersects")[0]] = True
        return found

    return meets


def _those(meets: Any, low: Floats, side: Floats, cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """The cells (m, 2), numbered along both axes, that meet the geometry."""
    first = low + side * cells
    return np.asarray(cells[meets(shapely.box(*first.T, *(first + side).T))])


def _at_corners(values: Callable[[Floats], Floats], low: Floats, side: Floats, cells: NDArray[np.int64]) -> Floats:
    """(m, 2, 2) values at the corners of cells; each corner is computed once."""
    around = cells[:, None, None] + np.stack(np.meshgrid([0, 1], [0, 1], indexing="ij"), axis=-1)
    corner, where = np.unique(around.reshape(-1, 2), axis=0, return_inverse=True)
    found = values(low + side * corner)
    return np.where(np.isfinite(found), found, np.inf)[where.reshape(around.shape[:-1])]


def _bend(corners: Floats, cells: NDArray[np.int64]) -> float:
    """Largest second difference between neighbouring cells, over one cell's diagonal."""
    grid = np.full((CELLS + 1, CELLS + 1), np.nan)
    for i in (0, 1):
        for j in (0, 1):
            grid[cells[:, 0] + i, cells[:, 1] + j] = np.where(np.isinf(corners[:, i, j]), np.nan, corners[:, i, j])
    along = max(_largest(np.diff(grid, 2, axis=axis)) for axis in (0, 1))
    return 2 * (along + _largest(np.diff(np.diff(grid, axis=0), axis=1)))


def _largest(differences: Floats) -> float:
    return float(np.max(np.abs(differences[np.isfinite(differences)]), initial=0.0))


def _factors(crs: str) -> Factors | None:
    """Smallest and largest scale factor at places on the map (n, 2); None where the CRS is a plane of its own."""
    return None if is_plane(crs) else partial(_measured, *_projection(horizontal_crs(crs), crs))


def _projection(crs: CRS, name: str) -> tuple[Transformer, Geod, float, float]:
    """Projection, ellipsoid, unit of the map in metres, and unit of geographic coordinates in degrees."""
    from pyproj import Transformer
    from pyproj.exceptions import ProjError

    below: Any = crs.geodetic_crs
    geod: Any = crs.get_geod()
    try:
        forward = Transformer.from_crs(below, crs, always_xy=True)
    except ProjError:
        msg = f"crs: PROJ cannot compute the projection of {crs_label(name)}; {reprojection()}"
        raise InputError(msg) from None
    turn = math.degrees(below.axis_info[0].unit_conversion_factor)
    return forward, geod, crs.axis_info[0].unit_conversion_factor, turn


def _measured(forward: Transformer, geod: Geod, unit: float, turn: float, xy: Floats) -> tuple[Floats, Floats]:
    """Factors from the map lengths of short geodesics to the east and north; not a number outside the range."""
    lon, lat = forward.transform(xy[:, 0], xy[:, 1], direction="INVERSE")
    step = STEP * geod.a
    back = np.column_stack(forward.transform(lon, lat))
    valid = np.isfinite(lon) & np.isfinite(lat) & (np.hypot(*((back - xy) * unit).T) <= MISSED * step)
    lon, lat = np.where(valid, lon, 0.0) * turn, np.where(valid, lat, 0.0) * turn
    jacobian = np.stack([_along(forward, geod, lon, lat, turn, azimuth) for azimuth in (90.0, 0.0)], axis=-1)
    jacobian *= unit / (2 * step)
    valid &= np.isfinite(jacobian).all(axis=(1, 2))
    singular = np.linalg.svd(np.where(valid[:, None, None], jacobian, 1.0), compute_uv=False)
    return np.where(valid, singular[:, 1], np.nan), np.where(valid, singular[:, 0], np.nan)


def _along(forward: Transformer, geod: Geod, lon: Floats, lat: Floats, turn: float, azimuth: float) -> Floats:
    """(n, 2) from one end on the map to the other of geodesics of two steps about places, in one direction."""
    at, step = np.full(len(lon), azimuth), STEP * geod.a
    ends = [geod.fwd(lon, lat, at, np.full(len(lon), sign * step))[:2] for sign in (-1, 1)]
    start, end = (np.column_stack(forward.transform(x / turn, y / turn)) for x, y in ends)
    return np.asarray(end - start)


def remedy(geometry: Any, crs: str | None) -> str:
    """Advice to re-project, with the zone of UTM that holds the middle of a region where there is one."""
    zone = None if crs is None else utm_zone(horizontal_crs(crs), middle(geometry.bounds))
    advice = reprojection(zone)
    return advice[0].upper() + advice[1:]
