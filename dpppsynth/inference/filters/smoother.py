"""Grid smoother of many series with truncated Laplace noise at once, with step sizes estimated from all of them.

The hidden series is a random walk that now and then jumps anywhere. Several step sizes are tried on every series: how
likely one makes the noisy numbers decides what weight its means have. Which step sizes are common is found from all
series side by side, so that short ones learn from each other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.fft

from dpppsynth.core.arguments import one_of
from dpppsynth.core.errors import InputError
from dpppsynth.inference.filters.particle import particle_filter
from dpppsynth.inference.filters.series import Filtered, of_series, released_series
from dpppsynth.privacy.truncated.truncated_laplace import TruncatedLaplace
from dpppsynth.spatial.mesh import Floats

# Cells of the grid in a scale of the noise: finer ones change no error by a hundredth.
PER_SCALE = 8
# States further than this many scales from the observation are left out where there is no bound.
BEYOND = 30.0
# Probability that a series jumps to anywhere on its grid at a step.
JUMP = 0.01
# Step sizes that are tried, in scales of the noise: each twice the last.
LEAST, TRIED = 0.0625, 11
# Rounds in which the shares of step sizes are found, and the numbers that are in memory at once.
ROUNDS, AT_ONCE = 50, 2**24
# Cells of a series, at most.
MOST_CELLS = 2**18
# Standard deviations of a step beyond the ends of the grid that are told apart.
REACH = 6.0


def pooled_smoother(observations: Any, *, scale: float, bound: float, step: Any = "likely") -> Filtered:
    """Mean of every answer given all noisy answers, earlier and later, for random walks with occasional jumps.

    Better than `particle_filter`, which sees earlier answers alone and knows no jumps, on most series, and as free. Use
    that where later answers must not change what was said of earlier ones.

    Parameters
    ----------
    observations : (N,) or (N, T) array
        Released numbers in the order of time: one series, or T of them side by side. They must not be cut at zero or
        filtered before.
    scale, bound : float
        Of the noise, as released; the bound may be infinite.
    step : {"likely", "differences"}, float or (T,) array
        Standard deviation of the change from one answer to the next, but for jumps: several are tried, and their
        estimates weighted by how likely they are and how common among the series; or as in `particle_filter`.

    Returns
    -------
    Filtered
        Each estimate is within `bound` of the released number.

    Examples
    --------
    >>> found = pooled_smoother([1, 2, 1, 2, 41, 42, 41], scale=2.0, bound=10.0)
    >>> found.estimate.round()
    array([ 1.,  2.,  1.,  2., 41., 41., 41.])
    """
    noisy, law = released_series(observations), TruncatedLaplace(scale, bound)
    series = noisy[:, None] if noisy.ndim == 1 else noisy
    if isinstance(step, str) and step == "likely":
        steps = np.broadcast_to(law.scale * LEAST * 2.0 ** np.arange(TRIED)[:, None], (TRIED, series.shape[1]))
    else:
        steps = np.broadcast_to(of_series(step, noisy, law), series.shape[1:])[None]
    likelihood, means = np.empty(steps.shape), np.empty((len(steps), *series.shape))
    for part in _parts(series, law):
        grid = _Grid(series[:, part], law)
        for which, each in enumerate(steps):
            likelihood[which, part], means[which][:, part] = grid.smoothed(each[part])
    weights = _weights(likelihood)
    estimate = np.einsum("st,snt->nt", weights, means)
    # Rounding of sums takes none beyond the bound.
    estimate = series + np.clip(estimate - series, -law.bound, law.bound)
    used = np.exp(np.einsum("st,st->t", weights, np.log(steps)))
    shown: Any = used if noisy.ndim == 2 else float(used[0])
    return Filtered(estimate.reshape(noisy.shape), 0, shown, 2 * law.bound)


def _weights(likelihood: Floats) -> Floats:
    """(S, T) weights of step sizes for each series, from logarithms of likelihoods, and shares that all series tell."""
    relative = np.exp(likelihood - likelihood.max(axis=0))
    shares = np.full(len(relative), 1 / len(relative))
    weights = relative * shares[:, None]
    weights /= weights.sum(axis=0)
    if relative.shape[1] > 1:
        for _ in range(ROUNDS):
            # As if there were one series more, which tells nothing: no share falls to zero.
            shares = (weights.sum(axis=1) + 1 / len(shares)) / (weights.shape[1] + 1)
            weights = relative * shares[:, None]
            weights /= weights.sum(axis=0)
    return np.asarray(weights)


def _parts(series: Floats, law: TruncatedLaplace) -> list[np.ndarray]:
    """Numbers of series that are solved together: of like range, and few enough for memory."""
    cells = 2.0 ** np.ceil(np.log2(np.ptp(series, axis=0) / _spacing(law) + 2 * _reach(law) + 1))
    if cells.max() > MOST_CELLS:
        msg = (
            f"observations: one series goes over more than {MOST_CELLS // PER_SCALE} scales of the noise, which is too "
            "far for a grid; take particle_filter."
        )
        raise InputError(msg)
    parts = []
    for size in np.unique(cells):
        found = np.flatnonzero(cells == size)
        width = max(1, int(AT_ONCE / (size * len(series))))
        parts += [found[start : start + width] for start in range(0, len(found), width)]
    return parts


def _spacing(law: TruncatedLaplace) -> float:
    return float(law.scale / PER_SCALE)


def _reach(law: TruncatedLaplace) -> int:
    """Cells on either side of an observation that its state may lie in."""
    return int(min(law.bound, BEYOND * law.scale) / _spacing(law) + 0.5)


@dataclass(frozen=True, eq=False)
class _Grid:
    """Cells around all observations (N, T) of each series, and the law of the noise."""

    observations: Floats
    law: TruncatedLaplace

    def smoothed(self, steps: Floats) -> tuple[Floats, Floats]:
        """(T,) logarithms of the likelihood of each series, and (N, T) means of its states, for steps (T,)."""
        n, cells = len(self.observations), self.cells
        size = scipy.fft.next_fast_len(cells + min(cells, int(REACH * steps.max() / self.spacing) + 1), real=True)
        kernel = _kernels(steps / self.spacing, size)

        def carried(density: Floats) -> Floats:
            """(T, cells) densities after a step; a jump leads everywhere alike."""
            moved = scipy.fft.irfft(scipy.fft.rfft(density, size) * kernel, size)[:, :cells]
            return np.asarray((1 - JUMP) * np.maximum(moved, 0) + JUMP * density.sum(axis=1, keepdims=True) / cells)

        log, past = np.zeros(len(steps)), []
        density = np.full((len(steps), cells), 1 / cells)
        for k in range(n):
            density = (carried(density) if k else density) * self.likelihoods[k]
            total = density.sum(axis=1, keepdims=True)
            density, log = density / total, log + np.log(total[:, 0])
            past.append(density)
        later, means = np.ones((len(steps), cells)), np.empty(self.observations.shape)
        for k in range(n - 1, -1, -1):
            both = past[k] * later
            means[k] = (both @ np.arange(cells)) / both.sum(axis=1)
            later = carried(later * self.likelihoods[k])
            later /= later.max(axis=1, keepdims=True)
        return log, self.low + self.spacing * means

    @property
    def spacing(self) -> float:
        """Width of a cell."""
        return _spacing(self.law)

    @property
    def low(self) -> Floats:
        """(T,) centres of the first cells."""
        return np.asarray(self.observations.min(axis=0) - self.spacing * _reach(self.law))

    @property
    def cells(self) -> int:
        """Number of cells of each series."""
        return int(np.ptp(self.observations, axis=0).max() / self.spacing + 0.5) + 2 * _reach(self.law) + 1

    @cached_property
    def likelihoods(self) -> list[Floats]:
        """(T, cells) probabilities of the errors that lead from each cell to each of the N observations."""
        half, found = self.spacing / 2, []
        for seen in self.observations:
            # Both ends in the lower tail, where the distribution function has all its digits.
            centres = -np.abs(self.spacing * np.arange(self.cells) - (seen - self.low)[:, None])
            found.append(np.asarray(self.law.cdf(centres + half) - self.law.cdf(centres - half)))
        return found


def _kernels(steps: Floats, size: int) -> Floats:
    """(T, size // 2 + 1) transforms of the laws of a step, of standard deviations (T,) in cells.

    A Poisson number of moves by one cell has the variance of any step, however small, and is as good as Gaussian for
    longer ones.
    """
    frequencies = 2 * np.pi * np.arange(size // 2 + 1) / size
    return np.asarray(np.exp(steps[:, None] ** 2 * (np.cos(frequencies) - 1)))


METHODS = ("particles", "smoother")
# Settings of particles unless given.
USUAL = {"particles": 1000, "proposal": "bootstrap", "resample": True, "rng": None}


def by_method(method: str, observations: Any, law: Mapping[str, Any], settings: Mapping[str, Any]) -> Filtered:
    """Series (N,) or (N, T) by one of METHODS; `law` has scale, bound and step, `settings` are of particle filters."""
    if one_of("method", method, METHODS) == "particles":
        return particle_filter(observations, **law, **settings)
    for name, value in settings.items():
        if name not in USUAL or value != USUAL[name]:
            msg = f"{name}: belongs to method='particles'; a smoother draws none. Leave it out."
            raise InputError(msg)
    return pooled_smoother(observations, **law)
