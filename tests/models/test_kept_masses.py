"""Bent draws against masses that linear prediction gives."""

import numpy as np
import pytest
import scipy.sparse as sp

from dpppsynth import Window
from dpppsynth.models import NoisyMasses, refine, regular_triangulation
from dpppsynth.models.sparse_posterior import LEAST, integrals, kept_masses, with_masses
from dpppsynth.spatial.mesh import gauss_rule, integrate_exp

SQUARE = Window.rectangle(0, 0, 1000, 1000)
TENTS = regular_triangulation(SQUARE, shape=(6, 6))
FINE = refine(TENTS, 3)
SHARES = FINE.shares(TENTS)
RULE = gauss_rule(FINE, FINE.pieces, 2)
# Masses at the vertices alone, as the likelihood takes them.
LUMPED = sp.eye_array(len(FINE.vertices), format="csr"), FINE.measure


def likelihood(n):
    return NoisyMasses(np.full(36, 10.0), 1.0, FINE.measure, SHARES, n)


@pytest.mark.parametrize("n", [360.0, None])
def test_masses_are_those_of_the_first_order(n):
    """The variance within tents adds a tenth and more to masses before, and nothing after."""
    rng, known = np.random.default_rng(4), likelihood(n)
    mode = np.log(360.0 / 1e6) + np.cos(FINE.vertices[:, 0] / 300)
    rough = mode + rng.normal(0, 0.8, (20, len(mode)))
    bent = kept_masses(known, mode, rough, SHARES, LUMPED)
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


def test_masses_are_as_wanted():
    """In tents that do not overlap exactly; other places of a tent move with it, and nothing where masses are right."""
    halves = sp.csr_array(np.stack([FINE.vertices[:, 0] < 500, FINE.vertices[:, 0] >= 500]).astype(float))
    fields = np.random.default_rng(9).normal(size=(2, len(FINE.vertices)))
    wanted = np.array([[3.0, 1.0], [2.0, 5.0]])
    found = with_masses(fields, wanted, halves, LUMPED, None)
    np.testing.assert_allclose((halves @ integrals(found, LUMPED, None).T).T, wanted, rtol=1e-12)
    for part in halves.toarray() > 0:
        assert np.ptp((found - fields)[:, part], axis=1).max() < 1e-12
    np.testing.assert_allclose(with_masses(found, wanted, halves, LUMPED, None), found, atol=1e-12)


def test_small_changes_stay_as_they_are():
    known, rng = likelihood(360.0), np.random.default_rng(5)
    mode = np.full(len(FINE.vertices), np.log(360.0 / 1e6))
    small = mode + 1e-4 * rng.normal(size=(3, len(mode)))
    assert np.abs(kept_masses(known, mode, small, SHARES, LUMPED) - small).max() < 1e-5


def test_tents_without_mass_change_nothing():
    measure = np.where(FINE.vertices[:, 0] < 500, FINE.measure, 0.0)
    known = NoisyMasses(np.full(36, 10.0), 1.0, measure, SHARES, None)
    mode, rule = np.zeros(len(measure)), (LUMPED[0], measure)
    bent = kept_masses(known, mode, mode + np.random.default_rng(6).normal(0, 0.5, (4, len(mode))), SHARES, rule)
    assert np.isfinite(bent).all()


@pytest.mark.parametrize("n", [360.0, None])
def test_masses_are_integrals_between_the_vertices(n):
    """Vertices miss some mass of a narrow hill, as a rule of higher order tells; the bent field has what they say."""
    known = likelihood(n)
    mode = np.log(360.0 / 1e6) + 3 * np.exp(-((FINE.vertices - 430) ** 2).sum(axis=1) / (2 * 80.0**2))
    if n is not None:
        mode += np.log(n / known.vertex_masses(mode).sum())
    masses = SHARES @ known.vertex_masses(mode)
    near, (plain, bent) = masses > 5, (mode[None], kept_masses(known, mode, mode[None], SHARES, RULE))
    exact = [SHARES @ integrals(field, gauss_rule(FINE, FINE.pieces, 12), n)[0] for field in (plain, bent)]
    before, after = (np.abs(each / masses - 1)[near].max() for each in exact)
    assert before > 0.05
    assert after < before / 2.5


def test_integrals_add_up():
    field = np.random.default_rng(8).normal(size=(3, len(FINE.vertices)))
    whole = integrals(field, gauss_rule(FINE, FINE.pieces, 12), None).sum(axis=1)
    np.testing.assert_allclose(whole, integrate_exp(FINE, FINE.pieces, field), rtol=1e-9)


def test_fields_are_bent_one_by_one():
    """Nothing passes from one draw to another, wherever the cuts are."""
    known, mode = likelihood(360.0), np.full(len(FINE.vertices), np.log(360.0 / 1e6))
    rough = mode + np.random.default_rng(9).normal(0, 0.5, (19, len(mode)))
    one_by_one = np.concatenate([kept_masses(known, mode, each[None], SHARES, RULE) for each in rough])
    np.testing.assert_allclose(kept_masses(known, mode, rough, SHARES, RULE), one_by_one, rtol=1e-12)
    assert kept_masses(known, mode, rough[:0], SHARES, RULE).shape == (0, len(mode))
