"""Files read in batches: the same points, the same refusals, and no more of the file in memory than a batch."""

import gzip
import pickle

import geopandas
import numpy as np
import pytest
import shapely

from dpppsynth import AlphaNeighbours, LaplaceSynthesizer, MarkedSynthesizer, Marks, Times, Types, Window
from dpppsynth.core.errors import InputError
from dpppsynth.io import PointBatches, read_batches, read_pattern
from dpppsynth.spatial.tables import csv_files, frames, gdal_layers

WINDOW = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
N = 700
XY = np.random.default_rng(3).uniform(0, 1000, (N, 2))
KINDS = np.random.default_rng(4).integers(0, 3, N)
HOURS = np.random.default_rng(5).uniform(0, 24, N)
DESCRIBED = Marks(Types("kind", ("k0", "k1", "k2")), Times.day("hour"))
FORMATS = ("csv", "csv.gz", "parquet", "gpkg", "geojson")


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(csv_files, "BLOCK", 2048)
    monkeypatch.setattr(frames, "ROWS", 64)
    monkeypatch.setattr(gdal_layers, "ROWS", 64)


def lines(xy=XY):
    rows = zip(xy.tolist(), KINDS, HOURS.tolist(), strict=True)
    return ["x,y,kind,hour", *(f"{x!r},{y!r},k{kind},{hour!r}" for (x, y), kind, hour in rows)]


def frame(xy=XY, geometry=None):
    columns = {"kind": [f"k{kind}" for kind in KINDS], "hour": HOURS}
    shapes = shapely.points(xy) if geometry is None else geometry
    return geopandas.GeoDataFrame(columns, geometry=shapes, crs="EPSG:27700")


def written(path, kind, text=None, gdf=None):
    """A file of a format, with these lines or this frame."""
    text, gdf = "\n".join(text or lines()), frame() if gdf is None else gdf
    if kind == "csv":
        path.write_text(text)
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif kind == "parquet":
        gdf.to_parquet(path)
    else:
        gdf.to_file(path, driver={"gpkg": "GPKG", "geojson": "GeoJSON"}[kind])
    return path


@pytest.fixture(params=FORMATS)
def file(request, tmp_path):
    return written(tmp_path / f"points.{request.param}", request.param)


def joined(batches):
    found = [*batches]
    marks = {name: np.concatenate([each.marks[name] for each in found]) for name in found[0].marks or {}}
    return np.concatenate([each.xy for each in found]), marks


class TestPoints:
    def test_are_those_of_the_whole_file(self, file):
        whole = read_pattern(file, WINDOW, described=DESCRIBED)
        batches = read_batches(file, WINDOW, described=DESCRIBED)
        xy, marks = joined(batches)
        assert np.array_equal(xy, whole.xy)
        assert np.allclose(xy, XY, rtol=0, atol=1e-6)
        assert {name: values.tolist() for name, values in marks.items()} == {
            name: values.tolist() for name, values in whole.marks.items()
        }
        assert batches.count() == N

    def test_no_batch_holds_much_of_the_file(self, file):
        sizes = [len(batch) for batch in read_batches(file, WINDOW)]
        assert max(sizes) < (N + 1 if file.suffix == ".geojson" else 100)

    @pytest.mark.parametrize("quoted", [False, True])
    @pytest.mark.parametrize("kind", ["csv", "csv.gz"])
    def test_with_line_ends_in_cells(self, kind, quoted, tmp_path):
        text = lines()
        text[1 + 400] = text[1 + 400].replace(",k", ',"k').replace(f"{KINDS[400]},", f'{KINDS[400]}",')
        if quoted:
            text = [text[0] + ",note", *(f'{line},"a\nb"' for line in text[1:])]
        xy, _ = joined(read_batches(written(tmp_path / f"points.{kind}", kind, text), WINDOW))
        assert np.array_equal(xy, XY)

    def test_with_counts(self, tmp_path):
        counts = np.random.default_rng(6).integers(0, 3, N)
        counts[:200] = 0
        text = [line + f",{end}" for line, end in zip(lines(), ["count", *counts], strict=True)]
        path = written(tmp_path / "points.csv", "csv", text)
        xy, _ = joined(read_batches(path, WINDOW, count="count"))
        assert np.array_equal(xy, np.repeat(XY, counts, axis=0))
        assert np.array_equal(xy, read_pattern(path, WINDOW, count="count").xy)

    def test_of_geometries_that_are_no_plain_points(self, tmp_path):
        shapes = [shapely.MultiPoint([xy, xy + 0.5]) if i % 90 == 1 else shapely.Point(xy) for i, xy in enumerate(XY)]
        gdf = frame(geometry=shapes)
        for kind in ("parquet", "gpkg"):
            path = written(tmp_path / f"points.{kind}", kind, gdf=gdf)
            xy, _ = joined(read_batches(path, WINDOW))
            assert np.array_equal(xy, read_pattern(path, WINDOW).xy)
            assert len(xy) == N + 8

    def test_are_read_anew_each_time_and_elsewhere(self, file):
        batches = pickle.loads(pickle.dumps(read_batches(file, WINDOW)))
        assert isinstance(batches, PointBatches)
        for _ in range(2):
            assert np.allclose(joined(batches)[0], XY, rtol=0, atol=1e-6)
        assert repr(batches) == f"PointBatches({file.name!r}, {WINDOW!r})"


