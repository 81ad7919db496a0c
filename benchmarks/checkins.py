"""Reader of check-ins in the text format of the Stanford collection (SNAP).

One line for each check-in, five fields apart by tabs: person, time (ISO 8601), latitude, longitude, place. Gowalla and
Brightkite come so. Files are read, plain or compressed by gzip, and never fetched.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from baselines.heatmap_arrays import Shape, grid_shape

from dpppsynth.core.arguments import elements, instance, one_of, real, shown, whole
from dpppsynth.core.errors import InputError
from dpppsynth.spatial.persons import labels

if TYPE_CHECKING:
    import pandas as pd

Box = tuple[float, float, float, float]

FIELDS = ("user", "time", "latitude", "longitude", "place")
INCOMPLETE = ("raise", "drop")
# Lines read at once: the files have millions, of which an interval and a box keep few.
BATCH = 200_000
WORLD: Box = (-180.0, -90.0, 180.0, 90.0)


@dataclass(frozen=True, eq=False, repr=False)
class CheckIns:
    """Columns of sensitive check-ins.

    Attributes
    ----------
    user : ndarray of int64, shape (k,)
        Persons, numbered 0, 1, ... in the order in which they first appear.
    time : ndarray of datetime64[s], shape (k,)
        Universal time.
    latitude, longitude : ndarray of float64, shape (k,)
        Degrees.
    place : ndarray of str, shape (k,)
        The places' names in the file.
    """

    user: npt.NDArray[np.int64]
    time: npt.NDArray[np.datetime64]
    latitude: npt.NDArray[np.float64]
    longitude: npt.NDArray[np.float64]
    place: npt.NDArray[Any]

    def __len__(self) -> int:
        return len(self.user)

    def within(self, box: Box) -> CheckIns:
        """Check-ins in the box `(west, south, east, north)`, west and south edges included; persons numbered anew."""
        west, south, east, north = require_box(box)
        kept = (self.longitude >= west) & (self.longitude < east) & (self.latitude >= south) & (self.latitude < north)
        columns = {each.name: getattr(self, each.name)[kept] for each in fields(self)}
        return CheckIns(**{**columns, "user": _numbered(columns["user"])})

    def unit_square(self, box: Box) -> npt.NDArray[np.float64]:
        """Positions as `Users.from_points` takes them: a public box, in degrees, stretched to the unit square.

        Returns
        -------
        ndarray, shape (k, 2)
            x to the east, y to the north; in [0, 1) for check-ins within the box.
        """
        west, south, east, north = require_box(box)
        xy = np.column_stack([(self.longitude - west) / (east - west), (self.latitude - south) / (north - south)])
        # A division may round a position just inside the east or north edge up to it.
        inside = (self.longitude < east) & (self.latitude < north)
        xy[inside] = np.minimum(xy[inside], np.nextafter(1.0, 0.0))
        return xy


def read_checkins(
    path: str | Path,
    *,
    since: str | None = None,
    until: str | None = None,
    box: Box | None = None,
    incomplete: str = "raise",
) -> CheckIns:
    r"""Read check-ins from a text file on this machine.

    Parameters
    ----------
    path : str or Path
        A file; one that ends in .gz is decompressed on the way.
    since, until : str, optional
        ISO dates or times, universal time: check-ins from `since` on and before `until`.
    box : tuple of float, optional
        `(west, south, east, north)` in degrees, west and south edges included.
    incomplete : {"raise", "drop"}
        Treatment of lines that lack a field, or whose time or position cannot be read.

    Raises
    ------
    InputError
        The file is missing or of another format, a line is incomplete, or an interval or a box is empty. Messages
        never quote a line.

    References
    ----------
    Cho, Myers, Leskovec (2011), Friendship and mobility: user movement in location-based social networks, KDD.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "checkins.txt"
    ...     _ = path.write_text("7\t2010-01-03T10:00Z\t40.75\t-73.98\ta\n7\t2010-02-01T00:00Z\t41\t-73\tb\n")
    ...     found = read_checkins(path, since="2010-01-01", until="2010-02-01")
    >>> len(found), found.unit_square((-74.0, 40.5, -73.0, 41.0)).round(2).tolist()
    (1, [[0.02, 0.5]])
    """
    source = _require_file(path)
    first, last = _instant("since", since), _instant("until", until)
    if first is not None and last is not None and not first < last:
        msg = f"until: must lie after since, {shown(since)}, got {shown(until)}; the interval is empty."
        raise InputError(msg)
    limits = WORLD if box is None else require_box(box)
    drop = one_of("incomplete", incomplete, INCOMPLETE) == "drop"
    kept = [_chosen(_parsed(batch, source.name, drop), first, last, limits) for batch in _batches(source)]
    return _columns(kept)


def busiest_cells(checkins: CheckIns, box: Box, shape: int | Shape = (300, 300), most: int = 30) -> list[Box]:
    """The cells of a regular division with most check-ins, busiest first, ties from the south-west on.

    The choice looks at the data and is not private: it is for studies on published data.

    Parameters
    ----------
    checkins : CheckIns
    box : tuple of float
        `(west, south, east, north)` in degrees.
    shape : int or (int, int)
        Numbers of columns and rows, at most 4096 of either.
    most : int
        Largest number of cells; those without check-ins are left out.

    Returns
    -------
    list of tuple of float
        Boxes.
    """
    west, south, east, north = require_box(box)
    columns, rows = grid_shape(shape, True, "shape")
    xy = instance("checkins", checkins, CheckIns).within(box).unit_square(box)
    i, j = np.floor(xy * (columns, rows)).astype(np.int64).T
    counts = np.bincount(i * rows + j, minlength=columns * rows)
    chosen = np.argsort(-counts, kind="stable")[: whole("most", most, 1)]
    edges_x, edges_y = np.linspace(west, east, columns + 1), np.linspace(south, north, rows + 1)
    cells = [divmod(int(code), rows) for code in chosen if counts[code]]
    return [(float(edges_x[u]), float(edges_y[v]), float(edges_x[u + 1]), float(edges_y[v + 1])) for u, v in cells]


def require_box(box: Sequence[float]) -> Box:
    """The box as four floats; InputError unless west lies west of east, and south south of north, in degrees."""
    given = elements(box)
    numbers = [] if given is None else [real(each) for each in given]
    if len(numbers) == 4:
        west, south, east, north = (np.nan if each is None else float(each) for each in numbers)
        if -180 <= west < east <= 180 and -90 <= south < north <= 90:
            return (west, south, east, north)
    msg = (
        "box: must be (west, south, east, north) in degrees with west < east and south < north; public, not the data's."
    )
    raise InputError(msg)


def _require_file(path: str | Path) -> Path:
    if not isinstance(path, str | Path):
        msg = f"path: must be a file of check-ins, got {type(path).__name__}."
        raise InputError(msg)
    try:
        found = Path(path).is_file()
    except (OSError, ValueError):
        found = False
    if not found:
        msg = "path: there is no such file; fetch check-ins yourself and name the file on this machine."
        raise InputError(msg)
    return Path(path)


def _instant(name: str, value: str | None) -> np.datetime64 | None:
    import pandas as pd

    if value is None:
        return None
    read = pd.to_datetime(value, format="ISO8601", utc=True, errors="coerce") if isinstance(value, str) else pd.NaT
    if pd.isna(read):
        msg = f'{name}: must be an ISO date or time such as "2010-01-01" or "2010-01-01T12:00:00Z", got {shown(value)}.'
        raise InputError(msg)
    return np.datetime64(read.tz_localize(None), "s")


def _batches(source: Path) -> Iterator[pd.DataFrame]:
    """Batches of lines as columns of text; what a line lacks is empty."""
    import pandas as pd

    # The file is opened and split here: pandas would fetch from a server, and lets fields beyond the last one pass.
    with gzip.open(source, "rb") if source.suffix == ".gz" else source.open("rb") as binary:
        stream = io.TextIOWrapper(binary, encoding="utf-8", newline="\n")
        try:
            while lines := list(islice(stream, BATCH)):
                rows = [line.rstrip("\r\n").split("\t") for line in lines]
                if max(map(len, rows)) > len(FIELDS):
                    raise _wrong_format(source.name)
                padded = [row + [""] * (len(FIELDS) - len(row)) for row in rows]
                yield pd.DataFrame(padded, columns=FIELDS, dtype=object)
        except (UnicodeDecodeError, OSError, EOFError, zlib.error):
            raise _wrong_format(source.name) from None


def _parsed(batch: pd.DataFrame, name: str, drop: bool) -> pd.DataFrame:
    """Times and numbers of a batch, its incomplete lines dropped or refused."""
    import pandas as pd

    read = batch[["user", "place"]].copy()
    read["latitude"], read["longitude"] = (pd.to_numeric(batch[key], errors="coerce") for key in FIELDS[2:4])
    times = pd.to_datetime(batch["time"], format="ISO8601", utc=True, errors="coerce")
    read["time"] = times.dt.tz_localize(None).astype("datetime64[s]")
    known = np.array([label is not None for label in labels(read["user"].to_numpy(dtype=object))], dtype=np.bool_)
    whole_line = known & (read["place"] != "") & times.notna()
    whole_line &= read["latitude"].between(-90, 90) & read["longitude"].between(-180, 180)
    if not drop and not whole_line.all():
        msg = (
            f"{name}: lines lack a field, or have a time or a position that cannot be read; repair the file, or leave "
            'them out with incomplete="drop".'
        )
        raise InputError(msg)
    return read[whole_line]


def _chosen(read: pd.DataFrame, since: np.datetime64 | None, until: np.datetime64 | None, box: Box) -> pd.DataFrame:
    west, south, east, north = box
    kept = (read["longitude"] >= west) & (read["latitude"] >= south)
    # The world's own edges are no edges: the pole and the date line belong to it.
    kept &= ((read["longitude"] < east) | (east == WORLD[2])) & ((read["latitude"] < north) | (north == WORLD[3]))
    if since is not None:
        kept &= read["time"] >= since
    if until is not None:
        kept &= read["time"] < until
    return read[kept]


def _columns(batches: list[pd.DataFrame]) -> CheckIns:
    import pandas as pd

    empty = pd.DataFrame({key: pd.Series(dtype=float) for key in FIELDS})
    rows = pd.concat(batches, ignore_index=True) if batches else empty
    return CheckIns(
        _numbered(rows["user"].to_numpy(dtype=object)),
        rows["time"].to_numpy(dtype="datetime64[s]"),
        rows["latitude"].to_numpy(dtype=np.float64),
        rows["longitude"].to_numpy(dtype=np.float64),
        rows["place"].to_numpy(dtype=object),
    )


def _numbered(users: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    import pandas as pd

    return np.asarray(pd.factorize(users)[0], dtype=np.int64)


def _wrong_format(name: str) -> InputError:
    return InputError(
        f"path: {name} is no text of check-ins; its lines need {', '.join(FIELDS)} in this order, apart by single tabs."
    )
