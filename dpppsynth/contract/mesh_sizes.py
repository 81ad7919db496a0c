"""Sizes of meshes, in words and as JSON."""

from typing import Any

from dpppsynth.linear_network import LinearNetwork, NetworkMesh
from dpppsynth.models.trace import around
from dpppsynth.spatial.mesh import Mesh


def mesh_json(mesh: Mesh) -> dict[str, Any]:
    """Kind, numbers of vertices and elements, and fineness."""
    size: dict[str, Any] = {"kind": mesh.kind, "vertices": len(mesh.vertices), "elements": len(mesh.elements)}
    if isinstance(mesh, NetworkMesh):
        return size | {"longest_segment": float(mesh.element_measure.max())}
    x0, y0, x1, y1 = around(mesh.domain) if isinstance(mesh.domain, LinearNetwork) else mesh.domain.bounds
    nx, ny = mesh.recipe["shape"]
    return size | {"spacing": [(x1 - x0) / (nx - 1), (y1 - y0) / (ny - 1)]}


def mesh_words(mesh: Mesh) -> str:
    """The same in words."""
    size, unit = mesh_json(mesh), mesh.domain.unit
    if "longest_segment" in size:
        fineness = f"none longer than {size['longest_segment']:.4g}"
    else:
        fineness = f"spacing {' x '.join(f'{side:.4g}' for side in size['spacing'])}"
    return f"{size['elements']} {mesh.kind}s, {size['vertices']} vertices, {fineness} {unit}"
