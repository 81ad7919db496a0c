"""Coverage of intervals made from a release, and the bias of its K-function. Figures for docs/inference.md.

Shares of points in regions, for intensities that are known, analysed in six ways; then L(r) - r of originals and of
synthetic patterns, and how often a synthetic pattern of a uniform original is called clustered, with and without an
even field among the priors.

    OMP_NUM_THREADS=1 python benchmarks/inference_coverage.py --repeats 100 --out docs/results/inference.md
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from pages import command_line, fill, table
from scipy.stats import norm, t

import dpppsynth as dps

SIDE, N, ALPHA, LEVEL, SETS, THINNING = 1000.0, 400, 50.0, 0.9, 50, 4
WINDOW = dps.Window.rectangle(0, 0, SIDE, SIDE, "EPSG:27700")
REGIONS = {
    "a half": lambda xy: xy[:, 0] < 500,
    "a quarter": lambda xy: (xy < 500).all(axis=1),
    "1/16": lambda xy: (np.abs(xy - (375, 625)) < 125).all(axis=1),
}
CELLS = 40
TICKS = (np.arange(CELLS) + 0.5) * SIDE / CELLS
GRID = np.column_stack([each.ravel() for each in np.meshgrid(TICKS, TICKS)])
RADII = np.array([10.0, 25.0, 50.0, 100.0, 150.0])
FINE = np.linspace(0, 150, 61)

Interval = tuple[float, float]


def truths(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Normalised masses of the cells of a grid; the last one is drawn anew each time."""
    x, y = GRID.T / SIDE
    hills = 0.5 + 5 * np.exp(-((x - 0.3) ** 2 + (y - 0.6) ** 2) / 0.02)
    hills += 3 * np.exp(-((x - 0.7) ** 2 + (y - 0.2) ** 2) / 0.05)
    waves = rng.normal(size=(300, 2)) * np.sqrt(2) / 0.25
    phase = rng.uniform(0, 2 * np.pi, 300)
    field = np.cos(GRID / SIDE @ waves.T + phase).sum(axis=1) * np.sqrt(2 / 300)
    made = {"trend": np.exp(2 * x), "two hills": hills, "Cox, l = 250 m, sigma 1": np.exp(field)}
    return {name: mass / mass.sum() for name, mass in made.items()}


def drawn(mass: np.ndarray, rng: np.random.Generator) -> dps.PointPattern:
    """N points of the intensity that is constant on the cells of the grid."""
    cell = GRID[rng.choice(len(GRID), N, p=mass)]
    return dps.PointPattern(cell + rng.uniform(-0.5, 0.5, (N, 2)) * SIDE / CELLS, WINDOW)


def normal(centre: float, variance: float, quantile: float | None = None) -> Interval:
    half = (norm.ppf(0.5 + LEVEL / 2) if quantile is None else quantile) * np.sqrt(max(variance, 0.0))
    return centre - half, centre + half


def posterior(release: dps.CoxRelease) -> dict[str, Interval]:
    """Quantiles of the share under posterior draws."""
    values = np.exp(release.estimator.mesh.basis(GRID) @ release.draws.flat[::THINNING].T.astype(float))
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    return {
        name: tuple(np.quantile(values[inside(GRID)].sum(axis=0) / values.sum(axis=0), tails))
        for name, inside in REGIONS.items()
    }


def shares(patterns: list[dps.PointPattern]) -> dict[str, np.ndarray]:
    return {name: np.array([inside(each.xy).mean() for each in patterns]) for name, inside in REGIONS.items()}


def fully_synthetic(q: np.ndarray) -> Interval:
    """Raghunathan, Reiter & Rubin (2003), with the degrees of freedom of Reiter (2002)."""
    m, b, u = len(q), q.var(ddof=1), (q * (1 - q)).mean() / N
    variance = (1 + 1 / m) * b - u
    if variance <= 0:
        # Their way out: the variance within takes its place.
        return normal(q.mean(), u)
    freedom = (m - 1) * (1 - u / ((1 + 1 / m) * b)) ** 2
    return normal(q.mean(), variance, t.ppf(0.5 + LEVEL / 2, max(freedom, 1.0)))


