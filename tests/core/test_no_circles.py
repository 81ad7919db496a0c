"""Modules never import one another in a circle; imports in functions and for type checkers count as well."""

import ast
from pathlib import Path

import networkx
import pytest

CHECKOUT = Path(__file__).parents[2]
# Links of the checkout: the files behind them are read once, under the names that they are imported by.
LINKED = ("models", "linear_network")


def modules(root):
    """Files of the package and of its linked folders by module name; a stub of lazy names belongs to its package."""
    found = {}
    for top in ("dpppsynth", *LINKED):
        for file in sorted((root / top).rglob("*.py*")):
            parts = file.relative_to(root).with_suffix("").parts
            if file.suffix not in (".py", ".pyi") or parts[1] in LINKED:
                continue
            name = ".".join((() if top == "dpppsynth" else ("dpppsynth",)) + parts).removesuffix(".__init__")
            found.setdefault(name, []).append(file)
    return found


def imported(name, file, known):
    """Modules that a file imports, anywhere in it."""
    package = name if file.stem == "__init__" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1])
            base = node.module if not node.level else f"{above}.{node.module}" if node.module else above
            yield from (inner if (inner := f"{base}.{alias.name}") in known else base for alias in node.names)
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            yield from (each.value for each in node.args if isinstance(each, ast.Constant))


def circles(root):
    """Sets of modules of which each imports, by way of others, all of the set."""
    known = modules(root)
    graph = networkx.DiGraph(
        (name, target)
        for name, files in known.items()
        for file in files
        for target in imported(name, file, known)
        if target in known and target != name
    )
    return [circle for circle in networkx.strongly_connected_components(graph) if len(circle) > 1]


@pytest.mark.slow
def test_no_circle():
    new = [sorted(circle) for circle in circles(CHECKOUT)]
    assert not new, "\n".join(f"a circle of imports: {', '.join(circle)}" for circle in new)


def test_every_module_is_looked_at():
    found = modules(CHECKOUT)
    assert {"dpppsynth", "dpppsynth.models", "dpppsynth.linear_network.network", "dpppsynth.cli"} <= found.keys()
    assert len(found) > 300
    assert len(found["dpppsynth"]) == 2, "the names of the package stand in its stub"


@pytest.mark.parametrize(
    "back",
    [
        "from dpppsynth.lower import thing",
        "import dpppsynth.lower",
        "from . import lower",
        "def late():\n    from dpppsynth.lower import thing",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .lower import Thing",
        "import importlib\nlower = importlib.import_module('dpppsynth.lower')",
    ],
)
def test_a_planted_circle_is_found(tmp_path, back):
    for top in ("dpppsynth", *LINKED):
        (tmp_path / top).mkdir()
    (tmp_path / "dpppsynth/__init__.py").write_text("")
    (tmp_path / "dpppsynth/lower.py").write_text("from dpppsynth.models.middle import x")
    (tmp_path / "models/middle.py").write_text("from dpppsynth import upper")
    (tmp_path / "dpppsynth/upper.py").write_text("import json")
    assert circles(tmp_path) == []
    (tmp_path / "dpppsynth/upper.py").write_text(back)
    assert circles(tmp_path) == [{"dpppsynth.lower", "dpppsynth.models.middle", "dpppsynth.upper"}]
