"""Heat maps from noise on every cell of one grid, with which sparse aggregation is compared.

`laplace_aggregate` clips the noised cells at zero or keeps the largest; without a threshold, `side^2 / (2 epsilon)`
persons' worth of noise stays in empty cells. `dense_aggregate` takes one point for each person, a coarse grid, and the
non-negative masses nearest in earth mover's distance. It assumes nothing about sparsity, and its error falls with
`1/sqrt(epsilon n)` where that of sparse aggregation falls with `1/(epsilon n)` for mass in few places. It chooses its
grid by the number of persons, which must therefore be public.
"""

import math

import numpy as np
import numpy.typing as npt

from baselines.heatmap_arrays import Estimate, Users, as_users
from baselines.infinite_heatmaps import DIAMETER
from dpppsynth.core.arguments import positive, whole
from dpppsynth.core.errors import DpppsynthError, InputError
from dpppsynth.core.randomness import RngLike
from dpppsynth.mechanisms.heatmap.aggregation import require_exact
from dpppsynth.mechanisms.heatmap.bound import LevelBudgets, level_scales
from dpppsynth.privacy.bounds import LATTICE_BITS
from dpppsynth.privacy.noise import laplace_noise
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.minimum_cost_flow import grid_arcs
from dpppsynth.spatial.patterns import PointPattern

# A linear program on 256 x 256 cells takes about 20 seconds, one on 128 x 128 cells two.
DEEPEST_PROGRAMME = 8


def laplace_aggregate(
    distributions: npt.ArrayLike | Users,
    *,
    epsilon: float,
    top_fraction: float | None = None,
    rng: RngLike = None,
) -> Floats:
    """Private average of persons' distributions, by noise on every cell.

    Pure epsilon-differentially private under adding or removing one person.

    Parameters
    ----------
    distributions : array_like, shape (users, side, side), or Users
    epsilon : float
    top_fraction : float, optional
        In (0, 1]: keep the largest values alone, this fraction of all cells (0.01 is one per cent), rounded up.
    rng : None, int or Generator
        None: secret noise. Anything else makes the run reproducible and therefore not private.

    Returns
    -------
    (side, side) array
        Adds up to one; uniform where nothing was left, which `laplace_estimate` tells.

    Raises
    ------
    InputError
        An argument breaks its rule.

    References
    ----------
    Liu et al. (2019), Differential privacy for eye-tracking data, ETRA; Ghazi et al. (2023), Differentially private
    heatmaps, AAAI, section 5.

    Examples
    --------
    >>> persons = np.zeros((500, 4, 4))
    >>> persons[:, 1, 2] = 1
    >>> int(np.count_nonzero(laplace_aggregate(persons, epsilon=1.0, top_fraction=0.01, rng=1)))
    1
    """
    return laplace_estimate(
        distributions,
        epsilon=epsilon,
        top_fraction=top_fraction,
        rng=rng,
    ).distribution


def laplace_estimate(
    distributions: npt.ArrayLike | Users,
    *,
    epsilon: float,
    top_fraction: float | None = None,
    rng: RngLike = None,
) -> Estimate:
    """Estimate of `laplace_aggregate`, with the masses before division by their sum."""
    epsilon, fraction = positive("epsilon", epsilon), _fraction(top_fraction)
    users = as_users(distributions)
    noised = noised_grid(users, epsilon, rng)
    masses = np.maximum(keep_largest(noised, fraction), 0.0)
    return Estimate(masses)


def noised_grid(users: Users, epsilon: float, rng: RngLike = None) -> Floats:
    """(nx, ny) sum of persons' distributions with noise on every cell, in persons."""
    scales = level_scales(LevelBudgets(users.depth, (epsilon,)))
    require_exact(scales)
    noise = laplace_noise(scales[0], sensitivity=2**LATTICE_BITS, epsilon=epsilon, rng=rng)
    sums = users.lattice()[: users.shape[0], : users.shape[1]]
    return noise.add(sums.ravel()).reshape(users.shape) / 2.0**LATTICE_BITS


def keep_largest(values: Floats, fraction: float) -> Floats:
    """The values with all but the largest, `max(1, ceil(fraction * size))` of them, set to 0; of equals the first stay.

    Examples
    --------
    >>> keep_largest(np.array([[3.0, 1.0], [2.0, 3.0]]), 0.3)
    array([[3., 0.],
           [0., 3.]])
    """
    # 0.07 of 100 cells are 7, though 0.07 * 100 is a little more in floating point.
    keep = max(1, math.ceil(fraction * values.size * (1 - 1e-12)))
    kept = np.argsort(-values.ravel(), kind="stable")[:keep]
    found = np.zeros(values.size)
    found[kept] = values.ravel()[kept]
    return found.reshape(values.shape)


