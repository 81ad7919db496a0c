"""`dpppsynth check`: the guarantee of a release, before there is one."""

from dpppsynth.cli import options as o
from dpppsynth.cli.job import Job, Place
from dpppsynth.cli.screen import show_json


def check(
    method: o.MethodOption,
    epsilon: o.EpsilonOption,
    window: o.WindowOption = None,
    window_file: o.WindowFileOption = None,
    crs: o.CrsOption = None,
    to_crs: o.ToCrsOption = None,
    mechanism: o.MechanismOption = None,
    basis: o.BasisOption = None,
    spacing: o.SpacingOption = None,
    length_scale: o.LengthScaleOption = None,
    postprocess: o.PostprocessOption = None,
    inference: o.InferenceOption = None,
    engine: o.EngineOption = None,
    offset_file: o.OffsetFileOption = None,
    offset_column: o.OffsetColumnOption = None,
    delta: o.DeltaOption = 0.0,
    alpha: o.AlphaOption = None,
    relation: o.RelationOption = None,
    max_points_per_person: o.CapOption = 1,
    n: o.CountOfPointsOption = None,
    expected_n: o.ExpectedOption = None,
    json: o.JsonOption = False,
) -> None:
    """Check the guarantee from public parameters alone; no data file is opened.

    Prints what is promised, every public parameter, and what an attacker can tell apart by distance.
    """
    from dpppsynth.cli.describe import plan_json, show_plan

    job = Job(
        method=method,
        epsilon=epsilon,
        mechanism=mechanism,
        delta=delta,
        alpha=alpha,
        relation=relation,
        max_points_per_person=max_points_per_person,
        basis=basis,
        spacing=spacing,
        length_scale=length_scale,
        postprocess=postprocess,
        inference=inference,
        engine=engine,
        offset_file=offset_file,
        offset_column=offset_column,
    )
    job.require_sizes(n, expected_n)
    domain = Place(window=window, window_file=window_file, crs=crs, to_crs=to_crs).domain()
    plan = job.synthesizer(domain).plan(domain, n=n, expected_n=expected_n)
    if json:
        show_json(plan_json(plan))
    else:
        show_plan(plan)
