"""`MarkedMovesInference`: fields of types and times inferred from counts of their moved points on a lattice."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self, cast

import numpy as np

from dpppsynth.contract.additive_noise import LatticeStatistic
from dpppsynth.contract.estimator import covariate_rows, covariates_of, offset_rows
from dpppsynth.contract.statistic import mesh_words, require
from dpppsynth.core.arguments import flag, one_of
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.inference.field_inference import field_mesh, require_somewhere
from dpppsynth.inference.moved_lattice import LatticeInference
from dpppsynth.inference.sparse_inference import INFERENCES, LONGEST, SHORTEST, require_increasing
from dpppsynth.mechanisms.marked.inference import GridInference
from dpppsynth.mechanisms.marked.intensity import MarkedMesh
from dpppsynth.mechanisms.marked.moved_statistic import MarkedMoves
from dpppsynth.models.covariances import LARGEST_PARAMETER, SMALLEST_PARAMETER
from dpppsynth.models.level_fields import LevelField, level_covariance, level_root
from dpppsynth.models.marked_fields import LEVEL_SD, clock_field
from dpppsynth.models.moved_posterior import (
    LevelChannel,
    MovedLikelihood,
    Place,
)
from dpppsynth.models.spectral_fields import SpectralField
from dpppsynth.spatial.covariates import Design
from dpppsynth.spatial.marked_offset import AnyOffset
from dpppsynth.spatial.mesh import Floats

# Standard deviation of the numbers of instants, on the log scale, and the range of their curve as a share of all times.
TIME_SIGMA, TIME_RANGE = 1.5, 1 / 3
# Types times instants at most: their covariances are dense, and have a root for every prior that is tried.
MOST_KINDS = 1000


@dataclass(frozen=True, eq=False, repr=False)
class MarkedMovesInference(GridInference, LatticeInference):
    """Fields of places, one for each type and instant, that share some of their variance.

    The prior is chosen by how well one half of the moved points foretells the other.

    Attributes
    ----------
    grid : MarkedMesh
        The regular triangulation at whose vertices moved points were counted, with types, times and a public offset.
    ranges : tuple of float
        In increasing order, like all that follow.
    sigmas, details : tuples of float
        Standard deviations, as in `MovedInference`.
    owns : tuple of float
        Shares of the variance that each type has to itself, from 0, where all types are alike, to 1, where they are
        independent; 0 alone for a single type.
    togethers : tuple of float
        Shares of the variance that change with the time; 0 alone without times. Priors are all combinations.
    inference : {"laplace"}
    even : bool
        Whether fields that are even, but for effects of covariates, are one more prior.
    covariates : Design, optional
        Public covariates at the vertices in space, with the same effects for all types and times.

    Raises
    ------
    InputError
        Also where there are more than 1000 types times instants, whose covariances would fill the memory.
    """

    grid: MarkedMesh
    ranges: tuple[float, ...]
    sigmas: tuple[float, ...]
    details: tuple[float, ...]
    owns: tuple[float, ...]
    togethers: tuple[float, ...]
    inference: str = "laplace"
    even: bool = True
    covariates: Design | None = None
    kind: ClassVar[str] = "marked-moves"
    combining: ClassVar[tuple[str, ...]] = ("ranges", "sigmas", "details", "owns", "togethers")
    adjustable: ClassVar[frozenset[str]] = frozenset({*combining, "inference", "even"})

    def __post_init__(self) -> None:
        longest = LONGEST * self.grid.domain.extent
        types, hats, _ = self.grid.shape
        if types * hats > MOST_KINDS:
            msg = (
                f"marks: {types} types times {hats} instants are {types * hats} kinds of points, and {MOST_KINDS} the "
                "most of which places are inferred from moved points; join rare types, or take fewer instants (hats)."
            )
            raise InputError(msg)
        require_increasing("ranges", self.ranges, SHORTEST * longest, longest)
        require_increasing("sigmas", self.sigmas, SMALLEST_PARAMETER, LARGEST_PARAMETER)
        require_increasing("details", self.details, 0.0, LARGEST_PARAMETER)
        require_increasing("owns", self.owns, 0.0, 1.0 if types > 1 else 0.0)
        require_increasing("togethers", self.togethers, 0.0, 1.0 if hats > 1 else 0.0)
        for name in self.combining:
            object.__setattr__(self, name, tuple(map(float, getattr(self, name))))
        one_of("inference", self.inference, INFERENCES)
        flag("even", self.even)
        for each in self.measure.reshape(types * hats, -1):
            require_somewhere(each)

    def __repr__(self) -> str:
        return f"MarkedMovesInference({self.grid.space!r}, {self.grid.marks!r}, ranges={self.ranges})"

    @property
    def lists(self) -> dict[str, tuple[float, ...]]:
        return {name: getattr(self, name) for name in self.combining}

    @property
    def first(self) -> Place:
        middle = [len(values) // 2 for values in self.lists.values()]
        return middle[0], middle[1], 0, middle[3], middle[4]

    def require(self, plan: LatticeStatistic) -> None:
        require(isinstance(plan, MarkedMoves), "fields of types and times stand behind counts of their moved points")

    @property
    def leading(self) -> tuple[int, ...]:
        types, hats, _ = self.grid.shape
        return (types * hats,)

    def prior_at(self, likelihood: MovedLikelihood, number: int) -> LevelField:
        even = number == len(self.combined)
        values = (self.ranges[0], 0.0, 0.0, 0.0, 0.0) if even else self.combined[number]
        range_, sigma, detail, own, together = values
        lattice = cast(LevelChannel, likelihood.channel).each.shape
        mixing = level_root(level_covariance(self.grid.shape[0], self._clock, own, together))
        each = SpectralField(lattice, likelihood.spacing, sigma, range_, detail)
        return LevelField(each, mixing, self._numbers(own), self.columns(likelihood))

    @cached_property
    def _clock(self) -> Floats:
        """(K, K) correlations of the instants."""
        times = self.grid.marks.times
        if times is None:
            return np.ones((1, 1))
        curve = clock_field(times, TIME_RANGE * times.length)
        return np.asarray(curve.placement @ np.linalg.inv(curve.precision.toarray()) @ curve.placement.T.toarray())

    def _numbers(self, own: float) -> Floats:
        """(L, P) root of the covariance of the levels' numbers: one of each type, and curves of times."""
        types, hats, _ = self.grid.shape
        parts = [LEVEL_SD * np.kron(np.eye(types), np.ones((hats, 1)))]
        if hats > 1:
            parts.append(TIME_SIGMA * level_root(level_covariance(types, self._clock, own, 1.0)))
        return np.hstack(parts)

    def table_rows(self) -> Rows:
        types, hats, _ = self.grid.shape
        rows = [
            ("field", f"Matern, sigma {_listed(self.sigmas)}, smoothness 1, on {mesh_words(self.grid.space)}"),
            ("details", f"of an eighth of the range, sigma {_listed(self.details)}"),
            ("ranges", ", ".join(f"{each:.4g}" for each in self.ranges) + self.even * ", or even fields"),
        ]
        if types > 1:
            rows.append(("of each type", f"{_listed(self.owns)} of the variance"))
        if hats > 1:
            rows.append(("of each time", f"{_listed(self.togethers)} of the variance"))
        return [*rows, ("inference", self.inference), *offset_rows(self.offset), *covariate_rows(self.covariates)]

    def public_numbers(self) -> JsonObject:
        return {"field_vertices": len(self.grid.space.vertices), **{n: list(getattr(self, n)) for n in self.combining}}

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: LatticeStatistic, offset: AnyOffset | None) -> Self:
        require(isinstance(plan, MarkedMoves), "fields of types and times stand behind counts of their moved points")
        marked = cast(MarkedMoves, plan)
        mesh = field_mesh(stated["mesh"], marked.mesh)
        require(mesh is marked.mesh, "the field lives where moved points are counted")
        return cls(
            grid=MarkedMesh(mesh, marked.marks, offset), **cls.stated_settings(stated), covariates=covariates_of(stated)
        )


def _listed(values: tuple[float, ...]) -> str:
    return " or ".join(f"{each:g}" for each in values)
