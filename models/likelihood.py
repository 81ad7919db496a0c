"""Likelihoods of a log-intensity field given masses at mesh vertices, exact or noisy.

Both see the field only through its vertex values w and the dual-mesh measure a (`Mesh.measure`, times a public offset).
`evaluate` returns what Newton's method needs: the value, its gradient in w, and a root R of the expected information
(`R'R`).
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from dpppsynth.mesh import Floats


class Evaluation(NamedTuple):
    """Log-likelihood, its gradient (V,) and a root (k, V) of the information matrix."""

    value: float
    gradient: Floats
    root: Floats


class Likelihood(Protocol):
    """A function of the vertex values w (V,)."""

    def evaluate(self, w: Floats) -> Evaluation:
        """Value, gradient and information root at w."""


@dataclass(frozen=True, eq=False)
class PoissonMasses:
    """The LGCP dual-mesh likelihood `psi'w - sum_j a_j exp(w_j)` of unprotected tent masses.

    Attributes
    ----------
    psi : (V,) array
        Tent masses `P'1` of the points.
    measure : (V,) array
        Dual-mesh measure a.
    fixed_total : bool
        Condition on the number of points (equivalently, integrate a flat intercept out): then only the shape of w
        counts and the value is `psi'w - n log sum_j a_j exp(w_j)`.
    """

    psi: Floats
    measure: Floats
    fixed_total: bool = True

    def evaluate(self, w: Floats) -> Evaluation:
        """Value, gradient and information root at w."""
        top = w.max() if self.fixed_total else 0.0
        mass = self.measure * np.exp(w - top)
        if not self.fixed_total:
            root = np.diag(np.sqrt(mass))
            return Evaluation(float(self.psi @ w - mass.sum()), self.psi - mass, root)
        n, share = self.psi.sum(), mass / mass.sum()
        value = self.psi @ w - n * (np.log(mass.sum()) + top)
        # diag(p) - pp' = R'R with R = diag(sqrt p) (I - 1 p').
        root = np.sqrt(n * share)[:, None] * (np.eye(len(w)) - share)
        return Evaluation(float(value), self.psi - n * share, root)


def noisy_log_density(
    w: Floats, masses: Floats, measure: Floats, tents: Floats, n: float, variance: float
) -> tuple[float, Floats]:
    """Log-density of noised masses given the field w, and its gradient in w: the formula of `NoisyMasses`.

    Written in the common subset of NumPy and Numba: the PyMC model compiles this very function
    (`dpppsynth.models.density_op`). `n` is 0 where the number of points is secret; `variance` is that of the noise.
    """
    mass = measure * np.exp(w - (w.max() if n > 0 else 0.0))
    pull = 0.0
    if n > 0:
        mass = mass * (n / mass.sum())
        pull = 1.0 / n
    m = np.dot(tents, mass)
    d = m + variance
    # Inverse of diag(d) - pull m m' by Sherman and Morrison: diag(1/d) + pull u u' / rest.
    u = m / d
    rest = 1.0 - pull * np.dot(m, u)
    r = masses - m
    q = r / d + (pull * np.dot(u, r) / rest) * u
    value = -0.5 * (np.log(d).sum() + np.log(rest) + np.dot(r, q))
    back = q + 0.5 * q * q - (pull * np.dot(q, m)) * q - 0.5 / d - (0.5 * pull / rest) * u * u
    back = back + (pull * (1.0 + pull * np.dot(u, m) / rest)) * u
    return value, mass * (np.dot(back, tents) - pull * np.dot(m, back))


@dataclass(frozen=True, eq=False)
class NoisyMasses:
    """Tent masses plus discrete Laplace noise: Gaussian in both sampling and noise (docs/theory.md, section 6).

    `T | w ~ N(m, diag m - m m'/n + 2 b^2 I)` with `m = n B p`, `p` proportional to `a exp(w)`, when n is public;
    `T | w ~ N(m, diag m + 2 b^2 I)` with `m = B (a exp(w))` when it is secret.

    Attributes
    ----------
    masses : (K,) array
        Private tent masses T.
    noise_scale : float
        b, in points; zero turns the noise off.
    measure : (V,) array
        Measure of the field's mesh.
    tents : (K, V) array
        B: values of the K tents at the field's V vertices.
    n : int or None
        Public number of points; None when it is secret.
    """

    masses: Floats
    noise_scale: float
    measure: Floats
    tents: Floats
    n: int | None

    @property
    def arguments(self) -> tuple[Floats, Floats, Floats, float, float]:
        """What `noisy_log_density` takes after w."""
        return self.masses, self.measure, self.tents, float(self.n or 0), 2 * self.noise_scale**2

    def expected_masses(self, w: Floats) -> Floats:
        """(..., K) expected tent masses m under fields w (..., V)."""
        mass = self.measure * np.exp(w - w.max(axis=-1, keepdims=True) if self.n is not None else w)
        if self.n is not None:
            mass *= self.n / mass.sum(axis=-1, keepdims=True)
        return mass @ self.tents.T

    def evaluate(self, w: Floats) -> Evaluation:
        """Value, gradient and information root at w."""
        value, gradient = noisy_log_density(w, *self.arguments)
        mass = self.measure * np.exp(w - (w.max() if self.n is not None else 0.0))
        pull = 0.0 if self.n is None else 1.0 / self.n
        if self.n is not None:
            mass *= self.n / mass.sum()
        m = self.tents @ mass
        d = m + 2 * self.noise_scale**2
        u = m / d
        inverse = np.diag(1 / d) + pull * np.outer(u, u) / (1 - pull * (m @ u))
        jacobian = self.tents * mass - pull * np.outer(m, mass)
        # Fisher information of the mean, and (entrywise square) of the covariance's diagonal.
        chol = np.linalg.cholesky(inverse + 0.5 * inverse**2)
        return Evaluation(float(value), gradient, chol.T @ jacobian)
