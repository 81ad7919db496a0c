"""Truncated two-sided geometric noise: exact laws and profiles against enumeration in fractions and in many digits."""

import itertools
import math
import sys
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpppsynth.core.errors import InputError
from dpppsynth.truncated import (
    TruncatedGeometric,
    TruncatedLaplace,
    truncated_geometric_bound,
    truncated_geometric_delta,
)

quick = settings(max_examples=40)
scales = st.floats(1e-2, 1e6) | st.just(math.inf)
bounds = st.integers(1, 40)


def weights(scale, bound):
    """Unnormalised probabilities of -bound, ..., bound."""
    return [math.exp(-abs(k) / scale) for k in range(-bound, bound + 1)]


def exact_delta(scale, bound, shifts, epsilon):
    """The hockey-stick divergence in fifty digits, over all answers."""
    with localcontext() as context:
        context.prec = 50
        q, factor = (-1 / Decimal(scale)).exp(), Decimal(epsilon).exp()
        law = {k: q ** abs(k) for k in range(-bound, bound + 1)}
        total = sum(law.values())
        gain = Decimal(0)
        for answer in itertools.product(law, repeat=len(shifts)):
            first = math.prod(law[k] for k in answer)
            second = math.prod(law.get(k - t, Decimal(0)) for k, t in zip(answer, shifts, strict=True))
            gain += max(first - factor * second, Decimal(0))
        return gain / total ** len(shifts)


# --- The law ---------------------------------------------------------------------------------------------------------


@quick
@given(scales, bounds)
def test_law_and_moments(scale, bound):
    law, k, all_weights = TruncatedGeometric(scale, bound), np.arange(-bound, bound + 1), weights(scale, bound)
    p = law.pmf(k)
    np.testing.assert_allclose(p, np.array(all_weights) / math.fsum(all_weights), rtol=1e-12, atol=1e-300)
    assert law.pmf([[-bound - 1, bound + 1]]).tolist() == [[0, 0]]
    assert law.variance == pytest.approx(float((p * k**2).sum()), rel=1e-12, abs=1e-300)
    assert law.mean_absolute == pytest.approx(float((p * abs(k)).sum()), rel=1e-12, abs=1e-300)


@quick
@given(scales, bounds, st.integers(0, 90))
def test_exposed_is_a_tail(scale, bound, shift):
    law = TruncatedGeometric(scale, bound)
    beyond = law.pmf(np.arange(max(bound - shift, -bound - 1) + 1, bound + 1))
    assert law.exposed(shift) == pytest.approx(math.fsum(beyond), rel=1e-12, abs=1e-300)
    assert law.exposed(shift) == 1 or shift <= 2 * bound


def test_bounds_without_tables():
    wide, flat = TruncatedGeometric(1e6, 10**7), TruncatedGeometric(math.inf, 2**60)
    # Of plain discrete Laplace noise, less what lies beyond ten scales.
    plain, cut = 2e12 - 1 / 6, 2 * 1e12 * (1 - math.exp(-10) * 61)
    assert cut / (1 - math.exp(-10)) == pytest.approx(wide.variance, rel=1e-6)
    assert TruncatedGeometric(1e6, 10**9).variance == pytest.approx(plain, rel=1e-12)
    assert flat.variance == pytest.approx(2**60 * (2**60 + 1) / 3, rel=1e-12)
    assert flat.mean_absolute == pytest.approx(2**59, rel=1e-12)
    assert flat.exposed(2**60) == pytest.approx(0.5, rel=1e-12)
    assert TruncatedGeometric(1e200, 2**60).exposed(1) == pytest.approx(2.0**-61, rel=1e-12, abs=0)
    assert TruncatedGeometric(1e-270, 3).variance == 0
    assert TruncatedGeometric(math.inf, 5).epsilon_total((1, 1)) == 0
    assert TruncatedGeometric(math.inf, 5).delta(0.0, (1, 1)) == pytest.approx(1 - (10 / 11) ** 2, rel=1e-11)


