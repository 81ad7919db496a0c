"""The tables of Kim & Lim's paper on private point patterns, made again: simulated intensities, streets, tessellations.

Beside every row of the paper stand its mechanisms as they do here, under its own bounds, and this package's: at the
same delta, which it refuses to release, and at one that it releases. The tables compare with originals, so they are
themselves not private; originals are simulated, or long published. A run that was stopped goes on where it was.

    OMP_NUM_THREADS=1 python examples/reproduce_point_synthesis.py --out docs/results/point_synthesis.md

What stands in that file from the line "## Findings" on was written by hand, and is kept. Points and streets of your own
take the place of the towns in table 2, such as a city's crimes; what comes of it is as confidential as they are:

    python examples/reproduce_point_synthesis.py --points crimes.csv --x "X Coordinate" --y "Y Coordinate" \\
        --network streets.geojson --crs EPSG:3435 --snap 100 --out out/own/table.md
"""

import argparse
import hashlib
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import matplotlib.figure
import numpy as np
import pandas as pd
import point_synthesis_study as made

import dpppsynth as dps
from dpppsynth.evaluation.experiments import Study, summary

BUDGETS, SEED = (0.1, 1.0, 10.0), 3
FAMILIES = ("Kernel", "LGCP", "Laplace")
# The paper's pMSE, points and MISE, each at epsilon = .1, 1 and 10.
PAPER = {
    "lambda1": {
        "Kernel": ((0.003, 0.002, 0.003), (20.2, 20.0, 20.8), (0.306, 0.197, 0.280)),
        "LGCP": ((0.004, 0.004, 0.005), (19.1, 19.6, 19.3), (0.198, 0.125, 0.178)),
        "Laplace": ((0.095, 0.077, 0.050), (973.8, 109.4, 27.5), (0.025, 0.022, 0.033)),
    },
    "lambda2": {
        "Kernel": ((0.076, 0.070, 0.037), (78.5, 78.3, 76.9), (0.850, 0.836, 0.795)),
        "LGCP": ((0.076, 0.076, 0.076), (77.2, 77.2, 76.9), (0.865, 0.882, 0.929)),
        "Laplace": ((0.519, 0.273, 0.212), (1014.4, 154.7, 84.3), (0.364, 0.264, 1.148)),
    },
    "lambda3": {
        "Kernel": ((0.052, 0.052, 0.049), (129.2, 129.1, 127.7), (0.102, 0.100, 0.097)),
        "LGCP": ((0.052, 0.052, 0.052), (129.3, 128.9, 129.9), (0.114, 0.108, 0.110)),
        "Laplace": ((0.106, 0.062, 0.030), (1076.6, 195.3, 132.8), (0.223, 0.135, 0.553)),
    },
    "lambda4": {
        "Kernel": ((0.129, 0.130, 0.108), (58.2, 58.4, 57.7), (5.087, 4.880, 5.781)),
        "LGCP": ((0.130, 0.130, 0.128), (56.7, 58.1, 57.6), (4.258, 5.184, 4.851)),
        "Laplace": ((0.497, 0.282, 0.127), (1043.7, 144.0, 64.8), (0.174, 0.347, 0.673)),
    },
}
CHICAGO = {
    "LGCP": ((24.267, 18.827, 8.284), ("86.4 (10.6)", "87.7 (12.4)", "83.8 (11.3)")),
    "Laplace": ((8.288, 4.013, 3.768), ("1443.6 (182)", "209.9 (25)", "91.7 (9)")),
}
# pMSE, points and MISE on triangles / squares at epsilon = .1, 1 and 10.
TESSELLATIONS = {
    "lambda2": (
        ((0.076, 0.077), (77.2, 79.9), (0.865, 1.080)),
        ((0.076, 0.076), (77.2, 78.4), (0.882, 0.814)),
        ((0.076, 0.077), (76.9, 76.5), (0.929, 0.643)),
    ),
    "lambda3": (
        ((0.052, 0.053), (129.3, 132.7), (0.114, 0.142)),
        ((0.052, 0.053), (128.9, 131.1), (0.108, 0.124)),
        ((0.052, 0.053), (129.9, 130.7), (0.110, 0.096)),
    ),
    "lambda4": (
        ((0.130, 0.128), (56.7, 57.7), (4.258, 4.505)),
        ((0.130, 0.129), (58.1, 59.3), (5.184, 5.077)),
        ((0.128, 0.130), (57.6, 58.5), (4.851, 4.670)),
    ),
}
# Lines of the picture: colour and style; what the package would release is solid.
PICTURE = {
    "Kernel, bound 3.6": "C0--",
    "Kernel, superposition": "C0:",
    "Kernel, superposition, small delta": "C0-",
    "LGCP, bound 3.9": "C1--",
    "LGCP, posterior draw": "C1:",
    "LGCP, posterior draw, small delta": "C1-",
    "Laplace, as printed": "C2--",
    "Laplace, tents, n kept": "C2-",
    "LGCP, tents + posterior, draws": "C3-",
}
SHOWN = (
    "LGCP, bound 3.8",
    "Laplace, as printed",
    "LGCP, posterior draw, small delta",
    "LGCP, tents + posterior, draws",
    "LGCP, field + posterior, draws",
    "Laplace, counts, n kept",
    "Laplace, tents, n kept",
)
# The number of points in the paper says so; see the findings.
DOUBLED = "lambda1, doubled"
FINDINGS = "## Findings\n"

