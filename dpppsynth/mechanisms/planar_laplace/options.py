"""Options of points moved by planar Laplace noise."""

from typing import Any, ClassVar

from dpppsynth.contract.mechanism_options import Given, PointOptions, require_window
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.planar_laplace.synthesizer import PlanarLaplaceSynthesizer
from dpppsynth.spatial.domains import Domain


class MoveOptions(PointOptions):
    """Options of moves, whose privacy radius is the distance that epsilon speaks of."""

    paid: ClassVar[str] = "every point was moved once, and moving it again would tell more of where it was"
    unfixed: ClassVar[str] = "points that are moved keep their number"

    def require(self, given: Given) -> None:
        """Refuse another relation, a radius that is missing, and a track of a person with one point; InputError."""
        if given["relation"] not in (None, "alpha"):
            msg = (
                f"relation: {given.called} promises to hide where nearby a person was, not {given['relation']}; leave "
                "--relation out, and give --alpha"
            )
            raise InputError(msg)
        super().require(given)
        if given["alpha"] is None:
            msg = (
                f"alpha: {given.called} needs the distance that --epsilon speaks of, for instance --alpha 100: two "
                "places so far apart cost epsilon, two that are twice as far apart twice as much"
            )
            raise InputError(msg)
        if given["track"] and given["max_points_per_person"] in (None, 1):
            msg = (
                "track: all points are one person's, and share epsilon; give their number as --max-points-per-person, "
                "for instance --track --max-points-per-person 200"
            )
            raise InputError(msg)

    def require_patterns(self, given: Given, patterns: int) -> None:
        """Refuse further patterns of points that are moved once; InputError."""
        if patterns != 1:
            msg = (
                f"patterns: {given.called} moves every point once, and moving it again would be a new spend; leave "
                "--patterns out"
            )
            raise InputError(msg)

    def synthesizer(self, given: Given, domain: Domain, n: int | None = None) -> Any:
        """The synthesizer, of a window and a person who may have all points of a track."""
        require_window(
            domain,
            f"{given.called} moves points in the plane; give --window or --window-file, or take --method laplace, "
            "bounded-error or lgcp along the streets",
        )
        cap = given["max_points_per_person"]
        if given["track"] and n is not None and cap < n:
            msg = (
                f"track: all points are one person's, and --max-points-per-person {cap} allows too few; give their "
                "number"
            )
            raise InputError(msg)
        return super().synthesizer(given, domain, n)


POINTS = MoveOptions(PlanarLaplaceSynthesizer, "planar-laplace")
