"""Plots of epsilon against distance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dpppsynth.core.rounding import stated
from dpppsynth.core.units import short_unit
from dpppsynth.plotting.canvas import LANDMARK, POINT, new_figure, set_title
from dpppsynth.plotting.relation_words import changed_marks, distance_moved, what_changes
from dpppsynth.privacy.guarantee import Guarantee, PureDP
from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP
from dpppsynth.spatial.mesh import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A curve is shown up to this epsilon, or this many times that of the claim.
TELLING, FAR_ABOVE = 10.0, 4.0


def plot_epsilon_curve(
    guarantee: Guarantee,
    ax: Axes | None = None,
    *,
    unit: str = "unit",
    along: str | None = None,
    title: str | None = None,
) -> Axes:
    """Draw epsilon for one point that moves, by the distance it moves.

    Where the guarantee does not depend on distance the line is level; where it is made to persons, it is theirs. Under
    geo-indistinguishability distances are in cells of the public grid.

    Parameters
    ----------
    guarantee : Guarantee
    ax : matplotlib.axes.Axes, optional
    unit : str
        Unit of length of the domain, `domain.unit`.
    along : str, optional
        Path of the distances, such as "the streets"; straight lines unless given.
    title : str, optional
    """
    ax = new_figure(6.4, 4.2).subplots() if ax is None else ax
    distance, values = _polyline(guarantee)
    reach = guarantee.relation.reach
    right = distance[-1] if guarantee.by_distance or not math.isfinite(reach) else 4 * reach
    cut = _shown(guarantee, distance, values)
    ax.plot(distance, values, color=POINT, linewidth=2.2)
    at = f" at δ = {stated(guarantee.profile.at, 3)}" if guarantee.profile.at else ""
    ax.set(xlim=(0, min(right, cut)), ylabel=f"ε{at} (0: cannot be told apart)")
    top = max(float(np.interp(min(right, cut), distance, values)), guarantee.epsilon_of_one_point())
    ax.set_ylim(0, 1.12 * top)
    if reach <= distance[-1] and guarantee.relation.unit == "point":
        _mark_radius(ax, guarantee, float(np.interp(reach, distance, values)), short_unit(unit))
    if cut < distance[-1]:
        far = f"goes on to ε = {stated(values[-1], 3)} at {distance[-1]:,.0f} {short_unit(unit)}"
        ax.text(0.98, 0.13, far, transform=ax.transAxes, ha="right", color=POINT)
    ax.set_xlabel(distance_moved(guarantee, short_unit(unit), along))
    if not guarantee.by_distance and not math.isfinite(reach):
        ax.set(xticks=[], xlabel=what_changes(guarantee))
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#e4e1dc", linewidth=0.8)
    ax.set_axisbelow(True)
    set_title(ax, "What an attacker can tell apart" if title is None else title)
    return ax


def _polyline(guarantee: Guarantee) -> tuple[Floats, Floats]:
    """Distances and epsilons of one point; level where the guarantee does not depend on distance.

    A guarantee that is not pure and has no values by distance says nothing beyond the privacy radius.
    """
    if guarantee.by_distance:
        distance, values = np.array([(0.0, 0.0), *guarantee.by_distance]).T
        return _through_the_claim(guarantee, distance, values)
    reach = guarantee.relation.reach
    far = 4 * reach if isinstance(guarantee.profile, PureDP | TruncatedLaplaceDP) else reach
    return np.array([0.0, far if math.isfinite(far) else 1.0]), np.full(2, guarantee.epsilon_of_one_point())


def _through_the_claim(guarantee: Guarantee, distance: Floats, values: Floats) -> tuple[Floats, Floats]:
    """The curve with the claim as one of its points, where the claim is about the same move."""
    reach, epsilon = guarantee.relation.reach, guarantee.epsilon()
    if guarantee.relation.unit != "point" or changed_marks(guarantee) or not 0 < reach <= distance[-1]:
        return distance, values
    place = int(np.searchsorted(distance, reach))
    if epsilon > values[place] * (1 + 1e-6):
        return distance, values
    # What is claimed at the radius holds nearer by as well.
    values = np.where(distance <= reach, np.minimum(values, epsilon), values)
    return np.insert(distance, place, reach), np.insert(values, place, epsilon)


def _shown(guarantee: Guarantee, distance: Floats, values: Floats) -> float:
    """Distance up to which the curve is shown: beyond, its numbers tell nothing but that there is no protection."""
    most = max(TELLING, FAR_ABOVE * guarantee.epsilon_of_one_point())
    return float(distance[-1]) if values[-1] <= most else float(np.interp(most, values, distance))


def _mark_radius(ax: Axes, guarantee: Guarantee, at_radius: float, unit: str) -> None:
    """A dot on the curve at the privacy radius; the claim as a line of its own where it is about marks as well."""
    reach, epsilon, marks = guarantee.relation.reach, guarantee.epsilon(), changed_marks(guarantee)
    dashes: Any = {"color": LANDMARK, "linewidth": 1.2, "linestyle": (0, (4, 3))}
    ax.plot([reach, reach, 0], [0, at_radius, at_radius], **dashes)
    ax.plot([reach], [at_radius], "o", color=LANDMARK, markersize=6)
    kept = ", marks kept" if marks else ""
    text = f"privacy radius {reach:g} {unit}{kept}: ε = {stated(at_radius, 3)}"
    # Every curve rises or is level: its lower right corner is free.
    ax.text(0.98, 0.05, text, transform=ax.transAxes, ha="right", color=LANDMARK)
    if marks or stated(epsilon, 3) != stated(at_radius, 3):
        ax.plot([0, reach], [epsilon, epsilon], color=LANDMARK, linewidth=2.2)
        also = f", {marks} changed" if marks else ""
        text = f"claimed: up to {reach:g} {unit}{also}: ε = {stated(epsilon, 3)}"
        ax.text(0.98, 0.21, text, transform=ax.transAxes, ha="right", color=LANDMARK)
