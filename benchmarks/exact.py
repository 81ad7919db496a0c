"""Time to the first exact posterior draw: set-up included, one core, default rules, beside NUTS on request.

For n = 100, 10 000 and 400 000 points in Soho's window, the three kinds of surrogate patterns, and the deaths of 1854.

    OMP_NUM_THREADS=1 python benchmarks/exact.py --nuts --out docs/results/exact.md
"""

import time
from dataclasses import replace

import numpy as np
from pages import command_line, fill, table

import dpppsynth as dps
from dpppsynth.models import tent_masses
from dpppsynth.models.nested_boxes import NestedBoxes
from dpppsynth.spatial.sampling import binomial_pattern
from dpppsynth.spatial.surrogates import surrogates

SIZES = (100, 10_000, 400_000)


def cases() -> list[tuple[str, dps.PointPattern, dps.LGCPSynthesizer]]:
    """Name, pattern and synthesizer; alpha is the side over 10 sqrt 2, epsilon 1, delta 1e-6."""
    deaths = dps.datasets.soho_deaths()
    window = deaths.domain
    alpha = (window.bounds[2] - window.bounds[0]) / (10 * np.sqrt(2))
    default = dps.LGCPSynthesizer(1.0, alpha=alpha, mechanism="posterior-draw", delta=1e-6, sampler="exact")
    found = []
    for n in SIZES:
        plan = default.plan(window, n=n).statistic
        for surrogate in surrogates(plan.mesh, plan.root, n, plan.covariance.length_scale):
            pattern = binomial_pattern(surrogate.intensity, n, np.random.default_rng(n))
            found.append((f"{surrogate.name}, {n} points", pattern, default))
    given = dps.LGCPSynthesizer(
        1.0, alpha=25.0, mechanism="posterior-draw", delta=1e-6, sampler="exact", sigma=1.0, length_scale=150.0
    )
    return [*found, ("Soho's deaths, sigma 1, l 150 m, alpha 25 m", deaths, given)]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--nuts", action="store_true", help="time a draw by NUTS too, compiling included")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    lines = table(["pattern", "sigma", "acceptance", "median", "largest", "NUTS / exact"], [])
    for name, pattern, synthesizer in cases():
        plan = synthesizer.plan(pattern.domain, n=len(pattern)).statistic
        boxes = NestedBoxes(plan.prior.posterior(tent_masses(pattern, plan.mesh)))
        acceptance = np.exp(boxes.attempts(2000, np.random.default_rng(1))[1]).mean()
        times = [plan.fit(pattern, seed).seconds for seed in range(args.repeats)]
        ratio = ""
        if args.nuts:
            start = time.perf_counter()
            replace(plan, sampler="nuts").fit(pattern, 1)
            ratio = f"{(time.perf_counter() - start) / np.median(times):.0f}"
        lines.append(
            f"| {name} | {plan.covariance.sigma:.2f} | {acceptance:.3f} | {np.median(times):.2f} s | "
            f"{max(times):.2f} s | {ratio} |"
        )
        print(lines[-1], flush=True)
    fill(args.out, "draws", lines)


if __name__ == "__main__":
    main()
