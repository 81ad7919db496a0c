"""Answers with bounded error: budget against brute force, the noise, the guarantee, series, files and refusals."""

import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dpppsynth import privacy
from dpppsynth.core.errors import InputError
from dpppsynth.filters import particle_filter
from dpppsynth.mechanisms.bounded.numeric_queries import Answers, BoundedErrorAnswers, ErrorTerms
from dpppsynth.privacy.profiles import ApproximateDP, PureDP
from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP
from dpppsynth.truncated import TruncatedGeometric


def masses(scale, bound):
    weights = np.exp(-np.abs(np.arange(-bound, bound + 1)) / scale)
    return weights / weights.sum()


def exposed(scale, bound, shift):
    return masses(scale, bound)[2 * bound + 1 - shift :].sum()


@pytest.mark.parametrize(("epsilon", "max_error", "sensitivity"), [(1.0, 12, 1), (0.5, 60, 3), (0.1, 90, 1)])
def test_delta_is_the_probability_of_answers_that_give_a_data_set_away(epsilon, max_error, sensitivity):
    terms = BoundedErrorAnswers(epsilon=epsilon, max_error=max_error, sensitivity=sensitivity).check()
    assert math.isclose(terms.scale, sensitivity / epsilon)
    assert math.isclose(terms.delta, exposed(terms.scale, max_error, sensitivity), rel_tol=1e-9)
    assert (terms.epsilon, terms.max_error) == (epsilon, max_error)


def test_answers_of_their_own_sensitivity_share_the_budget():
    each = BoundedErrorAnswers(epsilon=3.0, max_error=15, sensitivity=1, queries=3, joint=False)
    assert math.isclose(each.check().scale, 1.0)
    one = exposed(1.0, 15, 1)
    assert math.isclose(each.check().delta, float(1 - (1 - Fraction(one)) ** 3), rel_tol=1e-9)
    # Brute force over all triples of answers: at epsilon = 3 nothing but impossible answers is left, below it more.
    p = np.append(masses(1.0, 15), 0.0)
    q = np.roll(p, 1)
    joint = [np.einsum("i,j,k->ijk", law, law, law) for law in (p, q)]
    for epsilon in (1.5, 3.0):
        brute = np.maximum(joint[0] - math.exp(epsilon) * joint[1], 0).sum()
        assert math.isclose(each.check().profile.delta(epsilon), brute, rel_tol=1e-6)


def test_one_answer_that_takes_the_whole_sensitivity_is_the_worst():
    # A change of 2 in one answer against 1 in each of two: the first is as likely to give itself away or more.
    together = BoundedErrorAnswers(epsilon=1.0, max_error=20, sensitivity=2)
    split = 1 - (1 - exposed(2.0, 20, 1)) ** 2
    assert split < exposed(2.0, 20, 2) <= together.check().delta
    assert together.check().profile.shifts == (2,)


def test_the_third_follows_from_the_other_two():
    for public in (
        {},
        {"sensitivity": 2},
        {"queries": 5, "joint": False},
        {"sensitivity": 3, "queries": 70, "joint": False},
    ):
        found = BoundedErrorAnswers(epsilon=2.0, delta=1e-5, **public).check()
        assert found.delta <= 1e-5
        assert (
            BoundedErrorAnswers(epsilon=2.0, max_error=found.max_error - 1, delta_max=0.9, **public).check().delta
            > 1e-5
        )
        least = BoundedErrorAnswers(delta=1e-5, max_error=found.max_error, **public).check()
        assert least.epsilon <= 2.0
        assert 0.99e-5 < least.delta <= 1e-5
        assert (
            BoundedErrorAnswers(epsilon=least.epsilon * 0.999, max_error=found.max_error, **public).check().delta > 1e-5
        )


