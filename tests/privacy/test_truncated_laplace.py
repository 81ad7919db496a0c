"""Truncated Laplace noise: law, delta, profile and calibration against tables, quadrature and brute force."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import hockey_stick_of_densities

from dpppsynth.core.errors import InputError
from dpppsynth.truncated import (
    TruncatedLaplace,
    truncated_laplace_bound,
    truncated_laplace_delta,
)

LAW = TruncatedLaplace(1.0, 5.0)
# epsilon, sensitivity, bound, delta.
TABLE = [
    (1, 1, 10, 3.900670806e-5), (1, 1, 5, 5.828115478e-3), (1, 1, 1, 0.5), (1, 1, 0.75, 0.7096144758), (1, 1, 0.4, 1.0),
    (0.1, 1, 10, 3.060351228e-2), (0.1, 1, 50, 3.567216072e-4), (0.5, 2, 10, 2.900610870e-2),
    (0.9, 1, 10, 9.007578323e-5), (2, 1, 3, 7.938119988e-3),
]  # fmt: skip
quick = settings(max_examples=40)
positive = st.floats(1e-3, 1e3)


# --- The law ---------------------------------------------------------------------------------------------------------


def test_density_and_quantiles():
    assert LAW.pdf([0, 5, -5, 5.0001]) == pytest.approx([0.50339183, 0.00339183, 0.00339183, 0], abs=5e-9)
    assert LAW.ppf([0.1, 0.5, 0.9, 1, 0]) == pytest.approx([-1.58284293, 0, 1.58284293, 5, -5], abs=5e-9)


@pytest.mark.parametrize(("scale", "bound"), [(1.0, 5.0), (3.0, 0.5), (1e6, 10.0), (0.01, 30.0)])
def test_density_is_that_of_the_distribution(scale, bound):
    law = TruncatedLaplace(scale, bound)
    reach = min(bound, 40 * scale)
    edges = np.linspace(-reach, reach, 20_001)
    middles = (edges[1:] + edges[:-1]) / 2
    assert law.pdf(middles).sum() * (edges[1] - edges[0]) == pytest.approx(1, abs=1e-5)
    inner = slice(9_000, 11_000, 100)
    masses = np.diff(law.cdf(edges))
    assert masses[inner] / (edges[1] - edges[0]) == pytest.approx(law.pdf(middles)[inner], rel=1e-5)
    np.testing.assert_allclose(law.logpdf(middles), np.log(law.pdf(middles)))
    assert law.pdf(middles).tolist() == law.pdf(-middles).tolist()
    # Summed from the far end, whose digits a sum from the middle would lose.
    rest = masses[:10_000].cumsum()
    np.testing.assert_allclose(law.tail(-edges[1:10_001]) / 2 - law.tail(reach) / 2, rest, rtol=1e-9, atol=1e-300)
    assert (law.cdf([-1.01 * bound, -bound, bound, math.inf]) == [0, 0, 1, 1]).all()


@quick
@given(positive, positive, st.floats(0, 1) | st.floats(0, 1e-10))
def test_quantiles_invert_the_distribution(scale, bound, u):
    law = TruncatedLaplace(scale, bound)
    assert abs(law.ppf(u)) <= bound
    assert law.cdf(law.ppf(u)) == pytest.approx(u, rel=1e-9, abs=1e-14)


def test_plain_laplace_and_uniform_limits():
    plain, flat = TruncatedLaplace(2.0, math.inf), TruncatedLaplace(1e90, 3.0)
    assert plain.ppf([0, 1e-300, 0.25, 1]) == pytest.approx(
        [-math.inf, 2 * math.log(2e-300), -2 * math.log(2), math.inf]
    )
    assert plain.variance == pytest.approx(8)
    assert plain.mean_absolute == pytest.approx(2)
    assert plain.tail([0, 2]) == pytest.approx([1, math.exp(-1)])
    assert plain.exposed(1e9) == 0
    assert plain.log_exposed(1.0) == -math.inf
    assert flat.pdf([-3, 0, 2.9]) == pytest.approx([1 / 6] * 3)
    assert flat.ppf(0.75) == pytest.approx(1.5)
    assert flat.variance == pytest.approx(3)
    assert flat.mean_absolute == pytest.approx(1.5)
    assert flat.exposed(1.0) == pytest.approx(1 / 6)
    assert flat.exposed(4.0) == pytest.approx(2 / 3)
    assert TruncatedLaplace(1e100, 1e-20).variance == pytest.approx(1e-40 / 3, abs=0)
    assert TruncatedLaplace(1e100, 1e-20).mean_absolute == pytest.approx(5e-21, abs=0)
    assert 0 < TruncatedLaplace(2.0, 1.0).exposed(5e-324) < 1e-307


@pytest.mark.parametrize(
    ("scale", "bound", "variance"),
    [(1, 5, 1.7625720783), (1, 10, 1.9945517611), (10, 10, 25.4069879392), (1e6, 10, 33.33325)],
)
def test_variances(scale, bound, variance):
    # The last one: a form that cancels gives 22.2.
    law = TruncatedLaplace(scale, bound)
    assert law.variance == pytest.approx(variance, rel=1e-9)
    assert law.variance < 2 * scale**2
    assert TruncatedLaplace(1, 5).mean_absolute == pytest.approx(0.9660817255, abs=1e-10)


@pytest.mark.parametrize("scale", [0.9999e8, 1.0001e8])
def test_moments_meet_where_forms_change(scale):
    law = TruncatedLaplace(scale, 1.0)
    assert law.variance == pytest.approx(1 / 3 - 1 / (12 * scale), rel=1e-13)
    assert law.mean_absolute == pytest.approx(1 / 2 - 1 / (12 * scale), rel=1e-13)


@pytest.mark.parametrize(
    ("epsilon", "delta", "absolute", "square"),
    [(0.1, 1e-3, 9.2428938, 154.7153749), (1, 1e-5, 0.9998678, 1.9982332)],
)
def test_moments_in_epsilon_and_delta(epsilon, delta, absolute, square):
    law = TruncatedLaplace(1 / epsilon, truncated_laplace_bound(epsilon, delta))
    g = math.expm1(epsilon) / (2 * delta)
    log = math.log1p(g)
    assert law.mean_absolute == pytest.approx(absolute, abs=5e-8)
    assert law.variance == pytest.approx(square, abs=5e-8)
    assert law.mean_absolute == pytest.approx(law.scale * (1 - log / g), rel=1e-12)
    assert law.variance == pytest.approx(2 * law.scale**2 * (1 - (log**2 / 2 + log) / g), rel=1e-12)


def test_samples_have_the_law():
    law, n = TruncatedLaplace(2.0, 3.0), 200_000
    draws = law.sample((n, 1), rng=1)
    assert draws.shape == (n, 1)
    assert np.abs(draws).max() <= 3
    # DKW: fails for a right sampler with probability 2 exp(-2 * 16) < 1e-6 over any seed; clamping puts 22 % on atoms.
    levels = law.cdf(np.sort(draws.ravel()))
    assert np.abs(levels - np.arange(n) / n).max() < 4 / math.sqrt(n)
    assert (law.sample((), 7) == law.sample((), 7)).all()
    assert law.sample(0).shape == (0,)


# --- Delta -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "sensitivity", "bound", "delta"), TABLE)
def test_delta_against_table_and_brute_force(epsilon, sensitivity, bound, delta):
    found = truncated_laplace_delta(epsilon, bound, sensitivity, allow_large_delta=True)
    assert found == pytest.approx(delta, rel=2e-10)
    law = TruncatedLaplace(sensitivity / epsilon, bound)
    assert law.delta(epsilon, sensitivity) == pytest.approx(found, rel=1e-13)
    ends = {"low": -bound - sensitivity, "high": bound, "width": 0.0005}
    brute = hockey_stick_of_densities(lambda z: law.pdf(z + sensitivity), law.pdf, epsilon, **ends)
    assert brute == pytest.approx(delta, abs=1e-5)


@pytest.mark.parametrize(
    ("e", "bounded", "plain"),
    [(0, 0.3961385, 0.3934693), (0.25, 0.3157954, 0.3127107), (0.5, 0.2249001, 0.2211992), (0.75, 0.1220889, None),
     (1, 0.0058281, 0), (3, 0.0058281, 0)],
)  # fmt: skip
def test_profile_values(e, bounded, plain):
    assert LAW.delta(e, 1.0) == pytest.approx(bounded, abs=5e-8)
    expected = -math.expm1((e - 1) / 2) if plain is None else plain
    assert TruncatedLaplace(1.0, math.inf).delta(e, 1.0) == pytest.approx(expected, abs=5e-8)


@pytest.mark.parametrize("bound", [0.6, 0.8, 1.4, 3.0])
@pytest.mark.parametrize("shift", [0.2, 1.0, 1.6])
def test_profile_against_brute_force(bound, shift):
    law = TruncatedLaplace(0.7, bound)
    for e in (0.0, 0.1, 0.5, 1.0, 1.5, 2.5):
        ends = {"low": -bound - shift, "high": bound, "width": 0.0002}
        assert law.delta(e, shift) == pytest.approx(
            hockey_stick_of_densities(lambda z: law.pdf(z + shift), law.pdf, e, **ends), abs=1e-6
        )


@quick
@given(positive, positive, st.floats(0, 1e3), st.floats(0, 1e3), st.floats(0, 50))
def test_delta_is_monotone_and_at_least_the_exposed_mass(scale, bound, shift, other, e):
    law, (small, large) = TruncatedLaplace(scale, bound), sorted([shift, other])
    assert law.exposed(small) <= law.exposed(large) * (1 + 1e-12)
    assert law.exposed(large) <= law.delta(e, large) <= law.delta(e / 2, large) * (1 + 1e-12)
    assert law.delta(e, small) <= law.delta(e, large) * (1 + 1e-12)
    assert law.exposed(0) == law.delta(e, 0) == 0


def exact_exposed(scale, bound, shift):
    """The exposed mass in sixty digits."""
    with localcontext() as context:
        context.prec = 60
        b, a, t = Decimal(scale), Decimal(bound), Decimal(shift)
        if t <= a:
            return float(((t / b).exp() - 1) / (2 * ((a / b).exp() - 1)))
        return float(Decimal("0.5") + (1 - (-(t - a) / b).exp()) / (2 * (1 - (-a / b).exp())))


@pytest.mark.parametrize(
    ("scale", "bound", "shift"),
    [(1.0, 690.0, 0.3), (0.3, 5.0, 4.9), (1.0, 5.0, 7.5), (1e9, 10.0, 1.0), (1e12, 10.0, 19.0), (1.0, 30.0, 1e-9)],
)
def test_exposed_keeps_its_digits(scale, bound, shift):
    # The first is 2e-301.
    assert TruncatedLaplace(scale, bound).exposed(shift) == pytest.approx(
        exact_exposed(scale, bound, shift), rel=3e-13, abs=0
    )


def test_logarithm_goes_on_where_delta_ends():
    log = TruncatedLaplace(1.0, 1e4).log_exposed(1.0)
    assert log == pytest.approx(math.log(0.5) + 1 - 1e4 + math.log(-math.expm1(-1)), rel=1e-14)
    assert 0 < truncated_laplace_delta(1.0, 1e4) < 1e-307
    assert math.exp(LAW.log_exposed(1.0)) == pytest.approx(truncated_laplace_delta(1.0, 5.0), rel=1e-14)
    assert truncated_laplace_delta(800.0, 1.001) == pytest.approx(0.5 * math.exp(-0.8), rel=1e-9)


def test_an_event_that_only_one_can_give():
    # No finite epsilon covers it: a check of pure privacy must fail.
    edge = LAW.cdf(-5.0 + 1.0) - LAW.cdf(-5.0)
    assert edge == pytest.approx(LAW.exposed(1.0), rel=1e-12)
    assert LAW.cdf(-5.0) == 0
    assert LAW.delta(1e6, 1.0) == LAW.exposed(1.0) > 0


def test_clamping_is_another_mechanism():
    # Noise clamped to [-5, 5] has an atom at either end, and the shifted one gives neither point any mass.
    width, scale = 0.001, 1.0
    middles = np.arange(-5 + width / 2, 6, width)
    density = np.where(np.abs(middles) < 5, np.exp(-np.abs(middles) / scale) / 2, 0)
    shifted = np.where(np.abs(middles - 1) < 5, np.exp(-np.abs(middles - 1) / scale) / 2, 0)
    clamped = 2 * math.exp(-5) / 2 + np.maximum(density - math.e * shifted, 0).sum() * width
    assert clamped == pytest.approx((math.e + 1) * math.exp(-5) / 2, abs=1e-6)
    assert clamped == pytest.approx(0.01253, abs=5e-6)
    assert clamped > 2 * truncated_laplace_delta(1.0, 5.0)


# --- Calibration -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "delta", "bound"),
    [(1, 1e-6, 13.66369), (1, 1e-5, 11.36111), (0.5, 1e-5, 20.77411), (0.9, 1e-5, 12.44217), (0.1, 1e-6, 108.70214),
     (1, 0.05, 2.90048)],
)  # fmt: skip
def test_bounds(epsilon, delta, bound):
    assert truncated_laplace_bound(epsilon, delta) == pytest.approx(bound, abs=5e-6)
    assert truncated_laplace_bound(epsilon, delta, 3.0) == pytest.approx(3 * bound, abs=2e-5)


def test_bounds_at_the_ends_of_the_range():
    # Never an ulp below the sensitivity, which would be refused; no overflow of e^epsilon.
    assert all(truncated_laplace_bound(epsilon, 0.5) >= 1 for epsilon in np.geomspace(1e-3, 30, 200))
    assert truncated_laplace_bound(800.0, 1e-6) == pytest.approx(1 + math.log(5e5) / 800)
    # Uniform noise, at an epsilon of next to nothing.
    assert truncated_laplace_delta(1e-9, 10.0) == pytest.approx(0.05, rel=1e-7)


@quick
@given(st.floats(1e-9, 50), st.floats(1e-250, 0.5), st.floats(1e-3, 1e3))
def test_bound_inverts_delta(epsilon, delta, sensitivity):
    bound = truncated_laplace_bound(epsilon, delta, sensitivity)
    found = truncated_laplace_delta(epsilon, bound, sensitivity)
    assert bound >= sensitivity
    assert found <= delta
    assert found == pytest.approx(delta, rel=1e-11, abs=0)


# --- Bad input -------------------------------------------------------------------------------------------------------

WRONG = [None, True, math.nan, math.inf, 0, -1, "x", 10**400, object(), [1.0], 1j, 1e-200]


@pytest.mark.parametrize("value", WRONG)
def test_numbers_that_are_none(value):
    bounded = value if value != math.inf else math.nan
    for call, name in [
        (lambda: TruncatedLaplace(value, 1.0), "scale"),
        (lambda: TruncatedLaplace(1.0, bounded), "bound"),
        (lambda: truncated_laplace_delta(value, 5.0), "epsilon"),
        (lambda: truncated_laplace_delta(1.0, bounded), "max_error"),
        (lambda: truncated_laplace_delta(1.0, 5.0, value), "sensitivity"),
        (lambda: truncated_laplace_bound(value, 1e-5), "epsilon"),
        (lambda: truncated_laplace_bound(1.0, 1e-5, value), "sensitivity"),
    ]:
        with pytest.raises(InputError, match=name):
            call()


@pytest.mark.parametrize("delta", [0, 0.0, -0.1, 0.51, 1, math.nan, True, None, "x", 1e-320])
def test_delta_must_be_positive_and_at_most_one_half(delta):
    with pytest.raises(InputError, match="delta"):
        truncated_laplace_bound(1.0, delta)


def test_no_delta_has_a_reason():
    with pytest.raises(InputError, match="cannot be 0: an error that never exceeds a bound excludes"):
        truncated_laplace_bound(1.0, 0)


def test_bounds_below_the_sensitivity_are_refused():
    with pytest.raises(InputError, match="sensitivity"):
        truncated_laplace_delta(1.0, 0.99)
    with pytest.raises(InputError, match="allow_large_delta"):
        truncated_laplace_delta(1.0, 0.99, allow_large_delta=1)
    assert truncated_laplace_delta(1.0, 0.99, allow_large_delta=True) > truncated_laplace_delta(1.0, 1.0)


def test_arrays_and_shapes():
    for u in (-0.1, 1.1, math.nan, [0.5, 2], "x", None, [[1], [1, 2]], [True]):
        with pytest.raises(InputError, match="u:"):
            LAW.ppf(u)
    for z in (None, "x", math.nan, [[1], [1, 2]], 1j):
        for call in (LAW.pdf, LAW.logpdf, LAW.cdf, LAW.tail):
            with pytest.raises(InputError):
                call(z)
    with pytest.raises(InputError, match="t:"):
        LAW.tail(-1.0)
    for value in (None, -1, math.nan, math.inf, "x", True):
        for call in (LAW.exposed, LAW.log_exposed, lambda t: LAW.delta(1.0, t)):
            with pytest.raises(InputError, match="shift"):
                call(value)
        with pytest.raises(InputError, match="epsilon"):
            LAW.delta(value, 1.0)
        with pytest.raises(InputError):
            LAW.sample(value)
    for size in (1.5, "x", (2, -1), 10**10, (10**5, 10**5), (1,) * 40):
        with pytest.raises(InputError, match="size"):
            LAW.sample(size)
    with pytest.raises(InputError, match="rng"):
        LAW.sample(3, rng="x")
