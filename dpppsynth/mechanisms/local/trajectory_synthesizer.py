"""LDPTrace as a mechanism: clients and aggregator in two rounds, and its releases."""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.settings import EPSILON, PRIVACY, ParsedOptions, setting
from dpppsynth.contract.synthesizer import Synthesizer
from dpppsynth.core.arguments import instance, whole
from dpppsynth.core.errors import InformationWarning, InputError, outside
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.mechanisms.local.bound import local_round, local_trajectories
from dpppsynth.mechanisms.local.release import TraceEstimator, TraceRelease
from dpppsynth.mechanisms.local.reports import Counts, Report, Reports
from dpppsynth.mechanisms.local.saved_counts import first_counts
from dpppsynth.mechanisms.local.statistic import SHUFFLE_DELTA, SHUFFLED, Shuffle
from dpppsynth.mechanisms.local.synthesizer import LocalMechanism, ReportSettings, number_of_reports, require_window
from dpppsynth.mechanisms.local.trajectories.paths import GridTrajectories
from dpppsynth.mechanisms.local.trajectories.protocol import RoundLaw, TraceCounts, TraceProtocol
from dpppsynth.mechanisms.local.trajectories.walks import TraceModel
from dpppsynth.mechanisms.local.trajectory_statistic import (
    TraceStatistic,
    checked_user,
    number_of_trajectories,
)
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.profiles import PureDP
from dpppsynth.privacy.relations import TRAJECTORY, Local, Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Ints
from dpppsynth.spatial.patterns import PointPattern


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
        """Counts of the reports of clients with these trajectories, with little memory.

        Parameters
        ----------
        trajectories : GridTrajectories
        rng : None, int or Generator
        fast : bool
            Draw the counts themselves, from binomial distributions in floating point: for studies. The law is the same
            to rounding, but no integer weights certify it, so the counts are marked as seeded.
        """
        counts = self.law.tally_about(self.law.about(trajectories), generator(rng), fast=fast)
        return Counts(self, counts, len(trajectories), fast or rng is not None)

    def plan(self, *_: Any, **__: Any) -> ReleasePlan:
        """Refused: one round alone is no release."""
        msg = "plan: one round of LDPTrace is no release; combine() both rounds' counts."
        raise InputError(msg)


class OfTrajectories(ReportSettings, Synthesizer[TraceRelease]):
    """Base of mechanisms whose clients report about one trajectory each."""

    epsilon: float
    user: str | None
    shuffled: int | None
    # Name on certificates.
    basis: ClassVar[str]

    def neighbouring(self) -> Relation:
        return Local(TRAJECTORY)

    @classmethod
    def relation_from(cls, options: ParsedOptions) -> Relation:
        return Local(TRAJECTORY)

    @classmethod
    def number_in(cls, options: ParsedOptions, pattern: PointPattern) -> int:
        return number_of_trajectories(pattern, cls.user_column(options))

    def reporters(self, asked: Any, user: str) -> str:
        when = "" if asked is self else " in this round"
        return f"One report for each person of the column {user!r}{when}, about all of their rows in their order."

    @property
    def labels_tell_n(self) -> bool:
        return self.user is not None

    @property
    def fewest(self) -> int:
        return self.shuffled or 1

    def number_of(self, pattern: PointPattern) -> int:
        """Number of trajectories of a pattern with rows in the order of visits, whose only mark is `user`."""
        return number_of_trajectories(pattern, self.user)


