"""The guides' examples run, as a reader would run them, and their links lead somewhere."""

import functools
import json
import os
import re
import shlex
import subprocess
import sysconfig
import textwrap
from pathlib import Path

import pytest
from support.seams import chance_for_nuts, one_prior
from typer.testing import CliRunner

import dpppsynth as dps
from dpppsynth.cli import app

ROOT = Path(__file__).parents[2]
GUIDES = ["README.md"] + [
    f"docs/{name}.md"
    for name in (
        "auditing",
        "bounded_error",
        "covariates",
        "evaluation",
        "files",
        "heatmaps",
        "inference",
        "ledger",
        "local",
        "marks",
        "model",
        "python",
        "resistance",
    )
]
BY_USER = sorted(f"guides/{path.name}" for path in ROOT.glob("docs/guides/*.md"))
DOCUMENTS = sorted(str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.fixture(autouse=True, scope="module")
def fields_are_quick():
    """No page tells what fields are averaged over, nor what NUTS finds; programs of the README's shell run it."""
    with one_prior(), chance_for_nuts():
        yield


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", GUIDES)
def test_blocks_run_in_order(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names = {}
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), re.DOTALL | re.MULTILINE)
    assert blocks
    for block in blocks:
        exec(compile(block, name, "exec"), names)


def test_commands_of_the_readme_run_in_a_shell(monkeypatch, tmp_path):
    """Commands run as in a clone, one program after another."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPPPSYNTH_YES")
    (tmp_path / "dpppsynth").symlink_to(ROOT / "dpppsynth")
    commands = "".join(re.findall(r"^```shell\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE))
    assert commands
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(["bash", "-euxc", commands], check=False, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def commands_of(block, words):
    """Commands of a block as lists of words, without comments; names given above the block, or in it, are filled in."""
    for line in block.replace("\\\n", " ").splitlines():
        filled = functools.reduce(lambda text, each: text.replace(*each), words.items(), line)
        name, given, value = filled.partition("=")
        if given and name.isupper():
            words[f"${name}"] = value.strip('"')
        elif filled:
            yield shlex.split(filled, comments=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [*BY_USER, "commands.md"])
def test_pages_run_from_top_to_bottom(name, monkeypatch, tmp_path):
    """Python and commands in the order of the page, in one process: a program of its own for each takes seconds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPPPSYNTH_YES")
    names, words = {}, {}
    blocks = re.findall(
        r"^( *)```(python|shell)\n(.*?)^\1```", (ROOT / "docs" / name).read_text(), re.DOTALL | re.MULTILINE
    )
    assert blocks
    for _, language, block in blocks:
        code = textwrap.dedent(block)
        if language == "python":
            exec(compile(code, name, "exec"), names)
            continue
        for program, *arguments in commands_of(code, words):
            assert program == "dpppsynth"
            done = CliRunner().invoke(app, arguments)
            assert done.exit_code == 0, f"{arguments}: {done.output[-2000:]}"


def test_the_criminologists_other_options_go_into_the_line_below_them(monkeypatch, tmp_path):
    """`keep-n` stood in the line, which options that hide n cannot take."""
    page = (ROOT / "docs/guides/criminologist.md").read_text()
    other = re.search(r"`(--skip-outside[^`]*)`,\s+without `--alpha`", page)[1]
    words = next(commands_of(re.search(r"```shell\n(.*?)```", page, re.DOTALL)[1], {}))
    start = words.index("--alpha")
    words[start : start + 2] = shlex.split(other)
    monkeypatch.chdir(tmp_path)
    Path("streets.geojson").write_text(json.dumps(dps.datasets.soho_streets().to_geojson()))
    done = CliRunner().invoke(app, ["check", *words[3:]])
    assert done.exit_code == 0, done.output


def in_tables():
    """Code in the README's tables."""
    rows = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("|")]
    return re.findall(r"`([^`]+)`", "\n".join(rows))


def test_options_in_the_tables_of_the_readme_exist():
    named = {word for code in in_tables() for word in code.split() if word.startswith("--")}
    assert {"--method", "--types", "--by", "--covariates"} < named
    shown = CliRunner().invoke(app, ["help", "synthesize", "all"], env={"COLUMNS": "200"}).output
    assert named <= set(re.findall(r"--[a-z][a-z-]*", shown))


@pytest.mark.exhaustive
@pytest.mark.parametrize("code", [code for code in in_tables() if code.startswith("--")])
def test_options_in_the_tables_of_the_readme_go_together(code, monkeypatch, tmp_path):
    """`check` takes each cell with the public parameters that it leaves open; a layer's file is refused as missing."""
    monkeypatch.chdir(tmp_path)
    Path("streets.geojson").write_text(json.dumps(dps.datasets.soho_streets().to_geojson()))
    rest = "--epsilon 1 --crs EPSG:27700"
    rest += "" if "--method" in code else " --method lgcp"
    rest += "" if "heatmap" in code or "bounded-error" in code else " --alpha 25"
    rest += " --n-by 200,192" if "--by" in code else "" if "heatmap" in code else " --n 392"
    rest += "" if "--network" in code else " --window 529100,180680,529770,181350"
    done = CliRunner().invoke(app, ["check", *shlex.split(f"{code} {rest}")])
    if ".tif" in code:
        assert done.exit_code == 2, done.output
        assert re.search(r"(people|slope)\.tif", done.output), done.output
    else:
        assert done.exit_code == 0, done.output


def test_the_readme_is_read_in_three_minutes():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 100


def outside_of_code(path):
    """Text of a page without its blocks of code: `Words[ReleasePlan](text)` looks like a link."""
    return re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(path):
    """Names that headings of a page get: small letters, hyphens for blanks, nothing else."""
    headings = re.findall(r"^#+ (.+)$", outside_of_code(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name):
    found = re.findall(r"\]\(([^)\s]+)\)", outside_of_code(ROOT / name))
    for link in found:
        target, _, anchor = link.partition("#")
        page = (ROOT / name).parent / target if target else ROOT / name
        assert link.startswith("https://") or page.exists(), link
        assert not anchor or link.startswith("https://") or anchor in anchors(page), link
