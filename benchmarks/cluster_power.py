"""Clusters that show, as `check` says, against releases of originals that have just these, or none.

400 points on a square of 1 km, .3 of epsilon for clusters, Laplace approximation. Originals: uniform points; clusters
of all points, of the size and spread from which on they show; groups of four at one place, with as many pairs as show,
and uniform points; one place with a fifth of all points. Some minutes on one core:

    OMP_NUM_THREADS=1 python benchmarks/cluster_power.py --out docs/results/clusters.md
"""

import argparse
import math
from collections.abc import Iterator

import numpy as np
from pages import command_line, fill, table

import dpppsynth as dps
from dpppsynth.privacy import AlphaNeighbours

SEED, N, SHARE, SIDE, REPEATS = 441, 400, 0.3, 1000.0, 12
SQUARE = dps.Window.rectangle(0, 0, SIDE, SIDE, "EPSG:27700")
# Budgets and caps on persons' points.
CASES = ((1.0, 1), (1.0, 2), (3.0, 1), (3.0, 2))
HEADS = (
    *("epsilon", "points of a person", "clusters show from", "excess shows from"),
    *("uniform: clusters likely", "clusters: not seen", "groups of four: not seen", "one place: not seen"),
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


def rows() -> Iterator[list[str]]:
    """A row for each budget and cap."""
    for case, (epsilon, cap) in enumerate(CASES):
        relation = AlphaNeighbours(50.0, max_points_per_person=cap)
        synthesizer = dps.LGCPSynthesizer(epsilon, relation=relation, clusters=SHARE, inference="laplace")
        power = synthesizer.plan(SQUARE, n=N).statistic.power()
        size, spread = power.size
        seeds = [[SEED, case, repeat] for repeat in range(REPEATS)]
        rngs = [np.random.default_rng([*seed, 1]) for seed in seeds]
        yes = [likely(synthesizer, rng.uniform(0, SIDE, (N, 2)), seed) for rng, seed in zip(rngs, seeds, strict=True)]
        no = [not likely(synthesizer, clusters(size, spread, rng), s) for rng, s in zip(rngs, seeds, strict=True)]
        few, many = (4, math.ceil(power.pairs / 6)), (N // 5, 1)
        lost, crowd = (
            [not likely(synthesizer, groups(*each, rng), s) for rng, s in zip(rngs, seeds, strict=True)]
            for each in (few, many)
        )
        told = [f"{epsilon:g}", f"{cap}", f"{size:.1f} further places, {spread:.0f} m", f"{power.pairs:.0f} pairs"]
        print(*told, sum(yes), sum(no), sum(lost), sum(crowd), flush=True)
        yield [*told, *(f"{sum(each)} of {REPEATS}" for each in (yes, no, lost, crowd))]


def main() -> None:
    parser: argparse.ArgumentParser = command_line(__doc__ or "")
    out = parser.parse_args().out
    fill(out, "told", table(HEADS, rows()))


if __name__ == "__main__":
    main()
