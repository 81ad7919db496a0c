"""Readers of windows, of networks, of point patterns, and of points some rows at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from dpppsynth.core.crs import projected_crs, reproject
from dpppsynth.core.errors import InputError
from dpppsynth.core.local_crs import middle, require_made_for
from dpppsynth.core.wording import mention
from dpppsynth.io.file_contents import own_names
from dpppsynth.linear_network.build import without_rows
from dpppsynth.linear_network.network import LinearNetwork
from dpppsynth.linear_network.network_formats import (
    Mending,
    graphml_crs,
    read_graphml,
    skeleton_of_graph,
    skeleton_of_table,
)
from dpppsynth.spatial.domains import Domain, Window, require_domain, require_polygons, unite
from dpppsynth.spatial.mark_space import Marks
from dpppsynth.spatial.pattern_sources import source_of
from dpppsynth.spatial.patterns import PointPattern, pattern_of
from dpppsynth.spatial.polygons import reprojected
from dpppsynth.spatial.tables.formats import (
    as_path,
    is_csv,
    json_table,
    read_head,
    read_layer,
    read_table,
)
from dpppsynth.spatial.tables.mark_columns import AMBIGUOUS, require_columns
from dpppsynth.spatial.tables.points import examined, read_point_batches, read_points, refuse_broken
from dpppsynth.spatial.tables.rows import fitting_crs, require_snap
from dpppsynth.spatial.tables.table import Columns, Table

if TYPE_CHECKING:
    from dpppsynth.core.crs import CRSLike


def read_pattern(
    path: str | Path,
    domain: Domain,
    *,
    x: str | None = None,
    y: str | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    layer: str | None = None,
    crs: CRSLike | None = None,
    to_crs: CRSLike | None = None,
    count: str | None = None,
    marks: Iterable[str] = (),
    described: Marks | None = None,
    user: str | None = None,
    snap: float | None = None,
    skip_outside: bool = False,
) -> PointPattern:
    """Read a sensitive pattern from a CSV, GeoJSON, GeoPackage, GeoParquet or Shapefile file.

    Parameters
    ----------
    path : str or Path
        File ending in .csv, .csv.gz, .geojson, .json, .gpkg, .parquet or .shp. One of several layers of a GeoPackage
        stands behind its name, as in ``"city.gpkg:cases"``, or is `layer`.
    domain : Window or LinearNetwork
        The public region.
    x, y : str, optional
        Coordinate columns of a CSV file; "x" and "y" unless given.
    separator, decimal : str, optional
        Signs of a CSV file: "," and "." unless given; ";", a tab or "|", and "," may be.
    encoding : str, optional
        Encoding of a CSV file, such as "cp1252" or "utf-16"; "utf-8" unless given.
    layer : str, optional
        Layer of a GeoPackage that holds several.
    crs : str, int or pyproj.CRS, optional
        The CRS of a file that does not name one. A CSV file without it is taken to be in the CRS of the domain. GeoJSON
        without a ``crs`` member is in degrees, as its standard says.
    to_crs : str, int or pyproj.CRS, optional
        Re-project the points to this CRS, which must be the one of the domain.
    count : str, optional
        Column of non-negative integers: a row with k stands for k coincident points, 0 for none.
    marks : iterable of str
        Columns kept as marks, as they stand.
    described : Marks, optional
        Public description of types and times, whose columns are kept as marks: types as text, of bins the bin of a
        number; times as numbers in the unit. ISO dates and times ("2024-05-01T17:30") become hours of the clock, or
        days since the date that times are counted from. One with an offset ("Z", "+01:00") is taken to the stated time
        zone; one without is local time as it stands.
    user : str, optional
        Column that says whose point a row is, in texts or whole numbers; kept as a mark of text. No row may leave it
        out.
    snap : float, optional
        Largest distance a point may be moved to the nearest place of the domain, in the domain's unit, chosen without
        looking at the points. Without it every point must lie in a window, or on a network to rounding.
    skip_outside : bool
        Leave out points that are not in the domain, or farther away than `snap`: for releases under which the number of
        points is secret (`AddRemove`). Elsewhere it would be told by how many there are.

    Raises
    ------
    InputError
        The file is missing or unreadable, lacks a column, has another CRS than the domain, or holds a row that breaks a
        rule. The message names the rules; `inspect_points` finds the rows.
    """
    layout = {"x": x, "y": y, "separator": separator, "decimal": decimal, "encoding": encoding, "layer": layer}
    columns: dict[str, Any] = {"layout": layout, "count": count, "user": user}
    reading: dict[str, Any] = {"crs": crs, "to_crs": to_crs, "snap": snap, "skip_outside": skip_outside}
    return pattern_of(read_points(path, domain, **columns, **reading, marks=marks, described=described), domain, snap)


def require_head(
    path: str | Path,
    domain: Domain,
    *,
    crs: CRSLike | None = None,
    to_crs: CRSLike | None = None,
    count: str | None = None,
    marks: Iterable[str] = (),
    described: Marks | None = None,
    user: str | None = None,
    **layout: str | None,
) -> tuple[str, ...]:
    """Names of a file's columns; refuse one whose columns or CRS `read_pattern` would refuse, without looking at a row.

    The names of columns and the CRS of a file are taken to be public: they are how the data are kept, whoever is in
    them. Parameters, and those of the layout of rows, as for `read_pattern`.
    """
    require_domain(domain)
    head = read_head(path, crs=crs, **layout)
    source = fitting_crs(head, domain.crs, to_crs)
    if source is not None and to_crs is not None:
        reproject(np.empty((0, 2)), source, to_crs)
    for argument, name in (("count", count), ("user", user), *(("marks", mark) for mark in marks)):
        if name is not None:
            head.column(name, argument=argument)
    if described is not None:
        require_columns(head, described)
    return tuple(head.columns)


def read_synthetic(
    path: str | Path, domain: Domain, *, marks: Iterable[str] = (), described: Marks | None = None
) -> PointPattern:
    """Read a synthetic pattern that `write_pattern` wrote; it may be empty, and on a network lies on it to rounding.

    Its `source` is that which the name of the file states, such as synthetic_draw_000.csv.

    Parameters
    ----------
    path : str or Path
    domain : Window or LinearNetwork
    marks : iterable of str
        Columns kept as marks, as they stand.
    described : Marks, optional
        Types and times, read as by `read_pattern`.

    Raises
    ------
    InputError
        As for `read_pattern`.
    """
    require_domain(domain)
    table = read_table(path)
    # Texts of sensitive files stay unchanged: "'=a" and "=a" may be two persons.
    table = table.restored() if is_csv(Path(path)) else table
    if as_path(path).suffix.lower() == ".gpkg":
        table = _under_own_names(table, [*marks, *(() if described is None else described.names)])
    return _synthetic(table, domain, Path(path).name, marks, described)


def _under_own_names(table: Table, names: Iterable[str]) -> Table:
    """A GeoPackage's table with its marks under the names that they were given, where it could not hold these."""
    own = {word: name for name, word in own_names(table.columns, names, ".gpkg").items()}
    kept = {own.get(name, name): name for name in table.columns}
    return replace(table, columns=Columns(kept, lambda name: table.columns[kept[name]]), header=[*kept, "geometry"])


