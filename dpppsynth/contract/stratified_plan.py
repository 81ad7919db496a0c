"""Stratified releases: one for each level of a public mark, under parallel composition and one certificate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from dpppsynth.contract.account import Account, Levels, Subset
from dpppsynth.contract.registry import stratified
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.result import ResultByLevels, Values
from dpppsynth.contract.spending import read_sooner, spend
from dpppsynth.core.arguments import shown, writable
from dpppsynth.core.errors import InputError
from dpppsynth.core.html_card import html_card
from dpppsynth.core.progress import ProgressLike, require_progress
from dpppsynth.core.randomness import RngLike
from dpppsynth.core.wording import mention
from dpppsynth.privacy.bounds import Size, all_points
from dpppsynth.privacy.composition import parallel
from dpppsynth.privacy.guarantee import Guarantee
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.marks import word, words
from dpppsynth.spatial.patterns import PointPattern, require_number

# Name on certificates of releases by levels of a mark.
STRATA = "strata"
MOST_LEVELS = 1000
# Names that released files need for themselves.
TAKEN = ("x", "y", "geometry")
# Whole numbers up to which all floats are known.
LARGEST_WHOLE = 2**53


@dataclass(frozen=True, eq=False, repr=False)
class StratifiedPlan:
    """Plans for all levels of a mark, settled before any data are touched.

    Attributes
    ----------
    by : str
        Name of the mark.
    plans : dict of str to ReleasePlan
        One for each level, in the caller's order.
    values : tuple of int or str
        The levels as they stand in files: numbers where all are whole numbers, and their names otherwise.
    """

    by: str
    plans: dict[str, ReleasePlan]
    values: Values = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values) or tuple(self.plans))
        if len(self.plans) > MOST_LEVELS:
            msg = (
                f"levels: at most {MOST_LEVELS} are released under one certificate, got {len(self.plans)}; take fewer."
            )
            raise InputError(msg)
        # Promises that have no common bound are refused before a point is touched.
        _ = self.guarantee

    def _repr_html_(self) -> str:
        rows = [("by", self.by), ("levels", ", ".join(map(str, self.plans)))]
        return html_card("StratifiedPlan", rows) + self.guarantee._repr_html_()

    def __repr__(self) -> str:
        return f"StratifiedPlan(by={self.by!r}, levels={list(self.plans)})"

    @property
    def parts(self) -> dict[str, ReleasePlan]:
        """The plan of each level."""
        return self.plans

    @cached_property
    def guarantee(self) -> Guarantee:
        """Guarantee of all levels together: the weakest level's."""
        return parallel([plan.guarantee for plan in self.plans.values()], self.by)

    @property
    def size(self) -> Size:
        """Number of points of all levels, or the public guess of it."""
        return all_points((plan.statistic.n, plan.statistic.expected_n) for plan in self.plans.values())

    @property
    def mechanism(self) -> str:
        """Name of the mechanism of the release."""
        return STRATA

    @property
    def cautions(self) -> tuple[str, ...]:
        """Warnings about the public parameters of any level."""
        return tuple(dict.fromkeys(each for plan in self.plans.values() for each in plan.cautions))

    @property
    def domain(self) -> Domain:
        """Public window or network."""
        return next(iter(self.plans.values())).domain

    @property
    def n(self) -> int | None:
        """Public number of points of all levels together; None where it is secret."""
        return self.size[0]

    @property
    def count_unit(self) -> None:
        """None: n counts points."""

    @property
    def levels(self) -> Levels:
        """The mark and the public number of points of each level; None where these are secret."""
        return None if self.n is None else {self.by: {level: plan.n for level, plan in self.plans.items()}}

    @property
    def file_sizes(self) -> tuple[int, int]:
        """Approximate bytes of all levels' paid files, and of the files derived from them."""
        paid, made = zip(*(plan.file_sizes for plan in self.plans.values()), strict=True)
        return sum(paid), sum(made)

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
    ) -> ResultByLevels:
        """Spend the budget on a pattern marked by `by`; parameters and errors as in `ReleasePlan.release`.

        All levels are paid for even when inference fails on some: `error.release` of the `QualityError` has them all.
        """
        # Validate the public facts of a pattern before spending.
        require_progress(progress)
        require_other_mark(self.by, subset)
        require_mark(pattern, self.by, self.domain)
        require_number(pattern, self.n)
        # What was paid for before is not held to numbers of levels that the points do not have.
        parts = cache(lambda: self._parts(pattern))
        read_sooner(self, parts, ledger=ledger, entry=entry, keep=keep)

        def measure(rng: RngLike, name: str | None) -> ResultByLevels:
            releases = {level: plan.measure(parts()[level], rng) for level, plan in self.plans.items()}
            return stratified(releases)(self.by, releases, self.guarantee, name, self.values)

        account: dict[str, Any] = {"ledger": ledger, "entry": entry, "subset": subset, "keep": keep}
        return spend(self, measure, rng, progress=progress, **account)

    def _parts(self, pattern: PointPattern) -> dict[str, PointPattern]:
        """Patterns of the levels, each with the number of points it was planned for."""
        parts = split(pattern, self.by, list(self.plans))
        for level, part in parts.items():
            require_number(part, self.plans[level].n)
        return parts


