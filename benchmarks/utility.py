"""Total variation distance of every mechanism's release to the truth, beside reference figures.

Four intensities (three simulated, one like Soho), n between about 60 and 400, or ten times as many; each cell is the
geometric mean over them of the mean distance over repeats. The reference figures come from a prototype of the same
methods, written before this package, on its own draws of the same kinds of patterns (a uniform intensity scores .578
there). Delta is 1e-6 where a mechanism spends one.

    python benchmarks/utility.py --repeats 8 --out docs/results/utility.md
"""

import itertools
from collections.abc import Callable

import numpy as np
from pages import command_line, fill, table

import dpppsynth as dps
from dpppsynth.models import regular_triangulation
from dpppsynth.spatial.gaussian_kernel import kernel_density
from dpppsynth.spatial.intensity import PiecewiseLinear
from dpppsynth.spatial.sampling import poisson_pattern

GRID, DELTA = 128, 1e-6
MECHANISMS = ("kernel", "posterior draw", "tents, projected", "tents + posterior", "field + posterior")
# (points, privacy radius, epsilon): reference figures of the mechanisms above.
REFERENCE = {
    (1, "B/(10 sqrt2)", 0.1): (0.578, 0.529, 0.418, 0.324, 0.372),
    (1, "B/(10 sqrt2)", 0.5): (0.569, 0.285, 0.317, 0.219, 0.213),
    (1, "B/(10 sqrt2)", 1.0): (0.542, 0.207, 0.245, 0.184, 0.179),
    (1, "B/(10 sqrt2)", 2.0): (0.450, 0.181, 0.207, 0.161, 0.165),
    (1, "B/(10 sqrt2)", 10.0): (0.175, 0.178, 0.188, 0.145, 0.151),
    (1, "B/50", 1.0): (0.283, 0.178, 0.196, 0.150, 0.157),
    (1, "diameter", 0.1): (0.578, 0.575, 0.582, 0.490, 0.509),
    (1, "diameter", 1.0): (0.578, 0.448, 0.325, 0.240, 0.288),
    (1, "diameter", 10.0): (0.574, 0.185, 0.192, 0.147, 0.170),
    (10, "B/(10 sqrt2)", 0.1): (None, 0.387, None, 0.166, 0.149),
    (10, "B/(10 sqrt2)", 1.0): (None, 0.100, None, 0.082, 0.081),
    (10, "B/(10 sqrt2)", 10.0): (None, 0.086, None, 0.070, 0.069),
}
RADIUS = {"B/(10 sqrt2)": 1 / (10 * np.sqrt(2)), "B/50": 1 / 50, "diameter": None}


def truths() -> dict[str, tuple[dps.Window, Callable[[np.ndarray], np.ndarray]]]:
    """Windows and true intensities."""

    def two(xy: np.ndarray) -> np.ndarray:
        return np.exp(-(xy**2).sum(axis=1) / 25)

    def three(xy: np.ndarray) -> np.ndarray:
        return 0.5 + 5 * np.exp(-((xy[:, 0] - xy[:, 1]) ** 2))

    def four(xy: np.ndarray) -> np.ndarray:
        return sum(5 * np.exp(-((xy - centre) ** 2).sum(axis=1) / 2) for centre in (3.0, -3.0))

    deaths = dps.datasets.soho_deaths()

    def soho(xy: np.ndarray) -> np.ndarray:
        return sum(np.exp(-((xy - x) ** 2).sum(axis=1) / (2 * 60**2)) / (2 * np.pi * 60**2) for x in deaths.xy)

    return {
        "lambda2": (dps.Window.rectangle(-10, -10, 10, 10), two),
        "lambda3": (dps.Window.rectangle(0, 0, 10, 10), three),
        "lambda4": (dps.Window.rectangle(-5, -5, 5, 5), four),
        "Soho-like": (deaths.domain, soho),
    }


def centres(window: dps.Window) -> np.ndarray:
    x0, y0, x1, y1 = window.bounds
    t = (np.arange(GRID) + 0.5) / GRID
    x, y = np.meshgrid(x0 + t * (x1 - x0), y0 + t * (y1 - y0))
    return np.column_stack([x.ravel(), y.ravel()])


def apart(estimate: np.ndarray, truth: np.ndarray) -> float:
    """Total variation distance of masses, each divided by their sum."""
    return float(0.5 * np.abs(estimate / estimate.sum() - truth / truth.sum()).sum())


