"""Moved points that keep their types and times beside tents, on streets and by the hour.

Streets are those of the shipped patterns and a simulated grid (benchmarks/streets.py). In simulated sets each type has
half of its points where all have theirs and half where it alone has them; on streets "by the hour", each type has hours
of its own as well. The shipped points have types that depend on which half of the streets they lie in. Windows have the
hot spots of benchmarks/marks.py, of a quarter and of half of their widths, each with hours about which its points fall.
Scored is the mean over points that were not released of log(.99 q A + .01), q the density of places, types and times
over that of an even one, A the size of it all.

With `--kinds` the distance to the truth is told, half the sum of absolute differences, of 2000 points in those hot
spots, by types, hours or both, as points in a square of the noise's scale become more.

    OMP_NUM_THREADS=1 python benchmarks/marked_moves.py --out docs/results/marked_moves.md
    OMP_NUM_THREADS=1 python benchmarks/marked_moves.py --kinds --out docs/results/marked_moves.md
"""

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import marks as spots
import numpy as np
import streets
from measuring import timed
from pages import command_line, fill, plain, table, write_rows

import dpppsynth as dps
from dpppsynth.privacy import AlphaNeighbours

KINDS, HOURS = ("a", "b", "c"), dps.Times.day("hour", hats=6)
# Points of simulated sets, and how many judge; privacy radii in shares of the extent, and budgets.
STREETS = (("Soho", 2000), ("Arizona", 2000), ("own factors", 2000))
JUDGES, SETTINGS = 4000, ((0.01, 1.0), (0.01, 3.0), (0.03, 1.0))
# By the hour: points, and shares of the widths of hot spots.
WINDOWS, WINDOW_SETTINGS = ((1000, 0.5), (2000, 0.25)), ((0.01, 1.0), (0.01, 3.0))
# By kinds: points, and how many of them lie in a square of the noise's scale.
POINTS, CROWDS, NAMES = 2000, (0.5, 1.25, 2.0), ("types", "hours", "both")
KIND_HEADS = ("types", "marks", "kinds", "n (alpha / eps)² / E²", "tents", "moved")
HEADS = ("set", "kinds", "n", "alpha", "eps", "n (alpha / eps)² / E²", "tents", "moved", "tents, s", "moved, s")
Case = tuple[str, dps.Marks, dps.PointPattern, dps.PointPattern]


