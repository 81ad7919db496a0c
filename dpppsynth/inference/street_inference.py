"""`StreetInference`: a field along streets behind noisy counts or masses, which knows that streets carry on."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from operator import itemgetter
from typing import ClassVar, Self, cast

import numpy as np
import scipy

from dpppsynth.contract.additive_noise import LaplaceMasses, LatticeStatistic, PrivateStatistic
from dpppsynth.contract.estimator import (
    covariate_rows,
    covariates_of,
    offset_rows,
    offset_stated,
)
from dpppsynth.contract.mesh_sizes import mesh_words
from dpppsynth.contract.rules import MATERN_SIGMA
from dpppsynth.core.arguments import flag, one_of
from dpppsynth.core.errors import InputError
from dpppsynth.core.progress import Progress, Step, each_of
from dpppsynth.core.types import JsonObject, JsonRead
from dpppsynth.core.wording import Rows
from dpppsynth.inference.field_inference import (
    INTERCEPT_SD,
    NO_RANGE,
    require_somewhere,
)
from dpppsynth.inference.posterior import Posterior
from dpppsynth.inference.sparse_inference import INFERENCES, LONGEST, SHORTEST, SparseInference
from dpppsynth.linear_network.mesh import SegmentCells
from dpppsynth.models.covariances import LARGEST_PARAMETER, SMALLEST_PARAMETER
from dpppsynth.models.likelihood import NoisyMasses
from dpppsynth.models.matern_search import FORGOTTEN
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
from dpppsynth.models.sparse_posterior import SparsePosterior, kept_masses, sparse_posterior
from dpppsynth.models.street_fields import StreetMatern, Ties, require_few_meeting, street_ties
from dpppsynth.spatial.covariates import Design
from dpppsynth.spatial.domains import Window, canonical_json
from dpppsynth.spatial.mesh import Floats, Mesh
from dpppsynth.spatial.offset import Offset

# Vertices along a side of the plane's triangles, at most; smoothness of the field of the plane.
MOST_PLANE = 300
PLANE_SMOOTHNESS = 1.0
# Longest detour, in longest ranges: beyond it streets that cross have nothing to do with one another.
FARTHEST = 1e6
# Newton decrement at which the search over settings leaves a posterior; the evidence is right to half of it.
ROUGHLY = 2.0
# Values of one setting that a model may average over, at most.
MOST_VALUES = 8
AVERAGED = ("ranges", "street_sigmas", "detours", "street_ranges")


class ClimbedInference(SparseInference):
    """Base of fields with several settings, averaged over the likely ones, which are found by climbing the evidence."""

    # Settings that are averaged over, in the order in which the evidence is climbed.
    averaged: ClassVar[tuple[str, ...]]

    @abstractmethod
    def likelihood(self, statistic: PrivateStatistic[LatticeStatistic]) -> NoisyMasses:
        """Likelihood of the field given a statistic."""

    @abstractmethod
    def prior(self, plan: LatticeStatistic, *values: float) -> SparseField:
        """Prior with one value of each averaged setting, an intercept where n is secret, and effects of covariates."""

    @property
    def scales(self) -> tuple[float, ...]:
        """The ranges, once for each combination with the other settings."""
        return tuple(values[0] for values in self.combined())

    def combined(self) -> Iterator[tuple[float, ...]]:
        """Combinations of the averaged settings."""
        return product(*(getattr(self, name) for name in self.averaged))

    def _fit(self, statistic: PrivateStatistic[LatticeStatistic], rng: np.random.Generator, say: Progress) -> Posterior:
        likelihood = self.likelihood(statistic)
        fits = self.likely_fits(statistic.definition, likelihood, self.centre(statistic.definition), say)
        say("draws")
        return self.average(fits, likelihood, rng)

    def likely_fits(
        self, plan: LatticeStatistic, likelihood: NoisyMasses, centre: float, say: Progress
    ) -> dict[int, SparsePosterior]:
        """Posteriors under the likely settings, by their places in `scales`."""
        tried: dict[tuple[float, ...], tuple[float, Floats]] = {}
        # From the middle to a neighbour or two along each axis, about.
        tries = 1 + 3 * len(self.averaged)

        def evidence(values: tuple[float, ...]) -> float:
            named = zip(self.averaged, values, strict=True)
            words = "field of " + ", ".join(f"{name} {value:.4g}" for name, value in named)
            say(Step(words, min(0.9, len(tried) / tries)))
            start = max(tried.values(), key=itemgetter(0))[1] if tried else self.started(likelihood, centre)
            fit = sparse_posterior(likelihood, self.prior(plan, *values), centre, start=start, tolerance=ROUGHLY)
            tried[values] = fit.log_evidence, fit.field_mode
            return fit.log_evidence

        climb_grid(evidence, tuple(getattr(self, name) for name in self.averaged))
        best = max(found for found, _ in tried.values())
        likely = {values: mode for values, (found, mode) in tried.items() if found - best >= FORGOTTEN}
        places = list(self.combined())
        return {
            places.index(values): sparse_posterior(likelihood, self.prior(plan, *values), centre, start=mode)
            for values, mode in each_of(say, "posteriors of likely fields", list(likely.items()))
        }


@dataclass(frozen=True, eq=False, repr=False)
class StreetInference(ClimbedInference):
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
        Standard deviation, range and detour of a turn of the field along streets (`StreetMatern`).
    sigma : float
        Standard deviation of the field of the plane.
    offset : Offset, optional
        Public base intensity.
    inference : {"laplace"}
    even : bool
        Whether an even field is one more prior; with covariates one that is even but for their effects.
    covariates : Design, optional
        Public covariates, averaged along each segment.
    """

    mesh: SegmentCells
    plane: tuple[int, int]
    ranges: tuple[float, ...]
    street_sigmas: tuple[float, ...]
    street_ranges: tuple[float, ...]
    detours: tuple[float, ...]
    sigma: float = MATERN_SIGMA
    offset: Offset | None = None
    inference: str = "laplace"
    even: bool = False
    covariates: Design | None = None
    kind: ClassVar[str] = "streets"
    averaged: ClassVar[tuple[str, ...]] = AVERAGED
    adjustable: ClassVar[frozenset[str]] = frozenset({"sigma", *AVERAGED, "inference", "even"})

    def __post_init__(self) -> None:
        whole = isinstance(self.plane, tuple) and len(self.plane) == 2 and all(type(each) is int for each in self.plane)
        if not whole or not 2 <= min(self.plane) <= max(self.plane) <= MOST_PLANE:
            msg = f"plane: needs two whole numbers from 2 to {MOST_PLANE}, got {self.plane!r}."
            raise InputError(msg)
        longest = LONGEST * self.mesh.domain.extent
        bounds = {
            "ranges": (SHORTEST * longest, longest),
            "street_ranges": (SHORTEST * longest, longest),
            "street_sigmas": (SMALLEST_PARAMETER, LARGEST_PARAMETER),
            "detours": (0.0, FARTHEST * longest),
        }
        for name, (least, most) in bounds.items():
            require_increasing(name, getattr(self, name), least, most)
            object.__setattr__(self, name, tuple(map(float, getattr(self, name))))
        require_increasing("sigma", (self.sigma,), SMALLEST_PARAMETER, LARGEST_PARAMETER)
        one_of("inference", self.inference, INFERENCES)
        flag("even", self.even)
        require_few_unknowns(len(self.mesh.elements) + self._plane_prior(self.ranges[-1]).unknowns(self.grid))
        require_few_meeting(self.mesh.domain)
        require_somewhere(self.measure)

    def __repr__(self) -> str:
        return f"StreetInference({self.mesh!r}, plane={self.plane!r}, ranges={self.ranges})"

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
                "mechanism 'tents' or 'cells'."
            )
            raise InputError(msg)

    def likelihood(self, statistic: PrivateStatistic[LatticeStatistic]) -> NoisyMasses:
        plan = statistic.definition
        self.require(plan)
        count = len(self.mesh.elements)
        shares = scipy.sparse.eye_array(count, format="csr") if plan.basis == "cells" else self.mesh.shares(plan.mesh)
        # Noised counts and tents have this likelihood.
        return cast(NoisyMasses, plan.likelihood(statistic, self.measure, shares))

    def likely_fits(
        self, plan: LatticeStatistic, likelihood: NoisyMasses, centre: float, say: Progress
    ) -> dict[int, SparsePosterior]:
        fits, others = super().likely_fits(plan, likelihood, centre, say), len(super().scales)
        return fits | {others: self.even_fit(likelihood, centre, others)} if self.even else fits

    def bent(self, likelihood: NoisyMasses, mode: Floats, fields: Floats) -> Floats:
        whole = scipy.sparse.eye_array(len(mode), format="csr"), self.measure
        return kept_masses(likelihood, mode, fields, self._placed.T.tocsr(), whole)

    @property
    def scales(self) -> tuple[float, ...]:
        """The ranges of the field of the plane, once for each combination with the settings of that along streets.

        One more number stands for an even field.
        """
        return super().scales + self.even * (NO_RANGE,)

    def prior(self, plan: LatticeStatistic, *values: float) -> SparseField:
        range_, street_sigma, detour, street_range = values
        plane = moved(self._plane_prior(range_).on(self.grid), self._placed)
        streets = scaled(self._streets(detour, street_range), street_sigma)
        parts = [plane, streets]
        level = [] if plan.n is not None else [constant(len(self.mesh.elements), INTERCEPT_SD)]
        return self.explained(summed(*parts, *level))

    def _streets(self, detour: float, street_range: float) -> SparseField:
        """The field along streets with unit variance, whose variances take time and are found once."""
        key = detour, street_range
        if key not in self._found:
            self._found[key] = StreetMatern(1.0, street_range, detour).on(self.mesh.segments, self._ties)
        return self._found[key]

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
            *(" or ".join(f"{each:.4g}" for each in getattr(self, name)) for name in AVERAGED[1:])
        )
        return [
            ("field", f"Matern in the plane, sigma {self.sigma:g}, plus one along streets, on {mesh_words(segments)}"),
            ("ranges", ", ".join(f"{each:.4g}" for each in self.ranges) + self.even * ", or an even field"),
            ("along streets", along),
            ("inference", self.inference),
            *offset_rows(self.offset),
            *covariate_rows(self.covariates),
        ]

    def public_numbers(self) -> JsonObject:
        return {
            "field_segments": len(self.mesh.elements),
            "field_sigma": self.sigma,
            **{name: getattr(self, name) for name in AVERAGED},
            "inference": self.inference,
        }

    def to_dict(self) -> JsonObject:
        return {
            "kind": self.kind,
            "mesh": self.mesh.recipe,
            "plane": list(self.plane),
            **{name: list(getattr(self, name)) for name in AVERAGED},
            "sigma": self.sigma,
            **offset_stated(self.offset),
            "inference": self.inference,
            "even": self.even,
            "covariates": None if self.covariates is None else self.covariates.to_dict(),
        }

    @classmethod
    def from_dict(cls, stated: JsonRead, plan: LatticeStatistic, offset: Offset | None) -> Self:
        return cls(
            mesh=SegmentCells.of(segments(mesh_from_recipe(stated["mesh"], plan.domain))),
            plane=tuple(stated["plane"]),
            **{name: tuple(stated[name]) for name in AVERAGED},
            sigma=stated["sigma"],
            offset=offset,
            inference=stated["inference"],
            even=stated["even"],
            covariates=covariates_of(stated),
        )


