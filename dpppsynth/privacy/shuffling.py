"""Guarantee of reports mixed by an honest shuffler, beside the local one (docs/theory/shuffling.md).

Every other person's report is, with some probability, drawn as if it were about either of two places of the person in
question: a clone. Given the number C of clones, who tells the two places apart sees a number of heads among C fair
coins, to which the person's own report adds one or nothing. All of it is computed with bounds that err towards less
privacy, so what is stated is never too small.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from dpppsynth.core.arguments import entries, positive, probability, whole
from dpppsynth.core.rounding import upward
from dpppsynth.privacy.catalogue import (
    Code,
    Statement,
    code_from_json,
    code_json,
    codes_from_json,
    require_code,
    require_codes,
    text,
)
from dpppsynth.privacy.truncated.error_bounds import smallest_number

THEOREM = "clones"
# More reports are as good as these: the bound falls with their number.
MOST_REPORTS = 10**8
# Steps of the number of clones, in standard deviations, and the range of numbers that are told apart.
STEP, BELOW, ABOVE = 0.1, 12.0, 5.0
# Range of local bounds: integers express no larger ones, and smaller ones stay as they are.
LARGEST, NOTHING = 50.0, 1e-6
# Weights err by less.
WEIGHTS = 1e-12
DIGITS = 4
# Share of delta that is kept back when an epsilon is stated, and largest excess of one over what another machine finds.
KEPT_BACK, MORE = 1e-3, 2e-3

HONEST = "honest-shuffler"
ONE_EACH = "one-shuffled-report-each"
EACH_ROUND = "one-shuffled-message-each-round"
OTHERS = "secret-bits-of-others"


def clone_probability(epsilon: float) -> float:
    """Probability that a report of any randomizer at `epsilon` is a clone, e^-epsilon, rounded down."""
    return math.exp(-epsilon) * (1 - WEIGHTS)


def lone_clone_probability(epsilon: float) -> float:
    """Probability of a clone, 2/(e^epsilon + 1), where no report is a likely one of two places; rounded down."""
    return 2 * math.exp(-epsilon) / (1 + math.exp(-epsilon)) * (1 - WEIGHTS)


def shuffled_delta(local_epsilon: float, reports: int, epsilon: float, *, clones: float | None = None) -> float:
    """Delta at which shuffled reports are (epsilon, delta)-differentially private, rounded up (Theorem K).

    Parameters
    ----------
    local_epsilon : float
        Bound of every report.
    reports : int
        Honest reports, that of the person in question among them.
    epsilon : float
    clones : float, optional
        Probability that another person's report is a clone; what all randomizers have unless given.

    Examples
    --------
    >>> 1e-11 < shuffled_delta(2.0, 10_000, 0.2) < shuffled_delta(2.0, 10_000, 0.1) < 1e-2
    True
    """
    local, n = _local(local_epsilon), whole("reports", reports, 1)
    target = positive("epsilon", epsilon)
    if target >= local:
        return 0.0
    share = clone_probability(local) if clones is None else probability("clones", clones)
    limits, below = _clone_blocks(min(n, MOST_REPORTS) - 1, share)
    heights = np.minimum.accumulate([_coins_delta(local, target, int(c)) for c in limits])
    # Fewer clones tell more: in each block as if there were its fewest.
    found = heights[-1] + float((heights[:-1] - heights[1:]) @ below[1:])
    return min(1.0, float(found) * (1 + WEIGHTS))


def shuffled_epsilon(local_epsilon: float, reports: int, delta: float, *, clones: float | None = None) -> float:
    """Smallest epsilon of four digits at which shuffled reports are (epsilon, delta)-differentially private.

    Parameters are those of `shuffled_delta`. Never above `local_epsilon`. A thousandth of delta is kept back, so that
    who computes `shuffled_delta` with other rounding also finds it within delta.

    Examples
    --------
    >>> shuffled_epsilon(2.0, 10_000, 1e-8), shuffled_epsilon(2.0, 1, 1e-8)
    (0.1968, 2.0)
    """
    n, chance = whole("reports", reports, 1), probability("delta", delta)
    return min(_local(local_epsilon), float(upward(_least(local_epsilon, n, chance, clones), DIGITS)))


def _least(local_epsilon: float, reports: int, delta: float, clones: float | None) -> float:
    """The epsilon before it is rounded up."""
    local, share = _local(local_epsilon), None if clones is None else probability("clones", clones)
    # Shuffling makes little of what tells next to nothing.
    return local if local < NOTHING else _smallest(local, min(reports, MOST_REPORTS), delta, share)


def _local(epsilon: Any) -> float:
    return positive("local_epsilon", epsilon, rule=f"be positive and at most {LARGEST:g}", most=LARGEST)


@lru_cache(maxsize=64)
def _smallest(local: float, reports: int, delta: float, clones: float | None) -> float:
    def holds(epsilon: float) -> bool:
        return shuffled_delta(local, reports, epsilon, clones=clones) <= delta * (1 - KEPT_BACK)

    least = local * 2.0**-30
    return least if holds(least) else smallest_number(holds, least, local, close=1e-5)


@lru_cache(maxsize=16)
def _clone_blocks(others: int, share: float) -> tuple[Any, Any]:
    """Least numbers of clones (k,) of each block, ascending from 0, and bounds of the chance of fewer (k,)."""
    mean = others * share
    spread = math.sqrt(mean * (1 - share))
    step = max(1, int(STEP * spread))
    low, high = max(0, int(mean - BELOW * spread - 40)), min(others, int(mean + ABOVE * spread) + 10)
    limits = np.unique(np.concatenate([[0], np.arange(low, high + 1, step)]))
    return limits, np.array([most_below(others, share, int(limit)) for limit in limits])


def _coins_delta(local: float, epsilon: float, clones: int) -> float:
    """Upper bound of delta given the number of clones: heads of fair coins, and one more with odds e^local to one.

    `P(heads = k) = (e^local b(k - 1) + b(k)) / (e^local + 1)` at one place, with the weights exchanged at the other, b
    the binomial law of the coins. The best test rejects from some k on.
    """
    own, target = math.exp(local), math.exp(epsilon)
    gained = own * -math.expm1(epsilon - local) / (own + 1) * (1 + WEIGHTS)
    lost = math.expm1(epsilon) * (1 - WEIGHTS)
    # Where the likelihood ratio passes e^epsilon; a neighbour where rounding decides.
    first = math.floor((clones + 1) * math.expm1(local + epsilon) / (math.expm1(local) * (target + 1)))
    start = min(max(1, first), clones + 1)
    before, best = binomial_pmf(clones, 0.5, start - 1).high, 0.0
    for k in range(start, min(start + 2, clones + 1) + 1):
        ratio = (clones - k + 1) / k
        after = tail_over_pmf(clones, 0.5, k).low * ratio * (1 - WEIGHTS) if ratio else 0.0
        best = max(best, before * (gained - lost * after))
        before *= ratio * (1 + WEIGHTS)
    return best


@dataclass(frozen=True, kw_only=True)
class ShuffledPrivacy:
    """Second guarantee of local reports, under an honest shuffler; the local one holds without it.

    Attributes
    ----------
    epsilon, delta : float
    reports : int
        Least number of honest reports that are shuffled together.
    local_epsilon : float
        Bound that every report satisfies by itself.
    theorem : str
    assumptions : tuple of str
        What it takes for granted beside the assumptions of the local bound.
    messages : tuple of (float, float or None)
        Of each message of a person the local bound and the probability of a clone, from which it was derived; none
        where it was read from a file.
    """

    epsilon: float
    delta: float
    reports: int
    local_epsilon: float
    theorem: Code
    assumptions: tuple[Code, ...]
    messages: tuple[tuple[float, float | None], ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        local = positive("local_epsilon", self.local_epsilon)
        object.__setattr__(self, "local_epsilon", float(local))
        object.__setattr__(self, "epsilon", float(positive("epsilon", self.epsilon)))
        object.__setattr__(self, "delta", float(probability("delta", self.delta)))
        object.__setattr__(self, "reports", whole("reports", self.reports, 1))
        require_code("theorem", self.theorem)
        object.__setattr__(self, "assumptions", require_codes(self.assumptions))

    def __str__(self) -> str:
        assumed = " ".join(f"({i}) {text(each)}" for i, each in enumerate(self.assumptions, 1))
        factor = f"{upward(math.exp(self.epsilon), 4)} times (e^{self.epsilon:g})"
        return (
            f"If moreover an honest shuffler mixes the reports: whatever anybody sees but that shuffler is at most "
            f"{factor} as likely for one person's data as for any other of theirs, give or take a probability of "
            f"{self.delta:g}. Without the shuffler the bound above holds alone. Proved by {text(self.theorem)}. For "
            f"this second statement it is assumed as well that: {assumed}"
        )

    def proves(self, claimed: "ShuffledPrivacy") -> bool:
        """Whether a claim follows from the messages of this guarantee, on whatever machine it was derived.

        The delta at the claimed epsilon decides, not whether two epsilons agree to a digit. A claim of more than needs
        be is refused as well: its number could carry hidden data.
        """
        same = replace(claimed, epsilon=self.epsilon, local_epsilon=self.local_epsilon) == self
        near = math.isclose(claimed.local_epsilon, self.local_epsilon, rel_tol=1e-9)
        within = claimed.epsilon <= (1 + MORE) * self.epsilon
        return same and near and within and self._delta(claimed.epsilon) <= self.delta

    def _delta(self, epsilon: float) -> float:
        """Delta of all messages together at an epsilon, of which each has the share that it needs."""
        each = self.delta / len(self.messages)
        least = [_least(local, self.reports, each, clones) for local, clones in self.messages]
        parts = [epsilon * (one / math.fsum(least)) for one in least]
        return math.fsum(
            shuffled_delta(local, self.reports, part, clones=clones)
            for part, (local, clones) in zip(parts, self.messages, strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON form for a certificate."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "reports": self.reports,
            "local_epsilon": self.local_epsilon,
            "theorem": code_json(self.theorem),
            "assumes": [*map(code_json, self.assumptions)],
        }


def shuffled_from_dict(data: Any) -> ShuffledPrivacy:
    """Shuffled guarantee from its JSON form; InputError for invalid ones."""
    names = ("epsilon", "delta", "reports", "local_epsilon")
    data = entries("shuffled", data, (*names, "theorem", "assumes"))
    return ShuffledPrivacy(
        **{name: data[name] for name in names},
        theorem=code_from_json("theorem", data["theorem"]),
        assumptions=codes_from_json(data["assumes"]),
    )


def shuffled_reports(
    local_epsilon: float, reports: int, delta: float, *, clones: float | None = None
) -> ShuffledPrivacy:
    """Guarantee of shuffled honest reports, each within `local_epsilon`; parameters as of `shuffled_delta`.

    Examples
    --------
    >>> shuffled_reports(2.0, 10_000, 1e-8).epsilon
    0.1968
    """
    number = whole("reports", reports, 1)
    assumed = (HONEST, many(number), ONE_EACH, OTHERS)
    return ShuffledPrivacy(
        epsilon=shuffled_epsilon(local_epsilon, number, delta, clones=clones),
        delta=delta,
        reports=number,
        local_epsilon=local_epsilon,
        theorem=THEOREM,
        assumptions=assumed,
        messages=((local_epsilon, clones),),
    )


def shuffled_rounds(epsilons: Sequence[float], reports: int, delta: float) -> ShuffledPrivacy:
    """Guarantee of several shuffled rounds, in each of which every person sends one message within its epsilon.

    The law of a later round may follow from what earlier ones told. Epsilons add up, and each round has its share of
    delta.
    """
    number, each = whole("reports", reports, 1), delta / len(epsilons)
    found = [shuffled_epsilon(local, number, each) for local in epsilons]
    return ShuffledPrivacy(
        epsilon=float(upward(math.fsum(found), DIGITS)),
        delta=delta,
        reports=number,
        local_epsilon=math.fsum(epsilons),
        theorem=THEOREM,
        assumptions=(HONEST, many(number), Statement(EACH_ROUND, rounds=len(found)), OTHERS),
        messages=tuple((local, None) for local in epsilons),
    )


def many(reports: int) -> Statement:
    """Assumption on the number of honest reports."""
    return Statement("honest-reports", reports=reports)


# Relative errors are below it: thirty digits of logarithms up to 1e12, and sums of at most MOST_TERMS positive terms.
MARGIN = 1e-8
WORKING_DIGITS = 30
# Terms that are added at once, and at most.
BLOCK, MOST_TERMS = 4096, 2**22
# Terms below it, beside the first, end a sum.
NEGLIGIBLE = 1e-12


class Bracket(NamedTuple):
    """Lower and upper bound on a number."""

    low: float
    high: float


def binomial_pmf(trials: int, chance: float, successes: int) -> Bracket:
    """Bounds on the binomial probability of a number of successes.

    Examples
    --------
    >>> low, high = binomial_pmf(4, 0.5, 2)
    >>> low < 0.375 < high < 0.375 * (1 + 1e-7)
    True
    """
    if not 0 <= successes <= trials:
        return Bracket(0.0, 0.0)
    real = _real()
    failures, p = trials - successes, real.mpf(chance)
    ways = real.loggamma(trials + 1) - real.loggamma(successes + 1) - real.loggamma(failures + 1)
    value = float(real.exp(ways + successes * real.log(p) + failures * real.log1p(-p)))
    # Below the range of floats with all their digits nothing but zero bounds from below.
    return Bracket(value * (1 - MARGIN) if value > 1e-290 else 0.0, value * (1 + MARGIN) + 1e-300)


@cache
def _real() -> Any:
    """Numbers of thirty digits; a context of its own, for the precision of mpmath's is shared by all threads."""
    from mpmath.ctx_mp import MPContext

    made = MPContext()
    made.dps = WORKING_DIGITS
    return made


