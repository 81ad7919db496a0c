"""Likelihoods of a log-intensity field given a statistic of the points, exact or noisy.

They see the field only through its vertex values w and the dual-mesh measure a (`Mesh.measure`, times a public offset),
which give the expected masses at the vertices. `evaluate` returns what Newton's method needs: the value, its gradient
in w, and a root R of the information (`R'R`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import scipy

from dpppsynth.core.errors import InputError
from dpppsynth.spatial.mesh import Floats

Law = Callable[[Floats, Floats, float], tuple[float, Floats]]
# Laplace noise has a corner, where Newton's method stalls: so much of a normal law is added to a scale of 1. Of the
# information of the noise, 1, this is left.
SMOOTHING, SMOOTHED_INFORMATION = 0.5, 0.5886182530368859
# Of the law of counts in Laplace noise: places at which a score is looked at between two means, arguments below which
# its terms would overflow, means in scales of the noise that pass for zero, and standard deviations of a count from
# which on the score is that of the noise.
PLACES, LEAST_ARGUMENT, EMPTY, STEEP = 16, -25.0, 1e-9, 4.0
# Rate at which noise loses the information of its law as means grow, in roots of means over its scale.
LAPLACE_BEND = 1.25
NODES, WEIGHTS = (half[:, None] / 2 for half in np.polynomial.legendre.leggauss(PLACES))


class Evaluation(NamedTuple):
    """Log-likelihood, its gradient (V,) and a root (K, V) of the information matrix."""

    value: float
    gradient: Floats
    root: Floats


def shifted_poisson(m: Floats, observed: Floats, shift: float) -> tuple[float, Floats]:
    """Log-density of `observed` under a Poisson law with mean `m + shift`, and its gradient in m."""
    return np.dot(observed, np.log(m + shift)) - m.sum(), observed / (m + shift) - 1.0


def standard_normal(m: Floats, observed: Floats, shift: float) -> tuple[float, Floats]:
    """Log-density of `observed` about m with unit variances, and its gradient in m."""
    residual = observed - m - shift
    return -np.dot(residual, residual) / 2, residual


def smoothed_laplace(m: Floats, observed: Floats, shift: float) -> tuple[float, Floats]:
    """Log-density of `observed` about m, up to a constant, and its gradient in m.

    The law is that of a Laplace variable of scale 1 plus a normal one of standard deviation `SMOOTHING`.
    """
    residual = observed - m - shift
    above = scipy.special.log_ndtr(residual / SMOOTHING - SMOOTHING) - residual
    below = scipy.special.log_ndtr(-residual / SMOOTHING - SMOOTHING) + residual
    return np.logaddexp(above, below).sum(), np.tanh((above - below) / 2)


def counts_score(m: Floats, observed: Floats, scale: float) -> Floats:
    """(..., K) slope in m of the log-density of `observed`: Laplace noise about a normal count of mean and variance m.

    The variance is held: what it would tell of m by itself, a Poisson count does not. The slope lies within
    `1 / scale`. With little noise it is that of a Poisson count, with few points that of the noise.
    """
    spread, far = np.sqrt(m / 2) / scale, (observed - m) / np.sqrt(2 * m)
    above = scipy.special.erfcx(np.maximum(spread - far, LEAST_ARGUMENT))
    below = scipy.special.erfcx(np.maximum(spread + far, LEAST_ARGUMENT))
    return np.asarray((above - below) / (above + below) / scale)


def counts_in_laplace_noise(m: Floats, observed: Floats, shift: float) -> tuple[float, Floats]:
    """Quasi-log-likelihood of means m given counts in Laplace noise, up to a constant, and its gradient in m.

    `shift` is the noise's scale.
    """
    m = np.maximum(m, EMPTY * shift)
    return float(counts_values(m, observed, shift).sum()), counts_score(m, observed, shift)


def counts_values(m: Floats, observed: Floats, scale: float) -> Floats:
    """(K,) integrals of `counts_score` to m, from what is observed, or from the scale if that is larger."""
    first = np.maximum(observed, scale)
    # Means below, from which so much must be noise that the score is all but 1 / scale.
    steep = 2 * (1 + 1 / scale)
    least = ((np.sqrt(STEEP**2 + 2 * steep * np.maximum(observed, 0.0)) - STEEP) / steep) ** 2
    last = np.maximum(m, least)
    # Equal steps on a scale on which means below `bend` lie evenly, and larger ones their logarithms.
    bend = scale * np.sqrt(first)
    length = np.log((last + bend) / (first + bend))
    between = (first + bend) * np.exp((NODES + 0.5) * length)
    scores = counts_score(np.maximum(between - bend, EMPTY * scale), observed, scale)
    return np.asarray((WEIGHTS * scores * between * length).sum(axis=0) - (last - m) / scale)


def mass_log_density(
    law: Law, w: Floats, observed: Floats, measure: Floats, response: Floats, n: float, shift: float
) -> tuple[float, Floats]:
    """Log-density of a statistic with mean `response @ (expected masses)` given the field w, and its gradient in w.

    Written, like the laws, in the common subset of NumPy and Numba, which compiles these very functions. `n` is 0 where
    the number of points is secret.
    """
    mass = measure * np.exp(w - (w.max() if n > 0 else 0.0))
    if n > 0:
        mass = mass * (n / mass.sum())
    value, pull = law(np.dot(response, mass), observed, shift)
    gradient = np.dot(pull, response)
    if n > 0:
        gradient = gradient - np.dot(gradient, mass) / n
    return value, mass * gradient


def log_posterior(
    law: Law,
    basis: Floats,
    centre: float,
    observed: Floats,
    measure: Floats,
    response: Floats,
    n: float,
    shift: float,
    z: Floats,
) -> tuple[float, Floats]:
    """Log-density, up to a constant, of standard normal z behind the field `centre + basis z`, and its gradient."""
    value, gradient = mass_log_density(law, np.dot(basis, z) + centre, observed, measure, response, n, shift)
    return value - np.dot(z, z) / 2, np.dot(gradient, basis) - z


# Compiled code names the law that it calls: one that is handed over could not be kept on disk.
def shifted_poisson_posterior(
    basis: Floats, centre: float, observed: Floats, measure: Floats, response: Floats, n: float, shift: float, z: Floats
) -> tuple[float, Floats]:
    """`log_posterior` of `shifted_poisson`."""
    return log_posterior(shifted_poisson, basis, centre, observed, measure, response, n, shift, z)


def standard_normal_posterior(
    basis: Floats, centre: float, observed: Floats, measure: Floats, response: Floats, n: float, shift: float, z: Floats
) -> tuple[float, Floats]:
    """`log_posterior` of `standard_normal`."""
    return log_posterior(standard_normal, basis, centre, observed, measure, response, n, shift, z)


LOG_POSTERIORS = {"shifted_poisson": shifted_poisson_posterior, "standard_normal": standard_normal_posterior}


def require_shapes(numbers: Floats, measure: Floats, tents: Floats, *, of: str) -> None:
    """Refuse a matrix that does not have a row for each number and a column for each vertex, with an InputError."""
    needed = len(numbers), len(measure)
    if np.shape(tents) != needed:
        msg = (
            f"tents: has shape {np.shape(tents)}, and {needed[0]} {of} on a mesh of {needed[1]} vertices (measure) "
            f"need {needed}; of a release `release.statistic.design(mesh)` has it, and "
            "`release.statistic.likelihood(mesh)` is the whole likelihood"
        )
        raise InputError(msg)


def _other_rows(rows: int, values: int) -> InputError:
    """Refusal of a basis with another number of rows than the likelihood has values of a field."""
    remedy = "take `factor(covariance.matrix(mesh))` of the same mesh"
    if rows and values % rows == 0:
        kinds = values // rows
        remedy += (
            f". Where points have marks, {values} = {rows} vertices x {kinds} types and instants: give each its rows, "
            f"such as `np.tile(basis, ({kinds}, 1))`, or `np.kron(np.eye({kinds}), basis)` for a field of each"
        )
    msg = f"basis: has {rows} rows, and the likelihood's mesh {values} vertices (measure); {remedy}"
    return InputError(msg)


class MassLikelihood:
    """Base: K independent numbers whose means are linear in the expected masses at the field's vertices.

    Attributes
    ----------
    measure : (V,) array
        Measure of the field's mesh.
    tents : (K, V) array, dense or sparse
        B: values of the statistic's K tents at the field's V vertices, or shares of these in its K cells.
    n : float or None
        Public number of points; None when it is secret.
    """

    measure: Floats
    tents: Floats
    n: float | None

    def with_basis(self, basis: Floats) -> "MassLikelihood":
        """The likelihood with dense shares, as densities of `centre + basis z` take it.

        Raises
        ------
        InputError
            When the basis is no array (V, r) with a row for each vertex.
        """
        if not isinstance(basis, np.ndarray) or basis.ndim != 2 or basis.dtype.kind != "f":
            msg = "basis: must be an array (V, r) of numbers; `factor(covariance.matrix(mesh))` gives one."
            raise InputError(msg)
        if len(basis) != len(self.measure):
            raise _other_rows(len(basis), len(self.measure))
        this: Any = self
        sparse = scipy.sparse.issparse(this.tents)
        return cast(MassLikelihood, replace(this, tents=this.tents.toarray())) if sparse else self

    @staticmethod
    def law(m: Floats, observed: Floats, shift: float) -> tuple[float, Floats]:
        """Log-density of the numbers given their means, and its gradient in the means."""
        raise NotImplementedError

    @property
    def arguments(self) -> tuple[Floats, Floats, Floats, float, float]:
        """Arguments of `mass_log_density` after w: numbers, measure, their response (K, V) to masses, n or 0, shift."""
        raise NotImplementedError

    def precision(self, means: Floats) -> Floats:
        """(K,) inverse variances of the numbers, given their means."""
        raise NotImplementedError

    def vertex_masses(self, w: Floats) -> Floats:
        """(..., V) expected masses at the field's vertices under fields w (..., V)."""
        if self.n is None:
            return self.measure * np.exp(w)
        mass = self.measure * np.exp(w - w.max(axis=-1, keepdims=True))
        return mass * (self.n / mass.sum(axis=-1, keepdims=True))

    def expected_masses(self, w: Floats) -> Floats:
        """(..., K) expected tent masses m under fields w (..., V)."""
        return self.vertex_masses(w) @ self.tents.T

    def log_density(self, w: Floats) -> tuple[float, Floats]:
        """Value, up to a constant, and gradient (V,) at w."""
        return mass_log_density(self.law, w, *self.arguments)

    def evaluate(self, w: Floats) -> Evaluation:
        """Value, gradient and information root at w: `J' diag(precision) J`, J the slope of the means in w."""
        value, gradient = self.log_density(w)
        mass, response = self.vertex_masses(w), self.arguments[2]
        means = response @ mass
        jacobian = response * mass
        if self.n is not None:
            jacobian -= np.outer(means, mass) / self.n
        return Evaluation(float(value), gradient, jacobian * np.sqrt(self.precision(means))[:, None])


