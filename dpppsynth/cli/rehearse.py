"""`dpppsynth rehearse`: a release on surrogate data, before there is one on real data."""

from dataclasses import asdict

from dpppsynth.cli import options as o
from dpppsynth.cli.job import Job, Place
from dpppsynth.cli.screen import progress, show_json, show_table, show_text
from dpppsynth.cli.spread import spread


@spread
def rehearse(
    job: Job,
    place: Place,
    n: o.CountOfPointsOption = None,
    expected_n: o.ExpectedOption = None,
    patterns: o.PaidPatternsOption = 1,
    json: o.JsonOption = False,
) -> None:
    """Run the mechanism on surrogate patterns drawn from public parameters; no data file is opened.

    Shows what to expect: time, diagnostics, and how close the released intensity comes to the surrogate's. Settle
    everything by it: what a run on the data shows must not be acted upon.
    """
    job.require_sizes(n, expected_n)
    domain = place.domain()
    plan = job.synthesizer(domain).plan(domain, n=n, expected_n=expected_n, **job.paid(patterns))
    with progress() as say:
        outcome = plan.rehearse(progress=say)
    if json:
        show_json({"mechanism": outcome.mechanism, "runs": [asdict(run) for run in outcome.runs]})
        return
    rows = [
        (
            run.surrogate,
            f"{run.seconds:.1f} s",
            "passed" if run.passed else "would be blocked",
            "" if run.attempts is None else f"{run.attempts}",
            "" if run.rhat is None else f"{run.rhat:.3f}, {run.ess:.0f}",
            "" if run.distance is None else f"{run.distance:.3f} ({run.uniform:.3f})",
        )
        for run in outcome.runs
    ]
    head = ("surrogate", "time", "diagnostics", "attempts", "R-hat, ESS", "distance (uniform)")
    show_table(f"Rehearsal of {outcome.mechanism}", rows, head)
    show_text(
        "Distance: total variation between the surrogate's normalised intensity and the released one; in brackets that "
        "of a uniform intensity, which needs no data."
    )
