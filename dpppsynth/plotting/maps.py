"""Maps of patterns, intensities, heat maps, meshes and relative risk, and the confidential comparison."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import shapely

from dpppsynth.contract.result import HeatMapped, require_heat_map
from dpppsynth.core.arguments import instance, positive, probability, real_array
from dpppsynth.core.errors import InputError
from dpppsynth.core.units import density_unit
from dpppsynth.inference.risk import RelativeRisk
from dpppsynth.linear_network import LinearNetwork, NetworkMesh
from dpppsynth.plotting.background import Background
from dpppsynth.plotting.canvas import (
    INK,
    LANDMARK,
    POINT,
    draw_domain,
    draw_dots,
    in_view,
    legend_below,
    map_figure,
    mark_confidential,
    set_view,
)
from dpppsynth.plotting.surfaces import (
    BELOW,
    PIXELS,
    ColourScale,
    Painting,
    Shades,
    bar_with_ticks,
    draw_colour_bar,
    draw_raster,
    draw_streets,
    pixels_near,
    raster_of,
    street_values,
)
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.grid_smoothing import SIGMA, gaussian_heatmap
from dpppsynth.spatial.intensity import Intensity
from dpppsynth.spatial.mesh import Floats, Mesh
from dpppsynth.spatial.minimum_cost_flow import unit_masses
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.planar_mesh import PlanarMesh

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Above so many vertices a mesh is drawn without them.
VERTICES = 2_500


def plot_pattern(
    pattern: PointPattern,
    ax: Axes | None = None,
    *,
    by: str | None = None,
    landmarks: PointPattern | None = None,
    landmark_label: str = "landmark",
    background: Background | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the points of a pattern in its window or on its streets; coincident points make one larger dot.

    From 2 000 points on dots are smaller and more transparent, so that many can be told from few.

    Parameters
    ----------
    pattern : PointPattern
    ax : matplotlib.axes.Axes, optional
    by : str, optional
        Name of a mark whose values have colours, the first seven of them.
    landmarks : PointPattern, optional
        Public places to show for orientation; those outside the window, or the streets' bounding box, are left out.
    landmark_label : str
        Kind of the landmarks, in the singular.
    background : Background, optional
        Public roads, districts and places, such as ``Background.read("roads.gpkg", pattern.domain)``.
    title : str, optional
        Lines below the first are written smaller.

    Raises
    ------
    InputError
        The pattern has no such mark.
    """
    return _pattern_map(pattern, ax, title, landmarks, landmark_label, background, by=by)


def _pattern_map(
    pattern: PointPattern,
    ax: Axes | None,
    title: str | None,
    landmarks: PointPattern | None,
    landmark_label: str,
    background: Background | None,
    *,
    by: str | None = None,
    number: int | None = None,
) -> Axes:
    ax = draw_domain(pattern.domain, ax, title, background)
    handles = draw_dots(pattern, ax, by=by, number=number)
    if landmarks is not None:
        _landmarks(landmarks, pattern.domain, landmark_label, ax, handles)
    elif handles:
        legend_below(ax, handles)
    return ax


def plot_intensity(
    intensity: Intensity,
    ax: Axes | None = None,
    *,
    landmarks: PointPattern | None = None,
    landmark_label: str = "landmark",
    background: Background | None = None,
    of: str = "points",
    scale: ColourScale | None = None,
    title: str | None = None,
) -> Axes:
    """Draw an intensity with a colour bar: in points per square kilometre, on a network per kilometre of street.

    Where lengths are in feet it is by miles, and where their unit is not known by that unit. A window is filled with
    colour; the streets of a network are lines of one width.

    Parameters
    ----------
    intensity : Intensity or KernelIntensity
        For instance `release.intensity`; or `kernel_intensity(pattern, bandwidth)`, as confidential as the pattern.
    ax, landmarks, landmark_label, background, title
        As in `plot_pattern`.
    of : str
        Unit of the intensity: "persons" for that of a heat map, or of reports.
    scale : ColourScale, optional
        Of several maps that are to be compared, from `colour_scale`. Unless given it suits this one: linear, or by
        square root or logarithm where 95 % of the map would not be seen otherwise, which its legend says.
    """
    domain = intensity.mesh.domain
    ax = draw_domain(domain, ax or map_figure(domain, below=BELOW).subplots(), title, background)
    unit, _ = density_unit(domain.unit, streets=isinstance(domain, LinearNetwork))
    painting = Painting.of(intensity)
    scale = scale or ColourScale.of([painting.shades()])
    shown = painting.draw(ax, scale)
    return _finished(shown, domain, ax, f"{of} per {unit}", scale, landmarks, landmark_label)


