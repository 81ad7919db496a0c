"""Reports on one level of a quadtree, drawn at random, by a frequency oracle of its own.

A cell's four children hold its share, and three contrasts tell how: left against right, low against high, and one
diagonal against the other. Every level at least as fine as the children estimates them without bias; estimates of all
such levels are averaged by their precision. From the coarsest cell on contrasts are then shrunk: of all cells of a
level a share w_k has contrasts of standard deviation t_k times the cell's own share, and these shares are found by
maximising the likelihood (empirical Bayes). What is left below zero is laid on the other children.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import one_of, shown, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.grids.sides import report_signal
from dpppsynth.mechanisms.local.randomizers.frequency import FrequencyOracle, checked_budget
from dpppsynth.mechanisms.local.randomizers.oracles import best_oracle
from dpppsynth.mechanisms.local.randomizers.questions import QuestionsLaw
from dpppsynth.mechanisms.local.randomizers.randomizer import known_settings
from dpppsynth.spatial.simplex import norm_sub, possible

# Standard deviations of contrasts, in shares of the cell, and steps towards how common each is.
SPREADS = np.array([0.0, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0])
STEPS, RAREST = 30, 1e-6


class LevelShares(NamedTuple):
    """Unbiased estimates of the shares of one level's cells.

    Attributes
    ----------
    shares : (side, side) array
    noise : float
        Variance of one of them, for a cell that is nearly empty.
    own : float
        What a cell's share adds to its variance, times the share: of its own reports, and of who reports here.
    """

    shares: Floats
    noise: float
    own: float


def summed(values: Floats, side: int) -> Floats:
    """(side, side) sums of values over square blocks.

    Examples
    --------
    >>> summed(np.arange(16.0).reshape(4, 4), 2).tolist()
    [[10.0, 18.0], [42.0, 50.0]]
    """
    block = len(values) // side
    return values.reshape(side, block, side, block).sum(axis=(1, 3))


def contrasts(children: Floats) -> Floats:
    """(3, side, side) contrasts of the four children of each cell, from the children's shares (2 side, 2 side)."""
    a, b, c, d = children[::2, ::2], children[::2, 1::2], children[1::2, ::2], children[1::2, 1::2]
    return np.stack([a - b + c - d, a + b - c - d, a - b - c + d])


def children_of(shares: Floats, contrast: Floats) -> Floats:
    """(2 side, 2 side) shares of the children of cells, by the cells' own (side, side) and their contrasts."""
    one, two, three = contrast
    found = np.empty((2 * len(shares), 2 * len(shares)))
    found[::2, ::2], found[::2, 1::2] = shares + one + two + three, shares - one + two - three
    found[1::2, ::2], found[1::2, 1::2] = shares + one - two - three, shares - one - two + three
    return found / 4


