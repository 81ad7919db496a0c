"""Findings of benchmarks/bounded_error.py, and which published statements hold: sentences around computed numbers."""

import itertools
import math
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

from bounded_error_laws import (
    DELTA,
    EPSILONS,
    GAUSSIAN,
    LAPLACE,
    LEAST_DELTA,
    PLANAR,
    PLANAR_GAUSSIAN,
    STAIRCASE,
    TRUNCATED,
    TRUNCATED_PLANAR,
    UNIFORM,
    WHOLE,
)
from bounded_error_page import WIDTH, number, percent, shown, small, table
from bounded_error_runs import CARTESIAN, DATA, DEGREES, FILTERED, POLAR, TREE
from bounded_error_scores import Figure, Scores
from bounded_error_studies import BOUND, Smooth

SMALL, LARGE = EPSILONS[0], EPSILONS[-1]
ENDS = (SMALL, LARGE)


class Statement(NamedTuple):
    """What was published, what was found, and whether it holds."""

    published: str
    here: str
    holds: str


class Results:
    """Rows of all tables, found by name."""

    def __init__(self, tables: dict[str, list[Any]]):
        self.tables = tables

    def scores(self, data: str, law: str, epsilon: float) -> Scores:
        return next(row.scores for row in self.tables[data] if row.law == law and row.epsilon == epsilon)

    def mse(self, data: str, law: str, epsilon: float) -> str:
        return shown(self.scores(data, law, epsilon).mse)

    def against(self, data: str, first: str, second: str) -> str:
        """Mean squared errors of two mechanisms at the smallest and the largest epsilon."""
        pairs = ((self.scores(data, law, each).mse for law in (first, second)) for each in ENDS)
        return " and ".join(f"{change(*pair)} at {each:g}" for pair, each in zip(pairs, ENDS, strict=True))

    def smooth(self, truth: str, step: float) -> Smooth:
        return next(row for row in self.tables["smoothness"] if (row.truth, row.step) == (truth, step))

    def law(self, name: str, epsilon: float) -> Any:
        """Closed forms of a law at sensitivity 1."""
        return next(row for row in self.tables["compared"] if row.law == name and row.epsilon == epsilon)

    def excess(self, ratio: float) -> str:
        """How far delta of the truncated Laplace law is above the optimum, at epsilon 1."""
        row = next(row for row in self.tables["optima"] if (row.epsilon, row.ratio) == (1.0, ratio))
        return f"{100 * (row.laplace / row.smallest - 1):.0f} %"


def less(first: Figure, second: Figure) -> Figure:
    """By which share the first number is below the second one; independent errors."""
    ratio = first.value / second.value
    return Figure(1 - ratio, abs(ratio) * math.hypot(first.error / first.value, second.error / second.value))


def change(first: Figure, second: Figure) -> str:
    """The first against the second in words, with its standard error."""
    found = less(first, second)
    if abs(found.value) <= 2 * found.error:
        return f"no clear difference ({percent(Figure(-found.value, found.error))})"
    return f"{percent(Figure(abs(found.value), found.error))} {'lower' if found.value > 0 else 'higher'}"


def findings(tables: dict[str, list[Any]]) -> str:
    found = Results(tables)
    whole, real = ([found.law(name, each).variance for each in ENDS] for name in (WHOLE, LAPLACE))
    far = found.smooth("walk", 100.0)
    lone, wrong, walk = found.smooth("independent", 300.0), found.smooth("independent", 1.0), found.smooth("walk", 1.0)
    cut, plain, leak = found.law(TRUNCATED, SMALL), found.law(LAPLACE, SMALL), tables["leaks"][0].seen
    points = f"""
**A bound on the error ends pure privacy.** At epsilon 1 and bound 5 a share of {shown(leak)} of the answers cannot come
from the neighbouring data set; the formula says {number(leak.known or 0)}, the paper 0.

**The bound buys a promise, and no accuracy.** At epsilon 0.1 and delta {small(DELTA)} it takes the variance from
{number(plain.variance)} to {number(cut.variance)}. What it is good for is that no answer is off by more than
{cut.max_error:.0f}.

**At equal epsilon and delta it beats Gaussian noise on one number by far**: mean squared error
{found.against("ages", TRUNCATED, GAUSSIAN)}.

**Whole numbers cost nothing**: a release has the variance {number(whole[0])} at epsilon 0.1 and {number(whole[1])} at
0.9, where real-valued Laplace noise has {number(real[0])} and {number(real[1])}. No noise on whole numbers has a
smaller delta within the bound; that of the truncated Laplace law is {found.excess(2.5)} above the smallest possible at
bound 2.5 and epsilon 1.

**The filter helps where successive answers differ by less than about twice the noise's standard deviation; elsewhere
it adds nothing or harms.** Epsilon 0.1, raw error {shown(walk.raw)}: on a walk with steps of 1 it leaves
{shown(walk.given)} with the step known, {shown(walk.likely)} with the likely step of the release, and
{shown(walk.differences)} with a step from differences of neighbours. On a walk with steps of 100 it leaves
{shown(far.likely)}, on independent answers {shown(lone.likely)}, and {shown(wrong.given)} where a step of 1 is wrongly
given for them. Ages: {found.against("ages", FILTERED, TRUNCATED)}. A smoother leaves {shown(walk.smoother)} of the walk
with steps of 1, at no cost either.

**The filter loses the bound**: errors of up to {wrong.worst:.0f} were seen at a bound of {BOUND:.0f}.

**Sorted degrees need neither**: isotonic regression after plain Laplace noise leaves
{found.mse("friends", DEGREES, SMALL)} at epsilon 0.1, with delta 0; the filter
{found.mse("friends", FILTERED, SMALL)}, noise alone {found.mse("friends", LAPLACE, SMALL)}.

**187, 197, 199 and 200, published for epsilon 0.1, cannot be told apart** if 1000 draws are behind each of them.
""".strip().split("\n\n")
    lines = (textwrap.fill(f"{k}. {each}", WIDTH, subsequent_indent="   ") for k, each in enumerate(points, 1))
    return "\n".join(["## Findings", "", *lines, ""])


