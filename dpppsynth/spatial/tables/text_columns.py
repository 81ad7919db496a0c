"""Columns of texts as numbers: whole columns at once where that is certain to read as cell by cell.

Both ways give the double nearest to a decimal number. A cell that is not plainly one, such as "nan", "1_0" or one of
other digits, is left to `number`, and a column with such cells to Python and numpy.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpppsynth.spatial.marks import column
from dpppsynth.spatial.tables.table import number

if TYPE_CHECKING:
    import pyarrow as pa

# Whole numbers as they are usually written, which tells as many apart as the texts: "007" and "7" are one number.
WHOLE = "0|-?[1-9][0-9]*"
# Codes that look like numbers and would lose their zeros.
CODE = "[+-]?0[0-9]|.*_"
PLAIN = r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"
BLANKS = " \t"


class Numbers(NamedTuple):
    """Cells as numbers (n,), NaN where they are empty, and where they are something else (n,)."""

    values: NDArray[np.float64]
    text: NDArray[np.bool_]


def numbers(texts: pa.ChunkedArray) -> Numbers:
    """Read every cell as `number` does."""
    values, text = np.full(len(texts), np.nan), np.zeros(len(texts), dtype=bool)
    start = 0
    for chunk in texts.chunks:
        here = slice(start, start + len(chunk))
        found = _finite(chunk)
        if found is not None:
            values[here] = found
        else:
            values[here], text[here] = _cell_by_cell(chunk)
        start += len(chunk)
    return Numbers(values, text)


def typed(texts: pa.ChunkedArray) -> NDArray[Any]:
    """Read a column of text as whole numbers, or as real ones, where every cell allows it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not len(texts):
        return column([])
    if _finite(texts.chunk(0)) is not None and not _some(texts, f"^(?:{CODE})"):
        whole = not _some(texts, f"^(?:{WHOLE})$", invert=True)
        try:
            found = texts.cast(pa.int64() if whole else pa.float64()).to_numpy()
        except pa.ArrowInvalid:
            found = np.array([np.nan])
        if np.isfinite(found).all():
            return found
    # All that is asked of a column is asked of each cell, and few texts may stand in many.
    different = texts.unique()
    if len(different) < len(texts) / 2:
        return typed_cells(different.to_pylist())[pc.index_in(texts, value_set=different).to_numpy()]
    return typed_cells(texts.to_pylist())


def typed_cells(cells: list[str]) -> NDArray[Any]:
    """The same of a list of texts."""
    text = column(cells)
    if text.dtype.kind != "U" or any(map(re.compile(CODE).match, cells)):
        return text
    if all(map(re.compile(WHOLE).fullmatch, cells)):
        return column([int(cell) for cell in cells])
    try:
        # As `float` does, 1e999 becomes infinite without a word.
        with np.errstate(over="ignore"):
            return text.astype(np.float64)
    except ValueError:
        return text


def _finite(chunk: pa.Array) -> NDArray[np.float64] | None:
    """The cells as numbers, if they are finite ones: "nan(1)" would pass for a number that is none."""
    import pyarrow as pa

    try:
        found = chunk.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return None
    return found if np.isfinite(found).all() else None


def _cell_by_cell(chunk: pa.Array) -> Numbers:
    import pyarrow.compute as pc

    trimmed = pc.ascii_trim(chunk, characters=BLANKS)
    plain = pc.match_substring_regex(trimmed, PLAIN).to_numpy(zero_copy_only=False)
    found = _finite(trimmed.filter(plain))
    if found is None:
        plain = np.zeros(len(chunk), dtype=bool)
    values, text = np.full(len(chunk), np.nan), np.zeros(len(chunk), dtype=bool)
    values[plain] = found if found is not None else []
    for i in np.flatnonzero(~plain):
        value = number(chunk[int(i)].as_py())
        values[i], text[i] = np.nan if value is None else value, value is None
    return Numbers(values, text)


def _some(texts: pa.ChunkedArray, pattern: str, *, invert: bool = False) -> bool:
    """Whether some cell matches a pattern, or does not."""
    import pyarrow.compute as pc

    found = pc.match_substring_regex(texts, pattern)
    return bool(pc.any(pc.invert(found) if invert else found).as_py())
