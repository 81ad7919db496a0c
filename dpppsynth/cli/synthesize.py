"""`dpppsynth synthesize`: from a file of sensitive points to a certified release."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from dpppsynth.cli import options as o
from dpppsynth.cli.job import Job, Place, require_new_folder
from dpppsynth.cli.screen import progress, show_json, show_line, show_text
from dpppsynth.cli.spread import spread
from dpppsynth.errors import InputError, QualityError

if TYPE_CHECKING:
    from dpppsynth.patterns import PointPattern
    from dpppsynth.release.base import Release
    from dpppsynth.synthesizers import Plan


@spread
def synthesize(
    points: o.PointsArgument,
    job: Job,
    place: Place,
    out: Annotated[Path, Option(help="New or empty folder for the release.", rich_help_panel=o.WRITING)],
    x: o.XOption = None,
    y: o.YOption = None,
    count: o.CountOption = None,
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
    job.require_sizes(n, expected_n, data_follow=True)
    known = job.neighbours().n_is_public
    if fixed_n and not known:
        msg = "fixed_n: the number of points is secret under add-remove; leave --fixed-n out"
        raise InputError(msg)
    if fixed_n and job.method is o.Method.KERNEL:
        msg = "fixed_n: the kernel synthesizer draws a Poisson number of points; leave --fixed-n out"
        raise InputError(msg)
    require_new_folder(out)
    domain = place.domain()
    settle = partial(job.synthesizer(domain).plan, domain, **job.paid(patterns))
    settled = settle(n=n, expected_n=expected_n) if n is not None or not known else None

    from dpppsynth.io import read_pattern
    from dpppsynth.release import PoissonRelease

    with progress() as say:
        say("reading the points")
        pattern = read_pattern(points, domain, x=x, y=y, crs=place.crs, to_crs=place.to_crs, count=count)
        plan = settled or settle(n=len(pattern))
        say(f"the guarantee holds, epsilon = {plan.guarantee.epsilon():.6g}")
        release = _release(plan, pattern, out, say)
        say("drawing and writing synthetic patterns")
        if isinstance(release, PoissonRelease):
            release.save(out)
        else:
            release.save(out, patterns=patterns, fixed_n=fixed_n)
    _report(release, out, json=json)


def _release(plan: "Plan", pattern: "PointPattern", out: Path, say: Callable[[str], None]) -> "Release":
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


def _report(release: "Release", out: Path, *, json: bool) -> None:
    from dpppsynth.release import CoxRelease

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
    show_line(f"Check it: dpppsynth verify {out}")
    if isinstance(release, CoxRelease):
        show_line(f"Further patterns are free: dpppsynth sample {out} --patterns 100")
    else:
        show_line("Further patterns would be a new spend: every pattern of the kernel synthesizer is paid for.")
