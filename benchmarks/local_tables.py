"""Tables of benchmarks/local.py: means over runs with their standard errors, beside published figures."""

import csv
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import local_areas
import local_ranges
import numpy as np
from heatmap_tables import rule, short
from local_areas import METHODS, MULTIPLIERS, SEM, SETTINGS
from local_ranges import CONSTANT, EPSILONS, LARGE, RHOS, SIDES, SMALL, ZERO

# Mean and standard error, arrays where several errors stand in a row.
Mean = tuple[np.ndarray, np.ndarray]
Areas = dict[tuple[str, int, float, str], Mean]
Ranges = dict[tuple[str, float, str], tuple[float, np.ndarray, np.ndarray]]

# Figures that an earlier implementation gave: Normal, MNormal, SZipf.
SIMULATED = ("Normal", "MNormal", "SZipf")
GUIDE_METHODS = ("DAM", "DAM-NS", "HUEM", "HUEM as printed", "MDSW", SEM)
GUIDE = {
    (5, 0.7): [(0.35, 0.33, 0.41), (0.27, 0.31, 0.40), (0.45, 0.44, 0.32), (0.36, 0.37, 0.29), (1.38, 1.21, 0.60)],
    (5, 3.5): [
        (0.11, 0.12, 0.15),
        (0.09, 0.10, 0.14),
        (0.10, 0.11, 0.15),
        (0.29, 0.36, 0.29),
        (0.92, 0.86, 0.30),
        (0.18, 0.16, 0.21),
    ],
    (15, 5.0): [
        (0.23, 0.22, 0.30),
        (0.25, 0.23, 0.29),
        (0.23, 0.22, 0.30),
        (1.84, 1.73, 1.44),
        (0.92, 0.72, 0.21),
        (1.08, 0.91, 0.74),
    ],
    (20, 5.0): [(0.29, 0.30, 0.47), (0.32, 0.29, 0.42), (0.37, 0.32, 0.40), (2.50, 2.53, 1.87), (1.05, 0.78, 0.24)],
    (15, 9.0): [
        (0.14, 0.13, 0.10),
        (0.14, 0.11, 0.10),
        (0.14, 0.12, 0.11),
        (0.14, 0.12, 0.10),
        (0.84, 0.63, 0.21),
        (0.08, 0.09, 0.14),
    ],
}
NEAR = 0.2

