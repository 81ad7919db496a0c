"""Accuracy of local mechanisms: the experiments of two papers, on simulated data and shipped ones, with rivals.

Fills the tables of docs/results/local.md, and draws its pictures:

    OMP_NUM_THREADS=1 python benchmarks/local.py --out docs/results

Points of your own take the place of the shipped patterns, in a public square of the plane that is named, or that holds
the lines of a file of streets:

    python benchmarks/local.py --points crimes.csv --x "X Coordinate" --y "Y Coordinate" --crs EPSG:3435 \\
        --network streets.geojson --only compared --work out/own

Nothing here is private: truths are compared with estimates, counts are drawn from their law at once (`fast=True`), and
the noise is seeded.
"""

import time
import zlib
from functools import partial
from pathlib import Path

import local_areas
import local_crowds
import local_data
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
    own = parser.add_argument_group("points of one's own, instead of the shipped patterns")
    own.add_argument("--points", type=Path, help="file of points, such as a CSV of crimes")
    own.add_argument("--crs", help="coordinate system of the points, such as EPSG:3435")
    own.add_argument("--x", help="column of the first coordinate")
    own.add_argument("--y", help="column of the second coordinate")
    own.add_argument("--network", type=Path, help="public streets, whose bounding square is taken")
    own.add_argument("--square", type=float, nargs=3, metavar=("X", "Y", "SIDE"), help="public square, instead")
    given = parser.parse_args()
    if given.points:
        if not given.crs or (given.network is None) == (given.square is None) or given.out:
            parser.error("--points comes with --crs, with --network or --square, and without --out")
        local_data.OWN = local_data.own_points(
            given.points, given.network or given.square, crs=given.crs, x=given.x, y=given.y
        )
        # Scores of other points, or in another square, are not those of these.
        read = repr(local_data.OWN.bounds).encode() + local_data.OWN.xy.tobytes()
        given.work /= f"own-{zlib.crc32(read):08x}"
    elif given.network or given.square:
        parser.error("--network and --square come with --points")
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
