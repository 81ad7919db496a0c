"""Libraries that commands load: those that only releases, readers and pictures need stay out of the others."""

import subprocess
import sys
from pathlib import Path

import pytest

STORED = Path(__file__).resolve().parents[1] / "data" / "releases_v1"
PLACE = ["--epsilon", "1", "--alpha", "100", "--window", "0,0,4000,4000", "--n", "1500"]
COMMANDS = {
    "help": ["--help"],
    "check of a field": ["check", "--mechanism", "lgcp-tents", *PLACE],
    "check of counts": ["check", "--mechanism", "laplace-cells", *PLACE],
    "verify a field": ["verify", str(STORED / "lgcp-tents")],
    "verify counts": ["verify", str(STORED / "laplace-cells")],
}
OUT = {
    "arviz", "dask", "geopandas", "matplotlib", "nutpie", "pandas", "pymc", "pyogrio", "pytensor", "rasterio", "xarray",
    "scipy.fft", "scipy.interpolate", "scipy.linalg", "scipy.optimize", "scipy.signal", "scipy.sparse", "scipy.spatial",
    "scipy.special", "scipy.stats",
}  # fmt: skip
# Draws of this old release are read by SciPy's reader of netCDF 3, which loads its sparse matrices.
ALLOWED = {"verify a field": {"scipy.sparse"}}
# Modules of all libraries and of the package: some 800 for the most, and some 200 more for that reader's.
MOST, READERS = 820, 190
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


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_loads_what_it_needs(name, tmp_path):
    call = [sys.executable, "-c", RUN, *COMMANDS[name]]
    said = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    status, *modules = said.split()
    assert status == "0"
    assert "dpppsynth.cli.program" in modules
    allowed = ALLOWED.get(name, set())
    assert not (OUT - allowed) & set(modules)
    assert len(modules) <= MOST + READERS * len(allowed)
