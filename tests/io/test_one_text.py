"""One value is one level, one type and one person, in whatever format a file holds it."""

import json

import geopandas
import pandas as pd
import pytest
import shapely
from support.command_line import run, spoken

from dpppsynth.contract.stratified_plan import level_names, sizes
from dpppsynth.core.errors import InputError
from dpppsynth.io import inspect_points, read_pattern
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mark_space import Marks, Types
from dpppsynth.spatial.marks import as_list, listed, word
from dpppsynth.spatial.persons import persons

WINDOW = Window.rectangle(0, 0, 10, 10)
YEARS = [2021, 2022, 2021, 2022]
FORMS = {
    "whole": YEARS,
    "real": [float(year) for year in YEARS],
    "text": [str(year) for year in YEARS],
    "text with a point": [f"{year}.0" for year in YEARS],
    "both": ["2021", "2022.0", "2021.00", " 2022"],
}


def written(path, years):
    places = [(1, 1), (2, 2), (3, 3), (4, 4)]
    frame = geopandas.GeoDataFrame({"year": years}, geometry=shapely.points(places))
    if path.suffix == ".csv":
        pd.DataFrame({"x": [x for x, _ in places], "y": [y for _, y in places], "year": years}).to_csv(
            path, index=False
        )
    elif path.suffix == ".geojson":
        path.write_text(json.dumps(json.loads(frame.to_json()) | {"crs": None}))
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_file(path, engine="pyogrio")
    return path


@pytest.mark.filterwarnings("ignore:'crs' was not provided")
@pytest.mark.parametrize("suffix", [".csv", ".geojson", ".parquet", ".gpkg", ".shp"])
@pytest.mark.parametrize("years", FORMS.values(), ids=FORMS)
def test_levels_and_types_of_every_format(years, suffix, tmp_path):
    path = written(tmp_path / f"points{suffix}", years)
    for levels in (["2021", "2022"], level_names([2021.0, 2022.0]), level_names(["2021.0", "2022"])):
        assert inspect_points(path, WINDOW, report_to=tmp_path, by="year", levels=levels).ok
    for values in (["2021", "2022"], ["2021.0", "2022.0"], [2021, 2022], [2021.0, 2022.0]):
        found = read_pattern(path, WINDOW, described=Marks(Types("year", values)))
        assert found.marks["year"].tolist() == ["2021", "2022", "2021", "2022"]


@pytest.mark.parametrize("text", ["007", "1e3", "1.50", "2021.01", "-.0", "1.0.0", "v2.0", "01.0"])
def test_other_texts_keep_what_they_hold(text):
    assert word(text) == text


def test_persons():
    assert persons(["7", "7.0", " 7 ", "07"]).tolist() == [0, 0, 0, 1]


def test_the_same_level_twice():
    with pytest.raises(InputError, match="different values"):
        level_names([2021, "2021.0"])
    with pytest.raises(InputError, match="must differ"):
        Types("year", ["2021", 2021.0])
    assert sizes(["2021"], {2021.0: 5}, "n") == {"2021": 5}


NAMES = ["THEFT", "ASSAULT, OTHER", 'said "so", or so']


class TestLists:
    def test_round_trip(self):
        assert listed("levels", as_list(NAMES)) == NAMES

    @pytest.mark.parametrize("text", ['"open', 'a,"b"c'])
    def test_refused(self, text):
        with pytest.raises(InputError, match="levels"):
            listed("levels", text)

    def ways(self, folder):
        (folder / "levels.txt").write_text("\ufeff" + "\n\n".join(NAMES) + "\n", encoding="utf-8")
        repeated = [word for name in NAMES for word in ("--levels", name)]
        types = [word for name in NAMES for word in ("--types", f"kind={name}")]
        yield ["--by", "kind", "--levels", as_list(NAMES)]
        yield ["--by", "kind", *repeated]
        yield ["--by", "kind", "--levels-file", folder / "levels.txt"]
        yield ["--types", f"kind={as_list(NAMES)}"]
        yield types

    def test_values_with_commas(self, tmp_path):
        rows = {"x": [1, 2, 3], "y": [1, 2, 3], "kind": NAMES}
        pd.DataFrame(rows).to_csv(tmp_path / "points.csv", index=False)
        for words in self.ways(tmp_path):
            run("inspect", tmp_path / "points.csv", "--window", "0,0,10,10", "--out", tmp_path / "private", *words)

    def test_a_single_value_is_a_list(self, tmp_path):
        (tmp_path / "points.csv").write_text("x,y,kind\n1,1,a\n2,2,b\n")
        words = ["inspect", tmp_path / "points.csv", "--window", "0,0,10,10", "--out", tmp_path / "private"]
        run(*words, "--by", "kind", "--levels", "a, b")
        run(*words, "--types", "kind=a,b")
        # Two columns are no list.
        run(*words, "--types", "x=1,2", "--types", "kind=a,b")

    def test_files_that_are_none(self, tmp_path):
        (tmp_path / "points.csv").write_text("x,y,kind\n1,1,a\n")
        (tmp_path / "empty.txt").write_text("\n")
        words = ["inspect", tmp_path / "points.csv", "--window", "0,0,10,10", "--out", tmp_path / "private"]
        for name in ("empty.txt", "none.txt"):
            said = spoken(run(*words, "--by", "kind", "--levels-file", tmp_path / name, code=2))
            assert "--levels-file: needs a text file" in said
        both = ["--levels", "a", "--levels-file", tmp_path / "empty.txt"]
        assert "not both" in spoken(run(*words, "--by", "kind", *both, code=2))
