"""Relative risk and effects on draws that are given: averages, shares of draws, units."""

import numpy as np
import pytest

from dpppsynth.inference.risk import Effects, RelativeRisk
from dpppsynth.models import regular_triangulation
from dpppsynth.spatial.covariates import Design
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.offset import Offset

SQUARE = Window.rectangle(0, 0, 1000, 1000)
MESH = regular_triangulation(SQUARE, shape=(41, 41))
PEOPLE = Offset.from_grid([[1.0, 9.0]], (0, 0, 1000, 1000))
# Slopes along x of several sizes, at several levels.
FIELDS = np.array([[0.0], [1.0], [-2.0]]) + np.array([[1.5], [-1.0], [0.3]]) * MESH.vertices[:, 0] / 1000
GRID = np.stack(np.meshgrid(np.linspace(5, 995, 100), np.linspace(5, 995, 100)), axis=-1).reshape(-1, 2)


@pytest.mark.parametrize("offset", [None, PEOPLE])
def test_every_draw_has_average_one_over_the_population(offset):
    """The population lives mostly in the east, where half of the draws are high."""
    weight = np.ones(len(GRID)) if offset is None else offset(GRID)
    surface = RelativeRisk(MESH, FIELDS, offset).surface
    risks = np.exp(MESH.basis(GRID) @ surface.fields.T)
    np.testing.assert_allclose(weight @ risks / weight.sum(), 1, atol=2e-3)


def test_exceedance_is_the_share_of_draws():
    risk = RelativeRisk(MESH, FIELDS, PEOPLE)
    risks = np.exp(MESH.basis(GRID) @ risk.surface.fields.T)
    np.testing.assert_array_equal(risk.exceedance(1.1)(GRID), (risks > 1.1).mean(axis=1))


def test_effects_per_unit():
    """A covariate given in thousandths has an effect a thousand times as large per unit."""
    draws = np.array([[0.3, 0.1], [0.5, -0.1]])
    effects = Effects(Design(("far", "near"), (0.0, 0.0), (0.001, 4.0), "window"), draws)
    np.testing.assert_allclose(effects.per_unit("far"), [300.0, 500.0])
    np.testing.assert_allclose(effects.per_unit("near"), [0.025, -0.025])
