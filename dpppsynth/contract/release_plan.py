"""`ReleasePlan`: statistic, guarantee and estimator of a release, and its methods to spend the budget."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from dpppsynth.contract.account import Account, Subset, counted_few
from dpppsynth.contract.cautions import cautions
from dpppsynth.contract.estimator import AnyEstimator, assumed_of
from dpppsynth.contract.partial_sums import Partial, batches_of, require_whole, total
from dpppsynth.contract.registry import require_fit, require_known
from dpppsynth.contract.rehearsal import Rehearsal, rehearse
from dpppsynth.contract.result import MechanismResult, Result
from dpppsynth.contract.spending import file_sizes, read_sooner, spend
from dpppsynth.contract.statistic import Measured, Statistic, require_kept_cap
from dpppsynth.core.errors import InputError
from dpppsynth.core.html_card import html_card
from dpppsynth.core.progress import ProgressLike, announced, require_progress
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.wording import Rows
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.privacy.shuffling import ShuffledPrivacy
from dpppsynth.spatial.domains import Domain, canonical_json
from dpppsynth.spatial.patterns import PointPattern


def require_unshared(marks: Sequence[str], subset: Subset) -> None:
    """Refuse a subset by a mark that is measured: neighbouring patterns need not share its value; InputError."""
    for mark in marks:
        if subset and mark in subset:
            msg = f"subset: {mark!r} is measured, so points of all its values are released at once; leave it out."
            raise InputError(msg)


@dataclass(frozen=True, eq=False, repr=False)
class ReleasePlan:
    """Plan of a release: every public number fixed before any data are touched.

    Attributes
    ----------
    mechanism : str
    statistic : Statistic
        What the budget will be spent on: a noised statistic, a posterior draw, moved points or patterns.
    estimator : Estimator or None
        How the intensity will be made from it; None where patterns are all that is released.
    reason : str
        Why a public rule took this mechanism, in words; empty where it was asked for.
    """

    mechanism: str
    statistic: Statistic
    estimator: AnyEstimator | None
    reason: str = ""

    def __post_init__(self) -> None:
        # Validate public parameters here, before a ledger or a point is touched.
        require_known(self.mechanism)
        self.statistic.prepare()
        if self.estimator is not None:
            self.estimator.require(self.statistic)
        require_kept_cap(type(self.statistic), self.guarantee.relation)

    def _repr_html_(self) -> str:
        rows = [("mechanism", self.mechanism), *self.reasons, ("domain", repr(self.domain))]
        return html_card("ReleasePlan", rows) + self.guarantee._repr_html_()

    def __repr__(self) -> str:
        made = "" if self.estimator is None else f", {self.estimator!r}"
        return f"ReleasePlan({self.mechanism}, {self.statistic!r}{made})"

    @property
    def reasons(self) -> Rows:
        """Row of a table that says why a rule took this mechanism; none where it was asked for."""
        return [("chosen", f"by a public rule, as {self.reason}")] if self.reason else []

    @property
    def parts(self) -> "dict[str, ReleasePlan]":
        """The plan of each level of a mark: here the plan itself, under an empty name."""
        return {"": self}

    @property
    def domain(self) -> Domain:
        """Public window or network."""
        return self.statistic.domain

    @property
    def guarantee(self) -> Guarantee:
        """The bound of this release."""
        stated = None if self.estimator is None else self.estimator.to_dict()
        return self.statistic.guarantee.assuming(assumed_of(stated)).in_unit(self.domain.unit)

    @property
    def shuffled(self) -> ShuffledPrivacy | None:
        """Second guarantee for reports mixed by an honest shuffler; None where none is stated."""
        return self.statistic.shuffled

    @property
    def n(self) -> int | None:
        """Public number of points, or of units of `count_unit`; None where it is secret."""
        return self.statistic.n

    @property
    def cautions(self) -> tuple[str, ...]:
        """Warnings about the public parameters; none of them is a refusal."""
        n, guess = self.statistic.n, self.statistic.expected_n
        return cautions(self.guarantee, self.domain, guess if n is None else n)

    @property
    def count_unit(self) -> str | None:
        """Unit that n counts: a mark, such as that of trajectories, with its cap if any; None where n counts points."""
        return self.statistic.count_unit or counted_few(self.guarantee.relation)

    @property
    def levels(self) -> None:
        """None: points are released together, not by level."""

    def release(
        self,
        pattern: PointPattern,
        rng: RngLike = None,
        *,
        progress: ProgressLike = None,
        ledger: Account | None = None,
        entry: str | None = None,
        subset: Subset = None,
        keep: str | Path | None = None,
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
        keep : str or Path, optional
            New folder into which what was paid for is written before anything is inferred from it: `load_release` opens
            it whatever happens then, and `release.save(keep)` completes it.

        Returns
        -------
        CoxRelease, PoissonRelease or PointRelease

        Raises
        ------
        BudgetError
            When the ledger has too little left: nothing is spent.
        InputError
            When the pattern does not match the plan. Only its domain, the names of its marks and a public n are looked
            at before the ledger has authorised the release: what its values refuse is spent.
        ReleaseBlocked
            When a draw by NUTS fails its diagnostics: the budget is spent.
        QualityError
            When inference on a private statistic fails them: nothing is lost.
        """
        # Validate the public facts of a pattern before spending: its domain, the names of its marks and n.
        self.statistic.require_public(pattern)
        account: dict[str, Any] = {"ledger": ledger, "entry": entry, "subset": subset, "keep": keep}
        return self._spend(
            lambda rng: (self.statistic.measure(pattern, rng), pattern.snap),
            lambda: self.statistic.require_counted(pattern),
            rng,
            progress=progress,
            **account,
        )

    def partial(self, points: PointPattern | Iterable[PointPattern]) -> Partial:
        """Exact sum over some of the points: whole numbers, to be added up with `+` and given to `finish`.

        Parameters
        ----------
        points : PointPattern or iterable of PointPattern
            Such as `dpppsynth.io.read_batches` reads, of which one at a time is in memory.

        Raises
        ------
        InputError
            When the mechanism measures more than a sum over points, or points live in another domain or have other
            marks. Values that do not fit are told by `finish`, after the ledger has authorised the release.
        """
        self._require_additive()
        return total(map(self._partial, batches_of(points)))

    def _partial(self, batch: PointPattern) -> Partial:
        self.statistic.require_columns(batch)
        try:
            return Partial(self.statistic.exact_numbers(batch), len(batch), self.fingerprint, snap=batch.snap)
        except InputError as error:
            # Told now, it would answer a question about values that nobody has paid for.
            return Partial(np.zeros(0, dtype=np.int64), len(batch), self.fingerprint, error)

    def finish(
        self,
        partials: Iterable[Partial],
        rng: RngLike = None,
        *,
        progress: ProgressLike = None,
        ledger: Account | None = None,
        entry: str | None = None,
        subset: Subset = None,
        keep: str | Path | None = None,
    ) -> Result:
        """Spend the budget on the points of all partial sums, to which noise is added once.

        The release is that of `release` for one pattern of all these points, whoever added them up: with
        `plan.finish(map(plan.partial, batches))` this process, with `plan.finish(pool.map(plan.partial, files))` the
        workers of an executor.

        Parameters
        ----------
        partials : iterable of Partial
            A list is held against the public n before the ledger is asked. A `map` or another iterator is taken one by
            one after the ledger has authorised the release: it reads nothing before.
        rng, progress, ledger, entry, subset, keep
            As for `release`.

        Raises
        ------
        BudgetError, InputError, QualityError
            As for `release`.
        """
        self._require_additive()
        account: dict[str, Any] = {"ledger": ledger, "entry": entry, "subset": subset, "keep": keep}

        @cache
        def whole() -> Partial:
            found = total(partials)
            require_whole(found, self.fingerprint, self.n)
            return found

        if isinstance(partials, Sequence):
            whole()
        return self._spend(
            lambda rng: (self.statistic.noised(whole().exact, rng), whole().snap),
            whole,
            rng,
            progress=progress,
            **account,
        )

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

    @property
    def file_sizes(self) -> tuple[int, int]:
        """Approximate bytes of the paid files, and of the files derived from them."""
        return file_sizes(self)

    def _spend(
        self,
        measure: Callable[[RngLike], tuple[Measured[Statistic], float | None]],
        count: Callable[[], object],
        rng: RngLike,
        **account: Any,
    ) -> Result:
        """Spend on what is measured of points that were moved onto the domain within a public tolerance.

        Points that an entry has paid for are counted before the ledger keeps their n.
        """
        require_progress(account["progress"])
        require_unshared(self.statistic.mark_names, account["subset"])
        # The record is loaded before the budget is spent: where it does not load, nothing is.
        self._described()
        read_sooner(self, count, ledger=account["ledger"], entry=account["entry"], keep=account["keep"])
        return spend(self, lambda rng, entry: self._uninferred(*measure(rng), entry), rng, **account)

    def measure(self, pattern: PointPattern, rng: RngLike, entry: str | None = None) -> MechanismResult:
        """The release of a pattern before anything is inferred; for releases by levels, which `spend` authorises."""
        return self._uninferred(self.statistic.measure(pattern, rng), pattern.snap, entry)

    def _uninferred(self, measured: Measured[Statistic], snap: float | None, entry: str | None) -> MechanismResult:
        found: Any = self._described().build_release(measured, self.estimator, entry=entry)
        return cast(MechanismResult, found if snap is None else replace(found, snap=snap))

    def _described(self) -> Any:
        return require_fit(self.mechanism, self.statistic)

    def rehearse(self, rng: RngLike = None, *, progress: ProgressLike = None) -> Rehearsal:
        """Run the mechanism on surrogate patterns drawn from public parameters; see `Rehearsal`."""
        offset = getattr(self.estimator, "offset", None)
        with announced(progress) as say:
            return rehearse(self.mechanism, self.statistic, self.release, generator(rng), say, offset)
