"""Kernel of planar Laplace noise between the cells of a rectangular lattice, averaged over both."""

import math

import numpy as np

from dpppsynth.core.types import Floats

# Nodes of the rule in the angle, and of that along a piece of half a hat.
ANGLES, ALONG = 24, 3
# Edges of cells about the origin where the density bends within a cell, and most pairs of pieces of half a hat there.
NEAR, MOST_PIECES = 4, 16
TINY = 1e-200
# Places and weights of a point at its node.
AT_NODE = np.zeros(1), np.ones(1)


def beyond(reach: Floats | float) -> Floats:
    """Probability of noise longer than `reach`, in scales."""
    reach = np.asarray(reach, dtype=float)
    return np.asarray((1 + reach) * np.exp(-reach))


def quadrant(rate: float, x: Floats, y: Floats) -> Floats:
    """(X, Y) probability that noise lies between 0 and x, and 0 and y; odd in both.

    In polar coordinates the radius is integrated in closed form, up to either far side of the rectangle. The angle is
    the Gudermannian of the variable of integration, so that long thin rectangles need no more nodes.
    """
    u, v = rate * np.abs(np.asarray(x, dtype=float))[:, None], rate * np.abs(np.asarray(y, dtype=float))
    total = _sector(u, v)
    total += total.T if np.array_equal(u[:, 0], v) else _sector(v, u)
    return np.asarray(np.sign(x)[:, None] * np.sign(y) * total / (2 * np.pi))


def _sector(near: Floats, far: Floats) -> Floats:
    """Integral of the chance to lie within the line at distance `near` over angles from its foot to `far` along it."""
    half = np.arcsinh(far / np.maximum(near, TINY)) / 2
    total = np.zeros(half.shape)
    for node, weight in zip(*np.polynomial.legendre.leggauss(ANGLES), strict=True):
        wide = np.cosh(half * (1 + node))
        total += weight * half / wide * -np.expm1(_log_beyond(near * wide))
    return total


def _log_beyond(reach: Floats) -> Floats:
    return np.log1p(reach) - reach


def lattice_kernel(rate: float, spacing: tuple[float, float], radius: tuple[int, int], *, hats: bool = True) -> Floats:
    """(2 rx + 1, 2 ry + 1) chances that a point near a node is counted at the one at an offset from it.

    A point near a node has the law of the node's hat, a product of those of both axes. It is moved by noise of density
    prop. to exp(-rate r), and counted at the node in whose cell it lies then. The rest to 1 is counted farther away.
    Without hats the point lies at the node itself.

    Parameters
    ----------
    rate : float
        Inverse scale of the noise per unit of length.
    spacing : (float, float)
        Of the nodes along both axes.
    radius : (int, int)
        Largest offsets.
    """
    (places_x, along_x), (places_y, along_y) = (
        _differences(rate, step, most, hats=hats) for step, most in zip(spacing, radius, strict=True)
    )
    corner = along_x @ quadrant(rate, places_x, places_y) @ along_y.T
    i, j = (np.abs(np.arange(-most, most + 1)) for most in radius)
    return np.asarray(np.maximum(corner, 0.0)[i[:, None], j])


def _differences(rate: float, step: float, most: int, *, hats: bool) -> tuple[Floats, Floats]:
    """Places (P,) along an axis, and the (most + 1, P) matrix from an odd function there to averages of its increments.

    The increments are those over the cells at offsets 0 .. most, averaged over the hat.
    """
    edges = np.arange(most + 2) - 0.5
    # In an even number of pieces edges of cells lie at edges of pieces.
    near, far = (_hat(2 * min(MOST_PIECES, math.ceil(rate * step))), _hat(1)) if hats else (AT_NODE, AT_NODE)
    rules = [near if edge < NEAR else far for edge in range(most + 2)]
    places = np.concatenate([(edge - at) * step for edge, (at, _) in zip(edges, rules, strict=True)])
    weights = np.concatenate([weight for _, weight in rules])
    edge = np.repeat(np.arange(most + 2), [len(at) for at, _ in rules])
    offset = np.arange(most + 1)[:, None]
    return places, np.where(edge == offset + 1, weights, 0.0) - np.where(edge == offset, weights, 0.0)


def _hat(pieces: int) -> tuple[Floats, Floats]:
    """Nodes and weights of a rule for averages over a hat of half-width 1, of so many pieces on either side."""
    nodes, weights = np.polynomial.legendre.leggauss(ALONG)
    at = ((np.arange(pieces)[:, None] + (1 + nodes) / 2) / pieces).ravel()
    weight = np.tile(weights / (2 * pieces), pieces) * (1 - at)
    return np.concatenate([-at, at]), np.concatenate([weight, weight])
