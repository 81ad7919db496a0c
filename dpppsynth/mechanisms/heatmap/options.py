"""Options of heat maps: who is a person, and the grid."""

from typing import Any, ClassVar

from dpppsynth.contract.mechanism_options import NO_CAP, NO_RADIUS, Given, MechanismOptions, require_window
from dpppsynth.contract.settings import PRIVACY, RELATION, Setting
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.heatmap.synthesizer import HeatmapSynthesizer
from dpppsynth.spatial.domains import Domain

NO_USER = Setting(
    name="no_user",
    option="--no-user",
    kind=bool,
    help="Take every point for a person of its own",
    panel=PRIVACY,
)


class HeatmapOptions(MechanismOptions):
    """Options of heat maps, which protect persons with all their points."""

    extra: ClassVar[tuple[Setting, ...]] = (RELATION, NO_USER, NO_RADIUS, NO_CAP)
    distance: ClassVar[str] = (
        "Distance: earth mover's distance between the heat map of the surrogate's persons and the private one, both "
        "smoothed, on 32 x 32 squares: how far mass lies from its place on average, as a share of the window's sides. "
        "In brackets that of a uniform map, which needs no data."
    )

    def require(self, given: Given) -> None:
        """Refuse promises about points, and contradictions about persons; InputError."""
        kind = "add-remove" if given["no_user"] else "add-remove-person"
        if given["relation"] not in (None, kind):
            promised = f"{kind} of points" if given["no_user"] else kind
            msg = (
                f"relation: {given.called} promises {promised}, not {given['relation']}; leave --relation out, or take "
                "another method"
            )
            raise InputError(msg)
        radius = f"{given.called} protects persons wherever their points lie, without a radius; leave --alpha out"
        given.require_none("privacy_radius", radius)
        if given["max_points_per_person"] not in (None, 1):
            msg = (
                f"max_points_per_person: {given.called} protects all points of a person, however many; leave "
                "--max-points-per-person out"
            )
            raise InputError(msg)
        if given["no_user"]:
            given.require_none("user", "--no-user takes every point for a person of its own; give one of the two")
        if given["user"] == "":
            msg = "user: needs the name of a column; --no-user takes every point for a person of its own"
            raise InputError(msg)
        super().require(given)

    def objects(self, given: Given, domain: Domain) -> dict[str, Any]:
        """The mark of persons, on a window."""
        require_window(
            domain,
            f"{given.called} measures squares of the plane; give --window or --window-file, or take --method laplace "
            "or lgcp along the streets",
        )
        return self._persons(given)

    def _persons(self, given: Given) -> dict[str, Any]:
        return {"user": None} if given["no_user"] else {}

    def relation(self, given: Given) -> Any:
        """One person, or point, is added or removed."""
        return self.settings(**{**self.plain(given), **self._persons(given)}).neighbouring()

    def user(self, given: Given) -> str | None:
        """The column that tells the persons; None where every point is one."""
        return None if given["no_user"] else given["user"] or HeatmapSynthesizer.user

    def require_people(self, given: Given, n: int | None, by: str | None) -> None:
        """Refuse sizes that are secret, and marks that would cut a person in parts; InputError."""
        if n is not None:
            msg = (
                "n: under add-remove-person the numbers of persons and points are secret; leave --n out (a guess of "
                "the persons, for rehearse, is --expected-n)"
            )
            raise InputError(msg)
        if by is not None:
            msg = (
                "by: a person may have points at several levels, and each level would spend the budget again; leave "
                "--by out, and make one release for each level with a budget of its own"
            )
            raise InputError(msg)


HEATMAP = HeatmapOptions(HeatmapSynthesizer, "heatmap")
