"""Files of sensitive points, as `local perturb` reads them: a part at a time, or the cells of all trajectories."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dpppsynth.core.arguments import shown
from dpppsynth.core.crs import crs_label, same_crs
from dpppsynth.core.errors import InputError
from dpppsynth.core.progress import Progress, Step
from dpppsynth.core.wording import mention
from dpppsynth.mechanisms.local.grid_synthesizer import Round
from dpppsynth.mechanisms.local.report_tables import column_names, quietly, record_batches
from dpppsynth.mechanisms.local.statistic import grid_mesh, grid_values
from dpppsynth.mechanisms.local.synthesizer import CellMechanism, require_window
from dpppsynth.mechanisms.local.trajectories.paths import GridTrajectories, starts
from dpppsynth.mechanisms.local.trajectory_synthesizer import TraceRound
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.persons import MISSING, labels
from dpppsynth.spatial.tables.formats import SUFFIXES, as_path, is_csv, layered, read_head, there

# Key of a GeoParquet file's metadata.
GEO = b"geo"
# Fields of a layout that are told of files that are not read column by column.
TOLD = ("separator", "decimal", "encoding", "layer")


def point_file(path: Any, window: Window | None, layout: Mapping[str, Any]) -> "PointFile":
    """The file of points at a path, by the names of its columns and its CRS alone."""
    source, layer = layered(as_path(path, "points"))
    layout = {**layout, "layer": layout.get("layer") if layer is None else layer}
    if not there(source, Path.is_file):
        msg = f"points: there is no file {str(source)!r}."
        raise InputError(msg)
    kind = source.suffix.lower()
    if kind not in SUFFIXES and not is_csv(source):
        msg = f"points: {source.name[:80]!r} must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}."
        raise InputError(msg)
    if kind == ".csv" and not any(layout.get(name) for name in TOLD):
        return _plain(source, column_names(source, "points"), layout)
    if kind == ".parquet":
        names, geometries = quietly(source, lambda: _parquet_head(source), "points")
        if not geometries or layout.get("x") is not None or layout.get("y") is not None:
            return _plain(source, names, layout)
    head = read_head(source, **layout)
    if window is not None and head.crs is not None and not (window.crs and same_crs(head.crs, window.crs)):
        theirs = "no CRS" if window.crs is None else crs_label(window.crs)
        msg = (
            f"points: {source.name} is in {crs_label(head.crs)}, the window in {theirs}; points are taken as they "
            "stand, so re-project the file first, or take a window in its CRS."
        )
        raise InputError(msg)
    return OtherPoints(source, window, dict(layout), tuple(head.columns))


def require_user(points: "PointFile", user: Any) -> None:
    """Refuse a column of labels that the file does not have, or that is one of a coordinate; InputError."""
    if user is not None and (not isinstance(user, str) or points.columns.count(user) != 1):
        msg = f"user: {points.name} has no column {shown(user)} of its own; name the one that tells persons."
        raise InputError(msg)


@dataclass
class PlainPoints:
    """A CSV or Parquet file with two columns of numbers."""

    source: Path
    names: tuple[str, ...]
    x: str
    y: str
    _read: float = field(default=0.0, init=False)

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.source.name

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns, but for those of coordinates."""
        return tuple(name for name in self.names if name not in (self.x, self.y))

    @property
    def share(self) -> float:
        """Share of the rows, or of the bytes of a CSV file, that was read so far."""
        return self._read

    def coordinates(self, rows: int) -> Iterator[Floats]:
        """Coordinates (k, 2) of some rows at a time; InputError where a row has none."""
        return (self._numbers(batch) for batch in self._batches({self.x: float, self.y: float}, rows))

    def labels(self, user: str, rows: int) -> Iterator[list[Any]]:
        """Labels: texts, or whole numbers of a Parquet file. In a CSV file "7" and "007" are two persons."""
        return (batch.column(user).to_pylist() for batch in self._batches({user: str}, rows))

    def _batches(self, kinds: dict[str, type], rows: int) -> Iterator[Any]:
        """Batches of some columns, of the kinds that CSV cells are read as."""
        self._read = 0.0
        for batch, share in record_batches(self.source, kinds, rows, "points"):
            self._read = share
            yield batch

    def _numbers(self, batch: Any) -> Floats:
        import pyarrow as pa

        kinds = (pa.types.is_integer, pa.types.is_floating)
        columns = [batch.column(name) for name in (self.x, self.y)]
        if any(column.null_count or not any(kind(column.type) for kind in kinds) for column in columns):
            msg = f"points: some rows of {self.name} break the rules (missing coordinate, not a number); mend the file."
            raise InputError(msg)
        cells = [column.to_numpy(zero_copy_only=False).astype(np.float64) for column in columns]
        return np.stack(cells, axis=1)


