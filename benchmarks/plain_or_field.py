"""Plain estimates of noisy counts and tents beside the field behind them: total variation distance to the truth.

On the four intensities of `utility.py` (n about 60 to 400; geometric mean of mean distances), in cities of `city.py`
and on streets of `streets.py`, with seeds of their own. Each estimate has the cells or tents of its own public rule.
The plain one sums to the public n ("keep-n"), of bounded counts it is clipped ("clip", delta 1e-6). Privacy radius of
tents: B/(10 sqrt2) of the four, 100 m in the city, 30 m on streets.

    python benchmarks/plain_or_field.py --out docs/results/plain_or_field.md
"""

from collections.abc import Callable, Iterator
from functools import partial

import city
import numpy as np
import streets
from measuring import timed
from pages import command_line, fill, table
from utility import RADIUS, apart, centres, draw, truths

import dpppsynth as dps

EPSILONS = (0.1, 1.0, 10.0)
HEADS = ("", "n", "eps", "cells, plain", "cells, field", "tents, plain", "tents, field")
HEADS += ("bounded counts, plain", "bounded counts, field")
# Place, points, epsilon.
CITIES = [("city", 10**4, 0.1), ("city", 10**4, 1.0), ("city", 10**4, 10.0), ("narrow spots", 10**4, 1.0)]
LARGE = [("city", 10**5, 1.0)]
STREETS = [("equal streets", 20_000, 1.0), ("narrow spots", 20_000, 1.0)]
Score = Callable[[object], float]


def pairs(epsilon: float, alpha: float) -> Iterator[tuple[object, object]]:
    """Synthesizers with the plain estimate and with the field."""
    for settings in ({}, {"basis": "tents", "alpha": alpha}):
        yield tuple(dps.LaplaceSynthesizer(epsilon, postprocess=post, **settings) for post in ("keep-n", "field"))
    bounded = {"epsilon": epsilon, "delta": 1e-6}
    yield tuple(dps.BoundedErrorSynthesizer(postprocess=post, **bounded) for post in ("clip", "field"))


def scores(pattern: dps.PointPattern, epsilon: float, alpha: float, score: Score, seed: list[int]) -> list[float]:
    """(6,) distances; the estimates of a pair see noise of the same seed."""
    both = [each for pair in pairs(epsilon, alpha) for each in pair]
    return [score(each.release(pattern, np.random.default_rng(seed)).intensity) for each in both]


def small(epsilon: float, repeats: int) -> list[float]:
    """Geometric means over the four intensities."""
    found = []
    for k, (window, truth) in enumerate(truths().values()):
        side, at = window.bounds[2] - window.bounds[0], centres(window)
        alpha, exact = side * RADIUS["B/(10 sqrt2)"], truth(at)
        seeds = [[31, round(10 * epsilon), k, repeat] for repeat in range(repeats)]
        patterns = [draw(window, truth, 1, np.random.default_rng(seed)) for seed in seeds]
        each = [
            scores(pattern, epsilon, alpha, lambda made, at=at, exact=exact: apart(made(at), exact), [*seed, 1])
            for pattern, seed in zip(patterns, seeds, strict=True)
        ]
        found.append(np.mean(each, axis=0))
    return list(np.exp(np.log(found).mean(axis=0)))


def in_city(name: str, n: int, epsilon: float, seed: int) -> list[float]:
    """Distances in a city."""
    mass = city.truth(name, seed)
    pattern = city.draw(mass, n, np.random.default_rng([seed, n]))
    at = np.stack(np.meshgrid(*[np.arange(city.CELL / 2, city.SIDE, city.CELL)] * 2, indexing="ij"), axis=-1)
    return scores(pattern, epsilon, city.ALPHA, lambda made: city.distance(made(at.reshape(-1, 2)), mass), [seed, n, 1])


def on_streets(name: str, n: int, epsilon: float, seed: int) -> list[float]:
    """Distances on the streets of a city."""
    network, share = streets.city(name, seed)
    rng = np.random.default_rng([seed, n])
    pattern = network.pattern(rng.choice(len(share), n, p=share), rng.random(n))
    return scores(
        pattern,
        epsilon,
        30.0,
        lambda made: streets.distance(streets.on_edges(made, network), share),
        [seed, n, 1],
    )


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="of each of the four intensities")
    parser.add_argument("--seed", type=int, default=29)
    parser.add_argument("--large", action="store_true", help="also a city of 100 000 points")
    given = parser.parse_args()
    cases = [("four intensities", "60 to 400", each, partial(small, each, given.repeats)) for each in EPSILONS]
    for run, places, kind in (
        (in_city, CITIES + LARGE * given.large, ""),
        (on_streets, STREETS, ", network"),
    ):
        cases += [(name + kind, f"{n}", each, partial(run, name, n, each, given.seed)) for name, n, each in places]
    rows = []
    for name, n, epsilon, run in cases:
        found, seconds = timed(run)
        rows.append([name, n, f"{epsilon:g}", *(f"{score:.3f}" for score in found)])
        print(rows[-1], f"{seconds:.0f} s", flush=True)
    lines = table(HEADS, rows)
    print("\n".join(lines))
    fill(given.out, "distances", lines)


if __name__ == "__main__":
    main()
