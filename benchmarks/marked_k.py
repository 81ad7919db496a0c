"""K-functions of releases of points with types and times, beside those of the truth they come from.

On the streets of Soho, those of a town in Arizona and a square kilometre, 2000 points of two types follow eight hot
spots, with weights of each type, and each street a factor exp(N(0, 0.5^2)) of its own. Burglaries fall about 2 o'clock
and thefts about 16, with standard deviations of 3 hours. Types and times are public; the privacy radius is a fortieth
of the extent. K is taken at a twentieth and at a tenth of the extent, as the mean over patterns, and divided by that of
the truth: of all points; across the two types; by day (8 to 20 o'clock) and by night. By default points with marks are
released by tents at epsilon 1, and moved at 10, where both are shown.

    OMP_NUM_THREADS=1 python benchmarks/marked_k.py --out docs/results/marked_k.md
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from measuring import timed
from numpy.random import Generator
from pages import command_line, fill, table

import dpppsynth as dps
from dpppsynth.evaluation import k_function
from dpppsynth.linear_network import network_mesh
from dpppsynth.models import regular_triangulation
from dpppsynth.privacy import AlphaNeighbours
from dpppsynth.spatial.domains import Domain

SIZE, SPOTS, PATTERNS = 2000, 8, 10
KINDS, WEIGHT, HOURS = ("burglary", "theft"), np.array([0.6, 0.4]), np.array([2.0, 16.0])
MARKS = dps.Marks(dps.Types("offence", KINDS), dps.Times.day("hour", hats=8))
DOMAINS = {
    "Soho": dps.datasets.soho_streets(),
    "Arizona": dps.datasets.geodanet_streets(),
    "square": dps.Window.rectangle(0, 0, 1000, 1000),
}
NAMES = ("all", "across types", "by day", "by night")
HEADS = ("domain", "eps", "released", *(f"{name}, {r}" for name in NAMES for r in ("near", "far")), "seconds")


@dataclass(frozen=True)
class Truth:
    """Cells of a domain, with the share of the points of each type."""

    domain: Domain
    share: np.ndarray

    @classmethod
    def made(cls, domain: Domain, rng: Generator) -> "Truth":
        own = cls(domain, np.empty((0, 2)))
        xy, size = own.centres
        at = xy[rng.choice(len(xy), SPOTS, p=size / size.sum())]
        width = domain.extent * rng.uniform(0.05, 0.12, SPOTS)
        hills = np.exp(-((xy[:, None] - at) ** 2).sum(axis=2) / 2 / width**2)
        weight = np.array([rng.dirichlet(np.ones(SPOTS)) for _ in KINDS]) * WEIGHT[:, None]
        density = 0.85 * hills / (size @ hills) @ weight.T + 0.15 * WEIGHT / size.sum()
        if isinstance(domain, dps.LinearNetwork):
            density *= np.exp(rng.normal(0, 0.5, len(domain.edges)))[own.cells.edge, None]
        share = density * size[:, None]
        return cls(domain, share / share.sum())

    @cached_property
    def cells(self) -> Any:
        """Segments, or triangles."""
        if isinstance(self.domain, dps.LinearNetwork):
            return network_mesh(self.domain, self.domain.extent / 400)
        return regular_triangulation(self.domain, shape=(101, 101))

    @property
    def centres(self) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates of the cells' centres, and their sizes."""
        pieces = self.cells.pieces
        return self.domain.coordinates(pieces.corners.mean(axis=1)), pieces.weight

    def pattern(self, rng: Generator) -> dps.PointPattern:
        """Points with types and hours."""
        cell, kind = np.divmod(rng.choice(self.share.size, SIZE, p=self.share.ravel()), len(KINDS))
        corners = self.cells.pieces.corners[cell]
        positions = np.einsum("nk,nkd->nd", rng.dirichlet(np.ones(corners.shape[1]), SIZE), corners)
        if isinstance(self.domain, dps.LinearNetwork):
            positions[:, 0] = corners[:, 0, 0]  # edges are whole numbers, their averages nearly so
        hour = rng.normal(HOURS[kind], 3) % 24
        return dps.PointPattern.at(positions, self.domain, {"offence": np.array(KINDS)[kind], "hour": hour})


def functions(pattern: dps.PointPattern) -> np.ndarray:
    """(4, 2) K of all points, across the two types, by day and by night, at two distances."""
    first = pattern.marks["offence"] == KINDS[0]
    day = (pattern.marks["hour"] >= 8) & (pattern.marks["hour"] < 20)
    r = pattern.domain.extent * np.array([0.05, 0.1])

    def k(some: np.ndarray) -> np.ndarray:
        return k_function(dps.PointPattern.at(pattern.positions[some], pattern.domain), r).k

    # Sums over pairs of all are those of pairs of each type, and twice those across.
    a, b, n = first.sum(), (~first).sum(), len(first)
    whole = k(np.ones(n, dtype=bool))
    across = (n * (n - 1) * whole - a * (a - 1) * k(first) - b * (b - 1) * k(~first)) / (2 * a * b)
    return np.array([whole, across, k(day), k(~day)])


def plain(pattern: dps.PointPattern) -> np.ndarray:
    r = pattern.domain.extent * np.array([0.05, 0.1])
    return k_function(dps.PointPattern.at(pattern.positions, pattern.domain), r).k


def mean(patterns: list[dps.PointPattern]) -> np.ndarray:
    return np.mean([functions(each) for each in patterns], axis=0)


def rows_of(name: str, seed: int) -> list[list[str]]:
    domain = DOMAINS[name]
    rng = np.random.default_rng([seed, len(name)])
    truth = Truth.made(domain, rng)
    true = mean([truth.pattern(rng) for _ in range(PATTERNS)])
    original = truth.pattern(rng)
    alpha, rows = domain.extent / 40, [[name, "", "original", *shown(functions(original) / true), ""]]
    near = AlphaNeighbours(alpha, time="public", types="public")
    for epsilon in (1.0, 10.0):
        # By default points are moved at the larger budget alone.
        for mechanism in ("tents", "moved") if epsilon > 1 else ("tents",):
            settings = dps.MarkedSynthesizer(epsilon, marks=MARKS, relation=near, mechanism=mechanism)
            release, seconds = timed(lambda made=settings: made.release(original, seed))
            ratios = mean(release.sample(PATTERNS, seed)) / true
            rows.append([name, f"{epsilon:g}", f"marked-{mechanism}", *shown(ratios), f"{seconds:.0f}"])
        bare = dps.PointPattern.at(original.positions, domain)
        found, seconds = timed(lambda e=epsilon, points=bare: dps.LGCPSynthesizer(e, alpha=alpha).release(points, seed))
        ratio = np.mean([plain(each) for each in found.sample(PATTERNS, seed)], axis=0) / true[0]
        rows.append([name, f"{epsilon:g}", "places alone", *shown(ratio), *[""] * 6, f"{seconds:.0f}"])
    return rows


def shown(ratios: np.ndarray) -> list[str]:
    return [f"{each:.2f}" for each in ratios.ravel()]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=tuple(DOMAINS), help="one domain, printed and not written")
    args = parser.parse_args()
    rows = []
    for name in [args.only] if args.only else DOMAINS:
        for row in rows_of(name, args.seed):
            rows.append(row)
            print(*row, sep=" | ", flush=True)
    if not args.only:
        fill(args.out, "k", table(HEADS, rows))


if __name__ == "__main__":
    main()
