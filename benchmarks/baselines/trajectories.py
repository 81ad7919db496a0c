"""Trajectories as points: those of many persons in the order in which each visited them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from dpppsynth.core.arguments import elements, instance, whole
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local.trajectories.paths import MOST_SIDE, GridTrajectories, checked_offsets
from dpppsynth.spatial.domains import LARGEST, Window, as_reals
from dpppsynth.spatial.grid_cells import cell_places
from dpppsynth.spatial.mesh import Floats, Ints

POINTS = f"xy: must be numbers of shape (n, 2), none beyond {LARGEST:g}."


@dataclass(frozen=True, eq=False, repr=False)
class Trajectories:
    """Points of many persons in the order in which each visited them.

    Parameters
    ----------
    xy : array_like, shape (n, 2)
        Points of one trajectory after the other.
    offsets : array_like of int, shape (T + 1,)
        Where each trajectory starts, and n: trajectory t is `xy[offsets[t]:offsets[t + 1]]`.

    Raises
    ------
    InputError
        Without saying which points, where, or how many.

    Examples
    --------
    >>> walks = Trajectories.of([[[0.1, 0.1], [0.4, 0.1]], [[0.9, 0.8]]])
    >>> walks.on_grid(Window.rectangle(0, 0, 1, 1), cells=2).histogram()
    array([[0.66666667, 0.        ],
           [0.        , 0.33333333]])
    """

    xy: Floats
    offsets: Ints

    def __post_init__(self) -> None:
        xy = as_reals(self.xy, POINTS)
        if xy.ndim != 2 or xy.shape[1] != 2 or not (np.abs(xy) <= LARGEST).all():
            raise InputError(POINTS)
        xy.flags.writeable = False
        object.__setattr__(self, "xy", xy)
        object.__setattr__(self, "offsets", checked_offsets(self.offsets, len(xy)))

    @classmethod
    def of(cls, paths: Iterable[ArrayLike]) -> Self:
        """Trajectories from the points (n, 2) of each."""
        points = [as_reals(path, POINTS) for path in elements(paths) or ()]
        if not points or any(path.ndim != 2 or path.shape[1] != 2 for path in points):
            msg = "paths: needs at least one trajectory, each an array of shape (n, 2)."
            raise InputError(msg)
        return cls(np.concatenate(points), np.cumsum([0, *map(len, points)]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return "Trajectories()"

    @property
    def lengths(self) -> Ints:
        """(T,) number of points of each."""
        return np.diff(self.offsets)

    def path(self, which: int) -> Floats:
        """(n, 2) points of one trajectory."""
        which = whole("which", which, 0, most=len(self) - 1)
        return self.xy[self.offsets[which] : self.offsets[which + 1]]

    def on_grid(self, window: Window, cells: int) -> GridTrajectories:
        """The cell of every point on a grid over the bounding box of a public window, `cells` along each side.

        A point on the border between two cells belongs to the one to its right or above; the window's own right and
        upper border belongs to the last cells.

        Raises
        ------
        InputError
            When a point lies outside the window.
        """
        cells = whole("cells", cells, 1, most=MOST_SIDE)
        if not instance("window", window, Window, "Window.rectangle(0, 0, 1, 1) is one").contains(self.xy).all():
            msg = (
                "window: there are points outside it; take a public window that holds them all, or move each to the "
                "nearest place inside. A trajectory that is left out shows in their number, which is public."
            )
            raise InputError(msg)
        i, j = cell_places(self.xy, window.bounds, (cells, cells)).T
        return GridTrajectories(cells, i * cells + j, self.offsets)
