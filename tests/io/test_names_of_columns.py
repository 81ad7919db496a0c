"""Names of marks that a format cannot hold: written under others, said, and read back."""

import sqlite3
import warnings
from contextlib import closing

import geopandas
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpppsynth.core.errors import InformationWarning, InputError
from dpppsynth.io import read_synthetic, write_pattern
from dpppsynth.io.file_contents import KEPT, fitting_names
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mark_space import Marks, Types
from dpppsynth.spatial.patterns import PointPattern

WINDOW = Window.rectangle(0, 0, 10, 10, "EPSG:27700")
XY = np.random.default_rng(1).uniform(0, 10, (6, 2))
# Whole numbers that differ are what a GeoPackage would take a column "fid" for.
VALUES = {
    "fid": np.arange(6) * 3 + 1,
    "FID": np.array([*"ababab"]),
    "Geom": np.array([*"cdcdcd"]),
    "type": np.array([*"efefef"]),
    "TYPE": np.arange(6),
    "type_2": np.array([*"ghghgh"]),
    "OGC_FID": np.arange(6)[::-1].copy(),
    "rowid": np.array([*"xyzxyz"]),
}


@pytest.mark.parametrize("suffix", ["gpkg", "parquet", "geojson", "csv"])
def test_nothing_is_lost(tmp_path, suffix):
    pattern, path = PointPattern(XY, WINDOW, VALUES), tmp_path / f"p.{suffix}"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", InformationWarning)
        write_pattern(pattern, path)
    assert len(said) == (suffix == "gpkg")
    for order in (list(VALUES), list(VALUES)[::-1]):
        back = read_synthetic(path, WINDOW, marks=order)
        assert {name: back.marks[name].astype(str).tolist() for name in VALUES} == {
            name: values.astype(str).tolist() for name, values in VALUES.items()
        }


def test_others_are_named_and_readers_see_them(tmp_path):
    path = tmp_path / "p.gpkg"
    with pytest.warns(InformationWarning, match="'FID' as 'FID_2'.*'fid' as 'fid_3'.*'type' as 'type_3'"):
        write_pattern(PointPattern(XY, WINDOW, VALUES), path)
    frame = geopandas.read_file(path)
    assert frame["fid_3"].tolist() == VALUES["fid"].tolist()
    assert frame["type_2"].tolist() == VALUES["type_2"].tolist()
    assert frame["type_3"].tolist() == VALUES["type"].tolist()
    with closing(sqlite3.connect(path)) as base:
        assert [row[1] for row in base.execute("PRAGMA table_info(p)") if row[5]] == ["fid"]


def test_types_come_back_under_their_name(tmp_path):
    marks = Marks(Types("fid", ["a", "b"]))
    path = tmp_path / "p.gpkg"
    with pytest.warns(InformationWarning, match="'fid' as 'fid_2'"):
        write_pattern(PointPattern(XY, WINDOW, {"fid": np.array([*"ababab"])}), path)
    assert read_synthetic(path, WINDOW, described=marks).marks["fid"].tolist() == [*"ababab"]


def test_plain_names_stay(tmp_path):
    write_pattern(PointPattern(XY, WINDOW, {"kind": np.array([*"ababab"]), "fid_2": np.arange(6)}), tmp_path / "p.gpkg")
    assert {"kind", "fid_2"} <= {*geopandas.read_file(tmp_path / "p.gpkg").columns}


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*KEPT, "FID", "Fid", "fid_2", "FID_2", "fid_3", "a", "A", "a_2"]), unique=True))
def test_names_differ_without_case_and_are_free(names):
    found = fitting_names(names, ".gpkg")
    words = [word.lower() for word in found.values()]
    assert set(found) == set(names)
    assert len(set(words)) == len(words)
    assert not set(words) & KEPT
    assert found == fitting_names(names[::-1], ".gpkg")
    # A name stays where it may: it is taken from nobody.
    for name, word in found.items():
        assert word == name or name.lower() in KEPT or sum(name.lower() == other.lower() for other in names) > 1


@pytest.mark.parametrize("name", sorted(VALUES))
def test_one_mark_alone_is_read_under_its_own_name(tmp_path, name):
    """A reader that is asked for one mark does not know by which others it was renamed."""
    values = {each: VALUES[each] for each in VALUES if each != "type_2"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InformationWarning)
        write_pattern(PointPattern(XY, WINDOW, values), tmp_path / "p.gpkg")
    if name in values:
        found = read_synthetic(tmp_path / "p.gpkg", WINDOW, marks=[name])
        assert (found.marks or {})[name].tolist() == values[name].tolist()


def test_a_column_that_may_be_either_mark_is_not_guessed(tmp_path):
    values = {name: np.arange(6) + 10 * k for k, name in enumerate(("fid", "fid_2"))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InformationWarning)
        write_pattern(PointPattern(XY, WINDOW, values), tmp_path / "p.gpkg")
    with pytest.raises(InputError, match=r"'fid' was written under another name, as one of fid_2, fid_3"):
        read_synthetic(tmp_path / "p.gpkg", WINDOW, marks=["fid"])
    both = read_synthetic(tmp_path / "p.gpkg", WINDOW, marks=["fid", "fid_2"])
    assert (both.marks or {})["fid"].tolist() == values["fid"].tolist()
    alone = read_synthetic(tmp_path / "p.gpkg", WINDOW, marks=["fid_3"])
    assert (alone.marks or {})["fid_3"].tolist() == values["fid"].tolist()
