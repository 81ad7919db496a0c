"""Noised counts of the cells of a pyramid: the one step of a heat map that spends the budget.

Only the noised counts touch the data; the number of persons is never used.
"""

from collections.abc import Callable, Sequence

import numpy as np

from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.mechanisms.heatmap.bound import LevelBudgets, level_scales
from dpppsynth.mechanisms.heatmap.tree import CellTree, grow
from dpppsynth.privacy.bounds import LATTICE_BITS
from dpppsynth.privacy.noise import laplace_noise
from dpppsynth.spatial.mesh import Floats, Ints

# Doubles hold whole numbers below this, so noised counts survive the division by 2^bits.
EXACT = 2**53


def apply(draw: Callable[[Ints], Ints], exact: Ints) -> Ints:
    """Add noise to exact numbers."""
    return draw(exact)


def measure_tree(
    lattice_pyramid: Sequence[Ints],
    budgets: LevelBudgets,
    *,
    w: int,
    rng: RngLike = None,
    inside: Floats | None = None,
    apply_noise: Callable[[Callable[[Ints], Ints], Ints], Ints] = apply,
) -> CellTree:
    """Spend the budgets: noised counts of the pyramid cells that selection visits.

    Cells that are not looked at get no noise, since nothing depends on it; each of the others gets it once.

    Parameters
    ----------
    lattice_pyramid : sequence of int arrays
        Sums of persons in lattice units, from the root to the grid, on each of which a person weighs at most one.
    budgets : LevelBudgets
    w : int
        Cells kept per level.
    rng : None, int or Generator
        None: secret noise. Anything else makes the run reproducible and therefore not private.
    inside : array, optional
        Public areas of the grid's cells, as `grow` takes them.
    apply_noise : callable
        `Statistic.apply_noise` of a plan.

    Returns
    -------
    CellTree
        Its counts, in persons, are whole multiples of the lattice's unit: divided by it they are the noised numbers.

    Raises
    ------
    InputError
        The budget is so small that noised counts would not fit into floating-point numbers.
    """
    scales = level_scales(budgets)
    require_exact(scales)
    # One generator for all levels: a seed taken anew on each would repeat its noise.
    source = None if rng is None else generator(rng)

    def read(level: int, cells: Ints) -> Floats:
        k = budgets.levels.index(level)
        noise = laplace_noise(scales[k], sensitivity=2**LATTICE_BITS, epsilon=budgets.epsilons[k], rng=source)
        noised = apply_noise(noise.add, lattice_pyramid[level].ravel()[cells])
        if np.abs(noised).max() >= EXACT:
            msg = "noise: a noised count is beyond the whole numbers that doubles hold; nothing was returned."
            raise PrivacyCheckError(msg)
        return noised / 2.0**LATTICE_BITS

    return grow(budgets.first, budgets.depth, w, read, inside, budgets.step)


def require_exact(scales: Sequence[float]) -> None:
    """Refuse noise (lattice units) that may reach beyond the whole numbers that doubles hold."""
    if not max(scales) * 100 < EXACT:
        msg = "epsilon: asks for noise beyond the whole numbers that doubles hold; take a larger epsilon."
        raise InputError(msg)
