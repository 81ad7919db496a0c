"""The auditor: its bounds hold, it finds planted faults, and it is not fooled by seeds or by its own choices."""

import math
import pickle
import random
import traceback
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from dpppsynth import InputError, LaplaceSynthesizer, PointPattern, PrivacyCheckError, Window
from dpppsynth.auditing import Audit, AuditStatistic, Target, audit
from dpppsynth.auditing.examine import best_alone, examine, grid, share, training_scores
from dpppsynth.auditing.intervals import (
    critical_excess,
    critical_shift,
    delta_from_below,
    epsilon_from_below,
    log_tail,
    shift_from_below,
)
from dpppsynth.auditing.power import Law, Rating, hardest
from dpppsynth.auditing.trials import Task, require_fresh_blocks, run_sent, run_trials
from dpppsynth.contract.audits.noise_laws import less_gaussian, less_laplace
from dpppsynth.privacy import AlphaNeighbours, ApproximateDP, GaussianDP, PoissonGaussianDP, PureDP, gaussian_mu
from dpppsynth.privacy.guarantee import Guarantee

MU = gaussian_mu(1.0, 1e-6)
# The Gaussian profile that covers a pure one of epsilon 1 where an audit looks.
COVERING = max(gaussian_mu(epsilon, PureDP(1.0).delta(epsilon)) for epsilon in (0.0, 0.1, 0.25, 0.5))
VALUE = AuditStatistic("value", float)


def chance_of_reaching(critical, n, p, q, weight):
    """Exact `P(A - weight B >= critical)`."""
    b = np.arange(n + 1)
    return float(binom.pmf(b, n, q) @ binom.sf(np.ceil(critical + weight * b - 1e-9) - 1, n, p))


def columns(*scores):
    return tuple(np.asarray(score, dtype=float).reshape(len(score), -1) for score in scores)


def examined(first, second, claimed, *, delta=None, false_alarm=1e-6, learned=False):
    statistic = AuditStatistic("planted", float, learned)
    delta = claimed.at if delta is None else delta
    bound, findings = examine([statistic], [columns(first, second)], claimed, delta=delta, false_alarm=false_alarm)
    return bound, findings, bound > claimed.epsilon(delta) or any(finding.violated for finding in findings)


# Bounds


@pytest.mark.parametrize("level", [0.2, 1e-3, 1e-7])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.05])
def test_a_true_claim_is_refuted_no_more_often_than_the_level_by_exact_binomials(level, epsilon, delta):
    n, factor = 150, math.exp(epsilon)
    weights = factor * np.array([0.3, 1.0, 4.0])
    for weight, critical in zip(weights, critical_excess(n, epsilon, delta, level, weights), strict=True):
        for q in np.geomspace(1e-4, (1 - delta) / factor, 12):
            assert chance_of_reaching(critical, n, min(1.0, delta + factor * q), q, weight) <= level
    if epsilon == 0:
        critical = critical_shift(n, delta, level)
        for q in np.linspace(0, 1 - delta, 12):
            assert chance_of_reaching(critical, n, delta + q, q, 1.0) <= level


@pytest.mark.parametrize("level", [0.05, 1e-6])
def test_bounds_are_near_the_sharpest_that_any_test_of_these_counts_allows(level):
    # Whoever forgets a tail, or splits the level between both inputs, needs a critical value 1.4 times as large.
    n = 4000
    exact = next(t for t in range(n) if chance_of_reaching(t, n, 0.5, 0.5, 1.0) <= level)
    assert exact <= critical_shift(n, 0.0, level) <= exact + 2
    assert exact <= critical_excess(n, 0.0, 0.0, level, 1.0) <= math.sqrt(2 * math.log(1 / level) * n / 2) * 1.01 + 1


