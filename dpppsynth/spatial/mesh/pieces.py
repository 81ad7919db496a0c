"""Simplices that tile the parts of mesh elements inside the domain, for integration and sampling."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

from dpppsynth.core.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Pieces:
    """Triangles that tile the elements' parts inside a window, or segments that tile a network.

    Attributes
    ----------
    corners : (Q, 3, 2) or (Q, 2, 2) array
        Positions of the corners; in between positions are linear.
    element : (Q,) array
        Index of the element each piece belongs to.
    weight : (Q,) array
        Area or length, times any public offset: the integral of f is the sum of weight * (mean of f over the piece).
    """

    corners: Floats
    element: Ints
    weight: Floats

    @property
    def sides(self) -> int:
        """Corners of each piece: 3 on windows, 2 on networks."""
        return self.corners.shape[1]

    def quadrature(self) -> tuple[Floats, Ints, Floats]:
        """Rule that is exact for quadratics, one node per corner: positions (m, 2), their elements (m,), weights (m,).

        Midpoints of a triangle's edges; the two Gauss points of a segment.
        """
        share = 1 / 2 if self.sides == 3 else (3 + np.sqrt(3)) / 6
        points = share * self.corners + (1 - share) * np.roll(self.corners, -1, axis=1)
        weight = np.repeat(self.weight / self.sides, self.sides)
        return points.reshape(-1, 2), np.repeat(self.element, self.sides), weight


def triangulate(geometry: Any, element: Ints) -> Pieces:
    """Cut polygons into triangles without new vertices (constrained Delaunay).

    Parameters
    ----------
    geometry : array of shapely geometries
        Polygonal parts, in any order.
    element : (G,) array
        The element each geometry belongs to.
    """
    triangles, owner = shapely.get_parts(shapely.constrained_delaunay_triangles(geometry), return_index=True)
    corners = shapely.get_coordinates(triangles).reshape(-1, 4, 2)[:, :3]
    area = np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1])) / 2
    solid = area > 0
    return Pieces(corners[solid], element[owner[solid]], area[solid])
