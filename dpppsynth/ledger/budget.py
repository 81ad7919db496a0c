"""The privacy budget of a data set: accepted relations, composition of releases, and the limit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from dpppsynth.core.arguments import finite
from dpppsynth.core.errors import BudgetError, InputError
from dpppsynth.core.rounding import downward, upward
from dpppsynth.core.wording import either, mention
from dpppsynth.privacy.catalogue import AVERAGED
from dpppsynth.privacy.composition import compose, gaussian_filter, largest
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.losses import DiscreteLosses
from dpppsynth.privacy.profiles import ApproximateDP, GaussianDP, PoissonGaussianDP, Profile, PureDP, SmallestOf
from dpppsynth.privacy.relations import (
    TRAJECTORY,
    AddRemove,
    AddRemovePerson,
    AlphaNeighbours,
    CappedRelation,
    GeoIndistinguishability,
    Local,
    MovedPoint,
    Relation,
    ReplaceOne,
    relation_from_dict,
)
from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP

# Share by which a total may exceed the budget through rounding.
ROUNDING = 1e-9
# A larger delta lets one record in ten lie open.
LARGEST_DELTA = 0.1
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
        object.__setattr__(self, "epsilon", float(finite("epsilon", self.epsilon)))
        object.__setattr__(self, "delta", float(finite("delta", self.delta)))
        if self.epsilon <= 0:
            msg = f"epsilon: the budget must be positive, got {self.epsilon!r}; such as 2.0."
            raise InputError(msg)
        if not 0 <= self.delta < LARGEST_DELTA:
            msg = (
                f"delta: the budget's must be at least 0 and below {LARGEST_DELTA:g}, got {self.delta!r}; far "
                "below one in the number of points, such as 1e-5, or 0 for a ledger of pure releases alone."
            )
            raise InputError(msg)
        if isinstance(self.relation, Local | GeoIndistinguishability):
            msg = (
                f"relation: a ledger keeps a custodian's account of points at hand, and {self.relation.name} is about "
                f"reports that persons make; take {either('ReplaceOne()', '--relation replace-one')}, which accepts "
                "locally private releases as well."
            )
            raise InputError(msg)
        if not isinstance(self.relation, AlphaNeighbours | ReplaceOne | AddRemove | AddRemovePerson):
            msg = f"relation: expected a relation such as ReplaceOne() or AlphaNeighbours(25.0), got {self.relation!r}."
            raise InputError(msg)
        for name, kind in (("label", str | None), ("adaptive", bool)):
            if not isinstance(getattr(self, name), kind):
                msg = (
                    f"{name}: needs {'a string' if name == 'label' else 'True or False'}, got {getattr(self, name)!r}."
                )
                raise InputError(msg)

    def to_dict(self) -> dict[str, Any]:
        """JSON form, inverse of `budget_from_dict`."""
        numbers = {"epsilon": self.epsilon, "delta": self.delta}
        return numbers | {"relation": self.relation.to_dict(), "label": self.label, "adaptive": self.adaptive}

    def total(self, profiles: Sequence[Profile]) -> Profile | None:
        """Joint guarantee of releases, quoted at the budget's delta; None without releases."""
        return _total(tuple(profiles), self.delta, adaptive=self.adaptive)

    def spent(self, profiles: Sequence[Profile]) -> float:
        """Epsilon of the total at the budget's delta."""
        total = self.total(profiles)
        return 0.0 if total is None else total.epsilon(self.delta)

    def holds(self, spent: float, slack: float = ROUNDING) -> bool:
        """Whether an epsilon is within the budget, up to a share `slack`."""
        return spent <= (1 + slack) * self.epsilon

    def require(self, guarantee: Guarantee) -> None:
        """Refuse a guarantee that says nothing about this budget, whatever is left of it.

        Raises
        ------
        InputError
            When it protects fewer pairs of patterns, or holds on average only.
        """
        if not isinstance(guarantee, Guarantee):
            msg = f"guarantee: needs a Guarantee, such as plan.guarantee, got {type(guarantee).__name__}."
            raise InputError(msg)
        if AVERAGED in guarantee.assumptions:
            msg = (
                f"guarantee: {guarantee.theorem_text} holds on average over a model, and nothing is known about "
                "several such releases; a ledger accepts bounds that hold for every pattern, such as Theorem A."
            )
            raise InputError(msg)
        if not guarantee.relation.covers(self.relation):
            raise InputError(_refusal(guarantee.relation, self.relation))

    def require_room(self, held: Sequence[Profile], asked: Profile) -> None:
        """Raise `BudgetError` when what was authorised leaves no room for one more release."""
        before, after = self.spent(held), self.spent((*held, asked))
        if self.holds(after):
            return
        # What rounding alone leaves of a spent budget is nothing.
        left = self.epsilon - before if self.epsilon - before > ROUNDING * self.epsilon else 0.0
        if math.isfinite(after):
            total = f"would take the total from {_spent(before)} to {_spent(after)} at delta {self.delta:g}"
            requested, difference = _spent(after - before), _spent(after - before - left)
        else:
            total = f"would leave no total at all at delta {self.delta:g}"
            requested, difference = "more than any epsilon", "unbounded, for its delta does not fit"
        msg = (
            f"ledger: the budget does not suffice. Requested: {requested} ({_quoted(asked)} {total}). "
            f"Remaining: {downward(left)} of {self.epsilon:g}. Difference: {difference}. {self._remedy(held, asked)}"
        )
        raise BudgetError(msg)

    def _remedy(self, held: Sequence[Profile], asked: Profile) -> str:
        if self.adaptive and self.delta > 0 and held:
            held = [GaussianDP(gaussian_filter(held), self.delta)]
        counted = isinstance(asked, GaussianDP) or not self.adaptive or self.delta == 0
        fits = largest(asked, held, self.epsilon, self.delta) if counted else None
        epsilon = 0.0 if fits is None else fits.epsilon(fits.at)
        if fits is None or not LEAST_REMEDY * self.epsilon < epsilon < math.inf:
            return "ReleasePlan a smaller release, or none."
        unit = 10.0 ** (math.floor(math.log10(epsilon)) - 3)
        quoted = f"epsilon {math.floor(epsilon / unit) * unit:.4g} at delta {fits.at:g}"
        return f"The largest release of this kind that still fits has {quoted}."


