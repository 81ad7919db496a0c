"""Integrals over rectangles of a density that is constant on the cells of a grid, in a window that may cut them."""

from typing import Any

import numpy as np
import shapely

from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.grids.grid_arguments import checked_queries
from dpppsynth.mechanisms.local.grids.rectangles import Rectangles
from dpppsynth.spatial.domains import Window

# Share of a cell's area that may be missing by rounding where all of it lies in the window.
ROUNDING = 1e-9


def rectangle_integrals(
    grid: Rectangles, window: Window, numbers: Ints, density: Floats, measure: Floats, rectangles: Any
) -> Floats:
    """(R,) integrals over rectangles (R, 4) of x0, y0, x1, y1.

    Parameters
    ----------
    grid : Rectangles
    window : Window
        Nothing lies beyond it.
    numbers : (T,) array of int
        Cells that meet the window.
    density : (T,) array
        Of these cells, within the window.
    measure : (T,) array
        Areas of their parts in the window.
    rectangles : (R, 4) array
    """
    cut = measure < grid.areas[numbers] * (1 - ROUNDING)
    masses = np.zeros(len(grid))
    masses[numbers] = np.where(cut, 0.0, density * measure)
    answers = grid.query(masses, rectangles)
    if cut.any():
        inside = shapely.intersection(shapely.box(*grid.cells[numbers[cut]].T), window.geometry)
        asked = shapely.box(*checked_queries(rectangles).T)
        query, part = shapely.STRtree(inside).query(asked)
        areas = shapely.area(shapely.intersection(asked[query], inside[part]))
        np.add.at(answers, query, density[cut][part] * areas)
    return answers
