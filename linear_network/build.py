"""Construction of networks from map lines: end points become vertices, with cutting and joining on request.

Short edges, which cost precision, are removed with a bound on the displacement of points.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import count, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely
from shapely.ops import substring

from dpppsynth.core.arguments import positive
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.core.wording import either, mention, named
from dpppsynth.linear_network.skeleton import (
    ROUNDING,
    Labels,
    Skeleton,
    ends_of,
    flattened,
    listed_lines,
    numbered,
    plural,
    with_ends,
)
from dpppsynth.spatial.domains import LARGEST

LINES = ("LineString", "MultiLineString")
DOUBLE = "Streets that are really double go through LinearNetwork(vertices, edges, lines=) or from_networkx."


def skeleton_of_lines(lines: Any, *, node: bool = False, join: float | None = None, unit: str = "unit") -> Skeleton:
    """Edges along lines, as for `LinearNetwork.from_geodataframe`; `unit` is that of the sentences about changes.

    InputError where a geometry is not a line or has no length, a line comes twice, or the tolerance is not a distance.
    """
    if join is not None:
        require_distance("join", join, unit)
    parts, changes = line_parts(lines), []
    if node:
        cut = _noded(parts)
        before = float(shapely.length(parts).sum())
        lost = before - float(shapely.length(cut).sum())
        twice = lost > ROUNDING * before
        if len(cut) != len(parts) or twice:
            said = f"cut lines where they cross or touch: {plural(len(parts), 'line')} became {len(cut)}"
            changes.append(said + (f", {lost:.6g} {unit} drawn twice kept once" if twice else ""))
        parts = cut
    else:
        _refuse_duplicates(parts)
    if join is not None:
        parts, joined = _joined(parts, float(join), unit)
        changes += joined
    vertices, edges = numbered(ends_of(parts))
    return Skeleton(vertices, edges, lines=parts, changes=tuple(changes))


def line_parts(lines: Any, *, flat: bool = False) -> Any:
    """(E,) LineStrings in two dimensions: the parts of LineStrings and MultiLineStrings.

    InputError where there is something else, or a line without a length unless `flat` allows it.
    """
    given = listed_lines(lines, "lines")
    wrong = sorted({getattr(g, "geom_type", type(g).__name__) for g in given if g is not None} - set(LINES))
    if wrong or not len(given):
        msg = f"lines: must be LineStrings or MultiLineStrings; found {', '.join(wrong) or 'nothing'}."
        raise InputError(msg)
    for bare, rule in ((shapely.is_missing(given), "no geometry"), (shapely.is_empty(given), "an empty geometry")):
        if bare.any():
            raise _without_length(bare, rule)
    parts = flattened(shapely.get_parts(given))
    short = ~(shapely.length(parts) > 0)
    if short.any() and not flat:
        raise _without_length(short, "no length")
    return parts


def _without_length(bare: npt.NDArray[np.bool_], rule: str) -> InputError:
    """The error for lines that are nowhere, which repairs of short edges leave out."""
    number = int(bare.sum())
    fault = f"{number} of {len(bare)} {'has' if number == 1 else 'have'} {rule}"
    kept = either("keep lines[lines.length > 0], or let", "let")
    return InputError(f"lines: {fault}; {kept} {mention('collapse_short', '0.5')} leave them out.")


def without_rows(geometry: Any) -> tuple[npt.NDArray[np.bool_], tuple[str, ...]]:
    """(n,) which rows have a geometry that is not empty, and a sentence about others."""
    bare = shapely.is_missing(geometry) | shapely.is_empty(geometry)
    gone = int(bare.sum())
    return ~bare, (f"left out {plural(gone, 'row')} without a geometry",) if gone else ()


def with_length(parts: Any) -> tuple[Any, tuple[str, ...]]:
    """Lines (E,) that have a length, and a sentence about others."""
    kept = shapely.length(parts) > 0
    gone = int((~kept).sum())
    return parts[kept], (f"left out {plural(gone, 'line')} without a length",) if gone else ()


def drawn_once(parts: Any) -> tuple[Ints, tuple[str, ...]]:
    """Numbers of the lines without those that repeat an earlier one in either direction, and a sentence about these."""
    kept = _first_drawings(parts)
    gone = len(parts) - len(kept)
    return kept, (f"left out {plural(gone, 'line')} along the course of another",) if gone else ()


def require_distance(name: str, value: Any, unit: str) -> None:
    """Refuse anything but a positive number."""
    positive(name, value, rule=f"be a positive distance ({unit})", most=LARGEST, remedy="for instance 1.5")


def _refuse_duplicates(parts: Any) -> None:
    """Refuse duplicate lines: they would double a street's length, and points would only ever lie on the first."""
    again = len(parts) - len(_first_drawings(parts))
    if again:
        msg = (
            f"lines: {plural(again, 'line')} drawn twice, which would count a street twice. Keep each once with "
            f"{mention('undirected', 'True')}, as for the two directions of a street."
        )
        raise InputError(f"{msg} {DOUBLE}" if named("undirected") == "undirected" else msg)


