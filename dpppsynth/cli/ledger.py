"""`dpppsynth ledger`, and `--ledger` of other commands: authorisation of a release before a row of its file is read."""

import math
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import note, show_checks, show_json, show_line, show_table, show_text
from dpppsynth.contract.settings import PRIVACY, Neighbours, setting
from dpppsynth.core.errors import DpppsynthError, InputError, PrivacyCheckError
from dpppsynth.core.rounding import downward, upward
from dpppsynth.spatial.marks import word

if TYPE_CHECKING:
    from dpppsynth.contract.account import Planned
    from dpppsynth.ledger import Entry, Ledger
    from dpppsynth.privacy import Guarantee, Relation

IN_ROWS = (
    "This was found in the rows of the file, after the budget was authorised: whether rows are right, and how many "
    "there are, is a fact about them, and a free answer would tell it"
)
FIRST = "`dpppsynth inspect` with the same options finds what is wrong with rows first"
LedgerArgument = Annotated[Path, typer.Argument(help="File of the ledger, such as ledger.json.", show_default=False)]


@dataclass(frozen=True, kw_only=True)
class BudgetOptions(o.PromiseOptions):
    """Options of the total budget and of the persons it protects."""

    user: str | None = setting(
        None,
        help="Column that tells whose point a row is",
        otherwise="user (add-remove-person), or none",
        metavar="COLUMN",
        panel=PRIVACY,
    )

    def neighbours(self) -> "Relation":
        """The neighbouring relation; InputError unless one is given."""
        from dpppsynth.contract.object_options import relation_of
        from dpppsynth.privacy import AddRemovePerson

        if self.alpha is None and self.relation in (None, Neighbours.ALPHA):
            msg = (
                "alpha: give the privacy radius, for instance --alpha 25, or --relation replace-one, add-remove or "
                "add-remove-person"
            )
            raise InputError(msg)
        if self.alpha is not None or self.relation != Neighbours.ADD_REMOVE_PERSON:
            return relation_of(vars(self))
        if self.max_points_per_person != 1:
            msg = (
                "max_points_per_person: --relation add-remove-person protects all points of a person, however many; "
                "leave --max-points-per-person out"
            )
            raise InputError(msg)
        return AddRemovePerson() if self.user is None else AddRemovePerson(self.user)


def init(
    path: LedgerArgument,
    budget: BudgetOptions,
    label: Annotated[str | None, o.option("A name for the data that may be shown to anybody.", o.WRITING)] = None,
    adaptive: Annotated[
        bool,
        o.option(
            "Let later budgets depend on earlier releases: only Gaussian and pure ones count then.",
            PRIVACY,
            "--adaptive",
        ),
    ] = False,
) -> None:
    """Set the budget of all releases from one data set, once, before the first."""
    from dpppsynth.ledger import Ledger

    spent: dict[str, Any] = {"epsilon": budget.epsilon, "delta": budget.delta, "relation": budget.neighbours()}
    ledger = Ledger.create(path, **spent, label=label, adaptive=adaptive)
    unit = "; the first release's window or network says which unit" if math.isfinite(ledger.relation.reach) else ""
    show_text(
        f"{path} holds epsilon {ledger.epsilon:g} at delta {ledger.delta:g}. Two patterns are neighbouring when "
        f"{ledger.relation.described_in('unit')}{unit}. Keep backups of it, and keep it to yourself."
    )
    _warn(ledger)


def enter(
    path: LedgerArgument,
    release: Annotated[Path, typer.Argument(help="Folder or certificate of the release.", show_default=False)],
    subset: o.SubsetOption = None,
    no_limit: o.NoLimitOption = False,
) -> None:
    """Count a release that was made before the ledger."""
    from dpppsynth.ledger import Ledger
    from dpppsynth.release import load_release

    with Ledger.open(path) as ledger:
        ledger.enter(load_release(release, limit=not no_limit), subset=values_of(subset))
        _show(ledger)


