"""`inspect` and `check` take the very command line of `synthesize`."""

import re
import shlex

import numpy as np
import pytest
from support.command_line import run, spoken

from dpppsynth.cli.pattern_options import PatternOptions
from dpppsynth.cli.program import loaded


def options(name):
    """Options of a command with those of all mechanisms, and whether each takes a value."""
    command = loaded(name)
    params = command.complete.params
    return {
        form: bool(getattr(each, "is_flag", False)) for each in params for form in (*each.opts, *each.secondary_opts)
    }


@pytest.mark.parametrize("name", ["inspect", "check"])
def test_no_option_of_a_release_is_missing(name):
    theirs, ours = options("synthesize"), options(name)
    # A check opens no file of points.
    own = {"points"} if name == "check" else set()
    assert {form: flag for form, flag in theirs.items() if ours.get(form) is not flag}.keys() == own
    assert len(theirs) > 80


@pytest.fixture
def points(tmp_path):
    rng = np.random.default_rng(4)
    path = tmp_path / "p.csv"
    rows = [f"{x!r},{y!r},{'ab'[k % 2]},{k % 10},p{k}" for k, (x, y) in enumerate(rng.uniform(0, 10, (60, 2)).tolist())]
    path.write_text("x,y,kind,t,pid\n" + "\n".join(rows) + "\n")
    return path


LINES = {
    "cells": ("--method", "laplace", "--alpha", 1, "--spacing", 5),
    "marks": (
        *("--method", "marked", "--alpha", 1, "--types", "kind=a,b", "--time", "t", "--time-range", "0,10"),
        *("--protect-types", "--protect-time", "all", "--spacing", 5),
    ),
    "persons": (
        *("--method", "laplace", "--relation", "add-remove", "--expected-n", 60, "--user", "pid"),
        *("--max-points-per-person", 1, "--spacing", 5, "--skip-outside"),
    ),
    "levels": ("--method", "laplace", "--alpha", 1, "--spacing", 5, "--by", "kind", "--levels", "a,b"),
}


@pytest.mark.parametrize("name", LINES)
def test_what_passes_is_released_by_the_same_line(name, points, tmp_path):
    words = (points, "--window", "0,0,10,10", *LINES[name], "--epsilon", 5, "--patterns", 2, "--rows-are-persons", "-y")
    words = tuple(word for word in words if name != "persons" or word != "--rows-are-persons")
    out = tmp_path / "release"
    said = spoken(run("inspect", *words, "--out", out, "--private", tmp_path / "private"))
    # A number of rows that is secret does not stand on a screen.
    kept = "Every row keeps the rules." if name == "persons" else "60 of 60 rows read, and every one keeps the rules."
    assert kept in said
    # The folder of the release is left alone.
    assert not out.exists()
    run("synthesize", *words, "--out", out)


def test_a_row_that_the_mechanism_refuses_is_found(points, tmp_path):
    points.write_text(points.read_text() + "1,1,c,3,p99\n")
    words = (points, "--window", "0,0,10,10", *LINES["marks"], "--epsilon", 5, "--rows-are-persons")
    assert "unknown type" in spoken(run("inspect", *words, "--private", tmp_path / "private", code=2))
    assert "unknown type" in spoken(run("synthesize", *words, "--out", tmp_path / "out", "-y", code=2))


def test_offending_rows_never_go_into_the_folder_of_a_release(points, tmp_path):
    words = (points, "--window", "0,0,10,10", *LINES["cells"], "--epsilon", 5, "--out", tmp_path / "release")
    refused = spoken(run("inspect", *words, code=2))
    assert "--private: name a private folder" in refused
    assert "--out is the folder of the release" in refused
    assert not (tmp_path / "release").exists()


def test_a_remedy_is_said_once(tmp_path):
    (tmp_path / "p.csv").write_text("x,y,patient\n" + "5,5,ann\n5,6,ann\n5,7,bo\n")
    said = spoken(run("inspect", tmp_path / "p.csv", "--window", "0,0,10,10", "--out", tmp_path / "r", code=2))
    assert said.count("--rows-are-persons") == 1
    assert "1 label of the column 'patient' stands twice or more." in said


def test_options_of_another_mechanism_are_refused_as_for_a_release(points, tmp_path):
    words = (points, "--window", "0,0,10,10", *LINES["cells"], "--epsilon", 5, "--types", "kind=a,b")
    one = spoken(run("inspect", *words, "--private", tmp_path / "private", code=2))
    other = spoken(run("synthesize", *words, "--out", tmp_path / "out", code=2))
    assert one == other


VISITS = ("--user", "who", "--max-points-per-person", 2)


