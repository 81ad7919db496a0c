"""Plain points of GeoPackage and GeoParquet files are read without geometries, and as they would be with them."""

import datetime
import json

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

from dpppsynth.io import inspect_points
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.tables import formats, frames, gdal_layers
from dpppsynth.spatial.tables.formats import read_table
from dpppsynth.spatial.tables.rows import examine_rows

WINDOW = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
N = 40
XY = np.random.default_rng(8).uniform(0, 1000, (N, 2))
COLUMNS = {
    "whole": np.arange(N) - 3,
    "short": np.arange(N, dtype=np.int32),
    "real": np.linspace(0, 1, N),
    "single": np.linspace(0, 1, N, dtype=np.float32),
    "text": [f"P{i}é" for i in range(N)],
    "gaps in text": [None if i % 3 else "a" for i in range(N)],
    "gaps in whole": pd.array([None if i % 3 else i for i in range(N)], dtype="Int64"),
    "gaps in real": [np.nan if i % 3 else 0.5 for i in range(N)],
    "truth": [i % 2 == 0 for i in range(N)],
    "day": [datetime.date(2024, 1, 1 + i % 28) for i in range(N)],
    "time": pd.date_range("2024-01-01T12:30:15", periods=N, freq="h"),
    "empty": [""] * N,
}
PLAIN = [name for name in COLUMNS if name not in ("truth", "day", "time", "single")]


def changed(i, shape):
    shapes = shapely.points(XY)
    shapes[i] = shape
    return shapes


SHAPES = {
    "plain": shapely.points(XY),
    "missing": changed(3, None),
    "empty": changed(3, shapely.Point()),
    "not finite": changed(3, shapely.Point(np.inf, 5)),
    "NaN": changed(3, shapely.Point(np.nan, 5)),
    "outside": changed(3, shapely.Point(-5, 5)),
    "in space": changed(3, shapely.Point(1, 2, 3)),
    "all in space": shapely.points(np.column_stack([XY, XY[:, 0]])),
    "several": changed(3, shapely.MultiPoint([[1, 2], [3, 4]])),
    "a line": changed(3, shapely.LineString([[1, 2], [3, 4]])),
    "none": shapely.points(XY)[:0],
}


def written(folder, suffix, shapes, names, **options):
    columns = {name: COLUMNS[name][: len(shapes)] for name in names}
    frame = geopandas.GeoDataFrame(columns, geometry=shapes, crs="EPSG:27700")
    path = folder / f"points.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path, **options)
    else:
        frame.to_file(path, driver="GPKG", **options)
    return path


def with_geometries(path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(frames, "_points", lambda chunk: None)
        patch.setattr(gdal_layers.Layer, "is_plain", lambda layer: False)
        patch.setattr(frames, "_one_geometry", lambda stream: None)
        table = read_table(path)
        assert table.xy is None
        return table


def told(table):
    """Everything that a table tells."""
    rows = examine_rows(table, WINDOW)
    columns = {name: (values.dtype, [repr(cell) for cell in values]) for name, values in table.columns.items()}
    # Dates are objects of their own each time.
    cells = [[repr(cell) for cell in table.original(i)] for i in range(len(table))]
    broken = {rule: mask.tolist() for rule, mask in rows.broken.items()}
    return columns, str(table.crs), table.header, cells, rows.xy.tobytes(), rows.row.tolist(), broken


@pytest.mark.parametrize("suffix", ["gpkg", "parquet"])
class TestPoints:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        "names", [[], PLAIN, *([name] for name in COLUMNS)], ids=lambda names: "+".join(names)[:20]
    )
    def test_columns(self, suffix, names, tmp_path, monkeypatch):
        path = written(tmp_path, suffix, SHAPES["plain"], names)
        assert told(read_table(path)) == told(with_geometries(path, monkeypatch))

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("kind", SHAPES)
    @pytest.mark.filterwarnings("ignore:.*:UserWarning")
    def test_shapes(self, suffix, kind, tmp_path, monkeypatch):
        path = written(tmp_path, suffix, SHAPES[kind], ["whole", "text"])
        assert told(read_table(path)) == told(with_geometries(path, monkeypatch))

    def test_no_geometry_is_made_of_plain_points(self, suffix, tmp_path):
        """Otherwise all the others compare one way with itself."""
        path = written(tmp_path, suffix, SHAPES["plain"], PLAIN)
        assert np.array_equal(read_table(path).xy, XY)

    def test_offending_rows_have_their_geometry_as_text(self, suffix, tmp_path, monkeypatch):
        path = written(tmp_path, suffix, SHAPES["outside"], ["text"])
        assert read_table(path).xy is not None
        found = inspect_points(path, WINDOW, report_to=tmp_path)
        assert found.rules == ("outside window",)
        assert found.report.read_text(encoding="utf-8").splitlines()[1] == "4,outside window,P3é,POINT (-5 5)"


