"""Curves: epsilon by distance, K-functions and envelopes, released series."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from dpppsynth.core.arguments import instance, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.rounding import stated
from dpppsynth.core.units import short_unit
from dpppsynth.plotting.canvas import INK, LANDMARK, POINT, new_figure, panel_axes, plain_axes, set_title
from dpppsynth.privacy.guarantee import Guarantee, PureDP
from dpppsynth.privacy.relations import (
    TRAJECTORY,
    AddRemovePerson,
    CappedRelation,
    GeoIndistinguishability,
    Local,
    MovedPoint,
)
from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.second_order import Envelope, KFunction

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

    Where the guarantee does not depend on distance the line is level. Where several points of a person may change, the
    person's epsilon is a line of its own. Under geo-indistinguishability distances are in cells of the public grid.

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
    cut, persons = _shown(guarantee, distance, values), person(guarantee)
    ax.plot(distance, values, color=POINT, linewidth=2.2)
    at = f" at δ = {stated(guarantee.profile.at, 3)}" if guarantee.profile.at else ""
    ax.set(xlim=(0, min(right, cut)), ylabel=f"ε{' of one point' if persons else ''}{at} (0: cannot be told apart)")
    top = max(float(np.interp(min(right, cut), distance, values)), guarantee.epsilon() if persons else 0.0)
    ax.set_ylim(0, 1.12 * max(top, guarantee.epsilon_of_one_point()))
    if persons:
        _mark_person(ax, guarantee, min(right, cut, reach), short_unit(unit))
    if reach <= distance[-1] and guarantee.relation.unit == "point":
        _mark_radius(ax, guarantee, float(np.interp(reach, distance, values)), short_unit(unit))
    if cut < distance[-1]:
        far = f"goes on to ε = {stated(values[-1], 3)} at {distance[-1]:,.0f} {short_unit(unit)}"
        ax.text(0.98, 0.13, far, transform=ax.transAxes, ha="right", color=POINT)
    ax.set_xlabel(distance_moved(guarantee, short_unit(unit), along))
    if not guarantee.by_distance and not math.isfinite(reach):
        ax.set(xticks=[], xlabel=what_changes(guarantee))
    plain_axes(ax)
    set_title(ax, "What an attacker can tell apart" if title is None else title)
    return ax


def _polyline(guarantee: Guarantee) -> tuple[Floats, Floats]:
    """Distances and epsilons of one point; level, and up to the radius, where the guarantee has none by distance."""
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


def person(guarantee: Guarantee) -> str:
    """A person with the points that are promised about, in words; empty where each point is a person."""
    relation = guarantee.relation
    if not isinstance(relation, CappedRelation) or relation.unit == "point":
        return ""
    if relation.user is not None:
        return "a person with all points"
    return f"a person with up to {relation.max_points_per_person} points"


def _mark_person(ax: Axes, guarantee: Guarantee, right: float, unit: str) -> None:
    """The epsilon of a person as a line of its own, up to the privacy radius."""
    epsilon, reach = guarantee.epsilon(), guarantee.relation.reach
    ax.plot([0, right], [epsilon, epsilon], color=LANDMARK, linewidth=2.2)
    within = f", each up to {reach:g} {unit}" if math.isfinite(reach) else ""
    text = f"claimed: {person(guarantee)}{within}: ε = {stated(epsilon, 3)}"
    ax.text(0.98, 0.05, text, transform=ax.transAxes, ha="right", color=LANDMARK)


def what_changes(guarantee: Guarantee) -> str:
    """Change between neighbours, in words, where a guarantee does not depend on distance."""
    relation = guarantee.relation
    if isinstance(relation, AddRemovePerson):
        return "one person is added or removed, with all their points"
    if relation == Local(TRAJECTORY):
        return "one person has another trajectory, of any length"
    if isinstance(relation, Local | GeoIndistinguishability):
        return "one person is somewhere else, however far away"
    return "one point moves, however far" if relation.n_is_public else "one point is added or removed"


def distance_moved(guarantee: Guarantee, unit: str, along: str | None) -> str:
    """Description of a guarantee's distances, with their unit."""
    if isinstance(guarantee.relation, GeoIndistinguishability):
        return "distance between two places (squares of the public grid)"
    kept = ", its marks kept" if keeps_marks(guarantee) else ""
    return f"distance one point moves{'' if along is None else f' along {along}'}{kept} ({unit})"