def test_the_guarantee_is_the_exact_profile():
    for public in ({}, {"sensitivity": 2}, {"queries": 8, "joint": False}):
        mechanism = BoundedErrorAnswers(epsilon=1.0, delta=1e-6, **public)
        terms, profile = mechanism.check(), mechanism.check().profile
        assert isinstance(profile, TruncatedLaplaceDP)
        assert profile.at == terms.delta
        assert profile.epsilon(terms.delta) <= 1.0
        assert profile.epsilon(terms.delta * 0.99) == math.inf
        law = TruncatedGeometric(mechanism.check().scale, int(terms.max_error))
        assert terms.delta >= law.delta(1.0, profile.shifts) >= terms.delta * (1 - 3e-11)
        assert privacy.profile_from_dict(profile.to_dict()) == profile
    many = BoundedErrorAnswers(epsilon=1.0, delta=1e-6, queries=65, joint=False)
    assert many.check().profile == ApproximateDP(1.0, many.check().delta)


def test_a_delta_too_small_for_floats_is_no_purity():
    terms = BoundedErrorAnswers(epsilon=1.0, max_error=5000).check()
    assert 0 < terms.delta < 1e-299
    assert BoundedErrorAnswers(epsilon=1.0, max_error=5000).check().profile.epsilon(terms.delta) <= 1.0


def test_noise_never_exceeds_the_bound_and_has_the_law():
    mechanism = BoundedErrorAnswers(epsilon=0.5, max_error=6, delta_max=0.5)
    true = np.repeat([5, -(10**9)], 10_000)
    raw = mechanism.release(true, rng=1).raw
    assert raw.dtype == np.int64
    counts = np.bincount(raw - true + 6, minlength=13)
    expected = 20_000 * masses(2.0, 6)
    # Chi-squared with 12 degrees of freedom: above 55 with a probability of 2e-7. Cut noise has atoms at the ends.
    assert ((counts - expected) ** 2 / expected).sum() < 55
    secret = mechanism.release(true[:200])
    assert not secret.seeded
    assert secret.noise == "redrawn-discrete-laplace"
    assert (np.abs(secret.raw - true[:200]) <= 6).all()
    assert mechanism.release([1, 2], rng=1).seeded


def test_without_a_bound_it_is_purely_private():
    mechanism = BoundedErrorAnswers(epsilon=0.5, max_error=math.inf, sensitivity=2)
    terms = mechanism.check()
    assert terms.delta == 0.0
    assert math.isclose(terms.scale, 4.0)
    assert mechanism.check().profile == PureDP(0.5)
    answers = mechanism.release(np.zeros(400, dtype=int), rng=2)
    assert np.abs(answers.raw).max() > 15
    assert answers.filter(particles=20, rng=1).estimate.shape == (400,)
    assert Answers.from_dict(json.loads(json.dumps(answers.to_dict()))).max_error == math.inf
    assert mechanism.release([3]).noise == "discrete-laplace"


def test_filtered_is_the_particle_filter_of_what_was_released():
    mechanism = BoundedErrorAnswers(epsilon=0.1, max_error=60)
    truth = np.round(40 * np.sin(np.arange(60) / 20)).astype(int)
    answers = mechanism.release(truth, rng=3)
    expected = particle_filter(answers.raw, scale=mechanism.check().scale, bound=60.0, rng=0).estimate
    np.testing.assert_array_equal(answers.filtered, expected)
    assert answers.filtered is answers.filtered
    assert answers.max_error == 60
    assert answers.filter(step=1.0, particles=50, rng=1).step == 1.0
    assert (np.abs(answers.filtered - answers.raw) <= 60).all()


def test_an_empty_list_gives_an_empty_array():
    for values in ([], np.zeros(0), np.zeros(0, dtype=int)):
        answers = BoundedErrorAnswers(epsilon=1.0, max_error=20).release(values, rng=1)
        assert answers.raw.shape == answers.filtered.shape == (0,)
        assert answers.raw.dtype == np.int64


