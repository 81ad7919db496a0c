"""Joint guarantees: of two statistics in one release, and of separate releases from disjoint public levels.

Points of different levels never meet in one release. A change in one level leaves the others alone; and a person with
points in several levels, k in all, changes `k_l` of them in level l: pure losses add up to `sum k_l/k epsilon_l`,
Gaussian ones to `sqrt(sum (k_l/k)^2 mu_l^2)`, Poisson numbers of Gaussian ones to rates in proportion to `k_l`, and
counts with bounded error are one vector of counts. None exceeds the largest of the levels' own. Bounds of which only a
pair or a table is known need one point per person (docs/theory/strata.md).
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from dpppsynth.core.arguments import several
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.losses import DiscreteLosses
from dpppsynth.privacy.profiles import ApproximateDP, GaussianDP, PoissonGaussianDP, Profile, PureDP
from dpppsynth.privacy.relations import CappedRelation, Relation

STRATA = "The {by} of every point is not protected: it is the same in neighbouring patterns."
LEVELS = "The levels of {by} were chosen without looking at the points, and hold all of them."
INHABITED = "Every level of {by} has at least one point, since one without is refused."

# Attribute in which the levels' profiles may differ: the larger, the less private.
ORDERED = {PureDP: "level", GaussianDP: "mu", PoissonGaussianDP: "ratio", ApproximateDP: "slack"}


def together(first: Guarantee, second: Guarantee) -> Guarantee:
    """Guarantee of two statistics of the same points with pure bounds, whose epsilons add up.

    By distance, the second is worth as much to a point that moves a little as to one that moves far.

    Raises
    ------
    InputError
        When the bounds are not pure, or the relations differ.
    """
    one, other = first.profile, second.profile
    if not isinstance(one, PureDP) or not isinstance(other, PureDP) or first.relation != second.relation:
        msg = "guarantees: only pure ones under one relation add up here; compose the profiles of others."
        raise InputError(msg)
    more = second.epsilon_of_one_point()
    return Guarantee(
        first.relation,
        PureDP(one.level + other.level),
        f"{first.theorem} and {second.theorem}, added up",
        tuple(dict.fromkeys((*first.assumptions, *second.assumptions))),
        tuple((d, epsilon + more) for d, epsilon in first.by_distance),
    )


def parallel(guarantees: Sequence[Guarantee], by: str) -> Guarantee:
    """Guarantee of one release for each level of a mark.

    Parameters
    ----------
    guarantees : sequence of Guarantee
        Of the levels' releases: one relation, one theorem, one kind of profile.
    by : str
        Name of the mark.

    Raises
    ------
    InputError
        When the releases are of different kinds, or nothing is known about people with points in several levels.
    """
    each_level = several("guarantees", guarantees, Guarantee, "synthesizer.check(domain, n=500) gives one")
    if not each_level:
        msg = "guarantees: need one at least, that of each level's release; got none."
        raise InputError(msg)
    first = each_level[0]
    require_all_points(first.relation)
    for other in each_level[1:]:
        if (other.relation, other.theorem, other.assumptions) != (first.relation, first.theorem, first.assumptions):
            msg = "levels: all of them must be released by one mechanism, under one relation."
            raise InputError(msg)
    last = STRATA if first.relation.n_is_public else INHABITED
    if not isinstance(first.relation, CappedRelation):
        msg = "levels: a person's points may lie in all of them, and this relation has no cap on them; release once."
        raise InputError(msg)
    if isinstance(first.profile, ApproximateDP | DiscreteLosses) and first.relation.max_points_per_person > 1:
        msg = (
            f"levels: {first.theorem} does not add up over people with points in several levels; take "
            f"{mention('max_points_per_person', '1')}, or another bound."
        )
        raise InputError(msg)
    return Guarantee(
        first.relation,
        weakest([each.profile for each in each_level]),
        f"{first.theorem}, in parallel over the levels of {by}",
        (*first.assumptions, LEVELS.format(by=by), last.format(by=by)),
        _curve([each.by_distance for each in each_level]),
        first.unit,
    )


def require_all_points(relation: Relation) -> None:
    """Refuse levels of a mark where a few points of each person are drawn, which each level would do for itself.

    Raises
    ------
    InputError
    """
    if relation.user_cap is not None:
        msg = (
            f"by: the cap of {relation.user_cap.most} holds for a person's points at all levels together, and "
            "which of them count is drawn: how many points each level has would be known afterwards only, and must be "
            "public before. Make one release for each level, each with a budget of its own; or vouch for the cap, "
            f"without {mention('user')}."
        )
        raise InputError(msg)


def weakest(profiles: Sequence[Profile]) -> Profile:
    """The profile that is worst at every epsilon; profiles that differ in one number alone are ordered by it."""
    from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP

    first = profiles[0]
    if isinstance(first, TruncatedLaplaceDP) and all(profile == first for profile in profiles):
        return first
    if isinstance(first, DiscreteLosses):
        return DiscreteLosses.worst([p for p in profiles if isinstance(p, DiscreteLosses)])
    name = next((name for kind, name in ORDERED.items() if isinstance(first, kind)), None)
    if name is None or any(replace(p, **{name: getattr(first, name)}) != first for p in profiles):  # type: ignore[type-var]
        msg = f"levels: no parallel composition is known for these guarantees of {type(first).__name__}."
        raise InputError(msg)
    return max(profiles, key=lambda profile: float(getattr(profile, name)))


def _curve(curves: Sequence[tuple[tuple[float, float], ...]]) -> tuple[tuple[float, float], ...]:
    """Upper envelope, as far as all curves go; between its own distances a curve counts with its next value."""
    if not all(curves):
        return ()
    end = min(curve[-1][0] for curve in curves)
    return tuple((d, max(_value(curve, d) for curve in curves)) for d, _ in curves[0] if d <= end)


def _value(curve: tuple[tuple[float, float], ...], d: float) -> float:
    return curve[bisect_left(curve, d * (1 - 1e-12), key=lambda pair: pair[0])][1]
