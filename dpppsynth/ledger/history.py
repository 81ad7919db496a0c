"""The state of a ledger replayed from its events: the budget, and the releases with their spending."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from dpppsynth.contract.stratified_plan import STRATA
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import either
from dpppsynth.ledger.authorisation import token_hash
from dpppsynth.ledger.budget import Budget, budget_from_dict, nowhere_worse
from dpppsynth.ledger.counted_points import Reading, contradiction, reading_from_dict
from dpppsynth.ledger.document import Event, damaged, identify, version_of
from dpppsynth.privacy.guarantee import Guarantee, guarantee_from_dict
from dpppsynth.privacy.profiles import Profile
from dpppsynth.spatial.domains import canonical_json

AUTHORISED, SETTLED, RELEASED = "authorised", "settled", "released"
Place = Mapping[str, str | None]
ACROSS = "moves of a point across the border of one of the domains are not protected"
SUBSET = "subset={'year': 2021}"
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
        Mechanism of the plan, or the one asked for as long as no plan was settled.
    guarantee : Guarantee
        Guarantee by which it counts: that authorised, until a certificate has proved what was bought.
    state : str
        "authorised", or "released" once there was something to publish. Either way it is spent.
    certificate : str or None
        Hash of what its certificate states; where `bought` is None, an older version's, which leaves out the estimator.
    domain : mapping
        Fingerprint, CRS and unit of the window or network.
    taken : bool
        Whether a release has taken it up; no other one can.
    settlement : Guarantee or None
        Guarantee stated by the release that took it up.
    bought : str or None
        Hash of what its certificate states but for the estimator, which inferring again may change.
    reading : Reading or None
        Points that are read, and their public number; None where it is secret, or an older version kept none.
    claim : str or None
        Hash that identifies the holder of the authorisation; None in events of older versions.
    """

    id: str
    at: str
    mechanism: str
    guarantee: Guarantee
    state: str
    certificate: str | None
    domain: Mapping[str, str | None] = field(repr=False)
    taken: bool = False
    settlement: Guarantee | None = field(default=None, repr=False)
    bought: str | None = field(default=None, repr=False)
    reading: Reading | None = None
    claim: str | None = field(default=None, repr=False)

    @property
    def settled(self) -> bool:
        """Whether its spending was settled by the release that took it up."""
        return self.settlement is not None

    @property
    def n(self) -> int | None:
        """Public number of points, where it is known."""
        return None if self.reading is None else self.reading.n


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
        """Privacy profiles by which the releases count."""
        return tuple(entry.guarantee.profile for entry in self.entries.values())

    @property
    def spent(self) -> float:
        """Epsilon of all of them at the budget's delta."""
        return self.budget.spent(self.profiles)

    def admits(self, guarantee: Guarantee, domain: Place, reading: Reading | None) -> None:
        """Raise where a release lies elsewhere, reads other points, or does not fit."""
        first = next(iter(self.entries.values()), None)
        pinned = first is not None and self.budget.relation.reach < float("inf")
        if pinned and first is not None and domain["fingerprint"] != first.domain["fingerprint"]:
            msg = (
                "domain: the ledger's first release fixed another one, inside which its privacy radius is measured; "
                "release in that domain, or keep data of several domains under a ledger whose relation is replace-one. "
                f"There {ACROSS}."
            )
            raise InputError(msg)
        require_same_numbers(self.entries.values(), domain, reading)
        self.budget.require_room(self.profiles, guarantee.profile)

    def opens(self, domain: Place) -> bool:
        """Whether a release in a domain is the first there, and not the first of all."""
        known = {entry.domain["fingerprint"] for entry in self.entries.values()}
        return bool(known) and domain["fingerprint"] not in known


def require_same_numbers(entries: Iterable[Entry], domain: Place, reading: Reading | None) -> None:
    """Refuse public numbers of points that contradict those of releases taken up before.

    An authorisation that nobody took up was never held against any points, nor levels that were not counted.
    """
    if reading is None:
        return
    for entry in entries:
        before = entry.reading
        here = entry.taken and entry.domain["fingerprint"] == domain["fingerprint"]
        if not here or before is None or before.n is None:
            continue
        found = contradiction(reading, before if before.complete else replace(before, by=None, levels=()))
        if found is not None:
            msg = (
                f"n: earlier releases of {found}. "
                "It is public, and moving one point would change it. Release all of these points; or, where they are "
                "those of one value of a mark that neighbouring patterns share, name it, such as "
                f"{either(SUBSET, '--subset year=2021')}."
            )
            raise InputError(msg)


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
        return _authorised(entries, budget, event, head)
    entry = entries.get(event["entry"])
    if entry is None:
        msg = f"entry: a release is {event['kind']} that was never authorised."
        raise InputError(msg)
    require_open(entry, event["kind"])
    if version_of(event) > 1:
        entry = _proved(entries, budget, entry, event)
    return _settled(budget, entry, event) if event["kind"] == SETTLED else _released(entry, event)


def _authorised(entries: Mapping[str, Entry], budget: Budget, event: Event, head: str) -> Entry:
    guarantee = counted(event["guarantee"])
    budget.require(guarantee)
    words = event["mechanism"], guarantee, AUTHORISED, None, event["domain"]
    reads = _reads(budget, event) if version_of(event) > 1 else None
    if event["taken"]:
        require_stated(reads, event["mechanism"])
    require_same_numbers(entries.values(), event["domain"], reads)
    return Entry(head, event["at"], *words, taken=event["taken"], reading=reads, claim=event.get("claim"))


