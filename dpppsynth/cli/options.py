"""The options that commands share: their types, names and help texts."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

WHERE, PRIVACY, HOW, READING, WRITING = "Window or network", "Privacy", "Method", "Reading the points", "Output"


class Method(StrEnum):
    """Families of mechanisms."""

    LGCP = "lgcp"
    LAPLACE = "laplace"
    KERNEL = "kernel"
    HEATMAP = "heatmap"
    BOUNDED_ERROR = "bounded-error"
    PLANAR_LAPLACE = "planar-laplace"
    DISK_AREA = "disk-area"
    HYBRID_AREA = "hybrid-area"
    SQUARE_WAVE = "square-wave"
    SEM_GEO_I = "sem-geo-i"
    UNIFORM_GRID = "uniform-grid"
    PRIVAG = "privag"
    AAG = "aag"


class Law(StrEnum):
    """Local mechanisms all of whose clients report at once."""

    DISK_AREA = "disk-area"
    HYBRID_AREA = "hybrid-area"
    SQUARE_WAVE = "square-wave"
    SEM_GEO_I = "sem-geo-i"
    UNIFORM_GRID = "uniform-grid"


class Mechanism(StrEnum):
    """Mechanisms of `lgcp`."""

    TENTS = "tents"
    FIELD = "field"
    POSTERIOR_DRAW = "posterior-draw"
    LIPSCHITZ = "lipschitz"
    KIM_LIM_38 = "kim-lim-3.8"
    KIM_LIM_39 = "kim-lim-3.9"


class Shape(StrEnum):
    """Kinds of covariance."""

    EXPONENTIAL = "exponential"
    MATERN = "matern"
    CAUCHY = "cauchy"


class Sampler(StrEnum):
    """Samplers of posterior draws."""

    AUTO = "auto"
    EXACT = "exact"
    NUTS = "nuts"
    PROXIMAL = "proximal"


class Bound(StrEnum):
    """Theorems that `kernel` is checked against."""

    SUPERPOSITION = "superposition"
    KIM_LIM_36 = "kim-lim-3.6"


class Basis(StrEnum):
    """Statistics that `laplace` measures."""

    CELLS = "cells"
    TENTS = "tents"


class Neighbours(StrEnum):
    """Neighbouring relations."""

    ALPHA = "alpha"
    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"
    ADD_REMOVE_PERSON = "add-remove-person"


class Variant(StrEnum):
    """Sets of levels that `heatmap` measures."""

    PRACTICAL = "practical"
    THEORY = "theory"


class Fit(StrEnum):
    """Fits of masses to `heatmap`'s noised counts."""

    LEAST_SQUARES = "least-squares"
    L1 = "l1"


class Postprocess(StrEnum):
    """Post-processing of `laplace` and `bounded-error` into non-negative masses."""

    CLIP = "clip"
    KEEP_N = "keep-n"


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

    DRAWS = "draws"
    MEAN = "mean"


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

