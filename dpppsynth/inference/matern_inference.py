"""`MaternInference`: a Matern field of sparse precision inferred from noisy masses, as finely as they allow."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np

from dpppsynth.contract.additive_noise import LaplaceMasses, LatticeStatistic, PrivateStatistic
from dpppsynth.contract.rules import MATERN_SIGMA
from dpppsynth.contract.statistic import mesh_words, require
from dpppsynth.core.arguments import positive
from dpppsynth.core.errors import InputError
from dpppsynth.core.progress import Progress
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.inference.field_inference import (
    INTERCEPT_SD,
    NO_RANGE,
    Posterior,
    field_mesh,
    require_few,
    require_somewhere,
)
from dpppsynth.inference.sparse_inference import LONGEST, MOST_SAMPLED, SHORTEST, SparseInference
from dpppsynth.models.covariances import LARGEST_PARAMETER, SMALLEST_PARAMETER
from dpppsynth.models.likelihood import NoisyMasses
from dpppsynth.models.matern_search import FORGOTTEN, MaternSearch, non_negligible
from dpppsynth.models.recipes import are_within, mesh_from_recipe
from dpppsynth.models.regular_meshes import refine
from dpppsynth.models.sparse_fields import SMOOTHNESS, SparseMatern, require_few_unknowns
from dpppsynth.models.sparse_posterior import SparsePosterior
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.mesh import Mesh
from dpppsynth.spatial.offset import Offset

# Times the memory that the factors of a smoother field take.
SMOOTH = 4


@dataclass(frozen=True, eq=False, repr=False)
class MaternInference(SparseInference):
    """Prior of a Matern field, averaged over its parameters by evidence; Laplace approximation of its posterior.

    Attributes
    ----------
    mesh : Mesh
        Mesh of the field: the tents' own, or a refinement of it; behind counts, triangles nested in the cells.
    ranges : tuple of float
        In increasing order; the best is found by climbing from the third, so that not all are tried.
    smoothness : tuple of float
        1 and 3 in the plane, 0.5 and 1.5 along networks.
    sigma : float
    sigmas : tuple of float
        Smaller standard deviations, in decreasing order, that are averaged over as well, with the same ranges.
    offset : Offset, optional
        Public base intensity.
    """

    mesh: Mesh
    ranges: tuple[float, ...]
    smoothness: tuple[float, ...] = (1.0,)
    sigma: float = MATERN_SIGMA
    sigmas: tuple[float, ...] = ()
    offset: Offset | None = None
    kind: ClassVar[str] = "matern"
    adjustable: ClassVar[frozenset[str]] = frozenset(
        {"sigma", "sigmas", "ranges", "smoothness", "inference", "engine", "even"}
    )

    def __post_init__(self) -> None:
        require_few("ranges", self.ranges)
        longest = LONGEST * self.mesh.domain.extent
        if list(self.ranges) != sorted(set(self.ranges)) or not SHORTEST * longest <= self.ranges[0] <= self.ranges[-1]:
            msg = f"ranges: must increase from one to the next, from {SHORTEST * longest:g} on, got {self.ranges!r}."
            raise InputError(msg)
        if self.ranges[-1] > longest:
            msg = (
                f"ranges: must be at most {longest:g} in this domain, or matrices are not precise enough, got "
                f"{self.ranges!r}."
            )
            raise InputError(msg)
        known = SMOOTHNESS[1 if self.mesh.kind == "segment" else 2]
        smoothness = self.smoothness
        some = isinstance(smoothness, tuple) and 0 < len(smoothness) <= len(known) and set(smoothness) <= set(known)
        if not some or list(smoothness) != sorted(set(smoothness)):
            msg = f"smoothness: needs a tuple of some of {known} on this mesh, in order, got {smoothness!r}."
            raise InputError(msg)
        positive("sigma", self.sigma, most=LARGEST_PARAMETER)
        if self.sigma < SMALLEST_PARAMETER:
            msg = f"sigma: must be at least {SMALLEST_PARAMETER:g}, got {self.sigma!r}."
            raise InputError(msg)
        self._require_sigmas()
        for name in ("ranges", "smoothness", "sigmas"):
            object.__setattr__(self, name, tuple(map(float, getattr(self, name))))
        self.require_inference()
        require_few_unknowns(self.unknowns * (SMOOTH if self.smoothness[-1] > known[0] else 1))
        require_somewhere(self.measure)

    @property
    def unknowns(self) -> int:
        return SparseMatern(self.sigma, self.ranges[-1], self.smoothness[0]).unknowns(self.mesh)

    def _require_sigmas(self) -> None:
        if self.sigmas != ():
            require_few("sigmas", self.sigmas)
            whole = (self.sigma, *self.sigmas)
            if list(whole) != sorted(set(whole), reverse=True) or whole[-1] < SMALLEST_PARAMETER:
                msg = (
                    f"sigmas: must decrease from one to the next, from below sigma = {self.sigma:g} to "
                    f"{SMALLEST_PARAMETER:g} at least, got {self.sigmas!r}."
                )
                raise InputError(msg)

    def changed(self, changes: Mapping[str, Any], plan: LatticeStatistic) -> Self:
        """A copy with other settings; for NUTS on a coarser mesh, where tents are behind it and it takes no finer."""
        if changes.get("inference") == "nuts" and plan.basis == "tents" and self.covariates is None:
            mesh = sampled_mesh(plan.mesh, self.mesh, max(changes.get("ranges", self.ranges)))
            if mesh is not self.mesh:
                return replace(self, mesh=mesh).changed(changes, plan)
        return super().changed({"sigmas": (), **changes} if "sigma" in changes else changes, plan)

    @property
    def scales(self) -> tuple[float, ...]:
        return self.ranges * len(self.smoothness) * (1 + len(self.sigmas)) + self.even * (NO_RANGE,)

    def __repr__(self) -> str:
        return f"MaternInference({self.mesh!r}, ranges={self.ranges}, smoothness={self.smoothness})"

    def require(self, plan: LatticeStatistic) -> None:
        if not isinstance(plan, LaplaceMasses):
            msg = (
                "prior: a Matern field of sparse precision stands behind noised tents or counts alone; take mechanism "
                "'tents'."
            )
            raise InputError(msg)
        if plan.basis == "cells":
            require(isinstance(plan.domain, Window), "behind counts of segments stands a field along streets")
            nested = are_within(self.mesh.recipe, plan.mesh)
            require(nested, "the mesh of a field behind counts is nested in their cells")

    def likelihood(self, statistic: PrivateStatistic[LatticeStatistic]) -> NoisyMasses:
        """Likelihood of the field given noised counts or tents."""
        plan = cast(LaplaceMasses, statistic.definition)
        return self.behind(plan, statistic, plan.field_shares(self.mesh, self.pieces))

    def _fit(self, statistic: PrivateStatistic[LatticeStatistic], rng: np.random.Generator, say: Progress) -> Posterior:
        plan, likelihood = statistic.definition, self.likelihood(statistic)
        start = self.started(likelihood, self.centre(plan))
        places: dict[int, SparsePosterior] = {}
        for k, sigma in enumerate((self.sigma, *self.sigmas)):
            search = MaternSearch(
                likelihood,
                self.mesh,
                sigma,
                self.smoothness,
                self.ranges,
                self.centre(plan),
                None if plan.n is not None else INTERCEPT_SD,
                say,
                start,
                explained=self.explained,
            )
            found = {
                (k * len(self.smoothness) + self.smoothness.index(s)) * len(self.ranges) + self.ranges.index(r): fit
                for (s, r), fit in search.posteriors().items()
            }
            best = max(fit.log_evidence for fit in found.values())
            if places and best < max(fit.log_evidence for fit in places.values()) + FORGOTTEN:
                # Evidence has one summit over sigma, and still smaller ones lie further below it.
                break
            places = non_negligible(places | found)
        if self.even:
            others = len(self.scales) - 1
            places[others] = self.even_fit(likelihood, self.centre(plan), others)
        return self.average(places, likelihood, rng, say)

    def table_rows(self) -> Rows:
        smooth = " or ".join(f"{each:g}" for each in self.smoothness)
        sigmas = " or ".join(f"{each:g}" for each in (self.sigma, *self.sigmas))
        return [
            ("field", f"Matern, sigma {sigmas}, smoothness {smooth}, on {mesh_words(self.mesh)}"),
            ("ranges", ", ".join(f"{each:.4g}" for each in self.ranges) + self.even * ", or an even field"),
            ("inference", self.way),
            *self.public_rows(),
        ]

    def public_numbers(self) -> JsonObject:
        return {
            "field_vertices": len(self.mesh.vertices),
            "field_sigma": self.sigma,
            "ranges": self.ranges,
            "inference": self.inference,
        }

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: LatticeStatistic, offset: Offset | None) -> Self:
        nested = plan.basis == "cells"
        return cls(
            mesh=mesh_from_recipe(stated["mesh"], plan.domain) if nested else field_mesh(stated["mesh"], plan.mesh),
            **cls.stated_settings(stated),
            offset=offset,
        )


def sampled_mesh(tents: Mesh, finest: Mesh, range_: float) -> Mesh:
    """The finest refinement of tents, at most a given one, on which NUTS takes a field of this range."""
    if tents.recipe["builder"] != "regular":
        return finest
    field = SparseMatern(1.0, range_, SMOOTHNESS[2][0])
    factor = round((finest.recipe["shape"][0] - 1) / (tents.recipe["shape"][0] - 1))
    while factor > 1 and field.unknowns(finest) > MOST_SAMPLED:
        factor -= 1
        finest = refine(tents, factor)
    return finest
