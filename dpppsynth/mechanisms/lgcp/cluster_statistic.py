"""`MassesAndPairs`: tent masses or counts, and capped pair sums, each with noise of its share of the budget."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy

from dpppsynth.contract import rules
from dpppsynth.contract.additive_noise import LaplaceMasses, PrivateStatistic
from dpppsynth.contract.pair_settings import listed, require_levels
from dpppsynth.contract.pairs_statistic import NoisedPairs, NoiseGroup, PairsStatistic
from dpppsynth.contract.parameter_forms import POSITIVE, WHOLE, Form, one_among
from dpppsynth.contract.result import released_fit, released_intensity
from dpppsynth.contract.statistic import FileCheck, Parameters, Releasing, Trial, capped, require
from dpppsynth.core.arguments import one_of, probability
from dpppsynth.core.errors import InputError
from dpppsynth.core.published_files import plain_text
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.rounding import budget_parts
from dpppsynth.core.types import JsonObject
from dpppsynth.core.units import short_unit
from dpppsynth.core.wording import Rows, mention
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.mechanisms.lgcp.cluster_power import ClusterPower, even_sums
from dpppsynth.models.cluster_posterior import SIZES, ClusterPosterior, ClusterPrior
from dpppsynth.models.cluster_process import ClusterLaw, clustered_pattern
from dpppsynth.models.pair_sums import PairStatistic
from dpppsynth.models.recipes import mesh_from_recipe
from dpppsynth.privacy.bounds import pair_sums
from dpppsynth.privacy.composition import together
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import Relation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.intensity import Intensity
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.patterns import PointPattern

# Radii: the work of the likelihood grows by a factor with each.
MOST_RADII = 4
# Points of a pattern that is simulated a hundred times.
MOST_SIMULATED = 2_000_000
# Surrogate clusters of a rehearsal have so many times the places from which on they show.
FACTOR = 2.0


FILE = "clusters.json"
# Probabilities are whole numbers of millionths.
UNIT = 1_000_000


def cluster_text(posterior: ClusterPosterior) -> str:
    """Text of the file of clusters: the laws of positive probability, and these probabilities."""
    ends = np.rint(np.cumsum(posterior.probabilities) * UNIT).astype(np.int64)
    # Rounded ends of intervals leave their lengths whole, and the sum one.
    ends[-1] = UNIT
    share = np.diff(ends, prepend=0)
    table = posterior.prior.table
    laws = [
        {"size": size, "spread": spread, "coincident": coincident, "millionths": int(share[k])}
        for k, (size, spread, coincident) in enumerate(table[:, :3].tolist())
        if share[k] or not k
    ]
    return plain_text({"laws": laws})


def read_clusters(content: bytes, prior: ClusterPrior) -> ClusterPosterior:
    """The posterior in a file.

    Raises
    ------
    InputError
        When it is not one of laws of the prior.
    """
    rule = "clusters are laws of the prior, with probabilities that add up to one"
    try:
        laws = json.loads(content)["laws"]
        known = {tuple(law): k for k, law in enumerate(prior.table[:, :3].tolist())}
        share = np.zeros(len(known), dtype=np.int64)
        for law in laws:
            place = known.get((law["size"], law["spread"], law["coincident"]))
            require(place is not None and type(law["millionths"]) is int and law["millionths"] >= 0, rule)
            share[place or 0] = law["millionths"]
    except (KeyError, TypeError, ValueError, RecursionError):
        require(False, rule)
    require(int(share.sum()) == UNIT, rule)
    found = ClusterPosterior(prior, share / UNIT)
    require(cluster_text(found).encode() == content, rule)
    return found


@dataclass(frozen=True, eq=False, repr=False)
class MassesAndPairs(LaplaceMasses, PairsStatistic):
    """Noised masses or counts, followed by noised pair sums, in one vector; other attributes as in `LaplaceMasses`.

    Attributes
    ----------
    share : float
        Share of the budget for the pair sums, which radii have equal parts of.
    radii : tuple of float
    caps : tuple of int
    steps : tuple of int
        Of the pair sums, one for each radius, as in `NoisedPairs`.
    places : {"apart", "shared"}
        Whether several points may lie at one place, for the prior of clusters.
    """

    share: float
    radii: tuple[float, ...]
    caps: tuple[int, ...]
    steps: tuple[int, ...]
    places: str = "apart"
    form: ClassVar[Form] = LaplaceMasses.form | {
        "clusters": POSITIVE,
        "radii": listed(POSITIVE),
        "caps": listed(WHOLE),
        "steps": listed(WHOLE),
        "pair_scales": listed(POSITIVE),
        "pair_bits": WHOLE,
        "places": one_among(*rules.CLUSTER_PLACES),
    }
    attributes: ClassVar[Mapping[str, str]] = {
        "lattice_bits": "bits",
        "clusters": "share",
        "pair_scales": "pairs.scales",
        "pair_bits": "pairs.bits",
    }

    def __post_init__(self) -> None:
        probability("clusters", self.share, remedy="0.3 is a usual share")
        one_of("places", self.places, rules.CLUSTER_PLACES)
        count = len(self.radii)
        require_levels(self.radii, self.caps, (1 / count,) * count if count else (), self.steps)
        if count > MOST_RADII:
            msg = (
                f"cluster_radii: at most {MOST_RADII}, got {count}; leave some out, each takes budget from the others."
            )
            raise InputError(msg)
        super().__post_init__()
        remedy = f"take larger radii, or leave {mention('clusters')} out"
        self.pairs.require(self.n, name="cluster_radii", remedy=remedy)
        require_simulated(self.n or self.expected_n or 0)
        self.guarantee.require(self.epsilon, 0.0)

    def __repr__(self) -> str:
        return f"MassesAndPairs({super().__repr__()}, {self.share:g} of it for pairs within {self.radii})"

    @property
    def mass_epsilon(self) -> float:
        return self._parts[0]

    @cached_property
    def pairs(self) -> NoisedPairs:
        """Pair sums and their noise."""
        statistic = PairStatistic(self.domain, self.radii, self.caps, self.steps)
        return NoisedPairs(statistic, self.relation, self._parts[1:])

    @property
    def _parts(self) -> tuple[float, ...]:
        """Budgets of the masses, and of the sums within each radius."""
        each = self.share / len(self.radii)
        return budget_parts(self.epsilon, (1 - self.share, *[each] * len(self.radii)))

    @cached_property
    def guarantee(self) -> Guarantee:
        bits = self.pairs.statistic.bits
        sums = pair_sums(self.relation, caps=self.caps, scales=self.pairs.scales, bits=bits, domain=self.domain)
        return together(super().guarantee, sums)

    @classmethod
    def from_parameters(cls, parameters: Parameters, relation: Relation, domain: Domain, *, mechanism: str) -> Self:
        p = parameters
        mesh, sizes = mesh_from_recipe(p["mesh"], domain), (p["n"], p["expected_n"])
        settled = p["basis"], mesh, capped(relation), *sizes, p["epsilon"], p["clusters"]
        radii, caps, steps = (tuple(p[name]) for name in ("radii", "caps", "steps"))
        return cls(*settled, radii, caps, steps, p["places"])

    def implements(self, mechanism: str) -> bool:
        return True

    @property
    def masses_size(self) -> int:
        """Number of cells or vertices, which come first."""
        return super().size

    @property
    def size(self) -> int:
        return self.masses_size + len(self.radii)

    def noise_groups(self) -> tuple[NoiseGroup, ...]:
        return (NoiseGroup(self.basis, self.masses_size, self.scale), *self.pairs.noise_groups())

    def masses(self, lattice: Ints) -> Floats:
        return super().masses(lattice[: self.masses_size])

    @property
    def mass_variance(self) -> float:
        """Variance of the noise of one mass, exactly."""
        return float(0.5 / np.sinh(0.5 / self.scale) ** 2 / 4.0**self.bits)

    def mass_shares(self, positions: Floats) -> scipy.sparse.csr_array:
        """(k, V) shares of points (k, 2) in each of the masses."""
        if self.basis == "tents":
            return self.mesh.basis(positions)
        element = self.mesh.locate(positions)
        shape = len(positions), self.masses_size
        return scipy.sparse.csr_array((np.ones(len(element)), element, np.arange(len(element) + 1)), shape=shape)

    def sums(self, lattice: Ints) -> Floats:
        """(L,) pair sums, the last of the released numbers."""
        return self.pairs.values(lattice[self.masses_size :])

    def noise_rows(self) -> Rows:
        unit = short_unit(self.domain.unit)
        each = zip(self.radii, self.caps, self.pairs.noise_sd, strict=True)
        sums = ", ".join(f"{r:.4g} {unit} (cap {cap}, noise {sd:.4g})" for r, cap, sd in each)
        pairs = f"sums of 1 - distance / radius within {sums}, for {self.share:g} of epsilon"
        told = self.power().words(unit)
        return [*super().noise_rows(), ("pairs", pairs), ("clusters", f"among evenly spread points {told}")]

    def details(self) -> JsonObject:
        return super().details() | {"pair_noise_sd": list(self.pairs.noise_sd)} | self.power().to_dict()

    def power(self, sums: Floats | None = None) -> ClusterPower:
        """Clusters that the sums can tell, by their values (L,) without any, unless given those of even points."""
        n = float(self.n or self.expected_n or 1)
        even = even_sums(self.radii, n, self.domain.size, streets=self.prior.streets) if sums is None else sums
        return ClusterPower(self.prior, self.caps, self.pairs.noise_sd, n, np.maximum(even, 0.0))

    def prepare(self) -> None:
        super().prepare()
        for level in range(len(self.radii)):
            self.pairs.noise(level)

    @property
    def additive(self) -> bool:
        return False

    def measure(self, pattern: PointPattern, rng: RngLike = None) -> PrivateStatistic[Self]:
        # One generator, so that the parts of a seeded run do not share their noise.
        source = None if rng is None else generator(rng)
        pattern = self.admitted(pattern, source)
        noise, sums = self.source(source), self.pairs.statistic.doubled(pattern.positions)
        masses = self.apply_noise(noise.add, self.exact(pattern.positions))
        noised = np.concatenate([masses, self.pairs.add(self.apply_noise, sums, source)])
        return PrivateStatistic(self, noised, noise.name, noise.seeded)

    def exact_numbers(self, pattern: PointPattern) -> Ints:
        return np.concatenate([self.exact(pattern.positions), self.pairs.statistic.doubled(pattern.positions)])

    def further_surrogate(self, even: Intensity, n: int, rng: np.random.Generator) -> tuple[str, PointPattern] | None:
        visible, spread = self.power().size
        law = ClusterLaw(min(FACTOR * visible, SIZES[-1]), spread)
        unit = short_unit(self.domain.unit)
        name = f"clusters of {1 + law.size:.0f} places within about {spread:.3g} {unit}"
        return name, clustered_pattern(even, law, n, rng)

    def rehearsal_run(self, release: Releasing, pattern: PointPattern, rng: np.random.Generator) -> Trial:
        released: Any = release(pattern, rng)
        found = 1 - released.clusters.none
        return Trial(released_intensity(released), fit=released_fit(released), clusters=found)

    @property
    def prior(self) -> ClusterPrior:
        """Prior of laws of clusters."""
        return ClusterPrior(self.radii, isinstance(self.domain, LinearNetwork), self.places == "shared")

    @property
    def following(self) -> dict[str, FileCheck]:
        return {FILE: lambda content, _: read_clusters(content, self.prior)}


def require_simulated(size: float) -> None:
    """Refuse more points than are simulated."""
    if size > MOST_SIMULATED:
        msg = (
            f"clusters: patterns of all points are simulated, {MOST_SIMULATED:,} at most, got {size:,.0f}; leave "
            f"{mention('clusters')} out."
        )
        raise InputError(msg)
