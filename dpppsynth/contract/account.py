"""Accounts of releases: authorised before the points are touched, recorded once there is something to publish."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dpppsynth.contract.result import Result
from dpppsynth.core.errors import DpppsynthError, InformationWarning, InputError, outside
from dpppsynth.core.randomness import RngLike
from dpppsynth.core.types import JsonRead
from dpppsynth.core.wording import mention
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.spatial.domains import Domain

# Mark and value of the points, where they are not all points of the domain.
Subset = Mapping[str, str | int] | None
# Mark, and the public number of points of each of its levels.
Levels = Mapping[str, Mapping[str, int | None]] | None


class Account:
    """Base of ledgers: all that a release asks of one."""

    def knows(self, entry: str) -> bool:
        """Whether it holds an authorisation."""
        raise NotImplementedError

    def authorise(
        self,
        guarantee: Guarantee,
        *,
        mechanism: str,
        domain: Domain,
        n: int | None = None,
        count_unit: str | None = None,
        subset: Subset = None,
        levels: Levels = None,
        taken: bool = False,
    ) -> str:
        """Spend part of the budget, before the data are touched."""
        raise NotImplementedError

    def settle(
        self,
        entry: str,
        guarantee: Guarantee,
        *,
        mechanism: str | None = None,
        domain: Domain | None = None,
        n: int | None = None,
        count_unit: str | None = None,
        subset: Subset = None,
        levels: Levels = None,
    ) -> None:
        """Take up an authorisation, once, by a release whose guarantee is known only now."""
        raise NotImplementedError

    def give_up(self, entry: str) -> None:
        """Take up an authorisation for nothing: it counts as spent."""
        raise NotImplementedError

    def record(self, entry: str, cert: JsonRead, *, domain: Domain, kept: Path | None = None) -> None:
        """Note that something was measured, by its certificate, and the folder in which it is kept."""
        raise NotImplementedError


class Planned(Protocol):
    """A plan, in so far as a ledger is told of it."""

    @property
    def mechanism(self) -> str:
        """For instance "lgcp-tents"."""

    @property
    def domain(self) -> Domain:
        """Public window or network."""

    @property
    def guarantee(self) -> Guarantee:
        """The privacy that the release spends."""

    @property
    def n(self) -> int | None:
        """Public number of points, or of what `count_unit` tells; None where it is secret or not known yet."""

    @property
    def count_unit(self) -> str | None:
        """Mark that tells what n counts, such as trajectories; None counts points."""

    @property
    def levels(self) -> Levels:
        """Mark and public numbers of points, where each level of the mark is released by itself."""


@dataclass(frozen=True)
class Ceiling:
    """Stand-in for a plan before the number of points is known."""

    mechanism: str
    domain: Domain
    guarantee: Guarantee
    n: int | None = None
    count_unit: str | None = None
    levels: Levels = None


def points_of(plan: Planned, subset: Subset) -> dict[str, Any]:
    """Facts about the points that a plan reads, for a ledger."""
    return {"n": plan.n, "count_unit": plan.count_unit, "subset": subset, "levels": plan.levels}


def authorise(
    plan: Planned,
    ledger: Account | None,
    entry: str | None,
    rng: RngLike,
    *,
    subset: Subset = None,
    taken: bool = True,
) -> str | None:
    """The ledger's name for its authorisation of a plan, which nothing else can take up; None without a ledger.

    Parameters
    ----------
    plan : ReleasePlan, StratifiedPlan or Ceiling
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
    if not isinstance(ledger, Account):
        got = type(ledger).__name__
        msg = f"ledger: needs a Ledger, got {got}; open it with Ledger.open('ledger.json')."
        raise InputError(msg)
    if rng is not None:
        msg = (
            "rng: a seeded release is not private, and no ledger can account for it; leave rng= or "
            f"{mention('ledger')} out."
        )
        raise InputError(msg)
    points = points_of(plan, subset)
    if entry is None:
        return ledger.authorise(plan.guarantee, mechanism=plan.mechanism, domain=plan.domain, **points, taken=taken)
    ledger.settle(entry, plan.guarantee, mechanism=plan.mechanism, domain=plan.domain, **points)
    return entry


def paid_before(ledger: object, entry: str | None) -> bool:
    """Whether a ledger gave an authorisation before the release began."""
    return isinstance(ledger, Account) and entry is not None and ledger.knows(entry)


def require_no_ledger_needed(**given: object) -> None:
    """Refuse what is said to a ledger where there is none."""
    for name, value in given.items():
        if value is not None:
            msg = f"{name}: it is for a ledger; give the {mention('ledger')} as well, which authorises the release."
            raise InputError(msg)


def record(release: Result, ledger: Account | None, entry: str | None) -> None:
    """Tell the ledger what an authorised release has measured. What was paid for is never lost because that fails."""
    if ledger is None or entry is None:
        return
    try:
        ledger.record(entry, release.certificate_dict(), domain=release.domain, kept=release.kept)
    except (DpppsynthError, OSError):
        msg = (
            "ledger: the release could not be recorded. It counts as spent, at all that was authorised for it; its "
            "certificate names the entry."
        )
        warnings.warn(msg, InformationWarning, stacklevel=outside())
