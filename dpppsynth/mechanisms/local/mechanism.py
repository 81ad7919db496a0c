"""Records of the local mechanisms."""

from functools import partial

from dpppsynth.contract.mechanism import Mechanism
from dpppsynth.mechanisms.local import examples, words
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
from dpppsynth.mechanisms.local.grid_synthesizer import AdvancedAdaptiveGrid, UniformGrid
from dpppsynth.mechanisms.local.release import GridEstimator, GridRelease, LocalRelease, ReportEstimator
from dpppsynth.mechanisms.local.statistic import AreaStatistic
from dpppsynth.mechanisms.local.trajectory_statistic import TraceStatistic
from dpppsynth.mechanisms.local.trajectory_synthesizer import LDPTrace, LineEstimator, TraceEstimator, TraceRelease

_cells = partial(
    Mechanism, statistic=AreaStatistic, estimators=(ReportEstimator,), result=LocalRelease, audit=CellsAudit
)
DISK_AREA = _cells(name="disk-area", settings=DiskAreaMechanism, words=words.DISK_AREA, examples=examples.disk_area)
HYBRID_AREA = _cells(
    name="hybrid-area", settings=HybridUniformExponential, words=words.HYBRID_AREA, examples=examples.hybrid_area
)
SQUARE_WAVE = _cells(
    name="square-wave", settings=MultidimensionalSquareWave, words=words.SQUARE_WAVE, examples=examples.square_wave
)
SUBSET_EXPONENTIAL = _cells(
    name="subset-exponential", settings=SEMGeoI, words=words.SUBSET_EXPONENTIAL, examples=examples.subset_exponential
)

UNIFORM_GRID = Mechanism(
    name="uniform-grid",
    settings=UniformGrid,
    statistic=UniformGridStatistic,
    estimators=(GridEstimator,),
    result=GridRelease,
    audit=GridAudit,
    words=words.UNIFORM_GRID,
    examples=examples.uniform_grid,
)

ADAPTIVE_GRID = Mechanism(
    name="adaptive-grid",
    settings=AdvancedAdaptiveGrid,
    statistic=AdaptiveGridStatistic,
    estimators=(GridEstimator,),
    result=GridRelease,
    audit=AdaptiveGridAudit,
    words=words.ADAPTIVE_GRID,
    examples=examples.adaptive_grid,
)

RANGE_HIERARCHY = Mechanism(
    name="range-hierarchy",
    settings=RangeHierarchy,
    statistic=AreaStatistic,
    estimators=(ReportEstimator,),
    result=HierarchyRelease,
    audit=CellsAudit,
    words=words.RANGE_HIERARCHY,
    examples=examples.range_hierarchy,
)

TRAJECTORIES = Mechanism(
    name="trajectories",
    settings=LDPTrace,
    statistic=TraceStatistic,
    estimators=(TraceEstimator,),
    result=TraceRelease,
    audit=TrajectoriesAudit,
    words=words.TRAJECTORIES,
    examples=examples.trajectories,
)

DISPLACEMENTS = Mechanism(
    name="displacements",
    settings=LineTrace,
    statistic=DisplacementStatistic,
    estimators=(LineEstimator,),
    result=TraceRelease,
    audit=DisplacementAudit,
    words=words.DISPLACEMENTS,
    examples=examples.displacements,
)
