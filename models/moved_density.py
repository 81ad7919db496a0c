"""The posterior of a field behind moved points in coordinates in which its Laplace approximation is standard normal.

The field at its V places is `w = L x`, with `x ~ N(0, I)` and `L L'` its covariance there under the prior, effects of
covariates among x. Along the eigenvectors U of `L' J' diag(n / q) J L`, the information at the mode, with eigenvalues
k, the approximation's standard deviations are `(1 + k)^(-1/2)`. So `x = U (m + (1 + k)^(-1/2) z)`, and the gradient
takes two products with a dense (V, r) matrix, beside those with the channel of the moves.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpppsynth.models.channel_likelihood import MatrixChannel
from dpppsynth.models.moved_posterior import LatticePosterior, MovedLikelihood
from dpppsynth.models.nuts import Density
from dpppsynth.spatial.mesh import Floats, Ints

# Share of the largest variance of a direction below which a field is taken not to move along it.
NONE = 1e-10
# Entries of a channel whose products are faster with a dense matrix than by Fourier transforms.
DENSE = 150_000
# Differences between places that are rounding alone.
EVEN = 1e-9
# Places whose rows of a matrix are found at once.
TOGETHER = 100


@dataclass(frozen=True, eq=False)
class MovedDensity(Density):
    """Log-density of z, where the field at some places is `centre + basis z`, and the prior's unknowns `mode + sd z`.

    Attributes
    ----------
    likelihood : MovedLikelihood
    places : (V,) array
        Of the likelihood's field, those where points can be.
    centre : (V,) array
        Field at the mode.
    basis : (V, r) array
    mode, sd : (r,) array
        Along the axes of z, in standard deviations of the prior.
    told : (p, r) array
        Effects of covariates of the prior's unknowns.
    """

    likelihood: MovedLikelihood
    places: Ints
    centre: Floats
    basis: Floats
    mode: Floats
    sd: Floats
    told: Floats

    @classmethod
    def about(cls, fit: LatticePosterior, places: Ints) -> "MovedDensity":
        """The density about a mode that was found, of the field at places (V,) that hold all of the measure."""
        root, effects = _root(fit.prior, len(fit.field), places)
        own, known = root.shape[1], fit.prior.effects_of(fit.mode)
        information = _information(fit, places, np.hstack([root, effects]))
        alone = fit.field[places] - effects @ known
        # Columns of the root are orthogonal.
        at = np.concatenate([root.T @ alone / np.maximum((root**2).sum(axis=0), NONE), known])
        values, axes = np.linalg.eigh(information)
        sd = 1 / np.sqrt(1 + np.maximum(values, 0.0))
        basis = np.ascontiguousarray(np.hstack([root, effects]) @ axes * sd)
        centre = root @ at[:own] + effects @ known
        return cls(_quick(fit.likelihood), places, centre, basis, axes.T @ at, sd, axes[own:])

    @property
    def size(self) -> int:
        return len(self.sd)

    @property
    def is_even(self) -> bool:
        """Whether all fields are the same everywhere, and z is standard normal as no count tells of it."""
        return bool(np.ptp(self.basis, axis=0).max(initial=0.0) < EVEN)

    def fields(self, z: Floats) -> Floats:
        """(..., V) fields at the places at z (..., r)."""
        return np.asarray(self.centre + z @ self.basis.T)

    def effects(self, z: Floats) -> Floats:
        """(..., p) effects of covariates at z (..., r), in their prior's standard deviations."""
        return np.asarray((self.mode + self.sd * z) @ self.told.T)

    def function(self) -> Callable[[Floats], tuple[float, Floats]]:
        """A function of z (r,) that gives the value, compared with that of the mode, and the gradient (r,)."""
        code = self._value_and_gradient
        highest = code(np.zeros(self.size))[0]

        def compared(z: Floats) -> tuple[float, Floats]:
            value, gradient = code(z)
            return value - highest, gradient

        return compared

    def _value_and_gradient(self, z: Floats) -> tuple[float, Floats]:
        field, unknowns = np.zeros(len(self.likelihood.measure)), self.mode + self.sd * z
        field[self.places] = self.fields(z)
        value, slope = self.likelihood.value_and_gradient(field)
        gradient = slope[self.places] @ self.basis - self.sd * unknowns
        return value - float(unknowns @ unknowns) / 2, gradient


def _quick(likelihood: MovedLikelihood) -> MovedLikelihood:
    """The likelihood, with a dense matrix where its channel is small."""
    if len(likelihood.counts) * len(likelihood.measure) > DENSE:
        return likelihood
    dense = MatrixChannel(likelihood.channel.shape, np.ascontiguousarray(likelihood.channel.matrix))
    return replace(likelihood, channel=dense)


def _root(prior: Any, size: int, places: Ints) -> tuple[Floats, Floats]:
    """(V, r) root of a prior's covariance at places (V,), of orthogonal columns, and (V, p) what effects add to it."""
    p, rows, effects = prior.effects, [np.empty((0, len(places)))], [np.empty((0, prior.effects))]
    for part in _parts(len(places)):
        single = np.zeros((len(part), size))
        single[np.arange(len(part)), places[part]] = 1.0
        unknowns = prior.adjoint(single)
        effects.append(prior.effects_of(unknowns).copy())
        unknowns[:, prior.size - p :] = 0.0
        rows.append(prior.field(unknowns)[:, places])
    covariance = np.concatenate(rows)
    values, axes = np.linalg.eigh((covariance + covariance.T) / 2)
    kept = values > NONE * max(values.max(), NONE)
    return axes[:, kept] * np.sqrt(values[kept]), np.concatenate(effects)


def _information(fit: LatticePosterior, places: Ints, root: Floats) -> Floats:
    """(r, r) expected information at the mode on coordinates that move the field at places by a (V, r) root."""
    product, rows = fit.likelihood.information(fit.field), [np.empty((0, len(places)))]
    for part in _parts(root.shape[1]):
        moved = np.zeros((len(part), len(fit.field)))
        moved[:, places] = root[:, part].T
        rows.append(product(moved)[:, places])
    found = np.concatenate(rows) @ root
    return np.asarray((found + found.T) / 2)


def _parts(count: int) -> list[Ints]:
    return [np.arange(start, min(start + TOGETHER, count)) for start in range(0, count, TOGETHER)]
