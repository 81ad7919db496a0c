"""Covariance of lgcp's field from its options, and their valid combinations."""

from typing import TYPE_CHECKING

from dpppsynth.cli.options import Shape
from dpppsynth.core.errors import InputError

if TYPE_CHECKING:
    from dpppsynth.cli.job import Job
    from dpppsynth.models import Covariance
    from dpppsynth.spatial.domains import Domain

# What each kind of covariance needs and takes beside --sigma and --length-scale.
NEEDS: dict[Shape, tuple[str, ...]] = {
    Shape.EXPONENTIAL: (),
    Shape.MATERN: ("smoothness",),
    Shape.CAUCHY: ("power", "tail"),
}
TAKES = NEEDS | {Shape.EXPONENTIAL: ("power",)}


def require_one_covariance(job: "Job") -> None:
    """Refuse parameters of another kind, or without what goes with them.

    Raises
    ------
    InputError
    """
    given = [name for name in ("covariance", "power", "smoothness", "tail") if getattr(job, name) is not None]
    if given and (job.sigma is None or job.length_scale is None):
        msg = f"--{given[0]}: goes with --sigma and --length-scale; give all three"
        raise InputError(msg)
    kind = job.covariance or Shape.EXPONENTIAL
    for name in NEEDS[kind]:
        if name not in given:
            msg = f"{name}: --covariance {kind} needs one, for instance --{name} 0.5"
            raise InputError(msg)
    for name in given[bool(job.covariance) :]:
        if name not in TAKES[kind]:
            msg = f"{name}: --covariance {kind} has none; leave it out"
            raise InputError(msg)


def covariance_of(job: "Job", domain: "Domain") -> "Covariance | None":
    """The covariance, where more than sigma and a length scale is given."""
    from dpppsynth.linear_network import LinearNetwork
    from dpppsynth.models.covariances import GeneralisedCauchy, Matern, PoweredExponential

    sigma, scale = job.sigma, job.length_scale
    if sigma is None or scale is None or (job.covariance, job.power) == (None, None):
        return None
    if job.smoothness is not None:
        return Matern(sigma, scale, job.smoothness)
    if job.power is not None and job.tail is not None:
        return GeneralisedCauchy(sigma, scale, job.power, job.tail)
    usual = 1.0 if isinstance(domain, LinearNetwork) else 2.0
    return PoweredExponential(sigma, scale, usual if job.power is None else job.power)
