"""Capped sums over pairs of near points: an exact second-order statistic of a pattern.

For a radius r and a cap theta, points i and j share at most `w_ij = (1 - d_ij / r)^+`, and

    f = max { sum over i < j of x_ij : 0 <= x_ij <= w_ij,  sum over a person's points i of sum_j x_ij <= theta }.

One person more or less, or elsewhere, changes f by at most theta, whatever the data (docs/theory/pair_sums.md). Where
nobody meets the cap, f is the plain sum of all w_ij.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.linear_network.street_places import UNITS, StreetPlaces
from dpppsynth.models.capped_flow import capped_total, nodes
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.near_pairs import NearPairs, near_lattice_places

# Lattice places of a domain, and those nearer to one of them than the radius, itself included: at most so many.
Places = tuple[float, float]
# Caps in units of shares are at most 2^20: far below the 2^31 of a solver's capacities.
CAP_BITS = 20
# Steps of the lattice within a radius; and pairs of places that a computer is asked to hold.
MOST_STEPS, LEAST_STEPS, MOST_PAIRS = 16, 4, 12_500_000
# Radii in diameters of the domain: smaller ones would ask for too fine a lattice.
SMALLEST = 1e-6
# Pieces that streets are cut into to count places around each.
MOST_PIECES = 10_000_000


def require_radius(radius: float, domain: Domain, *, name: str = "radii") -> None:
    """Refuse a radius beyond every distance in the domain, or one that is practically zero."""
    if not SMALLEST * domain.diameter <= radius <= domain.diameter:
        msg = (
            f"{name}: each must lie between a millionth of the domain's diameter and the diameter, {domain.diameter:g} "
            f"{domain.unit}, got {radius:g}."
        )
        raise InputError(msg)


def most_pairs(domain: Domain, radius: float, steps: int, n: int | None) -> float:
    """Upper bound on the pairs of occupied lattice places nearer than the radius, for any points."""
    return _most(_lattice(domain, radius)(steps), n)


def _most(places: Places, n: int | None) -> float:
    every, near = places
    occupied = every if n is None else min(every, float(n))
    return occupied * min(near, occupied) / 2


def require_few(
    domain: Domain, radius: float, steps: int, n: int | None, *, name: str = "radii", remedy: str = ""
) -> None:
    """Refuse a lattice with more pairs than memory holds."""
    found = most_pairs(domain, radius, steps, n)
    if found > MOST_PAIRS:
        remedy = remedy or f"take another radius, or fewer {mention('steps')}"
        msg = (
            f"{name}: so many points could make up to {found:.2g} pairs of places within {radius:g} {domain.unit}, "
            f"{steps} steps to the radius, and {MOST_PAIRS:.2g} are allowed; {remedy}."
        )
        raise InputError(msg)


def finest(domain: Domain, radius: float, n: int | None) -> int:
    """Largest number of steps to a radius within the limit; the smallest one where none is."""
    lattice = _lattice(domain, radius)
    fits = (steps for steps in range(MOST_STEPS, LEAST_STEPS, -1) if _most(lattice(steps), n) <= MOST_PAIRS)
    return next(fits, LEAST_STEPS)


def _lattice(domain: Domain, radius: float) -> Callable[[int], Places]:
    """Public numbers of places, by the number of steps to a radius."""
    if isinstance(domain, LinearNetwork):
        return _along_streets(domain, radius)
    return partial(_in_plane, domain, radius)


def _in_plane(domain: Domain, radius: float, steps: int) -> Places:
    x0, y0, x1, y1 = domain.bounds
    step = radius / steps
    along = np.arange(-steps, steps + 1)
    near = int((along[:, None] ** 2 + along**2 < steps**2).sum())
    return ((x1 - x0) / step + 2) * ((y1 - y0) / step + 2), float(near)


def _along_streets(network: LinearNetwork, radius: float) -> Callable[[int], Places]:
    """The same of a network, from the length of streets and the number of their pieces around the busiest place."""
    parts, middles = _pieces(network, radius)
    around = _busiest(middles, np.repeat(network.lengths / parts, parts), 1.5 * radius)

    def places(steps: int) -> Places:
        every, near = (
            (length * steps / radius + 2 * pieces) for length, pieces in ((network.length, parts.sum()), around)
        )
        return float(every), float(near)

    return places


def _busiest(middles: Floats, lengths: Floats, side: float) -> tuple[float, float]:
    """Largest total length, and number, of pieces in a square of this side and the eight around it."""
    square = np.floor(middles / side).astype(np.int64)
    square -= square.min(axis=0) - 1
    width = int(square[:, 1].max()) + 2
    keys, place = np.unique(square[:, 0] * width + square[:, 1], return_inverse=True)
    shifts = [a * width + b for a in (-1, 0, 1) for b in (-1, 0, 1)]
    found = []
    for weight in (lengths, np.ones_like(lengths)):
        total, around = np.bincount(place.ravel(), weights=weight), np.zeros(len(keys))
        for shift in shifts:
            other = np.minimum(np.searchsorted(keys, keys + shift), len(keys) - 1)
            around += np.where(keys[other] == keys + shift, total[other], 0.0)
        found.append(float(around.max()))
    return found[0], found[1]


def _pieces(network: LinearNetwork, radius: float) -> tuple[np.ndarray, Floats]:
    """Pieces of at most half a radius of each edge (E,), and the coordinates of their middles (k, 2)."""
    parts = np.maximum(np.ceil(network.lengths / (radius / 2)), 1).astype(np.int64)
    if parts.sum() > MOST_PIECES:
        msg = f"radii: {radius:g} {network.unit} cuts streets into more than {MOST_PIECES} pieces; take a larger one."
        raise InputError(msg)
    edge = np.repeat(np.arange(len(parts)), parts)
    within = np.arange(len(edge)) - np.repeat(np.cumsum(parts) - parts, parts)
    return parts, network.coordinates(np.column_stack([edge, (within + 0.5) / parts[edge] * network.lengths[edge]]))


# Units of a share are at most 2^16.
SHARE_BITS = 16


def share_bits(caps: Sequence[int]) -> int:
    """Binary digits of shares, so that no cap passes `2^CAP_BITS` units.

    Examples
    --------
    >>> share_bits([10, 20]), share_bits([1]), share_bits([2**20])
    (15, 16, 0)
    """
    return min(SHARE_BITS, CAP_BITS - (max(caps) - 1).bit_length())


@dataclass(frozen=True, eq=False)
class PairStatistic:
    """Capped sums over pairs, one for each radius: a function of the points alone.

    Points are taken to the nearest place of a lattice, each on its own: on a window with `steps` places to a radius
    along both axes, on a network along its edges.

    Attributes
    ----------
    domain : Window or LinearNetwork
    radii : tuple of float
        In the domain's unit.
    caps : tuple of int
        One for each radius.
    steps : tuple of int
        One for each radius.
    """

    domain: Domain
    radii: tuple[float, ...]
    caps: tuple[int, ...]
    steps: tuple[int, ...]

    @property
    def bits(self) -> int:
        """Binary digits of shares."""
        return share_bits(self.caps)

    def doubled(self, positions: Floats, persons: Ints | None = None) -> Ints:
        """(L,) twice the sums, in units of `2^-bits`, of points at positions (n, 2).

        Parameters
        ----------
        positions : (n, 2) array
        persons : (n,) array of int, optional
            Numbers that tell whose the points are; unless given, every point is a person.
        """
        return np.array([self._doubled(level, positions, persons) for level in range(len(self.radii))], dtype=np.int64)

    def sums(self, positions: Floats, persons: Ints | None = None) -> Floats:
        """(L,) sums of points at positions (n, 2); parameters as in `doubled`."""
        return self.doubled(positions, persons) / 2.0 ** (self.bits + 1)

    def _doubled(self, level: int, positions: Floats, persons: Ints | None) -> int:
        if not len(positions):
            return 0
        places = self._places(level, positions)
        known, place = numbered(places)
        found = self._near(level, known)
        unit = 2**self.bits
        points = nodes(place, self.caps[level] * unit, persons)
        return capped_total(points, found, self._weights(level, found), unit)

    @cached_property
    def _streets(self) -> list[StreetPlaces]:
        """Places along streets, for each radius."""
        network = self.domain
        if not isinstance(network, LinearNetwork):
            return []
        return [StreetPlaces(network, r / steps) for r, steps in zip(self.radii, self.steps, strict=True)]

    def _places(self, level: int, positions: Floats) -> Ints:
        """(n, 2) lattice places."""
        if self._streets:
            return self._streets[level].places(positions)
        corner = np.array(self.domain.bounds[:2])
        return np.rint((positions - corner) / (self.radii[level] / self.steps[level])).astype(np.int64)

    def _near(self, level: int, places: Ints) -> NearPairs:
        reach = self.steps[level]
        return self._streets[level].near(places, reach) if self._streets else near_lattice_places(places, reach)

    def _weights(self, level: int, pairs: NearPairs) -> np.ndarray:
        """(k,) shares in units, rounded down, of distances along streets or squared ones in the plane."""
        unit, reach = 2**self.bits, self.steps[level]
        if self._streets:
            return unit - -(-pairs.apart * unit // (reach * UNITS))
        return plane_shares(reach, self.bits).astype(np.int32)[pairs.apart]


def numbered(places: Ints) -> tuple[Ints, Ints]:
    """Different ones (M, 2) among lattice places (n, 2), in order, and the number (n,) of each place among them."""
    low = places.min(axis=0)
    width = int(places[:, 1].max() - low[1]) + 1
    # One whole number for each place: sorting pairs takes several times as long.
    keys, place = np.unique((places[:, 0] - low[0]) * width + (places[:, 1] - low[1]), return_inverse=True)
    return np.column_stack(np.divmod(keys, width)) + low, place.astype(np.int64)


def plane_shares(reach: int, bits: int) -> Ints:
    """(reach^2,) shares `1 - sqrt(k) / reach` by squared distance k, in units of `2^-bits` rounded down.

    Examples
    --------
    >>> plane_shares(2, 4).tolist()
    [16, 8, 4, 2]
    """
    unit = 2**bits
    return np.array([unit - _up(k * unit**2, reach) for k in range(reach**2)], dtype=np.int64)


def _up(square: int, divisor: int) -> int:
    """The smallest whole number of at least `sqrt(square) / divisor`."""
    low = math.isqrt(square // divisor**2)
    return low if (low * divisor) ** 2 >= square else low + 1
