"""Channels from a lattice, or from segments of streets, to the nodes at which their moved points are counted."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from dpppsynth.core.types import Floats, Ints
from dpppsynth.models.channel_likelihood import Channel, FootprintChannel, WithRest
from dpppsynth.models.planar_kernel import lattice_kernel, quadrant
from dpppsynth.models.whitened_fields import by_columns

# Scales of the noise by which nodes that are told apart reach beyond the window: one move in two thousand is longer.
# And scales beyond which there is less than one in a hundred million.
KEPT, REACH = 10.0, 22.0
# Scales of the noise between nodes from which on chances of points on streets are found one by one: they jump from node
# to node too fast for cubics, and moves reach few nodes. There a move is as long as this one time in a million.
COARSE, LONGEST = 2.0, 16.7
# Steps in a scale in which places of points on streets are told apart there, and most between two nodes.
STEPS, MOST_STEPS = 8, 128
# Chances that are found one by one at a time.
TOGETHER = 2**21
# Nodes that a cubic goes through, and those beyond the lattice that it may need.
CUBIC, RING = np.arange(4), 2


@dataclass(frozen=True, eq=False)
class PlacedChannel(Channel):
    """Channel of segments of streets: weights of nodes of a lattice for each, and the channel of the lattice.

    Attributes
    ----------
    lattice : Channel
    placed : sparse (nodes, V)
        Weights of the nodes, which may be below 0.
    """

    lattice: Channel
    placed: "scipy.sparse.csr_array"

    @property
    def shape(self) -> tuple[int, int]:
        """All segments, as a grid of one row."""
        return int(self.placed.shape[1]), 1

    def forward(self, values: Floats) -> Floats:
        return self.lattice.forward(by_columns(self.placed.__matmul__, values))

    def backward(self, numbers: Floats) -> Floats:
        return by_columns(self.placed.T.__matmul__, self.lattice.backward(numbers))


@dataclass(frozen=True, eq=False)
class LevelChannel(Channel):
    """Channel of points of several levels, which they keep; values and reports stand level by level.

    Attributes
    ----------
    each : Channel
        Of every level.
    levels : int
    """

    each: Channel
    levels: int

    @property
    def shape(self) -> tuple[int, int]:
        """All levels, one after the other along the first axis."""
        nx, ny = self.each.shape
        return self.levels * nx, ny

    def forward(self, values: Floats) -> Floats:
        return self._apart(self.each.forward, values)

    def backward(self, numbers: Floats) -> Floats:
        return self._apart(self.each.backward, numbers)

    def _apart(self, product: Callable[[Floats], Floats], values: Floats) -> Floats:
        lead = values.shape[:-1]
        return product(values.reshape(*lead, self.levels, -1)).reshape(*lead, -1)


@dataclass(frozen=True, eq=False)
class SparseChannel(Channel):
    """Channel given by a sparse matrix (K, V), of cells in one row."""

    chances: "scipy.sparse.csr_array"

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.chances.shape[1]), 1

    def forward(self, values: Floats) -> Floats:
        return by_columns(self.chances.__matmul__, values)

    def backward(self, numbers: Floats) -> Floats:
        return by_columns(self.chances.T.__matmul__, numbers)


@dataclass(frozen=True, eq=False)
class StreetPoints:
    """Points that stand for segments of streets.

    Attributes
    ----------
    at : (P, 2) array
        Coordinates, from the first node of a lattice.
    segment : (P,) array
        Number of the segment of each.
    share : (P,) array
        What each holds of its segment.
    """

    at: Floats
    segment: Ints
    share: Floats

    def matrix(self, rows: Ints, values: Floats, count: int, part: slice = slice(None)) -> "scipy.sparse.csr_array":
        """(count, V) sums over a part of the points, P, of values (P, m) in the rows (P, m), by segments."""
        columns = np.broadcast_to(self.segment[part, None], rows.shape)
        held = (values * self.share[part, None]).ravel()
        shape = (count, int(self.segment.max()) + 1)
        return scipy.sparse.csr_array((held, (rows.ravel(), columns.ravel())), shape=shape)


def street_channel(points: StreetPoints, blocks: "Blocks") -> Channel:
    """Channel from segments to blocks that are told apart, and to all farther ones.

    Chances that points are counted in a block change smoothly with their places where the noise is long: there they are
    cubics through those of points in the middles of blocks, by fast transforms. Parabolas would be twice as far off,
    and below 0 far out. Shares of hats about nodes would count streets as wide, and a field that is found through too
    wide a channel is too steep.
    """
    if blocks.rate * max(blocks.spacing) > COARSE:
        return WithRest(SparseChannel(one_by_one(points, blocks)))
    return PlacedChannel(blocks.seen(hats=False, ring=RING), through_cubics(points, blocks))


def through_cubics(points: StreetPoints, blocks: "Blocks") -> "scipy.sparse.csr_array":
    """(blocks and a ring around them, V) weights for each segment: of the nearest four along both axes."""
    places = _in_steps(points, blocks) + RING
    first = np.floor(places).astype(np.int64) - 1
    x, y = (_cubic_weights(off) for off in (places - first).T)
    nx, ny = (nodes + 2 * RING for nodes in blocks.shape)
    rows = (first[:, :1] + CUBIC)[:, :, None] * ny + (first[:, 1:] + CUBIC)[:, None]
    both, count = x[:, :, None] * y[:, None], len(points.at)
    return points.matrix(rows.reshape(count, -1), both.reshape(count, -1), nx * ny)


def _cubic_weights(at: Floats) -> Floats:
    """(P, 4) weights of values at 0, 1, 2 and 3 in that of their cubic at places (P,)."""
    others = [np.delete(CUBIC, node) for node in CUBIC]
    return np.column_stack(
        [np.prod((at[:, None] - rest) / (node - rest), axis=1) for node, rest in zip(CUBIC, others, strict=True)]
    )


def one_by_one(points: StreetPoints, blocks: "Blocks") -> "scipy.sparse.csr_array":
    """(K, V) chances that points of each segment are counted in each block that is told apart."""
    # An even number, so that sides of blocks are whole steps from their middles.
    parts = 2 * math.ceil(min(STEPS * blocks.rate * max(blocks.spacing), MOST_STEPS) / 2)
    place = np.rint(_in_steps(points, blocks) * parts).astype(np.int64)
    near, half = np.rint(place / parts).astype(np.int64), parts // 2
    reach = [math.ceil(LONGEST / (blocks.rate * step)) for step in blocks.spacing]
    x, y = (np.arange(parts * (most + 1) + 1) * step / parts for most, step in zip(reach, blocks.spacing, strict=True))
    corner = quadrant(blocks.rate, x, y)
    i, j = (each.ravel() for each in np.meshgrid(*(np.arange(-most, most + 1) for most in reach), indexing="ij"))
    nx, ny = (nodes + 2 * blocks.margin for nodes in blocks.shape)

    def below(x: Ints, y: Ints) -> Floats:
        return np.asarray(np.sign(x) * np.sign(y) * corner[np.abs(x), np.abs(y)])

    def chances(part: slice) -> "scipy.sparse.csr_array":
        row, column = near[part, :1] + i, near[part, 1:] + j
        off_x, off_y = row * parts - place[part, :1], column * parts - place[part, 1:]
        ahead, behind = (
            below(off_x + side, off_y + half) - below(off_x + side, off_y - half) for side in (half, -half)
        )
        row, column = row + blocks.margin, column + blocks.margin
        told = (row >= 0) & (row < nx) & (column >= 0) & (column < ny)
        rows = np.where(told, row * ny + column, 0)
        return points.matrix(rows, np.where(told, np.maximum(ahead - behind, 0.0), 0.0), nx * ny, part)

    size = max(1, TOGETHER // len(i))
    return sum(chances(slice(start, start + size)) for start in range(0, len(place), size)).tocsr()


def _in_steps(points: StreetPoints, blocks: "Blocks") -> Floats:
    """(P, 2) places of points from the middle of the first block, in steps from block to block."""
    return np.asarray(points.at / blocks.spacing - (blocks.side - 1) / 2 / blocks.side)


@dataclass(frozen=True)
class Blocks:
    """Nodes of a lattice in blocks of side x side, and those around it that are told apart.

    Attributes
    ----------
    nodes : (int, int)
        Along both axes, without the extension.
    step : (float, float)
        Of the nodes along both axes.
    rate : float
        Inverse scale of the noise per unit of length.
    extension : int
        Nodes beyond on every side.
    side : int
    """

    nodes: tuple[int, int]
    step: tuple[float, float]
    rate: float
    extension: int
    side: int

    @property
    def spacing(self) -> tuple[float, float]:
        """Distances of the blocks along both axes."""
        return self.step[0] * self.side, self.step[1] * self.side

    @property
    def shape(self) -> tuple[int, int]:
        """Blocks along both axes."""
        nx, ny = (-(-nodes // self.side) for nodes in self.nodes)
        return nx, ny

    @property
    def margin(self) -> int:
        """Blocks beyond on every side that are told apart."""
        # Blocks of the wider lattice may end one node short of a multiple.
        return max(0, min(self._within(KEPT), (self.extension - self.side) // self.side))

    def _within(self, scales: float) -> int:
        return math.ceil(scales / (self.rate * min(self.spacing)))

    @cached_property
    def channel(self) -> Channel:
        """From the blocks to those that are told apart, and to all farther ones."""
        return self.seen()

    def seen(self, *, hats: bool = True, ring: int = 0) -> Channel:
        """That channel, of points with the law of a block's hat, or of points in the middles of the blocks.

        It may be from a ring of more blocks around them as well.
        """
        margin, reach = self.margin, self._within(REACH)
        nx, ny = (nodes + 2 * ring for nodes in self.shape)
        rx, ry = (max(margin, min(reach, nodes - 1 + margin + ring)) for nodes in self.shape)
        kernel = lattice_kernel(self.rate, self.spacing, (rx, ry), hats=hats)
        told = np.ones([nodes + 2 * margin for nodes in self.shape], dtype=bool)
        return WithRest(FootprintChannel((nx, ny), kernel, 0.0, told))

    def summed(self, values: Floats) -> Floats:
        """(V,) sums over the blocks of values (nx, ny)."""
        return in_blocks(values, (0, 0), self.shape, self.side).ravel()

    def told(self, counts: Ints) -> Floats:
        """(K,) counts (nx + 2 r, ny + 2 r) by blocks that are told apart, and the others' sum."""
        first = self.extension - self.side * self.margin
        shape = tuple(nodes + 2 * self.margin for nodes in self.shape)
        inner = in_blocks(counts, (first, first), shape, self.side).ravel()
        return np.append(inner, float(counts.sum()) - inner.sum())


def in_blocks(values: Floats | Ints, first: tuple[int, int], shape: tuple[int, ...], side: int) -> Floats:
    """(bx, by) sums over blocks of side x side nodes from the first one on; nodes beyond the array count as 0."""
    (i, j), (nx, ny) = first, (side * blocks for blocks in shape)
    part = values[i : i + nx, j : j + ny]
    padded = np.zeros((nx, ny))
    padded[: part.shape[0], : part.shape[1]] = part
    return padded.reshape(shape[0], side, shape[1], side).sum(axis=(1, 3))
