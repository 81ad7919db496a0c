"""Dominance of privacy profiles: a proof that a release spent no more than was authorised for it."""

from dataclasses import replace

from dpppsynth.privacy.losses import DiscreteLosses
from dpppsynth.privacy.profiles import ApproximateDP, GaussianDP, PoissonGaussianDP, Profile, PureDP, SmallestOf
from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP

# Budgets and what is calibrated to them may differ by rounding.
ROUNDING = 1 + 1e-9


def nowhere_worse(new: Profile, old: Profile) -> bool:
    """Whether `new.delta(epsilon) <= old.delta(epsilon)` for every epsilon, up to rounding, by a proof.

    Every profile that passes below one point (epsilon, delta) lies below `ApproximateDP(epsilon, delta)`; Gaussian and
    Poisson ones are ordered by their parameters; between common rows of two tables both are chords.

    Examples
    --------
    >>> nowhere_worse(GaussianDP(0.2367, at=1e-6), ApproximateDP(1.0, 1e-6))
    True
    >>> nowhere_worse(ApproximateDP(1.0, 1e-6), GaussianDP(0.2367, at=1e-6))
    False
    """
    if isinstance(old, SmallestOf):
        return all(nowhere_worse(new, part) for part in old.parts)
    return any(_below(part, old) for part in (new.parts if isinstance(new, SmallestOf) else (new,)))


def _below(new: Profile, old: Profile) -> bool:
    if isinstance(old, PureDP | ApproximateDP):
        # Not by delta at a level, which is 0 by underflow where a Gaussian's is tiny.
        return new.epsilon(old.at) <= old.level * ROUNDING
    if isinstance(old, GaussianDP):
        return isinstance(new, GaussianDP) and new.mu <= old.mu * ROUNDING
    if isinstance(old, PoissonGaussianDP) and isinstance(new, PoissonGaussianDP):
        return new.ratio <= old.ratio * ROUNDING and new.rate <= old.rate * ROUNDING
    if isinstance(old, TruncatedLaplaceDP):
        # More noise within a bound raises the floor: these are ordered only where they are the same.
        return isinstance(new, TruncatedLaplaceDP) and replace(new, at=old.at) == old
    return isinstance(old, DiscreteLosses) and isinstance(new, DiscreteLosses) and _table_below(new, old)


def _table_below(new: DiscreteLosses, old: DiscreteLosses) -> bool:
    epsilons = {epsilon for table in (new, old) for epsilon, _ in table.rows}
    return all(new.delta(epsilon) <= old.delta(epsilon) * ROUNDING for epsilon in epsilons)
