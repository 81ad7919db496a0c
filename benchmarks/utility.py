"""How close to the truth is a release? Total variation distance of the two tents mechanisms, beside reference figures.

Four intensities (three simulated, one like Soho), n between about 60 and 400; each cell is the geometric mean over them
of the mean distance over repeats. The reference figures come from a prototype of the same methods, written
before this package, on its own draws of the same kinds of patterns (a uniform intensity scores .578 there).

    python benchmarks/utility.py --repeats 10 --out docs/results/utility.md
"""

import argparse
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import dpppsynth as dps
from dpppsynth.intensity import PiecewiseLinear
from dpppsynth.models import regular_triangulation
from dpppsynth.sampling import poisson_pattern

GRID = 128
EPSILONS = (0.1, 0.5, 1.0, 2.0, 10.0)
# (privacy radius as a share of the side, epsilon): reference figures for "tents, projected" and "tents + posterior".
REFERENCE = {
    ("B/(10 sqrt2)", 0.1): (0.418, 0.324),
    ("B/(10 sqrt2)", 0.5): (0.317, 0.219),
    ("B/(10 sqrt2)", 1.0): (0.245, 0.184),
    ("B/(10 sqrt2)", 2.0): (0.207, 0.161),
    ("B/(10 sqrt2)", 10.0): (0.188, 0.145),
    ("B/50", 1.0): (0.196, 0.150),
    ("diameter", 0.1): (0.582, 0.490),
    ("diameter", 1.0): (0.325, 0.240),
    ("diameter", 10.0): (0.192, 0.147),
}
RADIUS = {"B/(10 sqrt2)": 1 / (10 * np.sqrt(2)), "B/50": 1 / 50, "diameter": np.sqrt(2)}


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


def distance(estimate: np.ndarray, truth: np.ndarray) -> float:
    return float(0.5 * np.abs(estimate / estimate.sum() - truth / truth.sum()).sum())


def draw(window: dps.Window, truth: Callable[[np.ndarray], np.ndarray], rng: np.random.Generator) -> dps.PointPattern:
    mesh = regular_triangulation(window, shape=(101, 101))
    return poisson_pattern(PiecewiseLinear(mesh, truth(mesh.vertices)), rng)


def cell(radius: str, epsilon: float, repeats: int, inference: str) -> dict[str, tuple[float, float]]:
    """Mean distance of both mechanisms, by truth."""
    result = {}
    for name, (window, truth) in truths().items():
        x0, _, x1, _ = window.bounds
        alpha = RADIUS[radius] * (x1 - x0)
        grid, rng = centres(window), np.random.default_rng([7, int(10 * epsilon)])
        exact, scores = truth(grid), []
        for _ in range(repeats):
            pattern = draw(window, truth, rng)
            direct = dps.LaplaceSynthesizer(epsilon, alpha=alpha, basis="tents", postprocess="keep-n")
            bayes = dps.LGCPSynthesizer(epsilon, alpha, inference=inference)
            scores.append([distance(s.release(pattern, rng).intensity(grid), exact) for s in (direct, bayes)])
        result[name] = tuple(np.mean(scores, axis=0))
    return result


def geometric(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--inference", default="laplace", choices=["laplace", "nuts"])
    parser.add_argument("--epsilon", type=float, nargs="*", default=EPSILONS, help="only these rows")
    parser.add_argument("--radius", choices=list(RADIUS), nargs="*", default=list(RADIUS), help="only these rows")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    start = time.perf_counter()
    lines = [
        "# Utility of the tents mechanisms",
        "",
        "Total variation distance to the true normalised intensity, delta = 0; geometric mean over lambda2, lambda3,",
        f"lambda4 and a Soho-like intensity, {args.repeats} repeats a cell, inference `{args.inference}`.",
        "Seeded runs of the package's own mechanisms with default rules. Reference: a prototype written before this",
        "package, on its own draws of the same kinds of patterns.",
        "",
        "| alpha | eps | tents, projected | reference | tents + posterior | reference | by truth (posterior) |",
        "|---|---|---|---|---|---|---|",
    ]
    for (radius, epsilon), (projected, posterior) in REFERENCE.items():
        if epsilon not in args.epsilon or radius not in args.radius:
            continue
        scores = cell(radius, epsilon, args.repeats, args.inference)
        direct, bayes = (geometric([s[k] for s in scores.values()]) for k in (0, 1))
        detail = ", ".join(f"{name} {s[1]:.3f}" for name, s in scores.items())
        line = f"| {radius} | {epsilon:g} | {direct:.3f} | {projected:.3f} | {bayes:.3f} | {posterior:.3f} | {detail} |"
        print(line, flush=True)
        lines.append(line)
    command = "python " + shlex.join(sys.argv)
    lines += ["", f"Made with `{command}` ({time.perf_counter() - start:.0f} s on two cores)."]
    if args.out:
        args.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
