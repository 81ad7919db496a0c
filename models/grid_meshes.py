"""Meshes of the cells of a grid for range queries, on which intensities are constant."""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import shapely

from dpppsynth.core.arguments import instance
from dpppsynth.core.errors import InputError
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Floats, Ints, Pieces
from dpppsynth.spatial.planar_mesh import PlanarMesh, cut_to_window


@runtime_checkable
class Tiling(Protocol):
    """Rectangular cells that tile a rectangle; `dpppsynth.grids.Rectangles` is one."""

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """(x0, y0, x1, y1) of the rectangle."""

    @property
    def cells(self) -> Floats:
        """(T, 4) the cells as x0, y0, x1, y1."""

    def __len__(self) -> int:
        """Number of cells."""

    def locate(self, xy: Any) -> Ints:
        """(n,) cells of points (n, 2)."""


@dataclass(frozen=True, eq=False)
class CellFinder:
    """Element of a mesh of a grid's cells that holds a point; -1 beyond the grid, and in cells outside the window."""

    grid: Tiling
    renumber: Ints

    def __call__(self, xy: npt.NDArray[np.float64]) -> Ints:
        """(n,) elements of points (n, 2)."""
        x0, y0, x1, y1 = self.grid.bounds
        x, y = xy.T
        inside = (x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1)
        element = np.full(len(xy), -1)
        element[inside] = self.renumber[self.grid.locate(xy[inside])]
        return element

    @property
    def cells(self) -> Ints:
        """(T,) cell of each element."""
        return np.flatnonzero(self.renumber >= 0)


def rectangle_mesh(window: Window, grid: Tiling) -> PlanarMesh:
    """Mesh of the cells of a grid over the bounding box of a window, one element for each cell that meets it.

    Cells of neighbouring first-level cells need not share whole edges: intensities that are constant on cells can live
    on it, linear ones cannot.

    Parameters
    ----------
    window : Window
    grid : Tiling
        Tiles the window's bounding box.

    Examples
    --------
    >>> from dpppsynth.grids import uniform_grid
    >>> window = Window.rectangle(0, 0, 4, 2)
    >>> rectangle_mesh(window, uniform_grid(window.bounds, 2, 1)).element_measure.tolist()
    [4.0, 4.0]
    """
    instance("window", window, Window, "Window.rectangle(0, 0, 1000, 1000) is one")
    instance("grid", grid, Tiling, "uniform_grid(window.bounds, 10, 10) is one")
    if grid.bounds != tuple(window.bounds):
        msg = "grid: it must tile the window's bounding box; make it from window.bounds."
        raise InputError(msg)
    x0, y0, x1, y1 = grid.cells.T
    corners = np.stack([x0, y0, x1, y0, x1, y1, x0, y1], axis=1).reshape(-1, 4, 2)
    pieces = cut_to_window(shapely.polygons(corners), window)
    kept = np.zeros(len(grid), dtype=bool)
    kept[pieces.element] = True
    renumber = np.where(kept, np.cumsum(kept) - 1, -1)
    mesh = PlanarMesh(
        vertices=corners[kept].reshape(-1, 2),
        elements=np.arange(4 * int(kept.sum())).reshape(-1, 4),
        kind="square",
        domain=window,
        pieces=Pieces(pieces.corners, renumber[pieces.element], pieces.weight),
        recipe={"builder": "rectangles", "cells": grid.cells.tolist()},
        find=CellFinder(grid, renumber),
    )
    left_out = shapely.polygons(corners[~kept])
    if len(left_out) and mesh.misses(shapely.intersection(left_out, window.geometry)):
        msg = "window: it has parts far thinner than a cell; widen them (a small buffer) or cut them off."
        raise InputError(msg)
    return mesh
