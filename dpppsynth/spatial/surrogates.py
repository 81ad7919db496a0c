"""Surrogate intensities from public parameters, for settings and rehearsals before the data are touched.

Three kinds, chosen to be hard on samplers in different ways: points everywhere alike, a draw from the prior, and half
of the points in one correlation cell. Nothing here has seen the data.
"""

from dataclasses import dataclass

import numpy as np

from dpppsynth.core.types import Floats
from dpppsynth.spatial.intensity import LogLinear, PiecewiseLinear
from dpppsynth.spatial.mesh import Mesh, integrate_exp

# Surrogates are the same in every run, so that what they decide is the same too.
SEED = 20260101


@dataclass(frozen=True)
class Surrogate:
    """An intensity with a name; its integral is the public number of points."""

    name: str
    intensity: LogLinear | PiecewiseLinear


def surrogates(mesh: Mesh, root: Floats, n: float, length_scale: float) -> tuple[Surrogate, ...]:
    """The three kinds of surrogate intensities of n points, which is public or a public guess.

    `root` (V, r) is a factor of the prior covariance of the log-intensity on the mesh.
    """
    level = np.full(len(mesh.vertices), np.log(n / mesh.domain.size))
    field = root @ np.random.default_rng(SEED).standard_normal(root.shape[1])
    field += np.log(n / integrate_exp(mesh, mesh.pieces, field[None])[0])
    return (
        Surrogate("homogeneous", LogLinear(mesh, level)),
        Surrogate("prior draw", LogLinear(mesh, field)),
        Surrogate("half in one cell", PiecewiseLinear(mesh, _clustered(mesh, n, length_scale))),
    )


def _clustered(mesh: Mesh, n: float, length_scale: float) -> Floats:
    """(V,) half of the mass spread evenly, half within about half a length scale of one place in the domain."""
    place = np.asarray(mesh.domain.geometry.representative_point().coords[0])
    square = ((mesh.vertices - place) ** 2).sum(axis=1)
    # The nearest vertex always takes part, however coarse the mesh.
    bump = np.exp(-(square - square.min()) / (length_scale / 2) ** 2)
    even = np.full(len(bump), n / (2 * mesh.domain.size))
    return even + bump * (n / 2) / (mesh.measure @ bump)
