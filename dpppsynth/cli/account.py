"""`--ledger`: the budget of a data set, authorised before its file is opened."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpppsynth.cli.screen import note, show_line
from dpppsynth.errors import InputError

if TYPE_CHECKING:
    from dpppsynth.domains import Domain
    from dpppsynth.ledger import Ledger
    from dpppsynth.privacy import Guarantee
    from dpppsynth.synthesizers.account import Planned


@dataclass(frozen=True)
class Ceiling:
    """What stands in for a plan before the number of points is known."""

    mechanism: str
    domain: "Domain"
    guarantee: "Guarantee"


@dataclass(frozen=True)
class Account:
    """An open ledger and its authorisation of one release, or neither."""

    ledger: "Ledger | None" = None
    entry: str | None = None

    @classmethod
    def open(cls, path: Path | None, points: Path, plan: "Planned") -> "Account":
        """Authorise a plan in the ledger at `path`.

        Raises
        ------
        BudgetError
            When it does not suffice; nothing has been read.
        InputError
            When there is no such ledger, or no file of points that might be opened afterwards.
        """
        if path is None:
            return cls()
        from dpppsynth.ledger import Ledger

        try:
            # Nothing is read: a mistyped name must not cost the budget.
            points.open("rb").close()
        except OSError as error:
            msg = f"points: cannot open {points} ({error.strerror}); nothing is spent"
            raise InputError(msg) from None
        ledger = Ledger.open(path)
        entry = ledger.authorise(plan.guarantee, mechanism=plan.mechanism, domain=plan.domain)
        return cls(ledger, entry)

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Say that the budget is spent when something fails after the authorisation."""
        try:
            yield
        except BaseException:
            if self.ledger is not None:
                note(f"this release was authorised, and counts as spent in {self.ledger.path} whatever the reason")
            raise

    def report(self, *, json: bool) -> None:
        """Say what is left."""
        if self.ledger is not None and not json:
            at = f" at delta = {self.ledger.delta:g}" if self.ledger.delta else ""
            spent, all_ = f"{self.ledger.spent:.4g}", f"{self.ledger.epsilon:g}"
            show_line(f"Spent in {self.ledger.path}: epsilon = {spent} of {all_}{at}")
