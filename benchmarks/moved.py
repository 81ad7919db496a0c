"""Moved points behind a field beside tents, beside a kernel on moved points, and beside what needs no privacy.

Of each set half of the points, chosen at random, is released, and the other half judges: the mean over its points of
log(.99 q A + .01), with q the normalised intensity and A the area of the window. Alpha is a share of sqrt(A). Widths
of Gaussian kernels are chosen on the judging half itself, so kernels know more than a release may. The field on the
points themselves is the mechanism with noise of a thousandth of alpha.

    OMP_NUM_THREADS=1 python benchmarks/moved.py --data FOLDER --out docs/results/moved.md

Sets on streets, with --streets, are the two shipped ones, and simulated ones of benchmarks/streets.py; A is the length
of the streets then, alpha a share of their extent, and rivals are tents, cells and the default. Scores are means over
seeds of the noise.
"""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import streets
from held_out import halves, jittered, kernel, score, sets
from measuring import timed
from pages import command_line, fill, table

import dpppsynth as dps

SETTINGS = [(alpha, epsilon) for alpha in (0.01, 0.005) for epsilon in (0.3, 1.0, 3.0)]
# Noise of the field on the points themselves: epsilon at an alpha of a hundredth.
LIMIT = (0.01, 1000.0)
LIMITS = ("set", "n", "best kernel, not private", "field, not private")
# On streets: shares of the extent and budgets, numbers of points of simulated sets, and seeds of the noise of sets.
STREET_ALPHAS, EPSILONS = (0.005, 0.01, 0.03), (0.3, 1.0, 3.0)
STREET_SETS, SEEDS, FEW = {"Soho": 8000, "Arizona": 8000, "narrow spots": 20_000}, 3, 1000
STREET_RIVALS = ("tents", "cells", "moved")
STREET_HEADS = ("set", "n", "alpha, share of the extent", "eps", *STREET_RIVALS, "CPU seconds")
HEADS = (*LIMITS[:2], "alpha, share of sqrt(A)", "eps", "tents", "moved, best kernel", "moved, field", "CPU seconds")


def released(known: dps.PointPattern, judging: np.ndarray, alpha: float, epsilon: float, **how: Any) -> float:
    """Score of a release's intensity."""
    settings = dps.LGCPSynthesizer(epsilon, alpha=alpha * known.domain.extent, **how)
    release = settings.release(known, np.random.default_rng(1))
    return score(release.intensity(judging) / len(known), known.domain.area)


def street_sets() -> Iterator[tuple[str, dps.PointPattern]]:
    """Sets on streets by name."""
    yield "Soho, deaths", dps.datasets.soho_deaths(on="streets")
    yield "Arizona, crimes", dps.datasets.geodanet_crimes(on="streets")
    for name, n in STREET_SETS.items():
        network, share = streets.city(name, 1)
        rng = np.random.default_rng([1, n])
        yield f"{name}, simulated", network.pattern(rng.choice(len(share), n, p=share), rng.random(n))


def street_score(known: dps.PointPattern, judging: np.ndarray, seed: int, **how: Any) -> float:
    """Score of a release's intensity at positions (n, 2) along the streets."""
    release = dps.LGCPSynthesizer(**how).release(known, np.random.default_rng(seed))
    intensity = release.intensity
    element = intensity.mesh.locate(judging)
    value = intensity.at(element, np.clip(intensity.mesh.weights(element, judging), 0, None), judging)
    return score(value / len(known), known.domain.length)


def street_scores(
    known: dps.PointPattern, judging: np.ndarray, alpha: float, epsilon: float
) -> tuple[list[float], float]:
    """Scores of all rivals, and CPU seconds of a release of the last."""
    seeds, found, seconds = range(1, 1 + (SEEDS if len(known) < FEW else 1)), [], 0.0
    for rival in STREET_RIVALS:
        how = {"epsilon": epsilon, "alpha": alpha * known.domain.extent, "mechanism": rival}
        scores, seconds = timed(
            lambda how=how: [street_score(known, judging, seed, **how) for seed in seeds], time.process_time
        )
        found.append(float(np.mean(scores)))
    return found, seconds / len(seeds)


def on_streets(args: Any) -> None:
    """Fill the table of streets."""
    rows = []
    for name, pattern in street_sets():
        if args.sets and name.partition(",")[0] not in args.sets:
            continue
        order = np.random.default_rng(0).permutation(len(pattern))
        half = len(pattern) // 2
        known = dps.PointPattern.at(pattern.positions[order[:half]], pattern.domain)
        judging = pattern.positions[order[half:]]
        for alpha, epsilon in itertools.product(STREET_ALPHAS, EPSILONS):
            found, seconds = street_scores(known, judging, alpha, epsilon)
            told = (f"**{each:.3f}**" if each == max(found) else f"{each:.3f}" for each in found)
            rows.append((name, str(half), f"{100 * alpha:g} %", f"{epsilon:g}", *told, f"{seconds:.0f}"))
            print(*rows[-1], flush=True)
            fill(args.out, "streets", table(STREET_HEADS, rows))


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path, help="folder of files NAME.csv.gz; simulated sets and Soho without it")
    parser.add_argument("--sets", nargs="+", help="names of sets, instead of all")
    parser.add_argument("--streets", action="store_true", help="sets on streets")
    args = parser.parse_args()
    if args.streets:
        on_streets(args)
        return
    limits, rows = [], []
    for name, pattern in sets(args.data):
        if args.sets and name.partition(",")[0] not in args.sets:
            continue
        known, judging = halves(pattern)
        best, field = kernel(known.xy, judging, known.domain), released(known, judging, *LIMIT, mechanism="moved")
        limits.append((name, str(len(known)), f"{best:.3f}", f"{field:.3f}"))
        print(*limits[-1], flush=True)
        fill(args.out, "limits", table(LIMITS, limits))
        for alpha, epsilon in SETTINGS:
            given = known, judging, alpha, epsilon
            tents, jitter = (
                released(*given, mechanism="tents"),
                kernel(jittered(known, alpha, epsilon), judging, known.domain),
            )
            field, seconds = timed(lambda given=given: released(*given, mechanism="moved"), time.process_time)
            private = tents, jitter, field
            told = (f"**{each:.3f}**" if each == max(private) else f"{each:.3f}" for each in private)
            rows.append((name, str(len(known)), f"{100 * alpha:g} %", f"{epsilon:g}", *told, f"{seconds:.0f}"))
            print(*rows[-1], flush=True)
            fill(args.out, "scores", table(HEADS, rows))


if __name__ == "__main__":
    main()
