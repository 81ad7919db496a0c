"""Intensities as colour, over a window or along streets, and the colour scales of maps."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import shapely

from dpppsynth.core.units import density_unit
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.plotting.background import frame
from dpppsynth.plotting.canvas import outline, thinner
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.intensity import Intensity, PiecewiseConstant
from dpppsynth.spatial.mesh import Floats, Ints, Pieces

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.colors import Normalize
    from matplotlib.image import AxesImage

LINEAR, ROOT, LOG = "linear", "square-root", "log"
# The rest of a map: this share of its area or streets.
REST = 0.95
# Shares of the top that the rest must reach for a linear scale, and for one by square root.
SEEN, FAINT = 0.2, 0.02
# A log scale begins at the median, rounded down to a decade, but within so many decades of the top.
DECADES = 4
# Ticks of a colour bar lie at least so far apart, as shares of its length.
APART = 0.09
# Inches of a colour bar below a map, or several, and those that it takes there.
BAR, BELOW = 5.0, 1.0
# Letters of a label that stand along an inch of a picture's width, and the arrows of a colour bar.
LETTERS_PER_INCH = 11
EXTEND = {(False, False): "neither", (False, True): "max", (True, False): "min", (True, True): "both"}


@dataclass(frozen=True, eq=False)
class Shades:
    """Values (m,) of a map as they are seen, at places spread over it, and the area or length that each stands for.

    `top` is the largest value that is reached along enough of the map to be seen.
    """

    values: Floats
    extent: Floats
    top: float


@dataclass(frozen=True)
class ColourScale:
    """Values at the ends of a colour scale, and how colours run from one to the other.

    `low` is zero but for a log scale; 95 % of the map do not exceed `rest`; `under` and `beyond` tell whether some
    values lie below or above the ends.
    """

    top: float
    low: float = 0.0
    kind: str = LINEAR
    rest: float = 0.0
    under: bool = False
    beyond: bool = False

    @classmethod
    def of(cls, maps: Sequence[Shades], *, log: bool = True) -> ColourScale:
        """Find one scale for several maps, from the values that they show and nothing else.

        It is linear unless 95 % of the maps stay below a fifth of the top, by square root where they do, and
        logarithmic (if `log`) where they stay below a fiftieth.

        Examples
        --------
        >>> ColourScale.of([Shades(np.full(100, 50.0), np.ones(100), 50.0)]).kind
        'linear'
        >>> ColourScale.of([Shades(np.append(np.ones(99), 1000.0), np.ones(100), 1000.0)]).kind
        'log'
        """
        values = np.concatenate([each.values for each in maps])
        extent = np.concatenate([each.extent for each in maps])
        top = max(each.top for each in maps) or 1.0
        rest, middle = np.quantile(values, [REST, 0.5], weights=extent, method="inverted_cdf").tolist()
        beyond = bool(values.max(initial=0.0) > top)
        if rest >= SEEN * top:
            return cls(top, rest=rest, beyond=beyond)
        if rest >= FAINT * top or not log:
            return cls(top, kind=ROOT, rest=rest, beyond=beyond)
        low = max(10.0 ** np.floor(np.log10(middle)) if middle > 0 else 0.0, top * 10.0**-DECADES)
        return cls(top, float(low), LOG, rest, bool(values.min(initial=low) < low), beyond)

    def norm(self) -> Normalize:
        """The scale as Matplotlib has it."""
        from matplotlib.colors import LogNorm, Normalize, PowerNorm

        if self.kind == LOG:
            return LogNorm(self.low, self.top, clip=True)
        return Normalize(0.0, self.top) if self.kind == LINEAR else PowerNorm(0.5, 0.0, self.top)

    def words(self, along: str) -> str:
        """Statement of the scale and of its rule for a legend; empty for a linear one.

        Examples
        --------
        >>> ColourScale(100.0, 0.0, "square-root", 12.3).words("area")
        'square-root scale: 95 % of the area is below 13 % of the top'
        """
        if self.kind == LINEAR:
            return ""
        share = 100 * self.rest / self.top
        rounded = f"{np.ceil(share):.0f}" if share > 1 else f"{np.ceil(10 * share) / 10:.1f}"
        return f"{self.kind} scale: {REST:.0%} of the {along} is below {rounded} % of the top".replace("95%", "95 %")

    def ticks(self) -> list[float]:
        """Round values for a colour bar, far enough apart to be read."""
        if self.kind == LINEAR:
            from matplotlib.ticker import MaxNLocator

            return [float(each) for each in MaxNLocator(6).tick_values(0.0, self.top) if 0 <= each <= self.top]
        norm = self.norm()
        decade = np.floor(np.log10(self.top))
        steps = (1.0,) if self.kind == LOG and self.top > 1e3 * self.low else (5.0, 2.0, 1.0)
        found: list[float] = []
        for power in 10.0 ** np.arange(decade, decade - DECADES - 1, -1):
            for step in steps:
                value = float(step * power)
                if not max(self.low * (1 - 1e-9), 0) <= value <= self.top:
                    continue
                if all(abs(float(norm(value)) - float(norm(each))) >= APART for each in found):
                    found.append(value)
        if self.kind == ROOT:
            found = [*(each for each in found if float(norm(each)) >= APART), 0.0]
        return sorted(found)


def draw_colour_bar(shown: Any, axes: Any, label: str, scale: ColourScale, along: str) -> None:
    """Draw a colour bar below one map or several; a scale that is not linear stands under its label."""
    figure: Any = (axes[0] if isinstance(axes, list) else axes).figure
    lines = [label, *textwrap.wrap(scale.words(along), int(LETTERS_PER_INCH * figure.get_size_inches()[0]))]
    ends = EXTEND[scale.under, scale.beyond]
    bar_with_ticks(shown, axes, "\n".join(lines), scale.ticks(), ends)


def bar_with_ticks(shown: Any, axes: Any, label: str, ticks: Sequence[float], extend: str) -> None:
    """Draw a colour bar with the given ticks below the axes, where it is read as it stands."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    figure: Any = (axes[0] if isinstance(axes, list) else axes).figure
    width = BAR / figure.get_size_inches()[0]
    place: dict[str, Any] = {"location": "bottom", "shrink": min(0.9, width), "pad": 0.02, "aspect": 28}
    bar: Any = figure.colorbar(shown, ax=axes, label=label, extend=extend, **place)
    bar.outline.set_visible(False)
    axis = bar.ax.xaxis
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:,.6g}"))


