"""Posterior mode and Laplace approximation of a field of sparse precision, given noisy masses.

The information of the masses is as sparse as their tents overlap, but for what a known number of points adds: two
columns, taken into account by the formula of Woodbury. Draws need no root of the posterior precision `Q + J'WJ`: with
standard normal e and f, solving it for `R e + J' W^1/2 f` gives a vector of the right law (perturb and solve).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from dpppsynth.core.errors import QualityError
from dpppsynth.core.workers import in_threads
from dpppsynth.models.laplace_approximation import ratios_along
from dpppsynth.models.likelihood import MassLikelihood
from dpppsynth.models.sparse_fields import SparseField
from dpppsynth.models.sparse_solver import SparseFactor
from dpppsynth.spatial.mesh import Floats, Ints

# Share of the predicted gain that a step must bring.
ENOUGH = 1e-4
HALVINGS = 40
# Most that a step changes the field at a vertex, on the log scale: far from the mode Newton's method overshoots.
LONGEST = 4.0
# Relative error of a Newton step by conjugate gradients, and rounds of these that take less time than a factor.
ROUGH, MOST_ROUNDS = 0.05, 10


class Information:
    """Expected information `J'WJ` of noisy masses about the unknowns of a field.

    Attributes
    ----------
    root : sparse (N, K)
        `(B D A)' W^1/2`: its square is the information but for what a known number of points takes away.
    known : bool
        Whether the number of points is.
    columns : (N, 2) array
    middle : (2, 2) array
        Where it is, `columns middle columns'` is the rest of the information.
    """

    def __init__(self, likelihood: MassLikelihood, prior: SparseField, mass: Floats) -> None:
        _, _, response, n, _ = likelihood.arguments
        means = response @ mass
        weight = np.sqrt(likelihood.precision(means))
        self.root = (
            prior.placement.T @ (scipy.sparse.diags_array(weight) @ response @ scipy.sparse.diags_array(mass)).T
        ).tocsc()
        self.known = n > 0
        if self.known:
            self._weighed, self._share = weight * means, prior.placement.T @ (mass / n)
            self.columns = np.column_stack([self.root @ self._weighed, self._share])
            self.middle = np.array([[0.0, -1.0], [-1.0, self._weighed @ self._weighed]])

    def pull(self, numbers: Floats) -> Floats:
        """(N, k) `J' W^1/2` times numbers (K, k)."""
        out: Floats = self.root @ numbers
        return out - np.outer(self._share, self._weighed @ numbers) if self.known else out

    def square(self, changes: Floats) -> Floats:
        """(k,) information about changes (N, k) of the unknowns."""
        out = ((self.root.T @ changes) ** 2).sum(axis=0)
        if self.known:
            across = self.columns.T @ changes
            out = out + (across * (self.middle @ across)).sum(axis=0)
        return np.asarray(out)

    def times(self, change: Floats) -> Floats:
        """(N,) information times a change (N,) of the unknowns."""
        out = self.root @ (self.root.T @ change)
        return out + self.columns @ (self.middle @ (self.columns.T @ change)) if self.known else out


class PosteriorPrecision:
    """Factor of `Q + J'WJ`."""

    def __init__(self, prior: SparseField, information: Information) -> None:
        self._factor = SparseFactor(prior.precision + information.root @ information.root.T)
        self._known = information.known
        if self._known:
            self._columns = information.columns
            self._solved = self._factor.solve(self._columns)
            self._middle = information.middle
            small = np.linalg.inv(information.middle) + self._columns.T @ self._solved
            self._between = np.linalg.inv(small)
            self._log_det = float(np.log(abs(np.linalg.det(information.middle @ small))))

    @property
    def log_det(self) -> float:
        """Logarithm of the determinant."""
        return self._factor.log_det + (self._log_det if self._known else 0.0)

    def solve(self, right: Floats) -> Floats:
        """Solution (N,) or (N, k)."""
        out = self._factor.solve(right)
        return out - self._solved @ (self._between @ (self._columns.T @ out)) if self._known else out

    def from_white(self, white: Floats) -> Floats:
        """(N,) or (N, k) `S z`, of covariance `S S'`, the inverse of the matrix, where z is white noise."""
        return self._factor.from_white(self._stretched(white))

    def to_white(self, right: Floats) -> Floats:
        """(N,) or (N, k) `S'` times vectors."""
        return self._stretched(self._factor.to_white(right))

    @property
    def whitening(self) -> tuple[Any, ...]:
        """The parts of `from_white`: the triangle of the factor, and (2 or 0, N) axes with what they stretch by."""
        triangle = self._factor.triangle
        axes, stretch = self._axes if self._known else (np.empty((len(triangle[0]), 0)), np.empty(0))
        return *triangle, np.ascontiguousarray(axes.T), stretch

    def _stretched(self, white: Floats) -> Floats:
        """White noise, of the variance that the two columns leave along them."""
        if not self._known:
            return white
        axes, stretch = self._axes
        return white + axes @ ((stretch * (axes.T @ white).T).T)

    @cached_property
    def _axes(self) -> tuple[Floats, Floats]:
        """(N, 2) orthonormal axes in white coordinates, and what to add to the identity along them."""
        axes, across = np.linalg.qr(self._factor.to_white(self._columns))
        values, turned = np.linalg.eigh(across @ self._middle @ across.T)
        return axes @ turned, 1 / np.sqrt(1 + values) - 1


@dataclass(frozen=True, eq=False)
class SparsePosterior:
    """Gaussian approximation of the posterior at its mode.

    Attributes
    ----------
    prior : SparseField
    centre : float
        Prior mean of the field.
    mode : (N,) array
        Mode of the unknowns.
    information : Information
    log_evidence : float
        Laplace approximation of the log marginal likelihood, up to a constant shared by all priors.
    """

    prior: SparseField
    centre: float
    mode: Floats
    information: Information
    precision: PosteriorPrecision
    log_evidence: float

    @property
    def field_mode(self) -> Floats:
        """(V,) field at the mode."""
        return self.field_of(self.mode)

    def field_of(self, unknowns: Floats) -> Floats:
        """(..., V) field of unknowns (..., N)."""
        return np.asarray(self.centre + (self.prior.placement @ unknowns.T).T)

    def draw(self, k: int, rng: np.random.Generator) -> Floats:
        """(k, V) fields drawn from the approximation."""
        return self.drawn(k, rng)[0]

    def drawn(self, k: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """(k, V) fields and their (k, p) effects of covariates, drawn from the approximation."""
        unknowns = self.mode[:, None] + self.deviations(k, rng)
        return self.field_of(unknowns.T), unknowns[self.prior.size - self.prior.effects :].T

    def deviations(self, k: int, rng: np.random.Generator) -> Floats:
        """(N, k) draws of the unknowns less the mode."""
        prior, information = self.prior, self.information
        right = prior.root @ rng.standard_normal((prior.root.shape[1], k))
        right += information.pull(rng.standard_normal((information.root.shape[1], k)))
        return self.precision.solve(right)

    def directions(self, vertices: Ints) -> Floats:
        """(N, m) changes of the unknowns that go with one standard deviation of the field at vertices (m,)."""
        rows = self.prior.placement[vertices].toarray().T
        moved = self.precision.solve(rows)
        return np.asarray(moved / np.sqrt((rows * moved).sum(axis=0)))

    def log_ratios(self, likelihood: MassLikelihood, deviations: Floats) -> Floats:
        """(k,) log posterior over approximation, up to a constant, at deviations (N, k) from the mode."""
        unknowns = (self.mode[:, None] + deviations).T
        values = np.array([log_density(likelihood, self.prior, self.centre, each)[0] for each in unknowns])
        gaussian = (deviations * (self.prior.precision @ deviations)).sum(axis=0)
        return np.asarray(values + (gaussian + self.information.square(deviations)) / 2)

    def log_ratios_along(self, likelihood: MassLikelihood, along: Floats, steps: Floats) -> Floats:
        """(k, s) of the same at multiples (s,) of deviations (N, k)."""
        return ratios_along(self, likelihood, along, steps)


def sparse_posterior(
    likelihood: MassLikelihood,
    prior: SparseField,
    centre: float = 0.0,
    *,
    start: Floats | None = None,
    tolerance: float = 0.5,
    steps: int = 100,
) -> SparsePosterior:
    """Find the mode by Newton steps with expected information and step halving.

    Parameters
    ----------
    likelihood : MassLikelihood
        With sparse tents.
    prior : SparseField
        With an intercept where the number of points is secret.
    centre : float
        Prior mean of the field.
    start : (V,) array, optional
        Field from which to search, such as the mode under another prior; None starts at the centre.
    tolerance : float
        Newton decrement (squared distance to the mode in posterior standard deviations, over all unknowns) at which
        to stop.

    Raises
    ------
    QualityError
        When the mode is not found in `steps` steps.
    """
    unknowns = np.zeros(prior.size) if start is None else prior.unknowns_of(start - centre)
    value, gradient, mass = log_density(likelihood, prior, centre, unknowns)
    along, before = np.zeros(prior.size), (np.zeros(prior.size), np.inf)
    nearby: list[PosteriorPrecision] = []
    for _ in range(steps):
        information = Information(likelihood, prior, mass)
        step = _newton_step(prior, information, gradient, nearby, tolerance)
        gain = float(gradient @ step)
        if gain <= tolerance:
            evidence = value + (prior.log_det - nearby[0].log_det) / 2
            return SparsePosterior(prior, centre, unknowns, information, nearby[0], evidence)
        # Hard data bend otherwise than expected: conjugate directions (Polak & Ribiere) do not go to and fro.
        along = step + max(0.0, (gain - float(before[0] @ step)) / before[1]) * along
        along = along if gradient @ along > 0 else step
        before = gradient, gain
        unknowns, (value, gradient, mass) = _line_search(likelihood, prior, centre, unknowns, value, gradient, along)
    msg = "inference: the posterior mode of the field was not found; take a coarser mesh or another range."
    raise QualityError(msg)


def _newton_step(
    prior: SparseField, information: Information, gradient: Floats, nearby: list[PosteriorPrecision], tolerance: float
) -> Floats:
    """Newton step (N,) by the factor in `nearby`, of a precision nearby; at the mode one of its own takes its place."""
    if nearby:
        from scipy.sparse.linalg import LinearOperator, cg

        (near,) = nearby
        size = (prior.size, prior.size)
        whole = LinearOperator(size, lambda change: prior.precision @ change + information.times(change), dtype=float)
        roughly = LinearOperator(size, near.solve, dtype=float)
        step, failed = cg(whole, gradient, rtol=ROUGH, maxiter=MOST_ROUNDS, M=roughly)
        if not failed and gradient @ step > tolerance:
            return np.asarray(step)
        # Factors are large: the old one makes room for the new one.
        del near, roughly
        nearby.clear()
    nearby.append(PosteriorPrecision(prior, information))
    return nearby[0].solve(gradient)


def _line_search(
    likelihood: MassLikelihood,
    prior: SparseField,
    centre: float,
    unknowns: Floats,
    value: float,
    gradient: Floats,
    along: Floats,
) -> tuple[Floats, tuple[float, Floats, Floats]]:
    """Unknowns (N,) along a direction (N,) where the log-posterior is higher, and what `log_density` gives there."""
    slope = float(gradient @ along)
    length = min(1.0, LONGEST / float(np.abs(prior.placement @ along).max()))
    for _ in range(HALVINGS):
        trial = unknowns + length * along
        there = log_density(likelihood, prior, centre, trial)
        if there[0] >= value + ENOUGH * slope * length:
            break
        length /= 2
    return trial, there


def log_density(
    likelihood: MassLikelihood, prior: SparseField, centre: float, unknowns: Floats
) -> tuple[float, Floats, Floats]:
    """Log-posterior of the unknowns, its gradient (N,), and the expected masses (V,) at the vertices."""
    observed, _, response, n, shift = likelihood.arguments
    mass = likelihood.vertex_masses(centre + prior.placement @ unknowns)
    value, pull = likelihood.law(response @ mass, observed, shift)
    slope = response.T @ pull
    if n > 0:
        slope = slope - (slope @ mass) / n
    weighed = prior.precision @ unknowns
    return float(value - unknowns @ weighed / 2), prior.placement.T @ (mass * slope) - weighed, mass


# Share of its mass at the mode that a tent keeps at least, and times the fields are bent.
LEAST, ROUNDS = 0.05, 2
# Fields that are bent at once.
TOGETHER = 4


class ExpectedMasses(Protocol):
    """Masses under fields."""

    @property
    def n(self) -> float | None:
        """Known number of points."""

    def vertex_masses(self, w: Floats) -> Floats:
        """(..., V) expected masses at the field's vertices under fields w (..., V)."""


