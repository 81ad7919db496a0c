"""Coverage of 90 % intervals of small blocks' masses behind tents, where the truth is not a smooth field.

Truths on a square of 1000 m: `smooth`, four Gaussian hills of 150 m and a fifth of the points anywhere; `rough`, exp
of a Matern field of smoothness 1/2, standard deviation 1 and range 200 m; `districts`, the cells of 25 uniform places,
each with a factor exp(N(0, 1)); `coast`, the smooth one where there is land, a wavy disc of radius 350 m, in a square
whose rest is sea; `coast, polygon`, the same in the land's own outline. Privacy radius 20 m, public n. Intervals are
those of posterior draws, for the shares of 12 x 12 blocks, and of the fullest tenth of 30 x 30 blocks by the truth.

    OMP_NUM_THREADS=1 python benchmarks/block_coverage.py --out docs/results/block_coverage.md
"""

from collections.abc import Callable

import numpy as np
import shapely
from measuring import timed
from pages import command_line, fill, table

import dpppsynth as dps

SIDE, FINE, LEVEL, ALPHA, DRAWS = 1000.0, 60, 0.9, 20.0, 200
TICKS = (np.arange(FINE) + 0.5) * SIDE / FINE
XY = np.stack(np.meshgrid(TICKS, TICKS, indexing="ij"), axis=-1).reshape(-1, 2)
RUNS = ((300, 3.0), (2000, 1.0))
HEADS = ("truth", "n", "eps", "mechanism", "12 x 12 blocks", "of them not empty", "fullest of 30 x 30", "seconds")


def smooth(rng: np.random.Generator) -> np.ndarray:
    centres = rng.uniform(0.15 * SIDE, 0.85 * SIDE, (4, 2))
    near = ((XY[:, None] - centres) ** 2).sum(axis=2)
    hills = np.exp(-near / (2 * 150.0**2)) @ rng.dirichlet(np.ones(4))
    return 0.8 * hills / hills.sum() + 0.2 / len(XY)


def rough(rng: np.random.Generator) -> np.ndarray:
    away = np.linalg.norm(XY[:, None] - XY[None], axis=2)
    root = np.linalg.cholesky(np.exp(-2 * away / 200.0) + 1e-8 * np.eye(len(XY)))
    return np.exp(root @ rng.standard_normal(len(XY)))


def districts(rng: np.random.Generator) -> np.ndarray:
    places = rng.uniform(0, SIDE, (25, 2))
    nearest = ((XY[:, None] - places) ** 2).sum(axis=2).argmin(axis=1)
    return np.exp(rng.standard_normal(25))[nearest]


def outline() -> shapely.Polygon:
    """The land of a coast."""
    angle = np.linspace(0, 2 * np.pi, 120, endpoint=False)
    radius = 350.0 + 70.0 * np.sin(3 * angle) + 40.0 * np.sin(7 * angle + 1)
    return shapely.Polygon(SIDE / 2 + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]))


def coast(rng: np.random.Generator) -> np.ndarray:
    return smooth(rng) * shapely.contains_xy(outline(), *XY.T)


TRUTHS: dict[str, tuple[Callable[[np.random.Generator], np.ndarray], dps.Window]] = {
    "smooth": (smooth, dps.Window.rectangle(0, 0, SIDE, SIDE)),
    "rough": (rough, dps.Window.rectangle(0, 0, SIDE, SIDE)),
    "districts": (districts, dps.Window.rectangle(0, 0, SIDE, SIDE)),
    "coast": (coast, dps.Window.rectangle(0, 0, SIDE, SIDE)),
    "coast, polygon": (coast, dps.Window.polygon(outline())),
}


def drawn(share: np.ndarray, window: dps.Window, n: int, rng: np.random.Generator) -> dps.PointPattern:
    """Points of the fine cells' shares, uniform in them; those of a cell that the window cuts are drawn again."""
    found = np.empty((0, 2))
    while len(found) < n:
        at = XY[rng.choice(len(share), n, p=share)] + rng.uniform(-0.5, 0.5, (n, 2)) * SIDE / FINE
        found = np.concatenate([found, at[window.contains(at)]])
    return dps.PointPattern(found[:n], window)


def blocks(shares: np.ndarray, side: int) -> np.ndarray:
    """(..., side^2) sums over blocks of the fine cells."""
    k = FINE // side
    return shares.reshape(*shares.shape[:-1], side, k, side, k).sum(axis=(-3, -1)).reshape(*shares.shape[:-1], -1)


def held(truth: np.ndarray, draws: np.ndarray) -> np.ndarray:
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return (low <= truth) & (truth <= high)


def run(name: str, n: int, epsilon: float, originals: int) -> list[str]:
    """A row of the table: shares of blocks whose interval holds the truth."""
    found: list[list[np.ndarray]] = [[], [], []]
    seconds, mechanisms = 0.0, set()
    draw, window = TRUTHS[name]
    inside = window.contains(XY)
    for k in range(originals):
        rng = np.random.default_rng([k, n])
        share = draw(rng)
        share = share / share.sum()
        pattern = drawn(share, window, n, rng)
        synthesizer = dps.LGCPSynthesizer(epsilon, alpha=ALPHA, mechanism="tents")
        release, took = timed(lambda: synthesizer.release(pattern, rng))  # noqa: B023
        seconds += took / originals
        mechanisms.add(release.mechanism)
        cells = np.zeros((DRAWS, len(XY)))
        for row, each in zip(cells, release.intensities(DRAWS, rng, source="draws"), strict=True):
            row[inside] = each(XY[inside])
        cells /= cells.sum(axis=1, keepdims=True)
        for part, side in ((0, 12), (2, 30)):
            truth, own = blocks(share, side), blocks(cells, side)
            within = blocks(inside.astype(float), side) > 0
            ok = held(truth, own)
            found[part].append(ok[within] if part == 0 else ok[np.argsort(truth)[-len(truth) // 10 :]])
            if part == 0:
                found[1].append(ok[truth > 0])
    rates = (f"{100 * np.concatenate(each).mean():.0f} %" for each in found)
    return [name, f"{n}", f"{epsilon:g}", ", ".join(sorted(mechanisms)), *rates, f"{seconds:.0f}"]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--originals", type=int, default=3)
    parser.add_argument("--truths", nargs="*", default=list(TRUTHS))
    given = parser.parse_args()
    rows = []
    for n, epsilon in RUNS:
        for name in given.truths:
            rows.append(run(name, n, epsilon, given.originals))
            print(rows[-1], flush=True)
    fill(given.out, "blocks", table(HEADS, rows))


if __name__ == "__main__":
    main()
