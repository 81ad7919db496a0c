"""Connect-the-dots privacy loss distribution of a Poisson number of draws from a row of a stochastic matrix.

Moving a point replaces row i of the matrix by row j for all of its children. The curve `H(g) = sum (P - g Q)_+` of one
child, maximised over all pairs of rows that a move can bring about, belongs to a pair of laws that dominates them all,
and the law of the summed losses of a Poisson number of children follows by Fourier transform
(docs/theory/diffusion.md, section 3). Every approximation is towards less privacy: losses between two points of the
lattice are split between both such that P and Q keep their masses, what exceeds the lattice counts as infinite, what
wraps around is counted twice, and rounding is paid for.

Why not dp-accounting's `create_pmf_pessimistic_connect_dots`: it takes a curve as exact and pays for no rounding, its
own included. On a street of 120 segments, with a kernel of 30, its law lay below the curve at 133 of 143 losses, by up
to 5e-16 of the curve; a matrix is known to a share that is larger still. A curve lifted by that share may exceed one,
which it refuses. And it has no sums of a Poisson number of losses: `composed` has it add up fixed numbers of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar, NamedTuple

import numpy as np

from dpppsynth.core.arguments import probability
from dpppsynth.core.errors import InputError
from dpppsynth.core.tiled_matrix import TiledMatrix
from dpppsynth.core.types import Floats, Ints
from dpppsynth.privacy.profiles import Profile
from dpppsynth.spatial.domains import as_reals

# Lattice points per standard deviation of one child's loss: splitting adds a 2400th to its variance, at most a 1600th.
FINENESS = 20
# Largest step: between the points of a lattice delta is bounded by a chord.
COARSEST = 0.05
# Probability that the ends of a lattice may cut off, and most points of a lattice on one side of zero.
CUT, MOST_HALF, MOST_POINTS = 1e-13, 2**11, 2**22
# Losses above this count as infinite: the exponential of a larger one is no number.
LARGEST_LOSS = 700.0
# Rounding errors of losses, of masses and of sums over a lattice are below this.
ROUNDING = 1e-10
# Substitute for the logarithm of zero, far below those of other probabilities.
NOTHING = -2000.0
# Numbers held in memory at a time, and pairs of rows that set the scale of a lattice.
BLOCK, SAMPLE = 2**16, 200
# Deltas below this drown in the rounding of the Fourier transform; steps of the table per factor of ten.
LEAST_DELTA, PER_DECADE = 1e-9, 10
# Rounding of epsilons in the table, upwards, so that all machines find the same.
DIGITS = 6
ROWS = "rows: need pairs of a finite epsilon and a delta."


class LossLattice(NamedTuple):
    """Losses `step * s`, s from `-half` to `half`."""

    step: float
    half: int

    @property
    def top(self) -> float:
        return self.step * self.half

    @property
    def losses(self) -> Floats:
        return np.asarray(self.step * np.arange(-self.half, self.half + 1), dtype=np.float64)


class LossLaw(NamedTuple):
    """One child's loss: masses (2 half + 1,) on a lattice, and that of an infinite loss.

    They may sum to a little more than one, where rounding is paid for.
    """

    lattice: LossLattice
    mass: Floats
    infinite: float

    def curve(self) -> Floats:
        """(2 half + 1,) hockey-stick divergences `sum mass (1 - e^(epsilon - loss))_+` at the lattice's losses."""
        return _divergences(self.mass[None], np.array([self.infinite]), self.lattice.step)[0]