@pytest.mark.parametrize(("a", "b", "epsilon"), [(60, 10, 0.0), (80, 10, 0.5), (90, 3, 1.0), (30, 0, 0.1)])
def test_bounds_end_where_the_hypothesis_is_just_refuted(a, b, epsilon):
    n, level, factor = 100, 1e-3, math.exp(epsilon)
    for weight in (1.2 * factor, 2 * factor):

        def tail(factor, slack, weight=weight):
            return log_tail(a - weight * b, n, weight=weight, factor=factor, slack=slack)

        delta = float(delta_from_below(a, b, n, epsilon, level, weight))
        assert 0 < delta < a / n
        assert tail(factor, delta) <= math.log(level) < tail(factor, delta + 1e-6)
        loss = float(epsilon_from_below(a, b, n, 0.0, level, weight))
        assert tail(math.exp(loss), 0.0) <= math.log(level) < tail(math.exp(loss + 1e-6), 0.0)


def test_rare_events_count_as_much_as_they_are_worth():
    # With 80 against none, q is tiny for sure: weighed 1 to 1 this would pass for the noise of frequent events.
    assert delta_from_below(80, 0, 4000, 0.3, 1e-7, 1.0) == 0
    assert delta_from_below(80, 0, 4000, 0.3, 1e-7, 5.0) > 0.005


def test_bounds_on_epsilon_hold_for_whatever_weight_by_exact_binomials():
    n, level, q, truth = 60, 0.05, 0.2, 0.7
    p = math.exp(truth) * q
    for weight in (0.5, 2.0, 8.0):
        a, b = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
        excess = np.unique(np.round(a - weight * b, 9))
        refuted = log_tail(excess, n, weight=weight, factor=p / q, slack=0.0) <= math.log(level)
        assert chance_of_reaching(excess[refuted][0], n, p, q, weight) <= level


def test_the_number_of_right_guesses_gives_clopper_and_pearsons_bound():
    a, b, n, level = 600, 200, 1000, 1e-6
    bound = shift_from_below(a, b, n, level)
    assert binom.sf(a + n - b - 1, 2 * n, (1 + bound) / 2) == pytest.approx(level, rel=1e-6)
    assert bound > delta_from_below(a, b, n, 0.0, level, 1.0)
    assert shift_from_below(200, 600, n, level) == 0


def test_a_release_that_gives_everything_away_is_bounded_as_far_as_the_trials_go():
    bound, findings, violated = examined(np.zeros(5000), np.ones(5000), GaussianDP(MU, 1e-6))
    level = share(1e-6, 1, len(grid(GaussianDP(MU, 1e-6), 1e-6)))
    assert violated
    # Nothing in 4000 runs: q is below log(1 / level) / 4000 or so.
    assert math.log(4000 / math.log(1 / level)) - 0.2 < bound < math.log(4000)
    assert {finding.direction for finding in findings if finding.bound > 0.9} == {
        "first against second",
        "second against first",
    }


# True claims


def gaussian_pair(rng, n, mu):
    return rng.normal(0, 1, n), rng.normal(mu, 1, n)


def laplace_pair(rng, n, epsilon):
    return rng.laplace(0, 1 / epsilon, n), rng.laplace(1, 1 / epsilon, n)


def response_pair(rng, n, epsilon):
    truth = 1 / (1 + math.exp(-epsilon))
    return rng.random(n) > truth, rng.random(n) < truth


def lattice_pair(rng, n, epsilon):
    noise = rng.geometric(-math.expm1(-epsilon), (2, 2, n))
    return noise[0, 0] - noise[0, 1], 1 + noise[1, 0] - noise[1, 1]


TIGHT = [
    (gaussian_pair, MU, GaussianDP(MU, at=1e-6)),
    (gaussian_pair, 2.0, GaussianDP(2.0, at=1e-6)),
    (laplace_pair, 1.0, PureDP(1.0)),
    (response_pair, 1.0, PureDP(1.0)),
    (response_pair, 0.1, PureDP(0.1)),
    (lattice_pair, 0.5, PureDP(0.5)),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("pair", "parameter", "claimed"), TIGHT)
def test_twenty_runs_of_mechanisms_that_spend_all_they_claim_stay_below_it(pair, parameter, claimed):
    for seed in range(20):
        bound, findings, violated = examined(*pair(np.random.default_rng(seed), 400, parameter), claimed)
        assert not violated
        assert bound <= claimed.epsilon(claimed.at)
        assert all(finding.bound <= finding.claimed for finding in findings)