def test_a_release_reads_back_from_json():
    for public in (
        {"epsilon": 1.0, "max_error": np.int64(20)},
        {"epsilon": 2.0, "delta": 1e-6, "queries": 3, "joint": False},
    ):
        answers = BoundedErrorAnswers(**public, delta_max=0.01).release([5, 0, -2], rng=4)
        data = json.loads(json.dumps(answers.to_dict()))
        again = Answers.from_dict(data)
        assert again.to_dict() == answers.to_dict()
        assert again.terms == answers.terms
        # Last digits differ between computers.
        near = data | {"delta": math.nextafter(answers.terms.delta, 1)}
        assert Answers.from_dict(near).terms.delta == answers.terms.delta
        for key, wrong in [
            ("delta", answers.terms.delta / 2),
            ("scale", 0.1),
            ("raw", ["x"]),
            ("seeded", "no"),
            ("noise", 1),
            ("joint", 0),
            ("mechanism", "laplace"),
            ("delta", "1e-9"),
            ("delta", None),
            ("max_error", 22),
            ("epsilon", math.nan),
        ]:
            expected = {"raw": "whole numbers", "max_error": "delta"}.get(key, key)
            with pytest.raises(InputError, match=expected):
                Answers.from_dict(data | {key: wrong})
        with pytest.raises(InputError, match="lacks 'raw'"):
            Answers.from_dict({key: value for key, value in data.items() if key != "raw"})
    with pytest.raises(InputError, match="answers"):
        Answers.from_dict([1])


def test_what_was_released_cannot_be_written_over():
    answers = BoundedErrorAnswers(epsilon=1.0, max_error=20).release([5], rng=4)
    with pytest.raises(ValueError, match="read-only"):
        answers.raw[0] = 5
    assert repr(answers) == (
        "Answers(n=1, ErrorTerms(epsilon=1, delta=9.52e-10, max_error=20, scale=1), seeded: not private)"
    )
    assert repr(answers.terms) == "ErrorTerms(epsilon=1, delta=9.52e-10, max_error=20, scale=1)"
    assert "seeded" not in repr(BoundedErrorAnswers(epsilon=1.0, max_error=20).release([5]))


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({}, "give two of them, .* got none of them"),
        ({"epsilon": 1.0}, "give two of them, .* got epsilon"),
        ({"epsilon": 1.0, "delta": 1e-6, "max_error": 20}, "give two"),
        ({"epsilon": 1.0, "delta": 0}, "cannot be 0.*excludes"),
        ({"max_error": 20, "delta": 0.0}, "cannot be 0"),
        ({"delta": 1e-6, "max_error": math.inf}, "goes with epsilon"),
        ({"epsilon": 1.0, "max_error": 20.5}, "max_error"),
        ({"epsilon": 1.0, "max_error": 0}, "max_error"),
        ({"epsilon": 1.0, "max_error": True}, "max_error"),
        ({"epsilon": 1.0, "max_error": math.nan}, "max_error"),
        ({"epsilon": 1.0, "max_error": -math.inf}, "max_error"),
        ({"epsilon": math.inf, "max_error": 20}, "epsilon"),
        ({"epsilon": "1", "max_error": 20}, "epsilon"),
        ({"epsilon": 1.0, "delta": 1.5}, "delta"),
        # Below the sensitivity delta exceeds one half.
        ({"epsilon": 1.0, "max_error": 2, "sensitivity": 3}, "delta_max"),
        ({"epsilon": 0.1, "max_error": 20}, "more than delta_max = 0.001; take max_error = 40 or more"),
        ({"epsilon": 1e300, "max_error": 20}, "epsilon"),
        ({"epsilon": 1.0, "delta": 0.01}, "more than delta_max"),
        ({"delta": 0.2, "max_error": 20, "delta_max": 0.5}, "as good as uniform"),
        ({"delta": 1e-6, "max_error": 2, "sensitivity": 3}, "no epsilon"),
        ({"epsilon": 1e-300, "delta": 1e-6}, "epsilon"),
        ({"epsilon": 1.0, "max_error": 20, "sensitivity": 0}, "sensitivity"),
        ({"epsilon": 1.0, "max_error": 20, "sensitivity": 1.5}, "sensitivity"),
        ({"epsilon": 1.0, "max_error": 20, "queries": 3}, "joint=False"),
        ({"epsilon": 1.0, "max_error": 20, "queries": 0, "joint": False}, "queries"),
        ({"epsilon": 1.0, "max_error": 20, "joint": 1}, "joint"),
        ({"epsilon": 1.0, "max_error": 20, "delta_max": 1}, "delta_max"),
        ({"delta": 1e-6, "max_error": "20"}, "max_error"),
        ({"delta": 1e-6, "max_error": 20, "joint": "yes"}, "joint"),
    ],
)
def test_what_does_not_fit_together_is_refused(settings, match):
    with pytest.raises(InputError, match=match):
        BoundedErrorAnswers(**settings)


