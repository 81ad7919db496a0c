"""Certificates and ledgers: proof of an authorised purchase."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpppsynth.core.errors import DpppsynthError, InputError
from dpppsynth.ledger.budget import nowhere_worse
from dpppsynth.ledger.counted_points import CountedPoints, points_json
from dpppsynth.ledger.history import Entry, place_of
from dpppsynth.privacy.guarantee import Guarantee, guarantee_from_dict
from dpppsynth.privacy.relations import Relation
from dpppsynth.release.certificate import statement_hash
from dpppsynth.release.verify import UNUSABLE, check_claim
from dpppsynth.spatial.domains import Domain, canonical_json


def proof(entry: Entry, cert: Any, domain: Domain, relation: Relation) -> dict[str, Any]:
    """Record of an entry's certificate; InputError for another certificate, or one whose claim does not follow.

    Where the entry counts as more than was settled, the guarantee is derived again from the public parameters, as
    `verify` does.
    """
    try:
        # As it will be read again.
        cert = json.loads(canonical_json(cert))
        why = _mismatch(entry, cert, domain, relation)
        if why is None and entry.settlement is not None and entry.settlement.profile != entry.guarantee.profile:
            check = check_claim(cert, domain)
            why = None if check.holds else check.detail
        if why is None:
            hashes = {"certificate": statement_hash(cert), "paid": statement_hash(cert, estimator=False)}
            return hashes | {"points": points_json(stated_points(entry.points, cert))}
    except (*UNUSABLE, ArithmeticError, DpppsynthError):
        why = "it is not that of a release"
    msg = f"certificate: it proves nothing about this entry, which counts as authorised: {why}."
    raise InputError(msg)


def _mismatch(entry: Entry, cert: Mapping[str, Any], domain: Domain, relation: Relation) -> str | None:
    """Reason why a certificate does not belong to the entry, or None."""
    if cert["ledger"] != entry.id:
        return "it names another entry"
    if cert["seeded"]:
        return "a seeded release is not private"
    if place_of(domain) != entry.domain or not entry.domain.items() <= cert["domain"].items():
        return "it is about another domain"
    if not same_points(entry, cert):
        return "it states another n"
    if entry.settlement is not None and cert["mechanism"] != entry.mechanism:
        return "another mechanism was settled"
    if not covers(entry.settlement or entry.guarantee, cert, relation):
        return "it claims more than was settled, or other pairs of patterns"
    return None


def same_points(entry: Entry, cert: Mapping[str, Any]) -> bool:
    """Whether a certificate states the known facts about the points that were read."""
    found = stated_points(entry.points, cert)
    return entry.points is None or (found is not None and entry.points.difference(found) is None)


def covers(counted: Guarantee, cert: Mapping[str, Any], relation: Relation) -> bool:
    """Whether a certificate's claim is at least as strong as the guarantee counted, under a ledger's relation."""
    claimed = guarantee_from_dict(cert["guarantee"])
    return claimed.relation.covers(relation) and nowhere_worse(claimed.profile, counted.profile)


def public_size(cert: Mapping[str, Any]) -> int | None:
    """Public number of points on a certificate, of all levels together; None where it is secret."""
    numbers = _numbers(cert)
    return None if None in numbers else sum(numbers)


def stated_points(points: CountedPoints | None, cert: Mapping[str, Any]) -> CountedPoints | None:
    """The points that were read, completed by the numbers on a certificate."""
    number, parameters = public_size(cert), cert["parameters"]
    if points is None or number is None:
        return None
    if "strata" not in parameters:
        return replace(points, n=number)
    levels = tuple(sorted(zip(map(str, parameters["levels"]), _numbers(cert), strict=True)))
    return replace(points, n=number, by=parameters["by"], levels=levels)


def _numbers(cert: Mapping[str, Any]) -> list[Any]:
    parameters = cert["parameters"]
    parts = [part["parameters"] for part in parameters["strata"]] if "strata" in parameters else [parameters]
    return [part.get("n") for part in parts]
