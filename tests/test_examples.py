"""The example that makes the tables of Kim & Lim's paper again: its originals, mechanisms and measures."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from dpppsynth import PointPattern
from dpppsynth.evaluation.distances import quadrature
from dpppsynth.evaluation.experiments import Outcome

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def made(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module("point_synthesis_study")


@pytest.fixture
def tables(monkeypatch, made):
    return importlib.import_module("reproduce_point_synthesis")


@pytest.mark.parametrize(
    ("name", "points", "flat"), [("lambda2", 77.6, 0.076), ("lambda3", 128.5, 0.052), ("lambda4", 57.3, 0.130)]
)
def test_intensities_are_the_papers(made, name, points, flat):
    """What a homogeneous pattern of n points scores has a closed form, which the paper's flat rows must show."""
    scenario = made.simulations()[name]
    xy, weight = quadrature(scenario.domain)
    truth = scenario.intensity(xy)
    total = truth @ weight
    # Points of the paper's table are means over ten originals.
    assert abs(total - points) < 3 * np.sqrt(total / 10)
    ours, theirs = truth / total, 1 / scenario.domain.size
    pooled = (ours + theirs) / 2
    expected = ((theirs / (ours + theirs) - 0.5) ** 2 * pooled) @ weight
    assert expected == pytest.approx(flat, abs=0.004)


def test_originals_have_the_right_mean_everywhere(made):
    scenario, rng = made.simulations()["lambda4"], np.random.default_rng(0)
    xy = np.concatenate([scenario.draw(rng).xy for _ in range(200)])
    square, weight = quadrature(scenario.domain)
    mass = scenario.intensity(square) * weight
    for region in (lambda p: p.sum(axis=1) > 0, lambda p: np.abs(p).max(axis=1) < 2, lambda p: p[:, 0] > 4):
        expected = 200 * mass[region(square)].sum()
        # Five standard deviations of a Poisson number: false alarms 6e-7 each.
        assert abs(region(xy).sum() - expected) < 5 * np.sqrt(expected)


def test_an_intensity_is_looked_up_half_a_window_away(made):
    window = made.simulations()["lambda4"].domain
    moved = made.HalfAWindowAway(lambda xy: xy @ [1.0, 100.0], window)
    assert moved(np.array([[-4.0, 1.0], [2.0, -3.0]])) == pytest.approx([1.0 - 400.0, -3.0 + 200.0])


def test_every_set_comes_from_a_release_of_its_own(made):
    """Otherwise the kernel's budget would be split over them, and a Cox release's noise counted once."""
    scenario, rng = made.simulations()["lambda4"], np.random.default_rng(1)
    original = scenario.draw(rng)
    for name in ("Laplace, as printed", "Kernel, bound 3.6"):
        releases = made.PUBLISHED[name](scenario, 1.0, 1 / len(original), len(original)).release(original, rng)
        patterns = releases.sample(2, rng)
        assert [each.pattern for each in releases.sets] == patterns
        one, two = (each.intensity(original.xy) for each in releases.sets)
        assert np.array_equal(one, two) == (name == "Kernel, bound 3.6")
    assert releases.plan.statistic.patterns == 1


def test_a_set_of_one_point_has_no_k(made):
    """Its K is 0, so that the integrated squared error is the range of r at which the original's is positive."""
    scenario = made.simulations()["lambda1"]
    original = PointPattern([[0.5, 0.5], [0.5, 0.501]], scenario.domain)
    release = made.Releases(None, original)
    lonely = PointPattern.synthetic([[0.2, 0.2]], scenario.domain)
    release.sets = [made.Synthetic(lonely, 1, scenario.intensity)]
    outcome = Outcome(scenario, original, release, (lonely,), 1.0, 0.0)
    step = 0.25 / made.STEPS
    assert made.errors(outcome, weighted=False) == pytest.approx(0.25 - step)


def test_tables_from_a_small_run(tmp_path, monkeypatch, made, tables):
    """Two intensities, a few mechanisms: every row, the picture, the means; what was written by hand is kept."""
    scenarios = made.simulations()
    few = {name: scenarios[name] for name in ("lambda4", tables.DOUBLED)}
    monkeypatch.setattr(made, "simulations", few.copy)
    published = {name: made.PUBLISHED[name] for name in ("Laplace, as printed", "homogeneous Poisson")}
    monkeypatch.setattr(made, "PUBLISHED", published)
    monkeypatch.setattr(made, "NEW", {"Laplace, tents, n kept": made.NEW["Laplace, tents, n kept"]})
    monkeypatch.setattr(tables, "TESSELLATIONS", {"lambda4": (0.130, 0.128)})
    monkeypatch.setattr(tables, "PAPER", {name: tables.PAPER[name] for name in ("lambda1", "lambda4")})
    out = tmp_path / "tables.md"
    words = f"x --tables 1 --originals 1 --sets 1 --workers 1 --folder {tmp_path / 'cells'} --out {out}"
    monkeypatch.setattr(sys, "argv", words.split())
    tables.main()
    text = out.read_text()
    rows = [line for line in text.splitlines() if line.startswith(("| Laplace", "| *Laplace"))]
    assert [row.split(" | ")[0] for row in rows] == [
        *("| *Laplace, the paper*", "| Laplace, as printed", "| Laplace, tents, n kept"),
        *("| *Laplace, the paper*", "| Laplace, as printed"),
    ]
    assert "| 0.497 / 0.282 / 0.127 |" in rows[0]
    assert tables.FINDINGS not in text
    assert "nan" not in text
    assert "refused" not in text
    assert out.with_suffix(".png").stat().st_size > 10_000
    assert len(out.with_suffix(".csv").read_text().splitlines()) == 1 + 3 * (2 * len(made.PUBLISHED) + 1)
    by_hand = f"{tables.FINDINGS}\n- By hand.\n"
    out.write_text(text + by_hand)
    monkeypatch.setattr(tables, "picture_of_budgets", lambda *_: None)
    tables.main()
    assert out.read_text() == text + "\n" + by_hand
