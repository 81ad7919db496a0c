"""`MarkedInference`: a field over places, times and types inferred from noised masses."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dpppsynth.contract.additive_noise import LatticeStatistic, PrivateStatistic
from dpppsynth.contract.rules import MATERN_SIGMA
from dpppsynth.contract.statistic import require
from dpppsynth.core.arguments import flag
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.inference.field_inference import (
    INTERCEPT_SD,
    FieldInference,
    Posterior,
    field_mesh,
    opened_values,
    require_somewhere,
)
from dpppsynth.inference.sparse_inference import LONGEST, SHORTEST, AveragedInference, require_increasing
from dpppsynth.mechanisms.marked.intensity import MarkedIntensity, MarkedMean, MarkedMesh
from dpppsynth.mechanisms.marked.statistic import MarkedMasses
from dpppsynth.models.covariances import LARGEST_PARAMETER, SMALLEST_PARAMETER
from dpppsynth.models.likelihood import NoisyMasses
from dpppsynth.models.marked_fields import MarkedPrior, clock_field
from dpppsynth.models.sparse_fields import SMOOTHNESS, SparseField, SparseMatern, require_few_unknowns
from dpppsynth.models.spline_fields import SplineLattice, SplinePlaces
from dpppsynth.spatial.covariates import Design
from dpppsynth.spatial.mark_space import Marks
from dpppsynth.spatial.marked_offset import AnyOffset
from dpppsynth.spatial.mesh import Floats, Mesh

# Nodes of B-splines along a side, at most.
MOST_NODES = 1000
# Values of the field up to which its nodes lie at half the spacing of the tents, where there are no times.
FEW_VALUES = 8_000
# Builders of meshes of a regular grid's triangles or squares, over windows and over streets.
REGULAR = ("regular", "trace")


def field_nodes(tents: Mesh, marks: Marks) -> tuple[int, int] | None:
    """Nodes along x and y of the B-splines behind tents: the tents' own, or at half their spacing where they are few.

    None where the tents' mesh is not regular.
    """
    if tents.recipe["builder"] not in REGULAR:
        return None
    (types, hats), (nx, ny) = marks.shape, tents.recipe["shape"]
    parts = 2 if hats == 1 and 4 * types * len(tents.vertices) <= FEW_VALUES else 1
    return parts * (nx - 1) + 1, parts * (ny - 1) + 1


class GridInference(FieldInference):
    """Base of estimators by a field of places, times and types.

    Attributes
    ----------
    grid : MarkedMesh
        Types, instants and the mesh in space, with the public offset.
    """

    grid: MarkedMesh

    # The base asks for the vertices of its mesh, their measure and a rule of integration, which the grid has.
    @property
    def mesh(self) -> MarkedMesh:  # type: ignore[override]
        """Vertices at all instants, for all types."""
        return self.grid

    @cached_property
    def measure(self) -> Floats:
        """(C K V,) integrals of the products of basis functions, times the offset."""
        return self.grid.measure

    @property
    def rule(self) -> tuple[sp.csr_array, Floats]:
        return self.grid.rule

    @property
    def offset(self) -> AnyOffset | None:  # type: ignore[override]
        """Public base intensity."""
        return self.grid.offset

    @property
    def places(self) -> Mesh:
        return self.grid.space

    def spread(self, columns: Floats) -> Floats:
        """(C K V, p) covariates, the same at all times and for all types."""
        types, hats, _ = self.grid.shape
        return np.tile(columns, (types * hats, 1))

    def normalise(self, fields: Floats, n: float | Floats | None) -> NDArray[np.float32]:
        if n is not None:
            basis, weight = self.rule
            flat = fields.reshape(-1, fields.shape[-1])
            flat = flat - flat.max(axis=1, keepdims=True)
            totals = np.array([weight @ np.exp(basis @ each) for each in flat])
            fields = (flat + np.log(n / totals)[:, None]).reshape(fields.shape)
        return fields.astype(np.float32)

    def posterior_mean(self, posterior: Posterior) -> MarkedMean:  # type: ignore[override]
        return MarkedMean(self.grid, posterior.flat)

    def released(self, posterior: Posterior, plan: LatticeStatistic) -> MarkedIntensity:  # type: ignore[override]
        return MarkedIntensity(self.grid, self.released_field(posterior, plan).reshape(self.grid.shape))


@dataclass(frozen=True, eq=False, repr=False)
class MarkedInference(GridInference, AveragedInference):
    """A field of places, times and types, averaged over its settings by evidence; Laplace approximation.

    Attributes
    ----------
    grid : MarkedMesh
        The statistic's hats and types, and its tents or a refinement of them, with the public offset.
    ranges : tuple of float
        Of the fields of places, Matern fields of smoothness 1, along segments 1/2. Like the next three in increasing
        order; of all four the best values are found by climbing from the middle.
    owns, time_sigmas, togethers : tuples of float
        As in `MarkedPrior`; one value, 0, for what there is not.
    time_range : float
        Of the curves of times, in their unit; 0 where there are none.
    sigma : float
        Standard deviation of the field of places that all types share.
    lattice : (int, int), optional
        Nodes along x and y of the B-splines over the domain's box of which fields of places are made
        (`SplineLattice`); without it their unknowns are the values at the mesh's vertices.
    by_type : bool
        Whether covariates have an effect for each type instead of the same for all.
    """

    grid: MarkedMesh
    ranges: tuple[float, ...]
    owns: tuple[float, ...]
    time_sigmas: tuple[float, ...]
    togethers: tuple[float, ...]
    time_range: float
    sigma: float = MATERN_SIGMA
    lattice: tuple[int, int] | None = None
    by_type: bool = False
    kind: ClassVar[str] = "marks"
    averaged: ClassVar[tuple[str, ...]] = ("ranges", "owns", "time_sigmas", "togethers")
    adjustable: ClassVar[frozenset[str]] = frozenset(
        {"sigma", *averaged, "time_range", "inference", "engine", "by_type"}
    )

    def __post_init__(self) -> None:
        longest = LONGEST * self.grid.domain.extent
        types, hats, _ = self.grid.shape
        require_increasing("ranges", self.ranges, SHORTEST * longest, longest)
        require_increasing("sigma", (self.sigma,), SMALLEST_PARAMETER, LARGEST_PARAMETER)
        for name, there in (("owns", types > 1), ("time_sigmas", hats > 1), ("togethers", hats > 1)):
            require_increasing(name, getattr(self, name), 0.0, LARGEST_PARAMETER if there else 0.0)
        times = self.grid.marks.times
        least, most = (0.0, 0.0) if times is None else (SHORTEST * times.length, LONGEST * times.length)
        require_increasing("time_range", (self.time_range,), least, most)
        for name in self.averaged:
            object.__setattr__(self, name, tuple(map(float, getattr(self, name))))
        if flag("by_type", self.by_type) and types == 1:
            msg = "by_type: the points have one type, so effects are of that one; leave it out."
            raise InputError(msg)
        require_lattice(self.lattice)
        require_few_unknowns(self.unknowns)
        self.require_inference()
        for each in self.measure.reshape(types * hats, -1):
            require_somewhere(each)

    def __repr__(self) -> str:
        return f"MarkedInference({self.grid.space!r}, {self.grid.marks!r}, ranges={self.ranges})"

    @property
    def unknowns(self) -> int:
        types, hats, _ = self.grid.shape
        places = self._space(self.ranges[-1]).unknowns(self._nodes.lattice.mesh if self._nodes else self.grid.space)
        return places * (1 + (types > 1) * types + (hats > 1) * hats)

    def require(self, plan: LatticeStatistic) -> None:
        require(isinstance(plan, MarkedMasses), "a field of places, times and types stands behind marked tents")

    def likelihood(self, statistic: PrivateStatistic[LatticeStatistic]) -> NoisyMasses:
        plan = cast(MarkedMasses, statistic.definition)
        return self.behind(plan, statistic, plan.field_shares(self.grid.space))

    def _space(self, range_: float) -> SparseMatern:
        return SparseMatern(self.sigma, range_, SMOOTHNESS[1 if self.grid.space.kind == "segment" else 2][0])

    def prior(self, plan: LatticeStatistic, values: tuple[float, ...]) -> SparseField:
        range_, own, time, together = values
        space = self._space(range_)
        placed = self._nodes.field(space) if self._nodes else space.on(self.grid.space)
        field = MarkedPrior(own, time, together).on(
            placed, self._clock, self.grid.shape[0], None if plan.n is not None else INTERCEPT_SD
        )
        return self.explained(field)

    @property
    def told(self) -> Design | None:
        design, types = self.covariates, self.grid.marks.types
        if design is None or types is None or not self.by_type:
            return design
        names = tuple(f"{name}, {each}" for each in types.values for name in design.names)
        count = len(types.values)
        return replace(design, names=names, mean=design.mean * count, sd=design.sd * count, values=None)

    def spread(self, columns: Floats) -> Floats:
        """(C K V, p) covariates at all values, or (C K V, C p) with columns for each type."""
        if not self.by_type:
            return super().spread(columns)
        types, hats, _ = self.grid.shape
        return np.asarray(np.kron(np.eye(types), np.tile(columns, (hats, 1))), dtype=np.float64)

    @cached_property
    def _nodes(self) -> SplinePlaces | None:
        return (
            None
            if self.lattice is None
            else SplinePlaces(SplineLattice(self.grid.domain, self.lattice), self.grid.space)
        )

    def unseen(self, place: int, k: int, rng: np.random.Generator) -> Floats | float:
        """(k, C K V) what the fields of places have between the nodes of the lattice, as the prior has it.

        Noised masses do not see it. Without it intervals would be those of a smoother intensity.
        """
        if self._nodes is None:
            return 0.0
        range_, own, _, together = self.combined[place]
        types, hats, _ = self.grid.shape

        def drawn(count: int) -> Floats:
            return cast(SplinePlaces, self._nodes).unseen(self._space(range_), count * k, rng).reshape(count, k, -1)

        found = np.repeat(drawn(1)[0][:, None], types, axis=1)
        if types > 1 and own:
            found = found + own * np.moveaxis(drawn(types), 0, 1)
        found = np.repeat(found[:, :, None], hats, axis=2)
        if self._clock is not None and together:
            clock = self._clock
            root = clock.placement @ np.linalg.inv(np.linalg.cholesky(clock.precision.toarray())).T
            found += together * np.einsum("th,hkv->ktv", root, drawn(hats))[:, None]
        return found.reshape(k, -1)

    def posterior_mean(self, posterior: Posterior) -> MarkedMean:  # type: ignore[override]
        return MarkedMean(self.grid, posterior.flat, self._between(posterior.length_scale.ravel()))

    def _between(self, ranges: Floats) -> Floats | None:
        """(k,) standard deviations that draws with these ranges have at a place beside their values at vertices."""
        if self._nodes is None:
            return None
        return np.asarray(self.sigma * np.sqrt(self._nodes.between) / ranges)

    def middle(self, posterior: Posterior, plan: LatticeStatistic) -> Floats:
        """(C K V,) median of the log-intensity, without what chance has left of the parts that nodes leave out."""
        found = super().middle(posterior, plan)
        if self._nodes is None:
            return found
        explained = np.zeros_like(found)
        if self.covariates is not None and posterior.effects is not None:
            effects = posterior.effects.reshape(-1, posterior.effects.shape[-1]).mean(axis=0)
            explained = self.spread(opened_values(self.covariates)) @ effects
        smooth = self._nodes.smooth((found - explained).reshape(self.grid.shape)).ravel()
        return smooth + explained

    @cached_property
    def _clock(self) -> SparseField | None:
        times = self.grid.marks.times
        return None if times is None else clock_field(times, self.time_range)

    def table_rows(self) -> Rows:
        rows = [
            ("field", f"Matern, sigma {self.sigma:g}, ranges {', '.join(f'{each:.4g}' for each in self.ranges)}"),
            ("inference", self.way),
        ]
        parts = []
        if self.grid.shape[0] > 1:
            parts.append(f"each type's own part {_listed(self.owns)} of it")
        if self.grid.shape[1] > 1:
            parts.append(f"times {_listed(self.time_sigmas)}, places with times of their own {_listed(self.togethers)}")
        return [*rows[:1], *([("beside it", "; ".join(parts))] if parts else []), *rows[1:], *self.public_rows()]

    def public_numbers(self) -> JsonObject:
        return {"field_vertices": len(self.grid.space.vertices), **{n: list(getattr(self, n)) for n in self.averaged}}

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: LatticeStatistic, offset: AnyOffset | None) -> Self:
        require(isinstance(plan, MarkedMasses), "a field of places, times and types stands behind marked tents")
        marked = cast(MarkedMasses, plan)
        return cls(
            grid=MarkedMesh(field_mesh(stated["mesh"], marked.mesh), marked.marks, offset),
            **cls.stated_settings(stated),
            lattice=field_nodes(marked.mesh, marked.marks),
        )


def require_lattice(shape: tuple[int, int] | None) -> None:
    """Refuse anything but two small whole numbers, or none."""
    whole = shape is None or (isinstance(shape, tuple) and [type(each) for each in shape] == [int, int])
    if not whole or (shape is not None and not 2 <= min(shape) <= max(shape) <= MOST_NODES):
        msg = f"lattice: needs two whole numbers from 2 to {MOST_NODES}, or None, got {shape!r}."
        raise InputError(msg)


def _listed(values: tuple[float, ...]) -> str:
    return " or ".join(f"{each:g}" for each in values)
