"""Time and memory of local mechanisms: 10^7 clients, and 10^8 reports in files. Tables: docs/results/local_scale.md.

    python benchmarks/local_scale.py [--folder /tmp/reports] [--reports 100000000] [--clients 10000000]

The files of reports take about 2.5 GB there, and are deleted in the end. Every case runs in a process of its own.
"""

import argparse
import hashlib
import resource
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
from measuring import in_fresh_process, memory, run_case
from pages import fill, table

from dpppsynth import Window
from dpppsynth.local import (
    DiskAreaMechanism,
    HybridUniformExponential,
    MultidimensionalSquareWave,
    SEMGeoI,
    UniformGrid,
)
from dpppsynth.mechanisms.local.report_files import aggregate_files, write_reports

RESULTS = Path(__file__).parent.parent / "docs" / "results" / "local_scale.md"
WINDOW = Window.rectangle(0, 0, 1, 1)
CELLS, CHUNK = 15, 1_000_000
# Two of everything: the machine that the published numbers are from has two cores.
WORKERS = 2


def mechanism(name: str) -> Any:
    """The mechanism of a row: 15 by 15 cells at epsilon 3.5, SEM-Geo-I at 1 for each cell."""
    cells = {"disk-area": DiskAreaMechanism, "hybrid-area": HybridUniformExponential}
    cells |= {"square-wave": MultidimensionalSquareWave}
    if name in cells:
        return cells[name](epsilon=3.5, cells=CELLS)
    if name == "subset-exponential":
        return SEMGeoI(epsilon=1.0, cells=CELLS)
    return UniformGrid(WINDOW, epsilon=3.5, cells=CELLS, oracle=name)


LAWS = (
    "disk-area", "hybrid-area", "square-wave", "subset-exponential", "randomized-response", "local-hashing",
    "hadamard-response", "optimized-unary", "symmetric-unary", "subset-selection",
    "projective-response",
)  # fmt: skip


def values(n: int, seed: int) -> np.ndarray:
    """Values of n clients, most of whom are near the middle."""
    rng = np.random.default_rng(seed)
    i, j = np.clip(rng.normal(CELLS / 2, CELLS / 5, (2, n)), 0, CELLS - 1).astype(np.int64)
    return i * CELLS + j


def processor(who: int = resource.RUSAGE_SELF) -> float:
    """Processor seconds so far."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def digest(counts: np.ndarray) -> str:
    """A few digits that two equal arrays of counts share."""
    return hashlib.sha256(np.ascontiguousarray(counts, dtype=np.int64).tobytes()).hexdigest()[:12]


# --- Cases, each in a process of its own -----------------------------------------------------------------------------


def clients(name: str, n: int) -> dict[str, Any]:
    """Seconds to draw and to count the reports of n clients, secret bits, chunk by chunk."""
    law = mechanism(name)
    law.aggregate(law.clients(values(1000, 0)))
    before, drawing, counting = memory(), 0.0, 0.0
    for seed in range(n // CHUNK):
        held = values(CHUNK, seed)
        start = time.perf_counter()
        sent = law.clients(held)
        drawn = time.perf_counter()
        law.aggregate(sent)
        drawing, counting = drawing + drawn - start, counting + time.perf_counter() - drawn
    return {"draw": drawing, "count": counting, "memory": memory(), "before": before}


def by_choice(n: int) -> dict[str, Any]:
    """The rival of `clients`: numpy's choice from the matrix's columns, floating point and a seeded generator."""
    law = mechanism("disk-area")
    matrix, rng, drawing = law.matrix(), np.random.default_rng(1), 0.0
    for seed in range(n // CHUNK):
        held = values(CHUNK, seed)
        start = time.perf_counter()
        order = np.argsort(held, kind="stable")
        sizes = np.bincount(held, minlength=CELLS**2)
        sent = np.empty(CHUNK, dtype=np.int64)
        drawn = [rng.choice(len(matrix), size, p=matrix[:, k]) for k, size in enumerate(sizes)]
        sent[order] = np.concatenate(drawn)
        drawing += time.perf_counter() - start
    return {"draw": drawing, "memory": memory()}


def generate(name: str, folder: str, n: int, kind: str) -> dict[str, Any]:
    """Write files of reports, a million in each."""
    law, place = mechanism(name), Path(folder)
    place.mkdir(parents=True)
    start = time.perf_counter()
    for k in range(n // CHUNK):
        write_reports(law.clients(values(CHUNK, k)), place / f"part-{k:03}.{kind}", mechanism=law)
    size = sum(file.stat().st_size for file in place.iterdir())
    return {"seconds": time.perf_counter() - start, "bytes": size}


def repartition(folder: str, other: str) -> dict[str, Any]:
    """The same reports in files and row groups of other sizes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, place = np.random.default_rng(3), Path(other)
    place.mkdir(parents=True)
    files = sorted(Path(folder).glob("*.parquet"))[::-1]
    cuts = np.unique(rng.integers(0, len(files), 9)).tolist()
    for k, (a, b) in enumerate(zip([0, *cuts], [*cuts, len(files)], strict=True)):
        if a < b:
            with pq.ParquetWriter(place / f"{k}.parquet", pq.read_schema(files[0])) as writer:
                for file in files[a:b]:
                    writer.write_table(pa.table(pq.read_table(file)), row_group_size=int(rng.integers(10**5, 10**6)))
    return {"files": len(list(place.iterdir()))}


