"""Pictures of released series: what was released, how far the truth may be from it, and what a filter makes of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from dpppsynth.core.arguments import whole
from dpppsynth.core.errors import InputError
from dpppsynth.plotting.canvas import INK, LANDMARK, POINT, new_figure, set_title
from dpppsynth.spatial.mesh import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
        """(N,) or (N, T) the same, made smoother."""

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
    columns = min(IN_ROW, len(shown))
    rows = math.ceil(len(shown) / columns)
    every = np.ravel(new_figure(columns * WIDTH, rows * HEIGHT).subplots(rows, columns, squeeze=False)).tolist()
    for ax, cell, name in zip(every, shown, names, strict=False):
        _panel(ax, raw[:, cell], smooth[:, cell], float(release.max_error))
        set_title(ax, name)
        _levels(ax, release, len(raw))
    for ax in every[len(shown) :]:
        ax.set_axis_off()
    # Under all panels, where it covers no number.
    handles, labels = every[0].get_legend_handles_labels()
    every[0].figure.legend(handles, labels, loc="outside lower right", ncols=3, frameon=False, fontsize=9)
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
