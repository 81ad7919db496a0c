"""Two rivals of today's practice, for benchmarks/heatmaps.py: a coarse grid, and a consistent quadtree.

Both protect one person with all their points by pure epsilon-differential privacy, as the sparse aggregation does.
"""

import math

import numpy as np

from dpppsynth.heatmaps.pyramid import pyramid
from dpppsynth.heatmaps.users import Users
from dpppsynth.privacy.noise import laplace_noise
from dpppsynth.privacy.pyramids import LATTICE_BITS

UNIT = 2**LATTICE_BITS


def noisy(masses: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Masses on the lattice plus discrete Laplace noise, in persons."""
    noise = laplace_noise(UNIT / epsilon, sensitivity=UNIT, epsilon=epsilon * (1 + 1e-9), rng=rng)
    return noise.add(masses.ravel()).reshape(masses.shape) / UNIT


def normalised(masses: np.ndarray) -> np.ndarray:
    total = masses.sum()
    return masses / total if total > 0 else np.full(masses.shape, 1 / masses.size)


def coarse_grid(users: Users, people: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """One histogram with about sqrt(n epsilon / 10) cells along each side (Qardaji, Yang, Li 2013); n is public."""
    cells = min(max(1, round(math.sqrt(people * epsilon / 10))), users.side)
    at = np.arange(users.side) * cells // users.side
    sums = np.zeros((cells, cells), np.int64)
    np.add.at(sums, (at[:, None], at[None, :]), users.lattice())
    width = np.bincount(at)
    density = np.maximum(noisy(sums, epsilon, rng), 0) / np.outer(width, width)
    return normalised(density[np.ix_(at, at)])


def quadtree(users: Users, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """All levels with equal budgets, made consistent by least squares (Hay et al. 2010), non-negative downwards."""
    levels = pyramid(users.lattice())
    counts = [noisy(level, epsilon / len(levels), rng) for level in levels]
    best = [counts[-1]]
    for height, count in enumerate(counts[-2::-1], start=2):
        own = (4**height - 4 ** (height - 1)) / (4**height - 1)
        best.append(own * count + (1 - own) * pyramid_step(best[-1]))
    masses = np.maximum(best.pop(), 0)
    while best:
        masses = shared(masses, best.pop())
    return normalised(masses)


def pyramid_step(masses: np.ndarray) -> np.ndarray:
    half = len(masses) // 2
    return masses.reshape(half, 2, half, 2).sum(axis=(1, 3))


def shared(masses: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Each mass over its four cells below: the nearest point to their estimates that is not negative and adds up."""
    half = len(masses)
    four = below.reshape(half, 2, half, 2).transpose(0, 2, 1, 3).reshape(half, half, 4)
    falling = -np.sort(-four, axis=2)
    excess = (falling.cumsum(axis=2) - masses[..., None]) / np.arange(1, 5)
    last = 3 - (falling - excess > 0)[..., ::-1].argmax(axis=2)
    level = np.take_along_axis(excess, last[..., None], axis=2)
    points = np.where(masses[..., None] > 0, np.maximum(four - level, 0), 0)
    return points.reshape(half, half, 2, 2).transpose(0, 2, 1, 3).reshape(2 * half, 2 * half)
