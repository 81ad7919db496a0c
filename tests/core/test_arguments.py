"""Validation of public arguments: accepted values, error messages, and what these never show."""

import fractions
import math

import numpy as np
import pytest

from dpppsynth import privacy
from dpppsynth.core.arguments import (
    each,
    entries,
    finite,
    function,
    one_of,
    plain_array,
    positive,
    probability,
    real,
    several,
    shown,
    whole,
)
from dpppsynth.core.errors import InputError

TOO_LARGE = [10**400, fractions.Fraction(10**400), np.longdouble("1e4000"), math.inf, np.float32("inf")]
NO_NUMBERS = [True, np.bool_(True), "1", None, 1 + 0j, np.array(1.0), [1.0], math.nan, np.float16("nan")]


@pytest.mark.parametrize("value", [7, 0.5, np.int8(7), np.float16(2), np.float64(0.1), fractions.Fraction(1, 3)])
def test_numbers_become_plain_ones(value):
    number = real(value)
    assert type(number) in (int, float)
    assert number == float(value) == positive("x", value)


@pytest.mark.parametrize("value", [*TOO_LARGE, *NO_NUMBERS], ids=str)
def test_nothing_else_is_a_number(value):
    assert real(value) is None
    for check in (positive, finite, probability):
        with pytest.raises(InputError, match=r"^x: must .*, got "):
            check("x", value)


def test_ends_of_intervals():
    assert probability("x", 0.0, zero=True) == finite("x", 0, least=0) == 0
    assert positive("x", 2, most=2) == whole("x", np.int64(2), 2, most=2) == 2
    for wrong in (
        lambda: probability("x", 0),
        lambda: probability("x", 1.0, zero=True),
        lambda: positive("x", 0.0),
        lambda: positive("x", np.nextafter(2, 3), most=2),
        lambda: finite("x", -1e-300, least=0),
        lambda: whole("x", 1, 2),
        lambda: whole("x", 3, 2, most=2),
        lambda: whole("x", 2.0, 1),
    ):
        with pytest.raises(InputError, match=r"^x: "):
            wrong()


def test_messages_are_short_and_show_no_data():
    secret = [(529123.25, 180765.5)] * 3
    for value in (secret, np.array(secret), {"a": secret}, 10**5000, -(10**5000), "9" * 5000, fractions.Fraction(1, 7)):
        text = shown(value)
        assert len(text) < 100
        assert "529123" not in text
    with pytest.raises(InputError, match=r"^x: must be a positive finite number, got 'a'; such as 25\.0\.$"):
        positive("x", "a", remedy="such as 25.0")


def test_words_sequences_and_mappings():
    assert one_of("x", "a", ("a", "b")) == "a"
    assert several("x", (1, 2), int) == [1, 2]
    assert entries("x", {"a": 1}, ("a",)) == {"a": 1}
    for wrong in (
        lambda: one_of("x", ["a"], ("a", "b")),
        lambda: several("x", "ab", str),
        lambda: several("x", np.array(5.0), float),
        lambda: several("x", [1, "a"], int),
        lambda: entries("x", {"a": 1}, ("b",)),
        lambda: entries("x", [("a", 1)]),
    ):
        with pytest.raises(InputError, match=r"^x: "):
            wrong()


def test_functions_are_told_by_what_they_take():
    assert function("x", divmod, "a", "b") is divmod
    for wrong in (None, 1, len, [divmod], lambda a: a, lambda a, *, b: a):
        with pytest.raises(InputError, match=r"^x: must be a function of a, b, got "):
            function("x", wrong, "a", "b")


def test_elements_come_one_after_the_other():
    given = iter(range(3))
    assert next(each(given)) == 0
    assert list(given) == [1, 2]
    assert [each(wrong) for wrong in (1, "ab", {"a": 1}, np.array(5.0), None, list)] == [None] * 6


def test_arrays_have_no_gaps():
    assert plain_array([[1, 2], [3, 4]]).dtype.kind == "i"
    assert plain_array(np.ma.array([1, 2], mask=False)).tolist() == [1, 2]
    assert plain_array([[1, 2], [3]]) is plain_array(np.ma.array([1, 2], mask=[True, False])) is None


def test_what_used_to_hang_is_refused_or_answered():
    for wrong in (
        lambda: privacy.laplace_scale(-1, 1.0),
        lambda: privacy.counts(privacy.ReplaceOne(), scale=0),
        lambda: privacy.largest(privacy.GaussianDP(0.3, 1e-6), [], 1e308, 1e-6),
    ):
        with pytest.raises(InputError):
            wrong()
    assert privacy.GaussianDP(1e160, 1e-6).epsilon(1e-6) == math.inf
    assert privacy.delta_gaussian(0.0, 1e308) == 1.0


@pytest.mark.parametrize("epsilon", [-0.1, -1.0, -5.0])
@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_negative_epsilons_are_those_of_the_other_direction(epsilon, mu):
    from scipy.special import ndtr

    textbook = ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
    assert privacy.delta_gaussian(epsilon, mu) == pytest.approx(textbook, rel=1e-11)