@dataclass(frozen=True, eq=False)
class NoisyMasses(MassLikelihood):
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
    measure, tents, n
        As in `MassLikelihood`.
    own_variance : float, optional
        v, where the noise is another than Laplace noise of this scale, such as a truncated one.

    Raises
    ------
    InputError
        When `tents` has not a row for each mass and a column for each vertex.
    """

    masses: Floats
    noise_scale: float
    measure: Floats
    tents: Floats
    n: float | None
    own_variance: float | None = None
    law = staticmethod(shifted_poisson)

    def __post_init__(self) -> None:
        require_shapes(self.masses, self.measure, self.tents, of="masses")

    @property
    def noise_variance(self) -> float:
        """v: variance of the noise, in points."""
        return 2 * self.noise_scale**2 if self.own_variance is None else self.own_variance

    @classmethod
    def exact(cls, psi: Floats, measure: Floats) -> "NoisyMasses":
        """The LGCP likelihood `psi'w - n log sum_j a_j exp(w_j)` of unprotected tent masses, flat intercept."""
        return cls(psi, 0.0, measure, np.eye(len(psi)), float(psi.sum()))

    @property
    def arguments(self) -> tuple[Floats, Floats, Floats, float, float]:
        shift = self.noise_variance
        known = 0.0 if self.n is None else (self.masses.sum() - self.n) / len(self.masses)
        return self.masses - known + shift, self.measure, self.tents, float(self.n or 0), shift

    def precision(self, means: Floats) -> Floats:
        return 1 / (means + self.noise_variance)

    def slopes(self, means: Floats) -> Floats:
        """(..., K) slopes of the log-density in the means (..., K)."""
        observed, *_, shift = self.arguments
        return np.asarray(observed / (means + shift) - 1.0)

    @property
    def own_law(self) -> "NoisyMasses":
        """The same masses with the law of their noise, where that is known to be of Laplace."""
        known = self.own_variance is None and self.noise_scale > 0
        return MassesInLaplaceNoise(*self.fields) if known else self

    @property
    def fields(self) -> tuple[Floats, float, Floats, Floats, float | None]:
        """Masses, scale of the noise, measure, tents and n."""
        return self.masses, self.noise_scale, self.measure, self.tents, self.n


@dataclass(frozen=True, eq=False)
class MassesInLaplaceNoise(NoisyMasses):
    """Tent masses plus Laplace noise, whose law is told from a normal one (docs/theory/sparse_field.md, section 2).

    Where tents hold few points, Laplace noise tells twice as much of their means as a normal law of its variance, and
    a single large number less. Without noise this is the Poisson likelihood, as of `NoisyMasses`.
    """

    law = staticmethod(counts_in_laplace_noise)

    @property
    def arguments(self) -> tuple[Floats, Floats, Floats, float, float]:
        observed, measure, tents, n, shift = super().arguments
        return observed - shift, measure, tents, n, self.noise_scale

    def slopes(self, means: Floats) -> Floats:
        observed, *_, scale = self.arguments
        return counts_score(np.maximum(means, EMPTY * scale), observed, scale)

    def precision(self, means: Floats) -> Floats:
        """(K,) information of `counts_score`, to two parts in a hundred."""
        scale = self.noise_scale
        told = np.exp(-LAPLACE_BEND * np.sqrt(np.maximum(means, 0.0)) / scale)
        return np.asarray(1 / (means + scale**2 * (2 - told)))


@dataclass(frozen=True, eq=False)
class NoisyField(MassLikelihood):
    """A field statistic `R = M'psi + N(0, b^2 I)`, as a Gaussian likelihood (docs/theory/field.md, section 5).

    With G = M'B and q the expected masses at the field's vertices, R has mean `G q` and covariance
    `C = b^2 I + G (diag q - q q'/n) G'`, without the last term where n is secret. C is held at an estimate of q, so
    that R enters whitened, as `C^-1/2 R`, and the likelihood costs no more than a matrix product.

    Attributes
    ----------
    values : (r,) array
        R, or what is left of it in the directions of M's columns.
    factor : (K, r) array
        M.
    noise_sd : float
        Standard deviation b of the noise.
    measure, tents, n
        As in `MassLikelihood`.
    estimate : (V,) array
        The q at which C is taken.

    Raises
    ------
    InputError
        When `tents` has not a row for each of M's, and a column for each vertex.
    """

    values: Floats
    factor: Floats
    noise_sd: float
    measure: Floats
    tents: Floats
    n: float | None
    estimate: Floats
    law = staticmethod(standard_normal)

    def __post_init__(self) -> None:
        require_shapes(self.factor, self.measure, self.tents, of="rows of factor")

    def at(self, estimate: Floats) -> "NoisyField":
        """The same likelihood with its covariance taken at other masses (V,)."""
        return replace(self, estimate=estimate)

    @cached_property
    def arguments(self) -> tuple[Floats, Floats, Floats, float, float]:
        response = self.factor.T @ self.tents
        covariance = self.noise_sd**2 * np.eye(len(response)) + (response * self.estimate) @ response.T
        if self.n is not None:
            mean = response @ self.estimate
            covariance -= np.outer(mean, mean) / self.n
        both = np.column_stack([self.values, response])
        white = scipy.linalg.solve_triangular(np.linalg.cholesky(covariance), both, lower=True)
        return white[:, 0].copy(), self.measure, white[:, 1:].copy(), float(self.n or 0), 0.0

    def precision(self, means: Floats) -> Floats:
        return np.ones_like(means)


@dataclass(frozen=True, eq=False)
class NoisyCounts(MassLikelihood):
    """Sums of expected masses plus Laplace noise, each of its own scale, such as counts on several levels of cells.

    The noise is all that lies between a sum and its count: the field tells of the points themselves, not of what they
    might have been. So counts of nested cells are independent given the field. Laplace noise tells twice as much of a
    field as normal noise of its variance.

    Attributes
    ----------
    counts : (K,) array
        Noised counts.
    scales : (K,) array
        Scales of their noise.
    measure : (V,) array
    tents : (K, V) array, dense or sparse
        Shares of the field's V vertices in the sums.
    n : float or None
    """

    counts: Floats
    scales: Floats
    measure: Floats
    tents: Floats
    n: float | None = None
    law = staticmethod(smoothed_laplace)
    # Of noise of scale 1.
    information: ClassVar[float] = SMOOTHED_INFORMATION

    @cached_property
    def arguments(self) -> tuple[Floats, Floats, Floats, float, float]:
        response = scipy.sparse.diags_array(1 / self.scales) @ self.tents
        return self.counts / self.scales, self.measure, response, float(self.n or 0), 0.0

    def precision(self, means: Floats) -> Floats:
        return np.full_like(means, self.information)


class NormalCounts(NoisyCounts):
    """`NoisyCounts` with normal noise, whose `scales` are standard deviations, such as unbiased estimates of shares."""

    law = staticmethod(standard_normal)
    information = 1.0
