"""The subset exponential mechanism: a report of a few cells, weighted by their least distance to the client's.

It is geo-indistinguishable: two cells are the harder to tell apart the nearer they are, by epsilon for each cell side
between them. That is weaker than local differential privacy with the same epsilon. The module
`matching` gives the epsilon at which an adversary errs as much as under another mechanism.
"""

import math
import operator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dpppsynth.core.arguments import positive, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.randomizers.exact_sampling import Choice, draws, groups, meeting
from dpppsynth.mechanisms.local.randomizers.randomizer import LEAST_SQUARES, CellRandomizer, known_settings
from dpppsynth.mechanisms.local.randomizers.subset_law import (
    MOST_SIDE,
    Shells,
    SubsetLaw,
    all_subsets,
    mean_distance,
    ratios,
    shells,
    subset_law,
)
from dpppsynth.models.channel_likelihood import Law, MatrixChannel, Multinomial, Subsets
from dpppsynth.spatial.simplex import norm_mul, possible

# Numbers of reports that are drawn at once, and of probabilities that a matrix may have.
BATCH, MOST_ENTRIES = 2**20, 5 * 10**7
# Cells of an empty report.
NONE = -1


def subset_size(epsilon: float, cells: int) -> int:
    """Size of reported subsets that suits epsilon per cell side: many cells where it is small, one where it is large.

    Examples
    --------
    >>> [subset_size(epsilon, 5) for epsilon in (0.1, 0.5, 1.0, 3.0)]
    [11, 6, 2, 1]
    """
    epsilon = float(positive("epsilon", epsilon))
    # Relative to e^(epsilon mean), which may be beyond the range of floats.
    near = math.exp(-min(epsilon * mean_distance(cells), 700.0))
    return max(1, math.ceil(cells**2 * near / (1 + near)))