def _fraction(top_fraction: float | None) -> float:
    if top_fraction is None:
        return 1.0
    return positive(
        "top_fraction", top_fraction, rule="lie in (0, 1]", remedy="0.01 keeps one per cent of the cells", most=1.0
    )


def dense_aggregate(points: npt.ArrayLike, *, epsilon: float, n: int, rng: RngLike = None) -> Estimate:
    """Private average of points in the unit square, one for each person, with no assumption of sparsity.

    Pure epsilon-differentially private under adding or removing one person, for a **public** n.

    Parameters
    ----------
    points : array_like, shape (k, 2)
        Coordinates in [0, 1), snapped down to the grid.
    epsilon : float
    n : int
        Public number of persons, or a public guess of it, which chooses the grid alone; one read off secret data is
        outside the guarantee.
    rng : None, int or Generator
        None: secret noise. Anything else makes the run reproducible and therefore not private.

    Raises
    ------
    InputError
        An argument breaks its rule, or `epsilon * n` asks for a grid of more than 256 x 256 cells.

    References
    ----------
    Ghazi et al. (2023), Differentially private heatmaps, AAAI, dense aggregation.

    Examples
    --------
    >>> found = dense_aggregate(np.full((400, 2), 0.3), epsilon=1.0, n=400, rng=1)
    >>> found.masses.shape, bool(found.distribution[9, 9] > 0.6)
    ((32, 32), True)
    """
    epsilon = positive("epsilon", epsilon)
    depth = dense_depth(epsilon, n)
    at = PointPattern.checked(points)
    users = Users.from_points(at, np.arange(len(at)), side=2**depth)
    masses = nearest_masses(noised_grid(users, epsilon, rng))
    return Estimate(masses)


def dense_depth(epsilon: float, n: int) -> int:
    """Depth l of the grid of side `2^l`: `log2 sqrt(epsilon n)` rounded up, and at least 0.

    Examples
    --------
    >>> [dense_depth(1.0, n) for n in (1, 4, 5, 16, 17)]
    [0, 1, 2, 2, 3]
    """
    cells, depth = positive("epsilon", epsilon) * whole("n", n, 1), 0
    while 4**depth < cells:
        depth += 1
        if depth > DEEPEST_PROGRAMME:
            side = 2**DEEPEST_PROGRAMME
            msg = (
                f"epsilon, n: epsilon * n must be at most {side**2}, since the linear program is limited to "
                f"{side} x {side} cells; sparse_aggregate has no such limit."
            )
            raise InputError(msg)
    return depth


def nearest_masses(noised: Floats) -> Floats:
    """Non-negative masses whose difference from noised ones has the least earth mover's norm.

    Mass moves between neighbours at their distance, or appears at a cost of 2 (`DIAMETER`); it never pays to let any
    disappear, since leaving it where it is costs nothing.

    Parameters
    ----------
    noised : (side, side) array

    Examples
    --------
    >>> nearest_masses(np.array([[3.0, -1.0], [0.0, 0.0]]))
    array([[2., 0.],
           [0., 0.]])
    """
    from scipy.optimize import linprog
    from scipy.sparse import csc_array, hstack, identity

    side, cells = len(noised), noised.size
    tail, head, length = grid_arcs(noised.shape, (1 / side, 1 / side))
    arc = np.arange(len(tail))
    signs = np.repeat([1.0, -1.0], len(arc))
    arriving = csc_array((signs, (np.concatenate([head, tail]), np.tile(arc, 2))), shape=(cells, len(arc)))
    here = identity(cells, format="csc")
    # masses = noised + what arrives along arcs, in either direction, + what appears.
    balance = hstack([here, -arriving, arriving, -here], format="csc")
    cost = np.concatenate([np.zeros(cells), length, length, np.full(cells, DIAMETER)])
    found = linprog(cost, A_eq=balance, b_eq=noised.ravel(), method="highs")
    if found.x is None:
        msg = f"the solver of the linear program of dense aggregation gave up: {found.message}"
        raise DpppsynthError(msg)
    return np.maximum(found.x[:cells], 0.0).reshape(noised.shape)
