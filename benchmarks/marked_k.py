"""K-functions of releases of points with types and times, over those of their originals.

On the streets of Soho, those of a town in Arizona and a square kilometre, 2000 points of two types follow eight hot
spots, with weights of each type, and each street a factor exp(N(0, 0.5^2)) of its own; every original has hot spots of
its own. Burglaries fall about 2 o'clock and thefts about 16, with standard deviations of 3 hours. Types and times are
public; the privacy radius is a fortieth of the extent. K is taken at a twentieth and at a tenth of the extent, as the
mean over forty patterns: of all points; across the two types; by day (8 to 20 o'clock) and by night. Patterns are those
of the middle of the posterior ("released") or of forty of its draws. By default such points are moved.

Ratios are those to K of the very original that was released: a custodian has nothing else to compare with, and a copy
of the original has 1 without any spread. Those to K of the truth, the mean of forty patterns of it, stand beside them
("over the truth"): in them is the sampling error of the original's own K, which no release of these points takes away,
and which the row "original" has alone.

A ratio is the mean over originals, beside the standard deviation between them, which is that of one release: of the
noise, and of the points that were drawn. Bias is called within noise where it is at most one of these. Where factors of
streets are averaged, K is that of the truth itself, with factors averaged over the privacy radius on the map: of what
no field of the plane sees.

Sets of a folder are those of marks.py. K of a set is that of its points themselves, across types that of the two with
most points, and the standard deviation that between draws of the noise. Its limit is tents on the mesh of epsilon 1
with no noise to speak of.

    OMP_NUM_THREADS=1 python benchmarks/marked_k.py --kept k.jsonl --out docs/results/marked_k.md
    OMP_NUM_THREADS=1 python benchmarks/marked_k.py --kept k.jsonl --data sets --out docs/results/marked_k.md
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from marks import SET_ALPHA, sets
from numpy.random import Generator
from pages import command_line, fill, table
from rivals import Kept
from scipy.spatial import cKDTree

import dpppsynth as dps
from dpppsynth.evaluation import k_function
from dpppsynth.linear_network import network_mesh
from dpppsynth.models import regular_triangulation
from dpppsynth.privacy import AlphaNeighbours
from dpppsynth.spatial.domains import Domain

SIZE, SPOTS, PATTERNS = 2000, 8, 40
KINDS, WEIGHT, HOURS = ("burglary", "theft"), np.array([0.6, 0.4]), np.array([2.0, 16.0])
MARKS = dps.Marks(dps.Types("offence", KINDS), dps.Times.day("hour", hats=8))
DOMAINS = {
    "Soho": dps.datasets.soho_streets(),
    "Arizona": dps.datasets.geodanet_streets(),
    "square": dps.Window.rectangle(0, 0, 1000, 1000),
}
SOURCES, TRUTH = ("released", "draws"), "over the truth"
AVERAGED = "truth, factors of streets averaged"
NAMES = ("all", "across types", "by day", "by night")


def columns(source: str) -> list[str]:
    """Names of the ratios of patterns of a source, or over the truth, of all functions near and far."""
    return [f"{name}, {r}{'' if source == 'released' else f', {source}'}" for name in NAMES for r in ("near", "far")]


HEADS = ("domain", "eps", "released", "originals", *(head for each in (*SOURCES, TRUTH) for head in columns(each)))
SET_HEADS = ("set", *(head for head in HEADS[1:] if "by " not in head and TRUTH not in head))
# A budget that leaves no noise to speak of; budgets and mechanisms of sets.
NOISELESS = 1000.0
SET_WAYS = ((1.0, "tents"), (NOISELESS, "tents"), (1.0, "moved"), (10.0, "moved"))


@dataclass(frozen=True)
class Truth:
    """Cells of a domain, with the share of the points of each type, and the factor of each cell's street in it."""

    domain: Domain
    share: np.ndarray
    factor: np.ndarray

    @classmethod
    def made(cls, domain: Domain, rng: Generator) -> "Truth":
        own = cls(domain, np.empty((0, 2)), np.empty(0))
        xy, size = own.centres
        at = xy[rng.choice(len(xy), SPOTS, p=size / size.sum())]
        width = domain.extent * rng.uniform(0.05, 0.12, SPOTS)
        hills = np.exp(-((xy[:, None] - at) ** 2).sum(axis=2) / 2 / width**2)
        weight = np.array([rng.dirichlet(np.ones(SPOTS)) for _ in KINDS]) * WEIGHT[:, None]
        density = 0.85 * hills / (size @ hills) @ weight.T + 0.15 * WEIGHT / size.sum()
        factor = np.ones(len(xy))
        if isinstance(domain, dps.LinearNetwork):
            factor = np.exp(rng.normal(0, 0.5, len(domain.edges)))[own.cells.edge]
        share = density * (size * factor)[:, None]
        return cls(domain, share / share.sum(), factor)

    def averaged(self, width: float) -> "Truth":
        """The same with factors averaged over what lies near on the map, by a normal law of that width."""
        xy, size = self.centres
        tree = cKDTree(xy)
        near = tree.sparse_distance_matrix(tree, 3 * width, output_type="coo_matrix").tocsr()
        near.data = np.exp(-((near.data / width) ** 2) / 2)
        factor = near @ (size * self.factor) / (near @ size)
        share = self.share * (factor / self.factor)[:, None]
        return Truth(self.domain, share / share.sum(), factor)

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


