"""`MarkedMovesInference`: fields of types and times inferred from counts of their moved points on a lattice."""

from dataclasses import dataclass
from typing import ClassVar, Self, cast

from dpppsynth.contract.additive_noise import LatticeStatistic
from dpppsynth.contract.statistic import mesh_words, require
from dpppsynth.core.types import JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.inference.field_inference import field_mesh
from dpppsynth.inference.moved_lattice import LatticeInference
from dpppsynth.inference.sparse_inference import LONGEST, SHORTEST, require_increasing
from dpppsynth.mechanisms.marked.intensity import MarkedMesh
from dpppsynth.mechanisms.marked.moved_levels import MovedLevels, listed
from dpppsynth.mechanisms.marked.moved_statistic import MarkedMoves
from dpppsynth.models.covariances import LARGEST_PARAMETER, SMALLEST_PARAMETER
from dpppsynth.models.level_fields import LevelField
from dpppsynth.models.moved_channels import LevelChannel
from dpppsynth.models.moved_posterior import MovedLikelihood, Place
from dpppsynth.models.spectral_fields import SpectralField
from dpppsynth.spatial.marked_offset import AnyOffset


@dataclass(frozen=True, eq=False, repr=False)
class MarkedMovesInference(MovedLevels, LatticeInference):
    """Matern fields of places, one for each type and instant, that share some of their variance (`MovedLevels`).

    Attributes
    ----------
    grid : MarkedMesh
        The regular triangulation at whose vertices moved points were counted, with types, times and a public offset.
    ranges : tuple of float
        In increasing order, like all that follow.
    sigmas, details : tuples of float
        Standard deviations, as in `MovedInference`.
    owns, togethers : tuples of float
        Shares of the variance that each type has to itself, and that change with the time. Priors are all combinations.

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
    kind: ClassVar[str] = "marked-moves"
    combining: ClassVar[tuple[str, ...]] = ("ranges", "sigmas", "details", "owns", "togethers")
    adjustable: ClassVar[frozenset[str]] = frozenset({*combining, "inference", "engine", "even"})

    def __post_init__(self) -> None:
        longest = LONGEST * self.grid.domain.extent
        require_increasing("ranges", self.ranges, SHORTEST * longest, longest)
        require_increasing("sigmas", self.sigmas, SMALLEST_PARAMETER, LARGEST_PARAMETER)
        require_increasing("details", self.details, 0.0, LARGEST_PARAMETER)
        self.require_shares()

    def __repr__(self) -> str:
        return f"MarkedMovesInference({self.grid.space!r}, {self.grid.marks!r}, ranges={self.ranges})"

    @property
    def first(self) -> Place:
        range_, sigma, _, own, together = (len(values) for values in self.lists.values())
        return range_ // 2, sigma // 2, 0, (own - 1) // 2, together // 2

    def prior_at(self, likelihood: MovedLikelihood, number: int) -> LevelField:
        even = number == len(self.combined)
        values = (self.ranges[0], 0.0, 0.0, 0.0, 0.0) if even else self.combined[number]
        range_, sigma, detail, own, together = values
        lattice = cast(LevelChannel, likelihood.channel).each.shape
        each = SpectralField(lattice, likelihood.spacing, sigma, range_, detail)
        return self.levels_of(likelihood, each, own, together, self.columns(likelihood))

    def table_rows(self) -> Rows:
        return [
            ("field", f"Matern, sigma {listed(self.sigmas)}, smoothness 1, on {mesh_words(self.grid.space)}"),
            ("details", f"of an eighth of the range, sigma {listed(self.details)}"),
            ("ranges", ", ".join(f"{each:.4g}" for each in self.ranges) + self.even * ", or even fields"),
            *self.share_rows(),
        ]

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: LatticeStatistic, offset: AnyOffset | None) -> Self:
        require(isinstance(plan, MarkedMoves), "fields of types and times stand behind counts of their moved points")
        marked = cast(MarkedMoves, plan)
        mesh = field_mesh(stated["mesh"], marked.mesh)
        require(mesh is marked.mesh, "the field lives where moved points are counted")
        return cls(grid=MarkedMesh(mesh, marked.marks, offset), **cls.stated_settings(stated))
