"""Report text on weaknesses of a guarantee, shown before the guarantee itself."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from dpppsynth.core.rounding import stated
from dpppsynth.core.units import short_unit
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.privacy.catalogue import LAYER, Statement
from dpppsynth.privacy.guarantee import Guarantee, PureDP
from dpppsynth.privacy.interpretation import averaged, chance, guesses, likelihood, moved_anyway, rare
from dpppsynth.privacy.relations import PUBLIC, AddRemove, AddRemovePerson, CappedRelation, Local, MovedPoint, Relation
from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP
from dpppsynth.reporting import local_privacy as local
from dpppsynth.spatial.domains import Domain

# Probability of publishing a random point whole that a claim may leave room for, above which its delta is called weak.
EXPOSING = 0.01


def cautions(guarantee: Guarantee, parameters: Mapping[str, Any]) -> list[str]:
    """Paragraphs about weaknesses of a guarantee, by the public parameters of its certificate; mostly none."""
    said = local.cautions(guarantee)
    if averaged(guarantee):
        said.append(
            "Attention: this is not differential privacy as it is usually meant. What is proved holds on average over "
            "data that the model might have produced. For the data at hand it may fail, and nobody can tell whether it "
            "does."
        )
    if any(each.get("sampler") == "nuts" for each in _parts(parameters)):
        said.append(
            "Attention: the random draw that protects was made by an approximate method. That it is good enough is "
            "assumed, not proved; the assumptions say so."
        )
    exposed = exposure(guarantee, parameters)
    if exposed > EXPOSING:
        said.append(
            "Attention: this is a weak promise, because its delta is large for so many points. Taken by itself, the "
            "claim would also allow one point of the data, chosen at random, to be published as it is with a "
            f"probability of up to {stated(exposed, 2)}. Whether this release leaves room for such a thing, only its "
            "privacy profile can tell."
        )
    return said


def exposure(guarantee: Guarantee, parameters: Mapping[str, Any]) -> float:
    """Probability of publishing a random point itself that the same epsilon and delta would allow; 0 where n is secret.

    Publishing one of n points with probability p changes no outcome's probability by more than `p k / n` when a
    person's k points change.
    """
    counts = [each["n"] for each in _parts(parameters) if each.get("n") is not None]
    cap = getattr(guarantee.relation, "max_points_per_person", 1)
    return min(1.0, sum(counts) * guarantee.profile.at / cap)


def _parts(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters of the release, or of the releases of all levels."""
    if "strata" in parameters:
        return (each["parameters"] for each in parameters["strata"])
    return iter([parameters])


GROUPS = (
    "It does not hide what is true of a neighbourhood or a group: that is what the patterns are published for, and it "
    "may concern people who live there, whether or not they are in the data."
)
MOVED = (
    "It does not hide how many points lie in some part of the area, as long as that is wide beside the moves: every "
    "released point stands for a point of the data, not far from it."
)


def promise(
    guarantee: Guarantee, domain: Domain, parameters: Mapping[str, Any], costs: Sequence[str] = ()
) -> list[str]:
    """Paragraphs of the guarantee: its weaknesses, persons, limits of an attacker, costs of bounds, and its proof."""
    start = cautions(guarantee, parameters)
    if local.by_reports(guarantee.relation):
        return [*start, local.whom(guarantee.relation), local.limit(guarantee, domain), local.proof_basis(guarantee)]
    return [*start, _whom(guarantee), _limit(guarantee, domain), *costs, _firmness(guarantee)]


