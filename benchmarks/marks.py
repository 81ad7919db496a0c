"""Releases of points with types and times beside releases that are split by them; time and memory.

Originals on a square kilometre come from thirty hot spots, 40 to 90 m wide. Each type weighs the spots anew, by factors
exp(N(0, 0.6^2)) of common weights ("alike") or by weights of its own ("unlike"), and each spot has an hour of its own
about which its points fall, with a standard deviation of 2 to 5 hours. Total variation distance to the truth over
places, types and hours; privacy radius 25 m.

Moved points stand beside tents and beside moved points of each type by itself. Sets of a folder are files NAME.csv.gz
with columns x, y and type, whose window NAME.json may state as in benchmarks/held_out.py. Half of their points are
released, and scored is the mean over the others of the log-density of places of their type, times the area.

    python benchmarks/marks.py --repeats 3 --first 11 --out docs/results/marks.md
    python benchmarks/marks.py --only moved --repeats 1 --first 11 --data sets --out docs/results/marks.md
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from held_out import stated_window
from measuring import in_fresh_process, memory, run_case, timed
from pages import command_line, fill, spread_of, table

import dpppsynth as dps
from dpppsynth.models import regular_triangulation
from dpppsynth.privacy import AlphaNeighbours

SIDE, SPOTS, ALPHA, DAY = 1000.0, 30, 25.0, 24.0
KINDS = ("a", "b", "c", "d", "e")
WINDOW = dps.Window.rectangle(0, 0, SIDE, SIDE)
TYPES, HOURS = dps.Types("type", KINDS), dps.Times.day("hour", hats=8)
TICKS = (np.arange(50) + 0.5) * SIDE / 50
PLACES = np.stack(np.meshgrid(TICKS, TICKS, indexing="ij"), axis=-1).reshape(-1, 2)
CLOCK = np.arange(0.5, DAY)
# Parts of the day by which releases are split.
PARTS = 4
BY_TYPE = [("alike", 600, 1.0), ("alike", 3000, 1.0), ("alike", 10_000, 0.3), ("unlike", 600, 1.0)]
BY_TYPE += [("unlike", 2000, 1.0), ("unlike", 10_000, 0.3)]
BY_HOUR = [(600, 1.0), (3000, 1.0), (10_000, 0.3)]
# Likeness, marks, points and budgets of moved points; and budgets and privacy radius, in sides, of sets.
MOVED = [("alike", "types", 1000, 1.0), ("alike", "types", 3000, 3.0), ("unlike", "types", 2000, 3.0)]
SET_BUDGETS, SET_ALPHA = (1.0, 3.0), 0.01
# Vertices along a side, types, hats, points.
SIZES = [(20, 5, 6, 100_000), (30, 5, 8, 300_000), (40, 5, 12, 1_000_000)]


@dataclass(frozen=True)
class Truth:
    """Hot spots, with weights (types, spots), widths, hours and their spreads."""

    at: np.ndarray
    width: np.ndarray
    weight: np.ndarray
    hour: np.ndarray
    spread: np.ndarray

    @classmethod
    def made(cls, likeness: str, rng: np.random.Generator) -> "Truth":
        common = rng.dirichlet(np.ones(SPOTS))
        own = np.exp(rng.normal(0, 0.6, (len(KINDS), SPOTS))) * common
        if likeness == "unlike":
            own = rng.dirichlet(np.full(SPOTS, 0.3), len(KINDS))
        weight = own / own.sum(axis=1, keepdims=True) * rng.dirichlet(np.full(len(KINDS), 3.0))[:, None]
        width, hour, spread = (rng.uniform(*ends, SPOTS) for ends in ((40, 90), (0, DAY), (2, 5)))
        return cls(rng.uniform(0, SIDE, (SPOTS, 2)), width, weight, hour, spread)

    def pattern(self, n: int, marks: dps.Marks, rng: np.random.Generator) -> dps.PointPattern:
        """n points inside the window, with the columns that the marks name."""
        xy, kind, hour = np.empty((0, 2)), np.empty(0, dtype=int), np.empty(0)
        while len(xy) < n:
            each, spot = np.divmod(rng.choice(self.weight.size, 2 * n, p=self.weight.ravel()), SPOTS)
            new = self.at[spot] + self.width[spot, None] * rng.standard_normal((2 * n, 2))
            inside = ((new >= 0) & (new <= SIDE)).all(axis=1)
            time = (self.hour[spot] + self.spread[spot] * rng.standard_normal(2 * n)) % DAY
            xy, kind, hour = (
                np.concatenate(pair) for pair in ((xy, new[inside]), (kind, each[inside]), (hour, time[inside]))
            )
        columns = {"type": np.array(KINDS)[kind[:n]], "hour": hour[:n]}
        return dps.PointPattern(xy[:n], WINDOW, {name: columns[name] for name in marks.names})

    @cached_property
    def _hills(self) -> np.ndarray:
        """(places, spots) densities."""
        square = ((PLACES[:, None] - self.at) ** 2).sum(axis=2) / self.width**2
        return np.exp(-square / 2) / self.width**2

    @cached_property
    def _clocks(self) -> np.ndarray:
        """(hours, spots) densities."""
        apart = (CLOCK[:, None] - self.hour + DAY * np.arange(-1, 2)[:, None, None]) / self.spread
        return (np.exp(-(apart**2) / 2) / self.spread).sum(axis=0)

    def shares(self, marks: dps.Marks) -> np.ndarray:
        """(types, hours, places) shares; one type, or one hour, where the marks have none."""
        weight = self.weight if marks.types else self.weight.sum(axis=0, keepdims=True)
        clock = self._clocks / self._clocks.sum(axis=0) if marks.times else np.ones((1, SPOTS))
        found = np.einsum("cs,ts,ps->ctp", weight, clock, self._hills)
        return found / found.sum()


def distance(values: np.ndarray, shares: np.ndarray) -> float:
    return float(np.abs(values / values.sum() - shares).sum() / 2)


def relation(marks: dps.Marks, time: float | str) -> AlphaNeighbours:
    return AlphaNeighbours(ALPHA, time=time if marks.times else None, types="public" if marks.types else None)


def together(
    marks: dps.Marks, epsilon: float, time: float | str = "public", mechanism: str = "tents"
) -> dps.MarkedSynthesizer:
    return dps.MarkedSynthesizer(epsilon, marks=marks, relation=relation(marks, time), mechanism=mechanism)


def seen(release: dps.MarkedRelease) -> np.ndarray:
    """(types, hours, places) intensities."""
    marks, at = release.marks, release.intensity
    kinds: Sequence[str | None] = KINDS if marks.types else (None,)
    hours: Sequence[float | None] = CLOCK if marks.times else (None,)
    return np.array([[at(PLACES, time=hour, type=kind) for hour in hours] for kind in kinds])


def alone(points: np.ndarray, epsilon: float, rng: np.random.Generator, mechanism: str = "auto") -> np.ndarray:
    """(places,) intensity of a release of some of the points, with the default mechanism or another."""
    if not len(points):
        return np.zeros(len(PLACES))
    return (
        dps.LGCPSynthesizer(epsilon, alpha=ALPHA, inference="laplace", mechanism=mechanism)
        .release(dps.PointPattern(points, WINDOW), rng)
        .intensity(PLACES)
    )


def by_type(likeness: str, n: int, epsilon: float, seed: int) -> tuple[float, float]:
    """Distance of one release of all types, and of a release of each."""
    rng = np.random.default_rng([seed, n, likeness == "alike"])
    truth, marks = Truth.made(likeness, rng), dps.Marks(TYPES)
    pattern = truth.pattern(n, marks, rng)
    one = together(marks, epsilon).release(pattern, rng)
    split = [alone(pattern.xy[pattern.marks["type"] == kind], epsilon, rng) for kind in KINDS]
    shares = truth.shares(marks)
    return distance(seen(one), shares), distance(np.array(split)[:, None], shares)


def by_hour(n: int, epsilon: float, seed: int) -> tuple[float, ...]:
    """Distance with times public, protected within an hour, split by parts of the day, and without regard to times."""
    rng = np.random.default_rng([seed, n])
    truth, marks = Truth.made("alike", rng), dps.Marks(times=HOURS)
    pattern = truth.pattern(n, marks, rng)
    shares, found = truth.shares(marks), []
    for time in ("public", 1.0):
        one = together(marks, epsilon, time).release(pattern, rng)
        found.append(distance(seen(one), shares))
    part = (pattern.marks["hour"] * PARTS / DAY).astype(int)
    split = np.array([alone(pattern.xy[part == k], epsilon, rng) for k in range(PARTS)])
    never = np.tile(alone(pattern.xy, epsilon, rng), (len(CLOCK), 1))
    found.append(distance(np.repeat(split, len(CLOCK) // PARTS, axis=0)[None], shares))
    return *found, distance(never[None], shares)


def moved(likeness: str, name: str, n: int, epsilon: float, seed: int) -> tuple[float, ...]:
    """Distance of tents, of moved points, and of moved points of each type or part of the day, marks public."""
    rng = np.random.default_rng([seed, n, likeness == "alike", len(name)])
    truth, marks = Truth.made(likeness, rng), marks_of(name)
    pattern = truth.pattern(n, dps.Marks(TYPES, HOURS), rng)
    kept = dps.PointPattern(pattern.xy, WINDOW, {each: pattern.marks[each] for each in marks.names})
    shares, found = truth.shares(marks), []
    for mechanism in ("tents", "moved"):
        one = together(marks, epsilon, mechanism=mechanism).release(kept, rng)
        found.append(distance(seen(one), shares))
    parts = PARTS if marks.times else 1
    part = (pattern.marks["hour"] * parts / DAY).astype(int)
    kinds = KINDS if marks.types else (None,)
    apart = [(part == k) & ((kind is None) | (pattern.marks["type"] == kind)) for kind in kinds for k in range(parts)]
    split = np.array([alone(pattern.xy[some], epsilon, rng, "moved") for some in apart])
    every = split.reshape(len(kinds), parts, -1)
    return *found, distance(np.repeat(every, len(CLOCK) // parts if marks.times else 1, axis=1), shares)


def sets(folder: Path) -> Iterator[tuple[str, dps.PointPattern]]:
    """Patterns with types of the files of a folder."""
    for path in sorted(folder.glob("*.csv.gz")):
        rows = np.loadtxt(path, delimiter=",", skiprows=1, dtype=str)
        name, xy = path.name.removesuffix(".csv.gz"), rows[:, :2].astype(float)
        window = stated_window(path.with_name(f"{name}.json")) or dps.Window.rectangle(*xy.min(axis=0), *xy.max(axis=0))
        inside = window.contains(xy)
        yield name, dps.PointPattern(xy[inside], window, {"type": rows[inside, 2]})


def scored(pattern: dps.PointPattern, epsilon: float, seed: int) -> tuple[float, ...]:
    """Scores of the other half by tents, by moved points, and by moved points of each type."""
    order = np.random.default_rng(seed).permutation(len(pattern))
    half, window, kind = len(pattern) // 2, pattern.domain, pattern.marks["type"]
    released, judging = order[:half], order[half:]
    known = dps.PointPattern(pattern.xy[released], window, {"type": kind[released]})
    marks, radius = dps.Marks(dps.Types("type", sorted(set(kind.tolist())))), SET_ALPHA * window.extent
    near, found = AlphaNeighbours(radius, types="public"), []

    def score(densities: dict[str, np.ndarray]) -> float:
        each = np.array([densities[one][k] for k, one in enumerate(kind[judging])])
        return float(np.log(0.99 * each * window.area + 0.01).mean())

    for mechanism in ("tents", "moved"):
        made = dps.MarkedSynthesizer(epsilon, marks=marks, relation=near, mechanism=mechanism).release(known, seed)
        totals = made.intensity.masses.sum(axis=(1, 2))
        by_type = zip(marks.types.values, totals, strict=True)
        found.append(score({one: made.intensity(pattern.xy[judging], type=one) / total for one, total in by_type}))
    split = dps.LGCPSynthesizer(epsilon, alpha=radius, mechanism="moved")
    apart = {}
    for one in marks.types.values:
        made = split.release(dps.PointPattern(known.xy[known.marks["type"] == one], window), seed)
        apart[one] = made.intensity(pattern.xy[judging]) / made.intensity.total
    return *found, score(apart)


def marks_of(name: str) -> dps.Marks:
    return dps.Marks(TYPES if name != "hours" else None, HOURS if name != "types" else None)


def size(side: int, types: int, hats: int, n: int) -> dict[str, float]:
    """Seconds of a release and of a pattern, and peak memory, on a mesh of one's own."""
    rng = np.random.default_rng(1)
    marks = dps.Marks(dps.Types("type", KINDS[:types]), dps.Times.day("hour", hats=hats))
    pattern = Truth.made("alike", rng).pattern(n, dps.Marks(TYPES, HOURS), rng)
    mesh = regular_triangulation(WINDOW, shape=(side, side))
    settings = dps.MarkedSynthesizer(1.0, marks=marks, relation=relation(marks, 1.0), mesh=mesh)
    release, seconds = timed(lambda: settings.release(pattern, rng))
    _, drawn = timed(lambda: release.sample(1, rng))
    return {"release": seconds, "sample": drawn, "MB": memory()}


