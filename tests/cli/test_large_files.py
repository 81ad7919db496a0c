"""Large files on the command line: read in batches where that is the same, and refused as small ones are."""

import csv
import json

import numpy as np
import pytest
from support.command_line import run, spoken
from support.seams import randomise_by

from dpppsynth.cli import synthesize
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.ledger import Ledger

WINDOW = ["--window", "0,0,1000,1000", "--crs", "EPSG:27700"]
CELLS = ["--mechanism", "laplace-cells", "--epsilon", 1, "--alpha", 25, "--postprocess", "plain"]
N = 500


@pytest.fixture(autouse=True)
def every_file_is_large(monkeypatch):
    monkeypatch.setattr(synthesize, "LARGE", 0)


@pytest.fixture
def points(tmp_path):
    path = tmp_path / "points.csv"
    xy = np.random.default_rng(2).uniform(0, 1000, (N, 2)).tolist()
    with path.open("w", newline="") as stream:
        csv.writer(stream, delimiter=";").writerows([["x", "y"], *xy])
    return path


def lattice(folder):
    return json.loads((folder / "statistic.json").read_text())["lattice"]


@pytest.fixture
def exact(monkeypatch):
    """Numbers that were measured, without noise, in the order of the runs."""
    seen = []

    def noiseless(_, draw, numbers):
        seen.append(numbers.tolist())
        return draw(numbers)

    randomise_by(monkeypatch, noiseless)
    return seen


class TestBatches:
    @pytest.mark.parametrize("known", [[], ["--n", N]])
    def test_measure_what_the_whole_file_does(self, known, points, exact, tmp_path, monkeypatch):
        options = [*WINDOW, *CELLS, *known, "--separator", ";"]
        run("synthesize", points, *options, "--out", tmp_path / "large", "--patterns", 0)
        monkeypatch.setattr(synthesize, "LARGE", 2**30)
        run("synthesize", points, *options, "--out", tmp_path / "small")
        assert exact[0] == exact[1]
        assert sum(exact[0]) == N
        assert not [*(tmp_path / "large").glob("synthetic_*")]
        run("verify", tmp_path / "large")
        run("sample", tmp_path / "large", "--patterns", 1, "--out", tmp_path / "more")

    def test_are_not_held_together(self, points, tmp_path, monkeypatch):
        monkeypatch.setattr(ReleasePlan, "release", None)
        run("synthesize", points, *WINDOW, *CELLS, "--separator", ";", "--out", tmp_path / "public")

    def test_give_way_where_more_than_a_sum_is_measured(self, points, tmp_path, monkeypatch):
        monkeypatch.setattr(ReleasePlan, "finish", None)
        moved = ["--mechanism", "planar-laplace", "--epsilon", 1, "--alpha", 25]
        run("synthesize", points, *WINDOW, *moved, "--separator", ";", "--out", tmp_path / "public")


class TestRefusals:
    def test_of_rows_cost_the_budget_and_show_nothing(self, points, tmp_path):
        points.write_text(points.read_text() + "77777;5\n")
        run("ledger", "init", tmp_path / "ledger.json", "--epsilon", 2, "--delta", 0, "--alpha", 25)
        options = [*WINDOW, *CELLS, "--separator", ";", "--ledger", tmp_path / "ledger.json"]
        said = spoken(run("synthesize", points, *options, "--out", tmp_path / "public", code=2))
        assert "outside window" in said
        assert "counts as spent" in said
        assert "77777" not in said
        assert not (tmp_path / "public").exists()

    def test_of_another_number_of_points(self, points, tmp_path):
        options = [*WINDOW, *CELLS, "--separator", ";", "--n", N + 1]
        said = spoken(run("synthesize", points, *options, "--out", tmp_path / "public", code=2))
        assert "planned for another number of points" in said
        assert str(N) not in said.replace(str(N + 1), "")

    def test_of_signs_come_before_the_ledger(self, points, tmp_path):
        run("ledger", "init", tmp_path / "ledger.json", "--epsilon", 2, "--delta", 0, "--alpha", 25)
        options = [*WINDOW, *CELLS, "--ledger", tmp_path / "ledger.json", "--out", tmp_path / "public"]
        said = spoken(run("synthesize", points, *options, code=2))
        assert "--separator ';'" in said
        said = spoken(run("synthesize", points, *options, "--separator", ":", code=2))
        assert "--separator: must be one of" in said
        assert Ledger.open(tmp_path / "ledger.json").spent == 0