def draw(
    window: dps.Window, truth: Callable[[np.ndarray], np.ndarray], times: int, rng: np.random.Generator
) -> dps.PointPattern:
    mesh = regular_triangulation(window, shape=(101, 101))
    return poisson_pattern(PiecewiseLinear(mesh, times * truth(mesh.vertices)), rng)


def estimates(
    pattern: dps.PointPattern, grid: np.ndarray, relation: object, epsilon: float, inference: str, rng: object
) -> list[np.ndarray]:
    """Intensities on the grid, by mechanism."""
    kernel = dps.KernelSynthesizer(epsilon, delta=DELTA, relation=relation)
    bandwidth = kernel.plan(pattern.domain, n=len(pattern)).statistic.bandwidth
    others = [
        dps.LGCPSynthesizer(epsilon, relation=relation, mechanism="posterior-draw", delta=DELTA),
        dps.LaplaceSynthesizer(epsilon, relation=relation, basis="tents", postprocess="keep-n"),
        dps.LGCPSynthesizer(epsilon, relation=relation, mechanism="tents", inference=inference),
        dps.LGCPSynthesizer(epsilon, relation=relation, mechanism="field", delta=DELTA, inference=inference),
    ]
    # The kernel's expected intensity: one Poisson pattern of it adds its own noise.
    first = kernel_density(pattern.xy, pattern.domain, bandwidth, grid)
    return [first, *(released(s, pattern, rng).intensity(grid) for s in others)]


def released(synthesizer: object, pattern: dps.PointPattern, rng: object) -> object:
    try:
        return synthesizer.release(pattern, rng)
    except dps.QualityError as error:
        # What a user would do: infer again from the same private statistic, at no privacy cost.
        return error.release.infer(rng)


def cell(times: int, radius: str, epsilon: float, repeats: int, inference: str) -> dict[str, np.ndarray]:
    """(5,) mean distance of the mechanisms, by truth."""
    result = {}
    for name, (window, truth) in truths().items():
        share = RADIUS[radius]
        side = window.bounds[2] - window.bounds[0]
        relation = dps.ReplaceOne() if share is None else dps.AlphaNeighbours(float(share * side))
        grid, rng = centres(window), np.random.default_rng([7, int(10 * epsilon)])
        exact, scores = truth(grid), []
        for _ in range(repeats):
            pattern = draw(window, truth, times, rng)
            found = estimates(pattern, grid, relation, epsilon, inference, rng)
            scores.append([apart(each, exact) for each in found])
        result[name] = np.mean(scores, axis=0)
    return result


def geometric(values: np.ndarray) -> np.ndarray:
    return np.exp(np.mean(np.log(values), axis=0))


def uniform() -> float:
    """Score of an intensity that needs no data."""
    return float(geometric(np.array([apart(np.ones(GRID**2), truth(centres(w))) for w, truth in truths().values()])))


def row(key: tuple[int, str, float], scores: dict[str, np.ndarray]) -> str:
    measured = geometric(np.array(list(scores.values())))
    pairs = [f"{m:.3f} | {'' if r is None else f'{r:.3f}'}" for m, r in zip(measured, REFERENCE[key], strict=True)]
    times, radius, epsilon = key
    return f"| {'' if times == 1 else f'{times} x '}{radius} | {epsilon:g} | " + " | ".join(pairs) + " |"


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--inference", default="laplace", choices=["laplace", "nuts"])
    parser.add_argument("--epsilon", type=float, nargs="*", default=None, help="only these rows")
    parser.add_argument("--radius", choices=list(RADIUS), nargs="*", default=list(RADIUS), help="only these rows")
    parser.add_argument("--times", type=int, nargs="*", default=[1, 10], help="only these rows")
    args = parser.parse_args()
    print(f"A uniform intensity scores {uniform():.3f}.")
    heads = itertools.chain.from_iterable((name, f"{name}, prototype") for name in MECHANISMS)
    lines = table(["alpha", "eps", *heads], [])
    for key in REFERENCE:
        times, radius, epsilon = key
        if radius not in args.radius or times not in args.times or epsilon not in (args.epsilon or [epsilon]):
            continue
        lines.append(row(key, cell(times, radius, epsilon, args.repeats, args.inference)))
        print(lines[-1], flush=True)
    fill(args.out, "distances", lines)


if __name__ == "__main__":
    main()