def kept_masses(
    likelihood: ExpectedMasses,
    mode: Floats,
    fields: Floats,
    tents: "scipy.sparse.csr_array",
    rule: "tuple[scipy.sparse.csr_array, Floats]",
) -> Floats:
    """(k, V) fields drawn about a mode (V,), corrected tent by tent to the masses of the approximation.

    In a field finer than the tents most of a draw's variance lies within tents, of which nothing is known. Its
    exponential puts mass where that variance is largest. And masses that are taken at the vertices are not quite those
    of a field that is linear between them, which shows where many points leave little uncertainty. The approximation
    itself says what the masses are: they change by `J` times the change of the field, to first order. To each field is
    added the tents' interpolation of the logarithm of that mass over the one found by a rule of integration.

    Parameters
    ----------
    likelihood : MassLikelihood or other masses of a field
    mode : (V,) array
    fields : (k, V) array
    tents : (K, V) sparse
        Shares of the vertices' masses in the tents: the likelihood's own, or wide B-splines.
    rule : (P, V) sparse, (P,) array
        Basis functions at the points of the rule, and the weights of these.
    """
    at_mode = likelihood.vertex_masses(mode)
    masses = tents @ at_mode

    def bent(some: Floats) -> Floats:
        moved = (some - mode) * at_mode
        if likelihood.n is not None:
            moved -= np.outer(moved.sum(axis=1) / likelihood.n, at_mode)
        wanted = np.maximum(masses + (tents @ moved.T).T, LEAST * masses)
        return with_masses(some, wanted, tents, rule, likelihood.n)

    return np.concatenate([fields[:0], *in_threads(bent, in_parts(fields))])


