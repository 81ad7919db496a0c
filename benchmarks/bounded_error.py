"""Comparison of bounded-error noise with the published alternatives, with delta and standard errors on every row.

Writes bounded_error.csv, where every number of docs/results/bounded_error.md stands, and bounded_error.png:

    OMP_NUM_THREADS=1 python benchmarks/bounded_error.py --out docs/results

Nothing here is private: truths are compared with noisy answers, and the noise is seeded. Simulated numbers are held
against closed forms where there are any; one that is off by more than five standard errors ends the run.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import bounded_error_compared as closed
import bounded_error_laws as laws
import bounded_error_ranges as ranges
import bounded_error_runs as runs
import bounded_error_studies as studies
from bounded_error_laws import EPSILONS, TRUNCATED, TRUNCATED_PLANAR
from bounded_error_pictures import draw
from bounded_error_scores import FARTHEST, Figure, Scores
from measuring import timed
from pages import command_line, write_rows

from dpppsynth.core.workers import worker_pool

Task = tuple[str, Callable[..., Any], tuple[Any, ...]]


def tasks(setting: runs.Setting) -> Iterator[Task]:
    """Name of the table, function and arguments; the longest first."""
    for epsilon in EPSILONS:
        yield "checkins", runs.checkins, (epsilon, setting)
        yield "friends", runs.friends, (epsilon, setting)
    for epsilon in EPSILONS:
        yield "tracks", runs.tracks, (epsilon, setting)
        yield "ages", runs.ages, (epsilon, setting)
    for truth, step in studies.TRUTHS:
        yield "smoothness", studies.smoothness, (truth, step, setting)
    for data in ("ages", "friends"):
        for epsilon in (EPSILONS[0], EPSILONS[-1]):
            yield f"ranges of {data}", ranges.of_ranges, (data, epsilon, setting)
    yield "months", studies.months, (setting,)
    for scale in (2.0, 5.0):
        yield "years", studies.years, (scale, setting)
    for step in (1.0, 5.0, 20.0):
        yield "walked", studies.walked, (step, setting)
    yield "draws", studies.thousand_draws, ()
    yield "leaks", studies.leaks, (setting.draws,)
    yield "accuracy", closed.accuracy, (setting.draws,)
    yield "compared", closed.compared, (laws.number_noises, EPSILONS)
    yield "replaced", closed.compared, (laws.replaced_noises, (EPSILONS[0], EPSILONS[-1]))
    yield "optima", closed.optima, ()
    yield "implied", closed.implied, ()


def results(setting: runs.Setting, workers: int) -> dict[str, list[Any]]:
    """Rows of all tables, in the order of the tasks."""
    found: dict[str, list[Any]] = {}
    with worker_pool(workers) as pool:
        waiting = [
            (name, pool.submit(timed, partial(run, *arguments), time.process_time))
            for name, run, arguments in tasks(setting)
        ]
        for name, future in waiting:
            made, seconds = future.result()
            found.setdefault(name, []).extend(made if isinstance(made, list) else [made])
            print(f"{name}: {seconds:.1f} s", flush=True)
    return found


def check(found: dict[str, list[Any]]) -> tuple[int, float]:
    """Number of comparisons with closed forms and their largest z-score; ends the run where one is too large."""
    every = [(name, row, each) for name, rows in found.items() for row in rows for _, each in measured(row._asdict())]
    far = [(name, row) for name, row, each in every if wrong(each)]
    for name, row in far:
        print(f"{name}: further than {FARTHEST:g} standard errors from its closed form: {row}")
    if far:
        raise SystemExit(1)
    scores = [abs(each.z) for _, _, each in every if each.known is not None]
    return len(scores), max(scores)


def wrong(found: Figure) -> bool:
    return not abs(found.z) <= FARTHEST


class Checked(NamedTuple):
    """Deviation of simulated numbers from their closed forms."""

    what: str
    comparisons: int
    largest_z: float


class Against(NamedTuple):
    """Relative reduction of a mechanism's error against truncated noise on the same data, and the other way round."""

    law: str
    kind: str
    epsilon: float
    mse_below_truncated: Figure
    truncated_mse_below: Figure
    truncated_variance_below: Figure


def against(found: dict[str, list[Any]]) -> Iterator[Against]:
    """Every mechanism of the four data sets."""
    for data in runs.DATA:
        limits = {row.epsilon: row.scores for row in found[data] if row.law in (TRUNCATED, TRUNCATED_PLANAR)}
        for row in found[data]:
            one, other = row.scores, limits[row.epsilon]
            shares = one.mse.below(other.mse), other.mse.below(one.mse), other.variance.below(one.variance)
            yield Against(row.law, data, row.epsilon, *shares)


# Fields that say which row a number belongs to; all others are numbers.
LABELS = (
    "law",
    "truth",
    "kind",
    "what",
    "published",
    "epsilon",
    "step",
    "ratio",
    "limit",
    "threshold",
    "length",
    "scale",
)
HEAD = ("study", "case", "measure", "value", "standard_error", "closed_form")


def write(path: Path, found: dict[str, list[Any]]) -> None:
    """A line for each number: study, row in words, name, and standard error and closed form where there are."""
    lines: list[list[str]] = []
    for study, rows in found.items():
        for row in rows:
            fields = row._asdict()
            labels = {name: fields.pop(name) for name in row._fields if name in LABELS}
            case = ", ".join(each if isinstance(each, str) else f"{name} {each:g}" for name, each in labels.items())
            lines += ([study, case, name, *map(text, each)] for name, each in measured(fields))
    write_rows(path, HEAD, lines)


def measured(numbers: dict[str, Any]) -> Iterator[tuple[str, Figure]]:
    """All numbers with their names, which those of scores and tuples have inside."""
    for name, value in numbers.items():
        if isinstance(value, Figure):
            yield name, value
        elif isinstance(value, Scores):
            yield from measured(value._asdict())
        elif isinstance(value, tuple):
            yield from ((f"{name}_{k}", Figure(each, 0.0)) for k, each in enumerate(value))
        elif value is not None:
            yield name, Figure(value, 0.0)


def text(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def main() -> None:
    parser = command_line(__doc__, "folder of bounded_error.csv; nothing is written without it")
    parser.add_argument("--quick", action="store_true", help="few repetitions, to see that all runs")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    setting = runs.QUICK if given.quick else runs.FULL
    found = results(setting, given.workers)
    compared, worst = check(found)
    print(f"{compared} comparisons with closed forms, largest z-score {worst:.2f}")
    if given.out:
        checked = Checked("all numbers with a closed form", compared, worst)
        write(given.out / "bounded_error.csv", found | {"against": list(against(found)), "checked": [checked]})
        draw(given.out / "bounded_error.png", found["smoothness"], found["draws"])


if __name__ == "__main__":
    main()
