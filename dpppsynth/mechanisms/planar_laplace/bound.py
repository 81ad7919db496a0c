"""Bounds on where points moved by planar Laplace noise end (docs/theory/bounded_error.md, section 6)."""

import math

from dpppsynth.core.arguments import positive
from dpppsynth.core.errors import InputError
from dpppsynth.spatial.domains import Window


def require_visible(window: Window, max_error: float) -> float:
    """The bound on moves, refused with an InputError unless it is well above the public grid's spacing."""
    if positive("max_error", max_error) <= 4 * window.resolution:
        unit = f"{window.resolution:g} {window.unit}"
        msg = f"max_error: must be well above the public grid of {unit}, got {max_error:g}; take a larger bound."
        raise InputError(msg)
    return float(max_error)


def noise_bound(window: Window, max_error: float | None) -> float:
    """Largest noise such that no point of a convex window is released further than `max_error` away; infinite without.

    Rounding moves a point by half a diagonal of the public grid at most, and moving it into the window may add a step.
    """
    return math.inf if max_error is None else max_error - (1 + math.sqrt(0.5)) * window.resolution