def means(rows: list[tuple[float, ...]]) -> list[str]:
    return [f"{each:.3f}" for each in np.mean(rows, axis=0)]


def ratio(rows: list[tuple[float, ...]], of: int, over: int) -> str:
    return spread_of(np.array(rows)[:, of] / np.array(rows)[:, over])


def type_rows(repeats: int, first: int) -> list[list[str]]:
    rows = []
    for case in BY_TYPE:
        found = [by_type(*case, first + k) for k in range(repeats)]
        rows.append([case[0], f"{case[1]}", f"{case[2]:g}", *means(found), ratio(found, 0, 1)])
        print(*rows[-1], flush=True)
    return rows


def hour_rows(repeats: int, first: int) -> list[list[str]]:
    rows = []
    for case in BY_HOUR:
        found = [by_hour(*case, first + k) for k in range(repeats)]
        rows.append([f"{case[0]}", f"{case[1]:g}", *means(found), ratio(found, 0, 2)])
        print(*rows[-1], flush=True)
    return rows


def moved_rows(repeats: int, first: int) -> list[list[str]]:
    rows = []
    for case in MOVED:
        found = [moved(*case, first + k) for k in range(repeats)]
        rows.append([*case[:2], f"{case[2]}", f"{case[3]:g}", *means(found), ratio(found, 1, 0)])
        print(*rows[-1], flush=True)
    return rows