METHODS = (
    "Log-Gaussian Cox process, noised masses alone, a kernel at each point, a heat map of persons, counts with bounded "
    "error, or points moved by planar Laplace noise; the others randomise everybody's location on its own."
)
MethodOption = Annotated[Method, Option(help=METHODS, rich_help_panel=HOW)]
MechanismOption = Annotated[
    Mechanism | None, Option(help="What lgcp makes private. Unless given: tents.", rich_help_panel=HOW)
]
BasisOption = Annotated[
    Basis | None, Option(help="What laplace measures: counts or tent masses. Unless given: cells.", rich_help_panel=HOW)
]
SpacingOption = Annotated[
    float | None,
    Option(help="Side of a mesh cell, in the domain's unit. Unless given: a public rule.", rich_help_panel=HOW),
]
ResolutionOption = Annotated[
    float | None,
    Option(help="Longest segment of a mesh along --network's edges, instead of --spacing.", rich_help_panel=HOW),
]
LengthScaleOption = Annotated[
    float | None,
    Option(help="Length scale of lgcp's field. Unless given: a public rule, or an average.", rich_help_panel=HOW),
]
SigmaOption = Annotated[
    float | None,
    Option(
        help="Standard deviation of lgcp's field, verified. Unless given: the largest admissible, or a public rule.",
        rich_help_panel=HOW,
    ),
]
CovarianceOption = Annotated[
    Shape | None,
    Option(
        help="Kind of lgcp's covariance, with --sigma and --length-scale. Unless given: exponential.",
        rich_help_panel=HOW,
    ),
]
PowerOption = Annotated[
    float | None,
    Option(
        help="Power of an exponential or cauchy covariance. Unless given: 2, on a network 1, its largest.",
        rich_help_panel=HOW,
    ),
]
SmoothnessOption = Annotated[
    float | None,
    Option(help="Smoothness of a matern covariance, on a network at most 0.5.", rich_help_panel=HOW),
]
TailOption = Annotated[
    float | None, Option(help="Power with which a cauchy covariance falls off in the end.", rich_help_panel=HOW)
]
SamplerOption = Annotated[
    Sampler | None,
    Option(help="Who makes lgcp's draw. Unless given: auto, decided by public parameters.", rich_help_panel=HOW),
]
BandwidthOption = Annotated[
    float | None,
    Option(
        help="Bandwidth of kernel, verified. Unless given: the smallest admissible, or a rule.", rich_help_panel=HOW
    ),
]
BoundOption = Annotated[
    Bound | None,
    Option(help="Theorem that the bandwidth is checked against. Unless given: superposition.", rich_help_panel=HOW),
]
PostprocessOption = Annotated[
    Postprocess | None,
    Option(
        help="How negative masses are removed. Unless given: keep-n where n is public; clip for bounded-error.",
        rich_help_panel=HOW,
    ),
]
InferenceOption = Annotated[
    Inference | None,
    Option(
        help="How lgcp finds its posterior: sampled, or approximated faster. Unless given: nuts.", rich_help_panel=HOW
    ),
]
EngineOption = Annotated[Engine | None, Option(help="Who runs NUTS. Unless given: nutpie.", rich_help_panel=HOW)]
CellsOption = Annotated[
    str | None,
    Option("--shape", metavar="NX,NY", help="Cells of heatmap's grid. Unless given: 256,256.", rich_help_panel=HOW),
]
WOption = Annotated[
    int | None, Option("--w", help="Cells that heatmap keeps of each level. Unless given: 20.", rich_help_panel=HOW)
]
VariantOption = Annotated[
    Variant | None,
    Option(help="Levels that heatmap measures. Unless given: practical.", rich_help_panel=HOW),
]
DecayOption = Annotated[
    float | None,
    Option(help="Decay of heatmap's budget from level to level. Unless given: the variant's.", rich_help_panel=HOW),
]
FitOption = Annotated[
    Fit | None,
    Option(help="How heatmap fits its noised counts, at no cost. Unless given: least-squares.", rich_help_panel=HOW),
]
GridOption = Annotated[
    int | None,
    Option(
        "--cells",
        help="Cells along each side of a local method's grid. Unless given: 15, or a rule.",
        rich_help_panel=HOW,
    ),
]
TrackOption = Annotated[
    bool,
    Option(
        "--track",
        help="The points are one person's, in public order, which planar-laplace keeps.",
        rich_help_panel=HOW,
    ),
]
LawOption = Annotated[
    Law, Option("--mechanism", help="Local mechanism that the reports are drawn by.", rich_help_panel=HOW)
]
RadiusOption = Annotated[
    int | None,
    Option(help="Radius of disk-area and hybrid-area, in cells. Unless given: a public rule.", rich_help_panel=HOW),
]
OffsetFileOption = Annotated[
    Path | None,
    Option(
        help="Polygons with a public density, such as population, that multiplies lgcp's field.", rich_help_panel=HOW
    ),
]
OffsetColumnOption = Annotated[
    str | None, Option(help="Numeric column of --offset-file: a density, not a count.", rich_help_panel=HOW)
]

EpsilonOption = Annotated[float, Option(help="Privacy budget.", rich_help_panel=PRIVACY)]
DeltaOption = Annotated[
    float, Option(help="Budget of mechanisms that are not purely epsilon-private.", rich_help_panel=PRIVACY)
]
ThirdEpsilonOption = Annotated[
    float | None,
    Option(
        help="Privacy budget. Needed, unless it follows from --delta and --max-error (bounded-error).",
        rich_help_panel=PRIVACY,
    ),
]
ThirdDeltaOption = Annotated[
    float | None,
    Option(
        help="Budget of mechanisms that are not purely epsilon-private. Unless given: 0, or what --max-error costs.",
        rich_help_panel=PRIVACY,
    ),
]
MaxErrorOption = Annotated[
    float | None,
    Option(
        help="No count is off by more (bounded-error), no point moved further (planar-laplace). Unless given: what "
        "--epsilon and --delta allow.",
        rich_help_panel=PRIVACY,
    ),
]
LargeDeltaOption = Annotated[
    bool,
    Option(
        "--allow-large-delta",
        help="Accept a delta of 1/n or more, which promises nothing; to reproduce published experiments.",
        rich_help_panel=PRIVACY,
    ),
]
AlphaOption = Annotated[
    float | None,
    Option(help="Privacy radius, in the domain's unit; on a network along its edges.", rich_help_panel=PRIVACY),
]
RelationOption = Annotated[
    Neighbours | None,
    Option(
        help="Which patterns must not be told apart. Unless given: alpha if --alpha is given.", rich_help_panel=PRIVACY
    ),
]
UserOption = Annotated[
    str | None,
    Option(
        metavar="COLUMN",
        help="Column that tells whose point a row is (heatmap, add-remove-person). Unless given: user.",
        rich_help_panel=PRIVACY,
    ),
]
NoUserOption = Annotated[
    bool, Option("--no-user", help="Take every point for a person of its own (heatmap).", rich_help_panel=PRIVACY)
]
CapOption = Annotated[int, Option(help="Public cap on the points of one person.", rich_help_panel=PRIVACY)]
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
    Path, Argument(help="Sensitive points: .csv, .geojson, .gpkg or .parquet.", show_default=False)
]
XOption = Annotated[str | None, Option(help="Column of a CSV file. Unless given: x.", rich_help_panel=READING)]
YOption = Annotated[str | None, Option(help="Column of a CSV file. Unless given: y.", rich_help_panel=READING)]
CountOption = Annotated[
    str | None, Option(help="Column of whole numbers: a row with k stands for k points.", rich_help_panel=READING)
]
SnapOption = Annotated[
    float | None,
    Option(
        help="Largest distance a point is moved onto --network, in its unit; a public choice.", rich_help_panel=READING
    ),
]

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
JsonOption = Annotated[bool, Option("--json", help="Print one JSON object.", rich_help_panel=WRITING)]
