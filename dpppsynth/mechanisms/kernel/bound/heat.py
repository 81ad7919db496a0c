"""Guarantee of Poisson patterns with heat kernels on a network: Theorem B with its exact privacy loss.

Proofs in docs/theory/diffusion.md. As on windows, only the children of the moved point differ; but the law of one
child is a row of a finite matrix, so its loss is computed instead of bounded, for every two segments that a move can
join.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from dpppsynth.core.arguments import instance, probability
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.core.tiled_matrix import TiledMatrix
from dpppsynth.core.wording import either, mention
from dpppsynth.linear_network import heat_kernels
from dpppsynth.linear_network.heat_kernels import (
    MOST_ERROR,
    MOST_SEGMENTS,
    diffusion_rows,
    matrix_error,
    require_few_segments,
    segment_distances,
)
from dpppsynth.linear_network.mesh import NetworkMesh
from dpppsynth.mechanisms.kernel.bound.kernels import (
    checked_budget,
    checked_moves,
    children_rate,
    kernel_assumptions,
    smallest_bandwidth,
)
from dpppsynth.privacy.guarantee import Guarantee, on_ground, on_map
from dpppsynth.privacy.losses import LARGEST_LOSS, DiscreteLosses, poisson_losses, worst_curves
from dpppsynth.privacy.relations import CappedRelation
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Floats, Ints

THEOREM = "kernel-superposition"
SEGMENTS = "segments-treated-alike"
# Distances of the curve, and how far it goes in privacy radii.
DISTANCES, FARTHEST = 12, 4
# Lattice points per standard deviation of the farthest move's loss on that curve: enough for the nearest one's as well.
FINE_CURVE = 40
# Numbers held in memory at a time.
BLOCK = 2**22
# Pairs of segments times segments: some seconds for one bandwidth.
MOST_WORK = 10**8
# Precision of the smallest bandwidth, and where the search for it ends, in diameters.
PRECISION, WIDEST = 1e-4, 10
# Growth of the logarithm of a bandwidth, up or down, until the smallest lies between two.
GROWTH = 0.3
# Share of the budget left over by the smallest bandwidth: another machine may find an epsilon that much larger.
SPARE = 2e-5
MESH = "network_mesh(network, resolution=50.0) makes one"


def diffusion(
    mesh: NetworkMesh,
    relation: CappedRelation | float,
    *,
    bandwidth: float,
    delta: float,
    patterns: int = 1,
    epsilon: float | None = None,
) -> Guarantee:
    """Guarantee of the kernel synthesizer on a network, for every pattern: Theorem B for heat flow.

    Parameters
    ----------
    mesh : NetworkMesh
    relation : CappedRelation or float
        Moves only; a number is the privacy radius of `AlphaNeighbours`, along the network.
    bandwidth : float
        Standard deviation of the kernel on a long straight street, in the network's unit.
    delta : float
        The delta at which the guarantee is quoted; at least 1e-9 and below 1.
    patterns : int
        Number of patterns drawn.
    epsilon : float, optional
        Budget: more is refused before the curve by distance is found.

    Raises
    ------
    InputError
        Under `AddRemove`, when the bandwidth or delta is out of range, or a move joins too many pairs of segments.
    PrivacyCheckError
        When (epsilon, delta) is exceeded.
    """
    relation = checked_moves(relation)
    rate, delta = children_rate(patterns, relation), probability("delta", delta)
    instance("mesh", mesh, NetworkMesh, MESH)
    reach = min(on_map(relation, mesh.domain).reach, mesh.domain.diameter)
    pairs, apart = joined(mesh, min(FARTHEST * reach, mesh.domain.diameter), reach)
    matrix = diffusion_rows(mesh, bandwidth)
    error = matrix_error(mesh, bandwidth)
    profile = _profile(matrix, error, pairs[apart <= _within(reach)], rate, delta)
    promise = Guarantee(relation, profile, THEOREM, (*kernel_assumptions(relation, mesh.domain), SEGMENTS))
    if epsilon is not None:
        promise.require(epsilon, delta)
    curve = on_ground(_by_distance(matrix, error, (pairs, apart), patterns, delta), mesh.domain)
    return replace(promise, by_distance=curve)


def smallest_diffusion_bandwidth(
    mesh: NetworkMesh, relation: CappedRelation | float, *, epsilon: float, delta: float, patterns: int = 1
) -> float:
    """Smallest bandwidth found within (epsilon, delta) by `diffusion`, rounded up; parameters as there.

    Delta need not fall as the bandwidth grows on every network: the one returned was checked itself, a narrower one
    that fails was found about a share 1e-4 below it, and one still narrower might pass.

    Raises
    ------
    InputError
        As `diffusion`, or when delta is so large that every bandwidth would do.
    PrivacyCheckError
        When no bandwidth tried, up to ten diameters, satisfies the budget: because rounding spoils wide ones, or a
        kernel as wide as that is not private enough.
    """
    relation = checked_moves(relation)
    rate = children_rate(patterns, relation)
    epsilon, delta = checked_budget(epsilon, delta, rate)
    instance("mesh", mesh, NetworkMesh, MESH)
    if epsilon > LARGEST_LOSS:
        msg = (
            f"epsilon: must be at most {LARGEST_LOSS:g} here, larger privacy losses count as infinite, got {epsilon:g}."
        )
        raise InputError(msg)
    reach = min(on_map(relation, mesh.domain).reach, mesh.domain.diameter)
    pairs, _ = joined(mesh, reach)

    @cache
    def spent(log_bandwidth: float, *, rounded: bool = True) -> float:
        """Epsilon as a share of the budget, with the rounding of the matrix or as if there were none.

        Where rounding leaves nothing of the matrix it is infinite, or zero.
        """
        bandwidth = math.exp(log_bandwidth)
        error = matrix_error(mesh, bandwidth)
        if error > MOST_ERROR:
            return math.inf if rounded else 0.0
        matrix = diffusion_rows(mesh, bandwidth)
        return (1 + SPARE) * _profile(matrix, error * rounded, pairs, rate, delta).epsilon(delta) / epsilon

    # The plane's bandwidth for a longer move, by a segment: close, unless the network is small or branches a lot.
    step = reach + float(mesh.element_measure.max())
    plane = smallest_bandwidth(Window.rectangle(0, 0, step, step), step, epsilon=epsilon, delta=delta, patterns=rate)
    widest = WIDEST * mesh.domain.diameter
    passing = _passing(spent, math.log(min(plane, widest)), math.log(widest))
    if passing is None:
        spoilt = spent(math.log(widest), rounded=False) <= 1
        raise PrivacyCheckError(_refusal(mesh, f"({epsilon:g}, {delta:g})", widest, spoilt=spoilt))
    return math.exp(_smallest(spent, passing))


def joined(mesh: NetworkMesh, distance: float, least: float = 0.0) -> tuple[Ints, Floats]:
    """Pairs i < j of segments (m, 2) whose nearest points are within a distance, and how far apart these are (m,).

    Nearest first. Where there would be too many pairs the distance is shortened, but not below `least`.

    Raises
    ------
    InputError
        When the pairs at `least` (at `distance` unless given) are too many.
    """
    if len(mesh.elements) < 2:
        msg = "mesh: needs at least two segments, for children to tell them apart; choose a finer resolution."
        raise InputError(msg)
    require_few_segments(mesh, heat_kernels.MOST_TILED)
    limit, parts = _within(distance), []
    for segments in np.array_split(np.arange(len(mesh.elements)), -(-(len(mesh.elements) ** 2) // BLOCK)):
        apart = segment_distances(mesh, segments, limit)
        near, other = np.nonzero(apart <= limit)
        later = segments[near] < other
        parts.append((segments[near[later]], other[later], apart[near[later], other[later]]))
    first, second, gaps = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(gaps, kind="stable")
    pairs, gaps = np.column_stack([first, second])[order], gaps[order]
    # Rows of large networks end before that many segments, or nearly so.
    most, needed = MOST_WORK // min(len(mesh.elements), MOST_SEGMENTS), int((gaps <= _within(least or distance)).sum())
    if needed > most:
        msg = (
            f"mesh: moves join {needed} pairs of its {len(mesh.elements)} segments, more than the {most} whose losses "
            f"can be computed; take longer segments ({mention('spacing')}), protect smaller moves, or take "
            f"{either('LGCPSynthesizer', '--method lgcp')}."
        )
        raise InputError(msg)
    if len(pairs) > most:
        # Whole distances only: all pairs as far apart as the last one that has room.
        keep = gaps <= _within(least) if gaps[most] <= _within(least) else gaps < gaps[most]
        pairs, gaps = pairs[keep], gaps[keep]
    return pairs, gaps


def _passing(spent: Callable[..., float], start: float, last: float) -> float | None:
    """A log-bandwidth that spends at most 1: the first from `start` to `last`, or else one below `start`.

    Rounding costs more the wider the kernel (docs/theory/diffusion.md, section 4): where no wider one does, narrower
    ones are tried as long as they would do without rounding.
    """
    for at in (*np.arange(start, last, GROWTH).tolist(), last):
        if spent(at) <= 1:
            return float(at)
    at = start
    while spent(at, rounded=False) <= 1:
        at -= GROWTH
        if spent(at) <= 1:
            return at
    return None


def _refusal(mesh: NetworkMesh, budget: str, widest: float, *, spoilt: bool) -> str:
    """Reason why no bandwidth suffices, with the remedy."""
    unit, spend = mesh.domain.unit, "spend more, protect smaller moves, or use private counts or tents."
    if not spoilt:
        return f"bandwidth: even {widest:.4g} {unit} does not satisfy (epsilon, delta) = {budget}; {spend}"
    least = float(mesh.element_measure.min())
    return (
        f"bandwidth: none up to {widest:.4g} {unit} satisfies (epsilon, delta) = {budget}, since rounding over "
        f"segments as short as {least:.3g} {unit} spoils wide ones; take short edges out "
        f"(network.collapse_short(tolerance)), {spend}"
    )


def _smallest(spent: Callable[[float], float], high: float) -> float:
    """A log-bandwidth that spends at most 1, no larger than one that does, next to one that spends more."""
    from scipy.optimize import brentq

    low = high - GROWTH
    while spent(low) <= 1:
        low, high = low - GROWTH, low
    # Infinite epsilons must not stop the search, nor vanishing ones.
    found = brentq(lambda x: math.log(min(max(spent(x), 1e-3), 1e3)), low, high, xtol=PRECISION / 4)
    while spent(found) > 1:
        found += PRECISION / 2
    return min(float(found), high)


def _within(distance: Any) -> Any:
    """A distance plus what rounding can have added to a path."""
    return distance * (1 + 1e-9)


def _profile(matrix: TiledMatrix, error: float, pairs: Ints, rate: int, delta: float) -> DiscreteLosses:
    lattice, (worst,) = worst_curves(matrix, [pairs], error)
    return poisson_losses(worst, lattice, error=error, rate=rate, delta=delta)


def _by_distance(
    matrix: TiledMatrix, error: float, moves: tuple[Ints, Floats], patterns: int, delta: float
) -> tuple[tuple[float, float], ...]:
    """(d, epsilon) for one point that moves by up to d on the map, as far as epsilon is finite."""
    pairs, apart = moves
    if not apart[-1] > 0:
        return ()
    distances = np.linspace(0, float(apart[-1]), DISTANCES + 1)[1:]
    up_to = np.searchsorted(apart, _within(distances), side="right")
    lattice, curves = worst_curves(matrix, np.split(pairs, up_to)[:-1], error, FINE_CURVE)
    losses = (poisson_losses(curve, lattice, error=error, rate=patterns, delta=delta) for curve in curves)
    each = ((float(d), loss.epsilon(delta)) for d, loss in zip(distances, losses, strict=True))
    return tuple((d, epsilon) for d, epsilon in each if epsilon < math.inf)
