"""Posterior of a field of shares given counts of moved points on a lattice: modes, draws, and the choice of its prior.

Moved points are independent draws from the field's shares, seen through a channel (`models/planar_kernel.py`). The
prior is a `SpectralField`. The approximation at the mode has the precision `I + S' J' diag(n / q) J S`, with q the
chances of the counts and J their derivatives in the field; a right-hand side of that covariance is drawn at once, and
one system solved for each draw (perturb and solve), by conjugate gradients.

Points are moved independently of each other, so they can be halved at random: a prior is judged by how well the mode
that it gives of one half foretells the other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

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
ROUGH, FINE, GRADIENTS = 0.1, 0.02, 1000
# Numbers in systems that are solved together.
TOGETHER = 400_000


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

    likelihood: ReportLikelihood
    prior: SpectralField
    mode: Unknowns

    @cached_property
    def field(self) -> Floats:
        """(V,) field at the mode."""
        return self.prior.field(self.mode)

    def system(self) -> Callable[[Unknowns], Unknowns]:
        """Product with the precision of the unknowns."""
        product = self.likelihood.information(self.field)
        return lambda unknowns: unknowns + self.prior.adjoint(product(self.prior.field(unknowns)))

    def deviations(self, k: int, rng: np.random.Generator) -> Unknowns:
        """(k, size) draws of the unknowns less the mode."""
        likelihood, prior, system = self.likelihood, self.prior, self.system()
        shares = likelihood.shares(self.field)
        root = np.sqrt(likelihood.counts.sum() / likelihood.chances(shares))
        parts = [np.empty((0, prior.size), dtype=complex)]
        batch = max(1, TOGETHER // prior.size)
        for size in (min(batch, k - start) for start in range(0, k, batch)):
            pull = likelihood.channel.backward(root * rng.standard_normal((size, len(root))))
            moved = shares * (pull - (pull @ shares)[:, None])
            parts.append(solved(system, prior, prior.white(size, rng) + prior.adjoint(moved), FINE))
        return np.concatenate(parts)


def moved_likelihood(
    counts: Ints,
    measure: Floats,
    *,
    rate: float,
    spacing: tuple[float, float],
    shape: tuple[int, int],
    extension: int,
) -> ReportLikelihood:
    """Likelihood of a field at the nodes of a lattice given counts of moved points on a wider one.

    Nodes at the border of the wider lattice, which stand for all that lies beyond as well, are taken together.

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
    margin = extension - 1
    inner = counts[1:-1, 1:-1]
    reach = int(np.ceil(REACH / (rate * min(spacing))))
    radius = tuple(max(margin, min(reach, side - 1 + margin)) for side in shape)
    kernel = lattice_kernel(rate, spacing, (radius[0], radius[1]))
    channel = WithRest(FootprintChannel(shape, kernel, 0.0, np.ones(inner.shape, dtype=bool)))
    reports = np.append(inner.ravel(), counts.sum() - inner.sum()) / 1.0
    return ReportLikelihood(channel, reports, Multinomial(float(counts.sum())), measure.ravel())


# Scales of the noise beyond which there is less than one in a hundred million.
REACH = 22.0


def lattice_mode(likelihood: ReportLikelihood, prior: SpectralField, start: Unknowns | None = None) -> LatticePosterior:
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
        step = solved(here.system(), prior, gradient, ROUGH)
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
        unknowns, value = trial, there
    msg = "inference: the posterior mode of the field was not found; take another range or a smaller sigma."
    raise QualityError(msg)


def _height(likelihood: ReportLikelihood, prior: SpectralField, unknowns: Unknowns) -> float:
    """Log-posterior, up to a constant."""
    return likelihood.log_density(prior.field(unknowns)) - float(prior.dot(unknowns, unknowns)) / 2


def solved(system: Callable[[Unknowns], Unknowns], prior: SpectralField, right: Unknowns, residual: float) -> Unknowns:
    """(..., size) solutions of systems with right-hand sides (..., size), to relative residuals."""
    solution, rest, along = np.zeros_like(right), right.copy(), right.copy()
    square = prior.dot(rest, rest)
    enough = residual**2 * square
    for _ in range(GRADIENTS):
        if (square <= enough).all():
            break
        moved = system(along)
        length = square / np.maximum(prior.dot(along, moved), TINY)
        solution += length[..., None] * along
        rest -= length[..., None] * moved
        before, square = square, prior.dot(rest, rest)
        along = rest + (square / np.maximum(before, TINY))[..., None] * along
    return solution


TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Halves:
    """Moved points halved at random, each half as a likelihood.

    Attributes
    ----------
    one, other : ReportLikelihood
    """

    one: ReportLikelihood
    other: ReportLikelihood

    @classmethod
    def of(cls, likelihood: ReportLikelihood, rng: np.random.Generator) -> "Halves":
        """Halve the points."""
        counts = rng.binomial(likelihood.counts.astype(np.int64), 0.5) / 1.0
        rest = likelihood.counts - counts
        return cls(
            *(
                ReportLikelihood(likelihood.channel, each, Multinomial(float(each.sum())), likelihood.measure)
                for each in (counts, rest)
            )
        )

    def score(self, prior: SpectralField) -> float:
        """Log-likelihood of each half at the mode of the other, summed."""
        return sum(
            told.log_density(lattice_mode(known, prior).field)
            for known, told in ((self.one, self.other), (self.other, self.one))
        )


def climbed(
    score: Callable[[tuple[int, int]], float], lengths: tuple[int, int], start: tuple[int, int]
) -> dict[tuple[int, int], float]:
    """Scores of the places in a table that are tried on the way up to one without a higher neighbour along an axis."""
    found = {start: score(start)}
    here = start
    while True:
        around = [(here[0] + i, here[1] + j) for i, j in ((-1, 0), (1, 0), (0, -1), (0, 1))]
        for place in around:
            if all(0 <= k < most for k, most in zip(place, lengths, strict=True)) and place not in found:
                found[place] = score(place)
        best = max(found, key=found.__getitem__)
        if best == here:
            return found
        here = best
