"""Homogeneous intensities, on as few pieces as a domain allows."""

from typing import Any

import numpy as np

from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.models.regular_meshes import regular_triangulation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.intensity import PiecewiseConstant
from dpppsynth.spatial.mesh import Mesh


def homogeneous(domain: Domain, value: float) -> PiecewiseConstant:
    """The intensity of so many points per unit of area or length everywhere in the domain."""
    mesh = _coarse_mesh(domain)
    return PiecewiseConstant(mesh, np.full(len(mesh.elements), value))


def _coarse_mesh(domain: Domain) -> Mesh:
    if isinstance(domain, LinearNetwork):
        return network_mesh(domain, domain.diameter)
    window: Any = domain
    return regular_triangulation(window, shape=(2, 2))
