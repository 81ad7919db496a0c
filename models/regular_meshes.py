"""Regular triangulations and square meshes of planar windows."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import shapely

from dpppsynth.core.arguments import instance, real, shown, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import JsonObject
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.grid_cells import cell_places, in_cells
from dpppsynth.spatial.mesh import Floats, Ints, Mesh, Pieces
from dpppsynth.spatial.planar_mesh import PlanarMesh, cut_to_window

# Vertices of a regular mesh beyond which it would fill the memory of a small machine.
MOST_VERTICES = 2_000_000
WINDOW = "Window.rectangle(0, 0, 1000, 1000) is one"


def regular_triangulation(
    window: Window, *, spacing: float | None = None, shape: tuple[int, int] | None = None
) -> PlanarMesh:
    """Right triangles on a regular grid over the window's bounding box; elements outside the window are left out.

    Parameters
    ----------
    window : Window
        Public domain.
    spacing : float, optional
        Smallest side of a grid cell, in the window's unit; sides are stretched so that cells fit the bounding box.
    shape : (int, int), optional
        Vertices along x and y, at least 2 each; give either `spacing` or `shape`.

    Returns
    -------
    PlanarMesh
        `2 (nx - 1)(ny - 1)` triangles on a rectangle.

    Examples
    --------
    >>> mesh = regular_triangulation(Window.rectangle(0, 0, 10, 10), shape=(11, 11))
    >>> len(mesh.vertices), len(mesh.elements)
    (121, 200)
    """
    instance("window", window, Window, WINDOW)
    return regular(window, "triangle", settle_shape(window.bounds, window.unit, spacing, shape))


def regular_squares(
    window: Window, *, spacing: float | None = None, shape: tuple[int, int] | None = None
) -> PlanarMesh:
    """Grid cells with bilinear basis functions; parameters as in `regular_triangulation`."""
    instance("window", window, Window, WINDOW)
    return regular(window, "square", settle_shape(window.bounds, window.unit, spacing, shape))


def refine(mesh: Mesh, factor: int) -> PlanarMesh:
    """Regular mesh whose cells are `factor` times smaller and nested in those of `mesh`."""
    factor = whole("factor", factor, 1, most=MOST_VERTICES)
    if instance("mesh", mesh, Mesh).recipe.get("builder") != "regular":
        msg = "mesh: only regular meshes can be refined; build a finer one by hand."
        raise InputError(msg)
    nx, ny = mesh.recipe["shape"]
    shape = (factor * (nx - 1) + 1, factor * (ny - 1) + 1)
    return regular(mesh.domain, mesh.recipe["kind"], settle_shape(mesh.domain.bounds, mesh.domain.unit, None, shape))


def regular(window: Any, kind: str, shape: tuple[int, int]) -> PlanarMesh:
    """Mesh of the given kind with vertices (nx, ny) along x and y over the bounding box."""
    nx, ny = settle_shape(window.bounds, window.unit, None, shape)
    vertices, elements = regular_grid(window.bounds, nx, ny, kind)
    recipe: JsonObject = {"builder": "regular", "kind": kind, "shape": [nx, ny]}
    find = partial(Finder, window.bounds, nx - 1, ny - 1, kind)
    return _kept_mesh(vertices, elements, _pieces(vertices, elements, window), window, kind, recipe, find)


def _kept_mesh(
    vertices: Floats,
    elements: Ints,
    pieces: Pieces,
    window: Window,
    kind: str,
    recipe: JsonObject,
    find: Callable[[Ints], Any],
) -> PlanarMesh:
    """Mesh of the elements that meet the window; `find` makes a finder from the elements' new numbers, -1 for none."""
    kept = np.zeros(len(elements), dtype=bool)
    kept[pieces.element] = True
    renumber = np.where(kept, np.cumsum(kept) - 1, -1)
    used, local = np.unique(elements[kept], return_inverse=True)
    mesh = PlanarMesh(
        vertices=vertices[used],
        elements=local.reshape(-1, elements.shape[1]),
        kind=kind,
        domain=window,
        pieces=Pieces(pieces.corners, renumber[pieces.element], pieces.weight),
        recipe=recipe,
        find=find(renumber),
    )
    left_out = shapely.polygons(vertices[elements[~kept]])
    if len(left_out) and mesh.misses(shapely.intersection(left_out, window.geometry)):
        msg = "window: it has parts far thinner than a mesh element; widen them (a small buffer) or cut them off."
        raise InputError(msg)
    return mesh


