"""The joint guarantee of all releases of a ledger: relation, delta and assumptions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dpppsynth.ledger.budget import Budget
from dpppsynth.ledger.history import ACROSS, Entry
from dpppsynth.privacy.bounds import ONE_RELEASE
from dpppsynth.privacy.catalogue import ONE_REPORT, TWO_ROUNDS, Statement
from dpppsynth.privacy.composition import FIXED_BEFOREHAND
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import MovedPoint, Relation

COMPLETE = "complete-ledger"
SAME_POINTS = "same-points"
POINTWISE, POINTWISE_PERSON = "same-points-or-rule", "same-points-or-rule-of-person"
# Assumptions about one release that do not carry over to another one.
EACH = frozenset({ONE_REPORT, TWO_ROUNDS})
EVERYWHERE = f"they are so, or are the same, in each of the domains of the releases ({ACROSS})"


@dataclass(frozen=True)
class Narrowed(Relation):
    """The budget's relation restricted to pairs of patterns with further shared properties."""

    of: Relation
    limits: tuple[str, ...]
    name: ClassVar[str] = "narrowed"

    @property
    def unit(self) -> str:
        return self.of.unit

    @property
    def reach(self) -> float:
        return self.of.reach

    def describe(self) -> str:
        return ", and ".join((self.of.describe(), *self.limits))

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "of": self.of.to_dict(), "limits": list(self.limits)}


def together(budget: Budget, entries: Sequence[Entry]) -> Guarantee | None:
    """Guarantee of several releases from the same points; None without any."""
    profiles = [entry.guarantee.profile for entry in entries]
    total = budget.total(profiles)
    if total is None:
        return None
    said = [code for entry in entries for code in entry.guarantee.assumptions]
    own = [code for code in said if code != ONE_RELEASE]
    if len(entries) > 1:
        own = [Statement("each-release", of=code) if code in EACH else code for code in own]
    # Not by the kinds released so far: that no other kind was may itself depend on what was published.
    fixed = [] if budget.adaptive or budget.delta == 0 else [FIXED_BEFOREHAND]
    same = [_same_points(budget.relation)] if len(entries) > 1 else []
    how = "privacy-filter" if budget.adaptive else "sequential-composition"
    theorem = Statement(how, of=tuple(entry.guarantee.theorem for entry in entries))
    return Guarantee(narrowed(budget, entries), total, theorem, tuple(dict.fromkeys([*own, *fixed, *same, COMPLETE])))


def _same_points(relation: Relation) -> str:
    """Assumption about the points that several releases read."""
    if relation.n_is_public:
        return SAME_POINTS
    return POINTWISE if relation.unit == "point" else POINTWISE_PERSON


def narrowed(budget: Budget, entries: Sequence[Entry]) -> Relation:
    """The neighbouring relation that holds for all releases together."""
    limits = []
    if not budget.relation.n_is_public:
        # A point that comes or goes does so, or nothing happens, in every part of the pattern.
        return budget.relation
    if len({entry.domain["fingerprint"] for entry in entries}) > 1:
        limits.append(EVERYWHERE)
    unnamed = _unnamed_marks(budget.relation, entries)
    if unnamed:
        limits.append(f"every point keeps its {' and its '.join(unnamed)}, of which the ledger's relation says nothing")
    marks = sorted({mark for entry in entries for mark in _shared(budget.relation, entry)})
    if marks:
        are = "which is" if len(marks) == 1 else "which are"
        limits.append(f"every point keeps its {' and its '.join(marks)} ({are} not protected)")
    return Narrowed(budget.relation, tuple(limits)) if limits else budget.relation


def _unnamed_marks(relation: Relation, entries: Sequence[Entry]) -> list[str]:
    """Times and types that releases read and the ledger's relation does not mention."""
    of = [entry.guarantee.relation for entry in entries if isinstance(entry.guarantee.relation, MovedPoint)]
    words = {"time": "time", "types": "type"}
    return [
        word
        for name, word in words.items()
        if getattr(relation, name) is None and any(getattr(each, name) is not None for each in of)
    ]


def _shared(relation: Relation, entry: Entry) -> frozenset[str]:
    """Marks that neighbouring patterns must have in common for the public numbers of a release to be the same.

    The mark that tells persons is none of them where the budget's own relation tells persons by it.
    """
    points = entry.points
    if points is None:
        return frozenset()
    if points.count_unit is None:
        return points.marks
    persons = getattr(entry.guarantee.relation, "user", None) or points.count_unit
    own = persons == getattr(relation, "user", None)
    return points.marks - {points.count_unit} | (frozenset() if own else {persons})
