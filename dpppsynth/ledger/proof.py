"""Certificates as proof of an authorised purchase."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpppsynth.core.errors import DpppsynthError, InputError
from dpppsynth.ledger.budget import nowhere_worse
from dpppsynth.ledger.counted_points import Reading
from dpppsynth.ledger.history import Entry
from dpppsynth.privacy.guarantee import guarantee_from_dict
from dpppsynth.privacy.relations import Relation
from dpppsynth.release import certificate
from dpppsynth.release.verify import UNUSABLE, check_claim
from dpppsynth.spatial.domains import Domain, canonical_json


@dataclass(frozen=True)
class Proof:
    """Record that a ledger keeps of a certificate.

    Attributes
    ----------
    stated : str
        Hash of its statement.
    bought : str
        The same without the estimator.
    reads : Reading or None
        Points that were read, and their public numbers; None where these are secret.
    """

    stated: str
    bought: str
    reads: Reading | None


def proof(entry: Entry, cert: Any, domain: Domain, relation: Relation) -> Proof:
    """The spending of an entry that a certificate proves.

    Where the entry counts as more than was settled, the guarantee is derived again from the public parameters, as
    `verify` does.

    Parameters
    ----------
    entry : Entry
    cert : mapping
        The certificate.
    domain : Window or LinearNetwork
        Of the release.
    relation : Relation
        The ledger's.

    Raises
    ------
    InputError
        When it is another release's certificate, or claims what does not follow.
    """
    try:
        # As it will be read again.
        cert = json.loads(canonical_json(cert))
        why = _mismatch(entry, cert, domain, relation)
        lower = entry.settlement is not None and entry.settlement.profile != entry.guarantee.profile
        if why is None and lower:
            check = check_claim(cert, domain)
            why = None if check.holds else check.detail
        if why is None:
            hashes = certificate.statement_hash(cert), certificate.statement_hash(cert, estimator=False)
            return Proof(*hashes, reads=told(entry.reading, cert))
    except (*UNUSABLE, ArithmeticError, DpppsynthError):
        why = "it is not that of a release"
    msg = f"certificate: it proves nothing about this entry, which counts as authorised: {why}."
    raise InputError(msg)


def public_size(cert: Mapping[str, Any]) -> int | None:
    """Public number of points on a certificate, of all levels together; None where it is secret."""
    numbers = _numbers(cert)
    return None if None in numbers else sum(numbers)


def told(reading: Reading | None, cert: Mapping[str, Any]) -> Reading | None:
    """Facts about the points that were read, completed by the numbers on a certificate."""
    number, parameters = public_size(cert), cert["parameters"]
    if reading is None or number is None:
        return None
    if "strata" not in parameters:
        return replace(reading, n=number)
    levels = tuple(sorted(zip(map(str, parameters["levels"]), _numbers(cert), strict=True)))
    return replace(reading, n=number, by=parameters["by"], levels=levels)


def states(cert: Mapping[str, Any], reading: Reading | None) -> bool:
    """Whether a certificate states the known facts about the points that were read."""
    found = told(reading, cert)
    return reading is None or (found is not None and reading.differs(found) is None)


def _numbers(cert: Mapping[str, Any]) -> list[Any]:
    parameters = cert["parameters"]
    parts = [part["parameters"] for part in parameters["strata"]] if "strata" in parameters else [parameters]
    return [part.get("n") for part in parts]


def _mismatch(entry: Entry, cert: Mapping[str, Any], domain: Domain, relation: Relation) -> str | None:
    """Reason why a certificate does not belong to the entry, or None."""
    claimed = guarantee_from_dict(cert["guarantee"])
    if cert["ledger"] != entry.id:
        return "it names another entry"
    if cert["seeded"]:
        return "a seeded release is not private"
    here = {"fingerprint": domain.fingerprint(), "crs": domain.crs, "unit": domain.unit}
    if any(place[name] != value for place in (here, cert["domain"]) for name, value in entry.domain.items()):
        return "it is about another domain"
    if not states(cert, entry.reading):
        return "it states another n"
    if entry.settled and cert["mechanism"] != entry.mechanism:
        return "another mechanism was settled"
    spent = entry.guarantee if entry.settlement is None else entry.settlement
    covered = claimed.relation.covers(relation) and nowhere_worse(claimed.profile, spent.profile)
    return None if covered else "it claims more than was settled, or other pairs of patterns"
