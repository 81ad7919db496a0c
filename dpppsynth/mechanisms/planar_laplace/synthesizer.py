"""`PlanarLaplaceSynthesizer`: geomasking by planar Laplace noise (docs/theory/bounded_error.md, Theorem M)."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

from dpppsynth.contract.object_options import require_window
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.settings import (
    ALPHA,
    DELTA,
    EPSILON,
    LENGTH,
    NEIGHBOURS,
    PRIVACY,
    ParsedOptions,
    made_of,
    setting,
)
from dpppsynth.contract.synthesizer import PointSynthesizer, require_true_lengths
from dpppsynth.core.arguments import flag, instance, positive, probability
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention, named
from dpppsynth.mechanisms.planar_laplace.bound import noise_bound, require_visible
from dpppsynth.mechanisms.planar_laplace.release import PointRelease
from dpppsynth.mechanisms.planar_laplace.statistic import MovedPoints
from dpppsynth.privacy.bounds import FROM_BOUND, require_modest
from dpppsynth.privacy.planar_moves import RELATION, moved_delta, rate, smallest_move_bound
from dpppsynth.privacy.profiles import ApproximateDP, Profile, PureDP
from dpppsynth.privacy.relations import AlphaNeighbours, CappedRelation
from dpppsynth.privacy.truncated.error_bounds import WHY_DELTA
from dpppsynth.spatial.domains import Domain, Window


@dataclass(frozen=True)
class PlanarLaplaceSynthesizer(PointSynthesizer[PointRelease]):
    """Geomasking by planar Laplace noise: every point moved at random, at most by `max_error`.

    Without a bound on the moves this is the planar Laplace mechanism, geo-indistinguishable with delta = 0; a bound
    costs a positive delta. Points keep their number and lose their order; marked patterns are refused.

    Parameters
    ----------
    epsilon : float
        Privacy loss of a move by alpha; twice as far costs twice as much.
    delta : float, optional
        Budget where moves are bounded; None takes what `max_error` costs.
    alpha : float, optional
        Distance that epsilon speaks of, a true length in the window's unit; 1 unless given: epsilon per unit of length.
    max_error : float, optional
        Largest distance that a point is moved, a length on the map in the window's unit; None takes the smallest that
        delta allows, and without a delta there is no bound.
    track : bool
        The points are one person's positions, in the order of rows, which is public and kept: they can be filtered. The
        relation must cap a person's points at their number or more, and all of them share epsilon.
    relation : AlphaNeighbours, optional
        Instead of alpha, with a cap on the points of a person, who share epsilon.

    Raises
    ------
    InputError
        When an argument breaks its rule; where delta is 0 and moves have a bound.

    Examples
    --------
    >>> from dpppsynth.spatial.domains import Window
    >>> window = Window.rectangle(0, 0, 10_000, 10_000)
    >>> moved = PlanarLaplaceSynthesizer(1.0, delta=1e-6, alpha=100.0)
    >>> round(moved.plan(window, n=400).statistic.max_error)
    1586
    """

    epsilon: float = setting(**EPSILON)
    _: KW_ONLY
    delta: float | None = setting(None, **DELTA, otherwise="0, or what --max-error costs")
    alpha: float | None = setting(None, **ALPHA)
    max_error: float | None = setting(
        None,
        help="No point is moved further",
        unit=LENGTH,
        otherwise="what --epsilon and --delta allow",
        panel=PRIVACY,
    )
    track: bool = setting(False, help="The points are one person's, in public order, which is kept")
    relation: CappedRelation | None = made_of(*NEIGHBOURS)
    paid: ClassVar[str] = "every point was moved once, and moving it again would tell more of where it was"
    unfixed: ClassVar[str] = "points that are moved keep their number"
    uses_number: ClassVar[bool] = True
    smaller_delta: ClassVar[str] = FROM_BOUND

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        flag("track", self.track)
        if self.delta is not None:
            probability("delta", self.delta, zero=True)
        if self.max_error is not None:
            positive("max_error", self.max_error)
        if self.max_error is not None and self.delta == 0:
            bound = named("max_error")
            msg = f"delta: it cannot be 0 where {bound} is given: {WHY_DELTA}. Take 1e-6, or leave {bound} out."
            raise InputError(msg)
        self.neighbouring()

    def neighbouring(self) -> AlphaNeighbours:
        """The relation in force: the one given, else points that move by alpha."""
        given = super().neighbouring() if self.relation is not None or self.alpha is not None else AlphaNeighbours(1.0)
        relation: AlphaNeighbours = instance("relation", given, AlphaNeighbours, RELATION)
        return relation

    def require_levels(self) -> None:
        """Refuse tracks by levels: a person would have a track, and a privacy cost, at each level."""
        super().require_levels()
        if self.track:
            msg = (
                f"track: one person's points are released once, and not by levels; leave {mention('track')} or "
                f"{mention('by')} out."
            )
            raise InputError(msg)

    @classmethod
    def require_options(cls, options: ParsedOptions) -> None:
        """Refuse another relation, a radius that is missing, and a track of a person with one point; InputError."""
        called = options.called
        if options["relation"] not in (None, "alpha"):
            msg = (
                f"relation: {called} promises to hide where nearby a person was, not {options['relation']}; leave "
                "--relation out, and give --alpha"
            )
            raise InputError(msg)
        super().require_options(options)
        if options["alpha"] is None:
            msg = (
                f"alpha: {called} needs the distance that --epsilon speaks of, for instance --alpha 100: two "
                "places so far apart cost epsilon, two that are twice as far apart twice as much"
            )
            raise InputError(msg)
        if options["track"] and options["max_points_per_person"] in (None, 1):
            msg = (
                "track: all points are one person's, and share epsilon; give their number as --max-points-per-person, "
                "for instance --track --max-points-per-person 200"
            )
            raise InputError(msg)

    @classmethod
    def require_patterns(cls, options: ParsedOptions, patterns: int) -> None:
        if patterns != 1:
            msg = (
                f"patterns: {options.called} moves every point once, and moving it again would be a new spend; leave "
                "--patterns out"
            )
            raise InputError(msg)

    @classmethod
    def from_options(cls, options: ParsedOptions, domain: Domain, n: int | None = None) -> Self:
        """Settings for a window and a person who may have all points of a track; InputError."""
        require_window(
            domain,
            f"{options.called} moves points in the plane; give --window or --window-file, or take --method laplace, "
            "bounded-error or lgcp along the streets",
        )
        cap = options["max_points_per_person"]
        if options["track"] and n is not None and cap < n:
            msg = (
                f"track: all points are one person's, and --max-points-per-person {cap} allows too few; give their "
                "number"
            )
            raise InputError(msg)
        return super().from_options(options, domain, n)

    def _ceiling(self, domain: Domain, **options: Any) -> Profile:
        most, delta = self._settled(domain)
        return PureDP(float(self.epsilon)) if most is None else ApproximateDP(float(self.epsilon), delta)

    def plan(self, domain: Domain, *, n: int | None = None, expected_n: float | None = None) -> ReleasePlan:
        size, (most, delta) = self.public_size(n, expected_n), self._settled(domain, n)
        self.require_delta(delta, n, expected_n)
        budget = int(size or 0), float(self.epsilon), delta, most
        place: Any = domain
        return ReleasePlan("planar-laplace", MovedPoints(place, self.neighbouring(), *budget, track=self.track), None)

    def _settled(self, domain: Any, n: int | None = None) -> tuple[float | None, float]:
        """Largest move, or None, and delta."""
        require_true_lengths(domain)
        window: Window = instance("domain", domain, Window, "points on a network are not moved by planar noise")
        relation, given = self.neighbouring(), self.delta
        per_unit = rate(relation, float(self.epsilon), window)
        if self.max_error is not None:
            most = require_visible(window, self.max_error)
            least = moved_delta(relation, rate=per_unit, bound=noise_bound(window, most), domain=window)
            if given is None:
                shortest = smallest_move_bound(relation, rate=per_unit, delta=1e-6, domain=window)
                enough = math.ceil(1.01 * shortest)
                cost, remedy = f"a move of at most {most:g} {window.unit}", f"such as {enough} for delta = 1e-6"
                require_modest(least, (n or 0, None), bound=cost, remedy=remedy)
            return most, least if given is None else float(given)
        if not given:
            return None, 0.0
        # Rounding to the grid adds to the noise.
        bound = smallest_move_bound(relation, rate=per_unit, delta=float(given), domain=window)
        return bound * (1 + 1e-9) - 1.001 * noise_bound(window, 0.0), float(given)