# --- Delta -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "bound", "delta"), [(1, 5, 0.00312505), (1, 10, 2.09806e-5), (0.1, 10, 0.0282532)])
def test_closed_form(epsilon, bound, delta):
    found = truncated_geometric_delta(epsilon, bound)
    assert found == pytest.approx(delta, rel=3e-6)
    closed = math.expm1(epsilon) / ((math.exp(epsilon) + 1) * math.exp(bound * epsilon) - 2)
    assert closed <= found * (1 + 1e-14)
    assert found == pytest.approx(closed, rel=3e-12, abs=0)
    assert truncated_geometric_delta(2 * epsilon, bound, 2) == pytest.approx(
        TruncatedGeometric(1 / epsilon, bound).exposed(2), rel=3e-12, abs=0
    )


CASES = [
    (2.0, 5, (1, 1)), (2.0, 9, (3,)), (1.3, 4, (2, 3)), (0.5, 4, (1, 2, 1)), (4.0, 3, (4,)), (4.0, 3, (5, 2)),
    (1e6, 3, (2, 2)), (0.2, 6, (3, 3)), (3.0, 2, (5,)), (7.0, 6, (0, 6)), (1.0, 1, (1, 1, 1, 2)),
    (0.3, 14, (3,)), (0.7, 35, (5,)), (2.3, 90, (1,)),
]  # fmt: skip


@pytest.mark.parametrize(("scale", "bound", "shifts"), CASES)
def test_profile_never_states_less_than_the_truth(scale, bound, shifts):
    law = TruncatedGeometric(scale, bound)
    total = law.epsilon_total(shifts)
    # Also just below the total, where rounding a loss down would hide everything but the floor.
    for epsilon in (0.0, 0.1 * total, total / 3, 0.5 * total, 0.8 * total, math.nextafter(total, 0), total, 3 * total):
        stated, exact = law.delta(epsilon, shifts), exact_delta(scale, bound, shifts, epsilon)
        assert Decimal(stated) >= exact or stated == 1
        assert stated == pytest.approx(float(exact), rel=3e-12, abs=2e-15 * total)


def test_floor_begins_at_the_largest_loss():
    # 1 / 49 * 49 is not 1: a total rounded down would be a promise that does not hold.
    for scale in (49.0, 3.0, 10.0, 1 / 3, 0.1):
        law = TruncatedGeometric(scale, 400)
        total = law.epsilon_total((2, 5))
        assert Fraction(total) * Fraction(scale) >= 7
        assert total == pytest.approx(7 / scale, rel=1e-15)
        floor = 1 - (1 - law.exposed(2)) * (1 - law.exposed(5))
        assert law.delta(total, (5, 2)) == pytest.approx(floor, rel=1e-9, abs=1e-15)
        assert law.delta(math.nextafter(total, 0) * (1 - 1e-15), (5, 2)) > law.delta(total, (5, 2))
        assert law.delta(total, (5, 2)) == law.delta(1e9, (2, 5)) > 0


@quick
@given(st.floats(0.05, 1e4), st.integers(1, 30), st.lists(st.integers(0, 20), min_size=1, max_size=4), st.floats(0, 1))
def test_profile_is_monotone(scale, bound, shifts, part):
    law = TruncatedGeometric(scale, bound)
    total = law.epsilon_total(shifts)
    low, high = (law.delta(e, shifts) for e in (part * total, min(part + 0.1, 1.0) * total))
    assert high <= low
    assert law.delta(part * total, shifts) <= law.delta(part * total, [*shifts, 1]) * (1 + 1e-11)
    assert low == pytest.approx(law.delta(part * total, shifts[::-1]), rel=3e-12, abs=1e-14 * total)