def _proved(entries: Mapping[str, Entry], budget: Budget, entry: Entry, event: Event) -> Entry:
    """The entry with what is known of its points, after a look at who says so."""
    shown = token_hash(event["proof"]) if event["kind"] == RELEASED else event["proof"]
    if entry.claim is None or token_hash(shown) != entry.claim:
        msg = f"entry: a release is {event['kind']} by somebody who was not given its authorisation."
        raise InputError(msg)
    reads = _reads(budget, event)
    require_same_reading(entry, reads)
    if event["kind"] == SETTLED and _given_up(entry, event, reads):
        return replace(entry, reading=reads)
    require_stated(reads, event.get("mechanism", entry.mechanism), levels=True)
    require_same_numbers((each for each in entries.values() if each.id != entry.id), entry.domain, reads)
    return replace(entry, reading=reads)


def _given_up(entry: Entry, event: Event, reads: Reading | None) -> bool:
    """Whether an authorisation was settled unchanged and without numbers of points, as an abandoned one is."""
    same = event["mechanism"] == entry.mechanism and counted(event["guarantee"]) == entry.guarantee
    return same and reads is not None and reads == reads.without_numbers()


def _reads(budget: Budget, event: Event) -> Reading | None:
    if (event["reads"] is None) == budget.relation.n_is_public:
        msg = "n: it is kept exactly where it is public."
        raise InputError(msg)
    return None if event["reads"] is None else reading_from_dict(event["reads"])


def _settled(budget: Budget, entry: Entry, event: Event) -> Entry:
    actual = counted(event["guarantee"])
    budget.require(actual)
    require_covered(actual, entry.guarantee)
    # Under an older version a settlement counts as its actual spending, also without proof.
    counts = actual if version_of(event) == 1 else unproved(actual, entry.guarantee)
    return replace(entry, mechanism=event["mechanism"], guarantee=counts, settlement=actual, taken=True)


def _released(entry: Entry, event: Event) -> Entry:
    counts = entry.guarantee
    if event.get("counts") == SETTLED:
        if entry.settlement is None:
            msg = "entry: a release counts as what was never settled."
            raise InputError(msg)
        counts = entry.settlement
    known = {"certificate": event["certificate"], "bought": event.get("bought")}
    return replace(entry, state=RELEASED, taken=True, guarantee=counts, **known)


def unproved(actual: Guarantee, authorised: Guarantee) -> Guarantee:
    """Guarantee by which an unproved settlement counts: all that was authorised, on the assumptions of both."""
    assumptions = tuple(dict.fromkeys((*actual.assumptions, *authorised.assumptions)))
    return replace(actual, profile=authorised.profile, assumptions=assumptions)


def require_open(entry: Entry, kind: str, *, owned: bool = True) -> None:
    """Refuse to use one authorisation for two releases; `owned`: by who was given it, and may settle what is taken."""
    settled = kind == SETTLED and (entry.settled or (entry.taken and not owned))
    if entry.state == RELEASED or settled:
        done = "recorded as released" if entry.state == RELEASED else "taken up by a release"
        msg = f"entry: it was {done} before, and an authorisation covers one release; authorise another."
        raise InputError(msg)


def require_same_reading(entry: Entry, reads: Reading | None) -> None:
    """Refuse to take an authorisation up for other points than it was given for."""
    before = entry.reading
    if before is None or reads is None:
        return
    which = before.differs(reads)
    if which is not None:
        msg = {
            "subset": f"subset: {before.describe()} were authorised, not {reads.describe()}; authorise these.",
            "n": "n: another number of points was authorised; authorise the release of these.",
            "levels": "levels: others were authorised, or with other numbers; authorise the release of these.",
        }[which]
        raise InputError(msg)


def require_stated(reads: Reading | None, mechanism: str, *, levels: bool = False) -> None:
    """Refuse to take an authorisation up without the public numbers that bind later releases.

    `levels`: also those of levels, which may be counted after an authorisation that was taken up at once.
    """
    if reads is None:
        return
    if reads.n is None:
        msg = (
            "n: it is public under the ledger's relation, and later releases are held to it; state the number of the "
            "points that are read, or take the authorisation up for nothing: ledger.give_up(entry)."
        )
        raise InputError(msg)
    if mechanism == STRATA and (reads.by is None or (levels and not reads.complete)):
        msg = (
            "levels: their numbers are public under the ledger's relation, and later releases are held to them; state "
            "them, such as levels={'year': {2021: 120, 2022: 80}}."
        )
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


def _require_within(budget: Budget, ceilings: tuple[Profile, ...], stages: list[tuple[Profile, ...]]) -> None:
    """Check that the budget sufficed at every stage; stages before a smaller total are the only ones to look at."""
    if ceilings and budget.holds(budget.spent(ceilings), DRIFT):
        return
    peaks = [before for before, after in pairwise(stages) if len(after) == len(before) and after != before]
    for profiles in (*peaks, stages[-1]):
        if not budget.holds(budget.spent(profiles), DRIFT):
            msg = f"its releases spend {budget.spent(profiles):.6g}, more than the budget of {budget.epsilon:g}."
            raise InputError(msg)
