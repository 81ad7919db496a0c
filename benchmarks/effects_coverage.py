"""Coverage of 90 % intervals of the effects of covariates, behind noised tents.

A square kilometre, privacy radius 20 m, public n. Two covariates: a gradient from west to east, as smooth as a field
can be, and patches of 50 m by chance, as rough as a deprived block among others. True effects are drawn anew each time,
normal with standard deviation 0.5 per standard deviation of the covariate, and so is the field, where there is one.

    OMP_NUM_THREADS=1 python benchmarks/effects_coverage.py --repeats 30 --out docs/results/effects.md
"""

import numpy as np
from measuring import timed
from pages import command_line, fill, table

import dpppsynth as dps
from dpppsynth.models import regular_triangulation
from dpppsynth.models.sparse_fields import SparseMatern
from dpppsynth.models.sparse_solver import SparseFactor
from dpppsynth.spatial.layers import RasterLayer

WINDOW = dps.Window.rectangle(0, 0, 1000, 1000)
CELLS, SIDE = 200, 5.0
TICKS = (np.arange(CELLS) + 0.5) * SIDE
PLACES = np.stack(np.meshgrid(TICKS, TICKS, indexing="ij"), axis=-1).reshape(-1, 2)
EFFECT_SD, FIELD_SD = 0.5, 0.7
LEVEL, EPSILON, ALPHA = 0.9, 1.0, 20.0
# Range of the field in metres; none is without a field.
FIELDS = {"none": None, "range 400 m": 400.0, "range 150 m": 150.0}
SIZES = (1000,)
NAMES = ("gradient", "patches")
HEADS = ("field", "n", "truths", "covariate", "held by 90 % intervals", "mean error", "root of mean square", "sd told")


def field(range_: float | None, rng: np.random.Generator) -> np.ndarray:
    """Values of a Matern field at the places."""
    if range_ is None:
        return np.zeros(len(PLACES))
    mesh = regular_triangulation(WINDOW, shape=(61, 61))
    prior = SparseMatern(FIELD_SD, range_, 1.0).on(mesh)
    unknowns = SparseFactor(prior.precision).solve(prior.root @ rng.standard_normal(prior.root.shape[1]))
    return mesh.basis(PLACES) @ (prior.placement @ unknowns)


def once(range_: float | None, n: int, seed: int) -> np.ndarray:
    """(2, 3) whether the interval holds, error and standard deviation of each effect."""
    rng = np.random.default_rng([seed, n, int(range_ or 0)])
    patches = RasterLayer(rng.standard_normal((20, 20)), (0, 0, 1000, 1000))
    covariates = {"gradient": lambda xy: xy[:, 0], "patches": patches}
    raw = np.column_stack([PLACES[:, 0], patches(PLACES)])
    effects = EFFECT_SD * rng.standard_normal(2)
    mass = np.exp((raw - raw.mean(axis=0)) / raw.std(axis=0) @ effects + field(range_, rng))
    cell = rng.choice(len(mass), n, p=mass / mass.sum())
    xy = PLACES[cell] + rng.uniform(-SIDE / 2, SIDE / 2, (n, 2))
    settings = dps.LGCPSynthesizer(EPSILON, alpha=ALPHA, covariates=covariates)
    release = settings.release(dps.PointPattern(xy, WINDOW), rng)
    out = []
    for name, true in zip(NAMES, effects, strict=True):
        drawn = release.effects[name]
        low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        out.append([low <= true <= high, drawn.mean() - true, drawn.std()])
    return np.array(out, dtype=float)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    args = parser.parse_args()
    rows = []
    for n in SIZES:
        for name, range_ in FIELDS.items():
            found, seconds = timed(lambda n=n, r=range_: np.array([once(r, n, k) for k in range(args.repeats)]))
            for k, covariate in enumerate(NAMES):
                held, error, sd = found[:, k].T
                figures = (f"{100 * held.mean():.0f} %", f"{error.mean():+.3f}", f"{np.sqrt((error**2).mean()):.3f}")
                rows.append((name, str(n), str(args.repeats), covariate, *figures, f"{sd.mean():.3f}"))
                print(*rows[-1], f"{seconds:.0f} s", flush=True)
            fill(args.out, "effects", table(HEADS, rows))


if __name__ == "__main__":
    main()
