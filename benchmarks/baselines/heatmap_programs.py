"""The reconstruction as linear programs in two forms, which check the tree solver."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpppsynth.core.errors import DpppsynthError
from dpppsynth.mechanisms.heatmap.tree import CellTree, TreeLevel, pyramid

# HiGHS stops at 1e-7 by itself, which would be the larger part of a difference to the tree solver.
TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Optimum:
    """Result of a linear program.

    Attributes
    ----------
    masses : (side, side) array
        One of the best; which one depends on the solver.
    objective : float
    """

    masses: np.ndarray
    objective: float


def objective(tree: CellTree, masses: np.ndarray) -> float:
    """Weighted distance between masses and the counts of a tree: what a reconstruction minimises.

    Parameters
    ----------
    tree : CellTree
    masses : (side, side) array
        Any candidate.

    Returns
    -------
    float
        The sum over measured levels i of `2^-i` times the absolute differences between the masses' sums over the cells
        and the counts of the kept cells, 0 in all others.

    Examples
    --------
    >>> import numpy as np
    >>> from baselines.heatmap_arrays import select_cells
    >>> tree = select_cells([[[10]], [[4, 3], [2, 1]]], w=1)
    >>> objective(tree, np.array([[4, 2], [2, 2]]))
    3.0
    """
    total = 0.0
    for (level, cells), sums in zip(_numbered(tree), pyramid(masses)[tree.first :], strict=True):
        target = np.zeros(4**level)
        target[cells.cells[cells.kept]] = cells.counts[cells.kept]
        total += 2.0**-level * np.abs(sums.ravel() - target).sum()
    return float(total)


def full_lp(tree: CellTree) -> Optimum:
    """Solve the program with one variable for each grid cell.

    References
    ----------
    Ghazi et al. (2023), Differentially private heatmaps, AAAI, section 4: the program as it stands there.
    """
    every = np.arange(4**tree.depth) if tree.inside is None else np.flatnonzero(tree.inside)
    at = np.full(len(every), tree.depth)
    cost = np.zeros(len(every))
    for level, row in _rows(tree, at, every):
        cost += 2.0**-level * (row < 0)
    masses = np.zeros((tree.side, tree.side))
    masses.reshape(-1)[every], least = _minimise(tree, at, every, cost)
    return Optimum(masses, least)


def compact_lp(tree: CellTree) -> Optimum:
    """Solve the program with one variable for each left-out cell and each kept grid cell.

    No kept cell lies in a left-out cell of level i, so its mass costs `2^(1-i) - 1/side` wherever it lies in there.

    Returns
    -------
    Optimum
        Masses of left-out cells are uniform over their grid cells.

    References
    ----------
    Ghazi et al. (2023), Differentially private heatmaps, AAAI, section 4.
    """
    ends = []
    for level, cells in _numbered(tree):
        ended = cells.alive.copy()
        ended[cells.kept] &= level == tree.depth
        ends.append(cells.cells[ended])
    at = np.repeat(np.arange(tree.first, tree.depth + 1), [len(codes) for codes in ends])
    code = np.concatenate(ends)
    grid_row = list(_rows(tree, at, code))[-1][1]
    cost = np.where(grid_row < 0, 2.0 ** (1 - at) - 1 / tree.side, 0.0)
    found, least = _minimise(tree, at, code, cost)
    return Optimum(_uniform(tree, at, code, found), least)


def _numbered(tree: CellTree) -> Iterator[tuple[int, TreeLevel]]:
    return zip(range(tree.first, tree.depth + 1), tree.levels, strict=True)


def _rows(tree: CellTree, at: np.ndarray, code: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """For each level, the row of the kept cell that every variable lies in, told by its level and code; -1 for none."""
    begin = 0
    for level, cells in _numbered(tree):
        row_of = np.full(4**level, -1)
        row_of[cells.cells[cells.kept]] = begin + np.arange(len(cells.kept))
        up = np.maximum(at - level, 0)
        u, v = code >> at >> up, (code & (1 << at) - 1) >> up
        yield level, np.where(at < level, -1, row_of[np.where(at < level, 0, (u << level) + v)])
        begin += len(cells.kept)


def _minimise(tree: CellTree, at: np.ndarray, code: np.ndarray, cost: np.ndarray) -> tuple[np.ndarray, float]:
    """Best masses of the variables, and the least objective, costs and distances to the kept counts together."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, eye_array, hstack

    counts = np.concatenate([cells.counts[cells.kept] for cells in tree.levels])
    weights = np.concatenate([np.full(len(cells.kept), 2.0**-level) for level, cells in _numbered(tree)])
    rows = np.stack([row for _, row in _rows(tree, at, code)])
    column = np.broadcast_to(np.arange(len(code)), rows.shape)[rows >= 0]
    row = rows[rows >= 0]
    within = coo_array((np.ones(len(row)), (row, column)), shape=(len(counts), len(code)))
    apart = eye_array(len(counts))
    found = linprog(
        np.concatenate([cost, weights, weights]),
        A_eq=hstack([within, apart, -apart], format="csr"),
        b_eq=counts,
        method="highs",
        options={"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE},
    )
    if not found.success:
        msg = f"the linear program of {len(code)} cells was not solved: {found.message}"
        raise DpppsynthError(msg)
    return np.maximum(found.x[: len(code)], 0.0), float(found.fun)


def _uniform(tree: CellTree, at: np.ndarray, code: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """The grid of masses: those of cells are uniform over their grid cells inside the mask."""
    inside = np.ones((tree.side, tree.side), bool) if tree.inside is None else tree.inside
    grid = np.zeros((tree.side, tree.side))
    for level, mass, (u, v) in zip(at, masses, zip(*np.divmod(code, 2**at), strict=True), strict=True):
        width = 2 ** (tree.depth - level)
        square = np.s_[u * width : (u + 1) * width, v * width : (v + 1) * width]
        grid[square] = mass * inside[square] / inside[square].sum()
    return grid
