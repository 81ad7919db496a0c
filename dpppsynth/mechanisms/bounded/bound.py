"""Guarantee of counts with truncated discrete Laplace noise (docs/theory/bounded_error.md, Theorem N).

A count that is never off by more than A tells its truth apart from any other that is further than A away: no such noise
is purely private, and the smallest delta follows from the bound and the scale of the noise.
"""

import math
from typing import Any

from dpppsynth.core.arguments import instance, positive
from dpppsynth.core.errors import PrivacyCheckError
from dpppsynth.core.wording import named
from dpppsynth.privacy.bounds import EXAMPLE, assumptions, counts_sensitivity, laplace_scale
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.relations import AddRemove, CappedRelation
from dpppsynth.privacy.truncated.error_bounds import (
    WHY_DELTA,
    least_whole_epsilon,
    least_whole_error,
    require_bound_delta,
    whole_bound,
)
from dpppsynth.privacy.truncated.geometric import TruncatedGeometric
from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP

REDRAWN = "bounded-discrete-laplace-noise"


def worst_shifts(relation: CappedRelation) -> tuple[int, ...]:
    """Worst-case changes of counts between neighbours: k points leave one cell for another, or are new in one.

    Any other way to spread the change over cells is easier to hide, at every epsilon (Theorem N).
    """
    instance("relation", relation, CappedRelation, EXAMPLE)
    k = relation.max_points_per_person
    return (k,) if isinstance(relation, AddRemove) else (k, k)


def bounded_counts(
    relation: CappedRelation, *, scale: float, max_error: int, delta: float, domain: Any = None
) -> Guarantee:
    """Guarantee, quoted at `delta`, of counts with discrete Laplace noise of a scale that is drawn within the bound.

    Raises
    ------
    PrivacyCheckError
        When some answer that only one of two neighbours can give is likelier than `delta`.
    """
    shifts, max_error = worst_shifts(relation), whole_bound(max_error)
    profile = TruncatedLaplaceDP(scale, max_error, shifts, delta)
    if profile.epsilon(profile.at) == math.inf:
        least = bounded_delta(relation, scale=scale, max_error=max_error)
        msg = (
            f"delta: errors of at most {max_error} with noise of scale {scale:.6g} cost delta = {least:.4g}, more than "
            f"{delta:g}; {WHY_DELTA}. Take a larger {named('max_error')}, a larger epsilon or a larger delta."
        )
        raise PrivacyCheckError(msg)
    assumed = assumptions(relation, (REDRAWN,), domain=domain)
    return Guarantee(relation, profile, "counts-bounded-error", assumed)


def bounded_delta(relation: CappedRelation, *, scale: float, max_error: int) -> float:
    """Smallest delta, rounded up, of counts with noise of a scale and errors of at most `max_error`."""
    shifts = worst_shifts(relation)
    law = TruncatedGeometric(positive("scale", scale), whole_bound(max_error))
    return law.delta(law.epsilon_total(shifts), shifts)


def smallest_max_error(relation: CappedRelation, *, epsilon: float, delta: float) -> int:
    """Smallest bound on the error of counts that a budget allows.

    Examples
    --------
    >>> from dpppsynth.privacy.relations import AddRemove, ReplaceOne
    >>> smallest_max_error(AddRemove(), epsilon=1.0, delta=1e-5)
    11
    >>> smallest_max_error(ReplaceOne(), epsilon=1.0, delta=1e-5)
    22
    """
    scale, delta = laplace_scale(counts_sensitivity(relation), epsilon), require_error_delta(delta)
    return least_whole_error(
        lambda most: bounded_delta(relation, scale=scale, max_error=most),
        epsilon,
        delta,
        first=relation.max_points_per_person,
    )


def smallest_bounded_epsilon(relation: CappedRelation, *, delta: float, max_error: int) -> float:
    """Smallest epsilon at which counts are off by no more than `max_error` and delta suffices, rounded up.

    Raises
    ------
    InputError
        Where `max_error` is below the number of points of one person, or uniform noise within it needs no epsilon.
    """
    delta, max_error = require_error_delta(delta), require_max_error(relation, max_error)
    size = counts_sensitivity(relation)

    def cost(epsilon: float) -> float:
        return bounded_delta(relation, scale=laplace_scale(size, epsilon), max_error=max_error)

    return least_whole_epsilon(cost, delta, max_error, sensitivity=size, first=float(size))


def require_error_delta(delta: float) -> float:
    """The delta of a bounded error, above 0 and at most one half, or InputError with the reason."""
    return require_bound_delta(delta, otherwise=", or a mechanism without a bound, such as LaplaceSynthesizer")


def require_max_error(relation: CappedRelation, max_error: int) -> int:
    """A bound on errors of counts, at least the points of a person: below, delta would exceed one half."""
    k = instance("relation", relation, CappedRelation, EXAMPLE).max_points_per_person
    remedy = "a count that changes by more than its error may be tells its neighbours apart" if k > 1 else ""
    return whole_bound(max_error, k, remedy=remedy)
