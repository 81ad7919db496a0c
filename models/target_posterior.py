"""Posteriors of drawn fields: Gaussian priors, priors of bounded slope, and draws by the proximal sampler."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from dpppsynth.core.arguments import positive
from dpppsynth.core.errors import InputError, QualityError
from dpppsynth.spatial.mesh import Floats, Mesh

# Newton steps; squared Newton decrements at which the mode is found, and below which full steps converge.
STEPS, PRECISE, SAFE = 200, 1e-12, 0.05


@dataclass(frozen=True, eq=False, repr=False)
class FieldPrior:
    """Gaussian prior of the log-intensity at the mesh's vertices, `centre + M z` with standard normal z; public.

    Attributes
    ----------
    centre : (V,) array
        Prior mean.
    basis : (V, r) array
        Factor M; its last column is the intercept's.
    measure : (V,) array
        Integrals of the basis functions, times any offset.
    """

    centre: Floats
    basis: Floats
    measure: Floats

    @classmethod
    def gaussian(cls, root: Floats, measure: Floats, centre: float, sd: float) -> "FieldPrior":
        """Field with covariance `root root'` and an independent intercept `N(centre, sd^2)`."""
        basis = np.column_stack([root, np.full(len(root), sd)])
        return cls(np.full(len(root), centre), basis, measure)

    def posterior(self, masses: Floats) -> "PointPosterior":
        """Posterior given tent masses (V,)."""
        return PointPosterior(self, masses)


@dataclass(frozen=True, eq=False, repr=False)
class PointPosterior:
    """Posterior given exact tent masses: as secret as these masses, with a `repr` that hides them."""

    prior: FieldPrior
    masses: Floats

    def field(self, z: Floats) -> Floats:
        """(..., V) log-intensity of z (..., r)."""
        return self.prior.centre + z @ self.prior.basis.T

    def log_density(self, z: Floats) -> tuple[float, Floats]:
        """Log-density at z (r,) up to a constant, and its gradient (r,)."""
        return log_density(self.prior, self._linear, z)

    def information(self, z: Floats) -> Floats:
        """(r, r) negative Hessian of the log-density at z."""
        return _information(self.prior, z, 1.0)

    def mode(self) -> Floats:
        """(r,) mode; errors as in `maximise`."""
        return maximise(self.prior, self._linear, np.zeros(len(self._linear)))

    @property
    def _linear(self) -> Floats:
        return self.prior.basis.T @ self.masses


def log_density(prior: FieldPrior, linear: Floats, z: Floats, precision: float = 1.0) -> tuple[float, Floats]:
    """Log-density `linear'z - precision |z|^2 / 2 - measure'e^w` at z (r,), and its gradient (r,)."""
    mass = prior.measure * np.exp(prior.centre + prior.basis @ z)
    value = linear @ z - np.full(len(z), precision) @ z**2 / 2 - mass.sum()
    return float(value), linear - precision * z - prior.basis.T @ mass


def maximise(prior: FieldPrior, linear: Floats, start: Floats, precision: float = 1.0) -> Floats:
    """(r,) maximum of `log_density`, by damped Newton steps to solver precision.

    Raises
    ------
    QualityError
        When it is not found; the message shows no figure.
    """

    def value(z: Floats) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return log_density(prior, linear, z, precision)[0]

    z = start
    for _ in range(STEPS):
        here, gradient = log_density(prior, linear, z, precision)
        step = scipy.linalg.solve(_information(prior, z, precision), gradient, assume_a="pos")
        rise = gradient @ step
        if rise < PRECISE:
            return z + step
        share = 1.0
        # Close to the maximum full steps converge, and differences of values are lost in rounding.
        while rise > SAFE and share > 0 and not value(z + share * step) > here + share * rise / 4:
            share /= 2
        z = z + share * step
    msg = "sampler: the posterior mode was not found; take a longer length scale or a smaller sigma."
    raise QualityError(msg)


def _information(prior: FieldPrior, z: Floats, precision: float) -> Floats:
    mass = prior.measure * np.exp(prior.centre + prior.basis @ z)
    return precision * np.eye(len(z)) + prior.basis.T @ (mass[:, None] * prior.basis)


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


# Step size and number of steps: mu grows by a factor 1.004.
ETA, ROUNDS = 0.1, 41


def proximal_draw(
    posterior: PointPosterior, rng: np.random.Generator, *, eta: float = ETA, steps: int = ROUNDS
) -> Floats:
    """(r,) last state z of `z <- prox(z + eta M' masses + sqrt(2 eta) N(0, I))`, from z = 0.

    The proximal map is that of `eta V`, `V(z) = |z|^2 / 2 + measure'e^w`: a contraction by `1 / (1 + eta)`. The masses
    enter as a constant shift.

    Parameters
    ----------
    posterior : PointPosterior
    rng : numpy.random.Generator
        Secret randomness.

    Raises
    ------
    InputError
        For a step size or number of steps out of range.
    QualityError
        When a proximal step is not solved.
    """
    prior = posterior.prior
    _require(eta, steps)
    shift = eta * prior.basis.T @ posterior.masses
    z = np.zeros(len(shift))
    for _ in range(steps):
        y = z + shift + math.sqrt(2 * eta) * rng.standard_normal(len(z))
        z = maximise(prior, y / eta, z, 1 + 1 / eta)
    return z


def proximal_factor(eta: float = ETA, steps: int = ROUNDS) -> float:
    """Ratio of Theorem E's mu to Theorem A's: `sqrt((1 + eta/2) (1 - c^T) / (1 + c^T))`, `c = 1 / (1 + eta)`."""
    _require(eta, steps)
    kept = (1 + eta) ** -steps
    return math.sqrt((1 + eta / 2) * (1 - kept) / (1 + kept))


def _require(eta: float, steps: int) -> None:
    for name, value, default in (("eta", eta, ETA), ("steps", steps, ROUNDS)):
        positive(name, value, rule="be positive and finite", remedy=f"the default is {default}")
