"""Choice of the fit from noised counts to masses: by a field, by least squares, or in l1."""

import numpy as np

from dpppsynth.core.arguments import instance, one_of
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.heatmap.bound import FITS, LevelBudgets
from dpppsynth.mechanisms.heatmap.cell_tree import SKIPPED, CellTree
from dpppsynth.mechanisms.heatmap.field_fit import field_masses, require_small, spread
from dpppsynth.mechanisms.heatmap.least_squares import least_squares
from dpppsynth.mechanisms.heatmap.reconstruct import solve


def require_fit(fit: str, budgets: LevelBudgets) -> None:
    """Refuse a fit that such a measurement cannot have; InputError."""
    if one_of("fit", fit, FITS) == "l1" and budgets.step > 1:
        raise InputError(SKIPPED)
    if fit == "field":
        require_small(budgets)


def fitted(
    tree: CellTree,
    budgets: LevelBudgets,
    fit: str,
    *,
    inside: np.ndarray | None = None,
    lengths: tuple[float, float] = (1.0, 1.0),
) -> np.ndarray:
    """Masses behind the counts of a tree.

    Parameters
    ----------
    tree : CellTree
    budgets : LevelBudgets
        That its counts were noised with.
    fit : {"field", "least-squares", "l1"}
        "field": a log-Gaussian field behind all counts looked at; the most accurate one (docs/results/heatmaps.md).
        "least-squares": by their precision, drawn towards an even spread where noise prevails. "l1": the published one,
        for which an error bound is proved; it takes counts that were looked at but not kept for zeros.
    inside : (m side, m side) array, optional
        Areas that may hold mass of the cells of a finer grid, for masses on that. None takes the tree's own cells.
    lengths : (float, float)
        Sides of the whole square along both axes, in any unit: distances matter to a field.

    Returns
    -------
    (m side, m side) array
        Masses >= 0, not normalised.

    Examples
    --------
    >>> from dpppsynth.heatmaps import select_cells
    >>> tree = select_cells([[[10]], [[4, 3], [2, 1]]], w=1)
    >>> fitted(tree, LevelBudgets(0, (1.0, 1.0)), "l1").tolist()
    [[5.5, 1.5], [1.5, 1.5]]
    """
    instance("tree", tree, CellTree, "`sparse_aggregate(...).tree` is one")
    instance("budgets", budgets, LevelBudgets, "level_budgets() makes them")
    require_fit(fit, budgets)
    if fit == "field":
        return field_masses(tree, budgets, inside=inside, lengths=lengths)
    masses = solve(tree) if fit == "l1" else least_squares(tree, budgets, shrink=True)
    return masses if inside is None or len(inside) == len(masses) else spread(masses, inside)
