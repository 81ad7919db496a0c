import json
import re
import shlex
from functools import partial

import pytest
from support.command_line import run as run_command
from support.command_line import spoken
from support.seams import chance_for_nuts
from typer.testing import CliRunner

import dpppsynth as dps
from dpppsynth import cli

SQUARE = ["--window", "529100,180680,529770,181350", "--crs", "EPSG:27700"]
SOHO = dps.Window.rectangle(529100, 180680, 529770, 181350, "EPSG:27700")
NEAR = ["--epsilon", 1, "--alpha", 25]
STREETS = {
    "type": "FeatureCollection",
    "crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::27700"}},
    "features": [
        {"type": "Feature", "properties": {}, "geometry": {"type": "LineString", "coordinates": line}}
        for line in ([[0, 0], [400, 0]], [[400, 0], [800, 100]], [[400, 0], [400, 500]])
    ],
}
N = 392


run = partial(run_command, "recommend")


def command(said):
    return shlex.split(re.search(r"dpppsynth (rehearse .*)", said)[1])


def test_says_what_python_says():
    said = json.loads(run(*NEAR, *SQUARE, "--n", N, "--json").stdout)
    advice = dps.evaluation.recommendation.recommend(SOHO, N, 1.0, alpha=25.0)
    assert said["mechanism"] == advice.mechanism
    assert said["expected"] == advice.expected
    assert said["uniform"] == advice.uniform
    assert said["useful"] is True
    assert said["reading"] == "about"
    assert said["settings"] == json.loads(json.dumps(advice.settings))
    assert said["reasons"] == list(advice.reasons)
    assert [each["why_not"] for each in said["alternatives"]] == [each.why_not for each in advice.alternatives]
    assert said["guarantee"] == advice.plan.guarantee.to_dict()


def test_reads_like_advice_and_repeats_the_number_of_points_in_the_command_alone():
    said = spoken(run(*NEAR, *SQUARE, "--n", N))
    for words in (
        "Recommended: ",
        "a uniform one has",
        "Not recommended",
        "needs a delta",
        "docs/results/recommend.md",
    ):
        assert words in said
    assert len(re.findall(rf"\b{N}\b", said)) == 1
    assert command(said)[:3] == ["rehearse", "--mechanism", "lgcp-tents"]
    for words in ("25 metres along a path inside the window", "a uniform pattern has 0.", "see --verbose"):
        assert words in said
    assert "in the unit of" not in said
    assert "It is assumed that: (1) Window" in spoken(run(*NEAR, *SQUARE, "--n", N, "--verbose"))


@pytest.mark.slow
def test_the_command_runs_as_it_is_pasted(tmp_path):
    """With every option of the place, quoted: a path may have a blank."""
    streets = tmp_path / "our streets.geojson"
    streets.write_text(json.dumps(STREETS))
    said = run("--epsilon", 50, "--alpha", 25, "--network", streets, "--node", "--n", 60).stdout
    pasted = command(said)
    assert pasted[-5:] == ["--network", str(streets), "--node", "--n", "60"]
    done = CliRunner().invoke(cli.app, ["check", *pasted[1:]])
    assert done.exit_code == 0, done.output
    quick = ["--epsilon", 0.5, "--relation", "replace-one", "--n", 20]
    with chance_for_nuts():
        done = CliRunner().invoke(cli.app, command(run(*quick, *SQUARE).stdout))
    assert done.exit_code == 0, done.output
    assert "Rehearsal, " in done.output


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "who",
    [
        [*NEAR, "--n", N],
        ["--epsilon", 0.5, "--relation", "replace-one", "--n", N],
        ["--epsilon", 2, "--relation", "add-remove", "--expected-n", 400, "--max-points-per-person", 2],
        [*NEAR, "--n", N, "--delta", 1e-6],
        [*NEAR, "--user", "id", "--n", N],
        ["--epsilon", 2, "--relation", "replace-one", "--max-points-per-person", 3, "--user", "id", "--n", N],
    ],
)
def test_the_command_it_ends_with_asks_for_what_it_recommends(who):
    said = json.loads(run(*who, *SQUARE, "--json").stdout)
    size = who[who.index("--n" if "--n" in who else "--expected-n") :][:2]
    words = ["check", *said["options"], *map(str, size), *SQUARE, "--json"]
    checked = CliRunner().invoke(cli.app, words)
    assert checked.exit_code == 0, checked.output
    assert json.loads(checked.stdout)["guarantee"] == said["guarantee"]
    assert ("user" in said["guarantee"]["relation"]) == ("--user" in who)
    assert json.loads(checked.stdout)["mechanism"] == said["mechanism"]
    pasted = command(run(*who, *SQUARE).stdout)
    assert pasted == shlex.split(said["next"])[1:]
    assert pasted[1:] == [*said["options"], *SQUARE, *pasted[-2:]]
    assert [pasted[-2], float(pasted[-1])] == size


@pytest.mark.slow
def test_the_command_asks_for_the_very_budget():
    """Four or six digits would round epsilon up, and promise less than was asked for."""
    who = ["--epsilon", 0.9999999, "--alpha", 25.1234567, "--delta", 1.23456789e-6, "--n", N]
    line = command(run(*who, *SQUARE).stdout)
    for option in ("--epsilon", "--alpha"):
        assert float(line[line.index(option) + 1]) == who[who.index(option) + 1]
    spends = ["--epsilon", 1, "--alpha", 47.9, "--delta", 1.23456789e-6, "--n", N]
    said = json.loads(run(*spends, *SQUARE, "--json").stdout)
    assert said["mechanism"] == "lgcp-field"
    assert float(said["options"][said["options"].index("--delta") + 1]) == 1.23456789e-6


def test_outside_the_study_there_is_no_verdict():
    """Thirty points at epsilon = .1 gain nothing where the intensity varies little, so ten at .001 do not either."""
    few = json.loads(run("--epsilon", 0.001, "--alpha", 25, "--n", 10, *SQUARE, "--json").stdout)
    assert (few["useful"], few["reading"]) == (False, "at least")
    asked = ["--epsilon", 0.05, "--alpha", 25, "--n", 500, *SQUARE]
    text = spoken(run(*asked))
    assert "at least" in text
    assert "keep the geography" not in text
    assert not text.startswith("Recommended")
    said = json.loads(run(*asked, "--json").stdout)
    assert said["useful"] is None
    assert said["reading"] == "at least"


def test_streets(tmp_path):
    path = tmp_path / "streets.geojson"
    path.write_text(json.dumps(STREETS))
    said = json.loads(run(*NEAR, "--network", path, "--n", N, "--json").stdout)
    assert said["mechanism"] in ("lgcp-tents", "laplace-tents")
    assert said["settings"]["mesh"] == "triangles"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--epsilon", 1, "--n", N, *SQUARE], "--alpha: give the privacy radius"),
        ([*NEAR, *SQUARE], "--n: the public number of points is needed"),
        ([*NEAR, *SQUARE, "--expected-n", N], "--expected-n: n is public"),
        (["--epsilon", 1, "--relation", "add-remove", *SQUARE], "--expected-n: a public guess"),
        (
            ["--epsilon", 0, "--alpha", 25, "--n", N, *SQUARE],
            "--epsilon: must be a positive finite number, got 0.0; 1 is a usual start",
        ),
        ([*NEAR, "--n", N, "--delta", 0.1, *SQUARE], "--delta: must be below 1/n, because"),
        ([*NEAR, "--n", N], "--window: give"),
    ],
)
def test_bad_input_is_one_sentence_in_the_shells_words(words, complaint):
    assert complaint in spoken(run(*words, code=2))
