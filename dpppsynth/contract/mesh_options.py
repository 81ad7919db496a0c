"""`MeshOptions`: a mesh from its fineness, asked for as a spacing or as a resolution along streets."""

from typing import Any, ClassVar

from dpppsynth.contract.mechanism_options import Given, PointOptions, require_window
from dpppsynth.contract.settings import CAP, RELATION, USER, Setting
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.models import regular_triangulation, trace_mesh
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Mesh

RESOLUTION = Setting(
    name="resolution",
    option="--resolution",
    kind=float,
    argument="mesh",
    help="Longest segment of a mesh along --network's edges, instead of --spacing",
)


class MeshOptions(PointOptions):
    """Options of mechanisms on a mesh, of cells or tents."""

    extra: ClassVar[tuple[Setting, ...]] = (RELATION, CAP, USER, RESOLUTION)

    def objects(self, given: Given, domain: Domain) -> dict[str, Any]:
        """Relation, and spacing or mesh."""
        made = super().objects(given, domain)
        require_fineness(given["resolution"], domain, spacing=given["spacing"])
        return made | self.mesh(given, domain)

    def mesh(self, given: Given, domain: Domain) -> dict[str, Any]:
        """Spacing or mesh, where one is given: cells on a network are always segments."""
        tents = {**self.preset, **self.plain(given)}.get("basis") == "tents"
        spacing, resolution = given["spacing"], given["resolution"]
        if tents and resolution is not None:
            return {"mesh": tent_mesh(given, domain)}
        if isinstance(domain, LinearNetwork) and not tents and spacing is not None:
            msg = f"spacing: {self.method}'s cells are segments of the network's edges; give --resolution"
            raise InputError(msg)
        return {"spacing": resolution if spacing is None else spacing}


def require_fineness(resolution: float | None, domain: Domain, *, spacing: float | None = None) -> None:
    """Refuse a resolution where there are no edges, that is no length, or beside a spacing.

    Raises
    ------
    InputError
    """
    if resolution is None:
        return
    if not isinstance(domain, LinearNetwork):
        msg = "resolution: cuts the edges of a network; the mesh of a window takes --spacing"
        raise InputError(msg)
    if not resolution > 0:
        msg = f"resolution: must be a positive length ({domain.unit}), got {resolution!r}"
        raise InputError(msg)
    if spacing is not None:
        msg = "resolution: give --resolution (segments of edges) or --spacing (triangles over them), not both"
        raise InputError(msg)


def tent_mesh(given: Given, domain: Domain) -> Mesh | None:
    """The mesh of tents or of a field; None for the public rule."""
    spacing, resolution = given["spacing"], given["resolution"]
    if isinstance(domain, LinearNetwork):
        if resolution is not None:
            return network_mesh(domain, resolution)
        return None if spacing is None else trace_mesh(domain, spacing=spacing)
    window = require_window(domain, "a mesh covers a window or the streets of a network")
    return None if spacing is None else regular_triangulation(window, spacing=spacing)