def functions(pattern: dps.PointPattern, kinds: tuple[str, ...] = KINDS, type_: str = "offence") -> np.ndarray:
    """(4, 2) K of all points, across two types, by day and by night, at two distances; without hours (2, 2)."""
    r = pattern.domain.extent * np.array([0.05, 0.1])

    def k(some: np.ndarray) -> np.ndarray:
        return k_function(dps.PointPattern.at(pattern.positions[some], pattern.domain), r).k

    kind = pattern.marks[type_]
    one, other = (kind == each for each in kinds)
    # Sums over pairs of both are those of pairs of each type, and twice those across.
    a, b = one.sum(), other.sum()
    n = a + b
    both = k(one | other)
    across = (n * (n - 1) * both - a * (a - 1) * k(one) - b * (b - 1) * k(other)) / (2 * a * b)
    found = [both if n == len(pattern) else k(np.ones(len(pattern), dtype=bool)), across]
    if "hour" in pattern.marks:
        day = (pattern.marks["hour"] >= 8) & (pattern.marks["hour"] < 20)
        found += [k(day), k(~day)]
    return np.array(found)


def plain(pattern: dps.PointPattern) -> np.ndarray:
    """(1, 2) K of all points, at the same distances."""
    r = pattern.domain.extent * np.array([0.05, 0.1])
    return k_function(dps.PointPattern.at(pattern.positions, pattern.domain), r).k[None]


def mean(patterns: Iterable[dps.PointPattern], k: Callable[..., np.ndarray] = functions, *of: Any) -> np.ndarray:
    return np.mean([k(each, *of) for each in patterns], axis=0)


def k_of(name: str, epsilon: float, way: str, seed: int) -> list[Any]:
    """K of each function at each distance, NAMES by near and far: for each source of patterns, or of points alone."""
    rng, domain = np.random.default_rng([seed, len(name)]), DOMAINS[name]
    truth = Truth.made(domain, rng)
    original = truth.pattern(rng)
    if way == "original":
        return [functions(original).tolist()]
    if way in ("truth", AVERAGED):
        law = truth if way == "truth" else truth.averaged(domain.extent / 40)
        return [mean(law.pattern(rng) for _ in range(PATTERNS)).tolist()]
    if way == "places alone":
        points = dps.PointPattern.at(original.positions, domain)
        release: Any = dps.LGCPSynthesizer(epsilon, alpha=domain.extent / 40).release(points, seed)
        return [mean(release.sample(PATTERNS, seed, source=each), plain).tolist() for each in SOURCES]
    near = AlphaNeighbours(domain.extent / 40, time="public", types="public")
    release = dps.MarkedSynthesizer(epsilon, marks=MARKS, relation=near, mechanism=way).release(original, seed)
    return [mean(release.sample(PATTERNS, seed, source=each)).tolist() for each in SOURCES]


