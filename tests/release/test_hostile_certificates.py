"""Certificates that ask for very much: limits of size refuse them at once, and a time limit ends what is left."""

import json
import shutil
import threading
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from support.forgery import at, read, reseal
from support.seams import derived_once
from typer.testing import CliRunner

from dpppsynth.cli import app
from dpppsynth.core.errors import DpppsynthError, TooLargeError
from dpppsynth.local import DiskAreaMechanism
from dpppsynth.mechanisms.local import grid_statistic
from dpppsynth.privacy import verify
from dpppsynth.release import load_release
from dpppsynth.release import verify as verification
from dpppsynth.spatial.domains import Window
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.synthesizers import KernelSynthesizer, LaplaceSynthesizer

STORED = Path(__file__).parents[1] / "data" / "releases"
NAMES = sorted(path.name for path in STORED.iterdir() if path.is_dir())
# Seconds and bytes that a refusal may take here.
QUICK, LITTLE = 30.0, 2**29


def numbers(value, path=()):
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield from numbers(child, (*path, key))


def rewritten(folder, *changes, within="parameters"):
    """A certificate with other parameters, or with other entries of it all, resealed."""
    cert = read(folder)
    for path, value in changes:
        at(cert[within] if within else cert, path[:-1])[path[-1]] = value
    reseal(folder, cert)
    return cert


@pytest.fixture
def public(tmp_path):
    return lambda name: shutil.copytree(STORED / name, tmp_path / "public")


def nested(levels):
    return {"a": nested(levels - 1)} if levels else {}


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("laplace-tents", [(("mesh", "shape"), [1600, 1600])]),
        ("laplace-tents", [(("mesh",), nested(70))]),
        ("laplace-tents", [(("mesh", "shape"), [10**29, 10**29])]),
        ("laplace-cells", [(("mesh", "shape"), [10**9, 10**9])]),
        ("laplace-cells-streets", [(("mesh", "resolution"), 1e-9)]),
        ("laplace-tents-streets", [(("mesh", "shape"), [10**5, 10**5])]),
        ("lgcp-tents", [(("estimator", "mesh", "shape"), [3001, 3001])]),
        ("lgcp-moved", [(("mesh", "shape"), [1400, 1400])]),
        ("marked-moved", [(("mesh", "shape"), [1000, 1000])]),
        ("marked-moved", [(("marks", "types", "values"), list(map(str, range(10**5))))]),
        ("lgcp-field", [(("mesh", "shape"), [100, 100])]),
        ("lgcp-posterior-draw", [(("mesh", "shape"), [100, 100])]),
        ("lgcp-kim-lim-3.8", [(("mesh", "shape"), [300, 300])]),
        ("kernel-diffusion", [(("mesh", "resolution"), 1e-6)]),
        ("pair-sums-streets", [(("radii", 0), 1e-9)]),
        ("uniform-grid", [(("columns",), 10**5), (("rows",), 10**5)]),
        ("heatmap", [(("mesh", "shape"), [2049, 2049])]),
        ("hybrid-area", [(("randomizer", "radius"), 10**9)]),
        ("subset-exponential", [(("randomizer", "cells"), 10**4)]),
        ("trajectories", [(("cells",), 10**6)]),
        ("strata", [(("strata", 1, "parameters", "mesh", "shape"), [3001, 3001])]),
        ("strata", [(("strata",), [{}] * 10**4)]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_sizes_are_refused_at_once(name, changes, public):
    folder = public(name)
    rewritten(folder, *changes)
    started = time.process_time()
    tracemalloc.start()
    try:
        with pytest.raises(DpppsynthError):
            verify(folder).require()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert time.process_time() - started < QUICK
    assert peak < LITTLE


@pytest.mark.slow
def test_the_grids_of_a_made_up_plan_are_not_made(public, monkeypatch):
    """An adaptive grid whose first level would have millions of cells, and a second level that is stated to fit."""
    folder, made = public("adaptive-grid"), []
    monkeypatch.setattr(grid_statistic, "even_cells", lambda first, sides: made.append(len(first)) or first)
    monkeypatch.setattr(grid_statistic, "adaptive_cells", lambda first, *_, **__: made.append(len(first)) or first)
    rewritten(
        folder,
        (("n",), 10**8),
        (("reports",), [2 * 10**7, 8 * 10**7]),
        (("cells",), 6_500_000),
        (("alpha",), [100.0, 1.0]),
    )
    assert not verify(folder).holds
    assert max(made, default=0) <= 1


@pytest.fixture(scope="module")
def shuffled(tmp_path_factory):
    """A release with a statement on shuffled reports, which no stored one has."""
    window = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
    pattern = PointPattern(np.random.default_rng(1).uniform(0, 1000, (2100, 2)), window)
    mechanism = DiskAreaMechanism(1.0, cells=4, shuffled=2000, shuffle_delta=1e-6)
    return mechanism.release(pattern).save(tmp_path_factory.mktemp("shuffled") / "public")


@pytest.fixture
def remembered():
    """Numbers beside the parameters leave the bound as it is."""
    with derived_once():
        yield


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [*NAMES, "shuffled"])
def test_no_number_keeps_it_busy(name, public, request, remembered):
    """Every number of a certificate is made huge, parameters large or tiny too, alone: there is an answer, and soon."""
    folder = public(request.getfixturevalue("shuffled") if name == "shuffled" else name)
    original = (folder / "certificate.json").read_text()
    for path, value in numbers(json.loads(original)):
        values = (10**29, 10**6) if isinstance(value, int) else (1e300, 1e-29)
        for huge in values[: 1 + (path[0] == "parameters")]:
            rewritten(folder, (path, huge), within="")
            started = time.process_time()
            try:
                assert not verify(folder).holds or path[-1] in DECLARED or path == ANY_RADIUS, path
            except TooLargeError:
                pytest.fail(f"{path} = {huge} is not refused for its size")
            except DpppsynthError:
                pass
            assert time.process_time() - started < QUICK, path
            (folder / "certificate.json").write_text(original)


