"""Files of reports about trajectories: rounds of LDPTrace as rows of words; trajectories in files of points."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np

from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.core.arguments import instance
from dpppsynth.core.errors import InputError
from dpppsynth.core.progress import Progress, Step
from dpppsynth.mechanisms.local.bound import local_round
from dpppsynth.mechanisms.local.point_files import PointFile, person_rows, point_batches
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer
from dpppsynth.mechanisms.local.reports import Counts, Reports
from dpppsynth.mechanisms.local.synthesizer import LocalMechanism, require_window
from dpppsynth.mechanisms.local.trajectories.paths import GridTrajectories, starts
from dpppsynth.mechanisms.local.trajectories.protocol import TraceCounts, TraceReports, TraceRound
from dpppsynth.mechanisms.local.trajectory_statistic import grid_mesh, grid_values
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.profiles import PureDP
from dpppsynth.privacy.relations import TRAJECTORY, Local, Relation
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Ints
from dpppsynth.spatial.patterns import PointPattern

# Cells of trajectories that are looked at together, each some 100 bytes while jumps are filled in.
FILLED = 2**19


class Walkers(Protocol):
    """Mechanism whose clients report about one trajectory each."""

    @property
    def cells(self) -> int:
        """Cells along each side of the grid."""

    @property
    def randomizer(self) -> Randomizer:
        """The client's law."""

    def trajectory_values(self, trajectories: GridTrajectories) -> Any:
        """(T,) or (T, questions) values of the clients with these trajectories."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundLaw(Randomizer):
    """All reports of a client in one round of LDPTrace, side by side in a row.

    A value is a row as well: what each report is about. Counts are those of all parts, one after the other.

    Attributes
    ----------
    epsilon : float
        Of each report; `spent` is that of the row.
    cells, longest, moving
        As of `TraceRound`.
    """

    cells: int
    longest: int
    moving: bool
    kind: ClassVar[str] = "trace-round"

    @cached_property
    def round(self) -> TraceRound:
        """The round."""
        return TraceRound(self.cells, self.longest, self.epsilon, self.moving)

    @cached_property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the words of all reports."""
        return tuple(
            f"{part.name}_{k}_{word}" if part.times > 1 else f"{part.name}_{word}"
            for part in self.round.parts
            for k in range(part.times)
            for word in part.randomizer.columns
        )

    @property
    def size(self) -> int:
        """Number of counts."""
        return self.round.size

    @property
    def spent(self) -> float:
        return local_round(self.round).epsilon()

    def draw(self, values: Ints, rng: np.random.Generator) -> Ints:
        """(n, columns) reports of clients with the given values (n, reports)."""
        parts, questions = self.round.parts, np.cumsum([each.times for each in self.round.parts])
        asked = np.split(values, questions[:-1], axis=1)
        drawn = (part.randomizer.draw(about.ravel(), rng) for part, about in zip(parts, asked, strict=True))
        return np.concatenate([words.reshape(len(values), -1) for words in drawn], axis=1)

    def count(self, reports: Ints) -> Ints:
        """(size,) counts of reports (n, columns)."""
        rows, parts = self.rows(reports), self.round.parts
        widths = np.cumsum([each.times * len(each.randomizer.columns) for each in parts])
        words = zip(parts, np.split(rows, widths[:-1], axis=1), strict=True)
        counts = [
            part.randomizer.count(each.reshape(len(rows) * part.times, len(part.randomizer.columns)))
            for part, each in words
        ]
        return np.concatenate(counts)

    def counts_of(self, counts: Any, n: int) -> Ints:
        return TraceCounts.of(self.round, n, self.tallies(counts)).flat


@dataclass(frozen=True, repr=False)
class FiledRound(LocalMechanism):
    """One round of LDPTrace for files of reports; `LDPTrace.filed` makes it.

    Attributes
    ----------
    round : TraceRound
    user : str or None
        Column that tells trajectories, whose points are in the order of the rows; None where every point is one.
    """

    round: TraceRound
    user: str | None = None

    def __repr__(self) -> str:
        return repr(self.round)

    @property
    def cells(self) -> int:
        """Cells along each side of the grid."""
        return self.round.cells

    @cached_property
    def randomizer(self) -> RoundLaw:
        asked = instance("round", self.round, TraceRound)
        return RoundLaw(epsilon=asked.epsilon, cells=asked.cells, longest=asked.longest, moving=asked.moving)

    @property
    def guarantee(self) -> Guarantee:
        """Pure epsilon of this round alone."""
        return local_round(self.round)

    def neighbouring(self) -> Relation:
        return Local(TRAJECTORY)

    def _ceiling(self, domain: Domain, **options: Any) -> PureDP:
        return PureDP(self.guarantee.epsilon())

    def trajectory_values(self, trajectories: GridTrajectories) -> Ints:
        """(T, reports) values of the clients with these trajectories."""
        values = self.round.values(trajectories)
        return np.concatenate([values[each.name] for each in self.round.parts], axis=1)

    def plan(self, *_: Any, **__: Any) -> ReleasePlan:
        """Refused: one round alone is no release."""
        msg = "plan: one round of LDPTrace is no release; combine() both rounds' counts."
        raise InputError(msg)


