"""Options of public layers: an offset and covariates from files."""

from pathlib import Path

from dpppsynth.contract.mechanism_options import Given
from dpppsynth.contract.settings import EXPERT, Setting
from dpppsynth.core.errors import InputError
from dpppsynth.spatial.covariates import Covariates
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.offset import Offset

OFFSET = (
    Setting(
        name="offset_file",
        option="--offset-file",
        argument="offset",
        kind=Path,
        help="Polygons or GeoTIFF with a public density or counts, such as population, that multiplies the field",
    ),
    Setting(
        name="offset_column",
        option="--offset-column",
        kind=str,
        help="Numeric column of --offset-file, where that holds polygons",
    ),
    Setting(
        name="offset_as",
        option="--offset-as",
        kind=str,
        choices=("density", "counts"),
        help="Whether values of --offset-file are per unit of area, or of a whole polygon or cell",
        otherwise="density",
    ),
    Setting(
        name="offset_fill",
        option="--offset-fill",
        kind=float,
        help="0 takes places without a value in --offset-file as empty",
        otherwise="they are refused",
        panel=EXPERT,
    ),
)
COVARIATES = Setting(
    name="covariate_files",
    option="--covariates",
    argument="covariates",
    kind=str,
    metavar="NAME=FILE[:COLUMN],...",
    help="Public layers whose effects are found with the field: GeoTIFF files, or polygons and a column",
)


def offset_of(given: Given, domain: Domain) -> Offset | None:
    """The public base intensity of a file, if there is one."""
    file, column, meaning = given["offset_file"], given["offset_column"], given["offset_as"]
    if file is None:
        for name in ("offset_column", "offset_as", "offset_fill"):
            if given[name] is not None:
                msg = "offset: give both --offset-file and --offset-column"
                raise InputError(msg)
        return None

    from dpppsynth.io.layers import read_layer

    layer = read_layer(
        file,
        domain,
        column=column,
        option="--offset-file",
        column_option="--offset-column",
        fill=given["offset_fill"],
        counts=meaning == "counts",
        crs=given.crs,
    )
    return Offset.of(layer, meaning or "density")


def covariates_of(given: Given, domain: Domain) -> Covariates | None:
    """Covariates of files: `NAME=FILE` for a raster, `NAME=FILE:COLUMN` for polygons, one after the other."""
    if given["covariate_files"] is None:
        return None

    from dpppsynth.io.layers import RASTERS, read_layer

    layers = {}
    for part in given["covariate_files"].split(","):
        name, _, place = part.partition("=")
        if not name.strip() or not place or name.strip() in layers:
            msg = "--covariates: needs NAME=FILE.tif or NAME=FILE:COLUMN, each name once, with commas between"
            raise InputError(msg)
        file, _, column = (place, "", "") if place.lower().endswith(RASTERS) else place.rpartition(":")
        layers[name.strip()] = read_layer(
            Path(file or column),
            domain,
            column=column if file and column else None,
            option="--covariates",
            column_option="--covariates",
            crs=given.crs,
        )
    return Covariates(layers)