# Means, and the measures that some originals have no value of.
Row = Mapping[str, Any]
Means = dict[tuple[str, str, float], Row]


def studies(originals: int, sets: int | None) -> dict[str, Study]:
    """The studies behind the tables; rows of tables 2 and 4 have 30 synthetic sets, if nothing else is said."""
    seed = {"delta": ["1/n"], "seed": SEED}
    planar = {"measures": made.PLANAR_MEASURES, **seed}
    scenarios, half = made.simulations(), (originals + 1) // 2
    three = {name: scenarios[name] for name in TESSELLATIONS}
    doubled = {DOUBLED: scenarios.pop(DOUBLED)}
    first = {"epsilon": BUDGETS, "patterns": sets or 10} | planar
    return {
        "1": Study(scenarios, made.PUBLISHED, repeats=originals, **first),
        "1 doubled": Study(doubled, made.PUBLISHED, repeats=originals, **first),
        "1 new": Study(scenarios, made.NEW, repeats=originals, **first),
        "2": Study(
            made.towns(), made.STREETS, BUDGETS, repeats=1, patterns=sets or 30, measures=made.STREET_MEASURES, **seed
        ),
        "4": Study(three, made.TESSELLATIONS, BUDGETS, repeats=half, patterns=sets or 6, **planar),
        "4 by NUTS": Study(three, made.BY_NUTS, BUDGETS, repeats=max(1, originals // 10), patterns=1, **planar),
    }


def side_by_side(rows: Iterable[Row], measure: str, digits: int) -> str:
    """Numbers of a cell; with an asterisk, where only some originals have one."""
    found = [(row[measure], "*" if measure in row["partly"] else "") for row in rows]
    return " / ".join("refused" if np.isnan(value) else f"{value:.{digits}f}{mark}" for value, mark in found)


def printed(values: Iterable[float | str], digits: int = 3) -> str:
    return " / ".join(value if isinstance(value, str) else f"{value:.{digits}f}" for value in values)


def line(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def header(*names: str) -> list[str]:
    return [line(*names), "|" + "---|" * len(names)]


COLUMNS = {"pmse": 3, "pmse_balanced": 3, "points": 1, "mise": 3, "mise_weighted": 3, "tv": 3}


def table_one(result: Means) -> list[str]:
    scenarios = list(dict.fromkeys(scenario for scenario, _, _ in result))
    lines = []
    for scenario in scenarios:
        lines += ["", f"### {scenario}", ""]
        names = ("pMSE", "pMSE, balanced", "points", "MISE", "MISE, weighted", "TV to the truth")
        lines += header("mechanism", "delta", *names)
        for family in (*FAMILIES, "homogeneous"):
            if family in FAMILIES:
                pmse, points, mise = PAPER[scenario.split(",")[0]][family]
                cells = printed(pmse), "", printed(points, 1), printed(mise), "", ""
                lines.append(line(f"*{family}, the paper*", "", *cells))
            for name in (name for name in {**made.PUBLISHED, **made.NEW} if name.startswith(family)):
                lines += row(result, scenario, name, BUDGETS, COLUMNS)
    lines += ["", "### The paper's Laplace synthesizer, looked up in the wrong place", ""]
    lines += header("intensity", "the paper's pMSE", "as printed, here", "looked up half a window away, here")
    for scenario in scenarios:
        rows = [result[scenario, "Laplace, as printed", epsilon] for epsilon in BUDGETS]
        paper = printed(PAPER[scenario.split(",")[0]]["Laplace"][0])
        lines.append(line(scenario, paper, side_by_side(rows, "pmse", 3), side_by_side(rows, "pmse_displaced", 3)))
    return lines


def row(result: Means, scenario: str, name: str, budgets: Iterable[float], columns: Mapping[str, int]) -> list[str]:
    """Line of a mechanism, if it was run there."""
    rows = [result.get((scenario, name, epsilon)) for epsilon in budgets]
    if None in rows:
        return []
    cells = [side_by_side(rows, measure, digits) for measure, digits in columns.items()]
    return [line(name, spent(name), *cells)]


def spent(name: str) -> str:
    """A mechanism's delta, and whether this package would release it."""
    delta = made.DELTAS[name]
    return f"{delta}: refused for release" if delta.startswith("1/n") else delta


def table_two(result: Means) -> list[str]:
    lines = ["", "### Chicago, the paper (85 points)", "", *header("mechanism", "delta", "MISE", "points (sd)")]
    for name, (mise, points) in CHICAGO.items():
        delta = made.DELTAS["LGCP, bound 3.8" if name == "LGCP" else "Laplace, as printed"]
        lines.append(line(f"*{name}, the paper*", delta, printed(mise), printed(points)))
    for scenario, town in made.towns().items():
        pattern = town.draw(np.random.default_rng(0))
        network, metre = town.domain, made.metre(town.domain)
        lengths = network.lengths / metre
        size = (
            f"{len(pattern)} points, {lengths.sum() / 1000:.1f} km of streets, edges from {lengths.min():.2g} m to "
            f"{lengths.max():.3g} m, {len(made.segments(town).elements)} segments; r up to "
            f"{network.extent / metre / 4:.0f} m."
        )
        names = "mechanism", "delta", "MISE", "misplaced", "points (sd)"
        lines += ["", f"### {scenario}", "", size, "", *header(*names)]
        for name in made.STREETS:
            rows = [result[scenario, name, epsilon] for epsilon in BUDGETS]
            points = [f"{each['points']:.1f} ({each['points_sd']:.1f})" for each in rows]
            cells = side_by_side(rows, "mise", 1), side_by_side(rows, "misplaced", 3), printed(points)
            lines.append(line(name, spent(name), *cells))
    return lines


def table_four(result: Means) -> list[str]:
    lines = ["", *header("intensity", "epsilon", "mechanism", "pMSE", "points", "MISE", "TV to the truth")]
    for scenario, budgets in TESSELLATIONS.items():
        for epsilon, (pmse, points, mise) in zip(BUDGETS, budgets, strict=True):
            at = scenario, f"{epsilon:g}"
            lines.append(line(*at, "*LGCP, the paper*", printed(pmse), printed(points, 1), printed(mise), ""))
            for name in ("bound 3.9", "bound 3.9 by NUTS", "posterior draw"):
                rows = [result[scenario, f"{name}, {kind}", epsilon] for kind in ("triangles", "squares")]
                cells = [side_by_side(rows, measure, COLUMNS[measure]) for measure in ("pmse", "points", "mise", "tv")]
                lines.append(line(*at, name, *cells))
    return lines


def picture_of_budgets(result: Means, path: Path) -> None:
    """pMSE by epsilon, with the paper's, and below total variation to the truth, which the paper does not give."""
    figure = matplotlib.figure.Figure(figsize=(15, 9), layout="constrained")
    axes = figure.subplots(2, len(PAPER), sharex=True, sharey="row")
    for column, scenario in enumerate(PAPER):
        top, bottom = axes[:, column]
        for colour, family in enumerate(FAMILIES):
            label = f"{family}, the paper's numbers"
            top.plot(BUDGETS, PAPER[scenario][family][0], f"C{colour}x", ms=9, label=label)
        for name, style in PICTURE.items():
            run = [epsilon for epsilon in BUDGETS if (scenario, name, epsilon) in result]
            for ax, measure in ((top, "pmse"), (bottom, "tv")):
                values = [result[scenario, name, epsilon][measure] for epsilon in run]
                ax.plot(run, values, style, marker=".", label=f"{name} (delta = {spent(name)})")
        top.set(title=scenario, xscale="log")
        bottom.set(xlabel="epsilon", xticks=BUDGETS, xticklabels=[f"{epsilon:g}" for epsilon in BUDGETS])
    axes[0, 0].set_ylabel("pMSE as the paper defines it")
    axes[1, 0].set_ylabel("total variation to the truth")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=80)


def picture_of_streets(path: Path) -> None:
    """The first town beside one synthetic set of each mechanism at epsilon = 1."""
    town = next(iter(made.towns().values()))
    original = town.draw(np.random.default_rng(0))
    figure = matplotlib.figure.Figure(figsize=(18, 9.5), layout="constrained")
    axes = figure.subplots(2, 4).ravel()
    dps.plotting.plot_pattern(original, axes[0], title=f"original ({len(original)} points)")
    for ax, name in zip(axes[1:], SHOWN, strict=True):
        releases = made.STREETS[name](town, 1.0, 1 / len(original), len(original)).release(original, None)
        pattern = releases.sample(1, np.random.default_rng(SEED))[0]
        some = f"{len(pattern)} of {releases.sets[0].points:.3g}"
        shown = some if releases.sets[0].points > len(pattern) else str(len(pattern))
        dps.plotting.plot_pattern(pattern, ax, title=f"{name} ({shown} points)")
    figure.savefig(path, dpi=80)


INTRODUCTION = """# The tables of Kim & Lim's paper, made again

*Differentially private synthesis of spatial point processes* compares a kernel, a log-Gaussian Cox (LGCP) and a Laplace
synthesizer. In *italics* the paper's numbers; below each family its mechanism here, under the paper's own bound, and
then this package's. **The tables are not private**: they compare with originals, which are simulated, or long
published. Runs are seeded; [point_synthesis.csv](point_synthesis.csv) has all means and standard errors.

Numbers side by side are for epsilon = 0.1 / 1 / 10, unless something else is said. delta = 1/n is the paper's, and
promises nothing for a single point. **Rows with it are here for the comparison alone: the package refuses to release
them.** What it would release instead are the rows with delta = 1e-6 (*small delta*, *field + posterior*, *kernel (heat
flow)*) and those of its own with 0 (*tents + posterior*, *counts* and *tents, n kept*).

- *pMSE*: mean of `(p - m/(n + m))^2` over the n original and m synthetic points pooled, `p = f'/(f + f')` with f the
  true intensity and f' the synthesizer's, each divided by its integral. Small is good. *Balanced*: with
  `p = m f'/(n f + m f')`, as otherwise a perfect synthesizer does not score 0 when m differs from n. The mean is over
  sets that have points; an asterisk would mark a mean that lacks originals, as all their sets were empty or refused.
- *MISE*: mean of the integral of `(K_synthetic / K_original - 1)^2` over the distances r at which the original's K is
  positive, up to a quarter of the window's side or of the network's extent. *Weighted*: inhomogeneous K-functions, from
  the true intensity and the synthesizer's, divided by the sum of 1/intensity; their median over originals, as single
  points of little intensity rule it.
- *TV to the truth* (not in the paper): total variation distance between the normalised intensities; of kernels that is
  the expected intensity of their sets. *Misplaced*: the same between shares of points in squares of 150 m.

Every synthetic set is scored by the intensity that it was drawn from, and comes from a release of its own, with one
exception. Which intensity that is:

- *LGCP, bound 3.8*, *bound 3.9* and *posterior draw*: the one posterior draw that is released.
- *tents + posterior, draws* and *field + posterior, draws*: noised masses are released, and a posterior is found from
  them. Each set comes from a single draw of it, as `sample(source="draws")` makes them; `sample()` takes the posterior
  median if nothing else is said. Draws carry the uncertainty of the release, and lie farther from the truth.
- *tents + posterior, mean* and *field + posterior, mean*: the same mechanism, its sets from the posterior mean, as
  `sample(source="mean")` makes them. The exception: in windows all sets of an original in such a row, of draws or of
  the mean, come from one release.
- *tents + posterior, clusters*: as *mean*, but three tenths of epsilon are for pair sums (`clusters=0.3`), and its sets
  have clusters over the posterior mean, as that release's `sample(source="mean")` makes them.
- *Laplace* and *homogeneous Poisson*: the estimate itself. *Kernel*: the expected intensity of its sets.
"""
TEXTS = {
    "1": """## Table 1: simulated intensities

{originals} originals, {sets} synthetic sets for each.
alpha = .999 B/(10 sqrt 2), B the side of the window: the paper does not state its own, and this is the limit of its
Corollary 3.9. 11 x 11 knots, 10 x 10 cells. *LGCP, bound 3.9*: exact posterior draws with the largest sigma that the
corollary admits and the package's length scale (the paper draws the length scale as well, by NUTS: see table 4).
*lambda1, doubled* only tells which constant the paper used: the package's own mechanisms are not run on it, as on
another flat pattern they would show what they do on lambda1.""",
    "2": """## Table 2: streets

{streets} synthetic sets. Chicago's crimes of 2023 are in no package that this one may take data from, so they are not
shipped: `--points` and `--network` take files of one's own. Here are the streets of Soho (cholera deaths, 1854)
and of a town in Arizona (crimes), cut into segments of at most 50 m for the paper's mechanisms and the counts.
alpha = 25 m. K is homogeneous, along the streets, corrected after Ang, Baddeley and Nair; of more than {most} points
it is that of {most}. *LGCP, bound 3.8* as in table 1, with the exponential of the resistance metric.""",
    "own": """## Table 2: streets of one's own

**Confidential, as the points are.** {streets} synthetic sets; segments of at most 50 m for the paper's mechanisms and
the counts. alpha = 25 m. K is homogeneous, along the streets, corrected after Ang, Baddeley and Nair; of more than
{most} points it is that of {most}.""",
    "4": """## Table 4: triangles and squares

delta = 1/n, so none would be released; {half} originals with {few} sets each (the paper: 30 sets), by NUTS {nuts} with
one.
Side by side: triangles / squares, log-linear on the former and log-bilinear on the latter.""",
}


def run(args: argparse.Namespace) -> tuple[dict[str, Means], pd.DataFrame, float]:
    """Results by table, all means and errors, and the seconds that their cells took."""
    found: dict[str, Means] = {}
    parts, seconds = [], 0.0
    for name, study in studies(args.originals, args.sets).items():
        table = name.split()[0]
        if table in args.tables:
            # Studies of one table share a folder: originals and streams follow from names alone.
            folder = args.folder / f"{table}-{study.patterns}{own_files(args)}"
            cells = study.run(folder, workers=args.workers)
            seconds += study.seconds(folder)["seconds"].sum()
            found.setdefault(table, {}).update(by_place(averages(cells)))
            parts.append(averages(cells).assign(table=name))
    return found, pd.concat(parts), seconds


def own_files(args: argparse.Namespace) -> str:
    """Name for what one's own files and their reading are, so that other ones find no cells of theirs."""
    if not made.OWN:
        return ""
    read = repr((args.crs, args.x, args.y, args.snap)).encode()
    return "-" + hashlib.sha256(args.points.read_bytes() + args.network.read_bytes() + read).hexdigest()[:16]


def averages(cells: pd.DataFrame) -> pd.DataFrame:
    """Means over originals with standard errors; medians where weights make the tails too heavy for a mean.

    `delta` is what a mechanism spends, and `partly` names the measures that only some originals have a value of.
    """
    means, keys = summary(cells), ["scenario", "synthesizer", "epsilon"]
    groups = cells.groupby(keys, sort=False)
    if "mise_weighted" in cells:
        means["mise_weighted"] = groups["mise_weighted"].median().to_numpy()
        means = means.drop(columns="mise_weighted_se")
    measures = [name for name in cells.columns if name in made.PLANAR_MEASURES | made.STREET_MEASURES]
    some = groups[measures].count()
    lacking = some.gt(0) & some.lt(groups.size(), axis=0)
    means["partly"] = [" ".join(lacking.columns[row]) for row in lacking.to_numpy()]
    means["delta"] = means["synthesizer"].map(made.DELTAS)
    return means


def by_place(means: pd.DataFrame) -> Means:
    rows = means.assign(partly=means["partly"].str.split()).to_dict("records")
    return {(row["scenario"], row["synthesizer"], row["epsilon"]): row for row in rows}


def text(args: argparse.Namespace, found: dict[str, Means], seconds: float) -> str:
    grid = studies(args.originals, args.sets)
    sizes = {"originals": args.originals, "sets": grid["1"].patterns, "streets": grid["2"].patterns}
    sizes |= {
        "half": grid["4"].repeats,
        "few": grid["4"].patterns,
        "nuts": grid["4 by NUTS"].repeats,
        "most": made.MOST_POINTS,
    }
    lines = INTRODUCTION.splitlines()
    for name, table in {"1": table_one, "2": table_two, "4": table_four}.items():
        if name in found:
            words = TEXTS["own" if name == "2" and made.OWN else name]
            lines += ["", *words.format(**sizes).splitlines(), *table(found[name])]
            lines += [] if name not in PICTURES else ["", f"![{PICTURES[name][0]}]({args.out.stem}{PICTURES[name][1]})"]
    command = "OMP_NUM_THREADS=1 python " + shlex.join(sys.argv)
    return "\n".join(
        [*lines, "", f"Made with `{command}`; its cells took {seconds:.0f} s in all, on shared cores.", ""]
    )


PICTURES = {"1": ("pMSE and total variation by epsilon", ".png"), "2": ("streets at epsilon = 1", "_streets.png")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="*", choices=["1", "2", "4"], default=["1", "2", "4"])
    parser.add_argument("--originals", type=int, default=10, help="originals of each simulated intensity")
    parser.add_argument("--sets", type=int, help="synthetic sets of each original (10, 30, 6)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("out/point_synthesis"), help="keeps finished cells")
    parser.add_argument("--out", type=Path, default=Path("out/point_synthesis/point_synthesis.md"))
    own = parser.add_argument_group("points of one's own, along streets, in place of the towns of table 2")
    own.add_argument("--points", type=Path, help="file of points, such as a CSV of crimes")
    own.add_argument("--network", type=Path, help="file of streets: lines in GeoJSON, GeoPackage or GeoParquet")
    own.add_argument("--crs", help="coordinate system of the points, in which all is done, such as EPSG:3435")
    own.add_argument("--x", help="column of the first coordinate")
    own.add_argument("--y", help="column of the second coordinate")
    own.add_argument("--snap", type=float, default=100.0, help="farthest that points lie off the streets, in its unit")
    args = parser.parse_args()
    if args.points or args.network:
        if not (args.points and args.network and args.crs):
            parser.error("--points, --network and --crs are given together")
        args.tables = ["2"]
        read = {"crs": args.crs, "x": args.x, "y": args.y, "snap": args.snap}
        made.OWN = {args.points.stem: made.own_town(args.points, args.network, **read)}
    found, means, seconds = run(args)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    kept = args.out.read_text().partition(FINDINGS)[1:] if args.out.exists() else ()
    args.out.write_text(text(args, found, seconds) + "".join(["\n", *kept] if any(kept) else []))
    means.to_csv(args.out.with_suffix(".csv"), index=False, float_format="%.4g")
    if "1" in found:
        picture_of_budgets(found["1"], args.out.with_suffix(".png"))
    if "2" in found:
        picture_of_streets(args.out.with_name(f"{args.out.stem}_streets.png"))


if __name__ == "__main__":
    main()
