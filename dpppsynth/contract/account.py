"""Ledger accounting of a release: authorised before the points are touched, settled and recorded after."""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from dpppsynth.core.arguments import instance
from dpppsynth.core.errors import DpppsynthError, InformationWarning, InputError, outside
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.release.base import Saveable
from dpppsynth.release.folder import stated
from dpppsynth.spatial.domains import Domain

if TYPE_CHECKING:
    from dpppsynth.ledger import Ledger
    from dpppsynth.ledger.ledger import Levels, Subset


class Planned(Protocol):
    """Facts about a plan that a ledger is given."""

    @property
    def mechanism(self) -> str:
        """Name of the mechanism, for instance "lgcp-tents"."""

    @property
    def domain(self) -> Domain:
        """Public window or network."""

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of the release, which is its spending."""

    @property
    def n(self) -> int | None:
        """Public number of points, or of what `counted_by` tells; None where it is secret or not known yet."""

    @property
    def counted_by(self) -> str | None:
        """Mark that tells what n counts, such as trajectories; None counts points."""

    @property
    def levels(self) -> "Levels":
        """The mark of a stratified release, its levels and their public numbers of points."""


@dataclass(frozen=True)
class Ceiling:
    """Stand-in for a plan before the number of points is known: an upper bound of its spending."""

    mechanism: str
    domain: Domain
    guarantee: Guarantee
    n: int | None = None
    counted_by: str | None = None
    levels: "Levels" = None


def points_of(plan: Planned, subset: "Subset") -> dict[str, Any]:
    """Facts about a plan's points that a ledger is given."""
    return {"n": plan.n, "counted_by": plan.counted_by, "subset": subset, "levels": plan.levels}


def authorise(
    plan: Planned,
    ledger: "Ledger | None",
    entry: str | None,
    rng: Any,
    *,
    subset: "Subset" = None,
    taken: bool = True,
) -> str | None:
    """The ledger's name for its authorisation of a plan, which nothing else can take up; None without a ledger.

    Parameters
    ----------
    plan : Plan, StratifiedPlan or Ceiling
    ledger : Ledger, optional
    entry : str, optional
        Of an authorisation that was given before the data were read, for at least what the plan spends.
    rng : None, int or Generator
    subset : dict, optional
        Mark and value of the points, where they are not all points of the domain.
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
        require_no_ledger_needed(entry=entry, subset=subset)
        return None
    from dpppsynth.ledger import Ledger

    instance("ledger", ledger, Ledger, "open it with Ledger.open('ledger.json')")
    if rng is not None:
        msg = "rng: a seeded release is not private, and no ledger can account for it; leave rng= or ledger= out."
        raise InputError(msg)
    points = points_of(plan, subset)
    if entry is None:
        return ledger.authorise(plan.guarantee, mechanism=plan.mechanism, domain=plan.domain, **points, taken=taken)
    ledger.settle(entry, plan.guarantee, mechanism=plan.mechanism, domain=plan.domain, **points)
    return entry


def paid_before(ledger: Any, entry: Any) -> bool:
    """Whether a ledger authorised the release before it began."""
    from dpppsynth.ledger import Ledger

    return isinstance(ledger, Ledger) and entry is not None and ledger.knows(entry)


def require_no_ledger_needed(**given: Any) -> None:
    """Refuse what is said to a ledger where there is none."""
    for name, value in given.items():
        if value is not None:
            msg = f"{name}: it is for a ledger; give the ledger= as well, which authorises the release."
            raise InputError(msg)


def record(release: Saveable, ledger: "Ledger | None", entry: str | None) -> None:
    """Tell the ledger that an authorised release happened. What was paid for is never lost because that fails."""
    if ledger is None or entry is None:
        return
    try:
        ledger.record(entry, stated(release), domain=release.domain)
    except (DpppsynthError, OSError):
        msg = (
            "ledger: the release could not be recorded. It counts as spent, at all that was authorised for it; its "
            "certificate names the entry."
        )
        warnings.warn(msg, InformationWarning, stacklevel=outside())
