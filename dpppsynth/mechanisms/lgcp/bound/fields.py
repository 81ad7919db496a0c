"""Guarantee of a field statistic with discrete Gaussian noise: Theorem C (docs/theory/field.md).

The statistic is `M psi` on a lattice: psi the tent masses, M the symmetric root of a covariance at the mesh's vertices.
One move changes it by `sd(Y(x) - Y(x'))`, Y the Gaussian field with that covariance.
"""

import math

import numpy as np

from dpppsynth.core.arguments import positive, probability, real, shown
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.mechanisms.lgcp.bound.increments import increments, point_sd
from dpppsynth.mechanisms.lgcp.bound.posterior_draw import DOWN
from dpppsynth.models.covariances import ROOT_ERROR, Covariance, covariance_matrix
from dpppsynth.privacy.bounds import LATTICE_BITS, assumptions, require_safe_lattice
from dpppsynth.privacy.guarantee import Curve, Guarantee, on_ground, on_map
from dpppsynth.privacy.profiles import GaussianDP
from dpppsynth.privacy.relations import AddRemove, CappedRelation, as_relation
from dpppsynth.spatial.mesh import Floats, Mesh

# Noise has standard deviation 1 in the units of the covariance: `2^LATTICE_BITS` lattice units.
UNIT_SCALE = float(2**LATTICE_BITS)
# Standard deviation, in lattice units, of the part of the noise that turns a Gaussian variable into a whole number.
ROUNDER, SMALLEST_SCALE = 3, 16
# Largest scale: its square is still a floating-point number.
LARGEST_SCALE = 1e150
# The discrete law differs from a rounded Gaussian one by less than this covers, as long as mu is at most LARGEST_MU.
DISCRETE_UP, LARGEST_MU = 1 + 1e-12, 30.0
# Keeps sums of lattice values inside 64-bit integers; noise of 1 is next to nothing beside it.
LARGEST_SIGMA = 1000.0

DISCRETE = "discrete-gaussian-noise"
FIXED = "public-covariance"


def field_sensitivity(
    mesh: Mesh, covariance: Covariance, relation: CappedRelation | float, *, bits: int = LATTICE_BITS
) -> float:
    """L2 sensitivity of the field statistic on the lattice of multiples of `2^-bits`.

    Parameters
    ----------
    mesh : Mesh
    covariance : Covariance
        Its symmetric root at the vertices, `models.square_root`, multiplies the tent masses.
    relation : CappedRelation or float
        Neighbours; a number is the privacy radius of `AlphaNeighbours`.
    bits : int
        Lattice spacing is `2^-bits`.

    Raises
    ------
    InputError
        When elements are too small for their coordinates, or the covariance is too large for 64-bit integers.
    """
    relation, matrix = as_relation(relation), covariance_matrix(covariance, mesh)
    if isinstance(relation, AddRemove):
        one = _on_lattice(mesh, matrix, bits, point_sd(matrix))
    else:
        reach = on_map(relation, mesh.domain).reach
        one = _on_lattice(mesh, matrix, bits, increments(mesh, matrix, reach).within(reach), reach)
    return relation.max_points_per_person * one


def field_statistic(mesh: Mesh, covariance: Covariance, relation: CappedRelation | float, *, delta: float) -> Guarantee:
    """Guarantee of the field statistic with discrete Gaussian noise of standard deviation 1, for every pattern.

    Parameters
    ----------
    mesh, covariance, relation
        As in `field_sensitivity`.
    delta : float
        The delta at which the guarantee is quoted; strictly between 0 and 1.

    Raises
    ------
    InputError
        When mu is beyond 30, which promises nothing.
    """
    relation, delta = as_relation(relation), probability("delta", delta)
    mu = discrete_mu(field_sensitivity(mesh, covariance, relation), UNIT_SCALE)
    if not mu <= LARGEST_MU:
        msg = f"covariance: it gives mu = {mu:.3g}, and at most {LARGEST_MU:g} is proved; take a smaller sigma."
        raise InputError(msg)
    curve = () if isinstance(relation, AddRemove) else _curve(mesh, covariance, delta)
    assumed = assumptions(relation, (DISCRETE,), (FIXED,), domain=mesh.domain)
    return Guarantee(relation, GaussianDP(mu, delta), "field-statistic", assumed, curve)


