"""Planted faults, as `make mutants` has them: each still fits the code, and the tests that are to find it exist."""

import ast
import csv
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def mutants():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(CHECKOUT / "benchmarks"))
        yield importlib.import_module("mutants")


@cache
def names(file):
    """Classes and functions of a file of tests, with the functions of its classes."""
    found = set()
    for each in ast.parse((CHECKOUT / file).read_text(encoding="utf-8")).body:
        if isinstance(each, ast.ClassDef | ast.FunctionDef):
            found |= {each.name} | {f"{each.name}::{inner.name}" for inner in ast.walk(each) if hasattr(inner, "name")}
    return found


@pytest.mark.slow
def test_every_fault_fits_the_code_and_leaves_it_code(mutants):
    faults = mutants.faults()
    assert len(faults) >= 60
    assert len({fault.name for fault in faults}) == len(faults)
    for fault in faults:
        planted = fault.planted((CHECKOUT / fault.file).read_text(encoding="utf-8"))
        ast.parse(planted)
        assert fault.old != fault.new


@pytest.mark.slow
def test_the_tests_that_find_them_exist(mutants):
    for fault in mutants.faults():
        assert fault.tests
        for test in fault.tests:
            file, _, name = re.sub(r"\[.*", "", test).partition("::")
            assert name in names(file) or not name, f"{fault.name}: there is no {test}"


def test_a_fault_that_no_longer_fits_is_named(mutants):
    fault = mutants.Fault("room", "a sign flipped", "file.py", "+ 1", "- 1", ("tests/core/test_mutants.py",))
    assert fault.planted("x + 1") == "x - 1"
    for text in ("x", "x + 1 + 1"):
        with pytest.raises(ValueError, match=r"'a sign flipped' stands . times in file\.py"):
            fault.planted(text)


def test_verdicts(mutants):
    fault = mutants.Fault("room", "a sign flipped", "file.py", "+ 1", "- 1", ("tests/core/test_mutants.py",))
    runs = {
        mutants.Run("tests/t.py::test_x", "call", "AssertionError", 1.4): "`t.py::test_x`",
        mutants.Run(seconds=1.4): "**SURVIVED**",
        mutants.Run("tests/t.py", "collect", "InputError", 1.4): "**BAD**: InputError in `t.py`",
        mutants.Run("tests/t.py::test_x", "call", "NameError", 1.4): "**BAD**: NameError in `t.py::test_x`",
    }
    for run, verdict in runs.items():
        assert mutants.row(fault, run) == f"| room | a sign flipped | file.py | {verdict} | 1 |"


@pytest.mark.slow
def test_the_table_has_a_row_for_every_fault(mutants):
    with (CHECKOUT / "docs/results/audit/mutants.csv").open(encoding="utf-8") as stream:
        rows = [(row["room"], row["fault"], row["file"]) for row in csv.DictReader(stream)]
    assert rows == [(fault.room, fault.name, fault.file) for fault in mutants.faults()]
