"""Few moved points with a field behind them beside tents with a dense one, on rough and on smooth intensities.

Simulated sets have a smooth intensity (those of benchmarks/utility.py) or hot spots (cities, tight spots), and another
3000 points that judge; of other sets one half judges, and of the other one 400 points at most are released. Alpha is
such that a square of the noise's scale holds so many points on average. Scores are those of benchmarks/held_out.py,
distances earth mover's, on 32 x 32 cells. Behind tents the field is found by Laplace approximation.

    OMP_NUM_THREADS=1 python benchmarks/moved_few.py --data FOLDER --out docs/results/moved.md
"""

import math
from collections.abc import Iterator
from pathlib import Path

import city
import numpy as np
import utility
from held_out import Raster, files, halves, score, spots
from pages import command_line, fill, table

import dpppsynth as dps
from dpppsynth.evaluation import grid_wasserstein

# Points in a square of the noise's scale, by the number of released points of simulated sets; and of others, of which
# so many are released at most.
SIMULATED, OTHERS, MOST = {100: (0.02, 0.1, 0.5), 400: (0.02, 0.1)}, (0.02, 0.1), 400
JUDGING, CELLS = 3000, 32
CITIES, EPSILON = ("city", "wide spots"), 1.0
HEADS = ("set", "n", "points in a square", "score: tents", "score: moved", "distance: tents", "distance: moved")


def simulated(n: int) -> Iterator[tuple[str, dps.PointPattern, np.ndarray]]:
    """Names of sets, n points that are released, and others that judge."""
    for name, (window, truth) in utility.truths().items():
        rng, centres = np.random.default_rng([n, 1]), utility.centres(window)
        x0, y0, x1, y1 = window.bounds
        pixel = np.array([x1 - x0, y1 - y0]) / utility.GRID
        share = truth(centres) * window.contains(centres)
        chosen = centres[rng.choice(len(centres), 2 * (n + JUDGING), p=share / share.sum())]
        xy = chosen + (rng.random(chosen.shape) - 0.5) * pixel
        yield name, *parted(dps.PointPattern(xy[window.contains(xy)], window), n)
    for name in CITIES:
        yield name, *parted(city.draw(city.truth(name, 1), n + JUDGING, np.random.default_rng([n, 2])), n)
    tight = spots(np.random.default_rng([n, 3]), 2 * (n + JUDGING))
    yield "tight spots", *parted(tight, n)


def parted(pattern: dps.PointPattern, n: int) -> tuple[dps.PointPattern, np.ndarray]:
    """First points of a pattern, and the next ones."""
    return dps.PointPattern(pattern.xy[:n], pattern.domain), pattern.xy[n : n + JUDGING]


def sets(folder: Path | None) -> Iterator[tuple[str, dps.PointPattern, np.ndarray, float]]:
    """All sets by name, with points in a square of the noise's scale."""
    for n, densities in SIMULATED.items():
        for name, known, judging in simulated(n):
            yield from ((f"{name}, simulated", known, judging, density) for density in densities)
    for name, pattern in files(folder) if folder else ():
        yield from ((name, *halves(pattern, MOST), density) for density in OTHERS)


def judged(known: dps.PointPattern, judging: np.ndarray, density: float, **how: str) -> tuple[float, float]:
    """Score and distance of a release's intensity."""
    window = known.domain
    alpha = EPSILON * math.sqrt(density * window.area / len(known))
    release = dps.LGCPSynthesizer(EPSILON, alpha=alpha, **how).release(known, np.random.default_rng(1))
    raster = Raster(window, (CELLS, CELLS))
    centres = raster.centres.reshape(-1, 2)
    within, masses = window.contains(centres), np.zeros(len(centres))
    masses[within] = release.intensity(centres[within])
    spacing = raster.sides / window.extent
    distance = grid_wasserstein(
        masses.reshape(raster.shape) * raster.inside, raster.counts(judging), (spacing[0], spacing[1])
    )
    return score(release.intensity(judging) / len(known), window.area), distance


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path, help="folder of files NAME.csv.gz; simulated sets alone without it")
    args, rows = parser.parse_args(), []
    for name, known, judging, density in sets(args.data):
        tents = judged(known, judging, density, mechanism="tents", inference="laplace")
        moved = judged(known, judging, density, mechanism="moved")
        told = (f"{each:.3f}" for pair in zip(tents, moved, strict=True) for each in pair)
        rows.append((name, str(len(known)), f"{density:g}", *told))
        print(*rows[-1], flush=True)
        fill(args.out, "few", table(HEADS, rows))


if __name__ == "__main__":
    main()
