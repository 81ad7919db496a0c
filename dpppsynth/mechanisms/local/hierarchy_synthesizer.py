"""`RangeHierarchy`: range queries from one round of reports on the levels of a quadtree."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

from dpppsynth.contract.settings import setting
from dpppsynth.core.arguments import instance
from dpppsynth.mechanisms.local.grids.rectangles import uniform_grid
from dpppsynth.mechanisms.local.randomizers.hierarchy import NEAREST, SHRUNK, RangeHierarchyLaw, hierarchy_side
from dpppsynth.mechanisms.local.reports import Counts
from dpppsynth.mechanisms.local.synthesizer import CellMechanism
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Floats


@dataclass(frozen=True)
class RangeHierarchy(CellMechanism):
    """Range queries in one round: every person reports on one level of a quadtree, which their device draws.

    Levels have 4 x 4, 8 x 8, ..., `cells` x `cells` cells, and on each the best frequency oracle has the whole budget.
    Differences between neighbouring cells are averaged over the levels by their precision, and shrunk.

    Parameters
    ----------
    epsilon : float
    cells : int
        Along a side of the finest level: a power of two from 2 to 256. `RangeHierarchy.sized(epsilon, n=...)` has a
        rule.
    estimator : {"shrunk", "norm-sub"}
        Differences shrunk by empirical Bayes, or the shares nearest to unbiased ones.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = RangeHierarchy(epsilon=2.0, cells=8)
    >>> counts = mechanism.aggregate(mechanism.clients([[0, 0], [7, 7], [3, 4]], rng=1))
    >>> window = Window.rectangle(0, 0, 100, 100)
    >>> mechanism.query(counts, window, [[0, 0, 100, 100]]).round(6).tolist()
    [3.0]
    """

    _: KW_ONLY
    cells: int = setting(64, help="Number of cells along each side of the finest level, a power of two")
    estimator: str = setting(SHRUNK, help="Estimator of the shares", choices=(SHRUNK, NEAREST))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.settings()

    @classmethod
    def sized(cls, epsilon: float, *, n: int, **settings: Any) -> "RangeHierarchy":
        """The hierarchy whose finest level suits the budget and a public number of persons."""
        return cls(epsilon, cells=hierarchy_side(epsilon, n), **settings)

    def _randomizer(self) -> RangeHierarchyLaw:
        return RangeHierarchyLaw(epsilon=self.epsilon, cells=self.cells)

    def settings(self) -> dict[str, Any]:
        """Settings of the estimator."""
        return self.randomizer.settings(estimator=self.estimator)

    def query(self, counts: Counts, window: Window, rectangles: Any) -> Floats:
        """(R,) estimated numbers of persons in rectangles (R, 4) of x0, y0, x1, y1, over the window's bounding box."""
        bounds = instance("window", window, Window, "Window.rectangle(0, 0, 1000, 1000) is one").bounds
        shares = self.estimate(counts)
        return uniform_grid(bounds, self.cells, self.cells).query(self.own(counts).n * shares.T.ravel(), rectangles)