# Published: cells of the first level, of PrivAG and of AAG by epsilon, and errors by area at epsilon 1.
TABLE_1 = {
    "Gowalla*": ((36, 81, 324, 900), (42, 96, 440, 1358), (276, 567, 2451, 8745)),
    "Porto*": ((25, 49, 225, 625), (31, 63, 256, 745), (188, 390, 1567, 4503)),
    "Foursquare*": ((16, 36, 121, 361), (19, 45, 162, 455), (107, 235, 957, 2794)),
}
PUBLISHED = ("UG, best N", "PrivAG", "AAG")
TABLE_2 = {
    "Gowalla*": [
        (0.0034, 0.0067, 0.0279, 0.0485, 0.120),
        (0.0039, 0.0077, 0.0374, 0.0728, 0.305),
        (0.0023, 0.0051, 0.0236, 0.0460, 0.185),
    ],
    "Porto*": [
        (0.0028, 0.0045, 0.0180, 0.0321, 0.082),
        (0.0034, 0.0056, 0.0283, 0.0540, 0.205),
        (0.0025, 0.0045, 0.0247, 0.0501, 0.195),
    ],
    "Foursquare*": [
        (0.0032, 0.0054, 0.0243, 0.0416, 0.126),
        (0.0036, 0.0062, 0.0291, 0.0547, 0.203),
        (0.0025, 0.0043, 0.0234, 0.0450, 0.177),
    ],
}
TABLE_3 = {
    "Gowalla*": [(0.20, 0.21, 0.24, 0.22, 0.21), (0.83, 1.15, 1.32, 1.29, 1.25), (0.52, 0.71, 0.73, 0.73, 0.72)],
    "Porto*": [(0.12, 0.12, 0.11, 0.12, 0.09), (0.54, 0.76, 0.85, 0.91, 0.91), (0.38, 0.49, 0.60, 0.61, 0.65)],
    "Foursquare*": [(0.17, 0.20, 0.19, 0.22, 0.21), (0.48, 0.63, 0.68, 0.70, 0.71), (0.40, 0.56, 0.64, 0.70, 0.71)],
}
TABLE_4 = {
    "Gowalla*": [
        (0.0070, 0.0066, 0.0064, 0.0056),
        (0.0075, 0.0077, 0.0072, 0.0062),
        (0.0047, 0.0051, 0.0049, 0.0041),
    ],
    "Porto*": [
        (0.0048, 0.0045, 0.0045, 0.0045),
        (0.0058, 0.0056, 0.0059, 0.0060),
        (0.0048, 0.0045, 0.0049, 0.0049),
    ],
    "Foursquare*": [
        (0.0055, 0.0054, 0.0051, 0.0048),
        (0.0060, 0.0062, 0.0061, 0.0069),
        (0.0044, 0.0043, 0.0040, 0.0047),
    ],
}
TABLE_5 = {
    "Gowalla*": [(0.28, 0.23, 0.17, 0.19), (1.09, 1.15, 1.08, 0.98), (0.68, 0.71, 0.68, 0.76)],
    "Porto*": [(0.16, 0.12, 0.10, 0.09), (0.77, 0.76, 0.71, 0.71), (0.49, 0.49, 0.62, 0.63)],
    "Foursquare*": [(0.26, 0.19, 0.16, 0.16), (0.69, 0.63, 0.75, 0.69), (0.61, 0.56, 0.55, 0.51)],
}
BEST = "UG, best N"
TABLED = (
    ZERO,
    CONSTANT,
    BEST,
    "UG, rule",
    "PrivAG",
    "AAG",
    "AAG, consistent",
    "AAG, unscaled",
    "AAG, even cuts",
    "AAG, alpha1 = .25",
    "central AG",
)


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
    return {
        (data, int(d), float(epsilon), method): mean(row[1] for row in runs)
        for (data, d, epsilon, method), runs in grouped(rows, 4).items()
    }


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


def cell(value: float, error: float, *, digits: int = 3) -> str:
    if error == 0:
        return trimmed(value, digits)
    # Four digits are for errors of which few are large: theirs would be 0.
    return f"{trimmed(value, digits)} ± {trimmed(error, digits + (digits > 3))}"


def trimmed(value: float, digits: int) -> str:
    return short(value) if digits == 3 else f"{value:.{digits}f}".replace("0.", ".", 1)


def distinct(found: Iterable[tuple], place: int) -> list:
    return list(dict.fromkeys(key[place] for key in found))


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    heads = list(heads)
    return ["| " + " | ".join(heads) + " |", rule(len(heads)), *("| " + " | ".join(row) + " |" for row in rows)]


def of_areas(raw: dict[str, list[list[str]]], areas: Areas) -> dict[str, list[str]]:
    lines = {name.replace(" ", "-"): by_setting(areas, name) for name in SETTINGS}
    return {
        **lines,
        "area-duels": area_duels(areas),
        "guide": guide(areas),
        "radii": radii(raw["radii"]),
        "rules": rules(raw["rules"]),
        "stopping": stopping(raw["stopping"]),
        "printed": printed(raw["printed"]),
    }


def by_setting(areas: Areas, name: str) -> list[str]:
    """One experiment: data and settings down, methods across; a dash where there is no such mechanism."""
    rows = []
    for data in distinct(areas, 0):
        for d, epsilon in SETTINGS[name]:
            found = [areas.get((data, d, epsilon, method)) for method in METHODS]
            cells = ["-" if each is None else cell(float(each[0]), float(each[1])) for each in found]
            rows.append([data, f"{d}" if name.endswith("d") else f"{epsilon:g}", *cells])
    return table(["data", "d" if name.endswith("d") else "eps", *METHODS], rows)


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
            row.append(tally(sign(plain(areas[*key, one]), plain(areas[*key, other])) for key in settings))
        rows.append(row)
    return table(["", *names], rows)


def plain(found: Mean) -> tuple[float, float]:
    return float(found[0]), float(found[1])


def tally(signs: Iterable[str]) -> str:
    counts = Counter(signs)
    return f"{counts['+']} / {counts['=']} / {counts['-']}"


