"""Counts in vertical strips of a window with discrete Laplace noise: statistic and settings."""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

from dpppsynth.contract.additive_noise import LaplaceMasses
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.settings import ALPHA, EPSILON, NEIGHBOURS, made_of, setting
from dpppsynth.contract.statistic import require
from dpppsynth.contract.synthesizer import PointSynthesizer, exact_or_guess, require_true_lengths
from dpppsynth.core.arguments import instance, positive, whole
from dpppsynth.inference.projection import Projection
from dpppsynth.mechanisms.strips.bound import strips, strips_sensitivity
from dpppsynth.models import regular_squares
from dpppsynth.privacy.guarantee import Guarantee, PureDP
from dpppsynth.privacy.relations import CappedRelation
from dpppsynth.release.cox import CoxRelease
from dpppsynth.spatial.domains import Domain, Window


@dataclass(frozen=True, eq=False, repr=False)
class StripCounts(LaplaceMasses):
    """Noised counts and the bound they satisfy."""

    def __post_init__(self) -> None:
        recipe = self.mesh.recipe
        row = recipe.get("kind") == "square" and recipe["shape"][-1] == 2
        require(self.basis == "cells" and row, "the mesh is one row of rectangles")
        super().__post_init__()

    @cached_property
    def sensitivity(self) -> int:
        """L1 sensitivity."""
        return strips_sensitivity(self.relation)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The bound that `measure` satisfies."""
        return strips(self.relation, scale=self.scale, domain=self.domain)


@dataclass(frozen=True, eq=False)
class StripsSynthesizer(PointSynthesizer[CoxRelease[StripCounts]]):
    """Private counts in strips, turned into an intensity."""

    epsilon: float = setting(**EPSILON)
    _: KW_ONLY
    alpha: float | None = setting(None, **ALPHA)
    strips: int = setting(10, help="Number of strips")
    relation: CappedRelation | None = made_of(*NEIGHBOURS)

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        whole("strips", self.strips, 1, most=1000)
        self.neighbouring()

    def _ceiling(self, domain: Domain, **options: Any) -> PureDP:
        return PureDP(float(self.epsilon))

    def plan(self, domain: Domain, *, n: int | None = None, expected_n: float | None = None) -> ReleasePlan:
        """Settle every choice from public parameters alone."""
        require_true_lengths(domain)
        window = instance("domain", domain, Window, "strips are cut out of windows")
        relation, size = self.neighbouring(), self.public_size(n, expected_n)
        mesh = regular_squares(window, shape=(self.strips + 1, 2))
        statistic = StripCounts("cells", mesh, relation, *exact_or_guess(n, size), float(self.epsilon))
        return ReleasePlan("strip-cells", statistic, Projection("keep-n" if relation.n_is_public else "clip"))