def _first_drawings(parts: Any) -> Ints:
    """Numbers of the lines, those left out that repeat an earlier one in either direction."""
    _, first = np.unique(shapely.to_wkb(shapely.normalize(parts)), return_index=True)
    return np.sort(first)


def _rounding(parts: Any) -> float:
    return ROUNDING * (float(np.abs(shapely.get_coordinates(parts)).max()) + float(np.ptp(shapely.total_bounds(parts))))


def _noded(parts: Any) -> Any:
    """LineStrings cut wherever they cross or touch; stretches that several share are kept once."""
    near = _rounding(parts)
    cut = shapely.get_parts(shapely.node(shapely.multilinestrings(_cut_at_touching_ends(parts, near))))
    vertices, edges = numbered(ends_of(cut))
    # Three lines through one place cross in pairs, a rounding error apart.
    return contracted(Skeleton(vertices, edges, lines=cut), near).lines


def _cut_at_touching_ends(parts: Any, near: float) -> Any:
    """Ends that touch a line to rounding become coordinates of it, because exact cutting would pass them by."""
    places, _ = numbered(ends_of(parts))
    points = shapely.points(places)
    place, line = shapely.STRtree(parts).query(points, predicate="dwithin", distance=near)
    at = shapely.line_locate_point(parts[line], points[place])
    inner = (at > near) & (at < shapely.length(parts[line]) - near)
    return _pieces(parts, _Cuts(line[inner], at[inner], places[place[inner]]))


@dataclass(frozen=True, eq=False)
class _Cuts:
    """Cuts of lines: their numbers (n,), distances along them (n,), and the coordinates (n, 2) put there."""

    line: Ints
    at: Floats
    xy: Floats


def _pieces(parts: Any, cuts: _Cuts) -> Any:
    """LineStrings cut in place; equal distances on one line are one cut."""
    out = list(parts)
    for line in np.unique(cuts.line):
        mine = np.flatnonzero(cuts.line == line)
        at, first = np.unique(cuts.at[mine], return_index=True)
        xy = cuts.xy[mine][first]
        stops = [0.0, *at, float(shapely.length(parts[line]))]
        whole = ends_of(parts[line : line + 1])[0]
        corners = np.vstack([whole[:1], xy, whole[1:]])
        courses = np.array([substring(parts[line], a, b) for a, b in pairwise(stops)], dtype=object)
        out[line] = with_ends(courses, np.stack([corners[:-1], corners[1:]], axis=1))
    return np.concatenate([np.atleast_1d(np.array(o, dtype=object)) for o in out])


def _joined(parts: Any, tolerance: float, unit: str) -> tuple[Any, list[str]]:
    """LineStrings whose dangling ends within the tolerance of a vertex or a line are joined to it."""
    parts, far = _join_to_vertices(parts, tolerance)
    parts, beside = _join_to_lines(parts, tolerance)
    moved = [*far, *beside]
    if not moved:
        return parts, []
    said = [f"joined {plural(len(moved), 'dangling end')}, moved by up to {max(moved):.3g} {unit}"]
    kept = _first_drawings(parts)
    if len(kept) < len(parts):
        said.append(f"left out {plural(len(parts) - len(kept), 'line')} that joining laid upon another")
    return parts[kept], said


