"""Report text on local privacy and geo-indistinguishability.

Distances under geo-indistinguishability are in squares of the public grid, which need not be as high as they are wide.
"""

import math
from typing import NamedTuple, TypeGuard

from dpppsynth.core.rounding import stated
from dpppsynth.core.units import short_unit
from dpppsynth.privacy.guarantee import Guarantee, PureDP
from dpppsynth.privacy.interpretation import NEXT_TO_NOTHING, WEAK, chance, factor, guesses, likelihood
from dpppsynth.privacy.relations import TRAJECTORY, GeoIndistinguishability, Local, Relation
from dpppsynth.privacy.shuffling import ShuffledPrivacy
from dpppsynth.spatial.domains import Domain

# Distances, in squares, whose factor is given in words where the grid has farther ones.
TOLD = {2.0: "two squares", 5.0: "five squares"}
ANYWHERE = "a certain person is in one place, or anywhere else in the published area"
ANY_POINTS = "the points of a certain person lie where they lie, or others, however many, lie anywhere else in the area"
ANY_WAY = "a certain person went one way, or any other in the published area, short or long"
NEXT_TO = "a certain person is in one square of the grid, or in another that shares a side with it"
EACH_NEXT_TO = (
    "the points of a certain person, however many, lie in some squares of the grid, or each in another that shares a "
    "side with its own"
)
BESIDE = "Nor does it hide what else came with a report, such as when it was sent, and from which address."
ADDS_UP = "What several reports reveal adds up."
BOTH = "this person's report, and all that is in this release,"
ALL_OF_IT = "all of this person's reports, and all that is in this release,"


class Opening(NamedTuple):
    """Opening statement of a report: protected persons, kind of privacy, source of patterns, meaning of epsilon."""

    whose: str = "each single point"
    kind: str = "differential privacy"
    source: str = "points that stay secret"
    about: str = ""


def by_reports(relation: Relation) -> TypeGuard[Local | GeoIndistinguishability]:
    """Whether persons sent reports that were randomised one by one."""
    return isinstance(relation, Local | GeoIndistinguishability)


def by_trajectories(relation: Relation) -> bool:
    """Whether the reports of a person were about their whole trajectory."""
    return isinstance(relation, Local) and relation.of == TRAJECTORY


def opening(relation: Relation) -> Opening:
    """The opening statement."""
    if not by_reports(relation):
        return Opening() if relation.unit == "point" else Opening("each person's points")
    if by_trajectories(relation):
        source = "random reports of each person, whose trajectories stay secret"
        return Opening("each person's trajectory", "local differential privacy", source)
    whose = "each person's location" if relation.user is None else "all points of each person"
    source = "one random report of each person, whose locations stay secret"
    if isinstance(relation, Local):
        return Opening(whose, "local differential privacy", source)
    return Opening(whose, "geo-indistinguishability", source, " for places one square of a public grid apart")


def cautions(guarantee: Guarantee) -> list[str]:
    """Limitation of geo-indistinguishability: no guarantee for places far apart."""
    if not isinstance(guarantee.relation, GeoIndistinguishability):
        return []
    told = (
        "Attention: this is not local differential privacy, and not differential privacy as it is usually meant. It "
        "hides where in a neighbourhood a person is, and not in which part of the area: the farther two places are "
        "apart, the less it protects."
    )
    weak = next((distance for distance, epsilon in guarantee.by_distance if guesses(PureDP(epsilon)) > WEAK), None)
    if weak is not None:
        apart = "Even for two squares side by side" if weak == 1 else f"For places {weak:g} squares apart and more"
        told += (
            f" {apart} it is a weak promise: a guess which of the two is true may be right in more than {WEAK:g} of "
            "100 cases."
        )
    return [told]


def whom(relation: Relation) -> str:
    """Text on the protected persons and the adversaries covered."""
    sent = "one report that had been randomised on its own"
    if by_trajectories(relation):
        sent = "reports about their trajectory, each of which had been randomised on its own"
    elif relation.user_cap is not None:
        sent += ". It is about one of their points, drawn at random, and hides all of them, however many these are"
    return (
        f"The promise is made to every person, each of whom sent {sent}. It "
        "holds against everybody, those who collect the reports included: nobody learns more about a person than this "
        "promise allows, whatever they already know, even everything about everybody else, and whatever they do with "
        "the reports, today or later. If the points were gathered first, and a custodian made all reports from them, "
        "that custodian has seen the points, and the promise holds against everybody else."
    )


