"""Local differential privacy: each person's device randomises its own location; the aggregator is not trusted.

A mechanism has two sides. The client needs nobody else's data: `client(cell)` gives a `Report`, a few integers that go
into JSON. The aggregator keeps counts: `aggregate(reports)` gives `Counts`, which add up (`+`) over machines, and
`counts.release(domain)` makes of them what all mechanisms give: a private intensity, a certificate, synthetic patterns.
`simulate(pattern)` runs all clients in one process, for studies and audits; `release(pattern)` does so for a custodian
who holds the points.

* On a square grid: `DiskAreaMechanism`, `HybridUniformExponential`, `MultidimensionalSquareWave`, and `SEMGeoI`, which
  is geo-indistinguishable and not local.
* For range queries: `UniformGrid`, and in two rounds `PrivAG` and `AdvancedAdaptiveGrid`.
* For trajectories: `LDPTrace`.
* With a trusted custodian, on the same grids: `CentralUniformGrid`, `CentralAdaptiveGrid`.
* Reports in files, of any size and partition: `write_reports`, `read_reports`, `aggregate_files`, `perturb_file`.
* Errors: `wasserstein2`, `sinkhorn2`, `sliced_wasserstein` between grids, `average_query_error` of range queries.

The laws, their radii and estimators are in `dpppsynth.randomizers`, cells and cuts in `dpppsynth.grids`.
"""

from dpppsynth.baselines.central_grids import CentralAdaptiveGrid, CentralEstimate, CentralUniformGrid
from dpppsynth.mechanisms.local.area_synthesizers import (
    DiskAreaMechanism,
    HybridUniformExponential,
    MultidimensionalSquareWave,
    SEMGeoI,
)
from dpppsynth.mechanisms.local.grid_synthesizer import (
    AdaptiveCounts,
    AdvancedAdaptiveGrid,
    GridCounts,
    PrivAG,
    SecondRound,
    UniformGrid,
)
from dpppsynth.mechanisms.local.grids.queries import (
    average_query_error,
    constant_density_answers,
    query_workload,
    zero_answers_error,
)
from dpppsynth.mechanisms.local.randomizers.radius import grid_radius, optimal_radius
from dpppsynth.mechanisms.local.report_files import (
    aggregate_dask,
    aggregate_files,
    perturb_file,
    read_reports,
    write_reports,
)
from dpppsynth.mechanisms.local.reports import Counts, Report, Reports
from dpppsynth.mechanisms.local.synthesizer import CellMechanism, counts_from_dict
from dpppsynth.mechanisms.local.synthesizer import LocalMechanism as Mechanism
from dpppsynth.mechanisms.local.trajectories import (
    GridTrajectories,
    PointsBudget,
    TraceCounts,
    TraceModel,
    TraceReports,
    Trajectories,
    points_budget,
    random_trajectories,
)
from dpppsynth.mechanisms.local.trajectory_synthesizer import CombinedTraces, LDPTrace
from dpppsynth.spatial.transport import sinkhorn2, sliced_wasserstein, wasserstein2

__all__ = [
    "AdaptiveCounts",
    "AdvancedAdaptiveGrid",
    "CellMechanism",
    "CentralAdaptiveGrid",
    "CentralEstimate",
    "CentralUniformGrid",
    "CombinedTraces",
    "Counts",
    "DiskAreaMechanism",
    "GridCounts",
    "GridTrajectories",
    "HybridUniformExponential",
    "LDPTrace",
    "Mechanism",
    "MultidimensionalSquareWave",
    "PointsBudget",
    "PrivAG",
    "Report",
    "Reports",
    "SEMGeoI",
    "SecondRound",
    "TraceCounts",
    "TraceModel",
    "TraceReports",
    "Trajectories",
    "UniformGrid",
    "aggregate_dask",
    "aggregate_files",
    "average_query_error",
    "constant_density_answers",
    "counts_from_dict",
    "grid_radius",
    "optimal_radius",
    "perturb_file",
    "points_budget",
    "query_workload",
    "random_trajectories",
    "read_reports",
    "sinkhorn2",
    "sliced_wasserstein",
    "wasserstein2",
    "write_reports",
    "zero_answers_error",
]
