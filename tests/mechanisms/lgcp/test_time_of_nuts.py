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


def test_an_approximation_states_no_time():
    assert said(3_000, inference="laplace") == "laplace"
