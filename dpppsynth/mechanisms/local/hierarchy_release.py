"""`HierarchyRelease`: answers to range queries from reports on the levels of a quadtree."""

from typing import Any

from dpppsynth.mechanisms.local.grids.rectangles import uniform_grid
from dpppsynth.mechanisms.local.release import LocalRelease
from dpppsynth.models.recipes import window
from dpppsynth.spatial.mesh import Floats


class HierarchyRelease(LocalRelease):
    """Result of a hierarchy for range queries: everything in it is public."""

    def query(self, rectangles: Any) -> Floats:
        """(R,) estimated numbers of persons in rectangles (R, 4) of x0, y0, x1, y1; of cut cells by their area."""
        plan = self.statistic.plan
        shares = self.distribution
        return uniform_grid(window(plan.domain).bounds, *shares.shape).query(plan.n * shares.T.ravel(), rectangles)