def keeps_marks(guarantee: Guarantee) -> bool:
    """Whether distances are about a point that keeps its marks, which neighbours need not."""
    return isinstance(guarantee.relation, MovedPoint) and guarantee.relation.has_marks


def changed_marks(guarantee: Guarantee) -> str:
    """Marks that change with a point between neighbours, in words; empty where none does."""
    if not isinstance(guarantee.relation, MovedPoint):
        return ""
    reach = zip(("time", "type"), guarantee.relation.marks_reach, strict=True)
    return " and ".join(word for word, far in reach if far)


def plot_k_function(
    k: KFunction | Mapping[str, KFunction], ax: Axes | None = None, *, unit: str = "unit", title: str | None = None
) -> Axes:
    """Draw L(r) - r of K-functions in a window, K(r) - r along streets; a Poisson process is the level line at zero.

    Parameters
    ----------
    k : KFunction, or mapping of str to KFunction
        Of `evaluation.k_function` or `linear_network.k_function`; several need names, and one kind of domain.
    ax : matplotlib.axes.Axes, optional
    unit : str
        Unit of length, `domain.unit`.
    title : str, optional
    """
    curves = dict(k) if isinstance(k, Mapping) else {"": instance("k", k, KFunction)}
    for each in curves.values():
        instance("k", each, KFunction)
    if len({each.planar for each in curves.values()}) != 1:
        msg = "k: needs one or several K-functions, all of windows or all of networks"
        raise InputError(msg)
    ax = new_figure(6.4, 4.4).subplots() if ax is None else ax
    for name, each in curves.items():
        ax.plot(each.r, each.l - each.r, linewidth=2.0, label=name or None)
    planar = next(iter(curves.values())).planar
    return label_curves(ax, f"r ({short_unit(unit)})", "L(r) - r" if planar else "K(r) - r", title)


def plot_envelope(band: Envelope, ax: Axes | None = None, *, unit: str = "unit", title: str | None = None) -> Axes:
    """Draw an observed curve in the band of simulated ones: L- or K-functions less r, pair correlations less 1.

    Parameters
    ----------
    band : Envelope
        Of `evaluation.envelope`.
    ax : matplotlib.axes.Axes, optional
    unit : str
        Unit of length, `domain.unit`.
    title : str, optional
    """
    ax = new_figure(6.4, 4.4).subplots() if ax is None else ax
    base, what = (1.0, "g(r) - 1") if band.curve == "g" else (band.r, f"{band.curve}(r) - r")
    kind = f"simulated, {'simultaneous' if band.simultaneous else 'pointwise'} band"
    label = f"{kind} at level {band.level:.3g}"
    ax.fill_between(band.r, band.lower - base, band.upper - base, color=LANDMARK, alpha=0.22, linewidth=0, label=label)
    ax.plot(band.r, band.mean - base, color=LANDMARK, linewidth=1.6, label="simulated, mean")
    ax.plot(band.r, band.observed - base, color=POINT, linewidth=2.2, label="observed")
    return label_curves(ax, f"r ({short_unit(unit)})", what, title)


def label_curves(ax: Axes, xlabel: str, ylabel: str, title: str | None) -> Axes:
    """Axes of curves by distance: labels, a Poisson process as a level line, a legend below, where no curve can be."""
    ax.axhline(0.0, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), label="Poisson process")
    ax.margins(x=0)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    plain_axes(ax)
    ax.legend(loc="upper left", bbox_to_anchor=(-0.02, -0.16), ncols=2, frameon=False, fontsize=10)
    if title is not None:
        set_title(ax, title)
    return ax


# Panels of a picture, and in a row of it; inches of each.
PANELS, IN_ROW, WIDTH, HEIGHT = 6, 3, 4.2, 2.8
# Levels that have room for their names under a panel.
NAMED = 12


