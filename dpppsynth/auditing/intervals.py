"""Lower confidence bounds on privacy loss from the frequencies of one event under two inputs.

For an event of probability p under one input and q under the other, (epsilon, delta) differential privacy says
`p - e^epsilon q <= delta`. Of n runs on each input, A and B show the event. Whatever lambda > 0 and w > 0,

    P(A - w B >= t) <= e^(-lambda t) (1 + p (e^lambda - 1))^n (1 - q (1 - e^(-lambda w)))^n,

and the logarithm is concave in q on the line `p = delta + e^epsilon q`, where it is largest among all p and q that the
claim allows: its maximum is in closed form. The weight w is chosen beforehand, on other trials. With the best one this
single bound on A and B is as sharp as the likelihood ratio, and by up to sqrt 2 sharper than two of Clopper and Pearson
(Chernoff 1952; docs/auditing.md).

At epsilon 0 whoever guesses the input from the event is right in `A + n - B` of 2n runs. These are independent, and
Hoeffding (1956) shows that their number's tail is below the binomial one of the same mean: Clopper and Pearson's bound
on `(1 + p - q)/2` holds, and is the sharper one where p and q are far from 0 and 1.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv
from scipy.stats import binom

from dpppsynth.core.types import Floats, Ints
from dpppsynth.privacy.profiles import Profile

# A number, or an array of weights or of values for each of them.
Numbers = Any

# Values of lambda that are tried; the best lies between two of them at little loss. Any of them is valid.
TILTS = np.geomspace(1e-6, 30.0, 160)
# Halvings of an interval; the end that is returned is one at which the hypothesis was refuted.
HALVINGS = 28


class Effort(NamedTuple):
    """Precision of the search for a bound; a coarse search gives a valid bound as well, a little lower."""

    every: int
    halvings: int


FINE, ROUGH = Effort(1, HALVINGS), Effort(4, 12)
# Largest epsilon searched.
LARGEST_EPSILON = 50.0


def log_tail(
    excess: Numbers, n: int, *, weight: Numbers, factor: Numbers, slack: Numbers, effort: Effort = FINE
) -> Floats:
    """Upper bound on `log P(A - weight B >= excess)` over all p and q with `p <= slack + factor q`.

    Parameters
    ----------
    excess, weight, factor, slack : float or (m,) arrays
        A less `weight` times B, as observed, the weight positive; `e^epsilon` and delta of the hypothesis, delta below
        1.
    n : int
        Runs on each input.
    effort : Effort

    Returns
    -------
    (m,) array, or number
        At most zero.

    Examples
    --------
    An event seen in 20 runs of 100 on either input, which is no wonder where p may equal q, and in 60 against 20:

    >>> float(log_tail(0.0, 100, weight=1.0, factor=1.0, slack=0.0))
    0.0
    >>> round(float(log_tail(40.0, 100, weight=1.0, factor=1.0, slack=0.0)), 2)
    -16.46
    """
    excess, weight, factor, slack = (np.asarray(each)[..., None] for each in (excess, weight, factor, slack))
    tilts = TILTS[:: effort.every]
    up, down = np.expm1(tilts), -np.expm1(-tilts * weight)
    q = (factor * up - down * (1 + slack * up)) / (2 * factor * up * down)
    q = np.clip(q, 0.0, np.minimum(1.0, (1 - slack) / factor))
    p = np.minimum(1.0, slack + factor * q)
    # Both probabilities may be one where down is one to the last digit; such a tilt bounds nothing worse for it.
    logs = n * (np.log1p(p * up) + np.log1p(-np.minimum(q * down, 1 - 2.0**-53)))
    return np.minimum(0.0, np.min(logs - tilts * excess, axis=-1))


def critical_excess(n: int, epsilon: float, delta: float, level: float, weight: Numbers) -> Floats:
    """Smallest `A - weight B` at which (epsilon, delta) is refuted at a level; above n where no value refutes it."""
    factor, weight = np.exp(epsilon), np.asarray(weight, dtype=np.float64)

    def accepted(excess: Floats) -> Floats:
        return log_tail(excess, n, weight=weight, factor=factor, slack=delta) > np.log(level)

    return _last(accepted, np.full(weight.shape, n + 1.0), HALVINGS) + 2 * (n + 1.0) * 2.0**-HALVINGS


def critical_shift(n: int, delta: float, level: float) -> int:
    """Smallest `A - B` at which `shift_from_below` refutes (0, delta); above n where no value refutes it."""
    return int(np.count_nonzero(binom.sf(np.arange(n + 1) + n - 1, 2 * n, (1 + delta) / 2) > level))


def delta_from_below(
    a: int, b: int, n: int, epsilon: float, level: float, weight: Numbers, effort: Effort = FINE
) -> Floats:
    """Lower confidence bound on `p - e^epsilon q`, and so on delta(epsilon), at least zero.

    Parameters
    ----------
    a, b : int
        Runs that show the event, of n under the input of p and of n under that of q.
    n : int
    epsilon : float
    level : float
        Largest probability that the bound is too high.
    weight : float or (m,) array
        Of a run on the second input, settled before looking at a and b; the bounds of several are not valid together.
    effort : Effort

    Returns
    -------
    (m,) array, or number

    Examples
    --------
    >>> round(float(delta_from_below(600, 200, 1000, 0.0, 1e-6, weight=1.0)), 3)
    0.289
    """
    weight = np.asarray(weight, dtype=np.float64)
    factor, excess = np.exp(epsilon), a - weight * b

    def refuted(delta: Floats) -> Floats:
        return log_tail(excess, n, weight=weight, factor=factor, slack=delta, effort=effort) <= np.log(level)

    return _last(refuted, np.full(weight.shape, a / n), effort.halvings)


def shift_from_below(a: int, b: int, n: int, level: float) -> float:
    """Lower confidence bound on `p - q`, and so on delta(0), at least zero, from the number of right guesses.

    Parameters
    ----------
    a, b, n, level
        As in `delta_from_below`.

    Examples
    --------
    >>> round(shift_from_below(600, 200, 1000, 1e-6), 3)
    0.299
    """
    right = a + n - b
    # Hoeffding's inequality starts one above the mean.
    if right <= n + 1:
        return 0.0
    return max(0.0, 2 * float(betaincinv(right, 2 * n - right + 1, level)) - 1)


def epsilon_from_below(
    a: int, b: int, n: int, delta: float, level: float, weight: Numbers, effort: Effort = FINE
) -> Floats:
    """Lower confidence bound on the epsilon at which `p - e^epsilon q <= delta`, at least zero.

    Hypotheses grow with epsilon while what is observed of A and B stays the same: so those that are refuted are an
    interval, and no share of the level is lost on looking for its end.

    Parameters
    ----------
    a, b, n, level, weight, effort
        As in `delta_from_below`.
    delta : float
        Below 1.

    Returns
    -------
    (m,) array, or number

    Examples
    --------
    >>> round(float(epsilon_from_below(600, 200, 1000, 0.0, 1e-6, weight=2.2)), 3)
    0.754
    """
    weight = np.asarray(weight, dtype=np.float64)
    excess = a - weight * b

    def refuted(epsilon: Floats) -> Floats:
        return log_tail(excess, n, weight=weight, factor=np.exp(epsilon), slack=delta, effort=effort) <= np.log(level)

    return _last(refuted, np.full(weight.shape, LARGEST_EPSILON), effort.halvings)


def _last(holds: Callable[[Floats], Any], high: Floats, halvings: int) -> Floats:
    """Last values, up to `high`, for which something holds that holds on an interval from zero on; or zero."""
    start = low = np.zeros_like(high)
    never = ~holds(start)
    if never.all():
        return start
    for _ in range(halvings):
        middle = (low + high) / 2
        yes = holds(middle)
        low, high = np.where(yes, middle, low), np.where(yes, high, middle)
    return np.where(never, 0.0, low)


# Share of the trials for training; the others decide.
TRAINING = 5
# Epsilons at which the profile is tested, beside the claimed one.
EPSILONS = (0.0, 0.1, 0.25, 0.5)
# Delta from which on a claim is practically empty at an epsilon.
TRIVIAL = 0.999
# Weights of a run on the second input, in units of the one that makes the excess unbiased, that are weighed up.
WEIGHTS = 2.0 ** np.arange(-5, 6)
DIRECTIONS = ("first against second", "second against first")


def grid(claimed: Profile, delta: float) -> tuple[float, ...]:
    """Increasing epsilons at which a claim is tested; those at which it allows almost anything are left out."""
    level = claimed.epsilon(delta)
    epsilons = {*EPSILONS, level} if level <= LARGEST_EPSILON else set(EPSILONS)
    return tuple(epsilon for epsilon in sorted(epsilons) if claimed.delta(epsilon) < TRIVIAL)


def share(false_alarm: float, statistics: int, epsilons: int) -> float:
    """Significance level of one bound, of which each statistic, direction and epsilon has one, and epsilon itself."""
    return false_alarm / (statistics * len(DIRECTIONS) * (epsilons + 1))


def held_out(trials: int) -> int:
    """Number of held-out (deciding) trials on one input."""
    return trials - trials // TRAINING


class Rules(NamedTuple):
    """Rejection rules for a claim at one epsilon, by n deciding runs on each input: `A - weights B >= critical`.

    Attributes
    ----------
    epsilon : float
    n : int
    weights, critical : (W,) arrays
        At epsilon 0 the last is the number of right guesses, which has a bound of its own.
    """

    epsilon: float
    n: int
    weights: Floats
    critical: Floats

    @classmethod
    def of(cls, claimed: Profile, epsilon: float, n: int, level: float) -> "Rules":
        """All rules at one epsilon, among which the training trials choose."""
        delta, weights = claimed.delta(epsilon), np.asarray(math.exp(epsilon) * WEIGHTS, dtype=np.float64)
        critical = critical_excess(n, epsilon, delta, level, weights)
        if epsilon == 0:
            weights, critical = np.append(weights, 1.0), np.append(critical, critical_shift(n, delta, level))
        return cls(epsilon, n, weights, critical)

    def counts_guesses(self, rule: int) -> bool:
        """Whether a rule is the number of right guesses."""
        return rule == len(WEIGHTS)

    def margins(self, p: Floats, q: Floats) -> Floats:
        """(..., m, W) standard deviations by which events of probabilities p, q (..., m) are expected to refute."""
        p, q = p[..., None], q[..., None]
        spread = self.n * (p * (1 - p) + self.weights**2 * q * (1 - q))
        return np.asarray((self.n * (p - self.weights * q) - self.critical) / np.sqrt(spread + 1e-300))

    def choose(self, p: Floats, q: Floats) -> tuple[Ints, Ints]:
        """Event and rule (...) most likely to refute, by estimates (..., m) of its probabilities."""
        margins = self.margins(p, q)
        best = margins.reshape(*margins.shape[:-2], -1).argmax(axis=-1)
        return best // len(self.weights), best % len(self.weights)
