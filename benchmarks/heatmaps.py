"""Accuracy of private heat maps: the experiments of Ghazi et al. (2023) on simulated data, beside rivals.

Fills the tables of docs/results/heatmaps.md, and draws its pictures:

    OMP_NUM_THREADS=1 python benchmarks/heatmaps.py --out docs/results
    OMP_NUM_THREADS=1 python benchmarks/heatmaps.py --scale --out docs/results

Nothing here is private: truths are compared with estimates, and the noise is seeded. Whoever has the files of Gowalla
and Brightkite names them with --checkins, and their busiest cells take the place of the simulated cities.
"""

import itertools
import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import heatmap_pictures as pictures
import heatmap_tables as tables
import numpy as np
from baselines.flat_heatmaps import laplace_aggregate
from baselines.heatmap_arrays import Users, aggregate, normalised, select_cells, sparse_aggregate
from baselines.shuffled_heatmap import (
    ShuffleProtocol,
    communication_bits,
    cropped_cells,
    message_count,
    split_cells,
)
from heatmap_data import SCREEN, Scene, cities, gaussians, image
from heatmap_rivals import coarse_grid, equal_budgets, quadtree
from heatmap_scale import scale_tables
from measuring import raw_rows
from pages import command_line, fill, table, write_rows

from dpppsynth.mechanisms.heatmap.bound import level_budgets
from dpppsynth.mechanisms.heatmap.reconstruction import least_squares, solve
from dpppsynth.spatial.grid_smoothing import gaussian_heatmap
from dpppsynth.spatial.map_distances import emd, kl, pearson, similarity

SEED, SIGMA, SIDE, PEOPLE = 2211, 0.02, 256, 200
# Side of the coarser grid on which the distance is exact; it differs from that at 256 by at most 2 (1/32 - 1/256).
COARSE = 32
GAZERS = 50
EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
W = 20
# Of the shuffle model: B and delta.
SCALES, DELTA = (1, 4, 16, 64, 256, 1024), 1e-5

Method = Callable[[Users, float, np.random.Generator], np.ndarray]


def thresholded(fraction: float | None) -> Method:
    return lambda users, epsilon, rng: laplace_aggregate(users, epsilon=epsilon, top_fraction=fraction, rng=rng)


def sparse(variant: str, w: int = W, *, fit: str = "l1") -> Method:
    return lambda users, epsilon, rng: aggregate(users, epsilon=epsilon, w=w, variant=variant, fit=fit, rng=rng)


