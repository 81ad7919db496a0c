"""Pictures of patterns, intensities, meshes and guarantees.

Every function draws into the axes given as `ax=`, or into a figure of its own, and returns the axes; `save_picture`
writes them as PNG. Maps have equal scales, the y axis upwards, and a scale bar in the unit of the window. No picture
states a number of points. `plot_comparison` shows sensitive points: it is marked CONFIDENTIAL, and `save_picture`
refuses to put it into the folder of a release.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from dpppsynth.domains import Window
from dpppsynth.errors import InputError
from dpppsynth.intensity import Intensity, PiecewiseConstant
from dpppsynth.mesh import Floats, Mesh
from dpppsynth.patterns import PointPattern
from dpppsynth.privacy.certificate import FILENAME
from dpppsynth.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.path import Path as Outline

CONFIDENTIAL = "CONFIDENTIAL"
# Of Okabe and Ito's palette, which colour-blind readers can tell apart.
POINT, LANDMARK, SECOND = "#0072b2", "#d55e00", "#cc79a7"
LAND, BORDER, INK, WARNING = "#f4f2ee", "#8a8580", "#2b2b2b", "#b00020"
ABBREVIATIONS = {"metre": "m", "kilometre": "km", "foot": "ft", "US survey foot": "US ft", "unit": "units"}
PIXELS = (
    240  # along the longer side of an intensity; a piecewise constant one, which has edges, has three times as many
)


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
    window = _window(pattern.domain)
    ax = _map(window, ax, title)
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
    ax = _map(window, ax or _figure(window, beside=1.1).subplots(), title)
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
    clip = PathPatch(_outline(window.geometry), facecolor="none", edgecolor="none", transform=ax.transData)
    ax.add_patch(clip)
    image.set_clip_path(clip)
    _view(window, ax)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8, pad=0.02, label=f"points per {window.unit}²")
    bar.outline.set_visible(False)
    bar.formatter.set_powerlimits((-2, 3))
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

    ax = _map(mesh.domain, ax, title)
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
    _view(mesh.domain, ax, (float(x0), float(y0), float(x1), float(y1)))
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
    window = _window(original.domain)
    if window.fingerprint() != _window(synthetic.domain).fingerprint():
        msg = "synthetic: it lies in another window than the original; compare patterns of one window"
        raise InputError(msg)
    left, right = axes if axes is not None else _figure(window, panels=2).subplots(1, 2)
    marks: dict[str, Any] = {"landmarks": landmarks, "landmark_label": landmark_label}
    plot_pattern(original, left, title="Original (sensitive)", **marks)
    plot_pattern(synthetic, right, title="Synthetic", **marks)
    _mark_confidential(left.figure)
    return left, right


def plot_epsilon_curve(
    guarantee: Guarantee, ax: Axes | None = None, *, unit: str = "unit", title: str | None = None
) -> Axes:
    """Draw what an attacker can tell apart: epsilon for one point that moves, by the distance it moves.

    Where the guarantee does not depend on distance the line is level.

    Parameters
    ----------
    guarantee : Guarantee
    ax : matplotlib.axes.Axes, optional
    unit : str
        Unit of length of the domain, `domain.unit`.
    title : str, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = _new_figure(6.4, 4.2).subplots() if ax is None else ax
    reach, epsilon = guarantee.relation.reach, guarantee.epsilon()
    level = not guarantee.by_distance
    distance, values = np.array([(0.0, 0.0), *guarantee.by_distance]).T
    if level:
        distance, values = np.array([0.0, reach if math.isfinite(reach) else 1.0]), np.full(2, epsilon)
        distance[1] *= 4 if math.isfinite(reach) else 1
    ax.plot(distance, values, color=POINT, linewidth=2.2)
    bounded = math.isfinite(reach) and reach <= distance[-1]
    if bounded and guarantee.relation.max_points_per_person == 1:
        ax.plot([reach, reach, 0], [0, epsilon, epsilon], color=LANDMARK, linewidth=1.2, linestyle=(0, (4, 3)))
        ax.plot([reach], [epsilon], "o", color=LANDMARK, markersize=6)
        text = f"privacy radius {reach:g} {_short(unit)}: ε = {epsilon:.3g}"
        ax.annotate(text, (reach, epsilon), (10, -4), textcoords="offset points", va="top", color=LANDMARK)
    ax.set(xlim=(0, distance[-1]), ylim=(0, 1.12 * values.max()), ylabel="ε (0: cannot be told apart)")
    moved = "any distance" if level and not bounded else f"distance one point moves ({_short(unit)})"
    ax.set_xlabel("one point is added or removed" if not guarantee.relation.n_is_public else moved)
    if level and not bounded:
        ax.set_xticks([])
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#e4e1dc", linewidth=0.8)
    ax.set_axisbelow(True)
    _title(ax, "What an attacker can tell apart" if title is None else title)
    return ax


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
        What the error calls it.

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


