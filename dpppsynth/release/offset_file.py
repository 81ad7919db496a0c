"""The file of a public offset in a release: GeoJSON of polygons, or netCDF of rasters with many cells.

Offsets of several types or times have one file, whose raster has them as its layers.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import numpy as np

from dpppsynth.contract.estimator import OFFSET, OFFSET_RASTER
from dpppsynth.core.errors import InputError
from dpppsynth.core.published_files import plain_text
from dpppsynth.core.types import JsonObject
from dpppsynth.inference.array_files import Variable, array_file, read_arrays
from dpppsynth.release.certificate import Published
from dpppsynth.spatial.domains import canonical_json
from dpppsynth.spatial.mark_space import Marks
from dpppsynth.spatial.marked_offset import AnyOffset, MarkedOffset
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.raster_layers import RasterLayer

# Groups of a raster, and of several by type or by instant, whose layers the variable `part` counts.
GROUP, BY_TYPE, BY_INSTANT = "offset", "offset_by_type", "offset_by_instant"


def offset_name(listed: Iterable[str]) -> str:
    """Name of the file of an offset among those that a certificate lists; that of polygons where there is none."""
    names = set(listed)
    return OFFSET_RASTER if OFFSET_RASTER in names and OFFSET not in names else OFFSET


def write_offset(offset: AnyOffset, folder: Path) -> None:
    """Write an offset into the folder of a release."""
    if isinstance(_parts(offset)[0].layer, RasterLayer):
        (folder / OFFSET_RASTER).write_bytes(_written(offset))
    else:
        text = plain_text(offset.to_geojson())
        (folder / OFFSET).write_text(text, encoding="utf-8", newline="\n")


def read_offset(found: Published) -> AnyOffset:
    """The offset of a release; those of types or times where its certificate describes such.

    Raises
    ------
    OSError, InputError, ValueError, TooLargeError
        When its file is missing, or is no offset.
    """
    name = offset_name(found.certificate["files"])
    stated = found.certificate["parameters"].get("marks")
    marks = None if stated is None else Marks.from_dict(stated)
    if name == OFFSET_RASTER:
        return _read(found.content(name), marks)
    document: JsonObject = dict(found.document(name))
    several = marks is not None and _several(document)
    offset = MarkedOffset.from_geojson(document, cast(Marks, marks)) if several else Offset.from_geojson(document)
    if canonical_json(document) != canonical_json(offset.to_geojson()):
        msg = f"release: {name} holds something else beside an offset."
        raise InputError(msg)
    return offset


def _several(document: JsonObject) -> bool:
    """Whether polygons have a type or an instant."""
    try:
        return any({"type", "since"} & set(each["properties"]) for each in document["features"])
    except (LookupError, TypeError):
        return False


def _parts(offset: AnyOffset) -> tuple[Offset, ...]:
    return offset.parts if isinstance(offset, MarkedOffset) else (offset,)


def _written(offset: AnyOffset) -> bytes:
    """A file with centres of columns and rows, and densities; so laid out, map programs open it."""
    rasters = [cast(RasterLayer, each.layer) for each in _parts(offset)]
    (rows, columns), (x0, y0, x1, y1) = rasters[0].values.shape, rasters[0].bounds_of_cells
    x = x0 + (np.arange(columns) + 0.5) * ((x1 - x0) / columns)
    y = y1 - (np.arange(rows) + 0.5) * ((y1 - y0) / rows)
    variables = {"y": Variable(("y",), y), "x": Variable(("x",), x)}
    if isinstance(offset, MarkedOffset):
        part = np.array(offset.instants or range(len(rasters)), dtype="<f8")
        density = np.stack([each.values for each in rasters]).astype("<f8")
        variables |= {"part": Variable(("part",), part), "density": Variable(("part", "y", "x"), density)}
    else:
        variables["density"] = Variable(("y", "x"), rasters[0].values.astype("<f8"))
    return array_file(_group(offset), variables, {"bounds": np.array(rasters[0].bounds_of_cells, dtype="<f8")})


def _group(offset: AnyOffset) -> str:
    if not isinstance(offset, MarkedOffset):
        return GROUP
    return BY_INSTANT if offset.instants else BY_TYPE


def _read(content: bytes, marks: Marks | None) -> AnyOffset:
    """Rasters of a file."""
    group, found, (x0, y0, x1, y1) = _arrays(content, marks)
    layers = found["density"] if group != GROUP else found["density"][None]
    parts = tuple(Offset.of(RasterLayer(each, (x0, y0, x1, y1), outside=0.0, label=OFFSET_RASTER)) for each in layers)
    offset: AnyOffset = parts[0]
    if group != GROUP:
        offset = MarkedOffset(parts, cast(Marks, marks), tuple(found["part"].tolist()) if group == BY_INSTANT else ())
    _, own, _ = _arrays(_written(offset), marks)
    if not all(np.array_equal(found[name], own[name]) for name in found):
        msg = f"release: {OFFSET_RASTER} is no raster; its rows or columns do not follow from its bounds."
        raise InputError(msg)
    return offset


def _arrays(content: bytes, marks: Marks | None) -> tuple[str, dict[str, Any], list[float]]:
    """Group, arrays and bounds of a file, of several rasters only where points have marks."""
    one = {"y": "<f8 1", "x": "<f8 1", "density": "<f8 2"}
    several = {**one, "part": "<f8 1", "density": "<f8 3"}
    for group in () if marks is None else (BY_TYPE, BY_INSTANT):
        try:
            found, notes = read_arrays(content, group, several, {"bounds": 4})
        except ValueError:
            continue
        return group, found, notes["bounds"].tolist()
    found, notes = read_arrays(content, GROUP, one, {"bounds": 4})
    return GROUP, found, notes["bounds"].tolist()
