"""`MovedPlan`: every point moved by planar Laplace noise, with or without a bound on the displacement.

What is released are the moved points, rounded to the window's public grid, in random order. Moving them back into the
window is post-processing (docs/theory/bounded_error.md, Theorem M).
"""

import math
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import shapely

from dpppsynth.contract.additive_noise import LatticePlan, PrivateStatistic
from dpppsynth.core.arguments import flag, instance, positive, probability, whole
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.mechanisms.planar_laplace.bound import (
    MOVES,
    RELATION,
    SEEDED,
    moved_points,
    noise_bound,
    rate,
    require_visible,
)
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import AlphaNeighbours
from dpppsynth.privacy.truncated.lattice import FARTHEST, FINEST, move
from dpppsynth.privacy.truncated.lengths import scaled
from dpppsynth.privacy.truncated.planar import PlanarLaplace
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern, require_match

# Points outside a window that is no rectangle are moved to its inner part, a share of the grid from the border.
MARGIN = 0.01


@dataclass(frozen=True, eq=False, repr=False)
class MovedPlan(LatticePlan):
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

    window: Window
    relation: AlphaNeighbours
    n: int
    epsilon: float
    delta: float
    max_error: float | None
    _: KW_ONLY
    track: bool = False
    basis: ClassVar[str] = "moved"
    expected_n: ClassVar[None] = None

    def __post_init__(self) -> None:
        instance("domain", self.window, Window, "points on a network are not moved by planar noise")
        instance("relation", self.relation, AlphaNeighbours, RELATION)
        whole("n", self.n, 1, most=2**53)
        positive("epsilon", self.epsilon)
        probability("delta", self.delta, zero=True)
        if flag("track", self.track) and self.relation.max_points_per_person < self.n:
            msg = (
                "track: all points are one person's, so the cap on a person's points must be their number at least, "
                f"max_points_per_person={self.n} of AlphaNeighbours({self.relation.alpha:g}, ...)."
            )
            raise InputError(msg)
        if self.max_error is not None:
            require_visible(self.window, self.max_error)
        self._require_room()
        self.inner  # noqa: B018 - a window without an inner part is refused before the data are touched
        if self.max_error is not None and self.guarantee.profile.at > self.delta * (1 + 1e-9):
            cost = (
                f"a move of at most {self.max_error:g} {self.window.unit} costs delta = {self.guarantee.profile.at:.4g}"
            )
            msg = f"delta: {cost}, more than {self.delta:g}; take a larger max_error, or a larger delta."
            raise PrivacyCheckError(msg)
        self.guarantee.require(self.epsilon, self.delta)

    def __repr__(self) -> str:
        most = "" if self.max_error is None else f", max_error={self.max_error:g}"
        return f"MovedPlan({self.window!r}, {self.relation!r}, epsilon={self.epsilon:g}, delta={self.delta:g}{most})"

    def _require_room(self) -> None:
        """Refuse what cannot be moved exactly; later, in `measure`, a refusal could tell points apart."""
        scaled("epsilon", self.rate)
        # Points of the window are within its bounds; noise may take them further.
        if np.abs(self.window.bounds).max() > FARTHEST / 2 * self.step:
            msg = "window: it lies too far from the origin for its size; shift the origin of its coordinates."
            raise InputError(msg)
        if min(self.bound, 1 / self.rate) > FINEST / 2 * self.step:
            msg = f"epsilon: {self.epsilon!r} asks for moves far beyond the window; take a larger epsilon."
            raise InputError(msg)

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
        return rate(self.relation, self.epsilon, self.window)

    @property
    def bound(self) -> float:
        """Largest noise, so that rounding to the grid and into the window keeps to `max_error`; infinite without."""
        return noise_bound(self.window, self.max_error)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The bound that `measure` satisfies."""
        public = {"rate": self.rate, "bound": self.bound, "farthest": self.window.diameter}
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

    def parameters(self) -> dict[str, Any]:
        """Public parameters for the certificate: enough to derive the guarantee again."""
        return {
            "basis": self.basis,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "max_error": self.max_error,
            "track": self.track,
            "n": self.n,
            "expected_n": None,
        }

    def measure(self, pattern: PointPattern, rng: RngLike = None) -> PrivateStatistic:
        """Spend the budget: move every point.

        Parameters
        ----------
        pattern : PointPattern
            Of a track, with rows in the order of time.
        rng : None, int or Generator
            None: secret randomness. Anything else makes the run reproducible and therefore not private.

        Raises
        ------
        InputError
            When the pattern is marked, lives in another window or has another number of points than planned.
        """
        require_match(pattern, self.window, self.n)
        secret = generator(rng)
        moved = move(pattern.positions, epsilon=self.rate, bound=self.bound, step=self.step, rng=secret)
        # In random order: rows must not tell which point is whose.
        moved = moved if self.track else secret.permutation(moved)
        seeded = rng is not None
        return PrivateStatistic(self, moved.ravel(), SEEDED if seeded else MOVES, seeded)

    def density(self, pattern: PointPattern, xy: Floats) -> Floats:
        """(m,) intensity, at (m, 2), of what is drawn. Not private: it is a function of the points."""
        law = PlanarLaplace(self.rate, self.bound)
        return np.array([float(law.pdf(at - pattern.positions).sum()) for at in xy])

    def positions(self, statistic: PrivateStatistic) -> Floats:
        """(n, 2) released positions; some may lie outside the window."""
        return np.asarray(statistic.lattice.reshape(-1, 2) * self.step, dtype=np.float64)

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