def statements(tables: dict[str, list[Any]]) -> str:
    found = Results(tables)
    parts = of_privacy(found), of_numbers(found), of_places(found), of_filters(found), of_rivals(found)
    rows = table(["published", "here", "holds"], itertools.chain(*parts))
    return "\n".join(["## Which published statements hold", "", *rows])


def of_privacy(found: Results) -> Iterator[Statement]:
    line, plane = found.tables["leaks"][0].seen, found.tables["leaks"][-1].seen
    yield Statement(
        "truncated Laplace noise is epsilon-private",
        f"{shown(line)} of answers rule the neighbour out (epsilon 1, bound 5)",
        f"no: delta {number(line.known or 0)}",
    )
    yield Statement(
        "truncated planar noise is geo-indistinguishable up to its bound",
        f"{shown(plane)} of places rule out a place as far away as the bound (epsilon 0.1, 10 km)",
        f"no: delta {number(plane.known or 0)}",
    )
    beyond = next(each for each in found.tables["accuracy"] if each.law == LAPLACE).betas[-1]
    yield Statement(
        "accuracy 1 - beta is almost zero at 10, epsilon 1",
        f"beta is: {number(beyond.known or 0)} without any bound; making it 0 costs delta 3.9e-5",
        "with beta for 1 - beta; it is no merit of the bound",
    )
    excess = ", ".join(found.excess(ratio) for ratio in (1.5, 2.5, 5.5))
    stairs, cut, blocks = (found.law(name, LARGE) for name in (STAIRCASE, TRUNCATED, LEAST_DELTA))
    variances = (
        f"variance at epsilon 0.9 {number(cut.variance)}, of the staircase {number(stairs.variance)} with delta 0, "
    )
    variances += f"of the truncated staircase {number(blocks.variance)} with delta {small(blocks.delta)}"
    yield Statement(
        "the mechanism is optimal",
        f"delta {excess} above the smallest at bounds 1.5, 2.5 and 5.5 (epsilon 1); {variances}",
        "in delta alone, at whole multiples of the sensitivity",
    )


def of_numbers(found: Results) -> Iterator[Statement]:
    low, high = (found.scores("ages", TRUNCATED, each) for each in ENDS)
    wide, narrow = (found.scores("ages", GAUSSIAN, each) for each in ENDS)
    yield Statement(
        "Adult: variance 23.6 % below GGM's at epsilon 0.1 (197 : 258), 32.1 % at 0.9 (1.9 : 2.8)",
        f"{change(low.variance, wide.variance)} and {change(high.variance, narrow.variance)}, at equal delta",
        "in direction; as Gaussians 258 and 2.8 have delta 0.0015 and 0.026",
    )
    others = f"Laplace {found.mse('ages', LAPLACE, SMALL)}, tree {found.mse('ages', TREE, SMALL)}"
    yield Statement(
        "Adult: MSE 187 at epsilon 0.1, plain Laplace 199, best other 218",
        f"raw {shown(low.mse)}, filtered {found.mse('ages', FILTERED, SMALL)}; {others}",
        "no: with delta 1e-5 it is 198.3, and the filter adds to it",
    )
    yield Statement(
        "Adult: MSE 1.7 at epsilon 0.9, 19 % below GGM's",
        f"raw {shown(high.mse)}, filtered {found.mse('ages', FILTERED, LARGE)}, GGM {shown(narrow.mse)}",
        "no: truncation to 1.7 costs delta 0.024",
    )
    variance = number(found.law(TRUNCATED, SMALL).variance)
    worst = max(abs(found.scores("ages", TRUNCATED, each).mean.z) for each in EPSILONS)
    yield Statement(
        "truncation leaves statistics unchanged",
        f"mean 0 (largest z-score {worst:.1f}); variance {variance}, not 200, at epsilon 0.1",
        "for the mean",
    )
    cases = [(data, law) for data in DATA for law in dict.fromkeys(row.law for row in found.tables[data])]
    cases = [case for case in cases if case[1] != UNIFORM]
    falling = sum(falls(found, *case) for case in cases)
    yield Statement(
        "errors fall as epsilon grows",
        f"mean squared errors do in {falling} of {len(cases)} rows",
        "yes" if falling == len(cases) else "not always",
    )


