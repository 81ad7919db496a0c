"""Coordinate reference systems and places: bounds in another system, and whether one is made for a domain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpppsynth.core.crs import crs_label, known_system, lon_lat, remedy, utm_zone
from dpppsynth.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpppsynth.core.crs import CRSLike

# Degrees by which a place may lie outside the area that a CRS is made for: half a zone of UTM. National systems state
# the area of their whole country.
FAR = 3.0


def middle(bounds: Sequence[float]) -> tuple[float, float]:
    """Middle of bounds x0, y0, x1, y1."""
    x0, y0, x1, y1 = bounds
    return (x0 + x1) / 2, (y0 + y1) / 2


def bounds_in(crs: CRSLike, source: CRSLike, bounds: Sequence[float]) -> tuple[float, float, float, float]:
    """Bounds of a rectangle x0, y0, x1, y1 of one CRS in another."""
    from pyproj import Transformer

    way = Transformer.from_crs(known_system(source), known_system(crs), always_xy=True)
    x0, y0, x1, y1 = bounds
    return way.transform_bounds(x0, y0, x1, y1)


def degrees_outside(crs: CRSLike, at: tuple[float, float]) -> float:
    """Degrees by which a place lies outside the area that its CRS is made for: 0 inside, or where that is not known."""
    area, place = known_system(crs).area_of_use, lon_lat(crs, at)
    # Areas across the date line are left out.
    if area is None or area.west > area.east:
        return 0.0
    if place is None:
        return np.inf
    lon, lat = place
    return float(max(area.west - lon, lon - area.east, area.south - lat, lat - area.north, 0.0))


def require_made_for(crs: CRSLike, bounds: Sequence[float]) -> None:
    """Refuse a CRS that is made for another part of the world than a public domain with bounds in it; InputError."""
    if np.isfinite(bounds).all() and degrees_outside(crs, middle(bounds)) > FAR:
        msg = (
            f"to_crs: {crs_label(crs)} is made for another part of the world than this domain; "
            f"{remedy(utm_zone(crs, middle(bounds)))}"
        )
        raise InputError(msg)
