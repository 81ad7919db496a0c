"""Tables of benchmarks/rivals.py, from the results of all settings."""

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
from pages import table

# Scores as differences and distances as shares that are told apart from a draw.
EVEN_SCORE, EVEN_DISTANCE = 0.005, 0.01
# The budget of the short tables.
MAIN = 1.0
SCORE, DISTANCE = 0, 1
OURS, FIELD = ("tents", "moved"), "field, not private"
# Columns between the best histogram and the default's mechanism.
RESULTS = ("jitter, kernel", "jitter, deconvolved", *OURS, "default")


@dataclass(frozen=True)
class Row:
    """Results of a setting: score, distance and more, by method."""

    name: str
    n: int
    relation: str
    epsilon: float
    ours: dict[str, list]
    histograms: dict[str, list]
    jitters: dict[str, list]
    limits: dict[str, list]

    @property
    def setting(self) -> list[str]:
        return [self.name, str(self.n), self.relation, f"{self.epsilon:g}"]

    @property
    def chosen(self) -> str:
        """The mechanism that the default chose."""
        return str(self.ours["auto"][2]).removeprefix("lgcp-")

    def best(self, methods: dict[str, list], measure: int) -> tuple[str, float]:
        """Name and result of the best of some methods: the highest score, or the smallest distance."""
        name = (max if measure == SCORE else min)(methods, key=lambda name: methods[name][measure])
        return name, methods[name][measure]

    def ahead(self, methods: dict[str, list], measure: int) -> float:
        """Lead of the default over the best of some methods: a difference of scores, or of logarithms of distances."""
        ours, theirs = self.ours["auto"][measure], self.best(methods, measure)[1]
        return float(ours - theirs if measure == SCORE else np.log(theirs / ours))

    def won(self, methods: dict[str, list], measure: int) -> bool:
        return self.ahead(methods, measure) >= 0

    @property
    def rivals(self) -> dict[str, list]:
        return self.histograms | self.jitters


def tables(rows: list[Row], *, every_histogram: bool = True) -> Iterator[tuple[str, list[str]]]:
    """All tables by the names of their places; without every histogram's results not the one that tells of each."""
    yield "summary", summary(rows)
    yield "main", main_settings(rows)
    yield "losses", losses(rows)
    if every_histogram:
        yield "methods", methods(rows)
    yield "scores", results(rows, SCORE)
    yield "distances", results(rows, DISTANCE)


def told_rows(folder: Path) -> list[Row]:
    """Rows as the files of a folder tell them: of the histograms the best by score and the best by distance."""
    limits = {tuple(cells[:3]): cells[-1] for cells in _cells(folder / "main.csv")}
    both = zip(_cells(folder / "scores.csv"), _cells(folder / "distances.csv"), strict=True)
    return [_told_row(scores, distances, limits.get(tuple(scores[:3]), "nan")) for scores, distances in both]


def _cells(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))[1:]


def _told_row(scores: list[str], distances: list[str], field: str) -> Row:
    """A row of the tables of `results`, and the score of the field that is not private."""
    histograms: dict[str, list] = {}
    for measure, (cell, unit) in enumerate(((scores[4], 1), (distances[4], 100))):
        value, name = cell.split(" ", 1)
        histograms.setdefault(name, [-np.inf, np.inf])[measure] = float(value) / unit
    told = {
        name: [float(score), float(distance) / 100]
        for name, score, distance in zip(RESULTS, scores[5:10], distances[5:10], strict=True)
        if score
    }
    ours = {"auto": [*told.pop("default"), scores[10]]} | {name: told.pop(name) for name in OURS if name in told}
    limits = {"kernel, not private": [float(scores[11]), float(distances[11]) / 100], FIELD: [float(field), np.nan]}
    return Row(scores[0], int(scores[1]), scores[2], float(scores[3]), ours, histograms, told, limits)


def summary(rows: list[Row]) -> list[str]:
    """Wins of the default by relation and budget, and medians."""
    rivals = ("histograms", "jitters", "all")
    heads = ["neighbours", "eps", "settings", *(f"{word}: {each}" for word in ("score", "distance") for each in rivals)]
    heads += ["median score below the kernel without privacy", "median distance, as a share of the best histogram's"]

    def key(row: Row) -> tuple[str, float]:
        return row.relation, row.epsilon

    groups = {each: [row for row in rows if key(row) == each] for each in dict.fromkeys(map(key, rows))}
    lines = [[*_told(each), *_counted(group)] for each, group in groups.items()]
    return table(heads, [*lines, ["all", "", *_counted(rows)]] if rows else [])


def _told(key: tuple[str, float]) -> list[str]:
    return [key[0], f"{key[1]:g}"]