@dataclass(frozen=True)
class LDPTrace(OfTrajectories):
    """Synthetic trajectories from clients who each randomise their own reports, in two rounds.

    Where real clients report, `first` is what they are asked, then `second(longest(counts))`; both have `clients` and
    `aggregate`, and `combine` makes a release of the counts. A custodian who holds the points runs `release(pattern)`.

    Parameters
    ----------
    epsilon : float
        Budget of a trajectory: of a person, who has one.
    cells : int
        Cells along each side of a grid over the window's bounding box.
    max_length : int
        Public: longer trajectories are cut to it.
    user : str or None
        Of patterns: the mark that tells trajectories, whose points are in the order of the rows. None takes every point
        for a trajectory of its own.
    shuffled, shuffle_delta : int and float, optional
        Least number of honest persons whose messages an honest shuffler mixes in each round, for a second statement
        beside the local bound, and its delta.

    References
    ----------
    Du, Hu, Zhang, Fang, Chen, Zheng & Gao (2023), LDPTrace: locally differentially private trajectory synthesis, PVLDB.

    Examples
    --------
    >>> mechanism = LDPTrace(epsilon=2.0, cells=3, max_length=20)
    >>> walks = GridTrajectories(3, [0, 1, 4, 8] * 500, list(range(0, 2001, 4)))
    >>> model = mechanism.estimate(*mechanism.simulate(walks, rng=1))
    >>> model.expected_visits.shape, len(model.synthesize(7, rng=1))
    ((3, 3), 7)
    """

    epsilon: float = setting(**EPSILON)
    _: KW_ONLY
    basis: ClassVar[str] = TraceStatistic.basis
    cells: int = setting(help="Number of cells along each side of the grid", example="8")
    max_length: int = setting(200, help="Cells of a trajectory, beyond which it is cut")
    user: str | None = setting(
        "trajectory", help="Column that tells whose point a row is", metavar="COLUMN", panel=PRIVACY
    )

    shuffled: int | None = setting(None, **SHUFFLED)
    shuffle_delta: float | None = setting(None, **SHUFFLE_DELTA)
    rounds: ClassVar[str] = "Every person reports in both rounds, each of which spends its own share of the budget."

    def __post_init__(self) -> None:
        Shuffle.of(self.shuffled, self.shuffle_delta)
        # Laws that integers cannot express are refused at once.
        settled = self.protocol
        for name in ("epsilon", "cells", "max_length"):
            object.__setattr__(self, name, getattr(settled, name))
        checked_user(self.user)

    @property
    def protocol(self) -> TraceProtocol:
        """The protocol: the budget split between the rounds."""
        return TraceProtocol(epsilon=self.epsilon, cells=self.cells, max_length=self.max_length)

    @property
    def first(self) -> TraceRound:
        """The round about lengths, with clients and an aggregator of its own; also for files of reports."""
        return TraceRound(self.protocol.first, self.user)

    def second(self, longest: int) -> TraceRound:
        """The round about cells and moves of trajectories cut to the length that `longest` found."""
        return TraceRound(self.protocol.second(longest), self.user)

    def longest(self, lengths: Counts) -> int:
        """The smallest length that holds 90 % of the estimated lengths; it is announced to all clients."""
        return self.protocol.longest(_answers("lengths", lengths, self.protocol.first))

    def asked(self, domain: Any, n: int | None, after: str | None) -> Any:
        if after is None:
            return self.first
        return self.second(self.longest(first_counts(after, self.first, domain)))

    def combined(self, domain: Any, n: int | None, after: str, counts: Any) -> Any:
        return self.combine(first_counts(after, self.first, domain), counts, n)

    def both_rounds(self) -> Guarantee:
        return self.guarantee

    def promise(self, asked: Any, domain: Domain, n: int | None) -> Guarantee:
        """Guarantee of the round asked for."""
        promised: Guarantee = asked.guarantee
        return promised

    def simulate(
        self, trajectories: GridTrajectories, rng: RngLike = None, *, fast: bool = False
    ) -> tuple[Counts, Counts]:
        """Counts of both rounds with these clients; arguments as of `TraceRound.simulate`."""
        source = None if rng is None else generator(rng)
        lengths = self.first.simulate(trajectories, source, fast=fast)
        return lengths, self.second(self.longest(lengths)).simulate(trajectories, source, fast=fast)

    def answers(self, lengths: Counts, mobility: Counts) -> tuple[TraceCounts, TraceCounts]:
        """Counts of both rounds, checked; InputError where the second is not the one announced."""
        first = _answers("lengths", lengths, self.protocol.first)
        return first, _answers("mobility", mobility, self.protocol.announced(first))

    def estimate(self, lengths: Counts, mobility: Counts) -> TraceModel:
        """The model estimated from the counts of both rounds; InputError where the second is not the one announced."""
        return self.protocol.model(*self.answers(lengths, mobility))

    def combine(self, lengths: Counts, mobility: Counts, n: int | None = None) -> "CombinedTraces":
        """Counts of both rounds together.

        Parameters
        ----------
        lengths, mobility : Counts
            Of the first and the second round.
        n : int, optional
            Public number of trajectories that the result stands for; as many as reported in the fuller round unless
            given. Fewer persons than that may report in either round.
        """
        return CombinedTraces(self, lengths, mobility, _fuller(lengths, mobility) if n is None else n)

    @property
    def guarantee(self) -> Guarantee:
        """Pure epsilon for a person's whole trajectory, its length included."""
        return local_trajectories(self.protocol)

    def plan(
        self, domain: Domain, *, n: int | None = None, expected_n: float | None = None, clients: Any = None
    ) -> ReleasePlan:
        """Make the release plan from public parameters alone.

        Parameters
        ----------
        domain, n, expected_n
            As in `check`; n is the public number of trajectories.
        clients : (int, int), optional
            Number of persons who report in either round; all of them unless given.
        """
        window, number = require_window(domain), number_of_reports(n, expected_n)
        split: dict[str, Any] = {"clients": clients, "user": self.user, "shuffle": self.shuffle}
        plan = TraceStatistic(window, self.epsilon, self.cells, self.max_length, number, **split)
        return ReleasePlan(plan.basis, plan, TraceEstimator())


