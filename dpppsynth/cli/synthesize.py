"""`dpppsynth synthesize`: certified release from a file of sensitive points."""

import shlex
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dpppsynth.cli import common_options as o
from dpppsynth.cli.columns import require_told
from dpppsynth.cli.console import (
    confirm_warnings,
    doubts,
    progress,
    show_cautions,
    show_json,
    show_line,
    show_promise,
    show_text,
)
from dpppsynth.cli.input_options import (
    DomainOptions,
    LayoutOptions,
    columns_of,
    require_own_columns,
    require_snap,
    said_of,
)
from dpppsynth.cli.ledger import LedgerEntry, cautions_of, opened_ledger, require_readable, values_of
from dpppsynth.cli.method import Method
from dpppsynth.cli.pattern_options import PatternOptions, require_fitting_number
from dpppsynth.cli.resume import nothing_lost
from dpppsynth.contract.cautions import cautions
from dpppsynth.core.errors import InputError
from dpppsynth.core.output_folder import require_new_folder, require_room

if TYPE_CHECKING:
    from dpppsynth.contract.account import Ceiling
    from dpppsynth.spatial.domains import Domain

# Bytes of a file from which on it is read in batches where it may be: some million rows would fill a gigabyte.
LARGE = 2**25
EACH_ROW = (
    "Every row was taken for a person of its own: whoever has k rows is promised k times epsilon. With --user COLUMN "
    "each person sends one report."
)


def synthesize(
    points: o.PointsArgument,
    method: Method,
    place: DomainOptions,
    people: PatternOptions,
    layout: LayoutOptions,
    out: Annotated[Path, o.option("New or empty folder for the release.", o.WRITING)],
    count: o.CountOption = None,
    snap: o.SnapOption = None,
    skip_outside: o.SkipOutsideOption = False,
    patterns: o.WrittenPatternsOption = 1,
    draws: o.DrawsOption = 0,
    fixed_n: o.FixedNOption = False,
    source: o.SourceOption = o.Source.RELEASED,
    ledger: o.LedgerOption = None,
    subset: o.SubsetOption = None,
    rows_are_persons: o.RowsArePersonsOption = False,
    yes: o.YesOption = False,
    verbose: o.VerboseOption = False,
    json: o.JsonOption = False,
) -> None:
    """Spend the budget once, and write synthetic patterns with their certificate.

    Domain, options, output folder, and of the file of points the names of its columns and its CRS, are checked before
    a row is read; `inspect` with the same options finds what is wrong with the rows. A column that looks like labels of
    persons has to be named (--user), or denied (--rows-are-persons). Where the number of points is
    public, --n may state it (--n-by with --by): the whole guarantee is then checked before the file is opened, and a
    file with another number of points is refused. Rehearse first: after this command nothing may be tried again for
    free.

    Files of more than 32 MiB are read in batches where what is measured is a sum over points (tents, cells, fields,
    heat maps of one point a person): a CSV, GeoParquet or GeoPackage file may then be larger than memory, and is read
    twice unless its number of points is stated or secret.

    With --ledger the budget is authorised before a row of the file is read (exit code 4 where it does not suffice,
    and nothing is read or written); from then on it counts as spent, whatever happens. Where the number of points is
    public, all releases of the points of a domain have the same one; --subset names the value of a mark that the points
    of this file share, where they are not all.
    """
    points, layout = layout.of(points)
    known = method.neighbours().n_is_public
    require_fitting_number(method, known=known, fixed=fixed_n, skipping=skip_outside)
    method.settings.require_patterns(method.options, patterns)
    if method.settings.paid and (draws or source is not o.Source.RELEASED):
        name = "draws" if draws else "source"
        msg = f"{name}: {method.settings.paid}; leave --{name} out"
        raise InputError(msg)
    require_new_folder(out, "out")
    domain = place.domain()
    require_snap(domain, snap)
    settled = people.plan(method, domain, patterns) if people.stated or not known else None
    planned = settled or people.require(method, domain, patterns)
    if draws and not all(each.estimator and each.estimator.has_posterior for each in planned.parts.values()):
        msg = f"draws: {planned.mechanism} has no posterior; leave --draws out"
        raise InputError(msg)
    require_room(out, sum(planned.file_sizes))
    chosen = values_of(subset)
    people.require_other_mark(chosen)
    warned = cautions(planned.guarantee, domain, None) if settled is None else doubts(settled)
    opened = opened_ledger(ledger)
    confirm_warnings((*warned, *cautions_of(opened, planned.guarantee)), yes=yes)
    user = method.settings.user_column(method.options)
    described = method.settings.marks_from(method.options)
    require_own_columns(points, layout.x, layout.y, count=count, user=user, by=people.by, **columns_of(described))
    marks = () if people.by is None else (people.by,)
    columns: dict[str, Any] = {"count": count, "marks": marks, "user": user, **layout.reading}
    columns |= {"crs": place.crs, "to_crs": place.to_crs, "described": described}
    taken: dict[str, Any] = {"snap": snap, "skip_outside": skip_outside}

    from dpppsynth.io import read_batches, read_pattern, require_head

    # Of a file names of columns and the CRS are public; rows are not.
    if ledger is not None:
        require_readable(points)
    head = require_head(points, domain, **columns)
    require_told(method, head, columns, points.name, rows_are_persons=rows_are_persons)
    with said_of("--no-user", "user") if method.options["no_user"] else nullcontext():
        account = LedgerEntry.open(
            opened, points, settled or _ceiling(planned.mechanism, method, people, domain, patterns), chosen
        )

    with account.counting(), progress() as say:
        say("reading the points")
        with account.reading(people.sooner(known=known)):
            if _in_batches(points, planned):
                batches = read_batches(points, domain, **_without(columns, "marks", "user"), **taken)
                plan: Any = settled or people.settle(method, domain, patterns, batches.count())
                spend = partial(plan.finish, map(plan.partial, batches))
            else:
                pattern = read_pattern(points, domain, **columns, **taken)
                plan = settled or people.plan_for(pattern, method, patterns)
                spend = partial(plan.release, pattern)
            if settled is None:
                show_cautions(each for each in doubts(plan) if each not in warned)
            say(f"the guarantee holds, epsilon = {plan.guarantee.epsilon():.6g}")
            with nothing_lost(out, account.entry):
                release = spend(progress=say, ledger=account.ledger, entry=account.entry, keep=out)
                say("drawing and writing what is released")
                if not method.settings.paid:
                    drawing: dict[str, Any] = {
                        "patterns": patterns,
                        "draws": draws,
                        "fixed_n": fixed_n,
                        "source": str(source),
                    }
                    release.save(release.kept, **drawing, progress=say)
    folder: Path = release.kept
    show_release(release, folder, paid=method.settings.paid, verbose=verbose, together=account.together, json=json)
    if method.settings.reports and user is None and not json:
        show_text(EACH_ROW)
    account.report(json=json)


