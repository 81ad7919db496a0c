"""Sensitive coordinates and persons of large files, some rows at a time, and the clients' values."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from dpppsynth.core.errors import InputError
from dpppsynth.core.progress import Progress, Step
from dpppsynth.mechanisms.local.grid_synthesizer import Round
from dpppsynth.mechanisms.local.one_report import PersonCodes
from dpppsynth.mechanisms.local.point_files import PointFile
from dpppsynth.mechanisms.local.statistic import AreaStatistic
from dpppsynth.mechanisms.local.synthesizer import CellMechanism
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern

Check = Callable[[Floats], object]
# Rows of a batch; among fewer, a random order hides little.
FEWEST = 1000


def values_in(mechanism: CellMechanism | Round, window: Window) -> Callable[[Floats], Ints]:
    """Function that gives the values (n,) of clients at coordinates (n, 2) in the window.

    It raises InputError for coordinates that are not finite or outside, without telling which.
    """
    if not isinstance(mechanism, CellMechanism):
        return lambda xy: mechanism.values(PointPattern(xy, window))
    plan = AreaStatistic(mechanism.mesh(window), mechanism.randomizer, 1)

    def values(xy: Floats) -> Ints:
        pattern = PointPattern(xy, window)
        return replace(plan, n=len(pattern)).values(pattern)

    return values


def point_batches(
    source: PointFile, rows: int, *, kept: Ints | None = None, check: Check | None = None
) -> Iterator[Floats]:
    """Coordinates (rows, 2), batch by batch, from a file of points.

    The last batch takes up to `FEWEST` - 1 rows more, so none has fewer than that unless the file has. Of all rows only
    those in `kept` (k,), ascending, are given, where it is. The others are read alike, and `check` is called with all:
    whether a file is refused does not hang on which rows were drawn.

    Raises
    ------
    InputError
        When the file cannot be read, or a row has no coordinates.
    """
    read = source.coordinates(rows)
    yield from _regrouped(read if kept is None else _chosen(read, kept, source.name, check), rows)


def person_rows(source: PointFile, user: str, *, rows: int, progress: Progress) -> tuple[Ints, int]:
    """(n,) numbers that tell apart the persons of all rows of a file, and how many persons there are.

    Parameters
    ----------
    source : PointFile
    user : str
        Column of labels.
    rows : int
        That are read at once.
    progress : callable
        Told the share that is read.

    Raises
    ------
    InputError
        When the file cannot be read, or a label is missing or of another kind; none is quoted.
    """
    codes, found = PersonCodes(), [np.empty(0, dtype=np.int32)]
    for labels in source.labels(user, rows):
        # More persons than 32 bits tell have labels that fit into no memory.
        found.append(codes.add(labels).astype(np.int32))
        progress(Step("reading persons", source.share))
    return np.concatenate(found), codes.persons


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
