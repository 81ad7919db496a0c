"""Consistent estimates from both levels of a grid: weighted least squares under the sums of cells.

The first level is measured too, and a cell is the sum of the cells inside it. Pooling both by the inverse of their
variances makes them agree and uses the reports that would otherwise only choose the cuts; privacy costs nothing.
"""

from typing import Any, NamedTuple

import numpy as np

from dpppsynth.core.arguments import instance, positive, probability
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats
from dpppsynth.mechanisms.local.grids.grid_arguments import reals, users
from dpppsynth.mechanisms.local.grids.rectangles import Rectangles

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


def local_consistency(grid: Rectangles, first: Any, second: Any, n1: int, n2: int) -> Agreeing:
    """`pooled_levels` of shares estimated from n1 and n2 reports under local privacy.

    The variances are those of reports by hashing or unary encoding, `V / n1` and `V / n2` whatever the number of cells;
    then `Var v' = 1 / (n1 / V + n2 / (m V))` with m cells inside.
    """
    return pooled_levels(grid, first, second, first_weight=users("n1", n1), second_weight=users("n2", n2))


def central_consistency(grid: Rectangles, first: Any, second: Any, share: float = 0.5) -> Agreeing:
    """`pooled_levels` of counts whose Laplace noise has the budgets `share * eps` and `(1 - share) * eps`."""
    share = probability("share", share, remedy="0.5 is usual")
    return pooled_levels(grid, first, second, first_weight=share**2, second_weight=(1 - share) ** 2)
