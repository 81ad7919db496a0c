"""The file of a public offset in a release: GeoJSON of polygons, or netCDF of a raster with many cells."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from dpppsynth.contract.estimator import OFFSET, OFFSET_RASTER
from dpppsynth.core.errors import InputError
from dpppsynth.core.published_files import plain_text
from dpppsynth.core.types import JsonObject
from dpppsynth.inference.array_files import Variable, array_file, read_arrays
from dpppsynth.release.certificate import Published
from dpppsynth.spatial.domains import canonical_json
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.raster_layers import RasterLayer

GROUP = "offset"


def offset_name(listed: Iterable[str]) -> str:
    """Name of the file of an offset among those that a certificate lists; that of polygons where there is none."""
    names = set(listed)
    return OFFSET_RASTER if OFFSET_RASTER in names and OFFSET not in names else OFFSET


def write_offset(offset: Offset, folder: Path) -> None:
    """Write an offset into the folder of a release."""
    if isinstance(offset.layer, RasterLayer):
        (folder / OFFSET_RASTER).write_bytes(_written(offset.layer))
    else:
        text = plain_text(offset.to_geojson())
        (folder / OFFSET).write_text(text, encoding="utf-8", newline="\n")


def read_offset(found: Published) -> Offset:
    """The offset of a release.

    Raises
    ------
    OSError, InputError, ValueError, TooLargeError
        When its file is missing, or is no offset.
    """
    name = offset_name(found.certificate["files"])
    if name == OFFSET_RASTER:
        return _read(found.content(name))
    document: JsonObject = dict(found.document(name))
    offset = Offset.from_geojson(document)
    if canonical_json(document) != canonical_json(offset.to_geojson()):
        msg = f"release: {name} holds something else beside an offset."
        raise InputError(msg)
    return offset


def _written(raster: RasterLayer) -> bytes:
    """A file with centres of columns and rows, and densities; so laid out, map programs open it."""
    (rows, columns), (x0, y0, x1, y1) = raster.values.shape, raster.bounds_of_cells
    x = x0 + (np.arange(columns) + 0.5) * ((x1 - x0) / columns)
    y = y1 - (np.arange(rows) + 0.5) * ((y1 - y0) / rows)
    variables = {
        "y": Variable(("y",), y),
        "x": Variable(("x",), x),
        "density": Variable(("y", "x"), raster.values.astype("<f8")),
    }
    return array_file(GROUP, variables, {"bounds": np.array(raster.bounds_of_cells, dtype="<f8")})


def _read(content: bytes) -> Offset:
    """Raster of a file."""
    kinds = {"y": "<f8 1", "x": "<f8 1", "density": "<f8 2"}
    found, notes = read_arrays(content, GROUP, kinds, {"bounds": 4})
    x0, y0, x1, y1 = notes["bounds"].tolist()
    raster = RasterLayer(found["density"], (x0, y0, x1, y1), outside=0.0, label=OFFSET_RASTER)
    own, _ = read_arrays(_written(raster), GROUP, kinds, {"bounds": 4})
    if not all(np.array_equal(found[name], own[name]) for name in kinds):
        msg = f"release: {OFFSET_RASTER} is no raster; its rows or columns do not follow from its bounds."
        raise InputError(msg)
    return Offset.of(raster)
