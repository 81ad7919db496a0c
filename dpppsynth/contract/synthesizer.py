"""`Synthesizer`: public settings, checked, and check / plan / rehearse / release that all synthesizers share."""

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

from dpppsynth.contract import rules
from dpppsynth.contract.account import Account, Ceiling, Subset
from dpppsynth.contract.object_options import relation_of, require_relation
from dpppsynth.contract.rehearsal import Rehearsal
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.result import MechanismResult, ResultByLevels
from dpppsynth.contract.settings import ParsedOptions, Settings
from dpppsynth.contract.spending import authorise, output_folder, require_no_ledger_needed
from dpppsynth.contract.statistic import measured_number
from dpppsynth.contract.stratified_plan import (
    STRATA,
    StratifiedPlan,
    level_names,
    level_values,
    mark_name,
    require_mark,
    require_other_mark,
    sizes,
    split,
)
from dpppsynth.core.arguments import instance, positive, shown, whole_number
from dpppsynth.core.errors import InputError
from dpppsynth.core.map_scale import scale_factor
from dpppsynth.core.progress import ProgressLike, require_progress
from dpppsynth.core.randomness import RngLike
from dpppsynth.core.wording import mention
from dpppsynth.models.recipes import mesh_from_recipe
from dpppsynth.privacy.bounds import require_small_delta
from dpppsynth.privacy.composition import require_all_points
from dpppsynth.privacy.guarantee import Guarantee, Profile, PureDP
from dpppsynth.privacy.relations import AddRemove, AlphaNeighbours, CappedRelation, MovedPoint, Relation, ReplaceOne
from dpppsynth.spatial.domains import Domain, require_domain
from dpppsynth.spatial.mesh import Mesh
from dpppsynth.spatial.offset import Offset
from dpppsynth.spatial.patterns import PointPattern

if TYPE_CHECKING:
    from dpppsynth.privacy.nearby_population import Crowd

T = TypeVar("T")
R_co = TypeVar("R_co", bound=MechanismResult, covariant=True)
# Whole numbers up to here are floating-point numbers.
MOST_POINTS = 2**53
# Kinds of options by which a plan is known again.
PLAIN = (int, float, str, type(None))
# What an authorisation before the plan takes for granted.
KEPT = "within-budget"


