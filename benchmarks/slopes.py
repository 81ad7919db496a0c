"""Slopes on a public covariate told from patterns, by the range of the covariate, and by effects of the same release.

A square kilometre, Laplace approximation. The covariate is noise smoothed by a Gaussian kernel of half its range. The
log-intensity is a slope of .3 or .5, up or down, times the covariate, plus half another field of range 500 m. 50
patterns of posterior draws give Poisson regressions on cells of 10 m, combined as they are, and with what `kept_slope`
says; `infer(covariates=)` gives the effect by the same private statistic.

    OMP_NUM_THREADS=1 python benchmarks/slopes.py --repeats 8 --out docs/results/effects.md
"""

from typing import Any

import numpy as np
from numpy.random import Generator
from pages import command_line, fill, table
from scipy.ndimage import gaussian_filter

import dpppsynth as dps
from dpppsynth.core.errors import InputError

WINDOW = dps.Window.rectangle(0, 0, 1000, 1000)
CELLS, SIDE, MARGIN = 100, 10.0, 60
PATTERNS, LEVEL = 50, 0.9
# Points, epsilon, privacy radius, mechanism, and ranges of the covariate.
CASES = ((400, 1.0, 20.0, "tents", (50, 200, 400)), (1500, 1.0, 50.0, "tents", (100, 200, 400)))
HEADS = ("n", "eps", "alpha", "mechanism", "range of the covariate", "kept")
HEADS += ("patterns as they are hold", "told with `kept`", "of these held", "effects hold")


def field(range_: float, rng: Generator) -> np.ndarray:
    """(CELLS^2,) noise smoothed to a range, of mean 0 and standard deviation 1."""
    wide = gaussian_filter(rng.standard_normal((CELLS + 2 * MARGIN,) * 2), range_ / SIDE / 2)
    values = wide[MARGIN:-MARGIN, MARGIN:-MARGIN].ravel()
    return (values - values.mean()) / values.std()


def cell(xy: np.ndarray) -> np.ndarray:
    i, j = np.minimum((xy / SIDE).astype(int), CELLS - 1).T
    return i * CELLS + j


def regression(counts: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """Slope of the Poisson regression of counts on a covariate, and its variance."""
    design, found = np.column_stack([np.ones_like(values), values]), np.array([np.log(counts.mean()), 0.0])
    for _ in range(30):
        mean = np.exp(design @ found)
        covariance = np.linalg.inv(design.T @ (mean[:, None] * design))
        found = found + covariance @ design.T @ (counts - mean)
    return float(found[1]), float(covariance[1, 1])


def once(n: int, epsilon: float, alpha: float, mechanism: str, range_: int, seed: int) -> dict[str, Any]:
    """Share of the slope that is kept; whether intervals of patterns, with and without it, and of the effect hold."""
    rng = np.random.default_rng([seed, n, range_, 8])
    slope, values = rng.choice([0.5, -0.5, 0.3, -0.3]), field(range_, rng)
    weight = np.exp(slope * values + 0.5 * field(500, rng))
    corner = np.column_stack(np.divmod(rng.choice(CELLS**2, n, p=weight / weight.sum()), CELLS))
    pattern = dps.PointPattern(SIDE * (corner + rng.random((n, 2))), WINDOW)
    settings = dps.LGCPSynthesizer(epsilon, alpha=alpha, mechanism=mechanism, inference="laplace")
    release = settings.release(pattern, rng)

    def covariate(xy: np.ndarray) -> np.ndarray:
        return values[cell(xy)]

    drawn = release.sample(PATTERNS, rng, source="draws", fixed_n=True)
    counts = (np.bincount(cell(each.xy), minlength=CELLS**2).astype(float) for each in drawn)
    q, u = np.array([regression(each, values) for each in counts]).T
    kept = dps.kept_slope(release, covariate, rng)
    # The slope of the true intensity, whose other field is not even beside the covariate.
    truth = regression(weight, values)[0]

    def held(interval: tuple[np.ndarray, np.ndarray]) -> bool:
        return bool(interval[0][0] <= truth <= interval[1][0])

    try:
        told = held(dps.combine(drawn, q, u, kept=kept).interval(LEVEL))
    except InputError:
        told = None
    effects = release.infer(rng, covariates={"covariate": covariate}).effects["covariate"]
    low, high = np.quantile(effects, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    # Effects are told per standard deviation over the window, which is 1.
    return {
        "kept": kept,
        "plain": held(dps.combine(drawn, q, u).interval(LEVEL)),
        "told": told,
        "effect": low <= slope <= high,
    }


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=8)
    args = parser.parse_args()
    rows = []
    for *case, ranges in CASES:
        for range_ in ranges:
            found = [once(*case, range_, seed) for seed in range(args.repeats)]
            told = [each["told"] for each in found if each["told"] is not None]
            shares = [np.mean([each[name] for each in found]) for name in ("kept", "plain", "effect")]
            held = "" if not told else f"{np.mean(told):.0%}"
            start = (*map(str, case), f"{range_ / 1000:.0%} of the extent", f"{shares[0]:.2f}")
            rows.append((*start, f"{shares[1]:.0%}", f"{len(told)} of {args.repeats}", held, f"{shares[2]:.0%}"))
            print(*rows[-1], flush=True)
            fill(args.out, "slopes", table(HEADS, rows))


if __name__ == "__main__":
    main()
