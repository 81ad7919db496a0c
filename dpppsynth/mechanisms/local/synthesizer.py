"""Base class of local mechanisms: a client, an aggregator, and the interface of synthesizers."""

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Self, cast

import numpy as np

from dpppsynth.contract import object_options
from dpppsynth.contract.audits.statistic_audit import OwnAudit
from dpppsynth.contract.registry import mechanism
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.settings import EPSILON, ParsedOptions, Settings, setting
from dpppsynth.contract.synthesizer import Synthesizer, require_true_lengths
from dpppsynth.core.arguments import flag, instance, one_of, plain_array, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.wording import mention
from dpppsynth.mechanisms.local.bound import local_report
from dpppsynth.mechanisms.local.client import everybody, held_in_box
from dpppsynth.mechanisms.local.one_report import REPORTER, one_point_each, require_told
from dpppsynth.mechanisms.local.randomizers.randomizer import (
    EM,
    FIELD,
    LEAST_SQUARES,
    Randomizer,
    fingerprint,
)
from dpppsynth.mechanisms.local.release import GridRelease, LocalRelease, ReportEstimator
from dpppsynth.mechanisms.local.reports import Counts, Report, Reports
from dpppsynth.mechanisms.local.statistic import SHUFFLE_DELTA, SHUFFLED, AreaStatistic, Shuffle
from dpppsynth.models.regular_meshes import regular_squares
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import Local, Relation, require_mark
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.grid_cells import cell_places
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern

# Mark under which a ledger knows the persons of one round.
ROUND = "reporting round"


class ReportSettings(Settings):
    """Settings of mechanisms whose clients send one report each, all at once or in rounds."""

    shuffled: int | None
    shuffle_delta: float | None
    reports: ClassVar[bool] = True
    # Who reports in which round, of those in two rounds.
    rounds: ClassVar[str] = ""
    refused: ClassVar[Mapping[str, str]] = {
        "relation": "promises local privacy of every report",
        "alpha": "has no privacy radius",
        "max_points_per_person": "lets a person send one report, about one point; name the column that tells persons, "
        "--user COLUMN",
    }

    @property
    def shuffle(self) -> Shuffle | None:
        """Public numbers of a shuffler; InputError where only one of both settings is given."""
        return Shuffle.of(self.shuffled, self.shuffle_delta)

    @classmethod
    def objects(cls, options: ParsedOptions, domain: Domain) -> dict[str, Any]:
        """The window, where the mechanism is made for one."""
        window = object_options.require_window(
            domain,
            "local methods divide a window into cells; give --window or --window-file, or take --method laplace or "
            "lgcp along the streets",
        )
        return {"window": window} if "window" in {each.name for each in fields(cast(Any, cls))} else {}

    @classmethod
    def relation_from(cls, options: ParsedOptions) -> Relation:
        return Local(user=cls.user_column(options))

    @classmethod
    def require_size(cls, options: ParsedOptions, n: int | None, by: str | None) -> None:
        """Refuse a mark of levels, which a report by level would reveal; InputError."""
        if by is not None:
            msg = "by: local methods have one report for each person, and no marks; leave --by out"
            raise InputError(msg)

    @classmethod
    def require_columns(cls, options: ParsedOptions, columns: Iterable[str], name: str) -> None:
        """Refuse a file with a column that may identify persons, unless the options say whether it does; InputError."""
        require_told(columns, cls.user_column(options), name)

    @classmethod
    def from_options(cls, options: ParsedOptions, domain: Domain, n: int | None = None) -> Self:
        """Settings with these options, and by the rule of `sized` where there is one, n is known and no side given."""
        sized = getattr(cls, "sized", None)
        if sized is None or n is None or options["cells"] is not None:
            return super().from_options(options, domain, n)
        made: Self = sized(n=n, **cls.plain(options), **cls.objects(options, domain))
        return made

    def asked(self, domain: Any, n: int | None, after: str | None) -> Any:
        """Mechanism that clients report to: this one, or the second round, after the counts of the first.

        Parameters
        ----------
        domain : Domain
        n : int or None
            Public number of persons of both rounds.
        after : str or None
            File of the first round's counts.

        Raises
        ------
        InputError
            Where there are no rounds and one is asked for, or n is missing.
        """
        if after is not None or n is not None:
            msg = f"{'n' if after is None else 'after'}: this mechanism has one round; leave --n and --after out"
            raise InputError(msg)
        return self

    def combined(self, domain: Any, n: int | None, after: str, counts: Any) -> Any:
        """Counts of both rounds together: of the file `after`, and of the second round's reports."""
        raise NotImplementedError

    def promise(self, asked: Any, domain: Domain, n: int | None) -> Guarantee:
        """Guarantee of the reports to `asked`; an upper bound where n is not known."""
        promised: Guarantee = self.ceiling(domain) if n is None else cast(Any, self.plan(domain, n=n)).guarantee
        return promised

    def reporters(self, asked: Any, user: str) -> str:
        """Sentence on the reports of persons identified by a column."""
        return f"One report for each person of the column {user!r}, whatever points they have."

    def both_rounds(self) -> Guarantee | None:
        """Guarantee of both rounds together, where every person reports in each; None otherwise."""
        return None

    def share(self, after: str | None) -> dict[str, str]:
        """Mark and value of the persons of one round, where rounds share persons out; nothing where all report."""
        return {}

    def require_drawn(self, domain: Domain, n: int | None, drawn: int) -> None:
        """Refuse more reports than persons, and fewer than a shuffler is said to mix; InputError."""
        if n is not None and drawn > n:
            msg = f"n: more persons report in this round than the {n} it says; give the public number of all of them"
            raise InputError(msg)
        self.plan(domain, n=n or drawn)
        if self.shuffle is not None:
            # A round may have fewer persons than its share of n.
            self.shuffle.require(n or drawn, drawn)


