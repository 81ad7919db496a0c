"""Triangles nested in cells, for fields behind counts: each cell is a whole number of them."""

import numpy as np
import shapely

from dpppsynth.core.types import Json, JsonObject
from dpppsynth.models.recipes import mesh_from_recipe
from dpppsynth.spatial.domains import canonical_json
from dpppsynth.spatial.mesh import Mesh
from dpppsynth.spatial.planar_mesh import SLIVER


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
