"""The state of a ledger replayed from its events: the budget, and the releases with their spending.

`next_entry` is the one rule for what an event does, when it is written as well as when it is read.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from dpppsynth.contract.stratified_plan import STRATA
from dpppsynth.core.arguments import instance
from dpppsynth.core.errors import InformationWarning, InputError, outside
from dpppsynth.core.wording import either
from dpppsynth.ledger.authorisation import require_proof
from dpppsynth.ledger.budget import Budget, budget_from_dict, nowhere_worse
from dpppsynth.ledger.counted_points import CountedPoints, contradiction, counted_points, described
from dpppsynth.ledger.document import AUTHORISED, GIVEN_UP, MEASURED, SETTLED, Event, damaged, identify
from dpppsynth.privacy.guarantee import Guarantee, guarantee_from_dict
from dpppsynth.privacy.profiles import Profile
from dpppsynth.spatial.domains import Domain, canonical_json

Place = Mapping[str, str | None]
ACROSS = "moves of a point across the border of one of the domains are not protected"
SUBSET = "subset={'year': 2021}"
# Share by which a total that once fitted may exceed the budget when another version of the package computes it.
DRIFT = 1e-3


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One release, as a ledger knows it.

    Attributes
    ----------
    id : str
        SHA-256 of its authorisation.
    at : str
        When it was authorised, such as "2025-01-31T12:00:00Z".
    mechanism : str
        Mechanism of the plan, or the one asked for as long as no plan was settled.
    guarantee : Guarantee
        Guarantee by which it counts: that authorised, until a certificate has proved what was paid for.
    domain : mapping
        Fingerprint, CRS and unit of the window or network.
    claim : str
        Hash that identifies the holder of the authorisation.
    points : CountedPoints or None
        Points that are read, and their public number; None where it is secret.
    taken : bool
        Whether a release has taken it up; no other one can.
    settlement : Guarantee or None
        Guarantee stated by the release that took it up.
    state : str
        "authorised", or "measured" once there was something to publish. Either way it is spent.
    kept : str or None
        Folder into which what was measured was written before it was recorded.
    certificate, paid : str or None
        Hash of what its certificate states; and without the estimator, which inferring again may change.
    """

    id: str
    at: str
    mechanism: str
    guarantee: Guarantee
    domain: Place = field(repr=False)
    claim: str = field(repr=False)
    points: CountedPoints | None = None
    taken: bool = False
    settlement: Guarantee | None = field(default=None, repr=False)
    state: str = AUTHORISED
    kept: str | None = field(default=None, repr=False)
    certificate: str | None = None
    paid: str | None = field(default=None, repr=False)

    @property
    def n(self) -> int | None:
        """Public number of points, where it is known."""
        return None if self.points is None else self.points.n


@dataclass(frozen=True)
class History:
    """All events of a ledger with their hashes, and what follows: entries by id, in the order of authorisations."""

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
        """Privacy profiles by which the releases count."""
        return tuple(entry.guarantee.profile for entry in self.entries.values())

    @property
    def spent(self) -> float:
        """Epsilon of all of them at the budget's delta."""
        return self.budget.spent(self.profiles)

    def admit(self, event: Event) -> None:
        """Refuse an event that cannot come next, or a release without room; warn of one in another domain."""
        entry = next_entry(self.budget, self.entries, event, "")
        if event["kind"] != AUTHORISED:
            return
        self.budget.require_room(self.profiles, entry.guarantee.profile)
        places = {each.domain["fingerprint"] for each in self.entries.values()}
        if self.budget.relation.n_is_public and places and entry.domain["fingerprint"] not in places:
            msg = f"ledger: this release is the first in another domain; from now on {ACROSS}."
            warnings.warn(msg, InformationWarning, stacklevel=outside())