def aggregate(name: str, folder: str, workers: int) -> dict[str, Any]:
    """Seconds to count all files, start of the processes included, and peak memory of this one and of a worker."""
    law = mechanism(name)
    before, start, used = memory(), time.perf_counter(), processor()
    counts = aggregate_files(law, folder, workers=None if workers == 1 else workers)
    seconds = time.perf_counter() - start
    told = {"seconds": seconds, "memory": memory(), "before": before, "worker": memory(resource.RUSAGE_CHILDREN)}
    told |= {"cpu": processor() - used + processor(resource.RUSAGE_CHILDREN)}
    return told | {"digest": digest(counts.values), "n": counts.n}


def aggregate_cluster(name: str, folder: str) -> dict[str, Any]:
    """As `aggregate`, on a Dask cluster that is running already."""
    from distributed import Client, LocalCluster

    law = mechanism(name)
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        # Workers load the package before they are timed.
        client.run(lambda: __import__("dpppsynth.mechanisms.local.report_files"))
        start, used = time.perf_counter(), processor() + sum(client.run(processor).values())
        counts = aggregate_files(law, folder, client=client)
        seconds, cpu = time.perf_counter() - start, processor() + sum(client.run(processor).values()) - used
        worker = max(client.run(memory).values())
    return {
        "seconds": seconds,
        "cpu": cpu,
        "memory": memory(),
        "worker": worker,
        "digest": digest(counts.values),
        "n": counts.n,
    }


def in_memory(name: str, folder: str, how: str) -> dict[str, Any]:
    """The rivals: everything read into memory, then numpy's bincount or pandas' groupby."""
    import pandas as pd
    import pyarrow.parquet as pq

    law = mechanism(name)
    before, start, used = memory(), time.perf_counter(), processor()
    table = pq.read_table(folder, columns=list(law.randomizer.columns))
    box = np.arange(-law.randomizer.radius, CELLS + law.randomizer.radius)
    if how == "numpy":
        i, j = (table.column(name).to_numpy() for name in ("i", "j"))
        counts = np.bincount((i - box[0]) * len(box) + (j - box[0]), minlength=len(box) ** 2).reshape(len(box), -1)
    else:
        sizes = table.to_pandas().groupby(["i", "j"]).size()
        counts = sizes.reindex(pd.MultiIndex.from_product([box, box]), fill_value=0).to_numpy().reshape(len(box), -1)
    seconds, cpu, peak = time.perf_counter() - start, processor() - used, memory()
    # Corners of the box are no reports.
    law.randomizer.count(np.argwhere(counts) + box[0])
    inside = counts[*(_outputs(law) - box[0]).T]
    told = {"seconds": seconds, "cpu": cpu, "memory": peak, "before": before}
    return told | {"digest": digest(inside), "n": int(counts.sum())}


def _outputs(law: Any) -> np.ndarray:
    """(size, 2) cells that reports name, in the order of the counts."""
    radius = law.randomizer.radius
    side = np.arange(-radius, CELLS + radius)
    cells = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    possible = []
    for cell in cells:
        try:
            law.randomizer.count(cell[None])
        except ValueError:
            continue
        possible.append(cell)
    return np.array(possible)


CASES = (clients, by_choice, generate, repartition, aggregate, aggregate_cluster, in_memory)


def measured(name: str, *given: Any) -> dict[str, Any]:
    return in_fresh_process(__file__, name, *given)