class Synthesizer(Settings, Generic[R_co]):
    """Base of synthesizers: each defines `plan`; `check` and `release` use it."""

    epsilon: float

    def plan(self, *args: Any, **options: Any) -> ReleasePlan:
        raise NotImplementedError

    def check(
        self, domain: Domain, *, n: int | None = None, expected_n: float | None = None, **options: Any
    ) -> Guarantee:
        """Guarantee of a release, from public parameters alone.

        Parameters
        ----------
        domain : Window or LinearNetwork
        n : int
            Number of points, public under alpha-neighbours and replace-one.
        expected_n : float
            Public guess of the number of points; takes the place of n under add/remove.
        **options
            What else this synthesizer's `plan` takes.

        Raises
        ------
        InputError, PrivacyCheckError
        """
        return self._planned(domain, n=n, expected_n=expected_n, **options).guarantee

    def rehearse(
        self,
        domain: Domain,
        rng: RngLike = None,
        *,
        n: int | None = None,
        expected_n: float | None = None,
        progress: ProgressLike = None,
        **options: Any,
    ) -> Rehearsal:
        """Run the mechanism on surrogate patterns, so that everything is settled before the data are touched.

        Nothing is spent, and `rng` may be seeded; other parameters as in `check`.
        """
        return self._planned(domain, n=n, expected_n=expected_n, **options).rehearse(rng, progress=progress)

    def release(
        self,
        pattern: PointPattern,
        rng: RngLike = None,
        *,
        expected_n: float | None = None,
        progress: ProgressLike = None,
        ledger: Account | None = None,
        subset: Subset = None,
        keep: str | Path | None = None,
        **options: Any,
    ) -> R_co:
        """Spend the budget on a pattern once; see `ReleasePlan.release`, and `check` for the other parameters.

        Where labels of persons tell how many points count, a `ledger` authorises `ceiling` before they are read.
        """
        domain = self._domain(pattern)
        planned = partial(self._planned, domain, expected_n=expected_n, **options)
        account: dict[str, Any] = {"ledger": ledger, "subset": subset, "keep": keep}
        if ledger is not None and self.labels_tell_n:
            first = planned(n=self.fewest)
            first.statistic.require_columns(pattern)
            require_progress(progress)
            output_folder(keep, sum(first.file_sizes))
            most = Ceiling(first.mechanism, domain, self.ceiling(domain, **options))
            account["entry"] = authorise(most, ledger, None, rng, subset=subset, taken=False)
        plan = planned(n=self.number_of(pattern))
        # The class that the mechanism's record names, which is the one that this class is declared with.
        return cast(R_co, plan.release(pattern, rng, progress=progress, **account))

    @property
    def labels_tell_n(self) -> bool:
        """Whether the public number of a pattern depends on persons' labels."""
        relation = self.neighbouring()
        return relation.n_is_public and relation.user_cap is not None

    @property
    def fewest(self) -> int:
        """Smallest number that a plan may be made for."""
        return 1

    def number_of(self, pattern: PointPattern) -> int | None:
        """The public number in a pattern that a plan is made for; None where it is secret."""
        relation = self.neighbouring()
        return measured_number(relation, pattern) if relation.n_is_public else None

    def ceiling(self, domain: Domain, **options: Any) -> Guarantee:
        return Guarantee(self.neighbouring(), self._ceiling(domain, **options), "budget-asked", (KEPT,))

    def _ceiling(self, domain: Domain, **options: Any) -> Profile:
        """Profile of the whole budget: a pure one, unless the mechanism spends a delta."""
        return PureDP(float(self.epsilon))

    def _planned(self, domain: Domain, **options: Any) -> ReleasePlan:
        """The plan for these public parameters: the last one that was made here, where it was made for the same ones.

        What a plan is made from is public, and plans do not change, so `release` spends what `check` has looked at.
        """
        if not isinstance(domain, Domain) or not all(isinstance(each, PLAIN) for each in options.values()):
            return self.plan(domain, **options)
        public = sorted((name, type(value).__name__, value) for name, value in options.items())
        return self._again("plan", (domain, public), lambda: self.plan(domain, **options))

    def _again(self, name: str, public: tuple[Domain, object], make: Callable[[], T]) -> T:
        """The last result of a name, where it was made on the same domain, from the same settings and public facts.

        Threads that ask at once may compute twice, and never see the result of another question.
        """
        domain, others = public
        # Settings are compared by identity, and held with the result: equal arrays are no truth value.
        settings = [getattr(self, each.name) for each in fields(cast(Any, self))]
        key = [id(each) for each in settings], domain.fingerprint(), domain.scale_factor, others
        held = self._held.get(name)
        if held is None or held[0] != key:
            held = self._held[name] = key, make(), settings
        return cast(T, held[1])

    @cached_property
    def _held(self) -> dict[str, tuple[object, object, object]]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """State without results that are held: copies to other processes begin without any."""
        return {name: value for name, value in self.__dict__.items() if name != "_held"}

    @staticmethod
    def _domain(pattern: object) -> Domain:
        domain: Domain = instance("pattern", pattern, PointPattern).domain
        return domain


# A synthesizer, whichever mechanism's.
AnySynthesizer = Synthesizer[MechanismResult]


