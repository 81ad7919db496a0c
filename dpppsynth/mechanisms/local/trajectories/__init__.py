"""Trajectories of persons, LDPTrace's reports about them, and the random walks fitted to these.

* `Trajectories`, points in the order of their visits; `GridTrajectories`, of which only the cells of a grid are known.
* `TraceProtocol`, two rounds of reports; `TraceRound`, what clients are asked in one, with `TraceReports`, which they
  send, and `TraceCounts`, which an aggregator keeps.
* `TraceModel`, the walks behind the counts: expected visits, an intensity, synthetic trajectories.
"""

from dpppsynth.mechanisms.local.trajectories.grid_trajectories import GridTrajectories
from dpppsynth.mechanisms.local.trajectories.model import TraceModel
from dpppsynth.mechanisms.local.trajectories.point_trajectories import (
    PointsBudget,
    Trajectories,
    points_budget,
    random_trajectories,
)
from dpppsynth.mechanisms.local.trajectories.protocol import TraceProtocol
from dpppsynth.mechanisms.local.trajectories.rounds import TraceCounts, TraceReports, TraceRound

__all__ = [
    "GridTrajectories",
    "PointsBudget",
    "TraceCounts",
    "TraceModel",
    "TraceProtocol",
    "TraceReports",
    "TraceRound",
    "Trajectories",
    "points_budget",
    "random_trajectories",
]
