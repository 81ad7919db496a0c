"""The page on the architecture names the rooms and families that there are."""

import re
from fnmatch import fnmatchcase
from pathlib import Path

from dpppsynth.contract import registry

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
LINKED = {"models", "linear_network"}


def folders(path):
    return {each.name for each in path.iterdir() if each.is_dir() and (each / "__init__.py").is_file()}


def table(heading):
    """Rows of the first table below a heading, as lists of cells."""
    lines = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0].split("\n")
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]


def test_every_room_is_named_once():
    rooms = [row[0].strip("`/") for row in table("Rooms")]
    assert sorted(rooms) == sorted(folders(ROOT / "dpppsynth") | LINKED)
    modules = {path.stem for path in (ROOT / "dpppsynth").glob("*.py")} - {"__init__"}
    assert modules == set(re.findall(r"`(\w+)`", PAGE.partition("\nThe modules ")[2].partition(" hold nothing")[0]))


def test_every_family_is_named_with_its_mechanisms():
    named = {
        row[0].strip("`/"): set(re.findall(r"`([\w.-]+)`", row[1])) - {"BoundedErrorAnswers"}
        for row in table("Families")
    }
    assert named.keys() == folders(ROOT / "dpppsynth" / "mechanisms")
    found = {family: set() for family in named}
    for name, place in registry.PLACES.items():
        found[place.split(".")[2]].add(name)
    assert named == found


def test_the_layers_are_the_rooms_in_the_order_of_the_page():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    layers = re.findall(r'"([^"]+)"', text.partition("layers = [")[2].partition("]")[0])
    rooms = [layer for layer in reversed(layers) if "|" not in layer]
    assert rooms == [row[0].strip("`/") for row in table("Rooms")]


def test_bounds_are_kept_from_every_module_with_plans():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contract = text.partition('name = "bounds see no plan')[2].partition("[[tool")[0]
    forbidden = re.findall(r'"(dpppsynth[^"]+)"', contract.partition("forbidden_modules")[2])
    within = {module for name in registry.names() for module in plan_modules(registry.mechanism(name).plan)}
    assert len(within) >= 10
    for module in within:
        above = [module.rsplit(".", cut)[0] for cut in range(3)]
        assert any(fnmatchcase(each, pattern) for each in above for pattern in forbidden), module


def plan_modules(plan):
    """Modules of a class of plans and of those it is derived from."""
    return {each.__module__ for each in plan.__mro__ if each.__module__.startswith("dpppsynth")}


def test_the_files_on_the_way_of_a_point_are_there():
    way = PAGE.partition("## The way of a point")[2]
    paths = re.findall(r"`((?:\w+/)+\w+\.py|(?:\w+/)+)`", way)
    assert len(paths) >= 15
    for path in paths:
        base = ROOT if path.split("/")[0] in LINKED else ROOT / "dpppsynth"
        assert (base / path).exists(), path