def _window(domain: Any) -> Window:
    if not isinstance(domain, Window):
        msg = f"domain: this picture needs a planar Window; got {type(domain).__name__}"
        raise InputError(msg)
    return domain


def _short(unit: str) -> str:
    return ABBREVIATIONS.get(unit, unit)


def _new_figure(width: float, height: float) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    engine: Any = figure.get_layout_engine()
    engine.set(w_pad=0.12, h_pad=0.12)
    return figure


def _figure(window: Window, panels: int = 1, beside: float = 0.0) -> Figure:
    """A figure whose size suits the shape of the window, with inches to spare `beside` it."""
    x0, y0, x1, y1 = window.bounds
    ratio = float(np.clip((y1 - y0) / (x1 - x0), 0.35, 2.0))
    width = 6.4 / math.sqrt(ratio)
    return _new_figure(width * panels + beside, width * ratio + 0.8)


def _map(window: Window, ax: Axes | None, title: str | None) -> Axes:
    """Prepare axes: the window as land, a scale bar under it, nothing else."""
    from matplotlib.patches import PathPatch

    ax = _figure(window).subplots() if ax is None else ax
    outline = _outline(window.geometry)
    ax.add_patch(PathPatch(outline, facecolor=LAND, edgecolor="none", zorder=0))
    ax.add_patch(PathPatch(outline, facecolor="none", edgecolor=BORDER, linewidth=1.0, zorder=2.5))
    ax.set_aspect("equal")
    ax.set_axis_off()
    if title:
        _title(ax, title)
    _view(window, ax)
    _scale_bar(window, ax)
    return ax


def _view(window: Window, ax: Axes, bounds: tuple[float, float, float, float] | None = None) -> None:
    """Show the window (or wider bounds) with a thin margin, and room for the scale bar below."""
    boxes = np.array([window.bounds, bounds or window.bounds])
    (x0, y0), (x1, y1) = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
    margin = 0.015 * max(x1 - x0, y1 - y0)
    room = _bar_level(window) - 2.6 * margin
    ax.set(xlim=(x0 - margin, x1 + margin), ylim=(min(room, y0 - margin), y1 + margin))


def _bar_level(window: Window) -> float:
    x0, y0, x1, y1 = window.bounds
    return y0 - 0.045 * max(x1 - x0, y1 - y0)


def _title(ax: Axes, text: str) -> None:
    ax.set_title(text, loc="left", fontsize=13, color=INK, pad=8)


def _scale_bar(window: Window, ax: Axes) -> None:
    x0, y0, x1, y1 = window.bounds
    rough = (x1 - x0) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    length = max(step * power for step in (1, 2, 5) if step * power <= rough)
    level = _bar_level(window)
    tick = 0.012 * max(x1 - x0, y1 - y0)
    bar = [(x0, level + tick), (x0, level), (x0 + length, level), (x0 + length, level + tick)]
    ax.plot(*np.array(bar).T, color=INK, linewidth=1.4, solid_capstyle="butt", solid_joinstyle="miter", clip_on=False)
    in_km = window.unit == "metre" and length >= 1000
    text = f"{length / 1000:g} km" if in_km else f"{length:g} {_short(window.unit)}"
    ax.annotate(text, (x0 + length, level), (6, 0), textcoords="offset points", va="center", fontsize=10, color=INK)


def _dots(pattern: PointPattern, ax: Axes) -> None:
    """One dot a place, its area in proportion to the points there."""
    place, count = np.unique(pattern.xy, axis=0, return_counts=True)
    ax.scatter(*place.T, s=10.0 * count, color=POINT, alpha=0.65, linewidths=0, zorder=3)


def _landmarks(landmarks: PointPattern, window: Window, label: str, ax: Axes, edge: str = "white") -> None:
    xy = landmarks.xy[window.contains(landmarks.xy)]
    ax.plot(*xy.T, "^", color=LANDMARK, markeredgecolor=edge, markersize=9, zorder=5, label=label)
    ax.legend(loc="lower right", bbox_to_anchor=(1, -0.01), frameon=False, fontsize=10, handletextpad=0.2)


def _outline(geometry: Any) -> Outline:
    """Compound path of all rings; holes run the other way round, so they stay empty."""
    from matplotlib.path import Path as Outline

    rings = shapely.get_rings(shapely.get_parts(shapely.orient_polygons(geometry)))
    return Outline.make_compound_path(*(Outline(shapely.get_coordinates(ring), closed=True) for ring in rings))


def _raster(intensity: Intensity, window: Window, pixels: int) -> Floats:
    """(rows, columns) intensity at pixel centres, first row at the bottom; outside the window that of the nearest element."""
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
