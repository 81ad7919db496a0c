"""Surrogate intensities from public parameters, for settings and rehearsals before the data are touched.

Three kinds, chosen to be hard on samplers in different ways: points everywhere alike, a draw from the prior, and half
of the points in one correlation cell. Beside a public offset they follow it: alike is then the risk. Nothing here has
seen the data.
"""

from dataclasses import dataclass

import numpy as np

from dpppsynth.core.types import Floats
from dpppsynth.spatial.intensity import LogLinear, PiecewiseLinear
from dpppsynth.spatial.marked_offset import AnyOffset
from dpppsynth.spatial.mesh import Mesh

# Surrogates are the same in every run, so that what they decide is the same too.
SEED = 20260101


@dataclass(frozen=True)
class Surrogate:
    """An intensity with a name; its integral is the public number of points."""

    name: str
    intensity: LogLinear | PiecewiseLinear


def surrogates(
    mesh: Mesh, root: Floats, n: float, length_scale: float, offset: AnyOffset | None = None
) -> tuple[Surrogate, ...]:
    """The three kinds of surrogate intensities of n points, which is public or a public guess.

    `root` (V, r) is a factor of the prior covariance of the log-intensity on the mesh, beside a public offset of that
    of the log-risk.
    """
    field = root @ np.random.default_rng(SEED).standard_normal(root.shape[1])
    if offset is not None:
        clustered: LogLinear | PiecewiseLinear = _scaled(mesh, np.log(_around(mesh, offset, length_scale)), n, offset)
    else:
        clustered = PiecewiseLinear(mesh, _clustered(mesh, n, length_scale))
    return (
        Surrogate("homogeneous", _scaled(mesh, np.zeros(len(mesh.vertices)), n, offset)),
        Surrogate("prior draw", _scaled(mesh, field, n, offset)),
        Surrogate("half in one cell", clustered),
    )


def _scaled(mesh: Mesh, field: Floats, n: float, offset: AnyOffset | None) -> LogLinear:
    """Intensity of n points, from the logarithm (V,) of what is proportional to it, or beside an offset to the risk."""
    return LogLinear(mesh, field + np.log(n / LogLinear(mesh, field, offset).total), offset)


def _clustered(mesh: Mesh, n: float, length_scale: float) -> Floats:
    """(V,) half of the mass spread evenly, half within about half a length scale of one place in the domain."""
    place = np.asarray(mesh.domain.geometry.representative_point().coords[0])
    bump = _bump(mesh, place, length_scale)
    return n / (2 * mesh.domain.size) + bump * (n / 2) / (mesh.measure @ bump)


def _around(mesh: Mesh, offset: AnyOffset, length_scale: float) -> Floats:
    """(V,) risk by which half of the points follow the offset, and half lie about where it is largest."""
    share = mesh.integrate(mesh.weighted_pieces(offset))
    bump = _bump(mesh, mesh.vertices[np.argmax(share)], length_scale)
    return np.asarray(1 + bump * share.sum() / (share @ bump), dtype=np.float64)


def _bump(mesh: Mesh, place: Floats, length_scale: float) -> Floats:
    """(V,) a Gaussian about a place (2,); the nearest vertex always takes part, however coarse the mesh."""
    square = ((mesh.vertices - place) ** 2).sum(axis=1)
    return np.asarray(np.exp(-(square - square.min()) / (length_scale / 2) ** 2), dtype=np.float64)
