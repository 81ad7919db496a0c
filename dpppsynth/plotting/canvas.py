"""Figures, domain backgrounds, scale bars, dots and files that all pictures share."""

from __future__ import annotations

import builtins
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from dpppsynth.core.arguments import instance
from dpppsynth.core.errors import InputError
from dpppsynth.core.rounding import round_length
from dpppsynth.core.units import short_unit
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.plotting.background import MARGIN, Background, frame
from dpppsynth.release.certificate import FILENAME
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.time_periods import in_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.path import Path as Outline

    from dpppsynth.spatial.domains import Domain
    from dpppsynth.spatial.mesh import Floats

# Okabe and Ito's palette, which colour-blind readers can tell apart.
POINT, LANDMARK = "#0072b2", "#d55e00"
# Letters of a name at most, and of all names side by side under a map.
LONGEST_NAME, LETTERS_BELOW = 24, 60
# Edges of a network from which its streets are drawn thinner.
WIDE = 2_000
LAND, BORDER, STREET, INK, PALE, GRID = "#f4f2ee", "#8a8580", "#b5aea5", "#2b2b2b", "#6b6660", "#e4e1dc"


def new_figure(width: float, height: float) -> Figure:
    """Make a figure of the given inches: one of pyplot's where IPython shows it, elsewhere one of its own."""
    settings: Any = {"figsize": (width, height), "layout": "constrained", "facecolor": "white"}
    if hasattr(builtins, "__IPYTHON__"):
        from matplotlib import pyplot

        figure = pyplot.figure(**settings)
    else:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(**settings)
        FigureCanvasAgg(figure)
    engine: Any = figure.get_layout_engine()
    engine.set(w_pad=0.12, h_pad=0.12)
    return figure


def panel_axes(count: int, in_row: int, width: float, height: float, below: float = 0.0) -> list[Axes]:
    """Axes of `count` panels of a size in inches, with room `below` them; surplus axes of the last row are hidden."""
    columns = min(in_row, count)
    rows = math.ceil(count / columns)
    figure = new_figure(columns * width, rows * height + below)
    every: list[Axes] = np.ravel(figure.subplots(rows, columns, squeeze=False)).tolist()
    for ax in every[count:]:
        ax.set_axis_off()
    return every


def map_figure(domain: Domain, panels: int = 1, below: float = 0.0) -> Figure:
    """A figure whose size suits the shape of the domain, with inches to spare `below` it."""
    x0, y0, x1, y1 = frame(domain)
    ratio = float(np.clip((y1 - y0) / (x1 - x0), 0.35, 2.0))
    width = 6.4 / math.sqrt(ratio)
    return new_figure(width * panels, width * ratio + 0.8 + below)


def draw_domain(
    domain: Domain, ax: Axes | None, title: str | None, background: Background | None = None, *, bar: bool = True
) -> Axes:
    """Prepare axes: the window as land or the streets as thin lines, a background, a scale bar under it if `bar`."""
    from matplotlib.collections import LineCollection
    from matplotlib.patches import PathPatch

    ax = map_figure(domain).subplots() if ax is None else ax
    if isinstance(domain, LinearNetwork):
        lines = [shapely.get_coordinates(line) for line in domain.lines]
        width = 1.2 * thinner(domain)
        streets = LineCollection(lines, colors=STREET, linewidths=width, capstyle="round", zorder=0.5)
        ax.add_collection(streets, autolim=False)
    else:
        shape = outline(domain.geometry)
        ax.add_patch(PathPatch(shape, facecolor=LAND, edgecolor="none", zorder=0))
        ax.add_patch(PathPatch(shape, facecolor="none", edgecolor=BORDER, linewidth=1.0, zorder=2.5))
    if background is not None:
        instance("background", background, Background, "as Background.read(path, domain) makes it").draw(domain, ax)
    ax.set_aspect("equal")
    ax.set_axis_off()
    if title:
        set_title(ax, title)
    set_view(domain, ax)
    if bar:
        _scale_bar(domain, ax)
    return ax


def thinner(network: LinearNetwork) -> float:
    """Factor by which streets of a large network are drawn thinner, so that they do not run into each other."""
    return float(np.clip(math.sqrt(WIDE / len(network.edges)), 0.25, 1.0))


