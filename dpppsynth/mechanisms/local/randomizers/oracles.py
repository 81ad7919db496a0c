"""Frequency oracles by randomised response and by local hashing, all oracles by name, and the best one.

Oracles estimate how many clients have each of d values, with the same budget and different noise. Per client whose
value is another one, the variance of an estimated number is `(e^eps + d - 2) / (e^eps - 1)^2` under randomized
response, `4 e^eps / (e^eps - 1)^2` under optimized unary encoding and, nearly, local hashing, and
`e^(eps/2) / (e^(eps/2) - 1)^2` under symmetric unary encoding.

The hash of a value is a 64-bit mix of seed and value, and its class the one of `hash_range` equal intervals of the
64-bit numbers that it falls into: whole-number arithmetic, alike on all machines. Privacy needs nothing of the family,
as seeds are drawn independently of values; that estimates are unbiased needs two values to collide for one seed in
`hash_range`, and estimates are uncorrelated if any three values are as good as independent.

References
----------
Wang, Blocki, Li and Jha (2017), Locally differentially private protocols for frequency estimation, USENIX Security.
Steele, Lea and Flood (2014), Fast splittable pseudorandom number generators, OOPSLA: the hash functions.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import one_of, positive, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.randomizers.exact_sampling import TOTAL, ExcessLaw, draws, excess_law, log_ratio
from dpppsynth.mechanisms.local.randomizers.frequency import FrequencyOracle, checked_budget, total_variance
from dpppsynth.mechanisms.local.randomizers.hadamard import HadamardResponse
from dpppsynth.mechanisms.local.randomizers.hashing import hash_classes, interval, states
from dpppsynth.mechanisms.local.randomizers.projective import ProjectiveResponse
from dpppsynth.mechanisms.local.randomizers.unary import WORD, OptimizedUnary, SubsetSelection, SymmetricUnary

# Seeds are drawn from [0, 2^SEED_BITS): far more than there are clients.
SEED_BITS = 63
# Classes of hashes are computed by 32-bit factors.
LARGEST_RANGE = 2**31
CHUNK = 2**20


def draw_seeds(rng: np.random.Generator, n: int) -> Ints:
    """(n,) independent uniform seeds."""
    return rng.integers(0, 2**SEED_BITS - 1, size=n, dtype=np.int64, endpoint=True)


def hash_supports(seeds: Ints, values: Ints, domain: int, hash_range: int) -> Ints:
    """(domain,) number of reports (seed, class) that support each value: those whose hash function gives the class."""
    from dpppsynth.mechanisms.local.randomizers.hashing_kernel import add_supports

    counts = np.zeros(domain, dtype=np.int64)
    for start in range(0, len(seeds), CHUNK):
        part = slice(start, start + CHUNK)
        low = interval(values[part], hash_range)
        # The end of the last interval is 2^64, which is 0 here, and its width is right nevertheless.
        add_supports(states(seeds[part]), low, interval(values[part] + 1, hash_range) - low, counts)
    return counts


# Values up to which the matrix of all hash functions is made.
MOST_HASHED = 8


class ResponseOracle(FrequencyOracle):
    """Base of oracles that apply randomised response to a few outputs: the client's output is likelier than any other.

    The law in integers is the same for every value; outputs differ by less than 2^-62 in it.
    """

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        raise NotImplementedError

    @cached_property
    def _law(self) -> ExcessLaw:
        return excess_law(np.exp([self.epsilon]), self.outputs, self.epsilon)

    @property
    def _excess(self) -> int:
        return int(self._law.excess[0])

    @property
    def spent(self) -> float:
        return self._law.spent

    @property
    def other(self) -> Fraction:
        """Probability of each output other than the client's."""
        return Fraction(TOTAL - self._excess, self.outputs * TOTAL)

    @property
    def p(self) -> Fraction:
        return self.other + Fraction(self._excess, TOTAL)

    def _responses(self, values: Ints, rng: np.random.Generator) -> Ints:
        """(k,) outputs for values (k,)."""
        split = self._law.split(draws(rng, len(values)))
        return np.where(split.near == 0, values, split.output)

    def _steps(self, reports: Ints) -> Floats:
        low = self._law.low
        steps = [log_ratio(weight + self._excess, weight) for weight in (low, low + 1)]
        return np.where(reports[:, -1] < self._law.extra, steps[1], steps[0])

    def _given_outputs(self) -> Floats:
        """(outputs, outputs) probabilities, columns are own outputs."""
        return (self._law.base[:, None] + np.diag(np.full(self.outputs, self._excess))) / TOTAL


