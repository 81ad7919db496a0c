"""Ledgers of points and of persons: how one is opened for a relation, and what one of points says of persons."""

import shlex
from dataclasses import replace

from dpppsynth.core.wording import either
from dpppsynth.privacy.relations import (
    AddRemovePerson,
    AlphaNeighbours,
    CappedRelation,
    MovedPoint,
    Relation,
)

# Two ledgers of the same points would pay twice.
UNRELEASED = "as long as nothing was released from these points"


def opened(relation: CappedRelation | AddRemovePerson, epsilon: float, delta: float) -> str:
    """The call, or the command, that opens a ledger under a relation.

    Examples
    --------
    >>> opened(AddRemovePerson("id"), 2.0, 1e-05)
    "Ledger.create(..., epsilon=2, delta=1e-05, relation=AddRemovePerson(user='id'))"
    """
    python = f"Ledger.create(..., epsilon={epsilon:g}, delta={delta:g}, relation={relation!r})"
    words = ["dpppsynth", "ledger", "init", "NEW.json", "--epsilon", f"{epsilon:g}", "--delta", f"{delta:g}"]
    if isinstance(relation, AlphaNeighbours):
        words += ["--alpha", f"{relation.alpha:g}"]
    else:
        words += ["--relation", relation.name]
    if relation.user is not None:
        words += ["--user", relation.user]
    if isinstance(relation, CappedRelation) and (relation.user is not None or relation.max_points_per_person > 1):
        words += ["--max-points-per-person", str(relation.max_points_per_person)]
    return either(python, f"`{shlex.join(words)}`")


def persons_unprotected(given: Relation, ledger: Relation, epsilon: float, delta: float) -> str | None:
    """Warning that a ledger of points does not promise persons what a release does; None where it does, or refuses.

    Numbers of points of which so many of each person count are the same in neighbouring patterns only where every point
    keeps its person (docs/theory/composition.md, section 1).

    Parameters
    ----------
    given : Relation
        Of the release.
    ledger : Relation
        Of the budget, `epsilon` at `delta`.
    """
    user = getattr(given, "user", None)
    if user is None or not isinstance(ledger, MovedPoint) or ledger.user is not None or not given.covers(ledger):
        return None
    cap = given.max_points_per_person if isinstance(given, CappedRelation) else 1
    own = replace(ledger, user=user, max_points_per_person=cap)
    return (
        f"ledger: it protects points, not persons: of this release and others together it promises nothing to a person "
        f"with several points ({user} is not protected). To protect persons, open another one, {UNRELEASED}: "
        f"{opened(own, epsilon, delta)}."
    )


def another_ledger(given: Relation, epsilon: float, delta: float) -> str:
    """Remedy that opens a ledger for what a release protects, as the end of a sentence; "" where none is promised."""
    if not isinstance(given, CappedRelation | AddRemovePerson):
        return ""
    return f", or, {UNRELEASED}, open another ledger: {opened(given, epsilon, delta)}"
