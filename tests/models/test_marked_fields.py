"""Fields over places, times and types: covariances by hand."""

import numpy as np
import pytest
from support.cases import SQUARE

from dpppsynth.models import regular_triangulation
from dpppsynth.models.marked_fields import LEVEL_SD, MarkedPrior, clock_field, product_field
from dpppsynth.models.sparse_fields import SparseMatern
from dpppsynth.spatial.mark_space import Times

MESH = regular_triangulation(SQUARE, shape=(3, 3))
SPACE = SparseMatern(1.3, 500.0, 1.0).on(MESH)
DAY = Times.day("hour", hats=4)


@pytest.mark.parametrize("times", [DAY, Times.day("h", 24), Times("t", 0.0, 10.0, hats=7)], ids=str)
@pytest.mark.parametrize("share", [0.05, 0.3, 2.0])
def test_a_clock_has_a_covariance(times, share):
    field = clock_field(times, share * times.length)
    whole(field)
    found = covariance(field)
    assert np.allclose(np.diag(found), 1)
    if times.periodic:
        # The same from every instant, and symmetric around the clock.
        assert all(np.allclose(np.roll(row, -k), found[0]) for k, row in enumerate(found))
        assert np.allclose(found[0, 1:], found[0, 1:][::-1])


def test_the_closed_form_holds_on_a_line_and_far_instants_are_nearly_independent():
    times = Times("t", 0.0, 100.0, hats=401)
    found, kappa = covariance(clock_field(times, 10.0))[200], np.sqrt(12) / 10
    apart = np.abs(times.nodes - 50)
    assert np.allclose(found, (1 + kappa * apart) * np.exp(-kappa * apart), atol=0.01)


def covariance(field):
    placed = field.placement.toarray()
    return placed @ np.linalg.solve(field.precision.toarray(), placed.T)


def whole(field):
    """Root and determinant fit the precision."""
    precision = field.precision.toarray()
    assert np.allclose((field.root @ field.root.T).toarray(), precision)
    assert field.log_det == pytest.approx(np.linalg.slogdet(precision)[1])


def test_products_of_covariances():
    clock = clock_field(DAY, 8.0)
    field = product_field(clock, SPACE)
    whole(field)
    assert np.allclose(covariance(field), np.kron(covariance(clock), covariance(SPACE)))


@pytest.mark.parametrize("types", [1, 3])
@pytest.mark.parametrize("times", [None, DAY], ids=str)
@pytest.mark.parametrize("secret", [None, 2.0])
def test_covariance_is_the_sum_of_its_parts(types, times, secret):
    prior = MarkedPrior(0.4, 0.7, 0.5)
    curve = None if times is None else clock_field(times, 8.0)
    field = prior.on(SPACE, curve, types, secret)
    whole(field)
    clock = np.ones((1, 1)) if curve is None else covariance(curve)
    hats, places = len(clock), len(MESH.vertices)
    ones, each, space = np.ones, np.eye, covariance(SPACE)
    expected = np.kron(ones((types, types)), np.kron(ones((hats, hats)), space))
    if types > 1:
        own = 0.4**2 * np.kron(ones((hats, hats)), space) + LEVEL_SD**2
        expected += np.kron(each(types), own)
    if times is not None:
        curve = 0.7**2 * np.kron(clock, ones((places, places)))
        expected += np.kron(ones((types, types)), curve + 0.5**2 * np.kron(clock, space))
        expected += np.kron(each(types), 0.4**2 * curve) if types > 1 else 0
    expected += 0 if secret is None else secret**2
    assert np.allclose(covariance(field), expected)


def test_no_part_for_what_there_is_not():
    assert MarkedPrior(0.0, 0.0, 0.0).on(SPACE, None, 1).size == SPACE.size
