"""The joint guarantee of all releases of a ledger: relation, delta and assumptions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dpppsynth.ledger.budget import Budget
from dpppsynth.ledger.history import ACROSS, Entry
from dpppsynth.privacy.bounds import ONE_RELEASE
from dpppsynth.privacy.catalogue import ONE_REPORT, TWO_ROUNDS, Statement
from dpppsynth.privacy.composition import FIXED_BEFOREHAND, STRATA
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import MovedPoint, Relation
from dpppsynth.release.certificate import large_delta

COMPLETE = "complete-ledger"
SAME_POINTS = "same-points"
POINTWISE, POINTWISE_PERSON = "same-points-or-rule", "same-points-or-rule-of-person"
# Assumptions about one release that do not carry over to another one.
EACH = frozenset({ONE_REPORT, TWO_ROUNDS})
EVERYWHERE = f"they are so, or are the same, in each of the domains of the releases ({ACROSS})"


@dataclass(frozen=True)
class Narrowed(Relation):
    """A relation that several releases keep for fewer pairs of patterns than each of them alone.

    Attributes
    ----------
    of : Relation
        That of the budget.
    limits : tuple of str
        Further properties that neighbouring patterns share.
    """

    of: Relation
    limits: tuple[str, ...]
    name: ClassVar[str] = "narrowed"

    @property
    def unit(self) -> str:
        """Unit of privacy of the relation."""
        return self.of.unit

    @property
    def reach(self) -> float:
        """Reach of the relation."""
        return self.of.reach

    def describe(self) -> str:
        """The relation in words, what it leaves open included."""
        return ", and ".join((self.of.describe(), *self.limits))

    def to_dict(self) -> dict[str, Any]:
        """JSON form, which no certificate has."""
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
    assumed = tuple(dict.fromkeys([*own, *fixed, *_points(budget, entries), COMPLETE]))
    return Guarantee(narrowed(budget, entries), total, _theorem(budget, entries), assumed)


def narrowed(budget: Budget, entries: Sequence[Entry]) -> Relation:
    """The neighbouring relation that holds for all releases together."""
    limits = []
    if not budget.relation.n_is_public:
        # A point that comes or goes does so, or nothing happens, in every part of the pattern.
        return budget.relation
    if len({entry.domain["fingerprint"] for entry in entries}) > 1:
        limits.append(EVERYWHERE)
    told = _told_alone(budget.relation, entries)
    if told:
        limits.append(f"every point keeps its {' and its '.join(told)}, of which the ledger's relation says nothing")
    marks = sorted({mark for entry in entries for mark in _shared(entry)})
    if marks:
        limits.append(f"every point keeps its {' and its '.join(marks)} ({_which(marks)} not protected)")
    return Narrowed(budget.relation, tuple(limits)) if limits else budget.relation


def _told_alone(relation: Relation, entries: Sequence[Entry]) -> list[str]:
    """Times and types that releases read, and the ledger's relation says nothing of."""
    if not isinstance(relation, MovedPoint):
        return []
    of = [entry.guarantee.relation for entry in entries if isinstance(entry.guarantee.relation, MovedPoint)]
    words = {"time": "time", "types": "type"}
    return [
        word
        for name, word in words.items()
        if getattr(relation, name) is None and any(getattr(each, name) is not None for each in of)
    ]


def _shared(entry: Entry) -> set[str]:
    """Marks that neighbouring patterns of a release have in common, those whose levels it is made of included."""
    if entry.reading is not None:
        # Persons that a relation tells by a mark are in its own words.
        own = {entry.reading.count_unit} if getattr(entry.guarantee.relation, "user", None) else set()
        return {*entry.reading.marks} - own
    stated = [each for each in entry.guarantee.assumptions if isinstance(each, Statement) and each.code == STRATA]
    return {dict(each.parameters)["by"] for each in stated}


def void(budget: Budget, entries: Sequence[Entry]) -> str | None:
    """Reason why a budget's delta promises nothing, as far as the number of points is known."""
    known = max((entry.n or 0 for entry in entries), default=0)
    return large_delta(budget.delta, [(known if budget.relation.n_is_public else None, None)])


def _which(marks: Sequence[str]) -> str:
    return "which is" if len(marks) == 1 else "which are"


def _points(budget: Budget, entries: Sequence[Entry]) -> list[str]:
    """Assumption about the points that the releases read."""
    if len(entries) == 1:
        return []
    if not budget.relation.n_is_public:
        return [POINTWISE if budget.relation.unit == "point" else POINTWISE_PERSON]
    return [SAME_POINTS]


def _theorem(budget: Budget, entries: Sequence[Entry]) -> Statement:
    how = "privacy-filter" if budget.adaptive else "sequential-composition"
    return Statement(how, of=tuple(entry.guarantee.theorem for entry in entries))
