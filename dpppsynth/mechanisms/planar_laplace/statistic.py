"""`MovedPoints`: every point moved by planar Laplace noise, with or without a bound on the displacement.

What is released are the moved points, rounded to the window's public grid, in random order. Moving them back into the
window is post-processing (docs/theory/bounded_error.md, Theorem M).
"""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
import shapely

from dpppsynth.contract.additive_noise import LatticeStatistic, PrivateStatistic
from dpppsynth.contract.parameter_forms import GIVEN, NULL, POSITIVE, WHOLE, Form, const, or_null
from dpppsynth.contract.statistic import FileCheck, Parameters, Releasing, Trial, require
from dpppsynth.core.arguments import flag, instance, positive, probability, whole
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.core.published_files import strict_json
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.rounding import multiples, upward
from dpppsynth.core.units import short_unit
from dpppsynth.core.wording import Rows, mention, named
from dpppsynth.mechanisms.planar_laplace.bound import noise_bound, require_visible
from dpppsynth.models.recipes import window
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.planar_moves import RELATION, moved_points
from dpppsynth.privacy.planar_noise import PlanarNoise, moves_name
from dpppsynth.privacy.relations import AlphaNeighbours, Relation
from dpppsynth.privacy.truncated.truncated_planar import PlanarLaplace
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.pattern_sources import synthetic
from dpppsynth.spatial.patterns import PointPattern


def farthest(most: float, domain: Domain) -> str:
    """The largest displacement or error in words, rounded up.

    Examples
    --------
    >>> from dpppsynth import Window
    >>> farthest(765.6090102, Window.rectangle(0, 0, 1000, 1000, "EPSG:27700"))
    '765.61 m'
    """
    return f"{upward(most)} {short_unit(domain.unit)}"


# Points outside a window that is no rectangle are moved to its inner part, a share of the grid from the border.
MARGIN = 0.01


