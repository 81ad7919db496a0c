"""Readers on broken and hostile files: a result or a documented error, and not a word about the data.

Every example is run with all loggers at DEBUG and all warnings recorded; what is said anywhere is searched for the
coordinates, the names and the number of rows of the file. DPPPSYNTH_FUZZ=2000 looks further, at other examples each
time.
"""

import contextlib
import copy
import functools
import io
import json
import os
import re
import shutil
import sqlite3
import warnings
from collections.abc import Iterator
from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import pyproj
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from support.fuzzing import fuzz, listening, scratch

from dpppsynth.core.errors import DpppsynthError
from dpppsynth.io import inspect_points, read_network, read_pattern, read_synthetic, read_window
from dpppsynth.ledger import Ledger
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.models import domain_from_geojson, regular_triangulation
from dpppsynth.privacy import AddRemove, verify
from dpppsynth.release import certificate, load_release
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import KernelSynthesizer, LaplaceSynthesizer, LGCPSynthesizer

WINDOW = Window.rectangle(530000, 181000, 532000, 183000, "EPSG:27700")
ENDS = [[531310, 182010], [530000, 182010], [532000, 182010], [531310, 181000], [531310, 183000]]
CROSS = LinearNetwork(ENDS, [[0, 1], [0, 2], [0, 3], [0, 4]], "EPSG:27700")
ROWS = 173
# All within a hundred metres, so that a few leading digits, of metres or of degrees, give any of them away.
XY = np.random.default_rng(1).uniform([531200, 181900], [531299, 181999], (ROWS, 2))
NAMES = [f"PATIENT-{7719 + i}" for i in range(ROWS)]
SECRET = re.compile(r"5312\d\d|1819\d\d|5\.312\d|1\.819\d|51\.52\d|-0\.1[01]\d|PATIENT|(?<![\d.])173(?![\d.])")


# --- What is said ----------------------------------------------------------------------------------------------------


def chain(error: BaseException) -> list[str]:
    """Readable contents of an error: itself, its cause and its context, shown or hidden."""
    parts, seen, following = [], set(), [error]
    while following:
        current = following.pop()
        if current is not None and id(current) not in seen:
            seen.add(id(current))
            parts.append(
                f"{current!r} {vars(current)} {getattr(current, 'object', '')!r} {getattr(current, 'doc', '')}"
            )
            following += [current.__cause__, current.__context__]
    return parts


def survives(call, *arguments, capfd=None, secret=SECRET, **options):
    """The result, or the documented error; InputError and its kin are all that may come out."""
    said: list[str] = []
    if capfd:
        capfd.readouterr()
    outcome = None
    with listening(said):
        try:
            outcome = call(*arguments, **options)
            said.append(repr(outcome))
        except DpppsynthError as error:
            said += chain(error)
            outcome = error
    if capfd:
        said += capfd.readouterr()
    found = secret.search("\n".join(said)) if secret else None
    assert found is None, f"{found.group()} in {said}"
    return outcome


# --- Files to begin with ---------------------------------------------------------------------------------------------


def frame() -> geopandas.GeoDataFrame:
    columns = {"name": NAMES, "deaths": np.arange(ROWS) % 4, "year": 2020 + np.arange(ROWS) % 2}
    return geopandas.GeoDataFrame(columns, geometry=shapely.points(XY), crs="EPSG:27700")


def collection(geometry=None) -> dict:
    """GeoJSON of the rows, or of one public geometry."""
    name = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::27700"}}
    if geometry is not None:
        features = [{"type": "Feature", "properties": {}, "geometry": shapely.geometry.mapping(geometry)}]
    else:
        features = [
            {
                "type": "Feature",
                "properties": {"name": NAMES[i], "deaths": i % 4},
                "geometry": {"type": "Point", "coordinates": XY[i].tolist()},
            }
            for i in range(ROWS)
        ]
    return json.loads(json.dumps({"type": "FeatureCollection", "crs": name, "features": features}))


