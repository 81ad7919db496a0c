"""`HierarchyRelease`: answers to range queries from reports on the levels of a quadtree."""

from typing import Any, cast

from dpppsynth.mechanisms.local.grids.integrals import rectangle_integrals
from dpppsynth.mechanisms.local.grids.rectangles import uniform_grid
from dpppsynth.mechanisms.local.release import LocalRelease
from dpppsynth.models.recipes import window
from dpppsynth.models.regular_meshes import grid_cells
from dpppsynth.spatial.intensity import PiecewiseConstant
from dpppsynth.spatial.mesh import Floats


class HierarchyRelease(LocalRelease):
    """Result of a hierarchy for range queries: everything in it is public."""

    def query(self, rectangles: Any) -> Floats:
        """(R,) estimated numbers of persons in rectangles (R, 4) of x0, y0, x1, y1: integrals of the intensity."""
        plan, intensity = self.statistic.plan, cast("PiecewiseConstant", self.intensity)
        own, (columns, rows) = window(plan.domain), plan.shape
        i, j = grid_cells(plan.mesh).T
        grid, measure = uniform_grid(own.bounds, columns, rows), plan.mesh.element_measure
        return rectangle_integrals(grid, own, j * columns + i, intensity.values, measure, rectangles)
