"""The options that commands share: their types, names and help texts."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from dpppsynth.cli.options import option_of
from dpppsynth.contract.settings import ALPHA, CAP, DELTA, EPSILON, RELATION, USER, Neighbours, Setting
from dpppsynth.core.errors import InputError

WHERE, PRIVACY, HOW, READING, WRITING = "Window or network", "Privacy", "Method", "Reading the points", "Output"


class Inference(StrEnum):
    """Inference methods of `lgcp`'s posterior."""

    NUTS = "nuts"
    LAPLACE = "laplace"


class Engine(StrEnum):
    """Implementations of NUTS."""

    NUTPIE = "nutpie"
    PYMC = "pymc"


class Source(StrEnum):
    """Sources of further patterns."""

    MEDIAN = "median"
    MEAN = "mean"
    DRAWS = "draws"


WindowOption = Annotated[
    str | None,
    Option("--window", metavar="X0,Y0,X1,Y1", help="Public rectangle that holds the points.", rich_help_panel=WHERE),
]
WindowFileOption = Annotated[
    Path | None,
    Option(help="Public polygons that hold the points: .geojson, .gpkg or .parquet.", rich_help_panel=WHERE),
]
NetworkOption = Annotated[
    Path | None,
    Option(
        help="Public streets on which the points lie, as lines: .geojson, .gpkg or .parquet.", rich_help_panel=WHERE
    ),
]
NodeOption = Annotated[
    bool, Option("--node", help="Put a vertex wherever lines of --network meet or cross.", rich_help_panel=WHERE)
]
JoinOption = Annotated[
    float | None,
    Option(help="Join ends of --network's lines this close to each other, in its unit.", rich_help_panel=WHERE),
]
LargestComponentOption = Annotated[
    bool,
    Option("--largest-component", help="Keep the largest connected part of --network.", rich_help_panel=WHERE),
]
CollapseOption = Annotated[
    float | None,
    Option(
        "--collapse-short", help="Contract edges of --network shorter than this, in its unit.", rich_help_panel=WHERE
    ),
]
CrsOption = Annotated[
    str | None,
    Option(help="Coordinate system of inputs that do not name one, for example EPSG:27700.", rich_help_panel=WHERE),
]
ToCrsOption = Annotated[
    str | None,
    Option(help="Re-project files to this system; --window is then given in it.", rich_help_panel=WHERE),
]

EngineOption = Annotated[Engine | None, Option(help="Who runs NUTS. Unless given: nutpie.", rich_help_panel=HOW)]

EpsilonOption = Annotated[float, option_of(Setting(**EPSILON))]
DeltaOption = Annotated[float, option_of(Setting(**DELTA))]
AlphaOption = Annotated[float | None, option_of(Setting(**ALPHA))]
RelationOption = Annotated[Neighbours | None, option_of(RELATION)]
CapOption = Annotated[int, option_of(CAP)]
KeptUserOption = Annotated[str | None, option_of(USER)]
UserOption = Annotated[
    str | None,
    Option(
        metavar="COLUMN",
        help="Column that tells whose point a row is. Unless given: user (add-remove-person), or none.",
        rich_help_panel=PRIVACY,
    ),
]
CountOfPointsOption = Annotated[
    int | None, Option("--n", help="Number of points, where it is public.", rich_help_panel=PRIVACY)
]
ExpectedOption = Annotated[
    float | None,
    Option(
        help="Public guess of the number of points, where it is secret (add-remove); of persons for heatmap.",
        rich_help_panel=PRIVACY,
    ),
]

ByOption = Annotated[
    str | None,
    Option(
        metavar="COLUMN", help="Public mark, such as year: one release for each of its levels.", rich_help_panel=PRIVACY
    ),
]
LevelsOption = Annotated[
    str | None,
    Option(
        metavar="A,B,...",
        help="All values of --by, chosen without looking at the points.",
        rich_help_panel=PRIVACY,
    ),
]
CountsByLevelOption = Annotated[
    str | None,
    Option(
        metavar="N,N,...", help="Number of points of each of --levels, where it is public.", rich_help_panel=PRIVACY
    ),
]

