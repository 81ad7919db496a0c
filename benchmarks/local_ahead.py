"""AHEAD beside the one-round hierarchy: range queries under local differential privacy, rebuilt from its public rule.

Fills a table of docs/results/local.md:

    OMP_NUM_THREADS=1 python benchmarks/local_ahead.py --out docs/results/local.md

AHEAD (Du, Zhang, Cao, Xiao, Cheng and Chen, CCS 2021) asks one group of persons after the other, by optimized unary
encoding, about a partition of the plane that follows from the answers so far: cells with more than a threshold of
their noise are cut in four. Estimates of all groups are averaged by their variances and made consistent. Here both have
cells of the same finest side, by the rule of `RangeHierarchy`. Nothing is private: noise is seeded.
"""

import math
from collections.abc import Iterator

import numpy as np
from local_data import source
from local_hierarchy import of_tree
from local_ranges import RHOS, Workload, answers, workloads
from pages import command_line, fill, table

from dpppsynth.grids import uniform_grid
from dpppsynth.local import RangeHierarchy
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.simplex import norm_sub

EPSILONS, RUNS, FAN = (0.5, 1.0, 3.0), 3, 4


def blocks(fine: Floats, side: int) -> Floats:
    """(side, side) sums of a square array over blocks."""
    size = len(fine) // side
    return np.asarray(fine.reshape(side, size, side, size).sum(axis=(1, 3)))


def ahead(values: Ints, cells: int, epsilon: float, rng: np.random.Generator) -> Floats:
    """(cells, cells) shares of the finest cells, i along x."""
    depth = cells.bit_length() - 1
    groups = np.array_split(rng.permutation(values), depth)
    p, q = 0.5, 1 / (math.exp(epsilon) + 1)
    noise = 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2 / (len(values) / depth)
    threshold = math.sqrt((FAN + 1) * noise)
    # Sums of estimates and their numbers, by level; cells that are there, and those that are cut.
    sums = [np.zeros((2**k, 2**k)) for k in range(depth + 1)]
    number = [np.zeros((2**k, 2**k)) for k in range(depth + 1)]
    there = [np.zeros((2**k, 2**k), dtype=bool) for k in range(depth + 1)]
    cut = [np.zeros((2**k, 2**k), dtype=bool) for k in range(depth + 1)]
    there[0][:], cut[0][:] = True, True
    for level, group in enumerate(groups, 1):
        there[level] = np.kron(cut[level - 1], np.ones((2, 2))).astype(bool)
        true = np.bincount(group, minlength=cells**2).reshape(cells, cells).astype(float)
        leaves = [there[k] & ~cut[k] for k in range(level + 1)]
        held = np.concatenate([blocks(true, 2**k)[leaves[k]] for k in range(level + 1)]).astype(np.int64)
        supports = rng.binomial(held, p) + rng.binomial(len(group) - held, q)
        shares = norm_sub((supports / len(group) - q) / (p - q))
        start = 0
        for k in range(level + 1):
            size = int(leaves[k].sum())
            sums[k][leaves[k]] += shares[start : start + size]
            number[k][leaves[k]] += 1
            start += size
        if level < depth:
            found = sums[level] / np.maximum(number[level], 1)
            cut[level] = there[level] & (found > threshold)
    return consistent(sums, number, cut)


def consistent(sums: list[Floats], number: list[Floats], cut: list[Floats]) -> Floats:
    """Averages by variance from the leaves up, then differences laid evenly on children from the top down."""
    depth = len(sums) - 1
    mean = [total / np.maximum(times, 1) for total, times in zip(sums, number, strict=True)]
    weight = [times.copy() for times in number]
    for k in range(depth - 1, -1, -1):
        below = blocks(mean[k + 1], 2**k)
        # Variance of a sum of four, each the inverse of its weight.
        inverse = np.divide(1.0, weight[k + 1], out=np.zeros_like(weight[k + 1]), where=weight[k + 1] > 0)
        from_below = np.divide(1.0, blocks(inverse, 2**k), out=np.zeros((2**k, 2**k)), where=cut[k])
        total = weight[k] + from_below
        mixed = np.divide(weight[k] * mean[k] + from_below * below, total, out=mean[k].copy(), where=total > 0)
        mean[k] = np.where(cut[k], mixed, mean[k])
        weight[k] = np.where(cut[k], total, weight[k])
    mean[0][:] = 1.0
    for k in range(depth):
        gap = np.kron(mean[k] - blocks(mean[k + 1], 2**k), np.full((2, 2), 0.25))
        inside = np.kron(cut[k], np.ones((2, 2))).astype(bool)
        spread = np.kron(mean[k], np.full((2, 2), 0.25))
        mean[k + 1] = np.where(inside, mean[k + 1] + gap, spread)
        if k + 1 < depth:
            # What was not cut is spread evenly from here on.
            cut[k + 1] = cut[k + 1] & inside
    return norm_sub(mean[depth].ravel())


def rows() -> Iterator[tuple[str, float, str, list[float]]]:
    """Data, epsilon, method and errors for each area."""
    for work in workloads():
        for epsilon in EPSILONS:
            tree = RangeHierarchy.sized(epsilon, n=len(work.points.xy))
            values = work.points.values(tree.cells)
            for run in range(RUNS):
                rng = source(work.points.name, "beside AHEAD", epsilon, run)
                yield work.points.name, epsilon, "hierarchy", of_tree(work, tree, values, rng)
                yield work.points.name, epsilon, "AHEAD", of_shares(work, ahead(values, tree.cells, epsilon, rng))


def of_shares(work: Workload, shares: Floats) -> list[float]:
    """Errors of the answers by shares of cells."""
    n, side = len(work.points.xy), math.isqrt(len(shares))
    grid = uniform_grid(work.points.bounds, side, side)
    masses = n * shares.reshape(side, side).T.reshape(-1, 1)
    return work.errors(answers(grid, masses, work.queries)[:, 0])


def main() -> None:
    """Run, and fill the table."""
    args = command_line(__doc__).parse_args()
    found: dict[tuple[str, float, str], list[list[float]]] = {}
    for name, epsilon, method, errors in rows():
        found.setdefault((name, epsilon, method), []).append(errors)
    lines = []
    for epsilon in EPSILONS:
        ratios = np.array(
            [
                np.mean(found[name, epsilon, "hierarchy"], axis=0) / np.mean(found[name, epsilon, "AHEAD"], axis=0)
                for name, at, method in found
                if at == epsilon and method == "AHEAD"
            ]
        )
        cells = [f"{each:.2f}" for each in np.exp(np.log(ratios).mean(axis=0))]
        lines.append([f"{epsilon:g}", *cells, f"{ratios.max():.2f}", f"{(ratios < 1).sum()} of {ratios.size}"])
    made = table(["eps", *(f"{100 * rho:g} %" for rho in RHOS), "worst", "better"], lines)
    print("\n".join(made))
    fill(args.out, "ahead", made)


if __name__ == "__main__":
    main()