@dataclass(frozen=True, eq=False, repr=False)
class CombinedTraces:
    """Counts of both rounds; `LDPTrace.combine` makes it.

    Attributes
    ----------
    mechanism : LDPTrace
    lengths, mobility : Counts
        Of the first and the second round.
    n : int
        Public number of trajectories.
    """

    mechanism: LDPTrace
    lengths: Counts
    mobility: Counts
    n: int

    def __post_init__(self) -> None:
        instance("mechanism", self.mechanism, LDPTrace)
        least = _fuller(self.lengths, self.mobility)
        self.mechanism.answers(self.lengths, self.mobility)
        if self.mobility.n > self.lengths.n:
            msg = (
                "mobility: more reports of the second round than of the first; everybody reports once in each, and a "
                "second report of a person spends the budget again."
            )
            warnings.warn(msg, InformationWarning, stacklevel=outside())
        remedy = "it is the number of trajectories, and as many persons reported in one round"
        object.__setattr__(self, "n", whole("n", self.n, least, most=2**53, remedy=remedy))

    def __repr__(self) -> str:
        return f"CombinedTraces({self.n} trajectories of {self.mechanism!r})"

    @property
    def model(self) -> TraceModel:
        """Model of random walks estimated from the counts, which does not depend on where the window is."""
        return self.mechanism.protocol.model(*self.mechanism.answers(self.lengths, self.mobility), n=self.n)

    def release(self, domain: Any) -> TraceRelease:
        """Private intensity, certificate, synthetic patterns and trajectories.

        Parameters
        ----------
        domain : Window
            Window whose grid the trajectories are on.
        """
        plan = self.mechanism.plan(domain, n=self.n, clients=(self.lengths.n, self.mobility.n))
        measurement: Any = plan.statistic
        both, seeded = self.mechanism.answers(self.lengths, self.mobility), self.lengths.seeded or self.mobility.seeded
        return TraceRelease(plan.mechanism, measurement.counted(*both, seeded=seeded), TraceEstimator())


def _fuller(lengths: Counts, mobility: Counts) -> int:
    """Number of persons who reported in the fuller round."""
    return max(instance("lengths", lengths, Counts).n, instance("mobility", mobility, Counts).n)


def _answers(name: str, counts: Any, law: RoundLaw) -> TraceCounts:
    """Counts of a round, checked to be of reports to it."""
    given: Counts = instance(name, counts, Counts, "aggregate() and simulate() of a round give some")
    if given.mechanism.fingerprint != law.fingerprint:
        msg = (
            f"{name}: are counts of another round; those of `first`, and of the second that was announced, are needed."
        )
        raise InputError(msg)
    return TraceCounts(law, law.counts_of(given.values, given.n), given.n)
