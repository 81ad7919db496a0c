"""Likelihoods of a log-intensity field given masses at mesh vertices, exact or noisy.

Both see the field only through its vertex values w and the dual-mesh measure a (`Mesh.measure`, times a public offset).
`evaluate` returns what Newton's method needs: the value, its gradient in w, and a root R of the expected information
(`R'R`).
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

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
        Condition on the number of points (equivalently, integrate a flat intercept out): then only the shape of w counts
        and the value is `psi'w - n log sum_j a_j exp(w_j)`.
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
    tents : (K, V) sparse matrix
        B: values of the K tents at the field's V vertices.
    n : int or None
        Public number of points; None when it is secret.
    """

    masses: Floats
    noise_scale: float
    measure: Floats
    tents: sp.csr_array
    n: int | None

    def evaluate(self, w: Floats) -> Evaluation:
        """Value, gradient and information root at w."""
        top = w.max() if self.n is not None else 0.0
        mass = self.measure * np.exp(w - top)
        if self.n is not None:
            mass *= self.n / mass.sum()
        m = self.tents @ mass
        pull = 0.0 if self.n is None else 1.0 / self.n
        d = m + 2 * self.noise_scale**2
        # Inverse of diag(d) - pull m m' by Sherman and Morrison.
        u, rest = m / d, 1 - pull * (m * m / d).sum()
        r = self.masses - m
        q = r / d + pull * u * (u @ r) / rest
        inverse = np.diag(1 / d) + pull * np.outer(u, u) / rest
        value = -0.5 * (np.log(d).sum() + np.log(rest) + r @ q)
        grad_m = q + 0.5 * q * q - pull * (q @ m) * q - 0.5 * np.diag(inverse) + pull * inverse @ m
        jacobian = self.tents.toarray() * mass
        if self.n is not None:
            jacobian -= np.outer(m, mass) / self.n
        chol = np.linalg.cholesky(inverse + 0.5 * inverse**2)
        return Evaluation(float(value), jacobian.T @ grad_m, chol.T @ jacobian)
