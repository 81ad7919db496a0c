"""Moved points behind a field beside tents, beside a kernel on moved points, and beside what needs no privacy.

Of each set half of the points, chosen at random, is released, and the other half judges: the mean over its points of
log(.99 q A + .01), with q the normalised intensity and A the area of the window. Alpha is a share of sqrt(A). Widths
of Gaussian kernels are chosen on the judging half itself, so kernels know more than a release may. The field on the
points themselves is the mechanism with noise of a thousandth of alpha.

    OMP_NUM_THREADS=1 python benchmarks/moved.py --data FOLDER --out docs/results/moved.md
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
from held_out import halves, jittered, kernel, score, sets
from measuring import timed
from pages import command_line, fill, table

import dpppsynth as dps

SETTINGS = [(alpha, epsilon) for alpha in (0.01, 0.005) for epsilon in (0.3, 1.0, 3.0)]
# Noise of the field on the points themselves: epsilon at an alpha of a hundredth.
LIMIT = (0.01, 1000.0)
LIMITS = ("set", "n", "best kernel, not private", "field, not private")
HEADS = (*LIMITS[:2], "alpha, share of sqrt(A)", "eps", "tents", "moved, best kernel", "moved, field", "CPU seconds")


def released(known: dps.PointPattern, judging: np.ndarray, alpha: float, epsilon: float, **how: Any) -> float:
    """Score of a release's intensity."""
    settings = dps.LGCPSynthesizer(epsilon, alpha=alpha * known.domain.extent, **how)
    release = settings.release(known, np.random.default_rng(1))
    return score(release.intensity(judging) / len(known), known.domain.area)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path, help="folder of files NAME.csv.gz; simulated sets and Soho without it")
    parser.add_argument("--sets", nargs="+", help="names of sets, instead of all")
    args = parser.parse_args()
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
            tents, jitter = released(*given), kernel(jittered(known, alpha, epsilon), judging, known.domain)
            field, seconds = timed(lambda given=given: released(*given, mechanism="moved"), time.process_time)
            private = tents, jitter, field
            told = (f"**{each:.3f}**" if each == max(private) else f"{each:.3f}" for each in private)
            rows.append((name, str(len(known)), f"{100 * alpha:g} %", f"{epsilon:g}", *told, f"{seconds:.0f}"))
            print(*rows[-1], flush=True)
            fill(args.out, "scores", table(HEADS, rows))


if __name__ == "__main__":
    main()
