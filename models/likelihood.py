"""Likelihood of a log-intensity field given masses at mesh vertices, exact or noisy.

It sees the field only through its vertex values w and the dual-mesh measure a (`Mesh.measure`, times a public offset).
`evaluate` returns what Newton's method needs: the value, its gradient in w, and a root R of the information (`R'R`).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpppsynth.mesh import Floats


class Evaluation(NamedTuple):
    """Log-likelihood, its gradient (V,) and a root (K, V) of the information matrix."""

    value: float
    gradient: Floats
    root: Floats


def mass_log_density(
    w: Floats, shifted: Floats, measure: Floats, tents: Floats, n: float, shift: float
) -> tuple[float, Floats]:
    """Log-density of masses given the field w, and its gradient in w: the formula of `NoisyMasses`.

    Written in the common subset of NumPy and Numba: the PyMC model compiles this very function
    (`dpppsynth.models.density_op`). `n` is 0 where the number of points is secret.
    """
    mass = measure * np.exp(w - (w.max() if n > 0 else 0.0))
    if n > 0:
        mass = mass * (n / mass.sum())
    m = np.dot(tents, mass)
    pull = shifted / (m + shift)
    value = np.dot(shifted, np.log(m + shift))
    if n > 0:
        return value, mass * (np.dot(pull, tents) - np.dot(pull, m) / n)
    return value - m.sum(), mass * np.dot(pull - 1.0, tents)


@dataclass(frozen=True, eq=False)
class NoisyMasses:
    """Tent masses T plus discrete Laplace noise, as a shifted Poisson likelihood (docs/theory.md, section 6).

    With `v = 2 b^2` the noise's variance, `T + v` has the mean and the variance `m + v` of a Poisson variable, and is
    treated as one; without noise this is the exact LGCP dual-mesh likelihood. Under a public n the expected masses are
    `m = n B p`, `p` proportional to `a exp(w)`, and the noise's known sum is taken off evenly; under a secret one
    `m = B (a exp(w))`.

    Attributes
    ----------
    masses : (K,) array
        Tent masses T, private or exact.
    noise_scale : float
        Scale b of the noise, in points; zero for exact masses.
    measure : (V,) array
        Measure of the field's mesh.
    tents : (K, V) array
        B: values of the K tents at the field's V vertices.
    n : float or None
        Public number of points; None when it is secret.
    """

    masses: Floats
    noise_scale: float
    measure: Floats
    tents: Floats
    n: float | None

    @classmethod
    def exact(cls, psi: Floats, measure: Floats) -> "NoisyMasses":
        """The LGCP likelihood `psi'w - n log sum_j a_j exp(w_j)` of unprotected tent masses, flat intercept."""
        return cls(psi, 0.0, measure, np.eye(len(psi)), float(psi.sum()))

    @property
    def arguments(self) -> tuple[Floats, Floats, Floats, float, float]:
        """What `mass_log_density` takes after w."""
        shift = 2 * self.noise_scale**2
        known = 0.0 if self.n is None else (self.masses.sum() - self.n) / len(self.masses)
        return self.masses - known + shift, self.measure, self.tents, float(self.n or 0), shift

    def vertex_masses(self, w: Floats) -> Floats:
        """(..., V) expected masses at the field's vertices under fields w (..., V)."""
        if self.n is None:
            return self.measure * np.exp(w)
        mass = self.measure * np.exp(w - w.max(axis=-1, keepdims=True))
        return mass * (self.n / mass.sum(axis=-1, keepdims=True))

    def expected_masses(self, w: Floats) -> Floats:
        """(..., K) expected tent masses m under fields w (..., V)."""
        return self.vertex_masses(w) @ self.tents.T

    def evaluate(self, w: Floats) -> Evaluation:
        """Value, gradient and information root at w; the information is `J' diag(1 / (m + v)) J` with J = dm/dw."""
        value, gradient = mass_log_density(w, *self.arguments)
        mass = self.vertex_masses(w)
        m = self.tents @ mass
        jacobian = self.tents * mass
        if self.n is not None:
            jacobian -= np.outer(m, mass) / self.n
        return Evaluation(float(value), gradient, jacobian / np.sqrt(m + 2 * self.noise_scale**2)[:, None])
