"""Joint guarantees: of statistics in one release, of releases from disjoint public levels, and of releases in sequence.

Points of different levels never meet in one release. A change in one level leaves the others alone; and a person with
points in several levels, k in all, changes `k_l` of them in level l: pure losses add up to `sum k_l/k epsilon_l`,
Gaussian ones to `sqrt(sum (k_l/k)^2 mu_l^2)`, Poisson numbers of Gaussian ones to rates in proportion to `k_l`, and
counts with bounded error are one vector of counts. None exceeds the largest of the levels' own. Bounds of which only a
pair or a table is known need one point per person (docs/theory/strata.md).

In sequence, Gaussian releases compose to a Gaussian one and pure ones to a pure one, whether or not the settings of
later releases depend on what earlier ones published. For other kinds, and mixtures, the law of summed privacy losses
is computed; all budgets must be settled beforehand (docs/theory/composition.md).
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import scipy

from dpppsynth.core.arguments import instance, positive, probability, several
from dpppsynth.core.errors import InputError
from dpppsynth.core.rounding import sum_up
from dpppsynth.core.wording import either, mention
from dpppsynth.privacy.catalogue import LAYER, Code, Statement, text
from dpppsynth.privacy.composed import Composed, merged_profiles
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.losses import DiscreteLosses
from dpppsynth.privacy.profiles import ApproximateDP, GaussianDP, PoissonGaussianDP, Profile, PureDP
from dpppsynth.privacy.relations import CappedRelation, Relation
from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP

__all__ = ["FIXED_BEFOREHAND", "Composed", "adaptive", "compose", "gaussian_filter", "largest"]

STRATA = "public-level"
LEVELS = "public-levels"
INHABITED = "inhabited-levels"

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
        PureDP(sum_up([one.level, other.level])),
        Statement("added-up", first=first.theorem, second=second.theorem),
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
        if (other.relation, other.theorem, _own(other)) != (first.relation, first.theorem, _own(first)):
            msg = "levels: all of them must be released by one mechanism, under one relation."
            raise InputError(msg)
    last = STRATA if first.relation.n_is_public else INHABITED
    if not isinstance(first.relation, CappedRelation):
        msg = "levels: a person's points may lie in all of them, and this relation has no cap on them; release once."
        raise InputError(msg)
    if isinstance(first.profile, ApproximateDP | DiscreteLosses) and first.relation.max_points_per_person > 1:
        msg = (
            f"levels: {text(first.theorem)} does not add up over people with points in several levels; take "
            f"{mention('max_points_per_person', '1')}, or another bound."
        )
        raise InputError(msg)
    shared = dict.fromkeys(code for each in each_level for code in each.assumptions)
    return Guarantee(
        first.relation,
        weakest([each.profile for each in each_level]),
        Statement("parallel-levels", of=first.theorem, by=by),
        (*shared, Statement(LEVELS, by=by), Statement(last, by=by)),
        _curve([each.by_distance for each in each_level]),
        first.unit,
    )


def _own(guarantee: Guarantee) -> tuple[Code, ...]:
    """Assumptions beside those on public layers, which each level has on a mesh of its own."""
    return tuple(code for code in guarantee.assumptions if not (isinstance(code, Statement) and code.code == LAYER))


def require_all_points(relation: Relation) -> None:
    """Refuse levels of a mark where a few points of each person are drawn, since each level would draw its own."""
    if relation.user_cap is not None:
        types = either("MarkedSynthesizer, types='public'", "--method marked --types MARK=A,B --no-protect-types")
        msg = (
            f"by: the cap of {relation.user_cap.most} holds for a person's points at all levels together, and "
            "which of them count is drawn: how many points each level has would be known afterwards only, and must be "
            f"public before. Release the levels as public types, of which the cap holds ({types}); make one release "
            f"for each level, each with a budget of its own; or vouch for the cap, without {mention('user')}."
        )
        raise InputError(msg)


def weakest(profiles: Sequence[Profile]) -> Profile:
    """The profile that is worst at every epsilon; profiles that differ in one number alone are ordered by it."""
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


FIXED_BEFOREHAND = "budgets-fixed-beforehand"

# Attribute that holds the spending of each kind of profile.
SCALES = {PureDP: "level", GaussianDP: "mu", PoissonGaussianDP: "ratio", ApproximateDP: "level"}
# Relative precision of the largest release that fits, and the smallest one looked for.
PRECISION, SMALLEST = 1e-6, 1e-6
# No budget is larger, and the search for what fits would take long.
LARGEST_BUDGET = 1e9
REMEDY = "the profile of a guarantee is one"


def compose(profiles: Sequence[Profile], delta: float) -> Profile:
    """Privacy profile of releases made one after another from the same points, quoted at `delta`.

    Parameters
    ----------
    profiles : sequence of Profile
        One for each release, all under the same relation.
    delta : float
        Where the result is quoted. At 0 all releases must be pure.

    Returns
    -------
    Profile
        `GaussianDP` or `PoissonGaussianDP` where the composition is exact, `PureDP` at `delta = 0`, else `Composed`,
        whose epsilon is never above that of basic composition; a single profile as it is. The epsilon at `delta` is
        infinite where the slacks of (epsilon, delta) releases exceed `delta`.

    Raises
    ------
    InputError
        Without profiles, or at `delta = 0` when a release is not pure.

    Examples
    --------
    >>> from dpppsynth.privacy.profiles import gaussian_mu
    >>> draw = GaussianDP(gaussian_mu(1.0, 1e-6), at=1e-6)
    >>> [round(compose([draw] * k, 1e-5).epsilon(1e-5), 3) for k in (2, 3, 4, 5)]
    [1.277, 1.598, 1.875, 2.124]
    """
    parts, delta = _releases(profiles), probability("delta", delta, zero=True)
    if delta == 0:
        return PureDP(sum_up(_pure_level(part) for part in parts))
    closed, count = next(iter(merged_profiles(parts).items()))
    if len(merged_profiles(parts)) == 1 and count == 1:
        return replace(closed, at=delta) if _quotable(closed) else closed
    return Composed(parts, delta)


def adaptive(profiles: Sequence[Profile], delta: float) -> bool:
    """Whether `compose` holds for budgets chosen after seeing earlier outputs (kinds that compose in closed form).

    That is so for Gaussian releases, and for pure ones at `delta = 0`, where a limit on their sum was settled at first.
    It is a statement about such a rule and not about these releases: where another kind might have been taken instead,
    had earlier outputs been others, `FIXED_BEFOREHAND` is an assumption although only Gaussian ones were made.

    Examples
    --------
    >>> adaptive([PureDP(1.0), PureDP(2.0)], delta=0.0), adaptive([PureDP(1.0), PureDP(2.0)], delta=1e-6)
    (True, False)
    """
    parts, delta = _releases(profiles), probability("delta", delta, zero=True)
    if delta == 0:
        return all(part.epsilon(0.0) < math.inf for part in parts)
    return len(parts) == 1 or all(isinstance(part, GaussianDP) for part in parts)


def gaussian_filter(profiles: Sequence[Profile]) -> float:
    """Gaussian parameter of releases together, whose kinds and budgets may be chosen after seeing earlier ones.

    As long as it is kept at most mu, whatever is published, everything together is mu-GDP (Smith & Thakurta 2022,
    Koskela et al. 2023). A pure release at level epsilon counts with `2 ndtri(e^epsilon / (1 + e^epsilon))`.

    Raises
    ------
    InputError
        When a release has no Gaussian parameter.

    Examples
    --------
    >>> round(gaussian_filter([GaussianDP(0.3, at=1e-6), PureDP(0.5)]), 4)
    0.6923
    """
    return math.sqrt(math.fsum(_gaussian_parameter(part) ** 2 for part in _releases(profiles))) * (1 + 1e-15)


def largest(profile: Profile, spent: Sequence[Profile], epsilon: float, delta: float) -> Profile | None:
    """Largest release of the kind of `profile` that fits into a budget of which some is spent.

    Parameters
    ----------
    profile : Profile
        Its level, mu or ratio is varied, all else kept.
    spent : sequence of Profile
        Of the releases already made.
    epsilon, delta : float
        The budget of all releases together.

    Returns
    -------
    Profile or None
        None where nothing fits, or profiles of this kind have no scale.

    Examples
    --------
    >>> largest(PureDP(1.0), [PureDP(0.5)], epsilon=2.0, delta=0.0)
    PureDP(level=1.5)
    """
    instance("profile", profile, Profile, REMEDY)
    spent = several("spent", spent, Profile, REMEDY)
    epsilon = positive("epsilon", epsilon, most=LARGEST_BUDGET, rule=f"be positive and {LARGEST_BUDGET:g} at most")
    delta = probability("delta", delta, zero=True)
    name = SCALES.get(type(profile))
    if name is None or (delta == 0 and profile.epsilon(0.0) == math.inf):
        return None
    if isinstance(profile, PureDP) and delta == 0:
        # Rounded down: minus a sum that is rounded up.
        left = -sum_up([-epsilon, *map(_pure_level, spent)])
        return PureDP(left) if left > 0 else None
    first = float(getattr(profile, name))

    def scaled(log_scale: float) -> Profile:
        return replace(profile, **{name: first * math.exp(log_scale)})  # type: ignore[type-var]

    def excess(log_scale: float) -> float:
        return min(compose([*spent, scaled(log_scale)], delta).epsilon(delta), 1e3 * epsilon) - epsilon

    scale = _last_root(excess, math.log(SMALLEST / first))
    return None if scale is None else scaled(scale)


def _last_root(excess: Any, low: float) -> float | None:
    """Point just below which a rising function turns positive, within `PRECISION`; None where it does before `low`."""
    from scipy.optimize import brentq

    if excess(low) > 0:
        return None
    high = max(0.0, low + 1.0)
    while excess(high) <= 0:
        low, high = high, high + math.log(2)
    root = float(brentq(excess, low, high, xtol=PRECISION / 2))
    step = PRECISION / 2
    while excess(root) > 0:
        root, step = root - step, 2 * step
    return root


def _releases(profiles: Sequence[Profile]) -> tuple[Profile, ...]:
    """Profiles of single releases."""
    releases = several("profiles", profiles, Profile, REMEDY)
    if not releases:
        msg = "profiles: need one at least, got none; what was never released spends nothing."
        raise InputError(msg)
    return tuple(part for each in releases for part in (each.parts if isinstance(each, Composed) else (each,)))


def _pure_level(part: Profile) -> float:
    level = part.epsilon(0.0)
    if level == math.inf:
        msg = (
            f"delta: 0 needs pure releases, and no epsilon holds for one of kind {part.kind!r}; budget a "
            "delta above 0, 1e-6 say, or release Laplace counts or a field of bounded slope "
            f"({mention('method', repr('laplace'))})."
        )
        raise InputError(msg)
    return level


def _quotable(part: Profile) -> bool:
    return any(each.name == "at" for each in fields(part))  # type: ignore[arg-type]


def _gaussian_parameter(part: Profile) -> float:
    """The mu of a Gaussian or pure profile; 2 ndtri(e^eps / (1 + e^eps)) = -2 ndtri(1 / (1 + e^eps))."""
    if isinstance(part, GaussianDP):
        return part.mu
    level = part.epsilon(0.0)
    if level < math.inf:
        return -2 * float(scipy.special.ndtri(scipy.special.expit(-level))) * (1 + 1e-12)
    msg = (
        f"profiles: one of kind {part.kind!r} is not Gaussian for any mu, as its losses have heavier "
        "tails or may be infinite; an adaptive budget takes posterior draws, Laplace counts and field statistics."
    )
    raise InputError(msg)
