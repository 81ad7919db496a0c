"""CSV files are read column by column as they would be cell by cell: the same numbers, kinds, rules and errors."""

import csv
import gzip
import itertools
import math
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from support.fuzzing import LOOKS, fuzz, scratch

from dpppsynth.core.errors import InputError
from dpppsynth.io import inspect_points, read_pattern
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.marks import column
from dpppsynth.spatial.tables import csv_files
from dpppsynth.spatial.tables.csv_files import numbers, typed
from dpppsynth.spatial.tables.formats import read_table, read_tables
from dpppsynth.spatial.tables.table import number

WINDOW = Window.rectangle(0, 0, 1000, 1000)
looks = settings(fuzz, max_examples=LOOKS or 150, phases=[Phase.explicit, Phase.generate])


# --- Cell by cell ----------------------------------------------------------------------------------------------------


def by_cell(cells):
    """A column of text, as numbers where every cell allows it."""
    text = column(cells)
    if text.dtype.kind != "U" or any(re.match("[+-]?0[0-9]|.*_", cell) for cell in cells):
        return text
    if all(re.fullmatch("0|-?[1-9][0-9]*", cell) for cell in cells):
        return column([int(cell) for cell in cells])
    try:
        with np.errstate(over="ignore"):
            return text.astype(np.float64)
    except ValueError:
        return text


def rows_by_cell(path):
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return [row for row in csv.reader(stream, strict=True) if row]


def same(found, expected):
    """Whether two arrays are alike to the last bit, or objects of the same kinds."""
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return False
    if found.dtype.kind == "O":
        return [(type(a), a) for a in found] == [(type(a), a) for a in expected]
    return found.tobytes() == expected.tobytes()


def texts(cells, *cuts):
    """Cells in several chunks."""
    edges = [0, *sorted(cut for cut in cuts if cut < len(cells)), len(cells)]
    chunks = [pa.array(cells[a:b], pa.large_string()) for a, b in itertools.pairwise(edges)]
    return pa.chunked_array(chunks, pa.large_string())


DIGITS = st.text("0123456789", min_size=1, max_size=40)
DECIMALS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.builds(lambda a, b, e: f"{a}.{b}e{e}", DIGITS, DIGITS, st.integers(-330, 330)),
    st.builds(lambda a, b: f"{a}.{b}", DIGITS, DIGITS),
    st.integers().map(str),
)
STRANGE = st.sampled_from(
    ["", " ", "\t1.5 ", "\u00a01", " 7", "7 ", "nan", "NaN", "nan(1)", "inf", "-Infinity", "1e999", "-0", "0", "+5",
     "007", "+01", "1_0", "_", "0x1F", "1,5", "\u0661", "\u0967.5", "1.", ".5", ".", "-", "e5", "1e", "--1", "True",
     "\0", "1\0", "a\0", "é", "9" * 400, "1e-400", "9223372036854775807", "9223372036854775808", "-1", "x" * 1001]
)  # fmt: skip
CELLS = st.one_of(DECIMALS, STRANGE, st.text(max_size=4))


# A sum of two neighbouring doubles, halved: digits far behind the seventeenth tell where it is rounded to.
@pytest.mark.slow
@example(["1.00000000000000011102230246251565404236316680908203125"], [])
@example(["1.00000000000000011102230246251565404236316680908203126"], [])
@example(["9007199254740993", "2.2250738585072011e-308", "4.9e-324", "2.4e-324"], [2])
@example(["1", "nan(1)"], [1])
@example(["1", "2", "9223372036854775808"], [])
@looks
@given(st.one_of(st.lists(CELLS, max_size=6), st.lists(DECIMALS, max_size=6)), st.lists(st.integers(1, 5), max_size=2))
def test_columns(cells, cuts):
    found, expected = numbers(texts(cells, *cuts)), [number(cell) for cell in cells]
    assert found.text.tolist() == [value is None for value in expected]
    values = np.array([math.nan if value is None else value for value in expected], dtype=np.float64)
    assert np.array_equal(found.values, values, equal_nan=True)
    assert (np.signbit(found.values) == np.signbit(values))[~np.isnan(values)].all()
    assert same(typed(texts(cells, *cuts)), by_cell(cells))
    # Often the same cells again, as in a column of kinds.
    assert same(typed(texts(cells * 3, *cuts)), by_cell(cells * 3))


