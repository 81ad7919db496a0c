"""Points of patterns as dots, transparent where there are many, in colours where they have types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpppsynth.core.errors import InputError
from dpppsynth.plotting.canvas import POINT, shortened
from dpppsynth.spatial.patterns import PointPattern

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette without its yellow, which white paper swallows; and what all further types share.
PALETTE = (POINT, "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4a2c8f")
OTHER, OTHERS = "#8a8580", "other"
# Area in square points and opacity of a dot, up to so many points; beyond, the one falls as their root, the other as
# the root of that, both to the least.
AREA, OPACITY, MANY = 10.0, 0.65, 2_000
LEAST_AREA, LEAST_OPACITY = 1.4, 0.2


def draw_dots(pattern: PointPattern, ax: Axes, *, by: str | None = None, number: int | None = None) -> list[Any]:
    """Draw one dot a place (and type), its area in proportion to the points there; return handles for a legend.

    Parameters
    ----------
    pattern : PointPattern
    ax : matplotlib.axes.Axes
    by : str, optional
        Mark whose values have colours.
    number : int, optional
        Number of points that opacity and area suit, that of the pattern unless given.
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
    values, kind = np.unique((pattern.marks or {})[by].astype(str), return_inverse=True)
    names = [(k, shortened(str(value))) for k, value in enumerate(values[: len(PALETTE)])]
    further = [(len(PALETTE), OTHERS)] if len(values) > len(PALETTE) else []
    return [*names, *further], np.minimum(kind, len(PALETTE))