class PointSynthesizer(Synthesizer[R_co]):
    """Base of synthesizers under capped relations: a point changes, or up to a number of points of one person."""

    relation: CappedRelation | None
    # How a delta that promises nothing becomes smaller, or is accepted.
    smaller_delta: ClassVar[str] = ""

    def require_delta(self, delta: float, n: int | None, expected_n: float | None) -> None:
        """Refuse a delta that is too large for the number of points of all levels together."""
        allowed = getattr(self, "allow_large_delta", False)
        public: dict[str, Any] = {"expected_n": expected_n, "allow_large_delta": allowed}
        require_small_delta(delta, n, **public, remedy=self.smaller_delta)

    def crowd(self, domain: Domain, population: Offset) -> "Crowd":
        """Number of people within the privacy radius, from a public population alone; see `people_within`.

        `crowd.words(guarantee)` says it, with the meaning of epsilon for them.
        """
        from dpppsynth.privacy.nearby_population import people_within, require_reach

        return people_within(population, domain, require_reach(self.neighbouring()))

    def require_levels(self) -> None:
        """Refuse a mark of levels where releases by level are impossible; by default where persons' points are sampled.

        The cap holds for all levels together, and which points of a person count is drawn: so would be how many points
        each level has, which is public and planned for.
        """
        require_all_points(self.neighbouring())

    def plan_by(
        self,
        domain: Domain,
        *,
        by: str,
        levels: Sequence[object],
        n: object = None,
        expected_n: object = None,
        **options: Any,
    ) -> StratifiedPlan:
        """Make the plan of one release for each level of a public mark.

        Parameters
        ----------
        domain : Window or LinearNetwork
        by : str
            Name of the mark, such as "year".
        levels : sequence
            All its values, chosen without looking at the points, such as [2021, 2022].
        n, expected_n : dict
            Number of points by level, or public guess of it (a number stands for all levels).
        **options
            As in `plan`.
        """
        self.require_levels()
        names = level_names(levels)
        mark_name(by)
        exact, guess = sizes(names, n, "n"), sizes(names, expected_n, "expected_n")
        plans = {name: self.plan(domain, n=exact[name], expected_n=guess[name], **options) for name in names}
        together = StratifiedPlan(by, plans, level_values(levels))
        self.require_delta(together.guarantee.profile.at, *together.size)
        return together

    def release_by(
        self,
        pattern: PointPattern,
        rng: RngLike = None,
        *,
        by: str,
        levels: Sequence[object],
        expected_n: object = None,
        progress: ProgressLike = None,
        ledger: Account | None = None,
        subset: Subset = None,
        keep: str | Path | None = None,
        **options: Any,
    ) -> ResultByLevels:
        """Spend the budget once on each level of a public mark, in parallel; parameters as in `plan_by`.

        Where the points tell how many there are in each level, a `ledger` authorises `ceiling` before.
        """
        self.require_levels()
        domain, names = self._domain(pattern), level_names(levels)
        require_mark(pattern, mark_name(by))
        require_progress(progress)
        account: dict[str, Any] = {"ledger": ledger, "subset": subset, "keep": keep}
        if not self.neighbouring().n_is_public:
            plan = self.plan_by(domain, by=by, levels=levels, expected_n=expected_n, **options)
            return plan.release(pattern, rng, progress=progress, **account)
        self.public_size(1, expected_n)
        require_other_mark(by, subset)
        entry = None
        if ledger is None:
            require_no_ledger_needed(subset=subset)
        if ledger is not None:
            # Validate before spending.
            whole = self.plan(domain, n=len(pattern), **options)
            output_folder(keep, len(names) * sum(whole.file_sizes))
            # Authorise before counting levels: an empty level would leak.
            known: dict[str, Any] = {"n": len(pattern), "levels": {by: dict.fromkeys(names)}}
            most = Ceiling(STRATA, domain, self.ceiling(domain, **options), **known)
            entry = authorise(most, ledger, None, rng, subset=subset, taken=False)
        n = {name: len(part) for name, part in split(pattern, by, names).items()}
        plan = self.plan_by(domain, by=by, levels=levels, n=n, expected_n=expected_n, **options)
        return plan.release(pattern, rng, progress=progress, entry=entry, **account)

    @classmethod
    def require_options(cls, options: ParsedOptions) -> None:
        require_relation(options)
        super().require_options(options)

    @classmethod
    def objects(cls, options: ParsedOptions, domain: Domain) -> dict[str, Any]:
        return {"relation": cls.relation_from(options), "alpha": None}

    @classmethod
    def relation_from(cls, options: ParsedOptions) -> CappedRelation:
        return relation_of(options)

    @classmethod
    def require_size(cls, options: ParsedOptions, n: int | None, by: str | None) -> None:
        super().require_size(options, n, by)
        if by is not None:
            require_all_points(cls.relation_from(options))

    def neighbouring(self) -> CappedRelation:
        return point_relation(self.relation, getattr(self, "alpha", None))

    def public_size(self, n: object, expected_n: object) -> float | None:
        """The public number of points, exact or guessed, that default rules may use."""
        return public_size(self.neighbouring(), n, expected_n)


