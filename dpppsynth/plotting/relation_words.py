"""Neighbouring relations in words, for pictures, tables and reports."""

from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import TRAJECTORY, AddRemovePerson, GeoIndistinguishability, Local, MovedPoint


def what_changes(guarantee: Guarantee) -> str:
    """Description of the change that neighbours differ by, where a guarantee does not depend on distance."""
    relation = guarantee.relation
    if isinstance(relation, AddRemovePerson):
        return "one person is added or removed, with all their points"
    if relation == Local(TRAJECTORY):
        return "one person has another trajectory, of any length"
    if isinstance(relation, Local | GeoIndistinguishability):
        return "one person is somewhere else, however far away"
    return "one point moves, however far" if relation.n_is_public else "one point is added or removed"


def distance_moved(guarantee: Guarantee, unit: str, along: str | None) -> str:
    """Description of a guarantee's distances, with their unit."""
    if isinstance(guarantee.relation, GeoIndistinguishability):
        return "distance between two places (squares of the public grid)"
    kept = ", its marks kept" if keeps_marks(guarantee) else ""
    return f"distance one point moves{'' if along is None else f' along {along}'}{kept} ({unit})"


def keeps_marks(guarantee: Guarantee) -> bool:
    """Whether distances are about a point that keeps its marks, which neighbours need not."""
    return isinstance(guarantee.relation, MovedPoint) and guarantee.relation.has_marks


def changed_marks(guarantee: Guarantee) -> str:
    """Marks that change with a point between neighbours, in words; empty where none does."""
    if not isinstance(guarantee.relation, MovedPoint):
        return ""
    reach = zip(("time", "type"), guarantee.relation.marks_reach, strict=True)
    return " and ".join(word for word, far in reach if far)
