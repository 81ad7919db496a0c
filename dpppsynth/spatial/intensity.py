"""Intensities on a mesh: piecewise constant, linear (P1), log-linear (exp of P1), and means of log-linear ones.

Each one can be evaluated anywhere, knows its integral over the domain, and bounds itself on every element: all an exact
Poisson sampler needs (`sampling`). Units: points per unit area of a window, or per unit length of a network.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.spatial.marked_offset import AnyOffset
from dpppsynth.spatial.mesh import Mesh, Pieces, basis_within, chunks, integrate_exp, within_element
from dpppsynth.spatial.second_order import checked_coordinates

# Cells and tents with less than this share of the average measure get no mass.
SPECK = 1e-4


def held(measure: Floats) -> npt.NDArray[np.bool_]:
    """Whether cells or tents of these measures may hold mass: tiny ones would hold nothing but noise."""
    return measure > SPECK * measure.mean()


class Intensity:
    """Base of intensities on a mesh, which free points are located in, for samplers and pictures."""

    mesh: Mesh

    @property
    def total(self) -> float:
        """Integral over the domain: the expected number of points."""
        raise NotImplementedError

    @property
    def element_bound(self) -> Floats:
        """(T,) upper bounds of the intensity on the elements."""
        raise NotImplementedError

    @cached_property
    def piece_bound(self) -> Floats:
        """(Q,) upper bounds on the mesh's pieces: those of the elements, unless a subclass has sharper ones."""
        return self.element_bound[self.mesh.pieces.element]

    def __call__(self, xy: Floats) -> Floats:
        """(n,) values at coordinates (n, 2); a point outside the domain takes the value of the nearest element."""
        positions = self.mesh.domain.positions(checked_coordinates(xy))
        return self.at(*self.mesh.values(positions), positions)

    def at(self, element: Ints, weight: Floats, positions: Floats) -> Floats:
        """(n,) values at points given by element (n,), basis values (n, k) and positions (n, 2)."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.mesh!r})"


@dataclass(frozen=True, eq=False, repr=False)
class PiecewiseConstant(Intensity):
    """One non-negative value per element, `values` (T,)."""

    mesh: Mesh
    values: Floats

    def __post_init__(self) -> None:
        _require("values", self.values, len(self.mesh.elements), non_negative=True)

    @property
    def total(self) -> float:
        """Integral over the domain, exact."""
        return float(self.mesh.element_measure @ self.values)

    @property
    def element_bound(self) -> Floats:
        """(T,) the values themselves."""
        return self.values

    def at(self, element: Ints, weight: Floats, positions: Floats) -> Floats:
        return self.values[element]


@dataclass(frozen=True, eq=False, repr=False)
class PiecewiseLinear(Intensity):
    """Non-negative P1 (bilinear on squares) interpolant of vertex values (V,)."""

    mesh: Mesh
    values: Floats

    def __post_init__(self) -> None:
        _require("values", self.values, len(self.mesh.vertices), non_negative=True)

    @property
    def total(self) -> float:
        """Integral over the domain, exact: `sum_j a_j values_j`."""
        return float(self.mesh.measure @ self.values)

    @property
    def element_bound(self) -> Floats:
        """(T,) largest vertex value: a convex combination never exceeds it."""
        return self.values[self.mesh.elements].max(axis=1)

    @cached_property
    def piece_bound(self) -> Floats:
        """(Q,) largest value on each piece, or the box around it on squares: a vertex outside may be far higher."""
        value = self.values[self.mesh.elements[self.mesh.pieces.element]]
        return np.asarray(np.einsum("qck,qk->qc", box_weights(self.mesh), value).max(axis=1))

    def at(self, element: Ints, weight: Floats, positions: Floats) -> Floats:
        return np.einsum("nk,nk->n", weight, self.values.take(self.mesh.elements.take(element, axis=0)))


@dataclass(frozen=True, eq=False, repr=False)
class LogLinear(Intensity):
    """`offset * exp(P1)`: the log-Gaussian Cox intensity between vertex values (V,) of its logarithm.

    With a public offset they are those of its ratio to the offset.
    """

    mesh: Mesh
    log_values: Floats
    offset: AnyOffset | None = None

    def __post_init__(self) -> None:
        _require("log_values", self.log_values, len(self.mesh.vertices))

    @cached_property
    def pieces(self) -> Pieces:
        """Pieces over which the total is taken."""
        return self.mesh.weighted_pieces(self.offset)

    @cached_property
    def total(self) -> float:
        """Integral over the domain: in closed form, on squares by a Gauss rule."""
        return float(integrate_exp(self.mesh, self.pieces, self.log_values[None])[0])

    @property
    def element_bound(self) -> Floats:
        """(T,) exp of the largest vertex value, times the largest offset."""
        highest = np.exp(self.log_values[self.mesh.elements].max(axis=1))
        return highest if self.offset is None else highest * self.offset.bounds(self.mesh)

    def at(self, element: Ints, weight: Floats, positions: Floats) -> Floats:
        base = np.exp(np.einsum("nk,nk->n", weight, self.log_values.take(self.mesh.elements.take(element, axis=0))))
        return base if self.offset is None else base * self.offset(self.mesh.domain.coordinates(positions))


@dataclass(frozen=True, eq=False, repr=False)
class LogLinearMean(Intensity):
    """Average of K log-linear intensities on one mesh, a posterior mean: fields (K, V) are their logarithms."""

    mesh: Mesh
    fields: Floats
    offset: AnyOffset | None = None

    def __post_init__(self) -> None:
        if np.ndim(self.fields) != 2 or not len(self.fields):
            msg = "fields: needs one row of finite numbers per draw, and at least one draw."
            raise InputError(msg)
        _require("fields", self.fields.ravel(), len(self.fields) * len(self.mesh.vertices))

    def draw(self, k: int) -> LogLinear:
        """The k-th intensity of the average."""
        return LogLinear(self.mesh, self.fields[k], self.offset)

    @cached_property
    def totals(self) -> Floats:
        """(K,) integrals of the draws."""
        return integrate_exp(self.mesh, self.mesh.weighted_pieces(self.offset), self.fields)

    @property
    def total(self) -> float:
        """Average of the draws' integrals."""
        return float(self.totals.mean())

    @property
    def element_bound(self) -> Floats:
        """(T,) average over draws of exp of the largest vertex value."""
        highest = np.exp(self.fields[:, self.mesh.elements].max(axis=2)).mean(axis=0)
        return highest if self.offset is None else highest * self.offset.bounds(self.mesh)

    def at(self, element: Ints, weight: Floats, positions: Floats) -> Floats:
        out = np.empty(len(element))
        for part in chunks(len(element), len(self.fields)):
            out[part] = np.exp(self._log(element[part], weight[part])).mean(axis=1)
        return out if self.offset is None else out * self.offset(self.mesh.domain.coordinates(positions))

    def quantiles(self, xy: Floats, levels: Floats) -> Floats:
        """(len(levels), n) posterior quantiles of the intensity at the points."""
        positions = self.mesh.domain.positions(checked_coordinates(xy))
        element = self.mesh.locate(positions)
        weight = self.mesh.weights(element, positions)
        out = np.empty((len(levels), len(positions)))
        for part in chunks(len(positions), len(self.fields)):
            out[:, part] = np.exp(np.quantile(self._log(element[part], weight[part]), levels, axis=1))
        return out if self.offset is None else out * self.offset(self.mesh.domain.coordinates(positions))

    def _log(self, element: Ints, weight: Floats) -> Floats:
        return self.mesh.gather(element, weight) @ self.fields.T


