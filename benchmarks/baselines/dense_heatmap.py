"""Dense aggregation: one point for each person, noise on all cells of a coarse grid, and an EMD projection.

It assumes nothing about sparsity, and its error falls with `1/sqrt(epsilon n)` where that of sparse aggregation falls
with `1/(epsilon n)` for mass in few places. Unlike that it chooses its grid by the number of persons, which must
therefore be public.
"""

import numpy as np
import numpy.typing as npt

from baselines.laplace_heatmap import noised_grid
from dpppsynth.core.arguments import positive, whole
from dpppsynth.core.errors import DpppsynthError, InputError
from dpppsynth.core.randomness import RngLike
from dpppsynth.mechanisms.heatmap.aggregation import Estimate
from dpppsynth.mechanisms.heatmap.persons import Users
from dpppsynth.spatial.map_distances import DIAMETER
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.minimum_cost_flow import grid_arcs
from dpppsynth.spatial.patterns import PointPattern

# A linear program on 256 x 256 cells takes about 20 seconds, one on 128 x 128 cells two.
DEEPEST_PROGRAMME = 8


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
    return Estimate(masses, rng is not None)


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
