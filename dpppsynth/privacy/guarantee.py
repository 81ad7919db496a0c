"""`Guarantee`: a privacy profile with its relation, theorem and assumptions, and lengths on the ground and on the map.

Here alone a true length becomes one on the map, or back (docs/theory/scale.md).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Self

import numpy as np

from dpppsynth.core.arguments import elements, entries, instance, several, shown
from dpppsynth.core.crs import CODE, NAMELESS
from dpppsynth.core.errors import InputError, PrivacyCheckError
from dpppsynth.core.html_card import html_card
from dpppsynth.core.map_scale import STEPS, is_plane, scale_factor
from dpppsynth.core.rounding import upward
from dpppsynth.privacy.catalogue import (
    Code,
    Statement,
    code_from_json,
    code_json,
    codes_from_json,
    require_code,
    require_codes,
    text,
)
from dpppsynth.privacy.composed import Composed
from dpppsynth.privacy.losses import DiscreteLosses
from dpppsynth.privacy.profiles import ApproximateDP, GaussianDP, PoissonGaussianDP, Profile, PureDP
from dpppsynth.privacy.relations import AlphaNeighbours, CappedRelation, Relation, relation_from_dict
from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP
from dpppsynth.spatial.domains import Domain, as_reals

__all__ = ["Guarantee", "Profile", "PureDP", "guarantee_from_dict", "profile_from_dict"]

Curve = tuple[tuple[float, float], ...]
# Last digits of a float, in which machines may round a bound apart.
ROUNDED_APART = 1e-14

STRETCHED = "true-lengths"
# Other versions of PROJ may find a factor that differs by this much.
DOUBT = 2 / STEPS
PLANE = "plane-lengths"
CURVE = "by_distance: needs pairs of a distance and an epsilon."
PROFILES: dict[str, type[Profile]] = {
    each.kind: each
    for each in (
        PureDP,
        GaussianDP,
        PoissonGaussianDP,
        ApproximateDP,
        DiscreteLosses,
        TruncatedLaplaceDP,
        Composed,
    )
}


@dataclass(frozen=True)
class Guarantee:
    """Privacy guarantee of a release, from public parameters alone.

    Attributes
    ----------
    relation : Relation
        Neighbouring relation.
    profile : Profile
        delta as a function of epsilon.
    theorem : str or Statement
        Code of the theorem of docs/theory.md or docs/theory/ that proves it.
    assumptions : tuple of str or Statement
        Codes of everything that the proof takes for granted; `assumption_texts` has them as sentences.
    by_distance : tuple of (float, float)
        (d, epsilon at the delta of `profile.at`) for one point that moves by d: what can be told apart, by distance.
    unit : str or None
        Unit of the relation's lengths in words: that of the domain's coordinates, where the domain is known.
    """

    relation: Relation
    profile: Profile
    theorem: Code
    assumptions: tuple[Code, ...]
    by_distance: tuple[tuple[float, float], ...] = field(default=(), repr=False)
    unit: str | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        instance("relation", self.relation, Relation, "AlphaNeighbours(25.0) is one")
        instance("profile", self.profile, Profile, "GaussianDP(0.3, 1e-6) is one")
        require_code("theorem", self.theorem)
        require_codes(self.assumptions)

    def delta(self, epsilon: float) -> float:
        """Smallest delta at which (epsilon, delta) differential privacy holds."""
        if not isinstance(epsilon, Real) or not epsilon >= 0:
            msg = f"epsilon: must be at least 0, got {epsilon!r}."
            raise InputError(msg)
        return self.profile.delta(epsilon)

    def epsilon(self, delta: float | None = None) -> float:
        """Smallest epsilon at which (epsilon, delta) differential privacy holds; by default at `profile.at`."""
        delta = self.profile.at if delta is None else delta
        if not isinstance(delta, Real) or not 0 <= delta < 1:
            msg = f"delta: must lie in [0, 1), got {delta!r}."
            raise InputError(msg)
        return self.profile.epsilon(delta)

    def keeps_to(self, epsilon: float, delta: float) -> bool:
        """Whether the guarantee is within a budget, but for the last digits of a float, which machines round apart."""
        return self.epsilon() <= (1 + ROUNDED_APART) * epsilon and self.profile.at <= (1 + ROUNDED_APART) * delta

    def require(self, epsilon: float, delta: float) -> None:
        """Raise `PrivacyCheckError` when the guarantee exceeds a budget."""
        if not self.keeps_to(epsilon, delta):
            msg = (
                f"epsilon: {self.theorem_text} gives {self.epsilon():.6g} at delta = {self.profile.at:g}, more than "
                f"the budget ({epsilon:g}, {delta:g}); spend more, or let the data have less influence."
            )
            raise PrivacyCheckError(msg)

    def epsilon_of_one_point(self) -> float:
        """Epsilon of one point under a capped relation: its share of the person's for pure bounds, else all of it."""
        if isinstance(self.relation, CappedRelation) and isinstance(self.profile, PureDP):
            return self.epsilon() / self.relation.max_points_per_person
        return self.epsilon()

    @property
    def mu(self) -> float | None:
        """Gaussian differential privacy parameter, where the mechanism has one."""
        return getattr(self.profile, "mu", None)

    def in_unit(self, unit: str) -> Self:
        """The same guarantee with lengths in a unit, `domain.unit`."""
        return self if unit == self.unit else replace(self, unit=unit)

    def assuming(self, codes: Iterable[Code]) -> Self:
        """The same guarantee with further assumptions."""
        more = tuple(dict.fromkeys((*self.assumptions, *codes)))
        return self if more == self.assumptions else replace(self, assumptions=more)

    @property
    def theorem_text(self) -> str:
        """The theorem for readers."""
        return text(self.theorem)

    @property
    def assumption_texts(self) -> tuple[str, ...]:
        """The assumptions for readers, one sentence each."""
        return tuple(map(text, self.assumptions))

    @property
    def neighbouring(self) -> str:
        """The neighbouring relation in words, with the unit of its lengths where it is known."""
        return self.relation.describe() if self.unit is None else self.relation.described_in(self.unit)

    def _repr_html_(self) -> str:
        rows = [("neighbouring", self.neighbouring), ("epsilon", upward(self.epsilon()))]
        rows += [("delta", upward(self.profile.at)), ("proved by", self.theorem_text)]
        return html_card("Guarantee", rows, text=f"{self.profile.describe()}.", folded=self.assumption_texts)

    def __str__(self) -> str:
        assumed = " ".join(f"({i}) {sentence}" for i, sentence in enumerate(self.assumption_texts, 1))
        return (
            f"{self.profile.describe()}. Two patterns are neighbouring when {self.neighbouring}. "
            f"Proved by {self.theorem_text}. It is assumed that: {assumed}"
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON form for a certificate."""
        return {
            "relation": self.relation.to_dict(),
            "profile": self.profile.to_dict(),
            "theorem": code_json(self.theorem),
            "assumes": [*map(code_json, self.assumptions)],
            "by_distance": [list(pair) for pair in self.by_distance],
        }


def guarantee_from_dict(data: Mapping[str, Any]) -> Guarantee:
    """Guarantee from its JSON form; InputError for a profile this version does not know, or without what it needs."""
    data = entries("guarantee", data, ("relation", "profile", "theorem", "assumes", "by_distance"))
    curve = as_reals(elements(data["by_distance"]) or np.empty((0, 2)), CURVE)
    if curve.ndim != 2 or curve.shape[1] != 2:
        raise InputError(CURVE)
    return Guarantee(
        relation=relation_from_dict(data["relation"]),
        profile=profile_from_dict(data["profile"]),
        theorem=code_from_json("theorem", data["theorem"]),
        assumptions=codes_from_json(data["assumes"]),
        by_distance=tuple((float(d), float(e)) for d, e in curve),
    )


def profile_from_dict(data: Mapping[str, Any]) -> Profile:
    """Profile from its JSON form; InputError for a kind this version does not know, or without what it needs."""
    kind = entries("profile", data).get("kind")
    if not isinstance(kind, str) or kind not in PROFILES:
        known = ", ".join(map(repr, PROFILES))
        msg = f"profile: kind {shown(kind)} is not known to this version; expected one of {known}."
        raise InputError(msg)
    keys = PROFILES[kind].keys()
    entries("profile", data, [*keys.values()])
    stated = {name: data[key] for name, key in keys.items()}
    if "parts" in stated:
        stated["parts"] = tuple(map(profile_from_dict, several("parts", stated["parts"], Mapping)))
    return PROFILES[kind](**stated)


def on_map(relation: CappedRelation, domain: Domain | None) -> CappedRelation:
    """The relation whose radius is a length on the map: all neighbours on the ground are neighbours under it.

    Parameters
    ----------
    relation : CappedRelation
    domain : Window or LinearNetwork or None
        None where lengths are true ones.
    """
    if not isinstance(relation, AlphaNeighbours) or domain is None:
        return relation
    return replace(relation, alpha=relation.alpha * _factor(domain))


def on_ground(curve: Any, domain: Domain | None) -> Curve:
    """Pairs of a true length and an epsilon, from pairs of a length on the map and an epsilon."""
    return tuple((true_length(length, domain), float(epsilon)) for length, epsilon in curve)


def true_length(length: float, domain: Domain | None) -> float:
    """Least true length of a length on the map."""
    return float(length) / _factor(domain)


def lengths_assumed(relation: Relation, domain: Domain | None) -> tuple[Code, ...]:
    """Code about lengths on the map, where the relation has a radius and the domain a map."""
    factor = _factor(domain)
    if domain is None or domain.crs is None or not math.isfinite(relation.reach):
        return ()
    crs = domain.crs
    # The database that could name others differs by version.
    name = crs if CODE.fullmatch(crs) else NAMELESS.capitalize()
    if is_plane(crs):
        return (Statement(PLANE, crs=name),)
    return (Statement(STRETCHED, crs=name, factor=factor),)


def _factor(domain: Domain | None) -> float:
    """Largest length on the map of one true unit; InputError for what is no domain."""
    return 1.0 if domain is None else float(instance("domain", domain, Domain, "a Window is one").scale_factor)


def require_scale(domain: Domain) -> None:
    """Refuse a scale factor on a certificate that is not the one of the domain beside it.

    Raises
    ------
    InputError
        Also when lengths on the map differ from true ones by more than a twentieth.
    """
    stated = domain.scale_factor
    found = scale_factor(domain.geometry, domain.crs)
    if not abs(found - stated) <= DOUBT or round(stated * STEPS) / STEPS != stated:
        msg = f"scale_factor: lengths on the map are up to {found:.7g} times true ones, and it states {stated:.7g}."
        raise InputError(msg)