@pytest.mark.parametrize(("pair", "parameter", "claimed"), [TIGHT[0], TIGHT[3]])
def test_false_alarms_are_no_more_frequent_than_asked(pair, parameter, claimed):
    runs, asked = 30, 0.2
    alarms = sum(
        examined(*pair(np.random.default_rng(1000 + seed), 100, parameter), claimed, false_alarm=asked)[2]
        for seed in range(runs)
    )
    assert binom.sf(alarms - 1, runs, asked) > 1e-6


def test_what_is_learned_from_noise_tells_nothing():
    # Directions, or thresholds, chosen on the trials that they are tested on would tell these apart for sure.
    rng = np.random.default_rng(7)
    for _ in range(4):
        bound, _, violated = examined(
            rng.normal(size=(1000, 400)), rng.normal(size=(1000, 400)), PureDP(1e-6), learned=True, false_alarm=1e-6
        )
        assert not violated
        assert bound == 0


def test_scores_of_the_trials_that_decide_depend_on_training_trials_only_through_the_direction():
    rng = np.random.default_rng(8)
    first, second = rng.normal(size=(500, 5)), rng.normal(0.5, 1, size=(500, 5))
    other = rng.normal(size=(400, 5))
    for learner in (
        AuditStatistic("direction", float, learned=True),
        AuditStatistic("one", float, learned=True, alone=True),
    ):
        _, held = training_scores((first, second), learner, share=5)
        _, changed = training_scores((np.concatenate([first[:100], other]), second), learner, share=5)
        np.testing.assert_array_equal(held[1], changed[1])
        assert not np.array_equal(held[0], changed[0])


def test_events_are_chosen_without_a_look_at_the_trials_that_decide():
    rng = np.random.default_rng(9)
    first, second = gaussian_pair(rng, 1000, 1.0)
    events = [
        [finding.event for finding in examined(first, np.append(second[:200], rest), GaussianDP(1.0, at=1e-6))[1]]
        for rest in (second[200:], rng.normal(4, 1, 800))
    ]
    assert events[0] == events[1]


# Faults


def test_a_gaussian_mechanism_with_half_the_noise_is_caught():
    bound, findings, violated = examined(
        *gaussian_pair(np.random.default_rng(1), 5000, 2 * MU), GaussianDP(MU, at=1e-6)
    )
    assert violated
    # The profile sees it near epsilon = 0, long before the one pair (1, 1e-6) does.
    assert {finding.epsilon for finding in findings if finding.violated} <= {0.0, 0.1, 0.25}
    assert bound < 1.0


def test_laplace_noise_of_half_the_scale_is_caught_at_the_claimed_epsilon():
    bound, findings, violated = examined(*laplace_pair(np.random.default_rng(2), 5000, 2.0), PureDP(1.0))
    assert violated
    assert 1.0 < bound <= 2.0
    assert any(finding.violated and finding.epsilon == 1.0 for finding in findings)


def test_ties_on_a_lattice_are_kept_together():
    bound, _, violated = examined(*lattice_pair(np.random.default_rng(3), 5000, 1.0), PureDP(0.5))
    assert violated
    assert 0.5 < bound <= 1.0


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_rare_leak_is_caught_whichever_input_and_tail_it_shows_in(swap, sign):
    rng = np.random.default_rng(4)
    leak = np.where(rng.random(5000) < 0.02, 9.0, rng.normal(size=5000))
    pair = sign * leak, sign * rng.normal(size=5000)
    _, findings, violated = examined(*(pair[::-1] if swap else pair), GaussianDP(gaussian_mu(0.3, 1e-6), at=1e-6))
    assert violated
    directions = {finding.direction for finding in findings if finding.violated}
    assert directions == {"second against first" if swap else "first against second"}


