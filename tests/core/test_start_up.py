"""Libraries that commands load: those that only releases, readers and pictures need stay out of the others."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpppsynth import LaplaceSynthesizer, LGCPSynthesizer, PointPattern, Window

STORED = Path(__file__).resolve().parents[1] / "data" / "releases"
PLACE = ["--epsilon", "1", "--alpha", "100", "--window", "0,0,4000,4000", "--n", "1500"]
SYNTHESIZERS = {
    "lgcp-tents": LGCPSynthesizer(1.0, alpha=100.0),
    "laplace-cells": LaplaceSynthesizer(1.0, alpha=100.0),
}
COMMANDS = {
    "help": ["--help"],
    "check of a field": ["check", "--mechanism", "lgcp-tents", *PLACE],
    "check of counts": ["check", "--mechanism", "laplace-cells", *PLACE],
    "verify a field": ["verify", "lgcp-tents"],
    "verify counts": ["verify", "laplace-cells"],
    "verify an old field": ["verify", str(STORED / "lgcp-tents")],
    "verify old counts": ["verify", str(STORED / "laplace-cells")],
}
OUT = {
    "arviz", "dask", "geopandas", "matplotlib", "nutpie", "pandas", "pymc", "pyogrio", "pytensor", "rasterio", "xarray",
    "scipy.fft", "scipy.interpolate", "scipy.linalg", "scipy.optimize", "scipy.signal", "scipy.sparse", "scipy.spatial",
    "scipy.special", "scipy.stats",
}  # fmt: skip
# Modules of all libraries and of the package, and how many more are loaded for what only some releases need: PyProj,
# with Python's HTTP client, for a coordinate reference system, and h5py for posterior draws.
MOST, MORE = 700, {"verify a field": 45, "verify counts": 45, "verify an old field": 45 + 45, "verify old counts": 45}
RUN = """
import contextlib, io, sys
from dpppsynth.cli import main
sys.argv = ["dpppsynth", *sys.argv[1:]]
status = None
with contextlib.redirect_stdout(io.StringIO()):
    try:
        main()
    except SystemExit as end:
        status = end.code
print(status or 0, *sorted(sys.modules))
"""


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """A folder with a release of each of the two mechanisms, without a coordinate reference system."""
    folder = tmp_path_factory.mktemp("releases")
    places = np.random.default_rng(1).uniform(0, 4000, (1500, 2))
    pattern = PointPattern(places, Window.rectangle(0, 0, 4000, 4000))
    for name, synthesizer in SYNTHESIZERS.items():
        synthesizer.release(pattern).save(folder / name)
    return folder


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_loads_what_it_needs(name, releases):
    call = [sys.executable, "-c", RUN, *COMMANDS[name]]
    said = subprocess.run(call, cwd=releases, capture_output=True, text=True, check=True).stdout
    status, *modules = said.split()
    assert status == "0"
    assert "dpppsynth.cli.program" in modules
    assert not OUT & set(modules)
    assert len(modules) <= MOST + MORE.get(name, 0)
