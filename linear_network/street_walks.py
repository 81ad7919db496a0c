"""Diffusion along the streets of a network: displacements of points by Brownian motion."""

import numpy as np

from dpppsynth.core.types import Floats, Ints
from dpppsynth.linear_network.network import LinearNetwork
from dpppsynth.linear_network.shortest_paths import edge_numbers

# Normal steps that a displacement is made of; each is exact where it meets one crossing at most.
STEPS = 8


class StreetWalks:
    """Brownian motion on a network: at a crossing all streets are equally likely, and dead ends reflect it (Kirchhoff).

    A displacement is the sum of some normal steps along the streets. A walker that meets a crossing on its way goes on
    along a street drawn at random, the one it came from included. Ways from here to there and back are equally likely.
    """

    def __init__(self, network: LinearNetwork) -> None:
        self.network, self.lengths = network, network.lengths
        self.ends, self.first, self.degree = network.ends

    def displaced(self, positions: Floats, spread: float, rng: np.random.Generator) -> Floats:
        """(n, 2) positions after independent displacements of this deviation, on a street without crossings."""
        edge, along = edge_numbers(positions), positions[:, 1].copy()
        step = spread / np.sqrt(STEPS)
        for _ in range(STEPS):
            before = along.copy()
            along += step * rng.standard_normal(len(along))
            left = (along < 0) | (along > self.lengths[edge])
            self._touch(np.flatnonzero(~left), edge, before, along, step, rng)
            self._leave(np.flatnonzero(left), edge, along, rng)
        return np.column_stack([edge, along])

    def _touch(
        self, stayed: Ints, edge: Ints, before: Floats, along: Floats, step: float, rng: np.random.Generator
    ) -> None:
        """Send walkers that met the nearer end of their edge on the way (a Brownian bridge) onto any street there.

        Both streets must hold the way there and the way on, so that ways there and back stay equally likely.
        """
        e, a, b = edge[stayed], before[stayed], along[stayed]
        end = (a + b > self.lengths[e]).astype(np.int64)
        a, b = (np.where(end == 1, self.lengths[e] - each, each) for each in (a, b))
        taken = self._any_street(self.network.edges[e, end], rng)
        met = rng.random(len(stayed)) < np.exp(-2 * a * b / step**2)
        met &= a + b <= self.lengths[taken // 2]
        self._enter(stayed[met], taken[met], b[met], edge, along)

    def _leave(self, out: Ints, edge: Ints, along: Floats, rng: np.random.Generator) -> None:
        """Bring those of some walkers that are beyond an end of their edge onto the streets there."""
        while True:
            e, a = edge[out], along[out]
            beyond = (a < 0) | (a > self.lengths[e])
            out, e, a = out[beyond], e[beyond], a[beyond]
            if not len(out):
                return
            over = (a > 0).astype(np.int64)
            taken = self._any_street(self.network.edges[e, over], rng)
            self._enter(out, taken, np.where(over, a - self.lengths[e], -a), edge, along)

    def _any_street(self, vertex: Ints, rng: np.random.Generator) -> Ints:
        """(k,) ends of edges at vertices (k,), each drawn at random."""
        return self.ends[self.first[vertex] + (rng.random(len(vertex)) * self.degree[vertex]).astype(np.int64)]

    def _enter(self, who: Ints, taken: Ints, way: Floats, edge: Ints, along: Floats) -> None:
        """Put walkers (k,) some way (k,) along the edges that begin with the ends `taken` (k,), in place."""
        edge[who] = taken // 2
        along[who] = np.where(taken % 2 == 1, self.lengths[taken // 2] - way, way)
