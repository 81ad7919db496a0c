"""A release and its ledger: authorised before the points are touched, recorded once there is something to publish."""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from dpppsynth.arguments import instance
from dpppsynth.domains import Domain
from dpppsynth.errors import DpppsynthError, InformationWarning, InputError
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.release.base import Saveable
from dpppsynth.release.folder import statement

if TYPE_CHECKING:
    from dpppsynth.ledger import Ledger


class Planned(Protocol):
    """What a ledger is told about a plan."""

    @property
    def mechanism(self) -> str:
        """For instance "lgcp-tents"."""

    @property
    def domain(self) -> Domain:
        """Public window or network."""

    @property
    def guarantee(self) -> Guarantee:
        """What the release spends."""


@dataclass(frozen=True)
class Ceiling:
    """What stands in for a plan before the number of points is known."""

    mechanism: str
    domain: Domain
    guarantee: Guarantee


def authorise(plan: Planned, ledger: "Ledger | None", entry: str | None, rng: Any, *, taken: bool = True) -> str | None:
    """The ledger's name for its authorisation of a plan, which nothing else can take up; None without a ledger.

    Parameters
    ----------
    plan : Plan, StratifiedPlan or Ceiling
    ledger : Ledger, optional
    entry : str, optional
        Of an authorisation that was given before the data were read, for at least what the plan spends.
    rng : None, int or Generator
    taken : bool
        False where the plan only stands in for one that will take the authorisation up.

    Raises
    ------
    BudgetError
        When the budget does not suffice.
    InputError
        When the release is seeded, or the ledger cannot account for it.
    """
    if ledger is None:
        if entry is not None:
            msg = "entry: it names an authorisation; give the ledger= that gave it as well."
            raise InputError(msg)
        return None
    from dpppsynth.ledger import Ledger

    instance("ledger", ledger, Ledger, "open it with Ledger.open('ledger.json')")
    if rng is not None:
        msg = "rng: a seeded release is not private, and no ledger can account for it; leave rng= or ledger= out."
        raise InputError(msg)
    if entry is None:
        return ledger.authorise(plan.guarantee, mechanism=plan.mechanism, domain=plan.domain, taken=taken)
    ledger.settle(entry, plan.guarantee, mechanism=plan.mechanism, domain=plan.domain)
    return entry


def record(release: Saveable, ledger: "Ledger | None") -> None:
    """Tell the ledger that an authorised release happened. What was paid for is never lost because that fails."""
    if ledger is None or release.entry is None:
        return
    try:
        ledger.record(release.entry, statement(release))
    except (DpppsynthError, OSError):
        msg = (
            "ledger: the release could not be recorded. It counts as spent, as it should, but stands there as "
            "authorised only; its certificate names the entry."
        )
        warnings.warn(msg, InformationWarning, stacklevel=4)
