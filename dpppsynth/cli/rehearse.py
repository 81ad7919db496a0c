"""`dpppsynth rehearse`: runs of a mechanism on surrogate data, before a release on real data."""

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import doubts, progress, show_cautions, show_json, show_table, show_text
from dpppsynth.cli.input_options import DomainOptions
from dpppsynth.cli.method import Method
from dpppsynth.cli.pattern_options import PatternOptions

if TYPE_CHECKING:
    from dpppsynth.contract.rehearsal import Rehearsal, Run

COLUMNS: dict[str, Callable[["Run"], str]] = {
    "surrogate": lambda run: run.surrogate,
    "time": lambda run: f"{run.seconds:.1f} s",
    "outcome": lambda run: "released" if run.passed else "would be blocked",
    "attempts": lambda run: "" if run.attempts is None else f"{run.attempts}",
    "R-hat, ESS": lambda run: "" if run.rhat is None else f"{run.rhat:.3f}, {run.ess:.0f}",
    "Pareto k": lambda run: "" if run.pareto_k is None else f"{run.pareto_k:.2f}",
    "90 % covers": lambda run: "" if run.coverage is None else f"{run.coverage:.0%}",
    "clusters": lambda run: "" if run.clusters is None else f"{run.clusters:.0%} likely",
    "distance (uniform)": lambda run: "" if run.distance is None else f"{run.distance:.3f} ({run.uniform:.3f})",
}

APPROXIMATION = (
    "The Laplace approximation is close where Pareto k is below 0.7 and its nominal 90 % intervals cover about 90 %."
)


def rehearse(
    method: Method,
    place: DomainOptions,
    people: PatternOptions,
    patterns: o.PaidPatternsOption = 1,
    json: o.JsonOption = False,
) -> None:
    """Run the mechanism on surrogate patterns drawn from public parameters; no data file is opened.

    Shows what to expect: time, diagnostics, and how close the released intensity or heat map comes to the surrogate's.
    Settle everything by it: what a run on the data shows must not be acted upon. Exit code 5 when a run would be
    blocked.
    """
    from dpppsynth.contract.stratified_plan import StratifiedPlan

    plan = people.plan(method, place.domain(), patterns)
    show_cautions(doubts(plan))
    with progress() as say:
        outcomes = {}
        for level, each in plan.parts.items():
            if level:
                say(f"{people.by} {level}")
            outcomes[level] = each.rehearse(progress=say)
    if json:
        shown = {level: asdict(outcome) | {"passed": outcome.passed} for level, outcome in outcomes.items()}
        show_json({"by": plan.by, "levels": shown} if isinstance(plan, StratifiedPlan) else shown[""])
    else:
        for level, outcome in outcomes.items():
            _show(outcome, f"{people.by} {level}, " if level else "")
        if any(run.pareto_k is not None for outcome in outcomes.values() for run in outcome.runs):
            show_text(APPROXIMATION)
        show_text(method.settings.distance)
    if not all(outcome.passed for outcome in outcomes.values()):
        raise typer.Exit(5)


def _show(outcome: "Rehearsal", of: str) -> None:
    cells = {name: [cell(run) for run in outcome.runs] for name, cell in COLUMNS.items()}
    told = {name: column for name, column in cells.items() if any(column)}
    show_table(f"Rehearsal, {of}{outcome.mechanism}", zip(*told.values(), strict=True), tuple(told))
