"""Each command names the next one, and it runs as it is pasted."""

import re
import shlex

import numpy as np
from typer.testing import CliRunner

import dpppsynth as dps
from dpppsynth.cli.program import app
from dpppsynth.io import write_pattern


def said_by(words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.stdout


def commands_in(said):
    return [shlex.split(each)[1:] for each in re.findall(r": (dpppsynth .*)$", said, re.MULTILINE)]


def test_from_a_check_to_pictures(tmp_path, monkeypatch):
    """The same bound is spent as was checked; options of `check` alone, and blanks in names, do no harm."""
    monkeypatch.chdir(tmp_path)
    square = dps.Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
    homes = dps.PointPattern(np.random.default_rng(1).uniform(0, 1000, (300, 2)), square)
    write_pattern(homes, "points.csv")
    (tmp_path / "my folder").mkdir()
    place = ["--window", "0,0,1000,1000", "--crs=EPSG:27700"]
    asked = [
        "check",
        "--mechanism",
        "laplace-cells",
        "--epsilon",
        "0.7",
        "--alpha",
        50,
        *place,
        "--n",
        300,
        "--verbose",
    ]
    (synthesize,) = commands_in(said_by(asked))
    assert synthesize[:2] == ["synthesize", "points.csv"]
    assert synthesize[-2:] == ["--out", "public"]
    made = said_by([*synthesize[:-1], "my folder/public"])
    verify, sample = commands_in(made)
    assert verify == ["verify", "my folder/public"]
    assert sample[:2] == ["sample", "my folder/public"]
    assert dps.load_release("my folder/public").guarantee.epsilon() <= 0.7
    plot, report = commands_in(said_by(verify))
    again, export = commands_in(said_by(plot))
    assert list((tmp_path / "my folder" / "public_pictures").glob("*.png"))
    assert again == report
    (patterns,) = commands_in(said_by(report))
    assert (tmp_path / "my folder" / "public" / "report.html").is_file()
    # Patterns are what every release has; the intensity is exported too where a picture of it was drawn.
    assert export == [*patterns, "--intensity", "gpkg"]
    said_by(export)
    assert {each.name for each in (tmp_path / "my folder" / "public_export").iterdir()} == {
        "synthetic_000.gpkg",
        "intensity.gpkg",
    }
