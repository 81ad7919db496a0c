"""The default and its named mechanisms beside private histograms, moved points smoothed or deconvolved, and limits.

Of each set half of the points, chosen at random, or a part of that half is released, and the other half judges, by two
measures: the mean over its points of log(.99 q A + .01), with q the normalised intensity and A the area of the window,
and the earth mover's distance from the normalised intensity to its points, on 64 x 64 cells and for the l1 distance.

Rivals know more than a release may: all know the number of points, and what their papers leave open (sides of grids,
bandwidths, steps, what becomes of negative masses) is chosen on the judging half itself, anew for each measure.

Scores of all are kept in a file where one is named, and what stands there is not run again. With `--sets` these alone
are run, and with `--again` one method of ours, or all histograms; all other results stay as the files beside the page
have them, in their digits.

    OMP_NUM_THREADS=1 python benchmarks/rivals.py --data FOLDER --out docs/results/rivals.md
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import rival_methods
import rival_tables
from baselines.histograms import blocks
from held_out import Raster, halves, score, sets
from measuring import timed
from pages import command_line, fill

import dpppsynth as dps
from dpppsynth.evaluation import grid_wasserstein
from dpppsynth.spatial.intensity import Intensity

# Sets, and points that are released; the whole half where no number stands.
SETS = {
    "france": (None, 1000),
    "airports": (None,),
    "bei": (None, 200),
    "clmfires": (None,),
    "shapley": (None,),
    "city, simulated": (50_000,),
    "europe": (50_000,),
}
CITY = 100_000
EPSILONS = (0.1, 0.3, 1.0, 3.0)
# Sets of which not all settings are run: their relations and budgets.
FEW = {"europe": (("alpha 1 %", "alpha .5 %", "replace one"), (1.0,))}
ALPHAS = {"alpha 1 %": 0.01, "alpha .5 %": 0.005}
ANYWHERE = {"replace one": dps.ReplaceOne(), "add/remove": dps.AddRemove()}
RELATIONS = (*ALPHAS, *ANYWHERE)
KERNEL, FIELD = "kernel, not private", rival_tables.FIELD
HISTOGRAMS = "histograms"
# Noise of the field on the points themselves: epsilon at an alpha of a hundredth.
LIMIT = (0.01, 1000.0)
# Cells along each side for the distance that is told, and for the one that chooses among candidates.
CELLS, ROUGH = 64, 32
# Shares of an even intensity with which private rivals may be mixed before they are scored.
EVEN = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4)


@dataclass(frozen=True, eq=False)
class Case:
    """A set of which some points are released and others judge."""

    name: str
    known: dps.PointPattern
    judging: np.ndarray

    @cached_property
    def rasters(self) -> dict[int, Raster]:
        """Rasters by their pixels along each side."""
        return {pixels: Raster(self.known.domain, (pixels, pixels)) for pixels in rival_methods.RESOLUTIONS}

    def distance(self, masses: np.ndarray, cells: int) -> float:
        """Earth mover's distance in shares of sqrt(A)."""
        raster = Raster(self.known.domain, (cells, cells))
        spacing = raster.sides / self.known.domain.extent
        return grid_wasserstein(blocks(masses, cells), raster.counts(self.judging), (spacing[0], spacing[1]))

    def best(
        self, candidates: Iterable[tuple[Raster, np.ndarray]], even: Iterable[float] = (0.0,)
    ) -> tuple[float, float]:
        """Best score, with any of these shares of an even intensity, and distance of the candidate nearest roughly."""
        scores, distances, area = [], [], self.known.domain.area
        for raster, masses in candidates:
            density = raster.density(masses, self.judging)
            scores += [score((1 - share) * density + share / area, area) for share in even]
            near = self.distance(masses, ROUGH)
            if near <= min(distances, default=np.inf):
                chosen = masses
            distances.append(near)
        return max(scores), self.distance(chosen, CELLS)

    def guess(self, relation: Any = None) -> dict[str, float]:
        """A public guess of the number of points, of one digit, where their number is secret."""
        return {"expected_n": float(f"{len(self.known):.0e}")} if relation == dps.AddRemove() else {}

    def choice(self, epsilon: float, **how: Any) -> str:
        """The mechanism that the default takes."""
        size = self.guess(how.get("relation")) or {"n": len(self.known)}
        return dps.LGCPSynthesizer(epsilon, **how).plan(self.known.domain, **size).mechanism.removeprefix("lgcp-")

    def release(self, epsilon: float, **how: Any) -> dps.CoxRelease:
        """A release of the known points."""
        return _release(dps.LGCPSynthesizer(epsilon, **how), self.known, self.guess(how.get("relation")))

    def released(self, epsilon: float, **how: Any) -> tuple[float, float, str]:
        """Score and distance of a release's intensity, and the mechanism that it names."""
        release = self.release(epsilon, **how)
        return *self.judged(release.intensity), release.mechanism

    def judged(self, intensity: Intensity) -> tuple[float, float]:
        """Score and distance of an intensity."""
        density = intensity(self.judging) / intensity.total
        return score(density, self.known.domain.area), self.distance(self.masses(intensity), CELLS)

    def masses(self, intensity: Intensity) -> np.ndarray:
        """Masses of an intensity in fine pixels, by the centres of 4 x 4 parts of each, as peaks may be narrower."""
        raster = Raster(self.known.domain, (4 * rival_methods.FINE,) * 2)
        within = self.known.domain.contains(raster.centres.reshape(-1, 2)).reshape(raster.shape)
        masses = np.zeros(raster.shape)
        masses[within] = intensity(raster.centres[within]) * raster.sides.prod()
        return blocks(masses, rival_methods.FINE)


