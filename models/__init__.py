"""Meshes, covariances and log-Gaussian Cox models.

* Planar meshes: `regular_triangulation`, `regular_squares`, `refine`; laid over a network: `trace_mesh`.
* Covariances: `PoweredExponential`, `Matern`, `GeneralisedCauchy`, `factor`, `square_root`.
* PyMC models: `build_lgcp` (raw data, not private), `build_noise_aware` (private statistics).
* Fast posteriors: `laplace_posterior` of `NoisyMasses` and `NoisyField`; NUTS through `Sampler`.
"""

from dpppsynth.models.covariances import (
    Covariance,
    GeneralisedCauchy,
    Matern,
    PoweredExponential,
    covariance_from_dict,
    factor,
    square_root,
)
from dpppsynth.models.laplace_approximation import LaplacePosterior, laplace_posterior
from dpppsynth.models.lgcp import build_lgcp, build_noise_aware, dual_measure, tent_masses
from dpppsynth.models.likelihood import NoisyField, NoisyMasses
from dpppsynth.models.nuts import Chains, Diagnostics, Sampler, diagnose
from dpppsynth.models.recipes import domain_from_geojson, mesh_from_recipe
from dpppsynth.models.regular_meshes import refine, regular_squares, regular_triangulation
from dpppsynth.models.sparse_fields import SparseMatern
from dpppsynth.models.trace import trace_mesh

__all__ = [
    "Chains",
    "Covariance",
    "Diagnostics",
    "GeneralisedCauchy",
    "LaplacePosterior",
    "Matern",
    "NoisyField",
    "NoisyMasses",
    "PoweredExponential",
    "Sampler",
    "SparseMatern",
    "build_lgcp",
    "build_noise_aware",
    "covariance_from_dict",
    "diagnose",
    "domain_from_geojson",
    "dual_measure",
    "factor",
    "laplace_posterior",
    "mesh_from_recipe",
    "refine",
    "regular_squares",
    "regular_triangulation",
    "square_root",
    "tent_masses",
    "trace_mesh",
]
