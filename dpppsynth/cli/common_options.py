"""The options that commands share: their types, names and help texts."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from dpppsynth.cli.options import option_of
from dpppsynth.contract.settings import (
    ALPHA,
    CAP,
    DELTA,
    EPSILON,
    PRIVACY,
    RELATION,
    USER,
    Setting,
    declared_as,
    setting,
)
from dpppsynth.core.errors import InputError

WHERE, HOW, READING, WRITING = "Window or network", "Method", "Reading the points", "Output"


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


EngineOption = Annotated[Engine | None, Option(help="Who runs NUTS. Unless given: nutpie.", rich_help_panel=HOW)]

N = Setting(option="--n", help="Number of points, where it is public", panel=PRIVACY)
EXPECTED = Setting(
    help="Public guess of the number of points, where it is secret (add-remove); of persons for heatmap", panel=PRIVACY
)
CRS = Setting(
    option="--crs", help="Coordinate system of inputs that do not name one, for example EPSG:27700", panel=WHERE
)
TO_CRS = Setting(option="--to-crs", help="Re-project files to this system; --window is then given in it", panel=WHERE)
CrsOption = Annotated[str | None, option_of(CRS)]
ToCrsOption = Annotated[str | None, option_of(TO_CRS)]


@dataclass(frozen=True, kw_only=True)
class PromiseOptions:
    """Options that say what is to be promised, and to whom."""

    epsilon: float = setting(**EPSILON)
    delta: float = setting(0.0, **DELTA)
    alpha: float | None = setting(None, **ALPHA)
    relation: str | None = declared_as(RELATION)
    max_points_per_person: int = declared_as(CAP, 1)
    user: str | None = declared_as(USER)


PointsArgument = Annotated[
    Path,
    Argument(help="Sensitive points: .csv, .csv.gz, .geojson, .gpkg, .parquet or .shp.", show_default=False),
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
