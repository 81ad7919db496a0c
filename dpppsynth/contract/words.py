"""`MechanismWords`: text on a mechanism, for reports, pictures and the command line."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from dpppsynth.contract.result import Result
from dpppsynth.contract.statistic import Statistic
from dpppsynth.privacy.guarantee import Guarantee

P = TypeVar("P", bound=Statistic)
P_contra = TypeVar("P_contra", bound=Statistic, contravariant=True)
R_contra = TypeVar("R_contra", bound=Result, contravariant=True)


@dataclass(frozen=True, kw_only=True)
class MechanismWords(Generic[P_contra, R_contra]):
    """Text on a mechanism; defaults hold for any mechanism.

    Attributes
    ----------
    description : str
        How the released points are made, in a few sentences without formulas.
    intensity : str
        Source of the intensity, for its caption in a report.
    title : str
        Title of a picture of the intensity.
    counts : {"points", "persons"}
        Whom or what the intensity counts.
    moved : bool
        Whether the released points are those of the data, each moved; they are not called synthetic then.
    """

    description: str
    intensity: str = "from the released numbers"
    title: str = "Private intensity"
    counts: str = "points"
    moved: bool = False

    def describe(self, plan: P_contra, by: str | None = None) -> str:
        """The description of a plan's release, also of one level of the mark `by`."""
        return self.description

    @property
    def near(self) -> str:
        """Clause on the distances between near neighbours, to end a sentence on what survives."""
        why = (
            "every point was moved independently of the others"
            if self.moved
            else "synthetic points are placed independently of each other once the intensity is given"
        )
        return f"what points do to their near neighbours does not, because {why}."

    def errors(self, plan: P_contra, by: str | None = None) -> list[str]:
        """Sentences on bounded errors of counts and places; empty without a bound.

        Parameters
        ----------
        plan : Statistic
            Of the mechanism; of several levels that with the largest errors (`largest_error_plan`).
        by : str, optional
            Name of the mark whose levels were released one by one.
        """
        return []

    def costs(self, plan: P_contra, guarantee: Guarantee) -> list[str]:
        """Paragraphs on the privacy cost of these error bounds."""
        return []

    def shown(self, plan: P_contra) -> str | None:
        """Caption of the points on a map, where they are not synthetic."""
        return None

    def reports(self, plans: Sequence[P_contra]) -> str | None:
        """Number of reports of all levels; None without reports."""
        return None

    def remarks(self, release: R_contra) -> list[str]:
        """Sentences on the released numbers, for the custodian."""
        return []

    def pair_remarks(self, release: R_contra) -> list[str]:
        """Those of them that are on pairs of near points, for a report's K-function."""
        return []

    def figures(self, release: R_contra) -> dict[str, float]:
        """Numbers in the sentences of `remarks`, by name."""
        return {}

    def alarm(self, release: R_contra) -> str | None:
        """Warning that the released numbers may be mostly noise."""
        return None

    def spent(self, mechanism: str) -> str:
        """Reason why no further patterns can be drawn from a release without an intensity."""
        return (
            f"is a {mechanism} release; its patterns were paid for one by one, and a further one would be a new spend "
            "(synthesize, with a new budget)"
        )


def largest_error_plan(plans: Iterable[P]) -> P:
    """The statistic with the largest error bound; one without a bound comes before all others."""
    return max(plans, key=_most)


def _most(plan: Statistic) -> float:
    most = getattr(plan, "max_error", None)
    return math.inf if most is None else float(most)