def parse_synthetic(
    content: bytes, name: str, domain: Domain, *, marks: Iterable[str] = (), described: Marks | None = None
) -> PointPattern:
    """Read a synthetic pattern from the bytes of a GeoJSON file, which messages call by its name.

    Of `marks` those that are described are read so.
    """
    others = [mark for mark in marks if described is None or mark not in described.names]
    return _synthetic(json_table(Path(name), lambda: content), domain, name, others, described)


def _synthetic(
    table: Table, domain: Domain, name: str, marks: Iterable[str], described: Marks | None = None
) -> PointPattern:
    # A file without points has no columns either.
    kept: dict[str, Any] = {"marks": marks, "described": described} if len(table) else {}
    points, rows = examined(table, domain, **kept)
    # Numbers that were written here are days since the origin.
    refuse_broken([rule for rule in rows.broken if rule != AMBIGUOUS], name)
    return PointPattern.synthetic(points.xy, domain, points.marks).told(source_of(name))


def read_window(
    path: str | Path, *, crs: CRSLike | None = None, to_crs: CRSLike | None = None, join: float | None = None
) -> Window:
    """Read a public window: the union of all polygons of a GeoJSON, GeoPackage or GeoParquet file.

    Parameters
    ----------
    path : str or Path
        File ending in .geojson, .json, .gpkg or .parquet. One of several layers of a GeoPackage stands behind its name,
        as in ``"city.gpkg:districts"``.
    crs : str, int or pyproj.CRS, optional
        The CRS of a file that does not name one.
    to_crs : str, int or pyproj.CRS, optional
        Re-project the vertices to this CRS, before polygons are united; edges stay straight between them.
    join : float, optional
        Fill gaps that are no wider, as in `Window.polygon`.

    Raises
    ------
    InputError
        The file is missing or unreadable, holds anything but polygons, is in degrees, or is not a valid region.
    """
    table = read_layer(path, "a window is made of polygons", crs=crs)
    placed, said = without_rows(table.geometry)
    parts = list(table.geometry[placed])
    require_polygons(parts)
    source = table.crs
    if to_crs is None:
        return _told(Window.polygon(unite(parts), source, join=join), said)
    target = projected_crs(to_crs, at=None if source is None else (source, *middle(shapely.total_bounds(parts))))
    if source is None:
        msg = f"to_crs: the file does not say which CRS it is in; name it with {mention('crs')}"
        raise InputError(msg)
    moved = unite(reprojected(parts, lambda xy: reproject(xy, source, target)))
    require_made_for(target, moved.bounds)
    return _told(Window.polygon(moved, target, join=join), said)


def _told(window: Window, said: tuple[str, ...]) -> Window:
    """A window whose changes begin with what was left out of its file."""
    return replace(window, changes=(*said, *window.changes)) if said else window


