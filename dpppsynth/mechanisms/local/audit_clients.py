"""Audits of clients: one report, with either of two values.

Counts, estimates, releases and whatever else is made of reports are post-processing. Everybody else's reports are
their own, and tell nothing about this client.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np

from dpppsynth.contract.audits.neighbouring_pairs import GIVEN
from dpppsynth.contract.audits.statistic_audit import Margin, More
from dpppsynth.contract.audits.statistics import MOST_NUMBERS, named
from dpppsynth.contract.audits.target import HALF, AuditStatistic, Scores, Target, require_two
from dpppsynth.core.arguments import whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import generator
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.profiles import PureDP
from dpppsynth.spatial.mesh import Floats, Ints

Values = tuple[int, int]

AnyLaw = TypeVar("AnyLaw")
# A `Randomizer`, whose module makes audits of clients itself.
Law = Any

# Reports of weaker clients, by a fixed seed. With few, pairs look hard by events that are rare.
SEED, COUNT = 20261127, 20_000
# Bits of one integer of a report.
BITS = 64


@dataclass(frozen=True, eq=False)
class Respond:
    """The reports of a client and of others, the client's first, drawn with secret randomness on every run."""

    randomizer: Law
    other: int = 0
    others: int = 0

    def __call__(self, value: int) -> Ints:
        """(1 + others, columns) reports of a client with a value, and of others with theirs."""
        return self.randomizer.draw(np.array([value] + [self.other] * self.others), generator())


def report_ratio(randomizer: Law, values: Values, reports: Any) -> float:
    """Log-likelihood ratio of two values, given the reports (k, columns) of a client, more than one of a faulty one.

    Reports that no client is meant to send tell nothing here; `numbers` and `bits` look at them as they are.
    """
    try:
        return float(randomizer.log_ratio(np.atleast_2d(reports), *values).sum())
    except InputError:
        return 0.0


def counted_reports(randomizer: Law, reports: Any) -> Ints:
    """(size,) the aggregator's counts of one client's reports; nothing where it refuses them."""
    try:
        return np.asarray(randomizer.count(np.atleast_2d(reports)))
    except InputError:
        return np.zeros(randomizer.size, dtype=np.int64)


def numbers(reports: Any) -> Floats:
    """(columns,) sums of the integers of reports (k, columns): seeds, words, cells that no client should send."""
    return np.atleast_2d(reports).sum(axis=0, dtype=np.float64)


