"""Meshes from their recipes on certificates, meshes over the box of a network, and triangles nested in cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import shapely

from dpppsynth.core.arguments import entries, instance
from dpppsynth.core.crs import crs_from_member
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Json, JsonObject
from dpppsynth.linear_network import LinearNetwork, NetworkMesh, network_mesh
from dpppsynth.linear_network.mesh import StreetMesh
from dpppsynth.models.regular_meshes import Finder, regular, regular_grid, settle_shape
from dpppsynth.spatial.domains import Domain, Window, canonical_json
from dpppsynth.spatial.mesh import Floats, Ints, Mesh, Pieces
from dpppsynth.spatial.planar_mesh import SLIVER, PlanarMesh


def domain_from_geojson(data: Mapping[str, Any]) -> Domain:
    """Window of polygons, or network of lines, from the form that its `to_geojson` gives."""
    try:
        kinds = {str(feature["geometry"]["type"]) for feature in data["features"]}
    except (LookupError, TypeError, ValueError):
        msg = "domain: must be a GeoJSON FeatureCollection, as the to_geojson() of a window or a network gives it."
        raise InputError(msg) from None
    return LinearNetwork.from_geojson(data) if kinds == {"LineString"} else Window.from_geojson(data)


def domain_of_release(data: Mapping[str, Any], scale_factor: float) -> Domain:
    """Domain of a saved release, with the scale factor on its certificate, which is not compared here."""
    return domain_from_geojson({**data, "crs": None}).as_stated(crs_from_member(data["crs"]), scale_factor)


def window(domain: Any) -> Window:
    """The domain, refused unless it is a window."""
    found: Window = instance("domain", domain, Window)
    return found


def segments(mesh: Any) -> NetworkMesh:
    """The mesh, refused unless it is one of segments."""
    if not isinstance(mesh, NetworkMesh):
        msg = "mesh: needs segments of a network here; network_mesh(network, resolution=50.0) makes them."
        raise InputError(msg)
    return mesh


def mesh_from_recipe(recipe: Mapping[str, Any], domain: Any) -> Mesh:
    """Build a mesh again from its `Mesh.recipe` alone."""
    mesh = _built(entries("recipe", recipe), domain) if isinstance(domain, Domain) else None
    if mesh is None or canonical_json(mesh.recipe) != canonical_json(recipe):
        msg = (
            f"mesh: recipe {recipe!r} is not known for this domain; expected builder 'arrays', or 'regular' with kind "
            "and shape, on a window, and 'network' with resolution, or 'trace' with shape, on a network."
        )
        raise InputError(msg)
    return mesh


def _built(recipe: Mapping[str, Any], domain: Any) -> Mesh | None:
    builder, on_network = recipe.get("builder"), isinstance(domain, LinearNetwork)
    if builder == "network" and on_network and "resolution" in recipe:
        return network_mesh(domain, recipe["resolution"])
    if builder == "arrays" and not on_network and {"vertices", "elements"} <= recipe.keys():
        return Mesh.from_arrays(recipe["vertices"], recipe["elements"], domain)
    shape = recipe.get("shape")
    if isinstance(shape, list | tuple) and len(shape) == 2:
        vertices = (shape[0], shape[1])
        if builder == "regular" and not on_network and recipe.get("kind") in ("triangle", "square"):
            return regular(domain, recipe["kind"], vertices)
        if builder == "trace" and on_network:
            return trace_mesh(domain, shape=vertices)
    return None


# Straight parts shorter than this share of the diameter are rounding, not street.
SHORTEST = 1e-12


class TraceMesh(StreetMesh, PlanarMesh):
    """Triangles of the plane whose integrals run along the edges of a network."""

    def cells_around(self, sites: Floats) -> Any:
        """(V,) shapely lines: the parts of streets nearest to each of their triangle's sites (T, 3, 2), by vertex."""
        ends = self.domain.coordinates(self.pieces.corners.reshape(-1, 2)).reshape(-1, 2, 2)
        first, way = ends[:, 0], ends[:, 1] - ends[:, 0]
        corner = self.elements[self.pieces.element]
        away = first[:, None] - sites[self.pieces.element]
        # Squared distances at a share t of the way differ by those at t = 0, plus a linear function of t.
        level, slope = (away**2).sum(axis=-1), 2 * np.einsum("pkd,pd->pk", away, way)
        rise, drop = np.roll(slope, -1, axis=1) - slope, level - np.roll(level, -1, axis=1)
        meet = np.clip(np.divide(drop, rise, out=np.zeros_like(rise), where=rise != 0), 0, 1)
        share = np.sort(np.column_stack([np.zeros(len(way)), meet, np.ones(len(way))]), axis=1)
        middle = (share[:, :-1] + share[:, 1:]) / 2
        nearest = (level[:, None] + middle[..., None] * slope[:, None]).argmin(axis=-1)
        owner = np.take_along_axis(corner, nearest, axis=1)
        at = first[:, None] + share[..., None] * way[:, None]
        real = share[:, 1:] > share[:, :-1]
        lines = shapely.linestrings(np.stack([at[:, :-1][real], at[:, 1:][real]], axis=1))
        order = np.argsort(owner[real], kind="stable")
        out = np.full(len(self.vertices), shapely.MultiLineString())
        return shapely.multilinestrings(lines[order], indices=owner[real][order], out=out)


