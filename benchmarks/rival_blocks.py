"""Distances of the default and of a histogram at epsilon 1, and what is left of them with exact masses of wide blocks.

Sets, halves and distance are those of `rivals.py`. A release's masses of 4 x 4 blocks are put right to those of the
released points, which no private release may do: what the distance loses is the error of wide areas.

    OMP_NUM_THREADS=1 python benchmarks/rival_blocks.py --data FOLDER --out docs/results/rivals.md
"""

import numpy as np
import rival_methods
from baselines.histograms import blocks
from held_out import halves, sets
from pages import fill, table
from rivals import CELLS, Case, Kept, neighbours, on_sets

SETS = ("france", "airports", "bei", "shapley")
RELATIONS = {"replace one": 2.0, "add/remove": 1.0}
EPSILON, BLOCKS, HISTOGRAM = 1.0, 4, "AG"
HEADS = ["set", "n", "neighbours"]
HEADS += [f"{who}{what}" for who in ("default", HISTOGRAM) for what in ("", ", blocks right")]


def put_right(masses: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Masses of pixels (s, s) whose blocks have the shares of the points (s, s) there, evenly where they have none."""
    wide = np.ones((len(masses) // BLOCKS,) * 2)
    own, due = (np.kron(blocks(each / each.sum(), BLOCKS), wide) for each in (masses, counts))
    even = due / wide.size
    return np.where(own > 0, masses / masses.sum() / np.where(own > 0, own, 1.0) * due, even)


def distances(case: Case, masses: np.ndarray) -> list[float]:
    """Distance of masses as they are, and with the blocks' put right."""
    fine = blocks(masses, CELLS)
    counts = blocks(case.rasters[rival_methods.FINE].counts(case.known.xy), CELLS)
    return [case.distance(each, CELLS) for each in (fine, put_right(fine, counts))]


def of_default(case: Case, relation: str) -> list[float]:
    """Distances of the default's intensity."""
    return distances(case, case.masses(case.release(EPSILON, **neighbours(case, relation)).intensity))


def of_histogram(case: Case, sensitivity: float) -> list[float]:
    """Distances of the histogram, by the better of two ways with negative masses."""
    found = rival_methods.histograms(HISTOGRAM, case.known, case.rasters, EPSILON, sensitivity)
    return min(distances(case, masses) for _, masses in found)


def row(case: Case, relation: str, kept: Kept) -> list[str]:
    """Distances of one setting, in hundredths of sqrt(A)."""
    key = case.name, len(case.known), relation, EPSILON
    found = [
        *kept.get((*key, "blocks, default"), lambda: of_default(case, relation))[:2],
        *kept.get((*key, f"blocks, {HISTOGRAM}"), lambda: of_histogram(case, RELATIONS[relation]))[:2],
    ]
    return [case.name, str(len(case.known)), relation, *(f"{100 * each:.2f}" for each in found)]


def main() -> None:
    args = on_sets(__doc__).parse_args()
    kept, found = Kept(args.kept), dict(sets(args.data, points=1000))
    cases = [Case(name, *halves(found[name])) for name in SETS]
    fill(args.out, "blocks", table(HEADS, [row(case, relation, kept) for case in cases for relation in RELATIONS]))


if __name__ == "__main__":
    main()
