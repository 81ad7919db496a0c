"""Posterior of a field of shares given counts of moved points on a lattice: modes, draws, and the choice of its prior.

Moved points are independent draws from the field's shares, seen through a channel (`models/planar_kernel.py`). The
prior is a `SpectralField`. The approximation at the mode has the precision `I + S' J' diag(n / q) J S`, with q the
chances of the counts and J their derivatives in the field; a right-hand side of that covariance is drawn at once, and
one system solved for each draw (perturb and solve), by conjugate gradients.

Points are moved independently of each other, so they can be halved at random: a prior is judged by how well the mode
that it gives of one half foretells the other.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpppsynth.core.errors import QualityError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.models.channel_likelihood import Channel, Multinomial, ReportLikelihood
from dpppsynth.models.matern_search import climb_grid
from dpppsynth.models.moved_channels import COARSE, Blocks, LevelChannel, StreetPoints, street_channel
from dpppsynth.models.spectral_fields import MovedPrior, Unknowns

# Newton decrement at which to stop, most steps and halvings, and the longest step on the log scale.
TOLERANCE, STEPS, HALVINGS, LONGEST = 0.05, 100, 30, 4.0
# Share of the predicted gain that a step must bring.
ENOUGH = 0.2
# Residuals at which conjugate gradients stop, of Newton steps, of draws, and of what goes with effects of covariates,
# relative to the right-hand side, and their most steps.
ROUGH, FINE, FINER, GRADIENTS = 0.3, 0.1, 1e-6, 1000
# Share of the information that is guessed for draws, and for single nodes, and steps after which it is not for these.
GUESSED, QUICK = 0.03, 40
# Points of a half from which on one direction is enough.
MANY = 30_000
# Numbers in systems that are solved together.
TOGETHER = 60_000


@dataclass(frozen=True, eq=False)
class MovedLikelihood(ReportLikelihood):
    """Likelihood of a field given counts of points moved by planar Laplace noise.

    Attributes
    ----------
    scale : float
        Of the noise.
    spacing : (float, float)
        Of the field's nodes, along both axes.
    """

    scale: float
    spacing: tuple[float, float]


def street_likelihood(
    counts: Ints,
    measure: Floats,
    points: StreetPoints,
    *,
    rate: float,
    spacing: tuple[float, float],
    extension: int,
    side: int = 1,
) -> MovedLikelihood:
    """Likelihood of a field on segments (V,) of streets, or of several levels, given counts of points moved off them.

    Nodes that are far apart in scales of the noise are told apart whatever `side` asks for.

    Parameters
    ----------
    counts : (nx + 2 r, ny + 2 r) or (L, nx + 2 r, ny + 2 r) array
    measure : (V,) or (L, V) array
        Of the segments.
    points : StreetPoints
        That stand for the segments, from the first of the nodes (nx, ny).
    rate, spacing, extension, side
        As in `moved_likelihood`.
    """
    nx, ny = (nodes - 2 * extension for nodes in counts.shape[-2:])
    blocks = Blocks((nx, ny), spacing, rate, extension, 1 if rate * max(spacing) > COARSE else side)
    return _likelihood(blocks, street_channel(points, blocks), counts, measure.ravel())


@dataclass(frozen=True, eq=False)
class VertexMasses:
    """Masses of n points at vertices of a measure (V,), in proportion to it times exp of a field."""

    measure: Floats
    n: float

    def vertex_masses(self, w: Floats) -> Floats:
        """(..., V) masses under fields (..., V)."""
        mass = self.measure * np.exp(w - w.max(axis=-1, keepdims=True))
        return np.asarray(mass * (self.n / mass.sum(axis=-1, keepdims=True)))


@dataclass(frozen=True, eq=False)
class LatticePosterior:
    """Gaussian approximation of the posterior at its mode.

    Attributes
    ----------
    likelihood : MovedLikelihood
    prior : SpectralField, LevelField or WhitenedField
    mode : (size,) array
        Mode of the unknowns.
    """

    likelihood: MovedLikelihood
    prior: MovedPrior
    mode: Unknowns

    @cached_property
    def field(self) -> Floats:
        """(V,) field at the mode."""
        return self.prior.field(self.mode)

    def solve(
        self, right: Unknowns, residual: float, guessed: float = 0.0, held: int = 0, most: int = GRADIENTS
    ) -> Unknowns:
        """(..., size) solutions of systems with the unknowns' precision matrix, to a relative residual.

        `guessed` is the share of the information at places of many points that a preconditioner takes for granted
        everywhere. Newton steps go with few coefficients, and are found sooner without. The last `held` unknowns are
        held at 0, and their equations left out.
        """
        likelihood, prior = self.likelihood, self.prior
        masses = likelihood.counts.sum() * likelihood.shares(self.field)
        near = without_last(prior.near(masses, likelihood.scale, guessed), held)
        system, right = without_last(self.precision(), held), without_last(np.copy, held)(right)
        return solved(system, prior.dot, right, near, residual, most)

    def precision(self) -> Callable[[Unknowns], Unknowns]:
        """Products (..., size) with the precision of the unknowns."""
        prior, product = self.prior, self.likelihood.information(self.field)
        return lambda unknowns: unknowns + prior.adjoint(product(prior.field(unknowns)))

    def deviations(self, k: int, rng: np.random.Generator) -> Unknowns:
        """(size, k) draws of the unknowns less the mode.

        Effects of covariates come first, by their own law, and the rest given them, for which rough solutions will do.
        Those of all together leave effects up to three times too certain, where a smooth field explains much of them.
        """
        drawn, (along, root) = self._without_effects(k, rng), self._effects()
        return (drawn + rng.standard_normal((k, len(root))) @ root @ along).T

    def _without_effects(self, k: int, rng: np.random.Generator) -> Unknowns:
        """(k, size) draws of the unknowns less the mode, where effects of covariates are known."""
        likelihood, prior = self.likelihood, self.prior
        shares = likelihood.shares(self.field)
        root = np.sqrt(likelihood.counts.sum() / likelihood.chances(shares))
        parts: list[Unknowns] = [np.empty((0, prior.size), dtype=prior.number)]
        batch = max(1, TOGETHER // prior.size)
        for size in (min(batch, k - start) for start in range(0, k, batch)):
            pull = likelihood.channel.backward(root * rng.standard_normal((size, len(root))))
            moved = shares * (pull - (pull @ shares)[:, None])
            right = prior.white(size, rng) + prior.adjoint(moved)
            parts.append(self.solve(right, FINE, GUESSED, held=prior.effects))
        return np.concatenate(parts)

    def _effects(self) -> tuple[Unknowns, Floats]:
        """(p, size) mean changes of the unknowns with each effect of a covariate, and a (p, p) root of these' law.

        With precision blocks A of the rest, B between and D of the effects, the changes are (-A^-1 B, 1), and the
        effects' precision is D - B' A^-1 B (Schur complement), what the changes cost.
        """
        prior, product = self.prior, self.precision()
        p = prior.effects
        along: Unknowns = np.eye(p, prior.size, prior.size - p, dtype=prior.number)
        if p == 0:
            return along, np.eye(0)
        along -= self.solve(product(along), FINER, held=p)
        cost = prior.dot(along[:, None], product(along)[None])
        return along, np.linalg.inv(np.linalg.cholesky(cost))

    def directions(self, nodes: Ints) -> Unknowns:
        """(size, m) changes of the unknowns that go with about one standard deviation of the field at nodes (m,)."""
        single = np.zeros((len(nodes), len(self.field)))
        single[np.arange(len(nodes)), nodes] = 1.0
        rows = self.prior.adjoint(single)
        moved = self.solve(rows, ROUGH, GUESSED, most=QUICK)
        rest = rows - self.precision()(moved)
        if (self.prior.dot(rest, rest) > ROUGH**2 * self.prior.dot(rows, rows)).any():
            # Under long ranges a guess misleads: it may take hundreds of steps.
            moved = self.solve(rows, ROUGH)
        # However roughly solved, along them the approximation is standard normal; a field that is even has no variance.
        square = np.maximum(self.prior.dot(moved, self.precision()(moved)), TINY)
        return np.asarray((moved / np.sqrt(square)[:, None]).T)

    def log_ratios(self, likelihood: MovedLikelihood, deviations: Unknowns) -> Floats:
        """(k,) log posterior over approximation, up to a constant, at deviations (size, k) from the mode."""
        prior, product = self.prior, likelihood.information(self.field)

        def ratio(change: Unknowns) -> float:
            moved = prior.field(change)
            gaussian = float(prior.dot(change, change) + moved @ product(moved))
            return _height(likelihood, prior, self.mode + change) + gaussian / 2

        return np.array([ratio(change) for change in deviations.T])


def moved_likelihood(
    counts: Ints,
    measure: Floats,
    *,
    rate: float,
    spacing: tuple[float, float],
    extension: int,
    side: int = 1,
) -> MovedLikelihood:
    """Likelihood of a field, or of several levels, given counts of moved points on a wider lattice than its nodes.

    Nodes far out are taken together, those at the border among them, which stand for all that lies beyond as well.

    Parameters
    ----------
    counts : (nx + 2 r, ny + 2 r) or (L, nx + 2 r, ny + 2 r) array
        Of one field, or of L levels, whose points keep their level when they are moved.
    measure : (nx, ny) or (L, nx, ny) array
        Of the nodes; 0 where there can be no points.
    rate : float
        Inverse scale of the noise per unit of length.
    spacing : (float, float)
    extension : int
        r, at least 1.
    side : int
        Nodes along either side of the blocks that are taken for nodes of a coarser lattice.
    """
    blocks = Blocks((measure.shape[-2], measure.shape[-1]), spacing, rate, extension, side)
    measures = [blocks.summed(each) for each in measure.reshape(-1, *measure.shape[-2:])]
    return _likelihood(blocks, blocks.channel, counts, np.concatenate(measures))


def _likelihood(blocks: "Blocks", each: Channel, counts: Ints, measure: Floats) -> MovedLikelihood:
    """Likelihood of a field given counts, or of several levels, each seen through a channel onto blocks."""
    told = [blocks.told(level) for level in counts.reshape(-1, *counts.shape[-2:])]
    channel = each if counts.ndim == 2 else LevelChannel(each, len(counts))
    law = Multinomial(float(counts.sum()))
    return MovedLikelihood(channel, np.concatenate(told), law, measure, 1 / blocks.rate, blocks.spacing)


def lattice_mode(likelihood: MovedLikelihood, prior: MovedPrior, start: Unknowns | None = None) -> LatticePosterior:
    """Mode by Newton steps with expected information, whose systems are solved by conjugate gradients.

    Raises
    ------
    QualityError
        When it is not found.
    """
    unknowns = np.zeros(prior.size, dtype=prior.number) if start is None else start
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


def _height(likelihood: ReportLikelihood, prior: MovedPrior, unknowns: Unknowns) -> float:
    """Log-posterior, up to a constant."""
    return likelihood.log_density(prior.field(unknowns)) - float(prior.dot(unknowns, unknowns)) / 2


def solved(
    system: Callable[[Unknowns], Unknowns],
    dot: Callable[[Unknowns, Unknowns], Floats],
    right: Unknowns,
    near: Callable[[Unknowns], Unknowns],
    residual: float,
    most: int = GRADIENTS,
) -> Unknowns:
    """(..., size) solutions of systems by conjugate gradients.

    Parameters
    ----------
    system : callable
        Product with the matrix.
    dot : callable
        Inner products of unknowns.
    right : (..., size) array
    near : callable
        Product with the inverse of a matrix near it.
    residual : float
        Norm of what may be left of each right-hand side, relative to it.
    most : int
        Steps after which to stop all the same.
    """
    solution, rest = np.zeros_like(right), right.copy()
    enough, square = residual**2 * dot(right, right), dot(right, right)
    step = near(rest)
    along, height = step, dot(rest, step)
    for _ in range(most):
        if (square <= enough).all():
            break
        moved = system(along)
        length = (height / np.maximum(dot(along, moved), TINY))[..., None]
        solution += length * along
        rest -= length * moved
        step, square = near(rest), dot(rest, rest)
        before, height = height, dot(rest, step)
        along = step + (height / np.maximum(before, TINY))[..., None] * along
    return solution


TINY = 1e-300


def without_last(product: Callable[[Unknowns], Unknowns], held: int) -> Callable[[Unknowns], Unknowns]:
    """A product whose last unknowns are 0."""

    def kept(unknowns: Unknowns) -> Unknowns:
        found = product(unknowns)
        found[..., found.shape[-1] - held :] = 0
        return found

    return kept if held else product


@dataclass(frozen=True, eq=False)
class Halves:
    """Moved points halved at random, each half as a likelihood."""

    one: MovedLikelihood
    other: MovedLikelihood

    @classmethod
    def of(cls, likelihood: MovedLikelihood, rng: np.random.Generator) -> "Halves":
        """Halve the points."""
        counts = rng.binomial(likelihood.counts.astype(np.int64), 0.5) / 1.0
        rest = likelihood.counts - counts
        one, other = (replace(likelihood, counts=each, law=Multinomial(float(each.sum()))) for each in (counts, rest))
        return cls(one, other)

    def judge(self, prior: Callable[[MovedLikelihood], MovedPrior], near: "Judged | None" = None) -> "Judged":
        """Log-likelihood of each half at the mode of the other, summed; the search starts at the modes of `near`.

        A prior that is partly found from the points is found from the half that is known. Of very many points one half
        is foretold alone, and counts twice.
        """
        both = ((self.one, self.other), (self.other, self.one))[: 2 if self.one.law.n < MANY else 1]
        fits, score = list[LatticePosterior](), 0.0
        for k, (known, told) in enumerate(both):
            own = prior(known)
            fits.append(lattice_mode(known, own, None if near is None else own.like(*near.modes[k])))
            score += told.log_density(fits[k].field) * 2 / len(both)
        return Judged(score, tuple((fit.prior, fit.mode) for fit in fits))


@dataclass(frozen=True, eq=False)
class Judged:
    """Score of a prior, and for either half the prior with the mode under it."""

    score: float
    modes: tuple[tuple[MovedPrior, Unknowns], ...]


Place = tuple[int, ...]


def climbed(
    judge: Callable[[Place, Judged | None], Judged], lengths: tuple[int, ...], start: Place
) -> dict[Place, float]:
    """Scores of the places of a table that are visited on the way to one without a higher neighbour along an axis.

    Modes of the best place so far are where the next search starts. Those of the others are let go, with the factors of
    their priors, which may fill the memory.
    """
    found: dict[Place, float] = {}
    best: Judged | None = None

    def score(place: tuple[float, ...]) -> float:
        nonlocal best
        here = tuple(map(int, place))
        judged = judge(here, best)
        best = judged if best is None or judged.score > best.score else best
        found[here] = judged.score
        return judged.score

    climb_grid(score, [range(each) for each in lengths], start)
    return found
