"""Whole releases as a target of an audit, of one pattern or of the levels of a mark."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dpppsynth.contract.audits.neighbouring_pairs import Pair, what_changes
from dpppsynth.contract.audits.noise_laws import NoiseOf
from dpppsynth.contract.audits.statistic_audit import StatisticAudit
from dpppsynth.contract.audits.target import AuditStatistic, Draws, StatedLaw, Target
from dpppsynth.contract.estimator import Estimator
from dpppsynth.contract.registry import mechanism
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.statistic import Statistic
from dpppsynth.contract.stratified_plan import StratifiedPlan
from dpppsynth.core.errors import ReleaseBlocked
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.profiles import Profile
from dpppsynth.spatial.patterns import PointPattern

# Runs blocked by their diagnostics one after the other, after which an audit gives up.
MOST_BLOCKED = 20


@dataclass(frozen=True, eq=False, repr=False)
class Uninferred(Estimator[Statistic]):
    """Estimator without its inference: its releases hold the private statistic, and no draws.

    Attributes
    ----------
    model : Estimator
        One with a posterior.
    given : list
        Private statistics that inference was called with.
    """

    model: Any
    given: list[Any] = field(default_factory=list)
    has_posterior: ClassVar[bool] = True

    @property
    def offset(self) -> Any:
        """Offset of the model, which is saved beside the statistic."""
        return getattr(self.model, "offset", None)

    @property
    def covariates(self) -> Any:
        """Covariates of the model, which are saved beside the statistic."""
        return getattr(self.model, "covariates", None)

    def require(self, plan: Any) -> None:
        self.model.require(plan)

    def fit(self, statistic: Any, *_args: Any, **_options: Any) -> None:
        """Record the statistic instead of a fit."""
        self.given.append(statistic)

    def to_dict(self) -> dict[str, Any]:
        stated: dict[str, Any] = self.model.to_dict()
        return stated


@dataclass(frozen=True, eq=False)
class Measure:
    """One measurement by a statistic, with secret randomness."""

    plan: Any

    def on(self, plan: Any) -> "Measure":
        """The same run with another statistic."""
        return Measure(plan)

    def __call__(self, pattern: PointPattern) -> Any:
        """The measured statistic; a run that its diagnostics block is repeated, since the claim is about releases.

        Raises
        ------
        ReleaseBlocked
            When many runs in a row are blocked.
        """
        return unblocked(self.plan.measure, pattern)


@dataclass(frozen=True, eq=False)
class Whole:
    """One release by a plan, with secret randomness."""

    planned: ReleasePlan

    @property
    def plan(self) -> Any:
        """Statistic that the budget is spent on."""
        return self.planned.statistic

    def on(self, plan: Any) -> "Whole":
        """The same run with another statistic and the same estimator."""
        return Whole(replace(self.planned, statistic=plan))

    def release(self, pattern: PointPattern) -> Any:
        """The release, without inference; errors as in `Measure`."""
        return unblocked(uninferred(self.planned).release, pattern)

    def __call__(self, pattern: PointPattern) -> Any:
        """The published data of a release: its private statistic, or its patterns."""
        return self.release(pattern).statistic


@dataclass(frozen=True, eq=False)
class Levels:
    """The published data of a stratified release, level by level."""

    parts: Mapping[str, Any]
    seeded: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "seeded", any(part.seeded for part in self.parts.values()))


@dataclass(frozen=True, eq=False)
class WholeStrata:
    """One stratified release, of all levels together, with secret randomness."""

    planned: StratifiedPlan

    def release(self, pattern: PointPattern) -> Any:
        """The release, without inference; errors as in `Measure`."""
        plans = {level: uninferred(plan) for level, plan in self.planned.plans.items()}
        return unblocked(replace(self.planned, plans=plans).release, pattern)

    def __call__(self, pattern: PointPattern) -> Levels:
        """The private statistics of all levels, or their patterns."""
        return Levels({level: each.statistic for level, each in self.release(pattern).releases.items()})


def feature_at(level: str, features: Callable[[Any], Any], released: Levels) -> Any:
    """Value of a statistic at one level of a stratified release."""
    return features(released.parts[level])


def uninferred(plan: ReleasePlan) -> ReleasePlan:
    """Copy of a plan whose releases skip inference; the plan itself where there is none."""
    model = plan.estimator
    if model is None or not model.has_posterior or isinstance(model, Uninferred):
        return plan
    return replace(plan, estimator=Uninferred(model))


def inferred(release: Any) -> bool:
    """Whether a release is complete, rather than made without inference by `uninferred`."""
    return not isinstance(getattr(release, "estimator", None), Uninferred)


def unblocked(release: Callable[[PointPattern], Any], pattern: PointPattern) -> Any:
    """Result of the first run that passes its diagnostics; after too many failed runs, the last error is raised."""
    for _ in range(MOST_BLOCKED - 1):
        try:
            return release(pattern)
        except ReleaseBlocked:
            continue
    return release(pattern)


Audits = Mapping[str, StatisticAudit]
Pairs = Mapping[str, Pair]


def noise_of_levels(levels: dict[str, NoiseOf], side: int, released: Levels) -> list[Any]:
    """Noise draws of each level, all cut to the length of the shortest."""
    drawn = [noise(side, released.parts[level]) for level, noise in levels.items()]
    shortest = min((len(each) for each in drawn if each is not None), default=0)
    return [None if each is None else each[:shortest] for each in drawn]


def draws_of_levels(by: str, audits: Audits, pairs: Pairs) -> tuple[Draws, ...]:
    """The noise of each level, and of all levels together."""

    def likeliest(level: str, first: int | None = None) -> float:
        return audits[level].log_likeliest(pairs[level], first)

    known = {level: noise for level, each in audits.items() if (noise := each.noise(pairs[level])) is not None}
    alone = tuple(
        Draws(f"noise of {by} {level}", partial(noise_of_levels, {level: noise}), likeliest(level))
        for level, noise in known.items()
    )
    if len(known) < 2:
        return alone
    first = min(audits[level].numbers for level in known)
    most = max(likeliest(level, first) for level in known)
    signs = all(audits[level].symmetric for level in known)
    return (*alone, Draws(f"noise of all levels of {by}", partial(noise_of_levels, known), most, signs=signs))


def laws_of_levels(by: str, audits: Audits, pairs: Pairs) -> tuple[StatedLaw, ...]:
    """The stated laws of the noise of every level."""
    return tuple(
        StatedLaw(f"{law.name} of {by} {level}", law.number, level)
        for level, each in audits.items()
        for law in each.laws(pairs[level])
    )


def strata_target(
    planned: StratifiedPlan, claim: Guarantee, pair: Any, statistics: tuple[AuditStatistic, ...]
) -> Target:
    """Releases of all levels together.

    Parameters
    ----------
    planned : StratifiedPlan
    claim : Guarantee
        Of the release as a whole, and so of its weakest level; the others are held to their own.
    pair : tuple of PointPattern, optional
        Of the level with the largest epsilon, without its mark.
    statistics : tuple of AuditStatistic
        Functions of `Levels`, looked at beside those of each level: all of it for the level with the largest epsilon,
        what needs no training for the others.
    """
    by = planned.by
    audits = {level: mechanism(each.mechanism).audit(each.statistic) for level, each in planned.plans.items()}
    weakest = max(audits, key=lambda level: float(planned.plans[level].guarantee.epsilon()))
    given = {weakest: pair}
    pairs = {level: each.neighbours(claim.relation, given.get(level)) for level, each in audits.items()}
    claims = {level: each.guarantee.profile for level, each in planned.plans.items()} | {weakest: claim.profile}
    # The statistic by which the audit is rated comes first.
    looked = _of_level(by, weakest, audits[weakest], pairs[weakest], claims[weakest])
    for level in [each for each in audits if each != weakest]:
        others = _of_level(by, level, audits[level], pairs[level], claims[level])
        looked += [each for each in others if not each.learned]
    return Target(
        run=WholeStrata(planned),
        pair=_marked(by, pairs),
        claimed=claim.profile,
        statistics=(*looked, *statistics),
        words=_words(planned, weakest, what_changes(pairs[weakest], claim.relation, given=pair is not None)),
        weakened=audits[weakest].weakened(pairs[weakest]),
        alike=all(each.alike(pairs[level]) for level, each in audits.items()),
        draws=draws_of_levels(by, audits, pairs),
        laws=laws_of_levels(by, audits, pairs),
        excess=tuple(
            f"{by} {level}: {found}"
            for level, each in audits.items()
            for found in each.excess(pairs[level], claims[level])
        ),
    )


def _of_level(by: str, level: str, audit: StatisticAudit, pair: Pair, claim: Profile) -> list[AuditStatistic]:
    """Statistics of one level, held to a claim and to the stated noise's own profile at the level's pair."""
    stated = audit.as_stated(pair, claim)
    return [
        replace(
            each,
            name=f"{by} {level}, {each.name}",
            features=partial(feature_at, level, each.features),
            claimed=each.claimed or stated,
        )
        for each in audit.statistics(pair)
    ]


def _marked(by: str, pairs: Mapping[str, Pair]) -> Pair:
    first, second = (_joined(by, {level: pair[side] for level, pair in pairs.items()}) for side in (0, 1))
    return first, second


def _joined(by: str, parts: Mapping[str, PointPattern]) -> PointPattern:
    positions = np.concatenate([part.positions for part in parts.values()])
    mark = np.repeat(list(parts), [len(part) for part in parts.values()])
    return PointPattern.at(positions, next(iter(parts.values())).domain, {by: mark})


def _words(plan: StratifiedPlan, weakest: str, change: str) -> str:
    mechanism = plan.plans[weakest].mechanism
    return f"{mechanism} of {len(plan.plans)} levels at once; the weakest of the levels, {plan.by} {weakest}: {change}"
