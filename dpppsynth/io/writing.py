"""Writers of point patterns.

A file holds the points, their marks and the CRS, nothing else: no row numbers, no time of writing. Coordinates are
written with all their digits, so that a pattern reads back exactly, unless they are re-projected. Rows are written some
thousand at a time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dpppsynth.core.atomic_files import drafted
from dpppsynth.core.errors import InformationWarning, InputError
from dpppsynth.core.progress import Progress, ProgressLike, Step, announced
from dpppsynth.io.file_contents import (
    BATCH,
    GEOMETRY,
    ROWS,
    WrittenPoints,
    arrow_batches,
    arrow_schema,
    csv_parts,
    fitting_names,
    geojson_parts,
    geoparquet_metadata,
    written_points,
)
from dpppsynth.spatial.mark_space import Marks
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.tables.formats import as_path, there

if TYPE_CHECKING:
    from dpppsynth.core.crs import CRSLike

Part = TypeVar("Part")
LONG_AGO = "2000-01-01T00:00:00.000Z"
CACHE_MIB = "256"


def write_pattern(
    pattern: PointPattern,
    path: str | Path,
    *,
    described: Marks | None = None,
    to_crs: CRSLike | None = None,
    places: bool = False,
    progress: ProgressLike = None,
) -> None:
    """Write a pattern to a GeoJSON, CSV, GeoPackage or GeoParquet file, which is replaced if it exists.

    GeoJSON names the CRS in the ``crs`` member that GDAL and QGIS read; CSV has columns x, y and one per mark, and does
    not name it; texts that a spreadsheet would take for formulas get an apostrophe in front, which `read_synthetic`
    takes away. Where the domain has no CRS the member is null, which most programs take for degrees. Marks whose names
    a GeoPackage cannot hold, such as "fid", and of two that are equal but for case one, get a number behind their names
    there, with an InformationWarning; `read_synthetic` takes it away.

    Parameters
    ----------
    pattern : PointPattern
        The pattern; a synthetic one may be empty.
    path : str or Path
        File ending in .geojson, .json, .csv, .gpkg or .parquet, in an existing folder.
    described : Marks, optional
        Of a release of points with types and times: days since a date are written as ISO dates and times then.
    to_crs : str, int or pyproj.CRS, optional
        Re-project to this system, such as "EPSG:4326" for longitude and latitude, rounded to a billionth of a degree.
    places : bool
        On a network, also write columns ``edge``, the number of the edge, and ``along``, the distance along it from
        its start in the network's unit; they tell streets apart where these cross or run in two levels.
    progress : callable or bool, optional
        Told in words which share of the points is written. Unless given, a line on the screen in interactive use; False
        is silence.

    Raises
    ------
    InputError
        The format is unknown, the folder does not exist, a mark has the name of a coordinate, or there is no accurate
        way to another CRS.
    """
    target = as_path(path)
    writer = _WRITERS.get(target.suffix.lower())
    if writer is None:
        msg = f"path: the format must be one of {', '.join(_WRITERS)}; got {target.suffix or 'no suffix'!r}"
        raise InputError(msg)
    if not there(target.parent, Path.is_dir):
        msg = f"path: there is no folder {str(target.parent)!r}"
        raise InputError(msg)
    clash = {"x", "y", "geometry"} & set(pattern.marks or ())
    if clash:
        msg = f"marks: the names {sorted(clash)} are taken by the coordinates; rename these marks"
        raise InputError(msg)
    if described is not None:
        pattern = _dated(pattern, described)
    points = _fitting(written_points(pattern, to_crs=to_crs, places=places), target.suffix.lower())
    # A half-written file never stands under the final name, and no layer of an older file survives.
    draft_of = drafted(target, "it holds points as they were being written.")
    with announced(progress) as say, draft_of as draft:
        writer(points, draft, say)
        draft.replace(target)


def _fitting(points: WrittenPoints, suffix: str) -> WrittenPoints:
    """The points with names of columns that a file of a format can have; that others are given is said."""
    names = fitting_names(points.columns, suffix)
    renamed = {name: word for name, word in names.items() if name != word}
    if renamed:
        said = ", ".join(f"{name!r} as {word!r}" for name, word in renamed.items())
        warnings.warn(
            f"format: a GeoPackage has no columns of some names, and others are written: {said}",
            InformationWarning,
            stacklevel=3,
        )
    return replace(points, columns={names[name]: values for name, values in points.columns.items()})


def _dated(pattern: PointPattern, described: Marks) -> PointPattern:
    """The pattern with dates instead of days since one."""
    times, marks = described.times, pattern.marks or {}
    described.require(marks or {name: np.empty(0) for name in described.names})
    if times is None or not times.origin or not marks:
        return pattern
    dated = {**marks, times.name: times.dates(marks[times.name])}
    return PointPattern.at(pattern.positions, pattern.domain, dated, synthetic=True)


def geojson_text(pattern: PointPattern) -> str:
    """The text of the GeoJSON file that `write_pattern` writes."""
    return "".join(geojson_parts(written_points(pattern)))


def _told(parts: Iterable[Part], points: WrittenPoints, rows: int, say: Progress) -> Iterator[Part]:
    """The parts of a file, of so many rows each; before each the share of the rows written is told."""
    for k, part in enumerate(parts):
        say(Step("writing points", min(1.0, k * rows / max(1, len(points.xy)))))
        yield part


def _write_text(
    parts: Callable[[WrittenPoints], Iterator[str]], points: WrittenPoints, path: Path, say: Progress
) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(_told(parts(points), points, ROWS, say))


def _write_gpkg(points: WrittenPoints, path: Path, say: Progress) -> None:
    import pyarrow
    import pyogrio

    # GDAL stamps the present time on the file, which would tell how long a release took. A large cache halves the time
    # of the spatial index of a million points.
    settings = {"OGR_CURRENT_DATE": LONG_AGO, "OGR_SQLITE_CACHE": CACHE_MIB}
    before = {name: pyogrio.get_gdal_config_option(name) for name in settings}
    pyogrio.set_gdal_config_options(settings)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "'crs' was not provided", UserWarning)
            batches = pyarrow.RecordBatchReader.from_batches(
                arrow_schema(points), _told(arrow_batches(points), points, BATCH, say)
            )
            layer: dict[str, Any] = {"layer": path.stem, "driver": "GPKG", "crs": points.crs}
            pyogrio.write_arrow(batches, path, geometry_name=GEOMETRY, geometry_type="Point", **layer)
    finally:
        pyogrio.set_gdal_config_options(before)


def _write_parquet(points: WrittenPoints, path: Path, say: Progress) -> None:
    import pyarrow.parquet

    schema = arrow_schema(points).with_metadata(geoparquet_metadata(points))
    with pyarrow.parquet.ParquetWriter(path, schema, compression="snappy") as file:
        for batch in _told(arrow_batches(points), points, BATCH, say):
            file.write_batch(batch.replace_schema_metadata(schema.metadata))


_WRITERS: dict[str, Callable[[WrittenPoints, Path, Progress], None]] = {
    ".geojson": partial(_write_text, geojson_parts),
    ".json": partial(_write_text, geojson_parts),
    ".csv": partial(_write_text, csv_parts),
    ".gpkg": _write_gpkg,
    ".parquet": _write_parquet,
}
