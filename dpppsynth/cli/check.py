"""`dpppsynth check`: guarantee of a planned release, from public parameters."""

from dpppsynth.cli import options as o
from dpppsynth.cli.job import Job
from dpppsynth.cli.people import People
from dpppsynth.cli.place import Place
from dpppsynth.cli.screen import show_json
from dpppsynth.cli.spread import spread


@spread
def check(
    job: Job,
    place: Place,
    people: People,
    patterns: o.PaidPatternsOption = 1,
    json: o.JsonOption = False,
) -> None:
    """Check the guarantee from public parameters alone; no data file is opened.

    Prints what is promised, every public parameter, and what an attacker can tell apart by distance.
    """
    from dpppsynth.cli.describe import plan_json, show_plan

    plan = people.plan(job, place.domain(), patterns)
    if json:
        show_json(plan_json(plan))
    else:
        show_plan(plan)