def guide(areas: Areas) -> list[str]:
    """Ours beside figures of an earlier implementation; bold where they differ by more than a fifth."""
    rows = []
    for (d, epsilon), expected in GUIDE.items():
        for k, data in enumerate(SIMULATED):
            row = [f"{d}, {epsilon:g}", data]
            for method, figures in zip(GUIDE_METHODS, expected, strict=False):
                found, _ = areas[data, d, epsilon, method]
                text = f"{found:.2f} ({figures[k]:.2f})"
                # Both figures are rounded to hundredths.
                far = abs(found - figures[k]) > NEAR * figures[k] + 0.005
                row.append(f"**{text}**" if far else text)
            rows.append(row + ["-"] * (len(GUIDE_METHODS) - len(expected)))
    return table(["d, eps", "data", *GUIDE_METHODS], rows)


def radii(rows: list[list[str]]) -> list[str]:
    found = {key: mean(row[1] for row in runs) for key, runs in grouped(rows, 4).items()}
    radius = {float(key[1]): key[2] for key in found}
    lines = []
    for data in distinct(found, 0):
        for method in ("DAM", "smoothed"):
            means = [found[data, f"{times:g}", radius[times], method] for times in MULTIPLIERS]
            lines.append([data, method, *(cell(float(each[0]), float(each[1])) for each in means)])
    return table(["data", "", *(f"c = {times:g}, radius {radius[times]}" for times in MULTIPLIERS)], lines)


def rules(rows: list[list[str]]) -> list[str]:
    found: dict[tuple, dict[str, Mean]] = {}
    for (data, d, epsilon, method), runs in grouped(rows, 4).items():
        found.setdefault((int(d), float(epsilon)), {})[f"{data}:{method}"] = mean(row[1] for row in runs)
    names, lines = [points.name for points in local_areas.data()], []
    for (d, epsilon), here in found.items():
        for method in dict.fromkeys(key.split(":", 1)[1] for key in here):
            rule_name, radius = method.split(":")
            cells = [cell(*plain(here[f"{data}:{method}"])) for data in names]
            lines.append([f"{d}, {epsilon:g}", f"{rule_name}, {radius}", *cells])
    return table(["d, eps", "rule, radius", *names], lines)


def stopping(rows: list[list[str]]) -> list[str]:
    lines = []
    found = {key: mean([row[1:] for row in runs]) for key, runs in grouped(rows, 4).items()}
    for data, d, epsilon in dict.fromkeys(key[:3] for key in found):
        usual, tight = (found[data, d, epsilon, name] for name in ("usual", "tight"))
        texts = [cell(float(each[0][0]), float(each[1][0])) for each in (usual, tight)]
        row = [data, f"{d}, {epsilon}", texts[0], f"{usual[0][1]:.0f}", texts[1], f"{tight[0][1]:.0f}"]
        lines.append([*row, f"{tight[0][2]:.0%}"])
    heads = ["data", "d, eps", "W2, usual", "iterations", "W2, 1e-6", "iterations", "runs that stopped by themselves"]
    return table(heads, lines)


def printed(rows: list[list[str]]) -> list[str]:
    lines = []
    found = {key: mean([row[1:] for row in runs]) for key, runs in grouped(rows, 4).items()}
    for data, d, epsilon in dict.fromkeys(key[:3] for key in found):
        row = [data, f"{d}, {epsilon}"]
        for means, errors in (found[data, d, epsilon, name] for name in ("epsilon", "spent")):
            row += [cell(float(means[0]), float(errors[0])), f"{means[1]:.0f}"]
        lines.append(row)
    return table(["data", "d, eps", "W2, 0.001 e^epsilon", "iterations", "W2, 0.001 e", "iterations"], lines)


def of_ranges(ranges: Ranges) -> dict[str, list[str]]:
    one = {"epsilon": 1.0}
    return {
        "cells": cells_of(ranges),
        "rho-small": by_area(ranges, SMALL, TABLE_2, digits=4, **one),
        "rho-large": by_area(ranges, LARGE, TABLE_3, digits=3, **one),
        "eps-small-rho": by_epsilon(ranges, 0.0001, TABLE_4, digits=4),
        "eps-large-rho": by_epsilon(ranges, 0.04, TABLE_5, digits=3),
        "range-duels": range_duels(ranges),
        "sides": sides(ranges),
    }


