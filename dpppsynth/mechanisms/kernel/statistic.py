"""Statistics of the kernel synthesizer: Poisson cluster patterns (docs/theory/kernel.md, diffusion.md).

What is released are Poisson patterns with intensity `sum_i f_i`, a kernel at each point: Gaussian on windows, heat flow
on networks. Their own randomness protects, so every pattern is paid for: the number of patterns is part of the plan.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from dpppsynth.contract.parameter_forms import GIVEN, OBJECT, POSITIVE, WHOLE, Form, one_among
from dpppsynth.contract.result import Saved
from dpppsynth.contract.statistic import Parameters, Releasing, Statistic, Trial, capped, mesh_words
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.tiled_matrix import TiledMatrix
from dpppsynth.core.wording import Rows
from dpppsynth.linear_network import NetworkMesh, heat_kernels
from dpppsynth.linear_network.heat_kernels import diffusion_rows
from dpppsynth.mechanisms.kernel.bound.heat import diffusion as diffusion_guarantee
from dpppsynth.mechanisms.kernel.bound.kernels import kim_lim_36, superposition
from dpppsynth.models.recipes import mesh_from_recipe, segments, window
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import CappedRelation, Relation
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.gaussian_kernel import kernel_density, sample_children
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.sampling import MOST_POINTS

P_co = TypeVar("P_co", bound="PatternStatistic", covariant=True)


@dataclass(frozen=True, eq=False, repr=False)
class PatternStatistic(Statistic):
    """Base of statistics that are Poisson cluster patterns, with their guarantee from public parameters alone.

    Attributes
    ----------
    relation : CappedRelation
    n : int
        Public number of points.
    epsilon, delta : float
        Budget of all patterns together.
    bandwidth : float
        Standard deviation of the kernel along each axis, or along a straight street, in the domain's unit.
    patterns : int
        Number of patterns, fixed before the spend.

    Raises
    ------
    PrivacyCheckError
        When the guarantee exceeds the budget.
    """

    keeps_cap: ClassVar[bool] = True
    relation: CappedRelation
    n: int
    epsilon: float
    delta: float
    bandwidth: float
    patterns: int

    form: ClassVar[Form] = {"bandwidth": POSITIVE, "patterns": WHOLE | {"maximum": 10_000}, "delta": GIVEN}
    attributes: ClassVar[Mapping[str, str]] = {"epsilon": "spent"}
    expected_n: ClassVar[None] = None
    size: ClassVar[int] = 0

    def __post_init__(self) -> None:
        self.guarantee.require(self.epsilon, self.delta)

    def __repr__(self) -> str:
        place = getattr(self, "mesh", self.domain)
        return f"{type(self).__name__}({place!r}, {self.relation!r}, bandwidth={self.bandwidth:.4g})"

    @property
    def paid_patterns(self) -> int:
        """Number of paid patterns: all of them."""
        return self.patterns

    def noise_name(self, *, seeded: bool = False) -> str:
        return "seeded-poisson-children" if seeded else "poisson-children"

    def table_rows(self) -> Rows:
        return [
            ("bandwidth", f"{self.bandwidth:.6g} {self.domain.unit}"),
            ("patterns", f"{self.patterns}, all paid for by this budget"),
        ]

    def rehearsal_run(self, release: Releasing, pattern: PointPattern, rng: np.random.Generator) -> Trial:
        self.measure(pattern, rng)
        return Trial(partial(self.density, pattern))

    def prepare(self) -> None:
        """Refuse more patterns than memory holds, with an InputError."""
        if not self.n * self.patterns <= MOST_POINTS:
            msg = (
                f"patterns: {self.patterns} of about n = {self.n} points are more than the {MOST_POINTS:g} points that "
                "memory holds; take fewer."
            )
            raise InputError(msg)

    def children(self, pattern: PointPattern, rng: RngLike) -> Floats:
        """(m, 2) positions of one draw, in the order of their parents."""
        raise NotImplementedError

    def density(self, pattern: PointPattern, xy: Floats) -> Floats:
        """(k,) intensity of the drawn patterns at coordinates (k, 2). Not private: it is a function of the points."""
        raise NotImplementedError

    @staticmethod
    def stated(parameters: Parameters, relation: Relation) -> tuple[CappedRelation, int, float, float, float, int]:
        """Values of the first fields, from public parameters."""
        p = parameters
        return capped(relation), p["n"], p["epsilon"], p["delta"], p["bandwidth"], p["patterns"]

    def measure(self, pattern: PointPattern, rng: RngLike = None) -> "PrivatePatterns[Self]":
        secret = generator(rng)
        pattern = self.admitted(pattern, None if rng is None else secret)
        children = partial(self.children, rng=secret)
        drawn = [self.apply_noise(children, pattern) for _ in range(self.patterns)]
        # In random order: rows must not tell which point a child belongs to.
        patterns = tuple(PointPattern.at(secret.permutation(at), self.domain, synthetic=True) for at in drawn)
        seeded = rng is not None
        return PrivatePatterns(self, patterns, self.noise_name(seeded=seeded), seeded)

    def reopened(self, saved: Saved) -> "PrivatePatterns[Self]":
        stated = saved.certificate
        return PrivatePatterns(self, tuple(saved.patterns()), stated["noise"], stated["seeded"])


@dataclass(frozen=True, eq=False, repr=False)
class KernelStatistic(PatternStatistic):
    """Gaussian kernels on a window.

    Attributes
    ----------
    domain : Window
    bound : {"superposition", "kim-lim-3.6"}
    """

    domain: Window
    bound: str
    form: ClassVar[Form] = PatternStatistic.form | {"bound": one_among("superposition", "kim-lim-3.6")}

    @cached_property
    def guarantee(self) -> Guarantee:
        """Theorem B, or Kim & Lim's Theorem 3.6."""
        public: dict[str, Any] = {"bandwidth": self.bandwidth, "patterns": self.patterns, "delta": self.delta}
        if self.bound == "superposition":
            return superposition(self.domain, self.relation, **public)
        return kim_lim_36(self.domain, self.relation, n=self.n, epsilon=self.epsilon, **public)

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        return cls(*cls.stated(parameters, relation), window(domain), parameters["bound"])

    def children(self, pattern: PointPattern, rng: RngLike) -> Floats:
        return sample_children(pattern.xy, self.domain, self.bandwidth, rng)

    def density(self, pattern: PointPattern, xy: Floats) -> Floats:
        return kernel_density(pattern.xy, self.domain, self.bandwidth, xy)


