"""Public limits of pair sums: how many pairs of places a lattice may have at most, and the finest one within them."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Floats

# Lattice places of a domain, and those nearer to one of them than the radius, itself included: at most so many.
Places = tuple[float, float]
# Caps in units of shares are at most 2^20: far below the 2^31 of a solver's capacities.
CAP_BITS = 20
# Steps of the lattice within a radius; and pairs of places that a computer is asked to hold.
MOST_STEPS, LEAST_STEPS, MOST_PAIRS = 16, 4, 12_500_000
# Radii in diameters of the domain: smaller ones would ask for too fine a lattice.
SMALLEST = 1e-6


def require_radius(radius: float, domain: Domain, *, name: str = "radii") -> None:
    """Refuse a radius that no two points of the domain exceed, or one that is as good as nothing."""
    if not SMALLEST * domain.diameter <= radius <= domain.diameter:
        msg = (
            f"{name}: each must lie between a millionth of the domain's diameter and the diameter, {domain.diameter:g} "
            f"{domain.unit}, got {radius:g}."
        )
        raise InputError(msg)


def most_pairs(domain: Domain, radius: float, steps: int, n: int | None) -> float:
    """Pairs of occupied lattice places nearer than the radius, at most, whatever the points are."""
    return _most(_lattice(domain, radius)(steps), n)


def _most(places: Places, n: int | None) -> float:
    every, near = places
    occupied = every if n is None else min(every, float(n))
    return occupied * min(near, occupied) / 2


def require_few(
    domain: Domain, radius: float, steps: int, n: int | None, *, name: str = "radii", remedy: str = ""
) -> None:
    """Refuse a lattice with more pairs than a computer is asked to hold."""
    found = most_pairs(domain, radius, steps, n)
    if found > MOST_PAIRS:
        remedy = remedy or f"take another radius, or fewer {mention('steps')}"
        msg = (
            f"{name}: so many points could make up to {found:.2g} pairs of places within {radius:g} {domain.unit}, "
            f"{steps} steps to the radius, and {MOST_PAIRS:.2g} are allowed; {remedy}."
        )
        raise InputError(msg)


def finest(domain: Domain, radius: float, n: int | None) -> int:
    """The largest number of steps to a radius within the limit; the least one where none is."""
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
    """The same of a network, from the length of streets and the number of their pieces around the busiest place.

    Streets are cut into pieces of at most half a radius, which have two places more than steps fit into them, at most.
    Pieces with a place nearer than the radius to a given place have their middles within one and a half radii of its
    piece's, hence in adjacent squares of that side.
    """
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
    edge = np.repeat(np.arange(len(parts)), parts)
    within = np.arange(len(edge)) - np.repeat(np.cumsum(parts) - parts, parts)
    return parts, network.coordinates(np.column_stack([edge, (within + 0.5) / parts[edge] * network.lengths[edge]]))


def pieces_work(network: LinearNetwork, radius: float) -> float:
    """Pieces that such a network is cut into, about."""
    return len(network.lengths) + 2 * network.length / radius if radius > 0 else math.inf
