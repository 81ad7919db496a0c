"""Plain vertices and edges of a network, with the checks that all of them pass."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
import scipy
import shapely

from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.core.wording import either, mention
from dpppsynth.spatial.domains import LARGEST, as_reals

# Coordinates this close, relative to their size, are the same place.
ROUNDING = 1e-9

LARGEST_PART = "LinearNetwork.largest_component(vertices, edges); readers take largest_component=True"


@dataclass(frozen=True, eq=False)
class Labels:
    """Names that a graph gave to its parts: of the nodes (V,), and the keys of the edges (E,)."""

    nodes: tuple[Any, ...]
    keys: tuple[Any, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Skeleton:
    """Arrays from which a network is built; it may still fall into several components.

    Edges (E, 2) are numbers of vertices (V, 2), and lines (E,) their courses. LineStrings that were left out are
    `dropped`.
    """

    vertices: Floats
    edges: Ints
    _: KW_ONLY
    lines: Any = None
    changes: tuple[str, ...] = ()
    dropped: Any = ()
    labels: Labels | None = None

    @cached_property
    def lengths(self) -> Floats:
        """(E,) lengths of the edges."""
        return np.asarray(shapely.length(self.lines), dtype=np.float64)

    @cached_property
    def length(self) -> float:
        """Total length."""
        return float(self.lengths.sum())

    @cached_property
    def adjacency(self) -> scipy.sparse.csr_array:
        """(V, V) symmetric lengths of the shortest edge between each two joined vertices; loops left out."""
        return links(len(self.vertices), self.edges, self.lengths)

    def largest(self) -> Skeleton:
        """Keep the component with most vertices, at a tie the one with the lowest vertex; the rest is `dropped`."""
        label = components(len(self.vertices), self.edges)
        size = np.bincount(label)
        # Components are numbered by their lowest vertices, and the first of the largest ones is taken.
        inside = label == np.argmax(size)
        if inside.all():
            return self
        kept, out = inside[self.edges[:, 0]], f"left out {plural(int((~inside).sum()), 'vertex')} and "
        out += f"{plural(int((~inside[self.edges[:, 0]]).sum()), 'edge')} outside the largest component"
        if not kept.any():
            msg = "edges: the largest component has no edge; give edges that join vertices."
            raise InputError(msg)
        labels = self.labels
        if labels is not None:
            nodes, keys = (tuple(compress(*each)) for each in ((labels.nodes, inside), (labels.keys, kept)))
            labels = Labels(nodes, keys)
        return replace(
            self,
            vertices=self.vertices[inside],
            edges=(np.cumsum(inside) - 1)[self.edges[kept]],
            lines=self.lines[kept],
            changes=(*self.changes, out),
            dropped=(*self.dropped, *self.lines[~kept]),
            labels=labels,
        )


def skeleton(vertices: Any, edges: Any, lines: Any = None) -> Skeleton:
    """Check arrays and copy them, read-only; edges are straight where no lines are given.

    InputError where a number is not finite, too large or no vertex, or a line does not join the vertices of its edge.
    """
    points, ends = _vertices(vertices), _edges(edges)
    if ends.min() < 0 or ends.max() >= len(points):
        msg = f"edges: vertex numbers must run from 0 to {len(points) - 1}; some do not."
        raise InputError(msg)
    course = _lines(lines, points[ends])
    flat = np.flatnonzero(~(shapely.length(course) > 0))
    if len(flat):
        msg = (
            f"edges: every edge needs a positive length; {len(flat)} of {len(course)} have none, the first is number "
            f"{flat[0]}. Leave them out; a loop needs its course (lines=)."
        )
        raise InputError(msg)
    for array in (points, ends, course):
        array.flags.writeable = False
    return Skeleton(points, ends, lines=course)


def links(count: int, edges: Ints, lengths: Floats) -> scipy.sparse.csr_array:
    """(V, V) symmetric lengths of the shortest edge between each two joined vertices; loops left out."""
    ends = np.sort(edges, axis=1)
    order = np.argsort(lengths, kind="stable")
    order = order[ends[order, 0] != ends[order, 1]]
    pair, first = np.unique(ends[order], axis=0, return_index=True)
    upper = scipy.sparse.coo_array((lengths[order[first]], (pair[:, 0], pair[:, 1])), shape=(count, count))
    return scipy.sparse.csr_array(upper + upper.T)


def components(size: int, edges: Ints) -> Ints:
    """(V,) component of each vertex, numbered by their lowest vertices."""
    links = scipy.sparse.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(size, size))
    _, label = scipy.sparse.csgraph.connected_components(links, directed=False)
    _, first, number = np.unique(label, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[number], dtype=np.int64)


def require_connected(size: int, edges: Ints) -> None:
    """Refuse several components, with their sizes and remedies."""
    sizes = np.sort(np.bincount(components(size, edges)))[::-1]
    if len(sizes) > 1:
        shown = ", ".join(map(str, sizes[:8])) + (", ..." if len(sizes) > 8 else "")
        msg = (
            f"edges: the network falls into {len(sizes)} components, of {shown} vertices; a path must join any two "
            f"points. Cut lines where they cross ({mention('node', 'True')}), join dangling ends ({mention('join')}), "
            f"or keep {either(LARGEST_PART, 'the largest part (--largest-component)')}."
        )
        raise InputError(msg)


def numbered(ends: Floats) -> tuple[Floats, Ints]:
    """Places (V, 2) of ends of edges (E, 2, 2), in order of appearance, and their numbers (E, 2)."""
    xy = np.ascontiguousarray(ends.reshape(-1, 2))
    _, first, number = np.unique(xy.view(np.complex128).ravel(), return_index=True, return_inverse=True)
    order = np.argsort(first)
    return xy[first[order]], np.argsort(order)[number].reshape(-1, 2)


def listed_lines(lines: Any, argument: str) -> Any:
    """(E,) array of the items of a sequence; InputError for anything else."""
    try:
        given = list(lines)
    except TypeError:
        msg = f"{argument}: must be a sequence of LineStrings; got {type(lines).__name__}."
        raise InputError(msg) from None
    out = np.empty(len(given), dtype=object)
    out[:] = given
    return out


def flattened(lines: Any) -> Any:
    """(E,) LineStrings in two dimensions; InputError where a coordinate is not finite or too large."""
    flat = shapely.transform(shapely.force_2d(lines), lambda xy: xy + 0.0)
    if not (np.abs(shapely.get_coordinates(flat)) <= LARGEST).all():
        msg = f"lines: their coordinates must be finite, of size {LARGEST:g} at most, in the CRS of the network too."
        raise InputError(msg)
    return flat


def ends_of(lines: Any) -> Floats:
    """(E, 2, 2) first and last coordinates of LineStrings (E,)."""
    return np.stack([shapely.get_coordinates(shapely.get_point(lines, k)) for k in (0, -1)], axis=1)


def with_ends(lines: Any, ends: Floats) -> Any:
    """LineStrings (E,) whose first and last coordinates are moved to ends (E, 2, 2); others stay as they are."""
    moved = np.flatnonzero((ends_of(lines) != ends).any(axis=(1, 2)))
    out = np.array(lines, dtype=object)
    if len(moved):
        last = np.cumsum(shapely.get_num_coordinates(out[moved])) - 1
        first = np.concatenate([[0], last[:-1] + 1])
        xy = shapely.get_coordinates(out[moved])
        xy[first], xy[last] = ends[moved, 0], ends[moved, 1]
        out[moved] = shapely.linestrings(xy, indices=np.repeat(np.arange(len(moved)), last - first + 1))
    return out


def plural(count: int, noun: str) -> str:
    """A number with its noun: "1 edge", "2 vertices"."""
    many = {"vertex": "vertices"}.get(noun, f"{noun}s")
    return f"{count} {noun if count == 1 else many}"


def _vertices(values: Any) -> Floats:
    rule = f"vertices: need finite coordinates of shape (V, 2), of size {LARGEST:g} at most."
    vertices = as_reals(values, rule)
    if vertices.ndim != 2 or vertices.shape[1] != 2 or not len(vertices) or not (np.abs(vertices) <= LARGEST).all():
        raise InputError(rule)
    # Adding zero turns -0.0 into 0.0, which would print differently.
    return vertices + 0.0


def _edges(values: Any) -> Ints:
    rule = "edges: need whole vertex numbers of shape (E, 2), at least one edge."
    numbers = as_reals(values, rule)
    pairs = numbers.ndim == 2 and numbers.shape[1] == 2 and len(numbers) > 0
    if not pairs or not np.all((np.abs(numbers) <= LARGEST) & (numbers == np.floor(numbers))):
        raise InputError(rule)
    return numbers.astype(np.int64)


def _lines(given: Any, ends: Floats) -> Any:
    """(E,) LineStrings in two dimensions that run from each edge's first vertex to its second."""
    if given is None:
        return np.array(shapely.linestrings(ends), dtype=object)
    lines = listed_lines(given, "lines")
    plain = [getattr(line, "geom_type", "") == "LineString" and not line.is_empty for line in lines]
    if len(lines) != len(ends) or not all(plain):
        msg = "lines: need one LineString per edge."
        raise InputError(msg)
    lines = flattened(lines)
    if not np.array_equal(ends_of(lines), ends):
        msg = "lines: each must start at its edge's first vertex and end at its second."
        raise InputError(msg)
    return lines


