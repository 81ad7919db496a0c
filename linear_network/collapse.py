"""Removal of short edges, which cost precision, with a bound on the displacement of points."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.linear_network.skeleton import Labels, Skeleton, plural, with_ends


def collapsed(parts: Skeleton, tolerance: float, unit: str = "unit") -> Skeleton:
    """Merge short edges with what follows them where no third edge meets them, and contract the other ones.

    Raises
    ------
    InputError
        Every edge would go.
    """
    whole = merged_edges(parts, tolerance)
    small = contracted(whole, tolerance, unit)
    # Where short dead ends went, the two edges left may follow each other.
    now = merged_edges(small, tolerance)
    size = f"{tolerance:g} {unit}"
    said = []
    if gone := len(parts.vertices) - len(whole.vertices) + len(small.vertices) - len(now.vertices):
        said.append(f"merged the two edges at {plural(gone, 'vertex')}, one of them shorter than {size}")
    if gone := len(whole.edges) - len(small.edges):
        before, after = (f"{of.length:.10g}" for of in (whole, small))
        moved = float(_moves(whole, tolerance).max())
        said.append(
            f"contracted {plural(gone, 'edge')} shorter than {size}: length {before} became {after} {unit}, "
            f"vertices moved by up to {moved:.3g} {unit}"
        )
    if left := int((now.lengths < tolerance).sum()):
        said.append(f"left {plural(left, 'edge')} shorter than {size} in groups wider than the tolerance")
    return replace(now, changes=(*parts.changes, *said))


def merged_edges(parts: Skeleton, tolerance: float) -> Skeleton:
    """Make one edge of two that meet each other and nothing else, where one is shorter than the tolerance.

    Courses stay as they are, so no length and no distance changes. A cycle keeps its lowest vertex that others meet,
    or its lowest.
    """
    chains = _Chains(parts.edges)
    degree = np.bincount(parts.edges.ravel(), minlength=len(parts.vertices))
    beside = parts.edges[parts.lengths < tolerance].ravel()
    inner = np.flatnonzero((degree == 2) & (np.bincount(beside, minlength=len(degree)) > 0))
    # The last vertex of a cycle is kept.
    gone = [v for v in inner[::-1].tolist() if chains.join(v)]
    if not gone:
        return parts
    kept = np.ones(len(parts.vertices), dtype=bool)
    kept[gone] = False
    first = sorted(chains.edges)
    lines = np.array([_course(parts.lines, chains.edges[e]) for e in first], dtype=object)
    return _renumbered(parts, kept, np.array([chains.ends[e] for e in first], dtype=np.int64), lines)


def contracted(parts: Skeleton, tolerance: float, unit: str = "unit") -> Skeleton:
    """Contract groups of edges shorter than the tolerance to one vertex each, the one with the lowest number.

    Groups grow by their shortest edges first, while no two of their vertices are as far apart along these edges as the
    tolerance. So no vertex moves that far, and only short edges go. The lines of other edges have their ends moved;
    where one would become a loop, or shorter than the tolerance, it is prolonged to its new ends instead.

    Raises
    ------
    InputError
        Every edge would go.
    """
    length = parts.lengths
    goes = _targets(parts, tolerance)
    ends = goes[parts.edges]
    stays = ~((length < tolerance) & (ends[:, 0] == ends[:, 1]))
    if not stays.any():
        msg = f"tolerance: every edge would be contracted at {tolerance:g} {unit}; choose a smaller one."
        raise InputError(msg)
    if stays.all():
        return parts
    xy = parts.vertices[ends[stays]]
    lines = with_ends(parts.lines[stays], xy)
    looped = (ends[:, 0] == ends[:, 1]) & (parts.edges[:, 0] != parts.edges[:, 1])
    prolonged = looped[stays] | (shapely.length(lines) < np.minimum(tolerance, length[stays]))
    for e in np.flatnonzero(prolonged):
        lines[e] = _prolonged(parts.lines[stays][e], xy[e])
    return _renumbered(parts, goes == np.arange(len(goes)), ends[stays], lines)


@dataclass(init=False, eq=False)
class _Chains:
    """Edges in the order in which they follow each other, each with whether it runs backwards.

    Attributes
    ----------
    edges : dict of int to list of (int, bool)
        By the lowest edge, which keeps its direction.
    ends : dict of int to (int, int)
        First and last vertex of each chain.
    """

    def __init__(self, edges: Ints) -> None:
        self.ends = {e: (a, b) for e, (a, b) in enumerate(edges.tolist())}
        self.edges = {e: [(e, False)] for e in self.ends}
        self._at: dict[int, list[int]] = {}
        for e, pair in self.ends.items():
            for v in pair:
                self._at.setdefault(v, []).append(e)

    def join(self, vertex: int) -> bool:
        """Join the two chains that meet at a vertex of degree two; a loop stays, and this returns False."""
        low, high = sorted(self._at[vertex])
        if low == high:
            return False
        (a, b), (c, d), chain, more = self.ends[low], self.ends.pop(high), self.edges[low], self.edges.pop(high)
        if (b == vertex) != (c == vertex):
            c, d, more = d, c, [(e, not back) for e, back in reversed(more)]
        if b == vertex:
            self.ends[low], self.edges[low], far = (a, d), chain + more, d
        else:
            self.ends[low], self.edges[low], far = (c, b), more + chain, c
        self._at[far][self._at[far].index(high)] = low
        return True


def _course(lines: Any, chain: list[tuple[int, bool]]) -> Any:
    """LineString along lines one after the other."""
    if len(chain) == 1:
        return lines[chain[0][0]]
    parts = [shapely.get_coordinates(lines[e])[:: -1 if back else 1] for e, back in chain]
    return shapely.LineString(np.concatenate([parts[0], *(xy[1:] for xy in parts[1:])]))


def _targets(parts: Skeleton, tolerance: float) -> Ints:
    """(V,) vertex that each vertex goes to: the lowest of its group."""
    length = parts.lengths
    short = np.flatnonzero(length < tolerance)
    # Distances between the vertices of each group along the edges that made it.
    reach: dict[int, dict[int, float]] = {v: {v: 0.0} for v in np.unique(parts.edges[short]).tolist()}
    for e in short[np.argsort(length[short], kind="stable")]:
        u, v = parts.edges[e].tolist()
        if v in reach[u]:
            continue
        ahead, behind = list(reach[u].items()), list(reach[v].items())
        if max(x for _, x in ahead) + length[e] + max(y for _, y in behind) >= tolerance:
            continue
        for a, x in ahead:
            for b, y in behind:
                reach[a][b] = reach[b][a] = x + float(length[e]) + y
    goes = np.arange(len(parts.vertices))
    for v, group in reach.items():
        goes[v] = min(group)
    return goes


def _moves(parts: Skeleton, tolerance: float) -> Floats:
    """(V,) straight distances by which contraction moves vertices."""
    away = parts.vertices[_targets(parts, tolerance)] - parts.vertices
    return np.asarray(np.hypot(*away.T), dtype=np.float64)


def _prolonged(line: Any, ends: Floats) -> Any:
    """LineString that reaches given ends (2, 2) by straight pieces before and after it."""
    xy = np.vstack([ends[:1], shapely.get_coordinates(line), ends[1:]])
    return shapely.LineString(xy[np.r_[True, (xy[1:] != xy[:-1]).any(axis=1)]])


def _renumbered(parts: Skeleton, kept: npt.NDArray[np.bool_], edges: Ints, lines: Any) -> Skeleton:
    """Skeleton of the vertices kept, with edges given by old numbers."""
    edges = (np.cumsum(kept) - 1)[edges]
    labels = parts.labels
    if labels is not None:
        # Edges between the same two vertices are told apart by 0, 1, ...
        keys: defaultdict[frozenset[int], count[int]] = defaultdict(count)
        found = tuple(next(keys[frozenset(pair)]) for pair in edges.tolist())
        labels = Labels(tuple(labels.nodes[v] for v in np.flatnonzero(kept)), found)
    return replace(parts, vertices=parts.vertices[kept], edges=edges, lines=lines, labels=labels)
