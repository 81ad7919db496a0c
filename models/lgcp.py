"""Log-Gaussian Cox models in PyMC: noise-aware ones for release, and raw ones for research (not private)."""

from typing import TYPE_CHECKING, Any

import numpy as np

from dpppsynth.core.arguments import instance
from dpppsynth.models.covariances import Covariance, covariance_matrix, factor
from dpppsynth.models.likelihood import MassLikelihood
from dpppsynth.models.nuts import Density
from dpppsynth.models.quadrature import MESH, Quadrature
from dpppsynth.spatial.mesh import Floats, Mesh
from dpppsynth.spatial.patterns import PointPattern

if TYPE_CHECKING:
    import pymc as pm


def tent_masses(pattern: PointPattern, mesh: Mesh) -> Floats:
    """(V,) `psi_j = sum_i phi_j(x_i)`, sufficient for an LGCP posterior on the mesh. Not private."""
    instance("pattern", pattern, PointPattern)
    instance("mesh", mesh, Mesh, MESH)
    return np.asarray(mesh.basis(pattern.positions).sum(axis=0)).ravel()


def build_lgcp(pattern: PointPattern, mesh: Mesh, covariance: Covariance, *, quadrature: str = "voronoi") -> "pm.Model":
    """Log-Gaussian Cox model of raw points, for data that need no protection: its posterior is **not** private.

    `log lambda = intercept + field`, flat intercept, field `M z` with `M M'` the covariance on the vertices, and the
    likelihood `sum_j psi_j w_j - integral of exp(w)`.

    Parameters
    ----------
    pattern : PointPattern
    mesh : Mesh
    covariance : Covariance
        For instance `PoweredExponential(sigma, length_scale)`.
    quadrature : {"voronoi", "basis", "exact"}
        The integral, in windows and on networks: `sum_j a_j exp(w_j)` with a_j the cells of the `dual_mesh`, or
        the integrals of the basis functions; or by Gauss points in every element, to rounding for any but wild fields.

    Returns
    -------
    pymc.Model
        Variables `intercept`, `z`, `log_intensity` (vertices); potential `log_likelihood`. Extend it in a `with` block.

    Raises
    ------
    InputError
        When a cell of the dual mesh is empty though its vertex's basis function is not.
    """
    psi, rule = tent_masses(pattern, mesh), Quadrature.of(mesh, quadrature)
    root = factor(covariance_matrix(covariance, mesh))
    import pymc as pm
    import pytensor.tensor as pt

    with pm.Model() as model:
        intercept = pm.Flat("intercept", initval=np.log(psi.sum() / rule.weight.sum()))
        z = pm.Normal("z", 0, 1, shape=root.shape[1])
        w = pm.Deterministic("log_intensity", intercept + pt.dot(root, z))
        pm.Potential("log_likelihood", pt.dot(psi, w) - rule.integral(w, pt))
    return model


def log_likelihood(w: Any, masses: Any, measure: Any) -> Any:
    """PyTensor scalar `masses'w - measure'e^w`: the dual-mesh log-likelihood of a field w (V,) given exact masses."""
    import pytensor.tensor as pt

    return pt.dot(masses, w) - pt.dot(measure, pt.exp(w))


def build_noise_aware(likelihood: MassLikelihood, basis: Floats, centre: float = 0.0) -> "pm.Model":
    """Model of a field given a private statistic: its likelihood in PyMC, prior `w = centre + basis z`.

    Parameters
    ----------
    likelihood : NoisyMasses or NoisyField
    basis : (V, r) array
        Factor M of the prior covariance.
    centre : float
        Prior mean of the log-intensity; irrelevant when n is public.

    Returns
    -------
    pymc.Model
        Variable `z`; potential `log_likelihood`.

    Raises
    ------
    InputError
        When the basis has not a row for each vertex of the likelihood's mesh.
    """
    instance("likelihood", likelihood, MassLikelihood, "release.statistic.likelihood(mesh) is one")
    likelihood = likelihood.with_basis(basis)
    import pymc as pm

    from dpppsynth.models.density_op import MassLogDensity

    with pm.Model() as model:
        z = pm.Normal("z", 0, 1, shape=basis.shape[1])
        value, _ = MassLogDensity(likelihood.law)(z, basis, centre, *likelihood.arguments)
        pm.Potential("log_likelihood", value)
    return model


def model_of(density: Density) -> "pm.Model":
    """Model of coordinates z, standard normal or nearly so, with a density that is not written in PyTensor.

    Returns
    -------
    pymc.Model
        Variable `z`; potential `log_density`, which takes back the prior of z.
    """
    import pymc as pm

    from dpppsynth.models.density_op import GivenDensity

    with pm.Model() as model:
        z = pm.Normal("z", 0, 1, shape=density.size)
        value, _ = GivenDensity(density.function())(z)
        pm.Potential("log_density", value + (z**2).sum() / 2)
    return model