def pooled(levels: Sequence[LevelShares], shares: Floats) -> tuple[Floats, Floats]:
    """Contrasts (3, side, side) averaged over all finer levels by precision, and their variances (side, side)."""
    children = 2 * len(shares)
    weighted, precision = np.zeros((3, *shares.shape)), np.zeros(shares.shape)
    for level in levels:
        if len(level.shares) >= children:
            cells = 4 * (len(level.shares) // children) ** 2
            weight = 1 / (cells * level.noise + shares * level.own)
            weighted += weight * contrasts(summed(level.shares, children))
            precision += weight
    return weighted / precision, 1 / precision


def shrunk(contrast: Floats, shares: Floats, variance: Floats) -> Floats:
    """(side, side) posterior means of the contrasts of one kind, by empirical Bayes over the cells of a level."""
    spread = (SPREADS[:, None, None] * shares) ** 2 + variance
    log_density = -0.5 * (np.log(spread) + contrast**2 / spread)
    density = np.exp(log_density - log_density.max(axis=0))
    common = np.full(len(SPREADS), 1 / len(SPREADS))
    for _ in range(STEPS):
        belongs = density * common[:, None, None]
        common = (belongs / belongs.sum(axis=0)).mean(axis=(1, 2)) + RAREST
        common /= common.sum()
    belongs = density * common[:, None, None]
    kept = (belongs * (1 - variance / spread)).sum(axis=0) / belongs.sum(axis=0)
    return np.asarray(contrast * kept)


def within(children: Floats, shares: Floats, possible: npt.NDArray[np.bool_]) -> Floats:
    """Children's shares without the negative ones, scaled to the shares of their cells; even where none is left."""
    kept = np.where(possible, np.maximum(children, 0.0), 0.0)
    left = summed(kept, len(shares))
    kept = np.where(np.kron(left, np.ones((2, 2))) > 0, kept, possible / 1.0)
    total = summed(kept, len(shares))
    return kept * np.kron(np.divide(shares, total, out=np.zeros_like(total), where=total > 0), np.ones((2, 2)))


def quadtree_shares(levels: Sequence[LevelShares], *, inside: npt.NDArray[np.bool_], shrink: bool = True) -> Floats:
    """(side, side) shares of the finest level's cells, with sum one."""
    finest, found = len(levels[-1].shares), np.ones((1, 1))
    while len(found) < finest:
        contrast, variance = pooled(levels, np.maximum(found, 0.0))
        if shrink:
            contrast = np.stack([shrunk(each, found, variance) for each in contrast])
        children = children_of(found, contrast)
        possible = summed(inside / 1.0, len(children)) > 0
        found = within(children, found, possible) if shrink else children
    return found


# Cells along a side of the coarsest level, unless the finest has fewer, and of the finest ones there are.
COARSEST, FINEST = 4, 256
# Cells along a side of the finest level by the rule: so many times the cubic root of the reports' signal.
SIDE, MOST_SIDE = 0.465, 128
SHRUNK, NEAREST = "shrunk", "norm-sub"


def hierarchy_side(epsilon: float, n: int) -> int:
    """Cells along a side of the finest level, a power of two, that suits a budget and a public number of persons.

    Examples
    --------
    >>> [hierarchy_side(epsilon, 500_000) for epsilon in (0.5, 1.0, 3.0, 5.0)]
    [16, 32, 64, 128]
    """
    epsilon, _ = checked_budget(epsilon, 1)
    signal = report_signal(epsilon) ** 2 / 4 * whole("n", n, 1, most=2**53)
    side = 2 ** round(math.log2(SIDE * np.cbrt(max(signal, 1.0))))
    return min(max(COARSEST, side), MOST_SIDE)


@dataclass(frozen=True, kw_only=True, eq=False)
class RangeHierarchyLaw(QuestionsLaw):
    """One report on one level of a quadtree of cells; the level is drawn uniformly, whatever the value.

    Levels have 4 x 4, 8 x 8, ..., `cells` x `cells` cells, and each the frequency oracle with the least total variance,
    as `best_oracle` finds it, with the whole budget. Counts are the reports of each level, then the counts of each
    level's oracle.

    Attributes
    ----------
    cells : int
        Along a side of the finest level; a power of two from 2 to 256. Cell (i, j) is value `i * cells + j`.

    Examples
    --------
    >>> law = RangeHierarchyLaw(epsilon=1.0, cells=16)
    >>> law.sides, [oracle.kind for oracle in law.oracles], law.columns
    ((4, 8, 16), ['subset-selection', 'subset-selection', 'subset-selection'], ('level', 'part_0', ..., 'part_4'))
    """

    cells: int
    kind: ClassVar[str] = "range-hierarchy"
    question: ClassVar[str] = "level"

    def __post_init__(self) -> None:
        side = whole("cells", self.cells, 2, most=FINEST, remedy="a power of two, such as 64")
        if side & (side - 1):
            msg = f"cells: must be a power of two from 2 to {FINEST}, got {shown(side)}; take 32, 64 or 128."
            raise InputError(msg)
        object.__setattr__(self, "cells", side)
        super().__post_init__()

    @property
    def inputs(self) -> int:
        return self.cells**2

    @cached_property
    def sides(self) -> tuple[int, ...]:
        """Cells along a side of each level, the coarsest first."""
        first = min(COARSEST, self.cells)
        return tuple(first << level for level in range((self.cells // first).bit_length()))

    @cached_property
    def oracles(self) -> tuple[FrequencyOracle, ...]:
        return tuple(best_oracle(self.epsilon, side**2) for side in self.sides)

    def louder(self, epsilon: float) -> Self:
        """These laws of all levels with another epsilon, without a new choice of parameters."""
        made = replace(self, epsilon=epsilon)
        made.__dict__["oracles"] = tuple(replace(oracle, epsilon=epsilon) for oracle in self.oracles)
        return made

    def answers(self, values: Ints, question: int) -> Ints:
        side = self.sides[question]
        i, j = np.divmod(values, self.cells)
        block = self.cells // side
        return np.asarray(i // block * side + j // block)

    def settings(self, **given: Any) -> dict[str, Any]:
        chosen = known_settings(given, estimator=SHRUNK)["estimator"]
        return {"estimator": one_of("estimator", chosen, (SHRUNK, NEAREST))}

    def estimate(self, counts: Ints, n: int, *, inside: Any = None, **settings: Any) -> Floats:
        chosen, mask = self.settings(**settings)["estimator"], possible(inside, self.inputs)
        levels = self.level_shares(counts, n)
        if chosen == NEAREST:
            return norm_sub(self.unbiased(counts, n), inside=mask)
        square = mask.reshape(self.cells, self.cells)
        # Where nobody reports on the finest levels, their cells share what coarser ones have, by what lies inside.
        return _spread(quadtree_shares(levels, inside=summed(square / 1.0, len(levels[-1].shares)) > 0), square)

    def unbiased(self, counts: Ints, n: int) -> Floats:
        """(inputs,) least-variance unbiased estimates of the shares, before shrinkage; some are negative."""
        levels = self.level_shares(counts, n)
        square = np.ones((self.cells, self.cells), dtype=bool)
        coarse = len(levels[-1].shares)
        return _spread(quadtree_shares(levels, inside=summed(square / 1.0, coarse) > 0, shrink=False), square)

    def level_shares(self, counts: Ints, n: int) -> list[LevelShares]:
        """Unbiased estimates of each level that has reports, and their variances; at least one level."""
        reports, parts = self.by_question(self.counts_of(counts, n))
        found = []
        for side, oracle, part, here in zip(self.sides, self.oracles, parts, reports.tolist(), strict=True):
            if here:
                shares = oracle.frequencies(part, here).reshape(side, side)
                other, own = oracle.variance(0, 1), oracle.variance(1, 1)
                chosen = max(0.0, own - other) + 1 - here / n
                found.append(LevelShares(shares, other / here, chosen / here))
        return found

    def fast_counts(self, true_counts: Ints, rng: np.random.Generator) -> Ints:
        """Counts drawn at once, as each level's oracle draws them, for experiments."""
        left = self.oracles[-1].true_numbers(true_counts, rng)
        reports, parts = [], []
        for level, oracle in enumerate(self.oracles):
            here = rng.binomial(left, 1 / (len(self.sides) - level))
            left = left - here
            held = np.bincount(self.answers(np.arange(self.inputs), level), here, oracle.domain).astype(np.int64)
            reports.append(int(here.sum()))
            parts.append(oracle.fast_counts(held, rng))
        return np.concatenate([reports, *parts]).astype(np.int64)


def _spread(shares: Floats, inside: npt.NDArray[np.bool_]) -> Floats:
    """(inputs,) shares of blocks of cells, laid evenly on those inside."""
    block = len(inside) // len(shares)
    held = summed(inside / 1.0, len(shares))
    each = np.divide(shares, held, out=np.zeros_like(shares), where=held > 0)
    return np.asarray(np.kron(each, np.ones((block, block))) * inside).ravel()
