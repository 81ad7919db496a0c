"""The ledger file: lines of canonical JSON whose events form a hash chain.

Every event but the first holds the SHA-256 of the line before. The first line of the file names the last event, and is
overwritten once an event is on disk: whatever follows the event that it names, nobody was told of. The chain shows
damage and edits, not forgery by somebody who computes it anew.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.spatial.domains import canonical_json

Event = Mapping[str, Any]

SCHEMA_VERSION = 1
BUDGET, AUTHORISED, SETTLED, GIVEN_UP, MEASURED = "budget", "authorised", "settled", "given-up", "measured"
# A release made before the ledger: spent by one event, which nothing follows.
ENTERED = "entered"
REMEDY = (
    "Restore it from a backup, and know that what was authorised after the backup counts as spent though it is missing "
    "there: each published certificate names its entry."
)
FIRST_LINE = re.compile(rb'\{"head":"([0-9a-f]{64})","schema_version":1\}\n')


def _of(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: type(value) in kinds


def _matching(pattern: str) -> Callable[[str], Any]:
    return re.compile(pattern).fullmatch


def _is_place(value: Any) -> bool:
    return value.keys() == PLACE.keys() and all(PLACE[key](value[key]) for key in PLACE)


SHA256, NAMED, TEXT = _matching("[0-9a-f]{64}"), _matching("(?s).+"), _of(str)
PLACE = {"fingerprint": SHA256, "crs": _of(str, type(None)), "unit": TEXT}
MADE = {"nonce": _matching("[0-9a-f]{32}"), "at": _matching("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")}
LATER = {"entry": SHA256, "proof": SHA256}
RELEASE = {"mechanism": NAMED, "guarantee": _of(dict), "points": _of(dict, type(None))}
NUMBER = _of(int, float)
# Fields of each kind of event, beside `kind` and `previous`; what is said of their inside is in `history`.
FIELDS: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    BUDGET: {
        **MADE,
        "epsilon": NUMBER,
        "delta": NUMBER,
        "relation": _of(dict),
        "label": _of(str, type(None)),
        "adaptive": _of(bool),
    },
    AUTHORISED: {**MADE, **RELEASE, "domain": _is_place, "claim": SHA256, "taken": _of(bool)},
    ENTERED: {**MADE, **RELEASE, "domain": _is_place, "certificate": SHA256, "paid": SHA256},
    SETTLED: {**LATER, **RELEASE},
    GIVEN_UP: LATER,
    MEASURED: {
        **LATER,
        "certificate": SHA256,
        "paid": SHA256,
        "points": RELEASE["points"],
        "counts": _matching(f"{AUTHORISED}|{SETTLED}"),
        "kept": lambda value: value is None or NAMED(value),
    },
}


KEYS = {kind: frozenset({"kind", "previous", *fields}) for kind, fields in FIELDS.items()}


def hash_of(text: bytes) -> str:
    """SHA-256 of a line without its end: the name of an event, which commits to all events before it."""
    return hashlib.sha256(text).hexdigest()


def text_of(event: Event) -> bytes:
    """The line of an event, without its end."""
    return canonical_json(event).encode()


def identify(event: Event) -> str:
    """Hash of an event's line."""
    return hash_of(text_of(event))


def first_line(head: str) -> bytes:
    """The line that names the last event."""
    return text_of({"head": head, "schema_version": SCHEMA_VERSION}) + b"\n"


def dump(events: Sequence[Event]) -> bytes:
    """Text of a whole ledger file."""
    return first_line(identify(events[-1])) + b"".join(text_of(event) + b"\n" for event in events)


def parse(raw: bytes, path: Path, known: Sequence[str] = (), start: int = 0) -> Iterator[tuple[str, Event]]:
    """Events of a file with their hashes, first the budget; only those after the `known` ones, which end at `start`.

    A last line without an end is what a writer left that was stopped: nobody was told of that event.

    Raises
    ------
    InputError
        For no ledger.
    PrivacyCheckError
        Where the chain is broken, or does not reach the event that the first line names.
    """
    first = FIRST_LINE.match(raw)
    if first is None:
        raise _no_ledger(path, "its first line")
    lines = raw[start or first.end() :].split(b"\n")[:-1]
    names = [*map(hash_of, lines)]
    if first[1].decode() not in (*names, *known):
        raise damaged(path, "its last events are missing or changed")
    previous = known[-1] if known else None
    for k, (name, text) in enumerate(zip(names, lines, strict=True), len(known) + 1):
        event = _event(text, k, path)
        if event["previous"] != previous:
            raise damaged(path, f"event {k} does not follow from the one before")
        previous = name
        yield name, event


def damaged(path: Path, what: str) -> PrivacyCheckError:
    """The error for a file that no ledger has written."""
    return PrivacyCheckError(f"ledger: {path} is damaged or was edited: {what}. Nothing is released from it. {REMEDY}")


def _no_ledger(path: Path, where: str) -> InputError:
    return InputError(f"ledger: {path} is not a ledger of version {SCHEMA_VERSION} (at {where}). {REMEDY}")


def _event(text: bytes, k: int, path: Path) -> Event:
    """An event that has the fields of its kind and no other ones."""
    try:
        event = DECODER.decode(text.decode())
        fields = FIELDS[event["kind"]]
        if event.keys() != KEYS[event["kind"]] or (event["kind"] == BUDGET) != (k == 1):
            raise _no_ledger(path, f"event {k}: its fields")
        for name, fits in fields.items():
            if not fits(event[name]):
                raise _no_ledger(path, f"event {k}: {name}")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise _no_ledger(path, f"event {k}") from None
    return event


def _no_number(text: str) -> None:
    raise ValueError(text)


DECODER = json.JSONDecoder(parse_constant=_no_number)
