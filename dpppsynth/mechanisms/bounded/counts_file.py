"""The file of counts of a release with bounded error: GeoJSON of cells with their counts."""

import json
from typing import Any

import shapely

from dpppsynth.contract.statistic import require
from dpppsynth.core.crs import crs_member
from dpppsynth.core.published_files import strict_json
from dpppsynth.spatial.domains import canonical_json
from dpppsynth.spatial.mesh import Ints, Mesh


def counted_cells(mesh: Mesh, counts: Ints) -> dict[str, Any]:
    """GeoJSON of the elements' parts inside the domain, each with its count."""
    shapes = shapely.to_geojson(mesh.element_parts)
    features = [
        {"type": "Feature", "properties": {"cell": k, "count": count}, "geometry": json.loads(shape)}
        for k, (count, shape) in enumerate(zip(counts.tolist(), shapes, strict=True))
    ]
    return {"type": "FeatureCollection", "crs": crs_member(mesh.domain.crs), "features": features}


def require_counts(content: bytes, mesh: Mesh, counts: Ints) -> None:
    """Refuse a document other than `counted_cells`, coordinates to rounding across machines."""
    document, expected = strict_json(content), counted_cells(mesh, counts)
    require(isinstance(document, dict) and document.keys() == expected.keys(), "counts are a collection of features")
    shapes = [_without_shape(each["features"]) for each in (document, expected)]
    rest = [{key: value for key, value in each.items() if key != "features"} for each in (document, expected)]
    require(canonical_json([*shapes[:1], *rest[:1]]) == canonical_json([*shapes[1:], *rest[1:]]), "cells have counts")
    for stated, cell in zip(document["features"], mesh.element_parts, strict=True):
        shape = shapely.from_geojson(json.dumps(stated["geometry"]))
        same = shapely.equals_exact(shape, cell, 1e-9 * mesh.domain.diameter, normalize=True)
        require(bool(same) and stated["geometry"].keys() == {"type", "coordinates"}, "cells are those of the mesh")


def _without_shape(features: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in each.items() if key != "geometry"} | {"geometry": ""} for each in features]
