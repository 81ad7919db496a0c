"""Distance of releases to the truth in a city of 30 km, from a thousand to a million points, with time and memory.

Two hundred Gaussian hot spots at uniform places, weights uniform on the simplex, widths log-normal about 500 m; one
point in ten lies anywhere. Other cities have fewer, more, narrower or wider spots. Total variation distance on cells of
100 m, privacy radius 100 m. The kernel estimate is not private, and its bandwidth is chosen knowing the truth.

    python benchmarks/city.py --out docs/results/city.md
"""

import sys
import time

import numpy as np
from measuring import in_fresh_process, memory, run_case, timed
from pages import command_line, fill, table
from scipy.ndimage import gaussian_filter
from scipy.stats import norm

import dpppsynth as dps

SIDE, CELL, ALPHA = 30_000.0, 100.0, 100.0
WINDOW = dps.Window.rectangle(0, 0, SIDE, SIDE)
CITIES = {
    "city": (200, 500.0),
    "few wide spots": (5, 2000.0),
    "many spots": (2000, 300.0),
    "narrow spots": (200, 150.0),
    "wide spots": (60, 1500.0),
}
RUNS = [("city", n, epsilon) for n, epsilon in ((10**3, 1.0), (10**4, 1.0), (10**4, 0.1), (10**5, 1.0), (10**6, 1.0))]
RUNS += [(name, 10**4, 1.0) for name in list(CITIES)[1:]]
HEADS = ("city", "n", "eps", "uniform", "tents alone", "dense, mean", "sparse, mean", "sparse, released")
HEADS += ("kernel, not private", "CPU seconds", "MB")
BANDWIDTHS = np.geomspace(60, 2500, 16)


def truth(name: str, seed: int) -> np.ndarray:
    """Shares of the cells."""
    spots, width = CITIES[name]
    rng = np.random.default_rng([seed, spots])
    centres, shares = rng.uniform(0, SIDE, (spots, 2)), rng.dirichlet(np.ones(spots))
    widths = width * np.exp(0.5 * rng.standard_normal(spots))
    edges = np.arange(0, SIDE + 1, CELL)
    x, y = (np.diff(norm.cdf((edges - centres[:, [axis]]) / widths[:, None])) for axis in (0, 1))
    mass = np.einsum("s,sx,sy->xy", shares * 0.9, x, y)
    return 0.9 * mass / mass.sum() + 0.1 / mass.size


def draw(mass: np.ndarray, n: int, rng: np.random.Generator) -> dps.PointPattern:
    """Points of the city."""
    cell = np.column_stack(np.unravel_index(rng.choice(mass.size, n, p=mass.ravel()), mass.shape))
    return dps.PointPattern(CELL * (cell + rng.random((n, 2))), WINDOW)


def distance(estimate: np.ndarray, mass: np.ndarray) -> float:
    return float(np.abs(estimate.reshape(mass.shape) / estimate.sum() - mass).sum() / 2)


def kernel(pattern: dps.PointPattern, mass: np.ndarray) -> float:
    """Distance of the best Gaussian kernel estimate without privacy."""
    counts = np.histogram2d(*pattern.xy.T, bins=mass.shape, range=[(0, SIDE)] * 2)[0]
    return min(distance(gaussian_filter(counts, width / CELL, mode="reflect"), mass) for width in BANDWIDTHS)


def run(name: str, n: int, epsilon: float, seed: int, prior: str) -> dict[str, float]:
    """Distances, CPU seconds and megabytes of one release with one synthetic pattern."""
    mass, rng = truth(name, seed), np.random.default_rng([seed, n])
    pattern = draw(mass, n, rng)
    at = np.stack(np.meshgrid(*[np.arange(CELL / 2, SIDE, CELL)] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
    if prior == "none":
        plain = dps.LaplaceSynthesizer(epsilon, alpha=ALPHA, basis="tents", postprocess="keep-n")
        return {"tents": distance(plain.release(pattern, rng).intensity(at), mass), "kernel": kernel(pattern, mass)}
    settings = dps.LGCPSynthesizer(epsilon, alpha=ALPHA, prior=prior, inference="laplace")

    def whole() -> dps.CoxRelease:
        made = settings.release(pattern, rng)
        made.sample(1, rng, source="released")
        return made

    release, seconds = timed(whole, time.process_time)
    found = {"seconds": seconds, "MB": memory()}
    model = release.estimator
    found |= {"released": distance(release.intensity(at), mass)}
    return found | {"mean": distance(model.posterior_mean(release.draws)(at), mass)}


def row(name: str, n: int, epsilon: float, seed: int) -> list[str]:
    """Distances of all, and time and memory of the default."""
    dense, sparse, plain = (
        in_fresh_process(__file__, "run", name, n, epsilon, seed, prior) for prior in ("dense", "sparse", "none")
    )
    uniform = distance(np.ones(9 * 10**4), truth(name, seed))
    scores = (uniform, plain["tents"], dense["mean"], sparse["mean"], sparse["released"], plain["kernel"])
    cells = [name, f"{n:.0e}".replace("e+0", "e"), f"{epsilon:g}", *(f"{score:.3f}" for score in scores)]
    return [*cells, f"{sparse['seconds']:.0f}", f"{sparse['MB']:.0f}"]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--most", type=int, default=10**6, help="points at most")
    parser.add_argument("--case", help="for its own processes")
    given = parser.parse_args()
    if given.case:
        return run_case(given.case, run)
    rows = [row(*each, given.seed) for each in RUNS if each[1] <= given.most]
    lines = table(HEADS, rows)
    print("\n".join(lines))
    return fill(given.out, "distances", lines)


if __name__ == "__main__":
    sys.exit(main())
