"""A check of closed forms by brute force: the hockey-stick divergence of two densities, cell by cell."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpppsynth.arguments import finite, function, plain_array, positive
from dpppsynth.errors import InputError
from dpppsynth.mesh import Floats

LARGEST_EPSILON = 700.0
MOST_CELLS = 10**7


def hockey_stick(
    first: Callable[[Floats], Any],
    second: Callable[[Floats], Any],
    epsilon: float,
    *,
    low: float,
    high: float,
    width: float,
) -> float:
    """Integral of `max(first - e^epsilon second, 0)` by the midpoint rule: the smallest delta of two densities.

    It knows nothing of the laws but their densities, and checks what is computed in closed form. Where the densities
    jump, the jumps should be borders of cells: then the error falls with the square of the width.

    Parameters
    ----------
    first, second : callable
        Densities of (n,) numbers: (n,) numbers that are not negative.
    epsilon : float
        From 0 to 700.
    low, high : float
        Ends of the range to integrate over.
    width : float
        Of cells, rounded so that the range is a whole number of them; at most 10^7 cells.

    Raises
    ------
    InputError
        An argument breaks its rule, or a density is negative, not finite or of another shape.

    Examples
    --------
    >>> from dpppsynth.truncated import TruncatedLaplace
    >>> law = TruncatedLaplace(scale=1.0, bound=5.0)
    >>> delta = hockey_stick(lambda z: law.pdf(z + 1.0), law.pdf, 1.0, low=-6.0, high=5.0, width=0.001)
    >>> round(delta, 6)
    0.005828
    """
    epsilon = finite("epsilon", epsilon, least=0.0)
    low, high, width = finite("low", low), finite("high", high), positive("width", width)
    length = float(high) - float(low)
    if not (epsilon <= LARGEST_EPSILON and 0 < length < math.inf and length / width <= MOST_CELLS):
        msg = "epsilon, low, high, width: needs epsilon of at most 700, low below high and at most 10^7 cells."
        raise InputError(msg)
    cells = max(round(length / width), 1)
    middles = low + length * ((np.arange(cells) + 0.5) / cells)
    gain = _density("first", first, middles) - math.exp(epsilon) * _density("second", second, middles)
    return float(np.maximum(gain, 0.0).sum()) * (length / cells)


def _density(name: str, density: Any, places: Floats) -> Floats:
    values = plain_array(function(name, density, "z")(places))
    real = values is not None and values.shape == places.shape and values.dtype.kind in "iuf"
    if values is None or not real or not ((values >= 0) & (values < np.inf)).all():
        msg = f"{name}: must give a finite number that is not negative for each of an array of numbers."
        raise InputError(msg)
    return values.astype(float)
