"""Sums of independent fields of sparse precision: the unknowns of all parts together stay sparse."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from dpppsynth.models.sparse_fields import SparseField
from dpppsynth.models.sparse_solver import SparseFactor
from dpppsynth.spatial.mesh import Floats

# Standard deviation on the log scale within which a field is split into its parts.
CLOSE = 0.1


@dataclass(frozen=True, eq=False)
class SummedField(SparseField):
    """Sum of independent fields; each value is made of several unknowns."""

    mixed: ClassVar[bool] = True

    def unknowns_of(self, field: Floats) -> Floats:
        """(N,) likeliest unknowns that give about this field (V,)."""
        weighed = self.placement.T / CLOSE**2
        return SparseFactor(self.precision + weighed @ self.placement).solve(weighed @ field)


def summed(*parts: SparseField) -> SummedField:
    """Sum of independent fields at the same V places."""
    return SummedField(
        scipy.sparse.block_diag([part.precision for part in parts], format="csc"),
        scipy.sparse.block_diag([part.root for part in parts], format="csc"),
        sum(part.log_det for part in parts),
        scipy.sparse.hstack([part.placement for part in parts], format="csr"),
    )


@dataclass(frozen=True, eq=False)
class MovedField(SparseField):
    """A field at other places than its own.

    Attributes
    ----------
    field : SparseField
    basis : sparse (places, V)
        Weights of the field's own places, such as those of linear interpolation.
    """

    field: SparseField = dataclasses.field(kw_only=True)
    basis: "scipy.sparse.csr_array" = dataclasses.field(kw_only=True)
    mixed: ClassVar[bool] = True

    def unknowns_of(self, field: Floats) -> Floats:
        """(N,) unknowns of a field that is about this one (places,): its averages at the own places."""
        weight = self.basis.sum(axis=0)
        average = np.divide(self.basis.T @ field, weight, out=np.zeros_like(weight), where=weight > 0)
        return self.field.unknowns_of(average)


def moved(field: SparseField, basis: "scipy.sparse.csr_array") -> MovedField:
    """The field at other places, from its values at its own by a sparse matrix (places, V)."""
    placement = (basis @ field.placement).tocsr()
    return MovedField(
        field.precision, field.root, field.log_det, placement, intercept=field.intercept, field=field, basis=basis
    )


@dataclass(frozen=True, eq=False)
class FieldWithEffects(SparseField):
    """A field plus effects times covariates, which are the last unknowns.

    Attributes
    ----------
    field : SparseField
    columns : (V, p) array
        Covariates at the field's places.
    """

    field: SparseField = dataclasses.field(kw_only=True)
    columns: Floats = dataclasses.field(kw_only=True)
    mixed: ClassVar[bool] = True

    @property
    def effects(self) -> int:
        """Number of covariates."""
        return self.columns.shape[1]

    def unknowns_of(self, field: Floats) -> Floats:
        """(N,) unknowns that give about this field (V,): effects by least squares, and the rest."""
        effects = np.linalg.lstsq(self.columns, field - field.mean(), rcond=None)[0]
        return np.concatenate([self.field.unknowns_of(field - self.columns @ effects), effects])


def with_effects(field: SparseField, columns: Floats, sd: float) -> FieldWithEffects:
    """The field plus covariates (V, p) times effects `N(0, sd^2)`, one more unknown each."""
    one = scipy.sparse.eye_array(columns.shape[1], format="csc")
    return FieldWithEffects(
        scipy.sparse.block_diag([field.precision, one / sd**2], format="csc"),
        scipy.sparse.block_diag([field.root, one / sd], format="csc"),
        field.log_det - 2 * columns.shape[1] * float(np.log(sd)),
        scipy.sparse.hstack([field.placement, scipy.sparse.csr_array(columns)], format="csr"),
        field=field,
        columns=columns,
    )


def scaled(field: SparseField, factor: float) -> SparseField:
    """The field times a number."""
    return SparseField(field.precision, field.root, field.log_det, factor * field.placement)


def constant(places: int, sd: float) -> SparseField:
    """One number `N(0, sd^2)` everywhere."""
    one = scipy.sparse.csc_array([[1.0]])
    return SparseField(one / sd**2, one / sd, -2 * float(np.log(sd)), scipy.sparse.csr_array(np.ones((places, 1))))