# --- Tables ----------------------------------------------------------------------------------------------------------


def clients_table(n: int) -> list[str]:
    """Drawing and counting, by mechanism."""
    found = {name: measured("clients", name, n) for name in LAWS}
    rows = [
        [name, f"{got['draw']:.2f} s", f"{got['count']:.2f} s", megabytes(got, "memory"), megabytes(got, "before")]
        for name, got in found.items()
    ]
    rival = measured("by_choice", n)
    name = f"numpy's `choice`, disk-area ({rival['draw'] / found['disk-area']['draw']:.1f} times the time)"
    rows.append([name, f"{rival['draw']:.2f} s", "", megabytes(rival, "memory"), ""])
    return table(["mechanism", "draw", "count", "peak memory", "of it before"], rows)


def megabytes(got: dict[str, Any], name: str) -> str:
    return f"{got[name]:.0f} MB" if got.get(name) else ""


def files_table(folder: Path, n: int) -> list[str]:
    """Counting files of disk-area reports, in every way."""
    one, other, text = (str(folder / name) for name in ("parquet", "other", "csv"))
    made, csv = measured("generate", "disk-area", one, n, "parquet"), measured("generate", "disk-area", text, n, "csv")
    parts = measured("repartition", one, other)["files"]
    ours, several = "`aggregate_files`", f"`aggregate_files`, {WORKERS} processes"
    ways = {
        f"{ours}, one process, {files(n, 'Parquet', made)}": ("aggregate", "disk-area", one, 1),
        f"{several}, the same files": ("aggregate", "disk-area", one, WORKERS),
        f"{ours}, Dask cluster of {WORKERS} workers, the same files": ("aggregate_cluster", "disk-area", one),
        f"{several}, {parts} other Parquet files": ("aggregate", "disk-area", other, WORKERS),
        "rival: all in memory, `numpy.bincount`": ("in_memory", "disk-area", one, "numpy"),
        "rival: all in memory, `DataFrame.groupby`": ("in_memory", "disk-area", one, "pandas"),
    }
    got = {way: measured(*case) for way, case in ways.items()}
    assert len({each["digest"] for each in got.values()}) == 1
    assert {each["n"] for each in got.values()} == {n}
    base = next(iter(got.values()))["seconds"]
    got[f"{several}, other reports in {files(n, 'CSV', csv)}"] = measured("aggregate", "disk-area", text, WORKERS)
    rows = [[way, f"{each['seconds']:.1f}", f"{each['seconds'] / base:.2f}", *used(each)] for way, each in got.items()]
    return table(["way", "seconds", "ratio", "processor", "peak memory", "of a worker", "counts"], rows)


def files(n: int, kind: str, made: dict[str, Any]) -> str:
    return f"{n // CHUNK} {kind} files ({made['bytes'] / 1e6:.0f} MB)"


def used(got: dict[str, Any]) -> list[str]:
    """Processor time, memory, and digits that equal counts share."""
    return [f"{got['cpu']:.1f} s", megabytes(got, "memory"), megabytes(got, "worker"), got["digest"]]


def hashing_table(folder: Path, n: int) -> list[str]:
    """Counting files of local hashing, where every report is compared with every cell."""
    place = str(folder / "hashing")
    made = measured("generate", "local-hashing", place, n, "parquet")
    rows = []
    for workers in (1, WORKERS):
        got = measured("aggregate", "local-hashing", place, workers) | ({"worker": None} if workers == 1 else {})
        way = f"`aggregate_files`, processes: {workers}, {files(n, 'Parquet', made)}"
        rows.append([way, f"{got['seconds']:.1f}", *used(got)])
    return table(["way", "seconds", "processor", "peak memory", "of a worker", "counts"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/dpppsynth_reports"))  # noqa: S108 - a default to change
    parser.add_argument("--reports", type=int, default=100 * CHUNK)
    parser.add_argument("--clients", type=int, default=10 * CHUNK)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--case", help="run by this program itself")
    asked = parser.parse_args()
    if asked.case is not None:
        run_case(asked.case, *CASES)
        return
    shutil.rmtree(asked.folder, ignore_errors=True)
    try:
        fill(asked.out, "drawing", clients_table(asked.clients))
        fill(asked.out, "counting", files_table(asked.folder, asked.reports))
        fill(asked.out, "hashing", hashing_table(asked.folder, max(asked.reports // 10, CHUNK)))
    finally:
        shutil.rmtree(asked.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
