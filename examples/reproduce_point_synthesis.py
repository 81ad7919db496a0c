"""The tables of Kim & Lim's paper on private point patterns, made again: simulated intensities, streets, tessellations.

Beside every row of the paper stand its mechanisms as they do here, under its own bounds, and this package's: at the
same delta, which it refuses to release, and at one that it releases. The rows compare with originals, so they are
themselves not private; originals are simulated, or long published. A run that was stopped goes on where it was.

    OMP_NUM_THREADS=1 python examples/reproduce_point_synthesis.py --out docs/results

writes point_synthesis.csv, the paper's rows last, and the two pictures. Points and streets of your own take the place
of the towns in table 2, such as a city's crimes; what comes of it is as confidential as they are:

    python examples/reproduce_point_synthesis.py --points crimes.csv --x "X Coordinate" --y "Y Coordinate" \\
        --network streets.geojson --crs EPSG:3435 --snap 100 --out out/own
"""

import argparse
import hashlib
from collections.abc import Mapping
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


def spent(name: str) -> str:
    """A mechanism's delta, and whether this package would release it."""
    delta = made.DELTAS[name]
    return f"{delta}: refused for release" if delta.startswith("1/n") else delta


def of_the_paper() -> pd.DataFrame:
    """The paper's own numbers, a row for each scenario, mechanism and epsilon."""
    rows: list[Row] = []
    for scenario, families in PAPER.items():
        for family, columns in families.items():
            for epsilon, pmse, points, mise in zip(BUDGETS, *columns, strict=True):
                said = {"pmse": pmse, "points": points, "mise": mise}
                rows.append({"table": "1", **named(scenario, family, epsilon), **said})
    for family, columns in CHICAGO.items():
        for epsilon, mise, points in zip(BUDGETS, *columns, strict=True):
            number, spread = map(float, points.rstrip(")").split(" ("))
            said = {"mise": mise, "points": number, "points_sd": spread}
            rows.append({"table": "2", **named("Chicago", family, epsilon), **said})
    for scenario, budgets in TESSELLATIONS.items():
        for epsilon, row in zip(BUDGETS, budgets, strict=True):
            for kind, *values in zip(("triangles", "squares"), *row, strict=True):
                said = dict(zip(("pmse", "points", "mise"), values, strict=True))
                rows.append({"table": "4", **named(scenario, f"LGCP, {kind}", epsilon), **said})
    return pd.DataFrame(rows)


def named(scenario: str, mechanism: str, epsilon: float) -> Row:
    return {"scenario": scenario, "synthesizer": f"{mechanism}, the paper", "epsilon": epsilon}


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


def run(args: argparse.Namespace) -> pd.DataFrame:
    """All means and errors, by table."""
    parts = []
    for name, study in studies(args.originals, args.sets).items():
        table = name.split()[0]
        if table in args.tables:
            # Studies of one table share a folder: originals and streams follow from names alone.
            folder = args.folder / f"{table}-{study.patterns}{own_files(args)}"
            parts.append(averages(study.run(folder, workers=args.workers)).assign(table=name))
    return pd.concat(parts)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="*", choices=["1", "2", "4"], default=["1", "2", "4"])
    parser.add_argument("--originals", type=int, default=10, help="originals of each simulated intensity")
    parser.add_argument("--sets", type=int, help="synthetic sets of each original (10, 30, 6)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("out/point_synthesis"), help="keeps finished cells")
    parser.add_argument("--out", type=Path, default=Path("out/point_synthesis"), help="folder of the files")
    own = parser.add_argument_group("points of one's own, along streets, in place of the towns of table 2")
    own.add_argument("--points", type=Path, help="file of points, such as a CSV of crimes")
    own.add_argument("--network", type=Path, help="file of streets: lines in GeoJSON, GeoPackage or GeoParquet")
    own.add_argument("--crs", help="coordinate system of the points, in which all is done, such as EPSG:3435")
    own.add_argument("--x", help="column of the first coordinate")
    own.add_argument("--y", help="column of the second coordinate")
    own.add_argument("--snap", type=float, default=100.0, help="points farther off the streets are left out")
    args = parser.parse_args()
    if args.points or args.network:
        if not (args.points and args.network and args.crs):
            parser.error("--points, --network and --crs are given together")
        args.tables = ["2"]
        read = {"crs": args.crs, "x": args.x, "y": args.y, "snap": args.snap}
        made.OWN = {args.points.stem: made.own_town(args.points, args.network, **read)}
    means, printed = run(args), of_the_paper()
    args.out.mkdir(parents=True, exist_ok=True)
    file = args.out / "point_synthesis.csv"
    means.to_csv(file, index=False, float_format="%.4g")
    printed = printed[printed["table"].isin(args.tables)].reindex(columns=means.columns)
    printed.to_csv(file, mode="a", header=False, index=False, float_format="%g")
    if "1" in args.tables:
        first = means[means["table"].str.startswith("1")]
        picture_of_budgets(by_place(first), args.out / "point_synthesis.png")
    if "2" in args.tables:
        picture_of_streets(args.out / "point_synthesis_streets.png")


if __name__ == "__main__":
    main()
