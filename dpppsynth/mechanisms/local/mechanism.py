"""Records of the local mechanisms, with their text for reports and their examples."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpppsynth.contract.examples import Example, N, in_threes, ring, square
from dpppsynth.contract.registry import Mechanism
from dpppsynth.contract.result import Result
from dpppsynth.contract.words import MechanismWords
from dpppsynth.mechanisms.local.audit import AdaptiveGridAudit, CellsAudit, DisplacementAudit, GridAudit
from dpppsynth.mechanisms.local.audit_trajectories import TrajectoriesAudit
from dpppsynth.mechanisms.local.cell_synthesizers import (
    DiskAreaMechanism,
    HierarchyRelease,
    HybridUniformExponential,
    MultidimensionalSquareWave,
    RangeHierarchy,
    SEMGeoI,
)
from dpppsynth.mechanisms.local.displacements import DisplacementStatistic, LineTrace
from dpppsynth.mechanisms.local.grid_statistic import AdaptiveGridStatistic, UniformGridStatistic
from dpppsynth.mechanisms.local.grid_synthesizer import AdvancedAdaptiveGrid, PrivAG, UniformGrid
from dpppsynth.mechanisms.local.release import (
    GridEstimator,
    GridRelease,
    LineEstimator,
    LocalRelease,
    ReportEstimator,
    TraceEstimator,
    TraceRelease,
)
from dpppsynth.mechanisms.local.statistic import AreaStatistic, ReportsStatistic
from dpppsynth.mechanisms.local.trajectory_statistic import TraceStatistic
from dpppsynth.mechanisms.local.trajectory_synthesizer import LDPTrace
from dpppsynth.spatial.mesh import Ints

OWN = "Every person's location was turned into a random report on its own"
TOGETHER = (
    "How many persons are in each square was estimated from all reports together, and the synthetic points were drawn "
    "from these estimates."
)


@dataclass(frozen=True, kw_only=True)
class ReportWords(MechanismWords[ReportsStatistic, Result]):
    """Text on one report of each person's location."""

    intensity: str = "estimated from their reports"
    counts: str = "persons"

    def reports(self, plans: Sequence[ReportsStatistic]) -> str | None:
        return f"{sum(sum(plan.parameters().get('reports', [plan.n])) for plan in plans):,}, a public number"


class TrajectoryWords(MechanismWords[TraceStatistic, Result]):
    """Text on reports of each person's trajectory."""

    def reports(self, plans: Sequence[TraceStatistic]) -> str | None:
        (plan,) = plans
        return f"{plan.parameters()['longest'] + 2} from each of {max(plan.clients):,} persons, both public numbers"


def _reported(description: str) -> ReportWords:
    return ReportWords(description=f"{OWN}: {description} {TOGETHER}")


def disk_area() -> Iterator[Example]:
    """Examples on windows with and without a hole, and of persons with several points."""
    yield Example("square", partial(DiskAreaMechanism, 1.0, cells=6), square())
    persons = partial(DiskAreaMechanism, 1.0, cells=6, user="user")
    yield Example("persons", persons, square(), marks=in_threes, numbers=(3 * N, 3 * N))
    yield Example("polygon with a hole", partial(DiskAreaMechanism, 1.0, cells=9), ring())


def one_square(settings: Callable[..., Any], **given: Any) -> Callable[[], Iterator[Example]]:
    """One example, on a square."""
    return lambda: iter([Example("square", partial(settings, 1.0, **given), square())])


def uniform_grid() -> Iterator[Example]:
    """Examples of either oracle."""
    for domain, oracle in ((square(), "local-hashing"), (ring(), "auto")):
        yield Example(oracle, partial(UniformGrid, domain, epsilon=1.0, cells=(9, 4), oracle=oracle), domain)


def adaptive_grid() -> Iterator[Example]:
    """Examples of even and of adaptive cuts."""
    even = partial(PrivAG, square(), epsilon=3.0, alpha=0.1, consistent=False, oracle="optimized-unary")
    yield Example("even", even, square())
    uneven = partial(AdvancedAdaptiveGrid, ring(), epsilon=3.0, alpha2=1.0)
    yield Example("adaptive, polygon with a hole", uneven, ring())


def range_hierarchy() -> Iterator[Example]:
    """Examples on windows with and without a hole, of several levels and of one."""
    yield Example("square", partial(RangeHierarchy, 1.0, cells=16), square())
    yield Example("polygon with a hole", partial(RangeHierarchy, 2.0, cells=8, estimator="norm-sub"), ring())
    yield Example("one level", partial(RangeHierarchy, 1.0, cells=2), square())


