"""Doubts about public parameters: each where it should be, and none beside it; and what the command line does then."""

import json

import numpy as np
import pytest
from support.command_line import run, spoken
from typer.testing import CliRunner

import dpppsynth as dps
from dpppsynth.cli import app
from dpppsynth.contract.cautions import cautions
from dpppsynth.ledger import Ledger
from dpppsynth.privacy import AlphaNeighbours, ApproximateDP, Guarantee, PureDP, ReplaceOne

WINDOW = dps.Window.rectangle(0, 0, 3000, 4000)
RUN = ("--method", "laplace", "--window", "0,0,3000,4000", "--alpha", 100)


def of(*, epsilon=1.0, alpha=100.0, domain=WINDOW, n=1000):
    """Arguments that doubts are about."""
    relation = ReplaceOne() if alpha is None else AlphaNeighbours(alpha)
    return [each.split(":")[0] for each in cautions(Guarantee(relation, PureDP(epsilon), "theorem", ()), domain, n)]


def rectangle(*bounds, crs=None):
    return dps.Window.rectangle(*bounds, crs)


def test_a_delta_near_the_one_that_promises_nothing():
    for delta, doubtful in ((1e-6, False), (0.9e-4, False), (1.1e-4, True), (0.99e-3, True), (1e-3, False)):
        promise = Guarantee(AlphaNeighbours(100.0), ApproximateDP(1.0, delta), "theorem", ())
        said = cautions(promise, WINDOW, 1000)
        assert [each.split(":")[0] for each in said] == ["delta"] * doubtful
        assert cautions(promise, WINDOW, None) == ()


class TestDoubts:
    @pytest.mark.parametrize(
        ("fine", "doubtful", "name"),
        [
            ({"epsilon": 10.0}, {"epsilon": 10.01}, "epsilon"),
            ({"epsilon": 0.01}, {"epsilon": 0.0099}, "epsilon"),
            # The window is 5000 across.
            ({"alpha": 4999.0}, {"alpha": 5001.0}, "alpha"),
            ({"alpha": 5.01}, {"alpha": 4.99}, "alpha"),
            ({"alpha": None}, {"alpha": 1e9}, "alpha"),
            ({"n": 80}, {"n": 79}, "n"),
            ({"n": None}, {"n": 79.5}, "n"),
        ],
    )
    def test_at_the_border(self, fine, doubtful, name):
        assert of(**fine) == []
        assert of(**doubtful) == [name]

    @pytest.mark.parametrize(
        ("bounds", "crs", "doubtful"),
        [
            ((-0.2, 51.4, 0.1, 51.6), None, True),
            ((51.4, -0.2, 51.6, 0.1), None, True),
            ((0, 0, 10, 10), None, False),
            ((-100, -80, 100, 80), None, False),
            ((-1, -1, 1, 1), None, False),
            ((-125, 24, -66, 50), None, True),
            ((430_000, 150_000, 430_060, 150_060), "EPSG:27700", False),
            ((0, 0, 700, 700), "EPSG:27700", False),
            ((50, 10, 650, 1200), "EPSG:27700", True),
            ((-6, 50, 2, 58.6), "EPSG:27700", True),
            ((170, 50, 181, 60), None, False),
            ((430_000, 150_000, 480_000, 190_000), "EPSG:27700", False),
            ((430, 150, 480, 190), "EPSG:27700", True),
            ((500_000, 5_500_000, 510_000, 5_510_000), "EPSG:25832", False),
            # Nine degrees north, where that CRS is for Europe; lengths are right there.
            ((500_000, 1_000_000, 510_000, 1_010_000), "EPSG:25832", True),
        ],
    )
    def test_coordinates(self, bounds, crs, doubtful):
        window = rectangle(*bounds, crs=crs)
        assert of(domain=window, alpha=window.diameter / 10) == ["domain"] * doubtful

    def test_of_plans(self):
        laplace = dps.LaplaceSynthesizer(12.0, alpha=100.0, postprocess="plain")
        assert [each.split(":")[0] for each in laplace.plan(WINDOW, n=79).cautions] == ["epsilon", "n"]
        levels = laplace.plan_by(WINDOW, by="year", levels=[1, 2], n={"1": 79, "2": 500}).cautions
        assert [each.split(":")[0] for each in levels] == ["epsilon", "n"]


