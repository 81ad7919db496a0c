"""Sums of epsilons, and parts of a budget: never more than what is stated."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

import dpppsynth as dps
from dpppsynth.core.rounding import budget_parts, sum_up
from dpppsynth.mechanisms.heatmap.bound import level_budgets
from dpppsynth.privacy.composition import compose, together
from dpppsynth.privacy.profiles import PureDP

POSITIVE = st.floats(1e-12, 1e6)
WINDOW = dps.Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")


@given(st.lists(POSITIVE, min_size=1, max_size=30))
def test_a_sum_is_the_next_number_above_the_exact_one(terms):
    exact, found = sum(map(Fraction, terms)), sum_up(terms)
    assert exact <= Fraction(found)
    # No smaller number is.
    assert found == float(exact) or Fraction(float(exact)) < exact


@given(POSITIVE, st.lists(POSITIVE, min_size=1, max_size=12))
def test_parts_do_not_exceed_the_budget(epsilon, weights):
    parts = budget_parts(epsilon, weights)
    assert sum(map(Fraction, parts)) <= Fraction(epsilon)
    assert sum(parts) >= epsilon * (1 - 1e-12)


def test_shares_that_add_up_to_more_than_one():
    sums = dps.PairSums(1.0, radii=[20.0, 50.0], cap=4, shares=[0.5, 0.5 + 9e-13])
    plan = sums.plan(WINDOW, n=200)
    spent = sum(
        Fraction(change) / Fraction(scale)
        for change, scale in zip(plan.statistic.pairs.sensitivities, plan.statistic.pairs.scales, strict=True)
    )
    assert spent <= Fraction(plan.guarantee.epsilon()) <= 1


@given(st.lists(st.floats(1e-3, 10.0), min_size=2, max_size=12))
def test_pure_releases_add_up_upwards(levels):
    assert Fraction(compose(list(map(PureDP, levels)), 0.0).epsilon(0.0)) >= sum(map(Fraction, levels))


@given(st.floats(1e-3, 100.0), st.integers(1, 10), st.sampled_from(["practical", "theory", "two-level"]))
def test_levels_of_a_heat_map_keep_to_the_budget(epsilon, depth, variant):
    assert sum(map(Fraction, level_budgets(epsilon, depth, variant=variant).epsilons)) <= Fraction(epsilon)


def test_two_statistics_of_the_same_points():
    plans = [dps.LaplaceSynthesizer(epsilon).check(WINDOW, n=100) for epsilon in (0.1, 0.7)]
    first, second = (each.profile.level for each in plans)
    assert Fraction(together(*plans).profile.level) >= Fraction(first) + Fraction(second)
