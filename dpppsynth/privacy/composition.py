"""Parallel composition: separate releases from disjoint public levels promise together what the weakest one promises.

Points of different levels never meet in one release. A change in one level leaves the others alone; and a person with
points in several levels, k in all, changes `k_l` of them in level l: pure losses add up to `sum k_l/k epsilon_l`,
Gaussian ones to `sqrt(sum (k_l/k)^2 mu_l^2)`, Poisson numbers of Gaussian ones to rates in proportion to `k_l`. None
exceeds the largest of the levels' own (docs/theory/strata.md).
"""

from bisect import bisect_left
from collections.abc import Sequence

from dpppsynth.errors import InputError
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.profiles import ApproximateDP, GaussianDP, PoissonGaussianDP, Profile, PureDP

STRATA = "The {by} of every point is not protected: it is the same in neighbouring patterns."
LEVELS = "The levels of {by} were chosen without looking at the points, and hold all of them."


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
        When the releases are of different kinds.
    """
    first = guarantees[0]
    for other in guarantees[1:]:
        if (other.relation, other.theorem, other.assumptions) != (first.relation, first.theorem, first.assumptions):
            msg = "levels: all of them must be released by one mechanism, under one relation."
            raise InputError(msg)
    protected = () if not first.relation.n_is_public else (STRATA.format(by=by),)
    return Guarantee(
        first.relation,
        weakest([each.profile for each in guarantees]),
        f"{first.theorem}, in parallel over the levels of {by}",
        (*first.assumptions, LEVELS.format(by=by), *protected),
        _curve([each.by_distance for each in guarantees]),
    )


def weakest(profiles: Sequence[Profile]) -> Profile:
    """The profile that is worst at every epsilon; of one kind they are ordered."""
    match profiles[0]:
        case PureDP():
            return max(profiles, key=lambda p: p.level)  # type: ignore[attr-defined]
        case GaussianDP():
            return max(profiles, key=lambda p: p.mu)  # type: ignore[attr-defined]
        case PoissonGaussianDP():
            return max(profiles, key=lambda p: p.ratio)  # type: ignore[attr-defined]
        case ApproximateDP():
            return max(profiles, key=lambda p: p.slack)  # type: ignore[attr-defined]
    msg = f"levels: no parallel composition is known for {type(profiles[0]).__name__}."
    raise InputError(msg)


def _curve(curves: Sequence[tuple[tuple[float, float], ...]]) -> tuple[tuple[float, float], ...]:
    """Upper envelope on the first curve's distances; between its own distances a curve counts with its next value."""
    if not all(curves):
        return ()
    return tuple((d, max(_value(curve, d) for curve in curves)) for d, _ in curves[0])


def _value(curve: tuple[tuple[float, float], ...], d: float) -> float:
    place = bisect_left(curve, d * (1 - 1e-12), key=lambda pair: pair[0])
    return curve[min(place, len(curve) - 1)][1]
