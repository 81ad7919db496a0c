"""Comparison of a published certificate with its entry in a ledger."""

from collections.abc import Mapping
from typing import Any

from dpppsynth.core.errors import DpppsynthError
from dpppsynth.ledger.certificates import covers, same_points
from dpppsynth.ledger.document import AUTHORISED
from dpppsynth.ledger.history import Entry
from dpppsynth.ledger.ledger import Ledger
from dpppsynth.release import certificate
from dpppsynth.release.certificate import statement_hash
from dpppsynth.release.verify import Check


def compare(ledger: Ledger, cert: Mapping[str, Any]) -> tuple[Check, ...]:
    """Compare a certificate with the entry that it names.

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
    name = cert.get("ledger")
    entry = next((each for each in ledger.releases if each.id == name), None)
    if name is None:
        return (Check("entry", False, "the certificate names no ledger: the release was not authorised by one."),)
    if entry is None:
        detail = "the ledger does not know it: it is another one, or was replaced by an older copy."
        return (Check("entry", False, detail),)
    here = entry.domain.items() <= cert["domain"].items() and same_points(entry, cert)
    enough = here and covers(entry.guarantee, cert, ledger.relation)
    detail = "counted in full" if enough else "the ledger counts less, another domain, or another number of points."
    return Check("entry", True, f"authorised {entry.at}"), _recorded(entry, cert), Check("budget", enough, detail)


def standing(entry: Entry) -> str:
    """What became of an authorisation, in words, by the folder in which its release is kept."""
    if entry.state == AUTHORISED:
        return "authorised; nothing was recorded"
    if entry.kept is None:
        return "measured"
    try:
        found = certificate.read(entry.kept)
    except (DpppsynthError, OSError):
        found = {}
    if found.get("ledger") != entry.id:
        return f"measured; it is not in {entry.kept} any more"
    parameters = found["parameters"]
    inferred = (
        "estimator" in parameters or "estimator" in parameters.get("strata", [{"parameters": {}}])[0]["parameters"]
    )
    drawn = any(
        certificate.SYNTHETIC.fullmatch(name) or name.endswith(certificate.POSTERIOR) for name in found["files"]
    )
    return f"released in {entry.kept}" if drawn or not inferred else f"measured, kept in {entry.kept}"


def _recorded(entry: Entry, cert: Mapping[str, Any]) -> Check:
    if entry.certificate is None:
        return Check("record", False, "the release was authorised, but no certificate was recorded.")
    if entry.certificate == statement_hash(cert):
        return Check("record", True, "the certificate recorded")
    if entry.paid == statement_hash(cert, estimator=False):
        detail = "what was paid for was recorded, with another estimator: it was inferred again, or edited."
        return Check("record", False, detail)
    return Check("record", False, "another certificate was recorded.")
