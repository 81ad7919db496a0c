"""Options of local mechanisms: the window, and refusals of what has no use for single reports."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from dpppsynth.contract.mechanism_options import NO_CAP, NO_RADIUS, NO_RELATION, Given, MechanismOptions, require_window
from dpppsynth.contract.settings import Setting
from dpppsynth.contract.statistic import measured_number
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local.cell_synthesizers import (
    DiskAreaMechanism,
    HybridUniformExponential,
    MultidimensionalSquareWave,
    RangeHierarchy,
    SEMGeoI,
)
from dpppsynth.mechanisms.local.displacements import LineTrace
from dpppsynth.mechanisms.local.grid_synthesizer import AdvancedAdaptiveGrid, PrivAG, UniformGrid
from dpppsynth.mechanisms.local.one_report import require_told
from dpppsynth.mechanisms.local.report_files import require_place_columns
from dpppsynth.mechanisms.local.report_tables import new_file
from dpppsynth.mechanisms.local.saved_counts import counts_in
from dpppsynth.mechanisms.local.statistic import Shuffle
from dpppsynth.mechanisms.local.synthesizer import number_of_reports
from dpppsynth.mechanisms.local.trajectory_statistic import number_of_trajectories
from dpppsynth.mechanisms.local.trajectory_synthesizer import LDPTrace
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import GeoIndistinguishability, Local, Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.patterns import PointPattern

# Mark under which a ledger knows the persons of one round.
ROUND = "reporting round"
# Argument that names the first round's counts.
AFTER = "after"
NO_GRID = Setting(name="grid", option="--cells", kind=int, help="Cells", hidden=True)


class ReportOptions(MechanismOptions):
    """Options of mechanisms whose clients send one report each, all at once."""

    extra: ClassVar[tuple[Setting, ...]] = (NO_RELATION, NO_RADIUS, NO_CAP)
    reports: ClassVar[bool] = True

    def require(self, given: Given) -> None:
        """Refuse options of other promises than that to the sender of one report; InputError."""
        what = "geo-indistinguishability" if self.settings is SEMGeoI else "local privacy"
        given.require_none("relation", f"{given.called} promises {what} of every report; leave --relation out")
        given.require_none("privacy_radius", f"{given.called} has no privacy radius; leave --alpha out")
        if given["max_points_per_person"] not in (None, 1):
            msg = (
                "max_points_per_person: under local privacy a person sends one report, about one point; leave "
                "--max-points-per-person out, and name the column that tells persons, --user COLUMN"
            )
            raise InputError(msg)
        super().require(given)

    def require_files(
        self, points: Path, reports: Path, domain: Any, *, user: str | None = None, **layout: Any
    ) -> None:
        """Refuse a file of reports that exists, and a file of points with other columns or CRS; InputError."""
        new_file(reports, "out")
        require_place_columns(points, user=user, window=domain, **layout)

    def require_drawn(self, made: Any, domain: Domain, n: int | None, drawn: int) -> None:
        """Refuse more reports than persons, and fewer than a shuffler is said to mix; InputError."""
        if n is not None and drawn > n:
            msg = f"n: more persons report in this round than the {n} it says; give the public number of all of them"
            raise InputError(msg)
        made.plan(domain, n=n or drawn)
        shuffle = Shuffle.of(made.shuffled, made.shuffle_delta)
        if shuffle is not None:
            # A round may have fewer persons than its share of n.
            shuffle.require(n or drawn, drawn)

    def require_columns(self, given: Given, columns: Iterable[str], name: str) -> None:
        """Refuse a file with a column that may tell persons, where nobody says whether it does; InputError."""
        require_told(columns, self.user(given), name)

    def require_people(self, given: Given, n: int | None, by: str | None) -> None:
        """Refuse marks: whoever reports at a level would tell it; InputError."""
        if by is not None:
            msg = "by: local methods have one report for each person, and no marks; leave --by out"
            raise InputError(msg)

    def objects(self, given: Given, domain: Domain) -> dict[str, Any]:
        """The window, where the mechanism is made for one."""
        window = require_window(
            domain,
            "local methods divide a window into cells; give --window or --window-file, or take --method laplace or "
            "lgcp along the streets",
        )
        return {"window": window} if "window" in getattr(self.settings, "__dataclass_fields__", {}) else {}

    def relation(self, given: Given) -> Relation:
        """The promise to the sender of a report, whatever the domain."""
        if self.settings is not SEMGeoI:
            return Local(user=self.user(given))
        cells = SEMGeoI.cells if given["cells"] is None else given["cells"]
        return GeoIndistinguishability(cells, user=self.user(given))

    def user(self, given: Given) -> str | None:
        """The column that tells persons, each of whom sends one report; None where every row does."""
        user: str | None = given["user"]
        return user

    def number(self, given: Given, pattern: PointPattern) -> int:
        """The number of persons."""
        return measured_number(self.relation(given), pattern)


class UniformOptions(ReportOptions):
    """Options of a uniform grid, whose side follows from the number of persons."""

    def synthesizer(self, given: Given, domain: Domain, n: int | None = None) -> Any:
        """The mechanism, of the rule's side where n is known and no side given."""
        if given["cells"] is not None or n is None:
            return super().synthesizer(given, domain, n)
        settings = {**self.plain(given), **self.objects(given, domain)}
        return UniformGrid.sized(settings.pop("window"), n=n, **settings)


