"""`BoundedCounts`: cell counts with truncated discrete Laplace noise, so that no error exceeds a bound."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import shapely

from dpppsynth.contract.additive_noise import LaplaceMasses, LatticeStatistic, PrivateStatistic
from dpppsynth.contract.parameter_forms import GIVEN, WHOLE, Form, const
from dpppsynth.contract.statistic import FileCheck, Parameters, capped, require
from dpppsynth.core.crs import crs_member
from dpppsynth.core.errors import InputError
from dpppsynth.core.published_files import strict_json
from dpppsynth.core.randomness import RngLike
from dpppsynth.core.wording import Rows
from dpppsynth.mechanisms.bounded.bound import bounded_counts, require_error_delta, require_max_error
from dpppsynth.models.likelihood import MassLikelihood, NoisyMasses
from dpppsynth.models.recipes import mesh_from_recipe
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.noise import TRUNCATED, DiscreteNoise, require_narrow, truncated_laplace_noise
from dpppsynth.privacy.relations import Relation
from dpppsynth.privacy.truncated.geometric import TruncatedGeometric
from dpppsynth.release.certificate import COUNTS
from dpppsynth.spatial.domains import Domain, canonical_json
from dpppsynth.spatial.mesh import Floats, Ints, Mesh


def counted_cells(mesh: Mesh, counts: Ints) -> dict[str, Any]:
    """GeoJSON of the elements' parts inside the domain, each with its count."""
    shapes = shapely.to_geojson(mesh.element_parts)
    features = [
        {"type": "Feature", "properties": {"cell": k, "count": count}, "geometry": json.loads(shape)}
        for k, (count, shape) in enumerate(zip(counts.tolist(), shapes, strict=True))
    ]
    return {"type": "FeatureCollection", "crs": crs_member(mesh.domain.crs), "features": features}


@dataclass(frozen=True, eq=False, repr=False)
class BoundedCounts(LaplaceMasses):
    """Counts per cell with discrete Laplace noise that is drawn again where it exceeds `max_error`.

    Attributes
    ----------
    delta : float
        Budget, quoted on the certificate.
    max_error : int
        No count is off by more, from the number of points that are measured: those that the relation's cap lets count.

    Raises
    ------
    PrivacyCheckError
        When the bound on the error costs more than `delta`.
    """

    delta: float
    max_error: int
    form: ClassVar[Form] = LaplaceMasses.form | {
        "basis": const("cells"),
        "lattice_bits": const(0),
        "delta": GIVEN,
        "max_error": WHOLE,
    }

    def __post_init__(self) -> None:
        if self.basis != "cells":
            msg = f"basis: errors are bounded for counts of cells, 'cells', got {self.basis!r}."
            raise InputError(msg)
        super().__post_init__()
        require_error_delta(self.delta)
        object.__setattr__(self, "max_error", require_max_error(self.relation, self.max_error))
        require_narrow(self.scale, self.max_error)
        self.guarantee.require(self.epsilon, self.delta)

    def __repr__(self) -> str:
        budget = f"epsilon={self.epsilon:g}, delta={self.delta:g}, max_error={self.max_error}"
        return f"BoundedCounts({self.mesh!r}, {self.relation!r}, {budget})"

    @cached_property
    def guarantee(self) -> Guarantee:
        public: dict[str, Any] = {"scale": self.scale, "max_error": self.max_error, "delta": self.delta}
        return bounded_counts(self.relation, **public, domain=self.domain)

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        p = parameters
        require(type(p["max_error"]) is int, "max_error is a whole number")
        mesh, sizes = mesh_from_recipe(p["mesh"], domain), (p["n"], p["expected_n"])
        return cls(p["basis"], mesh, capped(relation), *sizes, p["epsilon"], p["delta"], p["max_error"])

    def noise_name(self, *, seeded: bool = False) -> str:
        return TRUNCATED + super().noise_name(seeded=seeded)

    def validate_released(self, lattice: Ints) -> None:
        """Refuse counts (k,) that are off by more than `max_error`, alone or together."""
        low, high = int(lattice.min()), int(lattice.max())
        total, room = int(lattice.sum()), self.max_error * len(lattice)
        require(low >= -self.max_error, "no count is off by more than max_error")
        near = self.n is None or (high <= self.n + self.max_error and abs(total - self.n) <= room)
        require(near, "no count is off by more than max_error")

    @property
    def following(self) -> dict[str, FileCheck]:
        return {COUNTS: self._require_counts}

    def _require_counts(self, content: bytes, lattice: Ints) -> None:
        """Refuse another table, coordinates to rounding across machines."""
        stated, expected = strict_json(content), counted_cells(self.mesh, np.maximum(lattice, 0))
        shapes = [each.pop("geometry") for each in stated["features"]]
        for each in expected["features"]:
            del each["geometry"]
        require(canonical_json(stated) == canonical_json(expected), "cells have the released counts")
        require(all(shape.keys() == {"type", "coordinates"} for shape in shapes), "cells are shapes")
        cells = shapely.from_geojson([json.dumps(shape) for shape in shapes])
        near = shapely.equals_exact(cells, self.mesh.element_parts, 1e-9 * self.domain.diameter, normalize=True)
        require(bool(near.all()), "cells are those of the mesh")

    def likelihood(
        self, statistic: PrivateStatistic[LatticeStatistic], measure: Floats, tents: Floats
    ) -> MassLikelihood:
        """Likelihood of a field given noised counts, with the variance of the truncated noise."""
        masses = (statistic.masses, self.noise_scale, measure, tents, self.n)
        return NoisyMasses(*masses, own_variance=self.noise_variance)

    @property
    def noise_variance(self) -> float:
        """Variance of the noise of a count, in points."""
        return TruncatedGeometric(self.scale, self.max_error).variance

    def noise_rows(self) -> Rows:
        kept = "" if self.persons_by is None else " of the points that are drawn, not of all points"
        law = f"discrete Laplace of scale {self.noise_scale:.4g} points, standard deviation"
        return [
            ("noise", f"{law} {self.noise_variance**0.5:.4g}, drawn again beyond the largest error"),
            ("largest error", f"{self.max_error:,} points in any count{kept}"),
        ]

    def source(self, rng: RngLike) -> DiscreteNoise:
        budget: dict[str, Any] = {"sensitivity": self.sensitivity, "epsilon": self.epsilon}
        return truncated_laplace_noise(self.scale, self.max_error, **budget, rng=rng)
