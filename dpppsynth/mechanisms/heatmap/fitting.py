"""Masses fitted to the noised counts of a tree of cells: by a log-Gaussian field, by least squares, or in l1.

The field has a value for each cell of the finest measured level. Its exponential, times the cell's area, is the mass
there, and each noised count is a sum of masses plus its own level's noise. The prior is a Matern field whose range is
found by evidence.
"""

import math
import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from dpppsynth.core.arguments import one_of
from dpppsynth.core.errors import InformationWarning, InputError, QualityError
from dpppsynth.inference.field_inference import INTERCEPT_SD
from dpppsynth.mechanisms.heatmap.bound import FITS, LevelBudgets
from dpppsynth.mechanisms.heatmap.reconstruction import least_squares, solve
from dpppsynth.mechanisms.heatmap.tree import CellTree, divisor
from dpppsynth.models.likelihood import NoisyCounts
from dpppsynth.models.matern_search import averaged_mode
from dpppsynth.models.regular_meshes import regular_triangulation
from dpppsynth.models.sparse_fields import SparseMatern
from dpppsynth.models.sparse_posterior import SparsePosterior, sparse_posterior
from dpppsynth.models.sparse_solver import SparseFactor
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Floats, Ints, Mesh

# Prior standard deviation (log scale): places differ by factors of thousands. And ranges, as shares of the longer side.
SIGMA, SMOOTHNESS = 4.0, 1.0
RANGES = (0.1, 0.2, 0.4, 0.8, 1.6)
# Cells of a field at most (20 seconds, 1 GB), and pairs of cells that one count ties: matrices hold as many numbers.
MOST_CELLS, MOST_PAIRS = 2**14, 2**22
# Scale of noise, in persons, below which counts are as good as exact, and a field adds nothing.
LOUD = 0.1
# Smallest mass, as a share of the largest, that counts may still change.
FAINT = 1e-12


@dataclass(frozen=True, eq=False)
class CellField:
    """A field on the cells of a tree's finest level.

    Attributes
    ----------
    tree : CellTree
    budgets : LevelBudgets
        That its counts were noised with.
    lengths : (float, float)
        Sides of a finest cell, in any unit.
    """

    tree: CellTree
    budgets: LevelBudgets
    lengths: tuple[float, float]

    @cached_property
    def areas(self) -> Floats:
        """(side, side) areas of the finest cells that may hold mass."""
        side = self.tree.side
        inside = self.tree.inside
        return np.ones((side, side)) if inside is None else np.asarray(inside, dtype=float)

    @cached_property
    def mesh(self) -> Mesh:
        """Triangles whose vertices are the centres of the finest cells, in a box around those that may hold mass."""
        shape = box(self.areas)
        width, height = ((count - 1) * length for count, length in zip(shape, self.lengths, strict=True))
        return regular_triangulation(Window.rectangle(0, 0, width, height), shape=shape)

    @cached_property
    def places(self) -> Ints:
        """(V, 2) place (i, j) of every vertex's cell."""
        return np.rint(self.mesh.positions / np.array(self.lengths)).astype(np.int64)

    @cached_property
    def likelihood(self) -> NoisyCounts:
        """Likelihood of the field given all counts of cells that may hold mass."""
        tree, rows, columns, start = self.tree, [], [], 0
        for number, level in zip(tree.numbers, tree.levels, strict=True):
            row, number_alive = np.full(4**number, -1), int(level.alive.sum())
            row[level.cells[level.alive]] = start + np.arange(number_alive)
            i, j = self.places.T >> tree.depth - number
            found = row[i * 2**number + j]
            columns.append(np.flatnonzero(found >= 0))
            rows.append(found[columns[-1]])
            start += number_alive
        at = np.concatenate(rows), np.concatenate(columns)
        tents = sp.csr_array((np.ones(len(at[0])), at), shape=(start, len(self.places)))
        counts = np.concatenate([level.counts[level.alive] for level in tree.levels])
        return NoisyCounts(counts, np.maximum(self.scales, LOUD), self.areas[tuple(self.places.T)], tents)

    @property
    def scales(self) -> Floats:
        """(K,) scales of the counts' noise, in persons."""
        each = zip(self.tree.levels, self.budgets.epsilons, strict=True)
        return np.concatenate([np.full(int(level.alive.sum()), 1 / epsilon) for level, epsilon in each])

    def log_intensity(self) -> Floats:
        """(V,) posterior mode, averaged over ranges by evidence.

        Raises
        ------
        QualityError
            When no mode is found.
        """
        masses = self.likelihood
        centre = float(np.log(max(1.0, self.tree.levels[0].counts.sum()) / masses.measure.sum()))

        def fit(range_: float, start: Floats | None) -> SparsePosterior | None:
            prior = SparseMatern(SIGMA, range_, SMOOTHNESS).on(self.mesh).with_intercept(INTERCEPT_SD)
            try:
                return sparse_posterior(masses, prior, centre, start=self.beginning if start is None else start)
            except QualityError:
                return None

        longest = max(np.array(box(self.areas)) * self.lengths)
        return averaged_mode(fit, tuple(longest * share for share in RANGES))

    @property
    def beginning(self) -> Floats:
        """(V,) field of the least squares fit, to start the search: far from a mode Laplace gradients are constant."""
        masses = least_squares(self.tree, self.budgets, shrink=True)[tuple(self.places.T)]
        areas = self.areas[tuple(self.places.T)]
        least = LOUD / max(self.budgets.epsilons)
        return np.log(np.maximum(masses, least) / divisor(areas))

    def own_masses(self, field: Floats) -> Floats:
        """(V,) expected masses of the persons themselves, as draws from a field (V,), given the noised counts.

        A Poisson number in each cell has the mean and variance m; one step of expectation, with normal laws, takes it
        from there towards the counts.
        """
        masses = self.likelihood
        m = masses.measure * np.exp(field)
        some = m > FAINT * m.max()
        precision = sp.diags_array(1 / (2 * self.scales**2))
        tents = masses.tents[:, some]
        pull = tents.T @ (precision @ (masses.counts - masses.tents @ m))
        m[some] += SparseFactor(sp.diags_array(1 / m[some]) + tents.T @ precision @ tents).solve(pull)
        return np.maximum(m, 0.0)


