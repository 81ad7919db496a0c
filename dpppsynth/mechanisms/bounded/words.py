"""Report text on bounded errors and moved points: the bound on errors, and its cost in delta.

Everything follows from public parameters.
"""

import math
from collections.abc import Mapping
from typing import Any

from dpppsynth.core.units import short_unit
from dpppsynth.mechanisms.bounded.plan import BoundedCountsPlan
from dpppsynth.mechanisms.planar_laplace.plan import PlanarLaplacePlan
from dpppsynth.mechanisms.planar_laplace.words import farthest
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.odds import fraction
from dpppsynth.release import Release, StratifiedRelease

# At so large an epsilon delta is what no epsilon covers.
FAR = 700.0


def errors(plan: Any, by: str | None = None) -> list[str]:
    """Bounds on the errors of counts and places; nothing where no bound was asked for and nothing moved.

    Parameters
    ----------
    plan : BoundedCountsPlan, PlanarLaplacePlan or any other
        What the budget was spent on, of one level where there are several.
    by : str, optional
        Name of the mark whose levels were released one by one.

    Examples
    --------
    >>> from dpppsynth import BoundedErrorSynthesizer, Window
    >>> square = Window.rectangle(0, 0, 1000, 1000)
    >>> plan = BoundedErrorSynthesizer(epsilon=1.0, max_error=28).plan(square, n=400).statistic
    >>> errors(plan)[0]
    'No count is off by more than 28: larger noise was drawn again.'
    """
    match plan:
        case BoundedCountsPlan():
            return _of_counts(plan.max_error, by)
        case PlanarLaplacePlan():
            return _of_moves(plan, by)
        case _:
            return []


def measured(release: Release | StratifiedRelease) -> Any:
    """Plan that the budget was spent on; of several levels, that with the largest errors."""
    levels = list(release.releases.values()) if isinstance(release, StratifiedRelease) else [release]
    plans = [getattr(each.statistic, "plan", None) for each in levels]
    return max(plans, key=_most)


def _most(plan: Any) -> float:
    """Bound on the error of a plan; infinite where it has none."""
    most = getattr(plan, "max_error", None)
    return math.inf if most is None else float(most)


def price(guarantee: Guarantee, parameters: Mapping[str, Any]) -> list[str]:
    """Cost of a hard bound: outcomes, rare ones as a rule, that only one of two cases can have.

    Parameters
    ----------
    guarantee : Guarantee
    parameters : mapping
        Public parameters, as they stand on the certificate.
    """
    if _one(parameters).get("max_error") is None:
        return []
    least = guarantee.delta(max(FAR, guarantee.epsilon()))
    told = (
        "The hard bound on the error has a price. Some outcomes are possible in one of the two cases alone, and tell "
        f"for certain which it is. Their probability is at most {fraction(least)}. No error has a bound without that."
    )
    return [told]


def moves(parameters: Mapping[str, Any]) -> bool:
    """Whether the released points are those of the data, each moved, by the public parameters of a release."""
    return _one(parameters).get("basis") == PlanarLaplacePlan.basis


def shown(plan: Any) -> str | None:
    """Caption of the points on a map, where they are moved ones."""
    if not isinstance(plan, PlanarLaplacePlan):
        return None
    far = f", by {farthest(plan.error_bound, plan.domain)} at most" if math.isfinite(plan.error_bound) else ""
    return (
        f"Every point below stands for a point of the data, moved at random{far}. Where it lies tells no more about "
        "the true place than the guarantee above allows"
    )


def _of_counts(most: int, by: str | None) -> list[str]:
    holds = (
        "That holds for the noisy counts, also with zero in place of those below it. The intensity and the synthetic "
        "points have errors of their own."
    )
    said = [f"No count is off by more than {most:,}: larger noise was drawn again.", holds]
    if by is not None:
        said.append(f"Counts that a filter made smoother over the levels of {by} may be off by up to {2 * most:,}.")
    return said


def _of_moves(plan: PlanarLaplacePlan, by: str | None) -> list[str]:
    domain, most = plan.domain, plan.max_error
    if most is None:
        mean = f"{2 / plan.rate:.4g} {short_unit(domain.unit)}"
        said = [f"There is no bound on how far a point was moved: {mean} on average, and some several times as far."]
    else:
        said = [f"No point was moved by more than {farthest(most, domain)}: longer moves were drawn again."]
        if plan.error_bound > most:
            said.append(
                "Points that fell outside the area were put into the nearest place inside. With that, none is farther "
                f"than {farthest(plan.error_bound, domain)} from where it was."
            )
    if not plan.track:
        said.append(f"The points are in random order{'' if by is None else f' within each level of {by}'}.")
    else:
        twice = "" if most is None else f" They may be off by up to {farthest(2 * most, domain)}."
        said.append(
            "The points are one person's track, in its order, which is public. Positions that a filter made smoother "
            f"follow from the moved ones alone.{twice}"
        )
    return said


def _one(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Parameters of the release, or of its first level: all levels have the same bound."""
    if "strata" not in parameters:
        return parameters
    first: Mapping[str, Any] = parameters["strata"][0]["parameters"]
    return first
