"""Planar meshes: triangles and squares, cut to a window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy
import shapely

from dpppsynth.core.errors import InputError
from dpppsynth.core.rounding import power_of_ten
from dpppsynth.core.types import Floats, Ints
from dpppsynth.spatial.domains import LARGEST, Domain, Window, as_reals
from dpppsynth.spatial.mesh import NODES, Mesh, Pieces, triangulate

PLANAR = ("triangle", "square")
# Parts of an element smaller than this fraction of it are left out of the mesh.
SLIVER = 1e-12
# Largest distance of such parts from the elements, in smallest heights: under 1 % of the lattice's spare room.
THREAD = 1e-9
# Smallest share of a basis function's integral that the dual cell of a vertex may have.
LEAST = 0.1
# Times that sites are looked for in each element.
PASSES = 4


@dataclass(frozen=True, eq=False, repr=False)
class PlanarMesh(Mesh, of_arrays=True):
    """A conforming mesh of triangles, or of squares with a bilinear basis.

    Attributes
    ----------
    kind : {"triangle", "square"}
        Elements list their vertices anticlockwise; squares may be any parallelogram.
    find : callable, optional
        Fast guess of the element holding each point, (n, 2) -> (n,), -1 where it does not know.
    """

    vertices: Floats
    elements: Ints
    kind: str
    domain: Domain
    pieces: Pieces
    recipe: dict[str, Any]
    find: Callable[[Floats], Ints] | None = None
    smoothest_power: ClassVar[float] = 2.0

    def __post_init__(self) -> None:
        if self.kind not in PLANAR or self.elements.ndim != 2 or self.elements.shape[1] != NODES[self.kind]:
            msg = f"elements: kind {self.kind!r} needs an array (T, {NODES.get(self.kind, 'k')}) of vertex numbers."
            raise InputError(msg)
        if np.any(np.linalg.det(self._edges) <= 0):
            msg = (
                "elements: every element must have positive area and list its vertices anticlockwise; remove flat ones."
            )
            raise InputError(msg)
        if self.kind == "square":
            a, b, c, d = np.moveaxis(self.vertices[self.elements], 1, 0)
            if np.abs(a - b + c - d).max() > 1e-9 * np.abs(self._edges).max():
                msg = "elements: squares must be parallelograms, or neighbours' bases do not meet; use triangles."
                raise InputError(msg)
        for array in (self.vertices, self.elements):
            array.flags.writeable = False

    @classmethod
    def from_arrays(cls, vertices: npt.ArrayLike, elements: npt.ArrayLike, domain: Window) -> PlanarMesh:
        """Mesh from your own triangles (k = 3) or parallelograms (k = 4) that cover a planar window.

        Raises
        ------
        InputError
            When the elements do not cover the window, overlap, or are flat.
        """
        xy = as_reals(vertices, "vertices: must be real numbers of shape (V, 2).")
        if xy.ndim != 2 or xy.shape[1] != 2 or not (np.abs(xy) <= LARGEST).all() or not isinstance(domain, Window):
            msg = f"vertices, domain: needs coordinates (V, 2) of size {LARGEST:g} at most, and a Window."
            raise InputError(msg)
        numbers = as_reals(elements, "elements: must be vertex numbers of shape (T, 3) or (T, 4).")
        tri = np.where(np.abs(numbers) <= len(xy), numbers, -1).astype(np.int64)
        if tri.ndim != 2 or tri.shape[1] not in (3, 4) or not np.array_equal(np.unique(tri), np.arange(len(xy))):
            msg = "elements: needs an array (T, 3) or (T, 4) of vertex numbers from 0 that leaves no vertex idle."
            raise InputError(msg)
        polygons = shapely.polygons(xy[tri])
        pieces = cut_to_window(polygons, domain)
        recipe = {"builder": "arrays", "vertices": xy.tolist(), "elements": tri.tolist()}
        mesh = cls(xy, tri, PLANAR[tri.shape[1] - 3], domain, pieces, recipe)
        bare = shapely.get_parts(shapely.difference(domain.geometry, shapely.union_all(polygons)))
        uneven = abs(mesh.measure.sum() - domain.area) > 1e-9 * domain.area or mesh.misses(bare)
        if uneven or not mesh.measure.min() > 0 or not mesh._conforms() or not mesh._continuous():
            msg = (
                "elements: together they must cover the window exactly once, and neighbours must share whole edges; "
                "check for gaps, overlaps, doubled vertices and vertices in the middle of another element's edge."
            )
            raise InputError(msg)
        return mesh

    def misses(self, parts: Any) -> bool:
        """Whether uncovered parts (array of geometries) of a window lie too far from the elements for the tents' bound.

        A point there takes the basis values of the nearest element. On a thread it would jump to a far one, and the
        tents' sensitivity bound would fail; right beside an element it moves by less than the lattice can see.
        """
        parts = parts[shapely.area(parts) > 0]
        if not len(parts):
            return False
        fine = shapely.segmentize(parts, np.sqrt(self.area.min()) / 20)
        points = shapely.points(shapely.get_coordinates(fine))
        _, distance = self._tree.query_nearest(points, return_distance=True, all_matches=False)
        return bool(distance.max() > THREAD * 2 / self.tent_slope)

    def _conforms(self) -> bool:
        """Whether every edge inside the window belongs to two elements, which keeps the basis continuous there."""
        ends = np.stack([self.elements, np.roll(self.elements, -1, axis=1)], axis=-1).reshape(-1, 2)
        edge, inverse, count = np.unique(np.sort(ends, axis=1), axis=0, return_inverse=True, return_counts=True)
        forward = np.bincount(inverse.ravel(), ends[:, 0] < ends[:, 1])
        if np.any(count > 2) or np.any((count == 2) & (forward != 1)):
            return False
        border = shapely.linestrings(self.vertices[edge[count == 1]])
        inside = shapely.intersection(border, self.domain.geometry)
        # A border edge less the window's own border runs through its interior.
        through = shapely.difference(inside, shapely.buffer(self.domain.geometry.boundary, 1e-9 * self.domain.diameter))
        return float(shapely.length(through).sum()) == 0.0

    def _continuous(self) -> bool:
        """Whether all elements at a vertex of mesh or window give the same basis values there, pinched ones too."""
        corners = np.concatenate([self.vertices, shapely.get_coordinates(self.domain.geometry)])
        near = 1e-9 * self.domain.diameter
        corners = corners[shapely.dwithin(self.domain.geometry, shapely.points(corners), near)]
        point, element = self._tree.query(shapely.points(corners), predicate="dwithin", distance=near)
        weight = np.clip(self.weights(element, corners[point]), 0, None)
        values = self.gather(element, weight / weight.sum(axis=1, keepdims=True))
        _, first, group = np.unique(point, return_index=True, return_inverse=True)
        return bool(abs(values - values[first[group.ravel()]]).max() < 1e-6)

    @cached_property
    def _edges(self) -> Floats:
        """(T, 2, 2): rows are the two edges leaving each element's first vertex."""
        corner = self.vertices[self.elements]
        return np.stack([corner[:, 1] - corner[:, 0], corner[:, -1] - corner[:, 0]], axis=1)

    @cached_property
    def _inverse(self) -> Floats:
        return np.asarray(np.linalg.inv(self._edges), dtype=np.float64)

    @cached_property
    def element_polygons(self) -> Any:
        """(T,) shapely polygons of the whole elements."""
        return shapely.polygons(self.vertices[self.elements])

    @cached_property
    def element_parts(self) -> Any:
        return shapely.intersection(self.element_polygons, self.domain.geometry)

    @cached_property
    def _tree(self) -> shapely.STRtree:
        return shapely.STRtree(self.element_polygons)

    @cached_property
    def area(self) -> Floats:
        """(T,) areas of the whole elements, parts outside the domain included."""
        return np.linalg.det(self._edges) / (2 if self.kind == "triangle" else 1)

    @property
    def positions(self) -> Floats:
        return self.vertices

    @property
    def metric(self) -> Floats:
        return np.asarray(scipy.spatial.distance.cdist(self.vertices, self.vertices), dtype=np.float64)

    @property
    def coordinate_size(self) -> float:
        """Largest coordinate, with the diameter added."""
        return float(np.max(np.abs(self.vertices))) + self.domain.diameter

    def weights(self, element: Ints, positions: Floats) -> Floats:
        away = self.domain.coordinates(positions) - self.vertices.take(self.elements[:, 0].take(element), axis=0)
        inverse = self._inverse.take(element, axis=0)
        # One operation on numbers at a time: sums of products may be rounded by what else is in memory.
        s, t = (away[:, 0] * inverse[:, 0, k] + away[:, 1] * inverse[:, 1, k] for k in (0, 1))
        if self.kind == "triangle":
            return np.stack([1 - s - t, s, t], axis=1)
        return np.stack([(1 - s) * (1 - t), s * (1 - t), s * t, (1 - s) * t], axis=1)

    def locate(self, positions: Floats) -> Ints:
        xy = self.domain.coordinates(positions)
        element = np.full(len(xy), -1) if self.find is None else self.find(xy)
        lost = np.flatnonzero(element < 0)
        if len(lost):
            points = shapely.points(xy[lost])
            query, found = self._tree.query_nearest(points, all_matches=True)
            first = np.full(len(lost), len(self.elements))
            np.minimum.at(first, query, found)
            element[lost] = first
        return element

    @cached_property
    def gradients(self) -> Floats:
        """(T, c, k, 2) basis gradients at c points per element between which they are linear.

        One point on triangles, where the gradient is constant; the four corners on squares.
        """
        if self.kind == "triangle":
            local = np.array([[[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]]])
        else:
            s, t = np.array([0.0, 1.0, 1.0, 0.0])[:, None], np.array([0.0, 0.0, 1.0, 1.0])[:, None]
            local = np.stack([np.hstack([t - 1, 1 - t, t, -t]), np.hstack([s - 1, -s, s, 1 - s])], axis=2)
        return np.einsum("cka,tia->tcki", local, self._inverse)

    def cut(self, polygons: Any, tree: shapely.STRtree) -> tuple[Pieces, Ints]:
        element, polygon = tree.query(self.element_parts, predicate="intersects")
        shared = shapely.intersection(self.element_parts[element], polygons[polygon])
        common = triangulate(shared, np.arange(len(element)))
        return Pieces(common.corners, element[common.element], common.weight), polygon[common.element]

    def dual_cells(self) -> Any:
        """(V,) shapely geometries, the Voronoi dual mesh: the part of each element nearest to each of its `sites`.

        Clipped by borders and holes; a cell reaches no farther than the basis function of its vertex. Nothing of the
        domain is left out. On triangles without obtuse angles, and where elements are whole, these are the places
        nearer to a vertex than to any other.
        """
        return self.cells_around(self.sites)

    @cached_property
    def sites(self) -> Floats:
        """(T, k, 2) vertices of the elements; where one's cell were hardly anything, its basis function's mean places.

        The cell of a vertex outside a window may miss the window, though its basis function does not. Its mean place
        in the domain stands for it, or, where that is no better, as for a vertex in the middle of a hole, the mean
        place in each element.
        """
        sites, whole = self.vertices[self.elements], self.means(self.elements, len(self.vertices), self.vertices)
        # A site that comes into a part of the domain may take it from a neighbour's, so that one is looked at again.
        for places in (whole[self.elements], *[self.mean_places_within] * PASSES):
            cells = self.cells_around(sites)
            # Of cells in a window lengths are those of borders, of cells along streets there is no area.
            size = shapely.area(cells) if isinstance(self.domain, Window) else shapely.length(cells)
            small = size < LEAST * self.measure
            if not small.any():
                break
            sites = np.where(small[self.elements][..., None], places, sites)
        return sites

    def cells_around(self, sites: Floats) -> Any:
        """(V,) shapely geometries: the parts of elements nearest to each of their sites (T, k, 2), by vertex."""
        at, k = sites, self.elements.shape[1]
        parts = np.repeat(self.element_parts[:, None], k, axis=1)
        reach = 4 * self.domain.diameter
        for i in range(k):
            for j in (other for other in range(k) if other != i):
                nearer = half_planes((at[:, i] + at[:, j]) / 2, at[:, i] - at[:, j], reach)
                parts[:, i] = shapely.intersection(parts[:, i], nearer)
        owner = self.elements.ravel()
        order = np.argsort(owner, kind="stable")
        column = np.arange(len(order)) - np.searchsorted(owner[order], owner[order])
        beside = np.full((len(self.vertices), column.max() + 1), None)
        beside[owner[order], column] = parts.ravel()[order]
        # On a grid, or ends of cuts that differ by rounding would leave slits.
        return shapely.union_all(beside, grid_size=power_of_ten(1e-9 * self.domain.diameter), axis=1)


def half_planes(point: Floats, normal: Floats, reach: float) -> Any:
    """(n,) shapely squares on the side of lines through points (n, 2) that normals (n, 2) show; all for a normal 0."""
    length = np.hypot(*normal.T)[:, None]
    normal = np.divide(normal, length, out=np.zeros_like(normal), where=length > 0)
    along = np.column_stack([-normal[:, 1], normal[:, 0]])
    return shapely.polygons(
        np.stack(
            [
                point - reach * along,
                point + reach * along,
                point + reach * along + 2 * reach * normal,
                point - reach * along + 2 * reach * normal,
            ],
            axis=1,
        )
    )


def cut_to_window(polygons: Any, domain: Window) -> Pieces:
    """Pieces of element polygons (T,) inside a window; elements wholly inside are not cut."""
    shapely.prepare(domain.geometry)
    index = np.flatnonzero(shapely.intersects(domain.geometry, polygons))
    parts = polygons[index]
    cut = ~shapely.covers(domain.geometry, parts)
    parts[cut] = shapely.intersection(parts[cut], domain.geometry)
    keep = shapely.area(parts) > SLIVER * shapely.area(polygons[index])
    return triangulate(parts[keep], index[keep])
