"""Frequency oracles by name, as certificates and files of reports state them."""

from dpppsynth.core.arguments import one_of
from dpppsynth.mechanisms.local.randomizers.frequency import FrequencyOracle
from dpppsynth.mechanisms.local.randomizers.oracle_choice import best_oracle, response_or_hashing
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer
from dpppsynth.mechanisms.local.randomizers.randomizer_places import PLACES, law_of, randomizer_from_dict

__all__ = ["AUTO", "KINDS", "LEAST_VARIANCE", "ORACLES", "oracle", "randomizer_from_dict", "stated_oracle"]

KINDS: dict[str, type[Randomizer]] = {kind: law_of(kind) for kind in PLACES}
ORACLES: dict[str, type[FrequencyOracle]] = {
    kind: law for kind, law in KINDS.items() if issubclass(law, FrequencyOracle)
}
# What users ask for, and what stands on certificates for it: "auto" there is the published choice of older releases.
AUTO, LEAST_VARIANCE = "auto", "least-variance"
CHOICES = {LEAST_VARIANCE: best_oracle, AUTO: response_or_hashing}


def stated_oracle(asked: str) -> str:
    """Kind of frequency oracle on a certificate, by the kind that users ask for."""
    return LEAST_VARIANCE if asked == AUTO else asked


def oracle(kind: str, *, epsilon: float, domain: int) -> FrequencyOracle:
    """A frequency oracle by its kind, as certificates state it.

    "least-variance" takes that of `best_oracle`, "auto" the better one of randomised response and local hashing, as
    older certificates mean it.

    Examples
    --------
    >>> oracle("least-variance", epsilon=1.0, domain=100).kind, oracle("auto", epsilon=1.0, domain=100).kind
    ('subset-selection', 'local-hashing')
    """
    choice = CHOICES.get(one_of("oracle", kind, (*CHOICES, *ORACLES)))
    return choice(epsilon, domain) if choice else ORACLES[kind](epsilon=epsilon, domain=domain)