def test_a_direction_is_learned_among_many_features():
    rng = np.random.default_rng(5)
    shift = np.zeros(40)
    shift[[3, 17]] = 1.0, -1.0
    claimed = GaussianDP(MU, at=1e-6)
    assert examined(rng.normal(size=(2000, 40)), rng.normal(size=(2000, 40)) + shift, claimed, learned=True)[2]


def test_the_best_single_feature_is_found_by_a_threshold():
    rng = np.random.default_rng(6)
    first, second = np.rint(rng.normal(size=(2, 300, 50)))
    # A rare value under one input only; ties must not be parted, or a constant looks like a leak.
    second[:, 7] = first[:, 7] = 4.0
    second[rng.random(300) < 0.2, 31] = 50.0
    assert best_alone(first, second) == 31
    first[:, 31], second[:, 31] = 0.0, 1.0
    first[:, 12] += 0.8
    assert best_alone(first, second) == 31


# What can be found


def detectable(claimed, trials, false_alarm=1e-6, **known):
    """Smallest factor of too little noise that so many runs find."""
    return Rating(claimed, claimed.at, trials, false_alarm, known.pop("statistics", 1), **known).factor()


def caught(claimed, planted, factor, parameter, trials, runs):
    return sum(
        examined(*planted(np.random.default_rng(seed), trials, factor * parameter), claimed)[2] for seed in range(runs)
    )


@pytest.mark.slow
def test_faults_of_the_detectable_size_are_caught_as_often_as_promised():
    """Whoever rates the audit by its best event and weight, and not by those that it chooses, catches 88 of these."""
    claimed, trials = PureDP(1.0), 60
    factor = detectable(claimed, trials)
    assert caught(claimed, response_pair, factor, 1.0, trials, 100) >= 92
    assert caught(claimed, response_pair, 1 + (factor - 1) / 2, 1.0, trials, 8) < 8


@pytest.mark.slow
def test_so_are_noised_counts_whose_law_is_known():
    """Two counts change by one: neither a Gaussian nor randomised response, by which a fault of 1.6 would be found."""
    claimed, trials, less = PureDP(1.0), 500, partial(less_laplace, np.array([1, -1]), 2.0)
    factor = detectable(claimed, trials, weakened=less)
    assert 1.25 * detectable(claimed, trials) < factor

    def planted(rng, n, factor):
        noise = np.subtract(*rng.geometric(-math.expm1(-factor / 2.0), (2, 2, n, 2)))
        change = np.array([1, -1])
        ratios = np.abs(noise[0] + change) - np.abs(noise[0]), np.abs(noise[1]) - np.abs(noise[1] - change)
        return tuple(ratio.sum(axis=1) for ratio in ratios)

    assert caught(claimed, planted, factor, 1.0, trials, 40) >= 0.9 * 40
    assert caught(claimed, planted, detectable(claimed, trials), 1.0, trials, 15) < 0.5 * 15


def test_five_thousand_trials_a_side_find_half_the_noise_by_the_profile():
    claimed = GaussianDP(MU, at=1e-6)
    assert detectable(claimed, 3000) > 2 > detectable(claimed, 5000)
    assert detectable(PureDP(1.0), 3200, statistics=20) > detectable(PureDP(1.0), 3200)
    assert detectable(PureDP(1.0), 3200, false_alarm=1e-3) < detectable(PureDP(1.0), 3200)


def test_detectable_factors_of_other_profiles_are_in_a_sensible_range():
    assert 1.05 < detectable(PureDP(1.0), 5000) < 1.3
    assert detectable(ApproximateDP(1.0, 1e-6), 5000) == pytest.approx(detectable(PureDP(1.0), 5000), rel=0.02)
    assert detectable(PureDP(12.0), 500) == detectable(PureDP(100.0), 500) == math.inf


