"""Coverage of intervals of relative risk, and the intensity's distance, under one prior standard deviation and several.

Four kilometres square, a population of cells of 50 m by chance, privacy radius 100 m, public n, no covariate. Risk is
constant on blocks of 200 m, whose logarithms have standard deviation 0.5; or its logarithm is a Matern field: smooth
(0.6, range 800 m), rough (0.6, 150 m), strong (1.5, 400 m), or zero.

    OMP_NUM_THREADS=1 python benchmarks/risk_coverage.py --repeats 3 --out docs/results/offsets.md
"""

import numpy as np
from drawn_fields import at_places
from measuring import timed
from numpy.random import Generator
from pages import command_line, fill, spread_of, table

import dpppsynth as dps
from dpppsynth.models.sparse_fields import SparseMatern
from dpppsynth.release.cox import CoxRelease

WINDOW, ALPHA, LEVEL, THRESHOLD, SURE = dps.Window.rectangle(0, 0, 4000, 4000), 100.0, 0.9, 1.5, 0.95
TICKS = (np.arange(160) + 0.5) * 25
PLACES = np.stack(np.meshgrid(TICKS, TICKS), axis=-1).reshape(-1, 2)
LOOKED_AT = 400
# Standard deviation and range of a field; those of blocks have none.
FIELDS = {"blocks": None, "smooth": (0.6, 800.0), "rough": (0.6, 150.0), "strong": (1.5, 400.0), "even": (0.0, 800.0)}
CASES = ((300, 1.0), (3000, 1.0), (3000, 10.0))
HEADS = ("risk", "n", "eps", "held: one", "several", "sure of risk > 1.5, wrongly: one", "several")
HEADS += ("distance: one", "several", "ratio")


def log_risk(name: str, rng: Generator) -> np.ndarray:
    """Logarithms at the places."""
    field = FIELDS[name]
    if field is None:
        row, column = (PLACES[:, ::-1] // 200).astype(int).T
        return rng.normal(0, 0.5, (20, 20))[row, column]
    return field[0] * at_places(SparseMatern(1.0, field[1], 1.0), WINDOW, 81, PLACES, rng)


def scores(release: CoxRelease, risk: np.ndarray, mass: np.ndarray, some: np.ndarray) -> list[float]:
    """Share that intervals hold, places sure of a high risk, wrong ones of these, and the intensity's distance."""
    # Intervals that a release refuses to tell, as this benchmark shows.
    lower, upper = release.risk.surface.quantiles(PLACES[some], np.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    sure = release.exceedance(THRESHOLD, PLACES[some]) > SURE
    held = (lower <= risk[some]) & (risk[some] <= upper)
    values = release.intensity(PLACES)
    distance = np.abs(values / values.sum() - mass).sum() / 2
    return [held.mean(), sure.sum(), (sure & (risk[some] <= THRESHOLD)).sum(), distance]


def once(name: str, n: int, epsilon: float, seed: int) -> np.ndarray:
    """(2, 4) scores with one standard deviation of the prior, and with several."""
    rng = np.random.default_rng([seed, n, int(epsilon), len(name)])
    offset = dps.Offset.from_grid(rng.gamma(0.5, 20.0, (80, 80)), WINDOW.bounds, "counts")
    risk, people = np.exp(log_risk(name, rng)), offset(PLACES)
    risk = risk / (people @ risk / people.sum())
    mass = people * risk / (people * risk).sum()
    xy = PLACES[rng.choice(len(mass), n, p=mass)] + rng.uniform(-12.5, 12.5, (n, 2))
    settings = dps.LGCPSynthesizer(epsilon, alpha=ALPHA, offset=offset, mechanism="tents", prior="sparse")
    several = settings.release(dps.PointPattern(xy, WINDOW), rng)
    some = rng.choice(len(PLACES), LOOKED_AT, replace=False)
    one = several.infer(rng, sigma=2.0)
    return np.array([scores(each, risk, mass, some) for each in (one, several)])


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--first", type=int, default=11)
    args = parser.parse_args()
    rows = []
    for name in FIELDS:
        for n, epsilon in CASES:
            seeds = range(args.first, args.first + args.repeats)
            cases = [(name, n, epsilon, seed) for seed in seeds]
            found, seconds = timed(lambda cases=cases: np.array([once(*case) for case in cases]))
            (held, sure, wrong, distance), ratio = found.transpose(2, 1, 0), found[:, 1, 3] / found[:, 0, 3]
            row = [name, f"{n}", f"{epsilon:g}", *(f"{each.mean():.0%}" for each in held)]
            row += [f"{b.sum():.0f} of {a.sum():.0f}" for a, b in zip(sure, wrong, strict=True)]
            row += [f"{each.mean():.3f}" for each in distance]
            # An even risk is found to rounding.
            rows.append((*row, "" if name == "even" else spread_of(ratio)))
            print(*rows[-1], f"{seconds:.0f} s", flush=True)
    fill(args.out, "risk", table(HEADS, rows))


if __name__ == "__main__":
    main()
