"""Guarantees: the profile against mechanisms whose divergence is computed directly, and what a guarantee says."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import hockey_stick

from dpppsynth.core.errors import InputError
from dpppsynth.privacy import (
    AddRemove,
    AlphaNeighbours,
    Guarantee,
    PureDP,
    ReplaceOne,
    catalogue,
    counts,
    guarantee_from_dict,
)
from dpppsynth.privacy.catalogue import Statement

LEVELS = [0.01, 0.1, 1.0, 3.0, 10.0]
ASSUMPTIONS = ("first", "second")


def discrete_laplace(scale, shift, reach):
    k = np.arange(-reach, reach + 1)
    return math.tanh(0.5 / scale) * np.exp(-np.abs(k - shift) / scale)


class TestProfile:
    @pytest.mark.parametrize("level", LEVELS)
    @pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 1.0, 1.5])
    def test_is_that_of_randomised_response(self, level, share):
        truth = math.exp(level) / (1 + math.exp(level))
        p = np.array([truth, 1 - truth])
        direct = hockey_stick(p, p[::-1], share * level)
        assert PureDP(level).delta(share * level) == pytest.approx(direct, rel=1e-9, abs=1e-11)

    @pytest.mark.parametrize("scale", [0.3, 1.0, 2.0, 15.0])
    @pytest.mark.parametrize("moved", [1, 2, 4])
    def test_bounds_discrete_laplace_and_is_met_at_its_ends(self, scale, moved):
        profile = PureDP(moved / scale)
        p, q = (discrete_laplace(scale, shift, int(40 * scale) + 10) for shift in (0, moved))
        assert p.sum() == pytest.approx(1, abs=1e-12)
        for epsilon in np.linspace(0, 1.2 * profile.level, 13):
            assert hockey_stick(p, q, epsilon) <= profile.delta(epsilon) + 1e-12
        assert hockey_stick(p, q, 0.99 * profile.level) > 0

    def test_is_tight_for_a_vector_of_counts(self):
        """Two cells that trade a point, at scale 2: the whole plane against the profile at epsilon 1."""
        one, other = (discrete_laplace(2.0, shift, 90) for shift in (0, 1))
        p, q = np.outer(one, other).ravel(), np.outer(other, one).ravel()
        for epsilon in (0.0, 0.5, 0.9):
            assert hockey_stick(p, q, epsilon) <= PureDP(1.0).delta(epsilon)
        assert np.max(np.log(p / q)) == pytest.approx(1.0, rel=1e-12)

    @given(st.floats(1e-6, 600.0), st.floats(0.0, 0.999))
    def test_functions_are_inverse(self, level, share):
        profile = PureDP(level)
        epsilon = share * level
        delta = profile.delta(epsilon)
        assert 0 <= delta <= 1
        if delta < 0.999:  # nearer to one, delta itself has lost the digits
            assert profile.epsilon(delta) == pytest.approx(epsilon, rel=1e-6, abs=1e-9)
        assert profile.delta(profile.epsilon(delta)) == pytest.approx(delta, rel=1e-6, abs=1e-14)

    @pytest.mark.parametrize("level", LEVELS)
    def test_ends_and_monotonicity(self, level):
        profile = PureDP(level)
        assert profile.delta(level) == 0.0
        assert profile.epsilon(0.0) == level
        assert profile.delta(0.0) == pytest.approx(math.tanh(level / 2), rel=1e-12)
        assert profile.epsilon(math.tanh(level / 2)) == pytest.approx(0, abs=1e-9)
        assert profile.epsilon(0.999999) == 0.0 or level > 10
        curve = [profile.delta(e) for e in np.linspace(0, level, 50)]
        assert all(a >= b for a, b in itertools.pairwise(curve))

    @pytest.mark.parametrize("level", [700.0, 750.0, 5000.0, 1e300])
    def test_large_levels_do_not_overflow(self, level):
        profile = PureDP(level)
        assert profile.delta(0.0) == pytest.approx(1.0)
        assert profile.delta(level - 1) == pytest.approx(-math.expm1(-1), rel=1e-6) or level > 1e15
        assert profile.delta(level + 1) == 0.0
        assert profile.epsilon(1e-6) == pytest.approx(level, rel=1e-6)
        assert profile.describe()
        assert "inf" not in profile.describe()

    def test_infinitely_wide_question(self):
        assert PureDP(1.0).delta(math.inf) == 0.0
        assert PureDP(1.0).delta(1e308) == 0.0

    @pytest.mark.parametrize("delta", [1e-12, 1e-20, 1e-300, 5e-324])
    def test_tiny_delta(self, delta):
        epsilon = PureDP(1.0).epsilon(delta)
        assert 0.999999 < epsilon <= 1.0

    def test_small_levels_keep_their_digits(self):
        assert PureDP(1e-12).delta(0.0) == pytest.approx(5e-13, rel=1e-9)
        assert PureDP(1e-12).delta(5e-13) == pytest.approx(2.5e-13, rel=1e-9)

    @pytest.mark.parametrize("level", [0, -1.0, math.inf, math.nan, "one", None], ids=repr)
    def test_level_is_positive_and_finite(self, level):
        with pytest.raises(InputError, match=r"^epsilon: must be positive and finite, got"):
            PureDP(level)


class TestGuarantee:
    guarantee = Guarantee(AlphaNeighbours(25.0), PureDP(1.0), "tents", ASSUMPTIONS, ((5.0, 0.2), (25.0, 1.0)))

    def test_asks_its_profile(self):
        assert self.guarantee.epsilon() == 1.0
        assert self.guarantee.epsilon(1e-3) == PureDP(1.0).epsilon(1e-3)
        assert self.guarantee.delta(0.5) == PureDP(1.0).delta(0.5)
        assert self.guarantee.mu is None

    @pytest.mark.parametrize(("epsilon", "within"), [(1.0, True), (1.0 - 1e-15, True), (1.0 - 1e-12, False)])
    def test_keeps_to_a_budget_but_for_the_last_digits(self, epsilon, within):
        assert self.guarantee.keeps_to(epsilon, 0.0) is within

    @pytest.mark.parametrize("epsilon", [-0.1, math.nan, -math.inf])
    def test_refuses_senseless_epsilon(self, epsilon):
        with pytest.raises(InputError, match=r"^epsilon: must be at least 0, got"):
            self.guarantee.delta(epsilon)

    @pytest.mark.parametrize("delta", [-1e-9, 1.0, 2.0, math.nan])
    def test_refuses_senseless_delta(self, delta):
        with pytest.raises(InputError, match=r"^delta: must lie in \[0, 1\), got"):
            self.guarantee.epsilon(delta)

    def test_reads_as_a_paragraph(self):
        assert str(self.guarantee) == (
            "Whatever an attacker sees in the release is at most 2.72 times (e^1) as likely for one of two "
            "neighbouring patterns as for the other. "
            "Two patterns are neighbouring when the number of points is public and one point moves by at most 25 "
            "(in the unit of the domain's coordinates) along a path inside the domain. "
            f"Proved by {catalogue.text('tents')}. It is assumed that: "
            "(1) first (2) second"
        )

    @pytest.mark.parametrize(
        ("unit", "words"),
        [("metre", "25 metres along"), ("foot", "25 feet along"), ("unit", "25 units of the coordinates along")],
    )
    def test_names_the_unit_of_its_domain(self, unit, words):
        named = self.guarantee.in_unit(unit)
        assert f"moves by at most {words} a path" in str(named)
        assert f"moves by at most {words} a path" in named._repr_html_()
        assert named == self.guarantee

    def test_every_assumption_is_listed_and_secret_n_adds_one(self):
        for relation in (ReplaceOne(), AlphaNeighbours(5.0, max_points_per_person=3), AddRemove()):
            guarantee = counts(relation, scale=2.0)
            for i, sentence in enumerate(guarantee.assumption_texts, 1):
                assert f"({i}) {sentence}" in str(guarantee)
                assert sentence.endswith(".")
        assert Statement("points-per-person", most=3) in counts(ReplaceOne(3), scale=1.0).assumptions
        assert "one-point-per-person" in counts(ReplaceOne(), scale=1.0).assumptions
        assert len(counts(AddRemove(), scale=1.0).assumptions) == len(counts(ReplaceOne(), scale=1.0).assumptions) + 1

    def test_json_round_trip(self):
        data = json.loads(json.dumps(self.guarantee.to_dict(), allow_nan=False))
        again = guarantee_from_dict(data)
        assert again == self.guarantee
        assert again.to_dict() == self.guarantee.to_dict()
        assert data["profile"] == {"kind": "pure", "epsilon": 1.0, "delta": 0.0}

    @pytest.mark.parametrize("kind", ["renyi", None, "Pure"])
    def test_unknown_profile_is_refused(self, kind):
        data = self.guarantee.to_dict()
        data["profile"]["kind"] = kind
        with pytest.raises(InputError, match="is not known to this version"):
            guarantee_from_dict(data)

    def test_huge_epsilon_can_be_written_down(self):
        guarantee = counts(ReplaceOne(), scale=2 / 800)
        assert guarantee_from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee
