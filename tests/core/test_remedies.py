"""Remedies of messages: what they name exists, and applying it makes progress."""

import ast
import importlib
import json
import re
import shlex
import tomllib
from functools import cache
from pathlib import Path

import geopandas
import networkx
import numpy as np
import pyproj
import pytest
import shapely
from shapely import LineString
from support.command_line import run, spoken

import dpppsynth
from dpppsynth.cli.program import COMMANDS, GROUPS, NAMED, loaded
from dpppsynth.contract.mark_settings import DESCRIBED
from dpppsynth.core.crs import reproject
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork

ROOT = Path(__file__).parents[2]
SOURCES = [
    path for folder in ("dpppsynth", "models", "linear_network") for path in sorted((ROOT / folder).rglob("*.py"))
]


@cache
def parts(path):
    """All parts of a module's syntax."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def texts(path):
    """All texts of a module but docstrings; what a message fills in is {}."""
    documented = {
        id(node.body[0].value)
        for node in parts(path)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    filled = [node for node in parts(path) if isinstance(node, ast.JoinedStr)]
    elsewhere = documented | {id(part) for node in filled for part in node.values}
    for node in filled:
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    for node in parts(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in elsewhere:
            yield node.value


def calls(path, function):
    """First arguments of all calls of a function that are texts."""
    for node in parts(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


@cache
def said():
    """Every module with every text of it: read when the first test asks, not in all processes that collect."""
    return [(path.relative_to(ROOT), text) for path in SOURCES for text in texts(path)]


@cache
def options():
    """All options of the command line, by the help of its commands."""
    every = [*map(loaded, COMMANDS), *(each for group in GROUPS for each in loaded(group).commands.values())]
    params = [each for command in every for each in (command if command.method is None else command.complete).params]
    return {form for each in params for form in (*each.opts, *each.secondary_opts)} | {"--help", "--version"}


OPTION = re.compile(r"(?<![\w-])--[a-z](?:[a-z-]*[a-z])?")


def test_distributions_that_are_to_be_installed_are_dependencies():
    """`dpppsynth[raster]` is no distribution before it is published."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    every = [*project["dependencies"], *(each for extra in project["optional-dependencies"].values() for each in extra)]
    known = {re.split(r"[\[<>=~ ]", each)[0] for each in every} - {"dpppsynth"}
    asked = [(path, name) for path, text in said() for name in re.findall(r"pip install \"?([\w\[\]-]+)", text)]
    assert {name for _, name in asked} <= known, asked
    assert asked


# Begins the options that are made from a field: `--no-{name}`.
MADE = ("dpppsynth/contract/settings.py", "--no")


def test_options_exist():
    found = {(str(path), option) for path, text in said() for option in OPTION.findall(text)}
    assert {(path, option) for path, option in found if option not in options()} <= {MADE}
    assert len(found) > 200


def test_arguments_that_are_mentioned_have_options():
    """`mention` writes an argument as an option, or leaves it as it is where there is none of the name."""
    found = {name for path in SOURCES for name in calls(path, "mention")}
    assert {name for name in found if "--" + name.replace("_", "-") not in options()} - IN_PYTHON == set()


# Arguments of functions alone, or named by their options otherwise.
IN_PYTHON: set[str] = set(NAMED) | {each.argument for each in DESCRIBED if each.argument}


def test_codes_of_coordinate_systems_exist_and_none_is_advice_for_everywhere():
    codes = {code for _, text in said() for code in re.findall(r"EPSG:(\d+)", text)}
    for code in codes:
        pyproj.CRS.from_epsg(int(code))
    advice = [(path, text) for path, text in said() if re.search(r"re-project[^.;]*EPSG:\d", text)]
    assert advice == []


def test_functions_exist():
    """Dotted names in messages, such as `dpppsynth.io.read_network`, resolve."""
    names = {name for _, text in said() if " " in text for name in re.findall(r"\b(?:dps|dpppsynth)(?:\.\w+)+", text)}
    for name in names:
        parts = name.split(".")[1:]
        if parts[-1] in ("local", "toml", "org"):
            continue
        found = dpppsynth
        for part in parts:
            try:
                found = getattr(found, part)
            except AttributeError:
                found = importlib.import_module(f"{found.__name__}.{part}")


