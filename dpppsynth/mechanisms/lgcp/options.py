"""Options of the log-Gaussian Cox mechanisms: covariance and mesh from plain values."""

from typing import Any, ClassVar

from dpppsynth.contract.layer_options import COVARIATES, OFFSET, covariates_of, offset_of
from dpppsynth.contract.mechanism_options import Given
from dpppsynth.contract.mesh_options import RESOLUTION, MeshOptions, tent_mesh
from dpppsynth.contract.settings import CAP, EXPERT, RELATION, SPACING, USER, Setting
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.mechanisms.lgcp.synthesizer import LGCPSynthesizer
from dpppsynth.models.covariances import Covariance, GeneralisedCauchy, Matern, PoweredExponential
from dpppsynth.privacy.relations import CappedRelation
from dpppsynth.spatial.domains import Domain

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
BASIS = Setting(name="basis", option="--basis", kind=str, choices=("tents", "cells"), help="Tents", hidden=True)
MESH = Setting(name="spacing", option="--spacing", kind=float, **SPACING)
# What each kind of covariance needs and takes beside --sigma and --length-scale.
NEEDS: dict[str, tuple[str, ...]] = {"exponential": (), "matern": ("smoothness",), "cauchy": ("power", "tail")}
TAKES = NEEDS | {"exponential": ("power",)}
INFERRED = ("auto", "tents", "cells", "field")


class LGCPOptions(MeshOptions):
    """Options of a log-Gaussian Cox mechanism."""

    extra: ClassVar[tuple[Setting, ...]] = (
        RELATION,
        CAP,
        USER,
        MESH,
        RESOLUTION,
        *COVARIANCE,
        *OFFSET,
        COVARIATES,
        BASIS,
    )

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
            "offset": offset_of(given, domain),
        }
        made["covariates"] = covariates_of(given, domain)
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


def _of(mechanism: str) -> LGCPOptions:
    return LGCPOptions(LGCPSynthesizer, "lgcp", {"mechanism": mechanism})


TENTS, CELLS, FIELD, POSTERIOR_DRAW, LIPSCHITZ, KIM_LIM_38, KIM_LIM_39 = map(
    _of, ("tents", "cells", "field", "posterior-draw", "lipschitz", "kim-lim-3.8", "kim-lim-3.9")
)
# The share is a default here: clusters are what this name asks for.
CLUSTERS = LGCPOptions(LGCPSynthesizer, "lgcp", {"mechanism": "auto", "clusters": 0.3})
