"""Sliced Wasserstein-1 distances in the plane: means over directions of the distances of projections.

The mean is over the uniform law of directions, as in the field's libraries; integrals over angles from 0 to 2 pi are
`2 pi` times as large. A shift by d is `2 d / pi`, the mean of |cos| times d, and no distance exceeds 2 / pi times the
exact one.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import plain_array, whole
from dpppsynth.core.errors import InputError
from dpppsynth.spatial.minimum_cost_flow import Floats, unit_pair
from dpppsynth.spatial.transport.spacing import LONGEST, cell_sides

MOST_DIRECTIONS = 100_000


def sliced_wasserstein(p: npt.ArrayLike, q: npt.ArrayLike, *, directions: int = 180, unit: Any = 1.0) -> float:
    """Sliced Wasserstein-1 distance of two histograms, whose masses sit at the centres of the cells.

    The mean of the projections' distances over all directions: 2 / pi for a shift by 1.

    Parameters
    ----------
    p, q, unit
        As in `wasserstein2`.
    directions : int
        Equispaced angles in a half-turn; their error is about `1 / directions^2` of the result.

    Raises
    ------
    InputError
        Shapes differ, a mass is negative or not finite, an array has no mass, or an argument breaks its rule.

    References
    ----------
    Bonneel, Rabin, Peyre and Pfister (2015), Sliced and Radon Wasserstein barycenters of measures, Journal of
    Mathematical Imaging and Vision 51, 22-45; Nadjahi et al. (2020), Statistical and topological properties of sliced
    probability divergences, NeurIPS 33, for the uniform law of directions.

    Examples
    --------
    >>> round(sliced_wasserstein([[1, 0]], [[0, 1]]), 4)
    0.6366
    """
    one, other = unit_pair(p, q)
    centres = np.indices(one.shape).reshape(2, -1).T * cell_sides(unit)
    return _mean(centres, centres, directions, (one.ravel(), other.ravel()))


def sliced_wasserstein_points(one: npt.ArrayLike, other: npt.ArrayLike, *, directions: int = 180) -> float:
    """Sliced Wasserstein-1 distance of two sets of points: those of one set have equal masses that sum to 1.

    Parameters
    ----------
    one, other : array_like, shapes (n, 2) and (m, 2)
    directions : int
        Equispaced angles in a half-turn.

    Raises
    ------
    InputError
        There are no points, a coordinate is not finite, or an argument breaks its rule.

    Examples
    --------
    >>> round(sliced_wasserstein_points([[0, 0], [5, 5]], [[3, 4], [8, 9]]), 3)
    3.183
    """
    return _mean(_points("one", one), _points("other", other), directions, (None, None))


def _mean(a: Floats, b: Floats, directions: int, masses: tuple[Floats | None, Floats | None]) -> float:
    from scipy.stats import wasserstein_distance

    angle = (np.arange(whole("directions", directions, 1, most=MOST_DIRECTIONS)) + 0.5) * (math.pi / directions)
    across = np.column_stack([np.cos(angle), np.sin(angle)])
    # The other half-turn projects on the same lines.
    return float(np.mean([wasserstein_distance(a @ line, b @ line, *masses) for line in across]))


def _points(name: str, value: Any) -> Floats:
    array = plain_array(value)
    if array is None or array.ndim != 2 or array.shape[1] != 2 or not len(array) or array.dtype.kind not in "iuf":
        msg = f"{name}: must be the coordinates of points, an array of shape (n, 2) with at least one row."
        raise InputError(msg)
    if not (np.abs(array.astype(float)) <= LONGEST).all():
        msg = f"{name}: coordinates must be finite and at most {LONGEST:g}."
        raise InputError(msg)
    return array.astype(float)