def partially_synthetic(q: np.ndarray) -> Interval:
    """Reiter (2003): right where most of each data set is real."""
    return normal(q.mean(), q.var(ddof=1) / len(q) + (q * (1 - q)).mean() / N)


def one_as_real(q: np.ndarray) -> Interval:
    return normal(q[0], q[0] * (1 - q[0]) / N)


def all_as_real(q: np.ndarray) -> Interval:
    return normal(q.mean(), q.mean() * (1 - q.mean()) / (N * len(q)))


def noisy_counts(release: dps.CoxRelease) -> dict[str, Interval]:
    """Noisy counts as they are, before anything is clipped: unbiased, with noise of a known variance."""
    cells = release.statistic.definition.mesh
    counts, scale = release.statistic.masses, release.statistic.noise_scale
    variance = 2 * np.exp(-1 / scale) / (1 - np.exp(-1 / scale)) ** 2
    centres = np.array([cells.vertices[each].mean(axis=0) for each in cells.elements])
    found = {}
    for name, inside in REGIONS.items():
        share = counts[inside(centres)].sum() / N
        sampling = max(share * (1 - share), 0) / N
        found[name] = normal(share, sampling + inside(centres).sum() * variance / N**2)
    return found


def planned(epsilon: float) -> list[Any]:
    """One plan of each kind of release."""
    settings = {"mechanism": "posterior-draw", "delta": 1e-6, "sampler": "proximal"}
    synthesizers = (
        dps.LGCPSynthesizer(epsilon, alpha=ALPHA, mechanism="tents", inference="laplace"),
        dps.LaplaceSynthesizer(epsilon, alpha=ALPHA, spacing=125.0, postprocess="keep-n"),
        dps.LGCPSynthesizer(epsilon, alpha=ALPHA, **settings),
    )
    return [each.plan(WINDOW, n=N) for each in synthesizers]


def analyses(pattern: dps.PointPattern, plans: list[Any], rng: np.random.Generator) -> dict[str, dict[str, Interval]]:
    """Intervals of every analysis, for every region."""
    lgcp, cells, draw = (plan.release(pattern, rng) for plan in plans)
    q = {each.mechanism: shares(each.sample(SETS, rng, source="draws", fixed_n=True)) for each in (lgcp, cells, draw)}

    def over(mechanism: str, rule: Callable[[np.ndarray], Interval]) -> dict[str, Interval]:
        return {name: rule(each) for name, each in q[mechanism].items()}

    return {
        "posterior draws of the share": posterior(lgcp),
        f"{SETS} patterns, fully synthetic": over("lgcp-tents", fully_synthetic),
        f"{SETS} patterns, partially synthetic": over("lgcp-tents", partially_synthetic),
        "one pattern as if real": over("lgcp-tents", one_as_real),
        f"{SETS} patterns as if all real": over("lgcp-tents", all_as_real),
        "cells: noisy counts": noisy_counts(cells),
        f"cells: {SETS} patterns, fully synthetic": over("laplace-cells", fully_synthetic),
        f"posterior draw: {SETS} patterns, fully synthetic": over("lgcp-posterior-draw", fully_synthetic),
    }


