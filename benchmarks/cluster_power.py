"""Clusters that show, as `check` says, against releases of originals that have just these, more, fewer, or none.

400 points on a square of 1 km, Laplace approximation; budgets, and shares of them for clusters. Originals: uniform
points; clusters of all points, of the size and spread from which on they show, of half as many and twice as many
further places; groups of four at one place, with as many pairs as show, and uniform points; one place with a fifth of
all points. A quarter of an hour on one core:

    OMP_NUM_THREADS=1 python benchmarks/cluster_power.py --out docs/results/clusters.md
"""

import argparse
import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from pages import command_line, fill, table

import dpppsynth as dps
from dpppsynth.privacy import AlphaNeighbours
from dpppsynth.spatial.mesh import Floats

SEED, N, SIDE = 441, 400, 1000.0
# Of originals with nothing or just what shows, whose rates are stated; of others.
REPEATS, FURTHER = 10, 5
SQUARE = dps.Window.rectangle(0, 0, SIDE, SIDE, "EPSG:27700")
# Budgets, shares of them for clusters, and caps on persons' points.
CASES = (
    *((epsilon, share, 1) for epsilon in (0.5, 1.0, 3.0) for share in (0.1, 0.3, 0.5)),
    *((1.0, 0.3, 2), (3.0, 0.3, 2)),
)
HEADS = (
    *("epsilon", "share", "points of a person", "clusters show from", "excess shows from"),
    *("uniform: clusters likely", "clusters: not seen", "half as large: not seen", "twice as large: not seen"),
    *("groups of four: not seen", "one place: not seen"),
)


def clusters(size: float, spread: float, rng: np.random.Generator) -> np.ndarray:
    """Points about uniform parents, of mean number `size`, reflected at the border."""
    numbers = []
    while sum(numbers) < N:
        numbers.append(int(rng.poisson(size)))
    parents = np.repeat(rng.uniform(0, SIDE, (len(numbers), 2)), numbers, axis=0)[:N]
    xy = np.abs(parents + spread * rng.standard_normal((N, 2)))
    return np.where(xy > SIDE, 2 * SIDE - xy, xy)


def groups(points: int, groups: int, rng: np.random.Generator) -> np.ndarray:
    """Uniform points, and groups of so many points at one place each."""
    xy = rng.uniform(0, SIDE, (N, 2))
    together = min(points * groups, N // points * points)
    xy[:together] = np.repeat(xy[:together:points], points, axis=0)
    return xy


def likely(synthesizer: dps.LGCPSynthesizer, xy: np.ndarray, seed: list[int]) -> bool:
    """Whether a release of the points holds clusters for likely."""
    release = synthesizer.release(dps.PointPattern(xy, SQUARE), np.random.default_rng(seed))
    return bool(release.clusters.likely)


def missed(
    synthesizer: dps.LGCPSynthesizer, case: int, kind: int, repeats: int, draw: Callable[[np.random.Generator], Floats]
) -> str:
    """Number of releases of drawn originals that do not hold clusters for likely, of all."""
    seeds = [[SEED, case, kind, repeat] for repeat in range(repeats)]
    seen = [likely(synthesizer, draw(np.random.default_rng([*seed, 1])), seed) for seed in seeds]
    return f"{seen.count(False)} of {repeats}"


def rows() -> Iterator[list[str]]:
    """A row for each budget, share and cap; "none shows" where no clusters do."""
    for case, (epsilon, share, cap) in enumerate(CASES):
        relation = AlphaNeighbours(50.0, max_points_per_person=cap)
        synthesizer = dps.LGCPSynthesizer(epsilon, relation=relation, clusters=share, inference="laplace")
        power = synthesizer.plan(SQUARE, n=N).statistic.power()
        size, spread = power.size
        count = partial(missed, synthesizer, case)
        even = count(0, REPEATS, lambda rng: rng.uniform(0, SIDE, (N, 2))).split(" ")
        uniform = f"{REPEATS - int(even[0])} of {REPEATS}"
        sizes = ((REPEATS, 1.0), (FURTHER, 0.5), (FURTHER, 2.0))
        found = [
            count(1 + k, repeats, partial(clusters, factor * size, spread)) if np.isfinite(size) else "none shows"
            for k, (repeats, factor) in enumerate(sizes)
        ]
        together = ((4, math.ceil(min(power.pairs, N * 1.5) / 6)), (N // 5, 1))
        found += [count(4 + k, FURTHER, partial(groups, *each)) for k, each in enumerate(together)]
        least = f"{1 + size:.1f} places, {spread:.0f} m" if np.isfinite(size) else "none"
        told = [least, f"{power.pairs:.0f} pairs"]
        row = [f"{epsilon:g}", f"{share:g}", f"{cap}", *told, uniform, *found]
        print(*row, sep=" | ", flush=True)
        yield row


def main() -> None:
    parser: argparse.ArgumentParser = command_line(__doc__ or "")
    out = parser.parse_args().out
    fill(out, "told", table(HEADS, rows()))


if __name__ == "__main__":
    main()