def colour_scale(intensities: Iterable[Intensity]) -> ColourScale:
    """Find one colour scale for the intensities of several maps on one domain, as `plot_intensity` takes it.

    Parameters
    ----------
    intensities : iterable of Intensity
        For instance those of all levels of a release.
    """
    return ColourScale.of([Painting.of(each).shades() for each in intensities])


def plot_heatmap(
    release: HeatMapped | npt.ArrayLike,
    bandwidth: float | None = None,
    ax: Axes | None = None,
    *,
    landmarks: PointPattern | None = None,
    landmark_label: str = "landmark",
    background: Background | None = None,
    title: str | None = None,
) -> Axes:
    """Draw a heat map: shares of the largest value, under a Gaussian filter.

    Parameters
    ----------
    release : HeatmapRelease or array_like, shape (a, b)
        A release is drawn over its window. Masses, such as `HeatmapRelease.masses`, are drawn over the unit square,
        the first axis along x and the second along y.
    bandwidth : float, optional
        Standard deviation of the filter, in the unit of the window or of the square, as in `release.heatmap`: 2 % of
        the longer side unless given. Something tiny, such as 1e-6, filters nothing, for a map that is smooth already.
    ax, landmarks, landmark_label, background, title
        As in `plot_pattern`.

    Raises
    ------
    InputError
        The release is of another kind, the masses are no array of non-negative numbers, some of them positive, or the
        bandwidth is not positive.
    """
    window, heat = _heat(release, bandwidth)
    ax = draw_domain(window, ax or map_figure(window, below=BELOW).subplots(), title, background)
    shares = heat.T / heat.max()
    inside = shares[pixels_near(window, shares.shape)]
    # Under a filter the logarithm would show how its tails fall, and not where anybody is.
    scale = ColourScale.of([Shades(inside, np.ones(len(inside)), 1.0)], log=False)
    shown = draw_raster(shares, window, ax, scale, cmap="inferno", interpolation="bilinear")
    return _finished(shown, window, ax, "share of the maximum", scale, landmarks, landmark_label)


def _finished(
    shown: Any,
    domain: Domain,
    ax: Axes,
    unit: str,
    scale: ColourScale,
    landmarks: PointPattern | None,
    landmark_label: str,
) -> Axes:
    """A map in colours with its colour bar, and landmarks where there are any."""
    set_view(domain, ax)
    draw_colour_bar(shown, ax, unit, scale, "streets" if isinstance(domain, LinearNetwork) else "area")
    if landmarks is not None:
        _landmarks(landmarks, domain, landmark_label, ax)
    return ax


def _heat(release: Any, bandwidth: float | None) -> tuple[Domain, Floats]:
    """Window and heat map (a, b) of a release, or of masses on the unit square."""
    if isinstance(release, HeatMapped):
        return release.domain, release.heatmap(bandwidth)
    if real_array(release) is None:
        require_heat_map(release, "HeatmapSynthesizer makes one, and an array of masses does as well")
    sigma = SIGMA if bandwidth is None else float(positive("bandwidth", bandwidth))
    return Window.rectangle(0, 0, 1, 1), gaussian_heatmap(unit_masses(release, "release"), sigma)