@functools.cache
def table(suffix: str) -> bytes:
    """The rows as a file of the format."""
    if suffix == "csv":
        lines = [f"{x!r},{y!r},{name},{i % 4}" for i, (name, (x, y)) in enumerate(zip(NAMES, XY.tolist(), strict=True))]
        return "\n".join(["x,y,name,deaths", *lines, ""]).encode()
    if suffix == "geojson":
        return json.dumps(collection()).encode()
    with scratch() as folder:
        path = Path(folder) / f"rows.{suffix}"
        write = frame().to_parquet if suffix == "parquet" else functools.partial(frame().to_file, driver="GPKG")
        write(path)
        return path.read_bytes()


BITES = st.one_of(
    st.tuples(st.just("cut"), st.floats(0, 1), st.just(b"")),
    st.tuples(st.just("drop"), st.floats(0, 1), st.binary(min_size=1, max_size=40)),
    st.tuples(st.sampled_from(["insert", "overwrite"]), st.floats(0, 1), st.binary(min_size=1, max_size=40)),
    st.tuples(
        st.just("insert"),
        st.floats(0, 1),
        st.sampled_from(
            [b"\0", b"\xff\xfe", b'"', b"\n", b"\r", b"[" * 90000, b"9" * 5000, b"\xed\xa0\x80", b"-", b"e9"]
        ),
    ),
)


def bitten(content: bytes, bites) -> bytes:
    """Content cut off, or with stretches dropped, inserted or overwritten."""
    for how, share, given_bytes in bites:
        at = int(share * len(content))
        after = {"cut": len(content), "insert": at}.get(how, at + len(given_bytes))
        content = content[:at] + (b"" if how == "drop" else given_bytes) + content[after:]
    return content


def read_all(path: Path, capfd) -> None:
    """Every reader of a sensitive file, with and without the options that open further paths."""
    survives(read_pattern, path, WINDOW, capfd=capfd)
    survives(read_pattern, path, WINDOW, count="deaths", marks=["name"], to_crs="EPSG:27700", crs=27700, capfd=capfd)
    survives(read_pattern, path, CROSS, snap=200.0, capfd=capfd)
    survives(inspect_points, path, WINDOW, report_to=path.parent, capfd=capfd)


@pytest.mark.parametrize("suffix", ["csv", "geojson", "gpkg", "parquet"])
class TestBytes:
    def test_the_files_themselves_are_good(self, suffix, tmp_path, capfd):
        (tmp_path / f"rows.{suffix}").write_bytes(table(suffix))
        assert len(survives(read_pattern, tmp_path / f"rows.{suffix}", WINDOW, capfd=capfd)) == ROWS

    @pytest.mark.exhaustive
    @fuzz
    @given(st.lists(BITES, min_size=1, max_size=3))
    def test_bitten(self, suffix, capfd, bites):
        with scratch() as folder:
            path = Path(folder) / f"rows.{suffix}"
            path.write_bytes(bitten(table(suffix), bites))
            read_all(path, capfd)
            survives(read_window, path, secret=None)
            survives(read_network, path, secret=None)
            survives(read_synthetic, path, WINDOW, secret=None)

    @pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le", "utf-8-sig", "utf-32", "cp037"])
    def test_encodings(self, suffix, encoding, tmp_path, capfd):
        text = table(suffix).decode("latin-1").replace("PATIENT", "PATIENT É")
        with contextlib.suppress(UnicodeEncodeError):
            (tmp_path / f"rows.{suffix}").write_bytes(text.encode(encoding))
            read_all(tmp_path / f"rows.{suffix}", capfd)

    @pytest.mark.exhaustive
    def test_what_is_no_file(self, suffix, tmp_path, capfd):
        folder, loop, empty = (tmp_path / f"{name}.{suffix}" for name in ("folder", "loop", "empty"))
        folder.mkdir()
        loop.symlink_to(loop)
        empty.touch()
        for path in (folder, loop, empty, tmp_path / f"{'x' * 5000}.{suffix}", tmp_path / f"nul\0.{suffix}"):
            read_all(path, capfd)
            for reader in (read_window, read_network, verify, load_release, certificate.read):
                survives(reader, path)


