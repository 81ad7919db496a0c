"""`StreetInference`: a field along streets, correlated across crossings, inferred from noisy counts or masses."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self, cast

import scipy

from dpppsynth.contract.additive_noise import LaplaceMasses, LatticeStatistic, PrivateStatistic
from dpppsynth.contract.rules import MATERN_SIGMA
from dpppsynth.contract.statistic import mesh_words
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows, instead
from dpppsynth.inference.field_inference import INTERCEPT_SD, require_somewhere
from dpppsynth.inference.sparse_inference import (
    LONGEST,
    SHORTEST,
    AveragedInference,
    require_increasing,
)
from dpppsynth.linear_network.mesh import SegmentCells
from dpppsynth.models.covariances import LARGEST_PARAMETER, SMALLEST_PARAMETER
from dpppsynth.models.likelihood import NoisyMasses
from dpppsynth.models.recipes import around, mesh_from_recipe, segments
from dpppsynth.models.regular_meshes import regular_triangulation
from dpppsynth.models.sparse_fields import (
    SparseField,
    SparseMatern,
    constant,
    moved,
    require_few_unknowns,
    scaled,
    summed,
)
from dpppsynth.models.sparse_posterior import kept_masses
from dpppsynth.models.street_fields import StreetMatern, Ties, edge_numbers, require_few_meeting, street_ties
from dpppsynth.spatial.domains import Window, canonical_json
from dpppsynth.spatial.mesh import Floats, Mesh
from dpppsynth.spatial.offset import Offset

# Vertices along a side of the plane's triangles, at most; smoothness of the field of the plane.
MOST_PLANE = 300
PLANE_SMOOTHNESS = 1.0
# Longest detour, in longest ranges: beyond it streets that cross have nothing to do with one another.
FARTHEST = 1e6
# Logarithm of the prior weight of edges with numbers of their own, relative to a field along streets: where few points
# tell little it would win by chance, and the distances be longer (docs/results/street_rivals.md).
OWN_NUMBERS = -3.0


@dataclass(frozen=True, eq=False, repr=False)
class StreetInference(AveragedInference):
    """A field of the plane plus one along streets, averaged over their settings by evidence; Laplace approximation.

    Attributes
    ----------
    mesh : SegmentCells
        Segments, each with one value.
    plane : (int, int)
        Vertices along x and y of the triangles over the network's box on which the field of the plane lives.
    ranges : tuple of float
        Of the field of the plane, a Matern field of smoothness 1. Like the next three in increasing order; of all four
        the best values are found by climbing from the middle, so that not all are tried.
    street_sigmas, street_ranges, detours : tuples of float
        Standard deviation, range and detour of a turn of the field along streets (`StreetMatern`). With the range 0
        every edge has a number of its own, which needs more evidence than a field along streets.
    sigma : float
        Standard deviation of the field of the plane.
    offset : Offset, optional
        Public base intensity.
    """

    mesh: SegmentCells
    plane: tuple[int, int]
    ranges: tuple[float, ...]
    street_sigmas: tuple[float, ...]
    street_ranges: tuple[float, ...]
    detours: tuple[float, ...]
    sigma: float = MATERN_SIGMA
    offset: Offset | None = None
    kind: ClassVar[str] = "streets"
    averaged: ClassVar[tuple[str, ...]] = ("ranges", "street_sigmas", "detours", "street_ranges")
    adjustable: ClassVar[frozenset[str]] = frozenset({"sigma", *averaged, "inference", "engine", "even"})

    def __post_init__(self) -> None:
        whole = isinstance(self.plane, tuple) and len(self.plane) == 2 and all(type(each) is int for each in self.plane)
        if not whole or not 2 <= min(self.plane) <= max(self.plane) <= MOST_PLANE:
            msg = f"plane: needs two whole numbers from 2 to {MOST_PLANE}, got {self.plane!r}."
            raise InputError(msg)
        longest = LONGEST * self.mesh.domain.extent
        bounds = {
            "ranges": (SHORTEST * longest, longest),
            "street_ranges": (0.0, longest),
            "street_sigmas": (SMALLEST_PARAMETER, LARGEST_PARAMETER),
            "detours": (0.0, FARTHEST * longest),
        }
        for name, (least, most) in bounds.items():
            require_increasing(name, getattr(self, name), least, most)
            object.__setattr__(self, name, tuple(map(float, getattr(self, name))))
        if along := tuple(filter(None, self.street_ranges)):
            require_increasing("street_ranges", along, SHORTEST * longest, longest)
        require_increasing("sigma", (self.sigma,), SMALLEST_PARAMETER, LARGEST_PARAMETER)
        self.require_inference()
        require_few_unknowns(self.unknowns)
        require_few_meeting(self.mesh.domain)
        require_somewhere(self.measure)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.mesh!r}, plane={self.plane!r}, ranges={self.ranges})"

    @property
    def unknowns(self) -> int:
        return len(self.mesh.elements) + self._plane_prior(self.ranges[-1]).unknowns(self.grid)

    @cached_property
    def grid(self) -> Mesh:
        """Triangles over the network's box."""
        box = Window.rectangle(*around(self.mesh.domain))
        return regular_triangulation(box, shape=self.plane)

    def _plane_prior(self, range_: float) -> SparseMatern:
        return SparseMatern(self.sigma, range_, PLANE_SMOOTHNESS)

    def require(self, plan: LatticeStatistic) -> None:
        fits = isinstance(plan, LaplaceMasses) and (
            plan.basis == "tents" or canonical_json(plan.mesh.recipe) == canonical_json(self.mesh.recipe)
        )
        if not fits:
            msg = (
                "prior: a field along streets stands behind noised tents, or counts on its own segments; take "
                f"{instead('tents', 'cells')}."
            )
            raise InputError(msg)

    def likelihood(self, statistic: PrivateStatistic[LatticeStatistic]) -> NoisyMasses:
        plan = statistic.definition
        self.require(plan)
        count = len(self.mesh.elements)
        shares = scipy.sparse.eye_array(count, format="csr") if plan.basis == "cells" else self.mesh.shares(plan.mesh)
        # Noised counts and tents have this likelihood.
        return cast(NoisyMasses, plan.likelihood(statistic, self.measure, shares))

    def bent(self, likelihood: NoisyMasses, mode: Floats, fields: Floats) -> Floats:
        return kept_masses(likelihood, mode, fields, self._placed.T.tocsr(), self.rule)

    @cached_property
    def rule(self) -> "tuple[scipy.sparse.csr_array, Floats]":
        """Segments as they are: the field is constant along each."""
        return scipy.sparse.eye_array(len(self.measure), format="csr"), self.measure

    def prior(self, plan: LatticeStatistic, values: tuple[float, ...]) -> SparseField:
        level = [] if plan.n is not None else [constant(len(self.mesh.elements), INTERCEPT_SD)]
        return self.field_with(values, *level)

    def field_with(self, values: tuple[float, ...], *level: SparseField) -> SparseField:
        """Prior with these settings, and effects of covariates."""
        range_, street_sigma, detour, street_range = values
        plane = moved(self._plane_prior(range_).on(self.grid), self._placed)
        streets = scaled(self._streets(detour, street_range), street_sigma)
        return self.explained(summed(plane, streets, *level))

    def _streets(self, detour: float, street_range: float) -> SparseField:
        """The field along streets with unit variance, whose variances take time and are found once."""
        key = detour, street_range
        if key not in self._found:
            segments = self.mesh.segments
            of_edges = street_range == 0
            self._found[key] = (
                edge_numbers(segments) if of_edges else StreetMatern(1.0, street_range, detour).on(segments, self._ties)
            )
        return self._found[key]

    def distinct(self, values: tuple[float, ...]) -> tuple[float, ...]:
        """The combination with the first detour, if every edge has a number of its own: turns are nothing to it."""
        range_, street_sigma, detour, street_range = values
        return range_, street_sigma, detour if street_range else self.detours[0], street_range

    def log_weight(self, values: tuple[float, ...]) -> float:
        return 0.0 if values[-1] else OWN_NUMBERS

    @cached_property
    def _found(self) -> dict[tuple[float, float], SparseField]:
        return {}

    @cached_property
    def _placed(self) -> "scipy.sparse.csr_array":
        return self.grid.basis(self.mesh.vertices)

    @cached_property
    def _ties(self) -> Ties:
        return street_ties(self.mesh.segments)

    def table_rows(self) -> Rows:
        segments = self.mesh.segments
        along = "sigma {}, range {}, detour {}".format(
            *(" or ".join(f"{each:.4g}" for each in getattr(self, name)) for name in self.averaged[1:])
        )
        return [
            ("field", f"Matern in the plane, sigma {self.sigma:g}, plus one along streets, on {mesh_words(segments)}"),
            ("ranges", ", ".join(f"{each:.4g}" for each in self.ranges) + self.even * ", or an even field"),
            ("along streets", along),
            ("inference", self.way),
            *self.public_rows(),
        ]

    def public_numbers(self) -> JsonObject:
        return {
            "field_segments": len(self.mesh.elements),
            "field_sigma": self.sigma,
            **{name: getattr(self, name) for name in self.averaged},
            "inference": self.inference,
        }

    def to_dict(self) -> JsonObject:
        return super().to_dict() | {"plane": list(self.plane)}

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: LatticeStatistic, offset: Offset | None) -> Self:
        return cls(
            mesh=SegmentCells.of(segments(mesh_from_recipe(stated["mesh"], plan.domain))),
            plane=tuple(stated["plane"]),
            **cls.stated_settings(stated),
            offset=offset,
        )
