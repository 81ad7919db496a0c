"""First lines of docstrings: noun phrases or imperatives that end with a period, and no questions."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("dpppsynth", "models", "linear_network", "benchmarks", "examples", "tests")
# "What a plan settled" is a riddle where "Settings of a plan" says it; "Of one run" does not say what.
OPENINGS = re.compile(r"(What|How|Why|Who|Whose|Whom|Which|Where|When|Of|From what|Is|Are|Does|Do|Did)\b")


def first_lines(code: str) -> Iterator[tuple[int, str]]:
    """Line numbers and first lines of all docstrings of a module."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, text.partition("\n")[0]


def faults(code: str) -> list[tuple[int, str]]:
    """Line numbers and first lines that open like a question, ask one, or do not end."""
    return [(n, line) for n, line in first_lines(code) if OPENINGS.match(line) or "?" in line or line[-1] != "."]


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_first_lines_say_what_a_thing_is(folder):
    files = list((ROOT / folder).rglob("*.py"))
    found = {(file.relative_to(ROOT).as_posix(), *fault) for file in files for fault in faults(file.read_text("utf-8"))}
    assert files
    assert found == set()


@pytest.mark.parametrize(
    ("line", "is_fault"),
    [
        ("What a release promises.", True),
        ("How many cells a grid gets.", True),
        ("Of one run.", True),
        ("Is it any good? Statistics and distances.", True),
        ("A guarantee", True),
        ("Guarantee of a release.", False),
        ("Whether a file exists.", False),
        ("Offsets of two cells.", False),
    ],
)
def test_faults_are_found(line, is_fault):
    code = f'class Thing:\n    def part(self):\n        """{line}\n\n        What more there is to say.\n        """\n'
    assert faults(code) == ([(3, line)] if is_fault else [])
