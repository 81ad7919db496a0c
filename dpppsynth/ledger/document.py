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

SCHEMA_VERSION = 1
AUTHORISED, SETTLED, GIVEN_UP, MEASURED = "authorised", "settled", "given-up", "measured"
REMEDY = (
    "Restore it from a backup, and know that what was authorised after the backup counts as spent though it is missing "
    "there: each published certificate names its entry."
)


def identify(event: Event) -> str:
    """SHA-256 of an event's canonical JSON, which commits to all events before it."""
    return hashlib.sha256(canonical_json(event).encode()).hexdigest()


def dump(events: Sequence[Event]) -> bytes:
    """The whole file, indented for people."""
    whole = {"schema_version": SCHEMA_VERSION, "events": list(events), "head": identify(events[-1])}
    return (json.dumps(whole, indent=1, allow_nan=False) + "\n").encode()


def parse(raw: bytes, path: Path) -> tuple[Event, ...]:
    """Events of a file, first the budget; PrivacyCheckError where their chain is broken, InputError for no ledger."""
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
    return events


def damaged(path: Path, what: str) -> PrivacyCheckError:
    """The error for a file that no ledger has written."""
    return PrivacyCheckError(f"ledger: {path} is damaged or was edited: {what}. Nothing is released from it. {REMEDY}")


def _require_schema(data: Any, path: Path) -> None:
    events = data["events"] if isinstance(data, dict) and isinstance(data.get("events"), list) else []
    # All but the first event one by one: those that were looked at before need no second look.
    parts = [(data | {"events": events[:1]} if events else data, ""), *((event, "event") for event in events[1:])]
    for k, (document, part) in enumerate(parts):
        try:
            problem = _problem(json.dumps(document), part)
        except RecursionError:
            problem = "$: nesting"
        if problem is not None:
            where = f"event {k + 1}, " if k else ""
            msg = f"ledger: {path} is not a ledger of version {SCHEMA_VERSION} (at {where}{problem}). {REMEDY}"
            raise InputError(msg)


@lru_cache(maxsize=10_000)
def _problem(text: str, part: str) -> str | None:
    """Place and name of the first violation of the schema, or of a definition of it."""
    problem = next(_validator(part).iter_errors(json.loads(text)), None)
    return None if problem is None else f"{problem.json_path}: {problem.validator}"


@cache
def _validator(part: str) -> Any:
    """Validator of ledgers, whose guarantees are described as on certificates."""
    import jsonschema
    from referencing import Registry, Resource

    shared: Any = Registry().with_resource("certificate.schema.json", Resource.from_contents(certificate.schema()))
    schema = json.loads((files("dpppsynth.ledger") / "ledger.schema.json").read_text())
    whole = {"$defs": schema["$defs"], "$ref": f"#/$defs/{part}"} if part else schema
    return jsonschema.Draft202012Validator(whole, registry=shared)
