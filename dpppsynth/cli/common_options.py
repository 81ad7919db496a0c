"""The options that commands share: their types, names and help texts."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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

if TYPE_CHECKING:
    from dpppsynth.plotting import Background
    from dpppsynth.spatial.domains import Domain

WHERE, HOW, READING, WRITING = "Window or network", "Method", "Reading the points", "Output"


def option(text: str, panel: str, *forms: str, **shown: Any) -> Any:
    """An option with a help text, in a panel of the help page."""
    return Option(*forms, help=text, rich_help_panel=panel, **shown)


def hidden(*forms: str) -> Any:
    """An option of `synthesize` that another command only holds against others, and does not list in its help."""
    return Option(*forms, hidden=True)


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

    RELEASED = "released"
    MEAN = "mean"
    DRAWS = "draws"


EngineOption = Annotated[Engine | None, option("Who runs NUTS. Unless given: nutpie.", HOW)]

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
CountOption = Annotated[str | None, option("Column of whole numbers: a row with k stands for k points.", READING)]
SnapOption = Annotated[
    float | None,
    option(
        "Largest distance a point is moved onto --network, or onto a window's border, in its unit; a public choice.",
        READING,
    ),
]
SkipOutsideOption = Annotated[
    bool,
    option(
        "Leave out points that are not in the domain; where the number of points is secret (add-remove).",
        READING,
        "--skip-outside",
    ),
]


def private_folder(out: Path | None, option: str = "--out") -> Path:
    """The private folder that an option names, which has to be given; InputError."""
    if out is None:
        msg = f"{option}: name a private folder, outside every release, for what is confidential"
        raise InputError(msg)
    return out


ReleaseArgument = Annotated[Path, Argument(help="Folder of a saved release.", show_default=False)]
NoLimitOption = Annotated[
    bool, option("Verify the release however large it is, should you trust who published it.", READING, "--no-limit")
]
# More are drawn by further runs, at no cost; all are held in memory until they are written.
MOST_PATTERNS = 10_000
PatternsOption = Annotated[int, option("Number of synthetic patterns.", WRITING, min=1, max=MOST_PATTERNS)]
WrittenPatternsOption = Annotated[
    int,
    option(
        "Number of synthetic patterns; `sample` draws more, also after 0.",
        WRITING,
        "--patterns",
        min=0,
        max=MOST_PATTERNS,
    ),
]
DrawsOption = Annotated[
    int,
    option(
        "Number of further patterns, each of another posterior draw, to combine for inference.",
        WRITING,
        min=0,
        max=MOST_PATTERNS,
    ),
]
PaidPatternsOption = Annotated[
    int, option("Number of patterns: kernel pays for each of them.", PRIVACY, "--patterns", min=1, max=MOST_PATTERNS)
]
FixedNOption = Annotated[bool, option("Give each pattern exactly the public number of points.", WRITING, "--fixed-n")]
SourceOption = Annotated[
    Source,
    option(
        "With a posterior: the released intensity, nearest to the truth, or the posterior mean for all patterns; or a "
        "draw for each, to combine them for inference.",
        WRITING,
    ),
]
LedgerOption = Annotated[
    Path | None, option("The data set's ledger, from `dpppsynth ledger init`; it must authorise the release.", PRIVACY)
]
SubsetOption = Annotated[
    list[str] | None,
    option(
        "For --ledger, such as year=2021: the file holds the points of one value of a mark that neighbouring "
        "patterns share. It selects nothing.",
        PRIVACY,
    ),
]
RowsArePersonsOption = Annotated[
    bool,
    option(
        "Every row is a person of its own, whatever its columns are called: nothing is asked of those that look like "
        "labels of persons.",
        PRIVACY,
        "--rows-are-persons",
    ),
]
PopulationOption = Annotated[
    Path | None,
    option(
        "Public inhabitants, as a GeoTIFF or polygons: how many live within the privacy radius.",
        PRIVACY,
        "--population",
    ),
]
PopulationColumnOption = Annotated[
    str | None, option("Column of --population, where that is polygons.", PRIVACY, "--population-column")
]
BackgroundOption = Annotated[
    list[Path] | None,
    option(
        "Public roads, districts or places under every map: a file of geometries, or FILE:LAYER; may be repeated.",
        READING,
    ),
]


def background_of(files: list[Path] | None, domain: "Domain", crs: str | None = None) -> "Background | None":
    """Layers of --background, in the coordinate system of a domain; --crs is that of files that name none."""
    if not files:
        return None
    from dpppsynth.io.reading import stated_crs
    from dpppsynth.plotting import Background

    first, *others = (Background.read(each, domain, crs=None if stated_crs(each) else crs) for each in files)
    return sum(others, first)


VerboseOption = Annotated[bool, option("List what the guarantee takes for granted.", WRITING, "--verbose", "-v")]
YesOption = Annotated[
    bool,
    option(
        "Go on in spite of warnings, for scripts; without it a terminal is asked, and a script stops.",
        WRITING,
        "--yes",
        "-y",
        envvar="DPPPSYNTH_YES",
    ),
]
JsonOption = Annotated[bool, option("Print one JSON object.", WRITING, "--json")]
