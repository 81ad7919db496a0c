"""Minimum-cost flows: the least effort of carrying mass along arcs, which on a grid is the l1 earth mover's distance.

Moving mass along both axes of a grid in turn is moving it from cell to neighbouring cell, so a flow between neighbours,
with four arcs per cell, takes the place of the transport between all pairs of cells.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import numpy.typing as npt

from dpppsynth.errors import DpppsynthError, InputError
from dpppsynth.second_order import Floats, real_array

Ints = npt.NDArray[np.int64]

# How far prices may break the rules that prove a flow to be cheapest: relative, and of all mass moved along one arc.
TOLERANCE, ROUNDING = 1e-9, 1e-12
MOST_PIVOTS = 10**9


def minimum_cost_flow(tail: Ints, head: Ints, length: Floats, supply: Floats) -> float:
    """Least cost of carrying supplies (N,), which add up to zero, along arcs (A,) that run both ways, at any capacity.

    The network simplex finds a flow together with prices u of the mass at the nodes. Where no arc is shorter than its
    difference of prices, `supply @ u` is below the cost of every flow; so the cost is proved least when both agree.
    Should that ever fail, the prices are found again as a linear programme.

    Raises
    ------
    DpppsynthError
        Supplies cannot reach where they are wanted.

    References
    ----------
    Ahuja, Magnanti and Orlin (1993), Network flows, chapters 9 and 11; Flamary et al. (2021), POT: Python Optimal
    Transport, JMLR 22(78), for the solver.
    """
    moved = float(np.abs(supply).sum()) / 2
    mean = float(length.mean()) if len(length) else 0.0
    if moved == 0 or mean == 0:
        return 0.0
    # The solvers' tolerances are absolute: in these units mass and lengths are about 1. Halving and doubling rounds no
    # length, so that prices, which are sums of whole lengths on a grid, are exact there.
    unit = math.ldexp(1.0, math.frexp(mean)[1] - 1)
    length, supply = length / unit, supply / moved
    # The first node takes what rounding leaves over.
    supply[0] -= supply.sum()
    cost = _by_simplex(tail, head, length, supply)
    if cost is None:
        cost = _by_programme(tail, head, length, supply)
    return max(0.0, cost) * moved * unit


def grid_flow(supply: Floats, spacing: tuple[float, float]) -> float:
    """Least cost of levelling supplies (a, b), which add up to zero, on a grid with these distances of neighbours."""
    return minimum_cost_flow(*grid_arcs(supply.shape, spacing), supply.ravel())


def grid_arcs(shape: tuple[int, ...], spacing: tuple[float, float]) -> tuple[Ints, Ints, Floats]:
    """Tails, heads and lengths of the arcs between neighbours on a grid (a, b), whose cells count row by row."""
    cell = np.arange(shape[0] * shape[1]).reshape(shape)
    tail = np.concatenate([cell[:-1].ravel(), cell[:, :-1].ravel()])
    head = np.concatenate([cell[1:].ravel(), cell[:, 1:].ravel()])
    return tail, head, np.repeat(np.asarray(spacing, dtype=np.float64), [cell[1:].size, cell[:, 1:].size])


def grid_masses(array: npt.ArrayLike, name: str) -> Floats:
    """Array (a, b); an InputError unless its masses are finite and non-negative, and so is their sum."""
    masses = real_array(array)
    if masses is None or masses.ndim != 2 or not masses.size or not (np.isfinite(masses) & (masses >= 0)).all():
        msg = (
            f"{name}: must be a two-dimensional array of finite, non-negative masses, such as [[1, 0], [0, 2]]; a "
            "single row is [[1, 2]]."
        )
        raise InputError(msg)
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


def _by_simplex(tail: Ints, head: Ints, length: Floats, supply: Floats) -> float | None:
    """The cost where it is proved to be the least, else None.

    The solver transports between two sets. Every node takes part in both, with a mass of 1 to spare that can stay at no
    cost or make way for as much passing through.
    """
    import ot
    from scipy.sparse import coo_array

    node = np.arange(len(supply))
    ends = (np.concatenate([node, tail, head]), np.concatenate([node, head, tail]))
    cost = coo_array((np.concatenate([np.zeros(len(node)), length, length]), ends), shape=(len(node), len(node)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given, taken = 1 + np.maximum(supply, 0), 1 + np.maximum(-supply, 0)
        found = ot.emd(given, taken, cost, MOST_PIVOTS, log=True, center_dual=False, check_marginals=False)
    log = found[1]
    price = log["u"]
    least = float(supply @ price)
    fair = (np.abs(price[tail] - price[head]) <= length + TOLERANCE).all()
    # The prices give more digits: the flow is the small difference of what comes and goes.
    proved = log["warning"] is None and fair and abs(log["cost"] - least) <= TOLERANCE * least + ROUNDING
    return least if proved else None


def _by_programme(tail: Ints, head: Ints, length: Floats, supply: Floats) -> float:
    """The cost as the dual, `max supply @ u` with `|u[tail] - u[head]| <= length`."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csc_array

    arc = np.arange(len(tail))
    entries = np.repeat([1.0, -1.0], len(tail))
    difference = csc_array((entries, (np.tile(arc, 2), np.concatenate([tail, head]))), shape=(len(tail), len(supply)))
    # Only differences of prices count; a fixed one leaves nothing to drift.
    free = np.where(np.arange(len(supply)) == 0, 0.0, np.inf)
    typical = float(np.abs(supply).mean())
    bounded = LinearConstraint(difference, -length, length)
    found = milp(-supply / typical, constraints=bounded, bounds=Bounds(-free, free))
    if found.x is None:
        msg = f"the solver of the minimum-cost flow gave up: {found.message}"
        raise DpppsynthError(msg)
    return -float(found.fun) * typical
