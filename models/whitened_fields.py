"""Fields of sparse precision whose unknowns are white noise, as posteriors behind moved points take them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from dpppsynth.core.types import Floats
from dpppsynth.models.sparse_fields import SparseField
from dpppsynth.models.sparse_solver import SparseFactor
from dpppsynth.models.spectral_fields import MovedPrior, Unknowns

# Share of the points that may be elsewhere where a factor is used again.
ALIKE = 0.2


@dataclass(frozen=True, eq=False)
class WhitenedField(MovedPrior):
    """Prior of a field `w = A Q^-1 R z` with `z ~ N(0, I)` and `R R' = Q`: its covariance is `A Q^-1 A'`.

    Attributes
    ----------
    prior : SparseField
        With placement A, precision Q and root R.
    """

    prior: SparseField

    @property
    def number(self) -> type:
        return float

    @property
    def effects(self) -> int:
        return self.prior.effects

    @property
    def size(self) -> int:
        return int(self.prior.root.shape[1])

    @cached_property
    def _factor(self) -> SparseFactor:
        return SparseFactor(self.prior.precision)

    def field(self, unknowns: Unknowns) -> Floats:
        prior = self.prior
        return by_columns(lambda each: prior.placement @ self._factor.solve(prior.root @ each), unknowns)

    def adjoint(self, fields: Floats) -> Unknowns:
        prior = self.prior
        return by_columns(lambda each: prior.root.T @ self._factor.solve(prior.placement.T @ each), fields)

    def dot(self, one: Unknowns, other: Unknowns) -> Floats:
        return np.asarray((one * other).sum(axis=-1))

    @property
    def freedoms(self) -> int:
        return self.size

    def of_real(self, numbers: Floats) -> Unknowns:
        return numbers

    def to_real(self, unknowns: Unknowns) -> Floats:
        return np.asarray(unknowns)

    def effects_of(self, unknowns: Unknowns) -> Floats:
        return np.asarray(unknowns[..., self.size - self.effects :])

    def like(self, other: Any, unknowns: Unknowns) -> Unknowns:
        """(size,) unknowns that give the field of other ones of another prior, about."""
        return np.asarray(self.prior.root.T @ self.prior.unknowns_of(other.field(unknowns)))

    def near(self, masses: Floats, _scale: float, _guessed: float) -> Callable[[Unknowns], Unknowns]:
        """Product with the inverse of what the posterior precision were, had no point been moved.

        That is `(I + S' D S)^-1 = I - R' (Q^-1 - (Q + A' D A)^-1) R`, with `S = A Q^-1 R` and D the masses (V,), or
        those of the last call where they hardly differ. Of masses (J, V) it is one product each, for (..., J, size).
        """
        root, told = self.prior.root, [self._told_of(each, k) for k, each in enumerate(np.atleast_2d(masses))]

        def product(unknowns: Unknowns) -> Unknowns:
            pull = by_columns(root.__matmul__, unknowns)
            known = by_columns(self._factor.solve, pull)
            apart = pull if masses.ndim > 1 else pull[..., None, :]
            found = np.stack(
                [by_columns(each.solve, apart[..., k, :]) for k, each in enumerate(told)], axis=-2
            ).reshape(pull.shape)
            return np.asarray(unknowns - by_columns(root.T.__matmul__, known - found))

        return product

    def _told_of(self, masses: Floats, number: int) -> SparseFactor:
        """Factor of `Q + A' D A`, one for each number."""
        known = self._told.get(number)
        if known is not None and np.abs(known[0] - masses).sum() <= ALIKE * masses.sum():
            return known[1]
        placement = self.prior.placement
        factor = SparseFactor(self.prior.precision + placement.T @ scipy.sparse.diags_array(masses) @ placement)
        self._told[number] = masses, factor
        return factor

    @cached_property
    def _told(self) -> dict[int, tuple[Floats, SparseFactor]]:
        """The last masses of each number, and their factor."""
        return {}


def by_columns(product: Callable[[Floats], Floats], rows: Floats) -> Floats:
    """(..., M) a product with columns (N, k), of rows (..., N)."""
    found = product(rows.reshape(-1, rows.shape[-1]).T).T
    return np.asarray(found.reshape(*rows.shape[:-1], -1))
