"""Audits of local mechanisms: the reports of one client with either of two values.

Counts, estimates, releases and whatever else is made of reports are post-processing. Everybody else's reports are
their own, and tell nothing about this client.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpppsynth.auditing.pairs import GIVEN
from dpppsynth.auditing.power import Rating
from dpppsynth.auditing.statistics import MOST_NUMBERS, named
from dpppsynth.auditing.target import Statistic, Target, require_two
from dpppsynth.core.arguments import whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import generator
from dpppsynth.mechanisms.local.grid_plan import AdaptiveGridPlan, GridPlan
from dpppsynth.mechanisms.local.plan import LocalPlan
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer
from dpppsynth.mechanisms.local.randomizers.randomizer_names import oracle
from dpppsynth.mechanisms.local.synthesizer import Mechanism
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.profiles import PureDP
from dpppsynth.spatial.mesh import Floats, Ints

Values = tuple[int, int]
More = Iterable[Statistic | Callable[[Any], Any]]
Scores = tuple[Floats, Floats]

# Reports of weaker clients, by a fixed seed. With few, pairs look hard by events that are rare.
SEED, COUNT = 20261127, 20_000
# Pairs are compared by how well an audit of so many trials, enough for small epsilons, finds half of the noise missing.
TRIALS, FALSE_ALARM, HALF = 100_000, 1e-6, 2.0
# Bits of one integer of a report.
BITS = 64


@dataclass(frozen=True, eq=False)
class Respond:
    """The reports of one client, drawn with secret randomness of its own on every run."""

    randomizer: Randomizer

    def __call__(self, value: int) -> Ints:
        """(1, columns) report of a client with a value."""
        return self.randomizer.draw(np.array([value]), generator())


@dataclass(frozen=True, eq=False)
class ReportRatio:
    """Log-likelihood ratio of two values, given the report of a client, or several where a faulty one sends more.

    Reports that no client is meant to send tell nothing here; `Numbers` and `Bits` look at them as they are.
    """

    randomizer: Randomizer
    values: Values

    def __call__(self, reports: Any) -> float:
        """Sum over the reports (k, columns)."""
        try:
            return float(self.randomizer.log_ratio(np.atleast_2d(reports), *self.values).sum())
        except InputError:
            return 0.0


@dataclass(frozen=True, eq=False)
class Counted:
    """The aggregator's counts of one client's reports; nothing where it refuses them."""

    randomizer: Randomizer

    def __call__(self, reports: Any) -> Ints:
        """(size,) counts."""
        try:
            return self.randomizer.count(np.atleast_2d(reports))
        except InputError:
            return np.zeros(self.randomizer.size, dtype=np.int64)


@dataclass(frozen=True)
class Numbers:
    """The integers of reports as they are, whatever they mean: seeds, words, cells that no client should send."""

    def __call__(self, reports: Any) -> Floats:
        """(columns,) sums over the reports (k, columns)."""
        return np.atleast_2d(reports).sum(axis=0, dtype=np.float64)


@dataclass(frozen=True)
class Bits:
    """Every bit of the first integers of reports: what depends on the value may be in the last one of a seed."""

    def __call__(self, reports: Any) -> Ints:
        """(m,) sums over the reports (k, columns)."""
        rows = np.ascontiguousarray(np.atleast_2d(reports)[:, : MOST_NUMBERS // BITS], dtype="<i8")
        return np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little").sum(axis=0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class LargerEpsilon:
    """Clients that draw with a larger epsilon than they claim, by the likelihood ratio of the claim."""

    randomizer: Randomizer
    values: Values

    def __call__(self, factor: float) -> Scores:
        """Scores (N,), (N,) for either value; beyond what integers express, of the largest epsilon that they do."""
        weaker, rng = with_epsilon(self.randomizer, factor), np.random.default_rng(SEED)
        first, second = (
            self.randomizer.log_ratio(weaker.draw(np.full(COUNT, value), rng), *self.values) for value in self.values
        )
        return first, second


def with_epsilon(randomizer: Randomizer, factor: float) -> Randomizer:
    """The same client with an epsilon larger by a factor, or by the largest below it that its integers express."""
    while factor > 1:
        try:
            return replace(randomizer, epsilon=factor * randomizer.epsilon)
        except InputError:
            factor /= 1.25
    return randomizer


def clients_of(thing: Any) -> Randomizer | None:
    """The law of the clients of a local mechanism, of its plan, or of its measurement; None where there are none.

    Of several rounds, in each of which other persons report, that with the largest epsilon among those in which there
    is anything to tell apart. The second round of an adaptive grid is that after even counts in the first.
    """
    held = getattr(thing, "statistic", thing)
    rounds: tuple[Any, ...] = (held,)
    if isinstance(held, GridPlan):
        rounds = (*held.randomizers, *_second_round(held))
    elif isinstance(held, LocalPlan | Mechanism):
        try:
            rounds = (held.randomizer,)
        except InputError:
            # There is one for each round, and a plan knows them.
            return None
    each = [randomizer for randomizer in rounds if isinstance(randomizer, Randomizer)]
    return max(each, key=lambda randomizer: (randomizer.inputs > 1, randomizer.spent), default=None)


def _second_round(plan: GridPlan) -> tuple[Randomizer, ...]:
    if not isinstance(plan, AdaptiveGridPlan):
        return ()
    cells = len(plan.first)
    grid = plan.second(np.full(cells, plan.reports[0] / cells))
    return (oracle(plan.oracle, epsilon=plan.epsilon, domain=len(grid)),)


def local_target(
    randomizer: Randomizer,
    *,
    guarantee: Guarantee | None = None,
    pair: Any = None,
    statistics: More = (),
) -> Target:
    """One report of one client, with either of two values.

    Parameters
    ----------
    randomizer : Randomizer
    guarantee : Guarantee, optional
        Claimed epsilon where that is less than the client's integers certify; under geo-indistinguishability of values
        one cell apart.
    pair : tuple of two int, optional
        Two values; unless given, `hard_values`.
    statistics : sequence of Statistic or callable
        Functions of reports (1, columns), looked at beside the built-in ones.

    Raises
    ------
    InputError
        When the pair is not two of the client's values.

    Examples
    --------
    >>> from dpppsynth.auditing import audit
    >>> from dpppsynth.randomizers import RandomizedResponse
    >>> target = local_target(RandomizedResponse(epsilon=1.0, domain=4))
    >>> target.pair, round(target.claimed.epsilon(0.0), 6)
    ((0, 3), 1.0)
    >>> audit(target, trials=200).violated
    False
    """
    values = hard_values(randomizer) if pair is None else _two_values(randomizer, pair)
    return Target(
        run=Respond(randomizer),
        pair=values,
        claimed=PureDP(_claimed(randomizer, values, guarantee)),
        statistics=(*_statistics(randomizer, values), *named(statistics)),
        words=f"{randomizer.kind}: one report of a client with "
        + (f"value {values[0]} or {values[1]}" if pair is None else GIVEN),
        weakened=LargerEpsilon(randomizer, values),
        alike=values[0] == values[1],
    )


def hard_values(randomizer: Randomizer) -> Values:
    """Two values that a client hides least well, from public parameters.

    Where all values are protected alike the most distant ones are, whose reports have least in common. Where protection
    fades with distance, of a few pairs near and far that at which an audit finds too little noise most easily.

    Parameters
    ----------
    randomizer : Randomizer

    Examples
    --------
    >>> from dpppsynth.randomizers import DiskArea
    >>> hard_values(DiskArea(epsilon=1.0, cells=5, radius=2, shrink=True))
    (0, 24)
    """
    last = randomizer.inputs - 1
    if not randomizer.metric or last < 2:
        return 0, last
    cells = round(randomizer.inputs**0.5)
    centre = cells // 2 * (cells + 1)
    weaker, rng = with_epsilon(randomizer, HALF), np.random.default_rng(SEED)
    reports = {value: weaker.draw(np.full(COUNT, value), rng) for value in sorted({0, 1, centre - 1, centre, last})}
    return max(itertools.combinations(reports, 2), key=lambda values: _margin(randomizer, values, reports))


def cell_distance(randomizer: Randomizer, values: Values) -> float:
    """Distance of two values of a square grid, in cells."""
    cells = round(randomizer.inputs**0.5)
    (i, k), (j, m) = (divmod(value, cells) for value in values)
    return float(np.hypot(i - j, k - m))


def held_to(spent: float, guarantee: Guarantee | None) -> float:
    """Epsilon that clients are held to: what their integers certify, or a claim that is less."""
    return spent if guarantee is None else min(spent, guarantee.epsilon())


def _claimed(randomizer: Randomizer, values: Values, guarantee: Guarantee | None = None) -> float:
    level = held_to(randomizer.spent, guarantee)
    # Values that are the same, or the only one, give nothing away, and no claim is as small as that.
    away = cell_distance(randomizer, values) if randomizer.metric else 1.0
    return level * away or randomizer.epsilon


def _margin(randomizer: Randomizer, values: Values, reports: Mapping[int, Ints]) -> float:
    """Standard deviations by which an audit is expected to refute the claim, given reports of weaker clients."""
    first, second = (randomizer.log_ratio(reports[value], *values) for value in values)
    claim = PureDP(_claimed(randomizer, values))
    return Rating(claim, 0.0, TRIALS, FALSE_ALARM, 1, lambda _: (first, second)).margin(HALF)


def _statistics(randomizer: Randomizer, values: Values) -> tuple[Statistic, ...]:
    ratio = Statistic("likelihood ratio", ReportRatio(randomizer, values))
    numbers = (
        Statistic("numbers", Numbers(), learned=True),
        Statistic("one bit", Bits(), learned=True, alone=True),
    )
    if not 1 < randomizer.size <= MOST_NUMBERS:
        return ratio, *numbers
    counted = Counted(randomizer)
    counts = (Statistic("counts", counted, learned=True), Statistic("one count", counted, learned=True, alone=True))
    return ratio, *counts, *numbers


def _two_values(randomizer: Randomizer, pair: Any) -> Values:
    require_two(pair)
    first, second = (whole("pair", value, 0, most=randomizer.inputs - 1) for value in pair)
    return first, second
