"""Coordinate reference systems: naming, comparing and refusing them. Only map projections carry distances."""

from __future__ import annotations

import json
from collections.abc import Hashable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dpppsynth.errors import InputError

if TYPE_CHECKING:
    from pyproj import CRS

    CRSLike = str | int | CRS

REMEDY = 're-project first: to_crs= (on the command line --to-crs), for example "EPSG:27700"'


def same_crs(a: CRSLike | None, b: CRSLike | None) -> bool:
    """Tell whether two coordinate reference systems are the same; None equals None alone."""
    if a is None or b is None:
        return a is b
    return (isinstance(a, str) and a == b) or bool(_parse_crs(a).equals(_parse_crs(b), ignore_axis_order=True))


def projected_crs(crs: CRSLike) -> str:
    """Name a CRS by authority code, or by WKT where it has none, after refusing one that is not planar.

    Raises
    ------
    InputError
        The CRS is unknown, geographic (degrees), geocentric, vertical, or Web Mercator.
    """
    parsed = _parse_crs(crs)
    if parsed.is_geographic:
        msg = f"crs: distances need a projected CRS, and {_both_names(crs)} is in degrees; {REMEDY}"
        raise InputError(msg)
    if parsed.is_geocentric or len(parsed.axis_info) < 2:
        msg = f"crs: must be a map projection, and {_both_names(crs)} is not one; {REMEDY}"
        raise InputError(msg)
    if "Pseudo-Mercator" in parsed.name or "Pseudo Mercator" in parsed.name:
        msg = (
            f"crs: {crs_label(crs)} (Web Mercator) stretches distances, 1.6 times in London, so a privacy radius would "
            f"protect less than it says; {REMEDY}"
        )
        raise InputError(msg)
    authority = parsed.to_authority(min_confidence=100)
    return ":".join(authority) if authority else _settled_wkt(parsed)


def unit_name(crs: CRSLike) -> str:
    """Name the unit of length: "metre", "foot", "US survey foot", ..."""
    return str(_parse_crs(crs).axis_info[0].unit_name)


def crs_member(crs: str | None) -> dict[str, Any] | None:
    """Describe a CRS as the ``crs`` member of a GeoJSON file; None says that there is none."""
    if crs is None:
        return None
    authority, _, code = crs.partition(":")
    name = f"urn:ogc:def:crs:{authority}::{code}" if code.isalnum() else crs
    return {"type": "name", "properties": {"name": name}}


def crs_from_member(member: Any) -> str | None:
    """Read the ``crs`` member of a GeoJSON file."""
    if member is None:
        return None
    try:
        name = str(member["properties"]["name"])
        _parsed(name)
    except (KeyError, TypeError, InputError):
        # What stands there instead is not shown: it comes from the file.
        example = json.dumps(crs_member("EPSG:27700"))
        msg = f"crs: the 'crs' member of a GeoJSON document must name a known CRS, and look like {example}"
        raise InputError(msg) from None
    return name


def _parse_crs(crs: CRSLike) -> CRS:
    if not isinstance(crs, Hashable):
        msg = f'crs: must be a string, a number or a pyproj.CRS; got {type(crs).__name__}. For example "EPSG:27700"'
        raise InputError(msg)
    return _parsed(crs)


@lru_cache(maxsize=64)
def _parsed(crs: CRSLike) -> CRS:
    import pyproj

    try:
        return pyproj.CRS.from_user_input(crs)
    except (pyproj.exceptions.CRSError, TypeError, ValueError, OverflowError):
        msg = f'crs: unknown coordinate reference system {str(crs)[:80]!r}; give a code such as "EPSG:27700"'
        raise InputError(msg) from None


def _settled_wkt(crs: CRS) -> str:
    """Write WKT that reads back as itself, which the first writing of a CRS given in another form may not do."""
    text = str(crs.to_wkt())
    for _ in range(3):
        text, previous = str(_parsed(text).to_wkt()), text
        if text == previous:
            break
    return text


def crs_label(crs: CRSLike) -> str:
    """Name a CRS in a few words, for messages."""
    text = f"EPSG:{crs}" if isinstance(crs, int) else str(crs)
    return text if len(text) <= 24 else str(_parse_crs(crs).name)


def _both_names(crs: CRSLike) -> str:
    """Label and full name, unless they are the same."""
    label, name = crs_label(crs), str(_parse_crs(crs).name)
    return label if label == name else f"{label} ({name})"
