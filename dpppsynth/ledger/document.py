"""The ledger file: one JSON document whose events form a hash chain.

Every event but the first holds the SHA-256 of the one before, and `head` is that of the last: whoever knows a head
knows the whole history before it. The chain shows damage and edits, not forgery by somebody who computes it anew.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.core.published_files import strict_json
from dpppsynth.release import certificate
from dpppsynth.spatial.domains import canonical_json

Event = Mapping[str, Any]

SCHEMA_VERSION = 2
REMEDY = (
    "Restore it from a backup, and know that what was authorised after the backup counts as spent though it is missing "
    "there: each published certificate names its entry."
)


def identify(event: Event) -> str:
    """SHA-256 of an event's canonical JSON, which commits to all events before it."""
    return hashlib.sha256(canonical_json(event).encode()).hexdigest()


def version_of(event: Event) -> int:
    """The schema version in which an event was written; the first one did not say so."""
    version: int = event.get("version", 1)
    return version


def dump(events: Sequence[Event]) -> bytes:
    """The whole file, indented for people; of the version of its last event, as versions only rise."""
    whole = {"schema_version": version_of(events[-1]), "events": list(events), "head": identify(events[-1])}
    return (json.dumps(whole, indent=1, allow_nan=False) + "\n").encode()


def parse(raw: bytes, path: Path) -> tuple[Event, ...]:
    """Events of a file, first the budget.

    Parameters
    ----------
    raw : bytes
        Content of the file.
    path : Path
        Name of the file in messages.

    Raises
    ------
    InputError
        When it is not JSON, says something twice, or is no ledger of this version.
    PrivacyCheckError
        When the chain of hashes is broken.
    """
    try:
        data = strict_json(raw)
    except (ValueError, RecursionError):
        msg = f"ledger: {path} is not whole JSON, or says something twice; nothing is released from it. {REMEDY}"
        raise InputError(msg) from None
    _require_schema(data, path)
    events: tuple[Event, ...] = tuple(data["events"])
    expected = [None, *map(identify, events)]
    for k, (event, previous) in enumerate(zip(events, expected, strict=False), 1):
        if event["previous"] != previous:
            raise damaged(path, f"event {k} does not follow from the one before")
    if data["head"] != expected[-1]:
        raise damaged(path, "its last events are missing or changed")
    _require_order(events, data["schema_version"], path)
    return events


def _require_order(events: Sequence[Event], version: int, path: Path) -> None:
    """Refuse events without the proofs of a later version after some that have them."""
    versions = [version_of(event) for event in events]
    if versions != sorted(versions) or versions[-1] != version:
        raise damaged(path, "an event is of an earlier version than one before it, or than the file")


def damaged(path: Path, what: str) -> PrivacyCheckError:
    """The error for a file that no ledger has written."""
    return PrivacyCheckError(f"ledger: {path} is damaged or was edited: {what}. Nothing is released from it. {REMEDY}")


def _require_schema(data: Any, path: Path) -> None:
    version = data.get("schema_version") if isinstance(data, dict) else None
    if isinstance(version, int) and not isinstance(version, bool) and version > SCHEMA_VERSION:
        msg = f"ledger: {path} is of schema version {version}, this program knows {SCHEMA_VERSION}; update dpppsynth."
        raise InputError(msg)
    events = data["events"] if isinstance(data, dict) and isinstance(data.get("events"), list) else []
    try:
        # All but the first event one by one: those that were looked at before need no second look.
        problem = _problem(data | {"events": events[:1]} if events else data)
        found = [problem, *(_problem_of_event(json.dumps(event)) for event in events[1:])]
    except RecursionError:
        found = [("top level", "nesting")]
    for k, problem in enumerate(found):
        if problem is not None:
            where, why = problem
            where = f"event {k + 1}, {where}" if k else where
            msg = f"ledger: {path} is not a ledger of version {SCHEMA_VERSION} (at {where}: {why}). {REMEDY}"
            raise InputError(msg)


def _problem(data: Any, part: str | None = None) -> tuple[str, str] | None:
    """Location and description of the first violation of the schema, or of a definition of it."""
    problem = next(_validator(part).iter_errors(data), None)
    return None if problem is None else ("/".join(map(str, problem.absolute_path)) or "top level", problem.validator)


@lru_cache(maxsize=10_000)
def _problem_of_event(text: str) -> tuple[str, str] | None:
    return _problem(json.loads(text), "event")


@cache
def _validator(part: str | None) -> Any:
    """Validator of ledgers, whose guarantees are described as on certificates."""
    import jsonschema
    from referencing import Registry, Resource

    shared: Any = Registry().with_resource("certificate.schema.json", Resource.from_contents(certificate.schema()))
    whole = schema() if part is None else {"$defs": schema()["$defs"], "$ref": f"#/$defs/{part}"}
    return jsonschema.Draft202012Validator(whole, registry=shared)


def schema() -> dict[str, Any]:
    """The JSON Schema of ledgers."""
    return json.loads((files("dpppsynth.ledger") / "ledger.schema.json").read_text())
