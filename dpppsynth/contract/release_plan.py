"""`ReleasePlan`: a release settled from public parameters, and the one way to spend its budget."""

import hashlib
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpppsynth.contract.account import Account, Planned, Subset, points_of
from dpppsynth.contract.cautions import cautions
from dpppsynth.contract.estimator import AnyEstimator
from dpppsynth.contract.partial_sums import Partial, batches_of, require_whole, total
from dpppsynth.contract.registry import require_fit, require_known
from dpppsynth.contract.rehearsal import Rehearsal, rehearse
from dpppsynth.contract.result import Result
from dpppsynth.contract.statistic import Measured, Statistic, counted_few, require_kept_cap
from dpppsynth.core.errors import DpppsynthError, InformationWarning, InputError, outside
from dpppsynth.core.html_card import html_card
from dpppsynth.core.progress import ProgressLike, announced, require_progress
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.wording import mention
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.shuffling import ShuffledPrivacy
from dpppsynth.spatial.domains import Domain, canonical_json
from dpppsynth.spatial.patterns import PointPattern


def require_unshared(marks: Sequence[str], subset: Subset) -> None:
    """Refuse a subset by a mark that is measured: neighbouring patterns need not share its value.

    Raises
    ------
    InputError
    """
    for mark in marks:
        if subset and mark in subset:
            msg = f"subset: {mark!r} is measured, so points of all its values are released at once; leave it out."
            raise InputError(msg)


