"""`dpppsynth local`: local differential privacy: reports drawn for a file of points, and their counts."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import progress, show_cautions, show_json, show_line, show_promise, show_text
from dpppsynth.cli.input_options import DomainOptions, LayoutOptions
from dpppsynth.cli.ledger import LedgerEntry, cautions_of, opened_ledger, values_of
from dpppsynth.cli.method import ReportMethod
from dpppsynth.cli.synthesize import EACH_ROW, show_release
from dpppsynth.core.errors import InputError
from dpppsynth.core.output_folder import require_new_folder
from dpppsynth.core.rounding import upward

PointsArgument = Annotated[
    Path,
    typer.Argument(
        help="Sensitive points, one for each person: .csv, .csv.gz, .parquet, .gpkg, .geojson or .shp.",
        show_default=False,
    ),
]
ReportsArgument = Annotated[Path, typer.Argument(help="New file of reports: .csv or .parquet.", show_default=False)]
PATHS = "Files of reports, folders of them, or patterns such as 'reports/*.csv'"
PathsArgument = Annotated[list[str], typer.Argument(help=f"{PATHS}.", show_default=False)]
AnyPathsArgument = Annotated[
    list[str], typer.Argument(help=f"{PATHS}; and files of counts, .json.", show_default=False)
]
CountsArgument = Annotated[
    list[str],
    typer.Argument(help="Files of counts, .json, or patterns such as 'counts/*.json'.", show_default=False),
]
WorkersOption = Annotated[int | None, o.option("Processes that count. Unless given: one.", o.READING, min=1)]

UnlabelledOption = Annotated[
    bool,
    o.option(
        "Take files without a label: that their reports were drawn as the options say is then your word.",
        o.READING,
        "--unlabelled",
    ),
]
CountsOption = Annotated[Path, o.option("New file of counts: .json.", o.WRITING, show_default=False)]

PersonsOption = Annotated[
    int | None, o.option("Two rounds: public number of persons of both.", o.READING, "--n", min=1)
]
AfterOption = Annotated[
    str | None,
    o.option(
        "Two rounds: the second, after this file of the first one's counts. Unless given: the first.",
        o.READING,
        metavar="COUNTS",
    ),
]

# It opens GeoParquet, and no tables of numbers.
CLEAN = "`dpppsynth inspect` finds it first in a CSV file"


def perturb(
    points: PointsArgument,
    reports: ReportsArgument,
    client: ReportMethod,
    place: DomainOptions,
    layout: LayoutOptions,
    ledger: o.LedgerOption = None,
    subset: o.SubsetOption = None,
    n: PersonsOption = None,
    after: AfterOption = None,
    verbose: o.VerboseOption = False,
    json: o.JsonOption = False,
) -> None:
    """Draw one report for every person of a file, as their own devices would.

    With --user COLUMN a person's report is about one of their points, drawn at random, and hides all of them. Without
    it every row counts as a person: whoever has k rows is promised k times epsilon.

    The file may be larger than memory. Within blocks of about a million rows, reports come in a random order; blocks
    follow each other as in the file, so shuffle longer ones first where their order tells something. Every run draws
    anew, and two reports of a person spend the budget twice: publish one file, and delete the others.

    With --ledger the budget is authorised before a row of the file of points is read; its columns are looked at
    before. The number of points is public, and all releases of the points of a domain have the same one; --subset names
    the value of a mark that the points of this file share, where they are not all. Each round of grids is such a part
    by itself.

    Grids in two rounds (--method aag or privag) ask some persons first, and others after --after COUNTS, on a grid that
    follows from the first answers. Nobody reports in both: a person who did would spend the budget twice.

    Trajectories (--method displacements or trajectories) are the rows of a person, in their order. The second of them
    asks everybody twice, the second time after --after COUNTS, and each time spends a share of the budget.
    """
    from dpppsynth.contract.account import Ceiling
    from dpppsynth.local import perturb_file, require_files

    points, layout = layout.of(points)
    _require_own_crs(place)
    domain: Any = place.domain()
    mechanism: Any = client.synthesizer(domain)
    asked = mechanism.asked(domain, n, after)
    user = client.settings.user_column(client.options)
    columns: dict[str, Any] = {**layout.reading, "user": user}
    # Validate public options and names before spending.
    require_files(points, reports, domain, **columns)
    # Whatever is stated of a shuffler needs as many persons.
    plan = mechanism.plan(domain, n=n or getattr(mechanism, "shuffled", None) or 1)
    share = mechanism.share(after)
    # Where everybody reports, the public number of persons is held against earlier releases before anything is spent.
    known = None if share else n
    ceiling = Ceiling(plan.mechanism, domain, mechanism.promise(asked, domain, None), known, plan.count_unit)
    chosen = values_of(subset) or {}
    if set(chosen) & set(share):
        msg = f"subset: the ledger is told of the round without it; leave {next(iter(share))!r} out"
        raise InputError(msg)
    part = chosen if ledger is None else {**chosen, **share}
    both = mechanism.both_rounds()
    opened = opened_ledger(ledger)
    show_cautions(cautions_of(opened, ceiling.guarantee))
    account = LedgerEntry.open(opened, points, ceiling, part or None, whole=both if after is None else None)

    def permit(drawn: int) -> None:
        mechanism.require_drawn(domain, n, drawn)
        if account.ledger is not None and account.entry is not None:
            promise = mechanism.promise(asked, domain, n or drawn)
            account.ledger.settle(account.entry, promise, n=known or drawn, count_unit=plan.count_unit)

    with account.counting(), progress() as say, account.reading(CLEAN):
        written = perturb_file(asked, points, reports, window=domain, **columns, progress=say, permit=permit)
    guarantee = mechanism.promise(asked, domain, n or written)
    if json:
        show_json(
            {
                "out": str(reports),
                "reports": written,
                "user": user,
                "remark": EACH_ROW if user is None else None,
                "guarantee": guarantee.to_dict(),
                "both_rounds": None if both is None else both.to_dict(),
                "ledger": account.entry,
            }
        )
        return
    show_promise(guarantee, domain, verbose=verbose)
    show_text(EACH_ROW if user is None else mechanism.reporters(asked, user))
    if asked is not mechanism:
        show_text(mechanism.rounds)
    if both is not None:
        here, all_ = (upward(each.epsilon(), 4) for each in (guarantee, both))
        show_text(f"This round spends epsilon = {here}, and both together {all_}.")
    show_line(f"\nWritten to {reports}: {written} reports")
    account.report(json=json)


def aggregate(
    paths: AnyPathsArgument,
    client: ReportMethod,
    place: DomainOptions,
    out: Annotated[Path, o.option("New or empty folder for the release.", o.WRITING)],
    workers: WorkersOption = None,
    unlabelled: UnlabelledOption = False,
    patterns: o.WrittenPatternsOption = 1,
    fixed_n: o.FixedNOption = False,
    n: PersonsOption = None,
    after: AfterOption = None,
    verbose: o.VerboseOption = False,
    json: o.JsonOption = False,
) -> None:
    """Count reports, however many, and write the private intensity, synthetic patterns and their certificate.

    This costs no budget: the reports are private already. Options must be those that the reports were drawn with.
    Files of counts, as `count` and `merge` write them, are taken as well. Of mechanisms in two rounds, paths are of the
    second round, and --after COUNTS has the first one's counts.
    """
    from dpppsynth.local import aggregate_files

    require_new_folder(out, "out")
    domain: Any = place.domain()
    mechanism: Any = client.synthesizer(domain)
    asked = mechanism.asked(domain, n, after)
    if asked is not mechanism and after is None:
        msg = "after: a release needs both rounds; count the first one's reports with `local count`, and give that file"
        raise InputError(msg)
    with progress() as say:
        say("counting reports")
        known = {"window": domain, "labelled": not unlabelled}
        counts: Any = aggregate_files(asked, paths, workers=workers, progress=say, **known)
        say("estimating from the counts")
        if after is not None:
            counts = mechanism.combined(domain, n, after, counts)
        release = counts.release(domain)
        say("drawing and writing synthetic patterns")
        release.save(out, patterns=patterns, fixed_n=fixed_n, progress=say)
    show_release(release, out, verbose=verbose, json=json)


def count(
    paths: PathsArgument,
    client: ReportMethod,
    place: DomainOptions,
    out: CountsOption,
    workers: WorkersOption = None,
    unlabelled: UnlabelledOption = False,
    n: PersonsOption = None,
    after: AfterOption = None,
    json: o.JsonOption = False,
) -> None:
    """Count the reports of one machine into a small file, which merges with those of others.

    This costs no budget, and the file may be sent and published: the reports are private already. Options must be those
    that the reports were drawn with. `merge` adds such files up, and `aggregate` makes a release of them.
    """
    from dpppsynth.local import count_files

    domain: Any = place.domain()
    asked = client.synthesizer(domain).asked(domain, n, after)
    with progress() as say:
        say("counting reports")
        known = {"window": domain, "labelled": not unlabelled}
        counts = count_files(asked, paths, out, workers=workers, progress=say, **known)
    _show_counts(counts, out, json=json)


def merge(paths: CountsArgument, out: CountsOption, json: o.JsonOption = False) -> None:
    """Add up files of counts, in any order and exactly, into one.

    Files of other mechanisms, settings or windows are refused, and so is one that would count twice.
    """
    from dpppsynth.local import merge_counts

    _show_counts(merge_counts(paths, out), out, json=json)


def describe(
    client: ReportMethod,
    place: DomainOptions,
    out: Annotated[Path, o.option("New file of the description: .json.", o.WRITING, show_default=False)],
    n: PersonsOption = None,
    after: AfterOption = None,
    verbose: o.VerboseOption = False,
    json: o.JsonOption = False,
) -> None:
    """Write the public description from which persons' own devices make their reports.

    It holds the mechanism's numbers and the grid, and nothing of anybody. A device reads it with `dpppsynth.client`,
    which loads neither meshes nor models. Of grids in two rounds it is what either round's persons are told.
    """
    from dpppsynth.local import write_description

    domain: Any = place.domain()
    mechanism: Any = client.synthesizer(domain)
    asked = mechanism.asked(domain, n, after)
    write_description(asked, out, window=domain)
    if json:
        show_json({"out": str(out), "mechanism": asked.fingerprint})
        return
    plan = mechanism.plan(domain, n=n or getattr(mechanism, "shuffled", None) or 1)
    show_promise(plan.guarantee, domain, verbose=verbose)
    show_line(f"\nWritten to {out}: description of mechanism {asked.fingerprint}")


def _show_counts(counts: Any, out: Path, *, json: bool) -> None:
    if json:
        show_json({"out": str(out), "reports": counts.n, "seeded": counts.seeded})
        return
    if counts.seeded:
        show_text("Some reports were drawn by a seeded generator: reproducible, not private.")
    show_line(f"Written to {out}: counts of {counts.n} reports")


def _require_own_crs(place: DomainOptions) -> None:
    """Refuse to re-project points that are read in blocks, as they stand in their columns."""
    if place.crs is not None and place.to_crs is not None:
        msg = (
            "to_crs: the points of this file are taken as they stand, in the window's CRS; re-project the file first, "
            "and name its CRS by --crs alone"
        )
        raise InputError(msg)


HELP = "Draw and count reports that hide where their senders are."
COMMANDS = (perturb, aggregate, count, merge, describe)
