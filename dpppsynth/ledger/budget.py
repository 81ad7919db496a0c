"""The privacy budget of a data set: accepted relations, composition of releases, and the limit."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from dpppsynth.core.arguments import flag, instance, positive, probability
from dpppsynth.core.errors import BudgetError, InputError
from dpppsynth.core.rounding import downward, upward
from dpppsynth.core.wording import either, mention
from dpppsynth.ledger.opening import another_ledger, persons_unprotected
from dpppsynth.privacy.catalogue import AVERAGED
from dpppsynth.privacy.composed import Composed, basic_epsilon
from dpppsynth.privacy.composition import compose, gaussian_filter, largest
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.losses import DiscreteLosses
from dpppsynth.privacy.profiles import ApproximateDP, GaussianDP, PoissonGaussianDP, Profile, PureDP
from dpppsynth.privacy.relations import (
    AddRemove,
    AddRemovePerson,
    AlphaNeighbours,
    CappedRelation,
    GeoIndistinguishability,
    Local,
    Relation,
    ReplaceOne,
    relation_from_dict,
)
from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP

# Share by which a total may exceed the budget: the rounding of sums such as ten times .1, nothing that is asked for.
SLACK = 1e-12
# Share of the budget that is nothing where it is left, or more than before once a release is settled.
ROUNDING = 1e-9
# Budgets and what is calibrated to them may differ by rounding.
ROUNDED = 1 + 1e-9
# A larger delta lets one record in ten lie open.
LARGEST_DELTA = 0.1
COMMON_DELTA = "far below one in the number of points, such as 1e-5, or 0 for a ledger of pure releases alone"
# Share of the budget below which nothing is left to speak of.
LEAST_REMEDY = 1e-6


@dataclass(frozen=True)
class Budget:
    """Total privacy budget of all releases from one data set.

    Attributes
    ----------
    epsilon, delta : float
        The total is (epsilon, delta) differential privacy.
    relation : Relation
        Neighbouring relation.
    label : str or None
        The custodian's name for the data.
    adaptive : bool
        Whether budgets of later releases may depend on what earlier ones published: then a privacy filter counts.
    """

    epsilon: float
    delta: float
    relation: Relation
    label: str | None = None
    adaptive: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", float(positive("epsilon", self.epsilon, remedy="such as 2.0")))
        object.__setattr__(self, "delta", float(probability("delta", self.delta, zero=True, remedy=COMMON_DELTA)))
        if self.delta >= LARGEST_DELTA:
            msg = f"delta: the budget's must be below {LARGEST_DELTA:g}, got {self.delta!r}; {COMMON_DELTA}."
            raise InputError(msg)
        if not isinstance(self.relation, AlphaNeighbours | ReplaceOne | AddRemove | AddRemovePerson):
            msg = (
                "relation: a ledger keeps a custodian's account of points at hand, not of reports that persons make; "
                f"take one such as {either('ReplaceOne()', '--relation replace-one')}, which accepts locally private "
                f"releases as well, got {self.relation!r}."
            )
            raise InputError(msg)
        if self.label is not None:
            instance("label", self.label, str)
        flag("adaptive", self.adaptive)

    def to_dict(self) -> dict[str, Any]:
        """JSON form, inverse of `budget_from_dict`."""
        numbers = {"epsilon": self.epsilon, "delta": self.delta}
        return numbers | {"relation": self.relation.to_dict(), "label": self.label, "adaptive": self.adaptive}

    def total(self, profiles: Iterable[Profile]) -> Profile | None:
        """Joint guarantee of releases (or counts of equal ones), quoted at the budget's delta; None without any."""
        return _total(tuple(Counter(profiles).items()), self.delta, adaptive=self.adaptive)

    def spent(self, profiles: Iterable[Profile]) -> float:
        """Epsilon of the total at the budget's delta."""
        total = self.total(profiles)
        return 0.0 if total is None else total.epsilon(self.delta)

    def holds(self, spent: float, slack: float = SLACK) -> bool:
        """Whether an epsilon is within the budget, up to a share `slack`."""
        return spent <= (1 + slack) * self.epsilon

    def suffices(self, profiles: Iterable[Profile], slack: float = SLACK) -> bool:
        """Whether releases are within the budget; basic composition, an upper bound on the total, is tried first."""
        total = self.total(profiles)
        if isinstance(total, Composed) and self.holds(basic_epsilon(total.parts, self.delta), slack):
            return True
        return total is None or self.holds(total.epsilon(self.delta), slack)

    def require(self, guarantee: Guarantee) -> None:
        """Refuse a guarantee that protects fewer pairs of patterns than this budget, or holds on average only."""
        instance("guarantee", guarantee, Guarantee, "such as plan.guarantee")
        if AVERAGED in guarantee.assumptions:
            msg = (
                f"guarantee: {guarantee.theorem_text} holds on average over a model, and nothing is known about "
                "several such releases; a ledger accepts bounds that hold for every pattern, such as Theorem A."
            )
            raise InputError(msg)
        if not guarantee.relation.covers(self.relation):
            other = another_ledger(guarantee.relation, self.epsilon, self.delta)
            raise InputError(_refusal(guarantee.relation, self.relation, other))

    def caution(self, guarantee: Guarantee) -> str | None:
        """Warning about a guarantee that is accepted, for persons, in an account of points; None for all others."""
        return persons_unprotected(guarantee.relation, self.relation, self.epsilon, self.delta)

    def require_room(self, held: Counter[Profile], asked: Profile) -> None:
        """Raise `BudgetError` when what was authorised leaves no room for one more release."""
        if self.suffices(held + Counter([asked])):
            return
        before, after = self.spent(held), self.spent(held + Counter([asked]))
        # What rounding alone leaves of a spent budget is nothing.
        left = self.epsilon - before if self.epsilon - before > ROUNDING * self.epsilon else 0.0
        if math.isfinite(after):
            total = f"would take the total from {_spent(before)} to {_spent(after)} at delta {self.delta:g}"
            requested, difference = _spent(after - before), _spent(after - before - left)
        else:
            total = f"would leave no total at all at delta {self.delta:g}"
            requested, difference = "more than any epsilon", "unbounded, for its delta does not fit"
        remedy = self._remedy([*held.elements()], asked)
        msg = (
            f"ledger: the budget does not suffice. Requested: {requested} ({_quoted(asked)} {total}). "
            f"Remaining: {downward(left)} of {self.epsilon:g}. Difference: {difference}. {remedy}"
        )
        raise BudgetError(msg)

    def _remedy(self, held: Sequence[Profile], asked: Profile) -> str:
        if self.adaptive and self.delta > 0 and held:
            held = [GaussianDP(gaussian_filter(held), self.delta)]
        counted = isinstance(asked, GaussianDP) or not self.adaptive or self.delta == 0
        fits = largest(asked, held, self.epsilon, self.delta) if counted else None
        epsilon = 0.0 if fits is None else fits.epsilon(fits.at)
        if fits is None or not LEAST_REMEDY * self.epsilon < epsilon < math.inf:
            return "Plan a smaller release, or none."
        unit = 10.0 ** (math.floor(math.log10(epsilon)) - 3)
        quoted = f"epsilon {math.floor(epsilon / unit) * unit:.4g} at delta {fits.at:g}"
        return f"The largest release of this kind that still fits has {quoted}."


