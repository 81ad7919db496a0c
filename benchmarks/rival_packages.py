"""MST and AIM of the package smartnoise-synth, on grids of cells, beside the own MST and the best own histogram.

The package stands in an environment of its own, whose Python is named. Neighbours differ by a point, its own relation;
the numbers of cells are chosen on the judging half, and synthetic rows are so many that they add no noise.

    python -m venv ENV && ENV/bin/pip install smartnoise-synth
    OMP_NUM_THREADS=1 python benchmarks/rival_packages.py --data FOLDER --python ENV/bin/python \
        --out docs/results/rivals.md
"""

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import rival_methods
import rivals
from baselines.histograms import Cells, grid_labels
from held_out import Raster
from pages import command_line, fill, table

EPSILON, ROWS, SIDES, SETS = 1.0, 200_000, (16, 32, 64), ("bei", "airports")
HEADS = ("set", "n", "MST of the package", "AIM of the package", "own MST", "best own histogram")
# Read cells, a row and a column each, and write synthetic ones.
PROGRAM = """
import sys
import pandas
from snsynth import Synthesizer
name, epsilon, rows, source, target = sys.argv[1:]
cells = pandas.read_csv(source)
synthesizer = Synthesizer.create(name, epsilon=float(epsilon))
synthesizer.fit(cells, categorical_columns=["x", "y"], preprocessor_eps=0.0)
synthesizer.sample(int(rows)).to_csv(target, index=False)
"""


def synthetic(python: Path, name: str, cells: np.ndarray, epsilon: float) -> np.ndarray:
    """(ROWS, 2) synthetic cells from cells (n, 2)."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "cells.csv", Path(folder) / "synthetic.csv"
        np.savetxt(source, cells, fmt="%d", delimiter=",", header="x,y", comments="")
        command = [str(python), "-c", PROGRAM, name, str(epsilon), str(ROWS), str(source), str(target)]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603
        return np.loadtxt(target, delimiter=",", skiprows=1).astype(int)


def candidates(python: Path, name: str, case: rivals.Case, epsilon: float) -> Iterator[tuple[Raster, np.ndarray]]:
    """Densities of a package's synthetic cells, for all numbers of cells."""
    raster = case.rasters[rival_methods.PIXELS]
    pixels = np.column_stack(raster.pixels(case.known.xy))
    for side in SIDES:
        i, j = synthetic(python, name, pixels * side // rival_methods.PIXELS, epsilon).T
        masses = np.bincount(i * side + j, minlength=side**2).astype(float)
        cells = Cells(grid_labels(rival_methods.PIXELS, side), masses)
        yield raster, cells.density(raster.inside, masses.sum(), clipped=True)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of files NAME.csv.gz")
    parser.add_argument("--python", type=Path, required=True, help="Python of the environment with smartnoise-synth")
    args = parser.parse_args()
    rows = []
    for case in rivals.cases(args.data, list(SETS)):
        if len(case.known) < 1000:
            continue
        found = [case.best(candidates(args.python, name, case, EPSILON), rivals.EVEN) for name in ("mst", "aim")]
        own = rivals.histograms(case, "add/remove", EPSILON, rivals.Kept(None))
        told = [f"{score:.3f}, {100 * distance:.2f}" for score, distance in found]
        best, near = max(own, key=lambda name: own[name][0]), min(own, key=lambda name: own[name][1])
        told += [f"{own['MST'][0]:.3f}, {100 * own['MST'][1]:.2f}"]
        told += [f"{own[best][0]:.3f} {best}, {100 * own[near][1]:.2f} {near}"]
        rows.append([case.name, str(len(case.known)), *told])
        print(*rows[-1], flush=True)
        fill(args.out, "packages", table(HEADS, rows))


if __name__ == "__main__":
    main()
