"""The file of a ledger: one JSON document, whose events form a chain of hashes.

Every event but the first holds the SHA-256 of the one before, and `head` is that of the last: whoever knows a head
knows the whole history before it. The chain shows damage and edits, not forgery by somebody who computes it anew.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from dpppsynth.domains import canonical_json
from dpppsynth.errors import InputError, PrivacyCheckError
from dpppsynth.privacy import certificate

Event = Mapping[str, Any]

SCHEMA_VERSION = 1
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
    """Events of a file, first the budget.

    Parameters
    ----------
    raw : bytes
        What the file holds.
    path : Path
        What messages call it.

    Raises
    ------
    InputError
        When it is not JSON, says something twice, or is no ledger of this version.
    PrivacyCheckError
        When the chain of hashes is broken.
    """
    try:
        data = json.loads(raw.decode("utf-8"), **certificate.STRICT)
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
    version = data.get("schema_version") if isinstance(data, dict) else None
    if isinstance(version, int) and not isinstance(version, bool) and version > SCHEMA_VERSION:
        msg = f"ledger: {path} is of schema version {version}, this program knows {SCHEMA_VERSION}; update dpppsynth."
        raise InputError(msg)
    try:
        problem = next(_validator().iter_errors(data), None)
    except RecursionError:
        problem = ()
    if problem is not None:
        where = "/".join(map(str, getattr(problem, "absolute_path", ()))) or "top level"
        why = getattr(problem, "validator", "nesting")
        msg = f"ledger: {path} is not a ledger of version {SCHEMA_VERSION} (at {where}: {why}). {REMEDY}"
        raise InputError(msg)


@cache
def _validator() -> Any:
    """Validator of ledgers, whose guarantees are described as on certificates."""
    import jsonschema
    from referencing import Registry, Resource

    shared: Any = Registry().with_resource("certificate.schema.json", Resource.from_contents(certificate.schema()))
    return jsonschema.Draft202012Validator(schema(), registry=shared)


def schema() -> dict[str, Any]:
    """The JSON Schema of ledgers."""
    return json.loads((files("dpppsynth.ledger") / "ledger.schema.json").read_text())
