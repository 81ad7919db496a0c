"""Accuracy of local mechanisms: the experiments of two papers, on simulated data and shipped ones, with rivals.

Fills the tables of docs/results/local.md, and draws its pictures:

    OMP_NUM_THREADS=1 python benchmarks/local.py --out docs/results

Nothing here is private: truths are compared with estimates, counts are drawn from their law at once (`fast=True`), and
the noise is seeded.
"""

import argparse
import csv
import time
from pathlib import Path

import local_areas
import local_pictures as pictures
import local_ranges
import local_tables as tables
from pages import fill

EXPERIMENTS = local_areas.EXPERIMENTS | local_ranges.EXPERIMENTS
REPEATS = 10


def raw_rows(name: str, repeats: int, work: Path) -> list[list[str]]:
    """The rows of an experiment, run unless its file is there; the last one tells the processor time."""
    path, start = work / f"{name}_{repeats}.csv", time.process_time()
    if not path.exists():
        with path.with_suffix(".part").open("w", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            for row in EXPERIMENTS[name](repeats):
                writer.writerow([f"{each:.6g}" if isinstance(each, float) else each for each in row])
            writer.writerow(["seconds", f"{time.process_time() - start:.0f}"])
        path.with_suffix(".part").rename(path)
    with path.open(newline="") as stream:
        return list(csv.reader(stream))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder of local.md; nothing is written without it")
    parser.add_argument("--work", type=Path, default=Path("out/local"), help="raw scores; what is there is not run")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--only", choices=list(EXPERIMENTS), nargs="*", help="run these, and write nothing")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    raw = {}
    for name in given.only or EXPERIMENTS:
        *raw[name], seconds = raw_rows(name, given.repeats, given.work)
        print(name, " ".join(seconds), flush=True)
    if given.out and not given.only:
        areas, ranges = tables.area_means(raw["compared"]), tables.range_means(raw["ranges"])
        for name, lines in {**tables.of_areas(raw, areas), **tables.of_ranges(ranges)}.items():
            fill(given.out / "local.md", name, lines)
        tables.write_csv(given.out, areas, ranges)
        pictures.draw(given.out, areas, ranges)


if __name__ == "__main__":
    main()
