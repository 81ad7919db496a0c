"""Fields over places, times and types: sums of fields of places alone, of times alone, and of both.

Values stand in the order of types, of hats of each type, and of vertices of each hat.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dpppsynth.models.sparse_fields import SparseField
from dpppsynth.models.summed_fields import SummedField, constant, scaled, summed
from dpppsynth.spatial.mark_space import Times
from dpppsynth.spatial.mesh import Floats

# Standard deviation of the level of each type.
LEVEL_SD = 2.0
# Distance, in units of the decay, at which a covariance is nothing.
FARTHEST = 40.0


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

    def on(self, space: SparseField, clock: Floats, types: int, intercept_sd: float | None = None) -> SummedField:
        """The field at C K V values.

        Parameters
        ----------
        space : SparseField
            Field of places, at V vertices.
        clock : (K, K) array
            Covariance of a curve of times with unit variance.
        types : int
        intercept_sd : float, optional
            Of a constant, where the number of points is secret.
        """
        hats, places = len(clock), space.placement.shape[0]
        at_all_hours = _repeated(space, hats)
        parts = [_repeated(at_all_hours, types)]
        if types > 1:
            parts += [
                _independent(part, types)
                for part in (constant(hats * places, LEVEL_SD), scaled(at_all_hours, self.own))
            ]
        if hats > 1:
            curve = scaled(_everywhere(dense_field(clock), places), self.time)
            parts.append(_repeated(curve, types))
            parts += [_independent(scaled(curve, self.own), types)] if types > 1 else []
        if hats > 1 and self.together:
            parts.append(_repeated(scaled(product_field(clock, space), self.together), types))
        if intercept_sd is not None:
            parts.append(constant(types * hats * places, intercept_sd))
        return summed(*parts)


def dense_field(covariance: Floats) -> SparseField:
    """A field at K places of a covariance (K, K), each of its unknowns a place."""
    root = np.linalg.inv(np.linalg.cholesky(covariance)).T
    count = len(covariance)
    log_det = -float(np.linalg.slogdet(covariance)[1])
    return SparseField(sp.csc_array(root @ root.T), sp.csc_array(root), log_det, sp.eye_array(count, format="csr"))


def product_field(clock: Floats, space: SparseField) -> SparseField:
    """The field at K V values whose covariance is the product of a clock's (K, K) and a field's (V, V)."""
    times = dense_field(clock)
    return SparseField(
        sp.kron(times.precision, space.precision, format="csc"),
        sp.kron(times.root, space.root, format="csc"),
        space.size * times.log_det + times.size * space.log_det,
        sp.kron(times.placement, space.placement, format="csr"),
    )


def clock_covariance(times: Times | None, range_: float) -> Floats:
    """(K, K) Matern covariance of smoothness 3/2 and unit variance between the hats' instants, around a clock or not.

    Parameters
    ----------
    times : Times or None
        None where there are no times: one instant.
    range_ : float
        Distance in time at which the correlation is about 0.14.
    """
    if times is None:
        return np.ones((1, 1))
    kappa = np.sqrt(12.0) / range_
    apart = times.nodes[:, None] - times.nodes
    # Around a clock the sum over all turns is a covariance, which that of the shorter way need not be.
    most = math.ceil(FARTHEST / (kappa * times.length)) if times.periodic else 0
    turns = np.arange(-most, most + 1)[:, None, None] * times.length
    scaled_by = kappa * np.abs(apart + turns)
    found = ((1 + scaled_by) * np.exp(-scaled_by)).sum(axis=0)
    return np.asarray(found / found[0, 0] + 1e-9 * np.eye(times.hats))


def _repeated(field: SparseField, count: int) -> SparseField:
    """The same field so many times."""
    return _placed(field, sp.kron(np.ones((count, 1)), field.placement, format="csr"))


def _everywhere(field: SparseField, places: int) -> SparseField:
    """Each of a field's values at so many places."""
    return _placed(field, sp.kron(field.placement, np.ones((places, 1)), format="csr"))


def _placed(field: SparseField, placement: sp.csr_array) -> SparseField:
    return SparseField(field.precision, field.root, field.log_det, placement)


def _independent(field: SparseField, count: int) -> SparseField:
    """So many independent copies of a field, one after the other."""
    each = sp.eye_array(count)
    return SparseField(
        sp.kron(each, field.precision, format="csc"),
        sp.kron(each, field.root, format="csc"),
        count * field.log_det,
        sp.kron(each, field.placement, format="csr"),
    )