@dataclass(frozen=True, eq=False, repr=False)
class DiffusionStatistic(PatternStatistic):
    """Heat flow on the segments of a network.

    Attributes
    ----------
    mesh : NetworkMesh
        Its segments are the cells that points are snapped to and children fall into.
    """

    mesh: NetworkMesh
    form: ClassVar[Form] = PatternStatistic.form | {"mesh": OBJECT}

    @property
    def domain(self) -> Domain:
        """Public network."""
        return self.mesh.domain

    def table_rows(self) -> Rows:
        bandwidth, *rest = super().table_rows()
        return [bandwidth, ("cells", mesh_words(self.mesh)), *rest]

    @cached_property
    def guarantee(self) -> Guarantee:
        """Theorem B with the exact privacy loss of the cells."""
        public: dict[str, Any] = {"bandwidth": self.bandwidth, "patterns": self.patterns}
        return diffusion_guarantee(self.mesh, self.relation, epsilon=self.epsilon, delta=self.delta, **public)

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        return cls(*cls.stated(parameters, relation), segments(mesh_from_recipe(parameters["mesh"], domain)))

    @cached_property
    def matrix(self) -> TiledMatrix:
        """(T, T) probabilities that a child of a point in one segment falls into another."""
        return diffusion_rows(self.mesh, self.bandwidth)

    def prepare(self) -> None:
        super().prepare()
        _ = self.matrix

    def of(self, n: int) -> Self:
        """The same statistic for another number of points, sharing the computed heat flow and guarantee."""
        other = copy(self)
        object.__setattr__(other, "n", n)
        return other

    def children(self, pattern: PointPattern, rng: RngLike) -> Floats:
        return heat_kernels.sample_children(self.mesh, self.matrix, pattern.positions, rng)

    def density(self, pattern: PointPattern, xy: Floats) -> Floats:
        return heat_kernels.diffusion_density(self.mesh, self.matrix, pattern.positions, self.domain.positions(xy))


@dataclass(frozen=True, eq=False, repr=False)
class PrivatePatterns(Generic[P_co]):
    """Released patterns: public once drawn.

    Attributes
    ----------
    definition : PatternStatistic
    patterns : tuple of PointPattern
    noise : str
        Name of the randomness.
    seeded : bool
        True when the patterns can be reproduced: then nothing is private.
    """

    definition: P_co
    patterns: tuple[PointPattern, ...]
    noise: str
    seeded: bool

    def __repr__(self) -> str:
        return f"PrivatePatterns({self.definition.domain!r})"
