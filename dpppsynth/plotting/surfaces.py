"""Intensities as colour, over a window or along the streets of a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from dpppsynth.plotting.canvas import frame, outline
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.intensity import Intensity, PiecewiseConstant
from dpppsynth.spatial.mesh import Floats, Ints, Pieces

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.image import AxesImage

# Along the longer side of an intensity; a piecewise constant one has edges, and three times as many.
PIXELS = 240
# Side, in those, of the smallest spot whose colour can be told.
SPOT = 12
# Width of a street in points where the intensity is zero and where it is largest.
THIN, THICK = 1.2, 6.0
PALEST = 0.22
# Stretches that a value must reach along to be seen.
VISIBLE = 4


def draw_surface(intensity: Intensity, ax: Axes) -> AxesImage:
    """Fill a window with the colours of an intensity."""
    window = intensity.mesh.domain
    steps = isinstance(intensity, PiecewiseConstant)
    values = raster_of(intensity, window, PIXELS * 3 if steps else PIXELS)
    style: dict[str, Any] = {"interpolation": "nearest", "vmax": _spot_top(values)} if steps else {}
    return draw_raster(values, window, ax, **{"interpolation": "bilinear", **style})


def draw_raster(values: Floats, window: Domain, ax: Axes, **style: Any) -> AxesImage:
    """Fill a window with the colours of values (rows, columns) over its bounding box, first row at the bottom."""
    from matplotlib.patches import PathPatch

    x0, y0, x1, y1 = window.bounds
    place: Any = {"extent": (x0, x1, y0, y1), "origin": "lower", "aspect": "equal", "zorder": 1}
    image = ax.imshow(values, **place, **{"cmap": "viridis", "vmin": 0.0, **style})
    clip = PathPatch(outline(window.geometry), facecolor="none", edgecolor="none", transform=ax.transData)
    ax.add_patch(clip)
    image.set_clip_path(clip)
    return image


def raster_of(intensity: Callable[[Floats], Floats], window: Domain, pixels: int) -> Floats:
    """(rows, columns) values at pixel centres, first row at the bottom; zero away from the window."""
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


def _spot_top(values: Floats) -> float:
    """Largest value that is reached on a spot's area: what is too small to be seen sets no scale."""
    falling = np.sort(values, axis=None)[::-1]
    seen = falling[min(SPOT**2, len(falling)) - 1]
    return float(seen if seen > 0 else falling[0])


def draw_along_streets(intensity: Intensity, ax: Axes) -> LineCollection:
    """Colour the streets of a network by an intensity, which also sets their width; the highest lie on top.

    The colours end at the largest value that can be seen.
    """
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection
    from matplotlib.colors import ListedColormap

    lines, values = street_values(intensity)
    top = _visible_top(lines, values)
    order = np.argsort(values, kind="stable")
    drawn = LineCollection(
        list(lines[order]),
        array=values[order],
        # Dark is high, and its palest colours are left out: thin lines on white must be seen.
        cmap=ListedColormap(colormaps["YlGnBu"](np.linspace(PALEST, 1, 256))),
        capstyle="round",
        zorder=1,
    )
    rescale(drawn, top or 1.0)
    ax.add_collection(drawn, autolim=False)
    return drawn


def rescale(drawn: AxesImage | LineCollection, top: float) -> None:
    """Let colours end at `top`, and the width of streets with them."""
    from matplotlib.collections import LineCollection

    drawn.set_clim(0.0, top)
    if isinstance(drawn, LineCollection):
        values = np.asarray(drawn.get_array())
        drawn.set_linewidth((THIN + (THICK - THIN) * np.minimum(values / top, 1.0)).tolist())


def street_values(intensity: Any) -> tuple[Floats, Floats]:
    """Short stretches of the streets as lines (m, 2, 2), and the intensity in the middle of each (m,)."""
    mesh = intensity.mesh
    x0, y0, x1, y1 = frame(mesh.domain)
    ends, element = _stretches(mesh.pieces, max(x1 - x0, y1 - y0) / PIXELS)
    middle = np.column_stack([ends[:, 0, 0], ends[:, :, 1].mean(axis=1)])
    values = intensity.at(element, mesh.weights(element, middle), middle)
    lines = mesh.domain.coordinates(ends.reshape(-1, 2)).reshape(-1, 2, 2)
    return lines, np.asarray(values, dtype=np.float64)


def _visible_top(lines: Floats, values: Floats) -> float:
    """Largest value that is reached along a few stretches' length: what is too short to be seen sets no scale.

    On an edge of a few centimetres a single noisy point makes an intensity of hundreds of points per metre.
    """
    length = np.hypot(*(lines[:, 1] - lines[:, 0]).T)
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
