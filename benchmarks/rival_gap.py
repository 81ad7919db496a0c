"""Scores of the default and of its variants under `ReplaceOne` beside the best kernel: noise, tents, prior and middle.

Sets are all files of a folder, none of which a rule was tuned on, and at most 4000 points of the half that is released;
score and halves are those of `rivals.py`. Exact counts stand on the same tents, with the noise of epsilon = 1000.

With `--moved` scores are those of moved points at an alpha of a hundredth of the extent, beside the best kernel, and
the best one as wide as the moves along an axis or wider, also of sets drawn from the field's own prior.

    OMP_NUM_THREADS=1 python benchmarks/rival_gap.py --data FOLDER --all poland house --out docs/results/rivals.md
    OMP_NUM_THREADS=1 python benchmarks/rival_gap.py --data FOLDER --moved --out docs/results/rivals.md
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import rival_methods
from held_out import BANDWIDTHS, files, halves, score
from pages import fill, table
from rivals import Case, Kept, on_sets

import dpppsynth as dps
from dpppsynth.contract.rules import planar_rules
from dpppsynth.models.spectral_fields import SpectralField

MOST, EPSILON, EXACT = 4000, 1.0, 1000.0
# Points that a tent holds, in units of the standard deviation of its noise: the rule has 1.5.
HOLDS = (0.8, 2.5)
OTHERS = {
    "smaller and larger sigmas": {"sigma": 3.5, "sigmas": (2.0, 1.2)},
    "smoother field": {"smoothness": (1.0, 3.0)},
}
HEADS = ["set", "n", "kernel, not private", "default", "exact counts", "mean", *OTHERS, "more tents", "fewer tents"]
# Privacy radius of moved points, in extents, and the standard deviation of their moves along an axis.
ALPHA, MOVES = 0.01, 3**0.5 * 0.01 / EPSILON
MOVED_HEADS = ["set", "n", "kernel, not private", "kernel as wide as the moves", "moved"]
# Ranges, in sides, and standard deviations of fields that sets are drawn from; draws of each, and cells along a side.
DRAWN, DRAWS, CELLS = ((0.25, 2.5), (0.45, 1.5)), 2, 512


def kernel(case: Case, least: float = 0.0) -> tuple[float]:
    """Score of the best Gaussian kernel of at least some width, in extents."""
    raster, window = case.rasters[rival_methods.PIXELS], case.known.domain
    counts = raster.counts(case.known.xy)
    masses = (raster.smoothed(counts, width) for width in BANDWIDTHS[least <= BANDWIDTHS] * window.extent)
    return (max(score(raster.density(each, case.judging), window.area) for each in masses),)


class Gap:
    """Scores of one set, of releases with the same noise."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def default(self) -> tuple[float, ...]:
        """The default."""
        return self.case.judged(self._release().intensity)

    def exact(self) -> tuple[float, ...]:
        """The same field on the same tents, all but without noise."""
        release = self._release()
        plan = replace(release.statistic.definition, epsilon=EXACT)
        statistic = plan.measure(self.case.known, np.random.default_rng(3))
        return self.case.judged(replace(release, statistic=statistic, draws=None).infer(1).intensity)

    def mean(self) -> tuple[float, ...]:
        """The posterior mean in place of the median."""
        release = self._release()
        return self.case.judged(release.estimator.posterior_mean(release.draws))

    def prior(self, **changes: Any) -> tuple[float, ...]:
        """Another prior."""
        return self.case.judged(self._release().infer(1, **changes).intensity)

    def tents(self, holds: float) -> tuple[float, ...]:
        """More or fewer tents, by the same rule."""
        rule, planar_rules.MATERN_HOLDS = planar_rules.MATERN_HOLDS, holds
        try:
            return self.default()
        finally:
            planar_rules.MATERN_HOLDS = rule

    def _release(self) -> dps.CoxRelease:
        return self.case.release(EPSILON, relation=dps.ReplaceOne())


def row(case: Case, kept: Kept, *, every: bool) -> list[str]:
    """Scores of one set; without `every` the first three."""
    gap = Gap(case)
    ways: dict[str, Callable[[], tuple[float, ...]]] = {
        "kernel": lambda: kernel(case),
        "default": gap.default,
        "exact": gap.exact,
        "mean": gap.mean,
        **{name: lambda changes=changes: gap.prior(**changes) for name, changes in OTHERS.items()},
        **{f"holds {holds}": lambda holds=holds: gap.tents(holds) for holds in HOLDS},
    }
    told = [
        f"{kept.get((case.name, len(case.known), name), way)[0]:.3f}" if every or k < 3 else ""
        for k, (name, way) in enumerate(ways.items())
    ]
    return [case.name, str(len(case.known)), *told]


def drawn() -> Iterator[tuple[str, dps.PointPattern]]:
    """Points in a unit square by fields of the prior behind moved points."""
    for range_, sigma in DRAWN:
        for seed in range(1, DRAWS + 1):
            rng = np.random.default_rng(seed)
            prior = SpectralField((CELLS, CELLS), (1 / CELLS, 1 / CELLS), sigma, range_)
            share = np.exp(prior.field(prior.white(1, rng)[0]))
            cell = rng.choice(CELLS**2, 2 * MOST, p=share / share.sum())
            xy = (np.column_stack(np.divmod(cell, CELLS)) + rng.random((2 * MOST, 2))) / CELLS
            yield f"drawn, range {range_:g}", dps.PointPattern(xy, dps.Window.rectangle(0, 0, 1, 1))


def moved_row(case: Case, kept: Kept, number: int) -> list[str]:
    """Scores of one set under alpha."""
    alpha = ALPHA * case.known.domain.extent
    ways: dict[str, Callable[[], tuple[Any, ...]]] = {
        "kernel": lambda: kernel(case),
        "wide": lambda: kernel(case, MOVES),
        "moved": lambda: case.released(EPSILON, alpha=alpha, mechanism="moved")[:2],
    }
    told = [f"{kept.get((case.name, number, name), way)[0]:.3f}" for name, way in ways.items()]
    return [case.name, str(len(case.known)), *told]


def main() -> None:
    parser = on_sets(__doc__)
    parser.add_argument("--moved", action="store_true", help="points moved within an alpha, in place of all else")
    parser.add_argument("--all", nargs="*", default=(), help="names of sets of which all is run")
    args = parser.parse_args()
    kept = Kept(args.kept)
    if args.moved:
        found = [*files(args.data), *drawn()]
        rows = [moved_row(Case(name, *halves(each, MOST)), kept, k) for k, (name, each) in enumerate(found)]
        fill(args.out, "moved gap", table(MOVED_HEADS, rows))
        return
    cases = [Case(name, *halves(found, MOST)) for name, found in files(args.data)]
    fill(args.out, "gap", table(HEADS, [row(case, kept, every=case.name in args.all) for case in cases]))


if __name__ == "__main__":
    main()
