"""Tables of docs/results/clusters.md, from the rows of benchmarks/clusters.py."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from cluster_originals import CLUSTERED, OTHERS, SOHO
from cluster_scores import RADII
from pages import table

# Rows by name, number of points, budget and kind of inference.
Rows = dict[tuple[str, int, float, str], list[dict[str, Any]]]
SHOWN = [RADII.index(r) for r in (10.0, 25.0, 50.0)]
HEADLINE = "Thomas 8 x 10 m"
BUDGETS, SIZES, LARGE = (0.3, 1.0, 3.0), (200, 1000), 10_000
SQUARES = (*CLUSTERED, *OTHERS)


def all_tables(rows: Rows) -> dict[str, list[str]]:
    """Lines of every table, by the name of its place on the page."""
    makers = (reach, errors, levels, budgets, shapes, places, first_order, even, decided, seconds)
    return {each.__name__.replace("_", " "): each(rows) for each in makers}


def mean(found: list[dict[str, Any]], word: str, key: str) -> Any:
    return np.mean([row[word][key] for row in found], axis=0)


def middle(found: list[dict[str, Any]], word: str, key: str) -> float:
    """Geometric mean."""
    return float(np.exp(np.mean(np.log([row[word][key] for row in found]))))


def joined(values: Iterable[float], form: str = ".0f") -> str:
    return " / ".join(f"{each:{form}}" for each in values)


def excess(found: list[dict[str, Any]], word: str) -> np.ndarray:
    """Mean L(r) - r at the shown distances."""
    return np.asarray(mean(found, word, "excess")[SHOWN])


def kept(found: list[dict[str, Any]], word: str) -> str:
    """Mean of L(r) - r over the original's."""
    return joined(excess(found, word) / excess(found, "original"), ".2f")


def spread(found: list[dict[str, Any]]) -> str:
    """Standard deviation over releases of what `kept` is the mean of."""
    values = np.array([row["with"]["excess"] for row in found])[:, SHOWN]
    return joined(values.std(axis=0, ddof=1) / excess(found, "original"), ".2f")


def of(rows: Rows, names: Iterable[str], n: int, epsilon: float) -> list[tuple[str, list[dict[str, Any]]]]:
    keys = ((name, (name, n, epsilon, "laplace")) for name in names)
    return [(name, rows[key]) for name, key in keys if key in rows]


def reach(rows: Rows) -> list[str]:
    """Targets beside measured figures."""
    lines = []
    for name, inference in ((name, each) for name in (HEADLINE, *SOHO) for each in ("laplace", "nuts")):
        found = rows.get((name, 400, 1.0, inference))
        if found:
            words = name + ", NUTS" * (inference == "nuts")
            cells = [kept(found, "without"), kept(found, "with"), spread(found) if len(found) > 3 else ""]
            lines.append([words, ".75 to 1.25", *cells, f"{len(found)}"])
    lines.append(error_line("clustered: MISE", rows, CLUSTERED, "at most .5"))
    lines.append(error_line("not clustered: MISE", rows, OTHERS, "at most 1"))
    lines.append(error_line("not clustered: MISE, beside .7 of the budget", rows, OTHERS, "", beside="less"))
    times = [row for _, found in of(rows, SQUARES, LARGE, 1.0) for row in found]
    if times:
        each = ([row[word]["elapsed"] for row in times] for word in ("without", "with"))
        cells = [f"{np.mean(taken):.1f}, at most {max(taken):.1f}" for taken in each]
        lines.append(["seconds, 10 000 points", "10", *cells, "", f"{len(times)}"])
    heads = ["eps = 1", "to reach", "without", "with clusters", "sd between releases", "releases"]
    return table(heads, lines)


def error_line(words: str, rows: Rows, names: Iterable[str], most: str, beside: str = "without") -> list[str]:
    """MISE over that without clusters, of all of the budget or of what the share for clusters leaves."""
    parts = [found for n in (200, 400, 1000, LARGE) for _, found in of(rows, names, n, 1.0)]
    ratios = [middle(found, "with", "mise") / middle(found, beside, "mise") for found in parts]
    if not ratios:
        return [words, most, "1", "", "", "0"]
    average = np.exp(np.mean(np.log(ratios)))
    cell = f"{average:.2f} (from {min(ratios):.2f} to {max(ratios):.2f})"
    return [words, most, "1", cell, "", f"{sum(map(len, parts))}"]


def errors(rows: Rows) -> list[str]:
    """MISE of another original, and of releases without and with clusters, by number of points."""
    lines = []
    for name in CLUSTERED:
        for n in (200, 400, 1000, LARGE):
            for _, found in of(rows, [name], n, 1.0):
                another, without, made = (middle(found, word, "mise") for word in ("another", "without", "with"))
                cells = [f"{each:.1f}" for each in (another, without, made)]
                lines.append([name, f"{n}", *cells, f"{made / without:.2f}", f"{len(found)}"])
    return table(["", "n", "another original", "without", "with clusters", "with / without", "originals"], lines)


def levels(rows: Rows) -> list[str]:
    """L(r) - r by original and number of points."""
    lines = []
    for name in (*SQUARES, *SOHO):
        for n in (200, 400, 1000, LARGE):
            for _, found in of(rows, [name], n, 1.0):
                cells = [joined(excess(found, word), ".1f") for word in ("original", "without", "with")]
                lines.append([name, "" if name in SOHO else f"{n}", *cells, f"{len(found)}"])
    return table(["", "n", "original", "without", "with clusters", "releases"], lines)