def _dangling(edges: Ints) -> tuple[Ints, Ints, Ints]:
    """Vertices of degree one, the edge of each, and the vertex at its other end."""
    degree = np.bincount(edges.ravel())
    edge, side = np.nonzero(degree[edges] == 1)
    return edges[edge, side], edge, edges[edge, 1 - side]


def _join_to_vertices(parts: Any, tolerance: float) -> tuple[Any, list[float]]:
    ends = ends_of(parts)
    vertices, edges = numbered(ends)
    loose, _, other = _dangling(edges)
    far = dict(zip(loose.tolist(), other.tolist(), strict=True))
    found, target = shapely.STRtree(shapely.points(vertices)).query(
        shapely.points(vertices[loose]), predicate="dwithin", distance=tolerance
    )
    fit = (target != loose[found]) & (target != other[found])
    end, target = loose[found[fit]], target[fit]
    away = np.hypot(*(vertices[end] - vertices[target]).T)
    goes, settled, moved = np.arange(len(vertices)), set(), []
    # The nearest pair first; of two dangling ends the one with the higher number moves.
    for k in np.lexsort((end, target, away)):
        a, b = int(end[k]), int(target[k])
        # Both ends of a line joined to one vertex would leave nothing of it.
        if goes[a] == a and goes[b] == b and a not in settled and goes[far[a]] != b:
            goes[a] = b
            settled.add(b)
            moved.append(float(away[k]))
    return with_ends(parts, vertices[goes[edges]]), moved


def _join_to_lines(parts: Any, tolerance: float) -> tuple[Any, list[float]]:
    vertices, edges = numbered(ends_of(parts))
    end, cuts = _landings(parts, vertices, edges, tolerance)
    goal = vertices.copy()
    goal[end] = cuts.xy
    # Lines are cut before their own ends move, so that every cut lies on its line.
    pieces = _pieces(parts, cuts)
    places, ends = numbered(ends_of(pieces))
    known = {place: number for number, place in enumerate(map(tuple, vertices.tolist()))}
    number = np.array([known.get(place, -1) for place in map(tuple, places.tolist())])
    moved = np.hypot(*(cuts.xy - vertices[end]).T)
    target = np.where(number[:, None] >= 0, goal[number], places)
    return with_ends(pieces, target[ends]), [float(m) for m in moved]


def _landings(parts: Any, vertices: Floats, edges: Ints, tolerance: float) -> tuple[Ints, _Cuts]:
    """Dangling ends (n,) with a line within the tolerance, and the places of these lines nearest to them."""
    near = _rounding(parts)
    loose, own, other = _dangling(edges)
    points = shapely.points(vertices[loose])
    found, line = shapely.STRtree(parts).query(points, predicate="dwithin", distance=tolerance)
    at = shapely.line_locate_point(parts[line], points[found])
    xy = shapely.get_coordinates(shapely.line_interpolate_point(parts[line], at)).reshape(-1, 2)
    inner = (at > near) & (at < shapely.length(parts[line]) - near)
    # The far end of a short street is near the streets it starts from; that is no gap.
    short = shapely.length(parts[own[found]]) <= tolerance
    meets = (edges[line] == other[found, None]).any(axis=1) | (np.hypot(*(xy - vertices[other[found]]).T) <= near)
    fit = (line != own[found]) & inner & ~(short & meets)
    found, line, at = found[fit], line[fit], at[fit]
    order = np.lexsort((line, shapely.distance(parts[line], points[found]), found))
    _, first = np.unique(found[order], return_index=True)
    best = order[first]
    found, line, at = found[best], line[best], at[best]
    at = _one_place(line, at, near)
    # A line that lands with both ends in one place keeps one end, or nothing would be left of it.
    _, first = np.unique(np.column_stack([own[found], line, at]), axis=0, return_index=True)
    first = np.sort(first)
    found, line, at = found[first], line[first], at[first]
    xy = shapely.get_coordinates(shapely.line_interpolate_point(parts[line], at)).reshape(-1, 2) + 0.0
    return loose[found], _Cuts(line, at, xy)


