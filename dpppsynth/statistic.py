"""Private statistics: the only place where noise meets sensitive points.

A `StatisticPlan` is made from public parameters alone and knows its guarantee; `measure` spends the budget and returns
a `PrivateStatistic`, public from then on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpppsynth.domains import Window
from dpppsynth.errors import InputError
from dpppsynth.mesh import Floats, Ints, Mesh
from dpppsynth.patterns import PointPattern
from dpppsynth.privacy import bounds
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.noise import laplace_noise, laplace_scale, require_room
from dpppsynth.privacy.relations import Relation
from dpppsynth.randomness import RngLike


def cell_counts(mesh: Mesh, xy: Floats) -> Ints:
    """(T,) number of points per element; a point on a border belongs to one element by the mesh's rule."""
    return np.bincount(mesh.locate(xy), minlength=len(mesh.elements)).astype(np.int64)


def lattice_masses(mesh: Mesh, xy: Floats, bits: int) -> Ints:
    """(V,) tent masses in units of `2^-bits`, each point's basis values rounded to integers that sum to `2^bits`.

    Largest remainders go up, so two points' roundings differ from their exact masses by little in L1 (docs/theory.md,
    section 4). Integers add exactly: no floating-point sum touches sensitive values.
    """
    element = mesh.locate(xy)
    weight = np.clip(mesh.weights(element, xy), 0, None)
    scaled = weight / weight.sum(axis=1, keepdims=True) * 2**bits
    low = np.floor(scaled).astype(np.int64)
    rank = np.argsort(np.argsort(low - scaled, axis=1, kind="stable"), axis=1, kind="stable")
    low += rank < (2**bits - low.sum(axis=1))[:, None]
    total = np.zeros(len(mesh.vertices), dtype=np.int64)
    np.add.at(total, mesh.elements[element].ravel(), low.ravel())
    return total


@dataclass(frozen=True, eq=False, repr=False)
class StatisticPlan:
    """What will be measured, and the bound it satisfies, from public parameters alone.

    Attributes
    ----------
    basis : {"cells", "tents"}
        Counts per element, or P1 masses per vertex.
    mesh : Mesh
    relation : Relation
    n : int or None
        Public number of points; None when the relation keeps it secret.
    expected_n : float or None
        Public guess that stands in for n where n is secret.
    epsilon : float
        Budget asked for; the guarantee's own epsilon is at most this.
    """

    basis: str
    mesh: Mesh
    relation: Relation
    n: int | None
    expected_n: float | None
    epsilon: float

    def __post_init__(self) -> None:
        if self.basis not in ("cells", "tents"):
            msg = f"basis: expected 'cells' or 'tents', got {self.basis!r}."
            raise InputError(msg)
        require_room(self.scale, self.sensitivity, self.epsilon)

    def __repr__(self) -> str:
        return f"StatisticPlan({self.basis} on {self.mesh!r}, {self.relation!r}, epsilon={self.epsilon:g})"

    @property
    def bits(self) -> int:
        """Binary digits of the lattice: counts are whole, tent masses multiples of `2^-bits`."""
        return 0 if self.basis == "cells" else bounds.LATTICE_BITS

    @property
    def domain(self) -> Window:
        """Public window."""
        return self.mesh.domain

    @cached_property
    def sensitivity(self) -> int:
        """L1 sensitivity in lattice units."""
        if self.basis == "cells":
            return bounds.counts_sensitivity(self.relation)
        return bounds.tents_sensitivity(self.mesh, self.relation, bits=self.bits)

    @cached_property
    def scale(self) -> float:
        """Scale of the discrete Laplace noise in lattice units."""
        return laplace_scale(self.sensitivity, self.epsilon)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The bound that `measure` satisfies."""
        if self.basis == "cells":
            return bounds.counts(self.relation, scale=self.scale)
        return bounds.tents(self.mesh, self.relation, scale=self.scale, bits=self.bits)

    def parameters(self) -> dict[str, Any]:
        """Public parameters for the certificate: enough to derive the guarantee again."""
        return {
            "basis": self.basis,
            "mesh": self.mesh.recipe,
            "lattice_bits": self.bits,
            "scale": self.scale,
            "epsilon": self.epsilon,
            "n": self.n,
            "expected_n": self.expected_n,
        }

    def measure(self, pattern: PointPattern, rng: RngLike = None) -> "PrivateStatistic":
        """Spend the budget: measure the pattern and add noise.

        Parameters
        ----------
        pattern : PointPattern
        rng : None, int or Generator
            None: secret noise. Anything else makes the run reproducible and therefore not private.

        Raises
        ------
        InputError
            When the pattern is marked, lives in another window or has another number of points than planned.
        """
        self._require_match(pattern)
        noise = laplace_noise(self.scale, sensitivity=self.sensitivity, epsilon=self.epsilon, rng=rng)
        if self.basis == "cells":
            exact = cell_counts(self.mesh, pattern.xy)
        else:
            exact = lattice_masses(self.mesh, pattern.xy, self.bits)
        return PrivateStatistic(self, noise.add(exact), noise.name, noise.seeded)

    def _require_match(self, pattern: PointPattern) -> None:
        if not isinstance(pattern, PointPattern):
            msg = f"pattern: needs a PointPattern, got {type(pattern).__name__}."
            raise InputError(msg)
        if pattern.marks:
            msg = "pattern: marks are not protected by this mechanism; pass `pattern.unmarked()`."
            raise InputError(msg)
        if pattern.domain.fingerprint() != self.mesh.domain.fingerprint():
            msg = "pattern: its window differs from the one the release was planned for; plan again with its window."
            raise InputError(msg)
        if self.n is not None and len(pattern) != self.n:
            msg = "n: the release was planned for another number of points; plan with n=len(pattern)."
            raise InputError(msg)


@dataclass(frozen=True, eq=False, repr=False)
class PrivateStatistic:
    """Noised masses: public information once measured.

    Attributes
    ----------
    plan : StatisticPlan
    lattice : (V,) or (T,) array of int
        Noised values in lattice units.
    noise : str
        Name of the sampler.
    seeded : bool
        True when the noise can be reproduced: then nothing is private.
    """

    plan: StatisticPlan
    lattice: Ints
    noise: str
    seeded: bool

    def __post_init__(self) -> None:
        self.lattice.flags.writeable = False

    def __repr__(self) -> str:
        return f"PrivateStatistic({self.plan.basis} on {self.plan.mesh!r})"

    @property
    def masses(self) -> Floats:
        """(V,) or (T,) noised masses, in points."""
        return self.lattice / 2.0**self.plan.bits

    @property
    def noise_scale(self) -> float:
        """Scale b of the Laplace noise, in points; its variance is about `2 b^2`."""
        return self.plan.scale / 2.0**self.plan.bits

    def to_dict(self) -> dict[str, Any]:
        """JSON form; the plan stands on the certificate."""
        return {"lattice": self.lattice.tolist(), "noise": self.noise, "seeded": self.seeded}

    @classmethod
    def from_dict(cls, plan: StatisticPlan, data: Mapping[str, Any]) -> "PrivateStatistic":
        """Inverse of `to_dict`."""
        return cls(plan, np.array(data["lattice"], dtype=np.int64), data["noise"], data["seeded"])
