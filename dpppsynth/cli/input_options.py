"""Options of the public domain and of how a file of points is read: window or streets, columns, types and times."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from math import ceil, floor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import note
from dpppsynth.contract.mark_settings import DESCRIBED, described_marks
from dpppsynth.contract.settings import declared_as, setting
from dpppsynth.core.errors import InputError, NoLengthsError
from dpppsynth.core.wording import add_options

if TYPE_CHECKING:
    from dpppsynth.spatial.domains import Domain
    from dpppsynth.spatial.mark_space import Marks


# What the readers of windows and networks call what is in the file.
CONTENT = ("path", "layer", "document", "geometry", "lines", "graph", "edges", "vertices")

# A tab is hard to type.
TAB = ("tab", "\\t")
MARKS = {each.name: replace(each, panel=o.READING) for each in DESCRIBED}
USES = {
    "x": "name the column of the coordinate",
    "y": "name the column of the other coordinate",
    "count": "name the column of whole numbers of points",
    "user": "name the column that tells whose point a row is",
    "by": "name the column of a public mark",
    "types": "name the column of types",
    "time": "name the column of times",
}


def _where(text: str, *, default: object = None, **declared: Any) -> Any:
    return setting(default, help=text, panel=o.WHERE, **declared)


@dataclass(frozen=True, kw_only=True)
class DomainOptions:
    """Options that say where the points lie."""

    window: str | None = _where("Public rectangle that holds the points", metavar="X0,Y0,X1,Y1")
    window_file: Path | None = _where("Public polygons that hold the points: .geojson, .gpkg[:LAYER] or .parquet")
    network: Path | None = _where(
        "Public streets on which the points lie, as lines: .geojson, .gpkg[:LAYER], .parquet or .graphml"
    )
    node: bool = _where("Put a vertex wherever lines of --network meet or cross", default=False)
    join: float | None = _where(
        "Join ends of --network's lines, or fill gaps of --window-file, up to this width, in its unit"
    )
    largest_component: bool = _where("Keep the largest connected part of --network", default=False)
    collapse_short: float | None = _where(
        "Contract edges of --network shorter than this, in its unit, and leave out lines without a length"
    )
    undirected: bool = _where(
        "Keep each street of --network once where it is drawn for both directions, as in directed graphs", default=False
    )
    crs: str | None = declared_as(o.CRS)
    to_crs: str | None = declared_as(o.TO_CRS)

    def __post_init__(self) -> None:
        if sum(each is not None for each in (self.window, self.window_file, self.network)) != 1:
            msg = (
                "window: give --window x0,y0,x1,y1, --window-file or --network: exactly one of them, not none and not "
                "both"
            )
            raise InputError(msg)
        for name in ("node", "join", "largest_component", "collapse_short", "undirected"):
            asked = getattr(self, name)
            mended = self.network or (self.window_file if name == "join" else None)
            if asked is not None and asked is not False and mended is None:
                what = "a --network or the polygons of a --window-file" if name == "join" else "a --network"
                msg = f"{name}: mends the lines of {what}; leave it out"
                raise InputError(msg)

    def words(self) -> list[str]:
        """These options as command-line arguments of a following command."""
        said: list[str] = []
        for each in fields(self):
            given, option = getattr(self, each.name), "--" + each.name.replace("_", "-")
            if given is not None and given is not False:
                said += [option] if given is True else [option, str(given)]
        return said

    def domain(self) -> "Domain":
        """The public window or network; changes made to it on reading are printed."""
        if self.window is not None:
            return _rectangle(_bounds(self.window), self.to_crs or self.crs)
        if self.network is not None:
            return self._streets(self.network)

        from dpppsynth.io import read_window

        path = self.window_file or Path()
        with said_of("--window-file"):
            window = read_window(path, crs=self._crs_of(path), to_crs=self.to_crs, join=self.join)
        for change in window.changes:
            note(f"window: {change}")
        return window

    def _streets(self, path: Path) -> "Domain":
        from dpppsynth.io import read_network

        with said_of("--network"):
            network = read_network(
                path,
                crs=self._crs_of(path),
                to_crs=self.to_crs,
                node=self.node,
                join=self.join,
                largest_component=self.largest_component,
                collapse_short=self.collapse_short,
                undirected=self.undirected,
            )
        for change in network.changes:
            note(f"network: {change}")
        return network

    def _crs_of(self, path: Path) -> str | None:
        """--crs, for files that do not name their own.

        Where all is re-projected it may be that of the points alone; elsewhere a file that contradicts it is refused.
        """
        if self.crs is None or self.to_crs is None:
            return self.crs
        from dpppsynth.io.reading import stated_crs

        return None if stated_crs(path) is not None else self.crs


@dataclass(frozen=True, kw_only=True)
class OptionalDomainOptions(DomainOptions):
    """Domain options of commands that may take the domain from a saved release."""

    def __post_init__(self) -> None:
        """Checked when it is settled."""

    def settled(self) -> DomainOptions:
        """The domain options, all required ones present."""
        return DomainOptions(**{field.name: getattr(self, field.name) for field in fields(self)})

    @property
    def given(self) -> list[str]:
        """Domain options that a saved release makes redundant; coordinate systems may be those of points."""
        names = (field.name for field in fields(self) if field.name not in ("crs", "to_crs"))
        return [name for name in names if getattr(self, name) not in (None, False)]


@contextmanager
def said_of(option: str, *names: str) -> Iterator[None]:
    """Name the option in place of the reader's argument at the start of an error."""
    try:
        yield
    except InputError as error:
        name, _, rest = str(error).partition(":")
        if name not in (names or CONTENT):
            raise
        raise InputError(option + ":" + rest) from None


