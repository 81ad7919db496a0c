"""Seconds and memory of the capped sums of 20 000 points, and of a release with clusters, each in a process of its own.

Originals on a square of 1 km: Thomas clusters of 5 to 2000 points, one heap, and clusters on a slope.

    python benchmarks/cluster_time.py
    python benchmarks/cluster_time.py --releases
"""

import argparse
import time

import numpy as np
from measuring import in_fresh_process, memory, run_case, timed

import dpppsynth as dps
from dpppsynth.contract.rules import pair_levels
from dpppsynth.models.pair_sums import PairStatistic, finest

SIDE, COUNT, SHARE = 1000.0, 20_000, 0.3
WINDOW = dps.Window.rectangle(0, 0, SIDE, SIDE, "EPSG:27700")
# Points of a cluster, and standard deviation.
THOMAS = {"5 x 5 m": (5, 5.0), "20 x 10 m": (20, 10.0), "200 x 15 m": (200, 15.0), "2000 x 25 m": (2000, 25.0)}
HEAP, SLOPE = "one heap of 20 m", "12 x 8 m on a slope"


def thomas(rng: np.random.Generator, count: int, size: int, spread: float) -> np.ndarray:
    parents = rng.uniform(0, SIDE, (-(-count // size), 2))
    xy = parents[rng.integers(0, len(parents), count)] + spread * rng.standard_normal((count, 2))
    return np.clip(xy, 0, SIDE)


def original(name: str) -> dps.PointPattern:
    rng = np.random.default_rng(5)
    if name == HEAP:
        xy = np.clip(SIDE / 2 + 20 * rng.standard_normal((COUNT, 2)), 0, SIDE)
    elif name == SLOPE:
        slope = SIDE * rng.beta(2, 5, (COUNT // 2, 2))
        xy = np.concatenate([slope, thomas(rng, COUNT - COUNT // 2, 12, 8.0)])
    else:
        xy = thomas(rng, COUNT, *THOMAS[name])
    return dps.PointPattern(xy, WINDOW)


def sums(name: str) -> dict[str, float]:
    """CPU seconds of all sums of the default radii, once they are compiled."""
    radii, caps = pair_levels(WINDOW, COUNT, SHARE)
    statistic = PairStatistic(WINDOW, radii, caps, tuple(finest(WINDOW, radius, COUNT) for radius in radii))
    statistic.doubled(np.random.default_rng(0).uniform(450, 550, (3000, 2)))
    points = original(name).positions
    return {"cpu": timed(lambda: statistic.doubled(points), time.process_time)[1], "memory": memory()}


def release(name: str) -> dict[str, float]:
    """CPU seconds and seconds of a release and one synthetic pattern."""
    points, start = original(name), time.process_time()

    def run() -> None:
        synthesizer = dps.LGCPSynthesizer(1.0, alpha=50.0, clusters=SHARE)
        synthesizer.release(points, np.random.default_rng(3)).sample(1, np.random.default_rng(4))

    elapsed = timed(run)[1]
    return {"cpu": time.process_time() - start, "elapsed": elapsed, "memory": memory()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", action="store_true", help="whole releases, instead of the sums alone")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.case:
        run_case(args.case, sums, release)
        return
    for name in (*THOMAS, SLOPE, HEAP):
        found = in_fresh_process(__file__, "release" if args.releases else "sums", name)
        print(*(f"{key} {value:.4g}" for key, value in found.items()), sep=", ", flush=True)


if __name__ == "__main__":
    main()