def tail_over_pmf(trials: int, chance: float, least: int) -> Bracket:
    """Bounds on the probability of at least a number of successes, as a multiple of that of exactly this number.

    Examples
    --------
    >>> low, high = tail_over_pmf(4, 0.5, 2)
    >>> low < 11 / 6 < high
    True
    """
    if least >= trials:
        return Bracket(1.0, 1.0)
    odds, total, last, done = chance / (1 - chance), 1.0, 1.0, 0
    while least + done < trials and done < MOST_TERMS:
        k = np.arange(least + done, min(least + done + BLOCK, trials), dtype=np.float64)
        ratios = (trials - k) / (k + 1) * odds
        terms = last * np.cumprod(ratios)
        total, last, done = total + float(terms.sum()), float(terms[-1]), done + len(k)
        if last <= NEGLIGIBLE and ratios[-1] < 1:
            # Ratios fall, so what is left is less than a geometric series.
            return Bracket(total * (1 - MARGIN), (total + last * ratios[-1] / (1 - ratios[-1])) * (1 + MARGIN))
    return Bracket(total * (1 - MARGIN), total * (1 + MARGIN) if least + done >= trials else np.inf)


def upper_tail(trials: int, chance: float, least: int) -> Bracket:
    """Bounds on the probability of at least `least` successes, at or above the mean; below it 0 and 1."""
    if least <= 0:
        return Bracket(1.0, 1.0)
    if least < trials * chance:
        return Bracket(0.0, 1.0)
    one, sum_ = binomial_pmf(trials, chance, least), tail_over_pmf(trials, chance, least)
    return Bracket(one.low * sum_.low, min(1.0, one.high * sum_.high))


def most_below(trials: int, chance: float, limit: int) -> float:
    """Upper bound of the probability of fewer than `limit` successes.

    Examples
    --------
    >>> 6 / 16 - 1 / 16 < most_below(4, 0.5, 2) < 5 / 16 + 1e-7
    True
    """
    if limit <= 0:
        return 0.0
    if limit > trials:
        return 1.0
    if limit - 1 <= trials * chance:
        # Failures mirrored; 1 - chance is exact to half a unit in the last place, the tail's margin covers it.
        return upper_tail(trials, 1 - chance, trials - limit + 1).high
    return min(1.0, (1 - upper_tail(trials, chance, limit).low) * (1 + MARGIN))