def field_masses(
    tree: CellTree,
    budgets: LevelBudgets,
    *,
    inside: Floats | None = None,
    lengths: tuple[float, float] = (1.0, 1.0),
) -> Floats:
    """Masses fitted to the counts of a tree by a log-Gaussian field.

    Parameters
    ----------
    tree : CellTree
    budgets : LevelBudgets
        That its counts were noised with.
    inside : (m side, m side) array, optional
        Areas that may hold mass of the cells of a finer grid, for masses on that. None takes the tree's own cells.
    lengths : (float, float)
        Sides of the whole square along both axes, in any unit.

    Returns
    -------
    (m side, m side) array
        Masses, not normalised: all zero where no count of the first level is positive. They are those by least squares
        where all noise is of a scale below 0.1 persons, of a single cell, and, with a warning, where no mode is found.
    """
    inside = CellField(tree, budgets, lengths).areas if inside is None else inside
    if not (tree.levels[0].counts > 0).any():
        return np.zeros(np.shape(inside))
    if tree.depth == 0 or max(1 / np.array(budgets.epsilons)) < LOUD:
        return spread(least_squares(tree, budgets, shrink=True), inside)
    found = CellField(tree, budgets, (lengths[0] / tree.side, lengths[1] / tree.side))
    try:
        field = found.log_intensity()
        masses = found.own_masses(field)
    except QualityError:
        msg = "fit: a field was not found behind these counts, so masses are those of 'least-squares'."
        warnings.warn(msg, InformationWarning, stacklevel=2)
        return spread(least_squares(tree, budgets, shrink=True), inside)
    grid, shape = np.zeros((2, tree.side, tree.side)), box(found.areas)
    grid[:, *found.places.T] = np.exp(field - field.max()), masses
    return spread(grid[1], inside * smooth(np.log(grid[0, : shape[0], : shape[1]]), inside.shape, tree.side))


def box(areas: Floats) -> tuple[int, int]:
    """Cells along x and y, two at least, up to the last ones that may hold mass.

    Examples
    --------
    >>> box(np.array([[0, 1, 0, 0]] + 3 * [[0, 0, 0, 0]]))
    (2, 2)
    """
    nx, ny = (int(np.flatnonzero(areas.any(axis=axis)).max()) + 1 for axis in (1, 0))
    return max(nx, 2), max(ny, 2)


def smooth(field: Floats, shape: tuple[int, ...], side: int) -> Floats:
    """Exponential (a, b) of a field (nx, ny) at the centres of cells of side 1, linear between them, on finer cells."""
    at = [np.clip((np.arange(count) + 0.5) * side / count - 0.5, 0, None) for count in shape]
    weights = [
        np.transpose([np.interp(places, np.arange(count), unit) for unit in np.eye(count)])
        for places, count in zip(at, field.shape, strict=True)
    ]
    return np.asarray(np.exp(weights[0] @ field @ weights[1].T))


def spread(masses: Floats, density: Floats) -> Floats:
    """(a, a) masses on a finer grid, in each coarse cell (b, b) its mass in proportion to a density (a, a) >= 0.

    Examples
    --------
    >>> spread(np.array([[6.0]]), np.array([[1, 1], [0, 1]])).tolist()
    [[2.0, 2.0], [0.0, 2.0]]
    """
    times = len(density) // len(masses)
    sums = density.reshape(len(masses), times, len(masses), times).sum(axis=(1, 3))
    share = masses / divisor(sums)
    return np.asarray(share.repeat(times, axis=0).repeat(times, axis=1) * density)


def require_small(budgets: LevelBudgets) -> None:
    """Refuse measurements whose field takes too long; InputError."""
    cells = 4**budgets.depth
    if cells > MOST_CELLS or cells * 4 ** (budgets.depth - budgets.first) > MOST_PAIRS:
        msg = (
            f"measure: {2**budgets.depth} cells along a side, counted from level {budgets.first} on, are too many for "
            f"fit 'field' (at most {math.isqrt(MOST_CELLS)} with two levels); take fewer, or fit 'least-squares'."
        )
        raise InputError(msg)


def require_fit(fit: str, budgets: LevelBudgets) -> None:
    """Refuse a fit that such a measurement cannot have; InputError."""
    if one_of("fit", fit, FITS) == "l1" and budgets.step > 1:
        msg = (
            "fit: 'l1' takes counts of every level from the first on; take variant 'practical' with it, or fit 'field' "
            "or 'least-squares'."
        )
        raise InputError(msg)
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
    """Masses fitted to the counts of a tree.

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
    >>> from dpppsynth.mechanisms.heatmap.tree import grow
    >>> counts = [np.array([10.0]), np.array([4.0, 3.0, 2.0, 1.0])]
    >>> tree = grow(0, 1, 1, lambda level, cells: counts[level][cells])
    >>> fitted(tree, LevelBudgets(0, (1.0, 1.0)), "l1").tolist()
    [[5.5, 1.5], [1.5, 1.5]]
    """
    if fit == "field":
        return field_masses(tree, budgets, inside=inside, lengths=lengths)
    masses = solve(tree) if fit == "l1" else least_squares(tree, budgets, shrink=True)
    return masses if inside is None or len(inside) == len(masses) else spread(masses, inside)