def _one_place(line: Ints, at: Floats, near: float) -> Floats:
    """Distances along lines, those within rounding of the one before on the same line made equal to it."""
    out, order = at.copy(), np.lexsort((at, line))
    for a, b in pairwise(order):
        if line[a] == line[b] and out[b] - out[a] <= near:
            out[b] = out[a]
    return out


def collapsed(parts: Skeleton, tolerance: float, unit: str = "unit", *, argument: str = "tolerance") -> Skeleton:
    """Merge short edges with what follows them where no third edge meets them, and contract the other ones.

    Those without a length are contracted first: nothing moves. InputError where every edge would go.
    """
    parts = _without_flat(parts, argument)
    whole = merged_edges(parts, tolerance)
    small = contracted(whole, tolerance, unit, argument=argument)
    # Where short dead ends went, the two edges left may follow each other.
    now = merged_edges(small, tolerance)
    size = f"{tolerance:g} {unit}"
    said = []
    if gone := len(parts.vertices) - len(whole.vertices) + len(small.vertices) - len(now.vertices):
        said.append(f"merged the two edges at {plural(gone, 'vertex')}, one of them shorter than {size}")
    if gone := len(whole.edges) - len(small.edges):
        before, after = (f"{of.length:.10g}" for of in (whole, small))
        away = whole.vertices[_targets(whole, tolerance)] - whole.vertices
        said.append(
            f"contracted {plural(gone, 'edge')} shorter than {size}: length {before} became {after} {unit}, "
            f"vertices moved by up to {np.hypot(*away.T).max():.3g} {unit}"
        )
    if left := int((now.lengths < tolerance).sum()):
        said.append(f"left {plural(left, 'edge')} shorter than {size} in groups wider than the tolerance")
    return replace(now, changes=(*parts.changes, *said))


def _without_flat(parts: Skeleton, argument: str) -> Skeleton:
    """Contract the edges without a length, which join vertices in one place."""
    rest = contracted(parts, float(np.nextafter(0, 1)), argument=argument)
    gone = len(parts.edges) - len(rest.edges)
    said = (f"contracted {plural(gone, 'edge')} without a length",) if gone else ()
    return replace(rest, changes=(*parts.changes, *said))


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


def contracted(parts: Skeleton, tolerance: float, unit: str = "unit", *, argument: str = "tolerance") -> Skeleton:
    """Contract groups of edges shorter than the tolerance to one vertex each, the one with the lowest number.

    Groups grow by their shortest edges first, while no two of their vertices are as far apart along these edges as the
    tolerance. So no vertex moves that far, and only short edges go. The lines of other edges have their ends moved;
    where one would become a loop, or shorter than the tolerance, it is prolonged to its new ends instead. InputError
    where every edge would go.
    """
    length = parts.lengths
    goes = _targets(parts, tolerance)
    ends = goes[parts.edges]
    stays = ~((length < tolerance) & (ends[:, 0] == ends[:, 1]))
    if not stays.any():
        msg = f"{argument}: every edge would be contracted at {tolerance:g} {unit}; choose a smaller one."
        raise InputError(msg)
    if stays.all():
        return parts
    xy = parts.vertices[ends[stays]]
    lines = with_ends(parts.lines[stays], xy)
    looped = (ends[:, 0] == ends[:, 1]) & (parts.edges[:, 0] != parts.edges[:, 1])
    prolonged = looped[stays] | (shapely.length(lines) < np.minimum(tolerance, length[stays]))
    for e in np.flatnonzero(prolonged):
        course = np.vstack([xy[e, :1], shapely.get_coordinates(parts.lines[stays][e]), xy[e, 1:]])
        lines[e] = shapely.LineString(course[np.r_[True, (course[1:] != course[:-1]).any(axis=1)]])
    return _renumbered(parts, goes == np.arange(len(goes)), ends[stays], lines)


@dataclass(init=False, eq=False)
class _Chains:
    """Edges in the order in which they follow each other, each with whether it runs backwards.

    By the lowest edge of each chain, which keeps its direction; `ends` are its first and last vertex.
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
