"""Warnings about public parameters on the screen, and the question whether to go on."""

import sys
from collections.abc import Iterable
from typing import Any

import typer

from dpppsynth.cli.console import warn
from dpppsynth.core.errors import InputError

# Points times epsilon from which on the study knows of a use: it is not asked then, which takes a while.
ENOUGH = 50.0


def doubts(plan: Any) -> tuple[str, ...]:
    """Doubts about a plan: about its public parameters, and whether a uniform pattern would do as well."""
    n = getattr(plan, "n", None) or getattr(getattr(plan, "statistic", None), "expected_n", None)
    if plan.levels is not None or n is None or n * plan.guarantee.epsilon() > ENOUGH:
        return tuple(plan.cautions)
    from dpppsynth.evaluation.recommendation.choice import no_better_than_uniform

    useless = no_better_than_uniform(plan)
    return tuple(plan.cautions) if useless is None else (*plan.cautions, useless)


def show_cautions(found: Iterable[str]) -> None:
    """Say on standard error what is doubtful."""
    for each in found:
        warn(each)


def confirm_warnings(found: Iterable[str], *, yes: bool) -> None:
    """Say what is doubtful, and ask whether to go on unless `yes` has said so.

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
    """Whether there is a terminal to ask at."""
    return sys.stdin.isatty()