def require_snap(domain: "Domain", snap: float | None) -> None:
    """Refuse points without a tolerance on a network, and a tolerance without a network, with an InputError."""
    from dpppsynth.linear_network import LinearNetwork
    from dpppsynth.spatial.tables.rows import require_snap as require

    require(domain, snap)
    if snap is None and isinstance(domain, LinearNetwork):
        msg = (
            f"snap: points are moved onto the network; say how far at most ({domain.unit}), for instance --snap 15, "
            "without looking at them"
        )
        raise InputError(msg)


def _rectangle(bounds: tuple[float, float, float, float], crs: str | None) -> "Domain":
    """A rectangle; where its CRS has no true lengths, the error has its corners in the UTM zone there.

    Options re-project files and no corners.
    """
    from dpppsynth.core.crs import utm_zone
    from dpppsynth.core.local_crs import bounds_in, middle
    from dpppsynth.spatial.domains import Window

    try:
        return Window.rectangle(*bounds, crs=crs)
    except NoLengthsError as error:
        reason = str(error)
    zone = utm_zone(crs, middle(bounds)) if crs is not None else None
    if crs is not None and zone is not None:
        west, south, east, north = bounds_in(zone, crs, bounds)
        corners = ",".join(f"{each:.0f}" for each in (floor(west), floor(south), ceil(east), ceil(north)))
        reason += f". Around these corners: --to-crs {zone} --window {corners}"
    raise InputError(reason)


def _bounds(text: str) -> tuple[float, float, float, float]:
    try:
        x0, y0, x1, y1 = (float(part) for part in text.split(","))
    except ValueError:
        msg = f"--window: needs four numbers x0,y0,x1,y1 separated by commas, got {text!r}"
        raise InputError(msg) from None
    return x0, y0, x1, y1


@dataclass(frozen=True, kw_only=True)
class LayoutOptions:
    """Columns and signs of a CSV file, and the layer of a GeoPackage."""

    x: str | None = setting(None, help="Column of a CSV file", otherwise="x", panel=o.READING)
    y: str | None = setting(None, help="Column of a CSV file", otherwise="y", panel=o.READING)
    separator: str | None = setting(
        None,
        help="Sign between cells of a CSV file, or tab",
        otherwise="a comma",
        metavar="SIGN",
        panel=o.READING,
    )
    decimal: str | None = setting(
        None, help="Decimal sign in a CSV file", otherwise="a point", metavar="SIGN", panel=o.READING
    )
    encoding: str | None = setting(
        None,
        help="Encoding of a CSV file, such as cp1252 or utf-16",
        otherwise="utf-8",
        metavar="NAME",
        panel=o.READING,
    )
    layer: str | None = setting(None, help="Layer of a GeoPackage that has several", metavar="NAME", panel=o.READING)

    def of(self, points: Path) -> "tuple[Path, LayoutOptions]":
        """The file of points, and the layout with the layer that is named behind it."""
        from dpppsynth.spatial.tables.formats import layered

        path, layer = layered(points)
        if layer is None or self.layer == layer:
            return path, self
        if self.layer is not None:
            msg = f"layer: {path.name} is followed by the name of another layer already; name one of them"
            raise InputError(msg)
        return path, replace(self, layer=layer)

    @property
    def reading(self) -> dict[str, Any]:
        """Arguments of the readers of points."""
        separator = "\t" if self.separator in TAB else self.separator
        return asdict(self) | {"separator": separator}


@dataclass(frozen=True, kw_only=True)
class MarkOptions:
    """Columns and values of types and times, for commands without a mechanism."""

    types: str | None = declared_as(MARKS["types"])
    type_bins: str | None = declared_as(MARKS["type_bins"])
    time: str | None = declared_as(MARKS["time"])
    period: str | None = declared_as(MARKS["period"])
    time_range: str | None = declared_as(MARKS["time_range"])
    time_zone: str | None = declared_as(MARKS["time_zone"])
    date_format: str | None = declared_as(MARKS["date_format"])

    def described(self) -> "Marks | None":
        """Types and times; None where there are neither."""
        add_options({name: each.option for each in DESCRIBED for name in (each.argument, each.name) if name})
        return described_marks(asdict(self) | {"hats": None})


def columns_of(described: "Marks | None") -> dict[str, str]:
    """Columns of types and times by their options."""
    named = {} if described is None else {"types": described.types, "time": described.times}
    return {option: mark.name for option, mark in named.items() if mark is not None}


def require_own_columns(points: Path, x: str | None, y: str | None, **others: str | None) -> None:
    """Refuse one column for two uses; `others` are --count, --user, --by, --types or --time, where they are given."""
    from dpppsynth.spatial.tables.formats import is_csv

    places = {"x": x or "x", "y": y or "y"} if is_csv(points) else {}
    read: dict[str, str] = {}
    for name, column in (places | others).items():
        if column is None:
            continue
        if column in read:
            msg = f"{name}: column {column!r} is read as --{read[column]}; {USES[name]}"
            raise InputError(msg)
        read[column] = name
