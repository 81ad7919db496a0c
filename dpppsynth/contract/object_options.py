"""Arguments that are made from several options: relations of points, meshes, offsets and covariates."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpppsynth.contract.settings import EXPERT, ParsedOptions, Setting
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.models import regular_triangulation, trace_mesh
from dpppsynth.privacy.relations import AddRemove, AlphaNeighbours, CappedRelation, ReplaceOne
from dpppsynth.spatial.covariates import Covariates
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Mesh
from dpppsynth.spatial.offset import Offset

RESOLUTION = Setting(
    name="resolution",
    kind=float,
    argument="mesh",
    help="Longest segment of a mesh along --network's edges, instead of --spacing",
)
OFFSET = (
    Setting(
        name="offset_file",
        option="--offset-file",
        argument="offset",
        kind=Path,
        help="Polygons or GeoTIFF with a public density or counts, such as population, that multiplies the field",
    ),
    Setting(name="offset_column", help="Numeric column of --offset-file, where that holds polygons"),
    Setting(
        name="offset_as",
        choices=("density", "counts"),
        help="Whether values of --offset-file are per unit of area, or of a whole polygon or cell",
        otherwise="density",
    ),
    Setting(
        name="offset_fill",
        kind=float,
        help="0 takes places without a value in --offset-file as empty",
        otherwise="they are refused",
        panel=EXPERT,
    ),
    Setting(name="offset_source", help="Where --offset-file was published, for certificate and report"),
)
OFFSET_BY = Setting(
    name="offset_by",
    argument="offset",
    metavar="TYPE=FILE[:COLUMN],...",
    help="An offset for each type, or from each of several instants on, such as 2020-01-01=FILE, for --offset-file",
)
COVARIATES = (
    Setting(
        name="covariate_files",
        option="--covariates",
        argument="covariates",
        metavar="NAME=FILE[:COLUMN],...",
        help="Public layers whose effects are found with the field: GeoTIFF files, or polygons and a column",
    ),
    Setting(name="covariates_source", help="Where --covariates were published, for certificate and report"),
)


def require_relation(options: ParsedOptions) -> None:
    """Refuse persons with all their points, and a column of persons without a cap, with an InputError."""
    if options["relation"] == "add-remove-person":
        named = ", without --no-user" if options.others.get("no_user") else ""
        msg = (
            "relation: add-remove-person is what --method heatmap promises; other methods let a number of points "
            f"of each person count: take add-remove with --user and --max-points-per-person{named}"
        )
        raise InputError(msg)
    if options["user"] == "":
        msg = "user: needs the name of a column; leave --user out where nobody has more than one point"
        raise InputError(msg)
    if options["user"] is not None and options["max_points_per_person"] is None:
        msg = (
            "max_points_per_person: --user needs the number of points of each person that count, for instance "
            "--max-points-per-person 1; which they are is drawn at random"
        )
        raise InputError(msg)


def relation_of(options: ParsedOptions | Mapping[str, Any]) -> CappedRelation:
    """The relation of points that is named, or alpha-neighbours where a privacy radius is given."""
    kind, alpha, user = options["relation"], options["alpha"], options["user"]
    cap = 1 if options["max_points_per_person"] is None else options["max_points_per_person"]
    if kind == "alpha" or (kind is None and alpha is not None):
        if alpha is None:
            msg = "alpha: --relation alpha needs the privacy radius, for instance --alpha 25"
            raise InputError(msg)
        return AlphaNeighbours(alpha, max_points_per_person=cap, user=user)
    if alpha is not None:
        msg = f"alpha: --relation {kind} has no privacy radius; leave --alpha out"
        raise InputError(msg)
    return AddRemove(cap, user=user) if kind == "add-remove" else ReplaceOne(cap, user=user)


def require_window(domain: Domain, why: str) -> Window:
    """The domain, which must be a window; on a network an InputError with the reason and an alternative."""
    if not isinstance(domain, Window):
        msg = f"network: {why}"
        raise InputError(msg)
    return domain


def require_fineness(resolution: float | None, domain: Domain, *, spacing: float | None = None) -> None:
    """Refuse a resolution where there are no edges, that is no length, or beside a spacing, with an InputError."""
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


def mesh_of(options: ParsedOptions, domain: Domain, method: str, basis: str = "cells") -> dict[str, Any]:
    """Spacing or mesh for a given resolution; cells on a network are always segments."""
    spacing, resolution = options["spacing"], options["resolution"]
    require_fineness(resolution, domain, spacing=spacing)
    if basis == "tents" and resolution is not None:
        return {"mesh": tent_mesh(options, domain)}
    if isinstance(domain, LinearNetwork) and basis == "cells" and spacing is not None:
        msg = f"spacing: {method}'s cells are segments of the network's edges; give --resolution"
        raise InputError(msg)
    return {"spacing": resolution if spacing is None else spacing}


def tent_mesh(options: ParsedOptions, domain: Domain) -> Mesh | None:
    """The mesh of tents or of a field; None for the public rule."""
    spacing, resolution = options["spacing"], options["resolution"]
    require_fineness(resolution, domain, spacing=spacing)
    if isinstance(domain, LinearNetwork):
        if resolution is not None:
            return network_mesh(domain, resolution)
        return None if spacing is None else trace_mesh(domain, spacing=spacing)
    window = require_window(domain, "a mesh covers a window or the streets of a network")
    return None if spacing is None else regular_triangulation(window, spacing=spacing)


def layers_of(options: ParsedOptions, domain: Domain) -> dict[str, Any]:
    """Offset, or those of types or times by their names, and covariates, read from their files."""
    return {"offset": _offset(options, domain), "covariates": _covariates(options, domain)}


def _offset(options: ParsedOptions, domain: Domain) -> Offset | dict[str, Offset] | None:
    file, column, meaning = options["offset_file"], options["offset_column"], options["offset_as"]
    by = options["offset_by"]
    if by is not None:
        if file is not None or column is not None:
            msg = "offset: --offset-by names files and columns; leave out --offset-file and --offset-column"
            raise InputError(msg)
        more: dict[str, Any] = {"fill": options["offset_fill"], "counts": meaning == "counts"}
        layers = _named_layers(by, "--offset-by", options, domain, **more)
        source = options["offset_source"] or ""
        return {name: Offset.of(layer, meaning or "density", source=source) for name, layer in layers.items()}
    if file is None:
        if any(options[name] is not None for name in ("offset_column", "offset_as", "offset_fill", "offset_source")):
            msg = "offset: give the layer, --offset-file, or leave out the options that say what it is"
            raise InputError(msg)
        return None

    from dpppsynth.io.layers import read_layer

    layer = read_layer(
        file,
        domain,
        column=column,
        option="--offset-file",
        column_option="--offset-column",
        fill=options["offset_fill"],
        counts=meaning == "counts",
        crs=options.crs,
    )
    return Offset.of(layer, meaning or "density", source=options["offset_source"] or "")


def _covariates(options: ParsedOptions, domain: Domain) -> Covariates | None:
    """Covariates of files: `NAME=FILE` for a raster, `NAME=FILE:COLUMN` for polygons, one after the other."""
    if options["covariate_files"] is None:
        if options["covariates_source"] is not None:
            msg = "covariates_source: goes with --covariates; give them, or leave it out"
            raise InputError(msg)
        return None

    layers = _named_layers(options["covariate_files"], "--covariates", options, domain)
    return Covariates(layers, source=options["covariates_source"] or "")


def _named_layers(text: str, option: str, options: ParsedOptions, domain: Domain, **more: Any) -> dict[str, Any]:
    """Layers by name from `NAME=FILE` for a raster, `NAME=FILE:COLUMN` for polygons, one after the other."""
    from dpppsynth.io.layers import RASTERS, read_layer

    layers: dict[str, Any] = {}
    for part in text.split(","):
        name, _, place = part.partition("=")
        if not name.strip() or not place or name.strip() in layers:
            msg = f"{option}: needs NAME=FILE.tif or NAME=FILE:COLUMN, each name once, with commas between"
            raise InputError(msg)
        file, _, column = (place, "", "") if place.lower().endswith(RASTERS) else place.rpartition(":")
        layers[name.strip()] = read_layer(
            Path(file or column),
            domain,
            column=column if file and column else None,
            option=option,
            column_option=option,
            crs=options.crs,
            **more,
        )
    return layers