def test_profiles_are_rated_by_the_easiest_law_that_they_allow():
    """Shares at the thresholds of either law, read against each other."""
    thresholds = np.linspace(0.05, 0.95, 19)

    def curve(claimed, epsilons=(0.0, 0.1, 0.25, 0.5)):
        first, second = (np.cumsum(side) for side in hardest(claimed, epsilons)(1.0))
        return np.interp(thresholds, second, first)

    gaussian = curve(GaussianDP(1.0, at=1e-6))
    # At a large rate a Poisson number of Gaussian mechanisms is nearly one of mu = ratio sqrt(rate).
    np.testing.assert_allclose(curve(PoissonGaussianDP(1 / 20, 400.0, at=1e-6)), gaussian, atol=0.01)
    np.testing.assert_allclose(gaussian, ndtr(ndtri(thresholds) - 1.0), atol=0.01)
    # Of profiles without a law of their own, the Gaussian one that covers them.


def test_laws_in_closed_form_and_by_their_scores_are_the_same():
    for mu in (0.3, 2.0):
        made = Law.of_scores(*less_gaussian(mu, 1.0))
        below = np.cumsum(made.second)
        seen = below < 0.99
        np.testing.assert_allclose(np.cumsum(made.first)[seen], ndtr(ndtri(below[seen]) - mu), atol=2e-3)
        assert min(side.sum() for side in made) == pytest.approx(1.0)


# Runs


def respond(answer):
    return answer if random.SystemRandom().random() < 0.75 else not answer


def noisy(value):
    return value + random.SystemRandom().gauss(0, 1)


def fixed_seed(value):
    return value + np.random.default_rng(5).normal()


def first_of(released):
    return released[0]


def constant(value):
    return 0.0


@dataclass(frozen=True)
class Marked:
    value: float
    seeded: bool = True


class Restarting:
    """A mechanism that begins its stream anew every sixteen runs."""

    def __init__(self):
        self.runs = 0

    def __call__(self, value):
        if self.runs % 16 == 0:
            self.rng = np.random.default_rng(5)
        self.runs += 1
        return value + self.rng.normal()


@dataclass(frozen=True, eq=False)
class Travelling:
    """A mechanism that carries its generator along."""

    rng: Any = field(default_factory=lambda: np.random.default_rng(5))

    def __call__(self, value):
        return value + self.rng.normal()


def target(run, pair=(0.0, 1.0), claimed=None, statistics=(VALUE,)):
    return Target(run, pair, claimed or GaussianDP(1.0, at=1e-6), statistics)


def test_seeded_releases_are_refused():
    with pytest.raises(InputError, match="seeded"):
        audit(target(Marked), trials=50)


def test_runs_without_randomness_are_a_violation():
    """Constant runs, by a fixed seed or for want of noise, give each input away, seen by the statistics or not."""
    found = audit(target(fixed_seed, claimed=PureDP(1.0)), trials=50)
    assert found.violated
    assert found.fixed
    assert found.lower_bound > 0
    assert "no randomness from run to run: a fixed seed, or none" in str(found)
    blind = audit(lambda value: value, pair=(0, 1), claimed=PureDP(1.0), statistics=[constant], trials=50)
    assert (blind.violated, blind.lower_bound) == (True, 0.0)
    with pytest.raises(PrivacyCheckError, match="no randomness"):
        blind.require()


def test_constant_and_few_valued_mechanisms_are_no_seeded_ones():
    found = audit(target(constant), trials=100)
    assert (found.violated, found.lower_bound) == (False, 0.0)
    assert not audit(target(respond, (False, True), PureDP(math.log(3))), trials=400).violated
    # One that almost never lies may well give the same answer every time, and claims no less.
    assert not audit(target(float, claimed=PureDP(12.0)), trials=100).violated


def test_a_leak_that_is_constant_in_a_noisy_release_is_a_violation_and_no_seed():
    found = audit(lambda n: (n, noisy(n)), pair=(40, 41), claimed=PureDP(1.0), statistics=[first_of], trials=200)
    assert found.violated


@pytest.mark.slow
def test_workers_share_no_randomness():
    told = []
    sides = run_trials(target(noisy), 120, workers=2, progress=told.append).features
    assert len(np.unique(np.concatenate(sides[0]))) == 240
    assert told[-1] == "240 of 240 runs"


