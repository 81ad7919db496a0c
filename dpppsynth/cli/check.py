"""`dpppsynth check`: guarantee of a planned release, from public parameters."""

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import show_json
from dpppsynth.cli.domain_options import DomainOptions
from dpppsynth.cli.method_options import MethodOptions
from dpppsynth.cli.option_groups import option_groups
from dpppsynth.cli.pattern_options import PatternOptions


@option_groups
def check(
    method: MethodOptions,
    place: DomainOptions,
    people: PatternOptions,
    patterns: o.PaidPatternsOption = 1,
    json: o.JsonOption = False,
) -> None:
    """Check the guarantee from public parameters alone; no data file is opened.

    Prints what is promised, every public parameter, and what an attacker can tell apart by distance.
    """
    from dpppsynth.cli.describe import plan_json, show_plan

    plan = people.plan(method, place.domain(), patterns)
    if json:
        show_json(plan_json(plan))
    else:
        show_plan(plan)