def hour_of(kind: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Hours of types, each about one of its own."""
    return (4 + 8 * kind + 3 * rng.standard_normal(len(kind))) % 24


def on_streets() -> Iterator[Case]:
    """Sets on streets: name, marks, released points and judging ones."""
    for name, n in STREETS:
        network, common = streets.city(name, 1)
        own = [streets.city(name, 11 + k)[1] for k in range(len(KINDS))] if name != "own factors" else apart(common)
        rng = np.random.default_rng([n, len(common)])
        kind = rng.choice(len(KINDS), n + JUDGES, p=(0.5, 0.3, 0.2))
        edge = np.array([rng.choice(len(common), p=(common + own[k]) / 2) for k in kind])
        whole = network.pattern(edge, rng.random(len(edge)))
        for marks in (dps.Marks(dps.Types("type", KINDS)), dps.Marks(dps.Types("type", KINDS), HOURS)):
            if marks.times is not None and (name, n) != STREETS[0]:
                continue
            columns = {"type": np.array(KINDS)[kind], "hour": hour_of(kind, rng)}
            known, judging = (part(whole, marks, columns, some) for some in (slice(n), slice(n, None)))
            yield f"{name}, simulated{', by the hour' if marks.times else ''}", marks, known, judging
    for name, pattern in (("Soho", dps.datasets.soho_deaths), ("Arizona", dps.datasets.geodanet_crimes)):
        whole = pattern(on="streets")
        rng = np.random.default_rng(len(whole))
        west = whole.xy[:, 0] < np.median(whole.xy[:, 0])
        columns = {"type": np.where(rng.random(len(whole)) < np.where(west, 0.7, 0.2), "a", "b")}
        order, half, marks = rng.permutation(len(whole)), len(whole) // 2, dps.Marks(dps.Types("type", KINDS[:2]))
        known, judging = (part(whole, marks, columns, some) for some in (order[:half], order[half:]))
        yield f"{name}, shipped", marks, known, judging


def apart(common: np.ndarray) -> list[np.ndarray]:
    """Shares of the same streets, each street with another's factor."""
    rng = np.random.default_rng(2)
    weighed = [common * np.exp(rng.standard_normal(len(common))) for _ in KINDS]
    return [each / each.sum() for each in weighed]


def part(whole: dps.PointPattern, marks: dps.Marks, columns: dict[str, np.ndarray], some: object) -> dps.PointPattern:
    return dps.PointPattern.at(whole.positions[some], whole.domain, {name: columns[name][some] for name in marks.names})


def in_windows() -> Iterator[Case]:
    """Sets by the hour, and by type and hour, in a square."""
    for (n, width), name in itertools.product(WINDOWS, ("hours", "both")):
        rng = np.random.default_rng([n, len(name)])
        truth, marks = spots.Truth.made("alike", rng), spots.marks_of(name)
        truth.width[:] *= width
        whole = truth.pattern(n + JUDGES, dps.Marks(spots.TYPES, spots.HOURS), rng)
        known, judging = (part(whole, marks, whole.marks, some) for some in (slice(n), slice(n, None)))
        yield f"hot spots of {width:g} widths, {'types and hours' if name == 'both' else name}", marks, known, judging


def score(release: dps.MarkedRelease, judging: dps.PointPattern, size: float) -> float:
    """Mean logarithm of the density of judging points over an even one."""
    marks, at = release.marks, release.intensity
    kinds = marks.types.values if marks.types else (None,)
    kind = judging.marks["type"] if marks.types else np.zeros(len(judging))
    size *= len(kinds) * (marks.times.length if marks.times else 1.0)
    value = np.empty(len(judging))
    for each in kinds:
        some = kind == each if each is not None else np.ones(len(judging), dtype=bool)
        when = {"time": judging.marks["hour"][some]} if marks.times else {}
        element, weight = at.mesh.values(judging.positions[some])
        value[some] = at.at(element, weight, judging.positions[some], type=each, **when)
    return float(np.log(0.99 * value / at.total * size + 0.01).mean())


def rows_of(cases: Iterator[Case], settings: tuple[tuple[float, float], ...], say: Callable[[list], None]) -> None:
    """Scores of tents and of moved points, setting by setting."""
    for (name, marks, known, judging), (share, epsilon) in itertools.product(cases, settings):
        domain = known.domain
        protected = {"time": "public"} if marks.times else {}
        near = AlphaNeighbours(share * domain.extent, types="public" if marks.types else None, **protected)
        found, seconds = [], []
        for mechanism in ("tents", "moved"):
            made = dps.MarkedSynthesizer(epsilon, marks=marks, relation=near, mechanism=mechanism)
            release, took = timed(lambda made=made, known=known: made.release(known, 1), time.process_time)
            found.append(score(release, judging, domain.size))
            seconds.append(took)
        told = [f"**{each:.3f}**" if each == max(found) else f"{each:.3f}" for each in found]
        crowd = len(known) * (share / epsilon) ** 2
        shown = [name, f"{np.prod(marks.shape)}", f"{len(known)}", f"{share:g} E", f"{epsilon:g}", f"{crowd:.3g}"]
        say([*shown, *told, *(f"{each:.0f}" for each in seconds)])


def by_kinds() -> Iterator[list[str]]:
    """Distances of tents and of moved points from the truth, by types, hours or both."""
    for crowd, likeness, name in itertools.product(CROWDS, ("alike", "unlike"), NAMES):
        rng = np.random.default_rng([1, POINTS, likeness == "alike", len(name)])
        truth, marks = spots.Truth.made(likeness, rng), spots.marks_of(name)
        whole = truth.pattern(POINTS, dps.Marks(spots.TYPES, spots.HOURS), rng)
        known, shares = part(whole, marks, whole.marks, slice(None)), truth.shares(marks)
        near = AlphaNeighbours(
            (crowd / POINTS) ** 0.5 * spots.SIDE,
            time="public" if marks.times else None,
            types="public" if marks.types else None,
        )
        found = [
            spots.distance(spots.seen(made.release(known, 1)), shares)
            for made in (
                dps.MarkedSynthesizer(1.0, marks=marks, relation=near, mechanism=each) for each in ("tents", "moved")
            )
        ]
        row = [likeness, name, f"{np.prod(marks.shape)}", f"{crowd:g}", *(f"{each:.3f}" for each in found)]
        print(*row, sep=" | ", flush=True)
        yield row


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--only", choices=("streets", "windows"), help="these sets alone")
    parser.add_argument("--sets", nargs="+", help="beginnings of names of sets, instead of all")
    parser.add_argument("--csv", type=Path, help="file of all rows")
    parser.add_argument("--kinds", action="store_true", help="distances by numbers of kinds, in place of all else")
    args = parser.parse_args()
    if args.kinds:
        fill(args.out, "kinds", table(KIND_HEADS, list(by_kinds())))
        return
    rows: list[list[str]] = []

    def say(row: list[str]) -> None:
        rows.append(row)
        print(*row, sep=" | ", flush=True)
        fill(args.out, args.only or "all", table(HEADS, rows))
        if args.csv:
            write_rows(args.csv, HEADS, [[plain(cell) for cell in each] for each in rows])

    def wanted(cases: Iterator[Case]) -> Iterator[Case]:
        return (each for each in cases if not args.sets or each[0].startswith(tuple(args.sets)))

    if args.only != "windows":
        rows_of(wanted(on_streets()), SETTINGS, say)
    if args.only != "streets":
        rows_of(wanted(in_windows()), WINDOW_SETTINGS, say)


if __name__ == "__main__":
    main()
