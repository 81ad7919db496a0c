"""Privacy: relations, guarantees, bounds, noise, certificates. Knows no synthesizer.

Relations are objects (`AlphaNeighbours`, `ReplaceOne`, `AddRemove`); bound functions (`counts`, `tents`) turn public
numbers into a `Guarantee`; `verify` derives the bound of a certificate again.
"""

from dpppsynth.privacy.bounds import (
    counts,
    counts_sensitivity,
    require_small_delta,
    tents,
    tents_sensitivity,
)
from dpppsynth.privacy.guarantee import Guarantee, Profile, PureDP, guarantee_from_dict
from dpppsynth.privacy.noise import laplace_noise, laplace_scale
from dpppsynth.privacy.relations import AddRemove, AlphaNeighbours, Relation, ReplaceOne, relation_from_dict
from dpppsynth.privacy.verify import Check, Verification, verify

__all__ = [
    "AddRemove",
    "AlphaNeighbours",
    "Check",
    "Guarantee",
    "Profile",
    "PureDP",
    "Relation",
    "ReplaceOne",
    "Verification",
    "counts",
    "counts_sensitivity",
    "guarantee_from_dict",
    "laplace_noise",
    "laplace_scale",
    "relation_from_dict",
    "require_small_delta",
    "tents",
    "tents_sensitivity",
    "verify",
]
