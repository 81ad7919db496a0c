"""Intensity of a release as a file: GeoTIFF, CSV or shapes of a grid, CSV or lines of parts of streets."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from dpppsynth.contract.result import marks_of
from dpppsynth.core.arguments import one_of, positive
from dpppsynth.core.atomic_files import drafted
from dpppsynth.core.errors import InputError
from dpppsynth.core.rounding import round_length
from dpppsynth.core.wording import mention
from dpppsynth.io.street_names import OF_STREETS, StreetNames
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.release.cox import CoxRelease
from dpppsynth.release.intensity_shapes import SHAPES, cells_about, parts_of_streets, write_shapes
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.tables.table import guarded
from dpppsynth.spatial.time_periods import periods

RASTER, TABLE = (".tif", ".tiff"), (".csv", *SHAPES)
# Cells along the longer side unless a spacing is given, cells of a raster at most, and places looked up at once.
ALONG, MOST, TOGETHER = 256, 10_000_000, 1 << 16
MOST_ROWS = 1_000_000
# Column of the relative risk.
RISK = "relative_risk"


def write_intensity(
    release: CoxRelease[Any],
    path: str | Path,
    *,
    spacing: float | None = None,
    level: float = 0.9,
    by: str | Sequence[str] = (),
    names: StreetNames | None = None,
) -> None:
    """Write the released intensity at the centres of a grid's cells, or of equal parts of streets.

    A GeoTIFF has the bands ``intensity``, ``lower`` and ``upper``, the last two where the release has posterior draws;
    cells whose centre is outside the window hold NaN, the file's nodata value. A CSV file has a row for each cell whose
    centre is in the window, with columns ``x``, ``y`` and those of the bands; along streets also ``edge``, ``along``,
    the distance from the edge's start, and ``length``, that of the part. GeoPackage, GeoJSON and GeoParquet files have
    such cells as squares and such parts as lines; a GeoPackage has a style, so that QGIS opens it coloured.

    Releases with an offset or covariates have ``relative_risk`` behind these, its posterior mean, but not by periods.

    With `by` there is an intensity for each type and period, which add up to the whole: more bands of a GeoTIFF, more
    layers of a GeoPackage under one colour scale, more rows of other files, with columns ``type`` and ``period``.

    Parameters
    ----------
    release : CoxRelease
        One release; those of several levels are written one by one.
    path : str or Path
        File ending in .tif, .tiff, .csv, .gpkg, .geojson or .parquet, in an existing folder; it is replaced if it
        exists.
    spacing : float, optional
        Side of the cells, or longest part of a street, in the domain's unit. Unless given: 1, 2 or 5 times a power of
        ten, at least 1/256 of the longer side of the domain, and so long that a table has about 65 000 rows at most,
        for all types and periods together.
    level : float
        Probability of the credible interval from ``lower`` to ``upper``.
    by : str or sequence of str
        Of points with marks: "types", "time", names of these marks, or both. Periods are three hours of a day, days of
        a week, years or months of dates, else eight equal parts.
    names : StreetNames, optional
        Public names of the streets, which `dpppsynth.io.StreetNames` reads from the network's file: a column ``name``.

    Raises
    ------
    InputError
        When the release has no intensity, the format is unknown, streets are to be a raster, rasterio is not installed,
        names are given of a window, or there are more than 10 million cells of a raster, or a million rows or shapes,
        for all types and periods together.
    """
    file = Path(path)
    require_surface(release, file.suffix.lower())
    slices = slices_of(release, by)
    if not file.parent.is_dir():
        msg = f"path: there is no folder {str(file.parent)!r}"
        raise InputError(msg)
    domain = release.domain
    on_streets = isinstance(domain, LinearNetwork)
    if names is not None and not on_streets:
        raise InputError(OF_STREETS)
    # A row or shape takes time; values of a band do not.
    layers = 1 if file.suffix.lower() in RASTER else len(slices)
    side = _round_spacing(domain, layers) if spacing is None else positive("spacing", spacing)
    described = _Described(release, level, slices)
    with drafted(file, "it holds an intensity as it was being written.") as draft:
        if file.suffix.lower() in RASTER:
            _write_raster(draft, _cell_centres(domain, side), described)
        else:
            places = _street_places(domain, side, layers, names) if on_streets else _cell_centres(domain, side, layers)
            write = _write_table if file.suffix.lower() == ".csv" else _write_shapes
            write(draft, places, described)
        draft.replace(file)


def require_surface(release: object, suffix: str) -> None:
    """Refuse releases without an intensity, and formats that cannot hold it, with an InputError."""
    if not isinstance(release, CoxRelease) or not release.inferred:
        msg = "release: there is no intensity in it: this mechanism has none, or nothing was inferred yet"
        raise InputError(msg)
    if suffix not in RASTER + TABLE:
        msg = f"path: the format must be one of {', '.join(RASTER + TABLE)}; got {suffix or 'no suffix'!r}"
        raise InputError(msg)
    if suffix in RASTER and isinstance(release.domain, LinearNetwork):
        msg = "path: an intensity along streets is no raster; take gpkg, whose rows are lines along the streets, or csv"
        raise InputError(msg)


def _round_spacing(domain: Domain, layers: int) -> float:
    """The spacing unless one is given: of `ALONG` places along the longer side, and few in all layers together."""
    west, south, east, north = domain.bounds
    side = max(east - west, north - south) / ALONG
    if isinstance(domain, LinearNetwork):
        return round_length(max(side, domain.size * layers / ALONG**2), least=True)
    return round_length(side * math.sqrt(layers), least=True)


@dataclass(frozen=True)
class _Places:
    """Places at which the intensity is told.

    Attributes
    ----------
    xy : (n, 2) array
    inside : (n,) array of bool
        Whether the centre is in the domain.
    columns : dict of str to (n,) array
        What a table says of them beside the coordinates.
    """

    xy: Floats
    inside: Any
    columns: dict[str, Any]

    def blocks(self) -> Iterator[slice]:
        """Slices that together hold all places."""
        return (slice(start, start + TOGETHER) for start in range(0, len(self.xy), TOGETHER))


@dataclass(frozen=True)
class _Grid(_Places):
    """Centres of all cells of a grid, by rows from the north."""

    west: float
    north: float
    side: float
    shape: tuple[int, int]


def _cell_centres(window: Domain, side: float, layers: int = 0) -> _Grid:
    west, south, east, north = window.bounds
    # Cells start at multiples of the side, so that grids of several releases lie over each other.
    left, top = math.floor(west / side) * side, math.ceil(north / side) * side
    columns, rows = math.ceil((east - left) / side), math.ceil((top - south) / side)
    _require_few(columns * rows)
    _require_few_rows(window, window.size / side**2, layers)
    x = left + (np.arange(columns) + 0.5) * side
    y = top - (np.arange(rows) + 0.5) * side
    xy = np.column_stack([np.tile(x, rows), np.repeat(y, columns)])
    inside = np.concatenate([window.contains(xy[k : k + TOGETHER]) for k in range(0, len(xy), TOGETHER)])
    return _Grid(xy, inside, {}, left, top, side, (rows, columns))


def _street_places(network: Any, side: float, layers: int, names: StreetNames | None) -> _Places:
    _require_few_rows(network, network.size / side + len(network.edges), layers)
    mesh = network_mesh(network, side)
    along = (mesh.start + mesh.end) / 2
    xy = network.coordinates(np.column_stack([mesh.edge, along]))
    length = mesh.end - mesh.start
    columns: dict[str, Any] = {"edge": mesh.edge, "along": along, "length": length}
    if names is not None:
        columns = {"name": names.of(parts_of_streets(network, mesh.edge, along, length), network)} | columns
    return _Places(xy, np.ones(len(xy), bool), columns)


def _require_few(cells: float) -> None:
    if cells > MOST:
        msg = f"spacing: makes more than {MOST:,} cells; take a larger {mention('spacing')}"
        raise InputError(msg)


def _require_few_rows(domain: Domain, places: float, layers: int) -> None:
    """Refuse so many rows or shapes that they take hours, before the first of them."""
    if places * layers > MOST_ROWS:
        wide = mention("spacing", f"{_round_spacing(domain, layers):g}")
        each = f", {places:,.0f} for each of {layers} types and periods" if layers > 1 else ""
        msg = (
            f"spacing: makes {places * layers:,.0f} rows or shapes{each}, and {MOST_ROWS:,} are the most; take a "
            f"larger one ({wide})"
        )
        raise InputError(msg)


@dataclass(frozen=True)
class Slice:
    """A type, a period or both, of which there is an intensity.

    Attributes
    ----------
    texts : dict of str to str
        What a table says of it, in columns ``type`` and ``period``.
    chosen : dict
        Arguments `type` and `during` of the intensity.
    """

    texts: dict[str, str] = field(default_factory=dict)
    chosen: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of its layer: "intensity", and what it is of."""
        return " ".join(["intensity", *self.texts.values()])


