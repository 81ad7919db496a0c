"""CSV files hold no cell that a spreadsheet would run, and read back as they were."""

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from dpppsynth import cli
from dpppsynth.io import inspect_points, read_pattern, read_synthetic, write_pattern
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.tables.table import guarded, restored
from dpppsynth.synthesizers import BoundedErrorSynthesizer

WINDOW = Window.rectangle(0, 0, 100, 100, "EPSG:27700")
BAD = ["=HYPERLINK(1)", "+cmd|' /C calc'!A0", "-1+1", "@SUM(A1)", "\tx", "\rx", "'=1", "'a", "\uff1d1+1"]


def cells(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return [cell for row in csv.reader(stream) for cell in row]


def runs(cell):
    """Whether a spreadsheet would take a cell for more than a text or a number."""
    try:
        float(cell)
    except ValueError:
        return cell.startswith(("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r"))
    return False


@given(st.text() | st.sampled_from(BAD))
def test_texts_come_back(text):
    (cell,) = guarded([text])
    assert not runs(cell)
    assert restored(cell) == text


@given(st.integers() | st.floats(allow_nan=False) | st.none())
def test_numbers_are_left_alone(number):
    assert guarded([number]) == [number]


def test_patterns(tmp_path):
    xy = np.column_stack([np.arange(1, len(BAD) + 1)] * 2)
    pattern = PointPattern.synthetic(xy, WINDOW, {"=mark": BAD, "n": np.arange(len(BAD)) - 3})
    write_pattern(pattern, tmp_path / "synthetic.csv")
    assert not any(map(runs, cells(tmp_path / "synthetic.csv")))
    again = read_synthetic(tmp_path / "synthetic.csv", WINDOW, marks=["=mark", "n"])
    assert again.marks["=mark"].tolist() == BAD
    assert again.marks["n"].tolist() == pattern.marks["n"].tolist()


def test_persons_of_sensitive_files_are_never_merged(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("x,y,user\n1,1,=a\n2,2,'=a\n")
    assert len(set(read_pattern(path, WINDOW, user="user").marks["user"])) == 2


def test_offending_rows(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("x,y,=note\n" + "".join(f'500,5,"{text}"\n' for text in BAD))
    report = inspect_points(path, WINDOW, report_to=tmp_path).report
    assert not any(map(runs, cells(report)))


@pytest.mark.parametrize("filtered", [[], ["--filtered"]])
def test_levels_of_counts(filtered, tmp_path):
    rng, levels = np.random.default_rng(3), BAD[:4]
    pattern = PointPattern(rng.uniform(0, 100, (80, 2)), WINDOW, {"=by": np.repeat(levels, 20)})
    counts = BoundedErrorSynthesizer(epsilon=1.0, max_error=40, spacing=50.0)
    counts.release_by(pattern, by="=by", levels=levels).save(tmp_path / "public")
    out = ["counts", str(tmp_path / "public"), "--out", str(tmp_path / "table.csv"), *filtered]
    assert CliRunner().invoke(cli.app, out).exit_code == 0
    found = cells(tmp_path / "table.csv")
    assert not any(map(runs, found))
    assert set(levels) | {"=by"} <= set(map(restored, found))
