"""Shares of 90 % intervals of marked releases that hold the intensity, of hot spots and of draws from the prior itself.

Hot spots are those of marks.py ("alike"), on a square kilometre with nothing between them. Draws of the prior have
sigma 2, a range of 450 m, types with a share .25 of their own and, by the hour, curves of standard deviation .6 and a
share .25 of places with times of their own, on triangles of 17 m. "prior, sizes too" are draws whose range and sizes
are drawn as well, from those that releases average over: this is what a posterior's intervals promise to hold. Times
are protected within an hour, types public; privacy radius 25 m, epsilon 1. Intensities at 200 places, of each type,
every sixth hour. Counted apart are places whose intensity is a twentieth of the average or more, and those whose
released intensity is above the average.

    OMP_NUM_THREADS=1 python benchmarks/marked_coverage.py --out docs/results/marks.md
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import marks as cases
import numpy as np
from numpy.random import Generator
from pages import command_line, fill, table

import dpppsynth as dps
from dpppsynth.mechanisms.marked.intensity import MarkedIntensity, MarkedMesh
from dpppsynth.mechanisms.marked.synthesizer import OWNS, TIME_SIGMAS, TOGETHERS
from dpppsynth.models import regular_triangulation
from dpppsynth.models.marked_fields import clock_field
from dpppsynth.models.sparse_fields import SparseField, SparseMatern
from dpppsynth.models.sparse_solver import SparseFactor

SIGMA, LEVEL_SD, FINE = 2.0, 0.5, 61
# Those that releases by the hour average over, in sides.
RANGES = (0.4, 0.68, 1.156)
EPSILON, PLACES, EMPTY = 1.0, 200, 1 / 20
# Marks, points and originals: by the hour these vary most.
CASES = (("types", 600, 12), ("hours", 600, 40), ("both", 3000, 12))


@dataclass(frozen=True)
class Sizes:
    """Range of a field of places, and what types, times and places at times have beside it (`MarkedPrior`)."""

    range_: float = 450.0
    own: float = 0.25
    time: float = 0.6
    together: float = 0.25

    @classmethod
    def drawn(cls, rng: Generator) -> "Sizes":
        """Each from those that the default averages over."""
        of = (cases.SIDE * np.array(RANGES), OWNS, TIME_SIGMAS, TOGETHERS)
        return cls(*(float(rng.choice(values)) for values in of))


@dataclass(frozen=True)
class Original:
    """A pattern, and the intensity (types, hours, places) that it comes from, at all places of marks.py."""

    pattern: dps.PointPattern
    true: np.ndarray


def spots(marks: dps.Marks, n: int, rng: Generator) -> Original:
    truth = cases.Truth.made("alike", rng)
    shares = truth.shares(marks)[:, :: 6 if marks.times else 1]
    hour = cases.DAY / len(cases.CLOCK) if marks.times else 1.0
    pattern = truth.pattern(n, marks, rng)
    return Original(pattern, n * shares / (hour * cases.SIDE**2 / len(cases.PLACES)))


def drawn(field: SparseField, count: int, rng: Generator) -> np.ndarray:
    """(count, V) draws of a field."""
    white = field.root @ rng.standard_normal((field.root.shape[1], count))
    return np.asarray((field.placement @ SparseFactor(field.precision).solve(white)).T)


def prior(marks: dps.Marks, n: int, rng: Generator) -> Original:
    return of_sizes(Sizes(), marks, n, rng)


def prior_of_any_size(marks: dps.Marks, n: int, rng: Generator) -> Original:
    return of_sizes(Sizes.drawn(rng), marks, n, rng)


def of_sizes(sizes: Sizes, marks: dps.Marks, n: int, rng: Generator) -> Original:
    """A draw of the prior, and points of it."""
    types, hats = marks.shape
    mesh = regular_triangulation(cases.WINDOW, shape=(FINE, FINE))
    space = SparseMatern(SIGMA, sizes.range_, 1.0).on(mesh)
    logs = np.tile(drawn(space, 1, rng), (types, hats, 1))
    if marks.types:
        logs += sizes.own * drawn(space, types, rng)[:, None] + LEVEL_SD * rng.standard_normal((types, 1, 1))
    if marks.times:
        clock = clock_field(marks.times, marks.times.length / 3)
        curve, own = drawn(clock, 1, rng), drawn(clock, types, rng)
        logs += sizes.time * (curve + sizes.own * own * (types > 1))[:, :, None]
        root = clock.placement @ np.linalg.inv(np.linalg.cholesky(clock.precision.toarray())).T
        logs += sizes.together * np.einsum("th,hv->tv", root, drawn(space, root.shape[1], rng))
    intensity = MarkedIntensity(MarkedMesh(mesh, marks), logs)
    positions, kinds, times = intensity.draw_points(n, rng)
    pattern = dps.PointPattern.at(positions, cases.WINDOW, marks.columns(kinds, times))
    found = [[intensity(cases.PLACES, time=hour, type=kind) for hour in hours(marks)] for kind in kinds_of(marks)]
    return Original(pattern, np.array(found) * n / intensity.total)


MADE: dict[str, Callable[[dps.Marks, int, Generator], Original]] = {
    "prior": prior,
    "prior, sizes too": prior_of_any_size,
    "hot spots": spots,
}


def kinds_of(marks: dps.Marks) -> tuple[str | None, ...]:
    return cases.KINDS if marks.types else (None,)


def hours(marks: dps.Marks) -> list[float | None]:
    return [*cases.CLOCK[::6]] if marks.times else [None]


def held(truth: str, name: str, n: int, seed: int) -> np.ndarray:
    """Shares of intervals that hold the truth: of all, of places that are not empty, of those above the average."""
    rng, marks = np.random.default_rng([seed, n, len(name), len(truth)]), cases.marks_of(name)
    original = MADE[truth](marks, n, rng)
    release = cases.together(marks, EPSILON, 1.0).release(original.pattern, rng)
    # Places anywhere, as maps are read, and few, as each costs the time of all draws.
    some = rng.choice(len(cases.PLACES), PLACES, replace=False)
    average = n / cases.SIDE**2 / len(kinds_of(marks)) / (cases.DAY if marks.times else 1.0)
    rows = []
    for c, kind in enumerate(kinds_of(marks)):
        for h, hour in enumerate(hours(marks)):
            told = release.interval(cases.PLACES[some], 0.9, time=hour, type=kind)
            true = original.true[c, h, some]
            high = release.intensity(cases.PLACES[some], time=hour, type=kind) > average
            rows.append([(told.lower <= true) & (true <= told.upper), true >= EMPTY * average, high])
    inside, there, high = np.concatenate(rows, axis=1)
    return np.array([inside.mean(), inside[there].mean(), inside[high].mean()])


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--only", choices=[name for name, *_ in CASES], help="one kind of marks, printed only")
    args = parser.parse_args()
    rows = []
    for name, n, repeats in CASES:
        if args.only not in (None, name):
            continue
        for truth in MADE:
            found = np.array([held(truth, name, n, seed) for seed in range(1, repeats + 1)])
            error = found.std(axis=0, ddof=1) / math.sqrt(repeats)
            shown = [f"{a:.0%} ({b:.0%})" for a, b in zip(found.mean(axis=0), error, strict=True)]
            rows.append([truth, name, f"{n}", f"{repeats}", *shown])
            print(*rows[-1], sep=" | ", flush=True)
    if args.only is None:
        heads = (
            "truth",
            "marks",
            "n",
            "originals",
            "all",
            "a twentieth of the average or more",
            "released above average",
        )
        fill(args.out, "held", table(heads, rows))


if __name__ == "__main__":
    main()
