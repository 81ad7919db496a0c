"""Maps of relative risk, as epidemiologists draw them: below average blue, above red, certain excess outlined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpppsynth.core.arguments import instance, positive, probability
from dpppsynth.inference.risk import RelativeRisk
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.plotting.canvas import INK, draw_domain, legend_below, map_figure, set_view
from dpppsynth.plotting.surfaces import PIXELS, draw_raster, raster_of, street_values
from dpppsynth.spatial.mesh import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Factors of risk at the ends of the colours, at least and at most.
LEAST, MOST = 1.5, 16.0
# Widths of streets in points: those of certain excess, and others.
THICK, THIN = 5.0, 2.0


def plot_relative_risk(
    risk: RelativeRisk,
    ax: Axes | None = None,
    *,
    threshold: float = 1.0,
    certainty: float = 0.95,
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
    title : str, optional

    Raises
    ------
    InputError
    """
    instance("risk", risk, RelativeRisk, "`release.risk` is one")
    positive("threshold", threshold)
    probability("certainty", certainty)
    domain = risk.mesh.domain
    ax = draw_domain(domain, ax or map_figure(domain, beside=1.1).subplots(), title)
    draw = _streets if isinstance(domain, LinearNetwork) else _window
    shown = draw(risk, threshold, certainty, ax)
    set_view(domain, ax)
    bar: Any = ax.figure.colorbar(shown, ax=ax, shrink=0.8, pad=0.02, label="relative risk", extend="both")
    bar.outline.set_visible(False)
    _ticks(bar)
    _legend(isinstance(domain, LinearNetwork), threshold, certainty, ax)
    return ax


def _scale(values: Floats) -> Any:
    """Colours on the log scale, 1 in the middle, ends at about the largest factor that is seen."""
    from matplotlib.colors import LogNorm

    factor = np.exp(np.quantile(np.abs(np.log(np.maximum(values, 1e-12))), 0.99))
    end = float(np.clip(factor, LEAST, MOST))
    return LogNorm(1 / end, end)


def _window(risk: RelativeRisk, threshold: float, certainty: float, ax: Axes) -> Any:
    window = risk.mesh.domain
    values = raster_of(risk, window, PIXELS)
    excess = raster_of(risk.exceedance(threshold), window, PIXELS)
    seen = values[values > 0]
    style: dict[str, Any] = {"cmap": "RdBu_r", "interpolation": "bilinear"}
    image = draw_raster(np.maximum(values, seen.min()), window, ax, _scale(seen), **style)
    if excess.min() < certainty < excess.max():
        x0, y0, x1, y1 = window.bounds
        rows, columns = excess.shape
        x = x0 + (np.arange(columns) + 0.5) * (x1 - x0) / columns
        y = y0 + (np.arange(rows) + 0.5) * (y1 - y0) / rows
        lines = ax.contour(x, y, excess, [certainty], colors=INK, linewidths=1.4, zorder=3)
        lines.set_clip_path(image.get_clip_path())
    return image


def _streets(risk: RelativeRisk, threshold: float, certainty: float, ax: Axes) -> Any:
    from matplotlib.collections import LineCollection

    lines, values = street_values(risk.surface)
    _, excess = street_values(risk.exceedance(threshold))
    order = np.argsort(excess, kind="stable")
    width = np.where(excess[order] >= certainty, THICK, THIN)
    drawn = LineCollection(
        list(lines[order]), array=values[order], linewidths=width, cmap="coolwarm", norm=_scale(values), zorder=1
    )
    ax.add_collection(drawn, autolim=False)
    return drawn


def _ticks(bar: Any) -> None:
    """Round factors in place of powers of ten."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = bar.norm.vmin, bar.norm.vmax
    factors = [each for each in (1.25, 1.5, 2, 4, 8, 16) if each <= high * (1 + 1e-9)]
    places = [1 / each for each in reversed(factors) if 1 / each >= low * (1 - 1e-9)] + [1.0, *factors]
    bar.ax.yaxis.set_major_locator(FixedLocator(places))
    bar.ax.yaxis.set_minor_locator(NullLocator())
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))


def _legend(streets: bool, threshold: float, certainty: float, ax: Axes) -> None:
    from matplotlib.lines import Line2D

    text = f"P(risk > {threshold:g}) ≥ {100 * certainty:g} %"
    handle = Line2D([], [], color=INK, linewidth=THICK if streets else 1.4, label=text)
    legend_below(ax, [handle])