def noting_overlaps(parts: Skeleton) -> Skeleton:
    """Add to `changes`, once, the number of edges that run along an earlier one and stay as they are."""
    count = len(overlapping(parts.lines))
    said = (
        f"kept {plural(count, 'edge')} along the same course as another, in whole or in part: such streets count "
        "twice, and coordinates there belong to the first. Unless they are really double, read them with "
        f"{mention('node', 'True')} or {mention('undirected', 'True')}, and collapse no more than needed"
    )
    return parts if not count or said in parts.changes else replace(parts, changes=(*parts.changes, said))


def overlapping(lines: Any) -> Ints:
    """Numbers of the LineStrings that share a stretch with an earlier one, to rounding; crossings do not count."""
    xy, line = shapely.get_coordinates(lines, return_index=True)
    inside = (line[1:] == line[:-1]) & (xy[1:] != xy[:-1]).any(axis=1)
    line, ends = line[1:][inside], np.stack([xy[:-1][inside], xy[1:][inside]], axis=1)
    segments = shapely.linestrings(ends)
    near = ROUNDING * (float(np.abs(ends).max()) + float(np.ptp(shapely.total_bounds(lines))))
    one, other = shapely.STRtree(segments).query(segments, predicate="dwithin", distance=near)
    # The longer segment of a pair gives the direction, because its direction is known better.
    length = np.hypot(*(ends[:, 1] - ends[:, 0]).T)
    longer = (length[one] > length[other]) | ((length[one] == length[other]) & (one < other))
    pairs = longer & (line[one] != line[other])
    one, other = one[pairs], other[pairs]
    # In complex numbers: along the longer segment from its beginning, and aside of it.
    first, last = np.ascontiguousarray(ends).view(np.complex128)[..., 0].T
    turned = [(end[other] - first[one]) * np.conj(last - first)[one] / length[one] for end in (first, last)]
    at, off = np.real(turned), np.imag(turned)
    # Distances from the longer segment's line at both ends of the stretch common to the two.
    stretch = np.clip(at, 0, length[one])
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (off[1] - off[0]) / (at[1] - at[0])
        away = np.abs(off[0] + (stretch - at[0]) * slope).max(axis=0)
    shared = (np.abs(stretch[1] - stretch[0]) > near) & (away <= near)
    return np.unique(np.maximum(line[one[shared]], line[other[shared]]))
