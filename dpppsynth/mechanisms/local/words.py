"""Text on the local mechanisms, beside that on local privacy itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from dpppsynth.contract.result import Result
from dpppsynth.contract.words import MechanismWords
from dpppsynth.mechanisms.local.statistic import ReportsStatistic
from dpppsynth.mechanisms.local.trajectory_statistic import TraceStatistic

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
        """Number of all reports."""
        return f"{sum(sum(plan.parameters().get('reports', [plan.n])) for plan in plans):,}, a public number"


class TrajectoryWords(MechanismWords[TraceStatistic, Result]):
    """Text on reports of each person's trajectory."""

    def reports(self, plans: Sequence[TraceStatistic]) -> str | None:
        """Number of each person's reports."""
        (plan,) = plans
        return f"{plan.parameters()['longest'] + 2} from each of {max(plan.clients):,} persons, both public numbers"


def _reported(description: str) -> ReportWords:
    return ReportWords(description=f"{OWN}: {description} {TOGETHER}")


DISK_AREA = _reported("it names a square of a public grid, most likely one near their own.")
HYBRID_AREA = _reported("it names a square of a public grid, likelier ones being nearer to their own.")
SQUARE_WAVE = _reported("it names a row or a column of a public grid, most likely one near their own.")
SUBSET_EXPONENTIAL = _reported("it names a few squares of a public grid, likelier ones being nearer to their own.")
UNIFORM_GRID = _reported("a noisy answer to which square of a public grid they are in.")
ADAPTIVE_GRID = _reported(
    "some were noisy answers about the large squares of a public grid, all others about smaller squares, finer where "
    "the first answers had found more people."
)
RANGE_HIERARCHY = _reported(
    "a noisy answer to which square of a public grid they are in; how large the squares were was drawn at random."
)
TRAJECTORIES = TrajectoryWords(
    description="Every person's trajectory was turned into random reports on its own: first a noisy answer to how long "
    "it is; then, for a length announced to all, noisy answers to where it starts, where it ends and which moves it "
    "makes between the squares of a public grid. Random walks were fitted to all reports together. The synthetic "
    "points were drawn from where such walks are expected to pass.",
    intensity="expected visits of the walks",
)
DISPLACEMENTS = ReportWords(
    description="Every person's trajectory was turned into one random report on its own: a square of a public grid, "
    "most likely one near where it starts, or a noisy answer to the direction and the distance from its start to its "
    "end; which of the two was drawn at random. Straight lines were fitted to all reports together. The synthetic "
    "points were drawn from where such lines are expected to pass.",
    intensity="expected visits of the lines",
    counts="points",
)
