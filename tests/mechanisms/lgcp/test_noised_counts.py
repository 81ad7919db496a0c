"""Counts and tent masses on windows: scales of their noise, rules, and public mistakes."""

import math

import pytest

from dpppsynth.core.errors import InputError
from dpppsynth.privacy import AddRemove, AlphaNeighbours, ReplaceOne
from dpppsynth.spatial.domains import Window
from dpppsynth.synthesizers import LaplaceSynthesizer

WINDOW = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
N = 400


def test_default_postprocess_follows_the_relation():
    def default(relation):
        synthesizer = LaplaceSynthesizer(1.0, relation=relation, postprocess="plain")
        size = {"n": N} if relation.n_is_public else {"expected_n": float(N)}
        return synthesizer.plan(WINDOW, **size).estimator.postprocess

    assert (default(ReplaceOne()), default(AddRemove())) == ("keep-n", "clip")


def test_noise_grows_with_the_cap_and_shrinks_with_alpha():
    def scale(relation, basis):
        plan = LaplaceSynthesizer(1.0, relation=relation, basis=basis, spacing=250.0, postprocess="plain").plan(
            WINDOW, n=N
        )
        return plan.statistic.scale / 2**plan.statistic.bits

    moved = 25 * WINDOW.scale_factor
    assert scale(ReplaceOne(3), "cells") == pytest.approx(3 * scale(ReplaceOne(), "cells"))
    assert scale(AlphaNeighbours(1.0), "cells") == pytest.approx(2.0)
    assert scale(AlphaNeighbours(25.0), "tents") == pytest.approx(2 * moved * math.sqrt(2) / 250, rel=1e-4)
    assert scale(ReplaceOne(), "tents") == pytest.approx(2.0)


def test_spacing_wider_than_the_window():
    with pytest.raises(
        InputError, match=r"^spacing: must be positive and at most the longer side of the domain, got 5000"
    ):
        LaplaceSynthesizer(1.0, spacing=5000.0).check(WINDOW, n=N)


@pytest.mark.parametrize("epsilon", [1e-320, 1e-25])
def test_epsilon_beyond_integers(epsilon):
    with pytest.raises(InputError, match=r"^epsilon: "):
        LaplaceSynthesizer(epsilon).check(WINDOW, n=N)
