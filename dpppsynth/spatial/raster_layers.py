"""Raster layers, and GeoTIFF files of them."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from dpppsynth.core.crs import same_crs
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.core.wording import either
from dpppsynth.spatial.domains import LARGEST, Domain, Window, as_reals
from dpppsynth.spatial.mesh import Mesh, Pieces, within_element
from dpppsynth.spatial.public_layers import PublicLayer, covered, named, outside_value
from dpppsynth.spatial.tables.formats import there

Bounds = tuple[float, float, float, float]
# Points at which a raster is integrated over a window, about, and at most along a cell's side.
POINTS, MOST_ALONG, MOST_WITHIN = 500_000, 64, 1000
# Points along a piece of a network at least.
FEWEST = 16
# Centres of mass into which these are gathered, about.
GATHERED = 50_000
# Points that are placed in the mesh at once.
TOGETHER = 500_000


class RasterLayer(PublicLayer):
    """Equal cells with sides along the axes, each with one value.

    Parameters
    ----------
    values : array_like, shape (rows, columns)
        First row at the top; NaN where a cell has none.
    bounds : (float, float, float, float)
        x0, y0, x1, y1.
    outside : float
        Value beyond the bounds; NaN where there is none.
    crs : str, optional
    label : str
        Name in messages.
    """

    def __init__(
        self,
        values: npt.ArrayLike,
        bounds: Bounds,
        *,
        outside: float = float("nan"),
        crs: str | None = None,
        label: str = "raster",
    ) -> None:
        self.label, self.crs, self.outside = label, crs, outside
        if crs is not None:
            # Unknown ones are refused.
            same_crs(crs, crs)
        self._hold(as_reals(values, "values: must be real numbers."))
        self.bounds_of_cells = raster_bounds(bounds)

    def _hold(self, values: Floats) -> None:
        """Take an array as it is; from now on it is read alone."""
        self.values = values
        if self.values.ndim != 2 or not self.values.size:
            msg = f"values: the raster needs two dimensions (rows, columns), got shape {self.values.shape}."
            raise InputError(msg)
        if np.isinf(self.values).any():
            msg = f"{named('values', self.label)} must be finite, NaN where there is none."
            raise InputError(msg)
        self.values.flags.writeable = False

    def __repr__(self) -> str:
        rows, columns = self.values.shape
        return f"RasterLayer({rows} x {columns} cells)"

    @property
    def step(self) -> Floats:
        """(2,) width and height of a cell."""
        x0, y0, x1, y1 = self.bounds_of_cells
        rows, columns = self.values.shape
        return np.array([(x1 - x0) / columns, (y1 - y0) / rows])

    def cells(self, xy: Floats) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
        """Row and column (n,) of the cells of places (n, 2), and whether these lie within the bounds.

        On a border between two cells the right and the lower one count.
        """
        x0, y0, x1, y1 = self.bounds_of_cells
        rows, columns = self.values.shape
        x, y = np.asarray(xy, dtype=float).reshape(-1, 2).T
        inside = (x >= x0) & (x <= x1) & (y >= y0) & (y <= y1)
        width, height = self.step
        column = np.clip(np.floor((x - x0) / width), 0, columns - 1).astype(np.int64)
        row = np.clip(np.floor((y1 - y) / height), 0, rows - 1).astype(np.int64)
        return row, column, inside

    def __call__(self, xy: Floats) -> Floats:
        row, column, inside = self.cells(xy)
        return np.where(inside, self.values[row, column], self.outside)

    def missing(self, domain: Domain) -> float:
        beyond = 0.0 if np.isfinite(self.outside) else 1 - covered(shapely.box(*self.bounds_of_cells), domain)
        runs = self._runs(np.isnan(self.cropped(domain.bounds).values), self.cropped(domain.bounds))
        if not len(runs):
            return beyond
        size = shapely.area if isinstance(domain, Window) else shapely.length
        return beyond + float(size(shapely.intersection(runs, domain.geometry)).sum() / size(domain.geometry))

    @staticmethod
    def _runs(chosen: npt.NDArray[np.bool_], of: "RasterLayer") -> Any:
        """Boxes around cells (rows, columns) that are next to each other in a row."""
        edge = np.diff(np.pad(chosen.astype(np.int8), ((0, 0), (1, 1))), axis=1)
        (row, first), last = np.nonzero(edge == 1), np.nonzero(edge == -1)[1]
        x0, _, _, y1 = of.bounds_of_cells
        width, height = of.step
        return shapely.box(x0 + first * width, y1 - (row + 1) * height, x0 + last * width, y1 - row * height)

    def cropped(self, box: Bounds) -> "RasterLayer":
        """The cells that a box touches; where it touches none, the nearest."""
        (x0, y0, x1, y1), (_, _, _, top) = box, self.bounds_of_cells
        row, column, _ = self.cells(np.array([[x0, y1], [x1, y0]]))
        width, height = self.step
        left = self.bounds_of_cells[0]
        if (row[0], column[0]) == (0, 0) and (row[1] + 1, column[1] + 1) == self.values.shape:
            return self
        return self.like(
            self.values[row[0] : row[1] + 1, column[0] : column[1] + 1],
            (
                float(left + column[0] * width),
                float(top - (row[1] + 1) * height),
                float(left + (column[1] + 1) * width),
                float(top - row[0] * height),
            ),
            self.outside,
        )

    def like(self, values: Floats, bounds: Bounds, outside: float) -> "RasterLayer":
        """A raster with other values and bounds, in the same CRS and with the same label; only views are copied."""
        made = object.__new__(RasterLayer)
        made.__dict__ |= self.__dict__ | {"outside": outside, "bounds_of_cells": raster_bounds(bounds)}
        made._hold(values if values.base is None else values.copy())
        return made

    def with_values(self, values: Floats, outside: float) -> "RasterLayer":
        """The same cells with other values."""
        return self.like(values, self.bounds_of_cells, outside)

    @property
    def sizes(self) -> Floats:
        """(1, 1) area of a cell."""
        return np.full((1, 1), float(self.step.prod()))

    def street_lengths(self, domain: Domain) -> Floats:
        """(rows, columns) lengths of a network's streets in the cells."""
        step = max(float(self.step.min()) / 64, shapely.length(domain.geometry) / (4 * POINTS))
        lines = shapely.segmentize(domain.geometry, step)
        parts = shapely.get_parts(lines)
        at, of = shapely.get_coordinates(parts, return_index=True)
        joined = of[1:] == of[:-1]
        start, end = at[:-1][joined], at[1:][joined]
        row, column, inside = self.cells((start + end) / 2)
        out = np.zeros(self.values.shape)
        np.add.at(out, (row[inside], column[inside]), np.hypot(*(end - start)[inside].T))
        return out

    def restrict(self, mesh: Mesh) -> Pieces:
        """The raster's mass on a mesh: points with weights, gathered at their centres of mass.

        Over a window every cell stands for equal points within, those in the window counting: integrals of a function
        that is linear on an element are those of these points. Along streets the points lie at equal distances.
        """
        if not isinstance(mesh.domain, Window):
            return self._along(mesh)
        sums = _Gathered(mesh)
        for xy, mass in self.points(mesh.domain):
            sums.add(xy, mass)
        return sums.pieces()

    def points(self, window: Domain) -> Any:
        """Batches of points (n, 2) in a window with their masses (n,)."""
        part = self.cropped(window.bounds)
        some = int(np.count_nonzero(part.values)) - int(np.count_nonzero(np.isnan(part.values)))
        along = int(np.clip(np.sqrt(POINTS / max(1, some)), 1, MOST_WITHIN))
        share = (np.arange(along) + 0.5) / along
        dx, dy = (each.ravel() for each in np.meshgrid(share, share))
        # Of a cell that reaches beyond the window's box the part within: a cell may be larger than the window.
        left, right, bottom, top = part.sides(window.bounds)
        # Rows of about so many cells; of a row with more of them one after the other.
        batch = max(1, TOGETHER // along**2)
        for r, c in _held(part.values, batch):
            width, height = (right - left)[c], (top - bottom)[r]
            x = left[c][:, None] + dx * width[:, None]
            y = top[r][:, None] - dy * height[:, None]
            mass = np.repeat(part.values[r, c] * width * height / along**2, along**2)
            xy = np.column_stack([x.ravel(), y.ravel()])
            inside = window.holds(xy)
            yield xy[inside], mass[inside]

    def sides(self, box: Bounds) -> tuple[Floats, Floats, Floats, Floats]:
        """Left and right sides of the columns, bottoms and tops of the rows, as far as they lie in a box."""
        (x0, _, _, y1), (rows, columns), (width, height) = self.bounds_of_cells, self.values.shape, self.step
        x, y = x0 + width * np.arange(columns + 1), y1 - height * np.arange(rows + 1)
        x, y = np.clip(x, box[0], box[2]), np.clip(y, box[1], box[3])
        return x[:-1], x[1:], y[1:], y[:-1]

    def _along(self, mesh: Mesh) -> Pieces:
        """Points along each piece of a network's mesh, gathered at its centre of mass."""
        pieces = mesh.pieces
        step = max(float(self.step.min()) / 16, pieces.weight.sum() / POINTS)
        count = np.clip(np.ceil(pieces.weight / step), FEWEST, MOST_ALONG).astype(np.int64)
        piece = np.repeat(np.arange(len(count)), count)
        share = (np.arange(len(piece)) - np.repeat(np.cumsum(count) - count, count) + 0.5) / count[piece]
        first, last = pieces.corners[piece, 0], pieces.corners[piece, 1]
        at = first + share[:, None] * (last - first)
        value = np.nan_to_num(self(mesh.domain.coordinates(at)))
        mass = value * pieces.weight[piece] / count[piece]
        total: Floats = np.bincount(piece, mass, len(count)).astype(np.float64)
        some = total > 0
        moments = np.column_stack([np.bincount(piece, mass * each, len(count)) for each in at.T])
        centre = moments[some] / total[some, None]
        # The edge's number is the same at all of its points, to the last bit.
        centre[:, 0] = pieces.corners[some, 0, 0]
        return Pieces(np.repeat(centre[:, None], 2, axis=1), pieces.element[some], total[some])

    def bounds(self, mesh: Mesh) -> Floats:
        """(T,) upper bounds of the values on a mesh's elements."""
        boxes = shapely.bounds(mesh.element_parts)
        # Sampled positions are rounded to the public grid.
        slack = np.array([-1, -1, 1, 1]) * (mesh.domain.resolution + 1e-9 * self.step.max())
        boxes = boxes + slack
        low_row, low_column, _ = self.cells(boxes[:, [0, 3]])
        high_row, high_column, _ = self.cells(boxes[:, [2, 1]])
        spans = zip(low_row, high_row + 1, low_column, high_column + 1, strict=True)
        # Beyond the bounds a layer with integrals is zero.
        return np.array([np.nan_to_num(self.values[a:b, c:d]).max() for a, b, c, d in spans])


def _held(values: Floats, most: int) -> Iterator[tuple[Ints, Ints]]:
    """Rows and columns of cells with values other than zero, so many at once at most."""
    rows = max(1, most // values.shape[1])
    for first in range(0, len(values), rows):
        row, column = np.nonzero(np.nan_to_num(values[first : first + rows]))
        for start in range(0, len(row), most):
            yield first + row[start : start + most], column[start : start + most]


class _Gathered:
    """Masses at points of a window, gathered by parts of a mesh's elements."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.along = int(np.clip(np.sqrt(GATHERED / len(mesh.elements)), 1, MOST_ALONG))
        size = len(mesh.elements) * self.along**2
        self.mass, self.moment = np.zeros(size), np.zeros((2, size))

    def add(self, xy: Floats, mass: Floats) -> None:
        """Add masses (n,) at places (n, 2)."""
        element = self.mesh.locate(xy)
        place = within_element(self.mesh, self.mesh.weights(element, xy))
        a, b = np.clip((place * self.along).astype(np.int64), 0, self.along - 1).T
        part = (element * self.along + a) * self.along + b
        self.mass += np.bincount(part, mass, len(self.mass))
        self.moment += np.stack([np.bincount(part, mass * each, len(self.mass)) for each in xy.T])

    def pieces(self) -> Pieces:
        """Each mass at its centre."""
        some = np.flatnonzero(self.mass > 0)
        centre = (self.moment[:, some] / self.mass[some]).T
        return Pieces(np.repeat(centre[:, None], 3, axis=1), some // self.along**2, self.mass[some])


def raster_bounds(bounds: object) -> Bounds:
    """Bounds of a raster, as plain numbers; InputError unless they are in order."""
    corners = as_reals(bounds, "bounds: must be four real numbers.")
    if corners.shape != (4,) or not (np.abs(corners) <= LARGEST).all() or not (corners[:2] < corners[2:]).all():
        msg = f"bounds: expected (x0, y0, x1, y1) with x0 < x1 and y0 < y1, got {bounds!r}."
        raise InputError(msg)
    x0, y0, x1, y1 = corners.tolist()
    return x0, y0, x1, y1


# Cells that are read into memory, at 8 bytes each.
MOST_CELLS = 50_000_000
# Cells that are read from the file at once, about.
READ_TOGETHER = 1_000_000


def read_geotiff(
    path: str | Path, *, band: int | None = None, fill: float | None = None, crs: str | None = None
) -> RasterLayer:
    """Read one band of a GeoTIFF; cells of its `nodata` value, or masked ones, have no value.

    Parameters
    ----------
    path : str or Path
        A plain file. Files that point at others, such as VRT, are refused.
    band : int, optional
        From 1 on; needed where the file has several.
    fill : float, optional
        Value of cells that have none, and of places beyond the raster.
    crs : str, optional
        Coordinate system of a file that does not name its own.

    Raises
    ------
    InputError
        When rasterio is not installed, the file is no GeoTIFF with such a band, its cells have no place on a map or
        are not along the axes, or there are too many.
    """
    outside = outside_value(fill)
    if not isinstance(path, str | Path):
        msg = f"path: must name a GeoTIFF file; this {type(path).__name__} names none."
        raise InputError(msg)
    file = Path(path)
    if not there(file, Path.is_file):
        msg = f"{file.name}: there is no such file."
        raise InputError(msg)
    try:
        import rasterio
    except ImportError:
        msg = f"{file.name}: GeoTIFF files need rasterio; install it with pip install rasterio."
        raise InputError(msg) from None
    try:
        with warnings.catch_warnings():
            # Files without a place on the map are refused below.
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
            with rasterio.open(file, driver="GTiff") as source:
                values = _band(source, _number(source, band, file.name), file.name, outside)
                bounds, stated = tuple(source.bounds), source.crs
    except rasterio.errors.RasterioError:
        msg = f"{file.name}: is no GeoTIFF that can be read."
        raise InputError(msg) from None
    own = None if stated is None else stated.to_string()
    layer = RasterLayer(values, bounds, outside=outside, crs=own or crs, label=file.name)
    layer.unnamed = either('crs="{}"', "--crs {}")
    return layer


def _number(source: Any, band: int | None, name: str) -> int:
    """The band that is meant."""
    if band is None and source.count > 1:
        remedy = either("name one, such as band=1", f"save one alone, such as by gdal_translate -b 1 {name} one.tif")
        msg = f"band: {name} has {source.count} bands; {remedy}."
        raise InputError(msg)
    band = 1 if band is None else band
    if isinstance(band, bool) or not isinstance(band, int) or not 1 <= band <= source.count:
        msg = f"band: {name} has bands 1 to {source.count}, got {band!r}."
        raise InputError(msg)
    return band


def _band(source: Any, band: int, name: str, fill: float) -> Floats:
    """Values (rows, columns) of an open file, first row at the top; read some rows at a time."""
    if source.width * source.height > MOST_CELLS:
        msg = f"{name}: has more than {MOST_CELLS} cells; clip it to the domain first."
        raise InputError(msg)
    step = source.transform
    if step.is_identity or not step.is_rectilinear or step.a <= 0 or step.e >= 0 or (step.b, step.d) != (0, 0):
        msg = f"{name}: its cells have no place on a map, or are turned; warp it to a north-up raster first."
        raise InputError(msg)
    if np.dtype(source.dtypes[band - 1]).kind not in "iuf":
        msg = f"{name}: band {band} must hold real numbers."
        raise InputError(msg)
    values: Floats = np.empty((source.height, source.width))
    # Whole blocks of the file, which are not read twice.
    high = max(1, source.block_shapes[band - 1][0])
    rows = high * max(1, READ_TOGETHER // (high * source.width))
    for start in range(0, source.height, rows):
        part = values[start : start + rows]
        found = source.read(band, masked=True, window=((start, start + len(part)), (0, source.width)))
        part[:] = np.ma.filled(found.astype(np.float64), np.nan)
        part *= source.scales[band - 1]
        part += source.offsets[band - 1]
        part[np.isnan(part)] = fill
    return values