def test_a_generator_that_travels_to_the_workers_is_found_out():
    sent = pickle.dumps(target(Travelling()))
    with pytest.raises(InputError, match="repeat each other"):
        require_fresh_blocks([run_sent(sent, task) for task in [Task(0, 16), Task(1, 16)] * 2])
    with pytest.raises(InputError, match="repeat each other"):
        run_trials(target(Restarting()), 64)
    sent = pickle.dumps(target(noisy))
    require_fresh_blocks([run_sent(sent, task) for task in [Task(0, 16), Task(1, 16)] * 2])


def test_functions_that_cannot_travel_are_refused_in_words():
    with pytest.raises(InputError, match="top of a module"):
        audit(target(noisy, statistics=(AuditStatistic("own", lambda out: out),)), trials=50, workers=2)


@pytest.mark.parametrize(
    ("features", "learned", "match"),
    [
        (lambda _: [1.0, 2.0], False, "one number"),
        (lambda _: math.nan, False, "no numbers"),
        (lambda _: math.inf, True, "no numbers"),
        (lambda _: "x", False, "must give a number.*ValueError"),
        (lambda _: {}["secret 51.5"], False, "it raised KeyError"),
        (lambda out: np.zeros(1 + (out > 0)), True, "as many numbers"),
    ],
)
def test_features_that_are_no_scores_are_refused(features, learned, match):
    with pytest.raises(InputError, match=match) as caught:
        run_trials(target(noisy, statistics=(AuditStatistic("odd", features, learned),)), 60)
    # What a function says of an error may quote what was released.
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_infinite_scores_are_scores():
    odd = AuditStatistic("ratio", lambda out: math.inf if out > 2 else out)
    assert not audit(target(noisy, claimed=GaussianDP(1.0, at=1e-6), statistics=(odd,)), trials=100).violated


def test_progress_is_told_a_few_times():
    told = []
    run_trials(target(constant), 5000, progress=told.append)
    assert 10 <= len(told) <= 16


# The door


def test_randomised_response_of_ones_own_claiming_too_little_is_refuted():
    asked = {"pair": (False, True), "statistics": [float], "trials": 1500}
    told = []
    found = audit(respond, claimed=PureDP(0.4), progress=told.append, **asked)
    assert found.violated
    assert 0.4 < found.lower_bound <= math.log(3)
    assert told[-1] == "3000 of 3000 runs"
    assert "3000 runs will take about" in told[1]
    # Nothing is known of the law of a function.
    assert not found.law_is_known
    assert "o audit of so many trials finds" in str(found)
    with pytest.raises(PrivacyCheckError, match="REFUTED"):
        found.require()
    assert "REFUTED" in str(found)
    assert "Not rejected is not a proof" in str(found)
    assert "99.9999%" in str(found)
    held = audit(respond, claimed=Guarantee(AlphaNeighbours(1.0), PureDP(1.1), "theorem", ()), **asked)
    assert held.require() is None
    assert "not rejected" in str(held)


def test_what_an_audit_says_goes_to_json():
    import json

    found = audit(noisy, pair=(0.0, 0.1), claimed=PureDP(2.0), statistics=[VALUE], trials=60)
    out = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert {
        "lower_bound",
        "claimed",
        "delta",
        "confidence",
        "violated",
        "detectable",
        "trials",
        "findings",
    } <= out.keys()
    assert len(out["findings"]) == 2 * len(grid(PureDP(2.0), 0.0))
    assert out["confidence"] == 1 - 1e-6


def test_epsilon_may_be_asked_for_at_another_delta():
    found = audit(noisy, pair=(0.0, 3.0), claimed=GaussianDP(3.0, at=1e-6), statistics=[VALUE], delta=0.01, trials=300)
    assert found.claimed == pytest.approx(GaussianDP(3.0, at=1e-6).epsilon(0.01))
    assert 0 < found.lower_bound < found.claimed
    # A pure bound at delta = 0 is claimed by no Gaussian mechanism.
    none = audit(noisy, pair=(0.0, 3.0), claimed=GaussianDP(3.0, at=1e-6), statistics=[VALUE], delta=0.0, trials=100)
    assert none.claimed == math.inf
    assert none.to_dict()["claimed"] is None


