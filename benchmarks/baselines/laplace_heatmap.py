"""The dense Laplace baseline: independent noise on every grid cell, clipped at zero or thresholded.

Without a threshold, `side^2 / (2 epsilon)` persons' worth of noise stays in empty cells, which sparse
aggregation avoids.
"""

import math

import numpy as np

from dpppsynth.core.arguments import positive
from dpppsynth.core.randomness import RngLike
from dpppsynth.mechanisms.heatmap.aggregation import Distributions, Estimate, as_users, require_exact
from dpppsynth.mechanisms.heatmap.bound import LevelBudgets, level_scales
from dpppsynth.mechanisms.heatmap.persons import Users
from dpppsynth.privacy.bounds import LATTICE_BITS
from dpppsynth.privacy.noise import laplace_noise
from dpppsynth.spatial.mesh import Floats


def laplace_aggregate(
    distributions: Distributions,
    *,
    epsilon: float,
    top_fraction: float | None = None,
    pad: bool = False,
    allow_subprobability: bool = False,
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
    pad, allow_subprobability : bool
        As in `aggregate`.
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
        pad=pad,
        allow_subprobability=allow_subprobability,
        rng=rng,
    ).distribution


def laplace_estimate(
    distributions: Distributions,
    *,
    epsilon: float,
    top_fraction: float | None = None,
    pad: bool = False,
    allow_subprobability: bool = False,
    rng: RngLike = None,
) -> Estimate:
    """Estimate of `laplace_aggregate`, with the masses before division by their sum."""
    epsilon, fraction = positive("epsilon", epsilon), _fraction(top_fraction)
    users = as_users(distributions, pad=pad, allow_subprobability=allow_subprobability)
    noised = noised_grid(users, epsilon, rng)
    masses = np.maximum(keep_largest(noised, fraction), 0.0)
    return Estimate(masses, rng is not None)


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