def show(
    path: LedgerArgument,
    release: Annotated[
        Path | None,
        typer.Option(help="Folder or certificate of a published release: whether it belongs to the ledger."),
    ] = None,
    no_limit: o.NoLimitOption = False,
    json: o.JsonOption = False,
) -> None:
    """Show what was spent, and what remains.

    Exit code 0; 2: there is no readable ledger; 3: it is damaged, or --release does not belong to it.
    """
    from dpppsynth.ledger import Ledger, compare
    from dpppsynth.release import certificate

    with Ledger.open(path) as ledger:
        checks = () if release is None else compare(ledger, certificate.read(release, limit=not no_limit))
        if json:
            show_json(_summary(ledger) | ({} if release is None else {"checks": [each.to_dict() for each in checks]}))
        else:
            _show(ledger)
            show_checks((check.name, check.holds, check.detail) for check in checks)
    if not all(check.holds for check in checks):
        raise typer.Exit(3)


def _warn(ledger: "Ledger") -> None:
    from dpppsynth.privacy.catalogue import text

    if ledger.warning is not None:
        show_text(f"Warning: {text(ledger.warning)}")


def _summary(ledger: "Ledger") -> dict[str, Any]:
    from dpppsynth.privacy.catalogue import text

    whole = ledger.guarantee
    return {
        "label": ledger.label,
        "epsilon": ledger.epsilon,
        "delta": ledger.delta,
        "relation": ledger.relation.to_dict(),
        "neighbours": ledger.neighbouring.described_in(ledger.unit),
        "adaptive": ledger.adaptive,
        "spent": ledger.spent,
        "remaining": ledger.remaining,
        "head": ledger.head,
        "warning": None if ledger.warning is None else text(ledger.warning),
        "theorem": None if whole is None else whole.theorem_text,
        "assumptions": [] if whole is None else list(whole.assumption_texts),
        "releases": [_line(entry) for entry in ledger.releases],
    }


def _line(entry: "Entry") -> dict[str, Any]:
    from dpppsynth.ledger.comparison import standing

    return {
        "id": entry.id,
        "at": entry.at,
        "mechanism": entry.mechanism,
        "state": entry.state,
        "kept": entry.kept,
        "standing": standing(entry),
        "taken": entry.taken,
        "certificate": entry.certificate,
        "domain": dict(entry.domain),
        "points": None if entry.points is None else entry.points.to_dict(),
        "guarantee": entry.guarantee.to_dict(),
    }


def _show(ledger: "Ledger") -> None:
    from dpppsynth.ledger.comparison import standing

    rows = [
        ("budget", f"epsilon {ledger.epsilon:g} at delta {ledger.delta:g}"),
        ("spent", upward(ledger.spent, 4)),
        ("remaining", downward(ledger.remaining)),
        ("neighbours", ledger.neighbouring.described_in(ledger.unit)),
        ("head", ledger.head),
    ]
    show_table(ledger.label or ledger.path.name, rows)
    _warn(ledger)
    entries = [
        (
            entry.at,
            entry.mechanism,
            upward(entry.guarantee.epsilon(), 4),
            f"{entry.guarantee.profile.at:g}",
            standing(entry),
        )
        for entry in ledger.releases
    ]
    if entries:
        show_table("Releases", entries, ("at", "mechanism", "epsilon", "delta", "state"))
    for entry in ledger.releases:
        state = standing(entry)
        if state == "measured" and entry.kept is not None:
            show_text(f"What was measured at {entry.at} is in {entry.kept}: dpppsynth resume {entry.kept}")
        if state == "missing":
            show_text(f"What was measured at {entry.at} is not in {entry.kept} any more.")
    if ledger.guarantee is not None:
        show_text("It is assumed that:")
        for sentence in ledger.guarantee.assumption_texts:
            show_text(f"- {sentence}")


