"""Options of the field's covariance: its kind and parameters, beside --sigma and --length-scale."""

from dpppsynth.contract.settings import EXPERT, ParsedOptions, Setting
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.models.covariances import Covariance, GeneralisedCauchy, Matern, PoweredExponential
from dpppsynth.spatial.domains import Domain

COVARIANCE = (
    Setting(
        name="covariance",
        choices=("exponential", "matern", "cauchy"),
        help="Kind of the field's covariance, with --sigma and --length-scale",
        otherwise="exponential",
        panel=EXPERT,
    ),
    Setting(
        name="power",
        argument="covariance",
        kind=float,
        help="Power of an exponential or cauchy covariance",
        otherwise="2, on a network 1, its largest",
        panel=EXPERT,
    ),
    Setting(
        name="smoothness",
        argument="covariance",
        kind=float,
        help="Smoothness of a matern covariance, on a network at most 0.5",
        panel=EXPERT,
    ),
    Setting(
        name="tail",
        argument="covariance",
        kind=float,
        help="Power with which a cauchy covariance falls off in the end",
        panel=EXPERT,
    ),
)
# What each kind of covariance needs and takes beside --sigma and --length-scale.
NEEDS: dict[str, tuple[str, ...]] = {"exponential": (), "matern": ("smoothness",), "cauchy": ("power", "tail")}
TAKES = NEEDS | {"exponential": ("power",)}


def require_one_covariance(options: ParsedOptions) -> None:
    """Refuse parameters of another kind, or without what goes with them, with an InputError."""
    named = [each.name for each in COVARIANCE if options[each.name] is not None]
    if named and (options["sigma"] is None or options["length_scale"] is None):
        msg = f"{named[0]}: goes with --sigma and --length-scale; give all three"
        raise InputError(msg)
    kind = options["covariance"] or "exponential"
    for name in NEEDS[kind]:
        if name not in named:
            msg = f"{name}: --covariance {kind} needs one, for instance --{name} 0.5"
            raise InputError(msg)
    for name in named[bool(options["covariance"]) :]:
        if name not in TAKES[kind]:
            msg = f"{name}: --covariance {kind} has none; leave it out"
            raise InputError(msg)


def covariance_of(options: ParsedOptions, domain: Domain) -> Covariance | None:
    """The covariance, where more than sigma and a length scale is given."""
    sigma, scale, power = options["sigma"], options["length_scale"], options["power"]
    if sigma is None or scale is None or (options["covariance"], power) == (None, None):
        return None
    if options["smoothness"] is not None:
        return Matern(sigma, scale, options["smoothness"])
    if power is not None and options["tail"] is not None:
        return GeneralisedCauchy(sigma, scale, power, options["tail"])
    usual = 1.0 if isinstance(domain, LinearNetwork) else 2.0
    return PoweredExponential(sigma, scale, usual if power is None else power)
