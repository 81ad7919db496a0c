"""Fields of several levels at the same places: what all share and what each has of its own, for points of types.

The field of level l is `w_l = sum_j A_lj S u_j + (P e)_l`, with independent fields `S u_j` of one law and independent
standard normal numbers e. So `A A'` are the covariances of the levels at one place, and `P P'` those of their numbers,
which are the same at all places.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpppsynth.core.types import Floats
from dpppsynth.models.spectral_fields import MovedPrior, SpectralField, Unknowns
from dpppsynth.models.whitened_fields import WhitenedField

# Share of the largest variance below which a direction of levels has none.
NONE = 1e-9


@dataclass(frozen=True, eq=False)
class LevelField(MovedPrior):
    """Prior of the fields of L levels at the nodes of a lattice, or on the segments of streets, level by level.

    Unknowns are those of J fields `S u_j`, the P numbers e, and the effects of covariates.

    Attributes
    ----------
    each : SpectralField or WhitenedField
        Law of the independent fields, without covariates.
    mixing : (L, J) array
        A, of one column at least.
    numbers : (L, P) array
        P.
    columns : (V, p) array, optional
        Covariates at the places, times the standard deviations of their effects, which are the same in all levels.
    """

    each: SpectralField | WhitenedField
    mixing: Floats
    numbers: Floats
    columns: Floats | None = None

    @property
    def number(self) -> type:
        return self.each.number

    @property
    def effects(self) -> int:
        return 0 if self.columns is None else self.columns.shape[1]

    @property
    def size(self) -> int:
        return self._fields + self.numbers.shape[1] + self.effects

    def field(self, unknowns: Unknowns) -> Floats:
        coefficients, numbers, effects = self._parts(unknowns)
        drawn = self.mixing @ self.each.field(coefficients)
        drawn += (numbers.real @ self.numbers.T)[..., None]
        if self.columns is not None:
            drawn += (effects.real @ self.columns.T)[..., None, :]
        return np.asarray(drawn.reshape(*unknowns.shape[:-1], -1))

    def adjoint(self, fields: Floats) -> Unknowns:
        lead = fields.shape[:-1]
        levels = fields.reshape(*lead, len(self.mixing), -1)
        parts = [
            self.each.adjoint(self.mixing.T @ levels).reshape(*lead, -1),
            levels.sum(axis=-1) @ self.numbers,
        ]
        if self.columns is not None:
            parts.append(levels.sum(axis=-2) @ self.columns)
        return np.concatenate(parts, axis=-1)

    def dot(self, one: Unknowns, other: Unknowns) -> Floats:
        first, second = (self._parts(each) for each in (one, other))
        found = self.each.dot(first[0], second[0]).sum(axis=-1)
        for k in (1, 2):
            found = found + (first[k].real * second[k].real).sum(axis=-1)
        return np.asarray(found)

    @property
    def freedoms(self) -> int:
        return self.mixing.shape[1] * self.each.freedoms + self.size - self._fields

    def of_real(self, numbers: Floats) -> Unknowns:
        lead, several, each = numbers.shape[:-1], self.mixing.shape[1], self.each.freedoms
        fields = self.each.of_real(numbers[..., : several * each].reshape(*lead, several, each))
        rest = numbers[..., several * each :]
        return np.concatenate([fields.reshape(*lead, self._fields), rest], axis=-1)

    def to_real(self, unknowns: Unknowns) -> Floats:
        coefficients, *rest = self._parts(unknowns)
        fields = self.each.to_real(coefficients).reshape(*unknowns.shape[:-1], -1)
        return np.concatenate([fields, *(each.real for each in rest)], axis=-1)

    def effects_of(self, unknowns: Unknowns) -> Floats:
        return np.asarray(self._parts(unknowns)[2].real)

    def correlations(self, unknowns: Unknowns, types: int, measure: Floats) -> Floats:
        """(types, types) correlations of the fields of types over all places, by a measure (V,), without numbers."""
        fields = self.mixing @ self.each.field(self._parts(unknowns)[0])
        fields -= np.average(fields, axis=1, weights=measure)[:, None]
        apart = (fields * np.sqrt(measure)).reshape(types, -1)
        length = np.linalg.norm(apart, axis=1, keepdims=True)
        apart /= np.where(length > 0, length, 1.0)
        found = apart @ apart.T
        np.fill_diagonal(found, 1.0)
        return np.asarray(found)

    def like(self, other: Any, unknowns: Unknowns) -> Unknowns:
        """(size,) unknowns with the same fields as those of another prior of as many levels, as far as possible."""
        coefficients, numbers, effects = other._parts(unknowns)  # noqa: SLF001 - of its own class
        mixed = np.linalg.pinv(self.mixing) @ (other.mixing @ coefficients)
        told = np.linalg.pinv(self.numbers) @ (other.numbers @ numbers)
        same = [self.each.like(other.each, each) for each in mixed]
        return np.concatenate([*same, told, effects])

    def near(self, masses: Floats, scale: float, guessed: float) -> Callable[[Unknowns], Unknowns]:
        """As if fields and numbers were told apart: each field by the points of all levels in which it has a part."""
        levels = masses.reshape(len(self.mixing), -1)
        total = levels.sum(axis=1)
        fields = self.each.near((self.mixing**2).T @ levels, scale, guessed)
        # What points tell of the numbers alone: nothing of one that all levels have in common.
        among = self.numbers - total @ self.numbers / total.sum()
        numbers = np.linalg.inv(np.eye(among.shape[1]) + (self.numbers.T * total) @ among)

        def product(unknowns: Unknowns) -> Unknowns:
            coefficients, told, effects = self._parts(unknowns)
            own = fields(coefficients).reshape(*unknowns.shape[:-1], -1)
            return np.concatenate([own, told @ numbers.T, effects], axis=-1)

        return product

    def _parts(self, unknowns: Unknowns) -> tuple[Unknowns, Unknowns, Unknowns]:
        """Coefficients (..., J, size of one field), numbers (..., P) and effects (..., p)."""
        last = self._fields + self.numbers.shape[1]
        fields = unknowns[..., : self._fields].reshape(*unknowns.shape[:-1], self.mixing.shape[1], self.each.size)
        return fields, unknowns[..., self._fields : last], unknowns[..., last:]

    @cached_property
    def _fields(self) -> int:
        """Number of unknowns of all fields."""
        return int(self.mixing.shape[1] * self.each.size)


def level_root(covariance: Floats) -> Floats:
    """(L, J) root A of the covariance (L, L) of levels, `A A'`: a column for each of its directions, one at least."""
    variance, direction = np.linalg.eigh(covariance)
    kept = variance >= NONE * variance.max()
    return np.asarray(direction[:, kept] * np.sqrt(variance[kept]))


def level_covariance(types: int, clock: Floats, own: float, together: float, pairs: Floats | None = None) -> Floats:
    """(L, L) covariance at one place of the fields of types at instants, of variance one each.

    Parameters
    ----------
    types : int
    clock : (K, K) array
        Correlations of the instants.
    own : float
        Share of the variance that every type has to itself: 0 where all types are alike, 1 where they are independent.
        Above 1 types have `own - 1` times the correlations of pairs.
    together : float
        Share of the variance that changes with the time.
    pairs : (types, types) array, optional
        Correlations of types, for `own` above 1.

    Returns
    -------
    (L, L) array
        In the order of types, and of the instants of each.
    """
    alike = np.ones((types, types)) if pairs is None else pairs
    among = np.eye(types) + abs(1 - own) * (alike - np.eye(types))
    return np.asarray(np.kron(among, (1 - together) + together * clock), dtype=np.float64)
