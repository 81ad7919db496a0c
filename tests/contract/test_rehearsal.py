"""Rehearsals: what to expect of a release, from surrogate patterns alone."""

import math
import re

import numpy as np
import pytest
import shapely
from support.seams import chance_for_nuts, randomise_by
from support.subclasses import recast

from dpppsynth.contract.rehearsal import Rehearsal, Run
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.core.errors import InputError, QualityError, ReleaseBlocked
from dpppsynth.inference.field_inference import FitNotes
from dpppsynth.models import regular_triangulation
from dpppsynth.privacy import AddRemove
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.intensity import mass_distance
from dpppsynth.spatial.offset import Offset
from dpppsynth.synthesizers import KernelSynthesizer, LaplaceSynthesizer, LGCPSynthesizer

WINDOW = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
RING = Window.polygon(shapely.Point(500, 500).buffer(400).difference(shapely.Point(500, 500).buffer(100)), "EPSG:27700")
KINDS = ["homogeneous", "prior draw", "half in one cell"]
FIELD = {"length_scale": 300.0, "mesh": regular_triangulation(WINDOW, shape=(6, 6)), "inference": "laplace"}
SYNTHESIZERS = {
    "cells": LaplaceSynthesizer(50.0, spacing=100.0, postprocess="plain"),
    "tents": LGCPSynthesizer(50.0, alpha=25.0, **FIELD),
    "exact": LGCPSynthesizer(50.0, alpha=25.0, mechanism="posterior-draw", delta=1e-6, sampler="exact", **FIELD),
    "proximal": LGCPSynthesizer(50.0, alpha=25.0, mechanism="posterior-draw", delta=1e-6, sampler="proximal", **FIELD),
    "kernel": KernelSynthesizer(50.0, delta=1e-6, alpha=25.0),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", SYNTHESIZERS)
def test_runs_on_three_surrogates(name):
    outcome = SYNTHESIZERS[name].rehearse(WINDOW, n=400, rng=1)
    assert [run.surrogate for run in outcome.runs] == KINDS
    assert outcome.passed
    for run in outcome.runs:
        assert run.seconds > 0
        assert (run.attempts is not None) == (name == "exact")
        assert run.rhat is None
        assert 0 <= run.distance <= 1
    assert outcome.runs[0].uniform == pytest.approx(0, abs=1e-12)
    # At this budget what is released knows where the half is; without data nothing does.
    clustered = outcome.runs[2]
    assert clustered.distance < 0.6 * clustered.uniform


@pytest.mark.slow
def test_a_small_budget_buys_less():
    rich, poor = (
        LaplaceSynthesizer(epsilon, spacing=100.0, postprocess="plain").rehearse(WINDOW, n=400, rng=1).runs[2].distance
        for epsilon in (50.0, 0.05)
    )
    assert rich < poor


def test_text_is_fit_to_print():
    lines = str(SYNTHESIZERS["exact"].rehearse(WINDOW, n=400, rng=1)).splitlines()
    assert lines[0] == "Rehearsal of lgcp-posterior-draw on surrogate data:"
    for line, kind in zip(lines[1:], KINDS, strict=True):
        number = r"\d\.\d{3}"
        pattern = rf"  {kind}: [\d.]+ s, passed, \d+ attempts, total variation {number} \(uniform {number}\)"
        assert re.fullmatch(pattern, line)
    blocked = Run("homogeneous", 1.25, False, None, None, None, None, 0.1)
    assert str(Rehearsal("lgcp-lipschitz", (blocked,))).endswith("homogeneous: 1.2 s, would be blocked")
    nuts = Run("homogeneous", 3.0, True, None, 1.0021, 812.3, 0.25, 0.1)
    assert "passed, R-hat 1.002, effective sample size 812, total variation 0.250" in str(Rehearsal("x", (nuts,)))
    near = Run("homogeneous", 3.0, True, None, None, None, 0.25, 0.1, 0.456, 0.888)
    assert "passed, Pareto k 0.46, 90 % intervals cover 89%, total variation 0.250" in str(Rehearsal("x", (near,)))


@pytest.mark.slow
def test_diagnostics_of_the_default():
    """Those of the release itself: the worst of fits that have a say."""
    plan = LGCPSynthesizer(1.0, alpha=25.0, inference="laplace").plan(WINDOW, n=400)
    outcome = plan.rehearse(rng=1)
    for run in outcome.runs:
        assert run.pareto_k is not None
        assert 0.5 < run.coverage <= 1
    fits = FitNotes(
        *np.array([[100.0, 200, 300], [0.5, 0.46, 0.04], [1.001, 1.002, 3], [500, 400, 2], [0, 0, 9], [0.3, 0.5, 9]]),
        np.array([0.95, 0.8, 0.1]),
    )
    assert fits.worst == (1.002, 400, 0.5, 0.8)
    assert FitNotes.unknown([1.0, 2.0]).worst == (None, None, None, None)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "error"), [("exact", ReleaseBlocked("no")), ("tents", QualityError("no"))])