def not_promised(guarantee: Guarantee, domain: Domain, by: str | None, *, moved: bool = False) -> list[str]:
    """Text on guarantees that a reader might expect but that are not given.

    `by` is the mark whose levels were released one by one; points are `moved` where each is one of the data's.
    """
    relation = guarantee.relation
    said = []
    if local.by_reports(relation):
        said += local.not_promised(relation)
    elif relation.n_is_public:
        said.append("It does not hide who is in the data, or how many points there are: both count as public.")
    said += _marks_open(relation)
    said += _farther(guarantee, domain)
    if by is not None:
        said.append(f"It does not hide the {by} of any point: how many points each level has counts as public, too.")
    if by is not None and not relation.n_is_public:
        said[-1] = f"It does not hide that every level of {by} has at least one point."
    if isinstance(relation, AddRemove | AddRemovePerson):
        said.append(moved_anyway(guarantee))
    if relation.user_cap is not None:
        # The number of a person's points is hidden where another number may take its place.
        if relation.n_is_public and not isinstance(relation, Local):
            said.append("It does not hide how many points anybody has.")
    elif isinstance(relation, CappedRelation):
        said.append(f"It does not cover more than {points(relation.max_points_per_person)} of one person.")
    return [
        *_layers(guarantee),
        *said,
        "It does not cover other releases from the same data. What several releases reveal adds up.",
        GROUPS,
        MOVED if moved else "It does not say that the synthetic patterns are accurate. No synthetic point is a person.",
    ]


def _layers(guarantee: Guarantee) -> list[str]:
    """Sentences on public layers, which a certificate cannot show to be public."""
    layers = [dict(c.parameters) for c in guarantee.assumptions if isinstance(c, Statement) and c.code == LAYER]
    return [
        f"It does not protect what went into the layer of the {each['layer']} (source: {each['source']}), which is "
        "published as it is: a layer made from the points would show them."
        for each in layers
    ]


def _marks_open(relation: Relation) -> list[str]:
    """Times and types that are not hidden, or not farther than they may change."""
    if not isinstance(relation, MovedPoint):
        return []
    said = []
    if relation.time == PUBLIC:
        said.append("It does not hide the time of any point: times count as public.")
    elif isinstance(relation.time, float):
        said.append(
            f"It does not hide times beyond {relation.time_change}: an attacker may learn about when something was."
        )
    if relation.types == PUBLIC:
        said.append("It does not hide the type of any point: how many points each type has counts as public, too.")
    return said


def _marks_cases(relation: Relation) -> str:
    """End of a sentence on two cases: how far times and types differ."""
    if not isinstance(relation, MovedPoint) or not relation.has_marks:
        return ""
    said = []
    if isinstance(relation.time, float):
        said.append(f"its time may differ by up to {relation.time_change}")
    elif relation.time is not None:
        said.append("its time is the same" if relation.time == PUBLIC else "its time may be any other")
    if relation.types is not None:
        said.append("its type is the same" if relation.types == PUBLIC else "its type may be any other")
    return f"; {' and '.join(said)}"


def points(count: int) -> str:
    """A number of points in words."""
    return "one point" if count == 1 else f"{count} points"


def several(relation: Relation) -> TypeGuard[CappedRelation]:
    """Whether a person may have several points, up to a public cap, or any number of which a few count."""
    return isinstance(relation, CappedRelation) and relation.unit == "person"


def _whom(guarantee: Guarantee) -> str:
    relation = guarantee.relation
    if isinstance(relation, AddRemovePerson):
        who = "The promise is made to every person, with all of their points, however many these are."
    elif relation.user_cap is not None:
        who = (
            "The promise is made to every person, with all of their points, however many these are. Of each person "
            f"at most {points(relation.user_cap.most)}, drawn at random, went into the release."
        )
    elif not several(relation):
        who = "The promise is made to every single point, and so to every person as long as nobody has more than one."
    else:
        who = (
            f"The promise is made to every person with up to {relation.max_points_per_person} points in the data, "
            "all of which may change at once."
        )
    if averaged(guarantee):
        return (
            f"{who} It counts over all data that the model might have produced, so it does not cover an attacker who "
            "already knows some of the points."
        )
    return (
        f"{who} It holds whatever an attacker already knows, even everything about everybody else, and whatever the "
        "attacker does with the release, today or later."
    )


