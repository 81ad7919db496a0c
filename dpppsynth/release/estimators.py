"""Checks of the estimator stated on a certificate: known settings, each of its kind.

No bound depends on it, so nothing else would notice what a forger adds here.
"""

import re

from dpppsynth.contract.measurement import require
from dpppsynth.core.json_types import Json, JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.spatial.domains import canonical_json
from dpppsynth.spatial.offset import Offset

DIGEST = re.compile("[0-9a-f]{64}")


def among(estimator: Json, known: list[JsonObject], rule: str) -> None:
    """Refuse an estimator that is not word for word one of those known; 1 is not true here, nor 1.0."""
    require(canonical_json(estimator) in map(canonical_json, known), rule)


def offset_of(estimator: JsonRead) -> str | None:
    """Fingerprint of the public offset of a field or a draw."""
    offset = estimator["offset"]
    known = offset is None or (isinstance(offset, str) and DIGEST.fullmatch(offset) is not None)
    require(known, "the offset is null or a SHA-256")
    return None if offset is None else str(offset)


def offset_rows(offset: Offset | None) -> Rows:
    """Row of a table with the fingerprint of a public offset, where there is one."""
    return [] if offset is None else [("offset", f"fingerprint {offset.fingerprint[:12]}")]
