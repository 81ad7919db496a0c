"""Groups of command line options: a dataclass parameter stands for its annotated fields."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that the fields of its dataclass parameters are annotated with.

    Typer reads a signature; so several commands share a group of options, and check them in one place, without
    repeating it.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        group = groups.get(name)
        parameters += [parameter.replace(annotation=hints[name])] if group is None else _options(group)

    @wraps(command)
    def run(**given: Any) -> None:
        parts = {name: kind(**{f.name: given.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
        command(**given, **parts)

    # Options may follow each other in any order; Python wants those without a default first.
    parameters.sort(key=lambda p: p.default is not inspect.Parameter.empty)
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": None}
    return run


def _options(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    empty, kind = inspect.Parameter.empty, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [
        inspect.Parameter(f.name, kind, default=empty if f.default is MISSING else f.default, annotation=hints[f.name])
        for f in fields(group)
    ]
