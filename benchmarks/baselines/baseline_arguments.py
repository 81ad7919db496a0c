"""Validation of the baselines' arguments; messages name argument and rule, never answers or points."""

import math
from typing import Any

import numpy as np

from dpppsynth.core.arguments import plain_array, positive, probability, shown
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.privacy.truncated.truncated_laplace import LARGEST, SMALLEST, in_range
from dpppsynth.spatial.mesh import Floats

# Beyond it `e^epsilon` leaves the range of floats.
LARGEST_EPSILON = 500.0


def bound(name: str, value: Any) -> float:
    """A hard bound on noise as a float: in the range of lengths, or infinite for none."""
    return math.inf if isinstance(value, float) and value == math.inf else in_range(name, value)


def checked_epsilon(value: Any) -> float:
    """Epsilon as a float, or an InputError."""
    return float(positive("epsilon", value, rule=f"be positive and at most {LARGEST_EPSILON:g}", most=LARGEST_EPSILON))


def budgets(epsilon: Any, delta: Any) -> tuple[float, float]:
    """Epsilon and delta as floats, or an InputError; delta may not be 0."""
    return checked_epsilon(epsilon), float(probability("delta", delta))


def noise_scale(value: float) -> float:
    """A scale that was worked out; an InputError that names its causes where it is out of range."""
    if not SMALLEST <= value <= LARGEST:
        msg = "epsilon, delta, sensitivity: need noise that is beyond floating-point numbers; change them or the unit."
        raise InputError(msg)
    return value


def real_numbers(name: str, value: Any) -> Floats:
    """Real numbers of any shape, infinite ones too, or an InputError."""
    array = plain_array(value)
    if array is not None and not array.size:
        return np.zeros(array.shape)
    if array is None or array.dtype.kind not in "iuf" or (array.dtype.kind == "f" and np.isnan(array).any()):
        msg = f"{name}: must be real numbers, and none missing."
        raise InputError(msg)
    return array.astype(np.float64)


def uniforms(size: Any, rng: RngLike) -> tuple[Floats, np.random.Generator]:
    """Random numbers in (-1, 1] of a shape, and the generator that goes on; an InputError for what is no shape."""
    source = generator(rng)
    try:
        return np.asarray(1 - 2 * source.random(size)), source
    except (TypeError, ValueError, OverflowError, MemoryError):
        msg = f"size: needs a whole number of at least 0, or a tuple of them, got {shown(size)}."
        raise InputError(msg) from None
