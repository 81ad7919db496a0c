"""`TraceRound`, one round of LDPTrace with clients and an aggregator, and trajectories in files of points."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.core.arguments import instance
from dpppsynth.core.errors import InputError
from dpppsynth.core.progress import Progress, Step
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.mechanisms.local.bound import local_round
from dpppsynth.mechanisms.local.point_files import PointFile, person_rows, point_batches
from dpppsynth.mechanisms.local.reports import Counts, Report, Reports
from dpppsynth.mechanisms.local.synthesizer import LocalMechanism, require_window
from dpppsynth.mechanisms.local.trajectories.paths import GridTrajectories, starts
from dpppsynth.mechanisms.local.trajectories.protocol import RoundLaw
from dpppsynth.mechanisms.local.trajectory_statistic import grid_mesh, grid_values
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.profiles import PureDP
from dpppsynth.privacy.relations import TRAJECTORY, Local, Relation
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Ints
from dpppsynth.spatial.patterns import PointPattern

# Cells of trajectories that are looked at together, each some 100 bytes while jumps are filled in.
FILLED = 2**19


@dataclass(frozen=True, eq=False, repr=False)
class TraceRound(LocalMechanism):
    """One round of LDPTrace, with clients and an aggregator; `LDPTrace.first` and `LDPTrace.second` make it.

    Attributes
    ----------
    law : RoundLaw
    user : str or None
        Column that tells trajectories, whose points are in the order of the rows; None where every point is one.
    """

    law: RoundLaw
    user: str | None = None

    def __repr__(self) -> str:
        about = "cells and moves" if self.law.moving else "lengths"
        return f"TraceRound(about {about}, {self.law!r})"

    @property
    def randomizer(self) -> RoundLaw:
        return self.law

    @property
    def cells(self) -> int:
        """Cells along each side of the grid."""
        return self.law.cells

    @property
    def longest(self) -> int:
        """Longest trajectory that the round is about."""
        return self.law.longest

    @property
    def guarantee(self) -> Guarantee:
        """Pure epsilon of this round alone."""
        return local_round(self.law)

    def neighbouring(self) -> Relation:
        return Local(TRAJECTORY)

    def _ceiling(self, domain: Domain, **options: Any) -> PureDP:
        return PureDP(self.law.spent)

    def trajectory_values(self, trajectories: GridTrajectories) -> Ints:
        """(T, reports) values of the clients with these trajectories."""
        return np.concatenate(list(self.law.about(trajectories).values()), axis=1)

    def client(self, place: GridTrajectories, rng: RngLike = None) -> Report:
        """One person's reports, as one message, about a single trajectory."""
        if len(instance("place", place, GridTrajectories, "of one trajectory")) != 1:
            msg = "place: a client has one trajectory."
            raise InputError(msg)
        return next(iter(self.clients(place, rng)))

    def clients(self, values: GridTrajectories, rng: RngLike = None) -> Reports:
        """Reports of clients, each from their own trajectory; `rng` as in `client`."""
        rows = self.law.draw(self.trajectory_values(values), generator(rng))
        return Reports(self.fingerprint, self.law.columns, rows, rng is not None)

    def simulate(self, trajectories: GridTrajectories, rng: RngLike = None, *, fast: bool = False) -> Counts:
        """Counts of what so many clients would report, with little memory.

        Parameters
        ----------
        trajectories : GridTrajectories
        rng : None, int or Generator
        fast : bool
            Draw the counts themselves, from binomial distributions in floating point: for studies. The law is the same
            to rounding, but no integer weights certify it, so the counts are marked as seeded.
        """
        counts = self.law.tally(self.law.about(trajectories), generator(rng), fast=fast)
        return Counts(self, counts, len(trajectories), fast or rng is not None)

    def plan(self, *_: Any, **__: Any) -> ReleasePlan:
        """Refused: one round alone is no release."""
        msg = "plan: one round of LDPTrace is no release; combine() both rounds' counts."
        raise InputError(msg)


def walk_values(
    points: PointFile,
    mechanism: Any,
    window: Window,
    source: np.random.Generator,
    *,
    user: str | None,
    rows: int,
    progress: Progress,
) -> Iterator[tuple[Ints, float | None]]:
    """Values of the clients with the trajectories of a file, in a random order, some at a time; and the share given.

    The mechanism is a `TraceRound` or `LineTrace`. Rows and cells of all points are held in memory, not coordinates.
    """
    walks = _walks(points, mechanism.cells, require_window(window), source, user=user, rows=rows, progress=progress)
    if walks is None:
        return
    # Reports leave in groups whose sizes are public: those of a Parquet file would tell lengths otherwise.
    step = mechanism.randomizer.at_once(rows)
    longest = mechanism.longest if isinstance(mechanism, TraceRound) else 0
    for first in range(0, len(walks), step):
        last = min(first + step, len(walks))
        parts = walks.parts(first, last, longest)
        yield np.concatenate([mechanism.trajectory_values(part) for part in parts]), last / len(walks)


@dataclass(frozen=True, eq=False)
class Walks:
    """The cells of all trajectories of a file, in few bytes."""

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
