"""Options and synthesizers of `--method bounded-error` and `planar-laplace`."""

from typing import TYPE_CHECKING, Any

from dpppsynth.cli.options import Method, Neighbours
from dpppsynth.core.errors import InputError

if TYPE_CHECKING:
    from dpppsynth.cli.job import Job
    from dpppsynth.mechanisms.bounded.synthesizer import BoundedErrorSynthesizer
    from dpppsynth.mechanisms.planar_laplace.synthesizer import PlanarLaplaceSynthesizer
    from dpppsynth.privacy import CappedRelation
    from dpppsynth.spatial.domains import Domain

BOUNDED = (Method.BOUNDED_ERROR, Method.PLANAR_LAPLACE)


def require_radius(job: "Job") -> None:
    """Refuse to move points by noise without saying what distance epsilon speaks of.

    Raises
    ------
    InputError
    """
    if job.method is not Method.PLANAR_LAPLACE:
        return
    if job.relation not in (None, Neighbours.ALPHA):
        msg = (
            f"relation: --method planar-laplace promises to hide where nearby a person was, not {job.relation}; leave "
            "--relation out, and give --alpha"
        )
        raise InputError(msg)
    if job.alpha is None:
        msg = (
            "alpha: --method planar-laplace needs the distance that --epsilon speaks of, for instance --alpha 100: two "
            "places so far apart cost epsilon, two that are twice as far apart twice as much"
        )
        raise InputError(msg)
    if job.track and job.max_points_per_person == 1:
        msg = (
            "track: all points are one person's, and share epsilon; give their number as --max-points-per-person, for "
            "instance --track --max-points-per-person 200"
        )
        raise InputError(msg)


def require_one_pattern(job: "Job", patterns: int) -> None:
    """Refuse further patterns of points that are moved once.

    Raises
    ------
    InputError
    """
    if job.method is Method.PLANAR_LAPLACE and patterns != 1:
        msg = (
            "patterns: --method planar-laplace moves every point once, and moving it again would be a new spend; leave "
            "--patterns out"
        )
        raise InputError(msg)


def bounded_synthesizer(job: "Job", relation: "CappedRelation", cells: dict[str, Any]) -> "BoundedErrorSynthesizer":
    """Counts with bounded error, of cells and post-processing as given.

    Raises
    ------
    InputError
        Unless two of epsilon, delta and max_error are given, in range.
    """
    from dpppsynth.mechanisms.bounded.synthesizer import BoundedErrorSynthesizer

    most: Any = job.max_error
    # Counts are off by whole numbers; what is none is for the library to refuse.
    if most is not None and float(most).is_integer():
        most = int(most)
    budget: dict[str, Any] = {"epsilon": job.epsilon, "delta": job.delta, "max_error": most}
    return BoundedErrorSynthesizer(**budget, relation=relation, **cells)


def moving_synthesizer(job: "Job", domain: "Domain", n: int | None) -> "PlanarLaplaceSynthesizer":
    """Points moved by noise, at most by `max_error` where that or a delta is given; `n` is their number, if known.

    Raises
    ------
    InputError
        When the domain is a network, an option is out of range, or a track has more points than its person may.
    """
    from dpppsynth.linear_network import LinearNetwork
    from dpppsynth.mechanisms.planar_laplace.synthesizer import PlanarLaplaceSynthesizer

    if isinstance(domain, LinearNetwork):
        msg = (
            "network: --method planar-laplace moves points in the plane; give --window or --window-file, or take "
            "--method laplace, bounded-error or lgcp along the streets"
        )
        raise InputError(msg)
    if job.track and n is not None and job.max_points_per_person < n:
        msg = (
            f"track: all points are one person's, and --max-points-per-person {job.max_points_per_person} allows too "
            "few; give their number"
        )
        raise InputError(msg)
    public: dict[str, Any] = {"max_error": job.max_error, "track": job.track, "relation": job.of_points()}
    return PlanarLaplaceSynthesizer(job.budget, job.delta, **public)