def coverage(repeats: int, budgets: tuple[float, ...], rng: np.random.Generator) -> list[str]:
    lines = []
    for epsilon in budgets:
        plans = planned(epsilon)
        held: dict[str, list[list[tuple[bool, float]]]] = {}
        for _ in range(repeats):
            for mass in truths(rng).values():
                for analysis, intervals in analyses(drawn(mass, rng), plans, rng).items():
                    row = []
                    for name, inside in REGIONS.items():
                        low, high = intervals[name]
                        row.append((low <= mass[inside(GRID)].sum() <= high, high - low))
                    held.setdefault(analysis, []).append(row)
        for analysis, rows in held.items():
            got = np.array(rows, dtype=float)
            cells = [f"{100 * got[:, k, 0].mean():.0f} % ({got[:, k, 1].mean():.3f})" for k in range(len(REGIONS))]
            lines.append(f"| {epsilon:g} | {analysis} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    return lines


def excess(pattern: dps.PointPattern, r: np.ndarray = RADII) -> np.ndarray:
    """L(r) - r."""
    return dps.evaluation.k_function(pattern, r=np.concatenate([[0.0], r]) if r[0] else r).l[-len(r) :] - r


def children(rng: np.random.Generator) -> dps.PointPattern:
    """40 places, ten points about 10 m around each: clusters far smaller than the privacy radius."""
    xy = np.repeat(rng.uniform(50, SIDE - 50, (40, 2)), 10, axis=0) + rng.normal(0, 10, (N, 2))
    return dps.PointPattern(np.clip(xy, 0, SIDE), WINDOW)


def uniform(rng: np.random.Generator) -> dps.PointPattern:
    return dps.PointPattern(rng.uniform(0, SIDE, (N, 2)), WINDOW)


def row(name: str, curves: list[np.ndarray]) -> str:
    return f"| {name} | " + " | ".join(f"{each:+.1f}" for each in np.mean(curves, axis=0)) + " |"


def interaction(repeats: int, rng: np.random.Generator) -> list[str]:
    """L(r) - r of originals, and of the synthetic patterns of as many releases as there are repeats."""
    deaths = dps.datasets.soho_deaths()
    lgcp = dps.LGCPSynthesizer(1.0, alpha=25.0, inference="laplace")
    cases = {
        "deaths of Soho": (lambda: deaths, lgcp),
        "clusters of 10 m": (lambda: children(rng), dps.LGCPSynthesizer(1.0, alpha=ALPHA, inference="laplace")),
        "uniform": (lambda: uniform(rng), dps.LGCPSynthesizer(1.0, alpha=ALPHA, inference="laplace")),
    }
    lines = []
    for name, (make, synthesizer) in cases.items():
        originals, synthetics = [], []
        for _ in range(repeats):
            original = make()
            originals.append(excess(original))
            synthetics.append(excess(synthesizer.release(original, rng).sample(1, rng, source="draws")[0]))
        lines += [row(f"{name}: original", originals), row(f"{name}: synthetic", synthetics)]
        print(*lines[-2:], sep="\n", flush=True)
    return lines


def called_clustered(repeats: int, rng: np.random.Generator) -> list[str]:
    """Share of synthetic patterns of a uniform original that a test at 5 % calls clustered, by source of patterns."""
    largest = np.quantile([excess(uniform(rng), FINE).max() for _ in range(999)], 0.95)
    synthesizer = dps.LGCPSynthesizer(1.0, alpha=ALPHA, inference="laplace")
    found: dict[tuple[bool, str], list[bool]] = {}
    for _ in range(repeats):
        release = synthesizer.release(uniform(rng), rng)
        for even, each in ((True, release), (False, release.infer(rng, even=False))):
            for source in ("released", "mean", "draws"):
                pattern = each.sample(1, rng, source=source, fixed_n=True)[0]
                found.setdefault((even, source), []).append(excess(pattern, FINE).max() > largest)
    rows = [
        (source, *(f"{100 * np.mean(found[even, source]):.0f} %" for even in (False, True)))
        for source in ("released", "mean", "draws")
    ]
    return table(["patterns from the posterior", "without an even field", "with one"], rows)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=100)
    args = parser.parse_args()
    rng = np.random.default_rng(2025)
    share = table(["eps", "analysis", *REGIONS], [])
    share += coverage(args.repeats, (1.0, 0.2), rng)
    curves = table(["pattern", *(f"r = {r:g} m" for r in RADII)], [])
    curves += interaction(args.repeats // 2, rng)
    fill(args.out, "uniform", called_clustered(args.repeats, rng))
    fill(args.out, "coverage", share)
    fill(args.out, "interaction", curves)


if __name__ == "__main__":
    main()