def budget_from_dict(data: Any) -> Budget:
    """Budget from its JSON form."""
    relation = relation_from_dict(data["relation"])
    return Budget(data["epsilon"], data["delta"], relation, data["label"], data["adaptive"])


def _refusal(given: Relation, needed: Relation) -> str:
    """Message: why a ledger that protects `needed` accepts no release under `given`, and which it would accept."""
    if isinstance(given, CappedRelation) and isinstance(needed, CappedRelation):
        return (
            f"relation: this release does not protect {_unprotected(given, needed)}, as the ledger promises; plan it "
            f"under the ledger's relation, where {needed.describe()}."
        )
    if isinstance(given, Local | GeoIndistinguishability):
        return _refused_reports(given, needed)
    told = repr(user) if (user := getattr(given, "user", None)) is not None else None
    if isinstance(needed, AddRemovePerson):
        instead = "" if told is None else f", not by {told}"
        return (
            f"user: the ledger protects persons told by {needed.user!r}{instead}; take "
            f"{mention('user', repr(needed.user))} ({either('HeatmapSynthesizer', '--method heatmap')})."
        )
    remedy = (
        f"take {either('user=None', '--no-user')}"
        if needed == AddRemove()
        else "take another synthesizer, under the ledger's relation"
    )
    return (
        f"user: the ledger knows of no persons told by {told}, as this release protects them. To the ledger, two "
        f"patterns are neighbouring when {needed.describe()}; {remedy}."
    )


def _refused_reports(given: Local | GeoIndistinguishability, needed: Relation) -> str:
    """Message: what reports of persons leave open that the ledger promises."""
    remedy = "take a synthesizer under the ledger's relation"
    if not needed.n_is_public:
        left = "the number of points, which is the public number of reports"
    elif Local().implies(needed):
        left = "points that move by more than one cell of a public grid as well as its epsilon says"
        remedy = "take a local mechanism, such as local.DiskAreaMechanism"
    else:
        left = "people with more than one point, for it counts one report of each"
        user = getattr(needed, "user", None)
        if given == Local(TRAJECTORY):
            left = "people with more than one trajectory, for it counts one of each, and no mark tells whose it is"
            remedy = "keep a ledger of one point a person for trajectories"
        elif user is not None and given.user is None and Local(user=user).implies(needed):
            left = "people with more than one point, for to it every point is a person"
            remedy = f"name the mark that tells persons, {mention('user', repr(user))}"
    return (
        f"relation: this release does not protect {left}. To the ledger, two patterns are neighbouring when "
        f"{needed.describe()}; {remedy}."
    )


def _unprotected(given: CappedRelation, needed: CappedRelation) -> str:
    """Pairs of patterns, neighbouring under `needed`, that a release under `given` may tell apart, in words."""
    if isinstance(needed, AddRemove) != isinstance(given, AddRemove):
        move = "patterns that differ by a point that moves, only by one that is added or removed"
        change = "patterns that differ by a point that is added or removed"
        return change if isinstance(needed, AddRemove) else move
    pairs = []
    if given.reach < needed.reach:
        pairs.append(f"points that move by more than {given.reach:g}")
    if needed.user is not None and given.user != needed.user:
        pairs.append(f"all points of a person, told by {needed.user!r}")
    elif given.user is not None and needed.user is None and not given.n_is_public:
        pairs.append("points of a person who stays in the data with others, which another draw may take")
    elif needed.user is None and given.max_points_per_person < needed.max_points_per_person:
        cap = given.max_points_per_person
        pairs.append(f"people with more than {'one point' if cap == 1 else f'{cap} points'}")
    if isinstance(given, MovedPoint) and isinstance(needed, MovedPoint):
        pairs += _unprotected_marks(given, needed)
    return " and ".join(pairs)


def _unprotected_marks(given: MovedPoint, needed: MovedPoint) -> list[str]:
    """Changes of marks that `needed` protects, and a release under `given`, which reads them, does not."""
    pairs = []
    (time, types), (needed_time, needed_types) = given.marks_reach, needed.marks_reach
    if given.time is not None and time < needed_time:
        pairs.append(f"points whose time changes{f' by more than {time:g}' if time else ''}")
    elif given.time is not None and not given.covers(replace(given, time=needed.time, time_unit=needed.time_unit)):
        units = (repr(each.time_unit) if each.time_unit else "a unit that is not stated" for each in (given, needed))
        pairs.append("times in the ledger's unit (here {}, there {})".format(*units))
    if given.types is not None and types < needed_types:
        pairs.append("points whose type changes")
    return pairs


@lru_cache(maxsize=256)
def _total(profiles: tuple[Profile, ...], delta: float, *, adaptive: bool) -> Profile | None:
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


# Budgets and what is calibrated to them may differ by rounding.
ROUNDED = 1 + 1e-9


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