def slices_of(release: object, by: str | Sequence[str]) -> list[Slice]:
    """Types and periods of which `write_intensity` tells the intensity; one of the whole unless `by` names marks."""
    wanted = [by] if isinstance(by, str) else list(by)
    if not wanted:
        return [Slice()]
    if (marks := marks_of(release)) is None:
        msg = "by: the points of this release have no types and no times; leave it out"
        raise InputError(msg)
    known = {"types": marks.types, "time": marks.times}
    kinds = {name: kind for kind, each in known.items() if each is not None for name in (kind, each.name)}
    found = {kinds[one_of("by", each, tuple(kinds))] for each in wanted}
    types = marks.types.values if marks.types is not None and "types" in found else ()
    spans = periods(marks.times) if marks.times is not None and "time" in found else {}
    of_types = [Slice({"type": each}, {"type": each}) for each in types] or [Slice()]
    of_times = [Slice({"period": name}, {"during": span}) for name, span in spans.items()] or [Slice()]
    return [Slice(a.texts | b.texts, a.chosen | b.chosen) for a in of_types for b in of_times]


@dataclass(frozen=True)
class _Described:
    """Columns of an intensity: itself, its credible interval where there are posterior draws, and the relative risk."""

    release: CoxRelease[Any]
    level: float
    slices: list[Slice]

    @property
    def names(self) -> list[str]:
        """Their names."""
        interval = [] if self.release.draws is None else ["lower", "upper"]
        return ["intensity", *interval, *([RISK] if self.risks else [])]

    @cached_property
    def risks(self) -> list[Any]:
        """The relative risk of each slice; none where that is the intensity, or of periods, as it is of instants."""
        if not self.release.has_risk or any("during" in part.chosen for part in self.slices):
            return []
        return [self.release.risk_of(**part.chosen) for part in self.slices]

    def values(self, xy: Floats, part: Slice) -> Floats:
        """(columns, n) values of a slice at places (n, 2)."""
        intensity: Any = self.release.intensity
        found = [np.asarray(intensity(xy, **part.chosen))]
        if self.release.draws is not None:
            interval = self.release.interval(xy, level=self.level, **part.chosen)
            found += [interval.lower, interval.upper]
        if self.risks:
            found.append(self.risks[self.slices.index(part)](xy))
        return np.stack(found)


