"""Tables of benchmarks/bounded_error.py in Markdown, every number with its standard error."""

import csv
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bounded_error_compared import Accuracy, Compared, Implied, Optimum
from bounded_error_laws import EPSILONS
from bounded_error_ranges import Ranged
from bounded_error_runs import Row
from bounded_error_scores import Figure, Scores
from bounded_error_studies import Cells, Leak, Smooth, Spread, Walked

Table = list[str]
# Widest line of running text.
WIDTH = 118


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Lines of a Markdown table, with an empty line after it."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def number(value: float) -> str:
    """Four significant digits, without exponent from 0.001 to a million."""
    if math.isinf(value):
        return "none"
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        digits = 3 if value == 0 else max(0, 3 - math.floor(math.log10(abs(value))))
        return f"{value:.{digits}f}" if value else "0"
    return exponent(f"{value:.2e}")


def filled(text: str) -> str:
    """A paragraph in lines of equal length, and an empty line."""
    return textwrap.fill(" ".join(text.split()), WIDTH) + "\n"


def exponent(text: str) -> str:
    """1e-5 for 1e-05."""
    return re.sub(r"e([+-])0*", lambda found: f"e{found[1].strip('+')}", text)


def shown(found: Figure | None) -> str:
    """Value ± standard error, whose first two digits say where the value ends."""
    if found is None:
        return ""
    if not found.error:
        return number(found.value)
    if found.value >= 1e6:
        return exponent(f"{found.value:.2e} ± {found.error:.0e}")
    digits = min(7, max(0, 1 - math.floor(math.log10(found.error))))
    return f"{found.value:.{digits}f} ± {found.error:.{digits}f}"


def percent(found: Figure) -> str:
    return f"{shown(Figure(100 * found.value, 100 * found.error))} %"


def small(delta: float) -> str:
    """A delta, rounded to three digits."""
    return "0" if delta == 0 else exponent(f"{delta:.3g}")


def by_epsilon(rows: Sequence[Row], of: Callable[[Scores], Figure]) -> Table:
    """One line a mechanism, one column an epsilon; delta is the largest of the line."""
    laws = list(dict.fromkeys(row.law for row in rows))
    found = {(row.law, row.epsilon): row for row in rows}
    lines = []
    for law in laws:
        mine = [found[law, epsilon] for epsilon in EPSILONS if (law, epsilon) in found]
        cells = [shown(of(found[law, epsilon].scores)) if (law, epsilon) in found else "" for epsilon in EPSILONS]
        lines.append([law, small(max(row.delta for row in mine)), f"{mine[0].repetitions}", *cells])
    return table(["mechanism", "delta", "runs", *(f"epsilon {each:g}" for each in EPSILONS)], lines)


def promises(rows: Sequence[Row], epsilon: float) -> Table:
    """Largest errors seen, beside what is promised, at one epsilon."""
    lines = [
        [
            row.law,
            small(row.delta),
            number(row.promised),
            number(row.scores.largest),
            shown(row.scores.mean),
            five(row.scores),
        ]
        for row in rows
        if row.epsilon == epsilon
    ]
    return table(
        [
            "mechanism",
            "delta",
            "error at most",
            "largest seen",
            "mean of the error",
            "means of repetitions: least, quartiles, most",
        ],
        lines,
    )


def five(scores: Scores) -> str:
    """The box plot of the means of repetitions, in words."""
    return ", ".join(number(each) for each in scores.five)


def of_ranges(rows: Sequence[Ranged], lengths: Sequence[int]) -> Table:
    head = ["mechanism", "epsilon", "delta", "runs", *(f"range of {length}" for length in lengths)]
    about = ([row.law, f"{row.epsilon:g}", small(row.delta), f"{row.repetitions}"] for row in rows)
    return table(head, [[*cells, *map(shown, row.errors)] for cells, row in zip(about, rows, strict=True)])


def of_smoothness(rows: Sequence[Smooth]) -> Table:
    head = [
        "truth, step",
        "raw",
        "step given",
        "gain",
        "likely step",
        "gain",
        "by differences",
        "as printed",
        "grid",
        "smoother",
    ]
    head += ["restarts", "largest error"]
    lines = [
        [
            f"{row.truth}, {row.step:g}" if row.step else "constant",
            shown(row.raw),
            shown(row.given),
            shown(row.gain_given),
            shown(row.likely),
            shown(row.gain_likely),
            shown(row.differences),
            shown(row.literal),
            shown(row.grid),
            shown(row.smoother),
            f"{row.restarts:.1f}",
            f"{row.worst:.1f}",
        ]
        for row in rows
    ]
    return table(head, lines)