def _release(synthesizer: dps.LGCPSynthesizer, known: dps.PointPattern, guess: dict[str, float]) -> dps.CoxRelease:
    rng = np.random.default_rng(1)
    try:
        return synthesizer.release(known, rng, **guess)
    except dps.QualityError as error:
        # As a user would: infer again from the same private statistic, at no privacy cost.
        return error.release.infer(rng)


def on_sets(text: str, *, simulated: bool = False) -> argparse.ArgumentParser:
    """Parser of the arguments of what is run on sets of points, or simulated ones, with results that are kept."""
    parser = command_line(text)
    without = "; simulated sets alone without it" if simulated else ""
    parser.add_argument("--data", type=Path, required=not simulated, help=f"folder of files NAME.csv.gz{without}")
    parser.add_argument("--kept", type=Path, help="file of results that are not run again; made where it is missing")
    return parser


class Kept:
    """Results by key, kept in a file of JSON lines where one is named."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path and path.exists() else []
        self.found = {tuple(key): result for key, result in map(json.loads, lines)}

    def get(self, key: tuple[Any, ...], run: Callable[[], Any]) -> Any:
        """The result of a key, run unless it is there, with its CPU seconds at the end."""
        if key not in self.found:
            result, seconds = timed(run, time.process_time)
            self.found[key] = [*result, seconds]
            print(*key, *(f"{each:.4f}" if isinstance(each, float) else each for each in self.found[key]), flush=True)
            if self.path:
                with self.path.open("a") as stream:
                    stream.write(json.dumps([key, self.found[key]]) + "\n")
        return self.found[key]


def cases(folder: Path | None, wanted: list[str] | None) -> Iterator[Case]:
    """All sets with all numbers of points."""
    found = dict(sets(folder, points=CITY))
    for name, sizes in SETS.items():
        if name in found and (not wanted or name.partition(",")[0] in wanted):
            yield from (Case(name, *halves(found[name], most)) for most in sizes)


def limits(case: Case, kept: Kept, wanted: Iterable[str] = (KERNEL, FIELD)) -> dict[str, list]:
    """Results that need no privacy."""
    known, alpha = case.known, LIMIT[0] * case.known.domain.extent
    ways = {
        KERNEL: lambda: case.best(rival_methods.kernels(known.xy, case.rasters)),
        FIELD: lambda: case.released(LIMIT[1], alpha=alpha, mechanism="moved"),
    }
    return {name: kept.get((case.name, len(known), name), ways[name]) for name in wanted}


def histograms(case: Case, relation: str, epsilon: float, kept: Kept) -> dict[str, list]:
    """Results of all histograms."""
    sensitivity = 1.0 if relation == "add/remove" else 2.0
    return {
        name: kept.get(
            (case.name, len(case.known), f"sensitivity {sensitivity:g}", epsilon, name),
            lambda name=name: case.best(
                rival_methods.histograms(name, case.known, case.rasters, epsilon, sensitivity), EVEN
            ),
        )
        for name in rival_methods.HISTOGRAMS
    }


def ours(case: Case, relation: str, epsilon: float, kept: Kept) -> dict[str, list]:
    """Results of the mechanisms that may be asked for by name, and those of the default, whose plan takes one of them.

    A release depends on its plan and on the generator alone, so that one is not run twice.
    """
    mechanisms = ("tents", "moved") if relation in ALPHAS else ("tents",)
    named = {mechanism: own(case, relation, epsilon, mechanism, kept) for mechanism in mechanisms}
    return {"auto": named[case.choice(epsilon, **neighbours(case, relation))]} | named


def own(case: Case, relation: str, epsilon: float, mechanism: str, kept: Kept) -> list:
    """Result of a mechanism asked for by name."""
    return kept.get(
        (case.name, len(case.known), relation, epsilon, mechanism),
        lambda: case.released(epsilon, mechanism=mechanism, **neighbours(case, relation)),
    )


def neighbours(case: Case, relation: str) -> dict[str, Any]:
    """Settings of a synthesizer that state a relation."""
    alpha = ALPHAS.get(relation)
    return {"relation": ANYWHERE[relation]} if alpha is None else {"alpha": alpha * case.known.domain.extent}


def jitters(case: Case, relation: str, epsilon: float, kept: Kept) -> dict[str, list]:
    """Results of points moved by planar Laplace noise, where neighbours differ by a move."""
    if relation not in ALPHAS:
        return {}
    given = case.known, case.rasters, ALPHAS[relation], epsilon
    ways = {"jitter, kernel": rival_methods.jitter_kernels, "jitter, deconvolved": rival_methods.deconvolved}
    return {
        name: kept.get(
            (case.name, len(case.known), relation, epsilon, name), lambda way=way: case.best(way(*given), EVEN)
        )
        for name, way in ways.items()
    }


def row(case: Case, relation: str, epsilon: float, kept: Kept) -> rival_tables.Row:
    """Results of one setting."""
    setting = case.name, len(case.known), relation, epsilon
    return rival_tables.Row(
        *setting,
        ours(case, relation, epsilon, kept),
        histograms(case, relation, epsilon, kept),
        jitters(case, relation, epsilon, kept),
        limits(case, kept),
    )


def again(rows: list[rival_tables.Row], case: Case, method: str, budgets: list[float], kept: Kept) -> None:
    """Put new results into the rows of a set: of all histograms or a method of ours, and of a default that takes it."""
    for told in rows:
        if (told.name, told.n) != (case.name, len(case.known)) or told.epsilon not in budgets:
            continue
        if method == HISTOGRAMS:
            told.histograms.clear()
            told.histograms.update(histograms(case, told.relation, told.epsilon, kept))
        if method in told.limits:
            told.limits.update(limits(case, kept, (method,)))
        if method in told.ours:
            result = own(case, told.relation, told.epsilon, method, kept)
            taken = case.choice(told.epsilon, **neighbours(case, told.relation)) == method
            told.ours.update({method: result} | ({"auto": result} if taken else {}))


def with_rows(rows: list[rival_tables.Row], case: Case, kept: Kept) -> list[rival_tables.Row]:
    """Rows with those of all settings of a set, in the order of sets."""
    relations, budgets = FEW.get(case.name, (RELATIONS, EPSILONS))
    new = [row(case, relation, epsilon, kept) for relation in relations for epsilon in budgets]
    others = [each for each in rows if (each.name, each.n) != (case.name, len(case.known))]
    return sorted(others + new, key=lambda each: list(SETS).index(each.name))


def fill_all(page: Path | None, tables: Iterable[tuple[str, list[str]]]) -> None:
    """Put tables into their places of a page."""
    for name, lines in tables:
        fill(page, name, lines)


def main() -> None:
    parser = on_sets(__doc__, simulated=True)
    parser.add_argument("--sets", nargs="+", help="names of sets, instead of all")
    ways = ("tents", "moved", FIELD, HISTOGRAMS)
    parser.add_argument("--again", choices=ways, help="method that is run alone, with --out")
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS, help="budgets, with --again")
    args = parser.parse_args()
    told = bool(args.out and (args.sets or args.again))
    kept, rows = Kept(args.kept), rival_tables.told_rows(args.out.with_suffix("")) if told else []
    for case in cases(args.data, args.sets):
        if args.again:
            again(rows, case, args.again, args.epsilons, kept)
        else:
            rows = with_rows(rows, case, kept)
        every = all(set(each.histograms) == set(rival_methods.HISTOGRAMS) for each in rows)
        fill_all(args.out, rival_tables.tables(rows, every_histogram=every))


if __name__ == "__main__":
    main()
