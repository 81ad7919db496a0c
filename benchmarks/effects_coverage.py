"""Coverage of 90 % intervals of the effects of covariates, behind noised tents, on a square and along streets.

A square kilometre, privacy radius 20 m, public n; or streets 100 m apart in it, on which truths have no field. Two
covariates: a gradient from west to east, as smooth as a field can be, and patches of 50 m by chance, as rough as a
deprived block among others. True effects are drawn anew each time, normal with standard deviation 0.5 per standard
deviation of the covariate, and so is the field, where there is one.

    OMP_NUM_THREADS=1 python benchmarks/effects_coverage.py --repeats 30 --out docs/results/effects.md
    OMP_NUM_THREADS=1 python benchmarks/effects_coverage.py --more --repeats 30 --out docs/results/effects.md
    OMP_NUM_THREADS=1 python benchmarks/effects_coverage.py --types --repeats 10 --out docs/results/effects.md

With `--types` points have two types, which share a field and have effects of their own, of patches of 100 m.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from drawn_fields import at_places
from measuring import timed
from numpy.random import Generator
from pages import command_line, fill, table

import dpppsynth as dps
from dpppsynth.models.sparse_fields import SparseMatern
from dpppsynth.privacy import AlphaNeighbours
from dpppsynth.spatial.raster_layers import RasterLayer

WINDOW = dps.Window.rectangle(0, 0, 1000, 1000)
CELLS, SIDE = 200, 5.0
TICKS = (np.arange(CELLS) + 0.5) * SIDE
PLACES = np.stack(np.meshgrid(TICKS, TICKS, indexing="ij"), axis=-1).reshape(-1, 2)
EFFECT_SD, FIELD_SD = 0.5, 0.7
LEVEL, EPSILON, ALPHA = 0.9, 1.0, 20.0
# Range of the field in metres; none is without a field.
FIELDS = {"none": None, "range 400 m": 400.0, "range 150 m": 150.0}
SIZE = 1000
# Further cases: a domain, a field and a size.
MORE = (("square", "none", 10_000), ("square", "range 150 m", 10_000), ("streets", "none", 1000))
MORE += (("streets", "none", 10_000),)
# Streets 100 m apart, and crossings along a side.
GAP, CROSSINGS = 100.0, 10
NAMES, TYPES = ("gradient", "patches"), ("a", "b")
HEADS = (
    "domain",
    "field",
    "n",
    "truths",
    "covariate",
    "held by 90 % intervals",
    "mean error",
    "root of mean square",
    "sd told",
)


def field(range_: float, rng: Generator) -> np.ndarray:
    """Values of a Matern field at the places."""
    return at_places(SparseMatern(FIELD_SD, range_, 1.0), WINDOW, 61, PLACES, rng)


def streets() -> dps.LinearNetwork:
    """A lattice of streets."""
    number = np.arange(CROSSINGS**2).reshape(CROSSINGS, CROSSINGS)
    edges = np.concatenate([np.stack([a[:-1], a[1:]], axis=-1).reshape(-1, 2) for a in (number, number.T)])
    return dps.LinearNetwork(GAP / 2 + GAP * np.column_stack(np.divmod(number.ravel(), CROSSINGS)), edges)


def drawn_pattern(domain: str, weight: Callable[[np.ndarray], np.ndarray], n: int, rng: Generator) -> dps.PointPattern:
    """n points of a density at places, which are all over a square or along streets."""
    if domain == "square":
        mass = weight(PLACES)
        xy = PLACES[rng.choice(len(mass), n, p=mass / mass.sum())] + rng.uniform(-SIDE / 2, SIDE / 2, (n, 2))
        return dps.PointPattern(xy, WINDOW)
    network = streets()
    at = np.column_stack([np.repeat(np.arange(len(network.edges)), 100), np.tile(np.arange(0.5, 100), 180)])
    mass = weight(network.coordinates(at))
    edge, along = at[rng.choice(len(mass), n, p=mass / mass.sum())].T
    return dps.PointPattern.at(np.column_stack([edge, along + rng.uniform(-0.5, 0.5, n)]), network)


def once(domain: str, range_: float | None, n: int, seed: int) -> np.ndarray:
    """(2, 3) whether the interval holds, error and standard deviation of each effect."""
    rng = np.random.default_rng([seed, n, int(range_ or 0)])
    patches = RasterLayer(rng.standard_normal((20, 20)), (0, 0, 1000, 1000))
    covariates = {"gradient": lambda xy: xy[:, 0], "patches": patches}
    effects = EFFECT_SD * rng.standard_normal(2)

    def weight(xy: np.ndarray) -> np.ndarray:
        raw = np.column_stack([xy[:, 0], patches(xy)])
        return np.exp(
            (raw - raw.mean(axis=0)) / raw.std(axis=0) @ effects + (0 if range_ is None else field(range_, rng))
        )

    settings = dps.LGCPSynthesizer(EPSILON, alpha=ALPHA, covariates=covariates)
    release = settings.release(drawn_pattern(domain, weight, n, rng), rng)
    out = []
    for name, true in zip(NAMES, effects, strict=True):
        drawn = release.effects[name]
        low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        out.append([low <= true <= high, drawn.mean() - true, drawn.std()])
    return np.array(out, dtype=float)


def by_type(range_: float | None, n: int, seed: int) -> np.ndarray:
    """(2, 2 types, 3) as `once`, of the effects of each type."""
    rng = np.random.default_rng([seed, n, int(range_ or 0), 2])
    patches = RasterLayer(rng.standard_normal((10, 10)), (0, 0, 1000, 1000))
    raw = np.column_stack([PLACES[:, 0], patches(PLACES)])
    raw = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    effects, shared = EFFECT_SD * rng.standard_normal((2, 2)), 0 if range_ is None else field(range_, rng)
    mass = np.exp(raw @ effects + np.reshape(shared, (-1, 1)))
    cells = [rng.choice(len(PLACES), n // 2, p=each / each.sum()) for each in mass.T]
    xy = PLACES[np.concatenate(cells)] + rng.uniform(-SIDE / 2, SIDE / 2, (n, 2))
    pattern = dps.PointPattern(xy, WINDOW, {"type": np.repeat(TYPES, n // 2)})
    settings = dps.MarkedSynthesizer(
        EPSILON,
        marks=dps.Marks(dps.Types("type", TYPES)),
        relation=AlphaNeighbours(ALPHA, types="public"),
        mechanism="tents",
        covariates={"gradient": lambda at: at[:, 0], "patches": patches},
    )
    plan = settings.plan(WINDOW, n=n)
    release = replace(plan, estimator=plan.estimator.changed({"by_type": True}, plan.statistic)).release(pattern, rng)
    drawn = np.array([[release.effects[f"{name}, {each}"] for each in TYPES] for name in NAMES])
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=-1)
    return np.stack([(low <= effects) & (effects <= high), drawn.mean(axis=-1) - effects, drawn.std(axis=-1)], axis=-1)


def type_rows(repeats: int) -> list[tuple[str, ...]]:
    rows = []
    for name in ("none", "range 400 m"):
        found = np.array([by_type(FIELDS[name], SIZE, k) for k in range(repeats)], dtype=float)
        for k, covariate in enumerate(NAMES):
            held, error, sd = found[:, k].reshape(-1, 3).T
            figures = (f"{100 * held.mean():.0f} %", f"{error.mean():+.3f}", f"{np.sqrt((error**2).mean()):.3f}")
            rows.append(("square", name, str(SIZE), str(repeats), covariate, *figures, f"{sd.mean():.3f}"))
            print(*rows[-1], flush=True)
    return rows


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--more", action="store_true", help="more points, and streets, in a table of their own")
    parser.add_argument("--types", action="store_true", help="effects of each of two types, in a table of their own")
    args = parser.parse_args()
    if args.types:
        fill(args.out, "types", table(HEADS, type_rows(args.repeats)))
        return
    rows = []
    for domain, name, n in MORE if args.more else [("square", name, SIZE) for name in FIELDS]:
        case = (domain, FIELDS[name], n)
        found, seconds = timed(lambda case=case: np.array([once(*case, k) for k in range(args.repeats)]))
        for k, covariate in enumerate(NAMES):
            held, error, sd = found[:, k].T
            figures = (f"{100 * held.mean():.0f} %", f"{error.mean():+.3f}", f"{np.sqrt((error**2).mean()):.3f}")
            rows.append((domain, name, str(n), str(args.repeats), covariate, *figures, f"{sd.mean():.3f}"))
            print(*rows[-1], f"{seconds:.0f} s", flush=True)
        fill(args.out, "more" if args.more else "effects", table(HEADS, rows))


if __name__ == "__main__":
    main()
