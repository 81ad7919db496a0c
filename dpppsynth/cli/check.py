"""`dpppsynth check`: guarantee of a planned release, from public parameters."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import doubts, show_cautions, show_json, show_line, show_text
from dpppsynth.cli.input_options import DomainOptions
from dpppsynth.cli.ledger import cautions_of, opened_ledger, require_authorised, values_of
from dpppsynth.cli.method import Method
from dpppsynth.cli.next_command import after_check, given_words
from dpppsynth.cli.options import passing_over
from dpppsynth.cli.pattern_options import PatternOptions, require_fitting_number
from dpppsynth.cli.synthesize import synthesize
from dpppsynth.core.errors import InputError

if TYPE_CHECKING:
    from dpppsynth.privacy.nearby_population import Crowd
    from dpppsynth.spatial.domains import Domain


@passing_over(synthesize)
def check(
    method: Method,
    place: DomainOptions,
    people: PatternOptions,
    patterns: o.PaidPatternsOption = 1,
    population: o.PopulationOption = None,
    population_column: o.PopulationColumnOption = None,
    verbose: o.VerboseOption = False,
    json: o.JsonOption = False,
    snap: Annotated[float | None, o.hidden()] = None,
    skip_outside: Annotated[bool, o.hidden("--skip-outside")] = False,
    fixed_n: Annotated[bool, o.hidden("--fixed-n")] = False,
    ledger: Annotated[Path | None, o.hidden()] = None,
    subset: Annotated[list[str] | None, o.hidden()] = None,
) -> None:
    """Check the guarantee from public parameters alone; no data file is opened.

    Prints what is promised, every public parameter, and what an attacker can tell apart by distance; with a public
    population also how many people live within the privacy radius. It takes the options of `synthesize`, of which those
    that say how points are read change nothing here; a --ledger that would refuse the release does so, and nothing is
    spent.
    """
    from dpppsynth.cli.describe import plan_json, show_plan
    from dpppsynth.spatial.tables.rows import require_snap

    require_fitting_number(method, known=method.neighbours().n_is_public, fixed=fixed_n, skipping=skip_outside)
    domain = place.domain()
    require_snap(domain, snap)
    crowd = _crowd(method, domain, population, population_column, place.crs)
    plan = people.plan(method, domain, patterns)
    opened = opened_ledger(ledger)
    show_cautions((*doubts(plan), *cautions_of(opened, plan.guarantee)))
    require_authorised(opened, plan, values_of(subset))
    if json:
        show_json(plan_json(plan) | ({} if crowd is None else {"crowd": crowd.to_dict()}))
        return
    show_plan(plan, verbose=verbose)
    if crowd is not None:
        show_text(f"\n{crowd.words(plan.guarantee)}")
    show_line(f"Next, once, with the name of your file: {after_check(given_words())}")


def _crowd(method: Method, domain: "Domain", file: Path | None, column: str | None, crs: str | None) -> "Crowd | None":
    """Inhabitants within the privacy radius, where a population is given."""
    if file is None:
        if column is not None:
            msg = "population_column: goes with --population; give both"
            raise InputError(msg)
        return None
    from dpppsynth.io.layers import read_population
    from dpppsynth.privacy.nearby_population import people_within, require_reach

    reach = require_reach(method.neighbours())
    return people_within(read_population(file, column, domain, crs), domain, reach)
