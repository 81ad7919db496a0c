"""The page on the design, and its picture, name the rooms and families that there are."""

import ast
import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from dpppsynth.contract import registry

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
LINKED = {"models", "linear_network"}
# Modules of public names that a room may take families from.
OWN_NAMES = {"cli/local.py": {"dpppsynth.local"}}
# Modules that import what a string names.
BY_STRING = {
    "cli/program.py",
    "core/lazy_names.py",
    "contract/registry.py",
    "mechanisms/local/randomizers/randomizer.py",
}


def folders(path):
    return {each.name for each in path.iterdir() if each.is_dir() and (each / "__init__.py").is_file()}


def test_every_room_is_in_the_picture():
    rooms = folders(ROOT / "dpppsynth") | LINKED
    picture = set(re.findall(r">(\w+)</text>", (ROOT / "docs" / "pictures" / "house.svg").read_text()))
    assert rooms | folders(ROOT / "dpppsynth" / "mechanisms") <= picture
    modules = {path.stem for path in (ROOT / "dpppsynth").glob("*.py")} - {"__init__", "__main__"}
    assert modules == set(re.findall(r"`(\w+)`", PAGE.partition(" The modules ")[2].partition("hold nothing")[0]))


def test_bounds_are_kept_from_every_module_with_plans():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contract = text.partition('name = "bounds see no plan')[2].partition("[[tool")[0]
    forbidden = re.findall(r'"(dpppsynth[^"]+)"', contract.partition("forbidden_modules")[2])
    within = {module for name in registry.names() for module in plan_modules(registry.mechanism(name).statistic)}
    assert len(within) >= 10
    for module in within:
        above = [module.rsplit(".", cut)[0] for cut in range(3)]
        assert any(fnmatchcase(each, pattern) for each in above for pattern in forbidden), module


def back_doors(source, rooms):
    """Imports past the rooms: of the package itself and its modules of public names, and of what a string names."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if "dpppsynth" in each.name and past(each.name, rooms))
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").startswith("dpppsynth"):
            names = [node.module] if node.module != "dpppsynth" else [f"dpppsynth.{each.name}" for each in node.names]
            yield from (name for name in names if past(name, rooms))
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            yield "import_module"


def past(name, rooms):
    return [*name.split("."), ""][1] not in rooms


@pytest.mark.slow
def test_rooms_reach_each_other_through_no_back_door():
    """Import contracts do not see what is taken from the package's lazy names, or imported by a string."""
    rooms = folders(ROOT / "dpppsynth") | LINKED
    files = [path for room in rooms for path in (ROOT / "dpppsynth" / room).rglob("*.py")]
    assert len(files) > 300
    for path in files:
        name = path.relative_to(ROOT / "dpppsynth").as_posix()
        found = set(back_doors(path.read_text(encoding="utf-8"), rooms))
        assert found <= OWN_NAMES.get(name, set()) | ({"import_module"} if name in BY_STRING else set()), name


@pytest.mark.parametrize(
    "line",
    [
        "import dpppsynth",
        "import dpppsynth as dps",
        "import dpppsynth.heatmaps",
        "from dpppsynth import KernelSynthesizer",
        "from dpppsynth.local import DiskArea",
        "def late():\n    import importlib\n    importlib.import_module('dpppsynth.mechanisms.kernel.statistic')",
    ],
)
def test_a_planted_back_door_is_found(line):
    assert list(back_doors(f"from dpppsynth.core.errors import InputError\n{line}", {"core", "mechanisms"}))


def plan_modules(plan):
    """Modules of a class of plans and of those it is derived from."""
    return {each.__module__ for each in plan.__mro__ if each.__module__.startswith("dpppsynth")}


def test_the_files_on_the_way_of_a_point_are_there():
    way = PAGE.partition("## The way of a point")[2]
    adding = (ROOT / "docs" / "adding_a_mechanism.md").read_text(encoding="utf-8")
    estimators = adding.partition("## The estimator")[2].partition("\n## ")[0]
    stated = [re.findall(r"`((?:\w+/)+\w+\.py|(?:\w+/)+)`", text) for text in (way, estimators)]
    assert [len(each) >= 15 for each in stated] == [True, True]
    paths = [*stated[0], *stated[1]]
    for path in paths:
        base = ROOT if path.split("/")[0] in LINKED else ROOT / "dpppsynth"
        assert (base / path).exists(), path
