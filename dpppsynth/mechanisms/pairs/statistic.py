"""`PairSumsStatistic`: capped sums over pairs of near points with discrete Laplace noise (docs/theory/pair_sums.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from dpppsynth.contract.additive_noise import PrivateStatistic
from dpppsynth.contract.pair_settings import listed, require_levels
from dpppsynth.contract.pairs_statistic import NoisedPairs, NoiseGroup, PairsStatistic
from dpppsynth.contract.parameter_forms import POSITIVE, WHOLE, Form, const
from dpppsynth.contract.statistic import FileCheck, Parameters, Releasing, Trial, capped, require
from dpppsynth.core.arguments import instance, positive
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.rounding import budget_parts
from dpppsynth.core.types import JsonObject
from dpppsynth.core.units import short_unit
from dpppsynth.core.wording import Rows
from dpppsynth.models.pair_sums import PairStatistic
from dpppsynth.privacy.bounds import pair_sums
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.noise import OpenDPLaplace, SeededLaplace
from dpppsynth.privacy.relations import AddRemovePerson, Relation
from dpppsynth.release.certificate import PAIR_SUMS
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.persons import persons

HEADER = ("radius", "cap", "sum", "noise_sd")


def pair_table(radii: Sequence[float], caps: Sequence[int], sums: Floats, noise_sd: Sequence[float]) -> str:
    """Rows of radius, cap, released sum and standard deviation of its noise.

    Examples
    --------
    >>> import numpy as np
    >>> print(pair_table([10.0], [5], np.array([12.5]), [3.25]), end="")
    radius,cap,sum,noise_sd
    10.0,5,12.5,3.25
    """
    rows = zip(map(float, radii), map(int, caps), map(float, sums), map(float, noise_sd), strict=True)
    return "\n".join([",".join(HEADER), *(",".join(map(repr, row)) for row in rows), ""])


# Cap of a person: the edges that a crowd of different persons needs are about this many for each of them.
MOST_PERSON_CAP = 200


@dataclass(frozen=True, eq=False, repr=False)
class PairSumsStatistic(PairsStatistic):
    """Noised capped sums over pairs, one for each radius; the cap holds for every point.

    Attributes
    ----------
    region : Window or LinearNetwork
    relation : Relation
    n : int or None
        Public number of points; None when the relation keeps it secret.
    expected_n : float or None
        Public guess that stands in for n where n is secret; the mechanism does not use it.
    epsilon : float
        Budget of all radii together.
    radii : tuple of float
        Increasing, lengths on the map in the domain's unit.
    caps : tuple of int
        One for each radius.
    shares : tuple of float
        Of the budget, one for each radius.
    steps : tuple of int
        Lattice places within each radius.
    """

    keeps_cap: ClassVar[bool] = True
    region: Domain
    relation: Relation
    n: int | None
    expected_n: float | None
    epsilon: float
    radii: tuple[float, ...]
    caps: tuple[int, ...]
    shares: tuple[float, ...]
    steps: tuple[int, ...]
    basis: ClassVar[str] = "pairs"
    has_patterns: ClassVar[bool] = False
    distance: ClassVar[str] = "relative error of the sums"
    form: ClassVar[Form] = {
        "basis": const("pairs"),
        "lattice_bits": WHOLE,
        "radii": listed(POSITIVE),
        "caps": listed(WHOLE),
        "shares": listed(POSITIVE),
        "steps": listed(WHOLE),
        "scales": listed(POSITIVE),
    }

    attributes: ClassVar[Mapping[str, str]] = {**PairsStatistic.attributes, "scales": "pairs.scales"}

    def __post_init__(self) -> None:
        self._require_relation()
        positive("epsilon", self.epsilon)
        require_levels(self.radii, self.caps, self.shares, self.steps)
        self.pairs.require(self.n)
        self.guarantee.require(self.epsilon, 0.0)

    def _require_relation(self) -> None:
        relation = capped(self.relation)
        require(self.n is None or relation.n_is_public, "n is not stated where the relation keeps it secret")

    def __repr__(self) -> str:
        pairs = ", ".join(f"{r:g}: {cap}" for r, cap in zip(self.radii, self.caps, strict=True))
        return f"PairSumsStatistic(caps by radius {{{pairs}}}, {self.relation!r}, epsilon={self.epsilon:g})"

    @property
    def domain(self) -> Domain:
        return self.region

    @cached_property
    def pairs(self) -> NoisedPairs:
        """Pair sums and their noise."""
        statistic = PairStatistic(self.region, self.radii, self.caps, self.steps)
        return NoisedPairs(statistic, self.relation, self.epsilons)

    @property
    def bits(self) -> int:
        """Binary digits of the released sums."""
        return self.pairs.bits

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Budget of each radius."""
        return budget_parts(self.epsilon, self.shares)

    @cached_property
    def guarantee(self) -> Guarantee:
        return pair_sums(
            self.relation, caps=self.caps, scales=self.pairs.scales, bits=self.pairs.statistic.bits, domain=self.region
        )

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        p = parameters
        levels = (tuple(p[name]) for name in ("radii", "caps", "shares", "steps"))
        return cls(domain, relation, p["n"], p["expected_n"], p["epsilon"], *levels)

    @property
    def size(self) -> int:
        return len(self.radii)

    def noise_name(self, *, seeded: bool = False) -> str:
        return (SeededLaplace if seeded else OpenDPLaplace).name

    def table_rows(self) -> Rows:
        unit = short_unit(self.domain.unit)
        sums = zip(self.radii, self.caps, self.steps, strict=True)
        said = ", ".join(f"{r:g} {unit} (cap {cap}, {steps} steps)" for r, cap, steps in sums)
        sds = ", ".join(f"{sd:.4g}" for sd in self.pairs.noise_sd)
        return [
            ("measured", f"sums of 1 - distance / radius over pairs within {said}"),
            ("cap", f"on what one {self.holder} adds to a sum"),
            ("noise", f"discrete Laplace, of standard deviations {sds} pairs"),
        ]

    @property
    def holder(self) -> str:
        """Holder of a cap, in a word."""
        return "point"

    def details(self) -> JsonObject:
        return {"noise_sd": list(self.pairs.noise_sd)}

    def prepare(self) -> None:
        """Make the noise of every radius, whose sampler confirms what it spends."""
        for level in range(self.size):
            self.pairs.noise(level)

    def measure(self, pattern: PointPattern, rng: RngLike = None) -> PrivateStatistic[Self]:
        rng = None if rng is None else generator(rng)
        pattern = self.admitted(pattern, rng)
        noised = self.pairs.add(self.apply_noise, self.exact_numbers(pattern), rng)
        seeded = rng is not None
        return PrivateStatistic(self, noised, self.noise_name(seeded=seeded), seeded)

    def exact_numbers(self, pattern: PointPattern) -> Ints:
        return self.pairs.statistic.doubled(pattern.positions, self._persons(pattern))

    def noise_groups(self) -> tuple[NoiseGroup, ...]:
        return self.pairs.noise_groups()

    def _persons(self, pattern: PointPattern) -> Ints | None:
        """(n,) numbers of persons, where points tell whose they are."""
        return None

    @property
    def following(self) -> dict[str, FileCheck]:
        rule = "the table holds the released sums"
        return {PAIR_SUMS: lambda content, lattice: require(content == self.table(lattice).encode(), rule)}

    def table(self, lattice: Ints) -> str:
        """The table of released sums (L,) in lattice units, as CSV."""
        return pair_table(self.radii, self.caps, self.masses(lattice), self.pairs.noise_sd)

    def rehearsal_run(self, release: Releasing, pattern: PointPattern, rng: np.random.Generator) -> Trial:
        """One release: mean relative error of the sums, and 1, the error of zeros, for comparison."""
        made: Any = release(pattern, rng)
        exact, released = self.masses(self.exact_numbers(pattern)), self.masses(made.statistic.lattice)
        return Trial(None, distances=(float(np.mean(np.abs(released - exact) / np.maximum(exact, 1))), 1.0))


@dataclass(frozen=True, eq=False, repr=False)
class PersonPairSumsStatistic(PairSumsStatistic):
    """Noised capped sums over pairs; the cap holds for a person with all their points."""

    relation: AddRemovePerson
    capped: ClassVar[bool] = False
    individuals: ClassVar[str] = "persons"

    def _require_relation(self) -> None:
        instance("relation", self.relation, AddRemovePerson, 'AddRemovePerson("person") is one')
        require(self.n is None, "n is secret where persons are added or removed")
        if max(self.caps) > MOST_PERSON_CAP:
            msg = (
                f"cap: at most {MOST_PERSON_CAP} for a person with all their points, got {max(self.caps)}: the memory "
                "that a crowd of persons takes grows with it; take a smaller one."
            )
            raise InputError(msg)

    @property
    def count_unit(self) -> str:
        return self.relation.user

    @property
    def holder(self) -> str:
        return "person"

    def _persons(self, pattern: PointPattern) -> Ints:
        return persons((pattern.marks or {})[self.count_unit])
