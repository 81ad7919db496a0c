"""Statistics do not depend on what is inferred from them, and how."""

from itertools import product

import numpy as np
import pytest
from support.seams import chance_for_nuts, one_prior

import dpppsynth as dps
from dpppsynth.datasets import soho_streets
from dpppsynth.spatial.domains import canonical_json

SQUARE = dps.Window.rectangle(0, 0, 1000, 1000)
SOHO = soho_streets()
SIZES = (50, 400, 3_000, 30_000)
WAYS = [
    {"inference": inference, "engine": engine, "prior": prior}
    for inference, engine, prior in product(
        ("auto", "laplace", "nuts"), ("nutpie", "pymc"), ("auto", "dense", "sparse")
    )
]


def same(domain, n, **settings):
    """Refusals of ways without a plan; all others measure the same."""
    measured, refusals = set(), []
    for way in WAYS:
        try:
            plan = dps.LGCPSynthesizer(1.0, **settings, **way).plan(domain, n=n)
        except dps.InputError as error:
            refusals.append(str(error))
            continue
        measured.add((plan.mechanism, canonical_json(plan.statistic.parameters())))
    assert len(measured) == 1
    return refusals


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("alpha", [1.0, 100.0])
@pytest.mark.parametrize("mechanism", ["auto", "tents"])
@pytest.mark.parametrize("domain", [SQUARE, SOHO], ids=["plane", "streets"])
def test_statistic_is_the_same_for_every_way_of_inference(domain, mechanism, alpha, n):
    refusals = same(domain, n, mechanism=mechanism, alpha=alpha)
    # Where a way is refused, the cause is that way.
    assert all(refusal.startswith(("inference:", "prior:")) for refusal in refusals)
    if domain is SQUARE and mechanism == "tents":
        assert not refusals or n >= 3_000


@pytest.mark.parametrize("given", [{"length_scale": 200.0}, {"clusters": 0.3}, {"mechanism": "cells"}])
@pytest.mark.parametrize("domain", [SQUARE, SOHO], ids=["plane", "streets"])
def test_beside_other_settings_as_well(domain, given):
    if domain is SQUARE and "mechanism" in given:
        domain = SOHO
    same(domain, 3_000, **({"alpha": 20.0} | given))


def test_a_city_keeps_its_tents_with_nuts():
    city = dps.LGCPSynthesizer(1.0, alpha=100.0, inference="nuts").plan(
        dps.Window.rectangle(0, 0, 10_000, 10_000), n=10_000
    )
    assert len(city.statistic.mesh.vertices) > 1000


@pytest.mark.parametrize(
    ("way", "words"),
    [({"inference": "nuts"}, r"^inference: .* 10000 .* 10000 vertices"), ({"prior": "dense"}, r"^prior: .*'tents'")],
)
def test_moved_points_have_a_field_of_their_own(way, words):
    with pytest.raises(dps.InputError, match=words):
        dps.LGCPSynthesizer(1.0, alpha=1.0, **way).plan(SQUARE, n=3_000)
    assert dps.LGCPSynthesizer(1.0, alpha=1.0, mechanism="tents", **way).plan(SQUARE, n=3_000)


def test_a_release_is_inferred_again_by_nuts_from_the_same_numbers():
    rng = np.random.default_rng(3)
    points = dps.PointPattern(rng.normal(500, 80, (1200, 2)), SQUARE)
    with one_prior(), chance_for_nuts():
        release = dps.LGCPSynthesizer(1.0, alpha=100.0).release(points)
        again = release.infer(1, inference="nuts")
    assert again.statistic is release.statistic
    assert again.guarantee == release.guarantee
    assert again.estimator.inference == "nuts"
    assert np.isfinite(again.diagnostics.rhat[again.diagnostics.weight > 0]).all()