@pytest.mark.parametrize(
    ("scale", "bound", "shift"), [(500.0, 20_000, 1000), (4000.0, 60_000, 300), (400.0, 700, 1000)]
)
def test_large_shifts(scale, bound, shift):
    # One coordinate: all answers below the one whose loss is epsilon. Two: by convolution of the two laws of losses.
    law, z = TruncatedGeometric(scale, bound), np.arange(-bound, min(shift, bound) + 1)
    for epsilon in (0.0, 0.4 * shift / scale):
        first, second = law.pmf(z), law.pmf(z - shift)
        assert law.delta(epsilon, [shift]) == pytest.approx(
            np.maximum(first - math.exp(epsilon) * second, 0).sum(), rel=1e-9
        )
    p, q = losses(law, shift)
    both, other = np.convolve(p, p), np.convolve(q, q)
    for epsilon in (0.0, 0.7 * shift / scale, 1.9 * shift / scale):
        known = 1 - p.sum() ** 2 + np.maximum(both - math.exp(epsilon) * other, 0).sum()
        assert law.delta(epsilon, (shift, shift)) == pytest.approx(known, rel=1e-9, abs=1e-13)


def test_wide_laws_are_nearly_continuous():
    law, real = TruncatedGeometric(1e6, 10**7), TruncatedLaplace(1e6, 1e7 + 0.5)
    for epsilon in (0.0, 5e-4, 1e-3):
        assert law.delta(epsilon, (1000,)) == pytest.approx(real.delta(epsilon, 1000.0), rel=1e-3, abs=0)
    assert law.delta(1.0, (1000, 1000)) == pytest.approx(1 - (1 - real.exposed(1000.0)) ** 2, rel=1e-6)


def losses(law, shift):
    """Probabilities of the finite losses (shift - 2 y) / scale, y = 0, ..., shift, under either data set."""
    z = np.arange(shift - law.bound, law.bound + 1)
    y = np.clip(z, 0, shift)
    return (np.bincount(y, law.pmf(values), shift + 1) for values in (z, z - shift))


def test_clamped_noise_costs_more():
    # Plain discrete Laplace noise clamped to the bound has an atom at -5, where the shifted one has nothing.
    q, bound = math.exp(-1), 5
    beyond = q**bound / (1 + q)
    clamped = np.array([beyond, *((1 - q) / (1 + q) * q ** abs(k) for k in range(-bound + 1, bound)), beyond])
    assert clamped.sum() == pytest.approx(1)
    delta = np.maximum(np.append(clamped, 0) - math.e * np.insert(clamped, 0, 0), 0).sum()
    assert delta == pytest.approx(beyond)
    assert delta > 1.5 * truncated_geometric_delta(1.0, bound)


def product_law(q, bound, shifts):
    """Numbers of answers with each pair of exact weights under the two data sets, where the first is above 0."""
    law = {k: q ** abs(k) for k in range(-bound, bound + 1)}
    joint = {(Fraction(1), Fraction(1)): 1}
    for shift in shifts:
        answers = range(min(0, shift) - bound, max(0, shift) + bound + 1)
        pairs = [(law.get(z, 0), law.get(z - shift, 0)) for z in answers]
        longer = {}
        for (p, r), count in joint.items():
            for x, y in pairs:
                longer[p * x, r * y] = longer.get((p * x, r * y), 0) + count
        joint = {pair: count for pair, count in longer.items() if pair[0]}
    return joint


def stick(joint, factor):
    return sum(count * max(p - factor * r, 0) for (p, r), count in joint.items())


@pytest.mark.parametrize(("k", "bound"), [(1, 1), (1, 3), (2, 1), (2, 2), (2, 4), (3, 2)])
@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(4, 5), Fraction(1)])
def test_one_count_up_and_another_down_is_the_worst_change(k, bound, q):
    """At every epsilon from 0 up, in exact arithmetic, of all changes of up to three counts by k points that move."""
    vectors = {
        tuple(sorted(v))
        for v in itertools.product(range(-k, k + 1), repeat=3)
        if sum(x for x in v if x > 0) <= k and -sum(x for x in v if x < 0) <= k
    }
    joints = {v: product_law(q, bound, v) for v in vectors}
    # Profiles are polygons in e^epsilon with corners at powers of 1 / q.
    factors = sorted({q**-j for j in range(2 * k + 1)} | {Fraction(7, 5)})
    for factor in factors:
        worst = stick(joints[-k, 0, k], factor)
        assert all(stick(joint, factor) <= worst for joint in joints.values())
        grown = stick(joints[0, 0, k], factor)
        assert all(stick(joint, factor) <= grown for v, joint in joints.items() if min(v) >= 0)


