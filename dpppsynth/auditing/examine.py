"""Simultaneous lower confidence bounds on privacy loss from the test statistics of all trials.

A fifth of the trials chooses, for every statistic, direction and epsilon, the event that promises most; the other
trials, not looked at before, decide. Every bound gets the same share of the probability of a false alarm.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpppsynth.auditing.intervals import ROUGH, delta_from_below, epsilon_from_below, shift_from_below
from dpppsynth.auditing.learning import training_scores
from dpppsynth.auditing.rules import DIRECTIONS, TRAINING, WEIGHTS, Rules, grid, held_out, share
from dpppsynth.contract.audits.target import AuditStatistic
from dpppsynth.privacy.profiles import Profile

Floats = npt.NDArray[np.float64]

# Standard deviations of bad luck in which a weight must still do well; a rule made for one outcome fails beside it.
LUCK = 1.0
# Most events of one statistic that are weighed against each other.
EVENTS = 400


@dataclass(frozen=True)
class Finding:
    """One bound of an audit.

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
    """Scores at or above a threshold, or at or below it."""

    threshold: float
    above: bool

    def count(self, scores: Floats) -> int:
        """Number of the scores (n,) that show the event."""
        return int(np.count_nonzero(scores >= self.threshold if self.above else scores <= self.threshold))

    def __str__(self) -> str:
        return f"score {'>=' if self.above else '<='} {self.threshold:.6g}"


class Sides(NamedTuple):
    """Scores (n,) of the runs on the input whose event is sought, and of as many on the other."""

    p: Floats
    q: Floats

    def counts(self, event: Event) -> tuple[int, int]:
        """Numbers of runs of either input that show an event."""
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
    """Events (m,) and how often the training trials show them, smoothed such that none looks impossible."""

    events: list[Event]
    p: Floats
    q: Floats

    def foreseen(self, number: int, n: int, luck: float) -> tuple[int, int]:
        """Numbers of n further runs that show an event, so many standard deviations worse than expected."""
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
