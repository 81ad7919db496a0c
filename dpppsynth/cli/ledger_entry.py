"""`--ledger`: authorisation of a release in a budget ledger, before a row of its file is read."""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpppsynth.cli.console import note, show_line
from dpppsynth.core.errors import DpppsynthError, InputError, PrivacyCheckError
from dpppsynth.core.rounding import upward

if TYPE_CHECKING:
    from dpppsynth.contract.account import Planned
    from dpppsynth.ledger import Ledger
    from dpppsynth.privacy import Guarantee


IN_ROWS = (
    "This was found in the rows of the file, after the budget was authorised: whether rows are right, and how many "
    "there are, is a fact about them, and a free answer would tell it"
)
FIRST = (
    "`dpppsynth inspect` with the same options finds what is wrong with rows first, and with --n (--n-by) all that "
    "hangs on the number of points is settled before"
)


@dataclass(frozen=True)
class LedgerEntry:
    """An open ledger and its authorisation of one release, or neither."""

    ledger: "Ledger | None" = None
    entry: str | None = None

    @classmethod
    def open(
        cls,
        path: Path | None,
        points: Path,
        plan: "Planned",
        subset: Mapping[str, str] | None,
        *,
        whole: "Guarantee | None" = None,
    ) -> "LedgerEntry":
        """Authorise a plan in the ledger at `path`, for all points or those of a `subset` such as {"year": "2021"}.

        The first of two parts is authorised where there is room for the `whole`.

        Raises
        ------
        BudgetError
            When it does not suffice; nothing has been read.
        InputError
            When there is no such ledger, or no file of points that might be opened afterwards.
        """
        if path is None:
            if subset is not None:
                msg = "subset: it is said to a ledger; give --ledger as well, or leave --subset out"
                raise InputError(msg)
            return cls()
        from dpppsynth.contract.account import points_of
        from dpppsynth.ledger import Ledger

        require_readable(points)
        ledger = Ledger.open(path)
        told = {"mechanism": plan.mechanism, "domain": plan.domain, **points_of(plan, subset)}
        if whole is not None:
            ledger.check(whole, **told)
        return cls(ledger, ledger.authorise(plan.guarantee, **told))

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Say that the budget is spent when something fails after the authorisation, and let nothing else use it."""
        try:
            yield
        except BaseException:
            if self.ledger is not None and self.entry is not None:
                with suppress(DpppsynthError, OSError):
                    self.ledger.give_up(self.entry)
                note(f"this release was authorised, and counts as spent in {self.ledger.path} whatever the reason")
            raise

    @contextmanager
    def reading(self, remedy: str = FIRST) -> Iterator[None]:
        """Say of an error that is found in the rows of the file why it costs the budget."""
        try:
            yield
        except (InputError, PrivacyCheckError) as error:
            if self.ledger is None:
                raise
            kind = PrivacyCheckError if isinstance(error, PrivacyCheckError) else InputError
            msg = f"{str(error).rstrip('.')}. {IN_ROWS}. {remedy}"
            raise kind(msg) from None

    @property
    def together(self) -> str:
        """Words on the other releases of the ledger; none where this is the only one."""
        if self.ledger is None or (count := len(self.ledger.releases)) < 2:
            return ""
        spent = upward(self.ledger.spent, 4)
        return f"All {count} releases from these data stand in the ledger; together they spend epsilon {spent}."

    def report(self, *, json: bool) -> None:
        """Say what is left."""
        if self.ledger is not None and not json:
            at = f" at delta = {self.ledger.delta:g}" if self.ledger.delta else ""
            spent, all_ = upward(self.ledger.spent, 4), f"{self.ledger.epsilon:g}"
            count = len(self.ledger.releases)
            by = f", by {count} releases together" if count > 1 else ""
            show_line(f"Spent in {self.ledger.path}: epsilon = {spent} of {all_}{at}{by}")


def values_of(subset: Sequence[str] | None) -> dict[str, str] | None:
    """Marks and their values, as they are said on the command line."""
    if not subset:
        return None
    pairs = [word.partition("=") for word in subset]
    values = {mark.strip(): value.strip() for mark, _, value in pairs}
    if not all(mark.strip() and value.strip() for mark, _, value in pairs) or len(values) < len(pairs):
        msg = f"subset: needs the name of each mark once, and its value, such as year=2021; got {' '.join(subset)!r}"
        raise InputError(msg)
    return values


def require_readable(points: Path) -> None:
    """Refuse a mistyped name, which must not cost the budget."""
    why = _unreadable(points)
    if why is not None:
        msg = f"points: cannot open {points} ({why}); nothing is spent"
        raise InputError(msg)


def _unreadable(points: Path) -> str | None:
    """Reason why a file cannot be opened, as far as can be told without opening it."""
    try:
        kind = points.stat().st_mode
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or "no such name"
    if stat.S_ISDIR(kind):
        return "it is a folder"
    return None if os.access(points, os.R_OK) else "permission denied"
