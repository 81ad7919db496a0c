"""Errors in a file's columns and CRS, which are public, cost no budget; errors in its rows do.

And `inspect` finds what is wrong with rows before: a file that passes it is not refused with the same options.
"""

import json
import re

import geopandas
import numpy as np
import pytest
import shapely
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.seams import randomised_by
from typer.testing import CliRunner

from dpppsynth import cli
from dpppsynth.contract.stratified_plan import split
from dpppsynth.core.errors import InputError
from dpppsynth.io import inspect_points, read_pattern, require_head
from dpppsynth.ledger import Ledger
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.privacy import AddRemovePerson, ReplaceOne
from dpppsynth.release import load_release
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import require_number
from dpppsynth.spatial.tables.formats import read_head, read_table

WINDOW = Window.rectangle(0, 0, 100, 100, "EPSG:27700")
STREET = LinearNetwork([[0, 50], [100, 50]], [[0, 1]], "EPSG:27700")
N = 40
PLACE = ["--window", "0,0,100,100", "--crs", "EPSG:27700"]
LAPLACE = ["--method", "laplace", "--epsilon", 1, "--alpha", 5, "--spacing", 50]
BY = ["--by", "year", "--levels", "2021,2022"]
SUFFIXES = ("csv", "geojson", "gpkg", "parquet")


def run(*words, code=0):
    result = CliRunner().invoke(cli.app, [str(word) for word in words])
    assert result.exit_code == code, (result.output, result.exception)
    return re.sub(r"[\s│╭╮╰╯─]+", " ", result.output)


