"""`dpppsynth report`: one page about a saved release, to publish beside it."""

from pathlib import Path
from typing import Annotated, Any

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import note, progress, show_line
from dpppsynth.cli.next_command import after_report

OutOption = Annotated[
    Path | None,
    o.option(
        "File to write, ending in .html; report.html in the folder unless given. Replaces an earlier report only.",
        o.WRITING,
        show_default=False,
    ),
]


TitleOption = Annotated[
    str,
    o.option("Title: of whose points, of which area, from when, such as 'Burglaries in Camden, 2023'.", o.WRITING),
]
CustodianOption = Annotated[str, o.option("Who publishes the release.", o.WRITING)]
PurposeOption = Annotated[str, o.option("For whom and for what it is published.", o.WRITING)]


def report(
    release: o.ReleaseArgument,
    out: OutOption = None,
    title: TitleOption = "",
    custodian: CustodianOption = "",
    purpose: PurposeOption = "",
    population: o.PopulationOption = None,
    population_column: o.PopulationColumnOption = None,
    background: o.BackgroundOption = None,
    crs: o.CrsOption = None,
    no_limit: o.NoLimitOption = False,
) -> None:
    """Write one self-contained page: what was released, the guarantee in words and numbers, maps, how to verify.

    It needs no network, opens in any browser and prints well. Only the public folder is read. Title, custodian and
    purpose are kept where a report is written anew.

    Exit code 0: written; 2: there is no readable release, or no place for the page; 3: the certificate does not hold,
    and nothing is written.
    """
    from dpppsynth.io.layers import read_population
    from dpppsynth.privacy.catalogue import text
    from dpppsynth.release import certificate, load_release
    from dpppsynth.reporting import write_report
    from dpppsynth.reporting.heading import Heading

    with progress() as say:
        public: dict[str, Any] = {"heading": Heading(title, custodian, purpose)}
        if population is not None or background:
            domain = load_release(release, limit=not no_limit).domain
            public["background"] = o.background_of(background, domain, crs)
            if population is not None:
                public["population"] = read_population(population, population_column, domain, crs)
        written = write_report(release, out, **public, progress=say, limit=not no_limit)
    warning = certificate.read(release, limit=not no_limit)["warning"]
    if warning is not None:
        note(f"this release must not be published, and its report says so. {text(warning)}")
    show_line(str(written))
    for command in after_report(release, limit=not no_limit):
        show_line(f"For QGIS and others: {command}")
