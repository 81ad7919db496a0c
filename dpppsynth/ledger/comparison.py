"""Comparison of a published certificate with its entry in a ledger."""

from collections.abc import Mapping
from typing import Any

from dpppsynth.core.errors import DpppsynthError
from dpppsynth.ledger.certificates import covers, same_points
from dpppsynth.ledger.document import AUTHORISED, ENTERED, MEASURED
from dpppsynth.ledger.history import Entry
from dpppsynth.ledger.ledger import Ledger
from dpppsynth.release import certificate
from dpppsynth.release.certificate import statement_hash
from dpppsynth.release.verify import Check


def compare(ledger: Ledger, cert: Mapping[str, Any]) -> tuple[Check, ...]:
    """Compare a certificate with the entry that it names, or under which it was entered.

    Parameters
    ----------
    ledger : Ledger
    cert : mapping
        From `certificate.read`.

    Returns
    -------
    tuple of Check
        That the ledger knows the entry, recorded this release under it, and counts at least what the certificate
        claims.
    """
    name, paid = cert.get("ledger"), statement_hash(cert, estimator=False)
    mine = (each for each in ledger.releases if each.id == name or (each.state == ENTERED and each.paid == paid))
    entry = next(mine, None)
    if entry is None and name is None:
        return (Check("entry", False, "the certificate names no ledger: the release was not authorised by one."),)
    if entry is None:
        detail = "the ledger does not know it: it is another one, or was replaced by an older copy."
        return (Check("entry", False, detail),)
    here = entry.domain.items() <= cert["domain"].items() and same_points(entry, cert)
    enough = here and covers(entry.guarantee, cert, ledger.relation)
    detail = "counted in full" if enough else "the ledger counts less, another domain, or another number of points."
    return (
        Check("entry", True, f"{ENTERED if entry.state == ENTERED else AUTHORISED} {entry.at}"),
        _recorded(entry, cert),
        Check("budget", enough, detail),
    )


def standing(entry: Entry) -> str:
    """Status of an authorisation, given the folder in which its release is kept.

    "authorised" or "entered" where nothing was recorded, "measured" where only what was paid for is kept, "released",
    or "missing" where the folder does not hold it any more.
    """
    if entry.kept is None:
        return entry.state
    try:
        found = certificate.read(entry.kept)
    except (DpppsynthError, OSError):
        return "missing"
    if found.get("ledger") != entry.id:
        return "missing"
    strata = found["parameters"].get("strata", [{"parameters": found["parameters"]}])
    made = [f for f in found["files"] if certificate.SYNTHETIC.fullmatch(f) or certificate.POSTERIORS.fullmatch(f)]
    return MEASURED if "estimator" in strata[0]["parameters"] and not made else "released"


def _recorded(entry: Entry, cert: Mapping[str, Any]) -> Check:
    if entry.certificate is None:
        return Check("record", False, "the release was authorised, but no certificate was recorded.")
    if entry.certificate == statement_hash(cert):
        return Check("record", True, "the certificate recorded")
    if entry.paid == statement_hash(cert, estimator=False):
        detail = "what was paid for was recorded, with another estimator: it was inferred again, or edited."
        return Check("record", False, detail)
    return Check("record", False, "another certificate was recorded.")