# --- Whole files -----------------------------------------------------------------------------------------------------

HEADERS = st.sampled_from(
    ["x,y", "x,y,kind", '"x","y","kind"', " x , y ,kind", "y,kind,x", "x", "x,x", "x,y,,", '"x,y']
)
ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\n", "\r\n\n", "\n\r", "\n \n", "\u2028", "\x0b"])
PIECES = st.one_of(
    CELLS, st.sampled_from(
    ['"a"', '"a,b"', '"1.5"', '"a""b"', 'a"b', '"a"b', '"a\nb"', '"', "\ufeff1", "\ufeff"]))  # fmt: skip


@st.composite
def files(draw):
    start = draw(
        st.sampled_from([b"", b"\xef\xbb\xbf", b"\n", b"\r\n", b"\xef\xbb\xbf\n", b"\xef\xbb\xbf\xef\xbb\xbf"])
    )
    end = draw(ENDS)
    width = draw(st.sampled_from([2, 3, 3, 3]))
    good = st.lists(st.one_of(DECIMALS, CELLS), min_size=width, max_size=width)
    rows = draw(st.lists(st.one_of(good, good, st.lists(PIECES, max_size=4)), max_size=5))
    lines = [draw(HEADERS), *(",".join(row) for row in rows)]
    body = "".join(line + (end if draw(st.integers(0, 5)) else draw(ENDS)) for line in lines)
    content = start + body.encode("utf-8", "surrogatepass")
    return content.removesuffix(draw(st.sampled_from([b"", b"\n"]))) + draw(
        st.sampled_from([b"", b"", b"", b"\xff", b"\r"])
    )


@pytest.mark.slow
@example(b"x,y\n1,2\n\xef\xbb\xbf3,4\n")
@example(b"x,y\n\xef\xbb\xbf3,4\n")
@example(b"x,y\r1,2\r3,4\r")
@example(b"x,y\n1,2\r3,4\n")
@example(b'x,y\n"1","2"\n3,4\n')
@example(b"x,y\n1\n2,3,4\n")
@example(b'x,y,kind\n1,2,"a,b"\n3,4,""\n"5",6,"c"')
@example(b'x,y,kind\n1,2,"a\nb"\n3,4,"c"\n')
@example(b'x,y,kind\n1,2,a"b\n3,4,c"d\n')
@example(b'x,y,kind\n1,2,"a""b"\n')
@example(b'x,y,kind\n1,2, "a,b"\n3,4,"c" \n')
@example(b'x,y,kind\r\n1,2,"a"\r\n\r\n3,4,"b\r\n')
@looks
@given(files())
def test_files(content):
    with scratch() as folder:
        path = Path(folder) / "points.csv"
        path.write_bytes(content)
        try:
            header, *rows = rows_by_cell(path) or [[]]
        except (UnicodeDecodeError, csv.Error):
            with pytest.raises(InputError, match=r"cannot be read as CSV|quotation mark|is no text in"):
                read_table(path)
            return
        names = [name.strip() for name in header]
        if any(names.count(name) > 1 for name in names if name) or {"x", "y"} - set(names):
            with pytest.raises(InputError, match=r"must differ|has no column"):
                read_table(path)
            return
        table = read_table(path)
        assert [table.original(i) for i in range(len(rows))] == rows
        assert table.garbled["wrong number of fields"].tolist() == [len(row) != len(names) for row in rows]
        padded = [[*row, *[""] * len(names)][: len(names)] for row in rows]
        cells = {name: [row[i] for row in padded] for i, name in enumerate(names)}
        assert list(table.columns) == list(cells)
        for name, own in cells.items():
            assert list(table.cells(name)) == own
            assert same(table.columns[name], by_cell(own))
        for axis, name in enumerate("xy"):
            values = [number(cell) for cell in cells[name]]
            expected = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
            assert np.array_equal(table.xy[:, axis], expected, equal_nan=True)
        text = [any(number(cell) is None for cell in both) for both in zip(cells["x"], cells["y"], strict=True)]
        assert table.garbled["not a number"].tolist() == text