def limit(guarantee: Guarantee, domain: Domain) -> str:
    """Likelihood ratio and probability of a right guess between two cases, in words."""
    ways = by_trajectories(guarantee.relation)
    whole = ALL_OF_IT if ways else BOTH
    likely = likelihood(guarantee, whole, whole)
    several = guarantee.relation.user_cap is not None
    guessed = f"Then {likely}. {chance(guesses(guarantee.profile))}"
    if not isinstance(guarantee.relation, GeoIndistinguishability):
        return f"Take two cases: {ANY_WAY if ways else ANY_POINTS if several else ANYWHERE}. {guessed}"
    cases = EACH_NEXT_TO if several else NEXT_TO
    return f"{squares(guarantee.relation, domain)} Take two cases: {cases}. {guessed}{_farther(guarantee)}"


def proof_basis(guarantee: Guarantee) -> str:
    """Text on the proof of the guarantee, and the parties to be trusted."""
    return (
        f"This is proved mathematically ({guarantee.theorem_text}), on {len(guarantee.assumptions)} assumptions that "
        "are listed below. Whether those on how reports were made are true only those can say who made them: the "
        "makers of the persons' devices, or a custodian who made reports of points at hand."
    )


def shuffled(second: ShuffledPrivacy) -> list[str]:
    """Paragraphs of the second guarantee, for reports mixed by an honest shuffler."""
    times = stated(math.exp(second.epsilon))
    return [
        (
            "The promise above holds whoever handles the reports. If moreover they went through a shuffler that nobody "
            "need trust with anything but mixing, a second and stronger statement holds: what anybody but the shuffler "
            f"sees is at most {times} times as likely in one of two such cases as in the other, but for an event whose "
            f"probability is {stated(second.delta)} at most."
        ),
        (
            "Whether there was such a shuffler neither this report nor the certificate can show. Who doubts one of the "
            "sentences below has the promise above, and nothing more."
        ),
    ]


def not_promised(relation: Relation) -> list[str]:
    """Text on guarantees that a reader might expect but that are not given."""
    if by_trajectories(relation):
        return [
            f"It does not hide who sent reports, or how many persons did: both count as public. {BESIDE}",
            f"It does not cover a second trajectory of the same person, or a second set of reports. {ADDS_UP}",
        ]
    about = "or a report of another point of theirs" if relation.user_cap is None else "about whichever point"
    said = [
        f"It does not hide who sent a report, or how many reports there are: both count as public. {BESIDE}",
        f"It does not cover a second report of the same person, {about}. {ADDS_UP}",
    ]
    if isinstance(relation, GeoIndistinguishability):
        said.insert(1, "It does not hide in which part of the area somebody is.")
    return said


def squares(relation: GeoIndistinguishability, domain: Domain) -> str:
    """Sentence on the public grid in whose squares distances are measured."""
    x0, y0, x1, y1 = domain.bounds
    wide, high = (x1 - x0) / relation.cells, (y1 - y0) / relation.cells
    unit = short_unit(domain.unit)
    return (
        f"A public grid divides the area into {relation.cells} by {relation.cells} squares, here {wide:.4g} {unit} "
        f"wide and {high:.4g} {unit} high."
    )


def _farther(guarantee: Guarantee) -> str:
    """Growth of the factor with distance, up to the places farthest apart."""
    known = dict(guarantee.by_distance)
    across = max(known, default=1.0)
    if across < 2:
        return ""
    words = {distance: name for distance, name in TOLD.items() if distance in known}
    words[across] = f"from one corner of the grid to the opposite one ({across:.3g} squares)"
    told = ", ".join(f"{name} {_times(known[distance])}" for distance, name in words.items())
    end = ""
    if guesses(PureDP(known[across])) > NEXT_TO_NOTHING:
        end = " At that distance a guess could be right practically every time."
    return f" The factor grows with the distance: {told}.{end}"


def _times(epsilon: float) -> str:
    odds = factor(epsilon)
    return "more than a million" if odds is None else f"up to {odds}"
