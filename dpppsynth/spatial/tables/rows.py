"""Validation of the rows of an input file, and their points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import NDArray

from dpppsynth.core.arguments import positive
from dpppsynth.core.crs import NAMELESS, crs_label, projected_crs, reproject, same_crs
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention
from dpppsynth.spatial.domains import LARGEST, Domain, Window
from dpppsynth.spatial.tables.table import Table, number

if TYPE_CHECKING:
    from dpppsynth.core.crs import CRSLike

# Largest count of one row, and of a file: more are a mistake in the column, and may not fit into memory.
LARGEST_COUNT = 2 * 10**7
# Rule of networks for points farther away, or nearer to an edge that was left out.
FAR = "too far from the network"
OUTSIDE, INFINITE = "outside window", "not finite"
# Rules that points break which have no place in the domain.
NO_PLACE = "missing coordinate"
PLACES = (OUTSIDE, FAR, INFINITE)


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Points (m, 2) of a table in the CRS of the domain, repeated by their counts, and the row (m,) of each.

    Of every rule that is broken somewhere, `broken` tells the rows (rows,) that break it; `rules` are all of them, in
    the order in which messages name them.
    """

    xy: NDArray[np.float64]
    row: NDArray[np.intp]
    broken: dict[str, NDArray[np.bool_]]
    rules: tuple[str, ...] = ()


def require_snap(domain: Domain, snap: Any) -> None:
    """Refuse a tolerance that is no distance, with an InputError."""
    if snap is None:
        return
    whose = "window" if isinstance(domain, Window) else "network"
    rule = f"be a positive distance in the {whose}'s unit ({domain.unit})"
    positive("snap", snap, rule=rule, most=LARGEST, remedy="for instance 15.0")


def examine_rows(
    table: Table,
    domain: Domain,
    *,
    count: str | None = None,
    to_crs: CRSLike | None = None,
    snap: float | None = None,
    skip_outside: bool = False,
    users: NDArray[Any] | None = None,
    unfit: Mapping[str, NDArray[np.bool_]] | None = None,
) -> Rows:
    """Apply the rules to every row.

    A row whose count is 0 stands for no point, so its location is not looked at. A point may be `snap` away from the
    domain at most, and without it must lie in a window, or on a network to rounding; with `skip_outside` others are
    left out. `users` (rows,) says whose point a row is, or is
    empty text where that is missing. `unfit` are rows (rows,) that break further rules, by their names. InputError
    where the coordinate reference systems do not fit, or the count column is missing.
    """
    source = fitting_crs(table, domain.crs, to_crs)
    n = len(table)
    counts, bad_count = _counts(table, count)
    xy, row, missing, not_point = _places(table, counts, counted=count is not None)
    blank = np.asarray(np.isnan(xy).any(axis=1), dtype=bool)
    xy = xy if source is None or to_crs is None else reproject(xy, source, to_crs)
    infinite = ~(np.abs(xy) <= LARGEST).all(axis=1) & ~blank
    outside = ~(blank | infinite)
    left = xy[outside]
    outside[outside] = ~(domain.contains(left) if snap is None else domain.within(left, float(snap)))
    if skip_outside:
        # What is too far away to be placed, or has no place in the system of the domain, is outside as well.
        kept = ~(outside | infinite)
        xy, row, blank, infinite, outside = xy[kept], row[kept], blank[kept], infinite[kept], outside[kept]
    garbled = {rule: mask & (counts > 0) for rule, mask in table.garbled.items()}
    unread = np.logical_or.reduce([np.zeros(n, dtype=bool), *garbled.values()])
    rules = {
        **garbled,
        NO_PLACE: (missing & (counts > 0) & ~unread) | (_rows_with(blank, row, n) & ~unread),
        "not a point": not_point,
        INFINITE: _rows_with(infinite, row, n),
        OUTSIDE if isinstance(domain, Window) else FAR: _rows_with(outside, row, n),
        "bad count": bad_count,
    } | ({} if users is None else {"missing user": (users == "") & (counts > 0)})
    rules |= {rule: mask & (counts > 0) for rule, mask in (unfit or {}).items()}
    broken = {rule: mask for rule, mask in rules.items() if mask.any()}
    repeats = np.where(bad_count, 0, counts)[row]
    if repeats.sum() > LARGEST_COUNT:
        msg = f"count: the rows stand for more than {LARGEST_COUNT:g} points together; check what the column counts"
        raise InputError(msg)
    return Rows(np.repeat(xy, repeats, axis=0), np.repeat(row, repeats), broken, tuple(rules))


