"""Domains and meshes rebuilt from the JSON of a certificate."""

from collections.abc import Mapping
from typing import Any

from dpppsynth.core.arguments import entries, instance
from dpppsynth.core.crs import crs_from_member
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork, NetworkMesh, network_mesh
from dpppsynth.models.regular_meshes import regular
from dpppsynth.models.trace import trace_mesh
from dpppsynth.spatial.domains import Domain, Window, canonical_json
from dpppsynth.spatial.mesh import Mesh


def domain_from_geojson(data: Mapping[str, Any]) -> Domain:
    """Window of polygons, or network of lines, from what its `to_geojson` gave."""
    try:
        kinds = {str(feature["geometry"]["type"]) for feature in data["features"]}
    except (LookupError, TypeError, ValueError):
        msg = "domain: must be a GeoJSON FeatureCollection, as the to_geojson() of a window or a network gives it."
        raise InputError(msg) from None
    return LinearNetwork.from_geojson(data) if kinds == {"LineString"} else Window.from_geojson(data)


def domain_of_release(data: Mapping[str, Any], scale_factor: float | None) -> Domain:
    """Domain of a saved release, with the scale factor on its certificate; None where it states none.

    What a map may stretch lengths by was settled when the release was made: here nothing is refused.
    """
    if "crs" not in data:
        return domain_from_geojson(data)
    return domain_from_geojson({**data, "crs": None}).as_stated(crs_from_member(data["crs"]), scale_factor)


def window(domain: Any) -> Window:
    """The domain, which must be a window."""
    found: Window = instance("domain", domain, Window)
    return found


def segments(mesh: Any) -> NetworkMesh:
    """The mesh, which must be one of segments."""
    if not isinstance(mesh, NetworkMesh):
        msg = "mesh: needs segments of a network here; network_mesh(network, resolution=50.0) makes them."
        raise InputError(msg)
    return mesh


def mesh_from_recipe(recipe: Mapping[str, Any], domain: Any) -> Mesh:
    """Build a mesh again from `Mesh.recipe`, and from nothing else."""
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
