"""Guarantees of one posterior draw of a log-Gaussian Cox process, from covariance parameters alone.

Theorems A, D and E; proofs in docs/theory/posterior_draw.md. Moving a point multiplies the posterior by
`exp(-(Y(x) - Y(x')))`, which is worth no more than a Gaussian mechanism of parameter `sd(Y(x) - Y(x'))`, for every
pattern.
"""

import math
from collections.abc import Callable

import numpy as np

from dpppsynth.core.arguments import instance, one_of, positive, probability, real, shown
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.mechanisms.lgcp.bound.increments import increments, point_sd
from dpppsynth.models.covariances import Covariance, covariance_matrix
from dpppsynth.models.target_posterior import proximal_factor
from dpppsynth.privacy.bounds import assumptions
from dpppsynth.privacy.catalogue import REALS, SEED, Code
from dpppsynth.privacy.guarantee import Curve, Guarantee, on_ground, on_map
from dpppsynth.privacy.profiles import GaussianDP, PureDP
from dpppsynth.privacy.relations import AddRemove, CappedRelation, ReplaceOne, as_relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Mesh

FIXED = "public-field-and-sampler"
SILENT = "secret-diagnostics"
GENTLE = "bounded-slope"
# Budgets are rounded down by more than the arithmetic can lose.
DOWN = 1 - 1e-12
SAMPLER = {
    "exact": ("exact-draw", REALS, SEED),
    "nuts": (
        "chain-mixed",
        "chain-diagnostics-elsewhere",
        "chain-seed-secret",
    ),
    "proximal": ("proximal-steps-solved", REALS, SEED),
}


def posterior_mu(
    mesh: Mesh, covariance: Covariance, relation: CappedRelation | float, *, intercept_sd: float | None = None
) -> float:
    """Gaussian parameter of one exact posterior draw: largest prior sd of the change by one person's points.

    Parameters
    ----------
    mesh : Mesh
    covariance : Covariance
        Prior covariance of the field; anything that dominates the one sampled.
    relation : CappedRelation or float
        Neighbours; a number is the privacy radius of `AlphaNeighbours`.
    intercept_sd : float, optional
        Standard deviation of the Gaussian intercept; needed under `AddRemove`.

    Raises
    ------
    InputError
        Under `AddRemove` without a Gaussian intercept.
    """
    relation = as_relation(relation)
    matrix = covariance_matrix(covariance, mesh)
    if isinstance(relation, AddRemove):
        return relation.max_points_per_person * math.hypot(_positive_sd(intercept_sd), point_sd(matrix))
    reach = on_map(relation, mesh.domain).reach
    return relation.max_points_per_person * increments(mesh, matrix, reach).within(reach)


def theorem_a(
    mesh: Mesh,
    covariance: Covariance,
    relation: CappedRelation | float,
    *,
    delta: float,
    intercept_sd: float | None = None,
    sampler: str = "exact",
) -> Guarantee:
    """Guarantee of one posterior draw, for every pattern: Theorem A, or Theorem E for the proximal sampler.

    Parameters
    ----------
    mesh, covariance, relation, intercept_sd
        As in `posterior_mu`.
    delta : float
        The delta at which the guarantee is quoted; strictly between 0 and 1.
    sampler : {"exact", "nuts", "proximal"}
        Sampler of the draw, which decides the assumptions.
    """
    relation = as_relation(relation)
    one_of("sampler", sampler, SAMPLER, " here")
    delta = probability("delta", delta)
    factor = proximal_factor() if sampler == "proximal" else 1.0
    mu = factor * posterior_mu(mesh, covariance, relation, intercept_sd=intercept_sd)
    curve = () if isinstance(relation, AddRemove) else _curve(mesh, _gaussian_at(mesh, covariance, delta, factor))
    assumed = draw_assumptions(relation, SAMPLER[sampler], mesh.domain)
    theorem = "proximal-sampler" if sampler == "proximal" else "posterior-draw"
    return Guarantee(relation, GaussianDP(mu, delta), theorem, assumed, curve)


def lipschitz(
    mesh: Mesh,
    relation: CappedRelation | float,
    *,
    slope: float,
    sampler: str = "exact",
) -> Guarantee:
    """Guarantee of one posterior draw from a prior on fields nowhere steeper than `slope`: Theorem D.

    `(2 k slope alpha, 0)` for moves up to alpha, whatever that prior is.

    Parameters
    ----------
    mesh : Mesh
    relation : CappedRelation or float
        Moves only. `ReplaceOne` needs a convex window or a network, where no path is longer than the diameter.
    slope : float
        Largest gradient of the log-intensity, per unit of length on the map.
    sampler : {"exact", "nuts"}
        Sampler of the draw.

    Raises
    ------
    InputError
        Under `AddRemove`, or `ReplaceOne` on a window that is not convex.
    """
    relation = as_relation(relation)
    one_of("sampler", sampler, ("exact", "nuts"), " here")
    slope = positive("slope", slope)
    cap = relation.max_points_per_person
    pure = PureDP(2 * slope * cap * _longest_path(mesh, relation))
    curve = _curve(mesh, lambda d: 2 * slope * d)
    assumed = draw_assumptions(relation, (*SAMPLER[sampler], GENTLE), mesh.domain)
    return Guarantee(relation, pure, "lipschitz-field", assumed, curve)