# --- Wild values in whole files --------------------------------------------------------------------------------------

CELLS = st.one_of(
    st.sampled_from(
        ["", " ", "nan", "NaN", "inf", "-Infinity", "1e999", "-0", "1_0", "0x1F", "\u0661",
         "531234.56789", "\u066b5", "\0", "9" * 400,
         "PATIENT-7719", '"', "True", "1e-400", "9223372036854775808", "-1", "1e8", "100000001", "1+2j", "\ud800"]
    ),
    st.text(max_size=6),
    st.floats().map(repr),
)  # fmt: skip


class TestCells:
    @pytest.mark.slow
    @fuzz
    @given(
        st.lists(
            st.one_of(st.sampled_from(["x", "y", "deaths", "name", "", "531234.5"]), CELLS), min_size=1, max_size=6
        ),
        st.lists(st.lists(CELLS, max_size=7), max_size=6),
        st.sampled_from([",", ";", "\t"]),
    )
    def test_csv(self, capfd, header, rows, separator):
        lines = [separator.join(cells) for cells in (header, *rows)]
        with scratch() as folder:
            path = Path(folder) / "rows.csv"
            path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
            read_all(path, capfd)

    @fuzz
    @given(st.lists(st.tuples(CELLS, CELLS, CELLS, CELLS), max_size=6))
    def test_csv_under_the_right_header(self, capfd, rows):
        with scratch() as folder:
            path = Path(folder) / "rows.csv"
            clean = [[cell.replace(",", "").replace('"', "").replace("\n", "") for cell in row] for row in rows]
            lines = [b"x,y,deaths,name", table("csv").splitlines()[1]]
            path.write_bytes(b"\n".join([*lines, *(",".join(row).encode("utf-8", "surrogatepass") for row in clean)]))
            read_all(path, capfd)


WILD = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=5),
        st.sampled_from(
            [10**400, -(10**30), 1e308, "Point", "urn:ogc:def:crs:EPSG::27700", "EPSG:4326", "PATIENT-7719"]
        ),
        st.sampled_from(["NaN", "null", "531234.56789", "LineString", "Polygon", "FeatureCollection", "\0", "\ud800"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.text(max_size=4), st.sampled_from(["type", "coordinates"])), inner, max_size=3),
    ),
    max_leaves=6,
)