def plot_mesh(mesh: Mesh, ax: Axes | None = None, *, title: str | None = None) -> Axes:
    """Draw a mesh with its vertices, on a window also with the Voronoi cells dual to it.

    On a network its segments end at the vertices; a mesh of the plane is drawn over the streets. Cells that share no
    vertices, as those of a grid for range queries, are drawn alone.
    """
    from matplotlib.collections import LineCollection

    ax = draw_domain(mesh.domain, ax, title)
    width = float(np.clip(12 / math.sqrt(len(mesh.elements)), 0.3, 1.2))
    if isinstance(mesh, PlanarMesh) and isinstance(mesh.domain, LinearNetwork):
        # The streets beneath must stay visible.
        width /= 2
    joined = len(np.unique(mesh.vertices, axis=0)) == len(mesh.vertices)
    label = "mesh" if joined else "cells"
    ax.add_collection(LineCollection(_element_lines(mesh), colors=INK, linewidths=width, zorder=3, label=label))
    if joined and isinstance(mesh, PlanarMesh) and isinstance(mesh.domain, Window):
        dashes: Any = (0, (4, 3))
        ax.add_collection(
            LineCollection(
                _cell_borders(mesh), colors=LANDMARK, linewidths=width, linestyles=dashes, label="dual cells"
            )
        )
    # The vertices of a fine mesh would cover it.
    if joined and len(mesh.vertices) <= VERTICES:
        ax.plot(*mesh.vertices.T, "o", color=POINT, markersize=4 * width + 1, zorder=4, label="vertices")
    x0, y0, x1, y1 = shapely.total_bounds(shapely.multipoints(mesh.vertices))
    set_view(mesh.domain, ax, (float(x0), float(y0), float(x1), float(y1)))
    legend_below(ax, ax.get_legend_handles_labels()[0], handlelength=1.6)
    return ax


def _element_lines(mesh: Mesh) -> list[Floats]:
    """Courses of a network's edges, which its segments follow; closed borders of other elements."""
    if isinstance(mesh, NetworkMesh):
        return [shapely.get_coordinates(line) for line in mesh.domain.lines]
    corner = mesh.vertices[mesh.elements]
    return list(np.concatenate([corner, corner[:, :1]], axis=1))


def _cell_borders(mesh: PlanarMesh) -> list[Floats]:
    """Borders between the Voronoi cells; neighbours share one, and drawn twice its dashes would fill their own gaps."""
    borders = shapely.union_all(shapely.boundary(mesh.dual_cells())).difference(mesh.domain.geometry.boundary)
    return [shapely.get_coordinates(part) for part in shapely.get_parts(shapely.line_merge(borders))]


def plot_comparison(
    original: PointPattern,
    synthetic: PointPattern,
    axes: Sequence[Axes] | None = None,
    *,
    landmarks: PointPattern | None = None,
    landmark_label: str = "landmark",
    background: Background | None = None,
    confidential: bool = True,
) -> tuple[Axes, Axes]:
    """Draw the sensitive pattern beside a synthetic one, marked CONFIDENTIAL: for the custodian's eyes.

    Parameters
    ----------
    original, synthetic : PointPattern
        In the same window, or on the same network.
    axes : two matplotlib.axes.Axes, optional
        Of one figure.
    landmarks, landmark_label, background
        As in `plot_pattern`.
    confidential : bool
        Whether to mark the figure; False only where the original is no data about anybody.

    Raises
    ------
    InputError
        The patterns lie in different domains.
    """
    domain = original.domain
    if domain.fingerprint() != synthetic.domain.fingerprint():
        msg = "synthetic: it lies in another window or network than the original; compare patterns of one domain"
        raise InputError(msg)
    left, right = axes if axes is not None else map_figure(domain, panels=2).subplots(1, 2)
    # Dots of one opacity and area: what is darker has more points.
    number = max(len(original), len(synthetic))
    shown = (landmarks, landmark_label, background)
    _pattern_map(original, left, "Original (sensitive)" if confidential else "Original", *shown, number=number)
    _pattern_map(synthetic, right, "Synthetic", *shown, number=number)
    if confidential:
        mark_confidential(left.figure, "shows sensitive points")
    return left, right


def _landmarks(landmarks: PointPattern, domain: Domain, label: str, ax: Axes, also: Sequence[Any] = ()) -> None:
    xy = in_view(domain, landmarks.xy)
    shown = ax.plot(*xy.T, "^", color=LANDMARK, markeredgecolor="white", markersize=9, zorder=5, label=label)
    legend_below(ax, [*also, *shown])