class HierarchyOptions(ReportOptions):
    """Options of a hierarchy, whose finest level follows from the number of persons."""

    def synthesizer(self, given: Given, domain: Domain, n: int | None = None) -> Any:
        """The mechanism, of the rule's finest level where n is known and no side given."""
        if given["cells"] is not None or n is None:
            return super().synthesizer(given, domain, n)
        settings = {**self.plain(given), **self.objects(given, domain)}
        return RangeHierarchy.sized(settings.pop("epsilon"), n=n, **settings)


class AdaptiveOptions(ReportOptions):
    """Options of grids in two rounds, the second made from the first one's reports."""

    extra: ClassVar[tuple[Setting, ...]] = (*ReportOptions.extra, NO_GRID)
    rounds: ClassVar[str] = "Every person reports in one of both rounds: draw none of the other round from this file."

    def reporting(self, made: Any, domain: Domain, n: int | None, after: str | None) -> Any:
        """The first round, or the second where the first one's counts are given."""
        persons = number_of_reports(n, None)
        first = made.first(persons)
        if after is None:
            return first
        return made.second(counts_in([after], first, window=made.own_window(domain), argument=AFTER), persons)

    def share(self, after: str | None) -> dict[str, str]:
        """The persons of one round: releases of all points have another n."""
        return {ROUND: "1" if after is None else "2"}

    def combined(self, made: Any, domain: Any, n: int | None, after: str, counts: Any) -> Any:
        """Counts of both rounds together."""
        return made.combine(counts_in([after], made.first(n), window=domain, argument=AFTER), counts, n)

    def require(self, given: Given) -> None:
        """Refuse a number of cells as well; InputError."""
        given.require_none("grid", f"{given.called} makes its grids by a rule; leave --cells out")
        super().require(given)


class TrajectoryOptions(ReportOptions):
    """Options of trajectories, each of which is a person's."""

    def relation(self, given: Given) -> Relation:
        """One person's trajectory is another one."""
        return MechanismOptions.relation(self, given)

    def user(self, given: Given) -> str | None:
        """The column that tells trajectories."""
        return given["user"] or LDPTrace.user

    def reporters(self, made: Any, asked: Any, user: str) -> str:
        """Words on reports about trajectories."""
        when = "" if asked is made else " in this round"
        return f"One report for each person of the column {user!r}{when}, about all of their rows in their order."

    def number(self, given: Given, pattern: PointPattern) -> int:
        """The number of trajectories."""
        return number_of_trajectories(pattern, self.user(given))


class RoundOptions(TrajectoryOptions):
    """Options of trajectories about which everybody reports in two rounds."""

    rounds: ClassVar[str] = "Every person reports in both rounds, each of which spends its own share of the budget."

    def reporting(self, made: Any, domain: Any, n: int | None, after: str | None) -> Any:
        """The first round, or the second where the first one's counts are given."""
        first = made.first
        return (
            first
            if after is None
            else made.second(made.longest(counts_in([after], first, window=domain, argument=AFTER)))
        )

    def combined(self, made: Any, domain: Any, n: int | None, after: str, counts: Any) -> Any:
        """Counts of both rounds together."""
        return made.combine(counts_in([after], made.first, window=domain, argument=AFTER), counts, n)

    def both_rounds(self, made: Any, asked: Any) -> Guarantee:
        """That of the mechanism."""
        both: Guarantee = made.guarantee
        return both

    def promise(self, made: Any, asked: Any, domain: Domain, n: int | None) -> Guarantee:
        """That of one round."""
        promised: Guarantee = asked.guarantee
        return promised


DISK_AREA = ReportOptions(DiskAreaMechanism, "disk-area")
HYBRID_AREA = ReportOptions(HybridUniformExponential, "hybrid-area")
SQUARE_WAVE = ReportOptions(MultidimensionalSquareWave, "square-wave")
SUBSET_EXPONENTIAL = ReportOptions(SEMGeoI, "sem-geo-i")
UNIFORM_GRID = UniformOptions(UniformGrid, "uniform-grid")
RANGE_HIERARCHY = HierarchyOptions(RangeHierarchy, "range-hierarchy")
PRIVAG = AdaptiveOptions(PrivAG, "privag")
AAG = AdaptiveOptions(AdvancedAdaptiveGrid, "aag")
TRAJECTORIES = RoundOptions(LDPTrace, "trajectories")
DISPLACEMENTS = TrajectoryOptions(LineTrace, "displacements")