# Cells along a side: beyond, an estimate would not fit into memory.
MOST_SIDE = 1000

AUTO = "auto"


class LocalMechanism(ReportSettings, Synthesizer[LocalRelease | GridRelease]):
    """Base of local mechanisms: clients that need nobody else's data, an aggregator that receives only reports."""

    counts_kind: ClassVar[type[Counts]] = Counts
    # Mark that tells persons, of each of whom one point is reported; None where every point is a person.
    user: str | None = None

    @property
    def randomizer(self) -> Randomizer:
        """The client's law."""
        raise NotImplementedError

    def identity(self) -> dict[str, Any]:
        """Parameters that clients and aggregator must share, in JSON form."""
        return self.randomizer.parameters()

    @property
    def fingerprint(self) -> str:
        """Sixteen digits that stand for `identity` in reports and counts."""
        return fingerprint(self.identity())

    def value(self, place: Any) -> int:
        """The client's value for a person's place, given as each mechanism states."""
        raise NotImplementedError

    def neighbouring(self) -> Relation:
        return local_report(self.randomizer, self.user).relation

    def own_audit(self) -> OwnAudit | None:
        """Audit of one report, which takes no window; None where the clients' law depends on the round."""
        return self.randomizer.own_audit()

    def matrix(self) -> Floats:
        """(reports, inputs) probability of every report given each value; columns sum to one."""
        return self.randomizer.matrix()

    def client(self, place: Any, rng: RngLike = None) -> Report:
        """One person's report. It needs nothing but the place and random bits.

        Parameters
        ----------
        place : pair
            The cell (i, j) of the grid, i along x and j along y, or the point (x, y) for mechanisms on a window.
        rng : None, int or Generator
            None: secret random bits. Anything else makes the report reproducible and therefore not private.
        """
        return self._report(self.value(place), rng)

    def _report(self, value: int, rng: RngLike) -> Report:
        """The report of a person with this value."""
        row = self.randomizer.draw(np.array([value], dtype=np.int64), generator(rng))[0]
        return Report(self.fingerprint, tuple(row.tolist()), rng is not None)

    def clients(self, values: Any, rng: RngLike = None) -> Reports:
        """Reports of many persons at once, each from random bits of their own, in the persons' order.

        Parameters
        ----------
        values : (n,) array of int
            As `value` gives them.
        rng : None, int or Generator
            As in `client`.
        """
        rows = self.randomizer.draw(self.randomizer.values(values), generator(rng))
        return Reports(self.fingerprint, tuple(self.randomizer.columns), rows, rng is not None)

    def aggregate(self, reports: Reports | Report | Iterable[Report]) -> Counts:
        """Counts of reports: all that an aggregator keeps.

        Raises
        ------
        InputError
            For reports of another mechanism, or that no client sends.
        """
        rows, seeded = self._rows(reports)
        return self.counts_kind(self, self.randomizer.count(rows), len(rows), seeded)

    def _rows(self, reports: Any) -> tuple[Ints, bool]:
        given = [reports] if isinstance(reports, Report) else reports
        mechanism = self.fingerprint
        if isinstance(given, Reports):
            made, rows, seeded = {given.mechanism}, given.rows, given.seeded
        else:
            each = [instance("reports", report, Report, "clients() gives some") for report in _each(given)]
            made, seeded = {report.mechanism for report in each}, any(report.seeded for report in each)
            width = len(self.randomizer.columns)
            if any(len(report.values) != width for report in each):
                made = made | {""}
            rows = np.array([report.values for report in each if len(report.values) == width], dtype=np.int64)
            rows = rows.reshape(-1, width)
        if made - {mechanism}:
            msg = (
                f"reports: some are not of {self!r}; every report must come from a client with the same public numbers."
            )
            raise InputError(msg)
        return self.randomizer.rows(rows), seeded

    def counts(self, values: Ints, rng: RngLike, *, fast: bool) -> Counts:
        """Counts of the reports of clients with the given values (n,)."""
        source = generator(rng)
        if flag("fast", fast):
            return self.counts_kind(self, self.randomizer.fast_tally(values, source), len(values), seeded=True)
        return self.counts_kind(self, self.randomizer.tally(values, source), len(values), rng is not None)

    def own(self, counts: Any) -> Counts:
        """Counts, refused unless they are of reports to this mechanism; InputError."""
        given: Counts = instance("counts", counts, Counts, "aggregate() and simulate() give some")
        if given.mechanism.fingerprint != self.fingerprint:
            msg = f"counts: they are of reports to {given.mechanism!r}, not to {self!r}."
            raise InputError(msg)
        self.randomizer.counts_of(given.values, given.n)
        return given

    def release_counts(self, counts: Counts, domain: Any) -> Any:
        """Certified result of counts of reports; see `Counts.release`."""
        counts = self.own(counts)
        plan = self.plan(domain, n=counts.n)
        measurement: Any = plan.statistic
        statistic = measurement.counted(counts.values, seeded=counts.seeded)
        return mechanism(plan.mechanism).build_release(statistic, plan.estimator)


