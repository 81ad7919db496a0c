"""Text on mechanisms: each has its own, and an unknown one is refused instead of being described as another."""

from types import SimpleNamespace

import pytest

from dpppsynth.contract import registry
from dpppsynth.contract.words import MechanismWords, largest_error_plan
from dpppsynth.core.errors import InputError
from dpppsynth.privacy import PureDP, ReplaceOne
from dpppsynth.privacy.guarantee import Guarantee

PLAN = SimpleNamespace(basis="tents", domain=None)
GUARANTEE = Guarantee(ReplaceOne(), PureDP(1.0), "some-theorem", ("none",))


def test_what_is_not_said_of_a_mechanism_is_not_claimed():
    words, plan = MechanismWords(description="Points were drawn."), SimpleNamespace(max_error=3)
    assert (words.describe(plan), words.describe(plan, "kind")) == ("Points were drawn.", "Points were drawn.")
    assert words.errors(plan) == words.costs(plan, GUARANTEE) == words.remarks(None) == words.pair_remarks(None) == []
    assert words.shown(plan) is words.reports([plan]) is words.alarm(None) is None
    assert words.figures(None) == {}
    assert (words.counts, words.moved) == ("points", False)


def test_a_release_has_the_words_of_its_mechanism_or_of_that_of_its_levels():
    part = SimpleNamespace(mechanism="planar-laplace")
    moved, by_level = SimpleNamespace(parts={"": part}), SimpleNamespace(parts={"a": part, "b": part})
    assert registry.of(moved) is registry.of(by_level) is registry.mechanism("planar-laplace")


def test_an_unknown_mechanism_is_refused_by_name():
    release = SimpleNamespace(parts={"": SimpleNamespace(mechanism="laplace-cell")})
    with pytest.raises(InputError, match="mechanism: 'laplace-cell' is not known"):
        registry.of(release)


def test_every_record_has_words_that_end():
    for name in registry.names():
        words = registry.mechanism(name).words
        assert words.describe(PLAN).endswith(".")
        assert words.describe(PLAN, "kind").endswith(".")
        assert words.near.endswith(".")
        assert words.counts in ("points", "persons")
        assert not words.intensity.endswith(".")


def test_no_bound_is_the_loosest():
    plans = [SimpleNamespace(max_error=each) for each in (3, None, 5)]
    assert largest_error_plan(plans) is plans[1]
    assert largest_error_plan(plans[::2]) is plans[2]
