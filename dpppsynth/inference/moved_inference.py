"""`MovedInference`: a Matern field inferred from counts of moved points on a lattice."""

from dataclasses import dataclass
from typing import ClassVar, Self

from dpppsynth.contract.additive_noise import LatticeStatistic
from dpppsynth.contract.rules import planar_rules
from dpppsynth.contract.statistic import mesh_words, require
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.inference.field_inference import field_mesh, require_somewhere
from dpppsynth.inference.moved_lattice import LatticeInference
from dpppsynth.inference.sparse_inference import LONGEST, SHORTEST, require_increasing
from dpppsynth.models.covariances import LARGEST_PARAMETER, SMALLEST_PARAMETER
from dpppsynth.models.moved_posterior import (
    MovedLikelihood,
    Place,
)
from dpppsynth.models.spectral_fields import SpectralField
from dpppsynth.spatial.mesh import Mesh
from dpppsynth.spatial.offset import Offset


@dataclass(frozen=True, eq=False, repr=False)
class MovedInference(LatticeInference):
    """Prior of a Matern field of smoothness 1, chosen by how well one half of the moved points predicts the other.

    Attributes
    ----------
    mesh : Mesh
        The regular triangulation at whose vertices moved points were counted.
    ranges : tuple of float
        In increasing order.
    sigmas : tuple of float
        Standard deviations of the field, in increasing order.
    details : tuple of float
        Standard deviations of details, of an eighth of the range, in increasing order from 0 on. Priors are all
        combinations with ranges and sigmas.
    offset : Offset, optional
        Public base intensity.
    """

    mesh: Mesh
    ranges: tuple[float, ...]
    sigmas: tuple[float, ...]
    details: tuple[float, ...] = planar_rules.MOVED_DETAILS
    offset: Offset | None = None
    kind: ClassVar[str] = "moved"
    adjustable: ClassVar[frozenset[str]] = frozenset({"ranges", "sigmas", "details", "inference", "engine", "even"})

    def __post_init__(self) -> None:
        longest = LONGEST * self.mesh.domain.extent
        require_increasing("ranges", self.ranges, SHORTEST * longest, longest)
        require_increasing("sigmas", self.sigmas, SMALLEST_PARAMETER, LARGEST_PARAMETER)
        require_increasing("details", self.details, 0.0, LARGEST_PARAMETER)
        for name in ("ranges", "sigmas", "details"):
            object.__setattr__(self, name, tuple(map(float, getattr(self, name))))
        self.require_inference()
        require_somewhere(self.measure)

    def __repr__(self) -> str:
        return f"MovedInference({self.mesh!r}, ranges={self.ranges}, sigmas={self.sigmas}, details={self.details})"

    @property
    def lists(self) -> dict[str, tuple[float, ...]]:
        return {"range": self.ranges, "sigma": self.sigmas, "details": self.details}

    @property
    def first(self) -> Place:
        return len(self.ranges) // 2, len(self.sigmas) // 2, 0

    def prior_at(self, likelihood: MovedLikelihood, number: int) -> SpectralField:
        even = number == len(self.combined)
        range_, sigma, detail = (self.ranges[0], 0.0, 0.0) if even else self.combined[number]
        shape, columns = likelihood.channel.shape, self.columns(likelihood)
        return SpectralField(shape, likelihood.spacing, sigma, range_, detail, columns)

    def table_rows(self) -> Rows:
        sigmas = " or ".join(f"{each:g}" for each in self.sigmas)
        return [
            ("field", f"Matern, sigma {sigmas}, smoothness 1, on {mesh_words(self.mesh)}"),
            ("details", f"of an eighth of the range, sigma {' or '.join(f'{each:g}' for each in self.details)}"),
            ("ranges", ", ".join(f"{each:.4g}" for each in self.ranges) + self.even * ", or an even field"),
            ("inference", self.way),
            *self.public_rows(),
        ]

    def public_numbers(self) -> JsonObject:
        return {
            "field_vertices": len(self.mesh.vertices),
            "field_sigmas": self.sigmas,
            "field_details": self.details,
            "ranges": self.ranges,
            "inference": self.inference,
        }

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: LatticeStatistic, offset: Offset | None) -> Self:
        mesh = field_mesh(stated["mesh"], plan.mesh)
        require(mesh is plan.mesh, "the field lives where moved points are counted")
        return cls(mesh=mesh, **cls.stated_settings(stated), offset=offset)