def frame():
    rng = np.random.default_rng(4)
    columns = {"year": np.repeat(["2021", "2022"], N // 2), "k": np.ones(N, int), "who": [f"p{i}" for i in range(N)]}
    return geopandas.GeoDataFrame(columns, geometry=shapely.points(rng.uniform(1, 99, (N, 2))), crs="EPSG:27700")


def test_the_head_of_geojson_is_read_past_its_values(tmp_path, monkeypatch):
    """Whatever stands in the rows, all that is known before the budget is authorised is what the names say."""
    member = '"crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::27700"}}'
    row = '{"type": "Feature", "properties": {"year": %s, "who": "%s"}, "geometry": %s}'
    point, digits = '{"type": "Point", "coordinates": [1, 2]}', "9" * 5000
    rows = {
        "plain": row % (2021, "a", point),
        "hostile": row % (digits, "b", '{"type": "Circle", "coordinates": [NaN, 1e999, -0, [[]]]}'),
        "nested": row % ('{"type": "Feature", "properties": {"more": 1}}', "c", f'{{"x": {digits}}}'),
    }
    for name, each in rows.items():
        (tmp_path / f"{name}.geojson").write_text(
            f'{{"type": "FeatureCollection", "features": [{each}, {each}], {member}}}'
        )
    monkeypatch.setattr("dpppsynth.spatial.tables.formats._shapes", None)
    for name in rows:
        assert require_head(tmp_path / f"{name}.geojson", WINDOW, marks=["year"]) == ("year", "who")
        with pytest.raises(InputError, match="no column 'more'"):
            require_head(tmp_path / f"{name}.geojson", WINDOW, marks=["more"])


@pytest.mark.parametrize(
    ("row", "beside"),
    [
        ({"year": 2021, "type": "Feature", "properties": {"more": 1}}, {}),
        ({"year": 2021, "coordinates": "x"}, {}),
        ({"year": 2021}, {"coordinates": []}),
    ],
)
def test_names_of_geojson_are_those_of_properties_whatever_they_are_called(row, beside, tmp_path):
    feature = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": row}
    file = tmp_path / "points.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": [feature], **beside}))
    head, table = read_head(file), read_table(file)
    assert list(head.columns) == list(table.columns) == list(row)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same points in every format."""
    folder, data = tmp_path_factory.mktemp("files"), frame()
    table = data.drop(columns="geometry").assign(x=data.geometry.x, y=data.geometry.y)
    table.to_csv(folder / "points.csv", index=False)
    document = json.loads(data.to_json(drop_id=True)) | {
        "crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::27700"}}
    }
    (folder / "points.geojson").write_text(json.dumps(document))
    data.to_file(folder / "points.gpkg")
    data.to_parquet(folder / "points.parquet")
    return {suffix: folder / f"points.{suffix}" for suffix in SUFFIXES}


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger.json", epsilon=3.0, delta=0.0, alpha=5.0)


class TestHeads:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("suffix", SUFFIXES)
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--by", "yaer", "--levels", "2021,2022"], "there is no column 'yaer'"),
            (["--count", "number"], "there is no column 'number'"),
            (["--to-crs", "EPSG:3035"], "crs: "),
        ],
    )
    @pytest.mark.parametrize("size", [[], ["--n", N]])
    def test_typos_cost_nothing(self, suffix, options, words, size, files, ledger, tmp_path):
        if "--by" in options and size:
            size = ["--n-by", "20,20"]
        place = ["--window", "0,0,100,100", *(PLACE[2:] if "--to-crs" not in options else [])]
        before = ledger.path.read_bytes()
        words_said = run(
            "synthesize", files[suffix], *place, *LAPLACE, *options, *size, "--out", tmp_path / "out", "--ledger",
            ledger.path, code=2,
        )  # fmt: skip
        if suffix != "csv" or "--to-crs" not in options:
            assert words in words_said
        assert ledger.path.read_bytes() == before

    @pytest.mark.parametrize("options", [["--x", "east"], ["--y", "north"]])
    def test_columns_of_coordinates_too(self, options, files, ledger, tmp_path):
        before = ledger.path.read_bytes()
        where = ["--out", tmp_path / "out", "--ledger", ledger.path]
        said = run("synthesize", files["csv"], *PLACE, *LAPLACE, *options, "--n", N, *where, code=2)
        assert f"no column '{options[1]}'" in said
        assert ledger.path.read_bytes() == before

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--x", "y"], "--y: column 'y' is read as --x"),
            (["--count", "x"], "--count: column 'x' is read as --x"),
            (["--by", "k", "--levels", "1,2", "--count", "k"], "--by: column 'k' is read as --count"),
            (["--by", "year", "--levels", "2021,,2022"], "--levels: needs a name before and after each comma"),
        ],
    )
    def test_one_column_read_as_two_things(self, options, words, files, ledger, tmp_path):
        before = ledger.path.read_bytes()
        where = ["--out", tmp_path / "out", "--ledger", ledger.path]
        assert words in run("synthesize", files["csv"], *PLACE, *LAPLACE, *options, *where, code=2)
        assert words in run("inspect", files["csv"], *PLACE, *options, "--out", tmp_path, code=2)
        assert ledger.path.read_bytes() == before

    def test_more_patterns_than_are_drawn_at_once(self, files, ledger, tmp_path):
        before = ledger.path.read_bytes()
        where = ["--out", tmp_path / "out", "--ledger", ledger.path]
        said = run("synthesize", files["csv"], *PLACE, *LAPLACE, "--patterns", 10_001, *where, code=2)
        assert "--patterns" in said
        assert "Input should be less than or equal to 10000" in said
        assert ledger.path.read_bytes() == before

    def test_one_column_of_both_coordinates_is_refused_in_python(self, files):
        with pytest.raises(InputError, match=r"^y: 'x' is the column of x already"):
            read_pattern(files["csv"], WINDOW, y="x")

    @pytest.mark.parametrize(
        ("options", "words", "code"),
        [
            (["lgcp", "--spacing", 1.25], "--spacing: a covariance over 6561 vertices", 2),
            (["lgcp", "--spacing", 20, "--length-scale", 1e300], "--length-scale: must lie between", 2),
            (["laplace", "--spacing", 1e-9], "needs more than 2000000 vertices", 2),
            (["kernel", "--delta", 1e-6, "--bandwidth", 1e-300], "does not satisfy", 3),
            (["kernel", "--delta", 1e-6, "--bandwidth", 1e-300, *BY], "does not satisfy", 3),
            (["disk-area", *BY], "--by: local methods have one report", 2),
            (["uniform-grid", "--cells", 4096], "ask for more than 4194304 cells", 2),
        ],
    )
    def test_options_that_suit_no_number_of_points_too(self, options, words, code, files, tmp_path):
        """Options with the number of points left to the file."""
        local = options[0] in ("disk-area", "uniform-grid")
        promise = {"relation": ReplaceOne()} if local else {"alpha": 5.0}
        ledger = Ledger.create(tmp_path / "ledger.json", epsilon=3.0, delta=1e-3, **promise)
        before = ledger.path.read_bytes()
        asked = ["--method", *options, "--epsilon", 1, *([] if local else ["--alpha", 5])]
        where = ["--out", tmp_path / "out", "--ledger", ledger.path]
        assert words in run("synthesize", files["csv"], *PLACE, *asked, *where, code=code)
        assert ledger.path.read_bytes() == before

    @pytest.mark.parametrize("suffix", SUFFIXES)
    def test_the_column_of_persons_too(self, suffix, files, tmp_path):
        ledger = Ledger.create(tmp_path / "ledger.json", epsilon=3.0, delta=0.0, relation=AddRemovePerson("whom"))
        before = ledger.path.read_bytes()
        heat = ["--method", "heatmap", "--epsilon", 1, "--shape", "8,8", "--user", "whom"]
        where = ["--out", tmp_path / "out", "--ledger", ledger.path]
        assert "there is no column 'whom'" in run("synthesize", files[suffix], *PLACE, *heat, *where, code=2)
        assert ledger.path.read_bytes() == before

    @pytest.mark.parametrize("suffix", SUFFIXES)
    def test_are_those_of_the_reader(self, suffix, files):
        known = {"crs": "EPSG:27700"} if suffix == "csv" else {}
        require_head(files[suffix], WINDOW, **known, count="k", marks=["year"], user="who")
        read_pattern(files[suffix], WINDOW, **known, count="k", marks=["year"], user="who")
        wrong = {"count": "n"}, {"marks": ["month"]}, {"user": "whom"}, {"crs": "EPSG:3035"}
        for options in wrong:
            said = []
            for door in (require_head, read_pattern):
                with pytest.raises(InputError) as caught:
                    door(files[suffix], WINDOW, **known | options)
                said.append(str(caught.value))
            assert said[0] == said[1]

    def test_rows_are_not_looked_at(self, tmp_path):
        """Whatever follows the first line."""
        path = tmp_path / "points.csv"
        path.write_bytes(b"\nx,y,year\n" + b'\xff\xfe,,"\n' * 9)
        require_head(path, WINDOW, marks=["year"])
        with pytest.raises(InputError):
            read_pattern(path, WINDOW, marks=["year"])

    def test_a_first_line_that_is_no_text(self, tmp_path):
        path = tmp_path / "points.csv"
        path.write_bytes(b"x,y,\xff\n1,2,3\n")
        with pytest.raises(InputError, match=r"no text in utf-8"):
            require_head(path, WINDOW)

    @pytest.mark.parametrize("suffix", ["gpkg", "parquet"])
    def test_of_other_formats_neither(self, suffix, files, monkeypatch):
        import pyarrow.parquet
        import pyogrio

        seen = []
        read = pyogrio.read_dataframe
        monkeypatch.setattr(pyogrio, "read_dataframe", lambda *a, **k: (seen.append(k), read(*a, **k))[1])
        opened = geopandas.read_parquet
        monkeypatch.setattr(geopandas, "read_parquet", lambda s: (seen.append(opened(s)), opened(s))[1])
        monkeypatch.setattr(pyarrow.parquet.ParquetFile, "read", lambda *_, **__: pytest.fail("rows were read"))
        require_head(files[suffix], WINDOW, marks=["year"])
        assert seen[0] == {"layer": "points", "where": "1 = 0"} if suffix == "gpkg" else len(seen[0]) == 0


class TestRows:
    @pytest.mark.parametrize(
        ("options", "row"),
        [
            ([], "999,5,2021,1"),
            (["--n", N], ""),
            (["--n", N + 1, "--count", "k"], "5,5,2021,-1"),
            (BY, "5,5,2023,1"),
            ([*BY, "--n-by", "20,20"], "5,5,2023,1"),
            (["--by", "year", "--levels", "2021,2022,2024"], "5,5,2022,1"),
        ],
    )
    def test_cost_and_say_why_and_inspect_finds_them_first(self, options, row, files, ledger, tmp_path):
        lines = [f"{x},{y},{2021 + (i >= 20)},1" for i, (x, y) in enumerate(np.arange(2 * N).reshape(N, 2).tolist())]
        path = tmp_path / "points.csv"
        path.write_text("\n".join(["x,y,year,k", *lines[: N if row else N - 1], *([row] if row else [])]) + "\n")
        run("inspect", path, *PLACE, *options, "--out", tmp_path / "private", code=2)
        where = ["--out", tmp_path / "out", "--ledger", ledger.path]
        said = run("synthesize", path, *PLACE, *LAPLACE, *options, *where, code=2)
        assert "found in the rows of the file, after the budget was authorised" in said
        assert "dpppsynth inspect" in said
        assert [entry.state for entry in ledger.open(ledger.path).releases] == ["authorised"]


def test_what_was_paid_for_is_saved_when_no_pattern_can_be_drawn(files, ledger, tmp_path):
    where = ["--out", tmp_path / "out", "--ledger", ledger.path]
    with randomised_by(lambda plan, draw, exact: np.full_like(exact, 2**50)):
        said = run("synthesize", files["csv"], *PLACE, *LAPLACE, "--postprocess", "clip", "--n", N, *where, code=5)
    assert "more points than memory holds" in said
    assert "Nothing is lost" in said
    assert not list((tmp_path / "out").glob("synthetic_*"))
    assert load_release(tmp_path / "out").mechanism == "laplace-cells"


CELLS = st.sampled_from(["5", "50", "99.5", "100", "-1", "250", "", "x", "nan", "inf", "1_0", " 7 "])
YEARS = st.sampled_from(["2021", "2022", "2023", "", " 2021", "2021.0"])
COUNTS = st.sampled_from(["0", "1", "2", "3", "-1", "1.5", "", "many"])
WHO = st.sampled_from(["ann", "ben", "", "NA", "7", "7.5"])
ROWS = st.lists(st.tuples(CELLS, CELLS, YEARS, COUNTS, WHO), max_size=4)
GOOD = st.lists(
    st.tuples(
        *[st.sampled_from(["5", "50", "99"])] * 2, st.sampled_from(["2021", "2022"]), st.just("1"), st.just("ann")
    ),
    max_size=4,
)


class TestInspection:
    @pytest.mark.slow
    @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        rows=st.tuples(GOOD, ROWS, st.booleans()).map(lambda each: each[0] if each[2] else each[0] + each[1]),
        count=st.sampled_from([None, "k"]),
        user=st.sampled_from([None, "who"]),
        by=st.booleans(),
        levels=st.sampled_from([["2021"], ["2021", "2022"], ["2021", "2022", "2023"]]),
        n=st.sampled_from([None, 1, 2, 3]),
        street=st.booleans(),
        json_file=st.booleans(),
    )
    def test_is_what_a_release_will_say(self, rows, count, user, by, levels, n, street, json_file, tmp_path):
        """A file passes exactly if its rows are not refused with the same options."""
        path = written(rows, tmp_path / ("rows.geojson" if json_file else "rows.csv"))
        domain, snap = (STREET, 10.0) if street else (WINDOW, None)
        options = {"count": count, "user": user, "snap": snap}
        sizes = dict.fromkeys(levels, n) if by and n else n
        marks = {"by": "year", "levels": levels} if by else {}
        try:
            passes = inspect_points(path, domain, report_to=tmp_path, **options, **marks, n=sizes).ok
        except InputError:
            passes = False
        assert passes == accepted(path, domain, options, marks, sizes)


def accepted(path, domain, options, marks, n):
    """Whether the points can be read, and split by their levels, and are as many as planned for."""
    try:
        pattern = read_pattern(path, domain, **options, marks=["year"] if marks else [])
        if not marks:
            require_number(pattern, n)
            return True
        for level, part in split(pattern, "year", marks["levels"]).items():
            require_number(part, n[level] if n else None)
    except InputError:
        return False
    return True


def written(rows, path):
    """A CSV file, or a GeoJSON one with numbers where the cells are some."""
    if path.suffix == ".csv":
        path.write_text("\n".join(["x,y,year,k,who", *map(",".join, rows)]) + "\n")
        return path
    features = [
        {
            "type": "Feature",
            "properties": {"year": number(year), "k": number(k), "who": number(who)},
            "geometry": {"type": "Point", "coordinates": [number(x), number(y)]},
        }
        for x, y, year, k, who in rows or [("5", "5", "2021", "1", "ann")]
    ]
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::27700"}}
    path.write_text(json.dumps({"type": "FeatureCollection", "crs": crs, "features": features}))
    return path


def number(cell):
    """The number that a cell is, without what JSON has no word for."""
    try:
        return json.loads(cell)
    except ValueError:
        return cell or None
