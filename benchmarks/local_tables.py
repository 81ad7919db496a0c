"""Tables of benchmarks/local.py: means over runs with their standard errors, beside published figures."""

import csv
import itertools
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import local_areas
import local_ranges
import numpy as np
from heatmap_tables import distinct, short
from local_areas import METHODS, MULTIPLIERS
from local_hierarchy import HEADS
from local_ranges import CONSTANT, EPSILONS, RHOS, SIDES, ZERO
from pages import table, write_rows

# Mean and standard error, arrays where several errors stand in a row.
Mean = tuple[np.ndarray, np.ndarray]
Areas = dict[tuple[str, int, float, str], tuple[float, float]]
Ranges = dict[tuple[str, float, str], tuple[float, np.ndarray, np.ndarray]]

# Share by which an earlier implementation's figures may differ, and data that it was run on.
NEAR = 0.2
SIMULATED = ("Normal", "MNormal", "SZipf")
GUIDE = "earlier implementation"
BEST = "UG, best N"
MORE = ("UG, rule", "central UG", "central AG")


def published() -> dict[tuple[str, ...], float]:
    """Figures of others by table, data, setting and method."""
    with (Path(__file__).parent.parent / "docs" / "results" / "local_published.csv").open() as stream:
        _, *rows = csv.reader(stream)
    return {tuple(key): float(value) for *key, value in rows}


def mean(values: Iterable) -> Mean:
    """Mean and standard error over the first axis; no error of one value."""
    found = np.array(list(values), dtype=float)
    runs = len(found)
    return found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(runs) if runs > 1 else np.zeros(found.shape[1:])


def grouped(rows: Iterable[list[str]], keys: int) -> dict[tuple[str, ...], list[list[str]]]:
    """Rest of the rows by their first columns, in order of appearance."""
    found: dict[tuple[str, ...], list[list[str]]] = {}
    for row in rows:
        found.setdefault(tuple(row[:keys]), []).append(row[keys:])
    return found


def area_means(rows: list[list[str]]) -> Areas:
    means = run_means(rows).items()
    return {(data, int(d), float(epsilon), method): first(found) for (data, d, epsilon, method), found in means}


def run_means(rows: list[list[str]]) -> dict[tuple[str, ...], Mean]:
    """Means of all scores of runs, by what stands before the number of the run."""
    return {key: mean(row[1:] for row in runs) for key, runs in grouped(rows, 4).items()}


def first(found: Mean) -> tuple[float, float]:
    """Mean and standard error of the first score."""
    return float(found[0][0]), float(found[1][0])


def range_means(rows: list[list[str]]) -> Ranges:
    """Mean number of cells, errors by area and their standard errors; the best side is that of each area."""
    found: Ranges = {}
    for (data, epsilon, method), runs in grouped(rows, 3).items():
        found[data, float(epsilon), method] = float(mean(row[1] for row in runs)[0]), *mean(row[2:] for row in runs)
    for data, epsilon in dict.fromkeys(key[:2] for key in found):
        sides = [found[data, epsilon, f"UG {side}"] for side in SIDES]
        errors, spread = (np.array([each[part] for each in sides]) for part in (1, 2))
        best = errors.argmin(axis=0), np.arange(len(RHOS))
        found[data, epsilon, BEST] = np.nan, errors[best], spread[best]
    return found


def cell(value: float, error: float) -> str:
    return short(value) if error == 0 else f"{short(value)} ± {short(error)}"


def of_areas(raw: dict[str, list[list[str]]], areas: Areas) -> dict[str, list[str]]:
    return {
        "area-duels": area_duels(areas),
        "guide": guide(areas),
        "radii": radii(raw["radii"]),
        "rules": rules(raw["rules"]),
        "stopping": stopping(raw["stopping"]),
        "printed": printed(raw["printed"]),
    }


def sign(one: tuple[float, float], other: tuple[float, float]) -> str:
    """Whether the first mean is lower or higher by more than twice the standard error of their difference."""
    gap, noise = other[0] - one[0], 2 * np.hypot(one[1], other[1])
    return "=" if abs(gap) <= noise else "+" if gap > 0 else "-"


def area_duels(areas: Areas) -> list[str]:
    """Settings in which one method is better, even or worse than another, by data."""
    pairs = [("DAM", name) for name in METHODS[1:] if name != "uniform"]
    pairs += [("HUEM", "MDSW"), ("HUEM as printed", "MDSW"), ("MDSW", "uniform"), ("DAM", "uniform")]
    names, rows = distinct(areas, 0), []
    for one, other in pairs:
        row = [f"{one} against {other}"]
        for data in names:
            settings = [key[:3] for key in areas if key[0] == data and key[3] == other]
            row.append(tally(sign(areas[*key, one], areas[*key, other]) for key in settings))
        rows.append(row)
    return table(["", *names], rows)


def tally(signs: Iterable[str]) -> str:
    counts = Counter(signs)
    return f"{counts['+']} / {counts['=']} / {counts['-']}"


def guide(areas: Areas) -> list[str]:
    """Ours beside figures of an earlier implementation; bold where they differ by more than a fifth."""
    figures = {key[1:]: value for key, value in published().items() if key[0] == GUIDE}
    settings, methods = distinct(figures, 1), distinct(figures, 2)
    rows = []
    for setting, data in itertools.product(settings, SIMULATED):
        d, epsilon = setting.split(", ")
        row = [setting, data]
        for method in methods:
            if (expected := figures.get((data, setting, method))) is None:
                row.append("-")
                continue
            found, _ = areas[data, int(d), float(epsilon), method]
            text = f"{found:.2f} ({expected:.2f})"
            # Both figures are rounded to hundredths.
            row.append(f"**{text}**" if abs(found - expected) > NEAR * expected + 0.005 else text)
        rows.append(row)
    return table(["d, eps", "data", *methods], rows)


