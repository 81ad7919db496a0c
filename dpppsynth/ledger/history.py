"""The state of a ledger replayed from its events: the budget, and the releases with their spending.

`next_entry` is the one rule for what an event does, when it is written as well as when it is read.
"""

import marshal
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from operator import or_
from pathlib import Path
from typing import Any

from dpppsynth.contract.stratified_plan import STRATA
from dpppsynth.core.arguments import instance
from dpppsynth.core.errors import InformationWarning, InputError, PrivacyCheckError, outside
from dpppsynth.core.wording import either
from dpppsynth.ledger.authorisation import require_proof
from dpppsynth.ledger.budget import Budget, budget_from_dict, nowhere_worse
from dpppsynth.ledger.counted_points import CountedPoints, contradiction, counted_points, described, points_json
from dpppsynth.ledger.document import AUTHORISED, ENTERED, GIVEN_UP, MEASURED, SETTLED, Event, damaged
from dpppsynth.privacy.guarantee import Guarantee, guarantee_from_dict
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.domains import canonical_json as encode

Place = Mapping[str, str | None]
# Fingerprint of a domain, and what a release in it stated.
Fact = tuple[str | None, CountedPoints]
Counts = Counter[Any]
ACROSS = "moves of a point across the border of one of the domains are not protected"
SUBSET = "subset={'year': 2021}"
GUARANTEE = ("relation", "profile", "theorem", "assumes")
UNWRITTEN = "event: it says something in a form that no ledger writes."
# Errors of what cannot have happened.
UNTRUE = (InputError, ArithmeticError, ValueError, RecursionError)
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
        "authorised", "measured" once there was something to publish, or "entered" where it was published before the
        ledger was made. In each it is spent.
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

    def changed(self, **fields: Any) -> "Entry":
        """A copy with other fields."""
        new = object.__new__(Entry)
        new.__dict__.update(self.__dict__, **fields)
        return new

    @property
    def n(self) -> int | None:
        """Public number of points, where it is known."""
        return None if self.points is None else self.points.n


@dataclass(frozen=True)
class History:
    """Hashes of all events of a ledger, and the state that follows from them.

    Attributes
    ----------
    budget : Budget
    heads : tuple of str
        Hashes of all events.
    entries : dict of str to Entry
        By id, in the order of authorisations.
    counts : Counter
        How many entries count by each privacy profile.
    facts : Counter
        How many entries state each public number of points, and in which domain.
    """

    budget: Budget
    heads: tuple[str, ...]
    entries: dict[str, Entry] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counter)
    facts: Counter[Fact] = field(default_factory=Counter)

    @property
    def head(self) -> str:
        """Hash of the last event."""
        return self.heads[-1]

    @property
    def spent(self) -> float:
        """Epsilon of all releases at the budget's delta."""
        return self.budget.spent(self.counts)

    def admit(self, event: Event) -> None:
        """Refuse an event that cannot come next, or a release without room; warn of one in another domain."""
        entry = next_entry(self, event, "")
        if event["kind"] not in (AUTHORISED, ENTERED):
            return
        self.budget.require_room(self.counts, entry.guarantee.profile)
        if self.budget.relation.n_is_public and self.entries and not self.knows_place(entry.domain):
            msg = f"ledger: this release is the first in another domain; from now on {ACROSS}."
            warnings.warn(msg, InformationWarning, stacklevel=outside())

    def knows_place(self, place: Place) -> bool:
        """Whether a release was authorised in a domain."""
        return any(each.domain["fingerprint"] == place["fingerprint"] for each in self.entries.values())

    def instead(self, entry: Entry) -> Counts:
        """Counts of profiles with one entry replaced or added."""
        counts, before = self.counts.copy(), self.entries.get(entry.id)
        if before is not None:
            counts[before.guarantee.profile] -= 1
        counts[entry.guarantee.profile] += 1
        return +counts

    def followed_by(self, events: Iterable[tuple[str, Event]], path: Path) -> "History":
        """The history after more events; PrivacyCheckError where they contradict it or exceed the budget."""
        new = History(self.budget, (), {**self.entries}, self.counts.copy(), self.facts.copy())
        heads, stages = [*self.heads], []
        for head, event in events:
            try:
                entry = next_entry(new, event, head)
            except UNTRUE as err:
                raise _impossible(path, err) from None
            before = new.entries.get(entry.id)
            if before is not None and before.guarantee.profile is not entry.guarantee.profile:
                stages.append(+new.counts)
            new._put(before, entry)
            heads.append(head)
        try:
            _require_within(self.budget, [*stages, +new.counts])
        except UNTRUE as err:
            raise _impossible(path, err) from None
        return replace(new, heads=tuple(heads))

    def _put(self, before: Entry | None, entry: Entry) -> None:
        self.entries[entry.id] = entry
        if before is None or before.guarantee.profile is not entry.guarantee.profile:
            self.counts[entry.guarantee.profile] += 1
            if before is not None:
                self.counts[before.guarantee.profile] -= 1
        if before is not None and before.taken == entry.taken and before.points is entry.points:
            return
        fact, old = _fact(entry), None if before is None else _fact(before)
        if fact is not None:
            self.facts[fact] += 1
        if old is not None:
            self.facts[old] -= 1