def budget_from_dict(data: Any) -> Budget:
    """Budget from its JSON form."""
    relation = relation_from_dict(data["relation"])
    return Budget(data["epsilon"], data["delta"], relation, data["label"], data["adaptive"])


def _refusal(given: Relation, needed: Relation, other: str) -> str:
    """Message: a ledger that protects `needed` refuses releases under `given`; remedies, the last an `other` ledger."""
    user, own = getattr(given, "user", None), getattr(needed, "user", None)
    promised = f"The ledger: two patterns are neighbouring when {needed.describe()}"
    take = "plan it under the ledger's relation"
    if isinstance(given, Local | GeoIndistinguishability):
        take = "take a synthesizer under the ledger's relation"
        if given == Local() and own is not None and Local(user=own).implies(needed):
            take = f"name the mark that tells persons, {mention('user', repr(own))}"
        elif Local().implies(needed):
            take = "take a local mechanism, such as local.DiskAreaMechanism"
    elif isinstance(needed, AddRemovePerson):
        instead = "" if user is None else f", not by {user!r}"
        take = f"{mention('user', repr(own))} ({either('HeatmapSynthesizer', '--method heatmap')})"
        return f"user: the ledger protects persons told by {own!r}{instead}; take {take}{other}."
    elif not isinstance(given, CappedRelation):
        take = either("user=None", "--no-user") if needed == AddRemove() else "another synthesizer, under its relation"
        return f"user: the ledger knows of no persons told by {user!r}. {promised}; take {take}{other}."
    start = f"relation: this release does not protect all that the ledger promises; {take}{other}"
    return f"{start}. {promised}. The release: {given.describe()}."


@lru_cache(maxsize=256)
def _total(counts: tuple[tuple[Profile, int], ...], delta: float, *, adaptive: bool) -> Profile | None:
    profiles = [profile for profile, count in counts for _ in range(count)]
    if not profiles:
        return None
    if adaptive and delta > 0:
        # One rule for stopping, fixed beforehand: the smaller of two filters need not be one.
        return GaussianDP(gaussian_filter(profiles), delta)
    return compose(profiles, delta)


def _quoted(profile: Profile) -> str:
    return f"epsilon {upward(profile.epsilon(profile.at), 4)} at delta {profile.at:g}"


def _spent(epsilon: float) -> str:
    return upward(float(f"{epsilon:.12g}"), 4)


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
    if isinstance(old, PureDP | ApproximateDP):
        # Not by delta at a level, which is 0 by underflow where a Gaussian's is tiny.
        return new.epsilon(old.at) <= old.level * ROUNDED
    if isinstance(old, GaussianDP):
        return isinstance(new, GaussianDP) and new.mu <= old.mu * ROUNDED
    if isinstance(old, PoissonGaussianDP) and isinstance(new, PoissonGaussianDP):
        return new.ratio <= old.ratio * ROUNDED and new.rate <= old.rate * ROUNDED
    if isinstance(old, TruncatedLaplaceDP):
        # More noise within a bound raises the floor: these are ordered only where they are the same.
        return isinstance(new, TruncatedLaplaceDP) and replace(new, at=old.at) == old
    return isinstance(old, DiscreteLosses) and isinstance(new, DiscreteLosses) and _table_below(new, old)


def _table_below(new: DiscreteLosses, old: DiscreteLosses) -> bool:
    epsilons = {epsilon for table in (new, old) for epsilon, _ in table.rows}
    return all(new.delta(epsilon) <= old.delta(epsilon) * ROUNDED for epsilon in epsilons)