def radii(rows: list[list[str]]) -> list[str]:
    found = run_means(rows)
    radius = {float(key[1]): key[2] for key in found}
    lines = []
    for data in distinct(found, 0):
        for method in ("DAM", "smoothed"):
            means = [found[data, f"{times:g}", radius[times], method] for times in MULTIPLIERS]
            lines.append([data, method, *(cell(*first(each)) for each in means)])
    return table(["data", "", *(f"c = {times:g}, radius {radius[times]}" for times in MULTIPLIERS)], lines)


def rules(rows: list[list[str]]) -> list[str]:
    found, names = area_means(rows), [points.name for points in local_areas.data()]
    lines = []
    for d, epsilon, method in dict.fromkeys(key[1:] for key in found):
        cells = [cell(*found[data, d, epsilon, method]) for data in names]
        lines.append([f"{d}, {epsilon:g}", method.replace(":", ", "), *cells])
    return table(["d, eps", "rule, radius", *names], lines)


def stopping(rows: list[list[str]]) -> list[str]:
    lines = []
    found = run_means(rows)
    for data, d, epsilon in dict.fromkeys(key[:3] for key in found):
        usual, tight = (found[data, d, epsilon, name] for name in ("usual", "tight"))
        texts = [cell(*first(each)) for each in (usual, tight)]
        row = [data, f"{d}, {epsilon}", texts[0], f"{usual[0][1]:.0f}", texts[1], f"{tight[0][1]:.0f}"]
        lines.append([*row, f"{tight[0][2]:.0%}"])
    heads = ["data", "d, eps", "W2, usual", "iterations", "W2, 1e-6", "iterations", "runs that stopped by themselves"]
    return table(heads, lines)


def printed(rows: list[list[str]]) -> list[str]:
    lines = []
    found = run_means(rows)
    for data, d, epsilon in dict.fromkeys(key[:3] for key in found):
        row = [data, f"{d}, {epsilon}"]
        for each in (found[data, d, epsilon, name] for name in ("epsilon", "spent")):
            row += [cell(*first(each)), f"{each[0][1]:.0f}"]
        lines.append(row)
    return table(["data", "d, eps", "W2, 0.001 e^epsilon", "iterations", "W2, 0.001 e", "iterations"], lines)


def of_ranges(ranges: Ranges) -> dict[str, list[str]]:
    return {
        "cells": cells_of(ranges),
        "range-duels": range_duels(ranges),
    }


def cells_of(ranges: Ranges) -> list[str]:
    first, others, rows = local_ranges.first_levels(), published(), []
    for data in distinct(ranges, 0):
        for k, epsilon in enumerate(EPSILONS):
            ours = {"first level": first[data][k]}
            ours |= {name: ranges[data, epsilon, name][0] for name in ("PrivAG", "AAG")}
            row = [data, f"{epsilon:g}"]
            for name, number in ours.items():
                figure = others.get(("number of cells", data, f"eps {epsilon:g}", name))
                row.append(f"{number:.0f}" if figure is None else f"{number:.0f} ({figure:.0f})")
            rows.append([*row, *(f"{ranges[data, epsilon, name][0]:.0f}" for name in MORE)])
    return table(["data", "eps", "first level", "PrivAG", "AAG", *MORE], rows)


DUELS = (
    ("AAG", "PrivAG"),
    ("AAG", BEST),
    ("AAG", "UG, rule"),
    ("AAG, consistent", BEST),
    ("AAG, consistent", "AAG"),
    ("PrivAG, consistent", "PrivAG"),
    ("AAG, unscaled", "AAG"),
    ("PrivAG, unscaled", "PrivAG"),
    ("AAG", "AAG, even cuts"),
    ("AAG", "AAG, alpha1 = .25"),
    (BEST, ZERO),
    ("UG, rule", ZERO),
    ("PrivAG", ZERO),
    ("AAG", ZERO),
    ("AAG, unscaled", ZERO),
    ("AAG", CONSTANT),
    ("central AG", "AAG, consistent"),
    ("central AG", "central UG"),
)


def range_duels(ranges: Ranges) -> list[str]:
    """Numbers of settings in which one method is better, even or worse: by data, small areas and large ones."""
    names, rows = distinct(ranges, 0), []
    for one, other in DUELS:
        row = [f"{one} against {other}"]
        for data in names:
            both = [(ranges.get((data, eps, one)), ranges.get((data, eps, other))) for eps in EPSILONS]
            found = [[duel(a, b, k) for a, b in both if a and b] for k in range(len(RHOS))]
            small, large = ([each for some in found[part] for each in some] for part in (slice(0, 5), slice(5, 10)))
            row.append(f"{tally(small)}; {tally(large)}")
        rows.append(row)
    return table(["", *names], rows)


def duel(one: tuple, other: tuple, k: int) -> str:
    return sign((one[1][k], one[2][k]), (other[1][k], other[2][k]))


def write_csv(out: Path, areas: Areas, ranges: Ranges) -> None:
    """All means and standard errors."""
    rows = ([*key, *(f"{each:.4f}" for each in found)] for key, found in areas.items())
    write_rows(out / "local_areas.csv", ["data", "cells", "epsilon", "method", "w2_cells", "standard_error"], rows)
    rows = (
        [*key, "" if np.isnan(cells) else f"{cells:.0f}", *(f"{m:.4g}" for m in means), *(f"{e:.2g}" for e in errors)]
        for key, (cells, means, errors) in ranges.items()
    )
    write_rows(out / "local_ranges.csv", ["data", "epsilon", "method", "cells", *HEADS], rows)