# Along the longer side of an intensity; a piecewise constant one has edges, and three times as many.
PIXELS = 240
# Side, in those, of the smallest spot whose colour can be told.
SPOT = 12
# Width of all streets in points, on one map and on small ones: wider ones would hide the colours of others beside them.
WIDTH, NARROW = 2.8, 1.6
PALEST = 0.22
# Stretches that a value must reach along to be seen.
VISIBLE = 4


@dataclass(frozen=True, eq=False)
class Painting:
    """Values of an intensity where a map shows them; computed once, for the colour scale and for the colours.

    Values are those of pixels (rows, columns) over the bounding box of a window, or of short stretches of streets (m,),
    which are the `lines` (m, 2, 2); in the unit of `density_unit`. `seen` is the area or length that each stands for.
    """

    intensity: Any
    values: Floats
    seen: Floats
    lines: Floats | None = None

    @classmethod
    def of(cls, intensity: Intensity) -> Painting:
        """Evaluate an intensity, in its unit on maps."""
        domain = intensity.mesh.domain
        streets = isinstance(domain, LinearNetwork)
        _, factor = density_unit(domain.unit, streets=streets)
        if streets:
            lines, values = street_values(intensity)
            return cls(intensity, factor * values, np.hypot(*(lines[:, 1] - lines[:, 0]).T), lines)
        values, near = raster_of(intensity, domain, PIXELS * 3 if isinstance(intensity, PiecewiseConstant) else PIXELS)
        return cls(intensity, factor * values, near.astype(np.float64))

    def shades(self) -> Shades:
        """Values and their extents, which colour scales are made from."""
        if self.lines is not None:
            return Shades(self.values, self.seen, _visible_top(self.seen, self.values))
        steps = isinstance(self.intensity, PiecewiseConstant)
        top = _spot_top(self.values) if steps else float(self.values.max())
        return Shades(self.values[self.seen > 0], self.seen[self.seen > 0], top)

    def draw(self, ax: Axes, scale: ColourScale, *, width: float = WIDTH) -> AxesImage | LineCollection:
        """Fill the window, or colour the streets of the network, all of one `width` in points."""
        domain = self.intensity.mesh.domain
        if self.lines is not None:
            from matplotlib import colormaps
            from matplotlib.colors import ListedColormap

            widths = np.full(len(self.values), thinner(domain) * width)
            # Dark is high, and its palest colours are left out: thin lines on white must be seen.
            colours = ListedColormap(colormaps["YlGnBu"](np.linspace(PALEST, 1, 256)))
            return draw_streets(self.lines, self.values, widths, ax, cmap=colours, norm=scale.norm(), capstyle="round")
        steps = isinstance(self.intensity, PiecewiseConstant)
        return draw_raster(self.values, domain, ax, scale, interpolation="nearest" if steps else "bilinear")


def draw_raster(values: Floats, window: Domain, ax: Axes, scale: Any, **style: Any) -> AxesImage:
    """Fill a window with the colours of values (rows, columns) over its bounding box, first row at the bottom.

    `scale` is a `ColourScale`, or a norm of Matplotlib.
    """
    from matplotlib.patches import PathPatch

    x0, y0, x1, y1 = window.bounds
    place: Any = {"extent": (x0, x1, y0, y1), "origin": "lower", "aspect": "equal", "zorder": 1}
    norm = scale.norm() if isinstance(scale, ColourScale) else scale
    image = ax.imshow(values, norm=norm, **place, **{"cmap": "viridis", **style})
    clip = PathPatch(outline(window.geometry), facecolor="none", edgecolor="none", transform=ax.transData)
    ax.add_patch(clip)
    image.set_clip_path(clip)
    return image


