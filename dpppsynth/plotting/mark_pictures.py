"""Pictures of released marks: maps by type and by time under one colour scale, shares of types, a clock of times."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpppsynth.contract.result import Marked, require_marked
from dpppsynth.core.arguments import one_of
from dpppsynth.core.errors import InputError
from dpppsynth.core.units import density_unit
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.plotting.background import Background, frame
from dpppsynth.plotting.canvas import (
    GRID,
    INK,
    MANY,
    POINT,
    draw_domain,
    new_figure,
    panel_axes,
    plain_axes,
    set_title,
    set_view,
    shortened,
    title_above,
)
from dpppsynth.plotting.surfaces import NARROW, ColourScale, Painting, draw_colour_bar
from dpppsynth.spatial.mark_space import HOURS_OF_WEEK, Times
from dpppsynth.spatial.mesh import Floats, Ints, Mesh
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.time_periods import DAYS, MOST, in_order, instant_text, periods

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Panels of a picture, and in a row of it; inches of each.
PANELS, IN_ROW, PANEL = MOST, 4, 2.6
# Steps of a curve between two instants with a hat.
STEPS = 12


# Instants that a period of the calendar is the mean of.
WITHIN = 12


@dataclass(frozen=True)
class IntensityOfMark:
    """An intensity of points with marks, of one type, or at one instant or on average over several."""

    whole: Any
    chosen: Mapping[str, Any]
    times: tuple[float, ...] = ()

    @property
    def mesh(self) -> Mesh:
        """Mesh in space."""
        found: Mesh = self.whole.mesh
        return found

    def __call__(self, xy: Floats) -> Floats:
        return np.asarray(np.mean([self.whole(xy, **each) for each in self._each()], axis=0), dtype=np.float64)

    def _each(self) -> list[dict[str, Any]]:
        """The chosen types, at each of the times where there are some."""
        return [{**self.chosen, "time": time} for time in self.times] if self.times else [dict(self.chosen)]

    def at(self, element: Ints, weight: Floats, positions: Floats) -> Floats:
        """(n,) values at positions in the given elements."""
        found = [self.whole.at(element, weight, positions, **each) for each in self._each()]
        return np.asarray(np.mean(found, axis=0), dtype=np.float64)


def plot_by_type(
    release: Marked,
    types: Sequence[str] | None = None,
    *,
    pattern: PointPattern | None = None,
    background: Background | None = None,
    title: str | None = None,
) -> list[Axes]:
    """Draw the intensity of each type, all under one colour scale; streets are all as wide.

    Parameters
    ----------
    release : MarkedRelease
    types : sequence of str, optional
        The first twelve unless given, days of the week from Monday on.
    pattern : PointPattern, optional
        Synthetic points of the release, drawn above the map of their type.
    background, title
        As in `plot_pattern`; the title is that of all maps together.

    Raises
    ------
    InputError
        The points have no types, or not these.
    """
    own = require_marked(release).marks.types
    if own is None:
        msg = "release: its points have no types; plot_by_time draws their times."
        raise InputError(msg)
    first = in_order(own.values)[:PANELS]
    shown = [one_of("types", each, own.values) for each in (first if types is None else types)]
    points = [] if pattern is None else [pattern.xy[_marked(pattern, own.name) == each] for each in shown]
    parts = {each: IntensityOfMark(release.intensity, {"type": each}) for each in shown}
    return draw_panels(parts, points, background=background, title=title)


def plot_by_time(
    release: Marked,
    times: Sequence[float] | None = None,
    *,
    type: str | None = None,  # noqa: A002 - as in `intensity`
    pattern: PointPattern | None = None,
    background: Background | None = None,
    title: str | None = None,
) -> list[Axes]:
    """Draw the intensity by time, all under one colour scale; streets are all as wide.

    Parameters
    ----------
    release : MarkedRelease
    times : sequence of float, optional
        Instants. Unless given means over periods, those of `dpppsynth.release.write_intensity`: years or months of the
        calendar where dates span two to twelve, days of a week, three hours each of a day, else eight equal parts.
    type : str, optional
        Of this type alone.
    pattern : PointPattern, optional
        Synthetic points of the release, each drawn above the map of its period, or of the nearest instant.
    background, title
        As in `plot_by_type`.

    Raises
    ------
    InputError
        The points have no times, or not these.
    """
    own = require_marked(release).marks.times
    if own is None:
        msg = "release: its points have no times; plot_by_type draws their types."
        raise InputError(msg)
    spans = periods(own) if times is None else {}
    shown: Any = [] if times is None else own.require(times)
    points = []
    if pattern is not None:
        at = _marked(pattern, own.name)
        if spans:
            nearest = np.searchsorted([start for start, _ in spans.values()][1:], at, side="right")
        else:
            nearest = np.argmin([own.distance(at, each) for each in shown], axis=0)
        mine = np.ones(len(pattern), dtype=bool)
        if type is not None and release.marks.types is not None:
            mine = _marked(pattern, release.marks.types.name) == type
        points = [pattern.xy[(nearest == k) & mine] for k in range(len(spans or shown))]
    chosen = {} if type is None else {"type": type}
    instants = {instant_text(own, each): (float(each),) for each in shown}
    within = (np.arange(WITHIN) + 0.5) / WITHIN
    means = {name: tuple((start + (end - start) * within).tolist()) for name, (start, end) in spans.items()}
    parts = {name: IntensityOfMark(release.intensity, chosen, each) for name, each in (means or instants).items()}
    per = f" and {own.unit.removesuffix('s')}" if own.unit else ", per unit of time"
    return draw_panels(parts, points, per=per, background=background, title=title)


def plot_marginal(
    release: Marked, mark: str, ax: Axes | None = None, *, level: float = 0.9, title: str | None = None
) -> Axes:
    """Draw expected points of each type, or by time around a clock or along a line, with credible intervals.

    Parameters
    ----------
    release : MarkedRelease
    mark : {"types", "time"}
    ax : matplotlib.axes.Axes, optional
        A polar one for a clock.
    level : float
        Probability of the intervals.
    title : str, optional
    """
    one_of("mark", mark, ("types", "time"))
    table, times = require_marked(release).marginal(mark, level), release.marks.times
    band = f"{level:.0%} credible"
    if mark == "types" or times is None:
        ax = _bars(table, ax, band)
    elif times.periodic:
        ax = _clock(table, times, ax, band)
    else:
        ax = _curve(table, times, ax, band)
    set_title(ax, title or ("Types" if mark == "types" else "Times"))
    return ax


def _marked(pattern: PointPattern, name: str) -> Any:
    if name not in (pattern.marks or {}):
        msg = f"pattern: has no mark {name!r}; take one of release.sample()."
        raise InputError(msg)
    return (pattern.marks or {})[name]


def draw_panels(
    parts: Mapping[str, Any],
    points: Sequence[Floats] = (),
    *,
    of: str = "points",
    per: str = "",
    background: Background | None = None,
    title: str | None = None,
) -> list[Axes]:
    """Draw intensities, by their titles, as maps of equal size, side by side, under one colour scale and scale bar.

    Each map may have points (n, 2) above it. `of` is what the intensity counts, `per` what it is by beside area.
    """
    domain = next(iter(parts.values())).mesh.domain
    streets = isinstance(domain, LinearNetwork)
    x0, y0, x1, y1 = frame(domain)
    ratio = float(np.clip((y1 - y0) / (x1 - x0), 0.4, 2.0))
    size = PANEL / math.sqrt(ratio), PANEL * math.sqrt(ratio) + 0.5
    every = panel_axes(len(parts), IN_ROW, *size, below=1.2)
    unit, _ = density_unit(domain.unit, streets=streets)
    paintings = [Painting.of(each) for each in parts.values()]
    scale = ColourScale.of([each.shades() for each in paintings])
    for k, (name, painting, ax) in enumerate(zip(parts, paintings, every, strict=False)):
        draw_domain(domain, ax, None, background, bar=k == 0)
        ax.set_title(shortened(name), loc="left", fontsize=11, color=INK, pad=4).set_parse_math(False)
        shown = painting.draw(ax, scale, width=NARROW)
        set_view(domain, ax)
    for ax, xy in zip(every, points, strict=False):
        share = min(1.0, MANY / max(1, sum(map(len, points)))) ** 0.5
        style: dict[str, Any] = {"s": max(0.8, 5 * share), "alpha": max(0.25, share)}
        ax.scatter(*xy.T, color="white", edgecolors=INK, linewidths=0.35 * share, zorder=3, **style)
    draw_colour_bar(shown, every, f"{of} per {unit}{per}", scale, "streets" if streets else "area")
    if title:
        title_above(every[0].figure, title)
    return every[: len(parts)]


def _bars(table: Any, ax: Axes | None, band: str) -> Axes:
    ax = new_figure(5.6, 1.4 + 0.34 * len(table)).subplots() if ax is None else ax
    table = table.loc[in_order([*table.index])]
    place = np.arange(len(table))
    ax.barh(place, table["points"], color=POINT, alpha=0.35, height=0.7)
    ax.hlines(place, table["lower"], table["upper"], color=INK, linewidth=1.6, label=band)
    ax.set_yticks(place, list(table.index))
    ax.invert_yaxis()
    ax.set(xlabel="expected points", xlim=(0, None))
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, fontsize=10)
    return ax


def _rates(table: Any, times: Times) -> tuple[Floats, dict[str, Floats]]:
    """Instants (m,), once around where there is a clock, and expected points for a unit of time at them."""
    nodes = np.append(times.nodes, times.end) if times.periodic else times.nodes
    fine = np.linspace(nodes[0], nodes[-1], STEPS * (len(nodes) - 1) + 1)
    found = {}
    for name in ("points", "lower", "upper"):
        rate = table[name].to_numpy() / times.measure
        found[name] = np.interp(fine, nodes, np.append(rate, rate[0]) if times.periodic else rate)
    return fine, found


def _draw_rates(ax: Axes, at: Floats, rates: Mapping[str, Floats], band: str) -> None:
    ax.fill_between(at, rates["lower"], rates["upper"], color=POINT, alpha=0.22, linewidth=0, label=band)
    ax.plot(at, rates["points"], color=POINT, linewidth=2.0, label="released")


def _clock(table: Any, times: Times, ax: Axes | None, band: str) -> Axes:
    polar: Any = new_figure(5.0, 5.2).subplots(subplot_kw={"projection": "polar"}) if ax is None else ax
    fine, rates = _rates(table, times)
    polar.set_theta_zero_location("N")
    polar.set_theta_direction(-1)
    _draw_rates(polar, 2 * np.pi * (fine - times.start) / times.length, rates, band)
    top = 1.08 * float(rates["upper"].max())
    parts = 7 if times.length == HOURS_OF_WEEK else 8
    if parts == 7:
        # A day lies between two lines, and its name outside in its middle.
        labels = [""] * parts
        for k, day in enumerate(DAYS):
            polar.text(2 * np.pi * (k + 0.5) / parts, 1.1 * top, day, ha="center", va="center")
    else:
        labels = [instant_text(times, times.start + times.length * k / parts) for k in range(parts)]
    polar.set_xticks(2 * np.pi * np.arange(parts) / parts, labels)
    polar.set_ylim(0, top)
    polar.set_rlabel_position(0 if parts == 7 else 360 / parts / 2)
    polar.grid(color=GRID, linewidth=0.8)
    polar.spines["polar"].set_color(GRID)
    polar.tick_params(axis="y", labelsize=8, colors="#6b6660")
    unit = f"points per {times.unit.removesuffix('s')}" if times.unit else "points per unit of time"
    polar.set_xlabel(unit, labelpad=26 if parts == 7 else 6)
    polar.legend(loc="lower left", bbox_to_anchor=(-0.12, -0.16), frameon=False, fontsize=10)
    return polar


def _curve(table: Any, times: Times, ax: Axes | None, band: str) -> Axes:
    ax = new_figure(6.4, 3.6).subplots() if ax is None else ax
    fine, rates = _rates(table, times)
    _draw_rates(ax, fine, rates, band)
    ax.set(xlim=(times.start, times.end), ylim=(0, 1.08 * rates["upper"].max()))
    unit = times.unit.removesuffix("s") or "unit of time"
    ax.set(ylabel=f"points per {unit}", xlabel=times.name + (f" ({times.unit})" if not times.origin else ""))
    if times.origin:
        ticks = np.unique(np.rint(np.linspace(times.start, times.end, 6)))
        ax.set_xticks(ticks, [instant_text(times, each) for each in ticks])
    plain_axes(ax)
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, fontsize=10)
    return ax
