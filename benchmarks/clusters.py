"""Releases with a share of the budget for clusters beside releases without, and how near they come to the original.

Originals on a square of 1 km (Thomas and Matern clusters, a log-Gaussian Cox process, a hard core, uniform points) and
the deaths of Soho, on the map and on its streets. Each is released with all of epsilon for the intensity, with .3 of it
for clusters, and with .7 of epsilon without clusters, which tells what that share costs the intensity. Inference by
Laplace approximation, unless a row says NUTS.

Finished releases are kept in the folder, and taken up again. About an hour on two cores:

    OMP_NUM_THREADS=1 python benchmarks/clusters.py --folder out/clusters --out docs/results/clusters.md
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import cluster_tables as tables
import numpy as np
from cluster_originals import CLUSTERED, ORIGINALS, OTHERS, SOHO, Original
from cluster_pictures import pictures
from cluster_scores import Scored, beyond_own, largest_by_chance, misplaced_mass
from measuring import timed
from pages import command_line, fill

import dpppsynth as dps

SEED, SHARE = 2607, 0.3
SIZES, BUDGETS, LARGE = (200, 1000), (0.3, 1.0, 3.0), 10_000
# Originals of each kind of clusters at epsilon 1.
ORIGINALS_EACH = 24
HEADLINE, HEADLINE_SIZE = "Thomas 8 x 10 m", 400
# Synthetic patterns of a release, and of one of ten thousand points.
PATTERNS, FEW = 5, 2


class Times(NamedTuple):
    """Seconds on the clock and of the processor."""

    elapsed: float
    cpu: float


@dataclass(frozen=True)
class Case:
    """An original, its number of points, a budget, a number of repeats and a kind of inference."""

    name: str
    n: int
    epsilon: float
    repeats: int
    inference: str = "laplace"

    @property
    def file(self) -> str:
        words = self.name.replace(",", "").replace(".", "")
        return f"{words} {self.n} {self.epsilon:g} {self.inference}.jsonl"


def cases() -> Iterator[Case]:
    """All cases, the most important first, so that a run that is cut off has them."""
    n, squares = HEADLINE_SIZE, (*CLUSTERED, *OTHERS)
    yield Case(HEADLINE, n, 1.0, 20)
    yield from (Case(name, n, 1.0, 8) for name in SOHO)
    yield Case("uniform", n, 1.0, 60)
    yield from (Case(name, n, 1.0, 30) for name in ("Cox, 100 m", "hard core"))
    yield from (Case(name, size, e, repeats(name, e)) for size in SIZES for name in squares for e in BUDGETS)
    yield from (Case(name, LARGE, 1.0, 1) for name in (HEADLINE, "Thomas 3 x 5 m", "Cox, 100 m", "uniform"))
    yield Case(HEADLINE, n, 1.0, 2, "nuts")
    yield from (Case(name, n, 1.0, 1, "nuts") for name in SOHO)
    yield from (Case(name, n, e, 4) for name in (HEADLINE, *SOHO) for e in (0.3, 3.0))
    yield from (Case("uniform", n, e, 20) for e in (0.3, 3.0))


def repeats(name: str, epsilon: float) -> int:
    """Number of originals of 200 and of 1000 points."""
    return ORIGINALS_EACH if name in CLUSTERED and epsilon == 1.0 else 1


def released(original: Original, epsilon: float, inference: str, seed: list[int], **settings: Any) -> tuple[Any, Times]:
    """A release, and the time that it took."""
    alpha = 50.0 if original.truth is not None else 25.0
    if original.truth is None and "clusters" in settings:
        # Several deaths at one address.
        settings["cluster_places"] = "shared"
    if isinstance(original.pattern.domain, dps.Window):
        # Maps of both ways are by tents, whatever the default takes.
        settings.setdefault("mechanism", "tents")
    synthesizer = dps.LGCPSynthesizer(epsilon, alpha=alpha, inference=inference, **settings)
    start = time.process_time()
    release, elapsed = timed(lambda: synthesizer.release(original.pattern, np.random.default_rng(seed)))
    return release, Times(elapsed, time.process_time() - start)


def draw(name: str, n: int, repeat: int, which: int = 0) -> Original:
    """An original; another one of the same kind for each `which`."""
    place = list(ORIGINALS).index(name)
    return ORIGINALS[name](np.random.default_rng([SEED, place, n, repeat, which]), n)


def row(case: Case, repeat: int) -> dict[str, Any]:
    """Scores of the releases of one original."""
    original = draw(case.name, case.n, repeat)
    ours = Scored(original.pattern)
    found: dict[str, Any] = {"original": ours.row(ours)}
    if original.truth is not None:
        found["another"] = Scored(draw(case.name, case.n, repeat, 1).pattern).row(ours)
    found["without"], _ = scores(case, repeat, original, ours, case.epsilon)
    found["with"], release = scores(case, repeat, original, ours, case.epsilon, clusters=SHARE)
    found["law"] = {"none": release.clusters.none, "likely": release.clusters.likely}
    if original.truth is not None and case.inference == "laplace":
        found["less"], _ = scores(case, repeat, original, ours, case.epsilon * (1 - SHARE))
    return found


def seed(case: Case, repeat: int) -> list[int]:
    """Seed of the noise, the same for all releases of one original."""
    return [SEED, list(ORIGINALS).index(case.name), case.n, repeat, round(10 * case.epsilon), 3]


def scores(
    case: Case, repeat: int, original: Original, ours: Scored, epsilon: float, **settings: Any
) -> tuple[dict[str, Any], Any]:
    """Scores of one release, and the release."""
    release, times = released(original, epsilon, case.inference, seed(case, repeat), **settings)
    found = {"seconds": times.cpu, "elapsed": times.elapsed, "distance": misplaced_mass(original, release)}
    return found | patterns(case, original, ours, release, repeat), release


def patterns(case: Case, original: Original, ours: Scored, release: Any, repeat: int) -> dict[str, Any]:
    """Mean scores of the patterns of a release, and whether one of them is called clustered."""
    rng = np.random.default_rng([SEED, repeat, 2])
    sets = release.sample(PATTERNS if case.n < LARGE else FEW, rng, fixed_n=True)
    rows = [Scored(each).row(ours) for each in sets]
    found: dict[str, Any] = {key: np.mean([each[key] for each in rows], axis=0).tolist() for key in rows[0]}
    if original.truth is None:
        return found
    drawn = release.sample(1, rng, source="draws", fixed_n=True)[0]
    most = largest_by_chance(case.n)
    found["called"] = bool(rows[0]["largest"] > most)
    found["called drawn"] = bool(Scored(drawn).excess.max() > most)
    if case.name.startswith("Cox") and case.n == HEADLINE_SIZE:
        found["beyond"], found["beyond drawn"] = beyond_own(original, [sets[0], drawn], rng)
    return found


def run(folder: Path) -> None:
    """Whatever is not in the folder yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases():
        path, start = folder / case.file, time.perf_counter()
        lines = path.read_text().splitlines() if path.exists() else []
        for repeat in range(len(lines), case.repeats):
            line = json.dumps(row(case, repeat))
            with path.open("a") as stream:
                stream.write(line + "\n")
        print(case, f"{time.perf_counter() - start:.0f} s", flush=True)


def read(folder: Path) -> tables.Rows:
    """Finished rows by name, number of points, budget and kind of inference."""
    found = {}
    for case in cases():
        path = folder / case.file
        if path.exists():
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            found[case.name, case.n, case.epsilon, case.inference] = rows
    return found


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument(
        "--folder", type=Path, required=True, help="finished releases are kept here, and taken up again"
    )
    parser.add_argument("--unfinished", action="store_true", help="fill the tables with what the folder has")
    args = parser.parse_args()
    if not args.unfinished:
        run(args.folder)
    for name, lines in tables.all_tables(read(args.folder)).items():
        print(name, *lines, sep="\n")
        fill(args.out, name, lines)
    if args.out:
        pictures(args.out.parent, draw, released)


if __name__ == "__main__":
    main()