def raster_of(
    intensity: Callable[[Floats], Floats], window: Domain, pixels: int
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """(rows, columns) values at pixel centres, first row at the bottom, and whether each is near the window."""
    x0, y0, x1, y1 = window.bounds
    step = max(x1 - x0, y1 - y0) / pixels
    columns, rows = (max(2, round(side / step)) for side in (x1 - x0, y1 - y0))
    # Pixels far outside are clipped away, so their values are not worth computing.
    near = pixels_near(window, (rows, columns))
    values = np.zeros((rows, columns))
    values[near] = intensity(_centres(window, (rows, columns))[near.ravel()])
    return values, near


def pixels_near(window: Domain, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Whether pixels (rows, columns) over a window's bounding box lie in it, or within two pixels of it."""
    x0, y0, x1, y1 = window.bounds
    rows, columns = shape
    if getattr(window, "is_rectangle", False):
        return np.ones((rows, columns), dtype=bool)
    step = max((x1 - x0) / columns, (y1 - y0) / rows)
    shapely.prepare(window.geometry)
    near = shapely.dwithin(window.geometry, shapely.points(_centres(window, shape)), 2 * step)
    return np.asarray(near).reshape(rows, columns)


def _centres(window: Domain, shape: tuple[int, ...]) -> Floats:
    x0, y0, x1, y1 = window.bounds
    rows, columns = shape
    x = x0 + (np.arange(columns) + 0.5) * (x1 - x0) / columns
    y = y0 + (np.arange(rows) + 0.5) * (y1 - y0) / rows
    return np.column_stack([g.ravel() for g in np.meshgrid(x, y)])


def _spot_top(values: Floats) -> float:
    """Largest value that is reached on a spot's area: what is too small to be seen sets no scale."""
    falling = np.sort(values, axis=None)[::-1]
    seen = falling[min(SPOT**2, len(falling)) - 1]
    return float(seen if seen > 0 else falling[0])


def draw_streets(lines: Floats, values: Floats, widths: Floats, ax: Axes, **style: Any) -> LineCollection:
    """Draw stretches (m, 2, 2) of streets in the colours of values (m,) and of widths (m,), the widest on top.

    Of those as wide, the highest are on top.
    """
    from matplotlib.collections import LineCollection

    order = np.lexsort((values, widths))
    drawn = LineCollection(list(lines[order]), array=values[order], linewidths=widths[order], zorder=1, **style)
    ax.add_collection(drawn, autolim=False)
    return drawn


def street_values(intensity: Any) -> tuple[Floats, Floats]:
    """Short stretches of the streets as lines (m, 2, 2), and the intensity in the middle of each (m,)."""
    mesh = intensity.mesh
    x0, y0, x1, y1 = frame(mesh.domain)
    ends, element = _stretches(mesh.pieces, max(x1 - x0, y1 - y0) / PIXELS)
    middle = np.column_stack([ends[:, 0, 0], ends[:, :, 1].mean(axis=1)])
    values = intensity.at(element, mesh.weights(element, middle), middle)
    lines = mesh.domain.coordinates(ends.reshape(-1, 2)).reshape(-1, 2, 2)
    return lines, np.asarray(values, dtype=np.float64)


def _visible_top(length: Floats, values: Floats) -> float:
    """Largest value that is reached along a few stretches' length: what is too short to be seen sets no scale."""
    order = np.argsort(-values, kind="stable")
    seen = np.searchsorted(np.cumsum(length[order]), VISIBLE * length.max())
    return float(values[order][min(int(seen), len(values) - 1)])


def _stretches(pieces: Pieces, longest: float) -> tuple[Floats, Ints]:
    """Positions (m, 2, 2) of the ends of stretches that split pieces of a network, and their elements (m,)."""
    edge, along = pieces.corners[:, 0, 0], pieces.corners[:, :, 1]
    count = np.maximum(1, np.ceil(np.abs(along[:, 1] - along[:, 0]) / longest)).astype(np.int64)
    piece = np.repeat(np.arange(len(count)), count)
    rank = np.arange(len(piece)) - np.repeat(np.cumsum(count) - count, count)
    share = np.column_stack([rank, rank + 1]) / count[piece, None]
    at = (1 - share) * along[piece, :1] + share * along[piece, 1:]
    # Edge numbers are copied: interpolated they could round to a neighbour's.
    return np.stack([np.broadcast_to(edge[piece, None], at.shape), at], axis=-1), pieces.element[piece]
