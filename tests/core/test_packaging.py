"""The installed package: a quick start, every public name, one version, one list of packages."""

import importlib
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dpppsynth

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = PROJECT["tool"]["setuptools"]["packages"]
FOLDERS = PROJECT["tool"]["setuptools"]["package-dir"]
LINKED = ["linear_network", "models"]

HEAVY = ["arviz", "geopandas", "matplotlib", "nutpie", "opendp", "pandas", "pymc", "pyproj", "pytensor", "xarray"]
IMPORT = "import dpppsynth"
HELP = """
import contextlib, io, sys
from dpppsynth.cli import main
sys.argv = ["dpppsynth", "--help"]
with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
    main()
if "check" not in said.getvalue():
    sys.exit("no help was shown")
"""


@pytest.mark.parametrize("code", [IMPORT, HELP], ids=["import", "help"])
def test_starting_loads_nothing_heavy(code, tmp_path):
    code += f"\nimport sys\nprint([name for name in {HEAVY} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("name", dpppsynth.__all__)
def test_every_public_name_resolves(name):
    assert getattr(dpppsynth, name) is not None
    assert name in dir(dpppsynth)


@pytest.mark.parametrize("stub", sorted((ROOT / "dpppsynth").glob("[a-z]*.pyi")), ids=lambda stub: stub.stem)
def test_every_name_of_a_stub_resolves_from_its_module(stub):
    """Names that are public under another one too."""
    module = importlib.import_module(f"dpppsynth.{stub.stem}")
    stated = re.findall(r" as (\w+)$|^(\w+) = ", stub.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert module.__all__ == dir(module) == sorted(one or other for one, other in stated)
    assert all(getattr(module, name) is not None for name in module.__all__)
    with pytest.raises(AttributeError, match="no_such_name"):
        module.no_such_name  # noqa: B018


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no_such_name"):
        dpppsynth.no_such_name  # noqa: B018


def test_there_is_one_version():
    assert dpppsynth.__version__ == PROJECT["project"]["version"] == importlib.metadata.version("dpppsynth")
    for file, words in (
        ("CHANGELOG.md", "\n## {} "),
        ("CITATION.cff", "\nversion: {}\n"),
        ("SECURITY.md", "({} is"),
    ):
        assert words.format(dpppsynth.__version__) in (ROOT / file).read_text(), file


def test_the_program_starts_the_command_line():
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="dpppsynth")
    assert callable(script.load())


def test_every_package_of_the_checkout_is_installed():
    top = {"dpppsynth": ROOT / "dpppsynth"} | {f"dpppsynth.{name}": ROOT / name for name in LINKED}
    found = set()
    for package, folder in top.items():
        for init in folder.rglob("__init__.py"):
            found.add(".".join([package, *init.parent.relative_to(folder).parts]))
    assert found == set(PACKAGES)


@pytest.mark.parametrize("name", LINKED)
def test_links_are_relative_and_agree_with_the_build(name):
    link = ROOT / "dpppsynth" / name
    target = link.readlink().as_posix() if link.is_symlink() else link.read_text(encoding="utf-8").strip()
    assert target == f"../{name}"
    assert FOLDERS[f"dpppsynth.{name}"] == name
