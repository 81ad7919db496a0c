"""Output of the commands: results on standard output, progress and errors on standard error.

Nothing here ever sees a point or a number of points.
"""

import json
import re
import shlex
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import typer

from dpppsynth.core.errors import (
    BudgetError,
    DpppsynthError,
    InformationWarning,
    InputError,
    PrivacyCheckError,
    TooLargeError,
)

# Options by the names of the arguments that errors name.
_vocabulary: ContextVar[dict[str, str]] = ContextVar("vocabulary")
WORDS = {
    "None takes the best": "without it the best is taken",
    "a relation such as ReplaceOne()": "--relation replace-one",
    "AddRemove()": "--relation add-remove",
    "LGCPSynthesizer": "--method lgcp",
    "PlanarLaplaceSynthesizer": "--method planar-laplace",
    "LaplaceSynthesizer": "--method laplace",
    "BoundedErrorSynthesizer": "--method bounded-error",
    "HeatmapSynthesizer": "--method heatmap",
    "user=None": "--no-user",
    "kim_lim_38": "--mechanism kim-lim-3.8",
    "leave crs out": "leave --crs out",
    "leave max_error out": "leave --max-error out",
    "where max_error is given": "where --max-error is given",
    "a larger max_error": "a larger --max-error",
    "a smaller max_error": "a smaller --max-error",
    "LinearNetwork.largest_component(vertices, edges); readers take largest_component=True": (
        "the largest part (--largest-component)"
    ),
    "keep lines[~lines.is_empty]": "leave these out",
    "keep lines[lines.length > 0]": "leave these out",
    "Keep lines[~lines.normalize().duplicated()], or node=True, which keeps every course once. Streets that are really "
    "double go through LinearNetwork(vertices, edges, lines=) or from_networkx.": (
        "Leave the copies out, or give --node, which keeps every course once."
    ),
    "PoweredExponential(sigma, length_scale, power=1), or a power of at most 1 or a smoothness of at most 1/2": (
        "a --power of at most 1, or a --smoothness of at most 0.5"
    ),
}
# Covariances as Python writes them, with parameters that need not be those on the command line.
WRITTEN = re.compile(r"\b(?:PoweredExponential|Matern|GeneralisedCauchy)\(\w+=[^()]*\)")
# Two numbers as Python writes them.
PAIR = re.compile(r"\((-?[\d.]+), (-?[\d.]+)\)")
# A remedy in the words of both, where the value may be written otherwise on the command line:
# `to_crs="EPSG:27700" (on the command line --to-crs)`, `subset={'a': 1} (on the command line --subset a=1)`.
TWICE = re.compile(r'\b\w+=("[^"]*"|\{[^}]*\})? \(on the command line (--[\w-]+)(?: ([^)]+))?\)')
# A value as Python writes it: in quotes, or a word or number without.
VALUE = r"""'([^']*)'|"([^"]*)"|([\w-]+(?:\.\d+)?)"""


def exit_code(error: DpppsynthError) -> int:
    """Bad input 2, guarantee 3, budget 4; 5 when a release is blocked or fails its diagnostics."""
    codes = {InputError: 2, TooLargeError: 2, PrivacyCheckError: 3, BudgetError: 4}
    return next((code for kind, code in codes.items() if isinstance(error, kind)), 5)


@contextmanager
def speaking(options: Mapping[str, str]) -> Iterator[None]:
    """Let errors name these options."""
    token = _vocabulary.set(dict(options))
    try:
        yield
    finally:
        _vocabulary.reset(token)


def speak(options: Mapping[str, str]) -> None:
    """Let errors name these options as well, in place of others of the same names."""
    _vocabulary.get({}).update(options)


def in_options(message: str) -> str:
    """A message of the library in the words of the command line: `delta=1e-6` becomes `--delta 1e-6`.

    Parameters
    ----------
    message : str
        Its head, up to the colon, may be the name of an argument, or names separated by commas.
    """
    names = _vocabulary.get({})
    head, colon, rest = message.partition(":")
    start = ", ".join(names.get(each, each) for each in head.split(", ")) + colon
    for word, option in WORDS.items():
        rest = rest.replace(word, option)
    rest = PAIR.sub(r"\1,\2", WRITTEN.sub("this function", rest))
    rest = TWICE.sub(lambda found: " ".join(filter(None, (found[2], found[3] or found[1]))), rest)

    def named(found: re.Match[str]) -> str:
        value = next((each for each in found.groups()[1:] if each is not None), "True")
        return names[found[1]] if value == "True" else f"{names[found[1]]} {shlex.quote(value)}"

    return start + re.sub(rf"\b({'|'.join(names)})=(?:{VALUE})?", named, rest)


def complain(message: str) -> None:
    """Say on standard error what is wrong."""
    _remark("Error: ", typer.colors.RED, message)


def note(message: str) -> None:
    """Say on standard error what the user should know; it stays out of the results."""
    _remark("Note: ", typer.colors.BLUE, message)


@contextmanager
def own_warnings() -> Iterator[None]:
    """Show the library's own warnings in words; what becomes of others is for the caller to say."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", InformationWarning)
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, InformationWarning):
                _remark("Warning: ", typer.colors.YELLOW, in_options(str(message)))
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


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Yield a function to announce each step: a moving line with a clock on a terminal, plain lines elsewhere."""
    if not sys.stderr.isatty():
        yield lambda step: typer.echo(f"... {step}", err=True)
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda step: bar.update(task, description=re.sub(r"\s+", " ", step))


def _console() -> Any:
    from rich.console import Console

    return Console()
