"""Work of making meshes, predicted from their recipes before any of it is done, in about microseconds."""

import math

import numpy as np
import shapely

from dpppsynth.core.types import Json
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.spatial.domains import Domain

# Cell of a grid over a rectangle; over another window, with a share for each of its coordinates; element of an own
# mesh; segment; cell of a grid over streets, for each straight part that may cross it.
CELL, CUT, CUT_BY, ELEMENT, SEGMENT, CROSSING = 4.0, 20.0, 0.045, 100.0, 5.0, 40.0


def mesh_work(recipe: Json, domain: Domain) -> float:
    """Work of building a mesh; recipes that make no sense are refused by whoever builds them."""
    if not isinstance(recipe, dict):
        return 0.0
    if recipe.get("builder") == "arrays":
        return ELEMENT * _length(recipe.get("elements"))
    if recipe.get("builder") == "network":
        return SEGMENT * vertices(recipe, domain)
    cells, corners = vertices(recipe, domain), float(shapely.get_num_coordinates(domain.geometry))
    if isinstance(domain, LinearNetwork):
        return cells + CROSSING * _crossings(recipe.get("shape"), domain)
    return CELL * cells if domain.is_rectangle else (CUT + CUT_BY * corners) * cells


def _crossings(shape: Json, network: LinearNetwork) -> float:
    """Cells of a grid over a network's box that its straight parts cross, about, each counted for every part."""
    sides = [number(each) for each in shape] if isinstance(shape, list) and len(shape) == 2 else [0.0, 0.0]
    xy, part = shapely.get_coordinates(shapely.get_parts(network.geometry), return_index=True)
    moved = np.abs(np.diff(xy, axis=0))[part[1:] == part[:-1]].sum(axis=0)
    x0, y0, x1, y1 = network.bounds
    lines = [way / extent * side for way, extent, side in zip(moved, (x1 - x0, y1 - y0), sides, strict=True) if extent]
    return float(len(xy) + sum(lines))


def vertices(recipe: Json, domain: Domain) -> float:
    """Vertices of a mesh, or about as many."""
    if not isinstance(recipe, dict):
        return 0.0
    if recipe.get("builder") == "arrays":
        return _length(recipe.get("vertices"))
    if recipe.get("builder") == "network":
        edges = domain.lengths if isinstance(domain, LinearNetwork) else np.empty(0)
        longest = number(recipe.get("resolution"))
        return len(edges) + float(edges.sum()) / longest if longest > 0 else math.inf
    shape = recipe.get("shape")
    return math.prod(map(number, shape)) if isinstance(shape, list) and len(shape) == 2 else 0.0


def number(value: Json) -> float:
    """A number on a certificate; 0 for anything else."""
    return float(value) if isinstance(value, int | float) else 0.0


def _length(value: Json) -> float:
    return float(len(value)) if isinstance(value, list) else 0.0