@dataclass(frozen=True, kw_only=True, eq=False)
class RandomizedResponse(ResponseOracle):
    """Generalised randomized response: the client's value, or else any other one.

    Best of all where values are few: `domain < 3 e^epsilon + 2`. Counts are the reports of each value, estimated
    numbers of clients sum to the number of reports, and `fast_counts` have exactly the law of counts of reports.

    Examples
    --------
    >>> oracle = RandomizedResponse(epsilon=math.log(3), domain=4)
    >>> round(float(oracle.p), 9), round(float(oracle.q), 9)
    (0.5, 0.166666667)
    >>> oracle.frequencies(np.array([30, 10, 10, 10]), 60).round(9).tolist()
    [1.0, 0.0, 0.0, 0.0]
    """

    kind: ClassVar[str] = "randomized-response"
    columns: ClassVar[tuple[str, ...]] = ("value",)
    categorical: ClassVar[bool] = True

    @property
    def outputs(self) -> int:
        return self.domain

    @property
    def q(self) -> Fraction:
        return self.other

    @property
    def clones(self) -> float:
        # Devices draw reports without it.
        from dpppsynth.privacy.shuffling import lone_clone_probability

        return lone_clone_probability(self.spent)

    def matrix(self) -> Floats:
        self._room(self.domain)
        return self._given_outputs()

    def _drawn(self, values: Ints, rng: np.random.Generator) -> Ints:
        return self._responses(values, rng)[:, None]

    def _checked(self, reports: Any) -> Ints:
        checked = self.rows(reports)
        _require_range(checked[:, 0], self.domain)
        return checked

    def count(self, reports: Ints) -> Ints:
        return np.bincount(self._checked(reports)[:, 0], minlength=self.domain).astype(np.int64)

    def supported(self, reports: Ints, value: int) -> npt.NDArray[np.bool_]:
        return reports[:, 0] == value

    def fast_counts(self, true_counts: Ints, rng: np.random.Generator) -> Ints:
        counts, law = self.true_numbers(true_counts, rng), self._law
        # A client reports its value by the excess, or else any value by the base weights, whatever its own.
        kept = rng.binomial(counts, self._excess / TOTAL)
        return kept + rng.multinomial(counts.sum() - kept.sum(), law.base / float(TOTAL - self._excess))


def hash_range_rule(epsilon: float) -> int:
    """Classes that hashing takes by default: `round(e^epsilon) + 1`, where its variance is smallest.

    Examples
    --------
    >>> [hash_range_rule(epsilon) for epsilon in (0.5, 1, 2, 3, 5)]
    [3, 4, 8, 21, 149]
    """
    most = math.log(LARGEST_RANGE - 1)
    rule = f"be positive and at most {most:.4g} for a hash range of about e^epsilon"
    return max(2, round(math.exp(positive("epsilon", epsilon, rule=rule, most=most))) + 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalHashing(ResponseOracle):
    """Optimized local hashing: a random hash function, and randomized response on the class of the client's value.

    A report is the function's seed, drawn independently of the value, and a class. It supports all values that the
    function maps to the class; counts are supports, by work proportional to reports times values. `fast_counts` have
    the law of each value's support and the covariances, zero, but not the joint law.

    Attributes
    ----------
    hash_range : int
        Number of classes, from 2 to 2^31; `hash_range_rule(epsilon)` if not given. Clients and estimator have this one.

    Examples
    --------
    >>> oracle = LocalHashing(epsilon=1.0, domain=100)
    >>> oracle.hash_range, oracle.q, round(float(oracle.p), 6)
    (4, Fraction(1, 4), 0.475367)
    """

    hash_range: Any = None
    kind: ClassVar[str] = "local-hashing"
    columns: ClassVar[tuple[str, ...]] = ("seed", "value")

    def __post_init__(self) -> None:
        asked = hash_range_rule(self.epsilon) if self.hash_range is None else self.hash_range
        checked = whole("hash_range", asked, 2, most=LARGEST_RANGE, remedy="leave it out for the best one")
        object.__setattr__(self, "hash_range", checked)
        super().__post_init__()

    @property
    def outputs(self) -> int:
        return int(self.hash_range)

    @property
    def q(self) -> Fraction:
        return Fraction(1, self.hash_range)

    def matrix(self) -> Floats:
        """(functions x classes, domain) probabilities, functions equally likely, classes fastest; for few values."""
        if self.domain > MOST_HASHED:
            msg = f"domain: the matrix has a row for each function of {self.domain} values; {MOST_HASHED} at most."
            raise InputError(msg)
        self._room(self.hash_range ** (self.domain + 1))
        functions = np.array(list(product(range(self.hash_range), repeat=self.domain)))
        return np.concatenate(self._given_outputs()[:, functions].transpose(1, 0, 2)) / len(functions)

    def _drawn(self, values: Ints, rng: np.random.Generator) -> Ints:
        seeds = draw_seeds(rng, len(values))
        own = hash_classes(seeds, values, self.hash_range)
        return np.column_stack([seeds, self._responses(own, rng)])

    def _checked(self, reports: Any) -> Ints:
        checked = self.rows(reports)
        if len(checked) and checked[:, 0].min() < 0:
            msg = f"reports: a seed must be a whole number from 0 to 2^{SEED_BITS} - 1; some are not."
            raise InputError(msg)
        _require_range(checked[:, 1], self.hash_range)
        return checked

    def count(self, reports: Ints) -> Ints:
        """(domain,) number of reports whose hash function maps each value to the reported class."""
        checked = self._checked(reports)
        return hash_supports(checked[:, 0], checked[:, 1], self.domain, self.hash_range)

    def supported(self, reports: Ints, value: int) -> npt.NDArray[np.bool_]:
        return hash_classes(reports[:, 0], value, self.hash_range) == reports[:, 1]


def _require_range(numbers: Ints, end: int) -> None:
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < end):
        msg = f"reports: a value must be a whole number from 0 to {end - 1}; some are not."
        raise InputError(msg)


