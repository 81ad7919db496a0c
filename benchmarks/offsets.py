"""Total variation of released intensities with and without a public offset.

A square kilometre, privacy radius 20 m, public n, noised tents. The population of cells of 50 m is clustered: towns of
several sizes, and by chance in each cell. Truths follow it but for a risk that varies smoothly by a third; or half of
the points do, while the others follow a field of their own; or none do.

    OMP_NUM_THREADS=1 python benchmarks/offsets.py --repeats 5 --out docs/results/offsets.md
"""

import numpy as np
from drawn_fields import at_places
from measuring import timed
from numpy.random import Generator
from pages import command_line, fill, spread_of, table

import dpppsynth as dps
from dpppsynth.models.sparse_fields import SparseMatern

EPSILON, ALPHA, RISK_SD = 1.0, 20.0, 0.33
WINDOW = dps.Window.rectangle(0, 0, 1000, 1000)
CELLS, SIDE, BLOCK = 200, 5.0, 10
TICKS = (np.arange(CELLS) + 0.5) * SIDE
# Row by row from the top, as rasters are.
PLACES = np.stack(np.meshgrid(TICKS, TICKS[::-1]), axis=-1).reshape(-1, 2)
TRUTHS = {"follow it": 1.0, "half of them do": 0.5, "do not": 0.0}
SIZES = (300, 3000)
HEADS = ("points", "n", "truths", "with offset", "without", "even", "ratio (smallest to largest)")


def smooth(sd: float, range_: float, rng: Generator) -> np.ndarray:
    """Values of a Matern field at the places."""
    return at_places(SparseMatern(sd, range_, 1.0), WINDOW, 51, PLACES, rng)


def inhabitants(rng: Generator) -> np.ndarray:
    """(rows, columns) people of cells of 50 m: six towns on thinly populated land."""
    at, width = rng.uniform(0, 1000, (6, 2)), rng.uniform(40, 120, 6)
    towns = np.exp(-((PLACES[:, None] - at) ** 2).sum(axis=2) / (2 * width**2)) @ rng.dirichlet(np.ones(6))
    blocks = (towns + 0.01).reshape(CELLS // BLOCK, BLOCK, CELLS // BLOCK, BLOCK).mean(axis=(1, 3))
    return blocks * rng.gamma(2.0, 500.0, blocks.shape)


def distance(values: np.ndarray, mass: np.ndarray) -> float:
    return float(np.abs(values / values.sum() - mass).sum() / 2)


def once(share: float, n: int, seed: int) -> tuple[float, float, float]:
    """Distances to the truth with the offset, without it, and of an even intensity."""
    rng = np.random.default_rng([seed, n, int(10 * share)])
    people = inhabitants(rng)
    offset = dps.Offset.from_grid(people, WINDOW.bounds, "counts")
    own = np.exp(smooth(1.0, 200.0, rng))
    followed = offset(PLACES) * np.exp(smooth(RISK_SD, 400.0, rng))
    mass = share * followed / followed.sum() + (1 - share) * own / own.sum()
    xy = PLACES[rng.choice(len(mass), n, p=mass)] + rng.uniform(-SIDE / 2, SIDE / 2, (n, 2))
    pattern = dps.PointPattern(xy, WINDOW)
    found = [
        dps.LGCPSynthesizer(EPSILON, alpha=ALPHA, offset=given, mechanism="tents", prior="sparse")
        .release(pattern, rng)
        .intensity(PLACES)
        for given in (offset, None)
    ]
    return distance(found[0], mass), distance(found[1], mass), distance(np.ones(len(mass)), mass)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--first", type=int, default=1)
    args = parser.parse_args()
    rows = []
    for name, share in TRUTHS.items():
        for n in SIZES:
            seeds = range(args.first, args.first + args.repeats)
            found, seconds = timed(lambda s=share, n=n, seeds=seeds: np.array([once(s, n, seed) for seed in seeds]))
            ratio = found[:, 0] / found[:, 1]
            means = (f"{each:.3f}" for each in found.mean(axis=0))
            rows.append((name, f"{n}", f"{args.repeats}", *means, spread_of(ratio)))
            print(*rows[-1], f"{seconds:.0f} s", flush=True)
    fill(args.out, "offsets", table(HEADS, rows))


if __name__ == "__main__":
    main()
