"""`dpppsynth ledger`: creation and state of a privacy budget ledger."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import show_checks, show_json, show_table, show_text
from dpppsynth.contract.settings import Neighbours
from dpppsynth.core.errors import InputError
from dpppsynth.core.rounding import downward, upward

if TYPE_CHECKING:
    from dpppsynth.ledger import Entry, Ledger
    from dpppsynth.privacy import Relation
    from dpppsynth.release.verify import Check

LedgerArgument = Annotated[Path, typer.Argument(help="File of the ledger, such as ledger.json.", show_default=False)]


def init(
    path: LedgerArgument,
    epsilon: o.EpsilonOption,
    delta: o.DeltaOption = 0.0,
    alpha: o.AlphaOption = None,
    relation: o.RelationOption = None,
    max_points_per_person: o.CapOption = 1,
    user: o.UserOption = None,
    label: Annotated[
        str | None, typer.Option(help="A name for the data that may be shown to anybody.", rich_help_panel=o.WRITING)
    ] = None,
    adaptive: Annotated[
        bool,
        typer.Option(
            "--adaptive",
            help="Let later budgets depend on earlier releases: only Gaussian and pure ones count then.",
            rich_help_panel=o.PRIVACY,
        ),
    ] = False,
) -> None:
    """Set the budget of all releases from one data set, once, before the first."""
    from dpppsynth.ledger import Ledger

    neighbours = _neighbours(alpha, relation, max_points_per_person, user)
    ledger = Ledger.create(path, epsilon=epsilon, delta=delta, relation=neighbours, label=label, adaptive=adaptive)
    show_text(
        f"{path} holds epsilon {ledger.epsilon:g} at delta {ledger.delta:g}. Two patterns are neighbouring when "
        f"{ledger.relation.described_in('unit')}. Keep backups of it, and keep it to yourself."
    )
    _warn(ledger)


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
            show_json(_summary(ledger) | ({} if release is None else {"checks": [_check(each) for each in checks]}))
        else:
            _show(ledger)
            show_checks((check.name, check.holds, check.detail) for check in checks)
    if not all(check.holds for check in checks):
        raise typer.Exit(3)


def _neighbours(alpha: float | None, kind: Neighbours | None, cap: int, user: str | None) -> "Relation":
    from dpppsynth.privacy import AddRemove, AddRemovePerson, AlphaNeighbours, ReplaceOne

    if alpha is None and kind in (None, Neighbours.ALPHA):
        msg = (
            "alpha: give the privacy radius, for instance --alpha 25, or --relation replace-one, add-remove or "
            "add-remove-person"
        )
        raise InputError(msg)
    if alpha is not None and kind not in (None, Neighbours.ALPHA):
        msg = f"alpha: --relation {kind} has no privacy radius; leave --alpha out"
        raise InputError(msg)
    if alpha is not None:
        return AlphaNeighbours(alpha, max_points_per_person=cap, user=user)
    if kind is Neighbours.ADD_REMOVE_PERSON:
        if cap != 1:
            msg = (
                "max_points_per_person: --relation add-remove-person protects all points of a person, however many; "
                "leave --max-points-per-person out"
            )
            raise InputError(msg)
        return AddRemovePerson() if user is None else AddRemovePerson(user)
    return AddRemove(cap, user=user) if kind is Neighbours.ADD_REMOVE else ReplaceOne(cap, user=user)


def _warn(ledger: "Ledger") -> None:
    if ledger.warning is not None:
        show_text(f"Warning: {ledger.warning}")


def _summary(ledger: "Ledger") -> dict[str, Any]:
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
        "warning": ledger.warning,
        "theorem": None if whole is None else whole.theorem,
        "assumptions": [] if whole is None else list(whole.assumptions),
        "releases": [_line(entry) for entry in ledger.releases],
    }


def _line(entry: "Entry") -> dict[str, Any]:
    return {
        "id": entry.id,
        "at": entry.at,
        "mechanism": entry.mechanism,
        "state": entry.state,
        "taken": entry.taken,
        "certificate": entry.certificate,
        "domain": dict(entry.domain),
        "reads": None if entry.reading is None else entry.reading.to_dict(),
        "guarantee": entry.guarantee.to_dict(),
    }


def _check(check: "Check") -> dict[str, Any]:
    return {"name": check.name, "holds": check.holds, "detail": check.detail}


def _show(ledger: "Ledger") -> None:
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
            entry.state,
        )
        for entry in ledger.releases
    ]
    if entries:
        show_table("Releases", entries, ("authorised", "mechanism", "epsilon", "delta", "state"))
    if ledger.guarantee is not None:
        show_text("It is assumed that:")
        for sentence in ledger.guarantee.assumptions:
            show_text(f"- {sentence}")


HELP = "Keep the privacy budget of a data set in a file."
COMMANDS = (init, show)
