"""Contraction of short edges, which meshes and mechanisms pay for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import shapely

from dpppsynth.errors import InputError
from dpppsynth.linear_network.skeleton import Ints, Labels, Skeleton, components, plural, with_ends


def contracted(parts: Skeleton, tolerance: float, unit: str = "unit") -> Skeleton:
    """Contract edges shorter than the tolerance until none is left.

    The ends of a short edge become one vertex, in the place of the one with the lowest number; chains of short edges
    become one vertex as a whole. The lines of other edges have their ends moved. An edge whose ends became one is a
    loop; it stays unless it is short as well.

    Raises
    ------
    InputError
        Every edge would go.
    """
    now, lost = parts, 0.0
    while (short := (length := shapely.length(now.lines)) < tolerance).any():
        if short.all():
            msg = f"tolerance: every edge would be contracted at {tolerance:g} {unit}; choose a smaller one."
            raise InputError(msg)
        lost += float(length[short].sum())
        now = _once(now, short)
    gone = len(parts.edges) - len(now.edges)
    if not gone:
        return parts
    said = f"contracted {plural(gone, 'edge')} shorter than {tolerance:g} {unit}, {lost:.6g} {unit} in all"
    return replace(now, changes=(*parts.changes, said))


def _once(parts: Skeleton, short: npt.NDArray[np.bool_]) -> Skeleton:
    size = len(parts.vertices)
    group = components(size, parts.edges[short])
    # Groups are numbered by their lowest vertices, which stay where they are.
    _, lowest = np.unique(group, return_index=True)
    vertices, edges = parts.vertices[lowest], group[parts.edges[~short]]
    labels = parts.labels
    if labels is not None:
        labels = Labels(tuple(labels.nodes[v] for v in lowest), parallel_keys(edges))
    lines = with_ends(parts.lines[~short], vertices[edges])
    return replace(parts, vertices=vertices, edges=edges, lines=lines, labels=labels)


def parallel_keys(edges: Ints) -> tuple[int, ...]:
    """Keys (E,) that tell edges between the same two vertices apart: 0, 1, ..."""
    pairs = np.sort(edges, axis=1)
    _, pair = np.unique(pairs, axis=0, return_inverse=True)
    order = np.argsort(pair.ravel(), kind="stable")
    ranked = pair.ravel()[order]
    start = np.r_[True, ranked[1:] != ranked[:-1]]
    rank = np.empty(len(edges), dtype=np.int64)
    rank[order] = np.arange(len(edges)) - np.maximum.accumulate(np.where(start, np.arange(len(edges)), 0))
    return tuple(rank.tolist())