def of_months(rows: Sequence[Cells]) -> Table:
    head = [
        "cells",
        "how many",
        "raw",
        "filtered, one step for all",
        "filtered, a step for each (default)",
        "largest error, a step for each",
    ]
    lines = [
        [row.kind, f"{row.cells}", shown(row.raw), shown(row.together), shown(row.apart), f"{row.worst:.1f}"]
        for row in rows
    ]
    return table(head, lines)


def of_walked(rows: Sequence[Walked]) -> Table:
    lines = [[f"{row.step:g}", shown(row.raw), shown(row.known), shown(row.likely)] for row in rows]
    return table(["step along each axis", "raw", "step known", "likely step"], lines)


def of_spreads(rows: Sequence[Spread]) -> Table:
    head = ["published", "bound", "delta", "true variance", "standard error of 1000 draws"]
    head += ["mean of 1000 studies", "their spread", "95 % of them", "larger than a study of Laplace noise"]
    lines = [
        [
            row.published,
            number(row.bound),
            small(row.delta),
            number(row.variance),
            f"{row.deviation:.1f}",
            shown(row.mean),
            f"{row.found:.1f}",
            f"{row.low:.0f} to {row.high:.0f}",
            f"{100 * row.above:.0f} %",
        ]
        for row in rows
    ]
    return table(head, lines)


def of_leaks(rows: Sequence[Leak]) -> Table:
    lines = [
        [row.what, f"{row.epsilon:g}", number(row.max_error), shown(row.seen), number(row.seen.known or 0.0)]
        for row in rows
    ]
    return table(["released", "epsilon", "error at most", "share of certain answers", "delta"], lines)


def of_accuracy(rows: Sequence[Accuracy]) -> Table:
    head = ["mechanism", "delta", "error at most", *(f"beta({each:g})" for each in rows[0].thresholds)]
    lines = [[row.law, small(row.delta), number(row.max_error), *map(shown, row.betas)] for row in rows]
    return table(head, lines)


def of_compared(rows: Sequence[Compared]) -> Table:
    head = ["mechanism", "epsilon", "delta", "error at most", "variance", "mean absolute", "beta(10)"]
    lines = [
        [
            row.law,
            f"{row.epsilon:g}",
            small(row.delta),
            number(row.max_error),
            number(row.variance),
            number(row.mean_absolute),
            number(row.beta),
        ]
        for row in rows
    ]
    return table(head, lines)


def of_optima(rows: Sequence[Optimum]) -> Table:
    head = ["epsilon", "error at most", "smallest delta (LP)", "closed form", "truncated Laplace", "excess"]
    head += ["truncated geometric, whole numbers"]
    lines = []
    for row in rows:
        deltas = ["" if each is None else exponent(f"{each:.6g}") for each in row[2:]]
        # Both are rounded: an excess may be a hair below none.
        excess = max(0.0, row.laplace / row.smallest - 1)
        lines.append([f"{row.epsilon:g}", f"{row.ratio:g}", *deltas[:3], f"{100 * excess:.1f} %", deltas[3]])
    return table(head, lines)


def of_implied(rows: Sequence[Implied]) -> Table:
    lines = [
        [row.law, f"{row.epsilon:g}", f"{row.published:g}", number(row.max_error), small(row.delta)] for row in rows
    ]
    return table(["law", "epsilon", "published", "error at most", "delta"], lines)


def write_csv(path: Path, rows: dict[str, list[Row]]) -> None:
    """All rows of all data sets; every one carries delta, standard errors and the closed form where there is one."""
    metrics = ("mean", "variance", "mse", "beta")
    head = ["data", "mechanism", "epsilon", "delta", "promised", "repetitions", "largest"]
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*head, *(f"{name}{part}" for name in metrics for part in ("", "_se", "_known"))])
        for data, found in rows.items():
            for row in found:
                figures = [getattr(row.scores, name) for name in metrics]
                cells = [part for each in figures for part in each]
                about = [row.epsilon, row.delta, row.promised, row.repetitions, row.scores.largest]
                writer.writerow([data, row.law, *(text(each) for each in (*about, *cells))])


def text(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