def replay(events: Iterable[tuple[str, Event]], path: Path) -> History:
    """History of the events of a file and their hashes."""
    rest = iter(events)
    first = next(rest, None)
    if first is None:
        raise damaged(path, "its budget is missing")
    try:
        budget = budget_from_dict(first[1])
        numbers = budget.to_dict()
        _require_stored(numbers, {name: first[1][name] for name in numbers})
    except UNTRUE as err:
        raise _impossible(path, err) from None
    return History(budget, (first[0],)).followed_by(rest, path)


def _impossible(path: Path, err: Exception) -> PrivacyCheckError:
    """The error for a file of which something cannot have happened."""
    return damaged(path, str(err).rstrip(".") if isinstance(err, InputError) else type(err).__name__)


def _require_within(budget: Budget, stages: Sequence[Counts]) -> None:
    """Check that the budget sufficed at every stage: it does where it suffices for more than any of them spends."""
    if budget.suffices(reduce(or_, stages), DRIFT):
        return
    if len(stages) == 1:
        msg = f"its releases spend {budget.spent(stages[0]):.6g}, more than the budget of {budget.epsilon:g}."
        raise InputError(msg)
    half = len(stages) // 2
    _require_within(budget, stages[:half])
    _require_within(budget, stages[half:])


def place_of(domain: Any) -> Place:
    """Identity of a domain: fingerprint, coordinate system and unit."""
    instance("domain", domain, Domain, "the window or network of the release")
    return {"fingerprint": domain.fingerprint(), "crs": domain.crs, "unit": domain.unit}


def next_entry(history: History, event: Event, head: str) -> Entry:
    """The entry as it is after an event of hash `head`; InputError where the event cannot come next."""
    kind = event["kind"]
    if kind == AUTHORISED:
        return _authorised(history, event, head)
    if kind == ENTERED:
        return _authorised(history, {**event, "claim": "", "taken": True}, head)
    before = find_entry(history.entries, event["entry"])
    require_open(before, kind)
    require_proof(event["proof"], kind, before.claim)
    if kind == GIVEN_UP:
        points = None if before.points is None else before.points.without_numbers()
        return before.changed(points=points, settlement=before.guarantee, taken=True)
    entry = _settled(history.budget, before, event) if kind == SETTLED else _measured(before, event)
    points = _points(history.budget, event)
    if entry.points is not None and points is not None:
        # Points that are read from equal events are one object.
        if points is not entry.points:
            _require_same_points(entry.points, points)
        _require_numbers(points, entry.mechanism, levels=True)
        _require_possible(history.facts, entry.domain, points, _fact(before))
    return entry.changed(points=points)


def _authorised(history: History, event: Event, head: str) -> Entry:
    budget, place = history.budget, event["domain"]
    guarantee, points = _acceptable(budget, _frozen(event["guarantee"])), _points(budget, event)
    if budget.relation.reach < float("inf") and history.entries and not history.knows_place(place):
        msg = (
            "domain: the ledger's first release fixed another one, inside which its privacy radius is measured; "
            "release in that domain, or keep data of several domains under a ledger whose relation is replace-one. "
            f"There {ACROSS}."
        )
        raise InputError(msg)
    if points is not None:
        if event["taken"]:
            _require_numbers(points, event["mechanism"], levels=event["kind"] == ENTERED)
        _require_possible(history.facts, place, points, None)
    names = ("at", "mechanism", "domain", "claim", "taken", "certificate", "paid")
    known = {name: event[name] for name in names if name in event}
    return Entry(id=head, guarantee=guarantee, points=points, state=event["kind"], **known)