def require_other_mark(by: str, subset: object) -> None:
    """Refuse levels of a mark of which the points have one value."""
    if isinstance(subset, Mapping) and by in subset:
        msg = (
            f"subset: it says that all points have one value of {by!r}; name another mark than {mention('by')}, or "
            "release at once."
        )
        raise InputError(msg)


def level_names(levels: Sequence[object]) -> list[str]:
    """Levels as the words that certificates and files use."""
    # Not as an array: numpy drops zero bytes at the end of a text.
    names = [*map(word, levels)] if isinstance(levels, Sequence) and not isinstance(levels, str) else []
    if not names or len(set(names)) < len(names):
        msg = f"levels: needs a list of different values, such as [2021, 2022], got {levels!r}."
        raise InputError(msg)
    if not all(map(writable, names)):
        msg = f"levels: must be texts that files can hold, without control characters, got {levels!r}."
        raise InputError(msg)
    return names


def level_values(levels: Sequence[object]) -> Values:
    """Levels as the values that files use: numbers where all are whole numbers, and their names otherwise.

    Examples
    --------
    >>> level_values([2021, 2022]), level_values(["2021", "2022"]), level_values([2021, "before"])
    ((2021, 2022), ('2021', '2022'), ('2021', 'before'))
    """
    whole = [int(each) for each in levels if isinstance(each, Integral) and not isinstance(each, bool)]
    # Beyond that many programs that read files know no whole numbers.
    kept = len(whole) == len(levels) and all(abs(each) <= LARGEST_WHOLE for each in whole)
    return tuple(whole) if kept else tuple(level_names(levels))


def mark_name(by: object) -> str:
    """The name of a mark, which must be free in the files of a release, and such that files can hold it."""
    if not isinstance(by, str) or not by or not writable(by):
        msg = f"by: needs the name of a mark, a text without control characters, got {shown(by)}."
        raise InputError(msg)
    if by in TAKEN:
        msg = f"by: {by!r} names coordinates in the files of a release; rename the mark."
        raise InputError(msg)
    return by


def require_mark(pattern: object, by: object, domain: Domain | None = None) -> None:
    """Refuse a pattern without the mark, or of another domain than the one planned for: both are public."""
    if not isinstance(pattern, PointPattern) or not isinstance(by, str) or by not in (pattern.marks or {}):
        msg = f"by: needs a pattern with the mark {by!r}; read it with marks=[{by!r}]."
        raise InputError(msg)
    if domain is not None and pattern.domain.fingerprint() != domain.fingerprint():
        msg = "pattern: its domain differs from the one the release was planned for; plan again with its own."
        raise InputError(msg)


def split(pattern: PointPattern, by: str, levels: Sequence[str]) -> dict[str, PointPattern]:
    """Patterns of the levels, unmarked.

    Raises
    ------
    InputError
        When the mark is missing, some point has another level, or a level has no point.
    """
    require_mark(pattern, by)
    mark = words((pattern.marks or {})[by])
    if not np.isin(mark, levels).all():
        msg = f"levels: every point's {by} must be one of {', '.join(levels)}; name all levels that are in use."
        raise InputError(msg)
    if set(mark) != set(levels):
        msg = f"levels: every level of {by} needs at least one point; leave out those that nobody has."
        raise InputError(msg)
    return {level: pattern.part(mark == level) for level in levels}


def sizes(levels: Sequence[str], given: object, name: str) -> dict[str, Any]:
    """One size for each level: from a mapping or, where all levels may share one, a number."""
    if not isinstance(given, Mapping):
        # Without an n each level's own plan says what it needs.
        if given is None or name == "expected_n":
            return dict.fromkeys(levels, given)
        msg = f"{name}: needs a dictionary with the number of points of each level, such as {{'2021': 10, '2022': 12}}."
        raise InputError(msg)
    told = {word(level): value for level, value in given.items()}
    if set(told) != set(levels):
        msg = f"{name}: needs exactly one number for each of the levels {', '.join(levels)}."
        raise InputError(msg)
    return told
