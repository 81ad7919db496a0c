"""Posterior of a field of shares given counts of moved points on a lattice: modes, draws, and the choice of its prior.

Moved points are independent draws from the field's shares, seen through a channel (`models/planar_kernel.py`). The
prior is a `SpectralField`. The approximation at the mode has the precision `I + S' J' diag(n / q) J S`, with q the
chances of the counts and J their derivatives in the field; a right-hand side of that covariance is drawn at once, and
one system solved for each draw (perturb and solve), by conjugate gradients.

Points are moved independently of each other, so they can be halved at random: a prior is judged by how well the mode
that it gives of one half foretells the other.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from dpppsynth.core.errors import QualityError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.models.channel_likelihood import FootprintChannel, Multinomial, ReportLikelihood, WithRest
from dpppsynth.models.planar_kernel import lattice_kernel
from dpppsynth.models.spectral_fields import SpectralField, Unknowns

# Newton decrement at which to stop, most steps and halvings, and the longest step on the log scale.
TOLERANCE, STEPS, HALVINGS, LONGEST = 0.05, 100, 30, 4.0
# Share of the predicted gain that a step must bring.
ENOUGH = 0.2
# Residuals at which conjugate gradients stop, of Newton steps and of draws, relative to the right-hand side, and their
# most steps.
ROUGH, FINE, GRADIENTS = 0.3, 0.05, 1000
# Share of the information that is guessed for draws.
GUESSED = 0.03
# Scales of the noise by which nodes that are told apart reach beyond the window: one move in two thousand is longer.
# And scales beyond which there is less than one in a hundred million.
KEPT, REACH = 10.0, 22.0
# Numbers in systems that are solved together.
TOGETHER = 60_000


@dataclass(frozen=True, eq=False)
class MovedLikelihood(ReportLikelihood):
    """Likelihood of a field given counts of points moved by planar Laplace noise of a scale."""

    scale: float


@dataclass(frozen=True, eq=False)
class LatticePosterior:
    """Gaussian approximation of the posterior at its mode.

    Attributes
    ----------
    likelihood : ReportLikelihood
    prior : SpectralField
    mode : (size,) array
        Mode of the unknowns.
    """

    likelihood: MovedLikelihood
    prior: SpectralField
    mode: Unknowns

    @cached_property
    def field(self) -> Floats:
        """(V,) field at the mode."""
        return self.prior.field(self.mode)

    def solve(self, right: Unknowns, residual: float, guessed: float = 0.0) -> Unknowns:
        """(..., size) solutions of systems of the unknowns' precision, to a residual relative to right-hand sides.

        `guessed` is the share of the information at places of many points that a preconditioner takes for granted
        everywhere. Newton steps go with few coefficients, and are found sooner without.
        """
        likelihood, prior = self.likelihood, self.prior
        product, shares = likelihood.information(self.field), likelihood.shares(self.field)
        weight = guessed * likelihood.counts.sum() * float(shares @ shares)
        diagonal = 1 + weight * prior.seen(likelihood.scale)

        def system(unknowns: Unknowns) -> Unknowns:
            return unknowns + prior.adjoint(product(prior.field(unknowns)))

        return solved(system, prior.dot, right, diagonal, residual)

    def deviations(self, k: int, rng: np.random.Generator) -> Unknowns:
        """(k, size) draws of the unknowns less the mode."""
        likelihood, prior = self.likelihood, self.prior
        shares = likelihood.shares(self.field)
        root = np.sqrt(likelihood.counts.sum() / likelihood.chances(shares))
        parts = [np.empty((0, prior.size), dtype=complex)]
        batch = max(1, TOGETHER // prior.size)
        for size in (min(batch, k - start) for start in range(0, k, batch)):
            pull = likelihood.channel.backward(root * rng.standard_normal((size, len(root))))
            moved = shares * (pull - (pull @ shares)[:, None])
            parts.append(self.solve(prior.white(size, rng) + prior.adjoint(moved), FINE, GUESSED))
        return np.concatenate(parts)


def moved_likelihood(
    counts: Ints,
    measure: Floats,
    *,
    rate: float,
    spacing: tuple[float, float],
    shape: tuple[int, int],
    extension: int,
) -> MovedLikelihood:
    """Likelihood of a field at the nodes of a lattice given counts of moved points on a wider one.

    Nodes far out are taken together, those at the border among them, which stand for all that lies beyond as well.

    Parameters
    ----------
    counts : (nx + 2 r, ny + 2 r) array
    measure : (nx, ny) array
        Of the nodes; 0 where there can be no points.
    rate : float
        Inverse scale of the noise per unit of length.
    spacing : (float, float)
    shape : (int, int)
        Nodes along both axes.
    extension : int
        r, at least 1.
    """
    margin, reach = (math.ceil(scales / (rate * min(spacing))) for scales in (KEPT, REACH))
    margin = min(margin, extension - 1)
    cut = extension - margin
    inner = counts[cut:-cut, cut:-cut]
    radius = tuple(max(margin, min(reach, side - 1 + margin)) for side in shape)
    kernel = lattice_kernel(rate, spacing, (radius[0], radius[1]))
    channel = WithRest(FootprintChannel(shape, kernel, 0.0, np.ones(inner.shape, dtype=bool)))
    reports = np.append(inner.ravel(), counts.sum() - inner.sum()) / 1.0
    return MovedLikelihood(channel, reports, Multinomial(float(counts.sum())), measure.ravel(), 1 / rate)


def lattice_mode(likelihood: MovedLikelihood, prior: SpectralField, start: Unknowns | None = None) -> LatticePosterior:
    """Mode by Newton steps with expected information, whose systems are solved by conjugate gradients.

    Raises
    ------
    QualityError
        When it is not found.
    """
    unknowns = np.zeros(prior.size, dtype=complex) if start is None else start
    value = _height(likelihood, prior, unknowns)
    for _ in range(STEPS):
        here = LatticePosterior(likelihood, prior, unknowns)
        gradient = prior.adjoint(likelihood.gradient(here.field)) - unknowns
        step = here.solve(gradient, ROUGH)
        gain = float(prior.dot(gradient, step))
        if gain <= TOLERANCE:
            return here
        length = min(1.0, LONGEST / float(np.abs(prior.field(step)).max()))
        for _ in range(HALVINGS):
            trial = unknowns + length * step
            there = _height(likelihood, prior, trial)
            if there >= value + ENOUGH * length * gain:
                break
            length /= 2
        else:
            break
        unknowns, value = trial, there
    msg = "inference: the posterior mode of the field was not found; take another range or a smaller sigma."
    raise QualityError(msg)


def _height(likelihood: ReportLikelihood, prior: SpectralField, unknowns: Unknowns) -> float:
    """Log-posterior, up to a constant."""
    return likelihood.log_density(prior.field(unknowns)) - float(prior.dot(unknowns, unknowns)) / 2


def solved(
    system: Callable[[Unknowns], Unknowns],
    dot: Callable[[Unknowns, Unknowns], Floats],
    right: Unknowns,
    diagonal: Floats,
    residual: float,
) -> Unknowns:
    """(..., size) solutions of systems by conjugate gradients.

    Parameters
    ----------
    system : callable
        Product with the matrix.
    dot : callable
        Inner products of unknowns.
    right : (..., size) array
    diagonal : (size,) array
        Of a matrix near it.
    residual : float
        Norm of what may be left of each right-hand side, relative to it.
    """
    solution, rest = np.zeros_like(right), right.copy()
    enough, square = residual**2 * dot(right, right), dot(right, right)
    near = rest / diagonal
    along, height = near, dot(rest, near)
    for _ in range(GRADIENTS):
        if (square <= enough).all():
            break
        moved = system(along)
        length = (height / np.maximum(dot(along, moved), TINY))[..., None]
        solution += length * along
        rest -= length * moved
        near, square = rest / diagonal, dot(rest, rest)
        before, height = height, dot(rest, near)
        along = near + (height / np.maximum(before, TINY))[..., None] * along
    return solution


TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Halves:
    """Moved points halved at random, each half as a likelihood.

    Attributes
    ----------
    one, other : MovedLikelihood
    """

    one: MovedLikelihood
    other: MovedLikelihood

    @classmethod
    def of(cls, likelihood: MovedLikelihood, rng: np.random.Generator) -> "Halves":
        """Halve the points."""
        counts = rng.binomial(likelihood.counts.astype(np.int64), 0.5) / 1.0
        rest = likelihood.counts - counts
        one, other = (replace(likelihood, counts=each, law=Multinomial(float(each.sum()))) for each in (counts, rest))
        return cls(one, other)

    def judge(self, prior: SpectralField, near: "Judged | None" = None) -> "Judged":
        """Log-likelihood of each half at the mode of the other, summed; modes are searched from those of one near."""
        both = ((self.one, self.other), (self.other, self.one))
        starts = (None, None) if near is None else [prior.like(near.prior, mode) for mode in near.modes]
        fits = [lattice_mode(known, prior, start) for (known, _), start in zip(both, starts, strict=True)]
        score = sum(told.log_density(fit.field) for (_, told), fit in zip(both, fits, strict=True))
        return Judged(score, prior, tuple(fit.mode for fit in fits))


@dataclass(frozen=True, eq=False)
class Judged:
    """Score of a prior, and modes of both halves."""

    score: float
    prior: SpectralField
    modes: tuple[Unknowns, ...]

    @property
    def middle(self) -> Unknowns:
        """Unknowns between both modes."""
        return np.asarray(sum(self.modes) / len(self.modes))


Place = tuple[int, ...]


def climbed(
    judge: Callable[[Place, Judged | None], Judged], lengths: tuple[int, ...], start: Place
) -> dict[Place, Judged]:
    """Scores of the places in a table that are tried on the way up to one without a higher neighbour along an axis."""
    found = {start: judge(start, None)}
    here = start
    while True:
        for axis, step in product(range(len(lengths)), (-1, 1)):
            place = (*here[:axis], here[axis] + step, *here[axis + 1 :])
            if 0 <= place[axis] < lengths[axis] and place not in found:
                found[place] = judge(place, found[here])
        best = max(found, key=lambda place: found[place].score)
        if best == here:
            return found
        here = best
