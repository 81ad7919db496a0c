"""Mentions of arguments in messages, as the interface in use writes them: `delta=1e-6`, or `--delta 1e-6`."""

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property

# Names and values, as rows of a table.
Rows = list[tuple[str, str]]
# Where points lie decides who is left out, which changes a public n.
LEFT_OUT = "leave others out only where n is secret, or who is in the data set is not sensitive"


class _Options:
    """Options by the arguments that they stand for, collected when a message first names one."""

    def __init__(self, collect: Callable[[], Mapping[str, str]]) -> None:
        self._collect = collect
        self.added: dict[str, str] = {}

    @cached_property
    def _collected(self) -> Mapping[str, str]:
        return self._collect()

    def of(self, name: str) -> str:
        return self.added.get(name) or self._collected.get(name, name)


# Those of the command line in use, the innermost last; none outside the command line.
_in_use: list[_Options] = []


@contextmanager
def in_options(collect: Callable[[], Mapping[str, str]]) -> Iterator[None]:
    """Write arguments as options of the command line, which are collected when the first is to be written."""
    _in_use.append(_Options(collect))
    try:
        yield
    finally:
        _in_use.pop()


def add_options(options: Mapping[str, str]) -> None:
    """Add options, in place of those for the same arguments, where arguments are written so."""
    if _in_use:
        _in_use[-1].added.update(options)


def named(name: str) -> str:
    """An argument's name, or its option."""
    return _in_use[-1].of(name) if _in_use else name


def mention(name: str, code: str = "") -> str:
    """An argument with a value, given as Python code: `sampler='exact'`, or `--sampler exact`.

    An option of a truth value stands alone; without a value `sampler=`, or `--sampler`.
    """
    option = named(name)
    if option == name:
        return f"{name}={code}"
    value = code[1:-1] if code[:1] in {"'", '"'} else code
    return option if value in ("", "True") else f"{option} {shlex.quote(value)}"


def either(python: str, shell: str) -> str:
    """The text for Python or for the command line, whichever is in use."""
    return shell if _in_use else python


def instead(*mechanisms: str) -> str:
    """Mechanisms of the log-Gaussian Cox synthesizer to take: `mechanism 'tents'`, or `--mechanism lgcp-tents`."""

    def listed(names: list[str]) -> str:
        return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))

    return either(
        f"mechanism {listed([repr(name) for name in mechanisms])}",
        f"--mechanism {listed([f'lgcp-{name}' for name in mechanisms])}",
    )


def headed(message: str) -> str:
    """A message whose head, up to the colon, names arguments, with options in their place."""
    head, colon, rest = message.partition(":")
    return ", ".join(map(named, head.split(", "))) + colon + rest