def _ceiling(mechanism: str, method: Method, people: PatternOptions, domain: "Domain", patterns: int) -> "Ceiling":
    """Authorised spending where the number of points is found in the file."""
    from dpppsynth.contract.account import Ceiling

    most = method.synthesizer(domain, people.n).ceiling(domain, patterns=patterns)
    return Ceiling(mechanism, domain, most, levels=people.uncounted())


def _in_batches(points: Path, planned: Any) -> bool:
    """Whether a file is large, and what is measured of it a sum over points: it need not fit into memory then."""
    large = points.stat().st_size > LARGE and planned.levels is None
    return large and planned.statistic.additive and planned.statistic.persons_by is None


def _without(options: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in names}


def show_release(
    release: Any, out: Path, *, paid: str = "", verbose: bool = False, together: str = "", json: bool
) -> None:
    """Print what was written and the next steps; `paid` says why a further pattern costs budget, where it does."""
    from dpppsynth.cli.console import error_bound
    from dpppsynth.contract import registry
    from dpppsynth.core.published_files import beyond_limits

    words = registry.of(release).words
    files = sorted(path.name for path in out.iterdir())
    if json:
        show_json(
            {
                "out": str(out),
                "mechanism": release.mechanism,
                "guarantee": release.guarantee.to_dict(),
                **({} if release.shuffled is None else {"shuffled": release.shuffled.to_dict()}),
                "certificate": str(out / "certificate.json"),
                "ledger": release.entry,
                "seeded": release.seeded,
                "patterns": [name for name in files if name.startswith("synthetic_")],
                "files": files,
                **words.figures(release),
            }
        )
        return
    show_promise(release.guarantee, release.domain, verbose=verbose, together=together)
    if release.shuffled is not None:
        show_text(f"\n{release.shuffled}")
    for remark in words.remarks(release):
        show_text(remark)
    if (alarm := words.alarm(release)) is not None:
        show_text(f"Warning: {alarm}")
    if (bound := error_bound(release, getattr(release, "by", None))) is not None:
        show_text(bound)
    show_line(f"\nWritten to {out}: {', '.join(files)}")
    if release.warning is not None:
        from dpppsynth.privacy.catalogue import text

        show_line(f"Warning: {text(release.warning)}")
    if release.seeded:
        show_line("Warning: its random bits can be drawn again: it is not private and must not be released.")
    own = " --no-limit" if beyond_limits(out) else ""
    folder = shlex.quote(str(out))
    show_line(f"Check it: dpppsynth verify {folder}{own}")
    if not paid:
        show_line(f"Further patterns are free: dpppsynth sample {folder} --patterns 100{own}")
    else:
        show_line(f"No further patterns are free: {paid}.")
