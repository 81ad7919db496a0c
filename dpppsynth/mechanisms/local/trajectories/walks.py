"""`TraceModel`, random walks between cells, and `LineModel`, straight lines from a start."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from dpppsynth.core.arguments import plain_array, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.mechanisms.local.randomizers.displacements import displaced
from dpppsynth.mechanisms.local.trajectories.paths import MOST_SIDE, MOVES, GridTrajectories, neighbouring_cells, starts
from dpppsynth.models.regular_meshes import grid_cells, regular_squares
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.intensity import PiecewiseConstant
from dpppsynth.spatial.mesh import Floats, Ints

# Largest weight: sums of many cannot overflow.
LARGEST = 1e200


class WalkModel:
    """Base of trajectories on a grid of `cells` along a side, `n` of them, as estimated from reports."""

    cells: int
    n: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.cells} by {self.cells} cells, n={self.n})"

    @cached_property
    def visits(self) -> Floats:
        """(d, d) expected number of visits of one trajectory to each cell."""
        raise NotImplementedError

    @property
    def expected_visits(self) -> Floats:
        """(d, d) expected share of all visits in each cell: the private histogram of points."""
        return self.visits / self.visits.sum()

    def intensity(self, domain: Window) -> PiecewiseConstant:
        """Visits of `n` trajectories per unit area of a window, constant on every cell of its grid.

        Stays in one cell are no moves and count once. Cells that lie outside the window are left out, and what a cell
        holds is spread over its part inside.
        """
        mesh = regular_squares(domain, shape=(self.cells + 1, self.cells + 1))
        masses = self.n * self.visits[tuple(grid_cells(mesh).T)]
        return PiecewiseConstant(mesh, masses / mesh.element_measure)

    def synthesize(self, n: int | None = None, rng: RngLike = None) -> GridTrajectories:
        """Trajectories of the model; they cost no privacy.

        Parameters
        ----------
        n : int, optional
            As many as there were trajectories unless given.
        rng : None, int or Generator
        """
        return self._synthesized(self.n if n is None else whole("n", n, 1, most=10**8), generator(rng))

    def _synthesized(self, n: int, rng: np.random.Generator) -> GridTrajectories:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TraceModel(WalkModel):
    """Random walks on a grid that start, move, end and stop as estimated; public like the counts it was made from.

    A walk has a target length. In each cell it moves to a neighbour or ends, with probabilities proportional to the
    cell's `moves` and to its `ends` times `ending`, small for short walks; it stops at its target length, or where all
    of them are zero.

    Parameters
    ----------
    cells : int
        Cells d along each side of the grid.
    n : int
        Number of trajectories behind it.
    starts, ends : array_like, shape (d * d,)
        Numbers of trajectories that start and end in each cell. No starts at all mean even ones.
    lengths : array_like, shape (L,)
        Numbers of trajectories of 1, 2, ..., L cells, not all zero.
    moves : array_like, shape (d * d, 8)
        Numbers of moves from each cell to its neighbours, in the order of `MOVES`. Moves out of the grid
        count as zero.

    Examples
    --------
    >>> around = np.ones((4, 8))
    >>> model = TraceModel(cells=2, n=10, starts=[1, 0, 0, 0], ends=np.zeros(4), lengths=[1, 1], moves=around)
    >>> model.expected_visits.round(6)
    array([[0.666667, 0.111111],
           [0.111111, 0.111111]])
    """

    cells: int
    n: int
    starts: Floats
    ends: Floats
    lengths: Floats
    moves: Floats = field(repr=False)

    def __post_init__(self) -> None:
        size = whole("cells", self.cells, 1, most=MOST_SIDE) ** 2
        whole("n", self.n, 1, most=2**53)
        for name, shape in (("starts", (size,)), ("ends", (size,)), ("lengths", None), ("moves", (size, len(MOVES)))):
            object.__setattr__(self, name, _weights(name, getattr(self, name), shape))
        if not self.lengths.any():
            msg = "lengths: all are zero; there is no trajectory."
            raise InputError(msg)

    @property
    def start(self) -> Floats:
        """(d * d,) law of the first cell."""
        starts = self.starts if self.starts.any() else np.ones(self.cells**2)
        return starts / starts.sum()

    @property
    def reaching(self) -> Floats:
        """(L,) probability of a target length of at least 1, 2, ..., L."""
        return np.minimum(np.cumsum(self.lengths[::-1])[::-1] / self.lengths.sum(), 1.0)

    @staticmethod
    def ending(length: int) -> float:
        """Factor of the weight of ending for a walk of this length."""
        return min(1.0, 0.3 + 0.2 * (whole("length", length, 1, most=2**53) - 1))

    @cached_property
    def _ways(self) -> tuple[Ints, Floats]:
        """(d * d, 8) cells around each cell, and the weights of moving there, 0 out of the grid."""
        target, inside = neighbouring_cells(np.arange(self.cells**2), self.cells)
        return target, np.where(inside, self.moves, 0.0)

    def transitions(self, length: int) -> Floats:
        """(d * d, 9) law of the next step of a walk of this length in each cell: 8 moves, then its end.

        Where all weights are zero it ends for certain.
        """
        weights = np.column_stack([self._ways[1], self.ends * self.ending(length)])
        total = weights.sum(axis=1, keepdims=True)
        nowhere = np.append(np.zeros(len(MOVES)), 1.0)
        return np.where(total > 0, weights / np.where(total > 0, total, 1.0), nowhere)

    @cached_property
    def visits(self) -> Floats:
        """(d, d) expected number of visits of one walk to each cell, from the chain itself and not from draws."""
        target = self._ways[0].ravel()
        here: Floats = self.start
        total = np.zeros(len(here))
        for length, reaching in enumerate(self.reaching, 1):
            total += reaching * here
            there = here[:, None] * self.transitions(length)[:, :-1]
            here = np.bincount(target, weights=there.ravel(), minlength=len(here)).astype(np.float64)
        return total.reshape(self.cells, self.cells)

    def _synthesized(self, n: int, rng: np.random.Generator) -> GridTrajectories:
        walk, cell = np.arange(n), _drawn(np.broadcast_to(self.start, (1, self.cells**2)), rng.random(n))
        target = rng.choice(len(self.lengths), n, p=self.lengths / self.lengths.sum()) + 1
        visited = [(walk, cell)]
        for length in range(1, len(self.lengths)):
            step = _drawn(self.transitions(length), rng.random(len(cell)), cell)
            going = (step < len(MOVES)) & (target[walk] > length)
            walk, cell = walk[going], self._ways[0][cell[going], step[going]]
            visited.append((walk, cell))
        walks, cells = (np.concatenate(each) for each in zip(*visited, strict=True))
        offsets = np.concatenate([[0], np.cumsum(np.bincount(walks, minlength=n))])
        return GridTrajectories(self.cells, cells[np.argsort(walks, kind="stable")], offsets)


def _drawn(laws: Floats, uniform: Floats, which: Ints | None = None) -> Ints:
    """(n,) outcomes of laws (r, k), whose rows are the ones named, at uniform numbers (n,)."""
    steps = np.cumsum(laws, axis=1)
    # Rounding may leave the last sum below one: scaled by it, and never an outcome without weight.
    steps /= steps[:, -1:]
    if which is None:
        return np.searchsorted(steps[0], uniform, side="right")
    return (steps[which] <= uniform[:, None]).sum(axis=1)


def _weights(name: str, value: Any, shape: tuple[int, ...] | None) -> Floats:
    """Non-negative finite numbers of this shape; of any length in one dimension unless it is given."""
    array = plain_array(value)
    fits = array is not None and array.dtype.kind in "iuf" and array.size > 0
    if array is None or not fits or (array.ndim != 1 if shape is None else array.shape != shape):
        msg = f"{name}: must be numbers of shape {shape or '(L,)'}."
        raise InputError(msg)
    array = array.astype(np.float64)
    if not ((array >= 0) & (array <= LARGEST)).all():
        msg = f"{name}: must be finite and not negative, at most {LARGEST:g}."
        raise InputError(msg)
    array.flags.writeable = False
    return array


# Rounds in which weights of displacements are fitted to their shares.
ROUNDS = 60


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LineModel(WalkModel):
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

    def _synthesized(self, n: int, rng: np.random.Generator) -> GridTrajectories:
        steps, far = self._ways
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
