"""Heat maps in the shuffle model of differential privacy: distributed noise, simulated.

**A simulation for studies, not a releasable mechanism.** It shows what the protocol costs and how precise it is. What
it promises rests on assumptions of the paper that this package cannot check: messages are shuffled by someone honest,
all persons take part to the end (whoever drops out takes a share of the noise along), and the number of messages is
computed with `ln n` as printed, where related analyses have `ln n - 1`. The clients' noise is drawn in floating point,
from a negative binomial law and not by an exact sampler.

Corrections to the printed protocol:

* Noise. A person's floored sums on one level add up to at most B, so Polya variables (generating function
  `((1 - a) / (1 - a z)) ** (1 / n)`) with `a = exp(-epsilon_i / B)` are needed, and the difference of two: n of these
  are discrete Laplace of scale `B / epsilon_i`. Printed is `exp(-epsilon_i)`, B times too little, and one variable.
* Last share. It is what the **noised** sum lacks; as printed the noise is never sent.
* Modulus. `Q = B n + 2 M + 1`, decoded into `[-M, Q - M)`, `M = ceil(B log(2 m / beta) / epsilon_min)`: by the tail
  `2 a ** M` noise wraps around in one of m coordinates with probability at most beta. With `Q = B n` a cell with
  everybody decodes to 0.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import each, one_of, plain_array, positive, probability, real_array, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.mechanisms.heatmap.bound import DEEPEST, PUBLISHED, LevelBudgets, level_budgets
from dpppsynth.mechanisms.heatmap.tree import pyramid
from dpppsynth.privacy.bounds import laplace_scale
from dpppsynth.privacy.noise import laplace_noise
from dpppsynth.spatial.mesh import Floats, Ints

# Probability that noise in any cell wraps around the modulus.
WRAP = 1e-9
LARGEST_SCALE = 2**30
# As for other distributions of persons, rounding of the sum of masses is forgiven.
FORGIVEN = 1e-9
# Sums of shares are 64-bit integers.
LARGEST_SUM = 2**62
NEIGHBOURS = ("absent", "replaced")


def split_cells(width: int, height: int, first: int = 0) -> int:
    """Coordinates of a pyramid over `width x height` pixels that is halved as long as that is possible.

    Level i has `min(2**i, width) * min(2**i, height)` cells, up to the first level with one cell for each pixel.

    Examples
    --------
    >>> split_cells(320, 240)
    160085
    """
    width, height, levels = _image(width, height, first)
    return sum(min(2**i, width) * min(2**i, height) for i in levels)


def cropped_cells(width: int, height: int, first: int = 0) -> int:
    """Coordinates of a square pyramid over `width x height` pixels, less the cells that lie outside the image.

    Examples
    --------
    >>> cropped_cells(320, 240)
    102409
    """
    width, height, levels = _image(width, height, first)
    sides = [2 ** (levels[-1] - i) for i in levels]
    return sum(-(-width // side) * -(-height // side) for side in sides)


def message_count(epsilon: float, delta: float, *, users: int, coordinates: int, modulus: int) -> int:
    """Messages that each person sends for each coordinate, so that sums of shares hide the parts within `delta`.

    `ceil((2 ln(e^epsilon + 1) + 2 ln(coordinates / delta) + ln modulus) / ln users + 1)`.
    """
    rule = "be a positive number of at most 2**62, for numbers of messages that fit into 64 bits"
    epsilon, delta = positive("epsilon", epsilon, rule=rule, most=LARGEST_SUM), probability("delta", delta)
    users, coordinates, modulus = (
        whole("users", users, 2),
        whole("coordinates", coordinates, 1),
        whole("modulus", modulus, 2),
    )
    # log(e^epsilon + 1) without the overflow.
    needed = (
        2 * (epsilon + math.log1p(math.exp(-epsilon)))
        + 2 * (math.log(coordinates) - math.log(delta))
        + math.log(modulus)
    )
    return math.ceil(needed / math.log(users) + 1)


def communication_bits(epsilon: float, delta: float, *, users: int, coordinates: int, modulus: int) -> int:
    """Bits that each person sends: a coordinate and a share in every message, whatever the data.

    Parameters
    ----------
    epsilon, delta : float
    users : int
        Number of persons.
    coordinates : int
        Cells of all measured levels, as `split_cells` counts them.
    modulus : int
        The paper takes `B * users`; `ShuffleProtocol.modulus` leaves room for the noise.

    Examples
    --------
    An image of 320 x 240 pixels and 50 persons, in MiB:

    >>> bits = communication_bits(5.0, 1e-5, users=50, coordinates=split_cells(320, 240), modulus=256 * 50)
    >>> round(bits / 8 / 2**20, 2)
    10.65
    """
    messages = message_count(epsilon, delta, users=users, coordinates=coordinates, modulus=modulus)
    return messages * coordinates * (coordinates * modulus - 1).bit_length()


@dataclass(frozen=True)
class ShuffleProtocol:
    """Clients' and analyser's side of sparse aggregation in the shuffle model, corrected; **for studies only**.

    Every person scales and floors the cell sums, adds one n-th of a discrete Laplace variable to each (the difference
    of two Polya variables), splits the noisy sums into random shares, and sends the shares one by one through a
    shuffler. The analyser adds up the shares of each cell.

    Parameters
    ----------
    epsilon, delta : float
        Under the assumptions named at the top of this module.
    users : int
        Public number of persons, at least 2.
    depth : int
        The grid has side `2**depth`.
    w : int
        Cells kept per level, which decides on budgets and on the first measured level.
    scale : int
        B: masses are floored to multiples of `1 / B`, so a person with less than that in every cell of a level counts
        nothing there. With growing B the noise tends to the central mechanism's.
    variant, decay
        As in `level_budgets`.
    neighbours : {"absent", "replaced"}
        "absent": one person's distribution is replaced by nothing, while that person's share of the noise still comes.
        "replaced": by another distribution, which can move the sums by `2 B` on every level; budgets are halved.

    References
    ----------
    Ghazi et al. (2023), Differentially private heatmaps, AAAI; noise scale, sign, modulus and last share are corrected.

    Examples
    --------
    >>> import numpy as np
    >>> protocol = ShuffleProtocol(2000.0, 1e-6, users=3, depth=1, w=1, scale=16)
    >>> rng, corner = np.random.default_rng(1), [[1, 0], [0, 0]]
    >>> levels = protocol.decode(np.concatenate([protocol.encode(corner, rng) for _ in range(3)]))
    >>> [level.tolist() for level in levels]
    [[[3.0]], [[3.0, 0.0], [0.0, 0.0]]]
    """

    epsilon: float
    delta: float
    users: int
    depth: int
    w: int = 20
    scale: int = 256
    variant: str = "practical"
    decay: float | None = None
    neighbours: str = "absent"

    def __post_init__(self) -> None:
        probability("delta", self.delta)
        whole("users", self.users, 2, remedy="a person alone has nobody to hide among")
        whole("depth", self.depth, 0, most=DEEPEST)
        whole("scale", self.scale, 1, most=LARGEST_SCALE)
        one_of("neighbours", self.neighbours, NEIGHBOURS)
        one_of("variant", self.variant, PUBLISHED)
        # Also checks epsilon, w, variant and decay.
        if self.margin >= LARGEST_SUM or self.users * self.messages * self.modulus >= LARGEST_SUM:
            msg = "scale: sums of shares would not fit into 64-bit integers; take a smaller scale or a larger epsilon."
            raise InputError(msg)

    @cached_property
    def budgets(self) -> LevelBudgets:
        """Budgets of the measured levels; half of epsilon in all where persons are replaced."""
        share = positive("epsilon", self.epsilon) * (0.5 if self.neighbours == "replaced" else 1)
        return level_budgets(share, self.depth, self.w, variant=self.variant, decay=self.decay)

    @property
    def coordinates(self) -> int:
        """m: cells of all measured levels."""
        return (4 ** (self.depth + 1) - 4**self.budgets.first) // 3

    @property
    def margin(self) -> int:
        """M: with probability `1 - 1e-9` or more, no noise of any cell is larger; in units of `1 / B`."""
        tail, least = self.scale * math.log(2 * self.coordinates / WRAP), min(self.budgets.epsilons)
        return math.ceil(tail / least) if tail < LARGEST_SUM * least else LARGEST_SUM

    @property
    def modulus(self) -> int:
        """Q: room for all persons in one cell and for the noise on both sides."""
        return self.scale * self.users + 2 * self.margin + 1

    @property
    def messages(self) -> int:
        """r: messages of a person for each coordinate."""
        return message_count(
            self.epsilon, self.delta, users=self.users, coordinates=self.coordinates, modulus=self.modulus
        )

    @property
    def communication_bits(self) -> int:
        """Bits that each person sends."""
        return communication_bits(
            self.epsilon, self.delta, users=self.users, coordinates=self.coordinates, modulus=self.modulus
        )

    def encode(self, distribution: npt.ArrayLike, rng: RngLike = None) -> Ints:
        """Messages of one person, to be shuffled among everybody's.

        Parameters
        ----------
        distribution : array_like, shape (side, side)
            Masses that add up to at most one; all zero for a person who is absent.
        rng : None, int or Generator

        Returns
        -------
        (r m, 2) array of int64
            Coordinate and share. Coordinates count through the measured levels, in row-major order within each.
        """
        rng = generator(rng)
        noisy = self._floored(distribution) + self._noise_share(rng)
        shares = rng.integers(0, self.modulus, (self.messages, self.coordinates))
        # The last share completes the noised sum; a share of the exact sum would leave out the noise.
        shares[-1] = (noisy - shares[:-1].sum(axis=0)) % self.modulus
        return np.column_stack([np.tile(np.arange(self.coordinates), self.messages), shares.ravel()])

    def decode(self, messages: npt.ArrayLike) -> list[Floats]:
        """Noisy counts of the measured levels from all persons' messages, in any order.

        Parameters
        ----------
        messages : array_like, shape (n r m, 2)

        Returns
        -------
        list of arrays
            Square, unscaled, in persons, from the first measured level to the grid: what `select_cells` takes.

        Raises
        ------
        InputError
            Messages are missing or superfluous: all but all of a coordinate's shares add up to a uniform number.
        """
        sent = plain_array(messages)
        expected = self.users * self.messages
        if sent is None or sent.dtype.kind not in "iu" or sent.shape != (expected * self.coordinates, 2):
            msg = f"messages: needs whole numbers in an array ({expected * self.coordinates}, 2), all that were sent."
            raise InputError(msg)
        coordinate, share = sent.astype(np.int64).T
        inside = ((share >= 0) & (share < self.modulus)).all() and (
            (coordinate >= 0) & (coordinate < self.coordinates)
        ).all()
        if not inside or (np.bincount(coordinate, minlength=self.coordinates) != expected).any():
            msg = "messages: every coordinate needs the same number of shares below the modulus; take them as encoded."
            raise InputError(msg)
        total = np.zeros(self.coordinates, dtype=np.int64)
        np.add.at(total, coordinate, share)
        return self._levels((total + self.margin) % self.modulus - self.margin)

    def simulate(self, distributions: Iterable[npt.ArrayLike], rng: RngLike = None) -> list[Floats]:
        """Noisy counts with the law of what `decode` returns, wrap-around apart, without a single message.

        Parameters
        ----------
        distributions : iterable of (side, side) arrays
            One for each of the `users` persons; all zero for one who is absent.
        rng : None, int or Generator
        """
        rng = None if rng is None else generator(rng)
        total, persons = np.zeros(self.coordinates, dtype=np.int64), 0
        for distribution in each(distributions) or ():
            total += self._floored(distribution)
            persons += 1
        if persons != self.users:
            msg = "distributions: needs one for each of the protocol's users; all zeros stand for an absent one."
            raise InputError(msg)
        ends = np.cumsum(self._sizes)[:-1]
        noisy = [
            laplace_noise(laplace_scale(self.scale, epsilon), sensitivity=self.scale, epsilon=epsilon, rng=rng).add(
                part
            )
            for epsilon, part in zip(self.budgets.epsilons, np.split(total, ends), strict=True)
        ]
        return self._levels(np.concatenate(noisy))

    @property
    def _sizes(self) -> list[int]:
        """Cells of each measured level."""
        return [4**level for level in range(self.budgets.first, self.depth + 1)]

    def _floored(self, distribution: npt.ArrayLike) -> Ints:
        """(m,) cell sums of one person, times B, rounded down."""
        p, side = real_array(distribution), 2**self.depth
        most = 1 + FORGIVEN
        if p is None or p.shape != (side, side) or not ((p >= 0) & (p <= most)).all() or p.sum() > most:
            msg = f"distribution: needs finite, non-negative masses ({side}, {side}) that add up to at most one."
            raise InputError(msg)
        levels = pyramid(p / max(1.0, p.sum()))[self.budgets.first :]
        return np.floor(self.scale * np.concatenate([level.ravel() for level in levels])).astype(np.int64)

    def _noise_share(self, rng: np.random.Generator) -> Ints:
        """(m,) differences of two Polya variables; n add up to discrete Laplace noise of scale `B / epsilon_i`."""
        # numpy's parameter is the chance of success, 1 - alpha with alpha = exp(-epsilon_i / B).
        success = np.repeat([-math.expm1(-epsilon / self.scale) for epsilon in self.budgets.epsilons], self._sizes)
        gained, lost = rng.negative_binomial(1 / self.users, success, (2, self.coordinates))
        return gained - lost

    def _levels(self, sums: Ints) -> list[Floats]:
        """Square arrays of counts in persons from (m,) integers in units of `1 / B`."""
        parts = np.split(sums / self.scale, np.cumsum(self._sizes)[:-1])
        return [part.reshape(math.isqrt(len(part)), -1) for part in parts]


def _image(width: int, height: int, first: int) -> tuple[int, int, range]:
    """Checked sides, and the levels from the first one to that of single pixels."""
    width, height = whole("width", width, 1), whole("height", height, 1)
    depth = (max(width, height) - 1).bit_length()
    return width, height, range(whole("first", first, 0, most=depth), depth + 1)
