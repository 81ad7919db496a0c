"""`MarkedMesh`: vertices of a mesh at each instant of a clock, for each type."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.loglinear_integrals import gathered_rule, gauss_rule
from dpppsynth.spatial.mark_space import Marks, Times
from dpppsynth.spatial.mesh import Floats, Mesh
from dpppsynth.spatial.offset import Offset, weighted_pieces

# Points along a side of an element, and between two instants, at which exponentials of fields are integrated.
POINTS = 2


@dataclass(frozen=True, eq=False)
class MarkedMesh:
    """Product of types, hats in time and tents in space; values stand in this order.

    Attributes
    ----------
    space : Mesh
    marks : Marks
    offset : Offset, optional
        Public base intensity of places, the same for all types and times.
    """

    space: Mesh
    marks: Marks
    offset: Offset | None = None

    @property
    def domain(self) -> Domain:
        """Public window or network."""
        return self.space.domain

    @property
    def recipe(self) -> dict[str, Any]:
        """Recipe of the mesh in space."""
        return self.space.recipe

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of types, hats and vertices."""
        return (*self.marks.shape, len(self.space.vertices))

    @cached_property
    def vertices(self) -> Floats:
        """(C K V, 2) coordinates of all values."""
        types, hats, _ = self.shape
        return np.tile(self.space.vertices, (types * hats, 1))

    @cached_property
    def measure(self) -> Floats:
        """(C K V,) integrals of the products of basis functions, times the offset."""
        space = self.space.integrate(weighted_pieces(self.space, self.offset))
        one = np.kron(time_measure(self.marks.times), space)
        return np.tile(one, self.shape[0])

    @cached_property
    def rule(self) -> tuple[sp.csr_array, Floats]:
        """Basis functions (P, C K V) at the points of a rule of integration, and the points' weights (P,)."""
        made = gauss_rule if self.offset is None else gathered_rule
        space, area = made(self.space, weighted_pieces(self.space, self.offset), POINTS)
        time, length = time_rule(self.marks.times)
        basis = sp.kron(sp.eye_array(self.shape[0]), sp.kron(time, space), format="csr")
        return basis, np.tile(np.kron(length, area), self.shape[0])


def time_measure(times: Times | None) -> Floats:
    """(K,) integrals of the hats; one where there are no times."""
    return np.ones(1) if times is None else times.measure


def time_basis(times: Times | None, at: Floats) -> sp.csr_array:
    """Sparse (n, K) values of the hats at times (n,); ones where there are no times."""
    if times is None:
        return sp.csr_array(np.ones((len(at), 1)))
    hat, value = times.values(at)
    rows = np.arange(0, 2 * len(at) + 1, 2)
    return sp.csr_array((value.ravel(), hat.ravel(), rows), shape=(len(at), times.hats))


def time_rule(times: Times | None) -> tuple[sp.csr_array, Floats]:
    """Hats (P, K) at the points of a Gauss-Legendre rule between the instants, and the points' weights (P,)."""
    if times is None:
        return time_basis(None, np.zeros(1)), np.ones(1)
    x, w = np.polynomial.legendre.leggauss(POINTS)
    cells = times.hats if times.periodic else times.hats - 1
    at = times.start + times.spacing * (np.arange(cells)[:, None] + (x + 1) / 2)
    return time_basis(times, at.ravel()), np.tile(w / 2 * times.spacing, cells)