def _counted(rows: list[Row]) -> list[str]:
    cells = [str(len(rows))]
    for measure in (SCORE, DISTANCE):
        with_jitters = [row for row in rows if row.jitters]
        cells.append(str(sum(row.won(row.histograms, measure) for row in rows)))
        cells.append(_of(sum(row.won(row.jitters, measure) for row in with_jitters), len(with_jitters)))
        cells.append(str(sum(row.won(row.rivals, measure) for row in rows)))
    gaps = [row.limits["kernel, not private"][SCORE] - row.ours["auto"][SCORE] for row in rows]
    ratios = [np.exp(-row.ahead(row.histograms, DISTANCE)) for row in rows]
    return [*cells, f"{np.median(gaps):.3f}", f"{np.median(ratios):.2f}"]


def _of(won: int, settings: int) -> str:
    return f"{won} of {settings}" if settings else ""


def main_settings(rows: list[Row]) -> list[str]:
    """Scores and distances at the main budget."""
    heads = ["set", "n", "neighbours", "best histogram", "jitter, kernel", "jitter, deconvolved", "default", "it is"]
    heads += ["kernel, not private", "field, not private"]
    told = []
    for row in rows:
        if row.epsilon != MAIN:
            continue
        name = row.best(row.histograms, SCORE)[0]
        cells = [row.histograms[name], row.jitters.get("jitter, kernel"), row.jitters.get("jitter, deconvolved")]
        cells += [row.ours["auto"], *row.limits.values()]
        first, *more = ("" if each is None else f"{each[SCORE]:.3f}" for each in cells)
        told.append([*row.setting[:3], f"{first} {name}", *more[:3], row.chosen, *more[3:]])
    return table(heads, told)


def losses(rows: list[Row]) -> list[str]:
    """Settings in which a private rival is ahead by more than a draw of noise makes."""
    heads = ["set", "n", "neighbours", "score: eps, rival and its lead", "distance: eps, rival and its lead"]
    told = []
    for setting, group in groupby(rows, key=lambda row: row.setting[:3]):
        lost = list(group)
        scores = [_lost(row, SCORE, lambda lead: f"{lead:.3f}") for row in lost if _behind(row, SCORE, EVEN_SCORE)]
        far = [
            _lost(row, DISTANCE, lambda lead: f"{100 * np.expm1(lead):.0f} %")
            for row in lost
            if _behind(row, DISTANCE, EVEN_DISTANCE)
        ]
        if scores or far:
            told.append([*setting, "; ".join(scores), "; ".join(far)])
    return table(heads, told)


def _behind(row: Row, measure: int, least: float) -> bool:
    return row.ahead(row.rivals, measure) < -least


def _lost(row: Row, measure: int, tell: Callable[[float], str]) -> str:
    return f"{row.epsilon:g}: {row.best(row.rivals, measure)[0]}, {tell(-row.ahead(row.rivals, measure))}"


def methods(rows: list[Row]) -> list[str]:
    """Strength of each histogram beside the others and beside the default."""
    heads = ["histogram", "best histogram by score", "by distance", "default ahead of it by score", "by distance"]
    heads += ["median score below the default", "median distance over the default's"]
    told = []
    for name in rows[0].histograms if rows else ():
        alone = [({name: row.histograms[name]}, row) for row in rows]
        best = [sum(row.best(row.histograms, measure)[0] == name for row in rows) for measure in (SCORE, DISTANCE)]
        won = [sum(row.won(one, measure) for one, row in alone) for measure in (SCORE, DISTANCE)]
        below = np.median([row.ahead(one, SCORE) for one, row in alone])
        over = np.exp(np.median([row.ahead(one, DISTANCE) for one, row in alone]))
        told.append([name, *map(str, best + won), f"{below:.3f}", f"{over:.2f}"])
    return table(heads, told)


def results(rows: list[Row], measure: int) -> list[str]:
    """Results of all settings; distances are in hundredths of sqrt(A)."""
    unit, digits = (1, 3) if measure == SCORE else (100, 2)
    heads = ["set", "n", "neighbours", "eps", "best histogram", *RESULTS, "it is", "kernel, not private"]
    told = []
    for row in rows:
        best, value = row.best(row.histograms, measure)
        found = row.jitters | row.ours | {"default": row.ours["auto"]}
        private = [value, *(found[name][measure] if name in found else np.nan for name in RESULTS)]
        top = (np.nanmax if measure == SCORE else np.nanmin)(private)
        first, *rest = (_shown(unit * each, digits, bold=bool(each == top)) for each in private)
        limit = _shown(unit * row.limits["kernel, not private"][measure], digits)
        told.append([*row.setting, f"{first} {best}", *rest, row.chosen, limit])
    return table(heads, told)


def _shown(value: float, digits: int, *, bold: bool = False) -> str:
    if np.isnan(value):
        return ""
    return f"**{value:.{digits}f}**" if bold else f"{value:.{digits}f}"
