"""Exact sampling of Poisson patterns by thinning, and of binomial patterns, from an intensity on a mesh.

On every piece that tiles an element's part of the domain, a homogeneous Poisson process at the intensity's upper bound
there is thinned to the intensity: exact, with no integral and no restart. Positions are rounded to the domain's public
grid *before* the test against the domain.
"""

import numpy as np

from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.spatial.intensity import Intensity, LogLinearMean
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern

# Points beyond which a pattern would fill the memory of a small machine.
MOST_POINTS = 2e8


def poisson_pattern(intensity: Intensity, rng: RngLike = None) -> PointPattern:
    """One realisation of the Poisson process with the given intensity.

    Parameters
    ----------
    intensity : Intensity
    rng : None, int or numpy.random.Generator
        Free to seed: sampling from a released intensity is post-processing.
    """
    rng = generator(rng)
    mesh = intensity.mesh
    require_room(intensity)
    if isinstance(intensity, LogLinearMean):
        return binomial_pattern(intensity, int(rng.poisson(intensity.total)), rng)
    count = rng.poisson(intensity.piece_bound * mesh.pieces.weight)
    positions = _thin(intensity, np.repeat(np.arange(len(count)), count), rng)
    return PointPattern.at(rng.permutation(positions), mesh.domain, synthetic=True)


def require_room(intensity: Intensity) -> None:
    """Refuse an intensity that expects more points than a small machine holds.

    Raises
    ------
    InputError
    """
    if not intensity.total < MOST_POINTS:
        msg = "intensity: it expects more points than memory holds; save the release without patterns (patterns=0)."
        raise InputError(msg)


def binomial_pattern(intensity: Intensity, n: int, rng: RngLike = None) -> PointPattern:
    """`n` independent points with density proportional to the intensity (`n` must be public).

    Raises
    ------
    InputError
        When n is negative or the intensity is zero everywhere.
    """
    if not (np.isfinite(n) and n >= 0 and int(n) == n):
        msg = f"n: needs a whole number of points, got {n!r}."
        raise InputError(msg)
    rng = generator(rng)
    if isinstance(intensity, LogLinearMean):
        # Each point from a draw of its own: the law of the average, without averaging at every candidate.
        if not intensity.totals.sum() > 0:
            msg = "intensity: zero everywhere, no point can be drawn from it."
            raise InputError(msg)
        count = rng.multinomial(int(n), intensity.totals / intensity.totals.sum())
        parts = [
            _binomial(intensity.draw(int(k)), int(count[k]), intensity.totals[k], rng) for k in np.flatnonzero(count)
        ]
    else:
        parts = [_binomial(intensity, int(n), intensity.total, rng)]
    positions = np.concatenate([np.empty((0, 2)), *parts])
    return PointPattern.at(rng.permutation(positions), intensity.mesh.domain, synthetic=True)


def _binomial(intensity: Intensity, n: int, total: float, rng: np.random.Generator) -> Floats:
    ceiling = intensity.piece_bound * intensity.mesh.pieces.weight
    if not total > 0:
        msg = "intensity: zero everywhere, no point can be drawn from it."
        raise InputError(msg)
    parts, have = [np.empty((0, 2))], 0
    while have < n:
        tries = int((n - have) * ceiling.sum() / total * 1.1) + 16
        element = rng.choice(len(ceiling), size=tries, p=ceiling / ceiling.sum())
        # Candidates come in random order, so keeping the first ones biases nothing.
        parts.append(_thin(intensity, element, rng)[: n - have])
        have += len(parts[-1])
    return np.concatenate(parts)


def _thin(intensity: Intensity, piece: Ints, rng: np.random.Generator) -> Floats:
    """Uniform candidates in the given pieces, kept with probability intensity / bound and if inside the domain."""
    mesh = intensity.mesh
    cuts = np.sort(rng.random((mesh.pieces.sides - 1, len(piece))), axis=0)
    share = np.diff(cuts, axis=0, prepend=0.0, append=1.0)
    positions = mesh.domain.on_grid(np.einsum("cn,ncd->nd", share, mesh.pieces.corners[piece]))
    element = mesh.pieces.element[piece]
    value = intensity.at(element, np.clip(mesh.weights(element, positions), 0, 1), positions)
    positions = positions[rng.random(len(positions)) * intensity.piece_bound[piece] < value]
    return positions[mesh.domain.holds(positions)]