@dataclass(frozen=True)
class OtherPoints:
    """A file of geometries, or a CSV file that is compressed or has its own separators, read as by all commands."""

    source: Path
    window: Window | None
    layout: dict[str, Any]
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.source.name

    @property
    def share(self) -> None:
        """None: the share is not known."""

    def coordinates(self, rows: int) -> Iterator[Floats]:
        """Coordinates (k, 2) of some rows at a time, whatever `rows`; InputError where a row breaks a rule."""
        return (points.xy for points in self._points())

    def labels(self, user: str, rows: int) -> Iterator[list[Any]]:
        """Labels as texts."""
        return (points.marks[user].tolist() for points in self._points(user=user))

    def _points(self, **rules: Any) -> Iterator[Any]:
        from dpppsynth.spatial.tables.points import read_point_batches

        if self.window is None:
            msg = "window: is needed to read points."
            raise InputError(msg)
        return read_point_batches(self.source, self.window, layout=self.layout, **rules)


PointFile = PlainPoints | OtherPoints


def _plain(source: Path, names: tuple[str, ...], layout: Mapping[str, Any]) -> PlainPoints:
    """A table with these columns; InputError where those of coordinates are not among them."""
    given = [layout.get(name) for name in ("x", "y")]
    x, y = (name if of is None else of for name, of in zip("xy", given, strict=True))
    for argument, name in (("x", x), ("y", y)):
        if not isinstance(name, str) or names.count(name) != 1:
            sign = "" if len(names) > 1 else f", or the sign between cells, such as {mention('separator', repr(';'))}"
            msg = (
                f"{argument}: {source.name} has no column {shown(name)}, or several; name that of the coordinate{sign}."
            )
            raise InputError(msg)
    if x == y:
        msg = f"y: {shown(y)} is the column of x already; name that of the other coordinate."
        raise InputError(msg)
    unfit = next((name for name in TOLD if layout.get(name)), None)
    if unfit is not None:
        msg = f"{unfit}: tells of a {'GeoPackage' if unfit == 'layer' else 'CSV file'}, and {source.name} is none."
        raise InputError(msg)
    return PlainPoints(source, names, x, y)


def _parquet_head(source: Path) -> tuple[tuple[str, ...], bool]:
    """Names of columns, and whether the file says that it holds geometries."""
    import pyarrow.parquet as pq

    schema = pq.read_schema(source)
    return tuple(schema.names), GEO in (schema.metadata or {})


Check = Callable[[Floats], object]
# Rows of a batch; among fewer, a random order hides little.
FEWEST = 1000


def values_in(mechanism: CellMechanism | Round, window: Window) -> Callable[[Floats], Ints]:
    """Function that gives the values (n,) of clients at coordinates (n, 2) in the window.

    It raises InputError for coordinates that are not finite or outside, without telling which.
    """
    if not isinstance(mechanism, CellMechanism):
        return lambda xy: mechanism.values(PointPattern(xy, window))
    mesh = mechanism.mesh(window)
    value = grid_values(mesh, mechanism.cells)
    return lambda xy: value[mesh.locate(PointPattern(xy, window).positions)]


def point_batches(
    source: PointFile, rows: int, *, kept: Ints | None = None, check: Check | None = None
) -> Iterator[Floats]:
    """Coordinates (rows, 2), batch by batch, from a file of points.

    The last batch takes up to `FEWEST` - 1 rows more, so none has fewer than that unless the file has. Of all rows only
    those in `kept` (k,), ascending, are given, where it is. The others are read alike, and `check` is called with all:
    whether a file is refused does not hang on which rows were drawn.
    """
    read = source.coordinates(rows)
    yield from _regrouped(read if kept is None else _chosen(read, kept, source.name, check), rows)


def person_rows(source: PointFile, user: str, *, rows: int, progress: Progress) -> Ints:
    """(n,) number of the person of each row of a file."""
    known: dict[int | str | None, int] = {}
    found = [np.empty(0, dtype=np.int32)]
    for column in source.labels(user, rows):
        told = labels(column)
        if None in told:
            raise InputError(MISSING)
        # More persons than 32 bits tell have labels that fit into no memory.
        found.append(np.array([known.setdefault(label, len(known)) for label in told], dtype=np.int32))
        progress(Step("reading persons", source.share))
    return np.concatenate(found)


