"""Peak memory of reports about trajectories in files: rows, persons and cells.

python benchmarks/local_trip_files.py

Every case draws the first round of LDPTrace for a Parquet file, in a process of its own. The page
docs/local.md states what it prints.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from measuring import in_fresh_process, memory, run_case

SIDE, BLOCK = 1000.0, 1_000_000
# Persons, rows of each, and cells along a side.
CASES = ((400_000, 10, 4), (40_000, 100, 32), (40_000, 400, 32), (1_600_000, 10, 4))


def write(path: Path, persons: int, each: int) -> None:
    """Random places of persons, whose rows are mixed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    who = rng.permutation(np.repeat(np.arange(persons), each))
    schema = pa.schema([("x", pa.float64()), ("y", pa.float64()), ("who", pa.string())])
    with pq.ParquetWriter(path, schema) as file:
        for start in range(0, len(who), BLOCK):
            labels = [f"t{k}" for k in who[start : start + BLOCK]]
            xy = rng.uniform(0, SIDE, (2, len(labels)))
            file.write_table(pa.table([*xy, labels], schema=schema))


def drawn(folder: str, cells: int) -> dict[str, Any]:
    """Peak memory of drawing, in MB."""
    from dpppsynth import Window
    from dpppsynth.local import LDPTrace, perturb_file

    asked = LDPTrace(epsilon=10.0, cells=cells, max_length=20, user="who").first
    points, out = Path(folder, "trips.parquet"), Path(folder, "reports.parquet")
    return {"reports": perturb_file(asked, points, out, window=Window.rectangle(0, 0, SIDE, SIDE)), "MB": memory()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case")
    given = parser.parse_args()
    if given.case:
        run_case(given.case, drawn)
        return
    for persons, each, cells in CASES:
        with TemporaryDirectory() as folder:
            write(Path(folder, "trips.parquet"), persons, each)
            found = in_fresh_process(__file__, "drawn", folder, cells)
        print(f"{persons * each} rows of {persons} persons, {cells} x {cells} cells: {found['MB']:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
