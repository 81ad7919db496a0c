"""`dpppsynth synthesize`: from a file of sensitive points to a certified release."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from dpppsynth.cli import options as o
from dpppsynth.cli.job import Job, Place, require_new_folder
from dpppsynth.cli.screen import progress, show_json, show_line, show_text
from dpppsynth.errors import InputError, QualityError

if TYPE_CHECKING:
    from dpppsynth.patterns import PointPattern
    from dpppsynth.release import CoxRelease
    from dpppsynth.synthesizers import Plan


def synthesize(
    points: o.PointsArgument,
    method: o.MethodOption,
    epsilon: o.EpsilonOption,
    out: Annotated[Path, Option(help="New or empty folder for the release.", rich_help_panel=o.WRITING)],
    x: o.XOption = None,
    y: o.YOption = None,
    count: o.CountOption = None,
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
    patterns: o.PatternsOption = 1,
    fixed_n: o.FixedNOption = False,
    json: o.JsonOption = False,
) -> None:
    """Spend the budget once, and write synthetic patterns with their certificate.

    Window, options and output folder are checked before the points are read. Where the number of points is public,
    --n may state it: the whole guarantee is then checked before the file is opened, and a file with another number
    of points is refused.
    """
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
    job.require_sizes(n, expected_n, data_follow=True)
    known = job.neighbours().n_is_public
    if fixed_n and not known:
        msg = "fixed_n: the number of points is secret under add-remove; leave --fixed-n out"
        raise InputError(msg)
    require_new_folder(out)
    domain = Place(window=window, window_file=window_file, crs=crs, to_crs=to_crs).domain()
    synthesizer = job.synthesizer(domain)
    settled = synthesizer.plan(domain, n=n, expected_n=expected_n) if n is not None or not known else None

    from dpppsynth.io import read_pattern

    with progress() as say:
        say("reading the points")
        pattern = read_pattern(points, domain, x=x, y=y, crs=crs, to_crs=to_crs, count=count)
        plan = settled or synthesizer.plan(domain, n=len(pattern))
        say(f"the guarantee holds, epsilon = {plan.guarantee.epsilon():.6g}")
        release = _release(plan, pattern, out, say)
        say("drawing and writing synthetic patterns")
        release.save(out, patterns=patterns, fixed_n=fixed_n)
    _report(release, out, json=json)


def _release(plan: "Plan", pattern: "PointPattern", out: Path, say: Callable[[str], None]) -> "CoxRelease":
    """Release, or keep the paid-for statistic when inference on it fails."""
    from dpppsynth.release import CoxRelease

    try:
        return plan.release(pattern, progress=say)
    except QualityError as error:
        if not isinstance(error.release, CoxRelease):
            raise
        error.release.save(out, patterns=0)
        reason = str(error).partition(". ")[0]
        msg = (
            f"{reason}. Nothing is lost: the budget is spent, and the private statistic is saved in {out}. Infer "
            f"from it again, at no privacy cost: dpppsynth sample {out} --inference laplace --out NEW"
        )
        raise QualityError(msg, error.release) from None


def _report(release: "CoxRelease", out: Path, *, json: bool) -> None:
    files = sorted(path.name for path in out.iterdir())
    if json:
        show_json(
            {
                "out": str(out),
                "mechanism": release.mechanism,
                "guarantee": release.guarantee.to_dict(),
                "certificate": str(out / "certificate.json"),
                "patterns": [name for name in files if name.startswith("synthetic_")],
                "files": files,
            }
        )
        return
    show_text(str(release.guarantee))
    show_line(f"\nWritten to {out}: {', '.join(files)}")
    show_line(f"Check it: dpppsynth verify {out}\nFurther patterns are free: dpppsynth sample {out} --patterns 100")
