"""Rasters from GeoTIFF files, by rasterio."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import either
from dpppsynth.spatial.layers.public_layer import outside_value
from dpppsynth.spatial.layers.rasters import RasterLayer
from dpppsynth.spatial.mesh import Floats

# Cells that are read into memory, at 8 bytes each.
MOST_CELLS = 50_000_000
# Cells that are read from the file at once, about.
TOGETHER = 1_000_000


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
    file = _file(path)
    try:
        import rasterio
    except ImportError:
        msg = f'{file.name}: GeoTIFF files need rasterio; install it with pip install "dpppsynth[raster]".'
        raise InputError(msg) from None
    try:
        with warnings.catch_warnings():
            # Files without a place on the map are refused below.
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
            values, bounds, stated = _opened(rasterio, file, band, outside)
    except rasterio.errors.RasterioError:
        msg = f"{file.name}: is no GeoTIFF that can be read."
        raise InputError(msg) from None
    own = None if stated is None else stated.to_string()
    layer = RasterLayer(values, bounds, outside=outside, crs=own or crs, label=file.name)
    layer.unnamed = either('crs="{}"', "--crs {}")
    return layer


def _file(path: object) -> Path:
    """The plain file of that name."""
    if not isinstance(path, str | Path):
        msg = f"path: must name a GeoTIFF file; this {type(path).__name__} names none."
        raise InputError(msg)
    try:
        there = Path(path).is_file()
    except (OSError, ValueError):
        there = False
    if not there:
        msg = f"{Path(path).name}: there is no such file."
        raise InputError(msg)
    return Path(path)


def _opened(rasterio: Any, file: Path, band: int | None, fill: float) -> tuple[Floats, Any, Any]:
    with rasterio.open(file, driver="GTiff") as source:
        return _band(source, _number(source, band, file.name), file.name, fill), tuple(source.bounds), source.crs


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
    rows = high * max(1, TOGETHER // (high * source.width))
    for start in range(0, source.height, rows):
        part = values[start : start + rows]
        found = source.read(band, masked=True, window=((start, start + len(part)), (0, source.width)))
        part[:] = np.ma.filled(found.astype(np.float64), np.nan)
        part *= source.scales[band - 1]
        part += source.offsets[band - 1]
        part[np.isnan(part)] = fill
    return values
