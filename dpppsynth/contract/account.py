"""`Account`: interface of ledgers to releases; `Planned`: what a ledger reads of a plan."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dpppsynth.core.types import JsonRead
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.domains import Domain

# Mark and value of the points, where they are not all points of the domain.
Subset = Mapping[str, str | int] | None
# Mark, and the public number of points of each of its levels.
Levels = Mapping[str, Mapping[str, int | None]] | None


class Account:
    """Base of ledgers: all operations that a release needs."""

    def holds(self, entry: str) -> bool:
        """Whether an entry, given with its secret, is an authorisation that no release has used."""
        raise NotImplementedError

    def caution(self, guarantee: Guarantee) -> str | None:
        """Warning about a guarantee that the budget accepts and does not keep for all that it protects, or None."""
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
        """Use an authorisation, once, for a release whose guarantee is known only now."""
        raise NotImplementedError

    def give_up(self, entry: str) -> None:
        """Use an authorisation without a release: it counts as spent."""
        raise NotImplementedError

    def record(self, entry: str, cert: JsonRead, *, domain: Domain, kept: Path | None = None) -> None:
        """Record a measurement by its certificate, and the folder in which it is kept."""
        raise NotImplementedError


class Planned(Protocol):
    """Interface of plans to ledgers."""

    @property
    def mechanism(self) -> str:
        """Name of the mechanism, for instance "lgcp-tents"."""

    @property
    def domain(self) -> Domain:
        """Public window or network."""

    @property
    def guarantee(self) -> Guarantee:
        """The privacy that the release spends."""

    @property
    def n(self) -> int | None:
        """Public number of points, or of units of `count_unit`; None where it is secret or not known yet."""

    @property
    def count_unit(self) -> str | None:
        """Mark whose values n counts, such as trajectories; None where n counts points."""

    @property
    def levels(self) -> Levels:
        """Mark and public numbers of points, where each level of the mark is released by itself."""


@dataclass(frozen=True)
class Ceiling:
    """Upper bound on a plan, used before the number of points is known."""

    mechanism: str
    domain: Domain
    guarantee: Guarantee
    n: int | None = None
    count_unit: str | None = None
    levels: Levels = None


def counted_few(relation: Relation) -> str | None:
    """Description for a ledger of what n counts where each person's points are capped; None where all points count."""
    cap = relation.user_cap
    return None if cap is None else f"{cap.user}, at most {cap.most} each"


def points_of(plan: Planned, subset: Subset) -> dict[str, Any]:
    """Facts about the points that a plan reads, for a ledger."""
    return {"n": plan.n, "count_unit": plan.count_unit, "subset": subset, "levels": plan.levels}
