"""`dpppsynth audit`: lower bounds on privacy loss, from many runs on made-up patterns."""

from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import progress, show_json, show_table, show_text
from dpppsynth.cli.input_options import OptionalDomainOptions
from dpppsynth.cli.method import OptionalMethod
from dpppsynth.cli.pattern_options import PatternOptions
from dpppsynth.core.errors import InputError

if TYPE_CHECKING:
    from dpppsynth.auditing import Audit

# Findings shown, those that came closest to the claim.
SHOWN = 8
AUDIT = "Audit"

SavedArgument = Annotated[
    Path | None,
    Argument(
        metavar="[RELEASE]",
        help="Folder or certificate.json of a saved release: it is verified, and its mechanism audited.",
        show_default=False,
    ),
]
TrialsOption = Annotated[int, o.option("Runs on each of the two neighbouring patterns.", AUDIT, min=50)]
FalseAlarmOption = Annotated[float, o.option("Chance of calling a mechanism that keeps its promise broken.", AUDIT)]
FindOption = Annotated[
    float | None,
    o.option(
        "Say how many runs find so many times too little noise, such as 1.2, and how long they take; run none.",
        AUDIT,
        show_default=False,
    ),
]
WorkersOption = Annotated[int, o.option("Processes that run the trials.", AUDIT, min=1)]


def audit(
    method: OptionalMethod,
    place: OptionalDomainOptions,
    people: PatternOptions,
    release: SavedArgument = None,
    patterns: o.PaidPatternsOption = 1,
    trials: TrialsOption = 5000,
    false_alarm: FalseAlarmOption = 1e-6,
    workers: WorkersOption = 1,
    find: FindOption = None,
    no_limit: o.NoLimitOption = False,
    json: o.JsonOption = False,
) -> None:
    """Try to tell two neighbouring patterns apart by what a mechanism releases; no data file is opened.

    The mechanism runs on two patterns made up from public parameters, the hardest ones known. What is found is a lower
    bound on its privacy loss. Not rejected is not a proof. Exit code 3: more was found than is claimed, or the
    certificate does not hold.
    """
    from dpppsynth.auditing import audit as examine
    from dpppsynth.auditing import required

    with progress() as say:
        subject: Any
        if release is None:
            if not (method.values["method"] or method.values["mechanism"]):
                msg = "method: say what to audit, --method with --epsilon, or give the folder of a saved release"
                raise InputError(msg)
            subject = people.plan(method.settled(), place.settled().domain(), patterns)
        else:
            _require_alone(method, place, people, patterns)
            subject = release
        options: dict[str, Any] = {"false_alarm": false_alarm, "workers": workers, "limit": not no_limit}
        if find is not None:
            needed = required(subject, factor=find, **options)
        else:
            result = examine(subject, trials=trials, progress=say, **options)
    if find is not None:
        show_json(needed.to_dict()) if json else show_text(str(needed))
        return
    if json:
        show_json(result.to_dict())
    else:
        _show(result)
    failed = result.verification is not None and not result.verification.holds
    if result.violated or failed:
        raise typer.Exit(3)


def _require_alone(method: OptionalMethod, place: OptionalDomainOptions, people: PatternOptions, patterns: int) -> None:
    """Refuse options beside a saved release, whose certificate states them all."""
    given = [name for name, value in method.values.items() if value is not None]
    given += [
        field.name
        for group in (place, people)
        for field in fields(group)
        if getattr(group, field.name) != field.default and field.default is not MISSING
    ]
    given += ["patterns"] if patterns != 1 else []
    if given:
        msg = f"--{given[0].replace('_', '-')}: a saved release states it on its certificate; leave it out"
        raise InputError(msg)


def _show(result: "Audit") -> None:
    if result.verification is not None and not result.verification.holds:
        failed = "; ".join(f"{c.name}: {c.detail}" for c in result.verification.checks if not c.holds)
        show_text(f"The certificate does NOT hold. {failed}")
    show_text(str(result))
    # Where nothing was told apart, the bound is zero whatever is claimed.
    found = sorted((f for f in result.findings if f.bound > 0), key=lambda f: f.claimed - f.bound)
    if not found and result.trials and not result.lower_bound:
        show_text("No statistic told the two patterns apart.")
    if not found:
        return
    rows = [(f.statistic, f.direction, f"{f.epsilon:.4g}", f"{f.bound:.3g}", f"{f.claimed:.3g}") for f in found[:SHOWN]]
    header = ("statistic", "direction", "epsilon", "delta at least", "delta claimed")
    show_table("Closest to the claim", rows, header)
