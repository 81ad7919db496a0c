"""Report text on the curve of epsilon by distance."""

import math

from dpppsynth.core.rounding import stated
from dpppsynth.core.units import short_unit
from dpppsynth.plotting.curves import what_changes
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import AddRemove, AddRemovePerson, GeoIndistinguishability
from dpppsynth.reporting import local_privacy as local
from dpppsynth.reporting.promise import length, several, silent_beyond, way
from dpppsynth.spatial.domains import Domain


def explained(guarantee: Guarantee, domain: Domain) -> str:
    """Explanation of the curve of epsilon by distance, or of a level one."""
    said = [_shown(guarantee, domain)]
    if several(guarantee.relation):
        cap, user = guarantee.relation.max_points_per_person, guarantee.relation.user
        whose = f"{cap} points" if user is None else "points"
        said.append(
            f"This is about a single point. The promise is made to a person, whose {whose} may change together: "
            f"for a person the bound may be larger than the curve. {_claimed(guarantee)}"
        )
    if isinstance(guarantee.relation, AddRemove):
        said.append(
            "A point that is known to be in the data and moves is removed and added: that costs up to twice as much."
        )
    if isinstance(guarantee.relation, AddRemovePerson):
        said.append(
            "Telling apart where a person has been who is known to be in the data costs up to twice as much: that "
            "takes a removal and an addition."
        )
    return " ".join(said)


def caption(guarantee: Guarantee) -> str:
    """Caption of the picture."""
    at = f", at delta {stated(guarantee.profile.at)}" if guarantee.profile.at else ""
    apart = f"Bound on what an attacker can tell apart about {_one(guarantee)}"
    if _in_squares(guarantee):
        return f"{apart}, by distance in squares of the public grid{at}."
    return f"{apart}{at}." if isinstance(guarantee.relation, AddRemovePerson) else f"{apart}, by distance{at}."


def title(guarantee: Guarantee, domain: Domain) -> str:
    """Title of the table."""
    if _in_squares(guarantee):
        return f"Epsilon for {_one(guarantee)} in one square or another, by how far apart these are, rounded up"
    return f"Epsilon for {_one(guarantee)} that moves {way(domain)}, rounded up"


def unit(guarantee: Guarantee, domain: Domain) -> str:
    """Unit of the distances."""
    return "squares" if _in_squares(guarantee) else short_unit(domain.unit)


def alternative(guarantee: Guarantee, domain: Domain) -> str:
    """Text in place of the picture."""
    if isinstance(guarantee.relation, AddRemovePerson):
        return f"Epsilon for {_one(guarantee)}, who is added or removed: one level line."
    start = f"Epsilon for {_one(guarantee)}, by distance"
    if guarantee.by_distance:
        return f"{start}: {stated(guarantee.by_distance[-1][1])} at the far end."
    if silent_beyond(guarantee):
        away = length(guarantee.relation.reach, domain)
        return f"{start}: level up to the privacy radius of {away}, where the curve ends; nothing is promised beyond."
    return f"{start}: the same at all distances."


def _in_squares(guarantee: Guarantee) -> bool:
    return isinstance(guarantee.relation, GeoIndistinguishability)


def _one(guarantee: Guarantee) -> str:
    if local.by_reports(guarantee.relation):
        return "one person"
    if isinstance(guarantee.relation, AddRemovePerson):
        return "one person with all their points"
    return "one single point (not a person)" if several(guarantee.relation) else "one point"


def _claimed(guarantee: Guarantee) -> str:
    within = " within the privacy radius" if math.isfinite(guarantee.relation.reach) else ""
    return f"The epsilon of the claim is a person's{within}."


def _shown(guarantee: Guarantee, domain: Domain) -> str:
    if isinstance(guarantee.relation, GeoIndistinguishability):
        return (
            "What can be told apart about one person, at most, who is in one square of the public grid or in another, "
            f"by how many squares lie from one to the other in a straight line: the smaller epsilon, the less. "
            f"{local.squares(guarantee.relation, domain)}"
        )
    if guarantee.by_distance:
        end = " Nothing is promised beyond the privacy radius; there the curve ends." * silent_beyond(guarantee)
        return (
            f"What can be told apart about one point that moves, at most, by the distance it moves {way(domain)}: the "
            f"smaller epsilon, the less.{end}"
        )
    if silent_beyond(guarantee):
        return "Nothing is promised about one point that moves farther than the privacy radius; the curve ends there."
    what = what_changes(guarantee)
    return f"The bound of this mechanism does not depend on distance, so the curve is level: {what}."
