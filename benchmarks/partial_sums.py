"""Partial sums of points in many files: one process, two, and a Dask cluster; beside the whole pattern in memory.

    python benchmarks/partial_sums.py [--folder /tmp/points] [--rows 1000000 100000000] --out docs/results/scale.md

The files, GeoParquet of a million points each, take 1.7 GB for 10^8 rows, and are deleted in the end. Every case runs
in a process of its own. The numbers of all engines must be the same.
"""

import hashlib
import resource
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measuring import in_fresh_process, memory, run_case, timed
from pages import command_line, fill, table

from dpppsynth import AlphaNeighbours, LaplaceSynthesizer, Window
from dpppsynth.contract.partial_sums import Partial, total
from dpppsynth.core.workers import worker_pool
from dpppsynth.io import PointBatches, read_batches, read_pattern

SIDE = 30_000
WINDOW = Window.rectangle(0, 0, SIDE, SIDE, "EPSG:27700")
FILE = 1_000_000
# The machine that the published numbers are from has two cores.
WORKERS = 2
# Where the whole pattern still fits into memory.
WHOLE = 10**7
ENGINES = ("whole pattern", "batches", "two processes", "dask")
HEADS = ("rows", "engine", "seconds", "million rows a second", "memory of the largest process")


def write(folder: str, n: int) -> dict[str, Any]:
    """Points about forty centres, a million to a file."""
    import geopandas
    import shapely

    centres = np.random.default_rng(9).uniform(0.1 * SIDE, 0.9 * SIDE, (40, 2))
    for k, size in enumerate([FILE] * (n // FILE) or [n]):
        rng = np.random.default_rng(k)
        xy = np.clip(centres[rng.integers(40, size=size)] + rng.normal(0, 900, (size, 2)), 0, SIDE)
        points = geopandas.GeoDataFrame({"kind": ["theft"] * size}, geometry=shapely.points(xy), crs="EPSG:27700")
        points.to_parquet(Path(folder) / f"points_{k:03}.parquet")
    return {}


def by_process(plan: Any, files: list[PointBatches]) -> Iterator[Partial]:
    with worker_pool(WORKERS) as pool:
        yield from pool.map(plan.partial, files)


def by_dask(plan: Any, files: list[PointBatches]) -> Iterator[Partial]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield from client.gather(client.map(plan.partial, files, pure=False))


def by_pattern(plan: Any, files: list[PointBatches]) -> Iterator[Partial]:
    from dpppsynth.spatial.patterns import PointPattern

    yield plan.partial(PointPattern(np.vstack([read_pattern(file.path, WINDOW).xy for file in files]), WINDOW))


def case(folder: str, n: int, engine: str) -> dict[str, Any]:
    """Seconds, peak memory (MB) and a hash of the sums of all files."""
    plan = LaplaceSynthesizer(
        1.0, basis="tents", spacing=SIDE / 150, postprocess="plain", relation=AlphaNeighbours(25.0)
    ).plan(WINDOW, n=n)
    files = [read_batches(path, WINDOW) for path in sorted(Path(folder).glob("*.parquet"))]
    ways: dict[str, Callable[..., Iterator[Partial]]] = {
        "whole pattern": by_pattern, "batches": map, "two processes": by_process, "dask": by_dask
    }  # fmt: skip
    way = ways[engine]
    parts = (lambda: way(plan.partial, files)) if engine == "batches" else (lambda: way(plan, files))
    found, seconds = timed(lambda: total(parts()), time.perf_counter)
    largest = max(memory(), memory(resource.RUSAGE_CHILDREN))
    return {"seconds": seconds, "memory": largest, "sums": hashlib.sha256(found.numbers.tobytes()).hexdigest()}


def rows(folder: Path, sizes: list[int]) -> list[list[str]]:
    """All engines at all sizes; RuntimeError where their numbers differ."""
    lines = []
    for n in sizes:
        folder.mkdir(parents=True)
        try:
            # In a process of its own: another one begins with the peak of the one that starts it.
            in_fresh_process(__file__, "write", str(folder), n)
            found = {
                engine: in_fresh_process(__file__, "case", str(folder), n, engine)
                for engine in ENGINES
                if engine != "whole pattern" or n <= WHOLE
            }
        finally:
            shutil.rmtree(folder)
        if len({each["sums"] for each in found.values()}) > 1:
            msg = "the engines count different numbers"
            raise RuntimeError(msg)
        for engine, each in found.items():
            size, rate = f"{n:,}".replace(",", " "), n / 1e6 / each["seconds"]
            lines.append([size, engine, f"{each['seconds']:.1f}", f"{rate:.2f}", f"{each['memory']:.0f} MB"])
            print(*lines[-1], sep=" | ", flush=True)
    return lines


def main() -> None:
    parser = command_line(str(__doc__), "page whose table is filled")
    parser.add_argument("--case")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/points"))  # noqa: S108
    parser.add_argument("--rows", type=int, nargs="+", default=[10**6, 10**7, 10**8])
    given = parser.parse_args()
    if given.case:
        run_case(given.case, case, write)
        return
    lines = table(HEADS, rows(given.folder, given.rows))
    print("\n".join(lines))
    fill(given.out, "engines", lines)


if __name__ == "__main__":
    main()
