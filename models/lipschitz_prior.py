"""Truncation of a Gaussian field to bounded gradients, under which posterior draws are epsilon-private (Theorem D)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpppsynth.core.errors import InputError
from dpppsynth.spatial.mesh import Floats, Mesh

# Exponent of the norm that stands for the maximum over elements in `press`, in squared gradients.
NORM = 16
# Range of slopes whose squares, and quotients of squares, are floats.
LEAST_SLOPE, LARGEST_SLOPE = 1e-100, 1e100
# Relative margin of `press` from the border of the set, so that rounding cannot carry a field outside.
MARGIN = 1e-9


@dataclass(frozen=True, eq=False)
class LipschitzSet:
    """Fields on a mesh that change by at most `slope` per unit of length: `max |grad w| <= slope`.

    Convex, and the same under any shift of the field. Calling it with fields (m, V) tells which lie inside, (m,).

    Attributes
    ----------
    mesh : Mesh
    slope : float
        Largest gradient of the log-intensity, per unit of length.
    """

    mesh: Mesh
    slope: float

    def __post_init__(self) -> None:
        if not LEAST_SLOPE <= self.slope <= LARGEST_SLOPE:
            rule = f"lie between {LEAST_SLOPE:g} and {LARGEST_SLOPE:g}"
            msg = f"slope: must {rule}, got {self.slope!r}; epsilon / (2 alpha) gives epsilon at alpha."
            raise InputError(msg)

    def __call__(self, fields: Floats) -> Any:
        """(m,) whether fields (m, V) lie in the set."""
        return self.steepness(fields) <= self.slope

    def steepness(self, fields: Floats) -> Floats:
        """(m,) `max |grad w|` of fields (m, V); elements' corners suffice, where the squared gradient is largest."""
        return np.asarray(np.sqrt(self._squares(fields).max(axis=-1)))

    def press(self, w: Any) -> Any:
        """Map any field into the set, smoothly, its mean over the vertices kept; arrays (..., V) or PyTensor vectors.

        With `q = |grad w|^2 / c^2` at every corner and `M = (sum q^16)^(1/16)`, deviations from the mean are divided by
        `(1 + M^4)^(1/8)`. Since `M >= max q`, the pressed field has `|grad|^2 / c^2 = q / (1 + M^4)^(1/4) < 1`. Any
        prior on the set will do for Theorem D, so the law that this map induces needs no Jacobian. A prior whose fields
        are mostly steeper than c piles up at the border, though: choose its sigma below about `0.2 c l`.
        """
        q = self._squares(w) / ((1 - MARGIN) * self.slope) ** 2
        # Without the smallest of numbers a flat field would have no gradient in the sampler.
        top = q.max(axis=-1, keepdims=True) + np.finfo(float).tiny
        norm = top * (((q / top) ** NORM).sum(axis=-1, keepdims=True) + np.finfo(float).tiny) ** (1 / NORM)
        mean = w.mean(axis=-1, keepdims=True)
        return mean + (w - mean) / (1 + norm**4) ** (1 / 8)

    @cached_property
    def _gradients(self) -> Floats:
        """(C, k, dim) basis gradients, one row of corners after another."""
        return self.mesh.gradients.reshape(-1, *self.mesh.gradients.shape[2:])

    @cached_property
    def _vertices(self) -> Any:
        """(C, k) vertices those gradients belong to."""
        return np.repeat(self.mesh.elements, self.mesh.gradients.shape[1], axis=0)

    def _squares(self, w: Any) -> Any:
        """(..., C) squared gradients."""
        values = w[..., self._vertices]
        along, *other = np.moveaxis(self._gradients, -1, 0)
        squares = (along * values).sum(axis=-1) ** 2
        for axis in other:
            squares = squares + (axis * values).sum(axis=-1) ** 2
        return squares