# --- Calibration -----------------------------------------------------------------------------------------------------


@quick
@given(st.floats(1e-3, 20), st.floats(1e-250, 0.5), st.integers(1, 2000))
def test_bound_is_the_smallest(epsilon, delta, sensitivity):
    bound = truncated_geometric_bound(epsilon, delta, sensitivity)
    assert bound >= sensitivity
    assert truncated_geometric_delta(epsilon, bound, sensitivity) <= delta
    assert bound == 1 or truncated_geometric_delta(epsilon, bound - 1, sensitivity) > delta


def test_whole_numbers_are_no_worse_than_real_ones():
    assert [truncated_geometric_bound(1.0, delta) for delta in (0.5, 1e-5, 1e-6)] == [1, 11, 14]
    assert truncated_geometric_delta(1e-12, 10) == pytest.approx(1 / 21, rel=1e-9)


def test_delta_that_no_float_holds_is_stated_as_a_small_one():
    assert truncated_geometric_delta(1.0, 10**6) == sys.float_info.min
    assert TruncatedGeometric(1.0, 10**6).delta(5.0, (1, 1)) == sys.float_info.min
    assert TruncatedGeometric(1.0, 10**6).delta(0.0, ()) == TruncatedGeometric(1.0, 2).delta(0.0, (0, 0)) == 0


# --- Bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, True, math.nan, -1, 0, "x", object(), [1], 1j, -math.inf])
def test_arguments(value):
    law = TruncatedGeometric(2.0, 5)
    for call, name in [
        (lambda: TruncatedGeometric(value, 5), "scale"),
        (lambda: TruncatedGeometric(2.0, value), "bound"),
        (lambda: truncated_geometric_delta(value, 5), "epsilon"),
        (lambda: truncated_geometric_delta(1.0, value), "max_error"),
        (lambda: truncated_geometric_delta(1.0, 5, value), "sensitivity"),
        (lambda: truncated_geometric_bound(value, 1e-5), "epsilon"),
        (lambda: truncated_geometric_bound(1.0, value), "delta"),
        (lambda: truncated_geometric_bound(1.0, 1e-5, value), "sensitivity"),
    ]:
        with pytest.raises(InputError, match=name):
            call()
    if value == 0 and value is not False:
        return
    for call in (lambda: law.delta(value, (1,)), lambda: law.exposed(value), lambda: law.delta(1.0, [value])):
        with pytest.raises(InputError, match=r"epsilon|shift"):
            call()


def test_what_is_not_whole_or_too_large():
    law = TruncatedGeometric(2.0, 5)
    for call in (
        lambda: TruncatedGeometric(2.0, 5.0),
        lambda: TruncatedGeometric(2.0, 2**61),
        lambda: TruncatedGeometric(2.0, math.inf),
        lambda: TruncatedGeometric(1e-300, 5),
        lambda: TruncatedGeometric(10**400, 5),
        lambda: law.exposed(1.5),
        lambda: law.exposed(2**70),
        lambda: law.delta(0.1, 3),
        lambda: law.delta(0.1, None),
        lambda: law.delta(0.1, "ab"),
        lambda: law.epsilon_total((1.5,)),
        lambda: TruncatedGeometric(2.0, 10**9).delta(0.1, (10**8,)),
        lambda: law.delta(0.1, [1] * 65),
        lambda: truncated_geometric_bound(1e-300, 1e-30),
        lambda: truncated_geometric_bound(1.0, 0.51),
    ):
        with pytest.raises(InputError):
            call()
    # From the largest loss on, sums of any size have a delta.
    assert TruncatedGeometric(2.0, 10**9).delta(1e9, (10**8,)) == sys.float_info.min
    for k in (None, "x", math.nan, 0.5, math.inf, [[1], [1, 2]], 1j, [True], object()):
        with pytest.raises(InputError, match="k:"):
            law.pmf(k)


def test_delta_of_zero_is_refused_with_the_reason():
    with pytest.raises(InputError, match="cannot be 0: an error that never exceeds a bound excludes"):
        truncated_geometric_bound(1.0, 0)
