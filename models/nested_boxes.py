"""Exact posterior draws by rejection sampling from nested boxes (docs/theory/sampling.md, section 1).

Where the field is no more than r below its mode, the log-likelihood falls at least as fast as a parabola of curvature
`k(r)`. A ladder of boxes takes the tight parabola near the mode and looser ones further out; each shell between two
boxes has a Gaussian proposal of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy

from dpppsynth.core.types import Confidential
from dpppsynth.models.target_posterior import PointPosterior
from dpppsynth.spatial.mesh import Floats

# First box, in posterior standard deviations; growth from box to box; log-share of mass left to the unbounded box.
FIRST, GROWTH, NEGLIGIBLE = 3.5, 1.25, -7.0
# Attempts made at once; the first accepted one counts, so that the number does not matter to the law.
BATCH = 256


@dataclass(frozen=True, eq=False, repr=False)
class Draw:
    """Log-intensity (V,) drawn from the posterior, and the number of attempts it took, which is secret."""

    field: Floats
    attempts: int


class NestedBoxes(Confidential):
    """Exact sampler of one posterior: in real arithmetic, draws follow it whatever the data.

    Raises
    ------
    QualityError
        When the mode is not found.
    """

    def __init__(self, posterior: PointPosterior) -> None:
        prior = posterior.prior
        mode = posterior.mode()
        self._basis, self._centre = prior.basis, posterior.field(mode)
        self._mass = prior.measure * np.exp(self._centre)
        # Zero but for rounding; kept, it makes the draws exact about any other point as well.
        self._gradient = posterior.log_density(mode)[1]
        self._shells = self._ladder()
        self._share = scipy.special.softmax([shell.log_mass for shell in self._shells])

    def draw(self, rng: np.random.Generator, *, support: Callable[[Floats], Any] | None = None) -> Draw:
        """First accepted proposal, in the order of the attempts.

        Parameters
        ----------
        rng : numpy.random.Generator
            Secret randomness.
        support : callable, optional
            Tells which of the fields (m, V) lie in a set, (m,); the others are rejected as well, so that the draw
            follows the posterior restricted to that set.
        """
        past = 0
        while True:
            fields, log_accept = self.attempts(BATCH, rng)
            accepted = log_accept >= -rng.standard_exponential(BATCH)
            if support is not None:
                accepted &= support(fields)
            if accepted.any():
                first = int(np.argmax(accepted))
                return Draw(fields[first], past + first + 1)
            past += BATCH

    def attempts(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Independent proposals (m, V) of log-intensities, and logarithms of their acceptance probabilities (m,)."""
        chosen = rng.choice(len(self._shells), size=count, p=self._share)
        d, log_accept = np.empty((count, len(self._mass))), np.empty(count)
        for i in np.unique(chosen):
            here = np.flatnonzero(chosen == i)
            d[here] = self._shells[i].propose(len(here), rng)
            log_accept[here] = self._shells[i].log_accept(d[here], self._mass)
        return self._centre + d, log_accept

    def _ladder(self) -> list["_Shell"]:
        """Boxes that grow until what the unbounded one has to cover is next to nothing."""
        unit = FIRST * self._gaussian(np.zeros_like(self._mass)).sd
        everything = np.full_like(unit, np.inf)
        widest = self._gaussian(everything)
        shells = [_Shell(self._gaussian(unit), None, unit)]
        while True:
            inner = shells[-1].outer
            last = _Shell(widest, inner, everything)
            if last.log_mass <= shells[0].log_mass + NEGLIGIBLE:
                return [*shells, last]
            outer = GROWTH * inner
            shells.append(_Shell(self._gaussian(outer), inner, outer))

    def _gaussian(self, radius: Floats) -> "_Gaussian":
        """Upper bound of the posterior, relative to the centre, on the box `d >= -radius`."""
        bent = curvature(radius) * self._mass
        lower = np.linalg.cholesky(np.eye(self._basis.shape[1]) + self._basis.T @ (bent[:, None] * self._basis))
        white = scipy.linalg.solve_triangular(lower, np.column_stack([self._basis.T, self._gradient]), lower=True)
        root, shift = white[:, :-1].T, white[:, -1]
        log_mass = shift @ shift / 2 - np.log(np.diag(lower)).sum()
        return _Gaussian(bent, root @ shift, root, np.linalg.norm(root, axis=1), float(log_mass))


def curvature(radius: Floats) -> Floats:
    """Factor `k(r) = 2 (e^-r - 1 + r) / r^2`, rounded down: `e^d >= 1 + d + k d^2 / 2` for every `d >= -r`."""
    small, large = np.minimum(radius, 0.1), np.maximum(radius, 0.1)
    # An alternating series that ends on a negative term lies below; the closed form would lose all digits here.
    series = 1 - small / 3 + small**2 / 12 - small**3 / 60 + small**4 / 360 - small**5 / 2520
    closed = 2 * (1 + np.expm1(-large) / large) / large
    return np.where(radius < 0.1, series, closed) * (1 - 1e-12)


class _Gaussian(NamedTuple):
    """Gaussian function `exp(g.dz - dz'Q dz/2)`, through the field d = M dz.

    `curvature` (V,) is `k_j L_j`. `mean` (V,), `root` (V, r) and `sd` (V,) belong to d: its covariance is `root root'`.
    `log_mass` is the logarithm of the integral over dz, without `(2 pi)^(r/2)`.
    """

    curvature: Floats
    mean: Floats
    root: Floats
    sd: Floats
    log_mass: float


@dataclass(frozen=True, eq=False, repr=False)
class _Shell:
    """Region in the box `d >= -outer` and, but for the first, not in `d >= -inner`, with its proposal distribution."""

    gaussian: _Gaussian
    inner: Floats | None
    outer: Floats

    @cached_property
    def log_leave(self) -> Floats:
        """(V,) log-probabilities that the Gaussian is out of the inner box at each vertex; (1,) zero without one."""
        g = self.gaussian
        return np.zeros(1) if self.inner is None else np.asarray(scipy.special.log_ndtr(-(self.inner + g.mean) / g.sd))

    @cached_property
    def log_mass(self) -> float:
        """Log-integral of the Gaussian times the number of vertices at which it is out of the inner box."""
        return self.gaussian.log_mass + float(scipy.special.logsumexp(self.log_leave))

    def propose(self, count: int, rng: np.random.Generator) -> Floats:
        """(count, V) proposals of d, out of the inner box at a vertex at least."""
        g = self.gaussian
        normal = rng.standard_normal((count, g.root.shape[1]))
        if self.inner is not None:
            vertex = rng.choice(len(g.sd), size=count, p=scipy.special.softmax(self.log_leave))
            along = g.root[vertex] / g.sd[vertex, None]
            tail = scipy.special.ndtri_exp(self.log_leave[vertex] + np.log1p(-rng.random(count)))
            normal += (tail - (normal * along).sum(axis=1))[:, None] * along
        return g.mean + normal @ g.root.T

    def log_accept(self, d: Floats, mass: Floats) -> Floats:
        """(m,) log of posterior over proposal, both relative to the centre, at d (m, V)."""
        with np.errstate(over="ignore"):
            excess = (mass * (np.expm1(d) - d) - self.gaussian.curvature * d**2 / 2).sum(axis=1)
        # One vertex at least is out, though rounding may put it on the border.
        out = 1 if self.inner is None else np.maximum((d < -self.inner).sum(axis=1), 1)
        return np.where((d >= -self.outer).all(axis=1), -np.maximum(excess, 0) - np.log(out), -np.inf)