# Of a bound that holds for every radius.
ANY_RADIUS = ("guarantee", "relation", "alpha")
# Numbers that the custodian declares and no bound follows from.
DECLARED = {"n", "expected_n", "sigma", "epsilon", "length_scale", "max_iter", "tolerance", "margin", "bandwidth"}
DECLARED |= {"smoothing", "decay", "power", "start", "end", "time_range", *range(20)}


class TestTime:
    """Verifying that takes long within the sizes is ended."""

    @pytest.fixture
    def endless(self, monkeypatch):
        """A derivation that never ends, unless it is made to; the threads that run it."""
        running = []

        def derive(*_):
            running.append(threading.current_thread())
            while True:
                time.sleep(0.001)

        monkeypatch.setattr(verification, "rederive", derive)
        monkeypatch.setattr(verification, "SECONDS", 0.3)
        return running

    def test_is_limited_and_what_runs_ends(self, endless, public):
        folder = public("laplace-tents")
        for opener in (verify, load_release):
            with pytest.raises(TooLargeError, match=r"more than 0.3 seconds.*too large to verify; use --no-limit"):
                opener(folder)
        assert len(endless) == 2
        for thread in endless:
            thread.join(QUICK)
            assert not thread.is_alive()

    def test_the_command_names_the_remedy(self, endless, public):
        shown = CliRunner().invoke(app, ["verify", str(public("laplace-tents"))])
        assert shown.exit_code == 2
        assert "use --no-limit" in shown.output.replace("\n", " ")

    def test_is_not_limited_where_the_publisher_is_trusted(self, public, monkeypatch):
        derive = verification.rederive

        def late(*args):
            time.sleep(0.5)
            return derive(*args)

        monkeypatch.setattr(verification, "rederive", late)
        monkeypatch.setattr(verification, "SECONDS", 0.1)
        folder = public("laplace-tents")
        with pytest.raises(TooLargeError):
            verify(folder)
        assert verify(folder, limit=False).holds
        assert CliRunner().invoke(app, ["verify", str(folder), "--no-limit"]).exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cells", "kernel"])
def test_a_large_release_is_verified_unasked(kind, tmp_path):
    """Synthetic patterns of 10^5 points."""
    window = Window.rectangle(0, 0, 10_000, 10_000, "EPSG:27700")
    pattern = PointPattern(np.random.default_rng(1).uniform(0, 10_000, (100_000, 2)), window)
    if kind == "cells":
        synthesizer = LaplaceSynthesizer(1.0, alpha=100.0, spacing=500.0, postprocess="plain")
    else:
        synthesizer = KernelSynthesizer(2.0, delta=1e-6, alpha=100.0)
    folder = synthesizer.release(pattern).save(tmp_path / "public")
    started = time.process_time()
    assert verify(folder).holds
    assert time.process_time() - started < verification.SECONDS / 3
