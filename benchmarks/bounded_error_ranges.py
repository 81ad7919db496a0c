"""Range queries of benchmarks/bounded_error.py: interval release, trees and flat histograms on the same ranges.

A record is replaced: two counts change by one, so that the histogram has sensitivity 2 (the square root of 2 for the
Gaussian law), a tree without its root 2 (levels - 1), and the shares that interval release asks for 1 / n. Every
mechanism spends epsilon once. Answers are sums over cells; nothing is clipped.
"""

import math
from typing import NamedTuple

import bounded_error_data as data
import numpy as np
from baselines import blum_intervals, hay_tree
from bounded_error_laws import replaced_noises
from bounded_error_runs import SEED, TREE, Setting
from bounded_error_scores import Figure, figure

from dpppsynth.spatial.mesh import Floats, Ints

# Cells of a range, by the number of bins.
LENGTHS = {data.AGES: (1, 5, 20, 50), data.MOST_FRIENDS + 1: (1, 20, 200, 1000)}
QUERIES = 200
ACCURACIES = (0.05, 0.2, 0.8)


class Ranged(NamedTuple):
    """Mean squared error of ranges of one length, and the closed form of independent noise on cells."""

    law: str
    epsilon: float
    length: int
    delta: float
    repetitions: int
    mse: Figure


def workload(cells: int) -> dict[int, Ints]:
    """Public ranges [first, last) at random places, (Q, 2) for each length."""
    rng = np.random.default_rng([SEED, 5, cells])
    firsts = {length: rng.integers(0, cells - length + 1, QUERIES) for length in LENGTHS[cells]}
    return {length: np.column_stack([first, first + length]) for length, first in firsts.items()}


def range_rows(
    law: str, epsilon: float, delta: float, repetitions: int, errors: Floats, variance: float | None = None
) -> list[Ranged]:
    """Mean squared errors of sums of the errors (R, cells) of cells, for each length."""
    totals = np.concatenate([np.zeros((len(errors), 1)), errors.cumsum(axis=1)], axis=1)
    found = []
    for length, ranges in workload(errors.shape[1]).items():
        sums = totals[:, ranges[:, 1]] - totals[:, ranges[:, 0]]
        mse = figure((sums**2).mean(axis=1), None if variance is None else length * variance)
        found.append(Ranged(law, epsilon, length, delta, repetitions, mse))
    return found


def of_ranges(name: str, epsilon: float, setting: Setting) -> list[Ranged]:
    """All mechanisms over the histogram of ages or of friends."""
    values, counts = (
        (data.ages() - data.FIRST_AGE, data.age_counts()) if name == "ages" else (data.degrees(), data.degree_counts())
    )
    rng = np.random.default_rng([SEED, 6, len(counts), round(1000 * epsilon)])
    repetitions = setting.ranges
    rows: list[Ranged] = []
    for noise in replaced_noises(epsilon):
        drawn = noise.draw((repetitions, len(counts)), rng)
        rows += range_rows(noise.name, epsilon, noise.delta, repetitions, drawn, noise.variance)
    trees = (hay_tree(counts, epsilon=epsilon, relation="replace-one", rng=rng) for _ in range(repetitions))
    leaves = np.array([tree.counts for tree in trees])
    rows += range_rows(TREE, epsilon, 0.0, repetitions, leaves - counts)
    bits = math.ceil(math.log2(len(counts)))
    # The middle of a cell of 2^bits: no value lies on a border.
    unit = (values + 0.5) / 2**bits
    for accuracy in ACCURACIES:
        few = max(2, repetitions // 10)
        drawn = [intervals(unit, counts, epsilon, accuracy, bits, rng) for _ in range(few)]
        rows += range_rows(f"Blum, accuracy {accuracy:g}", epsilon, 0.0, few, np.array(drawn))
    nothing = np.tile(counts.sum() / len(counts) - counts, (2, 1))
    return [*rows, *range_rows("no data: all cells equal", 0.0, 0.0, 0, nothing)]


def intervals(
    unit: Floats, counts: Ints, epsilon: float, accuracy: float, bits: int, rng: np.random.Generator
) -> Floats:
    """Errors (cells,) of the counts that intervals of equal mass give."""
    found = blum_intervals(unit, epsilon=epsilon, accuracy=accuracy, bits=bits, rng=rng)
    borders = np.arange(len(counts) + 1) / 2**bits
    return found.count(np.column_stack([borders[:-1], borders[1:]])) - counts