class TestCommandLine:
    @pytest.fixture
    def points(self, tmp_path, monkeypatch):
        """Files of 100 points each, in other places."""
        monkeypatch.delenv("DPPPSYNTH_YES")
        for name, seed in (("a.csv", 1), ("b.csv", 2)):
            xy = np.random.default_rng(seed).uniform(0, 3000, (100, 2))
            np.savetxt(tmp_path / name, xy, delimiter=",", header="x,y", comments="")
        return tmp_path

    def test_a_script_stops_before_anything_is_spent(self, points):
        Ledger.create(points / "ledger.json", epsilon=100.0, delta=0.0, alpha=100.0)
        spend = (*RUN, "--epsilon", 12, "--ledger", points / "ledger.json", "--out", points / "release")
        before = (points / "ledger.json").read_bytes()
        said = spoken(run("synthesize", points / "a.csv", *spend, code=2))
        assert "Warning: --epsilon: 12 promises little" in said
        assert "--yes" in said
        assert not (points / "release").exists()
        assert (points / "ledger.json").read_bytes() == before
        # The screen is the same whatever the points are.
        assert spoken(run("synthesize", points / "b.csv", *spend, code=2)) == said
        run("synthesize", points / "a.csv", *spend, "--yes")
        assert json.loads((points / "release/certificate.json").read_text())["parameters"]["epsilon"] == 12

    def test_few_points_of_a_file(self, points):
        """Their number is known when they have been read: it is doubted then, without a question."""
        rows = (points / "a.csv").read_text().splitlines()[:41]
        (points / "few.csv").write_text("\n".join(rows))
        release = (*RUN, "--epsilon", 1, "--out", points / "release")
        said = spoken(run("synthesize", points / "few.csv", *release))
        assert "Warning: --n: with fewer than 80 points" in said
        run("synthesize", points / "few.csv", *RUN, "--epsilon", 1, "--n", 40, "--out", points / "other", code=2)

    def test_nothing_is_asked_where_nothing_is_doubtful(self, points):
        done = run("synthesize", points / "a.csv", *RUN, "--epsilon", 1, "--out", points / "release")
        assert "Warning" not in done.output

    @pytest.mark.parametrize(("answer", "code"), [("n\n", 2), ("\n", 2), ("y\n", 0)])
    def test_a_terminal_is_asked(self, points, monkeypatch, answer, code):
        monkeypatch.setattr("dpppsynth.cli.console.asks", lambda: True)
        words = ["synthesize", points / "a.csv", *RUN, "--epsilon", 12, "--out", points / "release"]
        done = CliRunner().invoke(app, list(map(str, words)), input=answer)
        assert done.exit_code == code
        assert ("Nothing was spent." in done.output) == (code == 2)
        assert (points / "release").exists() == (code == 0)

    def test_check_says_and_does_not_ask(self, points):
        assert "Warning: --n: with fewer than 80" in run("check", *RUN, "--epsilon", 1, "--n", 79).output
        assert "Warning" not in run("check", *RUN, "--epsilon", 1, "--n", 80).output

    def test_where_a_uniform_pattern_would_do_as_well(self, points):
        """The study's figures decide, at its smallest number of points and budget, and not a step above either."""
        useless = "nothing better than a uniform pattern"
        assert useless in spoken(run("check", *RUN, "--epsilon", 0.1, "--n", 60))
        for epsilon, n in ((0.3, 60), (0.1, 300)):
            assert useless not in spoken(run("check", *RUN, "--epsilon", epsilon, "--n", n))
        spend = ("--epsilon", 0.1, "--n", 60, "--out", points / "release")
        assert useless in spoken(run("synthesize", points / "a.csv", *RUN, *spend, code=2))
        asked = ("--epsilon", 0.1, "--n", 50, "--relation", "replace-one", "--window", "0,0,3000,4000")
        assert useless in spoken(run("recommend", *asked))