def largest_sigma(
    mesh: Mesh,
    covariance: Covariance,
    relation: CappedRelation | float,
    mu: float,
    *,
    factor: float = 1.0,
    intercept_sd: float | None = None,
) -> float:
    """Largest standard deviation of the field with Gaussian parameter `mu`, rounded down.

    Parameters
    ----------
    mesh, relation
        As in `posterior_mu`.
    covariance : Covariance
        The field's covariance with standard deviation 1.
    mu : float
        Budget, such as `gaussian_mu(epsilon, delta)`.
    factor : float
        Factor of the sampler on mu: `proximal_factor()`, or 1.
    intercept_sd : float, optional
        Under `AddRemove`, standard deviation of the intercept; by default it takes half of the variance.

    Raises
    ------
    PrivacyCheckError
        When the intercept alone uses up the budget.
    """
    relation, mu, factor = as_relation(relation), positive("mu", mu), positive("factor", factor)
    if not isinstance(relation, AddRemove):
        return mu / (factor * posterior_mu(mesh, covariance, relation)) * DOWN
    total = mu / (factor * relation.max_points_per_person)
    tau = total / math.sqrt(2) if intercept_sd is None else _positive_sd(intercept_sd)
    return _other_leg(total, tau, "intercept_sd") / point_sd(covariance_matrix(covariance, mesh)) * DOWN


def largest_intercept_sd(relation: AddRemove, mu: float, sigma: float, *, factor: float = 1.0) -> float:
    """Largest standard deviation of the intercept that `mu` leaves beside a field of standard deviation `sigma`.

    Raises
    ------
    PrivacyCheckError
        When the field alone uses up the budget.
    """
    instance("relation", relation, CappedRelation, "AddRemove() is one")
    mu, sigma, factor = (positive(*each) for each in (("mu", mu), ("sigma", sigma), ("factor", factor)))
    return _other_leg(mu / (factor * relation.max_points_per_person), sigma / DOWN, "sigma") * DOWN


def _other_leg(total: float, one: float, name: str) -> float:
    if one >= total:
        msg = (
            f"{name}: must be below {total:.6g}, which add/remove allows in all, got {one:.6g}; spend more or lower it."
        )
        raise PrivacyCheckError(msg)
    return math.sqrt((total - one) * (total + one))


def _longest_path(mesh: Mesh, relation: CappedRelation) -> float:
    """Longest path on the map that one point may move along."""
    instance("mesh", mesh, Mesh, "models.regular_triangulation(window, spacing=100.0) makes one")
    if isinstance(relation, AddRemove):
        msg = (
            "relation: 'add-remove' has no guarantee from the slope, which does not bound the level of the field; use "
            "a posterior draw with a Gaussian intercept, or private tents."
        )
        raise InputError(msg)
    longest = mesh.domain.longest_path
    if isinstance(relation, ReplaceOne) and math.isinf(longest):
        msg = (
            "relation: 'replace-one' needs a convex window here, since paths inside this one can be longer than its "
            "diameter or missing; take AlphaNeighbours(alpha)."
        )
        raise InputError(msg)
    return min(on_map(relation, mesh.domain).reach, longest)


def _gaussian_at(mesh: Mesh, covariance: Covariance, delta: float, factor: float = 1.0) -> Callable[[float], float]:
    """Epsilon, at delta, of one point that moves by d on the map."""
    field = increments(mesh, covariance_matrix(covariance, mesh), mesh.domain.diameter)
    return lambda d: GaussianDP(factor * field.within(d), delta).epsilon(delta)


def _curve(mesh: Mesh, epsilon: Callable[[float], float]) -> Curve:
    return on_ground(((d, epsilon(float(d))) for d in np.linspace(0, mesh.domain.diameter, 41)[1:]), mesh.domain)


def _positive_sd(intercept_sd: float | None) -> float:
    number = real(intercept_sd)
    if number is None or not number > 0:
        msg = (
            f"intercept_sd: add/remove needs a Gaussian intercept of positive finite standard deviation, got "
            f"{shown(intercept_sd)}; largest_intercept_sd tells how large."
        )
        raise InputError(msg)
    return number


def draw_assumptions(relation: CappedRelation, sampler: tuple[str, ...], domain: Domain) -> tuple[Code, ...]:
    """Assumptions of every guarantee of a posterior draw; `sampler` is an entry of `SAMPLER`."""
    return assumptions(relation, (*sampler, SILENT), (FIXED,), domain=domain)
