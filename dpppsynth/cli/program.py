"""The command line application: its commands, and the handling of errors."""

import sys
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dpppsynth.cli.console import complain, exit_code, own_warnings, report_crash
from dpppsynth.cli.next_command import WORDS
from dpppsynth.core.errors import DpppsynthError
from dpppsynth.core.wording import headed, in_options

EPILOG = (
    "Exit codes: 0 done; 2 bad input; 3 the guarantee does not hold; 4 budget; 5 release blocked, or poor inference."
)

# Options by names of arguments that no command declares before it is called.
NAMED = {"marks": "--by", "mechanism": "--mechanism", "method": "--method"}


# In the order of the help. Each is in a module of its name, which is loaded when it is called, or when help lists it.
COMMANDS = (
    "recommend",
    "check",
    "rehearse",
    "synthesize",
    "resume",
    "sample",
    "infer",
    "verify",
    "audit",
    "report",
    "plot",
    "counts",
    "export",
    "evaluate",
    "inspect",
    "qgis-plugin",
    "help",
)
# These hold several commands.
GROUPS = ("ledger", "local")
EVERY = (*COMMANDS, *GROUPS)


@cache
def loaded(name: str) -> Any:
    """A command or a group of commands."""
    from dpppsynth.cli.options import command_of, group_of

    word = name.replace("-", "_")
    module = import_module(f"dpppsynth.cli.{word}")
    return group_of(name, module.COMMANDS, module.HELP) if name in GROUPS else command_of(getattr(module, word))


def _parameters(group: Any) -> Iterator[Any]:
    """Options and arguments of all commands, those of groups first: a name means what most commands mean."""
    for each in sorted(group.commands.values(), key=lambda command: not hasattr(command, "commands")):
        yield from _parameters(each) if hasattr(each, "commands") else each.params


class _Program(TyperGroup):
    """Turns the errors that are raised on purpose into one sentence and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        def options() -> Mapping[str, str]:
            return {p.name: p.opts[0] for p in _parameters(self) if p.name and p.opts[0].startswith("--")} | NAMED

        with in_options(options):
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


class _Commands(Mapping[str, Any]):
    """Commands by their names."""

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise KeyError(name)
        return loaded(name)

    def __contains__(self, name: object) -> bool:
        return name in EVERY

    def __iter__(self) -> Iterator[str]:
        return iter(EVERY)

    def __len__(self) -> int:
        return len(EVERY)


class _AllCommands(_Program):
    """Loads the command that is called, and no other one."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()  # type: ignore[assignment]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        WORDS.set(tuple(args))
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="dpppsynth",
    cls=_AllCommands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
