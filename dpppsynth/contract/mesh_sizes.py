"""Sizes of meshes, in words and as JSON."""

from dpppsynth.core.types import JsonObject
from dpppsynth.linear_network import LinearNetwork, NetworkMesh
from dpppsynth.models.recipes import around
from dpppsynth.spatial.mesh import Mesh


def fineness(mesh: Mesh) -> float | tuple[float, float]:
    """Longest segment, or the sides of a cell of the regular meshes that the rules lay."""
    if isinstance(mesh, NetworkMesh):
        return float(mesh.element_measure.max())
    x0, y0, x1, y1 = around(mesh.domain) if isinstance(mesh.domain, LinearNetwork) else mesh.domain.bounds
    nx, ny = mesh.recipe["shape"]
    return (x1 - x0) / (nx - 1), (y1 - y0) / (ny - 1)


def mesh_json(mesh: Mesh) -> JsonObject:
    """Kind, numbers of vertices and elements, and fineness."""
    size: JsonObject = {"kind": mesh.kind, "vertices": len(mesh.vertices), "elements": len(mesh.elements)}
    fine = fineness(mesh)
    return size | ({"longest_segment": fine} if isinstance(fine, float) else {"spacing": list(fine)})


def mesh_words(mesh: Mesh) -> str:
    """The same in words."""
    fine = fineness(mesh)
    if isinstance(fine, float):
        told = f"none longer than {fine:.4g}"
    else:
        told = f"spacing {' x '.join(f'{side:.4g}' for side in fine)}"
    return f"{len(mesh.elements)} {mesh.kind}s, {len(mesh.vertices)} vertices, {told} {mesh.domain.unit}"