def _settled(budget: Budget, entry: Entry, event: Event) -> Entry:
    actual = _acceptable(budget, _frozen(event["guarantee"]))
    counts = _covered(actual, entry.guarantee)
    return entry.changed(mechanism=event["mechanism"], guarantee=counts, settlement=actual, taken=True)


@lru_cache(maxsize=10_000)
def _covered(actual: Guarantee, authorised: Guarantee) -> Guarantee:
    """Guarantee that counts until a settled release is proved: what was authorised, on the assumptions of both."""
    if not nowhere_worse(actual.profile, authorised.profile):
        msg = (
            "guarantee: the release would spend more than was authorised for it, or another kind of budget; authorise "
            "its own guarantee."
        )
        raise InputError(msg)
    assumptions = tuple(dict.fromkeys((*actual.assumptions, *authorised.assumptions)))
    return replace(actual, profile=authorised.profile, assumptions=assumptions)


def _measured(entry: Entry, event: Event) -> Entry:
    counts = entry.settlement if event["counts"] == SETTLED else entry.guarantee
    if counts is None:
        msg = "entry: a release counts as what was never settled."
        raise InputError(msg)
    known = {name: event[name] for name in ("certificate", "paid", "kept")}
    return entry.changed(state=MEASURED, taken=True, guarantee=counts, **known)


def find_entry(entries: Mapping[str, Entry], name: Any) -> Entry:
    """An entry by its name; InputError where there is none."""
    if not isinstance(name, str) or name not in entries:
        msg = f"entry: this ledger has authorised nothing of the name {name!r}; ledger.authorise returns one."
        raise InputError(msg)
    return entries[name]


def require_open(entry: Entry, kind: str) -> None:
    """Refuse to use one authorisation for two releases."""
    if entry.state != AUTHORISED or (kind != MEASURED and entry.settlement is not None):
        done = {MEASURED: "recorded", ENTERED: "entered"}.get(entry.state, "taken up by a release")
        msg = f"entry: it was {done} before, and an authorisation covers one release; authorise another."
        raise InputError(msg)


def _points(budget: Budget, event: Event) -> CountedPoints | None:
    points = event["points"]
    if (points is None) == budget.relation.n_is_public:
        msg = "n: it is kept exactly where it is public."
        raise InputError(msg)
    return None if points is None else _counted_points(budget.relation, _frozen(points))


@lru_cache(maxsize=10_000)
def _counted_points(relation: Relation, frozen: bytes) -> CountedPoints | None:
    data = marshal.loads(frozen)  # noqa: S302 - from _frozen
    if data.keys() != CountedPoints().to_dict().keys():
        raise InputError(UNWRITTEN)
    found = counted_points(relation, **data)
    _require_stored(points_json(found), data)
    return found


def _require_stored(written: Any, data: Any) -> None:
    """Refuse what would be written in another form than it is read."""
    if encode(written) != encode(data):
        raise InputError(UNWRITTEN)


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


def _fact(entry: Entry) -> Fact | None:
    """Statement of an entry that was taken up about the points of a domain.

    An authorisation that nobody took up was never held against any points, nor levels that were not counted.
    """
    points = entry.points
    if not entry.taken or points is None or points.n is None:
        return None
    return entry.domain["fingerprint"], points if points.by is None or points.complete else replace(
        points, by=None, levels=()
    )


def _require_possible(facts: Counter[Fact], domain: Place, points: CountedPoints, own: Fact | None) -> None:
    """Refuse public numbers of points that contradict those of releases taken up before, but for its `own` one."""
    for fact, times in facts.items():
        place, before = fact
        if times <= (fact == own) or place != domain["fingerprint"]:
            continue
        found = contradiction(points, before)
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
    kept: dict[str, Any] = {name: whole[name] for name in GUARANTEE}
    try:
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
    found = guarantee_from_dict({**data, "by_distance": ()})
    _require_stored({name: found.to_dict()[name] for name in GUARANTEE}, data)
    return found


@lru_cache(maxsize=10_000)
def _acceptable(budget: Budget, frozen: bytes) -> Guarantee:
    """The guarantee that a file holds, where a budget accepts it."""
    guarantee = counted(marshal.loads(frozen))  # noqa: S302 - from _frozen
    budget.require(guarantee)
    return guarantee


def _frozen(data: Any) -> bytes:
    """JSON values as a key that tells 1 from 1.0 and is made faster than their text."""
    return marshal.dumps(data, 0)
