"""The plugin for QGIS: whole, alone, and with choices that the command has. `examples/into_qgis.py` runs it."""

import ast
import configparser
import importlib.util
import re
import sys
import time
from pathlib import Path

import pytest
from support.command_line import run, spoken

from dpppsynth.cli import plugin
from dpppsynth.cli.pattern_files import Format
from dpppsynth.cli.plugin.call import command
from dpppsynth.cli.plugin.call import run as call
from dpppsynth.cli.program import loaded
from dpppsynth.contract.settings import RELATION

SOURCE = Path(plugin.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "qgis.md"


def test_the_folder_is_a_plugin_and_is_not_overwritten(tmp_path):
    said = spoken(run("qgis-plugin", "--out", tmp_path / "plugins"))
    folder = tmp_path / "plugins" / "dpppsynth_qgis"
    assert str(folder) in said.replace(" ", "")
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == {
        each.name: each.read_bytes() for each in SOURCE.iterdir() if each.is_file()
    }
    about = configparser.ConfigParser()
    about.read(folder / "metadata.txt")
    assert about["general"]["hasProcessingProvider"] == "yes"
    assert "exists" in spoken(run("qgis-plugin", "--out", tmp_path / "plugins", code=2))


def test_it_imports_nothing_that_the_python_of_qgis_lacks():
    for file in SOURCE.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            roots = {name.partition(".")[0] for name in names}
            assert roots <= {*sys.stdlib_module_names, "qgis"}, file


def stated(name):
    """Value of a constant of the algorithms, which only QGIS can import."""
    for node in ast.parse((SOURCE / "algorithms.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    raise AssertionError(name)


def test_choices_are_those_of_the_command():
    assert set(stated("RELATIONS")) - {""} <= set(map(str, RELATION.choices))
    assert len(stated("RELATIONS")) == len(stated("SAID"))
    assert list(stated("FORMATS")) == sorted(map(str, Format), key=stated("FORMATS").index)


def test_options_are_those_of_the_command():
    text = (SOURCE / "algorithms.py").read_text(encoding="utf-8")
    given = set(re.findall(r'^ +"([a-z-]+)": ', text, re.MULTILINE)) | {"network", "window-file"}
    known = {form for name in ("synthesize", "export") for each in loaded(name).complete.params for form in each.opts}
    assert given == {name for name in given if f"--{name}" in known}
    assert {"epsilon", "alpha", "n", "relation", "ledger", "out", "intensity"} <= given


def test_the_lines_of_the_page_name_parameters_that_exist():
    text = (SOURCE / "algorithms.py").read_text(encoding="utf-8")
    named = set(re.findall(r"--([A-Z]+)=", PAGE.read_text(encoding="utf-8")))
    assert named == {name for name in named if f'"{name}"' in text}
    assert len(named) >= 9


def test_another_python_is_not_told_where_that_of_qgis_lives(monkeypatch):
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    answer = call([sys.executable, "-c", "import os; print('PYTHONHOME' in os.environ)"], lambda _: None, bool)
    assert answer == (0, "False")


def test_a_user_can_stop_the_command():
    begun = time.monotonic()
    answer = call([sys.executable, "-c", "import time; time.sleep(60)"], lambda _: None, lambda: True)
    assert answer.code != 0
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize("way", ["stated", "environment"])
def test_the_command_is_found_where_it_is_said_to_be(way, monkeypatch, tmp_path):
    (tmp_path / "own").write_text("#!/bin/sh\n")
    (tmp_path / "own").chmod(0o755)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("DPPPSYNTH", raising=False)
    assert command() is None
    if way == "environment":
        monkeypatch.setenv("DPPPSYNTH", str(tmp_path / "own"))
    assert command(str(tmp_path / "own") if way == "stated" else "") == str(tmp_path / "own")


def test_the_example_says_where_qgis_is_missing(monkeypatch, tmp_path):
    file = Path(__file__).parents[2] / "examples" / "into_qgis.py"
    spec = importlib.util.spec_from_file_location("into_qgis", file)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    assert [line[2].removeprefix("dpppsynth:") for line in example.lines_of_shell()][1:] == [
        "check", "synthesize", "verify", "export"
    ]  # fmt: skip
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "argv", ["into_qgis.py", str(tmp_path / "out")])
    with pytest.raises(SystemExit, match="not at hand"):
        example.main()
    assert not (tmp_path / "out").exists()
