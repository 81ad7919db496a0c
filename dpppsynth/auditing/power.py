"""Statistical power: the smallest shortfall of noise that an audit of a given number of trials finds.

A law of the scores is pictured whose noise is too small by a factor, and the whole audit of them is simulated: the
training trials that choose an event and a weight, and the others that decide. What is simulated is public.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, gammaln, ndtr, ndtri

from dpppsynth.auditing.intervals import TRAINING, TRIVIAL, Rules, grid, held_out, share
from dpppsynth.contract.audits.target import HALF, Scores, StatedLaw, Weakened
from dpppsynth.core.types import Floats
from dpppsynth.privacy.profiles import ApproximateDP, GaussianDP, PoissonGaussianDP, Profile, PureDP, gaussian_mu

# Law between which thresholds lie: evenly spread logits of their ranks, at most so many.
CUTS, LOGITS = 40, 8.0
# Share of the false alarms that is left for noise of another law than stated.
MISFIT = 1e-2
# Largest factor looked for, and halvings of intervals of its logarithm: by normal approximation, and by simulation.
LARGEST, ROUGHLY, FINELY, FINEST = 64.0, 12, 6, 20
# Factors that are tried for all of the noise.
FACTORS = 1 + np.geomspace(1e-3, LARGEST - 1, 300)
# Numbers of trials between which one is looked for.
FEWEST_TRIALS, MOST_TRIALS = 50, 10**6
# Probability that is stated; the share of simulated audits asked for is larger by two of its standard errors.
POWER, AUDITS = 0.9, 300
ASKED = POWER + 2 * math.sqrt(POWER * (1 - POWER) / AUDITS)
# Margins, in standard deviations, between which the normal approximation leaves the answer.
DOUBTFUL = 0.3, 4.0
# Margin below which an epsilon adds nothing to the share that is caught.
NO_HOPE = -1.0
SEED = 20261122


class Law(NamedTuple):
    """Distributions of a score under both inputs: probabilities (m,) of increasing intervals."""

    first: Floats
    second: Floats

    @classmethod
    def of_scores(cls, first: Floats, second: Floats) -> "Law":
        """Empirical distributions of scores (N,), (N,)."""
        ordered = np.sort(np.concatenate([first, second]))
        ranks = expit(np.linspace(-LOGITS, LOGITS, CUTS)) * (len(ordered) - 1)
        cuts = np.unique(ordered[ranks.round().astype(np.int64)])
        ends = [np.searchsorted(np.sort(side), cuts, side="right") / len(side) for side in (first, second)]
        return cls(*(np.diff(np.concatenate([[0.0], end, [1.0]])) for end in ends))

    def events(self) -> tuple[Floats, Floats]:
        """Probabilities (2m,) of scores at or above each interval, and at or below it."""
        return _tails(self.first), _tails(self.second)


# From a factor of too little noise to a law of the scores.
Family = Callable[[float], Law]


@dataclass(frozen=True)
class Rating:
    """Score distribution used to simulate the power of an audit.

    Attributes
    ----------
    claimed : Profile
    delta : float
        Where the audit quotes epsilon.
    trials : int
        Runs on each input.
    false_alarm : float
    statistics : int
        Number of statistics: each takes its share of the false alarm.
    weakened : callable, optional
        The law of the scores with too little noise, where it is known.
    laws : tuple of StatedLaw
        Stated laws of the noise in all numbers.
    """

    claimed: Profile
    delta: float
    trials: int
    false_alarm: float
    statistics: int
    weakened: Weakened | None = None
    laws: tuple[StatedLaw, ...] = ()

    def noise_factor(self) -> float:
        """Smallest factor of too little noise, or too narrow kernels, that the test of the stated noise law detects."""
        # Whether a factor shows need not grow with it: kernels that are much too narrow leave no child elsewhere.
        return next((factor for factor in FACTORS.tolist() if self._noise_shows(factor, self.trials)), math.inf)

    def noise_trials_for(self, factor: float) -> float:
        """Fewest runs on each input for that test to detect a factor; infinite beyond a million."""

        def caught(log_trials: float) -> bool:
            return self._noise_shows(factor, round(math.exp(log_trials)))

        return math.exp(_first(caught, math.log(FEWEST_TRIALS), math.log(MOST_TRIALS), FINEST))

    def _noise_shows(self, factor: float, trials: int) -> bool:
        log_level = math.log(MISFIT * self.false_alarm / max(1, len(self.laws)))
        return any(law.number.finds(factor, (trials, trials), log_level) for law in self.laws)

    def factor(self) -> float:
        """Smallest factor detected with the stated probability; infinite beyond 64."""
        family = self._family()
        rules = self.rules()

        def margin(log_factor: float) -> float:
            return _best_margin(rules, family(math.exp(log_factor)))

        def caught(log_factor: float) -> bool:
            return _share_caught(rules, family(math.exp(log_factor)), self.trials) >= ASKED

        return math.exp(_smallest(margin, caught, 0.0, math.log(LARGEST)))

    def trials_for(self, factor: float) -> float:
        """Fewest runs on each input, to a few per cent, to detect a factor; infinite beyond a million."""
        law = self._family()(factor)

        def margin(log_trials: float) -> float:
            return _best_margin(replace(self, trials=round(math.exp(log_trials))).rules(), law)

        def caught(log_trials: float) -> bool:
            trials = round(math.exp(log_trials))
            return _share_caught(replace(self, trials=trials).rules(), law, trials) >= ASKED

        return math.exp(_smallest(margin, caught, math.log(FEWEST_TRIALS), math.log(MOST_TRIALS)))

    def margin(self, factor: float) -> float:
        """Standard deviations by which an audit is expected to find a factor, by normal approximation."""
        return _best_margin(self.rules(), self._family()(factor))

    def rules(self) -> list[Rules]:
        """Rejection rules of the claim, one for each epsilon examined."""
        epsilons = grid(self.claimed, self.delta)
        n, level = held_out(self.trials), share(self.false_alarm, self.statistics, len(epsilons))
        return [Rules.of(self.claimed, epsilon, n, level) for epsilon in epsilons]

    def _family(self) -> Family:
        weakened = self.weakened
        if weakened is not None:
            return lambda factor: Law.of_scores(*weakened(factor))
        return hardest(self.claimed, grid(self.claimed, self.delta))


def half_missing(claim: Profile, scores: Scores) -> float:
    """Standard deviations by which a pure claim is refuted, by scores of runs with half of the noise missing.

    Of an audit by the likelihood ratio alone, with runs enough for small epsilons.
    """
    return Rating(claim, 0.0, 100_000, 1e-6, 1, lambda _: scores).margin(HALF)


def _tails(probability: Any) -> Any:
    """(..., 2m) sums from each of (..., m) numbers on, and up to each."""
    above = np.cumsum(probability[..., ::-1], axis=-1)[..., ::-1]
    return np.clip(np.concatenate([above, np.cumsum(probability, axis=-1)], axis=-1), 0, None)


def _smallest(margin: Callable[[float], float], caught: Callable[[float], bool], low: float, high: float) -> float:
    """Least value from which on a fault is caught, between those that the normal approximation leaves in doubt."""
    low, top = _first(lambda value: margin(value) >= DOUBTFUL[0], low, high, ROUGHLY), high
    high = _first(lambda value: margin(value) >= DOUBTFUL[1], low, top, ROUGHLY)
    high = top if math.isinf(high) or not caught(high) else high
    return _first(caught, low, high, FINELY) if low <= high else math.inf


def _first(holds: Callable[[float], bool], low: float, high: float, halvings: int) -> float:
    """Least value, up to `high`, from which on something holds; infinite where it does not hold there."""
    if math.isinf(low) or not holds(high):
        return math.inf
    if holds(low):
        return low
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _both_ways(law: Law) -> tuple[tuple[Floats, Floats], ...]:
    first, second = (np.minimum(side, 1.0) for side in law.events())
    return (first, second), (second, first)


def _best_margin(rules: list[Rules], law: Law) -> float:
    # A claim that is practically empty at every epsilon leaves no rule.
    return max((float(rule.margins(*sides).max()) for rule in rules for sides in _both_ways(law)), default=-math.inf)


def _share_caught(rules: list[Rules], law: Law, trials: int) -> float:
    """Share of simulated audits, from fixed seeds, that refute the claim at any epsilon, in either direction."""
    rng = np.random.default_rng(SEED)
    training, n = trials // TRAINING, held_out(trials)
    seen, decide = (
        [_tails(rng.multinomial(size, side / side.sum(), AUDITS)) for side in law] for size in (training, n)
    )
    caught = np.zeros(AUDITS, dtype=bool)
    for way, sides in zip((1, -1), _both_ways(law), strict=True):
        shares = [(count + 0.5) / (training + 1) for count in seen[::way]]
        for rule in rules:
            if rule.margins(*sides).max() > NO_HOPE:
                caught |= _refuted(rule, shares, decide[::way])
    return float(caught.mean())


def _refuted(rules: Rules, shares: list[Floats], counts: list[Any]) -> npt.NDArray[np.bool_]:
    """(R,) whether audits with shares and counts (R, m) of events refute, by the event and rule they choose."""
    event, rule = rules.choose(shares[0], shares[1])
    a, b = (np.take_along_axis(count, event[:, None], axis=1)[:, 0] for count in counts)
    return np.asarray(a - rules.weights[rule] * b >= rules.critical[rule])


def hardest(claimed: Profile, epsilons: tuple[float, ...]) -> Family:
    """Least favourable distributions within the claimed profile, without the fault."""
    match claimed:
        case PureDP():
            return lambda factor: _response(factor * claimed.level, 0.0)
        case ApproximateDP():
            return lambda factor: _response(factor * claimed.level, claimed.slack)
        case PoissonGaussianDP():
            return lambda factor: _poisson_gaussian(factor * claimed.ratio, claimed.rate)
        case GaussianDP():
            return lambda factor: _gaussian(factor * claimed.mu)
        case _:
            mus = [gaussian_mu(epsilon, d) for epsilon in epsilons if 0 < (d := claimed.delta(epsilon)) < TRIVIAL]
            if not mus:
                return lambda factor: _response(factor * claimed.epsilon(claimed.at), claimed.at)
            return lambda factor: _gaussian(factor * max(mus))


def _response(epsilon: float, slack: float) -> Law:
    """Randomised response that reveals its input with probability `slack`."""
    right = float(expit(epsilon))
    first = np.array([0.0, (1 - slack) * (1 - right), (1 - slack) * right, slack])
    return Law(first, first[::-1])


def _gaussian(mu: float) -> Law:
    cuts = np.linspace(-5.0, 5.0, CUTS)
    return _between(*(ndtr(cuts + sign * mu / 2) for sign in (-1, 1)))


def _between(*below: Floats) -> Law:
    """Law of distribution functions (m,), (m,) at thresholds."""
    first, second = (np.clip(np.diff(np.concatenate([[0.0], each, [1.0]])), 0, None) for each in below)
    return Law(first, second)


def _poisson_gaussian(ratio: float, rate: float) -> Law:
    """Log-likelihood ratios; none of the Gaussians at all leaves both inputs alike."""
    k = np.arange(int(rate + 12 * math.sqrt(rate)) + 32)
    weights = np.exp(k * math.log(rate) - rate - gammaln(k + 1))
    mu = ratio * np.sqrt(np.maximum(k, 1.0))
    spread = ratio * math.sqrt(max(rate, 1.0))
    cuts = np.unique(np.concatenate([spread * ndtri(expit(np.linspace(-LOGITS, LOGITS, CUTS))), [-1e-9, 0.0]]))
    nothing = (cuts >= 0).astype(float)[:, None]
    return _between(
        *(np.where(k == 0, nothing, ndtr(cuts[:, None] / mu + sign * mu / 2)) @ weights for sign in (-1, 1))
    )