def mass_distance(one: Floats, other: Floats) -> float:
    """Total variation distance between two vectors of masses, each divided by its sum: half their L1 distance."""
    return float(np.abs(one / one.sum() - other / other.sum()).sum() / 2)


def _require(name: str, values: Floats, length: int, non_negative: bool = False) -> None:
    if np.shape(values) != (length,) or not np.all(np.isfinite(values)):
        msg = f"{name}: needs {length} finite numbers, one per vertex or element of the mesh."
        raise InputError(msg)
    if non_negative and np.min(values) < 0:
        msg = f"{name}: an intensity cannot be negative; clip or project it first."
        raise InputError(msg)


def box_weights(mesh: Mesh) -> Floats:
    """(Q, c, k) basis values where a (bi)linear function on a piece is largest: its corners, or those of its box."""
    corners, element, sides = mesh.pieces.corners, mesh.pieces.element, mesh.pieces.sides
    weight = mesh.weights(np.repeat(element, sides), corners.reshape(-1, 2)).reshape(len(corners), sides, -1)
    if mesh.kind != "square":
        return np.clip(weight, 0, None)
    place = within_element(mesh, weight.reshape(-1, 4)).reshape(len(corners), sides, 2)
    (s0, t0), (s1, t1) = place.min(axis=1).T, place.max(axis=1).T
    box = np.stack([s0, t0, s1, t0, s1, t1, s0, t1], axis=1).reshape(-1, 2)
    return np.clip(basis_within(mesh, box).reshape(len(corners), 4, 4), 0, None)
