"""Whom a guarantee is made to and what changes, in the words of pictures, tables and reports."""

from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.pyramids import EVERY_POINT
from dpppsynth.privacy.relations import AddRemove, AddRemovePerson, Relation


def plain_relation(guarantee: Guarantee) -> Relation:
    """The relation to speak of: where every point is taken for a person, points come and go, and not people.

    Examples
    --------
    >>> from dpppsynth.privacy import pyramids
    >>> plain_relation(pyramids.heatmap([2.0**20])), plain_relation(pyramids.heatmap([2.0**20], user="id"))
    (AddRemove(max_points_per_person=1), AddRemovePerson())
    """
    alone = isinstance(guarantee.relation, AddRemovePerson) and EVERY_POINT in guarantee.assumptions
    return AddRemove() if alone else guarantee.relation


def what_changes(guarantee: Guarantee) -> str:
    """What is told apart where a guarantee does not depend on distance."""
    relation = plain_relation(guarantee)
    if isinstance(relation, AddRemovePerson):
        return "one person is added or removed, with all their points"
    return "one point moves, however far" if relation.n_is_public else "one point is added or removed"