# --- Remedies applied -------------------------------------------------------------------------------------------------

GIVEN = re.compile(r"(--[a-z][a-z-]+)(?:[ =]('[^']*'|\"[^\"]*\"|[\w:.,/+-]*[\w]))?")
PLAIN = ("--method", "laplace", "--epsilon", 1, "--alpha", 25, "--n", 100)
FLAGS = {"--undirected", "--node", "--largest-component", "--protect-types", "--no-protect-types"}


def treated(words, message):
    """A command with the options of a remedy in place of its own ones.

    A remedy is what stands behind the first semicolon, "give" or "take".
    """
    remedy = re.split(r"; |\bgive\b|\btake\b|\bKeep\b|\bname it\b", message, maxsplit=1)[-1]
    changed = list(map(str, words))
    for option, value in GIVEN.findall(remedy):
        text = shlex.split(value)[0] if value else ""
        given = [] if option in FLAGS or not text else [text]
        if option in changed:
            at = changed.index(option)
            changed[at : at + 1 + len(given)] = [option, *given]
        elif option in FLAGS or given:
            changed += [option, *given]
    if changed == list(map(str, words)) and (values := re.findall(r"'([^']+)'", remedy)):
        # A list of values, of which the first will do, and the option in front of the message.
        changed[changed.index(GIVEN.search(message)[1]) + 1] = values[0]
    return changed


def polygons(path, bounds, crs):
    geopandas.GeoSeries([shapely.box(*bounds)], crs=crs).to_file(path)
    return path


def lines(path, shapes, crs="EPSG:27700"):
    frame = geopandas.GeoDataFrame(geometry=list(shapes), crs=crs)
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_file(path)
    return path


GRID = [LineString([(0, 0), (500, 0)]), LineString([(500, 0), (500, 500)])]


def degrees(path):
    made = networkx.MultiDiGraph(crs="epsg:4326")
    for name, xy in enumerate(reproject(np.array([[368e3, 5806e3], [368.5e3, 5806e3]]), "EPSG:32633", "EPSG:4326")):
        made.add_node(name, x=float(xy[0]), y=float(xy[1]))
    made.add_edges_from([(0, 1), (1, 0)])
    networkx.write_graphml(made, path)
    return path


MARKED = ("--method", "marked", "--epsilon", 1, "--n", 100, "--window", "0,0,1000,1000", "--types", "kind=a,b")
TIMED = (*MARKED, "--time", "t", "--time-range", "0,10", "--no-protect-types", "--alpha", 25)