def in_parts(fields: NDArray[Any]) -> list[NDArray[Any]]:
    """Fields (k, V) in parts that are handled at once."""
    return [fields[start : start + TOGETHER] for start in range(0, len(fields), TOGETHER)]


def with_masses(
    fields: Floats,
    wanted: Floats,
    tents: "scipy.sparse.csr_array",
    rule: "tuple[scipy.sparse.csr_array, Floats]",
    total: float | None,
) -> Floats:
    """(k, V) fields, corrected tent by tent to masses (k, K) or (K,), nearly; integrals as `integrals` has them."""
    for _ in range(ROUNDS):
        found = (tents @ integrals(fields, rule, total).T).T
        # Tents that only touch the domain have no mass.
        ratio = np.divide(wanted, found, out=np.ones_like(found), where=found > 0)
        fields = fields + (tents.T @ np.log(ratio, out=np.zeros_like(ratio), where=ratio > 0).T).T
    return fields


def integrals(fields: Floats, rule: "tuple[scipy.sparse.csr_array, Floats]", total: float | None) -> Floats:
    """(k, V) integrals of exp of the fields (k, V) times each basis function, with a total where there is one."""
    basis, weight = rule
    exponents = basis @ fields.T
    if total is not None:
        exponents -= exponents.max(axis=0)
    masses = (basis.T @ (weight[:, None] * np.exp(exponents))).T
    return masses if total is None else masses * (total / masses.sum(axis=1, keepdims=True))