# Values up to which a report that names a subset of them is no longer than eight numbers.
SHORT = 8 * WORD
CANDIDATES: tuple[type[FrequencyOracle], ...] = (RandomizedResponse, ProjectiveResponse, LocalHashing, SubsetSelection)


def best_oracle(epsilon: float, domain: int) -> FrequencyOracle:
    """Oracle with the smallest total variance of those with short reports; the simplest of equal ones.

    Tried are randomised response, projective geometry response, local hashing, and for up to 496 values subset
    selection, which is never worse: its reports are one bit for each value.

    Examples
    --------
    >>> [best_oracle(1.0, domain).kind for domain in (3, 16, 4096)]
    ['randomized-response', 'subset-selection', 'local-hashing']
    """
    epsilon, domain = checked_budget(epsilon, domain)
    made = [oracle for kind in CANDIDATES if (oracle := _made(kind, epsilon, domain)) is not None]
    if not made:
        # Says what no oracle can express.
        return RandomizedResponse(epsilon=epsilon, domain=domain)
    # Integers are a few units off the closed forms: what is as good as equal is equal.
    least = min(map(total_variance, made)) * (1 + 1e-6)
    return next(oracle for oracle in made if total_variance(oracle) <= least)


def _made(kind: type[FrequencyOracle], epsilon: float, domain: int) -> FrequencyOracle | None:
    """An oracle of a kind; None where it cannot be had."""
    if kind is SubsetSelection and domain > SHORT:
        return None
    try:
        return kind(epsilon=epsilon, domain=domain)
    except InputError:
        return None


ORACLES: dict[str, type[FrequencyOracle]] = {
    law.kind: law
    for law in (
        RandomizedResponse,
        LocalHashing,
        OptimizedUnary,
        SymmetricUnary,
        HadamardResponse,
        SubsetSelection,
        ProjectiveResponse,
    )
}
# Words of users and of certificates for the best one.
AUTO, LEAST_VARIANCE = "auto", "least-variance"


def stated_oracle(asked: str) -> str:
    """Kind of frequency oracle on a certificate, by the kind that users ask for."""
    return LEAST_VARIANCE if asked == AUTO else asked


def oracle(kind: str, *, epsilon: float, domain: int) -> FrequencyOracle:
    """A frequency oracle by its kind, as certificates state it; "least-variance" takes that of `best_oracle`.

    Examples
    --------
    >>> oracle("least-variance", epsilon=1.0, domain=100).kind
    'subset-selection'
    """
    chosen = one_of("oracle", kind, (LEAST_VARIANCE, *ORACLES))
    return best_oracle(epsilon, domain) if chosen == LEAST_VARIANCE else ORACLES[chosen](epsilon=epsilon, domain=domain)