def read_network(
    path: str | Path,
    *,
    crs: CRSLike | None = None,
    to_crs: CRSLike | None = None,
    node: bool = False,
    join: float | None = None,
    largest_component: bool = False,
    collapse_short: float | None = None,
    undirected: bool = False,
) -> LinearNetwork:
    """Read a public network: the lines of a GeoJSON, GeoPackage or GeoParquet file, or a graph in GraphML.

    Columns ``from`` and ``to`` that number the vertices from 0, each in one place, are kept unless lines are cut or
    joined: a network that `LinearNetwork.to_geojson` or `to_geodataframe` wrote comes back as it was.

    Parameters
    ----------
    path : str or Path
        File ending in .geojson, .json, .gpkg or .parquet, or .graphml with the attributes of OSMnx. One of several
        layers of a GeoPackage stands behind its name, as in ``"city.gpkg:edges"``.
    crs : str, int or pyproj.CRS, optional
        The CRS of a file that does not name one. GeoJSON without a ``crs`` member is in degrees.
    to_crs : str, int or pyproj.CRS, optional
        Re-project the coordinates of the lines to this CRS.
    node, join, largest_component, collapse_short, undirected
        As for `LinearNetwork.from_geodataframe`. `undirected` makes streets of OSMnx's directed graphs.

    Raises
    ------
    InputError
        The file is missing or unreadable, holds anything but lines, is in degrees, or is not a connected network.
    """
    wanted: dict[str, Any] = {"node": node, "join": join, "undirected": undirected}
    mending = Mending(**wanted, largest_component=largest_component, collapse_short=collapse_short)
    if is_graphml(path):
        return LinearNetwork.from_skeleton(*skeleton_of_graph(read_graphml(as_path(path)), crs, to_crs, mending))
    table = read_layer(path, "a network is made of lines")
    return LinearNetwork.from_skeleton(*skeleton_of_table(table, crs, to_crs, mending))


def stated_crs(path: str | Path) -> CRSLike | None:
    """The CRS that a public file names itself; None where it names none."""
    if is_graphml(path):
        return graphml_crs(as_path(path))
    return read_head(path).crs


def is_graphml(path: str | Path) -> bool:
    """Whether a name is that of a graph in GraphML."""
    return as_path(path).suffix.lower() == ".graphml"


@dataclass(frozen=True, eq=False, repr=False)
class PointBatches:
    """Patterns of consecutive rows of a file, read anew whenever they are iterated over.

    The names of columns and the CRS of the file are checked when it is made, rows when they are read. It can be sent to
    other processes that see the file.

    Attributes
    ----------
    path : Path
    domain : Window or LinearNetwork
    layout, rules, snap, skip_outside : dict, dict, float or None, bool
        Arguments of `read_batches`.
    """

    path: Path
    domain: Domain
    layout: Mapping[str, Any]
    rules: Mapping[str, Any]
    snap: float | None
    skip_outside: bool = False

    def __post_init__(self) -> None:
        require_head(self.path, self.domain, **self.layout, **self.rules)
        require_snap(self.domain, self.snap)

    def __repr__(self) -> str:
        return f"PointBatches({self.path.name!r}, {self.domain!r})"

    def __iter__(self) -> Iterator[PointPattern]:
        reading: dict[str, Any] = {"snap": self.snap, "skip_outside": self.skip_outside}
        batches = read_point_batches(self.path, self.domain, layout=self.layout, **reading, **self.rules)
        return (pattern_of(points, self.domain, self.snap) for points in batches)

    def count(self) -> int:
        """Number of points, for a public n: all rows are read and checked, and nothing is kept of them."""
        return sum(len(batch) for batch in self)


def read_batches(
    path: str | Path,
    domain: Domain,
    *,
    x: str | None = None,
    y: str | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    layer: str | None = None,
    crs: CRSLike | None = None,
    to_crs: CRSLike | None = None,
    count: str | None = None,
    described: Marks | None = None,
    snap: float | None = None,
    skip_outside: bool = False,
) -> PointBatches:
    """Read a sensitive pattern that may be larger than memory, some rows at a time.

    Rows of CSV files, compressed or not, of GeoParquet files, and of GeoPackage layers of plain points are in memory
    some 100 000 at a time; other files are read as a whole. `ReleasePlan.partial` adds the batches up.

    Parameters
    ----------
    path, domain, x, y, separator, decimal, encoding, layer, crs, to_crs, count, described, snap, skip_outside
        As for `read_pattern`.

    Raises
    ------
    InputError
        The file is missing, lacks a column or has another CRS than the domain. That a row breaks a rule is said at the
        end of the file, with all rules that are broken, as `read_pattern` says it.
    """
    layout = {"x": x, "y": y, "separator": separator, "decimal": decimal, "encoding": encoding, "layer": layer}
    rules = {"crs": crs, "to_crs": to_crs, "count": count, "described": described}
    return PointBatches(as_path(path), domain, layout, rules, snap, skip_outside)
