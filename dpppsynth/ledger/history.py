"""What the events of a ledger amount to: the budget, and the releases with what each may have spent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from dpppsynth.domains import canonical_json
from dpppsynth.errors import InputError
from dpppsynth.ledger.budget import Budget, budget_from_dict
from dpppsynth.ledger.document import Event, damaged, identify
from dpppsynth.ledger.dominance import nowhere_worse
from dpppsynth.privacy.guarantee import Guarantee, guarantee_from_dict
from dpppsynth.privacy.profiles import Profile

AUTHORISED, SETTLED, RELEASED = "authorised", "settled", "released"
# Share by which a total that once fitted may exceed the budget when another version of the package computes it.
DRIFT = 1e-3


@dataclass(frozen=True)
class Entry:
    """One release, as a ledger knows it.

    Attributes
    ----------
    id : str
        SHA-256 of its authorisation.
    at : str
        When it was authorised, such as "2025-01-31T12:00:00Z".
    mechanism : str
        What runs, or what was asked for as long as no plan was settled.
    guarantee : Guarantee
        What it counts as.
    state : str
        "authorised", or "released" once there was something to publish. Either way it is spent.
    certificate : str or None
        Hash of what its certificate states.
    domain : mapping
        Fingerprint, CRS and unit of the window or network.
    taken : bool
        Whether a release has taken it up; no other one can.
    settled : bool
        Whether what it counts as is final.
    """

    id: str
    at: str
    mechanism: str
    guarantee: Guarantee
    state: str
    certificate: str | None
    domain: Mapping[str, str | None] = field(repr=False)
    taken: bool = False
    settled: bool = False


@dataclass(frozen=True)
class History:
    """All events of a ledger, and what follows from them.

    Attributes
    ----------
    events : tuple of mappings
    heads : frozenset of str
        Hash of every event.
    budget : Budget
    entries : dict of Entry
        By id, in the order of their authorisations.
    """

    events: tuple[Event, ...]
    heads: frozenset[str]
    budget: Budget
    entries: dict[str, Entry]

    @property
    def head(self) -> str:
        """Hash of the last event."""
        return identify(self.events[-1])

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """What the releases count as."""
        return tuple(entry.guarantee.profile for entry in self.entries.values())

    @property
    def spent(self) -> float:
        """Epsilon of all of them at the budget's delta."""
        return self.budget.spent(self.profiles)

    def admits(self, guarantee: Guarantee, domain: Mapping[str, str | None]) -> None:
        """Raise where a release is not covered by the budget's relation, lies elsewhere, or does not fit."""
        self.budget.require(guarantee)
        first = next(iter(self.entries.values()), None)
        pinned = first is not None and self.budget.relation.reach < float("inf")
        if pinned and first is not None and domain["fingerprint"] != first.domain["fingerprint"]:
            msg = (
                "domain: the ledger's first release fixed another one, inside which its privacy radius is measured; "
                "release in that domain, or keep data of several domains under a ledger whose relation is replace-one."
            )
            raise InputError(msg)
        self.budget.require_room(self.profiles, guarantee.profile)


def replay(events: Sequence[Event], path: Path) -> History:
    """Go through the events of a file.

    Raises
    ------
    PrivacyCheckError
        When they contradict each other, or spend more than the budget.
    """
    heads = tuple(map(identify, events))
    try:
        budget = budget_from_dict(events[0])
        entries: dict[str, Entry] = {}
        ceilings: dict[str, Profile] = {}
        stages: list[tuple[Profile, ...]] = [()]
        for head, event in zip(heads[1:], events[1:], strict=True):
            entry = _next(entries, budget, event, head)
            ceilings.setdefault(entry.id, entry.guarantee.profile)
            entries[entry.id] = entry
            stages.append(tuple(each.guarantee.profile for each in entries.values()))
        _require_within(budget, tuple(ceilings.values()), stages)
    except (InputError, ArithmeticError, ValueError, RecursionError) as err:
        raise damaged(path, str(err).rstrip(".") if isinstance(err, InputError) else type(err).__name__) from None
    return History(tuple(events), frozenset(heads), budget, entries)


def _next(entries: Mapping[str, Entry], budget: Budget, event: Event, head: str) -> Entry:
    """The entry as it is after an event."""
    if event["kind"] == AUTHORISED:
        guarantee = counted(event["guarantee"])
        budget.require(guarantee)
        words = event["mechanism"], guarantee, AUTHORISED, None, event["domain"]
        return Entry(head, event["at"], *words, taken=event["taken"])
    entry = entries.get(event["entry"])
    if entry is None:
        msg = f"entry: a release is {event['kind']} that was never authorised."
        raise InputError(msg)
    require_open(entry, event["kind"])
    if event["kind"] == RELEASED:
        return replace(entry, state=RELEASED, taken=True, certificate=event["certificate"])
    actual = counted(event["guarantee"])
    budget.require(actual)
    require_covered(actual, entry.guarantee)
    return replace(entry, mechanism=event["mechanism"], guarantee=actual, taken=True, settled=True)


def require_open(entry: Entry, kind: str, *, taken: bool = True) -> None:
    """Refuse to use one authorisation for two releases; `taken`: by the one that took it up when it was given."""
    settled = kind == SETTLED and (entry.settled or (entry.taken and not taken))
    if entry.state == RELEASED or settled:
        done = "recorded as released" if entry.state == RELEASED else "taken up by a release"
        msg = f"entry: it was {done} before, and an authorisation covers one release; authorise another."
        raise InputError(msg)


def require_covered(actual: Guarantee, authorised: Guarantee) -> None:
    """Refuse a release that spends more, at any epsilon, than was authorised for it."""
    if not nowhere_worse(actual.profile, authorised.profile):
        msg = (
            "guarantee: the release would spend more than was authorised for it, or another kind of budget; authorise "
            "its own guarantee."
        )
        raise InputError(msg)


def stored(guarantee: Guarantee) -> dict[str, Any]:
    """What the file holds of a guarantee; InputError for one that would not be read back as it is."""
    whole = guarantee.to_dict()
    kept: dict[str, Any] = {name: whole[name] for name in ("relation", "profile", "theorem", "assumptions")}
    try:
        canonical_json(kept)
        same = counted(kept).profile == guarantee.profile
    except (ValueError, TypeError):
        same = False
    if not same:
        msg = (
            f"guarantee: a ledger cannot account for a {type(guarantee.profile).__name__} that is quoted at delta "
            f"{guarantee.profile.at:g}, where its epsilon may be infinite."
        )
        raise InputError(msg)
    return kept


def counted(data: Mapping[str, Any]) -> Guarantee:
    """The guarantee that a file holds."""
    return guarantee_from_dict({**data, "by_distance": ()})


def _require_within(budget: Budget, ceilings: tuple[Profile, ...], stages: list[tuple[Profile, ...]]) -> None:
    """Whether the budget sufficed at every stage: it is enough to look where a stage is followed by a smaller one."""
    if ceilings and budget.holds(budget.spent(ceilings), DRIFT):
        return
    peaks = [before for before, after in pairwise(stages) if len(after) == len(before) and after != before]
    for profiles in (*peaks, stages[-1]):
        if not budget.holds(budget.spent(profiles), DRIFT):
            msg = f"its releases spend {budget.spent(profiles):.6g}, more than the budget of {budget.epsilon:g}."
            raise InputError(msg)