@pytest.mark.parametrize("method", [LINES["cells"], ()])
def test_points_that_count_are_those_under_the_cap_of_a_person(method, tmp_path):
    """Two of five rows, one of one and two of two: 5 in all, as synthesize has it."""
    who = ["ann"] * 5 + ["bo"] + ["cy"] * 2
    (tmp_path / "p.csv").write_text("x,y,who\n" + "".join(f"{k},{k},{label}\n" for k, label in enumerate(who)))
    budget = ("--epsilon", 5, "--private") if method else ("--out",)
    words = (tmp_path / "p.csv", "--window", "0,0,10,10", *method, *VISITS)
    said = spoken(run("inspect", *words, "--n", 8, *budget, tmp_path / "r", code=2))
    assert "another number of points" in said
    assert "count, for --n: 5 (at most 2 of each person)" in said
    said = spoken(run("inspect", *words, "--n", 5, *budget, tmp_path / "r"))
    assert "Some persons have several rows" not in said
    assert '"n": 5' in run("inspect", *words, "--json", *budget, tmp_path / "r").stdout
    if method:
        run("synthesize", *words, "--n", 5, "--epsilon", 5, "--out", tmp_path / "release", "-y")


def test_points_that_count_are_not_told_where_their_number_is_secret(tmp_path):
    (tmp_path / "p.csv").write_text("x,y,who\n" + "5,5,ann\n" * 47 + "".join(f"5,5,p{k}\n" for k in range(39)))
    words = (tmp_path / "p.csv", "--window", "0,0,10,10", *SECRET, *VISITS, "--epsilon", 5, "--private", tmp_path / "r")
    told = run("inspect", *words).stdout + run("inspect", *words, "--json").stdout
    assert not re.search(r"\b(41|86|47)\b", told)


SECRET = ("--method", "laplace", "--relation", "add-remove", "--expected-n", 50, "--spacing", 5)


@pytest.mark.parametrize("line", [LINES["cells"], (), SECRET, ("--relation", "add-remove")])
def test_rows_are_counted_where_their_number_is_no_secret(line, points, tmp_path):
    """60 rows, and one outside."""
    points.write_text(points.read_text() + "11,1,a,3,p99\n")
    budget = ("--epsilon", 5, "--rows-are-persons") if "--method" in line else ()
    words = (points, "--window", "0,0,10,10", *line, *budget, "--private", tmp_path / "private")
    words = words if "--method" in line else tuple("--out" if word == "--private" else word for word in words)
    said = spoken(run("inspect", *words, code=2))
    told = run("inspect", *words, "--json", code=2).stdout
    public = "add-remove" not in line
    assert ("61 of 61 rows read, of which 1 breaks a rule." in said) is public
    assert ('"rows": 61' in told) is public
    assert (re.search(r"\b61\b", said + told) is not None) is public


def test_a_check_takes_the_line_of_a_release_and_names_the_next(points, tmp_path):
    words = ("--window", "0,0,10,10", *LINES["cells"], "--epsilon", 5, "--n", 60)
    reading = ("--snap", 0.5, "--count", "t", "--rows-are-persons", "--patterns", 1, "--out", tmp_path / "release")
    said = run("check", *words, *reading).stdout
    line = next(each for each in said.splitlines() if each.startswith("Next")).partition(": dpppsynth ")[2]
    assert shlex.split(line) == ["synthesize", "points.csv", *map(str, (*words, *reading))]
    assert "snap: must be a positive" in spoken(run("check", *words, "--snap", -1, code=2))
    assert "skip_outside" in spoken(run("check", *words, "--skip-outside", code=2)).replace(
        "--skip-outside", "skip_outside"
    )


def test_rows_are_left_out_where_their_number_is_secret_alone(tmp_path):
    """As synthesize has it, and then no number of rows is said, for a screen may be logged."""
    (tmp_path / "p.csv").write_text("x,y\n" + "5,5\n" * 37 + "50,5\n")
    words = ("inspect", tmp_path / "p.csv", "--window", "0,0,10,10", "--skip-outside", "--private", tmp_path / "r")
    plan = ("--mechanism", "laplace-tents", "--epsilon", 1)
    assert "number of points is public" in spoken(run(*words, *plan, "--alpha", 1, code=2))
    for more in ((), (*plan, "--relation", "add-remove", "--expected-n", 40)):
        said = spoken(run(*words, *more))
        assert "left out" in said
        assert "37" not in said
        assert "38" not in said


def test_remedies_name_the_option_for_numbers_that_can_be_given():
    by_year = PatternOptions(by="year", levels="2021,2022")
    assert "with --n-by all" in by_year.sooner(known=True)
    assert "with --n all" in PatternOptions().sooner(known=True)
    for stated in (by_year.sooner(known=False), PatternOptions(n=5).sooner(known=True)):
        assert "--n" not in stated
    words = ["--window", "0,0,10,10", "--method", "laplace", "--epsilon", 1, "--alpha", 2]
    guessed = ["--by", "year", "--levels", "2021,2022", "--expected-n", 100]
    assert "--n-by 200,192, not a guess: leave --expected-n out" in spoken(run("check", *words, *guessed, code=2))