@dataclass(frozen=True)
class LedgerEntry:
    """An open ledger and its authorisation of one release, or neither."""

    ledger: "Ledger | None" = None
    entry: str | None = None

    @classmethod
    def open(
        cls,
        ledger: "Ledger | None",
        points: Path,
        plan: "Planned",
        subset: Mapping[str, str] | None,
        *,
        whole: "Guarantee | None" = None,
    ) -> "LedgerEntry":
        """Authorise a plan in a ledger, for all points or those of a `subset` such as {"year": "2021"}.

        The first of two parts is authorised where there is room for the `whole`.

        Raises
        ------
        BudgetError
            When it does not suffice; nothing has been read.
        InputError
            When there is no file of points that might be opened afterwards.
        """
        if ledger is None:
            require_no_subset(subset)
            return cls()
        from dpppsynth.contract.account import points_of

        require_readable(points)
        told = {"mechanism": plan.mechanism, "domain": plan.domain, **points_of(plan, subset)}
        if whole is not None:
            ledger.check(whole, **told)
        return cls(ledger, ledger.authorise(plan.guarantee, **told))

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Report a budget that is already spent when a later step fails, and block reuse of the authorisation."""
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
        """Add to an error about rows of the file that the budget is spent, and a remedy."""
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
        """Text on the joint guarantee with the other releases of the ledger; empty for a single release."""
        if self.ledger is None or (count := len(self.ledger.releases)) < 2:
            return ""
        spent = upward(self.ledger.spent, 4)
        return f"All {count} releases from these data stand in the ledger; together they spend epsilon {spent}."

    def report(self, *, json: bool) -> None:
        """Print the remaining budget."""
        if self.ledger is not None and not json:
            at = f" at delta = {self.ledger.delta:g}" if self.ledger.delta else ""
            spent, all_ = upward(self.ledger.spent, 4), f"{self.ledger.epsilon:g}"
            count = len(self.ledger.releases)
            by = f", by {count} releases together" if count > 1 else ""
            show_line(f"Spent in {self.ledger.path}: epsilon = {spent} of {all_}{at}{by}")


def values_of(subset: Sequence[str] | None) -> dict[str, str] | None:
    """Marks and their values, parsed from the command line."""
    if not subset:
        return None
    pairs = [each.partition("=") for each in subset]
    values = {mark.strip(): word(value) for mark, _, value in pairs}
    if not all(mark.strip() and value.strip() for mark, _, value in pairs) or len(values) < len(pairs):
        msg = f"subset: needs the name of each mark once, and its value, such as year=2021; got {' '.join(subset)!r}"
        raise InputError(msg)
    return values


def require_no_subset(subset: Mapping[str, str] | None) -> None:
    """Refuse values of marks that no ledger is told of."""
    if subset is not None:
        msg = "subset: it is said to a ledger; give --ledger as well, or leave --subset out"
        raise InputError(msg)


def opened_ledger(path: Path | None) -> "Ledger | None":
    """The ledger at `path`, where one is named; InputError where there is none."""
    if path is None:
        return None
    from dpppsynth.ledger import Ledger

    return Ledger.open(path)


def cautions_of(ledger: "Ledger | None", guarantee: "Guarantee") -> tuple[str, ...]:
    """Warnings about a guarantee in a ledger, which is only read."""
    found = None if ledger is None else ledger.caution(guarantee)
    return () if found is None else (found,)


def require_authorised(ledger: "Ledger | None", plan: "Planned", subset: Mapping[str, str] | None) -> None:
    """Raise what `LedgerEntry.open` would, without a file of points and without spending."""
    if ledger is None:
        require_no_subset(subset)
        return
    from dpppsynth.contract.account import points_of

    told = {"mechanism": plan.mechanism, "domain": plan.domain, **points_of(plan, subset)}
    ledger.check(plan.guarantee, **told)


def require_readable(points: Path) -> None:
    """Refuse a mistyped file name before the budget is spent."""
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


HELP = "Keep the privacy budget of a data set in a file."
COMMANDS = (init, enter, show)