def _pieces(vertices: Floats, elements: Ints, window: Window) -> Pieces:
    """Pieces of all grid elements; on a rectangle nothing is cut, so no geometry is built."""
    corner = vertices[elements]
    if not window.is_rectangle:
        return cut_to_window(shapely.polygons(corner), window)
    index = np.arange(len(elements))
    halves = [corner] if elements.shape[1] == 3 else [corner[:, [0, 1, 2]], corner[:, [0, 2, 3]]]
    corners = np.concatenate(halves)
    area = np.linalg.det(corners[:, 1:] - corners[:, :1]) / 2
    return Pieces(corners, np.tile(index, len(halves)), area)


def cells_along(mesh: Mesh) -> tuple[int, int]:
    """Numbers (nx, ny) of grid cells along x and y of a mesh of regular squares, those outside the window included."""
    if (mesh.recipe.get("builder"), mesh.kind) != ("regular", "square"):
        msg = "mesh: needs one of regular squares; regular_squares(window, shape=(257, 257)) makes it."
        raise InputError(msg)
    nx, ny = mesh.recipe["shape"]
    return nx - 1, ny - 1


def grid_cells(mesh: Any) -> Ints:
    """(T, 2) place (i, j) of each element of a mesh of regular squares in its grid, i along x, j along y."""
    nx, _ = cells_along(mesh)
    cell = np.flatnonzero(mesh.find.renumber >= 0)
    return np.column_stack([cell % nx, cell // nx])


class Finder:
    """Element of a regular grid that holds a point, by division; cell borders belong to the cell right and above."""

    def __init__(self, bounds: tuple[float, float, float, float], nx: int, ny: int, kind: str, renumber: Ints) -> None:
        self.bounds, self.nx, self.ny, self.kind, self.renumber = bounds, nx, ny, kind, renumber

    def __call__(self, xy: npt.NDArray[np.float64]) -> Ints:
        """(n,) elements of points (n, 2)."""
        i, j = cell_places(xy, self.bounds, (self.nx, self.ny)).T
        cell = j * self.nx + i
        if self.kind == "square":
            return self.renumber[cell]
        u, v = in_cells(xy, self.bounds, (self.nx, self.ny)).T
        return self.renumber[2 * cell + (v - j > u - i)]


Bounds = tuple[float, float, float, float]


def regular_grid(bounds: Bounds, nx: int, ny: int, kind: str) -> tuple[Floats, Ints]:
    """Vertices (nx ny, 2) of a regular grid over the box, and its squares, or triangles with diagonals upwards."""
    x0, y0, x1, y1 = bounds
    gx, gy = np.meshgrid(np.linspace(x0, x1, nx), np.linspace(y0, y1, ny))
    i, j = np.meshgrid(np.arange(nx - 1), np.arange(ny - 1))
    a = (j * nx + i).ravel()
    square = np.column_stack([a, a + 1, a + nx + 1, a + nx])
    elements = square if kind == "square" else square[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3)
    return np.column_stack([gx.ravel(), gy.ravel()]), elements


def settle_shape(bounds: Bounds, unit: str, spacing: float | None, shape: tuple[int, int] | None) -> tuple[int, int]:
    """Vertices along x and y of a grid over the box, from its smallest side or as given; InputError."""
    if (spacing is None) == (shape is None):
        msg = "mesh: give either `spacing` or `shape`, not both and not neither."
        raise InputError(msg)
    if shape is not None:
        if not isinstance(shape, list | tuple) or len(shape) != 2 or not all(_whole(k) and k >= 2 for k in shape):
            msg = f"shape: needs two whole numbers of at least 2 vertices, got {shown(shape)}; for instance (11, 11)."
            raise InputError(msg)
        nx, ny = int(shape[0]), int(shape[1])
    else:
        sides, step = np.subtract(bounds[2:], bounds[:2]), real(spacing)
        if step is None or not 0 < step <= sides.max():
            msg = f"spacing: must be positive and at most the longer side of the domain, got {shown(spacing)} ({unit})."
            raise InputError(msg)
        if step < sides.max() / MOST_VERTICES:
            msg = f"mesh: a spacing of {step:g} needs more than {MOST_VERTICES} vertices; take a larger one."
            raise InputError(msg)
        # The small allowance keeps 670 / 67 at ten cells in spite of rounding.
        nx, ny = (max(1, int(np.floor(side / step * (1 + 1e-9)))) + 1 for side in sides)
    if nx * ny > MOST_VERTICES:
        msg = f"mesh: {nx} x {ny} vertices are more than {MOST_VERTICES}; take a larger spacing or a smaller shape."
        raise InputError(msg)
    return nx, ny


def _whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) or (isinstance(value, float) and value.is_integer())


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
    pieces, elements = cut_to_window(shapely.polygons(corners), window), np.arange(4 * len(grid)).reshape(-1, 4)
    recipe: JsonObject = {"builder": "rectangles", "cells": grid.cells.tolist()}
    return _kept_mesh(corners.reshape(-1, 2), elements, pieces, window, "square", recipe, partial(CellFinder, grid))
