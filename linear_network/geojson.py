"""Networks as GeoJSON: one feature for each edge, with the numbers of its vertices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import shapely

from dpppsynth.core.crs import crs_from_member, crs_member, remedy
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network.skeleton import Floats, Ints, Skeleton, Streets, ends_of


def network_geojson(network: Streets) -> dict[str, Any]:
    """Describe a network as a FeatureCollection with a named CRS, as GDAL and QGIS read it."""
    features = [
        {
            "type": "Feature",
            "properties": {"from": int(a), "to": int(b)},
            "geometry": {"type": "LineString", "coordinates": shapely.get_coordinates(line).tolist()},
        }
        for (a, b), line in zip(network.edges, network.lines, strict=True)
    ]
    return {"type": "FeatureCollection", "crs": crs_member(network.crs), "features": features}


def read_geojson(data: Mapping[str, Any]) -> tuple[Skeleton, str | None]:
    """Inverse of `network_geojson`: the edges, and the CRS."""
    try:
        numbers = [[f["properties"]["from"], f["properties"]["to"]] for f in data["features"]]
        lines = np.array([shapely.LineString(f["geometry"]["coordinates"]) for f in data["features"]], dtype=object)
    except (LookupError, TypeError, ValueError, shapely.errors.ShapelyError):
        numbers, lines = [], np.empty(0, dtype=object)
    found = by_numbers(lines, numbers)
    if found is None:
        msg = (
            "geojson: needs LineStrings with the numbers of their vertices (from, to), counted from 0, each in one "
            "place; dpppsynth.io.read_network takes others."
        )
        raise InputError(msg)
    if "crs" not in data:
        msg = f"geojson: has no 'crs' member, and standard GeoJSON is in degrees. With read_network, {remedy()}"
        raise InputError(msg)
    return found, crs_from_member(data["crs"])


def by_numbers(lines: Any, numbers: Any) -> Skeleton | None:
    """Edges whose ends carry vertex numbers (E, 2); None unless these count from 0 and each has one place."""
    edges = _counted(numbers)
    if edges is None or len(edges) != len(lines) or shapely.is_empty(lines).any():
        return None
    ends = ends_of(shapely.force_2d(lines)) + 0.0
    vertices: Floats = np.empty((int(edges.max()) + 1, 2))
    vertices[edges] = ends
    return Skeleton(vertices, edges, lines) if np.array_equal(vertices[edges], ends) else None


def _counted(numbers: Any) -> Ints | None:
    try:
        values = np.array(numbers, dtype=float)
    except (TypeError, ValueError, OverflowError):
        return None
    used = np.unique(values)
    if values.ndim != 2 or values.shape[1] != 2 or not np.array_equal(used, np.arange(len(used))):
        return None
    return values.astype(np.int64)
