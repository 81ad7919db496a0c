"""Grids of one or two levels: disjoint rectangles that tile a rectangle, points in them, and answers to queries.

A cell is half-open, `[x0, x1) x [y0, y1)`, and closed where it ends at the right or top border of the grid. So every
point belongs to exactly one cell. Row 0 is at the bottom: the upper neighbour of a cell is in the next row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpppsynth.core.arguments import elements, instance, plain_array, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.core.wording import LEFT_OUT

# Cells of one grid: their corners fill 128 MiB.
MOST_CELLS = 2**22

Bounds = tuple[float, float, float, float]

# Largest coordinates and masses: their products and sums stay finite.
LARGEST = 1e150


def reals(name: str, value: Any, shape: tuple[int | None, ...]) -> Floats:
    """Finite real numbers of the given shape, None for any length; anything else is an InputError."""
    array = plain_array(value)
    if array is not None and array.shape[:1] == (0,) and shape[0] is None:
        array = np.zeros((0, *shape[1:]))  # type: ignore[arg-type]
    if array is None or array.dtype.kind not in "iuf" or not _fits(array.shape, shape):
        words = ", ".join("any" if length is None else str(length) for length in shape)
        msg = f"{name}: must be real numbers of shape ({words}), got {_kind(array)}."
        raise InputError(msg)
    with np.errstate(over="ignore"):
        numbers = array.astype(np.float64)
    if not (np.abs(numbers) <= LARGEST).all():
        msg = f"{name}: must be finite, and at most {LARGEST:g} in size; leave out what is infinite or missing."
        raise InputError(msg)
    return numbers


def checked_bounds(bounds: Any) -> Bounds:
    """(x0, y0, x1, y1) of a rectangle with positive finite sides and area; anything else is an InputError."""
    x0, y0, x1, y1 = (float(number) for number in reals("bounds", bounds, (4,)))
    if not (x0 < x1 and y0 < y1 and (x1 - x0) * (y1 - y0) > 0):
        msg = "bounds: must be (x0, y0, x1, y1) with x0 < x1 and y0 < y1 and a positive area; check the order."
        raise InputError(msg)
    return x0, y0, x1, y1


def checked_queries(rectangles: Any) -> Floats:
    """(R, 4) rectangles of queries, the corner of smallest coordinates first; InputError for inverted ones."""
    corners = reals("rectangles", rectangles, (None, 4))
    if (corners[:, :2] > corners[:, 2:]).any():
        msg = "rectangles: must be (x0, y0, x1, y1) with x0 <= x1 and y0 <= y1; some are inverted, swap their corners."
        raise InputError(msg)
    return corners


def users(name: str, n: Any) -> int:
    """A number of users, at least one and within the range of floats."""
    return whole(name, n, 1, most=2**53, remedy="it counts users")


def require_cells(number: int, name: str) -> None:
    """Refuse grids that would not fit into memory."""
    if not number <= MOST_CELLS:
        msg = f"{name}: ask for more than {MOST_CELLS} cells; take fewer."
        raise InputError(msg)


def _fits(found: tuple[int, ...], shape: tuple[int | None, ...]) -> bool:
    return len(found) == len(shape) and all(b is None or a == b for a, b in zip(found, shape, strict=True))


def _kind(array: np.ndarray | None) -> str:
    return "ragged or masked ones" if array is None else f"{array.dtype} of shape {array.shape}"


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
    """(n,) number of the interval of each value among `number` intervals of its own, whose lines begin at `first`."""
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


# Overlaps of queries and cells held in memory at once.
BATCH = 2**20

# Points that are located at once.
POINTS = 2**15

Edges = tuple[Floats, Floats]


@dataclass(frozen=True, eq=False, repr=False)
class Rectangles:
    """Cells that tile a rectangle: a grid of lines, each of its cells cut once more by lines of its own.

    Cells are numbered by first-level cells (row by row from the bottom, `row * columns + column`), and row by row
    inside each. `uniform_grid` and `nested` make one.

    Attributes
    ----------
    columns : (N + 1,) array
        Increasing x coordinates of the first level's lines.
    rows : (M + 1,) array
        Increasing y coordinates.
    inner : tuple of N * M pairs of arrays
        Lines inside each first-level cell, x and y, with both ends; none at all for a grid of one level.

    Raises
    ------
    InputError
        When lines do not increase, inner ones do not end where their cell ends, or there are too many cells.

    Examples
    --------
    >>> grid = nested(uniform_grid((0, 0, 2, 1), 2, 1), [([0, 1], [0, 1]), ([1, 1.5, 2], [0, 1])])
    >>> len(grid), grid.locate([[0.2, 0.3], [1.5, 0.3], [2, 1]]).tolist()
    (3, [0, 2, 2])
    >>> grid.query([4, 2, 6], [[0.5, 0, 1.75, 1]]).tolist()
    [7.0]
    """

    columns: Floats
    rows: Floats
    inner: tuple[Edges, ...] = ()

    def __post_init__(self) -> None:
        columns, rows = checked_lines("columns", self.columns), checked_lines("rows", self.rows)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "rows", rows)
        checked_bounds(self.bounds)
        require_cells((len(columns) - 1) * (len(rows) - 1), "columns and rows")
        object.__setattr__(self, "inner", self._checked_inner())
        if not self.areas.min() > 0:
            msg = "bounds: have cells too narrow for floating-point numbers; take fewer cells."
            raise InputError(msg)

    def _checked_inner(self) -> tuple[Edges, ...]:
        given = elements(self.inner)
        if given is None or len(given) not in (0, self.first_level):
            msg = f"inner: needs a pair of lines for each of {self.first_level} first-level cells, or none at all."
            raise InputError(msg)
        pairs = [elements(pair) for pair in given]
        if any(pair is None or len(pair) != 2 for pair in pairs):
            msg = "inner: needs two arrays for each first-level cell, its lines along x and along y."
            raise InputError(msg)
        inner = tuple((checked_lines("inner", x), checked_lines("inner", y)) for x, y in pairs)  # type: ignore[misc]
        require_cells(sum((len(x) - 1) * (len(y) - 1) for x, y in inner), "inner")
        whole_cells = boxes(self.columns, self.rows).tolist()
        if any([x[0], y[0], x[-1], y[-1]] != box for (x, y), box in zip(inner, whole_cells, strict=False)):
            msg = "inner: lines of a first-level cell must begin and end exactly where the cell does."
            raise InputError(msg)
        return inner

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __repr__(self) -> str:
        return f"Rectangles({len(self)} cells in {len(self.columns) - 1} x {len(self.rows) - 1})"

    def to_dict(self) -> dict[str, Any]:
        """The lines in JSON form: the fields, as lists."""
        inner = [[x.tolist(), y.tolist()] for x, y in self.inner]
        return {"columns": self.columns.tolist(), "rows": self.rows.tolist(), "inner": inner}

    @property
    def bounds(self) -> Bounds:
        """(x0, y0, x1, y1) of the rectangle they tile."""
        return float(self.columns[0]), float(self.rows[0]), float(self.columns[-1]), float(self.rows[-1])

    @property
    def first_level(self) -> int:
        """Number of first-level cells."""
        return (len(self.columns) - 1) * (len(self.rows) - 1)

    @cached_property
    def first(self) -> "Rectangles":
        """The first level alone."""
        return replace(self, inner=()) if self.inner else self

    @property
    def pieces(self) -> Ints:
        """(N * M,) number of cells in each first-level cell."""
        return self._nx * self._ny

    @cached_property
    def starts(self) -> Ints:
        """(N * M + 1,) number of each first-level cell's first cell, and of all cells."""
        return np.concatenate([[0], np.cumsum(self.pieces)])

    @cached_property
    def parents(self) -> Ints:
        """(T,) first-level cell of each cell."""
        return np.repeat(np.arange(self.first_level), self.pieces)

    @cached_property
    def cells(self) -> Floats:
        """(T, 4) corners x0, y0, x1, y1 of the cells, in the order of their numbers."""
        if not self.inner:
            return boxes(self.columns, self.rows)
        inside = np.arange(len(self)) - self.starts[self.parents]
        x = self._x_first[self.parents] + inside % self._nx[self.parents]
        y = self._y_first[self.parents] + inside // self._nx[self.parents]
        xs, ys = self._x, self._y
        return np.column_stack([xs[x], ys[y], xs[x + 1], ys[y + 1]])

    @cached_property
    def areas(self) -> Floats:
        """(T,) areas, in the square of the unit of the bounds."""
        cells = self.cells
        return (cells[:, 2] - cells[:, 0]) * (cells[:, 3] - cells[:, 1])

    def locate(self, xy: Any) -> Ints:
        """(n,) numbers of the cells of points (n, 2): two binary searches along each axis.

        Raises
        ------
        InputError
            When a point lies outside, or coordinates are not finite.
        """
        points = reals("xy", xy, (None, 2))
        found = np.zeros(len(points), dtype=np.int64)
        # Searches of few points at a time stay in the processor's cache.
        for start in range(0, len(points), POINTS):
            part = slice(start, start + POINTS)
            found[part] = self._located(*points[part].T)
        return found

    def _located(self, x: Floats, y: Floats) -> Ints:
        """(n,) cells of points at x, y (n,)."""
        x0, y0, x1, y1 = self.bounds
        if not ((x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1)).all():
            msg = (
                "xy: some points lie outside the bounds of the grid; check the order of x and y, or take larger bounds "
                f"from public knowledge ({LEFT_OUT})."
            )
            raise InputError(msg)
        column, row = interval(self.columns, x), interval(self.rows, y)
        cell = row * (len(self.columns) - 1) + column
        if not self.inner:
            return cell
        inner_column = interval_among(self._x, self._x_first[cell], self._nx[cell], x)
        inner_row = interval_among(self._y, self._y_first[cell], self._ny[cell], y)
        return self.starts[cell] + inner_row * self._nx[cell] + inner_column

    def count(self, xy: Any) -> Ints:
        """(T,) numbers of points (n, 2) in the cells."""
        return np.bincount(self.locate(xy), minlength=len(self)).astype(np.int64)

    def overlaps(self, rectangles: Any) -> Floats:
        """(R, T) share of each cell's area that each rectangle (R, 4) covers; 1 exactly where it covers all of it."""
        corners, (x0, y0, x1, y1) = checked_queries(rectangles), self.cells.T
        # Shares along each axis: no product of lengths underflows.
        return covered(corners[:, 0], corners[:, 2], x0, x1) * covered(corners[:, 1], corners[:, 3], y0, y1)

    def batches(self, rectangles: Any) -> Iterator[tuple[slice, Floats]]:
        """`overlaps` of a part of the rectangles after the other, so memory stays small."""
        corners = checked_queries(rectangles)
        step = max(1, BATCH // len(self))
        for start in range(0, len(corners), step):
            part = slice(start, start + step)
            yield part, self.overlaps(corners[part])

    def query(self, masses: Any, rectangles: Any) -> Floats:
        """(R,) mass in rectangles (R, 4) where the mass of every cell is spread evenly over it.

        Parameters
        ----------
        masses : (T,) array
            Of the cells; may be negative.
        rectangles : (R, 4) array
            x0, y0, x1, y1. What lies outside the grid holds nothing, as do rectangles without area.

        Raises
        ------
        InputError
            When a rectangle is inverted or a number is not finite.
        """
        corners, mass = checked_queries(rectangles), reals("masses", masses, (len(self),))
        answers = np.zeros(len(corners))
        for part, share in self.batches(corners):
            answers[part] = share @ mass
        return answers

    @cached_property
    def _nx(self) -> Ints:
        return intervals([x for x, _ in self.inner], self.first_level)

    @cached_property
    def _ny(self) -> Ints:
        return intervals([y for _, y in self.inner], self.first_level)

    # All lines inside the first-level cells one after the other, and where those of each cell begin.
    @cached_property
    def _x(self) -> Floats:
        return np.concatenate([x for x, _ in self.inner])

    @cached_property
    def _y(self) -> Floats:
        return np.concatenate([y for _, y in self.inner])

    @cached_property
    def _x_first(self) -> Ints:
        return np.cumsum(self._nx + 1) - (self._nx + 1)

    @cached_property
    def _y_first(self) -> Ints:
        return np.cumsum(self._ny + 1) - (self._ny + 1)


def uniform_grid(bounds: Any, columns: int, rows: int) -> Rectangles:
    """Equal rectangles, `columns` along x and `rows` along y.

    Parameters
    ----------
    bounds : (float, float, float, float)
        x0, y0, x1, y1.
    columns, rows : int
        At least one; at most 2^22 cells in all.

    Examples
    --------
    >>> uniform_grid((0, 0, 4, 2), 2, 2).cells.tolist()[1]
    [2.0, 0.0, 4.0, 1.0]
    """
    x0, y0, x1, y1 = checked_bounds(bounds)
    columns, rows = whole("columns", columns, 1, most=MOST_CELLS), whole("rows", rows, 1, most=MOST_CELLS)
    require_cells(columns * rows, "columns and rows")
    return Rectangles(np.linspace(x0, x1, columns + 1), np.linspace(y0, y1, rows + 1))


def nested(grid: Rectangles, lines: Sequence[tuple[Any, Any]]) -> Rectangles:
    """The cells of a grid of one level, each cut by lines of its own.

    Parameters
    ----------
    grid : Rectangles
        Of one level.
    lines : sequence of pairs of arrays
        For each cell its lines along x and along y, both ends included: `([x0, x1], [y0, y1])` keeps it whole.
    """
    pairs, first = elements(lines), one_level(grid)
    if not pairs:
        msg = f"lines: needs a pair of lines for each of {len(first)} first-level cells."
        raise InputError(msg)
    return replace(first, inner=tuple(pairs))


def one_level(grid: Any) -> Rectangles:
    """The grid of one level; InputError where its cells are already cut."""
    instance("grid", grid, Rectangles, "uniform_grid() makes one")
    if grid.inner:
        msg = "grid: its cells are already cut; `grid.first` is its first level."
        raise InputError(msg)
    return grid