def require_increasing(name: str, values: tuple[float, ...], least: float, most: float) -> None:
    """Refuse anything but a few numbers between two bounds, in increasing order."""
    few = isinstance(values, tuple) and 0 < len(values) <= MOST_VALUES
    numbers = few and all(isinstance(each, int | float) and not isinstance(each, bool) for each in values)
    if not numbers or list(values) != sorted(set(values)) or not least <= values[0] <= values[-1] <= most:
        msg = (
            f"{name}: needs 1 to {MOST_VALUES} numbers from {least:g} to {most:g}, each larger than the one before, "
            f"got {values!r}."
        )
        raise InputError(msg)


def climb_grid(height: Callable[[tuple[float, ...]], float], axes: tuple[tuple[float, ...], ...]) -> None:
    """Ascend to a local maximum over a grid, from its middle, one axis after the other, seeing no place twice."""
    seen: dict[tuple[int, ...], float] = {}

    def at(place: tuple[int, ...]) -> float:
        if not all(0 <= k < len(axis) for k, axis in zip(place, axes, strict=True)):
            return -np.inf
        if place not in seen:
            seen[place] = height(tuple(axis[k] for k, axis in zip(place, axes, strict=True)))
        return seen[place]

    def ascend(here: tuple[int, ...], axis: int, way: int) -> tuple[int, ...]:
        there = (*here[:axis], here[axis] + way, *here[axis + 1 :])
        return ascend(there, axis, way) if at(there) > at(here) else here

    here = tuple((len(axis) - 1) // 2 for axis in axes)
    at(here)
    before: tuple[int, ...] = ()
    while here != before:
        before = here
        for axis, way in product(range(len(axes)), (1, -1)):
            here = ascend(here, axis, way)