@runtime_checkable
class Series(Protocol):
    """A release of one series, or of several side by side, with a bound on its errors."""

    @property
    def raw(self) -> Ints:
        """(N,) or (N, T) released numbers."""

    @property
    def filtered(self) -> Floats:
        """(N,) or (N, T) numbers after smoothing."""

    @property
    def max_error(self) -> float:
        """Bound on the errors of `raw`."""


def plot_series(
    release: Series, filtered: Any = None, *, cells: Sequence[int] | None = None, title: str | None = None
) -> list[Axes]:
    """Draw released series with their bound and filtered ones, a panel for each cell.

    Parameters
    ----------
    release : BoundedErrorSeries or Answers
    filtered : Filtered, optional
        From `release.filter(...)`; `release.filtered` unless given.
    cells : sequence of int, optional
        Numbers of the cells to draw, twelve at most; unless given six with the largest released numbers.
    title : str, optional
        Of a single series; cells are named by their numbers.

    Raises
    ------
    InputError
        The release is no series, or the filtered one is another's, or there are no such cells.
    """
    if not isinstance(release, Series):
        msg = f"release: needs counts with bounded error by levels, or answers, got {type(release).__name__}."
        raise InputError(msg)
    raw = np.asarray(release.raw, dtype=np.float64)
    smooth = np.asarray(release.filtered if filtered is None else filtered.estimate, dtype=np.float64)
    if raw.shape != smooth.shape or raw.ndim not in (1, 2) or not raw.size:
        msg = "filtered: must be what `release.filter(...)` of this very release gives, of at least one number."
        raise InputError(msg)
    shown = _chosen(raw, cells)
    names = [f"cell {cell}" for cell in shown] if raw.ndim == 2 else [title or "Released series"]
    raw, smooth = raw.reshape(len(raw), -1), smooth.reshape(len(raw), -1)
    every = panel_axes(len(shown), IN_ROW, WIDTH, HEIGHT)
    for ax, cell, name in zip(every, shown, names, strict=False):
        _panel(ax, raw[:, cell], smooth[:, cell], float(release.max_error))
        set_title(ax, name)
        _levels(ax, release, len(raw))
    # Under all panels, where it covers no number.
    handles, labels = every[0].get_legend_handles_labels()
    figure: Any = every[0].figure
    figure.legend(handles, labels, loc="outside lower right", ncols=3, frameon=False, fontsize=9)
    return every[: len(shown)]


def _chosen(raw: Floats, cells: Sequence[int] | None) -> list[int]:
    number = 1 if raw.ndim == 1 else raw.shape[1]
    if cells is None:
        return sorted(np.argsort(-raw.reshape(len(raw), -1).sum(axis=0), kind="stable")[:PANELS].tolist())
    found = [whole("cells", cell, 0, most=number - 1) for cell in cells]
    if not 1 <= len(found) <= 2 * PANELS:
        msg = f"cells: needs 1 to {2 * PANELS} of them, got {len(found)}."
        raise InputError(msg)
    return found


def _panel(ax: Axes, raw: Floats, smooth: Floats, bound: float) -> None:
    """Released numbers with their bound, and the filtered line."""
    at = np.arange(len(raw))
    if math.isfinite(bound):
        ax.fill_between(at, raw - bound, raw + bound, color=POINT, alpha=0.12, linewidth=0, label="truth is within")
    ax.plot(at, raw, "o", color=POINT, markersize=4, label="released")
    ax.plot(at, smooth, color=LANDMARK, linewidth=2, label="filtered")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(colors=INK)


def _levels(ax: Axes, release: Any, number: int) -> None:
    """Names of levels under the axis, of some where there are many."""
    levels = list(getattr(release, "levels", ()))
    if len(levels) != number:
        return
    every = range(0, number, math.ceil(number / NAMED))
    ax.set_xticks(list(every), [str(levels[k]) for k in every], rotation=45 if number > IN_ROW else 0)
    ax.set_xlabel(str(release.by))
