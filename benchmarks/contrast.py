"""Releases of concentrated points: the default beside its own tents without a field, beside PrivTree, and kernels.

Of each set half of the points, chosen at random, is released, and the other half judges, as in `moved.py`, whose sets
and score these are. PrivTree (Zhang, Xiao & Xie 2016) splits squares into four while noised counts ask for it, and
spends half of epsilon on the squares and half on their counts. Kernels are not private, and know their bandwidth.

    OMP_NUM_THREADS=1 python benchmarks/contrast.py --data FOLDER --out docs/results/contrast.md
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
from measuring import timed
from moved import halves, kernel, score, sets
from pages import command_line, fill, table

import dpppsynth as dps

RELATIONS = {"replace one": dps.ReplaceOne, "add or remove": dps.AddRemove, "alpha 1 %": None}
ALPHA, EPSILONS = 0.01, (1.0, 3.0)
# Depth of PrivTree at most, and its runs.
DEEPEST, TREES = 12, 3
HEADS = ("set", "n", "neighbours", "eps", "PrivTree", "plain tents", "default", "best kernel, not private", "seconds")


def leaves(
    xy: np.ndarray, box: tuple[float, float, float, float], scale: float, rng: np.random.Generator, depth: int = 0
) -> list[tuple[tuple[float, float, float, float], int]]:
    """Rectangles of PrivTree with their exact counts; `scale` is that of the noise of its splits."""
    decay = scale * np.log(4)
    if depth == DEEPEST or max(len(xy) - depth * decay, -decay) + rng.laplace(0, scale) <= 0:
        return [(box, len(xy))]
    x0, y0, x1, y1 = box
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    right, above = xy[:, 0] >= x, xy[:, 1] >= y
    found = leaves(xy[~right & ~above], (x0, y0, x, y), scale, rng, depth + 1)
    found += leaves(xy[right & ~above], (x, y0, x1, y), scale, rng, depth + 1)
    found += leaves(xy[~right & above], (x0, y, x, y1), scale, rng, depth + 1)
    return found + leaves(xy[right & above], (x, y, x1, y1), scale, rng, depth + 1)


def tree(known: dps.PointPattern, judging: np.ndarray, epsilon: float, changed: int, seed: int) -> float:
    """Score of a release of PrivTree, where neighbours differ by a point in so many places."""
    rng, density = np.random.default_rng([5, seed]), np.zeros(len(judging))
    found = leaves(known.xy, known.domain.bounds, changed * 7 / 3 / (epsilon / 2), rng)
    counts = np.maximum(0, [count + rng.laplace(0, changed / (epsilon / 2)) for _, count in found])
    for ((x0, y0, x1, y1), _), count in zip(found, counts, strict=True):
        inside = (judging >= (x0, y0)).all(axis=1) & (judging < (x1, y1)).all(axis=1)
        density[inside] = count / counts.sum() / ((x1 - x0) * (y1 - y0))
    return score(density, known.domain.area)


def released(settings: Any, known: dps.PointPattern, judging: np.ndarray, guess: dict[str, float]) -> float:
    """Score of a release's intensity, divided by its own total."""
    intensity = settings.release(known, np.random.default_rng(1), **guess).intensity
    return score(intensity(judging) / intensity.total, known.domain.area)


def row(
    name: str, known: dps.PointPattern, judging: np.ndarray, relation: str, epsilon: float, best: float
) -> list[str]:
    """Scores of one set under one relation, and CPU seconds of the default."""
    kind, secret = RELATIONS[relation], relation == "add or remove"
    near = {"alpha": ALPHA * known.domain.extent} if kind is None else {"relation": kind()}
    guess = {"expected_n": float(len(known))} if secret else {}
    trees = np.mean([tree(known, judging, epsilon, 1 if secret else 2, seed) for seed in range(TREES)])
    alone = dps.LaplaceSynthesizer(epsilon, basis="tents", postprocess="clip" if secret else "keep-n", **near)
    plain = released(alone, known, judging, guess)
    whole = dps.LGCPSynthesizer(epsilon, **near)
    default, seconds = timed(lambda: released(whole, known, judging, guess), time.process_time)
    told = [f"{each:.3f}" for each in (trees, plain, default, best)]
    return [name, str(len(known)), relation, f"{epsilon:g}", *told, f"{seconds:.0f}"]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path, help="folder of files NAME.csv.gz; simulated sets and Soho without it")
    parser.add_argument("--sets", nargs="+", help="names of sets, instead of all")
    args = parser.parse_args()
    rows = []
    for name, pattern in sets(args.data):
        if args.sets and name.partition(",")[0] not in args.sets:
            continue
        known, judging = halves(pattern)
        best = kernel(known.xy, judging, known.domain)
        for relation in RELATIONS:
            for epsilon in EPSILONS:
                rows.append(row(name, known, judging, relation, epsilon, best))
                print(*rows[-1], flush=True)
                fill(args.out, "scores", table(HEADS, rows))


if __name__ == "__main__":
    main()
