"""Hockey-stick divergences by their definition, against which closed forms of delta are checked."""

import math

import numpy as np


def hockey_stick(p, q, epsilon):
    """Largest P(A) - e^epsilon Q(A) over events A: the smallest delta of two arrays of masses."""
    return np.maximum(p - math.exp(epsilon) * q, 0).sum()


def hockey_stick_of_densities(first, second, epsilon, *, low, high, width):
    """Integral of `max(first - e^epsilon second, 0)` by the midpoint rule, with cells about as wide as stated.

    Where densities jump, the jumps should be borders of cells: then the error falls with the square of the width.
    """
    cells = round((high - low) / width)
    width = (high - low) / cells
    middles = low + width * (np.arange(cells) + 0.5)
    return hockey_stick(first(middles), second(middles), epsilon) * width
