"""Settled plans in the words of a table: each says its own, and none is taken for another."""

from pathlib import Path

import pytest

from dpppsynth.cli import describe
from dpppsynth.contract.estimator import Estimator
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.statistic import Statistic
from dpppsynth.release import StratifiedRelease, load_release

STORED = Path(__file__).parents[1] / "data" / "releases"
# First row of what the budget buys, by the mechanism of a stored release.
FIRST = {
    "laplace-cells": ("measured", "cells on "),
    "laplace-tents": ("measured", "tents on "),
    "bounded-cells": ("measured", "cells on "),
    "planar-laplace": ("noise", "planar Laplace: "),
    "lgcp-tents": ("measured", "tents on "),
    "lgcp-clusters": ("measured", "tents on "),
    "lgcp-moved": ("measured", "counts of moved points at "),
    "lgcp-field": ("measured", "smooth functionals on "),
    "lgcp-posterior-draw": ("drawn", "one field on "),
    "lgcp-lipschitz": ("drawn", "one field on "),
    "lgcp-kim-lim-3.8": ("drawn", "one field on "),
    "lgcp-kim-lim-3.9": ("drawn", "one field on "),
    "kernel": ("bandwidth", ""),
    "kernel-diffusion": ("bandwidth", ""),
    "heatmap": ("grid", ""),
    "marked-tents": ("measured", "tents on "),
    "marked-moved": ("measured", "counts of moved points at "),
    "pair-sums": ("measured", "sums of 1 - distance / radius over pairs within 60 m (cap 3, 16 steps), 150 m"),
    "pair-sums-persons": ("measured", "sums of 1 - distance / radius over pairs within 100 "),
    "disk-area": ("reports", "one from each of "),
    "hybrid-area": ("reports", "one from each of "),
    "square-wave": ("reports", "one from each of "),
    "subset-exponential": ("reports", "one from each of "),
    "uniform-grid": ("reports", "one from each of "),
    "adaptive-grid": ("reports", "one from each of "),
    "range-hierarchy": ("reports", "one from each of "),
    "displacements": ("reports", "one from each of "),
    "trajectories": ("reports", "of 10 of 10 persons"),
}


class Unheard(Statistic):
    """A measurement that has no words of its own."""

    def parameters(self):
        """Two numbers."""
        return {"scale": 2.0, "n": 5}


class Unnamed(Estimator):
    """An estimator that has no words of its own."""

    kind = "average"


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FIRST)
def test_a_plan_says_first_what_the_budget_buys(name):
    release = load_release(STORED / name)
    parts = release.releases.values() if isinstance(release, StratifiedRelease) else [release]
    for part in parts:
        first, *_ = part.statistic.definition.table_rows()
        assert (first[0], first[1][: len(FIRST[name][1])]) == FIRST[name]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FIRST)
def test_the_table_of_a_plan_is_shown(name, capsys):
    release = load_release(STORED / name)
    describe.show_plan(
        ReleasePlan(release.mechanism, release.statistic.definition, getattr(release, "estimator", None))
    )
    shown = capsys.readouterr().out
    assert f"  {FIRST[name][0]} " in shown
    assert name in shown


def test_without_words_of_its_own_a_measurement_shows_its_parameters():
    assert Unheard().table_rows() == [("scale", "2.0"), ("n", "5")]
    assert Unheard().details() == {}
    assert Unnamed().table_rows() == [("intensity", "kind average")]
