"""Log-Gaussian field inferred from the estimates of a grid's cells: free post-processing of the same reports.

The field has a value for every piece of an even grid. Its exponential, times the part of the piece that lies in the
window, is the mass there, and every cell of either level has the masses of its pieces, in proportion to area. Reports
of the levels are of different persons, so both tell of the field. The prior is a Matern field whose range is found by
evidence.
"""

import math
from collections.abc import Sequence
from typing import cast

import numpy as np
import scipy.sparse as sp

from dpppsynth.mechanisms.local.grid_statistic import GridLevel
from dpppsynth.mechanisms.local.grids.rectangles import Rectangles, uniform_grid
from dpppsynth.models.likelihood import NormalCounts
from dpppsynth.models.matern_search import averaged_mode
from dpppsynth.models.regular_meshes import CellFinder, rectangle_mesh, regular_triangulation
from dpppsynth.models.sparse_fields import SparseMatern
from dpppsynth.models.sparse_posterior import SparsePosterior, sparse_posterior
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.intensity import PiecewiseConstant
from dpppsynth.spatial.mesh import Floats, Ints, Mesh

# Prior standard deviation (log scale) and smoothness: of rougher or larger fields the mode behind few cells is a spike.
SIGMA, SMOOTHNESS = 2.0, 3.0
# Ranges, as shares of the longer side.
RANGES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
# Pieces along a side: so many times the root of the number of cells, within these bounds.
FINER, PIECES = 3.0, (16, 64)
# Rounds of a fit; and least number of persons in a cell, over the number that the field expects.
PASSES, FAINT = 2, 1e-6
# Least standard deviation of an estimate, in persons: those of a single cell are exact.
LOUD = 0.1


def field_intensity(window: Window, levels: Sequence[GridLevel], n: int) -> PiecewiseConstant:
    """Persons per unit area on even pieces, or on the cells where these are more.

    Masses at the field's posterior mode, averaged over ranges by evidence, are moved towards what the reports say of
    the persons themselves.
    """
    cells = levels[-1].grid
    pieces = even_pieces(window, len(cells))
    mesh, known = _mesh(window, pieces)
    measure = np.zeros(len(pieces))
    measure[known] = mesh.element_measure
    shares = [area_shares(level.grid, pieces) for level in levels]
    mass = field_masses(levels, shares, measure, pieces, n)
    expected = [share @ mass for share in shares]
    found = own_masses(levels, expected, n)
    if len(cells) < len(pieces):
        times = np.divide(found, expected[-1], out=np.zeros(len(found)), where=expected[-1] > 0)
        found = mass * (shares[-1].T @ times)
    else:
        mesh, known = _mesh(window, cells)
    return PiecewiseConstant(mesh, found[known] * (n / found[known].sum()) / mesh.element_measure)


def _mesh(window: Window, grid: Rectangles) -> tuple[Mesh, Ints]:
    """Mesh of the cells of a grid that meet the window, and their numbers."""
    mesh = rectangle_mesh(window, grid)
    return mesh, cast(CellFinder, mesh.find).cells


def field_masses(
    levels: Sequence[GridLevel], shares: Sequence[sp.csr_array], measure: Floats, pieces: Rectangles, n: int
) -> Floats:
    """(S,) expected persons in pieces of some measure (S,), by the field."""
    mesh = centres(pieces)
    # Vertices of the field go along the other axis first.
    place = pieces.locate(mesh.positions)
    response = sp.csr_array(sp.csc_array(sp.vstack(shares))[:, place])
    values = n * np.concatenate([level.shares for level in levels])
    mass, field = n * measure[place] / measure.sum(), None
    x0, y0, x1, y1 = pieces.bounds
    ends = np.cumsum([len(level.grid) for level in levels])[:-1]
    # How reports vary depends on the masses: first those of an even intensity, then those that were found.
    for _ in range(PASSES):
        each = zip(levels, np.split(response @ mass, ends), strict=True)
        variances = np.concatenate([level.variances(expected, n) + expected for level, expected in each])
        likelihood = NormalCounts(values, np.sqrt(variances + LOUD**2), measure[place], response, float(n))
        field = log_intensity(likelihood, mesh, max(x1 - x0, y1 - y0), field)
        mass = likelihood.vertex_masses(field)
    found = np.empty(len(pieces))
    found[place] = mass
    return found