@pytest.mark.parametrize("options", [{"index": True}, {"write_covering_bbox": True}, {"geometry_encoding": "geoarrow"}])
def test_other_layouts_of_geoparquet(options, tmp_path, monkeypatch):
    path = written(tmp_path, "parquet", SHAPES["plain"], ["whole"], **options)
    assert told(read_table(path)) == told(with_geometries(path, monkeypatch))


def test_a_second_geometry_column_is_left_to_geopandas(tmp_path):
    columns = {"home": geopandas.GeoSeries(shapely.points(XY)), "work": geopandas.GeoSeries(shapely.points(XY[::-1]))}
    frame = geopandas.GeoDataFrame(columns, geometry="work", crs="EPSG:27700")
    frame.to_parquet(tmp_path / "points.parquet")
    table = read_table(tmp_path / "points.parquet")
    assert table.xy is None
    assert np.array_equal(examine_rows(table, WINDOW).xy, XY[::-1])


def test_parts_of_columns():
    """Chunks that begin inside of their buffers, and points of the other byte order."""
    column = pa.chunked_array([pa.array(shapely.to_wkb(shapely.points(XY)).tolist())])
    parts = pa.chunked_array([column.chunk(0).slice(5, 7), column.chunk(0).slice(0, 0), column.chunk(0).slice(30)])
    assert np.array_equal(frames._point_coordinates(parts), np.concatenate([XY[5:12], XY[30:]]))
    large = parts.cast(pa.large_binary())
    assert np.array_equal(frames._point_coordinates(large), np.concatenate([XY[5:12], XY[30:]]))
    big = shapely.to_wkb(shapely.points(XY), byte_order=0).tolist()
    assert frames._point_coordinates(pa.chunked_array([pa.array(big)])) is None
    named = shapely.to_wkb(shapely.set_srid(shapely.points(XY), 27700), include_srid=True).tolist()
    assert frames._point_coordinates(pa.chunked_array([pa.array(named)])) is None


GEOMETRIES = [
    {"type": "Point", "coordinates": [1, 2]},
    {"type": "Point", "coordinates": [1.5, -0.0], "bbox": [0]},
    {"type": "Point", "coordinates": [2**53 + 1, 2]},
    {"type": "Point", "coordinates": [10**400, 2]},
    {"type": "Point", "coordinates": [float("nan"), 2]},
    {"type": "Point", "coordinates": [float("inf"), 2]},
    {"type": "Point", "coordinates": [True, 2]},
    {"type": "Point", "coordinates": ["1", 2]},
    {"type": "Point", "coordinates": [None, 2]},
    {"type": "Point", "coordinates": [1, 2, 3]},
    {"type": "Point", "coordinates": [1]},
    {"type": "Point", "coordinates": []},
    {"type": "Point"},
    {"type": "point", "coordinates": [1, 2]},
    {"type": "MultiPoint", "coordinates": [[1, 2], [3, 4]]},
    {"type": "LineString", "coordinates": [[1, 2], [3, 4]]},
    {},
    [],
    None,
]


@pytest.mark.parametrize(
    "chosen", [range(len(GEOMETRIES)), range(2), range(3), *([0, i] for i in range(len(GEOMETRIES)))]
)
def test_geojson(chosen, tmp_path, monkeypatch):
    crs = {"type": "name", "properties": {"name": "EPSG:27700"}}
    features = [{"type": "Feature", "properties": {"i": i}, "geometry": GEOMETRIES[i]} for i in chosen]
    path = tmp_path / "points.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "crs": crs, "features": features}))
    table = read_table(path)
    assert (table.xy is not None) == (max(chosen) < 3)
    with monkeypatch.context() as patch:
        patch.setattr(formats, "_is_plain_point", lambda mapping: False)
        assert told(table) == told(read_table(path))
