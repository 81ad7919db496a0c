"""Options of the log-Gaussian Cox mechanisms: covariance, mesh and offset from plain values."""

from pathlib import Path
from typing import Any, ClassVar

from dpppsynth.contract.mechanism_options import Given
from dpppsynth.contract.mesh_options import RESOLUTION, MeshOptions, tent_mesh
from dpppsynth.contract.settings import CAP, EXPERT, RELATION, SPACING, Setting
from dpppsynth.core.errors import InputError
from dpppsynth.io.layers import RASTERS, read_layer
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.mechanisms.lgcp.synthesizer import LGCPSynthesizer
from dpppsynth.models.covariances import Covariance, GeneralisedCauchy, Matern, PoweredExponential
from dpppsynth.privacy.relations import CappedRelation
from dpppsynth.spatial.covariates import Covariates
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.offset import Offset

COVARIANCE = (
    Setting(
        name="covariance",
        option="--covariance",
        kind=str,
        choices=("exponential", "matern", "cauchy"),
        help="Kind of the field's covariance, with --sigma and --length-scale",
        otherwise="exponential",
        panel=EXPERT,
    ),
    Setting(
        name="power",
        option="--power",
        argument="covariance",
        kind=float,
        help="Power of an exponential or cauchy covariance",
        otherwise="2, on a network 1, its largest",
        panel=EXPERT,
    ),
    Setting(
        name="smoothness",
        option="--smoothness",
        argument="covariance",
        kind=float,
        help="Smoothness of a matern covariance, on a network at most 0.5",
        panel=EXPERT,
    ),
    Setting(
        name="tail",
        option="--tail",
        argument="covariance",
        kind=float,
        help="Power with which a cauchy covariance falls off in the end",
        panel=EXPERT,
    ),
)
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
BASIS = Setting(name="basis", option="--basis", kind=str, choices=("tents", "cells"), help="Tents", hidden=True)
MESH = Setting(name="spacing", option="--spacing", kind=float, **SPACING)
# What each kind of covariance needs and takes beside --sigma and --length-scale.
NEEDS: dict[str, tuple[str, ...]] = {"exponential": (), "matern": ("smoothness",), "cauchy": ("power", "tail")}
TAKES = NEEDS | {"exponential": ("power",)}
INFERRED = ("auto", "tents", "cells", "field")


class LGCPOptions(MeshOptions):
    """Options of a log-Gaussian Cox mechanism."""

    extra: ClassVar[tuple[Setting, ...]] = (RELATION, CAP, MESH, RESOLUTION, *COVARIANCE, *OFFSET, COVARIATES, BASIS)

    def require(self, given: Given) -> None:
        """Refuse what does not belong to the mechanism, and parameters of another covariance; InputError."""
        mechanism = self.preset["mechanism"]
        if given["basis"] == "cells" and mechanism != "cells":
            msg = f"basis: {given.called} is built on tents; leave --basis out, or take --method laplace"
            raise InputError(msg)
        if given["inference"] is not None and mechanism not in INFERRED:
            msg = f"inference: --mechanism {self.method}-{mechanism} draws its field at once; leave --inference out"
            raise InputError(msg)
        require_one_covariance(given)
        super().require(given)

    def relation(self, given: Given) -> CappedRelation:
        """The relation, which must be said."""
        if given["relation"] is None and given["alpha"] is None:
            msg = "alpha: give the privacy radius, for instance --alpha 25, or --relation replace-one or add-remove"
            raise InputError(msg)
        return super().relation(given)

    def mesh(self, given: Given, domain: Domain) -> dict[str, Any]:
        """The mesh, covariance and offset."""
        covariance = covariance_of(given, domain)
        instead = {} if covariance is None else {"sigma": None, "length_scale": None}
        made: dict[str, Any] = {
            "covariance": covariance,
            "mesh": tent_mesh(given, domain),
            "offset": _offset(given, domain),
        }
        made["covariates"] = _covariates(given, domain)
        # Without a name the domain and the number of points decide.
        chosen = {} if given.named or self.preset["mechanism"] != "tents" else {"mechanism": "auto"}
        return made | instead | chosen


def require_one_covariance(given: Given) -> None:
    """Refuse parameters of another kind, or without what goes with them, with an InputError."""
    named = [each.name for each in COVARIANCE if given[each.name] is not None]
    if named and (given["sigma"] is None or given["length_scale"] is None):
        msg = f"{named[0]}: goes with --sigma and --length-scale; give all three"
        raise InputError(msg)
    kind = given["covariance"] or "exponential"
    for name in NEEDS[kind]:
        if name not in named:
            msg = f"{name}: --covariance {kind} needs one, for instance --{name} 0.5"
            raise InputError(msg)
    for name in named[bool(given["covariance"]) :]:
        if name not in TAKES[kind]:
            msg = f"{name}: --covariance {kind} has none; leave it out"
            raise InputError(msg)


def covariance_of(given: Given, domain: Domain) -> Covariance | None:
    """The covariance, where more than sigma and a length scale is given."""
    sigma, scale, power = given["sigma"], given["length_scale"], given["power"]
    if sigma is None or scale is None or (given["covariance"], power) == (None, None):
        return None
    if given["smoothness"] is not None:
        return Matern(sigma, scale, given["smoothness"])
    if power is not None and given["tail"] is not None:
        return GeneralisedCauchy(sigma, scale, power, given["tail"])
    usual = 1.0 if isinstance(domain, LinearNetwork) else 2.0
    return PoweredExponential(sigma, scale, usual if power is None else power)


def _offset(given: Given, domain: Domain) -> Offset | None:
    """The public base intensity of a file, if there is one."""
    file, column, meaning = given["offset_file"], given["offset_column"], given["offset_as"]
    if file is None:
        for name in ("offset_column", "offset_as", "offset_fill"):
            if given[name] is not None:
                msg = "offset: give both --offset-file and --offset-column"
                raise InputError(msg)
        return None
    layer = read_layer(
        file,
        domain,
        column=column,
        option="--offset-file",
        column_option="--offset-column",
        fill=given["offset_fill"],
        counts=meaning == "counts",
    )
    return Offset.of(layer, meaning or "density")


def _covariates(given: Given, domain: Domain) -> Covariates | None:
    """Covariates of files: `NAME=FILE` for a raster, `NAME=FILE:COLUMN` for polygons, one after the other."""
    if given["covariate_files"] is None:
        return None
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
        )
    return Covariates(layers)


def _of(mechanism: str) -> LGCPOptions:
    return LGCPOptions(LGCPSynthesizer, "lgcp", {"mechanism": mechanism})


TENTS, CELLS, FIELD, POSTERIOR_DRAW, LIPSCHITZ, KIM_LIM_38, KIM_LIM_39 = map(
    _of, ("tents", "cells", "field", "posterior-draw", "lipschitz", "kim-lim-3.8", "kim-lim-3.9")
)
# The share is a default here: clusters are what this name asks for.
CLUSTERS = LGCPOptions(LGCPSynthesizer, "lgcp", {"mechanism": "auto", "clusters": 0.3})
