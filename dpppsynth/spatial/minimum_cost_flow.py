"""Minimum-cost flows on networks and grids; on a grid the least cost is the l1 earth mover's distance.

Moving mass along both axes of a grid in turn is moving it from cell to neighbouring cell, so a flow between neighbours,
with four arcs per cell, takes the place of the transport between all pairs of cells. `Transshipment` is the one solver:
of flows on grids and networks, and of the exact Wasserstein-2 distance of histograms.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import real_array
from dpppsynth.core.errors import DpppsynthError, InputError
from dpppsynth.core.types import Floats, Ints

# Largest violation of the optimality conditions by dual prices: relative, and of all mass moved along one arc.
TOLERANCE, ROUNDING = 1e-9, 1e-12
MOST_PIVOTS = 10**9


@dataclass(frozen=True, eq=False)
class Transshipment:
    """Minimum-cost flow along directed arcs, also through nodes with spare capacity.

    The network simplex transports between two sets. A node with room takes part in both, and room that nothing passes
    stays where it is, at no cost. The simplex finds prices u of sending and v of receiving as well. Where no arc costs
    less than `u[tail] + v[head]`, no transport costs less than what the prices are worth; so a cost is proved least
    when both agree, and no other is given.

    Arcs (A,) have a cost of a unit of mass. Masses sent and received (N,) have equal sums, about 1, and room (N,) is at
    least the mass that ever passes a node. Beyond a share of 1e-9, what the prices are worth may be `rounding` away
    from a cost that they prove.

    References: Ahuja, Magnanti and Orlin (1993), Network flows, chapters 9 and 11; Flamary et al. (2021), POT: Python
    Optimal Transport, JMLR 22(78), for the solver.
    """

    tail: Ints
    head: Ints
    cost: Floats
    sent: Floats
    received: Floats
    room: Floats
    rounding: float = ROUNDING

    def least_cost(self) -> float:
        """Least cost of the transport, by the network simplex method.

        DpppsynthError where masses cannot reach where they are wanted, or the solver's prices prove no cost the least.
        """
        import ot
        from scipy.sparse import coo_array

        given, taken = self.sent + self.room, self.received + self.room
        # The arcs that can carry mass, those from a node to itself among them.
        stay = np.flatnonzero(self.room > 0)
        tail, head = np.concatenate([stay, self.tail]), np.concatenate([stay, self.head])
        used = (given > 0)[tail] & (taken > 0)[head]
        tail, head, cost = tail[used], head[used], np.concatenate([np.zeros(len(stay)), self.cost])[used]
        senders, receivers = np.flatnonzero(given > 0), np.flatnonzero(taken > 0)
        ends = np.searchsorted(senders, tail), np.searchsorted(receivers, head)
        costs = coo_array((cost, ends), shape=(len(senders), len(receivers)))
        masses = given[senders], taken[receivers]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, log = ot.emd(*masses, costs, MOST_PIVOTS, log=True, center_dual=False, check_marginals=False)
        u, v = np.zeros(len(given)), np.zeros(len(taken))
        u[senders], v[receivers] = log["u"], log["v"]
        # The prices give more digits: the cost is the small difference of what comes and goes. Those of a node with
        # room are opposite unless it is full; they come together before digits are rounded.
        least = float(self.sent @ u + self.received @ v + self.room @ (u + v))
        fair = (u[tail] + v[head] <= cost + TOLERANCE).all()
        if log["warning"] is None and fair and abs(log["cost"] - least) <= TOLERANCE * least + self.rounding:
            return max(0.0, least)
        msg = "the solver of the minimum-cost flow gave a cost without proof that it is least; take a coarser grid"
        raise DpppsynthError(msg)


def minimum_cost_flow(tail: Ints, head: Ints, length: Floats, supply: Floats) -> float:
    """Least cost of carrying supplies (N,), which add up to zero, along arcs (A,) that run both ways, at any capacity.

    DpppsynthError where supplies cannot reach where they are wanted.
    """
    moved = float(np.abs(supply).sum()) / 2
    mean = float(length.mean()) if len(length) else 0.0
    if moved == 0 or mean == 0:
        return 0.0
    # The solver's tolerances are absolute: in these units mass and lengths are about 1. Halving and doubling rounds no
    # length, so that prices, which are sums of whole lengths on a grid, are exact there.
    unit = math.ldexp(1.0, math.frexp(mean)[1] - 1)
    length, supply = length / unit, supply / moved
    # The first node takes what rounding leaves over.
    supply[0] -= supply.sum()
    return both_ways(tail, head, length, supply).least_cost() * moved * unit


def both_ways(tail: Ints, head: Ints, length: Floats, supply: Floats) -> Transshipment:
    """Transport of supplies (N,), whose positive ones sum to 1, along arcs (A,) that run both ways."""
    ends = np.concatenate([tail, head]), np.concatenate([head, tail])
    sent, received = np.maximum(supply, 0), np.maximum(-supply, 0)
    return Transshipment(*ends, np.tile(length, 2), sent, received, np.ones(len(supply)))


def grid_flow(supply: Floats, spacing: tuple[float, float]) -> float:
    """Least cost of levelling supplies (a, b), which add up to zero, on a grid with these distances of neighbours."""
    return minimum_cost_flow(*grid_arcs(supply.shape, spacing), supply.ravel())


def grid_arcs(shape: tuple[int, ...], spacing: tuple[float, float]) -> tuple[Ints, Ints, Floats]:
    """Tails, heads and lengths of the arcs between neighbours on a grid (a, b), whose cells count row by row."""
    cell = np.arange(shape[0] * shape[1]).reshape(shape)
    tail = np.concatenate([cell[:-1].ravel(), cell[:, :-1].ravel()])
    head = np.concatenate([cell[1:].ravel(), cell[:, 1:].ravel()])
    return tail, head, np.repeat(np.asarray(spacing, dtype=np.float64), [cell[1:].size, cell[:, 1:].size])


def nonnegative_grid(array: npt.ArrayLike | None, name: str) -> Floats:
    """Array (a, b); an InputError unless its masses are finite and non-negative."""
    masses = real_array(array)
    if masses is None or masses.ndim != 2 or not masses.size or not (np.isfinite(masses) & (masses >= 0)).all():
        msg = (
            f"{name}: must be a two-dimensional array of finite, non-negative masses, such as [[1, 0], [0, 2]]; a "
            "single row is [[1, 2]]."
        )
        raise InputError(msg)
    return masses


def grid_masses(array: npt.ArrayLike, name: str) -> Floats:
    """Array (a, b); an InputError unless its masses are finite and non-negative, and so is their sum."""
    masses = nonnegative_grid(array, name)
    with np.errstate(over="ignore"):
        total = float(masses.sum())
    if total == np.inf:
        msg = f"{name}: the sum of its masses is no floating-point number; divide them by a constant first."
        raise InputError(msg)
    return masses


def unit_masses(array: npt.ArrayLike, name: str) -> Floats:
    """Array (a, b) of masses divided by its sum; an InputError where it has none."""
    masses = grid_masses(array, name)
    if not masses.any():
        msg = f"{name}: must hold some mass to be divided by its sum; all is zero."
        raise InputError(msg)
    return masses / masses.sum()


def unit_pair(p: npt.ArrayLike, q: npt.ArrayLike, names: tuple[str, str] = ("p", "q")) -> tuple[Floats, Floats]:
    """Two arrays divided by their sums; an InputError where one has none, or their shapes differ."""
    one, other = unit_masses(p, names[0]), unit_masses(q, names[1])
    if one.shape != other.shape:
        msg = f"{names[1]}: must have the shape of {names[0]}, {one.shape}; got {other.shape}."
        raise InputError(msg)
    return one, other
