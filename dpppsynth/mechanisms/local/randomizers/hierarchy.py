"""Reports on one level of a quadtree, drawn at random, by a frequency oracle of its own."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import one_of, shown, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.grids.sides import report_signal
from dpppsynth.mechanisms.local.randomizers.frequency import FrequencyOracle, checked_budget
from dpppsynth.mechanisms.local.randomizers.haar import LevelShares, quadtree_shares
from dpppsynth.mechanisms.local.randomizers.oracle_choice import best_oracle
from dpppsynth.mechanisms.local.randomizers.questions import QuestionsLaw
from dpppsynth.spatial.simplex import norm_sub, possible

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
        """Number of cells of the finest level."""
        return self.cells**2

    @cached_property
    def sides(self) -> tuple[int, ...]:
        """Cells along a side of each level, the coarsest first."""
        first = min(COARSEST, self.cells)
        return tuple(first << level for level in range((self.cells // first).bit_length()))

    @cached_property
    def oracles(self) -> tuple[FrequencyOracle, ...]:
        """Law of the reports of each level."""
        return tuple(best_oracle(self.epsilon, side**2) for side in self.sides)

    def louder(self, epsilon: float) -> Self:
        """The same laws of all levels with another epsilon, whichever would be best then."""
        made = replace(self, epsilon=epsilon)
        made.__dict__["oracles"] = tuple(replace(oracle, epsilon=epsilon) for oracle in self.oracles)
        return made

    def answers(self, values: Ints, question: int) -> Ints:
        """(n,) cells of a level that hold finest cells (n,)."""
        return self.ancestors(values, question)

    def ancestors(self, values: Ints, level: int) -> Ints:
        """(n,) cells of a level that hold finest cells (n,)."""
        side = self.sides[level]
        i, j = np.divmod(values, self.cells)
        block = self.cells // side
        return np.asarray(i // block * side + j // block)

    def settings(self, **given: Any) -> dict[str, Any]:
        """Setting of the estimator: "shrunk" by empirical Bayes, or "norm-sub", the shares nearest to unbiased ones."""
        unknown = [name for name in given if name != "estimator"]
        if unknown:
            msg = f"settings: {', '.join(unknown)} unknown; a hierarchy has 'estimator'."
            raise InputError(msg)
        return {"estimator": one_of("estimator", given.get("estimator", SHRUNK), (SHRUNK, NEAREST))}

    def estimate(self, counts: Ints, n: int, *, inside: Any = None, **settings: Any) -> Floats:
        """(inputs,) estimated shares of the finest cells; parameters as of `Randomizer.estimate`."""
        chosen, mask = self.settings(**settings)["estimator"], possible(inside, self.inputs)
        levels = self.level_shares(counts, n)
        if chosen == NEAREST:
            return norm_sub(self.unbiased(counts, n), inside=mask)
        square = mask.reshape(self.cells, self.cells)
        # Where nobody reports on the finest levels, their cells share what coarser ones have, by what lies inside.
        return _spread(quadtree_shares(levels, inside=_any(square, len(levels[-1].shares))), square)

    def unbiased(self, counts: Ints, n: int) -> Floats:
        """(inputs,) least-variance estimates of the shares before anything is shrunk: some are negative."""
        levels = self.level_shares(counts, n)
        square = np.ones((self.cells, self.cells), dtype=bool)
        coarse = len(levels[-1].shares)
        return _spread(quadtree_shares(levels, inside=_any(square, coarse), shrink=False), square)

    def level_shares(self, counts: Ints, n: int) -> list[LevelShares]:
        """Unbiased estimates of each level on which anybody reports, and their variances; at least one."""
        number = whole("n", n, 1, most=2**53)
        if self.reported(counts) != number:
            msg = "n: must be the number of reports behind the counts; take what `reported` returns."
            raise InputError(msg)
        reports, parts = self.by_question(counts)
        found = []
        for side, oracle, part, here in zip(self.sides, self.oracles, parts, reports.tolist(), strict=True):
            if here:
                shares = oracle.frequencies(part, here).reshape(side, side)
                other, own = oracle.variance(0, 1), oracle.variance(1, 1)
                chosen = max(0.0, own - other) + 1 - here / number
                found.append(LevelShares(shares, other / here, chosen / here))
        return found

    def fast_counts(self, true_counts: Ints, rng: np.random.Generator) -> Ints:
        """Counts drawn at once, as each level's oracle draws them, for experiments."""
        left = self.oracles[-1].true_numbers(true_counts, rng)
        reports, parts = [], []
        for level, oracle in enumerate(self.oracles):
            here = rng.binomial(left, 1 / (len(self.sides) - level))
            left = left - here
            held = np.bincount(self.ancestors(np.arange(self.inputs), level), here, oracle.domain).astype(np.int64)
            reports.append(int(here.sum()))
            parts.append(oracle.fast_counts(held, rng))
        return np.concatenate([reports, *parts]).astype(np.int64)


def _any(inside: npt.NDArray[np.bool_], side: int) -> npt.NDArray[np.bool_]:
    """(side, side) whether any cell of a block is inside."""
    block = len(inside) // side
    return np.asarray(inside.reshape(side, block, side, block).any(axis=(1, 3)))


def _spread(shares: Floats, inside: npt.NDArray[np.bool_]) -> Floats:
    """(inputs,) shares of blocks of cells, laid evenly on those inside."""
    block = len(inside) // len(shares)
    held = inside.reshape(len(shares), block, len(shares), block).sum(axis=(1, 3))
    each = np.divide(shares, held, out=np.zeros_like(shares), where=held > 0)
    return np.asarray(np.kron(each, np.ones((block, block))) * inside).ravel()
