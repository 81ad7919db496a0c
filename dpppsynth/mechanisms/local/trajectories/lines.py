"""`LineModel`: trajectories as straight lines from a start, with displacements whose law is the same everywhere."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dpppsynth.core.arguments import whole
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.mechanisms.local.randomizers.displacements import displaced
from dpppsynth.mechanisms.local.trajectories.grid_trajectories import GridTrajectories, starts
from dpppsynth.models.regular_meshes import grid_cells, regular_squares
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.intensity import PiecewiseConstant
from dpppsynth.spatial.mesh import Floats, Ints

# Rounds in which weights of displacements are fitted to their shares.
ROUNDS = 60


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LineModel:
    """Straight lines on a grid, public like the counts that they were estimated from.

    A line starts in a cell by the shares of starts. Its displacement is drawn by common weights, among those that end
    on the grid and inside the window; the weights are such that, over all starts, displacements have their shares.

    Parameters
    ----------
    cells : int
        Cells d along each side of the grid.
    n : int
        Number of trajectories behind it.
    starts : (d * d,) array
        Shares with sum one.
    displacements : (m,) array
        Shares with sum one, in the order of `displaced`.
    reach : int
    inside : (d * d,) array of bool
        Cells where a trajectory can end.

    Examples
    --------
    >>> east = np.array([0.5, 0.5, 0, 0, 0, 0, 0, 0, 0])
    >>> starts = np.array([1.0, 0, 0, 0])
    >>> LineModel(cells=2, n=10, starts=starts, displacements=east, reach=1, inside=np.ones(4, bool)).expected_visits
    array([[0.66666667, 0.        ],
           [0.33333333, 0.        ]])
    """

    cells: int
    n: int
    starts: Floats
    displacements: Floats
    reach: int
    inside: Ints = field(repr=False)

    def __repr__(self) -> str:
        return f"LineModel({self.cells} by {self.cells} cells, n={self.n})"

    @cached_property
    def _ways(self) -> tuple[Ints, Ints]:
        """Unit steps (m, 2) and numbers of steps (m,)."""
        return displaced(self.reach)

    @cached_property
    def possible(self) -> Ints:
        """(d * d, m) whether a line from a cell with a displacement ends on the grid and inside; staying always is."""
        steps, far = self._ways
        place = np.stack(np.divmod(np.arange(self.cells**2), self.cells), axis=1)
        ends = place[:, None] + steps * far[:, None]
        on = ((ends >= 0) & (ends < self.cells)).all(axis=2)
        cell = np.where(on, ends[..., 0] * self.cells + ends[..., 1], 0)
        found: Ints = on & self.inside[cell]
        found[:, 0] = True
        return found

    @cached_property
    def laws(self) -> Floats:
        """(d * d, m) law of the displacement from each cell."""
        weights = self.displacements.copy()
        for _ in range(ROUNDS):
            laws = _laws(self.possible * weights)
            reached = self.starts @ laws
            weights = weights * np.divide(self.displacements, reached, out=np.zeros_like(reached), where=reached > 0)
        return _laws(self.possible * weights)

    @cached_property
    def visits(self) -> Floats:
        """(d, d) expected number of visits of one line to each cell, each cell on its way once."""
        (steps, far), d = self._ways, self.cells
        taken = (self.starts[:, None] * self.laws).reshape(d, d, -1)
        total = np.array(self.starts.reshape(d, d))
        for k, (step, length) in enumerate(zip(steps.tolist(), far.tolist(), strict=True)):
            for number in range(1, min(length, d - 1) + 1):
                (i0, i1), (j0, j1) = (sorted((s * number, 0)) for s in step)
                there = taken[-i0 : d - i1, -j0 : d - j1, k]
                total[i1 : d + i0, j1 : d + j0] += there
        return total

    @property
    def expected_visits(self) -> Floats:
        """(d, d) expected share of all visits in each cell."""
        return self.visits / self.visits.sum()

    def intensity(self, domain: Window) -> PiecewiseConstant:
        """Visits of `n` lines per unit area of a window, constant on every cell of its grid.

        Cells that lie outside the window are left out, and what a cell holds is spread over its part inside.
        """
        mesh = regular_squares(domain, shape=(self.cells + 1, self.cells + 1))
        masses = self.n * self.visits[tuple(grid_cells(mesh).T)]
        return PiecewiseConstant(mesh, masses / mesh.element_measure)

    def synthesize(self, n: int | None = None, rng: RngLike = None) -> GridTrajectories:
        """Lines of the model, as cells in the order of their visits; they cost no privacy.

        Parameters
        ----------
        n : int, optional
            As many as there were trajectories unless given.
        rng : None, int or Generator
        """
        n = self.n if n is None else whole("n", n, 1, most=10**8)
        rng, (steps, far) = generator(rng), self._ways
        start = np.searchsorted(_upward(self.starts), rng.random(n), side="right")
        uniform, way = rng.random(n), np.empty(n, dtype=np.int64)
        for cell in np.unique(start):
            here = start == cell
            way[here] = np.searchsorted(_upward(self.laws[cell]), uniform[here], side="right")
        lengths = far[way] + 1
        walk = np.repeat(np.arange(n), lengths)
        number = np.arange(len(walk)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        place = np.stack(np.divmod(start[walk], self.cells), axis=1) + steps[way[walk]] * number[:, None]
        return GridTrajectories(self.cells, place[:, 0] * self.cells + place[:, 1], starts(lengths))


def _laws(weights: Floats) -> Floats:
    """Rows of weights with sum one; to stay, where there are none."""
    total = weights.sum(axis=1, keepdims=True)
    stay = np.eye(1, weights.shape[1])
    return np.where(total > 0, weights / np.where(total > 0, total, 1.0), stay)


def _upward(law: Floats) -> Floats:
    """Cumulative sums that end at one exactly."""
    sums: Floats = np.cumsum(law)
    return sums / sums[-1]