@dataclass(frozen=True, eq=False, repr=False)
class MovedPoints(LatticeStatistic):
    """Points of a window moved by planar Laplace noise, all rows shuffled unless they are one person's track.

    Attributes
    ----------
    window : Window
    relation : AlphaNeighbours
        Of a track, with a cap of n or more points per person.
    n : int
        Public number of points.
    epsilon : float
        Budget: of all points of a person together, each moved by alpha at most.
    delta : float
        0 where there is no bound on the moves.
    max_error : float or None
        Largest distance between a point and where it is released, a length on the map in the window's unit.
    track : bool
        The points are one person's, and their order is public.

    Raises
    ------
    PrivacyCheckError
        When the bound on the moves costs more than `delta`.
    """

    keeps_cap: ClassVar[bool] = True
    window: Window
    relation: AlphaNeighbours
    n: int
    epsilon: float
    delta: float
    max_error: float | None
    _: KW_ONLY
    track: bool = False
    basis: ClassVar[str] = "moved"
    form: ClassVar[Form] = {
        "basis": const("moved"),
        "n": WHOLE,
        "expected_n": NULL,
        "delta": GIVEN,
        "max_error": or_null(POSITIVE),
        "track": {"type": "boolean"},
    }
    attributes: ClassVar[Mapping[str, str]] = {"delta": "guarantee.profile.at"}
    paid_patterns: ClassVar[int] = 1
    expected_n: ClassVar[None] = None

    def __post_init__(self) -> None:
        instance("domain", self.window, Window, "points on a network are not moved by planar noise")
        instance("relation", self.relation, AlphaNeighbours, RELATION)
        whole("n", self.n, 1, most=2**53)
        positive("epsilon", self.epsilon)
        probability("delta", self.delta, zero=True)
        if flag("track", self.track) and self.relation.user is not None:
            msg = f"track: all points are one person's, and all of them are moved; leave {mention('user')} out."
            raise InputError(msg)
        if self.track and self.relation.max_points_per_person < self.n:
            msg = (
                "track: all points are one person's, so the cap on a person's points must be their number at least, "
                f"{mention('max_points_per_person', str(self.n))} of AlphaNeighbours({self.relation.alpha:g}, ...)."
            )
            raise InputError(msg)
        if self.max_error is not None:
            require_visible(self.window, self.max_error)
        self.noise  # noqa: B018 - what cannot be moved exactly is refused before the data are touched
        self.inner  # noqa: B018 - a window without an inner part is refused before the data are touched
        if self.max_error is not None and self.guarantee.profile.at > self.delta * (1 + 1e-9):
            cost = (
                f"a move of at most {self.max_error:g} {self.window.unit} costs delta = {self.guarantee.profile.at:.4g}"
            )
            msg = f"delta: {cost}, more than {self.delta:g}; take a larger {named('max_error')}, or a larger delta."
            raise PrivacyCheckError(msg)
        self.guarantee.require(self.epsilon, self.delta)

    def __repr__(self) -> str:
        most = "" if self.max_error is None else f", max_error={self.max_error:g}"
        budget = f"epsilon={self.epsilon:g}, delta={self.delta:g}"
        return f"MovedPoints({self.window!r}, {self.relation!r}, {budget}{most})"

    @property
    def domain(self) -> Window:
        """Public window."""
        return self.window

    @property
    def bits(self) -> int:
        """Zero: positions are whole multiples of the grid's step."""
        return 0

    @property
    def step(self) -> float:
        """Spacing of the public grid of released coordinates."""
        return self.window.resolution

    @property
    def rate(self) -> float:
        """Epsilon of one point per unit of length on the map."""
        return self.noise.rate

    @cached_property
    def noise(self) -> PlanarNoise:
        """The noise on every point."""
        return PlanarNoise(self.window, self.relation, self.epsilon, self.bound)

    @property
    def bound(self) -> float:
        """Largest noise, so that rounding to the grid and into the window keeps to `max_error`; infinite without."""
        return noise_bound(self.window, self.max_error)

    @cached_property
    def guarantee(self) -> Guarantee:
        public: dict[str, Any] = {"rate": self.rate, "bound": self.bound, "farthest": self.window.diameter}
        return moved_points(self.relation, **public, domain=self.window)

    @property
    def error_bound(self) -> float:
        """Largest distance between a point and its place in the window: on one that is not convex twice `max_error`."""
        return math.inf if self.max_error is None else self.max_error * (1 if self.window.is_convex else 2)

    @cached_property
    def inner(self) -> Any:
        """Part of a non-rectangular window into which outside points are moved: all of it but a margin at the border.

        On a border coordinates as floats may lie on either side.
        """
        if self.window.is_rectangle:
            return self.window.geometry
        inner = self.window.geometry.buffer(-MARGIN * self.step, join_style="mitre")
        if inner.is_empty or not inner.buffer(self.step).covers(self.window.geometry):
            msg = (
                "window: it has a corner sharper than one degree, or a part narrower than its public grid; simplify "
                "its outline."
            )
            raise InputError(msg)
        shapely.prepare(inner)
        return inner

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        p = parameters
        require(isinstance(p["track"], bool), "a track is one or none")
        return cls(
            window(domain),
            instance("relation", relation, AlphaNeighbours, RELATION),
            p["n"],
            p["epsilon"],
            p["delta"],
            p["max_error"],
            track=p["track"],
        )

    @property
    def size(self) -> int:
        return 2 * self.n

    def table_rows(self) -> Rows:
        rows = [("noise", self.noise.words)]
        if self.max_error is not None:
            rows.append(("largest move", farthest(self.max_error, self.domain)))
            if not self.domain.is_convex:
                why = "where it is moved back into a window that is not convex"
                rows.append(("largest error", f"{farthest(self.error_bound, self.domain)}, {why}"))
        return [*rows, ("rows", "one person's track, in its order" if self.track else "shuffled")]

    def noise_name(self, *, seeded: bool = False) -> str:
        return moves_name(seeded=seeded)

    def validate_released(self, lattice: Ints) -> None:
        xy, (x0, y0, x1, y1) = lattice.reshape(-1, 2) * self.step, self.window.bounds
        near = math.inf if self.max_error is None else self.max_error
        require(bool(((xy >= [x0 - near, y0 - near]) & (xy <= [x1 + near, y1 + near])).all()), "no move is longer")

    @property
    def following(self) -> dict[str, FileCheck]:
        return {synthetic(0): self._require_placed}

    def _require_placed(self, content: bytes, lattice: Ints) -> None:
        """Refuse a pattern that is not made of the positions as they were drawn."""
        document, raw = strict_json(content), multiples(lattice.reshape(-1, 2), self.step)
        points = np.array([feature["geometry"]["coordinates"] for feature in document["features"]], dtype=float)
        require(points.shape == raw.shape and bool(self.window.contains(points).all()), "all points are there")
        # Into the window, and there to its inner part, is no further than to its border and a step.
        border = shapely.distance(self.window.geometry, shapely.points(raw)) * (1 + 1e-9)
        moved = np.hypot(*(points - raw).T)
        allowed = np.where(self.window.contains(raw), 0, border + self.step)
        require(bool((moved <= allowed).all()), "points are those drawn")

    def rehearsal_run(self, release: Releasing, pattern: PointPattern, rng: np.random.Generator) -> Trial:
        self.measure(pattern, rng)
        return Trial(partial(self.density, pattern))

    def measure(self, pattern: PointPattern, rng: RngLike = None) -> PrivateStatistic[Self]:
        """Spend the budget: move every point.

        The rows of a track are in the order of time.
        """
        secret = generator(rng)
        pattern = self.admitted(pattern, None if rng is None else secret)
        moved = self.apply_noise(self.noise.sampler(secret), pattern.positions)
        # In random order: rows must not tell which point is whose.
        moved = moved if self.track else secret.permutation(moved)
        seeded = rng is not None
        return PrivateStatistic(self, moved.ravel(), self.noise_name(seeded=seeded), seeded)

    def density(self, pattern: PointPattern, xy: Floats) -> Floats:
        """(m,) intensity of the released points at (m, 2). Not private: it is a function of the points."""
        law = PlanarLaplace(self.rate, self.bound)
        return np.array([float(law.pdf(at - pattern.positions).sum()) for at in xy])

    def positions(self, statistic: PrivateStatistic[Self]) -> Floats:
        """(n, 2) released positions; some may lie outside the window."""
        return multiples(statistic.lattice.reshape(-1, 2), self.step)

    def inside(self, positions: Floats) -> Floats:
        """(n, 2) positions, those outside the window moved to the nearest place of its inner part."""
        out = ~self.window.contains(positions)
        if not out.any():
            return positions
        inside = positions.copy()
        if self.window.is_rectangle:
            x0, y0, x1, y1 = self.window.bounds
            inside[out] = np.clip(positions[out], [x0, y0], [x1, y1])
        else:
            lines = shapely.shortest_line(shapely.points(positions[out]), self.inner)
            inside[out] = shapely.get_coordinates(lines).reshape(-1, 2, 2)[:, 1]
        return inside