class TestRelease:
    def test_is_that_of_the_whole_pattern(self, file):
        plan = LaplaceSynthesizer(1.0, alpha=25.0, basis="tents", postprocess="plain").plan(WINDOW, n=N)
        whole = plan.release(read_pattern(file, WINDOW), 3)
        found = plan.finish(map(plan.partial, read_batches(file, WINDOW)), 3)
        assert (found.statistic.lattice == whole.statistic.lattice).all()

    def test_of_several_files_with_marks(self, tmp_path):
        first = written(tmp_path / "first.csv", "csv", lines()[:301])
        second = written(tmp_path / "second.parquet", "parquet", gdf=frame().iloc[300:])
        near = AlphaNeighbours(50.0, time=1.0, types="public")
        plan = MarkedSynthesizer(1.0, marks=DESCRIBED, relation=near).plan(WINDOW, n=N)
        whole = read_pattern(written(tmp_path / "all.csv", "csv"), WINDOW, described=DESCRIBED)
        files = [read_batches(path, WINDOW, described=DESCRIBED) for path in (first, second)]
        one, other = map(plan.partial, files)
        assert ((one + other).numbers == plan.partial(whole).numbers).all()


def refusal(read, *args, **options):
    with pytest.raises(InputError) as caught:
        read(*args, **options)
    return str(caught.value)


def exhausted(*args, **options):
    return [*read_batches(*args, **options)]


class TestRefusals:
    @pytest.mark.parametrize("kind", ["csv", "csv.gz"])
    @pytest.mark.parametrize("bad", [(600,), (10, 650), (699, 0), (300, 301, 302)])
    def test_of_rows_are_those_of_the_whole_file(self, bad, kind, tmp_path):
        text = lines()
        cells = ["5000.0,5.0,k1,3.0", "here,5,k1,3.0", "1.0,2.0,k9,25.0", ",,k0,1.0"]
        for i, row in enumerate(bad):
            text[1 + row] = cells[(row + i) % 4]
        path = written(tmp_path / f"points.{kind}", kind, text)
        said = refusal(exhausted, path, WINDOW, described=DESCRIBED)
        assert said == refusal(read_pattern, path, WINDOW, described=DESCRIBED)
        assert "rows break the rules" in said
        assert "5000" not in said

    @pytest.mark.parametrize("kind", ["parquet", "gpkg"])
    def test_of_geometries_are_those_of_the_whole_file(self, kind, tmp_path):
        shapes = shapely.points(XY)
        shapes[[20, 640]], shapes[500] = None, shapely.Point(-1, 5)
        path = written(tmp_path / f"points.{kind}", kind, gdf=frame(geometry=shapes))
        said = refusal(exhausted, path, WINDOW)
        assert said == refusal(read_pattern, path, WINDOW)
        assert "(missing coordinate, outside window)" in said

    def test_nothing_follows_a_bad_row(self, tmp_path):
        """A release that had begun would otherwise lack it without a word."""
        text = lines()
        text[100] = "here,5,k1,3.0"
        batches, seen = read_batches(written(tmp_path / "points.csv", "csv", text), WINDOW), []
        with pytest.raises(InputError, match="not a number"):
            seen.extend(batches)
        assert 0 < sum(map(len, seen)) < 100

    def test_of_a_field_that_is_missing(self, tmp_path):
        text = lines()
        text[650] = "1,5"
        path = written(tmp_path / "points.csv", "csv", text)
        assert refusal(exhausted, path, WINDOW) == refusal(read_pattern, path, WINDOW)

    @pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "gpkg"])
    def test_of_no_points(self, kind, tmp_path):
        path = written(tmp_path / f"points.{kind}", kind, lines()[:1], frame().iloc[:0])
        assert refusal(exhausted, path, WINDOW) == f"{path.name}: must hold at least one point; it holds none"

    def test_of_headers_come_before_rows(self, tmp_path):
        path = written(tmp_path / "points.csv", "csv")
        for options in ({"x": "east"}, {"count": "number"}, {"crs": 4326}, {"snap": -3.0}):
            said = refusal(read_batches, path, WINDOW, **options)
            assert said == refusal(read_pattern, path, WINDOW, **options)

    @pytest.mark.parametrize("keep", [40, 2000, -4])
    def test_of_a_compressed_file_that_is_cut_off(self, keep, tmp_path):
        path = written(tmp_path / "points.csv.gz", "csv.gz")
        path.write_bytes(path.read_bytes()[:keep])
        for read in (read_pattern, exhausted):
            said = refusal(read, path, WINDOW)
            assert said.startswith("path: points.csv.gz cannot be read as CSV")

    def test_of_bytes_that_are_no_text_far_behind(self, tmp_path):
        path = tmp_path / "points.csv"
        path.write_bytes("\n".join(lines()).encode() + b"\n1,2,\xff,3\n")
        assert refusal(exhausted, path, WINDOW) == refusal(read_pattern, path, WINDOW)

    def test_hide_what_the_libraries_say(self, tmp_path):
        path = written(tmp_path / "points.parquet", "parquet")
        content = bytearray(path.read_bytes())
        half = len(content) // 2
        content[half - 3000 : half + 3000] = bytes(6000)
        path.write_bytes(bytes(content))
        with pytest.raises(InputError, match="cannot be read as GeoParquet") as caught:
            exhausted(path, WINDOW)
        assert caught.value.__context__ is None
