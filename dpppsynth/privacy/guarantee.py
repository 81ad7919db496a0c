"""A guarantee: what is proved about a release, under which relation, by which theorem, on which assumptions."""

import math
from dataclasses import dataclass, field
from typing import Any, Protocol

from dpppsynth.errors import InputError
from dpppsynth.privacy.relations import Relation, relation_from_dict


class Profile(Protocol):
    """Privacy profile of a mechanism: the smallest delta for every epsilon."""

    def delta(self, epsilon: float) -> float:
        """Smallest delta at which (epsilon, delta) holds."""

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon at which (epsilon, delta) holds."""

    def to_dict(self) -> dict[str, Any]:
        """JSON form with a `kind`."""

    def describe(self) -> str:
        """The promise in words."""


@dataclass(frozen=True)
class PureDP:
    """Pure differential privacy at level `level`; its profile is that of randomised response.

    Examples
    --------
    >>> PureDP(1.0).delta(1.0), PureDP(1.0).epsilon(0.0)
    (0.0, 1.0)
    """

    level: float

    def __post_init__(self) -> None:
        if not isinstance(self.level, int | float) or not 0 < self.level < math.inf:
            msg = f"epsilon: must be positive and finite, got {self.level!r}."
            raise InputError(msg)

    def delta(self, epsilon: float) -> float:
        """`(e^level - e^epsilon)_+ / (e^level + 1)`."""
        if epsilon >= self.level:
            return 0.0
        return -math.expm1(epsilon - self.level) / (1 + math.exp(-self.level))

    def epsilon(self, delta: float) -> float:
        """`log(e^level - delta (e^level + 1))`, at least zero."""
        inside = 1 - delta * (1 + math.exp(-self.level))
        return max(0.0, self.level + math.log(inside)) if inside > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {"kind": "pure", "epsilon": self.level, "delta": 0.0}

    def describe(self) -> str:
        """The promise in words."""
        factor = f"{math.exp(self.level):.2f} times (e^{self.level:g})" if self.level < 9 else f"e^{self.level:g} times"
        return (
            f"Whatever an attacker sees in the release is at most {factor} as likely for one "
            "of two neighbouring patterns as for the other"
        )


@dataclass(frozen=True)
class Guarantee:
    """What a release promises, from public parameters alone.

    Attributes
    ----------
    relation : Relation
        Which patterns count as neighbours.
    profile : Profile
        delta as a function of epsilon.
    theorem : str
        The theorem of docs/theory.md that proves it.
    assumptions : tuple of str
        Everything the proof takes for granted, in plain sentences.
    by_distance : tuple of (float, float)
        (d, epsilon at delta = 0) for a single point that moves by d: what an adversary can tell apart, by distance.
    """

    relation: Relation
    profile: Profile
    theorem: str
    assumptions: tuple[str, ...]
    by_distance: tuple[tuple[float, float], ...] = field(default=(), repr=False)

    def delta(self, epsilon: float) -> float:
        """Smallest delta at which (epsilon, delta) differential privacy holds."""
        if not epsilon >= 0:
            msg = f"epsilon: must be at least 0, got {epsilon!r}."
            raise InputError(msg)
        return self.profile.delta(epsilon)

    def epsilon(self, delta: float = 0.0) -> float:
        """Smallest epsilon at which (epsilon, delta) differential privacy holds."""
        if not 0 <= delta < 1:
            msg = f"delta: must lie in [0, 1), got {delta!r}."
            raise InputError(msg)
        return self.profile.epsilon(delta)

    @property
    def mu(self) -> float | None:
        """Gaussian differential privacy parameter, where the mechanism has one."""
        return getattr(self.profile, "mu", None)

    def __str__(self) -> str:
        assumed = " ".join(f"({i}) {sentence}" for i, sentence in enumerate(self.assumptions, 1))
        return (
            f"{self.profile.describe()}. Two patterns are neighbouring when {self.relation.describe()}. "
            f"Proved by {self.theorem}. It is assumed that: {assumed}"
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON form, as it stands on a certificate."""
        return {
            "relation": self.relation.to_dict(),
            "profile": self.profile.to_dict(),
            "theorem": self.theorem,
            "assumptions": list(self.assumptions),
            "by_distance": [list(pair) for pair in self.by_distance],
            "in_words": str(self),
        }


def guarantee_from_dict(data: dict[str, Any]) -> Guarantee:
    """Guarantee from its JSON form; InputError for a profile this version does not know."""
    profile = data["profile"]
    if profile.get("kind") != "pure":
        msg = f"profile: kind {profile.get('kind')!r} is not known to this version; expected 'pure'."
        raise InputError(msg)
    return Guarantee(
        relation=relation_from_dict(data["relation"]),
        profile=PureDP(profile["epsilon"]),
        theorem=data["theorem"],
        assumptions=tuple(data["assumptions"]),
        by_distance=tuple((float(d), float(e)) for d, e in data["by_distance"]),
    )
