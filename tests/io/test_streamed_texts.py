"""Files of points are written some thousand rows at a time, with the same bytes as row by row."""

import csv
import io
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fuzzing import fuzz

from dpppsynth.core.crs import crs_member
from dpppsynth.io import file_contents, write_pattern
from dpppsynth.io.file_contents import written_points
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.tables.table import guarded

WINDOW = Window.rectangle(-1e6, -1e6, 1e6, 1e6, "EPSG:27700")
WORDS = st.one_of(st.text(max_size=5), st.sampled_from(["=1", "a\rb", "\r", 'a"b', "a,b", "%s %", "é", "\n", "", "'a"]))
KINDS = st.sampled_from(
    [st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**70), st.floats(), st.booleans(), WORDS, st.none() | WORDS,
     st.floats() | WORDS, st.dates(), st.datetimes(), st.none() | st.floats() | st.integers()]
)  # fmt: skip
COORDINATES = st.one_of(
    st.floats(-1e6, 1e6), st.sampled_from([0.0, -0.0, 5e-324, 1e-5, 1e-4, 123456.0, 425924.01900000003])
)


@st.composite
def patterns(draw):
    n = draw(st.integers(0, 9))
    xy = draw(st.lists(st.tuples(COORDINATES, COORDINATES), min_size=n, max_size=n))
    names = draw(st.lists(WORDS.filter(lambda name: name not in ("x", "y", "geometry")), unique=True, max_size=3))
    marks = {name: draw(st.lists(draw(KINDS), min_size=n, max_size=n)) for name in names}
    return PointPattern.synthetic(np.array(xy).reshape(-1, 2), WINDOW, marks)


def json_row_by_row(pattern):
    def value(cell):
        if cell is None or (isinstance(cell, float) and not math.isfinite(cell)):
            return None
        return cell if isinstance(cell, bool | int | float | str) else str(cell)

    marks = {name: values.tolist() for name, values in (pattern.marks or {}).items()}
    features = [
        {
            "type": "Feature",
            "properties": {name: value(values[i]) for name, values in marks.items()},
            "geometry": {"type": "Point", "coordinates": xy},
        }
        for i, xy in enumerate(pattern.xy.tolist())
    ]
    lines = ",\n".join(json.dumps(feature, allow_nan=False) for feature in features)
    crs = json.dumps(crs_member(pattern.domain.crs))
    return f'{{"type": "FeatureCollection",\n"crs": {crs},\n"features": [\n{lines}\n]}}\n'


def csv_row_by_row(pattern):
    marks, stream = pattern.marks or {}, io.StringIO()
    plain, quoting = (csv.writer(stream, lineterminator="\n", quoting=q) for q in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    rows = zip(*pattern.xy.T.tolist(), *(values.tolist() for values in marks.values()), strict=True)
    for row in map(guarded, [["x", "y", *marks], *rows]):
        (quoting if any(isinstance(cell, str) and "\r" in cell for cell in row) else plain).writerow(row)
    return stream.getvalue()


@pytest.mark.parametrize("rows", [1, 4, 1000])
@fuzz
@given(patterns())
def test_bytes_are_those_of_single_rows(rows, pattern):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_contents, "ROWS", rows)
        assert "".join(file_contents.geojson_parts(written_points(pattern))) == json_row_by_row(pattern)
        assert "".join(file_contents.csv_parts(written_points(pattern))) == csv_row_by_row(pattern)


@pytest.mark.parametrize("suffix", ["geojson", "csv"])
def test_no_more_than_some_rows_are_texts_at_once(suffix, tmp_path, monkeypatch):
    """A file of three hundred parts takes the memory of a few."""
    import tracemalloc

    monkeypatch.setattr(file_contents, "ROWS", 64)
    pattern = PointPattern(np.random.default_rng(3).uniform(0, 1000, (64 * 300, 2)), WINDOW)
    path = tmp_path / f"points.{suffix}"
    write_pattern(pattern, path)
    tracemalloc.start()
    write_pattern(pattern, path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size / 3
