"""Capped sums over pairs of near points: an exact second-order statistic of a pattern.

For a radius r and a cap theta, points i and j share at most `w_ij = (1 - d_ij / r)^+`, and

    f = max { sum over i < j of x_ij : 0 <= x_ij <= w_ij,  sum over a person's points i of sum_j x_ij <= theta }.

One person more or less, or elsewhere, changes f by at most theta, whatever the data (docs/theory/pair_sums.md). Where
nobody meets the cap, f is the plain sum of all w_ij.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpppsynth.linear_network import LinearNetwork
from dpppsynth.linear_network.street_places import UNITS, StreetPlaces
from dpppsynth.models.capped_flow import capped_total, nodes
from dpppsynth.models.pair_limits import CAP_BITS
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.near_pairs import NearPairs, near_lattice_places

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
    """Capped sums over pairs, one for each radius: a function of the points and of nothing else.

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
        weight = self._weights(level, found)
        held = weight > 0
        pairs, unit = NearPairs(*(each[held] for each in found)), 2**self.bits
        points = nodes(place, self.caps[level] * unit, persons)
        return capped_total(points, pairs, weight[held], unit)

    @cached_property
    def _streets(self) -> list[StreetPlaces]:
        """Places along streets, for each radius."""
        network = self.domain
        if not isinstance(network, LinearNetwork):
            return []
        return [StreetPlaces(network, r / steps) for r, steps in zip(self.radii, self.steps, strict=True)]

    def _places(self, level: int, positions: Floats) -> Ints:
        """(n, 2) lattice places.

        Subtraction, division and rounding of arrays are correctly rounded number by number, so that a place depends on
        its point alone, bit by bit.
        """
        if self._streets:
            return self._streets[level].places(positions)
        corner = np.array(self.domain.bounds[:2])
        return np.rint((positions - corner) / (self.radii[level] / self.steps[level])).astype(np.int64)

    def _near(self, level: int, places: Ints) -> NearPairs:
        reach = self.steps[level]
        return self._streets[level].near(places, reach) if self._streets else near_lattice_places(places, reach)

    def _weights(self, level: int, pairs: NearPairs) -> Ints:
        """(k,) shares in units, rounded down, of distances along streets or squared ones in the plane.

        Whole numbers all the way: a share depends on its two places alone.
        """
        unit, reach = 2**self.bits, self.steps[level]
        if self._streets:
            return unit - -(-pairs.apart * unit // (reach * UNITS))
        return plane_shares(reach, self.bits)[pairs.apart]


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
