"""Groups of command line options: a parameter whose type is a dataclass, or `MethodOptions`, stands for its options."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial, wraps
from itertools import pairwise
from typing import Any, get_type_hints

from typer import Typer
from typer.core import TyperCommand
from typer.main import get_command

from dpppsynth.cli.method_options import MethodOptions
from dpppsynth.core.errors import InputError

# The parameter of commands that names the mark whose levels are released.
MARK = "by"


class SingleMarkCommand(TyperCommand):
    """A command with at most one mark whose levels are released; of other options the last counts, as scripts want."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse a second mark: it would take the place of the first without a word."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        if [each.name for each in order].count(MARK) > 1:
            msg = f"{MARK}: takes one mark, and was given several; join their columns into one, or release by one alone"
            raise InputError(msg)
        return super().parse_args(ctx, args)


class Command(SingleMarkCommand):
    """A command that collects the options of mechanisms when it is called; for they have to be imported."""

    def make_context(self, info_name: Any, args: list[str], *more: Any, **settings: Any) -> Any:
        """The context of the command with the options of the mechanism that is named, or with all options."""
        complete = getattr(self.callback, "complete", None)
        if complete is None:
            return super().make_context(info_name, args, *more, **settings)
        command = complete(_given(args, "--method"), _given(args, "--mechanism"))
        known = {form for each in command.params for form in (*each.opts, *each.secondary_opts)}
        if not {word.partition("=")[0] for word in args if word.startswith("-")} <= known:
            # Help, or options of others, which are refused by name.
            command = complete(None, None)
        return command.make_context(info_name, args, *more, **settings)


def _given(args: list[str], option: str) -> str | None:
    """The value of an option among the words of a command; None where it has none."""
    values = [after for word, after in pairwise([*args, ""]) if word == option]
    values += [word.partition("=")[2] for word in args if word.startswith(f"{option}=")]
    return values[-1] if values else None


def option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that the fields of its dataclass parameters are annotated with.

    Typer reads a signature; so several commands share a group of options, and check them in one place, without
    repeating it. Options of mechanisms join when the command is called.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    method = next((n for n, kind in hints.items() if isinstance(kind, type) and issubclass(kind, MethodOptions)), None)
    own: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name != method:
            own += [parameter.replace(annotation=hints[name])] if name not in groups else _options(groups[name])

    @wraps(command)
    def run(**given: Any) -> None:
        parts = {name: kind(**{f.name: given.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
        known = {each.name: given.pop(each.name) for each in own if each.name in given}
        if method is not None:
            # Public layers of a mechanism are inputs, too.
            crs = next((part.crs for part in parts.values() if hasattr(part, "crs")), None)
            parts[method] = hints[method](given, crs)
        command(**known, **parts)

    _sign(run, own)
    if method is not None:
        run.complete = cache(partial(_complete, run, hints[method], own))  # type: ignore[attr-defined]
    return run


def _complete(
    run: Callable[..., None],
    kind: type[MethodOptions],
    own: list[inspect.Parameter],
    method: str | None,
    name: str | None,
) -> Any:
    """The command with the options of the mechanism that is named, or of all; those for experts come last."""
    usual, expert = kind.parameters(method, name)

    @wraps(run)
    def whole(**given: Any) -> None:
        run(**given)

    _sign(whole, [*usual, *own, *expert])
    return single_command(whole, SingleMarkCommand)


def single_command(function: Callable[..., None], kind: type[TyperCommand]) -> Any:
    """The command of a function, by itself."""
    app = Typer(rich_markup_mode="markdown", add_completion=False, pretty_exceptions_enable=False)
    app.command(cls=kind)(function)
    return get_command(app)


def _sign(function: Any, parameters: list[inspect.Parameter]) -> None:
    """Give a function a signature; options may follow each other in any order, Python wants defaults last."""
    named = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    named.sort(key=lambda p: p.default is not inspect.Parameter.empty)
    function.__signature__ = inspect.Signature(named)
    function.__annotations__ = {each.name: each.annotation for each in named} | {"return": None}


def _options(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    empty, kind = inspect.Parameter.empty, inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(f.name, kind, default=empty if f.default is MISSING else f.default, annotation=hints[f.name])
        for f in fields(group)
    ]