def trace_mesh(
    network: LinearNetwork, *, spacing: float | None = None, shape: tuple[int, int] | None = None
) -> TraceMesh:
    """Right triangles on a regular grid over the network's bounding box; those that no edge runs through are left out.

    Parameters
    ----------
    network : LinearNetwork
        Public domain.
    spacing : float, optional
        Smallest side of a grid cell, in the network's unit.
    shape : (int, int), optional
        Vertices along x and y, at least 2 each; give either `spacing` or `shape`.
    """
    instance("network", network, LinearNetwork)
    bounds = around(network)
    nx, ny = settle_shape(bounds, network.unit, spacing, shape)
    vertices, elements = regular_grid(bounds, nx, ny, "triangle")
    finder = Finder(bounds, nx - 1, ny - 1, "triangle", np.arange(len(elements)))
    corners, element, length = _cut(network, bounds, nx - 1, ny - 1, finder)
    kept = np.unique(element)
    renumber = np.full(len(elements), -1)
    renumber[kept] = np.arange(len(kept))
    used, local = np.unique(elements[kept], return_inverse=True)
    return TraceMesh(
        vertices=vertices[used],
        elements=local.reshape(-1, 3),
        kind="triangle",
        domain=network,
        pieces=Pieces(corners, renumber[element], length),
        recipe={"builder": "trace", "shape": [nx, ny]},
        find=Finder(bounds, nx - 1, ny - 1, "triangle", renumber),
    )


def around(network: LinearNetwork) -> tuple[float, float, float, float]:
    """Bounding box with sides of at least a third of the diameter, since thin triangles would make steep tents."""
    x0, y0, x1, y1 = network.bounds
    least = network.diameter / 3
    dx, dy = (max(0.0, least - side) / 2 for side in (x1 - x0, y1 - y0))
    return x0 - dx, y0 - dy, x1 + dx, y1 + dy


def _cut(
    network: LinearNetwork, bounds: tuple[float, float, float, float], nx: int, ny: int, finder: Finder
) -> tuple[Floats, Ints, Floats]:
    """Pieces of the edges between the grid's lines: their ends (Q, 2, 2) as positions, triangles, and lengths."""
    low, high = np.reshape(bounds, (2, 2))
    corners, element = [], []
    for edge, line in enumerate(network.lines):
        course = shapely.get_coordinates(line)
        along = np.append(0.0, np.cumsum(np.hypot(*np.diff(course, axis=0).T)))
        along *= network.lengths[edge] / along[-1]
        place = (course - low) / (high - low) * (nx, ny)
        lines = np.column_stack([place, place[:, 1] - place[:, 0]])
        for k in range(len(course) - 1):
            share = np.unique(np.concatenate([[0.0, 1.0], *map(_crossings, lines[k], lines[k + 1])]))
            at = along[k] + share * (along[k + 1] - along[k])
            middle = course[k] + (share[:-1] + share[1:])[:, None] / 2 * (course[k + 1] - course[k])
            corners.append(np.column_stack([at[:-1], at[1:]]))
            element.append(np.column_stack([np.full(len(middle), edge), finder(middle)]))
    ends, owner = np.concatenate(corners), np.concatenate(element)
    length = ends[:, 1] - ends[:, 0]
    real = length > SHORTEST * network.diameter
    positions = np.stack([np.repeat(owner[:, :1], 2, axis=1), ends], axis=2)
    return positions[real], owner[real, 1], length[real]


def _crossings(first: float, last: float) -> Floats:
    """Shares of the way from first to last at which whole numbers are passed."""
    if first == last:
        return np.empty(0)
    whole = np.arange(np.ceil(min(first, last)), np.floor(max(first, last)) + 1)
    share = (whole - first) / (last - first)
    return share[(share > 0) & (share < 1)]


def triangles_within(cells: Mesh, factor: int = 1) -> Mesh:
    """Triangles that tile the cells of a window's mesh.

    Parameters
    ----------
    cells : Mesh
        Triangles, squares or other parallelograms.
    factor : int
        Parts of a cell's side, for regular meshes. Cells of one's own are cut from their middles to their corners.

    Examples
    --------
    >>> from dpppsynth.models import regular_squares
    >>> from dpppsynth.spatial.domains import Window
    >>> triangles_within(regular_squares(Window.rectangle(0, 0, 10, 10), shape=(3, 3)), 2)
    Mesh(25 vertices, 32 triangles)
    """
    return mesh_from_recipe(_recipe_within(cells, factor), cells.domain)


def are_within(recipe: Json, cells: Mesh) -> bool:
    """Whether a recipe is that of triangles within cells, of some factor."""
    shape = recipe.get("shape") if isinstance(recipe, dict) else None
    first = shape[0] if isinstance(shape, list) and shape and type(shape[0]) is int else 0
    factor = (first - 1) // (cells.recipe["shape"][0] - 1) if cells.recipe["builder"] == "regular" else 1
    return factor >= 1 and canonical_json(recipe) == canonical_json(_recipe_within(cells, factor))


def _recipe_within(cells: Mesh, factor: int) -> JsonObject:
    """Recipe of the triangles."""
    if cells.recipe["builder"] == "regular":
        shape = [factor * (side - 1) + 1 for side in cells.recipe["shape"]]
        return {"builder": "regular", "kind": "triangle", "shape": shape}
    corners, middles = cells.elements, cells.vertices[cells.elements].mean(axis=1)
    middle = np.broadcast_to(len(cells.vertices) + np.arange(len(corners))[:, None], corners.shape)
    fans = np.stack([corners, np.roll(corners, -1, axis=1), middle], axis=2).reshape(-1, 3)
    vertices = np.concatenate([cells.vertices, middles])
    whole = shapely.polygons(vertices[fans])
    inside = shapely.area(shapely.intersection(whole, cells.domain.geometry)) > SLIVER * shapely.area(whole)
    used, local = np.unique(fans[inside], return_inverse=True)
    return {"builder": "arrays", "vertices": vertices[used].tolist(), "elements": local.reshape(-1, 3).tolist()}