@pytest.mark.parametrize("short", [[0], [699], [5, 6, 7], [*range(200, 700)], [*range(700)], [*range(0, 700, 7)]])
def test_rows_of_another_length_keep_their_places(short, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_files, "BLOCK", 256)
    rows = [[str(i), "2", "a,b"] for i in range(700)]
    for i in short:
        rows[i] = rows[i][:2] if i % 2 else [*rows[i], "3", "4"]
    path = tmp_path / "points.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([["x", "y", "kind"], *rows])
    table = read_table(path)
    assert [table.original(i) for i in range(700)] == rows
    assert np.flatnonzero(table.garbled["wrong number of fields"]).tolist() == short
    assert table.xy[:, 0].tolist() == [*range(700)]
    parts = [*read_tables(path)]
    assert max(map(len, parts)) < 100 or len(short) > 400
    assert [part.original(i) for part in parts for i in range(len(part))] == rows
    assert np.concatenate([part.xy[:, 0] for part in parts]).tolist() == [*range(700)]


@pytest.mark.parametrize("quote", ["", '"', '"""'])
def test_many_rows_through_every_chunk(quote, tmp_path, monkeypatch):
    """Rows across the borders of blocks, with a bad one far behind."""
    monkeypatch.setattr(csv_files, "BLOCK", 512)
    xy = np.random.default_rng(5).uniform(0, 1000, (700, 2))
    path = tmp_path / "points.csv"
    lines = [f"{x!r},{y!r},{quote}{i % 7}{quote}" for i, (x, y) in enumerate(xy.tolist())]
    path.write_text("\r\n".join(["x,y,kind", *lines, ""]), newline="")
    pattern = read_pattern(path, WINDOW, marks=["kind"])
    assert np.array_equal(pattern.xy, xy)
    assert [str(kind).strip('"') for kind in pattern.marks["kind"]] == [str(i % 7) for i in range(700)]
    lines[600] = "here,5,1"
    lines[650] = "1,5"
    path.write_text("\n".join(["x,y,kind", *lines]), newline="")
    found = inspect_points(path, WINDOW, report_to=tmp_path)
    assert found.rules == ("wrong number of fields", "not a number")
    assert found.report.read_text().splitlines()[1:] == ["601,not a number,here,5,1", "651,wrong number of fields,1,5"]


def test_coordinates_need_no_geometries(tmp_path):
    """A row that lacks a coordinate, has none that is finite or counts nothing is told apart as with geometries."""
    path = tmp_path / "points.csv"
    path.write_text("x,y,k\n1,2,3\n,5,1\n1e999,5,1\n5,,0\nfive,5,0\n5000,5,1\n5,5,-1\n6,6,1\n")
    found = inspect_points(path, WINDOW, report_to=tmp_path, count="k")
    assert found.rules == ("missing coordinate", "not finite", "outside window", "bad count")
    assert [line.split(",")[0] for line in found.report.read_text().splitlines()[1:]] == ["2", "3", "6", "7"]
    path.write_text("x,y,k\n1,2,3\n5,,0\n6,6,1\n")
    assert read_pattern(path, WINDOW, count="k").xy.tolist() == [[1, 2], [1, 2], [1, 2], [6, 6]]
    assert shapely.equals(read_table(path).geometry[0], shapely.Point(1, 2))


# --- Lines that memory would not hold ---------------------------------------------------------------------------------


def memory_of_reading(text, name, tmp_path):
    """Highest memory in bytes while a table is refused, and the refusal."""
    (tmp_path / name).write_bytes(gzip.compress(text, 1))
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as refusal:
            read_table(tmp_path / name)
        return tracemalloc.get_traced_memory()[1], str(refusal.value)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("start", [b"", b"x,y,", b"x,y,name\n1,1,", b'x,y,name\n1,1,"', b'x,y,name\n1,1,a"b'])
def test_a_line_of_64_mib_is_refused_before_it_is_unpacked(start, tmp_path):
    memory, refusal = memory_of_reading(start + b"a" * 2**26, "points.csv.gz", tmp_path)
    assert refusal.startswith("path: a line of points.csv.gz is longer than 4 MiB")
    assert memory < 2**25


def test_rows_after_each_other_are_no_long_line(tmp_path):
    path = tmp_path / "points.csv.gz"
    path.write_bytes(gzip.compress(b"x,y\r" + b"1.25,2.5\r" * 10**6, 1))
    assert len(read_table(path).places) == 10**6