def bits(reports: Any) -> Ints:
    """(m,) sums of every bit of the first integers of reports, as a leak may show only in the last bit of a seed."""
    rows = np.ascontiguousarray(np.atleast_2d(reports)[:, : MOST_NUMBERS // BITS], dtype="<i8")
    return np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little").sum(axis=0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class LargerEpsilon:
    """Clients that draw with a larger epsilon than they claim, by the likelihood ratio of the claim."""

    randomizer: Law
    values: Values

    def __call__(self, factor: float) -> Scores:
        """Scores (N,), (N,) for either value; beyond what integers express, of the largest epsilon that they do."""
        weaker, rng = with_epsilon(self.randomizer, factor), np.random.default_rng(SEED)
        first, second = (
            self.randomizer.log_ratio(weaker.draw(np.full(COUNT, value), rng), *self.values) for value in self.values
        )
        return first, second


def with_epsilon(randomizer: AnyLaw, factor: float) -> AnyLaw:
    """The same client with an epsilon larger by a factor, or by the largest below it that its integers express."""
    # Of a client that chooses among laws by its epsilon, the same ones.
    louder = getattr(randomizer, "louder", None) or partial(_louder, randomizer)
    while factor > 1:
        try:
            weaker: AnyLaw = louder(factor * randomizer.epsilon)
        except InputError:
            factor /= 1.25
        else:
            return weaker
    return randomizer


def _louder(randomizer: AnyLaw, epsilon: float) -> AnyLaw:
    found: AnyLaw = replace(cast("Any", randomizer), epsilon=epsilon)
    return found


@dataclass(frozen=True, eq=False)
class ClientAudit:
    """Audit of one report of one client."""

    randomizer: Law

    def target(
        self, margin: Margin, *, guarantee: Guarantee | None = None, pair: Any = None, statistics: More = ()
    ) -> Target:
        """One report, with either of two values.

        Parameters
        ----------
        margin : callable
            Rating by which the pair is chosen.
        guarantee : Guarantee, optional
            What is claimed where that is less than the client's integers certify; under geo-indistinguishability of
            values one cell apart.
        pair : tuple of two int, optional
            Two values; unless given, the hardest ones.
        statistics : sequence of AuditStatistic or callable
            Functions of reports (1, columns), looked at beside the built-in ones.

        Raises
        ------
        InputError
            When the pair is not two of the client's values.
        """
        client = self.randomizer
        values = self.hardest(margin) if pair is None else _two_values(client, pair)
        return Target(
            run=Respond(client),
            pair=values,
            claimed=PureDP(self.claimed(values, guarantee)),
            statistics=(*self.statistics(values), *named(statistics)),
            words=f"{client.kind}: one report of a client with "
            + (f"value {values[0]} or {values[1]}" if pair is None else GIVEN),
            weakened=LargerEpsilon(client, values),
            alike=values[0] == values[1],
        )

    def hardest(self, margin: Margin) -> Values:
        """Two values that a client hides least well, from public parameters.

        Where all values are protected alike the most distant ones are, whose reports have least in common. Where
        protection fades with distance, of a few pairs near and far that at which an audit finds half of the noise
        missing most easily.
        """
        client, last = self.randomizer, self.randomizer.inputs - 1
        if not client.metric or last < 2:
            return 0, last
        cells = round(client.inputs**0.5)
        centre = cells // 2 * (cells + 1)
        weaker, rng = with_epsilon(client, HALF), np.random.default_rng(SEED)
        reports = {value: weaker.draw(np.full(COUNT, value), rng) for value in sorted({0, 1, centre - 1, centre, last})}
        pairs = itertools.combinations(reports, 2)
        return max(pairs, key=lambda values: margin(PureDP(self.claimed(values)), self._scores(values, reports)))

    def _scores(self, values: Values, reports: Mapping[int, Ints]) -> Scores:
        """Log-likelihood ratios given reports of weaker clients with either value."""
        first, second = (self.randomizer.log_ratio(reports[value], *values) for value in values)
        return first, second

    def claimed(self, values: Values, guarantee: Guarantee | None = None) -> float:
        """Epsilon that the client is held to for two values."""
        level = held_to(self.randomizer.spent, guarantee)
        # Values that are the same, or the only one, give nothing away, and no claim is as small as that.
        away = cell_distance(self.randomizer, values) if self.randomizer.metric else 1.0
        return level * away or self.randomizer.epsilon

    def statistics(self, values: Values) -> tuple[AuditStatistic, ...]:
        """Likelihood ratio, counts, integers and bits of the report."""
        ratio = AuditStatistic("likelihood ratio", partial(report_ratio, self.randomizer, values))
        plain = (
            AuditStatistic("numbers", numbers, learned=True),
            AuditStatistic("one bit", bits, learned=True, alone=True),
        )
        if not 1 < self.randomizer.size <= MOST_NUMBERS:
            return ratio, *plain
        counted = partial(counted_reports, self.randomizer)
        counts = (
            AuditStatistic("counts", counted, learned=True),
            AuditStatistic("one count", counted, learned=True, alone=True),
        )
        return ratio, *counts, *plain


def cell_distance(randomizer: Law, values: Values) -> float:
    """Distance of two values of a square grid, in cells."""
    cells = round(randomizer.inputs**0.5)
    (i, k), (j, m) = (divmod(value, cells) for value in values)
    return float(np.hypot(i - j, k - m))


def held_to(spent: float, guarantee: Guarantee | None) -> float:
    """Epsilon by which clients are judged: the one that their integers certify, or a smaller claim."""
    return spent if guarantee is None else min(spent, guarantee.epsilon())


def _two_values(randomizer: Law, pair: Any) -> Values:
    require_two(pair)
    first, second = (whole("pair", value, 0, most=randomizer.inputs - 1) for value in pair)
    return first, second
