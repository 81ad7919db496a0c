"""Guarantee rederived from the public parameters on a certificate, and the allowed files beside it.

Parameters that are not exactly those of the mechanism are refused, so that a certificate cannot describe a release
other than the one whose bound it states.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

from dpppsynth.contract.estimator import OFFSETS, AnyEstimator, assumed_of
from dpppsynth.contract.registry import is_known, mechanism
from dpppsynth.contract.statistic import NOTHING, FileCheck, Parameters, Statistic, require, require_kept_cap
from dpppsynth.contract.stratified_plan import STRATA
from dpppsynth.core.arguments import shown
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Json, JsonRead
from dpppsynth.privacy.composition import parallel
from dpppsynth.privacy.guarantee import Guarantee, PureDP
from dpppsynth.privacy.relations import CappedRelation, MovedPoint, Relation
from dpppsynth.privacy.shuffling import ShuffledPrivacy
from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP
from dpppsynth.release import certificate
from dpppsynth.spatial.domains import Domain

# Public parameters of every mechanism.
COMMON = ("epsilon", "n", "expected_n")


class DerivedFile(NamedTuple):
    """A file of a release, and the statistics whose numbers its check takes one after the other."""

    file: str
    statistics: tuple[str, ...]
    check: FileCheck


@dataclass(frozen=True)
class RederivedRelease:
    """Guarantee and files that follow from a mechanism's public parameters.

    Attributes
    ----------
    guarantee : Guarantee
    statistic : Statistic
        What the budget was spent on; of several levels, which are all of one kind, the first one's.
    released : dict of str to Statistic
        Files of released numbers, and what they are numbers of; none where only patterns are released.
    others : frozenset of str
        Further files that such a release may hold, beside domain and synthetic patterns.
    offset : str or None
        Fingerprint of the public offset.
    following : tuple of DerivedFile
        Files that follow from the statistics.
    mark_names : tuple of str
        Marks of synthetic points.
    require_marks : callable
        Refuses marks of other values than such a release has.
    shuffled : ShuffledPrivacy or None
        Second statement, on an honest shuffler of reports.
    domain : Window or LinearNetwork or None
        What it was derived on.
    """

    guarantee: Guarantee
    statistic: Statistic
    released: Mapping[str, Statistic]
    others: frozenset[str]
    offset: str | None
    following: tuple[DerivedFile, ...]
    mark_names: tuple[str, ...]
    require_marks: Callable[[Mapping[str, Any]], object]
    shuffled: ShuffledPrivacy | None = None
    domain: Domain | None = None


def knows(name: object) -> bool:
    """Whether certificates of this mechanism can be rederived."""
    return name == STRATA or is_known(name)


def has_form(name: str, parameters: JsonRead) -> bool:
    """Whether parameters of a known mechanism, or of each level, have the names and kinds of values that it declares.

    Levels of unknown mechanisms are left to `rederive`, which refuses them by name.
    """
    if not certificate.parameters_make_sense(parameters):
        return False
    if name != STRATA:
        return "strata" not in parameters and _form(name)(parameters)
    parts = parameters.get("strata", [])
    return "strata" in parameters and all(
        _form(part["mechanism"])(part["parameters"]) for part in parts if is_known(part["mechanism"])
    )


@cache
def _form(name: str) -> Callable[[JsonRead], bool]:
    """Whether public parameters have the form that a mechanism declares."""
    import jsonschema

    described = mechanism(name)
    names = {*COMMON, *described.statistic.form} | ({"estimator"} if described.estimators else set())
    form = {
        "properties": dict(described.statistic.form),
        "required": sorted(names - described.statistic.optional),
        "propertyNames": {"enum": sorted(names)},
    }
    valid: Callable[[JsonRead], bool] = jsonschema.Draft202012Validator(form).is_valid
    return valid


def rederive(name: str, parameters: Parameters, relation: Relation, domain: Domain) -> RederivedRelease:
    """Guarantee and files that follow from the public parameters of a mechanism, or of a release by levels.

    Raises
    ------
    InputError, PrivacyCheckError, LookupError, TypeError, ValueError
        When they are not those of a release.
    """
    if name == STRATA:
        return _by_levels(parameters, relation, domain)
    described = mechanism(name)
    _require_sizes(parameters, relation)
    if described.statistic.capped and not isinstance(relation, CappedRelation):
        msg = "relation: this mechanism needs a cap on the points of one person, which this relation lacks."
        raise InputError(msg)
    require_kept_cap(described.statistic, relation)
    if isinstance(relation, MovedPoint) and relation.has_marks and not described.statistic.keeps_marks:
        msg = "relation: this mechanism measures neither times nor types, of which it speaks."
        raise InputError(msg)
    plan = described.statistic.from_parameters(parameters, relation, domain, mechanism=name)
    own, estimator, stated = plan.parameters(), None, None
    named = set(own)
    if described.estimators:
        named.add("estimator")
        stated = parameters["estimator"]
        estimator = described.estimator(stated["kind"]).as_stated(stated, plan)
    require(parameters.keys() == named, f"exactly {', '.join(sorted(named))} are stated")
    # Such as the scale of the noise.
    for each, value in own.items():
        require(same_values(parameters[each], value), f"{each} = {shown(value)} follows from the others")
    return _derived(plan, estimator, stated)


def _require_sizes(parameters: Parameters, relation: Relation) -> None:
    n = parameters["n"]
    require(n is None or type(n) is int, "n is a whole number")
    require((n is not None) == relation.n_is_public, "n is stated where it is public, and nowhere else")
    guessed = parameters["expected_n"] is not None
    require(not (guessed and relation.n_is_public), "expected_n takes the place of n where n is secret")


def _derived(plan: Statistic, estimator: AnyEstimator | None, stated: JsonRead | None) -> RederivedRelease:
    offset = None if stated is None else stated.get("offset")
    following = {**plan.following, **({} if estimator is None else estimator.following)}
    files = {file for file in following if not certificate.SYNTHETIC.fullmatch(file)}
    return RederivedRelease(
        plan.guarantee.assuming(assumed_of(stated)).in_unit(plan.domain.unit),
        plan,
        {certificate.STATISTIC: plan} if plan.size else {},
        others=frozenset(files | (set() if offset is None else OFFSETS)),
        offset=offset,
        following=tuple(DerivedFile(file, (certificate.STATISTIC,), check) for file, check in following.items()),
        mark_names=plan.mark_names,
        require_marks=plan.require_marks,
        shuffled=plan.shuffled,
    )


def same_values(claimed: Json, derived: Json) -> bool:
    """Whether parts of a certificate are equal; numbers may differ in their last digits, across machines."""
    if isinstance(derived, Mapping):
        same = isinstance(claimed, Mapping) and claimed.keys() == derived.keys()
        return same and all(same_values(claimed[key], value) for key, value in derived.items())
    if isinstance(derived, list):
        return isinstance(claimed, list) and len(claimed) == len(derived) and all(map(same_values, claimed, derived))
    if isinstance(derived, float):
        whole = isinstance(claimed, int | float) and not isinstance(claimed, bool)
        return whole and math.isclose(claimed, derived, rel_tol=1e-9)
    return type(claimed) is type(derived) and bool(claimed == derived)


def _by_levels(parameters: Parameters, relation: Relation, domain: Domain) -> RederivedRelease:
    require(parameters.keys() == {"by", "levels", "strata"}, "by, levels and strata are stated")
    stated, levels = parameters["strata"], parameters["levels"]
    require(len(set(map(type, levels))) == 1, "levels are whole numbers, or texts")
    require(
        all(is_known(each["mechanism"]) for each in stated), "each level is released by a mechanism of this version"
    )
    parts = [rederive(each["mechanism"], each["parameters"], relation, domain) for each in stated]
    spent = all(spends(part.guarantee, each["parameters"]) for part, each in zip(parts, stated, strict=True))
    kinds = {
        (each["mechanism"], plan.noise_name(), plan.paid_patterns, part.offset, _budget(part, each["parameters"]))
        for part, plan, each in zip(parts, [part.statistic for part in parts], stated, strict=True)
    }
    same = spent and len(parts) == len(levels) and len(kinds) == 1
    require(same, "there is one release for each level, all of one kind and budget")
    tracks = any(each["parameters"].get("track") for each in stated)
    require(not tracks, "a track is one person's, whose points are not released by levels")
    own = dict(zip(certificate.prefixes(parameters["by"], levels), parts, strict=True))
    # The offset is shared, a posterior each level's own.
    others = {name if name in OFFSETS else start + name for start, part in own.items() for name in part.others}
    return RederivedRelease(
        parallel([part.guarantee for part in parts], parameters["by"]),
        parts[0].statistic,
        {start + name: plan for start, part in own.items() for name, plan in part.released.items()},
        others=frozenset(others),
        offset=parts[0].offset,
        following=_following(own),
        mark_names=(parameters["by"],),
        require_marks=partial(_require_levels, parameters["by"], levels),
    )


def _budget(part: RederivedRelease, parameters: Parameters) -> tuple[float | None, float]:
    """Epsilon where the noise is set from it, and delta: what all levels have in common."""
    epsilon, delta = stated_budget(parameters)
    return (epsilon if isinstance(part.guarantee.profile, PureDP) else None), delta


def _require_levels(by: str, levels: Sequence[object], marks: Mapping[str, Any]) -> None:
    require(set(marks[by].tolist()) <= set(levels), "points are of the levels that there are")


def _following(parts: Mapping[str, RederivedRelease]) -> tuple[DerivedFile, ...]:
    """Files of all levels that follow from their statistics; patterns of all levels are in one file."""
    own: dict[str, DerivedFile] = {}
    for start, part in parts.items():
        for file, names, check in part.following:
            place = file if certificate.SYNTHETIC.fullmatch(file) else start + file
            before = own[place].statistics if place in own else ()
            own[place] = DerivedFile(place, (*before, *(start + name for name in names)), check)
    return tuple(own.values())


def stated_budget(parameters: Parameters) -> tuple[float, float]:
    """Epsilon and delta that are stated to be spent."""
    return parameters["epsilon"], parameters.get("delta", 0.0)


def spends(guarantee: Guarantee, parameters: Parameters) -> bool:
    """Whether a guarantee keeps to the stated budget, and spends all of it."""
    epsilon, delta = stated_budget(parameters)
    # Pure bounds are exact, others found by numbers. Of noise within whole bounds the scale follows from the budget.
    low = 1 - (1e-9 if isinstance(guarantee.profile, PureDP) else 1e-5)
    low = 0.0 if isinstance(guarantee.profile, TruncatedLaplaceDP) else low
    whole = math.isclose(guarantee.profile.at, delta, rel_tol=1e-9) and low * epsilon <= max(
        guarantee.epsilon(), NOTHING
    )
    return whole and guarantee.keeps_to(epsilon, delta)
