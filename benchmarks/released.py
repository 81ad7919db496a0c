"""The released intensity behind moved points beside the median and the mean of the same posteriors.

Halves of sets, score and distance are those of `rivals.py`, and so is the generator.

    OMP_NUM_THREADS=1 python benchmarks/released.py --data FOLDER --out docs/results/rivals.md
"""

from functools import partial

import numpy as np
from held_out import halves, sets
from pages import fill, table
from rivals import Case, Kept, neighbours, on_sets

import dpppsynth as dps
from dpppsynth.spatial.intensity import LogLinear

# Budgets and sets by relation; the correction was chosen on the first four.
SETS = ("clmfires", "shapley", "france", "nbfires", "airports", "bei", "stonetools")
SETTINGS = {"alpha .5 %": ((0.3, 1.0, 3.0), SETS), "alpha 1 %": ((1.0,), SETS[:4])}
MEASURES = {"score": (1, 3), "distance": (100, 2)}
HEADS = (
    "set",
    "n",
    "neighbours",
    "eps",
    *(f"{each}: {what}" for each in MEASURES for what in ("released", "median", "mean")),
)


def judged(case: Case, release: dps.CoxRelease) -> list[float]:
    """Score and distance of the released intensity, of the median of the log-intensity, and of the mean."""
    model, draws, n = release.estimator, release.draws, release.statistic.definition.n
    median = model.normalise(np.median(draws.flat, axis=0)[None].astype(float), n)[0].astype(float)
    compared = release.intensity, LogLinear(model.mesh, median, model.offset), model.posterior_mean(draws)
    return [value for each in compared for value in case.judged(each)]


def result(case: Case, relation: str, epsilon: float) -> list[float]:
    """Results of one setting."""
    return judged(case, case.release(epsilon, mechanism="moved", **neighbours(case, relation)))


def row(case: Case, relation: str, epsilon: float, kept: Kept) -> list[str]:
    """Results of one setting, as the table has them."""
    key = case.name, len(case.known), relation, epsilon, "compared"
    found = kept.get(key, partial(result, case, relation, epsilon))
    told = [
        f"{unit * value:.{digits}f}" for k, (unit, digits) in enumerate(MEASURES.values()) for value in found[k:6:2]
    ]
    return [case.name, str(len(case.known)), relation, f"{epsilon:g}", *told]


def main() -> None:
    args = on_sets(__doc__).parse_args()
    kept, found = Kept(args.kept), dict(sets(args.data, points=1000))
    cases = {name: Case(name, *halves(found[name])) for name in SETS}
    lines = [
        row(cases[name], relation, epsilon, kept)
        for relation, (budgets, names) in SETTINGS.items()
        for name in names
        for epsilon in budgets
    ]
    fill(args.out, "means", table(HEADS, lines))


if __name__ == "__main__":
    main()
