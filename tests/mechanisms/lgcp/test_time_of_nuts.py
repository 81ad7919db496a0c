"""The time of NUTS as `check` states it."""

import pytest

import dpppsynth as dps

SQUARE = dps.Window.rectangle(0, 0, 1000, 1000)


def said(n, **settings):
    estimator = dps.LGCPSynthesizer(1.0, alpha=50.0, mechanism="tents", **settings).plan(SQUARE, n=n).estimator
    return dict(estimator.table_rows())["inference"]


def minutes(words):
    number, unit = words.split("about ")[1].split()[:2]
    return float(number) / (60 if unit == "s" else 1)


@pytest.mark.parametrize("prior", ["dense", "sparse"])
def test_more_unknowns_take_longer(prior):
    few, many = (minutes(said(n, prior=prior, inference="nuts")) for n in (300, 3_000))
    assert 0 < few < many


def test_one_prior_takes_less_than_an_average_over_several():
    settings = {"prior": "dense", "inference": "nuts"}
    assert minutes(said(900, length_scale=200.0, **settings)) < minutes(said(900, **settings))


@pytest.mark.parametrize("length_scale", [None, 200.0])
@pytest.mark.parametrize("side", [20, 36, 46, 50])
def test_nobody_waits_more_than_two_minutes_unasked(side, length_scale):
    """Behind dense fields, whose vertices are those of the tents here."""
    settings = {"prior": "dense", "mesh": dps.models.regular_triangulation(SQUARE, shape=(side, side))}
    settings |= {} if length_scale is None else {"length_scale": length_scale}
    usual, named = (said(900, inference=each, **settings) for each in ("auto", "nuts"))
    assert usual == (named if minutes(named) <= 2 else "laplace")


def test_an_approximation_states_no_time():
    assert said(3_000, inference="laplace") == "laplace"