def _limit(guarantee: Guarantee, domain: Domain) -> str:
    start = "On average over such data this can be said. " if averaged(guarantee) else ""
    cases = _cases(guarantee.relation, domain)
    guessed = f"{chance(guesses(guarantee.profile))}{rare(guarantee)}"
    return f"{start}Take two cases: {cases}. Then {likelihood(guarantee)}. {guessed}"


def _cases(relation: Relation, domain: Domain) -> str:
    if isinstance(relation, AddRemovePerson):
        return "a certain person is in the data with all of their points, or is not in the data at all"
    if isinstance(relation, AddRemove):
        return f"a certain {relation.unit} is in the data, or is not"
    if not several(relation):
        here, what, start = "a certain point lies in one place", "it lies", "there"
    else:
        most = "however many" if relation.user is not None else f"up to {relation.max_points_per_person}"
        here = f"the points of a certain person, {most}, lie where they lie"
        what, start = "each of them lies", "its place in the first case"
    if not math.isfinite(relation.reach):
        return f"{here}, or {what} anywhere else in the published area or street network{_marks_cases(relation)}"
    away = f"no farther than {length(relation.reach, domain)} away from {start}"
    return f"{here}, or {what} elsewhere, {away}, {way(domain)}{_marks_cases(relation)}"


def _firmness(guarantee: Guarantee) -> str:
    count = len(guarantee.assumptions)
    if averaged(guarantee):
        return (
            f"That it holds on average rests on {guarantee.theorem_text}, and on {count} assumptions that are listed "
            "below. One is that the data were drawn from the fitted model itself, which is hardly ever true."
        )
    return (
        f"This is proved mathematically ({guarantee.theorem_text}), on {count} assumptions that are listed below. "
        "Whether those on how the data were handled are true only the custodian can say."
    )


def _farther(guarantee: Guarantee, domain: Domain) -> list[str]:
    reach = guarantee.relation.reach
    if not math.isfinite(reach) or (not guarantee.by_distance and not silent_beyond(guarantee)):
        return []
    away = length(reach, domain)
    if holds_anywhere(guarantee):
        return []
    if guarantee.by_distance and not silent_beyond(guarantee):
        curve = "the curve by distance bounds how well"
        if several(guarantee.relation):
            curve += " for a single point, and for several points of a person it may be better"
        less = (
            f"It does not protect places farther apart than {away} as well as nearer ones: the farther, the less. An "
            f"attacker may learn which part of the area somebody is in; {curve}."
        )
        return [less]
    return [f"It says nothing about two places farther apart than {away}."]


def silent_beyond(guarantee: Guarantee) -> bool:
    """Whether the guarantee is void for places farther apart than the privacy radius."""
    reach, curve = guarantee.relation.reach, guarantee.by_distance
    # The loss of counts does not depend on how far a point moves.
    if not math.isfinite(reach) or isinstance(guarantee.profile, PureDP | TruncatedLaplaceDP):
        return False
    return not curve or math.isclose(curve[-1][0], reach)


def holds_anywhere(guarantee: Guarantee) -> bool:
    """Whether the curve of epsilon by distance ends level and within the claim, and so holds at every distance."""
    curve = guarantee.by_distance
    if len(curve) < 2 or not isinstance(guarantee.profile, PureDP):
        return False
    most, level = max(epsilon for _, epsilon in curve), math.isclose(curve[-1][1], curve[-2][1])
    return level and most <= guarantee.epsilon_of_one_point() * (1 + 1e-9)


def way(domain: Domain) -> str:
    """Path along which distances are measured, in words."""
    return "along the streets" if isinstance(domain, LinearNetwork) else "along a path inside the area"


def length(value: float, domain: Domain) -> str:
    """A length with its unit."""
    return f"{value:g} {short_unit(domain.unit)}"
