"""Audits of counts with bounded error: likelihood ratio of the changed counts, impossible outputs, the saved table.

Some counts are possible under one of two neighbouring inputs alone: their likelihood ratio is infinite, and they are
seen as often as the claim's delta allows, or more. Where the noise ends earlier than it is said to, its edge shows in
the counts themselves.
"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpppsynth.contract.audits.additive_audits import CountsAudit
from dpppsynth.contract.audits.neighbouring_pairs import Pair
from dpppsynth.contract.audits.noise_laws import StatedNoise, Truncated
from dpppsynth.contract.audits.statistic_audit import UNKNOWN
from dpppsynth.contract.audits.target import AuditStatistic, Scores, Weakened
from dpppsynth.mechanisms.bounded.statistic import BoundedCounts
from dpppsynth.privacy.profiles import Profile
from dpppsynth.privacy.truncated.geometric import TruncatedGeometric
from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP
from dpppsynth.release.certificate import COUNTS
from dpppsynth.spatial.mesh import Floats, Ints

SEED, COUNT = 20261128, 20_000


@dataclass(frozen=True, eq=False)
class BoundedCountsAudit(CountsAudit):
    """Counts of cells with discrete Laplace noise within a bound."""

    plan: BoundedCounts

    @property
    def law(self) -> StatedNoise:
        return Truncated(self.plan.scale, self.plan.max_error)

    @property
    def log_mode(self) -> float:
        return math.log(float(TruncatedGeometric(self.plan.scale, self.plan.max_error).pmf(0)))

    def statistics(self, pair: Pair) -> tuple[AuditStatistic, ...]:
        """Likelihood ratio of the changing counts, their edges, and sums of all."""
        first, second = self.exact(pair)
        cells = np.flatnonzero(first != second)
        changing = first[cells], second[cells]
        law = partial(bounded_ratio, *changing, self.plan.scale, self.plan.max_error)
        return (
            AuditStatistic("likelihood ratio", partial(changing_ratio, cells, law)),
            AuditStatistic("edges", partial(edges, cells, *changing), learned=True, alone=True),
            *self.sums(pair),
        )

    def weakened(self, pair: Pair) -> Weakened:
        change = self.change(pair)
        return partial(less_truncated, change[change != 0], self.plan.scale, self.plan.max_error)

    def spent(self, pair: Pair, claim: Profile) -> tuple[float, float]:
        if not isinstance(claim, TruncatedLaplaceDP):
            return UNKNOWN
        return self.epsilon(pair), sum(claim.shifts) / claim.scale

    def files(self, lattice: Ints, read: Callable[[str], bytes]) -> Iterator[tuple[str, bool]]:
        """The table of counts, with negative ones written as zero."""
        saved = [cell["properties"]["count"] for cell in json.loads(read(COUNTS))["features"]]
        yield "table of counts", bool(np.array_equal(saved, np.maximum(lattice, 0)))


def bounded_ratio(first: Ints, second: Ints, scale: float, bound: int, noised: Ints) -> Floats:
    """(...) log-likelihood ratios `sum((|o - T'| - |o - T|) / scale)` of two patterns, by their counts (k,), (k,).

    Of counts (..., k) with discrete Laplace noise of at most `bound`. Infinite where some count is too far from the
    truth of one pattern. Where it is so for both, the noise is not what it is said to be, and that of noise without a
    bound takes its place.

    Examples
    --------
    >>> bounded_ratio(np.array([1, 0]), np.array([0, 1]), 2.0, 5, np.array([[1, 0], [6, 0], [0, 6]])).tolist()
    [1.0, inf, -inf]
    """
    away, back = np.abs(noised - second), np.abs(noised - first)
    only_first, only_second = (away > bound).any(axis=-1), (back > bound).any(axis=-1)
    certain = np.where(only_first, np.inf, -np.inf)
    ratio = (away - back).sum(axis=-1) / scale
    return np.asarray(np.where(only_first != only_second, certain, ratio), dtype=np.float64)


def changing_ratio(cells: Ints, law: Callable[[Ints], Floats], released: Any) -> float:
    """Likelihood ratio, a `bounded_ratio`, of the released counts of the cells (k,) whose counts differ."""
    return float(law(released.lattice[cells]))


def edges(cells: Ints, first: Ints, second: Ints, released: Any) -> Ints:
    """(2,) largest and smallest excess of the changing counts over the second pattern's, towards the first's.

    Wherever the noise ends, the largest is beyond what the second pattern can give if any count is, and the smallest
    beyond what the first can. Zeros where no count changes.
    """
    excess = np.sign(first - second) * (released.lattice[cells] - second)
    return np.array([excess.max(), excess.min()] if len(excess) else [0, 0])


def less_truncated(change: Ints, scale: float, bound: int, factor: float) -> Scores:
    """Scores (N,), (N,) of the likelihood ratio for changes (k,) of counts, with bounded noise of too small a scale.

    The scale is the stated one, which the factor divides. The second input's are the first's with the sign changed.
    """
    noise = truncated_draws(scale / factor, bound, (COUNT, len(change)))
    scores = bounded_ratio(change, 0 * change, scale, bound, noise + change)
    return scores, -scores


def truncated_draws(scale: float, bound: int, shape: tuple[int, ...]) -> Ints:
    """Discrete Laplace noise of at most `bound`, by its distribution function and from a fixed seed: for ratings.

    Examples
    --------
    >>> noise = truncated_draws(2.0, 5, (1000,))
    >>> int(abs(noise).max()), noise.shape
    (5, (1000,))
    """
    rng, inside = np.random.default_rng(SEED), -np.expm1(-bound / scale)
    # With weight 1 of zero, e^(-k / scale) of both k and -k: `side` is what all positive numbers weigh.
    side = max(np.exp(-1 / scale) * inside / -np.expm1(-1 / scale), 1e-300)
    beyond_zero = np.maximum(rng.random(shape) * (1 + 2 * side) - 1, 0.0) / (2 * side)
    size = np.ceil(-scale * np.log1p(-np.minimum(beyond_zero, 1.0) * inside))
    return np.asarray(rng.choice([-1, 1], shape) * np.clip(size, 0, bound), dtype=np.int64)
