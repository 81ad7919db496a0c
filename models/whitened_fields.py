"""Fields of sparse precision whose unknowns are white noise, as posteriors behind moved points take them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy

from dpppsynth.core.types import Floats
from dpppsynth.models.sparse_fields import SparseField
from dpppsynth.models.sparse_solver import SparseFactor
from dpppsynth.models.spectral_fields import Unknowns

# Share of the points that may be elsewhere where a factor is used again.
ALIKE = 0.2


@dataclass(frozen=True, eq=False)
class WhitenedField:
    """Prior of a field `w = A Q^-1 R z` with `z ~ N(0, I)` and `R R' = Q`: its covariance is `A Q^-1 A'`.

    Attributes
    ----------
    prior : SparseField
        With placement A, precision Q and root R.
    """

    prior: SparseField
    number: ClassVar[type] = float

    @property
    def effects(self) -> int:
        """Number p of effects of covariates."""
        return self.prior.effects

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return int(self.prior.root.shape[1])

    @cached_property
    def _factor(self) -> SparseFactor:
        return SparseFactor(self.prior.precision)

    def _solved(self, unknowns: Unknowns) -> Floats:
        """(N, ...) `Q^-1 R z` of unknowns (..., size)."""
        return self._factor.solve(self.prior.root @ unknowns.T)

    def field(self, unknowns: Unknowns) -> Floats:
        """(..., V) field of unknowns (..., size)."""
        return np.asarray((self.prior.placement @ self._solved(unknowns)).T)

    def adjoint(self, fields: Floats) -> Unknowns:
        """(..., size) transpose of the same times fields (..., V)."""
        return np.asarray((self.prior.root.T @ self._factor.solve(self.prior.placement.T @ fields.T)).T)

    def dot(self, one: Unknowns, other: Unknowns) -> Floats:
        """(...) inner products of unknowns (..., size)."""
        return np.asarray((one * other).sum(axis=-1))

    def white(self, k: int, rng: np.random.Generator) -> Unknowns:
        """(k, size) draws from `N(0, I)`."""
        return rng.standard_normal((k, self.size))

    def effects_of(self, unknowns: Unknowns) -> Floats:
        """(..., p) effects of covariates."""
        return self._solved(unknowns)[self.prior.size - self.effects :].T

    def like(self, other: Any, unknowns: Unknowns) -> Unknowns:
        """(size,) unknowns that give the field of other ones of another prior, about."""
        return np.asarray(self.prior.root.T @ self.prior.unknowns_of(other.field(unknowns)))

    def near(self, masses: Floats, _scale: float, _guessed: float) -> Callable[[Unknowns], Unknowns]:
        """Product with the inverse of what the posterior precision were, had no point been moved.

        That is `(I + S' D S)^-1 = I - R' (Q^-1 - (Q + A' D A)^-1) R`, with `S = A Q^-1 R` and D the masses (V,), or
        those of the last call where they hardly differ.
        """
        root, told = self.prior.root, self._told_of(masses)

        def product(unknowns: Unknowns) -> Unknowns:
            pull = root @ unknowns.T
            return np.asarray(unknowns - (root.T @ (self._factor.solve(pull) - told.solve(pull))).T)

        return product

    def _told_of(self, masses: Floats) -> SparseFactor:
        """Factor of `Q + A' D A`."""
        for known, factor in self._told:
            if np.abs(known - masses).sum() <= ALIKE * masses.sum():
                return factor
        placement = self.prior.placement
        factor = SparseFactor(self.prior.precision + placement.T @ scipy.sparse.diags_array(masses) @ placement)
        self._told[:] = [(masses, factor)]
        return factor

    @cached_property
    def _told(self) -> list[tuple[Floats, SparseFactor]]:
        """The last masses, and their factor."""
        return []
