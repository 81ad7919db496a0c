"""Layers that GDAL reads: plain points by way of Arrow, in batches where they are asked for; others as frames.

The callers see to it that the file is what its name says, and that no other driver of GDAL opens it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dpppsynth.spatial.tables.frames import from_arrow, from_geodataframe, from_points, point_coordinates
from dpppsynth.spatial.tables.table import Table

if TYPE_CHECKING:
    import geopandas

# Rows of a batch.
ROWS = 2**17
# A condition that no row fulfils.
NOTHING = {"where": "1 = 0"}
# Kinds of columns that come the same way by either road: in numpy, in GDAL, and its finer kind.
PLAIN_KINDS = {
    ("int32", "OFTInteger", "OFSTNone"),
    ("int64", "OFTInteger64", "OFSTNone"),
    ("float64", "OFTReal", "OFSTNone"),
    ("object", "OFTString", "OFSTNone"),
}


def read_points(name: str, layer: str | None, empty: geopandas.GeoDataFrame) -> Table:
    """Read all rows of a layer, of which `empty` is a frame without any."""
    import pyogrio

    table = _plain_points(name, layer, empty.crs) if _is_plain(name, layer) else None
    return from_geodataframe(pyogrio.read_dataframe(name, layer=layer)) if table is None else table


def read_point_batches(name: str, layer: str | None, empty: geopandas.GeoDataFrame) -> Iterator[Table]:
    """Read at most `ROWS` rows at a time; layers of anything but points with numbers and texts as a whole."""
    import pyarrow as pa
    import pyogrio

    if not _is_plain(name, layer):
        yield from_geodataframe(pyogrio.read_dataframe(name, layer=layer))
        return
    found = False
    with pyogrio.raw.open_arrow(name, layer=layer, batch_size=ROWS, use_pyarrow=True) as (about, reader):
        for batch in reader:
            found = True
            yield from_arrow(pa.Table.from_batches([batch]), _geometry(about), empty.crs)
    if not found:
        yield from_geodataframe(empty)


def _is_plain(name: str, layer: str | None) -> bool:
    """Whether a layer is of points with numbers and texts."""
    import pyogrio

    stated = pyogrio.read_info(name, layer=layer)
    kinds = zip(stated["dtypes"], stated.get("ogr_types", ()), stated.get("ogr_subtypes", ()), strict=False)
    plain = [*map(tuple, kinds)]
    known = len(plain) == len(stated["dtypes"]) and PLAIN_KINDS.issuperset(plain)
    return stated["geometry_type"] == "Point" and known


def _plain_points(name: str, layer: str | None, crs: Any) -> Table | None:
    """All rows by way of Arrow, where each is a point; None otherwise."""
    import pyogrio

    try:
        about, table = pyogrio.raw.read_arrow(name, layer=layer)
        xy = point_coordinates(table[_geometry(about)])
        attributes = table.drop_columns([_geometry(about)]).to_pandas()
    except Exception:  # noqa: BLE001 - whatever it is, the other way tells
        return None
    return None if xy is None else from_points(xy, attributes, crs)


def _geometry(about: dict[str, Any]) -> str:
    """Name of the column of geometries."""
    return str(about["geometry_name"] or "wkb_geometry")
