"""Envelopes: exact levels by exchangeability, planted departures, bad input."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from dpppsynth.core.errors import InputError
from dpppsynth.evaluation.envelopes import envelope
from dpppsynth.evaluation.kfunction import k_function, pair_correlation
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.second_order import KFunction, PairCorrelation

R = np.linspace(0, 1, 9)


def g(values, r=R, bandwidth=0.1):
    return PairCorrelation(r, np.asarray(values, dtype=float), bandwidth, "isotropic", False, True, planar=True)


def k(values, r=R, correction="isotropic", planar=True):
    return KFunction(r, np.asarray(values, dtype=float), correction, False, True, planar)


@pytest.fixture
def curves():
    """Twenty exchangeable curves whose spread grows with r."""
    rng = np.random.default_rng(3)
    return np.cumsum(rng.gamma(1.0, size=(20, len(R))), axis=1)


def in_turn(curves, make, **options):
    """Envelopes with each curve as the observed one and the others as simulated."""
    return [
        envelope(make(curves[i]), [make(c) for c in np.delete(curves, i, axis=0)], **options)
        for i in range(len(curves))
    ]


@pytest.mark.parametrize("make", [g, k])
@pytest.mark.parametrize("rank", [1, 3, 9])
def test_pointwise_level_is_exact(rank, make, curves):
    """Exactly 2 rank of m + 1 exchangeable curves are outside the others' envelope at each r; off by one is caught."""
    found = in_turn(curves, make, rank=rank)
    assert (np.sum([each.outside for each in found], axis=0) == 2 * rank).all()
    assert found[0].level == 2 * rank / 20
    assert found[0].p_value is None
    assert not found[0].simultaneous


@pytest.mark.parametrize("make", [g, k])
@pytest.mark.parametrize("rank", [1, 4, 19])
def test_simultaneous_level_is_exact(rank, make, curves):
    """Exactly `rank` of m + 1 curves leave the others' band.

    Comparing with a mean that holds one and not the other curve would be too strict: its band is left more often.
    """
    found = in_turn(curves, make, rank=rank, simultaneous=True)
    assert sum(each.outside.any() for each in found) == rank
    assert found[0].level == rank / 20
    assert sorted(each.p_value for each in found) == pytest.approx(np.arange(1, 21) / 20)
    assert all(each.outside.any() == (each.p_value <= each.level + 1e-12) for each in found)


def test_the_band_is_as_wide_everywhere_and_centred(curves):
    found = in_turn(curves, g, simultaneous=True)[0]
    assert found.mean == pytest.approx(curves[1:].mean(axis=0))
    assert np.ptp(found.upper - found.lower) == pytest.approx(0, abs=1e-9)
    assert (found.upper + found.lower) / 2 == pytest.approx(found.mean)


def test_pointwise_bounds_are_order_statistics(curves):
    found = envelope(g(curves[0]), [g(c) for c in curves[1:]], rank=2)
    for column in range(len(R)):
        ordered = sorted(curves[1:, column])
        assert (found.lower[column], found.upper[column]) == (ordered[1], ordered[-2])


def test_a_departure_at_one_distance_is_found_there(curves):
    planted = curves[0].copy()
    planted[4] += 100
    for simultaneous in (False, True):
        found = envelope(g(planted), [g(c) for c in curves[1:]], simultaneous=simultaneous)
        assert found.outside[4]
    assert found.p_value == 1 / 20
    assert found.outside.sum() == 1
    low = envelope(g(curves[0] - 100), [g(c) for c in curves[1:]], simultaneous=True)
    assert low.outside.all()


def test_k_functions_become_l_functions(curves):
    found = envelope(k(np.pi * curves[0] ** 2), [k(np.pi * c**2) for c in curves[1:]])
    assert found.curve == "L"
    assert found.observed == pytest.approx(curves[0])
    assert found.upper == pytest.approx(curves[1:].max(axis=0))
    street = envelope(k(curves[0], planar=False), [k(c, planar=False) for c in curves[1:]])
    assert street.observed == pytest.approx(curves[0])
    assert envelope(g(curves[0]), [g(curves[1])] * 2).curve == "g"