def log_intensity(masses: NormalCounts, mesh: Mesh, longest: float, start: Floats | None) -> Floats:
    """(V,) mode of the field, averaged over ranges by evidence."""

    def fit(range_: float, other: Floats | None) -> SparsePosterior:
        prior = SparseMatern(SIGMA, range_, SMOOTHNESS).on(mesh)
        return sparse_posterior(masses, prior, start=start if other is None else other)

    return averaged_mode(fit, tuple(longest * share for share in RANGES))


def own_masses(levels: Sequence[GridLevel], expected: Sequence[Floats], n: int) -> Floats:
    """(T,) estimated persons in the finest cells, from their reports and a field's expectations on each level.

    A Poisson number has the mean and variance m. By normal laws the estimate of a cell takes it from there, and then
    that of the cell of the level above takes all cells within it.
    """
    last, m = levels[-1], expected[-1]
    gain = m / (m + LOUD**2 + last.variances(m, n))
    found = m + gain * (n * last.shares - m)
    if len(levels) > 1:
        above, left = levels[0], m * (1 - gain)
        start = last.grid.starts[:-1]
        room = np.add.reduceat(left, start)
        spread = room + LOUD**2 + above.variances(expected[0], n)
        part = (n * above.shares - np.add.reduceat(found, start)) / spread
        found += left * part[last.grid.parents]
    return np.maximum(found, FAINT * m)


def even_pieces(window: Window, cells: int) -> Rectangles:
    """Equal pieces of a window's bounding box, as many along x as along y, by the number of cells of a grid.

    Examples
    --------
    >>> len(even_pieces(Window.rectangle(0, 0, 2, 1), 100))
    900
    """
    along = int(np.clip(math.ceil(FINER * math.sqrt(cells)), *PIECES))
    return uniform_grid(window.bounds, along, along)


def centres(pieces: Rectangles) -> Mesh:
    """Triangles whose vertices are the centres of even pieces."""
    x, y = ((lines[:-1] + lines[1:]) / 2 for lines in (pieces.columns, pieces.rows))
    return regular_triangulation(Window.rectangle(x[0], y[0], x[-1], y[-1]), shape=(len(x), len(y)))


def area_shares(grid: Rectangles, pieces: Rectangles) -> sp.csr_array:
    """(T, S) shares of the areas of pieces that lie in each cell of a grid over the same rectangle.

    Examples
    --------
    >>> bounds = (0, 0, 3, 2)
    >>> area_shares(uniform_grid(bounds, 2, 1), uniform_grid(bounds, 3, 1)).toarray().tolist()
    [[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]]
    """
    x0, y0, x1, y1 = grid.cells.T
    column, columns = _overlapped(x0, x1, pieces.columns)
    row, rows = _overlapped(y0, y1, pieces.rows)
    cell = np.repeat(np.arange(len(grid)), columns * rows)
    within = np.arange(len(cell)) - np.repeat(np.cumsum(columns * rows) - columns * rows, columns * rows)
    i, j = column[cell] + within % columns[cell], row[cell] + within // columns[cell]
    share = _covered(x0[cell], x1[cell], pieces.columns, i) * _covered(y0[cell], y1[cell], pieces.rows, j)
    width = len(pieces.columns) - 1
    return sp.csr_array((share, (cell, j * width + i)), shape=(len(grid), len(pieces)))


def _overlapped(low: Floats, high: Floats, lines: Floats) -> tuple[Ints, Ints]:
    """First of the intervals between lines that intervals [low, high] (T,) overlap, and how many they do."""
    most = len(lines) - 2
    first = np.clip(np.searchsorted(lines, low, side="right") - 1, 0, most)
    last = np.clip(np.searchsorted(lines, high, side="left") - 1, first, most)
    return first, last - first + 1


def _covered(low: Floats, high: Floats, lines: Floats, number: Ints) -> Floats:
    """Shares of the numbered intervals between lines that [low, high] cover."""
    start, end = lines[number], lines[number + 1]
    return np.asarray(np.maximum(np.minimum(high, end) - np.maximum(low, start), 0.0) / (end - start))
