"""Client mechanisms by name, each imported when it is asked for: devices need one of them."""

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

from dpppsynth.core.arguments import entries, shown
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer

# Module and class of each kind.
PLACES = {
    "randomized-response": ("oracles", "RandomizedResponse"),
    "local-hashing": ("oracles", "LocalHashing"),
    "optimized-unary": ("unary", "OptimizedUnary"),
    "symmetric-unary": ("unary", "SymmetricUnary"),
    "hadamard-response": ("hadamard", "HadamardResponse"),
    "subset-selection": ("subset_selection", "SubsetSelection"),
    "projective-response": ("projective", "ProjectiveResponse"),
    "disk-area": ("area", "DiskArea"),
    "hybrid-area": ("area", "HybridArea"),
    "square-wave": ("square_wave", "SquareWave"),
    "subset-exponential": ("subset_exponential", "SubsetExponential"),
    "range-hierarchy": ("hierarchy", "RangeHierarchyLaw"),
    "displacements": ("displacements", "DisplacementLaw"),
}


def law_of(kind: str) -> type[Randomizer]:
    """Class of a kind of client mechanism."""
    module, name = PLACES[kind]
    found: type[Randomizer] = getattr(import_module(f"{__package__}.{module}"), name)
    return found


def randomizer_from_dict(data: Mapping[str, Any]) -> Randomizer:
    """Inverse of `Randomizer.parameters`; InputError unless exactly the fields of a known kind are there."""
    data = entries("randomizer", data, ("kind", "epsilon"))
    if not isinstance(data["kind"], str) or data["kind"] not in PLACES:
        msg = f"randomizer: kind {shown(data['kind'])} is not known; expected one of {', '.join(sorted(PLACES))}."
        raise InputError(msg)
    kind = law_of(data["kind"])
    names = {each.name for each in fields(kind)}
    if data.keys() != names | {"kind"}:
        msg = f"randomizer: {kind.kind} is stated by exactly {', '.join(sorted(names))}."
        raise InputError(msg)
    made = kind(**{name: data[name] for name in names})
    if made.parameters() != dict(data):
        msg = "randomizer: its numbers are not those that it has; check what was stated."
        raise InputError(msg)
    return made
