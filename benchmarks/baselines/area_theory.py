"""Theory of area mechanisms: their laws on the continuum, closed forms of footprints, information in a report.

Continuous laws are what the mechanisms on grids approximate. A report is a pair of floating point
numbers drawn by floating point arithmetic: its low-order bits may tell more than the density says, so nothing here has
a certificate. Release counts of a mechanism on a grid, whose law is whole numbers.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammainc, gammaincinv

from dpppsynth.core.arguments import finite, plain_array, positive, shown, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.randomizers.area import LONGEST as LONGEST_SIDE
from dpppsynth.mechanisms.local.randomizers.area import MOST_BOX, MOST_SIDE, SMALL, high_shares, moments, reached

# Epsilons and lengths whose exponentials and squares neither overflow nor vanish, together.
LARGEST_EPSILON, SHORTEST, LONGEST, MOST_RATIO = 500.0, 1e-40, 1e40, 1e6
MOST_SIDES, MOST_EPSILON = 1e6, 700.0
# Points along a radius and around the circle that integrals of waves are taken with.
RADII, ANGLES = 64, 128
CHUNK = 1_000_000
# Relative rounding by which a user-defined wave may exceed its bounds.
ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class SpatialAreaMechanism:
    """Base of the continuous mechanisms: reports have density `q wave` in a disk around the value, q elsewhere.

    The domain of reports is all points within `radius` of the square. A mechanism of one's own is a subclass with a
    method `wave`; that it stays within its bounds, which is what makes the mechanism private, is checked at every use.

    Attributes
    ----------
    epsilon : float
        At most 500.
    radius : float
        Of the disk, above 0; `optimal_radius(epsilon, side)` is a good one.
    side : float
        Of the square [0, side]^2 of values.

    Raises
    ------
    InputError
        An argument breaks its rule; at radius 0 there is no density, and a grid is needed.

    References
    ----------
    Numerical Estimation of Spatial Distributions under Differential Privacy (disk area mechanism), section IV.

    Examples
    --------
    >>> class Cone(SpatialAreaMechanism):
    ...     def wave(self, offsets):
    ...         return 1 + np.expm1(self.epsilon) * (1 - np.hypot(*offsets.T) / self.radius)
    >>> law = Cone(epsilon=1.0, radius=0.5)
    >>> round(law.low * (law.area + (np.e - 1) * np.pi * 0.5**2 / 3), 9)
    1.0
    """

    epsilon: float
    radius: float
    side: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", float(positive("epsilon", self.epsilon, most=LARGEST_EPSILON)))
        for name in ("side", "radius"):
            length = float(positive(name, getattr(self, name), most=LONGEST, remedy="a radius of 0 needs a grid"))
            object.__setattr__(self, name, length)
        if not self.side >= SHORTEST or not 1 / MOST_RATIO <= self.radius / self.side <= MOST_RATIO:
            msg = (
                f"radius: must be between {1 / MOST_RATIO:g} and {MOST_RATIO:g} sides, got {self.radius:g} with a side "
                f"of {self.side:g}; beyond that only a mechanism on a grid makes sense."
            )
            raise InputError(msg)
        # Whatever breaks the bounds is refused before anybody reports.
        self.low  # noqa: B018

    def wave(self, offsets: Floats) -> Floats:
        """(n,) multiples of q, from 1 to e^epsilon, of the density at offsets (n, 2) of length at most `radius`."""
        raise NotImplementedError

    @property
    def area(self) -> float:
        """Area of the domain of reports: the square, its rims and four quarters of a disk."""
        return math.pi * self.radius**2 + 4 * self.side * self.radius + self.side**2

    @cached_property
    def low(self) -> float:
        """The density q outside the disk, the smallest one."""
        return 1 / (self.area + self.excess)

    @property
    def high(self) -> float:
        """The density `q e^epsilon`, which none exceeds."""
        return self.low * math.exp(self.epsilon)

    @cached_property
    def excess(self) -> float:
        """Integral of `wave - 1` over the disk, by quadrature in polar coordinates."""
        nodes, weights = np.polynomial.legendre.leggauss(RADII)
        r = (nodes + 1) / 2 * self.radius
        angles = np.arange(ANGLES) * (2 * np.pi / ANGLES)
        offsets = np.stack([np.outer(r, np.cos(angles)), np.outer(r, np.sin(angles))], axis=-1)
        above = self._checked(offsets.reshape(-1, 2)).reshape(RADII, ANGLES) - 1
        return float((weights * r) @ above.mean(axis=1)) * math.pi * self.radius

    def density(self, reports: Any, value: Any) -> Floats:
        """(n,) densities of reports (n, 2) of a client at the point `value` (2,); 0 outside the domain."""
        reports, value = self._points("reports", reports), self._values([value])[0]
        offsets = reports - value
        near = np.hypot(*offsets.T) <= self.radius
        densities = np.where(self._inside(reports), self.low, 0.0)
        densities[near] = self.low * self._checked(offsets[near])
        return densities

    def draw(self, values: Any, rng: RngLike = None) -> Floats:
        """(n, 2) reports of clients at points `values` (n, 2) of the square, each from its own random numbers.

        Either a point of the domain whatever the value, or one of the disk around the value: a candidate of the latter
        kind is accepted in proportion to `wave - 1`, so that no integral of the wave takes part.
        """
        values, rng = self._values(values), generator(rng)
        return np.concatenate([values[:0], *(self._drawn(part, rng) for part in _parts(values))])

    def _drawn(self, values: Floats, rng: np.random.Generator) -> Floats:
        reports = np.empty_like(values)
        waiting = np.arange(len(values))
        even = self.area / (self.area + self._envelope)
        while len(waiting):
            anywhere = rng.random(len(waiting)) < even
            reports[waiting[anywhere]] = self._anywhere(int(anywhere.sum()), rng)
            around = waiting[~anywhere]
            offsets, most = self._candidates(len(around), rng)
            # Candidates do not depend on values, and neither does how many there are nor whether they are accepted.
            taken = rng.random(len(around)) * most < self._checked(offsets) - 1
            reports[around[taken]] = values[around[taken]] + offsets[taken]
            waiting = around[~taken]
        return reports

    def _anywhere(self, n: int, rng: np.random.Generator) -> Floats:
        """(n, 2) points uniform in the domain of reports: those of its bounding box that lie in it."""
        found = np.empty((0, 2))
        while len(found) < n:
            box = rng.uniform(-self.radius, self.side + self.radius, size=(2 * (n - len(found)) + 8, 2))
            found = np.concatenate([found, box[self._inside(box)]])
        return found[:n]

    @property
    def _envelope(self) -> float:
        """Integral over the disk of what candidates are drawn in proportion to: here the largest `wave - 1`."""
        return math.expm1(self.epsilon) * math.pi * self.radius**2

    def _candidates(self, n: int, rng: np.random.Generator) -> tuple[Floats, Any]:
        """(n, 2) offsets in the disk, and the envelope there."""
        return _turned(self.radius * np.sqrt(rng.random(n)), rng), math.expm1(self.epsilon)

    def _inside(self, points: Floats) -> np.ndarray:
        return np.asarray(np.hypot(*(points - np.clip(points, 0, self.side)).T) <= self.radius)

    def _checked(self, offsets: Floats) -> Floats:
        wave, most = plain_array(self.wave(offsets)), math.exp(self.epsilon)
        real = wave is not None and wave.shape == (len(offsets),) and wave.dtype.kind in "iuf"
        if wave is None or not real or not ((wave >= 1 - ROUNDING) & (wave <= most * (1 + ROUNDING))).all():
            msg = "wave: must give one number from 1 to e^epsilon for each offset; otherwise reports are not private."
            raise InputError(msg)
        return np.clip(wave.astype(float), 1.0, most)

    def _values(self, values: Any) -> Floats:
        points = self._points("values", values)
        if ((points < 0) | (points > self.side)).any():
            msg = f"values: must lie in the square from 0 to {self.side:g} along both axes; clip them beforehand."
            raise InputError(msg)
        return points

    def _points(self, name: str, points: Any) -> Floats:
        array = plain_array(points)
        real = array is not None and array.ndim == 2 and array.shape[1] == 2 and array.dtype.kind in "iuf"
        if array is None or not real or not np.isfinite(array).all():
            msg = f"{name}: must be finite coordinates of shape (n, 2)."
            raise InputError(msg)
        return array.astype(float)


@dataclass(frozen=True, kw_only=True, eq=False)
class ContinuousDiskArea(SpatialAreaMechanism):
    """Disk area mechanism on the continuum: density p in the disk and q outside, `p = e^epsilon q`.

    Of all area mechanisms with this epsilon and radius it has the smallest q, and therefore tells values apart best in
    sliced Wasserstein distance: that of two values v1 and v2 is `2 |v2 - v1| (1 - area q) / pi`.

    Examples
    --------
    >>> law = ContinuousDiskArea(epsilon=1.0, radius=0.845034)
    >>> round(law.high, 6), round(law.low, 6)
    (0.259422, 0.095436)
    """

    def wave(self, offsets: Floats) -> Floats:
        """(n,) times e^epsilon, wherever in the disk."""
        return np.full(len(offsets), math.exp(self.epsilon))

    @cached_property
    def excess(self) -> float:
        """Integral of `wave - 1` over the disk."""
        return math.expm1(self.epsilon) * math.pi * self.radius**2


@dataclass(frozen=True, kw_only=True, eq=False)
class ContinuousHybrid(SpatialAreaMechanism):
    """Hybrid uniform-exponential mechanism on the continuum: density `q e^((1 - |z| / radius) epsilon)` in the disk.

    Examples
    --------
    >>> round(ContinuousHybrid(epsilon=1.0, radius=0.845034).low, 6)
    0.131529
    """

    def wave(self, offsets: Floats) -> Floats:
        """(n,) exponentials that fall from e^epsilon at the value to 1 on the circle."""
        return np.exp((1 - np.minimum(np.hypot(*offsets.T) / self.radius, 1.0)) * self.epsilon)

    @cached_property
    def excess(self) -> float:
        """Integral of `wave - 1` over the disk."""
        epsilon = self.epsilon
        # Mean of the wave over the disk, less 1; two terms of the series keep all digits that matter.
        above = epsilon / 3 + epsilon**2 / 12
        if epsilon >= SMALL:
            above = 2 * (math.expm1(epsilon) - epsilon) / epsilon**2 - 1
        return math.pi * self.radius**2 * above

    @property
    def _envelope(self) -> float:
        """Integral of the wave itself, which is much less than the bound where epsilon is large."""
        return self.excess + math.pi * self.radius**2

    def _candidates(self, n: int, rng: np.random.Generator) -> tuple[Floats, Any]:
        """(n, 2) offsets in proportion to the wave: lengths of a truncated gamma law; and the wave there."""
        u = rng.random(n) * gammainc(2, self.epsilon)
        offsets = _turned(self.radius * np.minimum(gammaincinv(2, u) / self.epsilon, 1.0), rng)
        return offsets, self.wave(offsets)


def _turned(lengths: Floats, rng: np.random.Generator) -> Floats:
    angles = rng.uniform(0, 2 * np.pi, len(lengths))
    return np.column_stack([lengths * np.cos(angles), lengths * np.sin(angles)])


def _parts(values: Floats) -> list[Floats]:
    return [values[start : start + CHUNK] for start in range(0, len(values), CHUNK)]


class FootprintSizes(NamedTuple):
    """Areas in cells: `high` S_H, `low` S_L; what is not high of an output cell is low."""

    high: float
    low: float

    @property
    def outputs(self) -> int:
        """Number of cells that are reported at all."""
        return round(self.high + self.low)


def closed_form_sizes(radius: int, cells: int) -> FootprintSizes:
    """High and low area around every value, in time proportional to the radius.

    Parameters
    ----------
    radius : int
        In cells, at least 0.
    cells : int
        Along each axis of the grid of values.

    References
    ----------
    Numerical Estimation of Spatial Distributions under Differential Privacy, theorem VI.4, less the `m` that the print
    lacks in the number of strictly interior cells.

    Examples
    --------
    >>> [round(size, 8) for size in closed_form_sizes(2, 5)]
    [16.64582472, 60.35417528]
    """
    radius, cells = (
        whole("radius", radius, 0, most=MOST_BOX),
        whole("cells", cells, 1, most=MOST_SIDE),
    )
    parts = footprint_parts(radius)
    split = float(parts.mixed @ parts.times)
    low = cells**2 + 4 * radius * cells - 4 * radius - 1
    return FootprintSizes(parts.pure + split, low + int(parts.times.sum()) - split)


class Parts(NamedTuple):
    """Footprint by its parts: number of high cells, shares (k,) of mixed cells, and how many (k,) have each share."""

    pure: int
    mixed: Floats
    times: Ints


def footprint_parts(radius: int) -> Parts:
    """Parts of the footprint of a whole radius by its symmetry, without looking at every cell.

    Strictly between 0 and 45 degrees, row k ends at the outermost cell (x_k, k) that the disk reaches, and the cells
    before that one are all high; these count eightfold. Axes and diagonals count fourfold, and no axis is mixed.
    """
    k = np.arange(1, radius + 1)
    # Largest x with (2x - 1)^2 + (2k - 1)^2 < 4 radius^2, whose root is exact enough far beyond any radius here.
    x = (np.sqrt(4 * radius**2 - (2 * k - 1) ** 2 - 1).astype(np.int64) + 1) // 2
    x, k = x[x > k], k[x > k]
    full = math.isqrt(radius**2 // 2)
    ends = high_shares(np.append(x, full + 1), np.append(k, full + 1), radius)
    interior = int((x - k - 1).sum()) + int((ends[:-1] == 1).sum())
    times = np.append(np.full(len(x), 8), 4)
    mixed = (ends < 1) & np.append(np.full(len(x), True), reached(full + 1, full + 1, radius))
    return Parts(1 + 4 * (radius + full) + 8 * interior, ends[mixed], times[mixed])


class InformationBound(NamedTuple):
    """Upper bound of the information in a report, in bits, and its derivative by the radius."""

    bits: float
    slope: float


def information_bound(radius: float, epsilon: float, side: float = 1.0) -> InformationBound:
    """Bound of the mutual information of a value in a square and its disk area report, and its slope.

    Parameters
    ----------
    radius : float
        At least 0, in the unit of `side`, at most a million times it.
    epsilon : float
        At most 700.
    side : float

    Examples
    --------
    >>> round(information_bound(0.2, 3.5).bits, 6)
    1.894499
    """
    epsilon = float(positive("epsilon", epsilon, most=MOST_EPSILON))
    side = float(positive("side", side, most=LONGEST_SIDE))
    b = float(finite("radius", radius, least=0.0)) / side
    if b > MOST_SIDES:
        msg = f"radius: must be at most {MOST_SIDES:g} sides, got {shown(radius)}."
        raise InputError(msg)
    shrunk, (first, second) = math.exp(-epsilon), moments(epsilon)
    if epsilon < SMALL:
        first, second = first * epsilon**2, second * epsilon**2
    rim = 4 * b + 1
    disk = math.pi * b**2
    weight = disk + rim * shrunk
    bits = (math.log((disk + rim) / weight) - epsilon + disk * epsilon / weight) / math.log(2)
    quadratic = -math.pi * first * b**2 + shrunk * (4 * second * b + second)
    slope = 2 * math.pi * b * (2 * b + 1) * quadratic / ((disk + rim) * weight**2 * math.log(2))
    return InformationBound(bits, slope / side)


def discrete_radius(epsilon: float, cells: int) -> int:
    """Radius in whole cells that maximises the information bound of the mechanism on the grid itself.

    Whole cells count by their centres, so that a disk on the grid is larger than its radius says; the continuous rule
    does not know that.

    Examples
    --------
    >>> [discrete_radius(3.5, cells) for cells in (5, 15, 20)]
    [0, 3, 5]
    """
    epsilon = float(positive("epsilon", epsilon, most=MOST_EPSILON))
    cells = whole("cells", cells, 1, most=MOST_SIDE)
    # Below, the maximiser stays where it is while the bound drowns in rounding.
    bounds = [_grid_bound(radius, max(epsilon, SMALL), cells) for radius in range(2 * cells + 1)]
    return int(np.argmax(bounds))


def _grid_bound(radius: int, epsilon: float, cells: int) -> float:
    """Logarithm of the number of reports less the entropy of one, in nats; the same for every value."""
    parts, shrunk = footprint_parts(radius), math.exp(-epsilon)
    low = cells**2 + 4 * radius * cells - 4 * radius - 1
    shares: Floats = np.append(1.0, parts.mixed)
    times = np.append(parts.pure, parts.times)
    # Weights relative to e^epsilon; those of low cells have logarithm -epsilon and no say in the entropy's sum.
    weights = shrunk + (1 - shrunk) * shares
    total = float(weights @ times) + low * shrunk
    gained = float((weights * (np.log(weights) + epsilon)) @ times) / total
    return math.log(float(times.sum() + low)) - epsilon - math.log(total) + gained
