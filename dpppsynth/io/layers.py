"""Public layers from files: polygons with a column, or GeoTIFF rasters."""

from pathlib import Path

import numpy as np
import shapely

from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import either
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.polygons import in_system
from dpppsynth.spatial.public_layers import PolygonLayer, filled, nameless, outside_value
from dpppsynth.spatial.raster_layers import RasterLayer, read_geotiff
from dpppsynth.spatial.tables.formats import is_csv, read_table, tell_placeless

RASTERS = (".tif", ".tiff")


def read_layer(
    path: Path,
    domain: Domain,
    *,
    column: str | None,
    option: str,
    column_option: str,
    fill: float | None = None,
    label: str | None = None,
    counts: bool = False,
    crs: str | None = None,
) -> PolygonLayer | RasterLayer:
    """Read a public layer for a domain: a GeoTIFF, or a .geojson, .gpkg or .parquet file of polygons with a column.

    One of several layers of a GeoPackage is named behind it, as in ``city.gpkg:districts``.

    Polygons are re-projected to the domain's CRS where the file names one, or `crs` does. `option` and `column_option`
    name the arguments in messages, `label` the layer, in place of the file's name. What has no value takes `fill`. With
    `counts` each part of a multi-polygon gets a share of its value by its area. InputError where the file cannot be
    read, lacks the column, or holds values or polygons that a layer cannot have.
    """
    if path.suffix.lower() in RASTERS:
        if column is not None:
            msg = f"{column_option}: a GeoTIFF has no columns; leave it out"
            raise InputError(msg)
        return read_geotiff(path, fill=fill, crs=crs)
    if column is None:
        both = "FILE:COLUMN" if option == column_option else f"both {option} and {column_option}"
        msg = f"{column_option}: polygons need the name of a numeric column; give {both}"
        raise InputError(msg)
    if is_csv(path):
        msg = f"{option}: polygons are needed, which CSV does not hold; give a .geojson, .gpkg, .parquet or .tif file"
        raise InputError(msg)
    table = read_table(path, public=True)
    try:
        values = np.asarray(table.column(column, argument=column_option), dtype=float)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        msg = f"{column_option}: {column!r} must hold numbers only"
        raise InputError(msg) from None
    outside = outside_value(fill)
    values = filled(values, outside, f"{column_option}: {column!r}", "polygons")
    shapes = shapely.force_2d(table.geometry)
    source, target = table.crs or crs, domain.crs
    if source is None and target is not None:
        raise InputError(nameless(option, path.name, either('crs="{}"', "--crs {}"), target))
    if source is not None and target is None:
        msg = f"{option}: it names a coordinate system and the domain has none; give --crs"
        raise InputError(msg)
    shapes = in_system(shapes, source, target)
    parts, row = shapely.get_parts(shapes, return_index=True)
    share = shapely.area(parts) / shapely.area(shapes)[row] if counts else 1.0
    layer = PolygonLayer(parts, values[row] * share, outside=outside, crs=target, label=label or path.name)
    tell_placeless(table.geometry, path.name)
    return layer


def read_population(path: Path, column: str | None, domain: Domain, crs: str | None = None) -> Offset:
    """Read public inhabitants; missing values count as zero. Errors as in `read_layer`."""
    layer = read_layer(
        path,
        domain,
        column=column,
        option="--population",
        column_option="--population-column",
        fill=0,
        counts=True,
        crs=crs,
    )
    return Offset.of(layer, "counts")
