"""Intensity of a release as shapes: cells of a grid or parts of streets, in files of other programs."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import numpy as np
import shapely
from shapely.ops import substring

from dpppsynth.linear_network import LinearNetwork

if TYPE_CHECKING:
    from dpppsynth.core.types import Floats
    from dpppsynth.spatial.domains import Domain

SHAPES = {".gpkg": "GPKG", ".geojson": "GeoJSON", ".parquet": "GeoParquet"}
# GDAL stamps files with the present time, which would tell how long a release took.
LONG_AGO = "2000-01-01T00:00:00.000Z"
# Classes of a style, from few to many points: yellow to dark red (ColorBrewer, YlOrRd, five classes).
COLOURS = ("255,255,178", "254,204,92", "253,141,60", "240,59,32", "189,0,38")
STYLES = """
CREATE TABLE layer_styles (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, f_table_catalog TEXT(256), f_table_schema TEXT(256),
    f_table_name TEXT(256), f_geometry_column TEXT(256), styleName TEXT(30), styleQML TEXT, styleSLD TEXT,
    useAsDefault BOOLEAN, description TEXT, owner TEXT(30), ui TEXT(30), update_time DATETIME
)"""


def parts_of_streets(network: LinearNetwork, edges: Any, middles: Floats, lengths: Floats) -> Any:
    """(n,) lines along edges, given the middle and the length of each part along its edge, in their order.

    Each begins exactly where the one before on its edge ends, and edges keep their own ends.
    """
    again = np.r_[False, edges[1:] == edges[:-1]]
    cuts = middles + lengths / 2
    starts = np.where(again, np.roll(cuts, 1), 0.0)
    stops = np.where(np.r_[again[1:], False], cuts, network.lengths[edges])
    found = np.empty(len(middles), dtype=object)
    found[:] = [substring(network.lines[e], a, b) for e, a, b in zip(edges, starts, stops, strict=True)]
    return found


def cells_about(centres: Floats, side: float) -> Any:
    """(n,) squares about centres (n, 2)."""
    low, high = centres - side / 2, centres + side / 2
    return shapely.box(*low.T, *high.T)


def write_shapes(path: Path, layers: Mapping[str, Mapping[str, Any]], shapes: Any, domain: Domain) -> None:
    """Write shapes with the columns of each layer, one below the other where a format has one layer.

    Layers of a GeoPackage have styles with the same classes, so that QGIS opens them coloured.
    """
    import geopandas
    import pandas as pd
    import pyogrio

    frames = {
        name: geopandas.GeoDataFrame(dict(columns), geometry=shapes, crs=domain.crs)
        for name, columns in names_apart(layers).items()
    }
    if path.suffix != ".gpkg":
        frames = {"intensity": pd.concat(frames.values(), ignore_index=True)}
    if path.suffix == ".parquet":
        frames["intensity"].to_parquet(path)
        return
    before = {"OGR_CURRENT_DATE": pyogrio.get_gdal_config_option("OGR_CURRENT_DATE")}
    pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": LONG_AGO})
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "'crs' was not provided", UserWarning)
            # GeoJSON is in degrees unless a file says otherwise, as this version does.
            more = {"RFC7946": "NO", "COORDINATE_PRECISION": 15} if path.suffix == ".geojson" else {}
            for name, frame in frames.items():
                pyogrio.write_dataframe(frame, path, layer=name, driver=SHAPES[path.suffix], **more)
    finally:
        pyogrio.set_gdal_config_options(before)
    if path.suffix == ".gpkg":
        values = np.concatenate([frame["intensity"] for frame in frames.values()])
        _add_styles(path, list(frames), _style(values, lines=isinstance(domain, LinearNetwork)))


def names_apart(layers: Mapping[str, Any]) -> dict[str, Any]:
    """The layers by names that differ by more than case, as tables of a GeoPackage must: with a number behind them.

    Examples
    --------
    >>> names_apart({"intensity A": 1, "intensity a": 2})
    {'intensity A': 1, 'intensity a_2': 2}
    """
    found: dict[str, Any] = {}
    for name, layer in layers.items():
        taken = {each.lower() for each in found}
        numbered = (f"{name}_{k}" for k in count(2))
        found[name if name.lower() not in taken else next(e for e in numbered if e.lower() not in taken)] = layer
    return found


def _style(values: Floats, *, lines: bool) -> str:
    """QGIS style (QML) of classes with equal numbers of shapes."""
    # Equal values share a class, of which one without width would be empty.
    cuts = np.unique(np.quantile(values, np.linspace(0, 1, len(COLOURS) + 1)))
    cuts = np.array([cuts[0], cuts[0]]) if len(cuts) == 1 else cuts
    ranges, symbols = [], []
    for k, (low, high) in enumerate(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)):
        label = quoteattr(f"{low:.3g} - {high:.3g}")
        ranges.append(f'<range lower="{low!r}" upper="{high!r}" symbol="{k}" label={label} render="true"/>')
        colour = COLOURS[round(k * (len(COLOURS) - 1) / max(1, len(cuts) - 2))]
        symbols.append(_symbol(k, colour, lines=lines))
    kind = "1" if lines else "2"
    return (
        "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n"
        '<qgis version="3.22.0" styleCategories="Symbology">'
        '<renderer-v2 type="graduatedSymbol" attr="intensity" graduatedMethod="GraduatedColor" symbollevels="0" '
        f'forceraster="0" enableorderby="0"><ranges>{"".join(ranges)}</ranges>'
        f"<symbols>{''.join(symbols)}</symbols></renderer-v2><layerGeometryType>{kind}</layerGeometryType></qgis>"
    )


def _symbol(number: int, colour: str, *, lines: bool) -> str:
    if lines:
        kind, layer = "line", "SimpleLine"
        told = {"line_color": f"{colour},255", "line_width": "0.8", "line_width_unit": "MM", "capstyle": "round"}
    else:
        kind, layer = "fill", "SimpleFill"
        told = {"color": f"{colour},255", "style": "solid", "outline_style": "no"}
    properties = "".join(f"<prop k={quoteattr(key)} v={quoteattr(value)}/>" for key, value in told.items())
    return (
        f'<symbol name="{number}" type="{kind}" alpha="1" clip_to_extent="1" force_rhr="0">'
        f'<layer class="{layer}" enabled="1" locked="0" pass="0">{properties}</layer></symbol>'
    )


def _add_styles(path: Path, names: Sequence[str], style: str) -> None:
    """Put a style of layers into the table in which QGIS looks for those of a GeoPackage."""
    with closing(sqlite3.connect(path)) as base, base:
        base.execute(STYLES)
        base.execute(
            "INSERT INTO gpkg_contents (table_name, data_type, identifier, description, last_change, srs_id) "
            "VALUES ('layer_styles', 'attributes', 'layer_styles', '', ?, 0)",
            [LONG_AGO],
        )
        for name in names:
            base.execute(
                "INSERT INTO layer_styles (f_table_catalog, f_table_schema, f_table_name, f_geometry_column, "
                "styleName, styleQML, styleSLD, useAsDefault, description, owner, ui, update_time) "
                "SELECT '', '', table_name, column_name, 'intensity', ?, '', 1, 'Classes with equal numbers of shapes',"
                " '', NULL, ? FROM gpkg_geometry_columns WHERE table_name = ?",
                [style, LONG_AGO, name],
            )
