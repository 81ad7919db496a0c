"""Laplace approximation of dense posteriors, and checks of any Laplace approximation by its draws."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from dpppsynth.core.arguments import instance
from dpppsynth.core.errors import QualityError
from dpppsynth.core.wording import mention
from dpppsynth.models.likelihood import MassLikelihood
from dpppsynth.spatial.mesh import Floats, Ints

# Prior-whitened coordinates are well scaled; the Newton decrement decides in the end whether the mode is good enough.
TINY = np.finfo(float).tiny
SEARCH = {"maxiter": 2000, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-9}


@dataclass(frozen=True, eq=False)
class LaplacePosterior:
    """Gaussian approximation of the posterior at its mode.

    Attributes
    ----------
    centre : (V,) array
        Prior mean c of the field.
    basis : (V, r) array
        Factor M of the prior covariance.
    mode : (r,) array
        Mode of z.
    root : (K, r) array
        Root of the information in z at the mode: the posterior precision is `I + root' root`.
    log_evidence : float
        Laplace approximation of the log marginal likelihood, up to a constant shared by all M.
    """

    centre: Floats
    basis: Floats
    mode: Floats
    root: Floats
    log_evidence: float

    @property
    def field_mode(self) -> Floats:
        """(V,) field at the mode."""
        return self.centre + self.basis @ self.mode

    def rotated_basis(self) -> Floats:
        """(V, r) factor of the same prior covariance in whose coordinates the posterior precision is diagonal."""
        return np.ascontiguousarray(self.basis @ np.linalg.eigh(self.root.T @ self.root)[1])

    def draw(self, k: int, rng: np.random.Generator) -> Floats:
        """(k, V) fields drawn from the approximation.

        A prior draw corrected by the residual of noisy pseudo-observations: only a (K, K) system is solved.
        """
        return self.centre + (self.basis @ (self.mode[:, None] + self.deviations(k, rng))).T

    def deviations(self, k: int, rng: np.random.Generator) -> Floats:
        """(r, k) draws of z less the mode."""
        z = rng.standard_normal((len(self.mode), k))
        misfit = self.root @ z + rng.standard_normal((len(self.root), k))
        return np.asarray(z - self.root.T @ scipy.linalg.cho_solve(_small_system(self.root), misfit))

    def directions(self, vertices: Ints) -> Floats:
        """(r, m) changes of z that go with one standard deviation of the field at vertices (m,)."""
        rows = self.basis[vertices].T
        moved = rows - self.root.T @ scipy.linalg.cho_solve(_small_system(self.root), self.root @ rows)
        # Some vertices have no prior variance.
        return np.asarray(moved / np.sqrt(np.maximum((rows * moved).sum(axis=0), TINY)))

    def log_ratios(self, likelihood: MassLikelihood, deviations: Floats) -> Floats:
        """(k,) log posterior over approximation, up to a constant, at deviations (r, k) from the mode."""
        z = self.mode[:, None] + deviations
        values = np.array([likelihood.log_density(self.centre + self.basis @ each)[0] for each in z.T])
        gaussian = (deviations**2).sum(axis=0) + ((self.root @ deviations) ** 2).sum(axis=0)
        return np.asarray(values - (z**2).sum(axis=0) / 2 + gaussian / 2)

    def log_ratios_along(self, likelihood: MassLikelihood, along: Floats, steps: Floats) -> Floats:
        """(k, s) of the same at multiples (s,) of deviations (r, k)."""
        return ratios_along(self, likelihood, along, steps)


def ratios_along(fit: Any, likelihood: Any, along: Floats, steps: Floats) -> Floats:
    """(k, s) log ratios of a fit at multiples (s,) of deviations (r, k)."""
    ratios = fit.log_ratios(likelihood, np.einsum("rm,s->rms", along, steps).reshape(len(along), -1))
    return np.asarray(ratios.reshape(-1, len(steps)))


def _small_system(root: Floats) -> tuple[Floats, bool]:
    """Cholesky factor of `I + root root'`, through which the precision `I + root' root` is inverted (Woodbury)."""
    return scipy.linalg.cho_factor(np.eye(len(root)) + root @ root.T, lower=True)


def laplace_posterior(
    likelihood: MassLikelihood,
    basis: Floats,
    centre: Floats | float = 0.0,
    *,
    tolerance: float = 1e-6,
    steps: int = 500,
) -> LaplacePosterior:
    """Find the mode by L-BFGS, then polish it by Newton steps with expected information and step halving.

    Parameters
    ----------
    likelihood : NoisyMasses or NoisyField
    basis : (V, r) array
        Factor M of the prior covariance.
    centre : float or (V,) array
        Prior mean of the field.
    tolerance : float
        Newton decrement (squared distance to the mode in posterior standard deviations) at which to stop.

    Raises
    ------
    QualityError
        When the mode is not found in `steps` Newton steps.
    """
    instance("likelihood", likelihood, MassLikelihood, "NoisyMasses.exact(masses, measure) is one")
    likelihood = likelihood.with_basis(basis)
    c = np.broadcast_to(np.asarray(centre, dtype=float), basis.shape[:1])

    def loss(z: Floats) -> tuple[float, Floats]:
        value, gradient = likelihood.log_density(c + basis @ z)
        return float(z @ z / 2 - value), z - basis.T @ gradient

    z = scipy.optimize.minimize(loss, np.zeros(basis.shape[1]), jac=True, method="L-BFGS-B", options=SEARCH).x
    here = likelihood.evaluate(c + basis @ z)
    for _ in range(steps):
        gradient = basis.T @ here.gradient - z
        root = here.root @ basis
        small = _small_system(root)
        log_posterior = here.value - z @ z / 2
        step = gradient - root.T @ scipy.linalg.cho_solve(small, root @ gradient)
        if gradient @ step <= tolerance:
            evidence = log_posterior - np.log(np.diag(small[0])).sum()
            return LaplacePosterior(c, basis, z, root, float(evidence))
        for halving in range(40):
            trial = z + step * 0.5**halving
            there = likelihood.evaluate(c + basis @ trial)
            if there.value - trial @ trial / 2 >= log_posterior:
                break
        z, here = trial, there
    msg = f"inference: the posterior mode was not found; use {mention('inference', repr('nuts'))}, or a coarser mesh."
    raise QualityError(msg)


# Places that are looked at.
PLACES = 8
NOMINAL = 0.9
# Standard deviations from the mode at which the posterior is looked at, and ends of the interval of 90 %.
STEPS = np.linspace(-4.0, 4.0, 9)
END = 1.6448536269514722
# Logarithms of weights that differ by less are the same but for rounding.
ALIKE = 1e-6
FINE = np.linspace(-4.0, 4.0, 1601)


@dataclass(frozen=True)
class ApproximationCheck:
    """`pareto_k` of weights of whole fields; `profile`, the worst probability of a nominal 90 % interval at a place."""

    pareto_k: float
    profile: float


def check_approximation(
    fit: Any, likelihood: Any, vertices: int, draws: int, rng: np.random.Generator, known: Any = None
) -> ApproximationCheck:
    """Check a `LaplacePosterior` or `SparsePosterior` by some draws, and at some of its vertices.

    Few draws say little about large weights: the shape comes out too small rather than too large. Draws may be `known`,
    as deviations from the mode.
    """
    weights = fit.log_ratios(likelihood, fit.deviations(draws, rng) if known is None else known[:, :draws])
    along = fit.directions(rng.choice(vertices, min(PLACES, vertices), replace=False))
    inside = held(fit.log_ratios_along(likelihood, along, STEPS))
    return ApproximationCheck(pareto_k(weights), float(inside[np.argmax(np.abs(inside - NOMINAL))]))


def held(log_ratios: Floats) -> Floats:
    """(m,) probability of the nominal 90 % interval under densities whose ratios (m, 9) to the normal are given."""
    curve = scipy.interpolate.CubicSpline(STEPS, log_ratios, axis=1)(FINE) - FINE**2 / 2
    density = np.exp(curve - curve.max(axis=1, keepdims=True))
    return np.asarray(density[:, np.abs(FINE) <= END].sum(axis=1) / density.sum(axis=1))


def pareto_k(log_weights: Floats) -> float:
    """Shape of the generalised Pareto law of the largest importance weights (k,); above 0.7 they are of no use.

    The estimator of Zhang & Stephens (2009) with the prior of Vehtari et al. (2024). ArviZ has it in other places in
    every version, and takes two seconds to load. Laws that rise to their end have shapes of -1 and below, which are all
    told as -1, as is that of weights which differ by rounding alone.
    """
    ordered = np.sort(log_weights)
    ordered = ordered - ordered[-1]
    if ordered[0] > -ALIKE:
        return -1.0
    tail = int(np.ceil(min(0.2 * len(ordered), 3 * np.sqrt(len(ordered)))))
    above = np.exp(ordered[-tail:]) - np.exp(ordered[-tail - 1])
    above = above[above > 0]
    if len(above) < 5:
        return float("inf")
    size, quarter = len(above), above[int(len(above) / 4 + 0.5) - 1]
    count = 30 + int(np.sqrt(size))
    theta = (1 - np.sqrt(count / (np.arange(1, count + 1) - 0.5))) / (3 * quarter) + 1 / above[-1]
    shape = np.log1p(-theta[:, None] * above).mean(axis=1)
    profile = size * (np.log(-theta / shape) - shape - 1)
    weight = np.exp(profile - profile.max())
    best = float((theta * weight).sum() / weight.sum())
    k = float(np.log1p(-best * above).mean())
    return max((size * k + 5) / (size + 10), -1.0)
