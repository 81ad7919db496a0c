"""Increasing lines and the half-open intervals between them: intervals of values, and covered shares."""

from typing import Any

import numpy as np

from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.grids.grid_arguments import reals


def checked_lines(name: str, value: Any) -> Floats:
    """Increasing coordinates of at least two lines, read-only."""
    lines = reals(name, value, (None,))
    if len(lines) < 2 or not (lines[1:] > lines[:-1]).all():
        msg = (
            f"{name}: needs two lines or more, with increasing coordinates; take fewer cells where they are too narrow."
        )
        raise InputError(msg)
    lines.flags.writeable = False
    return lines


def boxes(columns: Floats, rows: Floats) -> Floats:
    """(N * M, 4) corners of the cells between lines, row by row."""
    y, x = (each.ravel() for each in np.indices((len(rows) - 1, len(columns) - 1)))
    return np.column_stack([columns[x], rows[y], columns[x + 1], rows[y + 1]])


def intervals(lines: list[Floats], cells: int) -> Ints:
    """(cells,) number of intervals between lines; one where there are none."""
    return np.array([len(each) - 1 for each in lines] or np.ones(cells), dtype=np.int64)


def interval(lines: Floats, values: Floats) -> Ints:
    """(n,) number of the half-open interval of each value, the last one closed."""
    return np.minimum(np.searchsorted(lines, values, side="right") - 1, len(lines) - 2)


def interval_among(lines: Floats, first: Ints, number: Ints, values: Floats) -> Ints:
    """(n,) the same, each value among `number` intervals of its own, whose lines begin at `first`."""
    low, length = first.copy(), number.copy()
    while (length > 1).any():
        half = length // 2
        low += np.where(lines[low + half] <= values, half, 0)
        length -= half
    return low - first


def covered(start: Floats, end: Floats, low: Floats, high: Floats) -> Floats:
    """(R, T) share of intervals [low, high] (T,) that intervals [start, end] (R,) cover."""
    both = np.minimum(end[:, None], high) - np.maximum(start[:, None], low)
    return np.maximum(both, 0.0) / (high - low)
