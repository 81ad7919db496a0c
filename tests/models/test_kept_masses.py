"""Bent draws against masses that linear prediction gives."""

import numpy as np
import pytest

from dpppsynth import Window
from dpppsynth.models import NoisyMasses, refine, regular_triangulation
from dpppsynth.models.kept_masses import LEAST, kept_masses

SQUARE = Window.rectangle(0, 0, 1000, 1000)
TENTS = regular_triangulation(SQUARE, shape=(6, 6))
FINE = refine(TENTS, 3)
SHARES = FINE.shares(TENTS)


def likelihood(n):
    return NoisyMasses(np.full(36, 10.0), 1.0, FINE.measure, SHARES, n)


@pytest.mark.parametrize("n", [360.0, None])
def test_masses_are_those_of_the_first_order(n):
    """The variance within tents adds a tenth and more to masses before, and nothing after."""
    rng, known = np.random.default_rng(4), likelihood(n)
    mode = np.log(360.0 / 1e6) + np.cos(FINE.vertices[:, 0] / 300)
    rough = mode + rng.normal(0, 0.8, (20, len(mode)))
    bent = kept_masses(known, mode, rough)
    # The slope of the masses, found by small differences.
    step = 1e-5
    masses = known.expected_masses(mode)
    slopes = np.array([(known.expected_masses(mode + step * each) - masses) / step for each in rough - mode])
    wanted = np.maximum(masses + slopes, LEAST * masses)
    before, after = (np.abs(known.expected_masses(each) / wanted - 1) for each in (rough, bent))
    assert np.median(before) > 0.05
    assert np.median(after) < 0.02
    # Within a tent the field is as rough as it was.
    inside = (bent - rough).std(axis=0) / (rough - mode).std(axis=0)
    assert np.median(inside) < 0.6


def test_small_changes_stay_as_they_are():
    known, rng = likelihood(360.0), np.random.default_rng(5)
    mode = np.full(len(FINE.vertices), np.log(360.0 / 1e6))
    small = mode + 1e-4 * rng.normal(size=(3, len(mode)))
    assert np.abs(kept_masses(known, mode, small) - small).max() < 1e-5


def test_tents_without_mass_change_nothing():
    measure = np.where(FINE.vertices[:, 0] < 500, FINE.measure, 0.0)
    known = NoisyMasses(np.full(36, 10.0), 1.0, measure, SHARES, None)
    mode = np.zeros(len(measure))
    bent = kept_masses(known, mode, mode + np.random.default_rng(6).normal(0, 0.5, (4, len(mode))))
    assert np.isfinite(bent).all()