def set_view(domain: Domain, ax: Axes, bounds: tuple[float, float, float, float] | None = None) -> None:
    """Show the domain (or wider bounds) with a thin margin, and room for the scale bar below."""
    boxes = np.array([frame(domain), bounds or frame(domain)])
    (x0, y0), (x1, y1) = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
    margin = MARGIN * max(x1 - x0, y1 - y0)
    room = _bar_level(domain) - 2.6 * margin
    ax.set(xlim=(x0 - margin, x1 + margin), ylim=(min(room, y0 - margin), y1 + margin))


def in_view(domain: Domain, xy: Floats) -> Floats:
    """(m, 2) those of the coordinates (n, 2) that lie in the window, or in the bounding box of the streets."""
    if not isinstance(domain, LinearNetwork):
        return xy[domain.contains(xy)]
    x0, y0, x1, y1 = frame(domain)
    return xy[(xy >= (x0, y0)).all(axis=1) & (xy <= (x1, y1)).all(axis=1)]


def set_title(ax: Axes, text: str) -> None:
    """Write a title above the left corner; further lines are written smaller."""
    first, *further = text.split("\n")
    ax.set_title(first, loc="left", fontsize=13, color=INK, pad=8 + 14 * len(further)).set_parse_math(False)
    if further:
        place: Any = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "bottom", "ha": "left"}
        ax.annotate("\n".join(further), (0, 1), (0, 7), fontsize=9.5, color=PALE, **place).set_parse_math(False)


def title_above(figure: Any, text: str) -> None:
    """Write a title above all maps of a figure, at their left."""
    figure.suptitle(text, x=0.01, ha="left", fontsize=11, color=INK).set_parse_math(False)


def plain_axes(ax: Axes) -> None:
    """Style axes of curves: horizontal grid lines, and no frame beside the two axes."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)


def legend_below(ax: Axes, handles: Sequence[Any], **style: Any) -> None:
    """Put a legend under a map, to the right of its scale bar, where no point can lie; names are no formulas."""
    longest = max(len(str(each.get_label())) for each in handles)
    columns = max(1, min(len(handles), LETTERS_BELOW // (longest + 6)))
    place = {"loc": "upper right", "bbox_to_anchor": (1.0, 0.0), "borderaxespad": 0.2, "ncols": columns}
    look = {"frameon": False, "fontsize": 10, "handletextpad": 0.4, "columnspacing": 1.2}
    legend = ax.legend(handles=list(handles), **{**place, **look, **style})
    for text in legend.get_texts():
        text.set_parse_math(False)


def shortened(name: str) -> str:
    """A name short enough for a legend or a small title."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def outline(geometry: Any) -> Outline:
    """Compound path of all rings; holes run the other way round, so they stay empty."""
    from matplotlib.path import Path as Outline

    rings = shapely.get_rings(shapely.get_parts(shapely.orient_polygons(geometry)))
    return Outline.make_compound_path(*(Outline(shapely.get_coordinates(ring), closed=True) for ring in rings))


def _bar_level(domain: Domain) -> float:
    x0, y0, x1, y1 = frame(domain)
    return y0 - 0.045 * max(x1 - x0, y1 - y0)


def _scale_bar(domain: Domain, ax: Axes) -> None:
    x0, y0, x1, y1 = frame(domain)
    length = round_length((x1 - x0) / 4)
    level = _bar_level(domain)
    tick = 0.012 * max(x1 - x0, y1 - y0)
    bar = [(x0, level + tick), (x0, level), (x0 + length, level), (x0 + length, level + tick)]
    ax.plot(*np.array(bar).T, color=INK, linewidth=1.4, solid_capstyle="butt", solid_joinstyle="miter", clip_on=False)
    in_km = domain.unit == "metre" and length >= 1000
    text = f"{length / 1000:g} km" if in_km else f"{length:g} {short_unit(domain.unit)}"
    ax.annotate(text, (x0 + length, level), (6, 0), textcoords="offset points", va="center", fontsize=10, color=INK)


# Okabe and Ito's palette without its yellow, which white paper swallows; and what all further types share.
PALETTE = (POINT, "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4a2c8f")
OTHER, OTHERS = "#8a8580", "other"
# Area in square points and opacity of a dot, up to so many points; beyond, the one falls as their root, the other as
# the root of that, both to the least.
AREA, OPACITY, MANY = 10.0, 0.65, 2_000
LEAST_AREA, LEAST_OPACITY = 1.4, 0.2


