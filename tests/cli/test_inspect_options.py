"""`inspect` takes the very command line of `synthesize`."""

import numpy as np
import pytest
from support.command_line import run, spoken

from dpppsynth.cli.program import loaded


def options(name):
    """Options of a command with those of all mechanisms, and whether each takes a value."""
    command = loaded(name)
    params = command.complete.params
    return {
        form: bool(getattr(each, "is_flag", False)) for each in params for form in (*each.opts, *each.secondary_opts)
    }


def test_no_option_of_a_release_is_missing():
    theirs, ours = options("synthesize"), options("inspect")
    assert {form: flag for form, flag in theirs.items() if ours.get(form) is not flag} == {}
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
    assert "Every row keeps the rules." in said
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
    assert "--private: name a private folder" in spoken(run("inspect", *words, code=2))
    assert not (tmp_path / "release").exists()


def test_options_of_another_mechanism_are_refused_as_for_a_release(points, tmp_path):
    words = (points, "--window", "0,0,10,10", *LINES["cells"], "--epsilon", 5, "--types", "kind=a,b")
    one = spoken(run("inspect", *words, "--private", tmp_path / "private", code=2))
    other = spoken(run("synthesize", *words, "--out", tmp_path / "out", code=2))
    assert one == other
