"""Frequency oracles by name, and the choice of one by its exact total variance."""

from dpppsynth.core.arguments import one_of
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local.randomizers.frequency import FrequencyOracle, checked_budget, total_variance
from dpppsynth.mechanisms.local.randomizers.hadamard import HadamardResponse
from dpppsynth.mechanisms.local.randomizers.oracles import LocalHashing, RandomizedResponse
from dpppsynth.mechanisms.local.randomizers.projective import ProjectiveResponse
from dpppsynth.mechanisms.local.randomizers.subset_selection import SubsetSelection
from dpppsynth.mechanisms.local.randomizers.unary import WORD, OptimizedUnary, SymmetricUnary

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