def draw_dots(pattern: PointPattern, ax: Axes, *, by: str | None = None, number: int | None = None) -> list[Any]:
    """Draw one dot per place (and type), its area in proportion to the points there; return handles for a legend.

    The values of a mark `by` have colours. Opacity and area suit `number` points, those of the pattern unless given.
    """
    from matplotlib.lines import Line2D

    share = min(1.0, (MANY / max(1, len(pattern) if number is None else number)) ** 0.5)
    area, opacity = max(LEAST_AREA, AREA * share), max(LEAST_OPACITY, OPACITY * share**0.5)
    names, kind = _kinds(pattern, by)
    colours = np.array([*PALETTE, OTHER] if by is not None else [POINT])
    place, first, count = np.unique(np.column_stack([pattern.xy, kind]), axis=0, return_index=True, return_counts=True)
    # In the order of the pattern, so that no type lies on top of all others; one collection a size keeps SVG small.
    order = np.argsort(first, kind="stable")
    place, count = place[order], count[order]
    for points in np.unique(count):
        chosen = count == points
        x, y, which = place[chosen].T
        colour = colours[which.astype(int)].tolist()
        ax.scatter(x, y, s=area * points, c=colour, alpha=opacity, linewidths=0, zorder=3)
    style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 6}
    return [Line2D([], [], color=colours[k], label=name, **style) for k, name in names]


def _kinds(pattern: PointPattern, by: str | None) -> tuple[list[tuple[int, str]], Any]:
    """Numbers and names of the values of a mark, and the number of each point's value."""
    if by is None:
        return [], np.zeros(len(pattern))
    if by not in (pattern.marks or {}):
        msg = f"by: the pattern has no mark {by!r}; it has {', '.join(pattern.marks or {}) or 'none'}."
        raise InputError(msg)
    found, number = np.unique((pattern.marks or {})[by].astype(str), return_inverse=True)
    values = in_order(found.tolist())
    kind = np.array([values.index(each) for each in found.tolist()], dtype=int)[number]
    names = [(k, shortened(value)) for k, value in enumerate(values[: len(PALETTE)])]
    further = [(len(PALETTE), OTHERS)] if len(values) > len(PALETTE) else []
    return [*names, *further], np.minimum(kind, len(PALETTE))


# The label of a figure that shows sensitive points.
CONFIDENTIAL = "CONFIDENTIAL"
WARNING = "#b00020"


def mark_confidential(figure: Any, why: str, *, size: float = 64) -> None:
    """Label a figure and mark it as confidential, so that `save_picture` keeps it out of every release."""
    figure.set_label(CONFIDENTIAL)
    figure.suptitle(f"{CONFIDENTIAL}: {why}, not for release", color=WARNING, fontsize=12, weight="bold")
    figure.text(
        0.5, 0.48, CONFIDENTIAL, rotation=24, ha="center", va="center", fontsize=size, color=WARNING, alpha=0.13,
        weight="bold", zorder=10,
    )  # fmt: skip


def save_picture(axes: Axes | Sequence[Axes], path: str | Path, *, dpi: int = 150) -> Path:
    """Write the figure of some axes as PNG; folders are made as needed.

    Raises
    ------
    InputError
        A confidential picture would land in the folder of a release (one that holds certificate.json) or below it.
    """
    ax = axes[0] if isinstance(axes, Sequence) else axes
    figure: Any = ax.figure
    target = Path(path)
    confidential = figure.get_label() == CONFIDENTIAL
    if confidential:
        refuse_release_folder(target.parent)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700 if confidential else 0o777)
    # A confidential file is readable by its owner alone from the moment it exists.
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if confidential else 0o666)
    with os.fdopen(handle, "wb") as stream:
        if confidential:
            target.chmod(0o600)
        figure.savefig(stream, format="png", dpi=dpi)
    return target


def refuse_release_folder(folder: str | Path, argument: str = "confidential") -> None:
    """Refuse a folder that belongs to a release, where only the release itself may write.

    Parameters
    ----------
    folder : str or Path
    argument : str
        Name of the file in errors.

    Raises
    ------
    InputError
        The folder, or one above it, holds certificate.json.
    """
    place = Path(folder).resolve()
    for each in (place, *place.parents):
        if (each / FILENAME).exists():
            msg = f"{argument}: {folder} lies in the public folder of a release ({each}); choose a folder outside it"
            raise InputError(msg)
