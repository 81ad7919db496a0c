"""Random walks over the points of a city, and the privacy cost of reporting every point of a trajectory."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from baselines.trajectories import Trajectories
from dpppsynth.core.arguments import instance, positive, whole
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.mechanisms.local.trajectories.paths import (
    MOVES,
    GridTrajectories,
    neighbouring_cells,
    starts,
)
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Ints


def random_trajectories(
    points: ArrayLike,
    window: Window,
    *,
    number: int = 1000,
    grid: int = 300,
    shortest: int = 2,
    longest: int = 200,
    rng: RngLike = None,
) -> Trajectories:
    """Random walks over the points of a city, as in the trajectory experiment of the disk area mechanism's authors.

    A walk starts in a cell that is not empty and moves to one of the eight neighbouring cells with probability
    proportional to its number of points; in every cell it visits one of the points there. It ends early where all
    neighbours are empty.

    Parameters
    ----------
    points : array_like, shape (n, 2)
        Inside the window.
    window : Window
    number : int
        Of walks.
    grid : int
        Cells along each side of the grid they walk on.
    shortest, longest : int
        Lengths are uniform between them.
    rng : None, int or Generator

    Examples
    --------
    >>> window = Window.rectangle(0, 0, 1, 1)
    >>> points = np.random.default_rng(1).uniform(size=(500, 2))
    >>> walks = random_trajectories(points, window, number=3, grid=5, longest=9, rng=2)
    >>> len(walks), bool(walks.lengths.max() <= 9)
    (3, True)
    """
    number, shortest = whole("number", number, 1, most=10**7), whole("shortest", shortest, 1)
    longest = whole("longest", longest, shortest, most=10**6)
    xy = Trajectories.of([points]).xy
    rng = generator(rng)
    city = _City(Trajectories(xy, np.array([0, len(xy)])).on_grid(window, grid))
    cell = rng.choice(np.flatnonzero(city.counts), number)
    left = rng.integers(shortest, longest, number, endpoint=True)
    walk = np.arange(number)
    visited: list[tuple[Ints, Ints]] = []
    while len(walk):
        visited.append((walk, city.visit(cell, rng)))
        left = left - 1
        target = city.step(cell, rng)
        going = (left > 0) & (target >= 0)
        walk, cell, left = walk[going], target[going], left[going]
    walks, chosen = (np.concatenate(each) for each in zip(*visited, strict=True))
    # A stable sort keeps each walk's visits in the order in which they were made.
    return Trajectories(xy[chosen[np.argsort(walks, kind="stable")]], starts(np.bincount(walks, minlength=number)))


class _City:
    """Points sorted by the cells that hold them, and the moves between those cells."""

    def __init__(self, points: GridTrajectories) -> None:
        self.side = points.cells
        self.counts = np.bincount(points.values, minlength=self.side**2)
        self.sorted = np.argsort(points.values, kind="stable")
        self.first = np.cumsum(self.counts) - self.counts

    def visit(self, cell: Ints, rng: np.random.Generator) -> Ints:
        """(n,) one of the points of each cell."""
        chosen: Ints = self.sorted[self.first[cell] + rng.integers(self.counts[cell])]
        return chosen

    def step(self, cell: Ints, rng: np.random.Generator) -> Ints:
        """(n,) a neighbour of each cell, drawn by its number of points; -1 where all are empty."""
        target, inside = neighbouring_cells(cell, self.side)
        steps = np.cumsum(np.where(inside, self.counts[target], 0), axis=1)
        alive = steps[:, -1] > 0
        drawn = rng.integers(np.maximum(steps[:, -1], 1))
        which = (steps <= drawn[:, None]).sum(axis=1)
        return np.where(alive, target[np.arange(len(cell)), np.minimum(which, len(MOVES) - 1)], -1)


@dataclass(frozen=True)
class PointsBudget:
    """Total epsilon of a person who reports every point separately, by two accountings of the same reports.

    Made from the trajectories themselves, for studies and not for release.

    Attributes
    ----------
    per_point : float
        Epsilon of one report.
    mean, most : float
        Epsilon of all reports of a person, on average and at worst.
    """

    per_point: float
    mean: float
    most: float


def points_budget(trajectories: Trajectories | GridTrajectories, epsilon: float) -> PointsBudget:
    """Budget per point and per person when every point of a trajectory is reported with `epsilon`.

    Reports of one person compose: a trajectory of n points spends n epsilon. A comparison at equal epsilon per point
    and per trajectory is not like for like.

    Examples
    --------
    >>> points_budget(GridTrajectories(2, [0, 1, 3, 2], [0, 3, 4]), 0.5)
    PointsBudget(per_point=0.5, mean=1.0, most=1.5)
    """
    epsilon = float(positive("epsilon", epsilon))
    if not isinstance(trajectories, Trajectories | GridTrajectories):
        instance("trajectories", trajectories, Trajectories)
    lengths = trajectories.lengths
    return PointsBudget(epsilon, float(lengths.mean()) * epsilon, int(lengths.max()) * epsilon)
