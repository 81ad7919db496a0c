"""Coordinate reference systems of a place: its UTM zone, and whether another system is made for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpppsynth.core.crs import crs_label, known_system, remedy
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


def utm_zone(crs: CRSLike, at: tuple[float, float]) -> str | None:
    """Code of the WGS 84 UTM zone at a public place with coordinates in a CRS; None where there is none.

    Examples
    --------
    >>> utm_zone("EPSG:4326", (13.4, 52.5)), utm_zone("EPSG:27700", (530_000, 180_000))
    ('EPSG:32633', 'EPSG:32630')
    """
    from pyproj.aoi import AreaOfInterest
    from pyproj.database import query_utm_crs_info

    place = degrees(crs, at)
    if place is None:
        return None
    lon, lat = place
    found = query_utm_crs_info(datum_name="WGS 84", area_of_interest=AreaOfInterest(lon, lat, lon, lat))
    return f"{found[0].auth_name}:{found[0].code}" if found else None


def degrees(crs: CRSLike, at: tuple[float, float]) -> tuple[float, float] | None:
    """Longitude and latitude of a place with coordinates in a CRS; None where it has none."""
    from pyproj import Transformer
    from pyproj.exceptions import ProjError

    try:
        lon, lat = Transformer.from_crs(known_system(crs), 4326, always_xy=True).transform(*at)
    except ProjError:
        return None
    return (float(lon), float(lat)) if abs(lon) <= 180 and abs(lat) <= 90 else None


def bounds_in(crs: CRSLike, source: CRSLike, bounds: Sequence[float]) -> tuple[float, float, float, float]:
    """Bounds of a rectangle x0, y0, x1, y1 of one CRS in another."""
    from pyproj import Transformer

    way = Transformer.from_crs(known_system(source), known_system(crs), always_xy=True)
    x0, y0, x1, y1 = bounds
    return way.transform_bounds(x0, y0, x1, y1)


def degrees_outside(crs: CRSLike, at: tuple[float, float]) -> float:
    """Degrees by which a place lies outside the area that its CRS is made for: 0 inside, or where that is not known."""
    area, place = known_system(crs).area_of_use, degrees(crs, at)
    # Areas across the date line are left out.
    if area is None or area.west > area.east:
        return 0.0
    if place is None:
        return np.inf
    lon, lat = place
    return float(max(area.west - lon, lon - area.east, area.south - lat, lat - area.north, 0.0))


def require_made_for(crs: CRSLike, bounds: Sequence[float]) -> None:
    """Refuse a CRS that is made for another part of the world than a public domain with bounds in it.

    Raises
    ------
    InputError
    """
    if np.isfinite(bounds).all() and degrees_outside(crs, middle(bounds)) > FAR:
        msg = (
            f"to_crs: {crs_label(crs)} is made for another part of the world than this domain; "
            f"{remedy(utm_zone(crs, middle(bounds)))}"
        )
        raise InputError(msg)
