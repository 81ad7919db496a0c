"""Guarantee of counts in strips with discrete Laplace noise.

Noise Z_i with P(Z_i = z) proportional to exp(-|z|/s) gives any y with P(c+Z=y) <= exp(|c-c'|_1/s) P(c'+Z=y). A point
that comes or goes changes |c-c'|_1 by 1, one that moves by at most 2; a person has up to k points.
"""

from dpppsynth.core.arguments import instance, positive
from dpppsynth.privacy.bounds import DISCRETE, EXAMPLE, assumptions
from dpppsynth.privacy.guarantee import Guarantee, PureDP
from dpppsynth.privacy.relations import AddRemove, CappedRelation
from dpppsynth.spatial.domains import Domain


def strips_sensitivity(relation: CappedRelation) -> int:
    """L1 sensitivity of the counts."""
    instance("relation", relation, CappedRelation, EXAMPLE)
    return relation.max_points_per_person * (1 if isinstance(relation, AddRemove) else 2)


def strips(relation: CappedRelation, *, scale: float, domain: Domain | None = None) -> Guarantee:
    """Guarantee of the counts with noise of a scale."""
    epsilon = strips_sensitivity(relation) / positive("scale", scale)
    return Guarantee(relation, PureDP(epsilon), "counts", assumptions(relation, (DISCRETE,), domain=domain))
