"""Networks from layers of lines: the rows of a file or of a GeoDataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from dpppsynth.core.crs import crs_label, projected_crs, reproject, same_crs, unit_name
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention, named
from dpppsynth.linear_network.build import line_parts, skeleton_of_lines
from dpppsynth.linear_network.geojson import by_numbers
from dpppsynth.linear_network.overlaps import noting_overlaps
from dpppsynth.linear_network.skeleton import Skeleton
from dpppsynth.spatial.tables.frames import from_geodataframe
from dpppsynth.spatial.tables.table import Table

if TYPE_CHECKING:
    from dpppsynth.core.crs import CRSLike

CLAIM = (
    ". GeoJSON without a 'crs' member claims to be in degrees; if its coordinates are in metres, write that member, or "
    "save the lines as .gpkg or .parquet with their CRS"
)


def table_of_lines(lines: Any) -> Table:
    """Rows of a GeoDataFrame or a GeoSeries; InputError for anything else."""
    import geopandas

    frame = lines.to_frame("geometry") if isinstance(lines, geopandas.GeoSeries) else lines
    if not isinstance(frame, geopandas.GeoDataFrame) or frame.active_geometry_name is None:
        msg = f"lines: must be a GeoDataFrame with a geometry column or a GeoSeries; got {type(lines).__name__}"
        raise InputError(msg)
    return from_geodataframe(frame)


def skeleton_of_table(
    table: Table,
    crs: CRSLike | None,
    node: bool,
    join: float | None,
    *,
    to_crs: CRSLike | None,
    largest_component: bool,
) -> tuple[Skeleton, str | None]:
    """Edges of the lines of a table, and their CRS; parameters as for `LinearNetwork.from_geodataframe`."""
    for name, choice in (("node", node), ("largest_component", largest_component)):
        if not isinstance(choice, bool):
            msg = f"{name}: must be True or False; got {type(choice).__name__}"
            raise InputError(msg)
    geometry, target = _in_crs(table, crs, to_crs)
    parts = None if node or join is not None else _as_numbered(table, geometry)
    if parts is None:
        parts = skeleton_of_lines(geometry, node=node, join=join, unit="unit" if target is None else unit_name(target))
    return noting_overlaps(parts.largest() if largest_component else parts), target


def _in_crs(table: Table, crs: CRSLike | None, to_crs: CRSLike | None) -> tuple[Any, str | None]:
    """Geometries in a projected CRS, and its name."""
    source = table.crs
    if crs is not None and source is not None and not same_crs(crs, source):
        msg = (
            f"crs: the lines are in {crs_label(source)}, not {crs_label(crs)}; leave {named('crs')} out, "
            f"{mention('to_crs')} re-projects"
        )
        raise InputError(msg + (CLAIM if same_crs(source, "OGC:CRS84") else ""))
    source = crs if source is None else source
    if to_crs is None:
        return table.geometry, None if source is None else projected_crs(source)
    target = projected_crs(to_crs)
    if source is None:
        msg = f"to_crs: the lines do not say which CRS they are in; name it with {mention('crs')}"
        raise InputError(msg)
    if same_crs(source, target):
        return table.geometry, target
    flat = line_parts(table.geometry)
    return shapely.transform(flat, lambda xy: reproject(xy, source, target)), target


def _as_numbered(table: Table, geometry: Any) -> Skeleton | None:
    if not {"from", "to"} <= set(table.columns) or len(table) == 0:
        return None
    lines = line_parts(geometry)
    return by_numbers(lines, np.array([table.columns["from"], table.columns["to"]], dtype=object).T)