def largest_field_sigma(mesh: Mesh, covariance: Covariance, relation: CappedRelation | float, mu: float) -> float:
    """Largest standard deviation of a field statistic with Gaussian parameter `mu` at noise 1, rounded down.

    Parameters
    ----------
    mesh, relation
        As in `field_sensitivity`.
    covariance : Covariance
        With standard deviation 1.
    mu : float
        Budget, such as `gaussian_mu(epsilon, delta)`.

    Raises
    ------
    PrivacyCheckError
        When rounding to the lattice alone uses up the budget.
    """
    relation, mu = as_relation(relation), positive("mu", mu, remedy="gaussian_mu(epsilon, delta) gives one")
    sensitivity = field_sensitivity(mesh, covariance, relation)
    ends = 1 if isinstance(relation, AddRemove) else 2
    rounding = relation.max_points_per_person * ends / 2 * math.sqrt(len(mesh.vertices))
    grows = sensitivity - rounding
    room = min(mu, LARGEST_MU) / discrete_mu(1.0, UNIT_SCALE) - rounding
    if room <= 0:
        msg = f"epsilon: mu = {mu:.3g} is below what rounding to the lattice needs; take a larger epsilon or delta."
        raise PrivacyCheckError(msg)
    return min(room / grows, LARGEST_SIGMA) * DOWN


def discrete_mu(sensitivity: float, scale: float) -> float:
    """Gaussian parameter of discrete Gaussian noise on whole numbers, docs/theory/field.md, section 3."""
    number = real(scale)
    if number is None or not SMALLEST_SCALE <= number <= LARGEST_SCALE:
        rule = (
            f"at least {SMALLEST_SCALE}" if number is None or number < SMALLEST_SCALE else f"at most {LARGEST_SCALE:g}"
        )
        msg = f"scale: must be {rule} lattice units, got {shown(scale)}; take a finer lattice."
        raise InputError(msg)
    return sensitivity / math.sqrt(number**2 - ROUNDER**2) * DISCRETE_UP


def _on_lattice(mesh: Mesh, matrix: Floats, bits: int, change: float, reach: float | None = None) -> float:
    """L2 change on the lattice when one point comes or goes, or moves by up to `reach`: `change` without a lattice.

    To it come the root's own error, half a unit of rounding per coordinate and end, and room for the error of computed
    basis values (docs/theory/field.md, section 2).
    """
    require_safe_lattice(mesh, bits)
    top = float(np.sqrt(np.max(np.diag(matrix))))
    if not top <= LARGEST_SIGMA:
        msg = f"covariance: its standard deviation must be at most {LARGEST_SIGMA:g}, where hardly any noise is left."
        raise InputError(msg)
    ends, shift = (1, 1.0) if reach is None else (2, min(math.sqrt(2), mesh.tent_slope * reach))
    lost = shift * math.sqrt(ROOT_ERROR * float(np.trace(matrix)))
    return 2**bits * (change + lost) + ends / 2 * (math.sqrt(len(matrix)) + mesh.elements.shape[1] * top / 2)


def _curve(mesh: Mesh, covariance: Covariance, delta: float) -> Curve:
    """(d, epsilon) for one point that moves by d, up to where mu is too large to promise anything."""
    matrix = covariance.matrix(mesh)
    field = increments(mesh, matrix, mesh.domain.diameter)
    distances = [float(d) for d in np.linspace(0, mesh.domain.diameter, 41)[1:]]
    mu = [discrete_mu(_on_lattice(mesh, matrix, LATTICE_BITS, field.within(d), d), UNIT_SCALE) for d in distances]
    pairs = ((d, GaussianDP(m, delta).epsilon(delta)) for d, m in zip(distances, mu, strict=True) if m <= LARGEST_MU)
    return on_ground(pairs, mesh.domain)
