"""Public shapes in another system; polygons of a window, with their common borders and the gaps between them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from dpppsynth.core.crs import reproject, same_crs
from dpppsynth.core.types import Floats

if TYPE_CHECKING:
    from dpppsynth.core.crs import CRSLike

# Vertices this close, relative to their size, are the same after re-projection.
ROUNDING = 1e-12


def polygonal(geometry: Any) -> Any:
    """The polygons of a GeometryCollection, as `shapely.make_valid` writes it, without lines and points."""
    if getattr(geometry, "geom_type", "") != "GeometryCollection":
        return geometry
    parts = [each for each in shapely.get_parts(geometry) if each.geom_type in ("Polygon", "MultiPolygon")]
    return shapely.union_all(parts) if parts else geometry


def in_system(shapes: Any, source: "CRSLike | None", target: "CRSLike | None") -> Any:
    """Shapes (n,) re-projected, where both coordinate systems are known and differ."""
    if source is None or target is None or same_crs(source, target):
        return shapes
    return shapely.transform(shapes, lambda xy: reproject(xy, source, target))


def reprojected(parts: list[Any], move: Callable[[Floats], Floats]) -> list[Any]:
    """Polygons with their vertices moved, whose union has no gaps along common borders.

    A vertex of one that lies within an edge of another leaves that edge when it moves, so their union moves too.
    Parts that were valid and are no more, by rounding, are repaired.
    """
    flat = [shapely.force_2d(each) for each in map(polygonal, parts)]
    valid = shapely.is_valid(flat)
    whole = [shapely.union_all(flat)] if valid.all() else []
    moved = [shapely.transform(each, move) for each in [*flat, *whole]]
    if not np.isfinite(shapely.get_coordinates(moved)).all():
        return moved
    moved = _welded(moved)
    kept = [
        shapely.make_valid(each, method="structure", keep_collapsed=False) if was and not each.is_valid else each
        for each, was in zip(moved, valid, strict=False)
    ]
    # Across 180 degrees a union in degrees may be none of what it was made from.
    return [*kept, *(each for each in moved[len(flat) :] if each.is_valid)]


def _welded(parts: list[Any]) -> list[Any]:
    """Polygons whose vertices are equal where they were equal to rounding."""
    import scipy

    places, number = np.unique(shapely.get_coordinates(parts), axis=0, return_inverse=True)
    near = scipy.spatial.cKDTree(places).query_pairs(ROUNDING * np.abs(places).max(), output_type="ndarray")
    links = scipy.sparse.coo_array((np.ones(len(near)), near.T), shape=(len(places), len(places)))
    _, label = scipy.sparse.csgraph.connected_components(links, directed=False)
    _, first = np.unique(label, return_index=True)
    return list(shapely.set_coordinates(np.array(parts, dtype=object), places[first[label]][number.ravel()]))


def near_parts(region: Any, reach: float) -> Floats:
    """(k,) distances of the pairs of parts that do not touch and are nearer to each other than `reach`."""
    gaps = shapely.distance(*_near_pairs(region, reach))
    return np.asarray(gaps[(gaps > 0) & (gaps < reach)], dtype=np.float64)


def _near_pairs(region: Any, reach: float) -> tuple[Any, Any]:
    """Two arrays of parts, pair by pair, no farther from each other than `reach`."""
    parts = shapely.get_parts(region)
    one, other = shapely.STRtree(parts).query(parts, predicate="dwithin", distance=reach)
    pairs = one < other
    return parts[one[pairs]], parts[other[pairs]]


def without_gaps(region: Any, width: float) -> Any:
    """Region in which gaps, slits and holes no wider than `width` are filled; nothing else changes.

    Parts that face each other with no more than their corners are joined by a bridge as wide as that.

    Examples
    --------
    >>> districts = shapely.union_all([shapely.box(0, 0, 1, 1), shapely.box(1.01, 0, 2, 1)])
    >>> without_gaps(districts, 0.02).geom_type
    'Polygon'
    """
    tiny = 10 * ROUNDING * float(np.abs(region.bounds).max())
    wide = shapely.snap(_grown(_grown(region, width / 2 + tiny), -width / 2 - tiny), region, tiny)
    # What rounding alone put beside the border is thinner than what is taken off here.
    filled = _grown(_grown(wide.difference(region), -tiny), 2 * tiny)
    return _bridged(shapely.union_all([region, shapely.intersection(filled, wide)]), width + 2 * tiny)


def _bridged(region: Any, width: float) -> Any:
    """Region with bridges between parts that do not touch and are no farther from each other than `width`."""
    before = shapely.get_num_geometries(region) + 1
    # A bridge may come near to a third part.
    while 1 < shapely.get_num_geometries(region) < before:
        before = shapely.get_num_geometries(region)
        one, other = _near_pairs(region, width)
        apart = shapely.distance(one, other) > 0
        lines = shapely.shortest_line(one[apart], other[apart])
        region = shapely.union_all([region, *shapely.buffer(lines, width / 2, cap_style="square")])
    return region


def _grown(region: Any, by: float) -> Any:
    return shapely.buffer(region, by, join_style="mitre")
