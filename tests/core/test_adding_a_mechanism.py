"""The mechanism of examples/strips, which docs/adding_a_mechanism.md shows, put beside the package.

Nothing but its folder and its line in the registry is added, in a process of its own.
"""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/adding_a_mechanism.md").read_text("utf-8")
STRIPS_FOLDER = ROOT / "examples" / "strips"
LINE = re.search(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE).group(1)
# The line in the registry, run as Python does when it stands there.
REGISTER = """
from pathlib import Path
import dpppsynth.mechanisms
from dpppsynth.contract import registry
dpppsynth.mechanisms.__path__.append(str(Path(__file__).parent / "mechanisms"))
HOME = registry.HOME
registry.PLACES |= {{
{line}}}
"""
# Commands and scripts one after another in one process, as each would import the package for seconds.
PROGRAM = """
import contextlib, io, json, sys, traceback
import strips_registered
from typer.testing import CliRunner
from dpppsynth.cli import app

for line in sys.stdin:
    asked = json.loads(line)
    if isinstance(asked, list):
        done = CliRunner().invoke(app, asked)
        answer = [done.exit_code, done.output if done.exit_code else done.stdout]
    else:
        answer = [0, ""]
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(asked, {})
        except Exception:
            answer = [1, traceback.format_exc()]
    print(json.dumps(answer), flush=True)
"""
WINDOW = ["--window", "0,0,1000,1000", "--crs", "EPSG:27700"]
STRIPS = ["--mechanism", "strip-cells", "--epsilon", "1", "--alpha", "25", "--strips", "8"]
N = 300


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the mechanism, and a module that registers it."""
    place = tmp_path_factory.mktemp("strips")
    shutil.copytree(STRIPS_FOLDER, place / "mechanisms/strips", ignore=shutil.ignore_patterns("__pycache__"))
    (place / "strips_registered.py").write_text(REGISTER.format(line=LINE))
    points = np.random.default_rng(2).uniform(0, 1000, (N, 2))
    with (place / "points.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("x", "y"), *points.tolist()])
    return place


def environment(place):
    paths = [str(place), str(ROOT), str(ROOT / "tests")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def run(place):
    """Output of a process that knows the mechanism, for the words of a command, or for a script."""
    errors = place / "errors.txt"
    with (
        errors.open("w") as stderr,
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            cwd=place,
            env=environment(place),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):

        def ask(*words):
            script = words[0] if len(words) == 1 else [str(word) for word in words]
            process.stdin.write(json.dumps(script) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            assert answer, errors.read_text()
            code, said = json.loads(answer)
            assert code == 0, said
            return said

        yield ask
        process.stdin.close()


@pytest.fixture(scope="module")
def saved(place, run):
    run("synthesize", "points.csv", *WINDOW, *STRIPS, "--out", "public")
    return place / "public"


def test_the_page_shows_every_file():
    files = {each.name for each in STRIPS_FOLDER.glob("*.py")}
    assert set(re.findall(r"^\| \[`mechanisms/strips/(\w+\.py)`\]", PAGE, re.MULTILINE)) == files
    shown = re.findall(r"^```\{literalinclude\} \.\./examples/strips/(\w+\.py)$", PAGE, re.MULTILINE)
    assert {*shown, "__init__.py"} == files


@pytest.mark.slow
def test_conformance(place):
    """The suite as it stands, on the examples of this mechanism."""
    options = ["-p", "strips_registered", "-p", "no:cacheprovider", "-q", "--assert=plain", "--rootdir", ROOT]
    options += ["-c", ROOT / "pyproject.toml", "-k", "strip-cells", ROOT / "tests/contract/test_conformance.py"]
    command = [sys.executable, "-m", "pytest", *options]
    done = subprocess.run(command, cwd=place, env=environment(place), capture_output=True, text=True, check=False)
    said = done.stdout
    assert done.returncode == 0, said + done.stderr
    passed = int(re.search(r"(\d+) passed", said).group(1))
    assert passed >= 8 * 6
    assert "failed" not in said


@pytest.mark.slow
def test_check_is_what_verify_finds(run, saved):
    promised = json.loads(run("check", *WINDOW, *STRIPS, "--n", N, "--json"))
    assert promised["guarantee"]["profile"]["epsilon"] == pytest.approx(1, abs=1e-12)
    found = json.loads(run("verify", saved, "--json"))
    assert found["holds"]
    certificate = json.loads((saved / "certificate.json").read_text())
    assert certificate["mechanism"] == "strip-cells"
    assert certificate["guarantee"]["profile"] == promised["guarantee"]["profile"]


@pytest.mark.slow
def test_table_and_help(run):
    table = run("check", *WINDOW, *STRIPS, "--n", N)
    assert "strip-cells" in table
    assert "--strips" in run("help", "check", "all")


@pytest.mark.slow
def test_the_row_of_the_page_is_the_one_that_is_written(run):
    row = re.search(r"^```markdown\n(.*?)\n```", PAGE, re.DOTALL | re.MULTILINE).group(1)
    script = f"""
import sys; sys.path.insert(0, {str(ROOT / "docs/_ext")!r})
from generated_tables import mechanism_row
assert " | ".join(mechanism_row("strip-cells")) == {row.strip("| ")!r}
"""
    run(script)


@pytest.mark.slow
def test_a_saved_release_is_opened_and_sampled(run, saved):
    script = f"""
import strips_registered, dpppsynth as dps
release = dps.load_release({str(saved)!r})
assert release.mechanism == "strip-cells" and len(release.statistic.lattice) == 8
assert abs(release.intensity.total - {N}) < 1e-6
assert [pattern.domain for pattern in release.sample(2)] == [release.domain] * 2
"""
    run(script)


AUDIT = """
import strips_registered, dpppsynth as dps
from dataclasses import fields, replace
from dpppsynth.mechanisms.strips.synthesizer import StripCounts, StripsSynthesizer
from dpppsynth.privacy.noise import laplace_noise

class Halved(StripCounts):
    def source(self, rng):
        return laplace_noise(self.scale / 2, sensitivity=self.sensitivity, epsilon=2 * self.epsilon, rng=rng)

plan = StripsSynthesizer(1.0, alpha=25.0, strips=8).plan(dps.Window.rectangle(0, 0, 1000, 1000), n=40)
honest = plan.statistic
halved = Halved(*(getattr(honest, each.name) for each in fields(honest)))
for statistic, trials, wrong in ((honest, 300, False), (halved, 1000, True)):
    found = dps.audit(replace(plan, statistic=statistic), trials=trials)
    assert found.violated == wrong, str(found)
"""


@pytest.mark.slow
def test_an_audit_finds_a_planted_fault_and_nothing_else(run):
    """Half the noise; a true claim is refuted with probability 1e-6 at most."""
    run(AUDIT)


@pytest.mark.slow
def test_a_saved_release_is_audited_and_reported(place, run, saved):
    said = run("audit", saved, "--trials", 500)
    assert "strip-cells" in said
    run("report", saved, "--out", "report.html")
    assert "vertical strips" in (place / "report.html").read_text("utf-8")