def test_a_run_that_would_be_blocked_is_told(name, error, monkeypatch):
    def fail(*arguments, **options):
        raise error

    plan = SYNTHESIZERS[name].plan(WINDOW, n=400)
    randomise_by(monkeypatch, fail)
    outcome = plan.rehearse(1)
    assert not outcome.passed
    assert [run.distance for run in outcome.runs] == [None] * 3
    assert str(outcome).count("would be blocked") == 3


def test_depends_on_public_numbers_alone():
    """The only patterns that it meets are on the window, of the public number of points."""
    met = []

    class Meeting(ReleasePlan):
        def release(self, pattern, rng=None, **options):
            met.append(pattern)
            return super().release(pattern, rng, **options)

    plan = LaplaceSynthesizer(1.0, postprocess="plain").plan(WINDOW, n=400)
    assert recast(plan, Meeting).rehearse(1).passed
    assert [(len(pattern), pattern.domain) for pattern in met] == [(400, WINDOW)] * 3


@pytest.mark.slow
def test_a_seed_decides_everything_but_the_time():
    def figures(rng):
        return [
            run.distance for run in LaplaceSynthesizer(1.0, postprocess="plain").rehearse(WINDOW, n=400, rng=rng).runs
        ]

    assert figures(3) == figures(3) != figures(4)


def test_a_guess_takes_the_place_of_a_secret_n():
    synthesizer = LaplaceSynthesizer(1.0, relation=AddRemove(), postprocess="plain")
    assert synthesizer.rehearse(RING, expected_n=77.4, rng=1).passed
    with pytest.raises(InputError, match=r"^n: it is secret under add/remove"):
        synthesizer.rehearse(RING, n=400)


@pytest.mark.slow
def test_several_patterns_of_a_kernel_are_rehearsed_at_their_price():
    one, many = (
        KernelSynthesizer(1.0, delta=1e-6, alpha=25.0).rehearse(WINDOW, n=400, rng=1, patterns=m).runs[2].distance
        for m in (1, 50)
    )
    assert one < many


def test_progress():
    said = []
    LaplaceSynthesizer(1.0, postprocess="plain").rehearse(WINDOW, n=400, progress=said.append)
    assert said == [f"surrogate pattern: {kind}" for kind in KINDS]


def test_distance_between_masses():
    assert mass_distance(np.array([1.0, 1.0]), np.array([3.0, 1.0])) == 0.25
    assert mass_distance(np.array([1.0, 0.0]), np.array([0.0, 9.0])) == 1.0
    assert mass_distance(np.array([2.0, 4.0]), np.array([1.0, 2.0])) == 0.0


@pytest.mark.slow
def test_a_plan_of_its_own_is_rehearsed_as_it_is():
    plan = SYNTHESIZERS["exact"].plan(WINDOW, n=400)
    assert plan.rehearse(1).mechanism == "lgcp-posterior-draw"


@pytest.mark.slow
def test_diagnostics_of_nuts():
    synthesizer = LGCPSynthesizer(1.0, alpha=25.0, mechanism="posterior-draw", delta=1e-6, sampler="nuts", **FIELD)
    with chance_for_nuts():
        passed = [run for run in synthesizer.rehearse(WINDOW, n=400, rng=1).runs if run.passed]
    assert passed
    for run in passed:
        assert 1 <= run.rhat <= 1.01
        assert run.ess >= 400
        assert math.isfinite(run.distance)


def test_surrogates_follow_the_offset():
    """With none a release of people in one quarter would seem to be worse than an even map."""
    people = Offset.from_grid([[1.0, 1.0], [60.0, 1.0]], WINDOW.bounds, "counts")
    outcome = LGCPSynthesizer(50.0, alpha=25.0, offset=people, **FIELD).rehearse(WINDOW, n=400, rng=1)
    assert [run.uniform < 1e-9 for run in outcome.runs] == [True, False, False]
    assert outcome.runs[0].distance < 0.25
