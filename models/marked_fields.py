"""Fields over places, times and types: sums of fields of places alone, of times alone, and of both.

Values stand in the order of types, of hats of each type, and of vertices of each hat.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from dpppsynth.models.finite_elements import segment_elements
from dpppsynth.models.sparse_fields import SparseField, constant, scaled, summed
from dpppsynth.models.sparse_solver import SparseFactor
from dpppsynth.spatial.mark_space import Times

# Standard deviation of the level of each type.
LEVEL_SD = 2.0


@dataclass(frozen=True)
class MarkedPrior:
    """Sizes of the parts of a field over V places, K hats and C types.

    The logarithm of an intensity is a sum: a field of places that all types share, which is given, one of each type, a
    curve of times that all share, one of each type, and what is special about a place at a time, for all types alike.

    Attributes
    ----------
    own : float
        What each type has for itself, of places and of times, as a share of what all have in common.
    time : float
        Standard deviation of the curve of times.
    together : float
        What is special about a place at a time, as a share of the field of places; 0 where there is nothing.
    """

    own: float
    time: float
    together: float

    def on(
        self, space: SparseField, clock: SparseField | None, types: int, intercept_sd: float | None = None
    ) -> SparseField:
        """The field at C K V values.

        Parameters
        ----------
        space : SparseField
            Field of places, at V vertices.
        clock : SparseField or None
            Curve of times with unit variance, at K instants; None where there are no times.
        types : int
        intercept_sd : float, optional
            Of a constant, where the number of points is secret.
        """
        hats, places = 1 if clock is None else clock.size, space.placement.shape[0]
        at_all_hours = _repeated(space, hats)
        parts = [_repeated(at_all_hours, types)]
        if types > 1:
            parts += [
                _independent(part, types)
                for part in (constant(hats * places, LEVEL_SD), scaled(at_all_hours, self.own))
            ]
        if clock is not None:
            curve = scaled(_everywhere(clock, places), self.time)
            parts.append(_repeated(curve, types))
            parts += [_independent(scaled(curve, self.own), types)] if types > 1 else []
        if clock is not None and self.together:
            parts.append(_repeated(scaled(product_field(clock, space), self.together), types))
        if intercept_sd is not None:
            parts.append(constant(types * hats * places, intercept_sd))
        return summed(*parts)


def product_field(clock: SparseField, space: SparseField) -> SparseField:
    """The field at K V values whose covariance is the product of those at K instants and at V vertices."""
    return SparseField(
        sp.kron(clock.precision, space.precision, format="csc"),
        sp.kron(clock.root, space.root, format="csc"),
        space.size * clock.log_det + clock.size * space.log_det,
        sp.kron(clock.placement, space.placement, format="csr"),
    )


def clock_field(times: Times, range_: float) -> SparseField:
    """Matern field of smoothness 3/2 and unit variance at the hats' instants, on a line or around a clock.

    Its precision is that of linear elements in time, `K C^-1 K`, so that fields of places and times stay sparse.

    Parameters
    ----------
    times : Times
    range_ : float
        Distance in time at which the correlation is about 0.14.
    """
    sooner = np.arange(times.hats if times.periodic else times.hats - 1)
    ends = np.column_stack([sooner, (sooner + 1) % times.hats])
    elements = segment_elements(ends, np.full(len(ends), times.spacing), times.hats)
    operator = (sp.diags_array(12 / range_**2 * elements.mass) + elements.stiffness).tocsc()
    root = (operator @ sp.diags_array(1 / np.sqrt(elements.mass))).tocsc()
    precision = (root @ root.T).tocsc()
    factor = SparseFactor(precision)
    placement = sp.diags_array(1 / np.sqrt(factor.inverse_diagonal), format="csr")
    return SparseField(precision, root, factor.log_det, placement)


def _repeated(field: SparseField, count: int) -> SparseField:
    """The same field so many times."""
    return replace(field, placement=sp.kron(np.ones((count, 1)), field.placement, format="csr"))


def _everywhere(field: SparseField, places: int) -> SparseField:
    """Each of a field's values at so many places."""
    return replace(field, placement=sp.kron(field.placement, np.ones((places, 1)), format="csr"))


def _independent(field: SparseField, count: int) -> SparseField:
    """So many independent copies of a field, one after the other."""
    each = sp.eye_array(count)
    return SparseField(
        sp.kron(each, field.precision, format="csc"),
        sp.kron(each, field.root, format="csc"),
        count * field.log_det,
        sp.kron(each, field.placement, format="csr"),
    )
