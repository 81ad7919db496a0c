"""`dpppsynth help`: the options of a command, of one mechanism or of all."""

from typing import Annotated

from typer import Argument

from dpppsynth.core.errors import InputError

WordsArgument = Annotated[
    list[str] | None,
    Argument(
        help="A command, and behind it a mechanism or `all`: `synthesize`, `synthesize lgcp`, `local perturb all`.",
        show_default=False,
        metavar="COMMAND [MECHANISM]",
    ),
]


def help(words: WordsArgument = None) -> None:  # noqa: A001
    """Show a command's common options, those of one mechanism, or all of them.

    Without a command the commands are listed.
    """
    from dpppsynth.cli.options import Command
    from dpppsynth.cli.program import EVERY, app, loaded

    name, *rest = words or [""]
    if not name:
        app(["--help"], prog_name="dpppsynth", standalone_mode=False)
        return
    if name not in EVERY:
        msg = f"help: there is no command {name!r}; the commands are {', '.join(EVERY)}"
        raise InputError(msg)
    command, path = loaded(name), f"dpppsynth {name}"
    within = getattr(command, "commands", {})
    if rest and rest[0] in within:
        path, command = f"{path} {rest[0]}", within[rest[0]]
        rest = rest[1:]
    if rest:
        command = command.of_mechanism(rest[0]) if isinstance(command, Command) and command.method else None
    if command is None or len(rest) > 1:
        msg = f"help: {path} has no options of mechanisms, or too many words follow; give: dpppsynth help {name}"
        raise InputError(msg)
    command.main(["--help"], prog_name=path, standalone_mode=False)