def budgets(rows: Rows) -> list[str]:
    """Share of the original's L(r) - r that is kept, by budget."""
    lines = []
    for name in (*CLUSTERED, "Cox, 100 m", *SOHO):
        for n in (200, 400, 1000):
            cells = [[kept(found, word) for word in ("without", "with")] for found in by_budget(rows, name, n)]
            if len(cells) == len(BUDGETS):
                label = "" if name in SOHO else f"{n}"
                lines.append([name, label, *(f"{less}; **{more}**" for less, more in cells)])
    return table(["", "n", *(f"eps {e:g}" for e in BUDGETS)], lines)


def by_budget(rows: Rows, name: str, n: int) -> list[list[dict[str, Any]]]:
    return [found for e in BUDGETS for _, found in of(rows, [name], n, e)]


def shapes(rows: Rows) -> list[str]:
    """MISE, nearest neighbours, shares in squares and pair correlation, beside those of another original."""
    lines = []
    for name, n in [(name, 1000) for name in SQUARES] + [(name, 400) for name in (HEADLINE, *SOHO)]:
        for _, found in of(rows, [name], n, 1.0):
            words = [word for word in ("another", "without", "with") if word in found[0]]
            cells = [joined([middle(found, word, "mise") for word in words], ".1f")]
            cells += [joined([mean(found, word, key) for word in words], ".2f") for key in ("nearest", "misplaced")]
            cells += [joined(mean(found, word, "pairs")[SHOWN[:2]], ".1f") for word in ("original", "without", "with")]
            lines.append([name, "" if name in SOHO else f"{n}", *cells])
    heads = ["", "n", "MISE of K", "nearest neighbours", "misplaced", "g at 10 / 25 m: original", "without", "with"]
    return table(heads, lines)


def places(rows: Rows) -> list[str]:
    """Points of Soho that lie where another does."""
    lines = []
    for name in SOHO:
        for e in BUDGETS:
            for _, found in of(rows, [name], 400, e):
                shares = [f"{100 * mean(found, word, 'coincident'):.0f} %" for word in ("original", "without", "with")]
                lines.append([name, f"{e:g}", *shares, f"{len(found)}"])
    return table(["", "eps", "original", "without", "with clusters", "releases"], lines)


def first_order(rows: Rows) -> list[str]:
    """Distance of the released intensity to the truth."""
    lines = []
    for name in SQUARES:
        for n in (*SIZES, LARGE):
            cells = [
                joined([mean(found, word, "distance") for word in ("without", "less", "with")], ".3f")
                for found in by_budget(rows, name, n)
            ]
            if n == LARGE and len(cells) == 1:
                cells = ["", *cells, ""]
            if len(cells) == len(BUDGETS):
                lines.append([name, f"{n}", *cells])
    return table(["", "n", *(f"eps {e:g}" for e in BUDGETS)], lines)


def even(rows: Rows) -> list[str]:
    """Rates at which originals without clusters come out clustered."""
    lines = []
    for name, e in (*(("uniform", e) for e in BUDGETS), ("hard core", 1.0), ("Cox, 100 m", 1.0)):
        for _, found in of(rows, [name], 400, e):
            test = "beyond" if "beyond" in found[0]["with"] else "called"
            cells = [
                f"{100 * mean(found, word, test + source):.0f} %"
                for source in ("", " drawn")
                for word in ("without", "with")
            ]
            laws = [row["law"] for row in found]
            likely = f"{100 * np.mean([law['likely'] for law in laws]):.0f} %"
            none = f"{np.median([law['none'] for law in laws]):.2f}"
            lines.append([name, f"{e:g}", f"{len(found)}", likely, none, *cells])
    heads = ["n = 400", "eps", "releases", "clusters likely", "median P(none)", "called clustered, without", "with"]
    return table([*heads, "draws, without", "with"], lines)


def decided(rows: Rows) -> list[str]:
    """Releases that find clusters likely."""
    settings = [(n, e) for n in SIZES for e in BUDGETS] + [(LARGE, 1.0)]
    lines = []
    for name in SQUARES:
        cells = [next((verdict(found) for _, found in of(rows, [name], n, e)), "") for n, e in settings]
        lines.append([name, *cells])
    return table(["", *(f"n {n}, eps {e:g}" for n, e in settings)], lines)


def verdict(found: list[dict[str, Any]]) -> str:
    """Numbers of releases that find clusters likely, and mean probabilities of none."""
    laws = [row["law"] for row in found]
    return f"{sum(law['likely'] for law in laws)}/{len(laws)} ({np.mean([law['none'] for law in laws]):.2f})"


def seconds(rows: Rows) -> list[str]:
    """Seconds of a release."""
    lines = []
    for n in (200, 400, 1000, LARGE):
        for name in ("uniform", HEADLINE, *(SOHO if n == 400 else ())):
            for inference in ("laplace", "nuts"):
                found = rows.get((name, n, 1.0, inference))
                if found:
                    # The first of a process also compiles.
                    times = [[row[word]["seconds"] for row in found][-10:] for word in ("without", "with")]
                    label = "" if name in SOHO else f"{n}"
                    lines.append([name, label, inference, *(f"{np.median(each):.1f}" for each in times)])
    return table(["", "n", "inference", "without", "with clusters"], lines)