class MeshSynthesizer(PointSynthesizer[R_co]):
    """Base of synthesizers whose mesh is given, or has a given spacing, or follows from a public rule."""

    spacing: float | None
    mesh: Mesh | None

    def __post_init__(self) -> None:
        if self.spacing is not None:
            positive("spacing", self.spacing)
        if self.spacing is not None and self.mesh is not None:
            msg = "mesh: it has a spacing of its own; give mesh= or spacing=, not both."
            raise InputError(msg)

    def laid_mesh(self, domain: Domain, basis: str, by_rule: Callable[[], Mesh]) -> Mesh:
        """Mesh of counts ("cells") or masses ("tents")."""
        if self.mesh is not None:
            return covering(domain, self.mesh)
        if self.spacing is None:
            return by_rule()
        laid: Mesh = rules.BY_DOMAIN[type(domain)].spaced_mesh(domain, basis, self.spacing)
        return laid


def point_relation(relation: object, alpha: float | None, *, marks: bool = False) -> CappedRelation:
    """The relation given, else alpha-neighbours, else replace-one; it may cover times and types only with `marks`."""
    if relation is not None:
        if not isinstance(relation, AlphaNeighbours | ReplaceOne | AddRemove):
            msg = f"relation: expected a relation such as ReplaceOne() or AddRemove(), got {relation!r}."
            raise InputError(msg)
        if alpha is not None and not (isinstance(relation, AlphaNeighbours) and relation.alpha == alpha):
            msg = "relation: it contradicts alpha; give `alpha=` or `relation=`, not both."
            raise InputError(msg)
        if isinstance(relation, MovedPoint) and relation.has_marks and not marks:
            msg = "relation: times and types are measured by MarkedSynthesizer alone; take that, or leave them out."
            raise InputError(msg)
        return relation
    return ReplaceOne() if alpha is None else AlphaNeighbours(alpha)


def public_size(relation: Relation, n: object, expected_n: object) -> float | None:
    """The public number of points, exact or guessed, under a relation."""
    if relation.n_is_public:
        if expected_n is not None:
            msg = f"expected_n: n is public under this relation; pass {mention('n')} instead."
            raise InputError(msg)
        exact = whole_number(n)
        if exact is None or not 1 <= exact <= MOST_POINTS:
            got = shown(n)
            msg = (
                "n: the public number of points is needed, a whole number of at least 1 such as "
                f"{mention('n', '500')}, got {got}."
            )
            raise InputError(msg)
        return float(exact)
    if n is not None:
        msg = f"n: it is secret under add/remove; pass a public guess as {mention('expected_n')} instead."
        raise InputError(msg)
    if expected_n is not None:
        guess = float(positive("expected_n", expected_n))
        if guess > MOST_POINTS:
            msg = f"expected_n: must be at most {MOST_POINTS}, got {shown(expected_n)}; guess the number of points."
            raise InputError(msg)
        return guess
    return None


def safe_digits(bound: float, *, up: bool = False) -> str:
    """Four digits of a bound, rounded so that the bound still holds: down, or up where it is a smallest value."""
    unit = 10.0 ** (math.floor(math.log10(bound)) - 3)
    return f"{(math.ceil if up else math.floor)(bound / unit) * unit:.4g}"


def need_size(size: float | None) -> float:
    """The public guess of n that a rule needs under add/remove."""
    if size is None:
        msg = (
            "expected_n: a public guess of the number of points is needed under add/remove, such as "
            f"{mention('expected_n', '500')}."
        )
        raise InputError(msg)
    return size


def exact_or_guess(n: int | None, size: float | None) -> tuple[int | None, float | None]:
    """(n, None) where n is public, (None, expected_n) where it is secret, as plain numbers for the certificate."""
    return (None, size) if n is None else (int(n), None)


def require_true_lengths(domain: Domain) -> None:
    """Refuse a domain that is no window or network, or whose stated scale factor is wrong."""
    require_domain(domain)
    if domain.scale_factor != scale_factor(domain.geometry, domain.crs):
        msg = (
            "domain: it comes from a release, which states another scale factor than is found here; make it anew, as "
            "in Window.from_geojson(domain.to_geojson())."
        )
        raise InputError(msg)


def covering(domain: Domain, mesh: object) -> Mesh:
    """A caller's mesh rebuilt from its recipe on this domain, exactly as an auditor will rebuild it."""
    if not isinstance(mesh, Mesh):
        msg = f"mesh: needs a Mesh, for instance from dpppsynth.models.regular_triangulation, got {mesh!r}."
        raise InputError(msg)
    if mesh.domain.fingerprint() != domain.fingerprint():
        msg = "mesh: it covers another domain; build it on the pattern's."
        raise InputError(msg)
    return mesh_from_recipe(mesh.recipe, domain)