def table_places(table: Table) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Coordinates (m, 2) of all points of a table, in its own system, and their rows (m,)."""
    return _places(table, np.ones(len(table), dtype=np.int64), counted=False)[:2]


def _places(
    table: Table, counts: NDArray[np.int64], *, counted: bool
) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.bool_], NDArray[np.bool_]]:
    """Coordinates (m, 2) of points and their rows (m,); rows without a place, and with something else (rows,)."""
    if table.xy is not None:
        none = np.zeros(len(table), dtype=bool)
        row = np.flatnonzero(counts)
        return table.xy if len(row) == len(table) else table.xy[row], row, none, none
    geometry = table.geometry.copy()
    geometry[counts == 0] = None
    missing = shapely.is_missing(geometry) | shapely.is_empty(geometry)
    kind = shapely.get_type_id(geometry)
    several = kind == shapely.GeometryType.MULTIPOINT
    # One count for several places is ambiguous.
    many = several & (shapely.get_num_geometries(geometry) > 1) & counted
    not_point = ~missing & (~(several | (kind == shapely.GeometryType.POINT)) | many)
    usable = np.flatnonzero(~missing & ~not_point)
    parts, at = geometry[usable], np.arange(len(usable))
    if several[usable].any():
        parts, at = shapely.get_parts(parts, return_index=True)
    xy = np.column_stack([shapely.get_x(parts), shapely.get_y(parts)]).reshape(-1, 2)
    return xy, usable[at], missing, not_point


def fitting_crs(table: Table, target: str | None, to_crs: CRSLike | None) -> CRSLike | None:
    """Check that the rows end in the CRS `target`; return the CRS to re-project from, or None when none is needed."""
    if to_crs is not None:
        return _source_crs(table, target, to_crs)
    if table.crs is None:
        return None
    if target is None:
        projected_crs(table.crs)
        label = crs_label(table.crs)
        code = "" if label == NAMELESS else repr(label)
        msg = f"crs: the points are in {label} but the domain has no CRS; give the domain one ({mention('crs', code)})"
        raise InputError(msg)
    if not same_crs(table.crs, target):
        label = crs_label(target)
        choice = mention("to_crs", "" if label == NAMELESS else f'"{label}"') + (
            " to the CRS of the domain" if label == NAMELESS else ""
        )
        msg = (
            f"crs: the points are in {crs_label(table.crs)} but the domain is in {label}; "
            f"set {choice} to re-project the points"
        )
        raise InputError(msg)
    return None


def _source_crs(table: Table, target: str | None, to_crs: CRSLike) -> CRSLike | None:
    wanted = projected_crs(to_crs)
    if target is None or not same_crs(wanted, target):
        has = "no CRS" if target is None else crs_label(target)
        msg = f"to_crs: must be the CRS of the domain, {has}; got {crs_label(wanted)}. Choose one of the two for both"
        raise InputError(msg)
    if table.crs is None:
        msg = f"to_crs: the input does not say which CRS it is in; name it with {mention('crs')}"
        raise InputError(msg)
    return None if same_crs(table.crs, wanted) else table.crs


def _counts(table: Table, count: str | None) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return how many points each row stands for (1 where the count is bad) and which counts are bad."""
    n = len(table)
    if count is None:
        return np.ones(n, dtype=np.int64), np.zeros(n, dtype=bool)
    cells = table.column(count, argument="count")
    plain = cells.dtype.kind in "biuf" and cells.ndim == 1
    values = np.array(cells if plain else [number(cell) for cell in cells], dtype=np.float64)
    good = (values >= 0) & (values <= LARGEST_COUNT) & (values == np.floor(values))
    return np.where(good, values, 1.0).astype(np.int64), ~good


def _rows_with(mask: NDArray[np.bool_], row: NDArray[np.intp], n: int) -> NDArray[np.bool_]:
    found = np.zeros(n, dtype=bool)
    found[row[mask]] = True
    return found
