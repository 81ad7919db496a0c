"""Sparse aggregation of persons' distributions: a private average close in earth mover's distance.

Persons are summed on a lattice, the sums of a pyramid of cells get discrete Laplace noise where the algorithm looks,
and the masses that fit the noised counts best are found. Only the noised counts touch the data; the number of persons
is never used.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import flag
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.mechanisms.heatmap.bound import (
    PUBLISHED,
    LevelBudgets,
    advise_decay,
    level_budgets,
    level_scales,
    require_measure,
)
from dpppsynth.mechanisms.heatmap.fitting import fitted, require_fit
from dpppsynth.mechanisms.heatmap.persons import Users
from dpppsynth.mechanisms.heatmap.tree import CellTree, grow, pyramid
from dpppsynth.privacy.bounds import LATTICE_BITS
from dpppsynth.privacy.noise import laplace_noise
from dpppsynth.spatial.mesh import Floats, Ints

Distributions = npt.ArrayLike | Users

# Doubles hold whole numbers below this, so noised counts survive the division by 2^bits.
EXACT = 2**53


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    """Result of an aggregation; all of it is private, unless seeded, and public from then on.

    Attributes
    ----------
    masses : (nx, ny) array
        Estimate of the sum of all persons' distributions, in persons.
    seeded : bool
        The noise came from a given generator, and may be made again: then nothing here is private.
    """

    masses: Floats
    seeded: bool

    def __repr__(self) -> str:
        nx, ny = self.masses.shape
        tail = ", seeded: not private" if self.seeded else ""
        return f"{type(self).__name__}({nx} x {ny} cells{self._spent}{tail})"

    @property
    def _spent(self) -> str:
        return ""

    @property
    def empty(self) -> bool:
        """Whether no mass was found, which makes the distribution uniform."""
        return not self.masses.any()

    @property
    def distribution(self) -> Floats:
        """(nx, ny) estimate of the average distribution; adds up to one."""
        return normalised(self.masses)


@dataclass(frozen=True, eq=False, repr=False)
class Aggregation(Estimate):
    """Result of sparse aggregation.

    Attributes
    ----------
    budgets : LevelBudgets
    tree : CellTree
        The cells looked at, with their noised counts.
    """

    budgets: LevelBudgets
    tree: CellTree

    @property
    def _spent(self) -> str:
        return f", epsilon={sum(self.budgets.epsilons):g}"


def aggregate(
    distributions: Distributions,
    *,
    epsilon: float,
    w: int = 20,
    measure: int | None = None,
    variant: str = "practical",
    decay: float | None = None,
    fit: str = "l1",
    pad: bool = False,
    allow_subprobability: bool = False,
    rng: RngLike = None,
) -> Floats:
    """Private average of persons' distributions, on its own: no certificate, ledger or `verify`.

    By sparse aggregation over a grid; its budget is the caller's to keep. `HeatmapSynthesizer` has all of these.
    Pure epsilon-differentially private under adding or removing one person with everything of theirs.

    Parameters
    ----------
    distributions : array_like, shape (users, side, side), or Users
        Each person's masses add up to one. The side is a power of two.
    epsilon : float
        Budget of the whole heat map.
    w : int
        Cells kept per level; like all parameters chosen without looking at the data.
    measure : int, optional
        Cells along a side of the finest level that is counted, a power of two; None takes those of the grid.
    variant : {"practical", "theory", "two-level"}
        Levels that are measured, see `level_budgets`.
    decay : float, optional
        Of the levels' budgets, in (0, 1].
    fit : {"l1", "least-squares", "field"}
        Fit of masses to the noised counts, at no privacy cost; see `fitted`. "l1" is the published one, for
        which the error bound is proved; "least-squares" is more accurate, "field" most of all.
    pad : bool
        Accept arrays whose sides are no powers of two, and rectangles.
    allow_subprobability : bool
        Accept arrays that add up to less than one.
    rng : None, int or Generator
        None: secret noise. Anything else makes the run reproducible and therefore not private.

    Returns
    -------
    (side, side) array
        Adds up to one; of the shape of the distributions where they were padded. Uniform where no mass was found
        (`sparse_aggregate(...).empty`).

    Raises
    ------
    InputError
        An argument breaks its rule.

    References
    ----------
    Ghazi et al. (2023), Differentially private heatmaps, AAAI, Algorithm 1.

    Examples
    --------
    >>> persons = np.zeros((500, 4, 4))
    >>> persons[:, 1, 2] = 1
    >>> float(aggregate(persons, epsilon=5.0, w=4, rng=1)[1, 2]) > 0.95
    True
    """
    return sparse_aggregate(
        distributions,
        epsilon=epsilon,
        w=w,
        measure=measure,
        variant=variant,
        decay=decay,
        fit=fit,
        pad=pad,
        allow_subprobability=allow_subprobability,
        rng=rng,
    ).distribution


def sparse_aggregate(
    distributions: Distributions,
    *,
    epsilon: float,
    w: int = 20,
    measure: int | None = None,
    variant: str = "practical",
    decay: float | None = None,
    fit: str = "l1",
    pad: bool = False,
    allow_subprobability: bool = False,
    rng: RngLike = None,
) -> Aggregation:
    """Private average of persons' distributions with all measured counts; arguments as in `aggregate`.

    Examples
    --------
    >>> found = sparse_aggregate(np.zeros((0, 8, 8)), epsilon=1.0, w=3, rng=3)
    >>> found.empty, float(found.distribution.sum()), len(found.tree.levels)
    (True, 1.0, 4)
    """
    users = as_users(distributions, pad=pad, allow_subprobability=allow_subprobability)
    advise_decay(decay)
    depth = users.depth if measure is None else require_measure(measure, users.depth)
    budgets = level_budgets(epsilon, depth, w, variant=variant, decay=decay)
    # Validate budget and fit before the data are summed.
    require_exact(level_scales(budgets))
    require_fit(fit, budgets)
    grid = np.ones((users.side, users.side)) if users.inside is None else users.inside.astype(float)
    inside = None if users.inside is None else pyramid(grid)[depth]
    kept = w if variant in PUBLISHED else 4**depth
    tree = measure_tree(pyramid(users.lattice()), budgets, w=kept, rng=rng, inside=inside)
    masses = fitted(tree, budgets, fit, inside=grid)[: users.shape[0], : users.shape[1]]
    return Aggregation(masses, rng is not None, budgets, tree)


def apply(draw: Callable[[Ints], Ints], exact: Ints) -> Ints:
    """Noised numbers of exact ones."""
    return draw(exact)


def measure_tree(
    lattice_pyramid: Sequence[Ints],
    budgets: LevelBudgets,
    *,
    bits: int = LATTICE_BITS,
    w: int,
    rng: RngLike = None,
    inside: Any = None,
    apply_noise: Callable[[Callable[[Ints], Ints], Ints], Ints] = apply,
) -> CellTree:
    """Spend the budgets: noised counts of the pyramid cells that selection visits.

    Cells that are not looked at get no noise, since nothing depends on it; each of the others gets it once.

    Parameters
    ----------
    lattice_pyramid : sequence of int arrays
        Sums of persons in units of `2^-bits`, from the root to the grid, on each of which a person weighs at most
        `2^bits`.
    budgets : LevelBudgets
    bits : int
    w : int
        Cells kept per level.
    rng : None, int or Generator
        None: secret noise. Anything else makes the run reproducible and therefore not private.
    inside : array, optional
        Public mask or areas of the grid's cells, as `grow` takes it.
    apply_noise : callable
        `Statistic.apply_noise` of a plan.

    Returns
    -------
    CellTree
        Its counts, in persons, are whole multiples of `2^-bits`: times `2^bits` they are the noised numbers, exactly.

    Raises
    ------
    InputError
        The budget is so small that noised counts would not fit into floating-point numbers.
    """
    scales = level_scales(budgets, bits)
    require_exact(scales)
    # One generator for all levels: a seed taken anew on each would repeat its noise.
    source = None if rng is None else generator(rng)

    def read(level: int, cells: Ints) -> Floats:
        k = budgets.levels.index(level)
        noise = laplace_noise(scales[k], sensitivity=2**bits, epsilon=budgets.epsilons[k], rng=source)
        noised = apply_noise(noise.add, lattice_pyramid[level].ravel()[cells])
        if np.abs(noised).max() >= EXACT:
            msg = "noise: a noised count is beyond the whole numbers that doubles hold; nothing was returned."
            raise PrivacyCheckError(msg)
        return noised / 2.0**bits

    return grow(budgets.first, budgets.depth, w, read, inside, budgets.step)


def require_exact(scales: Sequence[float]) -> None:
    """Refuse noise (lattice units) that may reach beyond the whole numbers that doubles hold."""
    if not max(scales) * 100 < EXACT:
        msg = "epsilon: asks for noise beyond the whole numbers that doubles hold; take a larger epsilon."
        raise InputError(msg)


def as_users(distributions: Distributions, *, pad: bool, allow_subprobability: bool) -> Users:
    """The persons; arrays are checked, and `Users` have been."""
    if isinstance(distributions, Users):
        if flag("pad", pad) or flag("allow_subprobability", allow_subprobability):
            msg = "pad, allow_subprobability: say how arrays are taken; give them to the constructor of Users instead."
            raise InputError(msg)
        return distributions
    return Users.from_arrays(distributions, pad=pad, allow_subprobability=allow_subprobability)


def normalised(masses: Floats) -> Floats:
    """Masses divided by their sum; uniform where there are none, since another measurement would spend again."""
    total = masses.sum()
    return masses / total if total > 0 else np.full(masses.shape, 1 / masses.size)
