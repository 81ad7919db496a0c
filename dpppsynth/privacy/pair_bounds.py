"""Bound of capped pair sums with discrete Laplace noise (docs/theory/pair_sums.md, Theorem S)."""

import math
from collections.abc import Sequence

from dpppsynth.core.arguments import instance, positive, several, whole
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.privacy.bounds import (
    DISCRETE,
    EXAMPLE,
    NOT_EMPTY,
    ONE_RELEASE,
    PUBLIC,
    PUBLIC_NETWORK,
    SNAPPED,
    SNAPPED_NETWORK,
    assumptions,
)
from dpppsynth.privacy.guarantee import Guarantee, PureDP
from dpppsynth.privacy.relations import AddRemovePerson, CappedRelation, Relation
from dpppsynth.spatial.domains import Domain

THEOREM = "Theorem S (capped pair sums)"
SETTLED = "Radii, caps, lattices and shares of the budget were chosen without looking at the points."
SOLVED = "The solver finds a maximum flow, which its minimum cut confirms in tests."
WHOLE_PERSON = "All points of a person carry the same value of the mark {user!r}, and nobody else's do."


def pair_sums_sensitivity(relation: Relation, cap: int, *, bits: int) -> int:
    """Largest change of a doubled capped pair sum, in units of `2^-bits`.

    The cap holds for a person where points tell whose they are, and for every point otherwise.

    Parameters
    ----------
    relation : AlphaNeighbours, ReplaceOne, AddRemove or AddRemovePerson
    cap : int
    bits : int
        Binary digits of shares.
    """
    unit = 2 * whole("cap", cap, 1) * 2 ** whole("bits", bits, 0, most=60)
    if isinstance(relation, AddRemovePerson):
        return unit
    known: CappedRelation = instance("relation", relation, CappedRelation, EXAMPLE)
    return known.max_points_per_person * unit


def pair_sums(
    relation: Relation, *, caps: Sequence[int], scales: Sequence[float], bits: int, domain: Domain | None = None
) -> Guarantee:
    """Guarantee of doubled capped pair sums, one for each radius, with discrete Laplace noise.

    Parameters
    ----------
    relation : AlphaNeighbours, ReplaceOne, AddRemove or AddRemovePerson
    caps, scales : sequence
        One for each radius; scales of noise in units of `2^-bits`.
    bits : int
    domain : Window or LinearNetwork, optional
        For the words.
    """
    each = several("caps", caps, int), [positive("scale", scale) for scale in scales]
    if not each[0] or len(each[0]) != len(each[1]):
        msg = f"caps, scales: need one of each for every radius, got {len(each[0])} and {len(each[1])}."
        raise InputError(msg)
    spent = math.fsum(pair_sums_sensitivity(relation, cap, bits=bits) / scale for cap, scale in zip(*each, strict=True))
    return Guarantee(relation, PureDP(spent), THEOREM, _assumed(relation, domain))


def _assumed(relation: Relation, domain: Domain | None) -> tuple[str, ...]:
    own = (SETTLED, DISCRETE, SOLVED)
    if isinstance(relation, CappedRelation):
        return assumptions(relation, own, domain=domain)
    streets = isinstance(domain, LinearNetwork)
    person = WHOLE_PERSON.format(user=getattr(relation, "user", ""))
    place = (PUBLIC_NETWORK, SNAPPED_NETWORK) if streets else (PUBLIC, SNAPPED)
    return (place[0], person, *own, ONE_RELEASE, place[1], NOT_EMPTY)
