"""`MarkedStreetMovesInference`: fields of types and times along streets, from counts of their moved points."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self, cast

from dpppsynth.contract.additive_noise import LatticeStatistic, PrivateStatistic
from dpppsynth.contract.rules import MATERN_SIGMA
from dpppsynth.contract.statistic import mesh_words, require
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.inference.field_inference import INTERCEPT_SD, opened_values
from dpppsynth.inference.moved_street_inference import likelihood_of
from dpppsynth.inference.street_inference import StreetInference
from dpppsynth.linear_network.mesh import SegmentCells
from dpppsynth.mechanisms.marked.intensity import MarkedMesh
from dpppsynth.mechanisms.marked.moved_levels import MovedLevels, listed
from dpppsynth.mechanisms.marked.moved_statistic import MarkedMoves
from dpppsynth.models.level_fields import LevelField
from dpppsynth.models.moved_posterior import MovedLikelihood, Place
from dpppsynth.models.recipes import mesh_from_recipe, segments
from dpppsynth.models.sparse_fields import constant
from dpppsynth.models.whitened_fields import WhitenedField
from dpppsynth.spatial.marked_offset import AnyOffset


@dataclass(frozen=True, eq=False, repr=False)
class MarkedStreetMovesInference(MovedLevels):
    """Fields along streets, one for each type and instant, that share some of their variance (`MovedLevels`).

    Each is a field of the plane plus one along streets, as in `StreetInference`.

    Attributes
    ----------
    grid : MarkedMesh
        Segments (`SegmentCells`), with types, times and a public offset.
    plane, ranges, street_sigmas, street_ranges, detours, sigma
        As in `StreetInference`.
    owns, togethers : tuples of float
        Shares of the variance that each type has to itself, and that change with the time. Priors are all combinations.

    Raises
    ------
    InputError
        Also where there are more than 1000 types times instants, whose covariances would fill the memory.
    """

    grid: MarkedMesh
    plane: tuple[int, int]
    ranges: tuple[float, ...]
    street_sigmas: tuple[float, ...]
    street_ranges: tuple[float, ...]
    detours: tuple[float, ...]
    owns: tuple[float, ...]
    togethers: tuple[float, ...]
    sigma: float = MATERN_SIGMA
    kind: ClassVar[str] = "marked-moved-streets"
    combining: ClassVar[tuple[str, ...]] = (*StreetInference.averaged, "owns", "togethers")
    adjustable: ClassVar[frozenset[str]] = frozenset({"sigma", *combining, "inference", "engine", "even"})

    def __post_init__(self) -> None:
        self.street  # noqa: B018 - refuses settings of a field along streets
        self.require_shares()

    def __repr__(self) -> str:
        return f"MarkedStreetMovesInference({self.grid.space!r}, {self.grid.marks!r}, ranges={self.ranges})"

    @cached_property
    def street(self) -> StreetInference:
        """The field of one level."""
        return StreetInference(
            self.cells, self.plane, self.ranges, self.street_sigmas, self.street_ranges, self.detours, self.sigma
        )

    @property
    def cells(self) -> SegmentCells:
        """Segments, each with a value of every level."""
        return cast(SegmentCells, self.grid.space)

    @property
    def first(self) -> Place:
        *street, own, together = (len(values) for values in self.lists.values())
        return (*((each - 1) // 2 for each in street), (own - 1) // 2, together // 2)

    def likelihood(self, statistic: PrivateStatistic[LatticeStatistic], side: int = 1) -> MovedLikelihood:
        return likelihood_of(statistic, self.cells, self.measure, self.leading, side)

    def prior_at(self, likelihood: MovedLikelihood, number: int) -> LevelField:
        design = self.covariates
        columns = None if design is None else opened_values(design) * design.prior_sd
        if number == len(self.combined):
            even = WhitenedField(constant(len(self.cells.elements), INTERCEPT_SD))
            return self.levels_of(likelihood, even, 0.0, 0.0, columns)
        *street, own, together = self.combined[number]
        each = WhitenedField(self.street.field_with(tuple(street)))
        return self.levels_of(likelihood, each, own, together, columns)

    def table_rows(self) -> Rows:
        along = ", ".join(
            f"{word} {listed(getattr(self, name))}"
            for word, name in zip(("sigma", "detour", "range"), StreetInference.averaged[1:], strict=True)
        )
        where = mesh_words(self.cells.segments)
        return [
            ("field", f"Matern in the plane, sigma {self.sigma:g}, plus one along streets, on {where}"),
            ("ranges", ", ".join(f"{each:.4g}" for each in self.ranges) + self.even * ", or even fields"),
            ("along streets", along),
            *self.share_rows(),
        ]

    def to_dict(self) -> JsonObject:
        return super().to_dict() | {"plane": list(self.plane)}

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: LatticeStatistic, offset: AnyOffset | None) -> Self:
        require(isinstance(plan, MarkedMoves), "fields of types and times stand behind counts of their moved points")
        cells = SegmentCells.of(segments(mesh_from_recipe(stated["mesh"], plan.domain)))
        return cls(
            grid=MarkedMesh(cells, cast(MarkedMoves, plan).marks, offset),
            plane=tuple(stated["plane"]),
            **cls.stated_settings(stated),
        )
