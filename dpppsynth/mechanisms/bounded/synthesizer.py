"""`BoundedErrorSynthesizer`: cell counts with a hard bound on every error (docs/theory/bounded_error.md, Theorem N)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

from dpppsynth.contract.object_options import RESOLUTION, mesh_of
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.settings import (
    ALPHA,
    DELTA,
    EPSILON,
    NEIGHBOURS,
    PRIVACY,
    SPACING,
    ParsedOptions,
    made_of,
    setting,
)
from dpppsynth.contract.stratified_plan import StratifiedPlan, level_names, sizes
from dpppsynth.contract.synthesizer import (
    MeshSynthesizer,
    exact_or_guess,
    need_size,
    require_true_lengths,
)
from dpppsynth.core.arguments import positive
from dpppsynth.inference.field_by_rule import POSTPROCESSES, estimator_by_rule, require_postprocess, statistic_mesh
from dpppsynth.mechanisms.bounded.bound import (
    bounded_delta,
    require_error_delta,
    require_max_error,
    smallest_bounded_epsilon,
    smallest_max_error,
    worst_shifts,
)
from dpppsynth.mechanisms.bounded.release import BoundedErrorRelease
from dpppsynth.mechanisms.bounded.statistic import BoundedCounts
from dpppsynth.privacy.bounds import FROM_BOUND, counts_sensitivity, laplace_scale, require_modest
from dpppsynth.privacy.profiles import Profile
from dpppsynth.privacy.relations import CappedRelation
from dpppsynth.privacy.truncated.error_bounds import ErrorBudget, with_third
from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Mesh


def _whole(number: float) -> float:
    """A whole number as an int; others are refused later, by name."""
    return int(number) if float(number).is_integer() else number


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundedErrorSynthesizer(MeshSynthesizer[BoundedErrorRelease]):
    """Private cell counts, each within `max_error` of the truth, and an intensity made of them.

    Give two of epsilon, delta and max_error: the third follows. A hard bound cannot be had with delta = 0.

    Parameters
    ----------
    epsilon, delta : float, optional
        Budget.
    max_error : int, optional
        No count of a cell is off by more.
    alpha : float, optional
        Privacy radius in the domain's unit; None protects a move anywhere (replace-one). Counts cost the same.
    spacing : float, optional
        Side of a cell, or longest segment on a network; None takes a public rule of domain, n, epsilon and relation.
    mesh : Mesh, optional
        Cells of your own instead, such as `regular_squares(window, shape=(9, 9))`.
    postprocess : {"clip", "keep-n", "field"}, optional
        Post-processing into an intensity: "clip", the default, sets negative counts to zero and alone keeps to the
        bound; "keep-n" makes the counts sum to the public n, and they may be off by twice the bound; "field" takes the
        posterior of a log-Gaussian field behind them, mostly nearer to the truth, whose errors have no bound.
    relation : CappedRelation, optional
        Neighbouring relation, instead of alpha.

    Raises
    ------
    InputError
        Unless two of the three are given, in range and so that they go together; where delta is 0.

    Examples
    --------
    >>> from dpppsynth.spatial.domains import Window
    >>> window = Window.rectangle(0, 0, 1000, 1000)
    >>> counts = BoundedErrorSynthesizer(epsilon=1.0, delta=1e-6, spacing=250.0)
    >>> counts.budget.max_error, counts.check(window, n=400).theorem
    (27, 'counts-bounded-error')
    """

    epsilon: float | None = setting(  # type: ignore[assignment]
        None, **EPSILON, otherwise="what --delta and --max-error allow"
    )
    delta: float | None = setting(None, **DELTA, otherwise="what --max-error costs")
    max_error: int | None = setting(
        None,
        help="No count of a cell is off by more",
        kind=float,
        otherwise="what --epsilon and --delta allow",
        panel=PRIVACY,
        convert=_whole,
    )
    alpha: float | None = setting(None, **ALPHA)
    spacing: float | None = setting(None, **SPACING)
    mesh: Mesh | None = made_of(RESOLUTION)
    postprocess: str = setting("clip", help="How an intensity is made of the counts", choices=POSTPROCESSES)
    relation: CappedRelation | None = made_of(*NEIGHBOURS)
    method: ClassVar[str] = "bounded-error"
    smaller_delta: ClassVar[str] = FROM_BOUND

    def __post_init__(self) -> None:
        super().__post_init__()
        require_postprocess(self.postprocess, self.neighbouring())
        self.budget  # noqa: B018 - what does not fit together is refused at once

    @cached_property
    def budget(self) -> ErrorBudget:
        """Epsilon, delta and max_error, of which one follows from the other two."""
        relation = self.neighbouring()
        epsilon = None if self.epsilon is None else float(positive("epsilon", self.epsilon))
        delta = None if self.delta is None else require_error_delta(self.delta)
        most = None if self.max_error is None else require_max_error(relation, self.max_error)
        size = counts_sensitivity(relation)
        return with_third(
            epsilon,
            delta,
            most,
            cost=lambda spent, bound: bounded_delta(relation, scale=laplace_scale(size, spent), max_error=bound),
            least_error=lambda spent, slack: smallest_max_error(relation, epsilon=spent, delta=slack),
            smallest_epsilon=lambda slack, bound: smallest_bounded_epsilon(relation, delta=slack, max_error=bound),
        )

    @classmethod
    def objects(cls, options: ParsedOptions, domain: Domain) -> dict[str, Any]:
        return super().objects(options, domain) | mesh_of(options, domain, cls.method)

    def _ceiling(self, domain: Domain, **options: Any) -> Profile:
        self._require_modest(None, None)
        relation, (epsilon, delta, most) = self.neighbouring(), self.budget
        return TruncatedLaplaceDP(
            laplace_scale(counts_sensitivity(relation), epsilon), most, worst_shifts(relation), delta
        )

    def _require_modest(self, n: int | None, size: float | None) -> None:
        """Refuse a delta that follows from the bound and is large, from what is known before the points are read."""
        if self.delta is None:
            relation, budget = self.neighbouring(), self.budget
            enough = smallest_max_error(relation, epsilon=budget.epsilon, delta=1e-6)
            cost, remedy = f"an error of at most {budget.max_error}", f"such as {enough} for delta = 1e-6"
            known = (n or 0, None) if relation.n_is_public else (None, size)
            require_modest(budget.delta, known, bound=cost, remedy=remedy)

    def plan_by(
        self, domain: Domain, *, by: str, levels: Sequence[Any], n: Any = None, expected_n: Any = None, **options: Any
    ) -> StratifiedPlan:
        """Make the plan of one release for each level of a public mark, all with the same cells, as a series."""
        if self.mesh is not None or self.spacing is not None:
            return super().plan_by(domain, by=by, levels=levels, n=n, expected_n=expected_n, **options)
        require_true_lengths(domain)
        names = level_names(levels)
        exact, guess = sizes(names, n, "n"), sizes(names, expected_n, "expected_n")
        known = [need_size(self.public_size(exact[name], guess[name])) for name in names]
        mesh = self._rule_mesh(domain, sum(known) / len(known))
        return replace(self, mesh=mesh).plan_by(domain, by=by, levels=levels, n=n, expected_n=expected_n, **options)

    def _rule_mesh(self, domain: Domain, size: float | None) -> Mesh:
        epsilon, relation = self.budget.epsilon, self.neighbouring()
        return statistic_mesh(self.postprocess, domain, "cells", size, epsilon, relation)

    def plan(self, domain: Domain, *, n: int | None = None, expected_n: float | None = None) -> ReleasePlan:
        require_true_lengths(domain)
        relation, size, budget = self.neighbouring(), self.public_size(n, expected_n), self.budget
        self._require_modest(n, size)
        self.require_delta(budget.delta, n, expected_n)
        mesh = self.laid_mesh(domain, "cells", partial(self._rule_mesh, domain, size))
        statistic = BoundedCounts(
            "cells", mesh, relation, *exact_or_guess(n, size), budget.epsilon, budget.delta, budget.max_error
        )
        return ReleasePlan("bounded-cells", statistic, estimator_by_rule(self.postprocess, statistic))