PointsArgument = Annotated[
    Path,
    Argument(help="Sensitive points: .csv, .csv.gz, .geojson, .gpkg, .parquet or .shp.", show_default=False),
]
XOption = Annotated[str | None, Option(help="Column of a CSV file. Unless given: x.", rich_help_panel=READING)]
YOption = Annotated[str | None, Option(help="Column of a CSV file. Unless given: y.", rich_help_panel=READING)]
SeparatorOption = Annotated[
    str | None,
    Option(
        metavar="SIGN", help="Sign between cells of a CSV file, or tab. Unless given: a comma.", rich_help_panel=READING
    ),
]
DecimalOption = Annotated[
    str | None,
    Option(metavar="SIGN", help="Decimal sign in a CSV file. Unless given: a point.", rich_help_panel=READING),
]
LayerOption = Annotated[
    str | None, Option(metavar="NAME", help="Layer of a GeoPackage that has several.", rich_help_panel=READING)
]
CountOption = Annotated[
    str | None, Option(help="Column of whole numbers: a row with k stands for k points.", rich_help_panel=READING)
]
SnapOption = Annotated[
    float | None,
    Option(
        help="Largest distance a point is moved onto --network, in its unit; a public choice.", rich_help_panel=READING
    ),
]


def private_folder(out: Path | None) -> Path:
    """The private folder that --out names, which has to be given; InputError."""
    if out is None:
        msg = "--out: name a private folder, outside every release, for what is confidential"
        raise InputError(msg)
    return out


ReleaseArgument = Annotated[Path, Argument(help="Folder of a saved release.", show_default=False)]
NoLimitOption = Annotated[
    bool,
    Option(
        "--no-limit",
        help="Verify the release however large it is, should you trust who published it.",
        rich_help_panel=READING,
    ),
]
# More are drawn by further runs, at no cost; all are held in memory until they are written.
MOST_PATTERNS = 10_000
PatternsOption = Annotated[
    int, Option(min=1, max=MOST_PATTERNS, help="Number of synthetic patterns.", rich_help_panel=WRITING)
]
WrittenPatternsOption = Annotated[
    int,
    Option(
        "--patterns",
        min=0,
        max=MOST_PATTERNS,
        help="Number of synthetic patterns; `sample` draws more, also after 0.",
        rich_help_panel=WRITING,
    ),
]
PaidPatternsOption = Annotated[
    int,
    Option(
        "--patterns",
        min=1,
        max=MOST_PATTERNS,
        help="Number of patterns: kernel pays for each of them.",
        rich_help_panel=PRIVACY,
    ),
]
FixedNOption = Annotated[
    bool,
    Option("--fixed-n", help="Give each pattern exactly the public number of points.", rich_help_panel=WRITING),
]
SourceOption = Annotated[
    Source,
    Option(
        help="With a posterior: its median, nearest to the truth, or its mean for all patterns; or a draw for each, to "
        "combine them for inference.",
        rich_help_panel=WRITING,
    ),
]
LedgerOption = Annotated[
    Path | None,
    Option(
        help="The data set's ledger, from `dpppsynth ledger init`; it must authorise the release.",
        rich_help_panel=PRIVACY,
    ),
]
SubsetOption = Annotated[
    list[str] | None,
    Option(
        help="For --ledger, such as year=2021: the file holds the points of one value of a mark that neighbouring "
        "patterns share. It selects nothing.",
        rich_help_panel=PRIVACY,
    ),
]
PopulationOption = Annotated[
    Path | None,
    Option(
        "--population",
        help="Public inhabitants, as a GeoTIFF or polygons: how many live within the privacy radius.",
        rich_help_panel=PRIVACY,
    ),
]
PopulationColumnOption = Annotated[
    str | None,
    Option("--population-column", help="Column of --population, where that is polygons.", rich_help_panel=PRIVACY),
]
VerboseOption = Annotated[
    bool, Option("--verbose", "-v", help="List what the guarantee takes for granted.", rich_help_panel=WRITING)
]
YesOption = Annotated[
    bool,
    Option(
        "--yes",
        "-y",
        envvar="DPPPSYNTH_YES",
        help="Go on in spite of warnings, for scripts; without it a terminal is asked, and a script stops.",
        rich_help_panel=WRITING,
    ),
]
JsonOption = Annotated[bool, Option("--json", help="Print one JSON object.", rich_help_panel=WRITING)]