def traced(counts: Any) -> Any:
    """Counts of files of one round as `TraceCounts`; anything else as it is."""
    if not isinstance(counts, Counts) or not isinstance(counts.mechanism, FiledRound):
        return counts
    return TraceCounts.of(counts.mechanism.round, counts.n, counts.values, seeded=counts.seeded)


def in_rows(reports: Any) -> Any:
    """Reports to one round of LDPTrace as rows of words, one a person; anything else as it is."""
    if not isinstance(reports, TraceReports):
        return reports
    filed = FiledRound(reports.round)
    words = [reports.words[part.name].reshape(reports.n, -1) for part in reports.round.parts]
    rows = np.concatenate(words, axis=1)
    return Reports(filed.fingerprint, tuple(filed.randomizer.columns), rows, reports.seeded)


def walk_values(
    points: PointFile,
    mechanism: Walkers,
    window: Window,
    source: np.random.Generator,
    *,
    user: str | None,
    rows: int,
    progress: Progress,
) -> Iterator[tuple[Ints, float | None]]:
    """Values of the clients with the trajectories of a file, in a random order, some at a time; and the share given.

    Rows and cells of all points are held in memory, coordinates are not. Parameters as of `perturb_file`.

    Raises
    ------
    InputError
        As `perturb_file`.
    """
    walks = _walks(points, mechanism.cells, require_window(window), source, user=user, rows=rows, progress=progress)
    if walks is None:
        return
    # Reports leave in groups whose sizes are public: those of a Parquet file would tell lengths otherwise.
    step = mechanism.randomizer.at_once(rows)
    longest = mechanism.round.longest if isinstance(mechanism, FiledRound) else 0
    for first in range(0, len(walks), step):
        last = min(first + step, len(walks))
        parts = walks.parts(first, last, longest)
        yield np.concatenate([mechanism.trajectory_values(part) for part in parts]), last / len(walks)


@dataclass(frozen=True, eq=False)
class Walks:
    """The cells of all trajectories of a file, in few bytes.

    Attributes
    ----------
    cells : int
        Along each side of the grid.
    values : (n,) array of unsigned int
    offsets : (T + 1,) array of int
        As of `GridTrajectories`.
    """

    cells: int
    values: Any
    offsets: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def parts(self, first: int, last: int, longest: int) -> Iterator[GridTrajectories]:
        """Trajectories from number `first` to before number `last`, some at a time.

        As many as have `FILLED` cells, where jumps are filled in until there are `longest`; a longer one by itself.
        """
        lengths = np.diff(self.offsets[first : last + 1])
        filled = np.cumsum(lengths + np.minimum(longest, lengths * self.cells))
        cuts = [0]
        while cuts[-1] < len(lengths):
            before = filled[cuts[-1] - 1] if cuts[-1] else 0
            cuts.append(max(cuts[-1] + 1, int(np.searchsorted(filled, before + FILLED, side="right"))))
        for a, b in pairwise(first + np.array(cuts)):
            values = self.values[self.offsets[a] : self.offsets[b]]
            yield GridTrajectories(self.cells, values, self.offsets[a : b + 1] - self.offsets[a])


def _walks(
    points: PointFile,
    cells: int,
    window: Window,
    source: np.random.Generator,
    *,
    user: str | None,
    rows: int,
    progress: Progress,
) -> Walks | None:
    """The cells of all trajectories of a file, in a random order; None where it has no rows."""
    mesh = grid_mesh(window, cells)
    value = grid_values(mesh, cells).astype(np.min_scalar_type(cells**2 - 1))
    read = []
    for xy in point_batches(points, rows):
        read.append(value[mesh.locate(PointPattern(xy, window).positions)])
        progress(Step("reading points", points.share))
    if not read:
        return None
    found = np.concatenate(read)
    del read
    codes = np.arange(len(found)) if user is None else person_rows(points, user, rows=rows, progress=progress)[0]
    if len(codes) != len(found):
        msg = f"points: {points.name} changed while it was read; let nothing write to it meanwhile."
        raise InputError(msg)
    lengths = np.bincount(codes)
    place = source.permutation(len(lengths))
    lengths[place] = lengths.copy()
    codes = place.astype(np.min_scalar_type(len(place)))[codes]
    order = np.argsort(codes, kind="stable")
    return Walks(cells, found[order], starts(lengths))