@dataclass(frozen=True, kw_only=True, eq=False)
class SubsetExponential(CellRandomizer):
    """Reports of subsets of cells, with probability falling in the distance to the nearest cell of the subset.

    A subset S is reported with probability `e^(-epsilon dis(i, S)) / Omega` by a client in cell i, distances in cell
    sides between centres; what is left over is the probability of an empty report. Omega is the least number for which
    the empty report, too, is geo-indistinguishable. The integers are of any size instead of out of 2^62, since subsets
    are many; they run at a budget 2^-40 of it below `epsilon`, the room for their rounding (`SubsetLaw`).

    Attributes
    ----------
    epsilon : float
        Per cell side.
    cells : int
        Along each axis of the square grid, 1 to 64; the value of cell (i, j) is `i * cells + j`.
    subset : int
        Cells in a report; `subset_size` gives the usual number. A report is their numbers, ascending, or -1 throughout.

    References
    ----------
    Wang et al. (2017), Local private ordinal data distribution estimation, IEEE INFOCOM; compared under
    geo-indistinguishability in Numerical Estimation of Spatial Distributions under Differential Privacy.

    Examples
    --------
    >>> law = SubsetExponential(epsilon=1.0, cells=2, subset=1)
    >>> law.matrix().round(3).tolist()[0]
    [0.505, 0.186, 0.186, 0.123]
    """

    subset: int
    kind: ClassVar[str] = "subset-exponential"
    metric: ClassVar[bool] = True
    published: ClassVar[str] = LEAST_SQUARES

    def __post_init__(self) -> None:
        cells = whole("cells", self.cells, 1, most=MOST_SIDE)
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "subset", whole("subset", self.subset, 1, most=cells**2))
        super().__post_init__()

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of a report's cells."""
        return tuple(f"cell_{k}" for k in range(self.subset))

    @property
    def size(self) -> int:
        """Length of the counts: hits of each cell, then empty reports."""
        return self.inputs + 1

    @property
    def shells(self) -> Shells:
        """Cells by their distance from each cell."""
        return shells(self.cells)

    @cached_property
    def law(self) -> SubsetLaw:
        """Whole-number weights of all reports."""
        return subset_law(self.epsilon, self.shells, self.subset)

    @property
    def spent(self) -> float:
        return self.law.spent

    @cached_property
    def empty(self) -> Floats:
        """(m,) probabilities of the empty report given each cell."""
        found = ratios(self.law.empty, self.law.total)[self.shells.orbit]
        found.flags.writeable = False
        return found

    @cached_property
    def hits(self) -> Floats:
        """(m, m) probabilities that the report of a client in a cell (row) holds each cell (column)."""
        law, ways = self.law, [math.comb(n, self.subset - 1) for n in range(self.inputs)]
        table = []
        for row in self.shells.beyond.tolist():
            nearer, chances = 0, []
            for a, weight in enumerate(law.weights):
                # First subsets whose nearest cell is at this distance, then those with nearer ones.
                farther = ways[row[a] - 1] if row[a] else 0
                chances.append(nearer + farther * weight)
                nearer += (farther - (ways[row[a + 1] - 1] if row[a + 1] else 0)) * weight
            table.append(ratios(chances, law.total))
        found = np.array(table)[self.shells.orbit[:, None], self.shells.rank]
        found.flags.writeable = False
        return found

    def matrix(self) -> Floats:
        """(C(m, subset) + 1, m) probabilities: subsets in lexicographic order, then the empty report.

        Raises
        ------
        InputError
            There are too many subsets.
        """
        subsets = all_subsets(self.inputs, self.subset, MOST_ENTRIES // self.inputs)
        return np.vstack([ratios(self.law.weights, self.law.total)[self.shells.places(subsets)], self.empty])

    @cached_property
    def _choices(self) -> tuple[Choice, ...]:
        """Choices of a distance, or of the empty report, for a cell of each orbit."""
        masses = ([*map(operator.mul, row, self.law.weights)] for row in self.law.numbers)
        return tuple(Choice([*row, rest]) for row, rest in zip(masses, self.law.empty, strict=True))

    @property
    def _batch(self) -> int:
        return BATCH // self.subset + 1

    def _drawn(self, values: Ints, rng: np.random.Generator) -> Ints:
        """Reports: a distance, then how many cells at just that distance, then these and farther ones."""
        orbits, distance = self.shells.orbit[values], draws(rng, len(values))
        for orbit, clients in groups(orbits):
            distance[clients] = self._choices[orbit].pick(distance[clients], rng)
        reports = np.full((len(values), self.subset), NONE)
        full = np.flatnonzero(distance < len(self.law.weights))
        near, far = (self.shells.beyond[orbits[full], distance[full] + more] for more in (0, 1))
        positions = meeting(near - far, far, self.subset, rng) + (self.inputs - near)[:, None]
        reports[full] = np.sort(self.shells.order[values[full, None], positions], axis=1)
        return reports

    def count(self, reports: Ints) -> Ints:
        """(m + 1,) hits of each cell, and the number of empty reports."""
        rows = self._reports(reports)
        empty = int((rows[:, 0] == NONE).sum())
        return np.append(np.bincount(rows.ravel() + 1, minlength=self.inputs + 1)[1:], empty)

    def _reports(self, reports: Any) -> Ints:
        """(n, subset) reports; InputError for those that no client sends."""
        rows = self.rows(reports)
        empty = (rows == NONE).all(axis=1)
        ascending = (rows[:, 0] >= 0) & (rows[:, -1] < self.inputs) & (rows[:, 1:] > rows[:, :-1]).all(axis=1)
        if not (ascending | (empty & bool(self.law.log_empty))).all():
            msg = (
                f"reports: each must be {self.subset} different cells from 0 to {self.inputs - 1}, ascending"
                f"{', or -1 throughout' if self.law.log_empty else ''}; take them as clients send them."
            )
            raise InputError(msg)
        return rows

    def reported(self, counts: Ints) -> int:
        counts = self.tallies(counts)
        hits, empty = counts[:-1], int(counts[-1])
        full, rest = divmod(sum(hits.tolist()), self.subset)
        if rest or hits.max() > full or (empty and not self.law.log_empty):
            msg = f"counts: these are no hits of reports of {self.subset} cells each; take what `count` returns."
            raise InputError(msg)
        return full + empty

    def counts_law(self, n: int) -> Law:
        return Multinomial(float(n)) if self.subset == 1 else Subsets(float(n))

    @cached_property
    def channel(self) -> MatrixChannel:
        table = np.column_stack([self.hits, self.empty]).T
        return MatrixChannel((self.cells, self.cells), np.ascontiguousarray(table))

    def published_estimate(self, counts: Ints, n: int, *, inside: Any = None, **settings: Any) -> Floats:
        """(m,) estimated shares: least squares fit of the hits, without its negative part."""
        self.published_settings(**settings)
        kept = possible(inside, self.inputs)
        from scipy.linalg import lstsq

        hit = self.counts_of(counts, n)[:-1] / n
        shares = np.zeros(self.inputs)
        shares[kept] = lstsq(self.hits[kept].T, hit, lapack_driver="gelsy")[0]
        return norm_mul(shares, inside=kept)

    def published_settings(self, **given: Any) -> dict[str, Any]:
        return known_settings(given)

    def binomials(self, counts: Ints, value: int) -> tuple[Ints, Floats]:
        return counts, np.append(self.hits[value], self.empty[value])

    def log_ratio(self, reports: Ints, value: int, other: int) -> Floats:
        rows = self._reports(reports)
        cells = [whole(name, cell, 0, most=self.inputs - 1) for name, cell in (("value", value), ("other", other))]
        logs, empty = np.array(self.law.log_weights, dtype=float), rows[:, 0] == NONE
        found = np.empty((2, len(rows)))
        for each, cell in zip(found, cells, strict=True):
            each[~empty] = logs[self.shells.rank[cell][rows[~empty]].min(axis=1)]
            if empty.any():
                each[empty] = float(self.law.log_empty[self.shells.orbit[cell]])
        return found[0] - found[1]