def places(value, path=()):
    """Every place of a JSON value."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from places(part, (*path, key))


def mutated(data, document):
    """A copy in which one to three places hold something else, or nothing."""
    document = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3))):
        spots = [spot for spot in places(document) if spot]
        if not spots:
            return document
        *outer, last = data.draw(st.sampled_from(spots))
        holder = functools.reduce(lambda part, key: part[key], outer, document)
        match data.draw(st.sampled_from(["replace", "remove", "rename", "repeat", "nest"])):
            case "remove":
                del holder[last]
            case "rename" if isinstance(holder, dict):
                holder[data.draw(st.text(max_size=4))] = holder.pop(last)
            case "repeat" if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[last]))
            case "nest":
                holder[last] = [holder[last]]
            case _:
                holder[last] = data.draw(WILD)
    return document


def few(document, rows=3):
    """The collection with its first rows only: wild values hit something that matters more often."""
    return {**document, "features": document["features"][:rows]}


LOOP = shapely.box(530000, 181000, 532000, 183000).difference(shapely.box(531000, 182000, 531500, 182500))
PUBLIC = {
    "window": (collection(LOOP), read_window),
    "network": (CROSS.to_geojson(), read_network),
}


class TestGeoJSON:
    @pytest.mark.slow
    @fuzz
    @given(st.data())
    def test_rows(self, capfd, data):
        with scratch() as folder:
            path = Path(folder) / "rows.geojson"
            path.write_text(json.dumps(mutated(data, few(collection()))))
            read_all(path, capfd)

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("kind", PUBLIC)
    @fuzz
    @given(st.data())
    def test_public_layers(self, kind, capfd, data):
        document, reader = PUBLIC[kind]
        wild = mutated(data, document)
        with scratch() as folder:
            path = Path(folder) / "layer.geojson"
            path.write_text(json.dumps(wild))
            survives(reader, path, secret=None)
            survives(reader, path, to_crs="EPSG:32630", secret=None)
            survives(read_network, path, node=True, join=50.0, largest_component=True, secret=None)
        for build in (Window.from_geojson, LinearNetwork.from_geojson, domain_from_geojson, Offset.from_geojson):
            survives(build, wild, secret=None)

    @fuzz
    @given(st.data())
    def test_offsets(self, data):
        document = Offset.from_grid([[1.0, 2.0], [3.0, 0.5]], (0, 0, 1000, 1000)).to_geojson()
        survives(Offset.from_geojson, mutated(data, document), secret=None)

    @pytest.mark.parametrize(
        "content", ["[" * 200_000, '{"a":' * 200_000, "9" * 100_000, '{"features": [{}], "features": 1}']
    )
    def test_depth(self, content, tmp_path, capfd):
        (tmp_path / "rows.geojson").write_text(content)
        read_all(tmp_path / "rows.geojson", capfd)
        (tmp_path / "certificate.json").write_text(content)
        survives(verify, tmp_path)


COLUMNS = st.sampled_from(
    [
        lambda n: [None] * n,
        lambda n: [b"\xff"] * n,
        lambda n: [[531234.56789]] * n,
        lambda n: [{"x": 1}] * n,
        lambda n: [float("nan")] * n,
        lambda n: pd.array([1] * n, dtype="Int8"),
        lambda n: pd.array([None] * n, dtype="Int64"),
        lambda n: pd.Categorical(["PATIENT-7719"] * n),
        lambda n: pd.date_range("2020-01-01", periods=n, tz="UTC"),
        lambda n: pd.to_timedelta([1] * n, "D"),
        lambda n: [True] * n,
        lambda n: ["173"] * n,
        lambda n: [2**62] * n,
        lambda n: [-1.5] * n,
    ]
)
SHAPES = st.sampled_from(
    [
        None,
        shapely.Point(),
        shapely.Point(np.nan, 531234.5),
        shapely.Point(np.inf, 0),
        shapely.Point(531234.5, 181987.6, 3),
        shapely.MultiPoint([[531234.5, 181987.6], [531235.5, 181988.6]]),
        shapely.LineString([[0, 0], [531234.5, 181987.6]]),
        shapely.GeometryCollection([shapely.Point(531234.5, 181987.6)]),
        shapely.GeometryCollection(),
        shapely.LinearRing([[0, 0], [1, 0], [1, 1]]),
        shapely.Polygon([[0, 0], [1, 1], [1, 0], [0, 1]]),
        shapely.box(531000, 181000, 532000, 182000),
        shapely.MultiLineString([[[0, 0], [1, 1]], [[1, 1], [2, 2]]]),
    ]
)


class TestBinaryTables:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("suffix", ["gpkg", "parquet"])
    @fuzz
    @given(
        st.lists(SHAPES, max_size=4),
        st.dictionaries(st.sampled_from(["deaths", "name", "x", "year", "from", "to"]), COLUMNS, max_size=3),
        st.sampled_from(["EPSG:27700", "EPSG:4326", "EPSG:4978", "EPSG:3857", None]),
    )
    def test_shapes_and_columns(self, suffix, capfd, shapes, columns, crs):
        values = {name: make(len(shapes)) for name, make in columns.items()}
        if suffix == "gpkg":
            # Writing these crashes pyogrio 0.12.
            shapes = [None if isinstance(shape, shapely.LinearRing) else shape for shape in shapes]
        rows = geopandas.GeoDataFrame(values, geometry=np.array([*shapes, None], dtype=object)[:-1], crs=crs)
        survives(PointPattern.from_geodataframe, rows, WINDOW, count="deaths", capfd=capfd)
        survives(LinearNetwork.from_geodataframe, rows, secret=None)
        with scratch() as folder:
            path = Path(folder) / f"rows.{suffix}"
            with warnings.catch_warnings(), contextlib.suppress(Exception):
                warnings.simplefilter("ignore")
                rows.to_parquet(path) if suffix == "parquet" else rows.to_file(path, driver="GPKG")
            if path.exists():
                read_all(path, capfd)
                survives(read_window, path, secret=None)
                survives(read_network, path, secret=None)

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE rows SET geom = x'00'",
            "UPDATE rows SET geom = x'4750000300000000'",
            "UPDATE rows SET geom = 'PATIENT-7719'",
            "UPDATE rows SET geom = 531234.56789",
            "UPDATE rows SET deaths = 'PATIENT-7719'",
            "UPDATE rows SET deaths = 9e999",
            "UPDATE rows SET name = CAST(x'ff00fe' AS TEXT)",
            "DELETE FROM gpkg_contents",
            "DELETE FROM gpkg_geometry_columns",
            "DELETE FROM gpkg_spatial_ref_sys",
            "UPDATE gpkg_spatial_ref_sys SET definition = 'PATIENT-7719'",
            "UPDATE gpkg_contents SET srs_id = 531234",
            "UPDATE gpkg_geometry_columns SET geometry_type_name = 'PATIENT-7719'",
            "UPDATE gpkg_geometry_columns SET column_name = 'PATIENT-7719'",
            "UPDATE gpkg_contents SET table_name = 'PATIENT-7719'",
            "DROP TABLE gpkg_contents",
            "DROP TABLE rows",
            "ALTER TABLE rows RENAME COLUMN deaths TO '531234.56789'",
            "ALTER TABLE rows ADD COLUMN x'531234.56789'",
            "DELETE FROM rows",
            "PRAGMA application_id = 0",
            "PRAGMA user_version = 999999",
        ],
    )  # fmt: skip
    def test_geopackages_edited_by_hand(self, statement, tmp_path, capfd):
        path = tmp_path / "rows.gpkg"
        path.write_bytes(table("gpkg"))
        with contextlib.closing(sqlite3.connect(path)) as base:
            for (trigger,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                base.execute(f'DROP TRIGGER "{trigger}"')
            with contextlib.suppress(sqlite3.OperationalError):
                base.execute(statement)
            base.commit()
        read_all(path, capfd)

    @pytest.mark.parametrize(
        "meta",
        [
            b"{}",
            b"[" * 5000,
            b"\xff",
            b'{"primary_column": "name", "columns": {"name": {"encoding": "WKB"}}, "version": "1.0.0"}',
            b'{"primary_column": "PATIENT-7719", "columns": {}, "version": "1.0.0"}',
            b'{"primary_column": "geometry", "columns": {"geometry": {"encoding": "PATIENT"}}, "version": "1.0.0"}',
            b'{"primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB", "crs": "PATIENT"}}}',
            b'{"primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB", "crs": {}}}, "version": "99"}',
        ],
    )
    def test_parquet_with_other_metadata(self, meta, tmp_path, capfd):
        import pyarrow.parquet

        rows = pyarrow.parquet.read_table(io.BytesIO(table("parquet")))
        path = tmp_path / "rows.parquet"
        pyarrow.parquet.write_table(rows.replace_schema_metadata({b"geo": meta}), path)
        read_all(path, capfd)

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        ("suffix", "crs"),
        [
            ("gpkg", 27700),
            ("gpkg", "+proj=lcc +lat_1=10 +lat_2=20"),
            ("gpkg", "ENGCRS"),
            ("parquet", 4326),
            ("parquet", "ENGCRS"),
        ],
    )
    def test_crs_with_a_name_of_its_own(self, suffix, crs, tmp_path, capfd):
        local = 'ENGCRS["PATIENT-7719",EDATUM["x"],CS[Cartesian,2],AXIS["e",east],AXIS["n",north],LENGTHUNIT["m",1]]'
        known = local if crs == "ENGCRS" else pyproj.CRS(crs).to_wkt()
        wkt = re.sub(r'^(\w+\[)"[^"]*"', r'\1"PATIENT-7719 531234"', known)
        assert pyproj.CRS(wkt).name == "PATIENT-7719 531234"
        path = tmp_path / f"rows.{suffix}"
        rows = frame().set_crs(wkt, allow_override=True)
        rows.to_parquet(path) if suffix == "parquet" else rows.to_file(path, driver="GPKG")
        elsewhere = Window.rectangle(0, 0, 1, 1, "EPSG:32630")
        for domain in (WINDOW, elsewhere, Window.rectangle(0, 0, 1, 1)):
            survives(read_pattern, path, domain, capfd=capfd)
        survives(read_pattern, path, WINDOW, crs="EPSG:32630", capfd=capfd)
        survives(read_pattern, path, WINDOW, to_crs="EPSG:27700", capfd=capfd)

    @pytest.mark.parametrize("layers", [["Anna 531234 PATIENT-7719", "homes"], ["rows", "PATIENT of ward 7"]])
    def test_layer_names(self, layers, tmp_path, capfd):
        path = tmp_path / "rows.gpkg"
        for layer in layers:
            frame().iloc[:1].to_file(path, layer=layer, driver="GPKG")
        assert "holds several layers" in str(survives(read_pattern, path, WINDOW, capfd=capfd))

    def test_repeated_column_names(self, tmp_path, capfd):
        rows = frame()
        double = pd.concat([rows, rows[["deaths"]]], axis=1)
        survives(PointPattern.from_geodataframe, double, WINDOW, count="deaths", capfd=capfd)
        survives(LinearNetwork.from_geodataframe, double, secret=None)


# --- Ledgers ---------------------------------------------------------------------------------------------------------


@functools.cache
def ledger() -> bytes:
    """A ledger with two authorisations, one of them taken up."""
    with scratch() as folder:
        book = Ledger.create(Path(folder) / "ledger.json", epsilon=3.0, delta=1e-5, alpha=25.0)
        guarantee = LaplaceSynthesizer(1.0, alpha=25.0).check(WINDOW, n=60)
        entry = book.authorise(guarantee, mechanism="laplace-cells", domain=WINDOW, n=1)
        book.authorise(guarantee, mechanism="laplace-cells", domain=WINDOW, subset={"year": 2021})
        one = PointPattern([WINDOW.geometry.centroid.coords[0]], WINDOW)
        LaplaceSynthesizer(1.0, alpha=25.0, postprocess="plain").plan(WINDOW, n=1).release(
            one, ledger=book, entry=entry
        )
        return book.path.read_bytes()


class TestLedgers:
    def read(self, content: bytes):
        with scratch() as folder:
            path = Path(folder) / "ledger.json"
            path.write_bytes(content)
            return survives(lambda: Ledger.open(path).spent, secret=None)

    def test_the_ledger_itself_is_good(self):
        assert self.read(ledger()) > 0

    @fuzz
    @given(st.data())
    def test_any_change_is_noticed(self, data):
        lines = [*map(json.loads, ledger().splitlines())]
        wild = mutated(data, lines)
        content = "".join(json.dumps(line, sort_keys=True, separators=(",", ":")) + "\n" for line in wild)
        outcome = self.read(content.encode())
        assert isinstance(outcome, DpppsynthError) or canonical(wild) == canonical(lines)

    @fuzz
    @given(st.lists(BITES, min_size=1, max_size=3))
    def test_bitten(self, bites):
        self.read(bitten(ledger(), bites))

    @pytest.mark.parametrize("content", [b"", b"{}", b"[" * 90000, b"\xff", b"null", b'{"events": []}'])
    def test_what_is_no_ledger(self, content):
        assert isinstance(self.read(content), DpppsynthError)


def canonical(value) -> str:
    return json.dumps(value, sort_keys=True)


# --- Releases --------------------------------------------------------------------------------------------------------


@functools.cache
def released() -> dict[str, dict[str, bytes]]:
    """Folders of releases, as bytes by name."""
    domain = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
    pattern = PointPattern(np.random.default_rng(2).uniform(0, 1000, (60, 2)), domain)
    offset = Offset.from_grid([[1.0, 2.0], [3.0, 0.5]], (0, 0, 1000, 1000))
    mesh = regular_triangulation(domain, shape=(5, 5))
    field = LGCPSynthesizer(1.0, alpha=50.0, inference="laplace", length_scale=450.0, mesh=mesh, offset=offset)
    made = {
        "tents": LaplaceSynthesizer(
            1.0, relation=AddRemove(), basis="tents", spacing=250.0, postprocess="plain"
        ).release(pattern),
        "field": field.release(pattern),
        "kernel": KernelSynthesizer(10.0, delta=1e-6, alpha=25.0).release(pattern),
    }
    with scratch() as folder:
        for name, release in made.items():
            release.save(Path(folder) / name)
        return {name: {file.name: file.read_bytes() for file in (Path(folder) / name).iterdir()} for name in made}


@contextlib.contextmanager
def unpacked(files: dict[str, bytes]) -> Iterator[Path]:
    with scratch() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        yield Path(folder)


def sealed(folder: Path) -> None:
    """Hash everything again, as somebody who wants to deceive would."""
    cert = json.loads((folder / certificate.FILENAME).read_text())
    with contextlib.suppress(AttributeError, TypeError, KeyError, OSError, ValueError, IndexError):
        for name in cert["files"]:
            cert["files"][name] = certificate.file_hash(folder / name)
    with contextlib.suppress(AttributeError, TypeError, ValueError):
        cert["content_hash"] = certificate.content_hash(cert)
    (folder / certificate.FILENAME).write_text(json.dumps(cert))


def open_all(folder: Path) -> None:
    survives(certificate.read, folder, secret=None)
    survives(verify, folder, secret=None)
    survives(load_release, folder, secret=None)


@pytest.mark.parametrize("kind", ["tents", "field", "kernel"])
class TestReleases:
    def test_the_folders_themselves_are_good(self, kind):
        with unpacked(released()[kind]) as folder:
            sealed(folder)
            assert verify(folder).holds
            load_release(folder)

    @pytest.mark.exhaustive
    @fuzz
    @given(st.data())
    def test_certificates(self, kind, data):
        files = released()[kind]
        wild = mutated(data, json.loads(files[certificate.FILENAME]))
        with unpacked(files | {certificate.FILENAME: json.dumps(wild).encode()}) as folder:
            open_all(folder)
            sealed(folder)
            open_all(folder)

    @pytest.mark.exhaustive
    @fuzz
    @given(st.data())
    def test_other_files(self, kind, data):
        files = released()[kind]
        name = data.draw(st.sampled_from(sorted(set(files) - {certificate.FILENAME})))
        if name.endswith("json") and data.draw(st.booleans()):
            content = json.dumps(mutated(data, json.loads(files[name]))).encode()
        else:
            content = bitten(files[name], data.draw(st.lists(BITES, min_size=1, max_size=3)))
        with unpacked(files | {name: content}) as folder:
            open_all(folder)
            sealed(folder)
            open_all(folder)

    @pytest.mark.exhaustive
    @fuzz
    @given(st.lists(BITES, min_size=1, max_size=3))
    def test_bitten_certificates(self, kind, bites):
        files = released()[kind]
        content = bitten(files[certificate.FILENAME], bites)
        with unpacked(files | {certificate.FILENAME: content}) as folder:
            open_all(folder)

    def test_a_pipe_is_not_waited_for(self, kind):
        with unpacked(released()[kind]) as folder:
            (folder / certificate.FILENAME).unlink()
            os.mkfifo(folder / certificate.FILENAME)
            for path in (folder, folder / certificate.FILENAME):
                assert "it is not a regular file" in str(survives(certificate.read, path))
                assert isinstance(survives(verify, path), DpppsynthError)

    @pytest.mark.exhaustive
    def test_something_else_where_files_were(self, kind):
        for name in released()[kind]:
            with unpacked(released()[kind]) as folder:
                (folder / name).unlink()
                open_all(folder)
                (folder / name).symlink_to(folder / name)
                open_all(folder)
                (folder / name).unlink()
                (folder / name).mkdir()
                open_all(folder)
                shutil.rmtree(folder / name)
