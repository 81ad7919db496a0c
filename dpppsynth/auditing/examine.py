"""Simultaneous lower confidence bounds on privacy loss from the test statistics of all trials.

A fifth of the trials chooses, for every statistic, direction and epsilon, the event that promises most; the other
trials, not looked at before, decide. Every bound gets the same share of the probability of a false alarm.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from dpppsynth.auditing.intervals import (
    DIRECTIONS,
    ROUGH,
    TRAINING,
    WEIGHTS,
    Rules,
    delta_from_below,
    epsilon_from_below,
    grid,
    held_out,
    share,
    shift_from_below,
)
from dpppsynth.contract.audits.target import AuditStatistic
from dpppsynth.core.types import Floats
from dpppsynth.privacy.profiles import Profile

Pair = tuple[Floats, Floats]


class Direction(NamedTuple):
    """Scores `(x - centre) . weights`, of standard deviation about one."""

    centre: Floats
    weights: Floats

    def scores(self, features: Floats) -> Floats:
        """(N,) scores of features (N, k)."""
        return np.asarray((features - self.centre) @ self.weights)


def learn_direction(first: Floats, second: Floats) -> Direction:
    """Direction from features (N, k) of runs on either input.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> learned = learn_direction(rng.normal(size=(500, 2)), rng.normal(size=(500, 2)) + [1.0, 0.0])
    >>> bool(abs(learned.weights[0]) > 5 * abs(learned.weights[1]))
    True
    """
    means = first.mean(axis=0), second.mean(axis=0)
    residuals = np.concatenate([first - means[0], second - means[1]])
    scale = residuals.std(axis=0)
    # A feature that never varied, as far as was seen, may be the leak.
    scale[scale == 0] = 1.0
    standard = residuals / scale
    count, k = standard.shape
    shrink = (k + 1) / (k + 1 + count)
    covariance = (1 - shrink) * (standard.T @ standard) / count + shrink * np.eye(k)
    weights = np.linalg.solve(covariance, (means[1] - means[0]) / scale) / scale
    length = float(np.std(residuals @ weights)) or 1.0
    return Direction((means[0] + means[1]) / 2, weights / length)


def best_alone(first: Floats, second: Floats) -> int:
    """Index of the one of k features (N, k) that separates the inputs best, in standard deviations.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> best_alone(rng.normal(size=(500, 3)), rng.normal(size=(500, 3)) + [0.0, 0.0, 0.5])
    2
    """
    count = len(first)
    values = np.concatenate([first, second])
    order = np.argsort(values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    below = np.cumsum(order < count, axis=0), np.cumsum(order >= count, axis=0)
    # Thresholds do not part equal values.
    last = np.concatenate([ordered[1:] != ordered[:-1], np.ones((1, first.shape[1]), dtype=bool)])
    p, q = ((each + 0.5) / (count + 1) for each in below)
    apart = np.where(last, np.abs(p - q) / np.sqrt(p * (1 - p) + q * (1 - q)), 0.0)
    return int(apart.max(axis=0).argmax())


def training_scores(pair: Pair, statistic: AuditStatistic, *, share: int) -> tuple[Pair, Pair]:
    """Scores of the training trials, and of the deciding ones.

    Where a direction is learned, either half of the training trials is scored by that of the other half: scores of
    the trials that a direction was learned from are too good to choose a threshold by.

    Parameters
    ----------
    pair : two (N, k) arrays
    statistic : AuditStatistic
        Where nothing is learned k = 1, and the feature is the score.
    share : int
        The first of so many parts of the trials are training.
    """
    first, second = pair
    cut = len(first) // share
    if not statistic.learned or statistic.alone:
        best = best_alone(first[:cut], second[:cut]) if statistic.learned else 0
        scores = first[:, best], second[:, best]
        return (scores[0][:cut], scores[1][:cut]), (scores[0][cut:], scores[1][cut:])
    whole = learn_direction(first[:cut], second[:cut])
    half = cut // 2
    parts = slice(0, half), slice(half, cut)
    crossed = [learn_direction(first[other], second[other]) for other in reversed(parts)]
    seen = [
        np.concatenate([direction.scores(side[part]) for part, direction in zip(parts, crossed, strict=True)])
        for side in pair
    ]
    return (seen[0], seen[1]), (whole.scores(first[cut:]), whole.scores(second[cut:]))


# Standard deviations of bad luck in which a weight must still do well; a rule made for one outcome fails beside it.
LUCK = 1.0
# Most events of one statistic that are weighed against each other.
EVENTS = 400


@dataclass(frozen=True)
class Finding:
    """Lower bound on privacy loss from one test statistic, beside the claim.

    Attributes
    ----------
    statistic : str
    direction : str
        Number of the input that makes the event likelier.
    epsilon : float
    bound : float
        Lower confidence bound on delta(epsilon).
    claimed : float
        Claimed delta(epsilon): the statistic's, where it has a claim of its own.
    event : str
        The event, in terms of the statistic.
    """

    statistic: str
    direction: str
    epsilon: float
    bound: float
    claimed: float
    event: str

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted."""
        return self.bound > self.claimed

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {**asdict(self), "violated": self.violated}


class Event(NamedTuple):
    """Test event: scores at or above a threshold, or at or below it."""

    threshold: float
    above: bool

    def count(self, scores: Floats) -> int:
        """Number of the scores (n,) in the event."""
        return int(np.count_nonzero(scores >= self.threshold if self.above else scores <= self.threshold))

    def __str__(self) -> str:
        return f"score {'>=' if self.above else '<='} {self.threshold:.6g}"


class Sides(NamedTuple):
    """Scores (n,) of the runs on the input where the event is sought, and (n,) of those on the other input."""

    p: Floats
    q: Floats

    def counts(self, event: Event) -> tuple[int, int]:
        """Numbers of runs of either input whose scores are in the event."""
        return event.count(self.p), event.count(self.q)


