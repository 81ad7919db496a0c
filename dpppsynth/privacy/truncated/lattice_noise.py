"""Exact sampling of planar Laplace noise rounded to a lattice, by lazily refined interval arithmetic.

The noise is a function of uniform real numbers, of which a generator gives the first 62 bits. Floating point arithmetic
with a bound on its error decides nearly every lattice point; where the bound leaves two of them, or leaves open whether
an offset is too long, more bits of the same numbers are drawn and interval arithmetic decides. What is returned thus
has exactly the law of a rounded point of the continuous mechanism, whose guarantee it keeps as post-processing.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.privacy.truncated.truncated_planar import bounded, points_in_plane, scaled
from dpppsynth.spatial.mesh import Floats, Ints

# Bits of one word, and of the uniforms that floating point arithmetic sees.
BITS = 62
# Words below this leave the logarithm too uncertain: about one in 2^42 is.
LEAST_WORD = 2**20
# Relative error granted to each chain of floating point operations: 512 units in the last place, where `log`, `sin` and
# `cos` of numpy promise 4 and the others 1. Being generous costs time, in rare rows, and nothing else.
SLACK = 2.0**-44
# Guard bits of interval arithmetic beyond the bits drawn; together they hold the arguments without error.
GUARD = 192
# Up to here points have lattice indices off by less than 1/2 in floating point, and offsets are far from overflow.
FARTHEST, FINEST = 2.0**50, 2.0**45
# Below this product of epsilon and bound most Gamma variables are too long; lengths are drawn in the disk instead.
SHORT = math.sqrt(2)
BATCH = 2**18
# Result of intervals that need more bits.
OPEN = "open"


@dataclass(frozen=True)
class LatticeNoise:
    """Law of offsets in lattice units, as a function of three uniforms: a length and a direction.

    Offsets are proposed from two uniforms and taken or redrawn. Far bounds: the length is a Gamma variable
    `-log(u1 u2) / epsilon`, taken when within the bound. Near bounds: it is `bound sqrt(u1)`, that of a uniform point
    of the disk, taken when `u2 < exp(-epsilon length)`. Both give density proportional to `r exp(-epsilon r)`.
    """

    epsilon: float
    bound: float
    step: float

    @property
    def reach(self) -> float:
        """The bound in lengths of `1 / epsilon`."""
        return self.epsilon * self.bound

    @property
    def near(self) -> bool:
        """Whether lengths are proposed in the disk; a choice between two equal laws, so its rounding is harmless."""
        return self.reach < SHORT

    def lengths(self, words: Ints) -> tuple[Floats, Floats, Floats]:
        """Proposals from words (3, m): lengths in steps, bounds on their errors, and margins of acceptance.

        A margin is above 0 where the offset is taken, below 0 where it is redrawn, and 0 where floating point
        arithmetic cannot tell.
        """
        logs = np.log((words[:2] + 0.5) * 2.0**-BITS)
        missing = np.where(words[:2] < LEAST_WORD, np.inf, 1 / np.maximum(words[:2], 1))
        if self.near:
            root = np.sqrt((words[0] + 0.5) * 2.0**-BITS)
            length = root * (self.bound / self.step)
            error = length * (missing[0] + SLACK)
            margin = -logs[1] - self.reach * root
            doubt = missing[1] + self.reach * missing[0] + SLACK * (1 - logs[1] + self.reach)
        else:
            total = -(logs[0] + logs[1])
            length = total / (self.epsilon * self.step)
            uncertain = missing[0] + missing[1] + SLACK * (1 + total)
            error = (uncertain + SLACK * total) / (self.epsilon * self.step)
            margin = self.reach - total if self.bound < math.inf else np.full(len(total), np.inf)
            doubt = uncertain + (SLACK * self.reach if self.bound < math.inf else 0.0)
        return length, error, np.where(np.abs(margin) > doubt, margin, 0.0)

    def cells(self, points: Floats, words: Ints) -> tuple[Ints, np.ndarray, np.ndarray]:
        """Lattice points (m, 2) of points moved by words (3, m), which offsets are taken, and which rows are in doubt.

        Lattice points of rows in doubt mean nothing.
        """
        length, error, margin = self.lengths(words)
        turn = 2 * np.pi * ((words[2] + 0.5) * 2.0**-BITS)
        offsets = length[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
        # A remainder has no rounding error, nor has the whole number of steps once rounded: only its fraction has one.
        remainder = np.fmod(points, self.step)
        whole = np.rint((points - remainder) / self.step)
        place = remainder / self.step + offsets + 0.5
        index = np.floor(place)
        inside = np.minimum(place - index, index + 1 - place) > (error + SLACK * (1 + length))[:, None]
        doubt = (margin == 0) | ((margin > 0) & ~inside.all(axis=1))
        index[doubt] = 0
        return whole.astype(np.int64) + index.astype(np.int64), margin > 0, doubt


def move(points: Any, *, epsilon: float, bound: float, step: float, rng: RngLike = None) -> Ints:
    """Lattice points next to points moved by planar Laplace noise of at most a given length.

    A point x becomes `round((x + v) / step)` in each coordinate, halves up, with v real: its length has density
    proportional to `r exp(-epsilon r)` up to the bound and its direction is uniform. No low-order bit tells more than
    the law of v does. `PlanarLaplace(epsilon, bound)` knows what that law guarantees.

    Parameters
    ----------
    points : (n, 2) array
        Coordinates, at most 2^50 steps from the origin.
    epsilon : float
        Budget per unit of length.
    bound : float
        Largest length of an offset; infinite for plain planar Laplace noise.
    step : float
        Of the lattice, which has a point at the origin.
    rng : None, int or Generator
        None: secret noise. Anything else makes the moves reproducible and therefore not private.

    Returns
    -------
    (n, 2) array of int64
        Times `step` they are at most `bound + step / sqrt(2)` from the points.

    Raises
    ------
    InputError
        An argument breaks its rule, the points are too far away for the step, or the step is too fine for the noise.

    Examples
    --------
    >>> move([[12.0, 40.0], [12.0, 40.0]], epsilon=0.5, bound=20.0, step=0.25, rng=2).shape
    (2, 2)
    """
    points = points_in_plane("points", points)
    law = LatticeNoise(scaled("epsilon", epsilon), bounded("bound", bound), scaled("step", step))
    if min(law.bound, 1 / law.epsilon) > FINEST * law.step:
        msg = f"step: must be at least 2^-45 of the bound or of 1 / epsilon, got {law.step!r}; choose a coarser one."
        raise InputError(msg)
    if (np.abs(points) > FARTHEST * law.step).any():
        msg = "points: must lie within 2^50 steps of the origin; choose a coarser step or a nearer origin."
        raise InputError(msg)
    rng = generator(rng)
    moved = np.empty(points.shape, dtype=np.int64)
    for start in range(0, len(points), BATCH):
        part = slice(start, start + BATCH)
        moved[part] = _moved(law, points[part], rng)
    return moved


def _moved(law: LatticeNoise, points: Floats, rng: np.random.Generator) -> Ints:
    """Lattice points (m, 2); offsets that are too long are redrawn, whatever the point."""
    moved = np.empty(points.shape, dtype=np.int64)
    waiting = np.arange(len(points))
    while len(waiting):
        words = _words(rng, len(waiting))
        index, taken, doubt = law.cells(points[waiting], words)
        for row in np.flatnonzero(doubt):
            cell = _decided(law, points[waiting[row]], [int(word) for word in words[:, row]], rng)
            taken[row] = cell is not None
            index[row] = (0, 0) if cell is None else cell
        moved[waiting[taken]] = index[taken]
        waiting = waiting[~taken]
    return moved


def _words(rng: np.random.Generator, m: int) -> Ints:
    """(3, m) first bits of uniforms."""
    return rng.integers(0, 2**BITS, size=(3, m), dtype=np.int64)


def _decided(law: LatticeNoise, point: Floats, words: list[int], rng: np.random.Generator) -> tuple[int, int] | None:
    """The lattice point of a point moved by uniforms that start with these words; None when the offset is redrawn."""
    bits = BITS
    while True:
        found = _interval_cell(law, point, words, bits)
        if not isinstance(found, str):
            return found
        # Twice as many bits of the same uniforms.
        for _ in range(bits // BITS):
            words = [word << BITS | int(more) for word, more in zip(words, _words(rng, 1)[:, 0], strict=True)]
        bits *= 2


def _interval_cell(law: LatticeNoise, point: Floats, words: list[int], bits: int) -> tuple[int, int] | str | None:
    """Result of `_decided` by interval arithmetic; "open" where more bits are needed."""
    from mpmath.ctx_iv import MPIntervalContext

    if min(words[:2]) < 2:
        return OPEN
    # A context of its own: the precision of mpmath's is shared by all threads.
    context = MPIntervalContext()
    context.prec = bits + GUARD
    # One unit more on either side covers an error in the last place of a function.
    first, second, turn = (context.mpf([word - 1, word + 2]) / context.mpf(2) ** bits for word in words)
    epsilon, step = context.mpf(law.epsilon), context.mpf(law.step)
    length = context.sqrt(first) * context.mpf(law.bound) if law.near else -context.log(first * second) / epsilon
    angle = 2 * context.pi * turn
    try:
        taken = -context.log(second) > epsilon * length if law.near else length < context.mpf(law.bound)
    except ValueError:
        return OPEN
    # Depending on its version mpmath says so in one way or the other that intervals overlap.
    if taken is None:
        return OPEN
    if not taken:
        return None
    offsets = (length * context.cos(angle), length * context.sin(angle))
    return _common((context.mpf(float(x)) + v) / step + context.mpf(0.5) for x, v in zip(point, offsets, strict=True))


def _common(places: Iterable[Any]) -> tuple[int, int] | str:
    """The whole numbers below two intervals, unless one holds another whole number."""
    from mpmath.libmp import to_int

    ends = [[int(to_int(end, "f")) for end in place._mpi_] for place in places]
    return OPEN if any(low != high for low, high in ends) else (ends[0][0], ends[1][0])
