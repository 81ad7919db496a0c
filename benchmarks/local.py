"""Accuracy of local mechanisms: the experiments of two papers, on simulated data and shipped ones, with rivals.

Fills the tables of docs/results/local.md, and draws its pictures:

    OMP_NUM_THREADS=1 python benchmarks/local.py --out docs/results

Nothing here is private: truths are compared with estimates, counts are drawn from their law at once (`fast=True`), and
the noise is seeded.
"""

import time
from functools import partial
from pathlib import Path

import local_areas
import local_crowds
import local_fields
import local_grid_fields
import local_hierarchy
import local_pictures as pictures
import local_ranges
import local_tables as tables
from measuring import raw_rows
from pages import command_line, fill

EXPERIMENTS = (
    local_areas.EXPERIMENTS
    | local_fields.EXPERIMENTS
    | local_grid_fields.EXPERIMENTS
    | local_ranges.EXPERIMENTS
    | local_hierarchy.EXPERIMENTS
    | local_crowds.EXPERIMENTS
)
# Tables of those that fill theirs alone.
OF_FIELDS = {
    "fields": local_fields.of_fields,
    "grids": local_grid_fields.of_grids,
    "hierarchy": local_hierarchy.of_hierarchy,
    "crowds": local_crowds.of_crowds,
}
REPEATS = 10


def main() -> None:
    parser = command_line(__doc__, "folder of local.md; nothing is written without it")
    parser.add_argument("--work", type=Path, default=Path("out/local"), help="raw scores; what is there is not run")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument(
        "--only", choices=list(EXPERIMENTS), nargs="*", help="run these, and of tables write those of fields alone"
    )
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    raw = {}
    for name in given.only or EXPERIMENTS:
        path = given.work / f"{name}_{given.repeats}.csv"
        raw[name] = raw_rows(path, partial(EXPERIMENTS[name], given.repeats), time.process_time)
    for experiment in OF_FIELDS.keys() & raw.keys() if given.out else ():
        for name, lines in OF_FIELDS[experiment](raw[experiment]).items():
            fill(given.out / "local.md", name, lines)
    if given.out and "hierarchy" in raw:
        local_hierarchy.write_csv(given.out, raw["hierarchy"])
    if given.out and not given.only:
        areas, ranges = tables.area_means(raw["compared"]), tables.range_means(raw["ranges"])
        for name, lines in {**tables.of_areas(raw, areas), **tables.of_ranges(ranges)}.items():
            fill(given.out / "local.md", name, lines)
        tables.write_csv(given.out, areas, ranges)
        pictures.draw(given.out, areas, ranges)


if __name__ == "__main__":
    main()