@dataclass(frozen=True)
class CellMechanism(LocalMechanism):
    """Base of local mechanisms on a square grid of cells, whose estimate is an array of shares.

    Parameters
    ----------
    epsilon : float
    cells : int
        Along each side of the grid.
    estimator : {"auto", "field", "em", "least-squares"}
        A field behind the cells, or the published estimator by its name; only the latter has further settings. "auto"
        takes the field on up to 256 x 256 cells, unless a setting of the published estimator is given.
    shuffled : int, optional
        Least number of honest reports that an honest shuffler mixes. Certificates then make a second statement, beside
        the local bound, at delta = `shuffle_delta`.
    shuffle_delta : float, optional
    user : str, optional
        Mark that tells persons: each reports one of their points, drawn at random, and all of them are protected. It
        makes no difference to devices, and stands on certificates. Without it every point is a person.
    """

    epsilon: float = setting(**EPSILON)
    _: KW_ONLY
    cells: int = setting(15, help="Number of cells along each side of the grid")
    estimator: str = setting(
        AUTO,
        help="Estimator of the shares: a field behind the cells, or the published one",
        choices=(AUTO, FIELD, EM, LEAST_SQUARES),
    )
    shuffled: int | None = setting(None, **SHUFFLED)
    shuffle_delta: float | None = setting(None, **SHUFFLE_DELTA)
    user: str | None = setting(None, **REPORTER)

    def __post_init__(self) -> None:
        Shuffle.of(self.shuffled, self.shuffle_delta)
        require_mark(self.user)
        object.__setattr__(self, "cells", whole("cells", self.cells, 1, most=MOST_SIDE))
        # What integers cannot express is refused at once.
        self.settings()

    @cached_property
    def randomizer(self) -> Any:
        return self._randomizer()

    def _randomizer(self) -> Randomizer:
        raise NotImplementedError

    def settings(self) -> dict[str, Any]:
        """Settings of the estimator."""
        law = self.randomizer
        own, plain = law.published_settings(**self._published()), law.published_settings()
        chosen = one_of("estimator", self.estimator, (AUTO, FIELD, law.published))
        if chosen == FIELD and own != plain:
            msg = (
                f"estimator: {', '.join(own)} are settings of {law.published!r}; take that, or leave them at their "
                "defaults."
            )
            raise InputError(msg)
        if chosen == FIELD or (chosen == AUTO and own == plain and law.has_field):
            return dict(law.settings(estimator=FIELD))
        return dict(own)

    def _published(self) -> dict[str, Any]:
        """Settings of the published estimator, as they were given."""
        return {}

    def value(self, place: Any) -> int:
        """The client's value in the cell (i, j): `i * cells + j`."""
        return int(self.cell_values([place])[0])

    def described_grid(self, window: Any) -> dict[str, Any]:
        """Cells in JSON form, for devices."""
        place = require_window(instance("window", window, Window, "Window.rectangle(0, 0, 1, 1) is one"))
        return {"bounds": list(place.bounds), "cells": self.cells}

    def cell_values(self, cells: Any) -> Ints:
        """(n,) values of clients in the cells (n, 2)."""
        pairs = plain_array(cells)
        shaped = pairs is not None and pairs.ndim == 2 and pairs.shape[1] == 2 and pairs.dtype.kind in "iu"
        if pairs is None or not shaped or ((pairs < 0) | (pairs >= self.cells)).any():
            msg = f"cells: must be pairs (i, j) of whole numbers from 0 to {self.cells - 1}, of shape (n, 2)."
            raise InputError(msg)
        return np.asarray(pairs[:, 0].astype(np.int64) * self.cells + pairs[:, 1].astype(np.int64))

    def cell(self, place: Any, window: Window, *, outside: str = "raise") -> tuple[int, int]:
        """The cell (i, j) of a point (x, y), as a person's device finds it.

        Parameters
        ----------
        place : pair
            x and y, in the window's coordinates.
        window : Window
            Public; the grid divides its bounding box.
        outside : {"raise", "clip"}
            Treatment of a point beyond the box: refuse it, or take the nearest cell, which keeps the promise.
        """
        bounds = instance("window", window, Window, "Window.rectangle(0, 0, 1000, 1000) is one").bounds
        xy = held_in_box(PointPattern.checked([place]), bounds, everybody(outside))
        i, j = cell_places(xy, bounds, (self.cells, self.cells))[0].tolist()
        return i, j

    def clients(self, values: Any, rng: RngLike = None) -> Reports:
        """Reports of many persons at once, from their cells (n, 2) or values (n,); see `LocalMechanism.clients`."""
        given = plain_array(values)
        return super().clients(values if given is None or given.ndim != 2 else self.cell_values(values), rng)

    def estimate(self, counts: Counts, **settings: Any) -> Floats:
        """(cells, cells) estimated share of the persons in each cell, i along x and j along y, with sum one.

        Parameters
        ----------
        counts : Counts
        **settings
            Of the estimator, as `settings` names them; those of the published one ask for it.
        """
        given, own = self.own(counts), self.settings()
        if "estimator" in settings or (settings and "estimator" in own):
            own = {}
        chosen = self.randomizer.settings(**{**own, **settings})
        return np.asarray(self.randomizer.estimate(given.values, given.n, **chosen)).reshape(self.cells, self.cells)

    def plan(self, domain: Domain, *, n: int | None = None, expected_n: float | None = None) -> ReleasePlan:
        plan = AreaStatistic(
            self.mesh(domain), self.randomizer, number_of_reports(n, expected_n), self.shuffle, self.user
        )
        return ReleasePlan(self.randomizer.kind, plan, ReportEstimator(self.settings()))

    def mesh(self, domain: Domain) -> Any:
        """The grid on a window; InputError on a network."""
        return regular_squares(require_window(domain), shape=(self.cells + 1, self.cells + 1))

    def simulate(
        self, pattern: PointPattern, rng: RngLike = None, *, fast: bool = False, user: str | None = None
    ) -> Counts:
        """Run all clients of a pattern in one process, for studies and audits.

        Parameters
        ----------
        pattern : PointPattern
            One point for each person, unless `user` tells persons.
        rng : None, int or Generator
            As in `client`.
        fast : bool
            Draw the counts at once from their law with floating-point numbers: for studies, never private.
        user : str, optional
            Mark that tells persons: each sends one report, about one of their points drawn at random. Without it every
            point is a person of its own, and marks are refused. Unless given: the mechanism's.
        """
        rng = None if rng is None else generator(rng)
        user = self.user if user is None else user
        if user is not None:
            pattern = one_point_each(pattern, user, rng=rng)
        domain = self._domain(pattern)
        measurement: Any = self.plan(domain, n=len(pattern)).statistic
        return self.counts(measurement.values(pattern), rng, fast=fast)


def require_window(domain: Any) -> Window:
    """The domain, which must be a window; InputError on a network, by name."""
    require_true_lengths(domain)
    if not isinstance(domain, Window):
        msg = "domain: local mechanisms work on windows; on a network take LaplaceSynthesizer or LGCPSynthesizer."
        raise InputError(msg)
    return domain


def number_of_reports(n: Any, expected_n: Any) -> int:
    """The public number of reports; InputError where it is missing."""
    if expected_n is not None:
        msg = f"expected_n: the number of reports is public; pass {mention('n')} instead."
        raise InputError(msg)
    if n is None:
        msg = f"n: the number of reports is needed, which is public, such as {mention('n', '5000')}."
        raise InputError(msg)
    return whole("n", n, 1, most=2**53, remedy="the number of reports, which is public")


def _each(reports: Any) -> list[Any]:
    try:
        return list(reports)
    except TypeError:
        msg = "reports: needs Reports, as clients() gives them, or several Report."
        raise InputError(msg) from None