def replay(events: Sequence[Event], path: Path) -> History:
    """History of the events of a file; PrivacyCheckError where they contradict each other or exceed the budget."""
    heads = tuple(map(identify, events))
    try:
        budget = budget_from_dict(events[0])
        entries: dict[str, Entry] = {}
        ceilings: dict[str, Profile] = {}
        stages: list[tuple[Profile, ...]] = [()]
        for head, event in zip(heads[1:], events[1:], strict=True):
            entry = next_entry(budget, entries, event, head)
            ceilings.setdefault(entry.id, entry.guarantee.profile)
            entries[entry.id] = entry
            stages.append(tuple(each.guarantee.profile for each in entries.values()))
        _require_within(budget, tuple(ceilings.values()), stages)
    except (InputError, ArithmeticError, ValueError, RecursionError) as err:
        raise damaged(path, str(err).rstrip(".") if isinstance(err, InputError) else type(err).__name__) from None
    return History(tuple(events), frozenset(heads), budget, entries)


def _require_within(budget: Budget, ceilings: tuple[Profile, ...], stages: list[tuple[Profile, ...]]) -> None:
    """Check that the budget sufficed at every stage; stages before a smaller total are the only ones to look at."""
    if ceilings and budget.holds(budget.spent(ceilings), DRIFT):
        return
    peaks = [before for before, after in pairwise(stages) if len(after) == len(before) and after != before]
    for profiles in (*peaks, stages[-1]):
        if not budget.holds(budget.spent(profiles), DRIFT):
            msg = f"its releases spend {budget.spent(profiles):.6g}, more than the budget of {budget.epsilon:g}."
            raise InputError(msg)


def place_of(domain: Any) -> Place:
    """Identity of a domain: fingerprint, coordinate system and unit."""
    instance("domain", domain, Domain, "the window or network of the release")
    return {"fingerprint": domain.fingerprint(), "crs": domain.crs, "unit": domain.unit}


def next_entry(budget: Budget, entries: Mapping[str, Entry], event: Event, head: str) -> Entry:
    """The entry as it is after an event of hash `head`; InputError where the event cannot come next."""
    kind = event["kind"]
    if kind == AUTHORISED:
        return _authorised(budget, entries, event, head)
    entry = find_entry(entries, event["entry"])
    require_open(entry, kind)
    require_proof(event["proof"], kind, entry.claim)
    if kind == GIVEN_UP:
        points = None if entry.points is None else entry.points.without_numbers()
        return replace(entry, points=points, settlement=entry.guarantee, taken=True)
    entry = _settled(budget, entry, event) if kind == SETTLED else _measured(entry, event)
    points = _points(budget, event)
    if entry.points is not None and points is not None:
        _require_same_points(entry.points, points)
        _require_numbers(points, entry.mechanism, levels=True)
        _require_possible([each for each in entries.values() if each.id != entry.id], entry.domain, points)
    return replace(entry, points=points)


def _authorised(budget: Budget, entries: Mapping[str, Entry], event: Event, head: str) -> Entry:
    guarantee, points, place = counted(event["guarantee"]), _points(budget, event), event["domain"]
    budget.require(guarantee)
    elsewhere = any(each.domain["fingerprint"] != place["fingerprint"] for each in entries.values())
    if elsewhere and budget.relation.reach < float("inf"):
        msg = (
            "domain: the ledger's first release fixed another one, inside which its privacy radius is measured; "
            "release in that domain, or keep data of several domains under a ledger whose relation is replace-one. "
            f"There {ACROSS}."
        )
        raise InputError(msg)
    if points is not None:
        if event["taken"]:
            _require_numbers(points, event["mechanism"], levels=False)
        _require_possible(entries.values(), place, points)
    known = {name: event[name] for name in ("at", "mechanism", "domain", "claim", "taken")}
    return Entry(id=head, guarantee=guarantee, points=points, **known)


