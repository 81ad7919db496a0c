"""Baselines for local mechanisms, for comparison only: none of them may be used for a release.

The hybrid mechanism as the main text of its paper prints it spends 1 whatever epsilon is, and the best side of a
uniform grid is found by looking at the truth.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from baselines.range_queries import average_query_error, true_answers
from dpppsynth.core.arguments import elements, flag, instance
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.mechanisms.local.grid_synthesizer import GridCounts, UniformGrid
from dpppsynth.mechanisms.local.one_report import one_point_each
from dpppsynth.mechanisms.local.randomizers.area import HybridArea, grid_radius
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer
from dpppsynth.mechanisms.local.synthesizer import CellMechanism
from dpppsynth.models.regular_meshes import grid_cells
from dpppsynth.spatial.patterns import PointPattern

PRINTED = "A baseline for published comparisons: it spends 1 whatever epsilon is, so it must not be released."


@dataclass(frozen=True, kw_only=True, eq=False)
class LiteralHybridArea(HybridArea):
    """Hybrid mechanism as the main text prints it, without epsilon in the exponent: for comparison, never for release.

    It spends 1 whatever epsilon is: too much below 1, too little above. Only radius 0 obeys epsilon.

    Attributes
    ----------
    epsilon, cells, radius
        As of every area mechanism.
    unsafe : bool
        Has to be True where the law spends more than epsilon.

    References
    ----------
    Numerical Estimation of Spatial Distributions under Differential Privacy (disk area mechanism), section IV.

    Examples
    --------
    >>> round(LiteralHybridArea(epsilon=3.5, cells=5, radius=2).spent, 9)
    1.0
    """

    unsafe: bool = False
    kind: ClassVar[str] = "literal-hybrid-area"

    def __post_init__(self) -> None:
        object.__setattr__(self, "unsafe", flag("unsafe", self.unsafe))
        super().__post_init__()
        if self.spent > self.epsilon and not self.unsafe:
            msg = (
                f"epsilon: the printed law spends {self.spent:.3g} and not {self.epsilon:g}; take HybridArea, or "
                "unsafe=True for a comparison on data that are not private."
            )
            raise InputError(msg)

    @property
    def exponent(self) -> float:
        return 1.0 if self.radius else self.epsilon


@dataclass(frozen=True)
class LiteralHybridUniformExponential(CellMechanism):
    """Hybrid uniform-exponential mechanism with the printed weights, which lack epsilon in the exponent.

    Parameters
    ----------
    epsilon : float
    cells : int
    radius : int, optional
        As in `HybridUniformExponential`.
    unsafe : bool
        Must be True below epsilon 1, where it spends more than it says.
    """

    _: KW_ONLY
    radius: int | None = None
    unsafe: bool = False

    def _randomizer(self) -> Randomizer:
        flag("unsafe", self.unsafe)
        radius = grid_radius(self.epsilon, self.cells) if self.radius is None else self.radius
        return LiteralHybridArea(epsilon=self.epsilon, cells=self.cells, radius=radius, unsafe=self.unsafe)

    def plan(self, *_: Any, **__: Any) -> Any:
        """Refused: there is no release."""
        msg = f"plan: {PRINTED[0].lower()}{PRINTED[1:]} Take HybridUniformExponential, or simulate() here."
        raise InputError(msg)

    def simulate(
        self, pattern: PointPattern, rng: RngLike = None, *, fast: bool = False, user: str | None = None
    ) -> Any:
        """Run all clients of a pattern in one process."""
        rng = None if rng is None else generator(rng)
        if user is not None:
            pattern = one_point_each(pattern, user, rng=rng)
        mesh = self.mesh(instance("pattern", pattern, PointPattern).domain)
        return self.counts(self.cell_values(grid_cells(mesh)[mesh.locate(pattern.positions)]), rng, fast=fast)


@dataclass(frozen=True, eq=False, repr=False)
class BestUniformGrid:
    """Result of `best_uniform_grid`: never to be released.

    Attributes
    ----------
    side : int
        The best one.
    errors : dict of int to float
        Average query error by side.
    counts : GridCounts
        Of the best grid.
    """

    side: int
    errors: dict[int, float]
    counts: GridCounts

    def __repr__(self) -> str:
        return f"BestUniformGrid(side {self.side}: not to be released)"


def best_uniform_grid(
    xy: Any, window: Any, queries: Any, *, epsilon: float, sides: Sequence[int], rng: RngLike = None, fast: bool = True
) -> BestUniformGrid:
    """The uniform grid whose answers to a workload are nearest to the truth, as published experiments choose it.

    Parameters
    ----------
    xy : (n, 2) array
    window : Window, or bounds
    queries : (R, 4) array
        Rectangles.
    epsilon : float
    sides : sequence of int
        That are tried.
    rng : None, int or Generator
    fast : bool
        As in `UniformGrid.simulate`.

    Examples
    --------
    >>> import numpy as np
    >>> xy = np.random.default_rng(1).random((2000, 2))
    >>> best_uniform_grid(xy, (0, 0, 1, 1), [[0, 0, 0.5, 1]], epsilon=1.0, sides=[2, 40], rng=1)
    BestUniformGrid(side 2: not to be released)
    """
    source, tried = generator(rng), elements(sides) or []
    if not tried:
        msg = "sides: needs at least one side to try, such as [5, 10, 20]."
        raise InputError(msg)
    results = {}
    for side in tried:
        counts = UniformGrid(window, epsilon=epsilon, cells=side).simulate(xy, source, fast=fast)
        grid: Any = counts.mechanism
        truth = true_answers(xy, queries, grid.window.bounds)
        error = average_query_error(truth, counts.query(queries), counts.n)
        results[grid.cells[0]] = error, counts
    best = min(results, key=lambda side: results[side][0])
    return BestUniformGrid(best, {side: error for side, (error, _) in results.items()}, results[best][1])
