"""Coordinate reference systems: names, comparison, and refusal of those without lengths, such as degrees."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpppsynth.core.errors import CRSError, InputError, NoLengthsError
from dpppsynth.core.wording import mention

if TYPE_CHECKING:
    from pyproj import CRS

    CRSLike = str | int | CRS

# Names that stand in the database of PROJ, so that what a file calls itself is not among them.
CODE = re.compile(r"(EPSG|ESRI|IAU_\d+|IGNF|OGC):\w{1,12}", re.IGNORECASE)
NAMELESS = "a coordinate reference system without a code"
# Characters of a definition: PROJ takes minutes over longer ones.
MOST_CHARACTERS = 100_000
# Forms that make PROJ open files: JSON; in WKT its own texts and methods, and parameter files; and "+init=".
OPENS_FILES = re.compile(
    r'\{|(PARAMETERFILE|EXTENSION)\s*[\[(]|(METHOD|PROJECTION)\s*[\[(]\s*"\s*PROJ[ -]|\A(?![A-Z]+_?CR?S[\[(]).*=',
    re.IGNORECASE | re.DOTALL,
)


def remedy(zone: str | None = None) -> str:
    """Advice on coordinates that are no lengths, with the code of the UTM zone of the place where that is known."""
    if zone is None:
        return f"re-project first: {mention('to_crs')}, with the national grid or the UTM zone of the place"
    return f"re-project first: {mention('to_crs', repr(zone))}, the UTM zone here, or the national grid"


def same_crs(a: CRSLike | None, b: CRSLike | None) -> bool:
    """Tell whether two coordinate reference systems are the same; None equals None alone."""
    if a is None or b is None:
        return a is b
    return (isinstance(a, str) and a == b) or bool(known_system(a).equals(known_system(b), ignore_axis_order=True))


def projected_crs(crs: CRSLike, *, at: tuple[CRSLike, float, float] | None = None) -> str:
    """Name a CRS by authority code, or by WKT where it has none, after refusing one that is not planar.

    The UTM zone of a public place `at`, its CRS and coordinates, is part of the advice.

    Raises
    ------
    InputError
        The CRS is unknown, geographic (degrees), geocentric, vertical, or Web Mercator; or has neither a code nor a
        definition in plain WKT.
    """
    parsed = known_system(crs)

    def advice() -> str:
        return remedy(None if at is None else utm_zone(at[0], at[1:]))

    if parsed.is_geographic:
        msg = f"crs: distances need a projected CRS, and {_both_names(crs)} is in degrees; {advice()}"
        raise NoLengthsError(msg)
    if parsed.is_geocentric or len(parsed.axis_info) < 2:
        msg = f"crs: must be a map projection, and {_both_names(crs)} is not one; {advice()}"
        raise NoLengthsError(msg)
    if "Pseudo-Mercator" in parsed.name or "Pseudo Mercator" in parsed.name:
        msg = (
            f"crs: {crs_label(crs)} (Web Mercator) stretches distances, 1.6 times in London, so a privacy radius would "
            f"protect less than it says; {advice()}"
        )
        raise NoLengthsError(msg)
    name = _code(parsed) or _settled_wkt(parsed)
    if not is_plain(name):
        msg = f"crs: the projection, or the way to its datum, has a definition that files cannot state; {advice()}"
        raise CRSError(msg)
    return name


def known_crs(crs: CRSLike) -> str:
    """Name a CRS in which coordinates may be written, degrees among them, as `projected_crs` names one.

    Raises
    ------
    InputError
        The CRS is unknown, geocentric, vertical or without a definition in plain WKT.
    """
    parsed = known_system(crs)
    if not parsed.is_geographic:
        return projected_crs(crs)
    name = _code(parsed) or _settled_wkt(parsed)
    if len(parsed.axis_info) != 2 or not is_plain(name):
        msg = 'to_crs: degrees are longitudes and latitudes alone; name a system without heights, such as "EPSG:4326"'
        raise InputError(msg)
    return name


def is_in_degrees(crs: CRSLike) -> bool:
    """Whether coordinates are longitudes and latitudes."""
    return bool(known_system(crs).is_geographic)


def is_plain(name: str) -> bool:
    """Whether a CRS name from an untrusted document is safe to look up without opening a file."""
    return len(name) <= MOST_CHARACTERS and OPENS_FILES.search(name) is None


def horizontal_crs(crs: CRSLike) -> CRS:
    """The CRS of x and y alone, without heights and without a transformation to another datum."""
    parsed = known_system(crs)
    while parsed.is_bound and parsed.source_crs is not None:
        parsed = parsed.source_crs
    return horizontal_crs(parsed.sub_crs_list[0]) if parsed.is_compound else parsed


def unit_name(crs: CRSLike) -> str:
    """Name the unit of length: "metre", "foot", "US survey foot", ..."""
    return str(known_system(crs).axis_info[0].unit_name)


def metres_per_unit(crs: CRSLike) -> float:
    """Metres in the unit of length."""
    return float(known_system(crs).axis_info[0].unit_conversion_factor)


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
    except (KeyError, TypeError):
        name = ""
    if not is_plain(name) or _known(name) is None:
        # The value found is not shown: it comes from the file.
        example = json.dumps(crs_member("EPSG:27700"))
        msg = f"crs: the 'crs' member of a GeoJSON document must name a known CRS, and look like {example}"
        raise InputError(msg)
    return name


def reproject(xy: npt.NDArray[np.float64], source: CRSLike, target: CRSLike) -> npt.NDArray[np.float64]:
    """Move coordinates to another CRS (x before y in both); coordinates outside its range become infinite.

    Raises
    ------
    InputError
        No transformation of known accuracy joins the two.
    """
    from pyproj import Transformer
    from pyproj.exceptions import ProjError

    try:
        # A ballpark transformation ignores the datum and may be a hundred metres wrong without a word.
        way = Transformer.from_crs(source, target, always_xy=True, allow_ballpark=False)
    except ProjError:
        way = None
    if way is None:
        msg = f"to_crs: there is no accurate transformation from {crs_label(source)} to {crs_label(target)}; "
        msg += "re-project the input with a tool that knows its datum"
        raise InputError(msg)
    moved = way.transform(xy[:, 0], xy[:, 1])
    return np.column_stack(moved).reshape(-1, 2)


def utm_zone(crs: CRSLike, at: tuple[float, float]) -> str | None:
    """Code of the WGS 84 UTM zone at a public place with coordinates in a CRS; None where there is none.

    Examples
    --------
    >>> utm_zone("EPSG:4326", (13.4, 52.5)), utm_zone("EPSG:27700", (530_000, 180_000))
    ('EPSG:32633', 'EPSG:32630')
    """
    from pyproj.aoi import AreaOfInterest
    from pyproj.database import query_utm_crs_info

    place = lon_lat(crs, at)
    if place is None:
        return None
    lon, lat = place
    found = query_utm_crs_info(datum_name="WGS 84", area_of_interest=AreaOfInterest(lon, lat, lon, lat))
    return f"{found[0].auth_name}:{found[0].code}" if found else None


def lon_lat(crs: CRSLike, at: tuple[float, float]) -> tuple[float, float] | None:
    """Longitude and latitude of a place with coordinates in a CRS; None where it has none."""
    from pyproj import Transformer
    from pyproj.exceptions import ProjError

    try:
        lon, lat = Transformer.from_crs(known_system(crs), 4326, always_xy=True).transform(*at)
    except ProjError:
        return None
    return (float(lon), float(lat)) if abs(lon) <= 180 and abs(lat) <= 90 else None


def known_system(crs: CRSLike) -> CRS:
    """The CRS that is named; InputError for an unknown one."""
    if not isinstance(crs, Hashable):
        msg = f'crs: must be a string, a number or a pyproj.CRS; got {type(crs).__name__}. For example "EPSG:32630"'
        raise CRSError(msg)
    parsed = _known(crs)
    if parsed is None:
        msg = f'crs: unknown coordinate reference system {str(crs)[:80]!r}; give a code such as "EPSG:32630"'
        raise CRSError(msg)
    return parsed


@lru_cache(maxsize=64)
def _known(crs: CRSLike) -> CRS | None:
    """Parse a CRS; None when it is unknown, because the error of PROJ quotes all of it."""
    import pyproj

    try:
        return pyproj.CRS.from_user_input(crs)
    except (pyproj.exceptions.CRSError, TypeError, ValueError, OverflowError):
        return None


@lru_cache(maxsize=64)
def _code(crs: CRS) -> str | None:
    """Look the CRS up in the database, which takes a tenth of a second where it is not found."""
    authority = crs.to_authority(min_confidence=100)
    return ":".join(authority) if authority else None


def _settled_wkt(crs: CRS) -> str:
    """Write WKT that reads back as itself, which the first writing of a CRS given in another form may not do."""
    text = str(crs.to_wkt())
    for _ in range(3):
        again = _known(text)
        if again is None or str(again.to_wkt()) == text:
            break
        text = str(again.to_wkt())
    return text


def crs_label(crs: CRSLike) -> str:
    """Name a CRS for messages, by its code alone: a name may be whatever the maker of a sensitive file wrote."""
    if isinstance(crs, str) and CODE.fullmatch(crs):
        return crs
    return _code(known_system(crs)) or NAMELESS


def _both_names(crs: CRSLike) -> str:
    """Code, and the name that the database gives it."""
    label = crs_label(crs)
    return label if label == NAMELESS else f"{label} ({known_system(label).name})"