def _settled(budget: Budget, entry: Entry, event: Event) -> Entry:
    actual = counted(event["guarantee"])
    budget.require(actual)
    if not nowhere_worse(actual.profile, entry.guarantee.profile):
        msg = (
            "guarantee: the release would spend more than was authorised for it, or another kind of budget; authorise "
            "its own guarantee."
        )
        raise InputError(msg)
    # Until it is proved it counts as all that was authorised, on the assumptions of both.
    assumptions = tuple(dict.fromkeys((*actual.assumptions, *entry.guarantee.assumptions)))
    counts = replace(actual, profile=entry.guarantee.profile, assumptions=assumptions)
    return replace(entry, mechanism=event["mechanism"], guarantee=counts, settlement=actual, taken=True)


def _measured(entry: Entry, event: Event) -> Entry:
    counts = entry.settlement if event["counts"] == SETTLED else entry.guarantee
    if counts is None:
        msg = "entry: a release counts as what was never settled."
        raise InputError(msg)
    known = {name: event[name] for name in ("certificate", "paid", "kept")}
    return replace(entry, state=MEASURED, taken=True, guarantee=counts, **known)


def find_entry(entries: Mapping[str, Entry], name: Any) -> Entry:
    """An entry by its name; InputError where there is none."""
    if not isinstance(name, str) or name not in entries:
        msg = f"entry: this ledger has authorised nothing of the name {name!r}; ledger.authorise returns one."
        raise InputError(msg)
    return entries[name]


def require_open(entry: Entry, kind: str) -> None:
    """Refuse to use one authorisation for two releases."""
    if entry.state == MEASURED or (kind != MEASURED and entry.settlement is not None):
        done = "recorded" if entry.state == MEASURED else "taken up by a release"
        msg = f"entry: it was {done} before, and an authorisation covers one release; authorise another."
        raise InputError(msg)


def _points(budget: Budget, event: Event) -> CountedPoints | None:
    points = event["points"]
    if (points is None) == budget.relation.n_is_public:
        msg = "n: it is kept exactly where it is public."
        raise InputError(msg)
    return None if points is None else counted_points(budget.relation, **points)


def _require_same_points(before: CountedPoints, points: CountedPoints) -> None:
    """Refuse to take an authorisation up for other points than it was given for."""
    which = before.difference(points)
    if which is not None:
        here, there = described(before.subset), described(points.subset)
        what = f"{here} were authorised, not {there}" if which == "subset" else "other numbers were authorised"
        msg = f"{which}: {what}; authorise the release of these points."
        raise InputError(msg)


def _require_numbers(points: CountedPoints, mechanism: str, *, levels: bool) -> None:
    """Refuse to take an authorisation up without the public numbers that bind later ones, `levels` included."""
    lacks_n, by_level = points.n is None, mechanism == STRATA
    if lacks_n or (by_level and (points.by is None or (levels and not points.complete))):
        missing = "n: it is" if lacks_n else "levels: their numbers are"
        msg = (
            f"{missing} public under the ledger's relation, and later releases are held to that; state what is read, "
            "or take the authorisation up for nothing: ledger.give_up(entry)."
        )
        raise InputError(msg)


def _require_possible(entries: Iterable[Entry], domain: Place, points: CountedPoints) -> None:
    """Refuse public numbers of points that contradict those of releases taken up before.

    An authorisation that nobody took up was never held against any points, nor levels that were not counted.
    """
    for entry in entries:
        before = entry.points
        here = entry.taken and entry.domain["fingerprint"] == domain["fingerprint"]
        if not here or before is None or before.n is None:
            continue
        found = contradiction(points, before if before.complete else replace(before, by=None, levels=()))
        if found is not None:
            msg = (
                f"n: earlier releases of {found}. "
                "It is public, and moving one point would change it. Release all of these points; or, where they are "
                "those of one value of a mark that neighbouring patterns share, name it, such as "
                f"{either(SUBSET, '--subset year=2021')}."
            )
            raise InputError(msg)


def stored(guarantee: Guarantee) -> dict[str, Any]:
    """JSON form of a guarantee in the file; InputError for one that would not be read back as it is."""
    whole = guarantee.to_dict()
    kept: dict[str, Any] = {name: whole[name] for name in ("relation", "profile", "theorem", "assumes")}
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
