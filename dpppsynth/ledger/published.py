"""Comparison of a published certificate with a ledger."""

from collections.abc import Mapping
from typing import Any

from dpppsynth.ledger.budget import nowhere_worse
from dpppsynth.ledger.history import Entry
from dpppsynth.ledger.ledger import Ledger
from dpppsynth.ledger.proof import states
from dpppsynth.privacy.guarantee import guarantee_from_dict
from dpppsynth.release import certificate
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
    return Check("entry", True, f"authorised {entry.at}"), _recorded(entry, cert), _counted(ledger, entry, cert)


def _recorded(entry: Entry, cert: Mapping[str, Any]) -> Check:
    if entry.certificate is None:
        return Check("record", False, "the release was authorised, but no certificate was recorded.")
    # An older version recorded what was bought alone, without the estimator.
    whole = entry.bought is not None
    if entry.certificate == certificate.statement_hash(cert, estimator=whole):
        return Check("record", True, "the certificate recorded" if whole else "what was bought was recorded")
    if entry.bought == certificate.statement_hash(cert, estimator=False):
        detail = "what was bought was recorded, with another estimator: it was inferred again, or edited."
        return Check("record", False, detail)
    return Check("record", False, "another certificate was recorded.")


def _counted(ledger: Ledger, entry: Entry, cert: Mapping[str, Any]) -> Check:
    claimed = guarantee_from_dict(cert["guarantee"])
    enough = (
        claimed.relation.covers(ledger.relation)
        and nowhere_worse(claimed.profile, entry.guarantee.profile)
        and all(cert["domain"][name] == value for name, value in entry.domain.items())
        and states(cert, entry.reading)
    )
    detail = "counted in full" if enough else "the ledger counts less, another domain, or another number of points."
    return Check("budget", enough, detail)
