"""Exact sampling of Poisson patterns by thinning, and of binomial patterns, from an intensity on a mesh.

On every piece that tiles an element's part of the domain, a homogeneous Poisson process at the intensity's upper bound
there is thinned to the intensity: exact, with no integral and no restart. Positions are rounded to the domain's public
grid *before* the test against the domain.
"""

import numpy as np

from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.types import Floats, Ints
from dpppsynth.spatial.intensity import Intensity, LogLinearMean, PiecewiseConstant
from dpppsynth.spatial.patterns import PointPattern

# Points beyond which a pattern would fill the memory of a small machine.
MOST_POINTS = 2e8
# Candidates at a time: what is computed of them stays in the processor's cache.
AT_ONCE = 2**15


def poisson_pattern(intensity: Intensity, rng: RngLike = None) -> PointPattern:
    """One realisation of the Poisson process with the given intensity.

    Free to seed: sampling from a released intensity is post-processing.
    """
    rng = generator(rng)
    mesh = intensity.mesh
    require_room(intensity)
    if isinstance(intensity, LogLinearMean):
        return binomial_pattern(intensity, int(rng.poisson(intensity.total)), rng)
    return PointPattern.drawn(_poisson(intensity, 1.0, rng), mesh.domain)


def require_room(intensity: Intensity) -> None:
    """Refuse an intensity that expects more points than a small machine holds."""
    if not intensity.total < MOST_POINTS:
        msg = "intensity: it expects more points than memory holds; save the release without patterns (patterns=0)."
        raise InputError(msg)


def binomial_pattern(intensity: Intensity, n: int, rng: RngLike = None) -> PointPattern:
    """`n` independent points with density proportional to the intensity (`n` must be public).

    InputError where n is negative or the intensity is zero everywhere.
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
    positions = _in_random_order(np.concatenate([np.empty((0, 2)), *parts]), rng)
    return PointPattern.drawn(positions, intensity.mesh.domain)


def _binomial(intensity: Intensity, n: int, total: float, rng: np.random.Generator) -> Floats:
    if not total > 0:
        msg = "intensity: zero everywhere, no point can be drawn from it."
        raise InputError(msg)
    parts, have = [np.empty((0, 2))], 0
    while have < n:
        # Given their number, points of a Poisson process are independent: the first ones of a random order are, too.
        spare = 3 * (n - have) ** 0.5 + 16
        parts.append(_poisson(intensity, (n - have + spare) / total, rng)[: n - have])
        have += len(parts[-1])
    return np.concatenate(parts)


def _poisson(intensity: Intensity, times: float, rng: np.random.Generator) -> Floats:
    """(n, 2) positions, in random order, of the Poisson process with so many times the intensity."""
    pieces = intensity.mesh.pieces
    count = rng.poisson(times * intensity.piece_bound * pieces.weight)
    piece = np.repeat(np.arange(len(count)), count)
    # Last corners, and the sides (Q, 2 k) that lead to the others, x and y of one after the other.
    corner = pieces.corners[:, -1]
    sides = np.ascontiguousarray(pieces.corners[:, :-1] - pieces.corners[:, 1:]).reshape(len(corner), -1)
    parts = [np.empty((0, 2))]
    for start in range(0, len(piece), AT_ONCE):
        part = piece[start : start + AT_ONCE]
        places = _uniform(corner.take(part, axis=0), sides.take(part, axis=0), rng)
        parts.append(_thinned(intensity, part, intensity.mesh.domain.on_grid(places), rng))
    return _in_random_order(np.concatenate(parts), rng)


def _uniform(corner: Floats, sides: Floats, rng: np.random.Generator) -> Floats:
    """(n, 2) independent uniform places, one in each piece: ordered uniform numbers along its sides."""
    cuts = rng.random((sides.shape[1] // 2, len(corner)))
    if len(cuts) == 2:
        cuts = np.stack([np.minimum(*cuts), np.maximum(*cuts)])
    places = np.empty((len(corner), 2))
    for axis in (0, 1):
        places[:, axis] = corner[:, axis] + sum(cut * sides[:, 2 * k + axis] for k, cut in enumerate(cuts))
    return places


def _thinned(intensity: Intensity, piece: Ints, positions: Floats, rng: np.random.Generator) -> Floats:
    """Candidates in the given pieces that are in the domain, kept with probability intensity / bound."""
    mesh = intensity.mesh
    kept = mesh.domain.holds(positions)
    # A constant is its own bound.
    if not isinstance(intensity, PiecewiseConstant):
        element = mesh.pieces.element.take(piece)
        value = intensity.at(element, np.clip(mesh.weights(element, positions), 0, 1), positions)
        kept &= rng.random(len(piece)) * intensity.piece_bound.take(piece) < value
    return positions if kept.all() else positions[kept]


def _in_random_order(positions: Floats, rng: np.random.Generator) -> Floats:
    return positions.take(rng.permutation(len(positions)), axis=0)