def of_set(pattern: dps.PointPattern, epsilon: float, way: str, seed: int) -> list[Any]:
    """The same of a set of points with types, whose own K is the truth; across the two types with most points."""
    values, counts = np.unique(pattern.marks["type"], return_counts=True)
    two = tuple(map(str, values[np.argsort(-counts)[:2]]))
    marks, alpha = dps.Marks(dps.Types("type", values.tolist())), SET_ALPHA * pattern.domain.extent
    near = AlphaNeighbours(alpha, types="public")
    settings = dps.MarkedSynthesizer(epsilon, marks=marks, relation=near, mechanism=way)
    if epsilon == NOISELESS:
        noisy = replace(settings, epsilon=1.0).plan(pattern.domain, n=len(pattern))
        settings = replace(settings, mesh=noisy.statistic.mesh)
    release = settings.release(pattern, seed)
    true = functions(pattern, two, "type")
    patterns = (release.sample(PATTERNS, seed, source=each) for each in SOURCES)
    return [(mean(each, functions, two, "type") / true).tolist() for each in patterns]


def row_of(first: Sequence[str], found: dict[str, np.ndarray], heads: Sequence[str] = HEADS) -> list[str]:
    """A row of (originals, functions, distances) ratios by source, with standard deviations."""
    cells = {"originals": f"{len(next(iter(found.values())))}"}
    for source, each in found.items():
        cells.update(zip(columns(source), shown(each), strict=False))
    row = [*first, *(cells.get(head, "") for head in heads[3:])]
    print(*row, sep=" | ", flush=True)
    return row


def shown(found: np.ndarray) -> list[str]:
    """Means over the first axis, with standard deviations in brackets where there are several."""
    flat = found.reshape(len(found), -1)
    if len(flat) == 1:
        return [f"{each:.2f}" for each in flat[0]]
    return [f"{a:.2f} ({b:.2f})" for a, b in zip(flat.mean(axis=0), flat.std(axis=0, ddof=1), strict=True)]


def ways(domain: Domain) -> list[tuple[float, str]]:
    """Budgets, 0 for none, and ways."""
    averaged = [(0.0, AVERAGED)] if isinstance(domain, dps.LinearNetwork) else []
    known = [(0.0, "truth"), (0.0, "original"), *averaged]
    return [*known, (1.0, "tents"), (1.0, "moved"), (1.0, "places alone"), (10.0, "moved")]


def table_rows(kept: Kept, originals: int, names: Iterable[str]) -> list[list[str]]:
    rows = []
    for name in names:
        known = dict[str, np.ndarray]()
        for epsilon, way in ways(DOMAINS[name]):
            seeds = range(1, originals + 1)
            k = np.array(
                [kept.get((name, epsilon, way, of), partial(k_of, name, epsilon, way, of))[:-1] for of in seeds]
            )
            ratio = {each: k / known[each][:, :, : k.shape[2]] for each in known}
            if not epsilon:
                known[way] = k
            if way == "truth":
                continue
            found = dict(zip(SOURCES, np.moveaxis(ratio["original"], 1, 0), strict=True)) if epsilon else {}
            first = (name, f"{epsilon:g}" if epsilon else "", way)
            rows.append(row_of(first, found | {TRUTH: ratio["truth"][:, 0]}))
    return rows


def set_rows(kept: Kept, draws: int, data: Path) -> list[list[str]]:
    rows = []
    for (name, pattern), (epsilon, way) in product(sets(data), SET_WAYS):
        key, seeds = (name, epsilon, way), range(1, draws + 1)
        told = [kept.get((*key, k), partial(of_set, pattern, epsilon, way, k))[:-1] for k in seeds]
        found = dict(zip(SOURCES, np.moveaxis(np.array(told), 1, 0), strict=True))
        rows.append(row_of((name, f"{epsilon:g}", way), found, SET_HEADS))
    return rows


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--originals", type=int, default=6, help="or draws, of each row")
    parser.add_argument("--only", choices=tuple(DOMAINS), help="one domain, printed and not written")
    parser.add_argument("--data", type=Path, help="folder of files NAME.csv.gz with types: their table alone")
    parser.add_argument("--kept", type=Path, help="file of results that are not run again; made where it is missing")
    args = parser.parse_args()
    if args.data:
        fill(args.out, "sets", table(SET_HEADS, set_rows(Kept(args.kept), args.originals, args.data)))
        return
    names = [args.only] if args.only else [*DOMAINS]
    rows = table_rows(Kept(args.kept), args.originals, names)
    fill(None if args.only else args.out, "k", table(HEADS, rows))


if __name__ == "__main__":
    main()