def test_a_synthesizer_and_its_saved_release_are_audited_in_one_call(tmp_path):
    window, synthesizer = Window.rectangle(0, 0, 500, 500), LaplaceSynthesizer(1.0, alpha=25.0, postprocess="plain")
    found = audit(synthesizer, window, n=40, trials=60)
    assert not found.violated
    pattern = PointPattern(np.random.default_rng(1).uniform(0, 500, (40, 2)), window)
    synthesizer.release(pattern).save(tmp_path / "public", patterns=1)
    checked = audit(tmp_path / "public", trials=60)
    assert checked.verification is not None
    assert checked.verification.holds
    assert checked.claimed == found.claimed
    (tmp_path / "public" / "domain.geojson").unlink()
    broken = audit(tmp_path / "public", trials=60)
    assert (broken.trials, broken.verification.holds) == (0, False)
    assert "does NOT hold" in str(broken)
    with pytest.raises(PrivacyCheckError):
        broken.require()


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"claimed": PureDP(1.0), "statistics": [float]}, "pair"),
        ({"pair": (0, 1), "statistics": [float]}, "claimed"),
        ({"pair": (0, 1), "claimed": PureDP(1.0)}, "statistics"),
        ({"pair": (0, 1), "claimed": PureDP(1.0), "statistics": [float], "n": 5}, "n: not used"),
        ({"pair": (0, 1), "claimed": PureDP(1.0), "statistics": [VALUE, VALUE]}, "name of its own"),
        ({"pair": (0, 1), "claimed": PureDP(1.0), "statistics": [float], "trials": 10}, "trials"),
        ({"pair": (0, 1), "claimed": PureDP(1.0), "statistics": [float], "false_alarm": 0.0}, "false_alarm"),
        ({"pair": (0, 1), "claimed": PureDP(1.0), "statistics": [float], "workers": 0}, "workers"),
        ({"pair": (0, 1), "claimed": PureDP(1.0), "statistics": [float], "delta": 1.0}, "delta"),
        ({"pair": (0, 1), "claimed": PureDP(1.0), "statistics": [float], "false_alarm": "x"}, "false_alarm"),
        ({"pair": (0, 1), "claimed": PureDP(1.0), "statistics": [float], "false_alarm": 0.7}, "at most 0.5"),
        ({"pair": (0, 1), "claimed": PureDP(1.0), "statistics": [float], "trials": True}, "trials"),
        ({"pair": (0, 1), "claimed": 1.0, "statistics": [float]}, "claimed: needs a Guarantee or a profile"),
        ({"pair": 5, "claimed": PureDP(1.0), "statistics": [float]}, "pair: expected a tuple of two.* got int"),
        ({"pair": (0,), "claimed": PureDP(1.0), "statistics": [float]}, "pair: expected a tuple of two.* got 1"),
        ({"pair": (0, 1), "claimed": PureDP(1.0), "statistics": float}, "statistics: needs functions"),
        (
            {"pair": (0, 1), "claimed": PureDP(1.0), "statistics": [3]},
            "statistics: needs functions.* got int",
        ),
    ],
)
def test_what_is_missing_or_out_of_range_is_named(arguments, match):
    with pytest.raises(InputError, match=match):
        audit(noisy, **arguments)


def test_patterns_must_be_patterns():
    with pytest.raises(InputError, match="pair: needs a PointPattern, got list"):
        audit(
            LaplaceSynthesizer(1.0, alpha=25.0, postprocess="plain"),
            Window.rectangle(0, 0, 9, 9),
            n=1,
            pair=([[1, 1]], [[2, 2]]),
        )


def test_a_claim_that_says_nothing_somewhere_is_skipped_there():
    assert 0.0 not in grid(PureDP(30.0), 0.0)
    assert grid(PureDP(0.25), 0.0) == (0.0, 0.1, 0.25, 0.5)
    assert isinstance(audit(noisy, pair=(0.0, 9.0), claimed=PureDP(30.0), statistics=[VALUE], trials=60), Audit)
