"""Options of the number of points, in all or by a public mark, and the plan they settle."""

import inspect
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import note
from dpppsynth.cli.ledger import FIRST
from dpppsynth.cli.method import Method
from dpppsynth.contract.settings import PRIVACY, declared_as, setting
from dpppsynth.core.errors import InformationWarning, InputError, PrivacyCheckError
from dpppsynth.spatial.marks import as_list, listed, word

if TYPE_CHECKING:
    from dpppsynth.contract.account import Levels
    from dpppsynth.contract.release_plan import ReleasePlan
    from dpppsynth.contract.stratified_plan import StratifiedPlan
    from dpppsynth.spatial.domains import Domain
    from dpppsynth.spatial.patterns import PointPattern

# Numbers of points, in all or at each level: options that suit none of them are taken to suit no file.
TRIED = (1000, 10, 10**5, 1, 10**7)
# Levels that files hold as numbers: "007" and "1e3" are names.
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,14}", re.ASCII)

LEFT = (
    "points outside the domain are left out: whoever is there is in none of what is released, and the promise is about "
    "the points inside"
)


@dataclass(frozen=True, kw_only=True)
class PatternOptions:
    """Number of points, in all or by the levels of a mark."""

    n: int | None = declared_as(o.N)
    expected_n: float | None = declared_as(o.EXPECTED)
    by: str | None = setting(
        None, help="Public mark, such as year: one release for each of its levels", metavar="COLUMN", panel=PRIVACY
    )
    levels: str | None = setting(
        None,
        help="All values of --by, chosen without looking at the points; quote those with commas, or repeat the option "
        "for each",
        metavar="A,B,...",
        panel=PRIVACY,
    )
    levels_file: Path | None = setting(
        None, help="Instead of --levels: a text file with one value a line", panel=PRIVACY
    )
    n_by: str | None = setting(
        None, help="Number of points of each of --levels, where it is public", metavar="N,N,...", panel=PRIVACY
    )

    def __post_init__(self) -> None:
        if self.levels_file is not None:
            if self.levels is not None:
                msg = "levels_file: holds all values; give --levels or --levels-file, not both"
                raise InputError(msg)
            object.__setattr__(self, "levels", as_list(_lines(self.levels_file)))
        if (self.by is None) != (self.levels is None):
            msg = "by: goes with --levels; give both, for instance --by year --levels 2021,2022"
            raise InputError(msg)
        if self.by is None and self.n_by is not None:
            msg = "n_by: goes with --by and --levels; without them give --n"
            raise InputError(msg)
        if self.by is not None and self.n is not None:
            msg = "n: with --by every level has a number of its own; give --n-by, for instance --n-by 200,192"
            raise InputError(msg)

    @property
    def stated(self) -> bool:
        """Whether a size was given, so that the plan does not need the points."""
        return (self.n, self.expected_n, self.n_by) != (None, None, None)

    def stated_of_rows(self) -> dict[str, Any]:
        """Facts stated about the rows of a file: the mark, its levels and the numbers of points."""
        if self.by is None:
            return {"n": self.n}
        from dpppsynth.contract.stratified_plan import level_names

        return {"by": self.by, "levels": level_names(self._names()), "n": self._counts()}

    def sooner(self, *, known: bool) -> str:
        """Remedy that finds errors in rows before the budget is spent; `known` tells whether n is public."""
        if not known or self.stated:
            return FIRST
        option = "--n" if self.by is None else "--n-by"
        return f"{FIRST}, and with {option} all that hangs on the number of points is settled before"

    def plan(self, method: Method, domain: "Domain", patterns: int) -> "ReleasePlan | StratifiedPlan":
        """Make the release plan from public parameters alone."""
        method.settings.require_size(method.options, self.n, self.by)
        if self.by is not None and self.n_by is None and method.neighbours().n_is_public:
            guessed = "" if self.expected_n is None else ", not a guess: leave --expected-n out"
            msg = f"n_by: the public number of points of each level is needed, for instance --n-by 200,192{guessed}"
            raise InputError(msg)
        return self.settle(method, domain, patterns, self.n if self.by is None else self._counts())

    def require(self, method: Method, domain: "Domain", patterns: int) -> "ReleasePlan | StratifiedPlan":
        """Check the options with a plan for a made-up number of points, before the data are read.

        Raises
        ------
        InputError, PrivacyCheckError
            The reason of the first number of points that was tried, or of the first that is not too many for a delta.
        """
        method.settings.require_size(method.options, self.n, self.by)
        reasons = []
        for n in TRIED:
            tried = self._tried(method, domain, patterns, n)
            if not isinstance(tried, Exception):
                return tried
            reasons.append((n, tried))
        # Fewer points let pass every delta: where they are refused as well, something else is the cause.
        n, cause = next(((n, each) for n, each in reasons if not str(each).startswith("delta:")), reasons[0])
        if len({str(each) for _, each in reasons}) == 1:
            raise cause
        msg = f"{str(cause).rstrip('.')}. So it is for {n} points, and fewer or more are refused, too"
        raise (PrivacyCheckError if isinstance(cause, PrivacyCheckError) else InputError)(msg)

    def _tried(
        self, method: Method, domain: "Domain", patterns: int, n: int
    ) -> "ReleasePlan | StratifiedPlan | InputError | PrivacyCheckError":
        """The plan for so many points, in all or at each level, or why there is none."""
        with warnings.catch_warnings():
            # Of a number that is made up.
            warnings.simplefilter("ignore", InformationWarning)
            try:
                return self.settle(method, domain, patterns, n if self.by is None else dict.fromkeys(self._names(), n))
            except (InputError, PrivacyCheckError) as error:
                return error

    def uncounted(self) -> "Levels":
        """The mark and its levels, with points not counted yet."""
        return None if self.by is None else {self.by: dict.fromkeys(self._names())}

    def require_other_mark(self, subset: Mapping[str, str] | None) -> None:
        """Refuse levels of a mark of which all points have one value."""
        from dpppsynth.contract.stratified_plan import require_other_mark

        if self.by is not None:
            require_other_mark(self.by, subset)

    def plan_for(self, pattern: "PointPattern", method: Method, patterns: int) -> "ReleasePlan | StratifiedPlan":
        """Plan for the public number of points in the data."""
        from dpppsynth.contract.stratified_plan import split

        if self.by is None:
            return self.settle(method, pattern.domain, patterns, method.settings.number_in(method.options, pattern))
        parts = split(pattern, self.by, self._names())
        return self.settle(method, pattern.domain, patterns, {name: len(part) for name, part in parts.items()})

    def settle(self, method: Method, domain: Any, patterns: int, n: Any) -> "ReleasePlan | StratifiedPlan":
        """Plan for a public number of points, in all or at each level."""
        method.settings.require_patterns(method.options, patterns)
        synthesizer: Any = method.synthesizer(domain, n if isinstance(n, int) else None)
        paid = {"patterns": patterns} if "patterns" in inspect.signature(synthesizer.plan).parameters else {}
        settle = synthesizer.plan
        if self.by is not None:
            settle = partial(synthesizer.plan_by, by=self.by, levels=self._values())
        plan: Any = settle(domain, n=n, expected_n=self.expected_n, **paid)
        method.require_planned(plan.mechanism if self.by is None else next(iter(plan.plans.values())).mechanism)
        settled: ReleasePlan | StratifiedPlan = plan
        return settled

    def _names(self) -> list[str]:
        names = [word(name) for name in listed("levels", self.levels or "")]
        if "" in names:
            msg = f"levels: needs a name before and after each comma, such as 2021,2022; got {self.levels!r}"
            raise InputError(msg)
        return names

    def _values(self) -> list[int] | list[str]:
        """Levels as they stand in files: numbers where all are written as whole numbers are."""
        names = self._names()
        whole = all(WHOLE.fullmatch(name) for name in names)
        return [int(name) for name in names] if whole else names

    def _counts(self) -> dict[str, int] | None:
        if self.n_by is None:
            return None
        names, words = self._names(), self.n_by.split(",")
        try:
            return dict(zip(names, map(int, words), strict=True))
        except ValueError:
            msg = (
                f"n_by: needs one whole number for each of the {len(names)} levels, separated by commas, got "
                f"{self.n_by!r}"
            )
            raise InputError(msg) from None


def _lines(path: Path) -> list[str]:
    """Lines of a text file that are not empty."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        text = ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        msg = f"levels_file: needs a text file in UTF-8 with one value a line; {str(path)!r} is none"
        raise InputError(msg)
    return lines


def require_fitting_number(method: Method, *, known: bool, fixed: bool, skipping: bool) -> None:
    """Refuse --fixed-n where the number of points is secret or fixed, and --skip-outside where it is public.

    How many points lie outside would be told by it.
    """
    if fixed and not known:
        msg = f"fixed_n: the number of points is secret under {method.neighbours().name}; leave --fixed-n out"
        raise InputError(msg)
    if fixed and method.settings.unfixed:
        msg = f"fixed_n: {method.settings.unfixed}; leave --fixed-n out"
        raise InputError(msg)
    if skipping and known:
        msg = (
            f"skip_outside: under {method.neighbours().name} the number of points is public, and would tell how many "
            "lie outside; leave --skip-outside out, or take --relation add-remove"
        )
        raise InputError(msg)
    if skipping:
        note(LEFT)