def set_rows(folder: Path, repeats: int) -> list[list[str]]:
    rows = []
    for name, pattern in sets(folder):
        for epsilon in SET_BUDGETS:
            found = [scored(pattern, epsilon, k) for k in range(repeats)]
            kinds = len(set(pattern.marks["type"].tolist()))
            rows.append([name, f"{kinds}", f"{len(pattern) // 2}", f"{epsilon:g}", *means(found)])
            print(*rows[-1], flush=True)
    return rows


def size_rows() -> list[list[str]]:
    rows = []
    for side, types, hats, n in SIZES:
        told = in_fresh_process(__file__, "size", side, types, hats, n)
        rows.append([f"{side} x {side}", f"{types}", f"{hats}", f"{side**2 * types * hats}", f"{n}"])
        rows[-1] += [f"{told['release']:.0f}", f"{told['sample']:.1f}", f"{told['MB']:.0f}"]
        print(*rows[-1], flush=True)
    return rows


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=4, help="originals of each row")
    parser.add_argument("--first", type=int, default=1, help="first seed")
    parser.add_argument("--case", help="one case, in a process of its own")
    parser.add_argument("--only", choices=("moved",), help="these tables alone")
    parser.add_argument("--data", type=Path, help="folder of files NAME.csv.gz with types")
    args = parser.parse_args()
    if args.case:
        run_case(args.case, size)
        return
    if args.data:
        heads = ("set", "types", "n", "eps", "tents", "moved", "moved, split")
        fill(args.out, "sets", table(heads, set_rows(args.data, args.repeats)))
    heads = ("types", "marks", "n", "eps", "tents", "moved", "moved, split", "moved over tents (smallest to largest)")
    fill(args.out, "moved", table(heads, moved_rows(args.repeats, args.first)))
    if args.only:
        return
    # First, while this process is small: what it holds counts as the peak memory of those that it starts.
    size_heads = ("vertices", "types", "hats", "numbers", "n", "release, s", "one pattern, s", "MB")
    fill(args.out, "sizes", table(size_heads, size_rows()))
    own = ("together", "split", "ratio (smallest to largest)")
    fill(args.out, "types", table(("types", "n", "eps", *own), type_rows(args.repeats, args.first)))
    split = (
        "hours public",
        "within an hour",
        "split in four",
        "without hours",
        "public over split (smallest to largest)",
    )
    fill(args.out, "hours", table(("n", "eps", *split), hour_rows(args.repeats, args.first)))


if __name__ == "__main__":
    main()