def _chosen(parts: Iterable[Floats], kept: Ints, source: str, check: Check | None) -> Iterator[Floats]:
    """The kept ones of all rows, which are checked; InputError where there are fewer rows than there were."""
    start = 0
    for part in parts:
        if check is not None:
            check(part)
        first, last = np.searchsorted(kept, [start, start + len(part)])
        yield part[kept[first:last] - start]
        start += len(part)
    if len(kept) and kept[-1] >= start:
        msg = f"points: {source} became shorter while it was read; let nothing write to it meanwhile."
        raise InputError(msg)


def _regrouped(parts: Iterable[Floats], rows: int) -> Iterator[Floats]:
    """The same rows in batches of `rows`, but for the last, whatever parts a reader gives."""
    held: list[Floats] = []
    for part in parts:
        held.append(part)
        number = sum(map(len, held))
        if number >= rows + FEWEST:
            together, ready = np.concatenate(held), (number - FEWEST) // rows * rows
            yield from np.split(together[:ready], range(rows, ready, rows))
            held = [together[ready:]]
    if any(map(len, held)):
        yield np.concatenate(held)


# Cells of trajectories that are looked at together, each some 100 bytes while jumps are filled in.
FILLED = 2**19


def walk_values(
    points: PointFile,
    mechanism: Any,
    window: Window,
    source: np.random.Generator,
    *,
    user: str | None,
    rows: int,
    progress: Progress,
) -> Iterator[tuple[Ints, float | None]]:
    """Batches of values of the clients with a file's trajectories, in random order, and the share given so far.

    The mechanism is a `TraceRound` or `LineTrace`. Rows and cells of all points are held in memory, not coordinates.
    """
    walks = _walks(points, mechanism.cells, require_window(window), source, user=user, rows=rows, progress=progress)
    if walks is None:
        return
    # Reports leave in groups whose sizes are public: those of a Parquet file would tell lengths otherwise.
    step = mechanism.randomizer.at_once(rows)
    longest = mechanism.longest if isinstance(mechanism, TraceRound) else 0
    for first in range(0, len(walks), step):
        last = min(first + step, len(walks))
        parts = walks.parts(first, last, longest)
        yield np.concatenate([mechanism.trajectory_values(part) for part in parts]), last / len(walks)


@dataclass(frozen=True, eq=False)
class Walks:
    """The cells of all trajectories of a file, in few bytes."""

    cells: int
    values: Any
    offsets: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def parts(self, first: int, last: int, longest: int) -> Iterator[GridTrajectories]:
        """Trajectories from number `first` to before number `last`, some at a time.

        As many as have `FILLED` cells, where jumps are filled in until there are `longest`; a longer one by itself.
        """
        lengths = np.diff(self.offsets[first : last + 1])
        filled = np.cumsum(lengths + np.minimum(longest, lengths * self.cells))
        cuts = [0]
        while cuts[-1] < len(lengths):
            before = filled[cuts[-1] - 1] if cuts[-1] else 0
            cuts.append(max(cuts[-1] + 1, int(np.searchsorted(filled, before + FILLED, side="right"))))
        for a, b in pairwise(first + np.array(cuts)):
            values = self.values[self.offsets[a] : self.offsets[b]]
            yield GridTrajectories(self.cells, values, self.offsets[a : b + 1] - self.offsets[a])


def _walks(
    points: PointFile,
    cells: int,
    window: Window,
    source: np.random.Generator,
    *,
    user: str | None,
    rows: int,
    progress: Progress,
) -> Walks | None:
    """The cells of all trajectories of a file, in a random order; None where it has no rows."""
    mesh = grid_mesh(window, cells)
    value = grid_values(mesh, cells).astype(np.min_scalar_type(cells**2 - 1))
    read = []
    for xy in point_batches(points, rows):
        read.append(value[mesh.locate(PointPattern(xy, window).positions)])
        progress(Step("reading points", points.share))
    if not read:
        return None
    found = np.concatenate(read)
    del read
    codes = np.arange(len(found)) if user is None else person_rows(points, user, rows=rows, progress=progress)
    if len(codes) != len(found):
        msg = f"points: {points.name} changed while it was read; let nothing write to it meanwhile."
        raise InputError(msg)
    lengths = np.bincount(codes)
    place = source.permutation(len(lengths))
    lengths[place] = lengths.copy()
    codes = place.astype(np.min_scalar_type(len(place)))[codes]
    order = np.argsort(codes, kind="stable")
    return Walks(cells, found[order], starts(lengths))