def trajectories() -> Iterator[Example]:
    """Examples of N trajectories, some or all with more than one point; how many points they have is secret."""
    for label, domain in (("square", square()), ("polygon with a hole", ring())):
        settings = partial(LDPTrace, 3.0, cells=5, max_length=6)
        yield Example(label, settings, domain, marks=in_turn, numbers=(N + 300, 3 * N))


def displacements() -> Iterator[Example]:
    """Examples of N trajectories, as of `trajectories`."""
    for label, domain in (("square", square()), ("polygon with a hole", ring())):
        yield Example(label, partial(LineTrace, 3.0, cells=5), domain, marks=in_turn, numbers=(N + 300, 3 * N))


def in_turn(n: int) -> dict[str, Ints]:
    """Marks of N trajectories, which have points in turn."""
    return {"trajectory": np.arange(n) % N}


_cells = partial(
    Mechanism, statistic=AreaStatistic, estimators=(ReportEstimator,), result=LocalRelease, audit=CellsAudit
)

DISK_AREA = _cells(
    name="disk-area",
    settings=DiskAreaMechanism,
    words=_reported("it names a square of a public grid, most likely one near their own."),
    examples=disk_area,
)
HYBRID_AREA = _cells(
    name="hybrid-area",
    settings=HybridUniformExponential,
    words=_reported("it names a square of a public grid, likelier ones being nearer to their own."),
    examples=one_square(HybridUniformExponential, cells=5, radius=2),
)
SQUARE_WAVE = _cells(
    name="square-wave",
    settings=MultidimensionalSquareWave,
    words=_reported("it names a row or a column of a public grid, most likely one near their own."),
    examples=one_square(MultidimensionalSquareWave, cells=6),
)
SUBSET_EXPONENTIAL = _cells(
    name="subset-exponential",
    settings=SEMGeoI,
    words=_reported("it names a few squares of a public grid, likelier ones being nearer to their own."),
    examples=one_square(SEMGeoI, cells=6),
)
RANGE_HIERARCHY = _cells(
    name="range-hierarchy",
    settings=RangeHierarchy,
    result=HierarchyRelease,
    words=_reported(
        "a noisy answer to which square of a public grid they are in; how large the squares were was drawn at random."
    ),
    examples=range_hierarchy,
)
UNIFORM_GRID = Mechanism(
    name="uniform-grid",
    settings=UniformGrid,
    statistic=UniformGridStatistic,
    estimators=(GridEstimator,),
    result=GridRelease,
    audit=GridAudit,
    words=_reported("a noisy answer to which square of a public grid they are in."),
    examples=uniform_grid,
)
ADAPTIVE_GRID = Mechanism(
    name="adaptive-grid",
    settings=AdvancedAdaptiveGrid,
    statistic=AdaptiveGridStatistic,
    estimators=(GridEstimator,),
    result=GridRelease,
    audit=AdaptiveGridAudit,
    words=_reported(
        "some were noisy answers about the large squares of a public grid, all others about smaller squares, finer "
        "where the first answers had found more people."
    ),
    examples=adaptive_grid,
)
TRAJECTORIES = Mechanism(
    name="trajectories",
    settings=LDPTrace,
    statistic=TraceStatistic,
    estimators=(TraceEstimator,),
    result=TraceRelease,
    audit=TrajectoriesAudit,
    words=TrajectoryWords(
        description="Every person's trajectory was turned into random reports on its own: first a noisy answer to how "
        "long it is; then, for a length announced to all, noisy answers to where it starts, where it ends and which "
        "moves it makes between the squares of a public grid. Random walks were fitted to all reports together. The "
        "synthetic points were drawn from where such walks are expected to pass.",
        intensity="expected visits of the walks",
    ),
    examples=trajectories,
)
DISPLACEMENTS = Mechanism(
    name="displacements",
    settings=LineTrace,
    statistic=DisplacementStatistic,
    estimators=(LineEstimator,),
    result=TraceRelease,
    audit=DisplacementAudit,
    words=ReportWords(
        description="Every person's trajectory was turned into one random report on its own: a square of a public "
        "grid, most likely one near where it starts, or a noisy answer to the direction and the distance from its "
        "start to its end; which of the two was drawn at random. Straight lines were fitted to all reports together. "
        "The synthetic points were drawn from where such lines are expected to pass.",
        intensity="expected visits of the lines",
        counts="points",
    ),
    examples=displacements,
)
