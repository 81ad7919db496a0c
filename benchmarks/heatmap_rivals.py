"""Two rival heat map methods in common use, for benchmarks/heatmaps.py: a coarse grid, and a consistent quadtree.

Both protect one person with all their points by pure epsilon-differential privacy, as the sparse aggregation does.
"""

import math

import numpy as np
from baselines.heatmap_arrays import Users, normalised

from dpppsynth.mechanisms.heatmap.aggregation import measure_tree
from dpppsynth.mechanisms.heatmap.bound import LATTICE_BITS, LevelBudgets
from dpppsynth.mechanisms.heatmap.reconstruction import least_squares
from dpppsynth.mechanisms.heatmap.tree import pyramid
from dpppsynth.privacy.noise import laplace_noise

UNIT = 2**LATTICE_BITS


def noisy(masses: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Masses on the lattice plus discrete Laplace noise, in persons."""
    noise = laplace_noise(UNIT / epsilon, sensitivity=UNIT, epsilon=epsilon * (1 + 1e-9), rng=rng)
    return noise.add(masses.ravel()).reshape(masses.shape) / UNIT


def coarse_grid(users: Users, people: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """One histogram with about sqrt(n epsilon / 10) cells along each side (Qardaji, Yang, Li 2013); n is public."""
    number = max(1, round(math.sqrt(people * epsilon / 10)))
    cells = [min(number, side) for side in users.shape]
    x, y = (np.arange(side) * parts // side for side, parts in zip(users.shape, cells, strict=True))
    sums = np.zeros(cells, np.int64)
    np.add.at(sums, (x[:, None], y[None, :]), users.lattice()[: len(x), : len(y)])
    density = np.maximum(noisy(sums, epsilon, rng), 0) / np.outer(np.bincount(x), np.bincount(y))
    return normalised(density[np.ix_(x, y)])


def equal_budgets(epsilon: float, depth: int) -> LevelBudgets:
    return LevelBudgets(0, (epsilon / (depth + 1),) * (depth + 1))


def quadtree(users: Users, budgets: LevelBudgets, rng: np.random.Generator, *, shrink: bool = False) -> np.ndarray:
    """All cells of the levels, made consistent by least squares (Hay et al. 2010), non-negative from the top down.

    It is the sparse method with so large a w that no cell is left out. Cells that only pad a rectangle take no mass.
    """
    tree = measure_tree(pyramid(users.lattice()), budgets, w=4**users.depth, rng=rng, inside=users.inside)
    return normalised(least_squares(tree, budgets, shrink=shrink))
