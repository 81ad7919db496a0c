"""Utility by the levels of a public mark: each level against its own points, in Python, on the screen and on disk."""

import json

import numpy as np
import pandas as pd
import pytest
from support.command_line import run, spoken

import dpppsynth as dps
from dpppsynth.core.errors import InputError
from dpppsynth.evaluation import evaluate

WINDOW = dps.Window.rectangle(0, 0, 1000, 1000)
RNG = np.random.default_rng(3)
# Levels in the south and in the north, and one point of a third; levels are years, whole numbers.
XY = np.column_stack(
    [RNG.uniform(0, 1000, 121), np.repeat([100.0, 900.0, 500.0], [60, 60, 1]) + RNG.uniform(0, 90, 121)]
)
YEARS = np.repeat([1980, 1981, 1982], [60, 60, 1])
ORIGINAL = dps.PointPattern(XY, WINDOW, {"year": YEARS})


def drawn(years):
    """The same places, with years of synthetic patterns, which are texts."""
    return dps.PointPattern.synthetic(XY, WINDOW, {"year": [str(year) for year in years]})


class TestLevels:
    def test_each_is_held_to_its_own_points(self):
        """Exchanged levels are right together and wrong one by one: a report on all points alone would see nothing."""
        right, wrong = (evaluate(ORIGINAL, drawn(years), by="year") for years in (YEARS, 3961 - YEARS))
        assert list(right.levels) == list(wrong.levels) == ["1980", "1981"]
        assert right.table["synthetic"].equals(wrong.table["synthetic"])
        assert (right.level_table["misplaced share"] == 0).all()
        assert (wrong.level_table["misplaced share"] == 1).all()
        assert right.level_table["points, original"].tolist() == [60, 60]
        level = right.levels["1980"]
        assert (level.side, level.bandwidth, len(level.original)) == (right.side, right.bandwidth, 60)

    def test_without_levels_nothing_changes(self):
        plain, told = evaluate(ORIGINAL, drawn(YEARS)), evaluate(ORIGINAL, drawn(YEARS), by="year")
        assert plain.table.equals(told.table)
        assert not plain.levels
        assert "1981" in str(told)
        assert "1981" not in str(plain)
        assert "fewer than two points" in " ".join(told.notes)

    def test_every_pattern_needs_the_mark(self):
        for original, synthetic in ((ORIGINAL.unmarked(), drawn(YEARS)), (ORIGINAL, drawn(YEARS).unmarked())):
            with pytest.raises(InputError, match="has no mark 'year'"):
                evaluate(original, synthetic, by="year")


@pytest.mark.slow
def test_command_line(tmp_path):
    points, years = tmp_path / "points.csv", ["--by", "year", "--levels", "1980,1981"]
    pd.DataFrame({"x": XY[:120, 0], "y": XY[:120, 1], "year": YEARS[:120]}).to_csv(points, index=False)
    asked = ["--method", "laplace", "--epsilon", 2, "--alpha", 50, "--window", "0,0,1000,1000", "--n-by", "60,60"]
    run("synthesize", points, *asked, *years, "--out", tmp_path / "public", "--yes")
    run("evaluate", points, tmp_path / "public", "--out", tmp_path / "private")
    found = json.loads((tmp_path / "private" / "CONFIDENTIAL_evaluation.json").read_text())
    assert list(found["levels"]) == ["1980", "1981"]
    table = pd.read_csv(tmp_path / "private" / "CONFIDENTIAL_levels.csv", index_col="level")
    assert table["points, original"].tolist() == [60, 60]
    pd.DataFrame({"x": XY[:120, 0], "y": XY[:120, 1]}).to_csv(points, index=False)
    said = spoken(run("evaluate", points, tmp_path / "public", "--out", tmp_path / "none"))
    assert "the original has no column 'year', so the levels of the release are not compared" in said
    assert not (tmp_path / "none" / "CONFIDENTIAL_levels.csv").exists()