def cells_of(ranges: Ranges) -> list[str]:
    first, rows = local_ranges.first_levels(), []
    for data in distinct(ranges, 0):
        for k, epsilon in enumerate(EPSILONS):
            row = [data, f"{epsilon:g}", pair(first[data][k], data, 0, k)]
            row += [pair(ranges[data, epsilon, name][0], data, place, k) for place, name in ((1, "PrivAG"), (2, "AAG"))]
            more = (f"{ranges[data, epsilon, name][0]:.0f}" for name in ("UG, rule", "central UG", "central AG"))
            rows.append([*row, *more])
    heads = ["data", "eps", "first level", "PrivAG", "AAG", "UG, rule", "central UG", "central AG"]
    return table(heads, rows)


def pair(found: float, data: str, place: int, k: int) -> str:
    return f"{found:.0f} *{TABLE_1[data][place][k]}*" if data in TABLE_1 else f"{found:.0f}"


def by_area(ranges: Ranges, rhos: tuple[float, ...], printed: dict, *, digits: int, epsilon: float) -> list[str]:
    """Methods down, areas of the queries across, published rows in italics."""
    places, rows = [RHOS.index(rho) for rho in rhos], []
    for data in distinct(ranges, 0):
        for method in TABLED:
            if (data, epsilon, method) in ranges:
                _, means, errors = ranges[data, epsilon, method]
                cells = [cell(means[k], errors[k], digits=digits) for k in places]
                rows.append([data, method, *cells])
            if method in PUBLISHED and data in printed:
                figures = printed[data][PUBLISHED.index(method)]
                rows.append([data, f"*{method}, published*", *(f"*{trimmed(each, digits)}*" for each in figures)])
    return table(["data", "method", *(f"{100 * rho:g} %" for rho in rhos)], rows)


def by_epsilon(ranges: Ranges, rho: float, printed: dict, *, digits: int) -> list[str]:
    """Methods down, epsilons across, published rows in italics."""
    place, rows = RHOS.index(rho), []
    for data in distinct(ranges, 0):
        for method in TABLED:
            found = [ranges.get((data, epsilon, method)) for epsilon in EPSILONS]
            if all(each is not None for each in found):
                cells = [cell(each[1][place], each[2][place], digits=digits) for each in found if each]
                rows.append([data, method, *cells])
            if method in PUBLISHED and data in printed:
                figures = printed[data][PUBLISHED.index(method)]
                rows.append([data, f"*{method}, published*", *(f"*{trimmed(each, digits)}*" for each in figures)])
    return table(["data", "method", *(f"eps {epsilon:g}" for epsilon in EPSILONS)], rows)


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
    """In how many settings one method is better, even or worse: by data, small areas and large ones."""
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


def sides(ranges: Ranges) -> list[str]:
    """Best side of the uniform grid by area, and that of the rule."""
    rows = []
    for data in distinct(ranges, 0):
        for epsilon in EPSILONS:
            errors = np.array([ranges[data, epsilon, f"UG {side}"][1] for side in SIDES])
            best = [str(SIDES[k]) for k in errors.argmin(axis=0)]
            rows.append([data, f"{epsilon:g}", *best, f"{ranges[data, epsilon, 'UG, rule'][0] ** 0.5:.0f}"])
    return table(["data", "eps", *(f"{100 * rho:g} %" for rho in RHOS), "rule"], rows)


def write_csv(out: Path, areas: Areas, ranges: Ranges) -> None:
    """All means and standard errors."""
    with (out / "local_areas.csv").open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["data", "cells", "epsilon", "method", "w2_cells", "standard_error"])
        writer.writerows([*key, f"{found[0]:.4f}", f"{found[1]:.4f}"] for key, found in areas.items())
    with (out / "local_ranges.csv").open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        areas_of = [f"{100 * rho:g} %" for rho in RHOS]
        heads = [*(f"aqe {rho}" for rho in areas_of), *(f"standard error {rho}" for rho in areas_of)]
        writer.writerow(["data", "epsilon", "method", "cells", *heads])
        for key, (cells, means, errors) in ranges.items():
            number = "" if np.isnan(cells) else f"{cells:.0f}"
            writer.writerow([*key, number, *(f"{each:.4g}" for each in means), *(f"{each:.2g}" for each in errors)])
