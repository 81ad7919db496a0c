"""CPU seconds and peak memory of files of points, read and written, beside plain pandas and geopandas.

python benchmarks/files.py --out docs/results/files.md

Every case runs in a process of its own, which reads or writes a few points before the clock starts.
"""

import csv
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from measuring import in_fresh_process, memory, run_case, timed
from pages import command_line, fill, table

WINDOW = (530_000, 180_000, 560_000, 210_000)
FEW = 100
FORMATS = ("csv", "csv, quoted", "geojson", "gpkg", "parquet")
HEADS = ("file", "rows", "CPU s per million", "others' CPU s", "memory", "others' memory")


def name(kind: str) -> str:
    return f"points.{kind.split(',', maxsplit=1)[0]}"


def frame(n: int) -> Any:
    """Points to centimetres, with a text and a whole number."""
    import pandas as pd

    rng = np.random.default_rng(1)
    x0, y0, x1, y1 = WINDOW
    xy = np.round(rng.uniform([x0, y0], [x1, y1], (n, 2)), 2)
    kinds = np.array(["burglary", "theft", "arson"])[rng.integers(3, size=n)]
    return pd.DataFrame({"x": xy[:, 0], "y": xy[:, 1], "kind": kinds, "year": rng.integers(1990, 2020, n)})


def package(folder: Path, kind: str, what: str) -> Callable[[], Any]:
    """The work of this package."""
    from dpppsynth.io import read_pattern, write_pattern
    from dpppsynth.spatial.domains import Window
    from dpppsynth.spatial.patterns import PointPattern

    window, path = Window.rectangle(*WINDOW, "EPSG:27700"), folder / name(kind)
    if what == "read":
        return lambda: read_pattern(path, window, marks=["kind", "year"])
    n = int((folder / "n").read_text())
    rows = frame(n)
    marks = {each: rows[each].to_numpy(dtype=object).tolist() for each in ("kind", "year")}
    pattern = PointPattern(rows[["x", "y"]].to_numpy(), window, marks)
    return lambda: write_pattern(pattern, path)


def rival(folder: Path, kind: str, what: str) -> Callable[[], Any]:
    """The same by pandas, or by geopandas where a file holds geometries."""
    import geopandas
    import pandas as pd

    path = folder / name(kind)
    if what == "read":
        if path.suffix == ".csv":
            return lambda: pd.read_csv(path, float_precision="round_trip")
        return lambda: (geopandas.read_parquet if path.suffix == ".parquet" else geopandas.read_file)(path)
    rows = frame(int((folder / "n").read_text()))
    if path.suffix == ".csv":
        return lambda: rows.to_csv(
            path, index=False, quoting=csv.QUOTE_NONNUMERIC if "quoted" in kind else csv.QUOTE_MINIMAL
        )
    places = geopandas.points_from_xy(rows.pop("x"), rows.pop("y"))
    points = geopandas.GeoDataFrame(rows, geometry=places, crs="EPSG:27700")
    return lambda: points.to_parquet(path) if path.suffix == ".parquet" else points.to_file(path)


def case(folders: list[str], kind: str, what: str, who: str) -> dict[str, Any]:
    """CPU seconds and peak memory (MB) in the last folder, after the same in the others."""
    seconds = 0.0
    for folder in map(Path, folders):
        run = {"package": package, "rival": rival}[who](folder, kind, what)
        seconds = timed(run, time.process_time)[1]
    return {"seconds": seconds, "memory": memory()}


def rows(few: Path, many: Path, n: int) -> list[list[str]]:
    """All formats, read and written. Both read what pandas or geopandas wrote."""
    for folder, size in ((few, FEW), (many, n)):
        folder.mkdir()
        (folder / "n").write_text(str(size))
    found = []
    folders = [str(few), str(many)]
    for kind in FORMATS:
        writes = {}
        for who in ("package", "rival"):
            if (who, kind) != ("package", "csv, quoted"):
                writes[who] = in_fresh_process(__file__, "case", folders, kind, "write", who)
        reads = {who: in_fresh_process(__file__, "case", folders, kind, "read", who) for who in ("package", "rival")}
        for what, each in (("read", reads), ("write", writes)):
            if len(each) > 1:
                figures = [f"{each[who]['seconds'] * 1e6 / n:.2f}" for who in ("package", "rival")]
                peaks = [f"{each[who]['memory']:.0f} MB" for who in ("package", "rival")]
                found.append([f"{kind}, {what}", f"{n:,}".replace(",", " "), *figures, *peaks])
                print(*found[-1], sep=" | ", flush=True)
    return found


def main() -> None:
    parser = command_line(str(__doc__), "page whose table is filled")
    parser.add_argument("--case")
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    if given.case:
        run_case(given.case, case)
        return
    with TemporaryDirectory() as folder:
        lines = table(HEADS, rows(Path(folder, "few"), Path(folder, "many"), given.rows))
    print("\n".join(lines))
    fill(given.out, "files", lines)


if __name__ == "__main__":
    main()
