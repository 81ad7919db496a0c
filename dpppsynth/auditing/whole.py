"""One audit run of a whole release, as users make it, including everything that it publishes.

Inference on a private statistic is left out. It comes last, sees the statistic alone, and takes a thousand times as
long as all the rest.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from dpppsynth.contract.audits.target import AuditStatistic
from dpppsynth.contract.estimator import Estimator
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.statistic import Statistic
from dpppsynth.contract.stratified_plan import StratifiedPlan
from dpppsynth.core.errors import ReleaseBlocked
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
        """Covariates of the model, likewise."""
        return getattr(self.model, "covariates", None)

    def require(self, plan: Any) -> None:
        """As the model does."""
        self.model.require(plan)

    def fit(self, statistic: Any, *_args: Any, **_options: Any) -> None:
        """Record the statistic instead of a fit."""
        self.given.append(statistic)

    def to_dict(self) -> dict[str, Any]:
        """JSON form of the model."""
        stated: dict[str, Any] = self.model.to_dict()
        return stated


@dataclass(frozen=True, eq=False)
class Measure:
    """One run of a measurement, with secret randomness; `plan` is what the budget is spent on."""

    plan: Any

    def on(self, plan: Any) -> "Measure":
        """A run of another measurement."""
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
        """The plan that the budget is spent on."""
        return self.planned.statistic

    def on(self, plan: Any) -> "Whole":
        """A release by another measurement, with the same estimator."""
        return Whole(replace(self.planned, statistic=plan))

    def release(self, pattern: PointPattern) -> Any:
        """The release, without inference; errors as in `Measure`."""
        return unblocked(uninferred(self.planned).release, pattern)

    def __call__(self, pattern: PointPattern) -> Any:
        """The published data of a release: its private statistic, or its patterns."""
        return self.release(pattern).statistic


@dataclass(frozen=True, eq=False)
class Levels:
    """The published data of a stratified release, level by level.

    Attributes
    ----------
    parts : dict
    """

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


@dataclass(frozen=True, eq=False)
class OfLevel:
    """A statistic of one level of a stratified release."""

    level: str
    features: Callable[[Any], Any]

    def __call__(self, released: Levels) -> Any:
        """Value of the statistic at that level alone."""
        return self.features(released.parts[self.level])


def of_level(by: str, level: str, statistics: tuple[AuditStatistic, ...]) -> Iterator[AuditStatistic]:
    """Statistics of one level of a mark."""
    for each in statistics:
        yield replace(each, name=f"{by} {level}, {each.name}", features=OfLevel(level, each.features))


def uninferred(plan: ReleasePlan) -> ReleasePlan:
    """A plan that releases without inference; the same one where there is none."""
    model = plan.estimator
    if model is None or not model.has_posterior or isinstance(model, Uninferred):
        return plan
    return replace(plan, estimator=Uninferred(model))


def inferred(release: Any) -> bool:
    """Whether nothing was left out of a release by a plan without inference."""
    return not isinstance(getattr(release, "estimator", None), Uninferred)


def unblocked(release: Callable[[PointPattern], Any], pattern: PointPattern) -> Any:
    """Result of the first run that its diagnostics do not block; after too many blocked ones the last raises."""
    for _ in range(MOST_BLOCKED - 1):
        try:
            return release(pattern)
        except ReleaseBlocked:
            continue
    return release(pattern)
