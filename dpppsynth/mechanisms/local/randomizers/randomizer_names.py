"""Client mechanisms by name, as certificates and files of reports state them."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from dpppsynth.core.arguments import entries, one_of, shown
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local.randomizers.area import DiskArea, HybridArea
from dpppsynth.mechanisms.local.randomizers.frequency import FrequencyOracle
from dpppsynth.mechanisms.local.randomizers.hadamard import HadamardResponse
from dpppsynth.mechanisms.local.randomizers.hierarchy import RangeHierarchyLaw
from dpppsynth.mechanisms.local.randomizers.oracle_choice import best_oracle, response_or_hashing
from dpppsynth.mechanisms.local.randomizers.oracles import LocalHashing, RandomizedResponse
from dpppsynth.mechanisms.local.randomizers.projective import ProjectiveResponse
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer
from dpppsynth.mechanisms.local.randomizers.square_wave import SquareWave
from dpppsynth.mechanisms.local.randomizers.subset_exponential import SubsetExponential
from dpppsynth.mechanisms.local.randomizers.subset_selection import SubsetSelection
from dpppsynth.mechanisms.local.randomizers.unary import OptimizedUnary, SymmetricUnary

ORACLES: dict[str, type[FrequencyOracle]] = {
    each.kind: each
    for each in (
        RandomizedResponse,
        LocalHashing,
        OptimizedUnary,
        SymmetricUnary,
        HadamardResponse,
        SubsetSelection,
        ProjectiveResponse,
    )
}
KINDS: dict[str, type[Randomizer]] = {
    **ORACLES,
    **{each.kind: each for each in (DiskArea, HybridArea, SquareWave, SubsetExponential, RangeHierarchyLaw)},
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


def randomizer_from_dict(data: Mapping[str, Any]) -> Randomizer:
    """Inverse of `Randomizer.parameters`; InputError unless exactly the fields of a known kind are there."""
    data = entries("randomizer", data, ("kind", "epsilon"))
    kind = KINDS.get(data["kind"]) if isinstance(data["kind"], str) else None
    if kind is None:
        msg = f"randomizer: kind {shown(data['kind'])} is not known; expected one of {', '.join(sorted(KINDS))}."
        raise InputError(msg)
    names = {each.name for each in fields(kind)}
    if data.keys() != names | {"kind"}:
        msg = f"randomizer: {kind.kind} is stated by exactly {', '.join(sorted(names))}."
        raise InputError(msg)
    made = kind(**{name: data[name] for name in names})
    if made.parameters() != dict(data):
        msg = "randomizer: its numbers are not those that it has; check what was stated."
        raise InputError(msg)
    return made
