"""Maps: patterns, intensities, meshes, and the confidential comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from dpppsynth.domains import Window
from dpppsynth.errors import InputError
from dpppsynth.intensity import Intensity, PiecewiseConstant
from dpppsynth.mesh import Floats, Mesh
from dpppsynth.patterns import PointPattern
from dpppsynth.plotting.canvas import INK, LANDMARK, POINT, draw_window, map_figure, outline, planar, set_view
from dpppsynth.plotting.saving import CONFIDENTIAL, WARNING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Along the longer side of an intensity; a piecewise constant one has edges, and three times as many.
PIXELS = 240


def plot_pattern(
    pattern: PointPattern,
    ax: Axes | None = None,
    *,
    landmarks: PointPattern | None = None,
    landmark_label: str = "landmark",
    title: str | None = None,
) -> Axes:
    """Draw the points of a pattern in its window; coincident points make one larger dot.

    Parameters
    ----------
    pattern : PointPattern
    ax : matplotlib.axes.Axes, optional
    landmarks : PointPattern, optional
        Public places to show for orientation; those outside the window are left out.
    landmark_label : str
        What the landmarks are, in the singular.
    title : str, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    window = planar(pattern.domain)
    ax = draw_window(window, ax, title)
    _dots(pattern, ax)
    if landmarks is not None:
        _landmarks(landmarks, window, landmark_label, ax)
    return ax


def plot_intensity(
    intensity: Intensity,
    ax: Axes | None = None,
    *,
    landmarks: PointPattern | None = None,
    landmark_label: str = "landmark",
    title: str | None = None,
) -> Axes:
    """Draw an intensity as a filled surface, clipped to the window, with a colour bar in points per squared unit.

    Parameters
    ----------
    intensity : Intensity
        For instance `release.intensity`.
    ax, landmarks, landmark_label, title
        As in `plot_pattern`.

    Returns
    -------
    matplotlib.axes.Axes
    """
    from matplotlib.patches import PathPatch

    window = intensity.mesh.domain
    ax = draw_window(window, ax or map_figure(window, beside=1.1).subplots(), title)
    steps = isinstance(intensity, PiecewiseConstant)
    values = _raster(intensity, window, PIXELS * 3 if steps else PIXELS)
    x0, y0, x1, y1 = window.bounds
    image = ax.imshow(
        values,
        extent=(x0, x1, y0, y1),
        origin="lower",
        cmap="viridis",
        vmin=0.0,
        interpolation="nearest" if steps else "bilinear",
        zorder=1,
        aspect="equal",
    )
    clip = PathPatch(outline(window.geometry), facecolor="none", edgecolor="none", transform=ax.transData)
    ax.add_patch(clip)
    image.set_clip_path(clip)
    set_view(window, ax)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8, pad=0.02, label=f"points per {window.unit}²")
    bar.outline.set_visible(False)
    bar.ax.ticklabel_format(axis="y", scilimits=(-2, 3))
    if landmarks is not None:
        _landmarks(landmarks, window, landmark_label, ax, edge="white")
    return ax


