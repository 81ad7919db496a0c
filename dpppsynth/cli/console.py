"""Output of the commands: results on standard output, progress and errors on standard error.

Nothing here ever sees a point or a number of points.
"""

import json
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from dpppsynth.core.errors import (
    BudgetError,
    DpppsynthError,
    InformationWarning,
    InputError,
    PrivacyCheckError,
    QualityError,
    ReleaseBlocked,
    TooLargeError,
)
from dpppsynth.core.wording import headed

if TYPE_CHECKING:
    from dpppsynth.privacy import Guarantee
    from dpppsynth.release import Release, StratifiedRelease
    from dpppsynth.spatial.domains import Domain

EXIT_CODES = {
    InputError: 2,
    TooLargeError: 2,
    PrivacyCheckError: 3,
    BudgetError: 4,
    ReleaseBlocked: 5,
    QualityError: 5,
}
# Points times epsilon from which on the study knows of a use: it is not asked then, which takes a while.
ENOUGH = 50.0


def exit_code(error: DpppsynthError) -> int:
    """Exit code of a command that an error ends; 5 where the error has none of its own."""
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 5)


def complain(message: str) -> None:
    """Print an error on standard error."""
    _remark("Error: ", typer.colors.RED, message)


def note(message: str) -> None:
    """Print a note on standard error, apart from the results."""
    _remark("Note: ", typer.colors.BLUE, message)


def warn(message: str) -> None:
    """Print a warning on standard error."""
    _remark("Warning: ", typer.colors.YELLOW, headed(message))


@contextmanager
def own_warnings() -> Iterator[None]:
    """Format the package's own warnings; others go to the previous handler."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", InformationWarning)
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, InformationWarning):
                warn(str(message))
            else:
                shown(message, category, *where, **more)

        warnings.showwarning = show
        yield


def _remark(word: str, colour: str, message: str) -> None:
    typer.secho(word, fg=colour, nl=False, err=True)
    typer.echo(message, err=True)


def report_crash(error: Exception) -> None:
    """Say where an unforeseen error happened. Its message is withheld: other libraries quote the data in theirs."""
    frames = traceback.extract_tb(error.__traceback__)
    where = "\n".join(f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)
    complain(f"unforeseen {type(error).__name__}; its message is withheld, because it may quote the data\n{where}")


def show_json(result: dict[str, Any]) -> None:
    """Print one JSON object."""
    typer.echo(json.dumps(result, indent=2, allow_nan=False))


def show_text(text: str) -> None:
    """Print a paragraph, wrapped to the screen."""
    _console().print(text, markup=False, highlight=False)


def show_line(text: str) -> None:
    """Print a line as it is: paths and commands must not be broken."""
    typer.echo(text)


def show_table(title: str, rows: Iterable[tuple[str, ...]], header: tuple[str, ...] = ()) -> None:
    """Print a table; without a header its first column holds names."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE, show_header=bool(header))
    for name in header or ("", ""):
        table.add_column(name)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    _console().print(table)


def show_checks(checks: Iterable[tuple[str, bool, str]]) -> None:
    """Print checks with a tick or a cross."""
    unicode = "utf" in (sys.stdout.encoding or "").lower()
    yes, no = ("✓", "✗") if unicode else ("ok", "FAILS")
    for name, holds, detail in checks:
        typer.secho(f"{yes if holds else no} ", fg=typer.colors.GREEN if holds else typer.colors.RED, nl=False)
        typer.echo(f"{name}: {detail}")


def show_promise(
    guarantee: "Guarantee", domain: "Domain", *, verbose: bool, start: str = "", together: str = ""
) -> None:
    """Print the promise in one sentence, and with `verbose` its assumptions.

    `together` says of releases of one ledger what the assumption of a single release would deny.
    """
    from dpppsynth.privacy.bounds import ONE_RELEASE
    from dpppsynth.privacy.catalogue import text
    from dpppsynth.privacy.interpretation import one_sentence

    assumptions = [together if together and each == ONE_RELEASE else each for each in guarantee.assumptions]
    count = f"{len(assumptions)} assumption{'s' if len(assumptions) > 1 else ''}"
    listed = "\n".join(f"({i}) {text(each)}" for i, each in enumerate(assumptions, 1))
    rests = f" It is assumed that:\n{listed}" if verbose else f" It rests on {count}: see --verbose."
    show_text(f"{start}{one_sentence(guarantee, domain)} Proved by {guarantee.theorem_text}.{rests}")


def error_bound(release: "Release | StratifiedRelease", by: str | None = None) -> str | None:
    """Error bound of a release, in the words of its report, `by` the mark over whose levels counts were smoothed."""
    from dpppsynth.contract import registry
    from dpppsynth.contract.words import largest_error_plan

    return " ".join(registry.of(release).words.errors(largest_error_plan(release.plans), by)) or None


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Yield a function to announce each step: a moving line with a clock on a terminal, plain lines elsewhere."""
    from dpppsynth.core.progress import line, lines

    with line() if sys.stderr.isatty() else lines(lambda words: typer.echo(f"... {words}", err=True)) as say:
        yield say


def _console() -> Any:
    from rich.console import Console

    return Console()


def doubts(plan: Any) -> tuple[str, ...]:
    """Doubts about a plan: about its public parameters, and whether a uniform pattern would do as well."""
    n = getattr(plan, "n", None) or getattr(getattr(plan, "statistic", None), "expected_n", None)
    if plan.levels is not None or n is None or n * plan.guarantee.epsilon() > ENOUGH:
        return tuple(plan.cautions)
    from dpppsynth.evaluation.recommendation.recommended import no_better_than_uniform

    useless = no_better_than_uniform(plan)
    return tuple(plan.cautions) if useless is None else (*plan.cautions, useless)


def show_cautions(found: Iterable[str]) -> None:
    """Print warnings on standard error."""
    for each in found:
        warn(each)


def confirm_warnings(found: Iterable[str], *, yes: bool) -> None:
    """Print warnings, and ask whether to go on unless `yes` is set.

    Raises
    ------
    InputError
        Where nobody can be asked.
    typer.Exit
        When the answer is no.
    """
    found = tuple(found)
    show_cautions(found)
    if not found or yes:
        return
    if not asks():
        msg = (
            "yes: the warnings above ask for a decision; mend what they name, or give --yes to go on. Nothing was spent"
        )
        raise InputError(msg)
    if not typer.confirm("Go on and spend the budget?", default=False, err=True):
        typer.echo("Nothing was spent.", err=True)
        raise typer.Exit(2)


def asks() -> bool:
    """Whether input and output are a terminal."""
    return sys.stdin.isatty()