@pytest.mark.parametrize(
    ("values", "match"),
    [
        (None, "a NoneType"),
        (5, "a int\\."),
        ("12", "a str\\."),
        ([True], "dtype bool"),
        ([None], "dtype object"),
        ([2**70], "dtype object"),
        ({1: 2}, "a dict"),
        ([[1], [2, 3]], "a list"),
        (np.ma.masked_array([77, 2], [False, True]), "MaskedArray"),
        (np.full((12, 3), 77), r"table \(12, 3\).*ravel"),
        ([77.5], "fractions"),
        ([77, math.nan], "missing"),
        ([math.inf], "infinite"),
        ([2**61], r"beyond 2\^60"),
        ([-(2**63)], r"beyond 2\^60"),
        ([1e17], r"beyond 2\^53"),
    ],
)
def test_values_that_are_not_whole_are_refused_and_never_shown(values, match):
    with pytest.raises(InputError, match=f"values: must be one series of whole numbers.*{match}") as caught:
        BoundedErrorAnswers(epsilon=1.0, max_error=20).release(values)
    assert "77" not in str(caught.value)


def test_whole_numbers_may_be_kept_in_any_way():
    mechanism = BoundedErrorAnswers(epsilon=1.0, max_error=20)
    months = pd.date_range("2024-01-01", periods=3, freq="MS")
    expected = mechanism.release([5, 0, 12], rng=1).raw.tolist()
    for values in (
        np.array([5, 0, 12], dtype=np.uint8),
        [np.int8(5), np.int64(0), 12],
        (5.0, -0.0, 12.0),
        pd.Series([5, 0, 12], index=months),
        pd.Series([5, 0, 12], dtype="Int64"),
        pd.Series([5.0, 0.0, 12.0]),
        np.array([5, 9, 0, 9, 12])[::2],
    ):
        assert mechanism.release(values, rng=1).raw.tolist() == expected
    # Missing months are no zeros.
    with pytest.raises(InputError, match="values"):
        mechanism.release(pd.Series([5, None, 12]))
    with pytest.raises(InputError, match="values"):
        mechanism.release(pd.Series([5, None, 12], dtype="Int64"))


def test_more_answers_than_the_budget_is_shared_by_are_refused():
    mechanism = BoundedErrorAnswers(epsilon=2.0, max_error=20, queries=2, joint=False)
    answers = mechanism.release([1, 2], rng=1)
    assert len(answers.raw) == 2
    with pytest.raises(InputError, match="3 answers"):
        mechanism.release([1, 2, 3], rng=1)
    # Nor does a file promise this for more.
    with pytest.raises(InputError, match="3 answers"):
        Answers.from_dict(answers.to_dict() | {"raw": [1, 2, 3]})


def test_terms_are_those_of_the_mechanism():
    mechanism = BoundedErrorAnswers(epsilon=2, max_error=np.int16(20), sensitivity=np.int8(2))
    assert mechanism.check() == ErrorTerms(2.0, 20, sensitivity=2)
    assert mechanism.check() != ErrorTerms(2.0, 20)


def test_files_cannot_hide_that_noise_was_seeded_or_had_a_bound():
    answers = BoundedErrorAnswers(epsilon=1.0, max_error=20).release([3, 4], rng=1)
    data = answers.to_dict()
    assert data["seeded"]
    plain = BoundedErrorAnswers(epsilon=1.0, max_error=math.inf).release([3]).to_dict()
    changed = (data | {"seeded": False}, data | {"noise": ""}, data | {"noise": "my own"})
    for wrong in (
        *changed,
        data | {"max_error": None, "delta": 0.0},
        plain | {"max_error": 20, "delta": answers.terms.delta},
    ):
        with pytest.raises(InputError, match="the file was changed"):
            Answers.from_dict(wrong)


def test_the_largest_answers_survive_their_file():
    for rng in range(20):
        answers = BoundedErrorAnswers(epsilon=1.0, max_error=20).release([2**60, -(2**60)], rng=rng)
        assert (Answers.from_dict(answers.to_dict()).raw == answers.raw).all()