def plot_mesh(mesh: Mesh, ax: Axes | None = None, *, title: str | None = None) -> Axes:
    """Draw a mesh with its vertices, on a rectangular window also with the Voronoi cells dual to it.

    Parameters
    ----------
    mesh : Mesh
    ax : matplotlib.axes.Axes, optional
    title : str, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    from matplotlib.collections import LineCollection

    ax = draw_window(mesh.domain, ax, title)
    corner = mesh.vertices[mesh.elements]
    width = float(np.clip(12 / math.sqrt(len(mesh.elements)), 0.3, 1.2))
    closed = np.concatenate([corner, corner[:, :1]], axis=1)
    ax.add_collection(LineCollection(list(closed), colors=INK, linewidths=width, zorder=3, label="mesh"))
    if mesh.domain.is_rectangle:
        # Neighbours share a border: drawn twice, its dashes would fill each other's gaps.
        borders = shapely.union_all(shapely.boundary(mesh.voronoi_cells())).difference(mesh.domain.geometry.boundary)
        lines = [shapely.get_coordinates(part) for part in shapely.get_parts(shapely.line_merge(borders))]
        dashes: Any = (0, (4, 3))
        ax.add_collection(
            LineCollection(lines, colors=LANDMARK, linewidths=width, linestyles=dashes, label="dual cells")
        )
    ax.plot(*mesh.vertices.T, "o", color=POINT, markersize=4 * width + 1, zorder=4, label="vertices")
    x0, y0, x1, y1 = shapely.total_bounds(shapely.multipoints(mesh.vertices))
    set_view(mesh.domain, ax, (float(x0), float(y0), float(x1), float(y1)))
    ax.legend(loc="lower right", bbox_to_anchor=(1, -0.01), ncols=3, frameon=False, fontsize=10, handlelength=1.6)
    return ax


def plot_comparison(
    original: PointPattern,
    synthetic: PointPattern,
    axes: Sequence[Axes] | None = None,
    *,
    landmarks: PointPattern | None = None,
    landmark_label: str = "landmark",
) -> tuple[Axes, Axes]:
    """Draw the sensitive pattern beside a synthetic one, marked CONFIDENTIAL: for the custodian's eyes.

    Parameters
    ----------
    original, synthetic : PointPattern
        In the same window.
    axes : two matplotlib.axes.Axes, optional
        Of one figure.
    landmarks, landmark_label
        As in `plot_pattern`.

    Returns
    -------
    tuple of two matplotlib.axes.Axes

    Raises
    ------
    InputError
        The patterns lie in different windows.
    """
    window = planar(original.domain)
    if window.fingerprint() != planar(synthetic.domain).fingerprint():
        msg = "synthetic: it lies in another window than the original; compare patterns of one window"
        raise InputError(msg)
    left, right = axes if axes is not None else map_figure(window, panels=2).subplots(1, 2)
    marks: dict[str, Any] = {"landmarks": landmarks, "landmark_label": landmark_label}
    plot_pattern(original, left, title="Original (sensitive)", **marks)
    plot_pattern(synthetic, right, title="Synthetic", **marks)
    _mark_confidential(left.figure)
    return left, right


def _dots(pattern: PointPattern, ax: Axes) -> None:
    """One dot a place, its area in proportion to the points there."""
    place, count = np.unique(pattern.xy, axis=0, return_counts=True)
    ax.scatter(place[:, 0], place[:, 1], s=10.0 * count, color=POINT, alpha=0.65, linewidths=0, zorder=3)


def _landmarks(landmarks: PointPattern, window: Window, label: str, ax: Axes, edge: str = "white") -> None:
    xy = landmarks.xy[window.contains(landmarks.xy)]
    ax.plot(*xy.T, "^", color=LANDMARK, markeredgecolor=edge, markersize=9, zorder=5, label=label)
    ax.legend(loc="lower right", bbox_to_anchor=(1, -0.01), frameon=False, fontsize=10, handletextpad=0.2)


def _raster(intensity: Intensity, window: Window, pixels: int) -> Floats:
    """(rows, columns) intensity at pixel centres, first row at the bottom; zero away from the window."""
    x0, y0, x1, y1 = window.bounds
    step = max(x1 - x0, y1 - y0) / pixels
    columns, rows = (max(2, round(side / step)) for side in (x1 - x0, y1 - y0))
    x = x0 + (np.arange(columns) + 0.5) * (x1 - x0) / columns
    y = y0 + (np.arange(rows) + 0.5) * (y1 - y0) / rows
    xy = np.column_stack([g.ravel() for g in np.meshgrid(x, y)])
    # Pixels far outside are clipped away, so their values are not worth computing.
    shapely.prepare(window.geometry)
    near = shapely.dwithin(window.geometry, shapely.points(xy), 2 * step)
    values = np.zeros(len(xy))
    values[near] = intensity(xy[near])
    return values.reshape(rows, columns)


def _mark_confidential(figure: Any) -> None:
    figure.set_label(CONFIDENTIAL)
    figure.suptitle(
        f"{CONFIDENTIAL}: shows sensitive points, not for release", color=WARNING, fontsize=12, weight="bold"
    )
    figure.text(
        0.5, 0.48, CONFIDENTIAL, rotation=24, ha="center", va="center", fontsize=64, color=WARNING, alpha=0.13,
        weight="bold", zorder=10,
    )  # fmt: skip
