"""Exponential and binary search, and validation of error bounds and their deltas."""

import itertools
import math
from bisect import bisect_left

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.bounded.bound import bounded_counts, require_error_delta, require_max_error
from dpppsynth.mechanisms.bounded.numeric_queries import BoundedErrorAnswers
from dpppsynth.privacy import bounded_delta, smallest_bounded_epsilon, smallest_max_error
from dpppsynth.privacy.relations import AddRemove, ReplaceOne
from dpppsynth.privacy.truncated.error_bounds import WHY_DELTA, smallest_number, smallest_whole
from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP
from dpppsynth.synthesizers import BoundedErrorSynthesizer
from dpppsynth.truncated import TruncatedGeometric, truncated_geometric_bound

LARGEST = 2**60
WILD = [None, True, math.nan, math.inf, -1, 0, 2.5, "x", [3], object(), 1j, 10**400]


@settings(max_examples=60)
@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**6))
def test_the_smallest_whole_number(answer, first, most):
    first = min(first, most)
    found = smallest_whole(lambda k: k >= answer, first=first, most=most)
    assert found == (answer if answer <= most else None)
    assert found is None or found == 1 + bisect_left(range(1, most + 1), True, key=lambda k: k >= answer)


def test_nothing_beyond_the_most_is_tried():
    tried = []
    assert smallest_whole(lambda k: bool(tried.append(k)), first=3, most=20) is None
    assert tried == [3, 6, 12, 20]
    # Between the last doubling and the most.
    assert smallest_whole(lambda k: k >= LARGEST - 1, first=3, most=LARGEST) == LARGEST - 1


@settings(max_examples=60)
@given(st.floats(1e-40, 1e40), st.floats(1.0, 1e20), st.floats(1.0, 1e6), st.sampled_from([1e-6, 1e-12, 1e-15, 0.0]))
def test_the_smallest_number(answer, below, factor, close):
    low = answer / below / 2
    found = smallest_number(lambda x: x >= answer, low, low * factor, close=close)
    assert answer <= found <= answer * (1 + close) * (1 + 1e-15)


def test_a_bound_that_doubling_passes_over_is_found():
    # From 3 on, doublings miss every bound above 3 2^58.
    delta = TruncatedGeometric(math.inf, 2**60 - 2**50).exposed(3)
    found = truncated_geometric_bound(1e-100, delta, 3)
    assert 3 * 2**58 < found <= 2**60


@pytest.mark.parametrize("delta", [0, 0.0, -1e-6, math.nan, True, None, "x"])
def test_delta_of_zero_has_one_reason(delta):
    assert "one of two neighbouring data sets" in WHY_DELTA
    for call in (
        require_error_delta,
        lambda delta: smallest_max_error(AddRemove(), epsilon=1.0, delta=delta),
        lambda delta: smallest_bounded_epsilon(AddRemove(), delta=delta, max_error=20),
        lambda delta: truncated_geometric_bound(1.0, delta),
    ):
        with pytest.raises(
            InputError, match=r"^delta: must lie above 0 and be at most 0.5, got.*it cannot be 0: an err"
        ):
            call(delta)


def test_delta_is_at_most_one_half():
    assert require_error_delta(0.5) == 0.5
    for delta in (math.nextafter(0.5, 1), 0.7, 1, 1.5, 10**300):
        with pytest.raises(InputError, match=r"^delta: .*at most 0.5, got.*above one half most answers tell") as caught:
            require_error_delta(delta)
        assert "cannot be 0" not in str(caught.value)


def test_bounds_on_counts_may_be_whole_floats():
    found = require_max_error(ReplaceOne(2), 30.0)
    assert (found, type(found)) == (30, int)
    for relation in (AddRemove(), ReplaceOne(2)):
        assert bounded_delta(relation, scale=2.0, max_error=30.0) == bounded_delta(relation, scale=2.0, max_error=30)
        epsilons = [smallest_bounded_epsilon(relation, delta=1e-6, max_error=most) for most in (30, 30.0)]
        assert epsilons[0] == epsilons[1]
        guarantee = bounded_counts(relation, scale=2.0, max_error=50.0, delta=1e-6)
        assert type(guarantee.profile.bound) is int
    terms = BoundedErrorAnswers(epsilon=1.0, max_error=30.0).check()
    assert (terms.max_error, type(terms.max_error)) == (30, int)


@pytest.mark.parametrize("most", WILD, ids=lambda value: type(value).__name__)
def test_bounds_on_counts_are_whole_numbers(most):
    for call in (
        lambda: require_max_error(AddRemove(), most),
        lambda: bounded_delta(AddRemove(), scale=2.0, max_error=most),
        lambda: bounded_counts(AddRemove(), scale=2.0, max_error=most, delta=1e-6),
        lambda: smallest_bounded_epsilon(AddRemove(), delta=1e-6, max_error=most),
    ):
        with pytest.raises(InputError, match=r"^max_error: "):
            call()
    with pytest.raises(InputError, match="of at least 3, got 2; a count that changes"):
        require_max_error(ReplaceOne(3), 2.0)


def test_messages_say_2_to_the_60():
    beyond = LARGEST + 1
    for call in (
        lambda: require_max_error(AddRemove(), 2.0**61),
        lambda: TruncatedLaplaceDP(2.0, 2**61, (1,), 1e-6),
        lambda: TruncatedLaplaceDP(2.0, 5, (2**61,), 1e-6),
        lambda: BoundedErrorAnswers(epsilon=1.0, max_error=2**61),
        lambda: BoundedErrorAnswers(epsilon=1.0, max_error=20, sensitivity=2**61),
        lambda: TruncatedGeometric(2.0, 2**61),
    ):
        with pytest.raises(InputError, match=r"must be at most 2\^60, got 2305843009213693952") as caught:
            call()
        assert str(LARGEST) not in str(caught.value)
    for call in (lambda: require_max_error(AddRemove(), 0), lambda: BoundedErrorAnswers(epsilon=1.0, max_error=0)):
        with pytest.raises(InputError, match="of at least 1, got 0") as caught:
            call()
        assert str(LARGEST) not in str(caught.value)
    assert require_max_error(AddRemove(), LARGEST) == beyond - 1


@pytest.mark.parametrize("three", [{}, {"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6, "max_error": 20}])
def test_one_rule_says_what_to_give(three):
    """Every door that takes two of three refuses anything else in the same words."""
    found = ", ".join(three) or "none of them"
    for door in (BoundedErrorSynthesizer, BoundedErrorAnswers):
        with pytest.raises(InputError, match=f"^epsilon, delta, max_error: give two .* third follows; got {found}.$"):
            door(**three)


def test_every_door_finds_the_same_third():
    """Noise on one count is the same, whether the count is a cell's or was computed elsewhere."""
    for epsilon, delta in itertools.product((0.3, 1.0, 4.0), (1e-9, 1e-4)):
        for two in ({"epsilon": epsilon, "delta": delta}, {"delta": delta, "max_error": 40}):
            cells = BoundedErrorSynthesizer(relation=AddRemove(), **two).budget
            answer = BoundedErrorAnswers(**two).check()
            assert answer.max_error == cells.max_error
            assert answer.epsilon == pytest.approx(cells.epsilon, rel=1e-11)
