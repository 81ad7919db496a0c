"""Whom a guarantee is made to and what changes, in the words of pictures, tables and reports."""

from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import AddRemovePerson


def what_changes(guarantee: Guarantee) -> str:
    """What is told apart where a guarantee does not depend on distance."""
    relation = guarantee.relation
    if isinstance(relation, AddRemovePerson):
        return "one person is added or removed, with all their points"
    return "one point moves, however far" if relation.n_is_public else "one point is added or removed"