@dataclass(frozen=True, eq=False, repr=False)
class ReleasePlan:
    """A release settled down to the last public number, before any data are touched.

    Attributes
    ----------
    mechanism : str
    statistic : Statistic
        What the budget will be spent on: a noised statistic, a posterior draw, moved points or patterns.
    estimator : Estimator or None
        How the intensity will be made from it; None where patterns are all that is released.
    """

    mechanism: str
    statistic: Statistic
    estimator: AnyEstimator | None

    def __post_init__(self) -> None:
        # Whatever public parameters alone get wrong is said here, before a ledger or a point is touched.
        require_known(self.mechanism)
        self.statistic.prepare()
        if self.estimator is not None:
            self.estimator.require(self.statistic)
        require_kept_cap(type(self.statistic), self.guarantee.relation)

    def _repr_html_(self) -> str:
        rows = [("mechanism", self.mechanism), ("domain", repr(self.domain))]
        return html_card("ReleasePlan", rows) + self.guarantee._repr_html_()

    def __repr__(self) -> str:
        made = "" if self.estimator is None else f", {self.estimator!r}"
        return f"ReleasePlan({self.mechanism}, {self.statistic!r}{made})"

    @property
    def domain(self) -> Domain:
        """Public window or network."""
        return self.statistic.domain

    @property
    def guarantee(self) -> Guarantee:
        """The bound of this release."""
        return self.statistic.guarantee.in_unit(self.domain.unit)

    @property
    def shuffled(self) -> ShuffledPrivacy | None:
        """Second statement on reports that an honest shuffler mixes; None where none is made."""
        return self.statistic.shuffled

    @property
    def n(self) -> int | None:
        """Public number of points, or of what `count_unit` tells; None where it is secret."""
        return self.statistic.n

    @property
    def cautions(self) -> tuple[str, ...]:
        """Doubts that a person would raise about the public parameters; none of them is a refusal."""
        n, guess = self.statistic.n, self.statistic.expected_n
        return cautions(self.guarantee, self.domain, guess if n is None else n)

    @property
    def count_unit(self) -> str | None:
        """Mark that tells what n counts, such as trajectories, and how many points of each; None counts points."""
        return self.statistic.count_unit or counted_few(self.guarantee.relation)

    @property
    def levels(self) -> None:
        """None: all points are released at once."""

    def release(
        self,
        pattern: PointPattern,
        rng: RngLike = None,
        *,
        progress: ProgressLike = None,
        ledger: Account | None = None,
        entry: str | None = None,
        subset: Subset = None,
    ) -> Result:
        """Spend the budget on a pattern.

        Parameters
        ----------
        pattern : PointPattern
        rng : None, int or Generator
            None for a private release. Anything else makes it reproducible, not private, and marks it so.
        progress : callable or bool, optional
            Told in words what is going on; the words depend on public parameters and the private statistic only. Unless
            given, a line on the screen in interactive use; False is silence.
        ledger : Ledger, optional
            Must authorise the release before the pattern is touched. From then on it counts as spent, whatever happens.
        entry : str, optional
            What `ledger.authorise` returned, where that was done before the data were read.
        subset : dict, optional
            For the ledger: the points are those of one value of a mark that neighbouring patterns share, such as
            {"year": 2021}, and not all points of the domain. It selects nothing.

        Returns
        -------
        CoxRelease, PoissonRelease or PointRelease

        Raises
        ------
        BudgetError
            When the ledger has too little left: nothing is spent.
        InputError
            When the pattern does not match the plan.
        ReleaseBlocked
            When a draw by NUTS fails its diagnostics: the budget is spent.
        QualityError
            When inference on a private statistic fails them: nothing is lost.
        """
        # What is public about a pattern, its domain, the names of its marks and n, costs nothing to get wrong.
        self.statistic.require_pattern(pattern)
        account: dict[str, Any] = {"ledger": ledger, "entry": entry, "subset": subset}
        return self._spend(lambda rng: self.statistic.measure(pattern, rng), rng, progress=progress, **account)

    def partial(self, points: PointPattern | Iterable[PointPattern]) -> Partial:
        """Exact sum over some of the points: whole numbers, to be added up with `+` and given to `finish`.

        Parameters
        ----------
        points : PointPattern or iterable of PointPattern
            Such as `dpppsynth.io.read_batches` reads, of which one at a time is in memory.

        Raises
        ------
        InputError
            When the mechanism measures more than a sum over points, or points do not match the plan.
        """
        self._require_additive()
        return total(map(self._partial, batches_of(points)))

    def _partial(self, batch: PointPattern) -> Partial:
        self.statistic.require_batch(batch)
        return Partial(self.statistic.exact_numbers(batch), len(batch), self.fingerprint)

    def finish(
        self,
        partials: Iterable[Partial],
        rng: RngLike = None,
        *,
        progress: ProgressLike = None,
        ledger: Account | None = None,
        entry: str | None = None,
        subset: Subset = None,
    ) -> Result:
        """Spend the budget on the points of all partial sums, to which noise is added once.

        The release is that of `release` for one pattern of all these points, whoever added them up: with
        `plan.finish(map(plan.partial, batches))` this process, with `plan.finish(pool.map(plan.partial, files))` the
        workers of an executor.

        Parameters
        ----------
        partials : iterable of Partial
            Taken one by one after the ledger has authorised the release: a `map` reads nothing before.
        rng, progress, ledger, entry, subset
            As for `release`.

        Raises
        ------
        BudgetError, InputError, QualityError
            As for `release`. That the points are more or fewer than the public n is found after the ledger has
            authorised the release.
        """
        self._require_additive()

        def measure(rng: RngLike) -> Measured[Statistic]:
            found = total(partials)
            require_whole(found, self.fingerprint, self.n)
            return self.statistic.noised(found.numbers, rng)

        account: dict[str, Any] = {"ledger": ledger, "entry": entry, "subset": subset}
        return self._spend(measure, rng, progress=progress, **account)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of mechanism, domain, relation and public parameters."""
        relation = self.guarantee.relation.to_dict()
        parts = [self.mechanism, self.domain.fingerprint(), relation, self.statistic.parameters()]
        return hashlib.sha256(canonical_json(parts).encode()).hexdigest()

    def _require_additive(self) -> None:
        if self.statistic.persons_by is not None:
            msg = (
                "plan: points of one person may lie in several batches, and which of them count is drawn from all; use "
                "release with all points."
            )
            raise InputError(msg)
        if not self.statistic.additive:
            msg = (
                f"plan: {self.mechanism} measures more than a sum over points, which batches of them do not give; use "
                "release with all points"
            )
            raise InputError(msg)

    def _spend(
        self,
        measure: Callable[[RngLike], Measured[Statistic]],
        rng: RngLike,
        *,
        progress: ProgressLike,
        ledger: Account | None,
        entry: str | None,
        subset: Subset,
    ) -> Result:
        require_progress(progress)
        require_unshared(self.statistic.mark_names, subset)
        # A record that does not load must not cost the measurement.
        described = require_fit(self.mechanism, self.statistic)
        entry = authorise(self, ledger, entry, rng, subset=subset)
        # One generator for both, so that a seeded run's noise and inference do not share a stream.
        rng = None if rng is None else generator(rng)
        measured = measure(rng)
        # Without its secret: a release is for publication.
        name = None if entry is None else str(entry)
        release = described.build_release(measured, self.estimator, entry=name)
        record(release, ledger, entry)
        with announced(progress) as say:
            return release.finish(rng, say)

    def rehearse(self, rng: RngLike = None, *, progress: ProgressLike = None) -> Rehearsal:
        """Run the mechanism on surrogate patterns drawn from public parameters; see `Rehearsal`."""
        with announced(progress) as say:
            return rehearse(self.mechanism, self.statistic, self.release, generator(rng), say)


def authorise(
    plan: Planned,
    ledger: Account | None,
    entry: str | None,
    rng: RngLike,
    *,
    subset: Subset = None,
    taken: bool = True,
) -> str | None:
    """The ledger's name for its authorisation of a plan, which nothing else can take up; None without a ledger.

    Parameters
    ----------
    plan : ReleasePlan, StratifiedPlan or Ceiling
    ledger : Ledger, optional
    entry : str, optional
        Of an authorisation that was given before the data were read, for at least what the plan spends.
    rng : None, int or Generator
    subset : dict, optional
        Mark and value of the points, where they are not all points of the domain.
    taken : bool
        False where the plan only stands in for one that will take the authorisation up.

    Raises
    ------
    BudgetError
        When the budget does not suffice.
    InputError
        When the release is seeded, or the ledger cannot account for it.
    """
    if ledger is None:
        require_no_ledger_needed(entry=entry, subset=subset)
        return None
    if not isinstance(ledger, Account):
        got = type(ledger).__name__
        msg = f"ledger: needs a Ledger, got {got}; open it with Ledger.open('ledger.json')."
        raise InputError(msg)
    if rng is not None:
        msg = (
            "rng: a seeded release is not private, and no ledger can account for it; leave rng= or "
            f"{mention('ledger')} out."
        )
        raise InputError(msg)
    points = points_of(plan, subset)
    if entry is None:
        return ledger.authorise(plan.guarantee, mechanism=plan.mechanism, domain=plan.domain, **points, taken=taken)
    ledger.settle(entry, plan.guarantee, mechanism=plan.mechanism, domain=plan.domain, **points)
    return entry


def paid_before(ledger: object, entry: str | None) -> bool:
    """Whether a ledger gave an authorisation before the release began."""
    return isinstance(ledger, Account) and entry is not None and ledger.knows(entry)


def require_no_ledger_needed(**given: object) -> None:
    """Refuse what is said to a ledger where there is none."""
    for name, value in given.items():
        if value is not None:
            msg = f"{name}: it is for a ledger; give the {mention('ledger')} as well, which authorises the release."
            raise InputError(msg)


def record(release: Result, ledger: Account | None, entry: str | None) -> None:
    """Tell the ledger that an authorised release happened. What was paid for is never lost because that fails."""
    if ledger is None or entry is None:
        return
    try:
        ledger.record(entry, release.certificate_dict(), domain=release.domain)
    except (DpppsynthError, OSError):
        msg = (
            "ledger: the release could not be recorded. It counts as spent, at all that was authorised for it; its "
            "certificate names the entry."
        )
        warnings.warn(msg, InformationWarning, stacklevel=outside())
