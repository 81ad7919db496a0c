"""Plots of epsilon against distance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dpppsynth.core.units import short_unit
from dpppsynth.plotting.canvas import LANDMARK, POINT, new_figure, set_title
from dpppsynth.plotting.relation_words import changed_marks, distance_moved, what_changes
from dpppsynth.privacy.guarantee import Guarantee, PureDP
from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP
from dpppsynth.spatial.mesh import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    ax.plot(distance, values, color=POINT, linewidth=2.2)
    if reach <= distance[-1] and guarantee.relation.unit == "point":
        also = f", {changed} changed" if (changed := changed_marks(guarantee)) else ""
        _mark_radius(ax, reach, guarantee.epsilon(), short_unit(unit) + also)
    right = distance[-1] if guarantee.by_distance or not math.isfinite(reach) else 4 * reach
    at = f" at δ = {guarantee.profile.at:g}" if guarantee.profile.at else ""
    ax.set(xlim=(0, right), ylim=(0, 1.12 * values.max()), ylabel=f"ε{at} (0: cannot be told apart)")
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
        return distance, values
    reach = guarantee.relation.reach
    far = 4 * reach if isinstance(guarantee.profile, PureDP | TruncatedLaplaceDP) else reach
    return np.array([0.0, far if math.isfinite(far) else 1.0]), np.full(2, guarantee.epsilon_of_one_point())


def _mark_radius(ax: Axes, reach: float, epsilon: float, unit: str) -> None:
    ax.plot([reach, reach, 0], [0, epsilon, epsilon], color=LANDMARK, linewidth=1.2, linestyle=(0, (4, 3)))
    ax.plot([reach], [epsilon], "o", color=LANDMARK, markersize=6)
    text = f"privacy radius {reach:g} {unit}: ε = {epsilon:.3g}"
    # Every curve rises or is level: its lower right corner is free.
    ax.text(0.98, 0.05, text, transform=ax.transAxes, ha="right", color=LANDMARK)