def examine(
    statistics: Sequence[AuditStatistic],
    features: Sequence[tuple[Floats, Floats]],
    claimed: Profile,
    *,
    delta: float,
    false_alarm: float,
) -> tuple[float, tuple[Finding, ...]]:
    """Lower bound on epsilon at `delta`, and a finding per statistic, direction and epsilon.

    With probability `1 - false_alarm` or more none of them is above the truth.

    Parameters
    ----------
    statistics : sequence of AuditStatistic
    features : sequence of pairs of (N, k) arrays
        Per statistic: of the runs on the first input, and of those on the second.
    claimed : Profile
    delta : float
        Below 1.
    false_alarm : float

    Examples
    --------
    >>> from dpppsynth.privacy import PureDP
    >>> rng = np.random.default_rng(1)
    >>> runs = rng.laplace(0.0, 0.5, (2000, 1)), rng.laplace(1.0, 0.5, (2000, 1))
    >>> bound, findings = examine([AuditStatistic("value", float)], [runs], PureDP(1.0), delta=0.0, false_alarm=1e-6)
    >>> 1 < bound < 2, any(finding.violated for finding in findings)
    (True, True)
    """
    epsilons = grid(claimed, delta)
    level = share(false_alarm, len(statistics), len(epsilons))
    lowest, findings = 0.0, []
    n = held_out(len(features[0][0]))
    known: dict[int, list[Rules]] = {}
    for statistic, pair in zip(statistics, features, strict=True):
        most = statistic.claimed or claimed
        # Claims are compared by identity: many statistics share one.
        rules = known.get(id(most)) or [Rules.of(most, epsilon, n, level) for epsilon in epsilons]
        known[id(most)] = rules
        training, testing = training_scores(pair, statistic, share=TRAINING)
        for direction, seen, runs in zip(DIRECTIONS, _both_ways(training), _both_ways(testing), strict=True):
            events = _events(seen)
            lowest = max(lowest, _epsilon_bound(events, runs, delta, level))
            for rule in rules:
                bound, event = _delta_bound(events, runs, rule, level)
                if bound > delta:
                    lowest = max(lowest, rule.epsilon)
                claim = most.delta(rule.epsilon)
                finding = Finding(statistic.name, direction, rule.epsilon, bound, claim, str(event))
                findings.append(finding)
    return lowest, tuple(findings)


def _both_ways(pair: tuple[Floats, Floats]) -> tuple[Sides, Sides]:
    return Sides(*pair), Sides(*pair[::-1])


class Events(NamedTuple):
    """Events (m,) and their frequencies in the training trials, smoothed so that none is zero."""

    events: list[Event]
    p: Floats
    q: Floats

    def foreseen(self, number: int, n: int, luck: float) -> tuple[int, int]:
        """Pessimistic counts of an event in n further runs of each input, `luck` standard deviations from the mean."""
        # Bad luck of the further runs, and good luck of those that the shares are from.
        spread = luck * math.sqrt(n * TRAINING)
        p, q = float(self.p[number]), float(self.q[number])
        a, b = n * p - spread * math.sqrt(p * (1 - p)), n * q + spread * math.sqrt(q * (1 - q))
        return max(0, math.floor(a)), min(n, math.ceil(b))


def _events(seen: Sides) -> Events:
    """Thresholds at scores that occurred, so ties fall on one side together."""
    values = np.unique(np.concatenate(seen))
    if len(values) > EVENTS:
        values = values[np.linspace(0, len(values) - 1, EVENTS).round().astype(int)]
    events, shares = [], []
    for above in (True, False):
        events += [Event(float(value), above) for value in values]
        shares.append([_share_of(scores, values, above=above) for scores in seen])
    p, q = np.concatenate(shares, axis=1)
    return Events(events, p, q)


def _share_of(scores: Floats, values: Floats, *, above: bool) -> Floats:
    ordered, n = np.sort(scores), len(scores)
    if above:
        count = n - np.searchsorted(ordered, values, side="left")
    else:
        count = np.searchsorted(ordered, values, side="right")
    return np.asarray((count + 0.5) / (n + 1))


def _delta_bound(events: Events, runs: Sides, rules: Rules, level: float) -> tuple[float, Event]:
    """Bound from the held-out trials, by the event and the rule likeliest to refute, as the training trials have it."""
    chosen, rule = (int(each) for each in rules.choose(events.p, events.q))
    event = events.events[chosen]
    counts = runs.counts(event)
    if rules.counts_guesses(rule):
        return shift_from_below(*counts, rules.n, level), event
    return float(delta_from_below(*counts, rules.n, rules.epsilon, level, rules.weights[rule])), event


def _epsilon_bound(events: Events, runs: Sides, delta: float, level: float) -> float:
    n = len(runs.p)
    deviations = math.sqrt(2 * math.log(1 / level) / n)
    low = events.p - deviations * np.sqrt(events.p * (1 - events.p)) - delta
    high = events.q + deviations * np.sqrt(events.q * (1 - events.q)) + math.log(1 / level) / n
    best = int(np.argmax(low / high))
    unit = max(1.0, low[best] / high[best])
    weight = _weight(
        lambda luck: epsilon_from_below(*events.foreseen(best, n, luck), n, delta, level, unit * WEIGHTS, ROUGH)
    )
    return float(epsilon_from_below(*runs.counts(events.events[best]), n, delta, level, unit * weight))


def _weight(bounds: Callable[[float], Floats]) -> float:
    """The weight that promises most with bad luck, or else without."""
    worse = bounds(LUCK)
    return float(WEIGHTS[np.argmax(worse if worse.any() else bounds(0.0))])
