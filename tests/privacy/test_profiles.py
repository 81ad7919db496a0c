"""Privacy profiles against numerical integration, explicit mechanisms and known values, and what they say."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import pdtr, pdtrc
from scipy.stats import norm, poisson

from dpppsynth.core.errors import InputError
from dpppsynth.privacy import (
    ApproximateDP,
    GaussianDP,
    Guarantee,
    PoissonGaussianDP,
    PureDP,
    ReplaceOne,
    delta_gaussian,
    gaussian_mu,
    guarantee_from_dict,
    profile_from_dict,
)
from dpppsynth.privacy.composed import Composed
from dpppsynth.privacy.profiles import TAIL

PROFILES = [
    PureDP(1.0),
    GaussianDP(0.21, 1e-6),
    PoissonGaussianDP(0.14, 2.0, 1e-6),
    ApproximateDP(1.0, 1e-3),
    Composed((PureDP(0.3), GaussianDP(0.21, 1e-6), GaussianDP(0.1, 1e-6)), 1e-5),
]
every_profile = pytest.mark.parametrize("profile", PROFILES, ids=lambda p: type(p).__name__)


def integrated(epsilon, mu):
    """`E[(1 - e^(epsilon - loss))_+]` over the privacy loss of the Gaussian mechanism, by quadrature.

    With u the standardised distance from where the loss is epsilon, everything but `phi(u)` is well scaled.
    """
    u = epsilon / mu - mu / 2
    if u < -3:
        return quad(lambda s: norm.pdf(u + s) * -math.expm1(-mu * s), 0, 12 - u, points=[-u], epsabs=0, epsrel=1e-13)[0]
    scaled = quad(lambda s: math.exp(-u * s - s * s / 2) * -math.expm1(-mu * s), 0, 12, epsabs=0, epsrel=1e-13)[0]
    return norm.pdf(u) * scaled


class TestGaussian:
    @pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.0499, 0.0501, 0.21, 1.0, 4.0, 20.0])
    @pytest.mark.parametrize("u", [-6.0, -1.0, 0.0, 2.0, 5.0, 15.0, 36.0])
    def test_keeps_its_digits(self, mu, u):
        epsilon = max(0.0, mu * (u + mu / 2))
        exact = integrated(epsilon, mu)
        # Rounding epsilon and u alone changes phi(u) by a relative u^2 / 2^52.
        assert delta_gaussian(epsilon, mu) == pytest.approx(exact, rel=3e-12 + u**2 * 1e-15, abs=0)

    def test_known_values(self):
        assert delta_gaussian(1.0, 1.0) == pytest.approx(0.126936737507, rel=1e-11)
        for mu in (1e-9, 0.04, 0.3, 2.0, 9.0):
            assert delta_gaussian(0.0, mu) == pytest.approx(math.erf(mu / math.sqrt(8)), rel=3e-12, abs=0)

    @given(st.floats(0, 50), st.floats(1e-4, 30))
    def test_errs_upwards(self, epsilon, mu):
        u = epsilon / mu - mu / 2
        if u < 0:  # the textbook formula has all its digits here
            textbook = norm.cdf(-u) - math.exp(epsilon + norm.logcdf(-u - mu))
            assert min(1.0, textbook + 1e-13) >= delta_gaussian(epsilon, mu) - 2e-12
            assert delta_gaussian(epsilon, mu) >= textbook - 1e-13

    def test_extremes(self):
        assert delta_gaussian(0.0, 1e3) == 1.0
        assert delta_gaussian(1e6, 1e-300) == 0.0
        assert delta_gaussian(700.0, 30.0) == pytest.approx(integrated(700.0, 30.0), rel=1e-11, abs=0)

    @given(st.floats(1e-5, 20), st.floats(-250, -0.01))
    def test_epsilon_is_the_inverse_rounded_up(self, mu, exponent):
        delta = 10.0**exponent
        epsilon = GaussianDP(mu, 1e-6).epsilon(delta)
        assert delta_gaussian(epsilon, mu) <= delta
        assert epsilon == 0 or delta_gaussian(epsilon - 1e-11 * max(epsilon, mu), mu) > delta

    @given(st.floats(0, 300), st.floats(-100, -0.01))
    def test_budget_is_the_inverse_rounded_down(self, epsilon, exponent):
        delta = 10.0**exponent
        mu = gaussian_mu(epsilon, delta)
        assert delta_gaussian(epsilon, mu) <= delta
        assert delta_gaussian(epsilon, mu * (1 + 1e-11)) > delta

    def test_budgets_of_the_defaults(self):
        assert gaussian_mu(1.0, 1e-6) == pytest.approx(0.236704, abs=1e-6)
        assert GaussianDP(gaussian_mu(1.0, 1e-6), 1e-6).epsilon(1e-6) <= 1.0

    @pytest.mark.parametrize(
        ("epsilon", "delta"), [(-1.0, 0.1), (math.nan, 0.1), (math.inf, 0.1), (1.0, 0.0), (1.0, 1.0)]
    )
    def test_senseless_budgets(self, epsilon, delta):
        with pytest.raises(InputError):
            gaussian_mu(epsilon, delta)


class TestPoissonGaussian:
    @pytest.mark.exhaustive
    @pytest.mark.parametrize("rate", [0.01, 1.0, 30.0, 900.0])
    @pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
    def test_is_the_average_over_the_number(self, rate, epsilon):
        k = np.arange(1, 2000)
        each = [delta_gaussian(epsilon, 0.3 * math.sqrt(j)) for j in k]
        expected = poisson.pmf(k, rate) @ each
        assert PoissonGaussianDP(0.3, rate, 1e-6).delta(epsilon) == pytest.approx(expected, rel=1e-10, abs=0)

    def test_no_point_tells_nothing(self):
        """However small the kernel, an empty cluster is as likely on both sides."""
        assert PoissonGaussianDP(1e4, 1.0, 1e-6).delta(2.0) == pytest.approx(-math.expm1(-1), rel=1e-10)

    @pytest.mark.parametrize("rate", [1e-3, 1.0, 50.0, 1e3, 1e5])
    def test_what_is_not_summed_is_negligible_and_counted(self, rate):
        reach = 12 * math.sqrt(rate) + 32
        below, above = int(rate - reach) - 1, int(rate + reach)
        unseen = pdtrc(above, rate) + (pdtr(below, rate) if below > 0 else 0)
        assert 0 <= unseen < TAIL
        assert PoissonGaussianDP(1e-3, rate, 1e-6).delta(1e4) == unseen

    def test_bandwidths_of_a_published_pattern(self):
        """n = 128 points on a 10 x 10 square, alpha = .707, one pattern: bandwidths to the digits given."""
        for bandwidth, delta in ((7.781, 1 / 128), (40.20, 1e-6)):
            assert PoissonGaussianDP(0.707 / bandwidth, 1.0, delta).epsilon(delta) == pytest.approx(0.1, rel=1e-3)
        for bandwidth, delta in ((1.706, 1 / 128), (5.018, 1e-6)):
            assert PoissonGaussianDP(0.707 / bandwidth, 1.0, delta).epsilon(delta) == pytest.approx(1.0, rel=1e-3)


class TestApproximate:
    @pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.99, 1.0, 2.0])
    def test_is_that_of_a_leaky_randomised_response(self, epsilon):
        """Four outcomes: the bit lies open with probability delta, else randomised response answers."""
        slack, truth = 0.02, math.e / (1 + math.e)
        p = np.array([slack, (1 - slack) * truth, (1 - slack) * (1 - truth), 0.0])
        direct = np.maximum(p - math.exp(epsilon) * p[::-1], 0).sum()
        assert ApproximateDP(1.0, slack).delta(epsilon) == pytest.approx(direct, rel=1e-12)

    def test_inverse(self):
        profile = ApproximateDP(1.0, 0.02)
        assert profile.epsilon(0.02) == 1.0
        assert profile.epsilon(0.0199) == math.inf
        assert profile.epsilon(profile.delta(0.4)) == pytest.approx(0.4, rel=1e-9)


class TestEveryProfile:
    @every_profile
    def test_json_round_trip(self, profile):
        data = json.loads(json.dumps(profile.to_dict(), allow_nan=False))
        assert profile_from_dict(data) == profile
        assert (data["epsilon"], data["delta"]) == (profile.epsilon(profile.at), profile.at)

    @every_profile
    def test_a_guarantee_quotes_it_at_its_delta(self, profile):
        guarantee = Guarantee(ReplaceOne(), profile, "a-theorem", ("it-holds",))
        assert guarantee.epsilon() == profile.epsilon(profile.at)
        assert guarantee_from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee

    @every_profile
    def test_delta_falls_and_inverts(self, profile):
        curve = [profile.delta(e) for e in np.linspace(0, 3, 40)]
        assert all(a >= b >= 0 for a, b in itertools.pairwise(curve))
        assert profile.delta(profile.epsilon(0.01)) <= 0.01 * (1 + 1e-12)

    @every_profile
    def test_words_state_epsilon_and_delta(self, profile):
        words = profile.describe()
        assert words.startswith("Whatever an attacker sees in the release is at most ")
        assert (f"give or take a probability of {profile.at:g}" in words) == (profile.at > 0)
        assert f"(e^{profile.epsilon(profile.at):g})" in words

    @pytest.mark.parametrize("value", [0, -1.0, math.inf, math.nan, "one", None], ids=repr)
    def test_parameters_are_positive(self, value):
        for make in (
            lambda: GaussianDP(value, 1e-6),
            lambda: PoissonGaussianDP(value, 1.0, 1e-6),
            lambda: PoissonGaussianDP(1.0, value, 1e-6),
            lambda: ApproximateDP(value, 1e-6),
        ):
            with pytest.raises(InputError, match="must be positive and finite"):
                make()

    @pytest.mark.parametrize("delta", [0, 1.0, -1e-9, math.nan, "small", None], ids=repr)
    def test_delta_lies_inside(self, delta):
        for make in (
            lambda: GaussianDP(1.0, delta),
            lambda: PoissonGaussianDP(1.0, 1.0, delta),
            lambda: ApproximateDP(1.0, delta),
        ):
            with pytest.raises(InputError, match="strictly between 0 and 1"):
                make()