# Faults by name, with the command that has them.
FAULTS = {
    "polygons in degrees": lambda at: (
        *PLAIN,
        "--window-file",
        polygons(at / "w.geojson", (13.3, 52.4, 13.4, 52.5), "EPSG:4326"),
    ),
    "polygons in the grid of another country": lambda at: (
        *PLAIN,
        "--to-crs",
        "EPSG:27700",
        "--window-file",
        polygons(at / "w.geojson", (6.9, 50.9, 7.0, 51.0), "EPSG:4326"),
    ),
    "polygons in Web Mercator": lambda at: (
        *PLAIN,
        "--to-crs",
        "EPSG:3857",
        "--window-file",
        polygons(at / "w.gpkg", (6.9, 50.9, 7.0, 51.0), "EPSG:4326"),
    ),
    "corners in degrees": lambda at: (*PLAIN, "--window", "13.3,52.4,13.4,52.5", "--crs", "EPSG:4326"),
    "corners in Web Mercator": lambda at: (*PLAIN, "--window", "1480000,6890000,1490000,6900000", "--crs", "EPSG:3857"),
    "corners where lengths are stretched": lambda at: (
        *PLAIN,
        "--window",
        "0,6900000,40000,6940000",
        "--crs",
        "EPSG:3395",
    ),
    "streets in degrees": lambda at: (
        *PLAIN,
        "--network",
        lines(at / "l.geojson", [LineString([(13.3, 52.4), (13.31, 52.4)])], "EPSG:4326"),
    ),
    "a directed graph in degrees": lambda at: (*PLAIN, "--network", degrees(at / "g.graphml")),
    "a street drawn twice": lambda at: (*PLAIN, "--network", lines(at / "l.gpkg", [*GRID, GRID[0]])),
    "a line without a length": lambda at: (
        *PLAIN,
        "--network",
        lines(at / "l.parquet", [*GRID, LineString([(0, 0), (0, 0)])]),
    ),
    "a row without a geometry": lambda at: (*PLAIN, "--network", lines(at / "l.parquet", [*GRID, None])),
    "streets that fall apart": lambda at: (
        *PLAIN,
        "--network",
        lines(at / "l.gpkg", [*GRID, LineString([(100, -50), (100, 50)])]),
    ),
    "a public time": lambda at: (*TIMED, "--protect-time", "public"),
    "a time that changes by nothing": lambda at: (*TIMED, "--protect-time", "0"),
    "a time that changes by more than there is": lambda at: (*TIMED, "--protect-time", "20"),
    "no word on the time": lambda at: TIMED,
    "no word on the types": lambda at: (*MARKED, "--alpha", 25),
    "no mechanism": lambda at: ("--epsilon", 1, "--alpha", 25, "--n", 100, "--window", "0,0,1000,1000"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_a_message_advises_works(name, tmp_path):
    """Within three messages, each of which is another one, the command runs."""
    words, heard = ["check", *FAULTS[name](tmp_path)], []
    for _ in range(4):
        result = run(*words, code=None)
        if result.exit_code == 0:
            break
        said = spoken(result)
        assert said not in heard, heard
        heard.append(said)
        words = treated(words, said)
    assert result.exit_code == 0, (words, heard)
    assert heard


def test_what_messages_about_graphs_advise_works():
    """The same in Python, where a remedy is `argument=value`."""
    made = networkx.MultiDiGraph(crs="epsg:4326")
    for name, (x, y) in enumerate([(13.3, 52.4), (13.31, 52.4), (13.31, 52.4)]):
        made.add_node(name, x=x, y=y)
    made.add_edges_from([(0, 1), (1, 0), (1, 2)])
    given, heard = {}, []
    for _ in range(5):
        try:
            network = LinearNetwork.from_networkx(made, **given)
            break
        except InputError as error:
            heard.append(str(error))
            given |= {
                name: ast.literal_eval(value) for name, value in re.findall(r"(\w+)=('[^']*'|\w[\w.]*)", heard[-1])
            }
    assert given == {"undirected": True, "to_crs": "EPSG:32633", "collapse_short": 0.5}
    assert len(network.edges) == 1


def test_installing_what_is_asked_for_is_enough(monkeypatch, tmp_path):
    """A layer of a GeoTIFF asks for the module that it lacks, by the name of its distribution."""
    import sys

    from dpppsynth.spatial.raster_layers import read_geotiff

    monkeypatch.setitem(sys.modules, "rasterio", None)
    (tmp_path / "p.tif").write_bytes(b"II*\0")
    with pytest.raises(InputError, match="pip install rasterio"):
        read_geotiff(tmp_path / "p.tif")


def test_the_schema_of_geojson_that_is_advised_is_read(tmp_path):
    """The example of a `crs` member is one that a file may have."""
    path = tmp_path / "w.geojson"
    square = {"type": "Polygon", "coordinates": [[[0, 0], [9, 0], [9, 9], [0, 0]]]}
    document = {"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {}, "geometry": square}]}
    path.write_text(json.dumps(document | {"crs": "metres"}))
    with pytest.raises(InputError) as refused:
        dpppsynth.read_window(path)
    path.write_text(json.dumps(document | {"crs": json.loads(str(refused.value).split("look like ")[1])}))
    assert dpppsynth.read_window(path).area == 40.5