def falls(found: Results, data: str, law: str) -> bool:
    values = [found.scores(data, law, epsilon).mse.value for epsilon in EPSILONS]
    return all(after < before for before, after in itertools.pairwise(values))


def of_places(found: Results) -> Iterator[Statement]:
    pairs = ([found.scores("checkins", law, each) for law in (TRUNCATED_PLANAR, PLANAR_GAUSSIAN)] for each in ENDS)
    gains = " and ".join(change(first.variance, second.variance) for first, second in pairs)
    yield Statement(
        "Check-in: variance 38.9 % below GGM's at epsilon 0.1 (201 : 329), 34.8 % at 0.9 (3 : 4.6)",
        f"{gains}, per coordinate, at equal delta for 1 km",
        "in direction",
    )
    plain, cut = (found.scores("checkins", law, SMALL) for law in (PLANAR, TRUNCATED_PLANAR))
    yield Statement(
        "Check-in: MSE of planar Laplace noise 234, of AE-Geo 198 (epsilon 0.1)",
        f"{shown(plain.mse)} and {shown(cut.mse)}; per coordinate {shown(plain.variance)} and {shown(cut.variance)}; "
        f"filtered {found.mse('checkins', CARTESIAN, SMALL)}",
        "no: neither in all nor per coordinate",
    )


def of_filters(found: Results) -> Iterator[Statement]:
    cases = (
        ("ages", TRUNCATED, FILTERED),
        ("friends", TRUNCATED, FILTERED),
        ("checkins", TRUNCATED_PLANAR, CARTESIAN),
        ("tracks", TRUNCATED_PLANAR, CARTESIAN),
        ("tracks", TRUNCATED_PLANAR, POLAR),
    )
    for data, raw, law in cases:
        gains = [less(found.scores(data, law, each).mse, found.scores(data, raw, each).mse) for each in EPSILONS]
        better, worse = (sum(sign * each.value > 2 * each.error for each in gains) for sign in (1, -1))
        name = "polar particle filter" if law == POLAR else "particle filter"
        verdict = "yes" if better == len(EPSILONS) else "in part" if better else "no"
        counts = f"lower at {better}, higher at {worse} of {len(EPSILONS)} epsilons"
        yield Statement(f"the {name} lowers errors: {data}", found.against(data, law, raw), f"{verdict}: {counts}")
    walk, wrong = found.smooth("walk", 1.0), found.smooth("independent", 1.0)
    yield Statement(
        "no error exceeds the bound",
        f"raw none; filtered up to {wrong.worst:.0f} at a bound of {BOUND:.0f} (independent answers, step 1)",
        "for raw answers; filtered ones have twice the bound",
    )
    yield Statement(
        "uniform proposal, no resampling",
        f"mean squared error {shown(walk.literal)} on a walk with steps of 1, raw {shown(walk.raw)}",
        "no: worse than no filter",
    )


def of_rivals(found: Results) -> Iterator[Statement]:
    low, plain = found.tables["draws"][0], found.tables["draws"][-1]
    apart = (plain.variance - low.variance) / math.hypot(low.deviation, plain.deviation)
    errors = f"standard errors {low.deviation:.1f} to {plain.deviation:.1f} with 1000 draws, so {apart:.1f} of them"
    yield Statement(
        "187, 197, 199 and 200 differ (epsilon 0.1)",
        f"{errors} between 187 and 200; in {100 * low.above:.0f} % of studies the narrow law looks wider",
        "no significant difference",
    )
    blum, tree = (ahead(found, start) for start in ("Blum", TREE))
    gain = change(*(found.scores("friends", law, SMALL).mse for law in (DEGREES, TRUNCATED)))
    yield Statement(
        "interval, tree and degree mechanisms are behind",
        f"of 16 kinds of ranges Blum is ahead in {blum}, the tree in {tree}; degrees: {gain} at 0.1, with delta 0",
        "for bins and short ranges",
    )


def ahead(found: Results, start: str) -> int:
    """In how many lengths, epsilons and data a mechanism has a smaller error than the truncated Laplace law."""
    wins = 0
    for data, epsilon in itertools.product(("ages", "friends"), ENDS):
        rows = [row for row in found.tables[f"ranges of {data}"] if row.epsilon == epsilon]
        limits = next(row.errors for row in rows if row.law == TRUNCATED)
        rivals = [row.errors for row in rows if row.law.startswith(start)]
        wins += sum(min(errors[k].value for errors in rivals) < limit.value for k, limit in enumerate(limits))
    return wins