# Factor of risk at the ends of the colours, at least.
LEAST = 1.5
# Ticks of scales that end below 3, below 12, and of others: numbers that people write.
NEAR_ONE = (0.4, 0.5, 0.65, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5)
AROUND_ONE = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
ONE_TWO_FIVE = (1.0, 2.0, 5.0)
# Widths of streets in points: those of certain excess, and others.
THICK, THIN = 5.0, 2.0


def plot_relative_risk(
    risk: RelativeRisk,
    ax: Axes | None = None,
    *,
    threshold: float = 1.0,
    certainty: float = 0.95,
    background: Background | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the relative risk, and where it is above a threshold with some posterior probability.

    A window is filled with colour, and the places of excess are outlined; the streets of a network have colour, and
    those of excess are thick.

    Parameters
    ----------
    risk : RelativeRisk
        `release.risk`.
    ax : matplotlib.axes.Axes, optional
    threshold : float
        1 is the average risk of the population.
    certainty : float
        Probability of excess from which places are outlined.
    background : Background, optional
        As in `plot_pattern`.
    title : str, optional
        Budget and public number of points unless given.
    """
    from matplotlib.lines import Line2D

    instance("risk", risk, RelativeRisk, "`release.risk` is one")
    positive("threshold", threshold)
    probability("certainty", certainty)
    domain = risk.mesh.domain
    title = ", ".join(filter(None, ("Relative risk", risk.terms))) if title is None else title
    ax = draw_domain(domain, ax or map_figure(domain, below=BELOW).subplots(), title, background)
    streets = isinstance(domain, LinearNetwork)
    shown, least = (_streets if streets else _window)(risk, threshold, certainty, ax)
    set_view(domain, ax)
    over = "population" if risk.offset is not None else "streets" if streets else "area"
    label = f"relative risk (1 = average of the {over})"
    extend = "min" if least < shown.norm.vmin else "neither"
    bar_with_ticks(shown, ax, label, _ticks(shown.norm.vmax), extend)
    text = f"P(risk > {threshold:g}) ≥ {100 * certainty:g} %"
    legend_below(ax, [Line2D([], [], color=INK, linewidth=THICK if streets else 1.4, label=text)])
    return ax


def _scale(values: Floats) -> Any:
    """Colours on the log scale, 1 in the middle, up to the largest risk; what is as far below lies under the scale."""
    from matplotlib.colors import LogNorm

    end = max(float(values.max()), LEAST)
    return LogNorm(1 / end, end)


def _ticks(end: float) -> list[float]:
    """Round numbers from 1 / end to end."""
    powers = 10.0 ** np.arange(-12, 13)
    decades = [float(f"{step * power:.6g}") for power in powers for step in ONE_TWO_FIVE]
    chosen = NEAR_ONE if end < 3 else AROUND_ONE if end < 12 else decades
    return [each for each in chosen if 1 / end <= each <= end]


def _window(risk: RelativeRisk, threshold: float, certainty: float, ax: Axes) -> tuple[Any, float]:
    """Image of the risk over a window, and the least risk in it."""
    window = risk.mesh.domain
    values, near = raster_of(risk, window, PIXELS)
    excess, _ = raster_of(risk.exceedance(threshold), window, PIXELS)
    seen = values[near]
    style: dict[str, Any] = {"cmap": "RdBu_r", "interpolation": "bilinear"}
    image = draw_raster(np.maximum(values, seen.min()), window, ax, _scale(seen), **style)
    if excess.min() < certainty < excess.max():
        x0, y0, x1, y1 = window.bounds
        place: Any = {"extent": (x0, x1, y0, y1), "origin": "lower"}
        lines = ax.contour(excess, [certainty], colors=INK, linewidths=1.4, zorder=3, **place)
        lines.set_clip_path(image.get_clip_path())
    return image, float(seen.min())


def _streets(risk: RelativeRisk, threshold: float, certainty: float, ax: Axes) -> tuple[Any, float]:
    """Lines of the risk along streets, and the least risk on them."""
    lines, values = street_values(risk.surface)
    _, excess = street_values(risk.exceedance(threshold))
    width = np.where(excess >= certainty, THICK, THIN)
    return draw_streets(lines, values, width, ax, cmap="coolwarm", norm=_scale(values)), float(values.min())