def suitable_lattice(matrix: TiledMatrix, pairs: Ints, error: float, fineness: float = FINENESS) -> LossLattice:
    """Lattice for one child's losses under pairs of rows (m, 2), of which there is one at least.

    It bears on the precision of bounds, not on their truth, so a sample of the pairs will do. Its step is well above
    the relative error of the matrix.
    """
    # From alike to unlike, with the last one: in whatever order pairs come, the same are picked.
    alike = np.empty(len(pairs))
    for numbers, block, local in matrix.blocks(pairs):
        for part in np.array_split(np.arange(len(local)), max(1, local.size * block.shape[1] // (2 * BLOCK))):
            rows, others = local[part].T
            alike[numbers[part]] = np.einsum("ij,ij->i", block[rows], block[others])
    some = pairs[np.argsort(-alike, kind="stable")[:: -max(1, len(pairs) // SAMPLE)]]
    first, second = matrix.rows(some[:, 0]), matrix.rows(some[:, 1])
    loss = _log_ratio(first, second)
    spread = np.minimum(np.abs(loss), 10.0)
    # The overlap counts: masses that one row alone has are infinite losses, whatever the lattice.
    sd = math.sqrt(float(np.max(np.sum(np.minimum(first, second) * spread**2, axis=1))))
    top, finite = 0.0, np.where(np.isfinite(loss), np.abs(loss), 0.0)
    high = min(float(finite.max(initial=0.0)), LARGEST_LOSS) or 1.0
    for _ in range(16):
        middle = (top + high) / 2
        worst = max(_beyond(first, second, middle), _beyond(second, first, middle))
        top, high = (middle, high) if worst > CUT else (top, middle)
    step = max(min(sd / fineness, COARSEST), high / MOST_HALF, 100 * (error + ROUNDING))
    return _lattice(step, math.ceil(high / step) + 1)


def worst_curves(
    matrix: TiledMatrix, groups: Sequence[Ints], error: float, fineness: float = FINENESS
) -> tuple[LossLattice, list[Floats]]:
    """Largest hockey-stick divergences of one child over the first group of pairs of rows, the first two, and so on.

    The matrix (T, T) has laws as its rows; the rows of a pair (m, 2) are exchanged by a move, both ways. Divergences
    (2 half + 1,) are at the losses of a lattice wide enough for all but a negligible part of the finite ones.
    """
    lattice, last = suitable_lattice(matrix, np.concatenate(groups), error, fineness), math.inf
    while True:
        curves = list(accumulate((_worst_curve(matrix, pairs, lattice) for pairs in groups), np.maximum))
        end = float(curves[-1][-1])
        # A limit that no longer falls is the mass of infinite losses.
        wider = _lattice(lattice.step, 2 * lattice.half)
        if end <= CUT or end > last / 2 or wider == lattice:
            return lattice, curves
        lattice, last = wider, end


def dominating_law(curve: Floats, lattice: LossLattice, error: float) -> LossLaw:
    """Loss of one child that dominates a curve of `worst_curves`, and all whose matrix differs by a share `error`.

    A convex decreasing curve that is linear between the points of the lattice belongs to a law on the lattice; it is
    found from second differences. Where these lose digits the law is lifted until its own curve covers the given one.
    InputError where the error is too large for the lattice.
    """
    share = error + ROUNDING
    ratio, step = (1 - share) / (1 + share), lattice.step
    if not (0 < ratio < 1 and -math.log(ratio) < step):
        msg = (
            f"matrix: a relative error of {error:g} is too large for its privacy losses; take a narrower bandwidth, or "
            "take short edges out with network.collapse_short(tolerance)."
        )
        raise InputError(msg)
    # H of ((1 + share) P, (1 - share) Q), from the chord between two points of the lattice, the first one's ending at
    # 0.
    before = np.append(curve[0] - math.expm1(-step) * (1 - curve[0]), curve[:-1])
    lifted = (1 + share) * (curve + (1 - ratio) / -math.expm1(-step) * (before - curve))
    slope = np.append(lifted[:-1] - lifted[1:], 0.0) / math.expm1(step)
    mass = np.empty_like(lifted)
    mass[1:] = np.maximum(math.exp(step) * slope[:-1] - slope[1:], 0)
    mass[0] = max(0.0, 1 + share - lifted[-1] - mass[1:].sum())
    law = LossLaw(lattice, mass * (1 + ROUNDING), float(lifted[-1]))
    lack = float(np.max(lifted * (1 + ROUNDING / 2) - law.curve()))
    return law._replace(infinite=law.infinite + max(0.0, lack))


def poisson_deltas(law: LossLaw, rate: float) -> tuple[Floats, Floats]:
    """Smallest deltas (m,) at epsilons (m,) from 0 on, for the sum of a Poisson(rate) number of losses.

    The transform of the sum's law is `exp(rate (phi - 1))`, phi that of one loss. On a circle of lattice points the
    tails, bounded by Chernoff's inequality, wrap around to where they are counted a second time; the upper one is
    added as well. Rounding of the transforms is at most about 1e-12 (docs/theory/diffusion.md, section 3).
    """
    step, half = law.lattice
    low, high = (_chernoff(law, rate, sign) for sign in (-1.0, 1.0))
    points = 2 ** math.ceil(math.log2(low + high + 2))
    circle = np.zeros(points)
    np.add.at(circle, np.arange(-half, half + 1) % points, law.mass)
    summed = np.fft.irfft(np.exp(rate * (np.fft.rfft(circle) - 1)), points)
    upper = np.maximum(summed[: points - low], 0)[None]
    total = float(law.mass.sum())
    infinite = -math.expm1(-rate * law.infinite) * math.exp(rate * (total + law.infinite - 1))
    noise = 8 * math.log2(points) * (1 + rate) * math.sqrt(points) * 2.0**-53
    deltas = _divergences(upper, np.array([infinite + CUT + noise]), step)[0] * (1 + 4 * points * 2.0**-53)
    return np.arange(len(deltas), dtype=np.float64) * step, np.asarray(np.minimum(deltas, 1.0))


@dataclass(frozen=True)
class DiscreteLosses(Profile):
    """A profile known at some epsilons: rows (epsilon, delta), the first at epsilon 0.

    Between rows the chord in `e^epsilon` is taken: delta, a supremum of functions that are linear in it, is convex.
    """

    rows: tuple[tuple[float, float], ...]
    at: float
    kind: ClassVar[str] = "discrete-losses"

    def __post_init__(self) -> None:
        probability("delta", self.at)
        table = as_reals(self.rows, ROWS)
        if table.ndim != 2 or table.shape[1] != 2 or not len(table) or not np.isfinite(table).all():
            raise InputError(ROWS)
        object.__setattr__(self, "rows", tuple((float(epsilon), float(delta)) for epsilon, delta in table))
        falls = (np.diff(table[:, 0]) > 0).all() and (np.diff(table[:, 1]) < 0).all()
        if table[0, 0] != 0 or not falls or not (table[-1, 1] > 0 and table[0, 1] <= 1):
            msg = "rows: epsilons must rise from 0, deltas fall and lie between 0 and 1; some do not."
            raise InputError(msg)

    @classmethod
    def tabulate(cls, epsilons: Floats, deltas: Floats, at: float) -> "DiscreteLosses":
        """Table, rounded upwards, at round deltas from a fine one; delta `at` is among them.

        Raises
        ------
        InputError
            When delta `at` is below 1e-9, where the fine table ends.
        """
        probability("delta", at)
        if at < LEAST_DELTA:
            msg = f"delta: the heat kernel's is known down to {LEAST_DELTA:g}, got {at:g}; 1e-6 is a common choice."
            raise InputError(msg)
        falling = np.minimum.accumulate(deltas)
        least, most = LEAST_DELTA, float(falling[0])
        decades = -math.log10(least)
        ladder = {10 ** (-j / PER_DECADE) for j in range(round(decades * PER_DECADE) + 1)} | {at}
        rows = [(0.0, _up(most))]
        for delta in sorted(ladder, reverse=True):
            row = _up(_crossing(epsilons, falling, delta)), delta
            if math.isfinite(row[0]) and row[0] > rows[-1][0] and delta < rows[-1][1]:
                rows.append(row)
        return cls(tuple(rows), at)

    @classmethod
    def worst(cls, profiles: Sequence["DiscreteLosses"]) -> "DiscreteLosses":
        """Table of the largest deltas; a chord between two rows lies above the largest of convex curves."""
        rows: list[tuple[float, float]] = []
        for epsilon in sorted({epsilon for each in profiles for epsilon, _ in each.rows}):
            delta = max(each.delta(epsilon) for each in profiles)
            if not rows or delta < rows[-1][1]:
                rows.append((epsilon, delta))
        return cls(tuple(rows), profiles[0].at)

    def no_better_than(self, other: "DiscreteLosses", tolerance: float) -> bool:
        """Whether its epsilons are nowhere lower than another profile's, within a share `tolerance`.

        At epsilon 0 the share is one of delta.
        """
        # Chords between own rows lie above the other's, which are convex.
        return self.rows[0][1] >= (1 - tolerance) * other.rows[0][1] and all(
            epsilon >= (1 - tolerance) * other.epsilon(delta) for epsilon, delta in self.rows[1:]
        )

    def delta(self, epsilon: float) -> float:
        """Chord between the rows around epsilon; the last delta beyond them."""
        epsilons, deltas = np.array(self.rows).T
        k = int(np.searchsorted(epsilons, epsilon, side="right"))
        if k == len(epsilons):
            return float(deltas[-1])
        # Shares of the interval in e^epsilon, without its overflow.
        share = -math.expm1(epsilon - epsilons[k]) / -math.expm1(epsilons[k - 1] - epsilons[k])
        return float(deltas[k] + min(1.0, share) * (deltas[k - 1] - deltas[k]))

    def epsilon(self, delta: float) -> float:
        """Inverse of `delta`; infinite below the last row."""
        epsilons, deltas = np.array(self.rows).T
        return _crossing(epsilons, deltas, delta)

    def describe(self) -> str:
        table = "; the certificate's table states"
        return self.quoted(f"{table} it at other probabilities", f"{table} others")


def poisson_losses(curve: Floats, lattice: LossLattice, *, error: float, rate: float, delta: float) -> DiscreteLosses:
    """Profile, quoted at `delta`, of a Poisson(rate) number of children, each under the curve of `worst_curves`."""
    return DiscreteLosses.tabulate(*poisson_deltas(dominating_law(curve, lattice, error), rate), delta)


def _lattice(step: float, half: int) -> LossLattice:
    """Lattice with its top no higher than `LARGEST_LOSS`."""
    return LossLattice(step, max(1, min(half, math.floor(LARGEST_LOSS / step))))


def _worst_curve(matrix: TiledMatrix, pairs: Ints, lattice: LossLattice) -> Floats:
    out = np.zeros(2 * lattice.half + 1)
    for _, block, local in matrix.blocks(pairs):
        logs = np.log(block, out=np.full(block.shape, NOTHING), where=block > 0)
        parts = max(1, len(local) * max(block.shape[1], len(out)) // BLOCK)
        for part in np.array_split(local, parts):
            out = np.maximum(out, _both_ways(block, logs, part, lattice))
    return out


def _both_ways(block: Floats, logs: Floats, pairs: Ints, lattice: LossLattice) -> Floats:
    """Largest divergences of rows `pairs[:, 0]` from rows `pairs[:, 1]`, and the other way around.

    An atom (p, q) is split between the losses below and above its own, or the highest one and infinity, so that the two
    have its masses under P and under Q together: they dominate it, and the curves at the lattice's losses stay the
    same.
    """
    step, half = lattice
    width, size = 2 * half + 1, (2 * half + 1) * len(pairs)
    p, q = block[pairs[:, 0]], block[pairs[:, 1]]
    loss = logs[pairs[:, 0]] - logs[pairs[:, 1]]
    below = np.clip(np.floor(loss / step) + half, 0, width - 2).astype(np.int64)
    odds = np.exp(lattice.losses)
    most = q * odds[below + 1]
    right = np.clip((p - q * odds[below]) / -math.expm1(-step), 0, most)
    left = np.clip((most - p) / math.expm1(step), 0, p)
    only_p = np.where(loss > lattice.top, p - right, 0).sum(axis=1)
    only_q = np.where(loss < -lattice.top, q - p * odds[-1], 0).sum(axis=1)
    where = (below + width * np.arange(len(pairs))[:, None]).ravel()
    mass = np.bincount(where, left.ravel(), size) + np.bincount(where + 1, right.ravel(), size)
    ahead = np.asarray(mass.reshape(-1, width), dtype=np.float64)
    back = (ahead / odds)[:, ::-1]
    return np.maximum(_divergences(ahead, only_p, step).max(axis=0), _divergences(back, only_q, step).max(axis=0))


def _divergences(mass: Floats, infinite: Floats, step: float) -> Floats:
    """(m, n) divergences at the points of lattices with masses (m, n) and infinite losses (m,), no term negative.

    With `B_i = sum over s > i of mass_s e^(step (i - s))`, `H_i = H_(i+1) + (e^step - 1) B_i`.
    """
    # Imported late: it takes longer than all else here, and only heat flow needs it.
    from scipy.signal import lfilter

    shrink = math.exp(-step)
    beyond = lfilter([0.0, shrink * math.expm1(step)], [1.0, -shrink], mass[:, ::-1], axis=1)
    beyond[:, 0] += infinite
    return np.asarray(np.cumsum(beyond, axis=1, out=beyond)[:, ::-1])


def _chernoff(law: LossLaw, rate: float, sign: float) -> int:
    """Number of steps in one direction beyond which the sum lies with probability below `CUT`."""
    scale = law.lattice.top + law.lattice.step
    tilt = np.geomspace(1e-3, 1e4, 200) / scale
    with np.errstate(over="ignore", invalid="ignore"):
        log_moment = rate * (np.exp(sign * np.outer(tilt, law.lattice.losses)) @ law.mass - 1)
        reach = np.nanmin((log_moment - math.log(CUT)) / tilt)
    points = math.ceil(max(reach, scale) / law.lattice.step) + law.lattice.half
    if points > MOST_POINTS:
        msg = "patterns: the losses of so many children have no room; plan fewer patterns or widen the kernel."
        raise InputError(msg)
    return points


def _log_ratio(first: Floats, second: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.log(first) - np.log(second)
    return np.nan_to_num(loss, nan=0.0, posinf=np.inf, neginf=-np.inf)


def _beyond(first: Floats, second: Floats, loss: float) -> float:
    """Largest finite-loss part of the divergences at a loss."""
    excess = np.where(second > 0, first - math.exp(min(loss, LARGEST_LOSS)) * second, 0.0)
    return float(np.maximum(excess, 0).sum(axis=1).max(initial=0.0))


def _crossing(epsilons: Floats, deltas: Floats, delta: float) -> float:
    """Epsilon at which deltas that fall pass below one, by the chord in `e^epsilon`; infinite where they do not."""
    k = int(np.searchsorted(-deltas, -delta, side="left"))
    if k == 0 or k == len(deltas):
        return 0.0 if k == 0 else math.inf
    share = (delta - deltas[k]) / (deltas[k - 1] - deltas[k])
    return float(epsilons[k] + math.log1p(share * math.expm1(epsilons[k - 1] - epsilons[k])))


def _up(value: float) -> float:
    """Rounded up to `DIGITS` significant digits."""
    if not 0 < value < math.inf:
        return value
    scale = 10.0 ** (DIGITS - 1 - math.floor(math.log10(value)))
    return math.ceil(value * scale) / scale
