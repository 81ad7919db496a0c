"""The command line application: its commands, and the handling of errors."""

import sys
import warnings
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dpppsynth.cli import (
    audit,
    check,
    counts,
    evaluate,
    export,
    inspect,
    plot,
    recommend,
    rehearse,
    report,
    sample,
    synthesize,
    verify,
)
from dpppsynth.cli.console import complain, exit_code, own_warnings, report_crash
from dpppsynth.cli.ledger import ledger_app
from dpppsynth.cli.local import local_app
from dpppsynth.cli.option_groups import Command
from dpppsynth.core.errors import DpppsynthError
from dpppsynth.core.wording import headed, in_options

EPILOG = (
    "Exit codes: 0 done; 2 bad input; 3 the guarantee does not hold; 4 budget; 5 release blocked, or poor inference."
)

# Options by names of arguments that no command declares before it is called.
NAMED = {"marks": "--by", "mechanism": "--mechanism", "method": "--method"}


def _parameters(group: Any) -> Iterator[Any]:
    """Options and arguments of all commands, those of groups first: a name means what most commands mean."""
    for each in sorted(group.commands.values(), key=lambda command: not hasattr(command, "commands")):
        yield from _parameters(each) if hasattr(each, "commands") else each.params


class _Program(TyperGroup):
    """Turns the errors that are raised on purpose into one sentence and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        options = {p.name: p.opts[0] for p in _parameters(self) if p.name and p.opts[0].startswith("--")}
        with in_options(options | NAMED):
            return self._answer(ctx)

    def _answer(self, ctx: Any) -> Any:
        try:
            with own_warnings():
                return super().invoke(ctx)
        except DpppsynthError as error:
            complain(headed(str(error)))
            raise typer.Exit(exit_code(error)) from None
        except BrokenPipeError:
            raise
        except OSError as error:
            complain(f"{error.strerror or type(error).__name__}: {error.filename}")
            raise typer.Exit(2) from None


app = typer.Typer(
    name="dpppsynth",
    cls=_Program,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = (
    recommend.recommend,
    check.check,
    rehearse.rehearse,
    synthesize.synthesize,
    sample.sample,
    verify.verify,
    audit.audit,
    report.report,
    plot.plot,
    counts.counts,
    export.export,
    evaluate.evaluate,
    inspect.inspect,
)
for command in COMMANDS:
    app.command(cls=Command)(command)
app.add_typer(ledger_app)
app.add_typer(local_app)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"dpppsynth {version('dpppsynth')}")
        raise typer.Exit


@app.callback()
def _begin(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Differentially private synthesis of spatial point patterns."""


def main() -> None:
    """Run the command line; an unforeseen error is shown without its message and without local variables."""
    if not sys.warnoptions:
        # Warnings of other libraries may quote the data.
        warnings.simplefilter("ignore")
    try:
        app()
    except Exception as error:  # noqa: BLE001 - whatever it is, its message must not reach the screen
        report_crash(error)
        sys.exit(1)