def test_patterns_stand_for_their_curves():
    rng = np.random.default_rng(5)
    window = Window.rectangle(0, 0, 10, 10)
    observed, *runs = [PointPattern(rng.uniform(0, 10, (30, 2)), window) for _ in range(20)]
    by_hand = envelope(k_function(observed), [k_function(each) for each in runs])
    at_once = envelope(observed, runs)
    for name in ("r", "observed", "lower", "upper"):
        assert np.array_equal(getattr(at_once, name), getattr(by_hand, name))
    pairs = partial(pair_correlation, bandwidth=1.0)
    assert np.array_equal(
        envelope(observed, runs, of=pairs).observed, envelope(pairs(observed), [*map(pairs, runs)]).observed
    )
    # Curves and patterns may be mixed, and have to belong together.
    assert np.array_equal(envelope(k_function(observed), runs).upper, by_hand.upper)
    with pytest.raises(InputError, match="curves of one kind"):
        envelope(pairs(observed), runs)


def test_tables_of_points_stand_for_their_patterns():
    rng = np.random.default_rng(5)
    window = Window.rectangle(0, 0, 10, 10, crs="EPSG:27700")
    observed, *runs = [PointPattern(rng.uniform(0, 10, (30, 2)), window) for _ in range(5)]
    frame, expected = observed.to_geodataframe(), envelope(observed, runs).observed
    for given in (frame, frame.geometry):
        assert np.array_equal(envelope(given, runs).observed, expected)
    with pytest.raises(InputError, match=r"from_geodataframe\(points, domain, to_crs='EPSG:27700', snap=15.0\)"):
        envelope(frame.to_crs(4326), runs)


def test_equal_curves_are_never_outside():
    """Means of equal numbers are not equal to them: 0.1 is not the mean of 39 of its kind."""
    same = [g(np.full(len(R), 0.1))] * 40
    found = envelope(same[0], same[1:], simultaneous=True)
    assert not found.outside.any()
    assert found.p_value == 1
    assert not envelope(same[0], same[1:]).outside.any()


def test_curves_must_belong_together(curves):
    one, rest = k(curves[0]), [k(c) for c in curves[1:5]]
    refused = [
        ([*rest, k(curves[5], R + 0.1)], "different distances r"),
        ([*rest, k(curves[5][:4], R[:4])], "different distances r"),
        ([*rest, k(curves[5], correction="none")], "curves of one kind"),
        ([*rest, k(curves[5], planar=False)], "curves of one kind"),
        ([*rest, g(curves[5])], "curves of one kind"),
        (
            [*rest, curves[5]],
            "simulated:",
        ),
        ([*rest, k(np.full(len(R), np.nan))], "not finite"),
        (rest[:1], "at least two simulated"),
        ([], "simulated:"),
        (one, "simulated:"),
        (None, "simulated:"),
    ]
    for simulated, message in refused:
        with pytest.raises(InputError, match=message):
            envelope(one, simulated)
    with pytest.raises(InputError, match=r"^observed:"):
        envelope(curves[0], rest)
    with pytest.raises(InputError, match=r"^simultaneous:"):
        envelope(one, rest, simultaneous="no")
    plane = g(curves[0])
    for other in (g(curves[2], bandwidth=0.2), replace(plane, planar=False)):
        with pytest.raises(InputError, match="curves of one kind") as refused:
            envelope(plane, [g(curves[1]), other])
        assert "domain" not in str(refused.value)


@pytest.mark.parametrize(("m", "most", "simultaneous"), [(2, 1, False), (4, 2, False), (5, 2, False), (5, 5, True)])
def test_ranks_that_are_possible(m, most, simultaneous, curves):
    runs = [g(c) for c in curves[1 : m + 1]]
    assert envelope(g(curves[0]), runs, rank=most, simultaneous=simultaneous).level < 1
    for rank in (0, most + 1, 1.5, True):
        with pytest.raises(InputError, match=r"^rank:"):
            envelope(g(curves[0]), runs, rank=rank, simultaneous=simultaneous)


def test_the_repr_shows_no_values(curves):
    text = repr(in_turn(curves, k, simultaneous=True)[0])
    assert text == "Envelope(L, simultaneous, level 0.05, r from 0 to 1)"
