"""Choice of the fit from noised counts to masses: in l1, or by least squares."""

import numpy as np

from dpppsynth.core.arguments import instance, one_of
from dpppsynth.mechanisms.heatmap.bound import FITS, LevelBudgets
from dpppsynth.mechanisms.heatmap.cell_tree import CellTree
from dpppsynth.mechanisms.heatmap.least_squares import least_squares
from dpppsynth.mechanisms.heatmap.reconstruct import solve


def fitted(tree: CellTree, budgets: LevelBudgets, fit: str) -> np.ndarray:
    """(side, side) masses behind the counts of a tree.

    Parameters
    ----------
    tree : CellTree
    budgets : LevelBudgets
        That its counts were noised with.
    fit : {"least-squares", "l1"}
        "least-squares": all counts looked at, by their precision, drawn towards an even spread where noise prevails;
        the more accurate one (docs/results/heatmaps.md). "l1": the published one, for which an error bound is proved;
        it takes counts that were looked at but not kept for zeros.

    Examples
    --------
    >>> from dpppsynth.heatmaps import select_cells
    >>> tree = select_cells([[[10]], [[4, 3], [2, 1]]], w=1)
    >>> fitted(tree, LevelBudgets(0, (1.0, 1.0)), "l1").tolist()
    [[5.5, 1.5], [1.5, 1.5]]
    """
    instance("tree", tree, CellTree, "`sparse_aggregate(...).tree` is one")
    instance("budgets", budgets, LevelBudgets, "level_budgets() makes them")
    if one_of("fit", fit, FITS) == "l1":
        return solve(tree)
    return least_squares(tree, budgets, shrink=True)