def _write_table(path: Path, places: _Places, described: _Described) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(["x", "y", *places.columns, *described.slices[0].texts, *described.names])
        for part, block in product(described.slices, places.blocks()):
            inside = places.inside[block]
            xy = places.xy[block][inside]
            if len(xy):
                # Names of streets are of another's file: a spreadsheet runs none of them as a formula.
                beside = [guarded(column[block][inside].tolist()) for column in places.columns.values()]
                beside += [[text] * len(xy) for text in part.texts.values()]
                values = (column.tolist() for column in described.values(xy, part))
                rows.writerows(zip(*xy.T.tolist(), *beside, *values, strict=True))


def _write_shapes(path: Path, places: _Places, described: _Described) -> None:
    xy = places.xy[places.inside]
    layers = {}
    for part in described.slices:
        blocks = [described.values(xy[k : k + TOGETHER], part) for k in range(0, len(xy), TOGETHER)]
        values = dict(zip(described.names, np.concatenate(blocks, axis=1), strict=True))
        layers[part.name] = places.columns | {name: [text] * len(xy) for name, text in part.texts.items()} | values
    domain: Any = described.release.domain
    if isinstance(places, _Grid):
        shapes = cells_about(xy, places.side)
    else:
        shapes = parts_of_streets(domain, *(places.columns[name] for name in ("edge", "along", "length")))
    write_shapes(path, layers, shapes, domain)


def _write_raster(path: Path, places: _Grid, described: _Described) -> None:
    rasterio = _rasterio()
    rows, columns = places.shape
    parts, each = described.slices, len(described.names)
    values = np.full((each * len(parts), len(places.xy)), np.nan, dtype=np.float32)
    for (k, part), block in product(enumerate(parts), places.blocks()):
        inside = places.inside[block]
        if inside.any():
            values[each * k : each * (k + 1), block][:, inside] = described.values(places.xy[block][inside], part)
    release = described.release
    profile = {"driver": "GTiff", "width": columns, "height": rows, "count": len(values), "dtype": "float32"}
    layout = {"nodata": np.nan, "compress": "deflate", "tiled": True, "crs": release.domain.crs}
    place = rasterio.transform.from_origin(places.west, places.north, places.side, places.side)
    with rasterio.open(path, "w", **profile, **layout, transform=place) as target:
        target.write(values.reshape(-1, rows, columns))
        target.descriptions = tuple(
            " ".join([name, *part.texts.values()]) for part in parts for name in described.names
        )
        target.update_tags(unit=f"points per square {release.domain.unit}", mechanism=release.mechanism)
        if release.draws is not None:
            target.update_tags(interval=str(described.level))


def _rasterio() -> Any:
    try:
        import rasterio
        import rasterio.transform
    except ImportError:
        msg = "path: GeoTIFF files need rasterio; install it with pip install rasterio, or take .csv"
        raise InputError(msg) from None
    return rasterio
