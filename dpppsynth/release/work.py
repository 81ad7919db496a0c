"""Cost estimates of deriving a guarantee again, from public parameters, before it is done.

A certificate of a few lines may ask for millions of vertices. Plans are made by custodians who wait for what they asked
for; whoever verifies has asked for nothing, so the sum of the terms below is bounded. They are counts, not times:
each is weighted by about the microseconds that one of its units takes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import shapely

from dpppsynth.core.published_files import REMEDY
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.spatial.domains import Domain

# About ten seconds, and numbers of a domain, which take three at most to be read.
MOST_WORK, MOST_COORDINATES = 1e7, 400_000
# Weights: cell of a grid over a rectangle; over another window, with a share for each of its coordinates; element of an
# own mesh; segment; cell of a grid over streets, for each straight part that may cross it.
CELL, CUT, CUT_BY, ELEMENT, SEGMENT, CROSSING = 4.0, 20.0, 0.045, 100.0, 5.0, 40.0
# Square of the corners of a domain's hull, between which its diameter is found.
HULL = 7e-3
# Square and cube of the vertices of a field, square of the segments of a heat kernel, value of a client's mechanism.
PAIR, TRIPLE, HEAT, VALUE = 0.1, 7e-4, 8.0, 1.5
# Cell in a disk around a location, pair of places in a subset's law, curves of a kernel's losses, and any other level.
DISK, SUBSETS, CURVES, LEVEL = 2.5, 0.07, 2e5, 5e3


def excess(parameters: Mapping[str, Any], domain: Domain) -> str | None:
    """Description of what is too large in the public parameters of a release on a domain, or None."""
    numbers, hull = (float(shapely.get_num_coordinates(of)) for of in (domain.geometry, domain.geometry.convex_hull))
    if 2 * numbers > MOST_COORDINATES:
        return f"the domain has more than {MOST_COORDINATES} numbers: {REMEDY}."
    total = HULL * hull**2 + sum(_of_release(each, domain) for each in levels(parameters))
    if not total > MOST_WORK:
        return None
    times = f"about {total / MOST_WORK:.2g} times the work that is done unasked"
    return f"its mesh, cells or levels take {times}: {REMEDY}."


def levels(parameters: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Public parameters of each level, or of the one release."""
    return [part["parameters"] for part in parameters.get("strata", [])] or [parameters]


def coordinates(document: Any) -> int:
    """Numbers in the geometries of a GeoJSON document, of whatever content."""
    found, level = 0, [document]
    while level:
        inner = [each for part in level for each in (part.values() if isinstance(part, dict) else part)]
        found += sum(isinstance(each, int | float) for each in inner)
        level = [each for each in inner if isinstance(each, dict | list)]
    return found


def _of_release(parameters: Mapping[str, Any], domain: Domain) -> float:
    mesh = parameters.get("mesh")
    estimator = parameters.get("estimator")
    field = estimator.get("mesh") if isinstance(estimator, dict) else None
    own = _of_mesh(mesh, domain) + (_of_mesh(field, domain) if field != mesh else 0.0)
    return LEVEL + own + _of_field(parameters, domain) + _of_values(parameters)


def _of_mesh(recipe: Any, domain: Domain) -> float:
    """Work of building a mesh; recipes that make no sense are refused by whoever builds them."""
    if not isinstance(recipe, dict):
        return 0.0
    if recipe.get("builder") == "arrays":
        return ELEMENT * _length(recipe.get("elements"))
    if recipe.get("builder") == "network":
        return SEGMENT * _vertices(recipe, domain)
    cells, corners = _vertices(recipe, domain), float(shapely.get_num_coordinates(domain.geometry))
    if isinstance(domain, LinearNetwork):
        # A straight part crosses as many cells as there are lines of the grid, at most.
        return cells + CROSSING * corners * math.sqrt(cells)
    return CELL * cells if domain.is_rectangle else (CUT + CUT_BY * corners) * cells


def _vertices(recipe: Any, domain: Domain) -> float:
    """Vertices of a mesh, or about as many."""
    if not isinstance(recipe, dict):
        return 0.0
    if recipe.get("builder") == "arrays":
        return _length(recipe.get("vertices"))
    if recipe.get("builder") == "network":
        edges = domain.lengths if isinstance(domain, LinearNetwork) else np.empty(0)
        longest = _number(recipe.get("resolution"))
        return len(edges) + float(edges.sum()) / longest if longest > 0 else math.inf
    shape = recipe.get("shape")
    return math.prod(map(_number, shape)) if isinstance(shape, list) and len(shape) == 2 else 0.0


def _of_field(parameters: Mapping[str, Any], domain: Domain) -> float:
    """Work with the matrices of a field, or of the heat kernel."""
    vertices = _vertices(parameters.get("mesh"), domain)
    if "covariance" in parameters:
        return PAIR * vertices**2 + TRIPLE * vertices**3
    return CURVES + HEAT * vertices**2 if "bandwidth" in parameters else 0.0


def _of_values(parameters: Mapping[str, Any]) -> float:
    """Work with the values that clients report."""
    sides = [_number(parameters.get(name, 1)) for name in ("columns", "rows")]
    values, stated = math.prod(sides) + _number(parameters.get("cells", 0)), parameters.get("randomizer")
    if not isinstance(stated, dict):
        return VALUE * values
    disk = DISK * _number(stated.get("radius")) ** 2
    return disk + (SUBSETS * _number(stated.get("cells")) ** 4 if "subset" in stated else 0.0)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _length(value: Any) -> float:
    return float(len(value)) if isinstance(value, list) else 0.0