def unshrunk(users: Users, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    found = sparse_aggregate(users, epsilon=epsilon, w=W, rng=rng)
    return least_squares(found.tree, found.budgets)


def equal_tree(users: Users, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    return quadtree(users, equal_budgets(epsilon, users.depth), rng)


def full_tree(users: Users, epsilon: float, rng: np.random.Generator, *, shrink: bool = False) -> np.ndarray:
    return quadtree(users, level_budgets(epsilon, users.depth, W), rng, shrink=shrink)


def fixed_grid(users: Users, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    return coarse_grid(users, round(users.total().sum()), epsilon, rng)


# The number of each method's noise; two methods that share it make something else of the same noised counts.
METHODS: dict[str, tuple[int, Method]] = {
    "sparse, practical": (0, sparse("practical")),
    "sparse, least squares": (0, unshrunk),
    "sparse, shrunk": (0, sparse("practical", fit="least-squares")),
    "sparse, theory": (1, sparse("theory")),
    "sparse, w = 80": (9, sparse("practical", 80)),
    "Laplace": (2, thresholded(None)),
    "top 1 %": (3, thresholded(0.01)),
    "top 0.1 %": (4, thresholded(0.001)),
    "top 0.01 %": (5, thresholded(0.0001)),
    "top 0.001 %": (6, thresholded(0.00001)),
    "quadtree": (7, equal_tree),
    "quadtree, same budgets": (11, full_tree),
    "quadtree, shrunk": (11, partial(full_tree, shrink=True)),
    "coarse grid": (8, fixed_grid),
    "uniform": (10, lambda users, epsilon, rng: normalised(np.zeros(users.shape))),  # noqa: ARG005
}
OURS, FITTED = "sparse, practical", "sparse, shrunk"
# Read literally, the paper's thresholds keep 7 cells or 1: they are in the CSV file alone.
LITERAL = ("top 0.01 %", "top 0.001 %")
SHOWN = tuple(name for name in METHODS if name not in LITERAL)
FEW = tuple(name for name in SHOWN if name not in {"sparse, theory", "sparse, w = 80", "uniform"})
# Rows of the second table of signs.
RIVALS = ("sparse, least squares", "sparse, w = 80", "Laplace", "quadtree, shrunk", "coarse grid", "uniform")


def scores(truth: np.ndarray, estimate: np.ndarray) -> list[float]:
    """SIM, CC, KL and EMD of two heat maps; EMD in units of the longer side."""
    distance = emd(squared(truth), squared(estimate), side=COARSE)
    return [
        float(each) for each in (similarity(truth, estimate), pearson(truth, estimate), kl(truth, estimate), distance)
    ]


def squared(heat: np.ndarray) -> np.ndarray:
    """A rectangle in its true proportions, with empty cells beside it."""
    longer = max(heat.shape)
    return np.pad(heat, [(0, longer - side) for side in heat.shape])


def compared(users: Users, epsilons: tuple[float, ...], methods: tuple[str, ...], key: list[int]) -> Iterator[list]:
    """Scores of every method at every epsilon on one data set: [epsilon, method, SIM, CC, KL, EMD]."""
    truth = drawn(users.total(), users)
    for epsilon in epsilons:
        for method in methods:
            noise, make = METHODS[method]
            rng = np.random.default_rng([SEED, *key, round(100 * epsilon), noise])
            yield [epsilon, method, *scores(truth, drawn(make(users, epsilon, rng), users))]


def drawn(masses: np.ndarray, users: Users) -> np.ndarray:
    """The heat map of masses, without the cells that pad a rectangle to a square; sigma is of its longer side."""
    x, y = users.shape
    longer = max(x, y)
    return gaussian_heatmap(normalised(masses[:x, :y]), (SIGMA * longer / x, SIGMA * longer / y))


def labelled(setting: str | int, rows: Iterator[list]) -> Iterator[list]:
    return ([setting, *row] for row in rows)


def in_cities(scenes: list[Scene]) -> Iterator[list]:
    """Experiment 1: 200 persons of each city, twice."""
    for which, scene in enumerate(scenes):
        for run in range(2):
            users = scene.sample(PEOPLE, np.random.default_rng([SEED, 2, which, run])).users(SIDE)
            yield from labelled("", compared(users, EPSILONS, tuple(METHODS), [3, which, run]))


def large(scenes: list[Scene]) -> Scene:
    """The first city of more than 500 persons."""
    for scene in scenes:
        if len(scene.people) > 500:
            return scene
    msg = "no cell has more than 500 persons; name more files of check-ins"
    raise SystemExit(msg)


def by_number(scenes: list[Scene]) -> Iterator[list]:
    """Experiment 2: more persons of one city."""
    scene = large(scenes)
    for number in (50, 100, 200, 300, 400, 500):
        for run in range(10):
            users = scene.sample(number, np.random.default_rng([SEED, 4, number, run])).users(SIDE)
            yield from labelled(number, compared(users, (1.0, 10.0), FEW, [5, number, run]))


def by_side(scenes: list[Scene]) -> Iterator[list]:
    """Experiment 3: finer grids of one city."""
    scene = large(scenes)
    for side in (64, 128, 256, 512):
        for run in range(10):
            users = scene.sample(PEOPLE, np.random.default_rng([SEED, 6, run])).users(side)
            yield from labelled(side, compared(users, (1.0, 10.0), FEW, [7, side, run]))


def by_sparsity(_: list[Scene]) -> Iterator[list]:
    """Experiments 6 and 7: mixtures of Gaussians with more and more points for each person."""
    for components, points in ((20, 5), (20, 75), (20, 200), (20, 1000), (5, 5), (10, 5), (80, 700)):
        for run in range(10):
            scene = gaussians(components, PEOPLE, points, np.random.default_rng([SEED, 8, components, points, run]))
            users = scene.users(SIDE)
            found = compared(users, (1.0,), FEW, [9, components, points, run])
            yield from labelled(f"{components} Gaussians, {points} points each", found)


def indicative(_: list[Scene]) -> Iterator[list]:
    """20 Gaussians, 200 persons with 5 points each: what another implementation has been seen to give."""
    for run in range(20):
        users = gaussians(20, PEOPLE, 5, np.random.default_rng([SEED, 10, run]), widest=0.06).users(SIDE)
        yield from labelled("", compared(users, (0.5, 1.0, 5.0, 10.0), FEW, [11, run]))


def gaze(_: list[Scene]) -> Iterator[list]:
    """Experiment 5: 50 of the persons who look at an image of 320 x 240, twice."""
    epsilons = (1.0, 2.0, 5.0, 8.0, 10.0, 20.0)
    for which, run in itertools.product(range(38), range(2)):
        yield from labelled("", compared(gazers(which, run), epsilons, FEW, [13, which, run]))


def gazers(which: int, run: int = 0) -> Users:
    """50 of the 75 persons who look at an image."""
    scene = image(np.random.default_rng([SEED, 12, which]))
    return scene.sample(GAZERS, np.random.default_rng([SEED, 18, which, run])).users(SCREEN)


def shuffled(_: list[Scene]) -> Iterator[list]:
    """Experiment 8: gaze in the shuffle model, by B."""
    for which in range(20):
        users = gazers(which)
        truth = drawn(users.total(), users)
        yield from labelled("central", compared(users, (5.0,), (OURS,), [15, which]))
        everybody = each_person(users)
        for scale in SCALES:
            protocol = ShuffleProtocol(5.0, DELTA, users=len(everybody), depth=users.depth, w=W, scale=scale)
            levels = protocol.simulate(everybody, np.random.default_rng([SEED, 16, which, scale]))
            estimate = drawn(solve(select_cells(levels, W, users.inside)), users)
            yield [f"B = {scale}", 5.0, OURS, *scores(truth, estimate)]


def each_person(users: Users) -> list[np.ndarray]:
    """One array of masses for each person."""
    masses = np.zeros((users.user.max() + 1, users.side**2))
    np.add.at(masses, (users.user, users.cell), users.mass)
    return list(masses.reshape(-1, users.side, users.side))


EXPERIMENTS = {
    "cities": in_cities,
    "number": by_number,
    "side": by_side,
    "sparsity": by_sparsity,
    "indicative": indicative,
    "gaze": gaze,
    "shuffle": shuffled,
}


RUNS = {"cities": 60, "gaze": 76}
# Experiments and rivals in the table of who wins where.
LABELS = {
    "cities": "cities",
    "number": "n = {}",
    "side": "side {}",
    "gaze": "gaze",
    "sparsity": "{}",
    "indicative": "20 narrow Gaussians",
}
LETTERS = {
    "Laplace": "L",
    "top 1 %": "1",
    "top 0.1 %": ".1",
    "quadtree": "Q",
    "quadtree, same budgets": "S",
    "coarse grid": "C",
    "uniform": "U",
}


def series(found: tables.Summary, metric: str, fixed: dict[int, object], across: int) -> pictures.Series:
    """Lines of a picture: means by setting (0) or epsilon (1), other parts of the key being fixed."""
    place, lines = tables.METRICS.index(metric), []
    for method in (name for name in tables.distinct(found, 2) if name not in LITERAL):
        keys = [key for key in found if key[2] == method and all(key[k] == value for k, value in fixed.items())]
        means, half = (np.array([found[key][part][place] for key in keys]) for part in (0, 1))
        lines.append((method, [float(key[across]) for key in keys], list(means), list(half)))
    return lines


def panel(found: tables.Summary, fixed: dict[int, object], across: int) -> dict[str, pictures.Series]:
    return {metric: series(found, metric, fixed, across) for metric in tables.METRICS}


def heat_maps(scenes: list[Scene], path: Path) -> None:
    """Experiment 4: pictures of one city and of one image."""
    shown = ("sparse, practical", "sparse, shrunk", "quadtree, shrunk", "top 0.1 %", "Laplace")
    city = scenes[3 % len(scenes)].sample(PEOPLE, np.random.default_rng([SEED, 14])).users(SIDE)
    pictures.maps(path / "heatmaps_maps.png", [map_row(city, f"city, eps {eps:g}", eps, shown) for eps in (1.0, 5.0)])
    rows = [map_row(gazers(0), f"gaze, eps {eps:g}", eps, shown) for eps in (2.0, 10.0)]
    pictures.maps(path / "heatmaps_gaze.png", rows)


def map_row(
    users: Users, title: str, epsilon: float, methods: tuple[str, ...]
) -> tuple[str, list[tuple[str, np.ndarray]]]:
    row = [("original", drawn(users.total(), users))]
    for method in methods:
        noise, make = METHODS[method]
        rng = np.random.default_rng([SEED, 17, noise, round(100 * epsilon)])
        row.append((method, drawn(make(users, epsilon, rng), users)))
    return title, row


def communication() -> list[str]:
    """Megabytes that a person sends, by B, for 50 persons and an image's pixels."""
    lines = []
    for scale in SCALES:
        protocol = ShuffleProtocol(5.0, DELTA, users=50, depth=9, w=W, scale=scale)
        printed = {"users": 50, "coordinates": split_cells(*SCREEN), "modulus": 50 * scale}
        ours = {"users": 50, "coordinates": cropped_cells(*SCREEN, 2), "modulus": protocol.modulus}
        sizes = [communication_bits(5.0, DELTA, **each) / 8e6 for each in (printed, ours)]
        lines.append([f"{scale}", f"{message_count(5.0, DELTA, **ours)}", *(f"{size:.2f} MB" for size in sizes)])
    return table(["B", "messages", "split levels, modulus B n", "cropped levels, this protocol's modulus"], lines)


def write_csv(path: Path, found: dict[str, tables.Summary]) -> None:
    rows = (
        [name, setting, f"{epsilon:g}", method, metric, f"{value:.4f}", f"{width:.4f}", runs]
        for name, summary in found.items()
        for (setting, epsilon, method), (mean, half, runs) in summary.items()
        for metric, value, width in zip(tables.METRICS, mean, half, strict=True)
    )
    write_rows(path, ["experiment", "setting", "epsilon", "method", "metric", "mean", "half_width", "runs"], rows)


def write(found: dict[str, tables.Summary], pairs: list[str], scenes: list[Scene], out: Path) -> None:
    """Tables into the document, the CSV file, and the pictures."""
    document = out / "heatmaps.md"
    fill(document, "pairs", pairs)
    fill(document, "wins", tables.wins({LABELS[name]: found[name] for name in LABELS}, OURS, FITTED, LETTERS))
    fill(document, "communication", communication())
    write_csv(out / "heatmaps.csv", found)
    rows = [(f"{name}, {runs} runs", "epsilon", True, panel(found[name], {}, 1)) for name, runs in RUNS.items()]
    pictures.panel(out / "heatmaps.png", rows)
    rows = [
        (f"epsilon {eps:g}", label, False, panel(found[name], {1: eps}, 0))
        for name, label in (("number", "persons"), ("side", "side of the grid"))
        for eps in (1.0, 10.0)
    ]
    pictures.panel(out / "heatmaps_n_and_side.png", rows)
    heat_maps(scenes, out)


def main() -> None:
    parser = command_line(__doc__, "folder of heatmaps.md; nothing is written without it")
    parser.add_argument("--work", type=Path, default=Path("out/heatmaps"), help="raw scores; what is there is not run")
    parser.add_argument("--only", choices=list(EXPERIMENTS), nargs="*", help="run these, and write nothing")
    parser.add_argument(
        "--checkins",
        type=Path,
        nargs="*",
        default=[],
        help="files of Gowalla and Brightkite, known by their names: January 2010, November and December 2008",
    )
    parser.add_argument("--scale", action="store_true", help="time and memory instead")
    args = parser.parse_args()
    if args.scale:
        for name, lines in scale_tables().items():
            print("\n".join(lines), flush=True)
            if args.out:
                fill(args.out / "heatmaps.md", name, lines)
        return
    scenes, raw = cities(30, SEED, args.checkins), {}
    if args.checkins:
        # Scores of simulated cities, or of other files, are not those of these.
        args.work /= f"own-{zlib.crc32(b''.join(scene.xy.tobytes() for scene in scenes)):08x}"
    args.work.mkdir(parents=True, exist_ok=True)
    for name in args.only or EXPERIMENTS:
        raw[name] = raw_rows(args.work / f"{name}.csv", partial(EXPERIMENTS[name], scenes), time.perf_counter)
    if args.out and not args.only:
        found = {name: tables.summary(rows) for name, rows in raw.items()}
        pairs = [tables.paired(raw["cities"], ours, others, 2) for ours, others in ((OURS, SHOWN), (FITTED, RIVALS))]
        write(found, [*pairs[0], "", *pairs[1]], scenes, args.out)


if __name__ == "__main__":
    main()
