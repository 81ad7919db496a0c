"""Public decimal grids: multiples of a power of ten, as the floats that are written with the fewest digits."""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def power_of_ten(bound: float) -> float:
    """The largest power of ten <= a positive bound.

    Examples
    --------
    >>> power_of_ten(0.03), power_of_ten(250.0), power_of_ten(0.001)
    (0.01, 100.0, 0.001)
    """
    exponent = math.floor(math.log10(bound)) + 1
    while float(f"1e{exponent}") > bound:
        exponent -= 1
    return float(f"1e{exponent}")


def multiples(numbers: NDArray[np.generic], step: float) -> Floats:
    """Whole multiples of a power of ten, each the float nearest to the decimal number: 3 times 0.1 is 0.3.

    Examples
    --------
    >>> multiples(np.array([3, 425924019]), 0.001).tolist(), 425924019 * 0.001
    ([0.003, 425924.019], 425924.01900000003)
    """
    # Powers of ten below one are no floats, but their inverses are, and a quotient is rounded once.
    whole = np.asarray(numbers, dtype=np.float64)
    return whole / round(1 / step) if step < 1 else whole * step


def nearest_multiples(values: Floats, step: float) -> Floats:
    """Multiples of a power of ten nearest to values.

    Examples
    --------
    >>> nearest_multiples(np.array([425924.01900000003, 0.1234567]), 0.001).tolist()
    [425924.019, 0.123]
    """
    return multiples(np.round(values / step), step)
