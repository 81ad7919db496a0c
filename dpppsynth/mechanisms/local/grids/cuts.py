"""Second levels of grids: even and uneven cuts, and estimates of both levels that agree.

The uneven rule is that of the advanced adaptive grid (Balioglu, Khodaie, Taweel & Gursoy 2024), with as many cells as
they intend; what they print makes other numbers of cells and is here for comparisons.

The first level is measured too, and a cell is the sum of the cells inside it. Pooling both by the inverse of their
variances makes them agree and uses the reports that would otherwise only choose the cuts; privacy costs nothing.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dpppsynth.core.arguments import instance, one_of, plain_array, positive, real, shown
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.grids.rectangles import (
    Edges,
    Rectangles,
    nested,
    one_level,
    reals,
    require_cells,
)

PIECES = ("exact", "literal_floor", "literal_ceil")


class Ratios(NamedTuple):
    """Ratios at which first-level cells are divided.

    Attributes
    ----------
    right : (K,) array
        Share of the width left of the line: the right neighbour's share of the density on both sides.
    below : (K,) array
        Share of the height above the line: the lower neighbour's share.
    """

    right: Floats
    below: Floats


def even_cells(grid: Rectangles, sides: Any) -> Rectangles:
    """Second level of a grid, every first-level cell cut into `side x side` equal cells.

    Parameters
    ----------
    grid : Rectangles
        The first level.
    sides : (K,) array of int
        At least 1.

    Examples
    --------
    >>> from dpppsynth.grids import uniform_grid
    >>> len(even_cells(uniform_grid((0, 0, 2, 1), 2, 1), [1, 3]))
    10
    """
    number = _sides(one_level(grid), sides)
    return nested(
        grid,
        [(np.linspace(x0, x1, g + 1), np.linspace(y0, y1, g + 1)) for (x0, y0, x1, y1), g in _each(grid, number)],
    )


def adaptive_cells(
    grid: Rectangles, densities: Any, sides: Any, *, margin: float = 0.01, pieces: str = "exact"
) -> Rectangles:
    """Second level of a grid, every first-level cell cut unevenly, narrow towards its denser neighbours.

    A cell is divided by one line along each axis (`split_ratios`), and both parts are cut evenly; the wider part gets
    the odd piece, the left and the upper one where they are equally wide. Cells of side 1 stay whole.

    Parameters
    ----------
    grid : Rectangles
        The first level.
    densities : (K,) array
        Estimated mass of each first-level cell; a negative one counts as zero.
    sides : (K,) array of int
        At least 1; a cell becomes `side x side` cells.
    margin : float
        Lines stay this share of the width away from a cell's border; from 0 on, below 0.5. With 0 strips may have no
        width, and are left out: the axis then has fewer pieces.
    pieces : {"exact", "literal_floor", "literal_ceil"}
        The literal rules cut every part into `(side - 1) / 2` pieces per axis, rounded down or up, at least 1, and
        split cells of side 1 too, as the paper's algorithm does.

    Examples
    --------
    >>> from dpppsynth.grids import uniform_grid
    >>> cells = adaptive_cells(uniform_grid((0, 0, 3, 1), 3, 1), [2, 1, 4], [1, 2, 1])
    >>> cells.inner[1][0].round(3).tolist()
    [1.0, 1.667, 2.0]
    """
    number, pieces = _sides(one_level(grid), sides), one_of("pieces", pieces, PIECES)
    ratios = split_ratios(grid, densities, margin=margin)
    return nested(
        grid,
        [
            _lines(box, g, right, below, pieces)
            for (box, g), right, below in zip(_each(grid, number), ratios.right, ratios.below, strict=True)
        ],
    )


def split_ratios(grid: Rectangles, densities: Any, *, margin: float = 0.01) -> Ratios:
    """Ratios at which a grid's first-level cells are divided: `R / (L + R)` of the width, `B / (U + B)` of the height.

    L, R, U and B are the densities of the left, right, upper and lower neighbours; for one that is missing, at the
    border, stands the cell's own. Where both are zero, the line is in the middle.

    Parameters
    ----------
    grid : Rectangles
        The first level.
    densities : (K,) array
        On any scale; negative ones count as zero.
    margin : float
        Ratios stay in [margin, 1 - margin].

    Examples
    --------
    >>> from dpppsynth.grids import uniform_grid
    >>> ratios = split_ratios(uniform_grid((0, 0, 2, 2), 2, 2), [10, 30, 20, 40])
    >>> ratios.right.round(4).tolist(), ratios.below.round(4).tolist()
    ([0.75, 0.75, 0.6667, 0.6667], [0.3333, 0.4286, 0.3333, 0.4286])
    """
    cells, margin = one_level(grid), _margin(margin)
    mass = np.maximum(reals("densities", densities, (len(cells),)), 0.0)
    # Scaled, so sums neither overflow nor vanish.
    mass = (mass / (mass.max() or 1.0)).reshape(len(cells.rows) - 1, len(cells.columns) - 1)
    around = np.pad(mass, 1, mode="edge")
    left, right, below, above = around[1:-1, :-2], around[1:-1, 2:], around[:-2, 1:-1], around[2:, 1:-1]
    return Ratios(_share(right, left, margin), _share(below, above, margin))


def _share(one: Floats, other: Floats, margin: float) -> Floats:
    both = one + other
    return np.clip(np.divide(one, both, out=np.full_like(one, 0.5), where=both > 0), margin, 1 - margin).ravel()


def _lines(box: list[float], side: int, right: float, below: float, pieces: str) -> Edges:
    """Lines of one first-level cell along x and y, for the shares of its width and height that come first."""
    x0, y0, x1, y1 = box
    if pieces == "exact":
        if side == 1:
            return np.array([x0, x1]), np.array([y0, y1])
        left, upper = _parts(side, right), _parts(side, below)
    else:
        half = max(1, side // 2 if pieces == "literal_ceil" else (side - 1) // 2)
        left = upper = (half, half)
    return _cut([x0, x0 + right * (x1 - x0), x1], left), _cut([y0, y1 - below * (y1 - y0), y1], upper[::-1])


def _parts(side: int, share: float) -> tuple[int, int]:
    """Pieces of the part that has the share, and of the other one: the wider gets the odd piece."""
    more, less = (side + 1) // 2, side // 2
    return (more, less) if share >= 0.5 else (less, more)


def _cut(ends: list[float], pieces: tuple[int, int]) -> Floats:
    """Lines that cut both parts between three ends evenly, those that coincide only once."""
    parts = [np.linspace(*part, number + 1) for part, number in zip(pairwise(ends), pieces, strict=True)]
    # Rounding must not carry a line past the border of its cell.
    return np.unique(np.clip(np.concatenate(parts), ends[0], ends[2]))


def _each(grid: Rectangles, sides: Ints) -> list[tuple[list[float], int]]:
    return list(zip(grid.cells.tolist(), sides.tolist(), strict=True))


def _sides(grid: Rectangles, sides: Any) -> Ints:
    """(K,) whole numbers of at least 1 whose squares fit into one grid."""
    array = plain_array(sides)
    if array is None or array.shape != (len(grid),) or array.dtype.kind not in "iu" or not array.min() >= 1:
        msg = f"sides: must be {len(grid)} whole numbers of at least 1, one for each first-level cell."
        raise InputError(msg)
    require_cells(sum(int(side) ** 2 for side in array), "sides")
    return array.astype(np.int64)


def _margin(margin: Any) -> float:
    number = real(margin)
    if number is None or not 0 <= number < 0.5:
        msg = f"margin: must lie in [0, 0.5), got {shown(margin)}; 0.01 is usual."
        raise InputError(msg)
    return float(number)


# Largest ratio of the levels' weights: beyond it the lighter one has no influence.
LARGEST_RATIO = 1e100


class Agreeing(NamedTuple):
    """Estimates of both levels that agree: `first` (K,) is the sum of `second` (T,) inside each first-level cell."""

    first: Floats
    second: Floats


def pooled_levels(grid: Rectangles, first: Any, second: Any, *, first_weight: float, second_weight: float) -> Agreeing:
    """Estimates of least weighted squares among those whose second level adds up to the first.

    With m cells inside, `v' = (w1 m v + w2 sum u) / (w1 m + w2)` and `u' = u + (v' - sum u) / m`.

    Parameters
    ----------
    grid : Rectangles
        Of two levels.
    first : (K,) array
        Unbiased estimates v of the first-level cells, in the same unit as those of the second level: shares of the
        users where different groups reported.
    second : (T,) array
        Estimates u of the cells.
    first_weight, second_weight : float
        Inverses of the variances of one estimate of each level, up to a common factor.

    References
    ----------
    Qardaji, Yang & Li (2013), Differentially private grids for geospatial data, ICDE.

    Examples
    --------
    >>> from dpppsynth.grids import even_cells, uniform_grid
    >>> grid = even_cells(uniform_grid((0, 0, 1, 1), 1, 1), [2])
    >>> pooled_levels(grid, [10], [1, 2, 3, 2], first_weight=1, second_weight=4).second.tolist()
    [1.25, 2.25, 3.25, 2.25]
    """
    cells: Rectangles = instance("grid", grid, Rectangles, "even_cells() and adaptive_cells() make one")
    v, u = reals("first", first, (cells.first_level,)), reals("second", second, (len(cells),))
    w1, w2 = positive("first_weight", first_weight), positive("second_weight", second_weight)
    if not 1 / LARGEST_RATIO <= w1 / w2 <= LARGEST_RATIO:
        msg = "first_weight, second_weight: differ too much; leave out the level that is not worth anything."
        raise InputError(msg)
    inside = np.add.reduceat(u, cells.starts[:-1])
    own = cells.pieces / (cells.pieces + w2 / w1)
    agreed = inside + own * (v - inside)
    return Agreeing(agreed, u + ((agreed - inside) / cells.pieces)[cells.parents])
