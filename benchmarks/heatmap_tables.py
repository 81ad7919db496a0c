"""Tables of benchmarks/heatmaps.py: means, their confidence intervals, and where they stand in the document."""

import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from measuring import raw_rows
from pages import command_line, fill, table

METRICS = ("SIM", "CC", "KL", "EMD")
# Higher is better, or lower.
BETTER = np.array([1, 1, -1, -1])
# A row of results: setting, epsilon, method, then the four metrics.
Key = tuple[str, float, str]
Summary = dict[Key, tuple[np.ndarray, np.ndarray, int]]


def summary(rows: Iterable[list[str]]) -> Summary:
    """Means (4,), half widths of 95 % confidence intervals (4,), and numbers of runs, in order of appearance."""
    found: dict[Key, list[list[float]]] = {}
    for setting, epsilon, method, *scores in rows:
        found.setdefault((setting, float(epsilon), method), []).append([float(each) for each in scores])
    return {key: interval(np.array(scores)) for key, scores in found.items()}


def interval(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Mean and 1.96 sd / sqrt(runs) of scores (runs, metrics)."""
    runs = len(scores)
    return scores.mean(axis=0), 1.96 * scores.std(axis=0, ddof=1) / np.sqrt(runs), runs


def paired(rows: Iterable[list[str]], method: str, others: Iterable[str], together: int) -> list[str]:
    """Signs of the differences between one method and others, run by run: +, - or = for SIM, CC, KL and EMD.

    So many runs stand `together` on the same data and count as one; = is an interval of 95 % that holds zero.
    """
    runs: dict[tuple[float, str], list[list[float]]] = {}
    for _, epsilon, name, *scores in rows:
        runs.setdefault((float(epsilon), name), []).append([float(each) for each in scores])
    means = {key: np.reshape(scores, (-1, together, len(METRICS))).mean(axis=1) for key, scores in runs.items()}
    epsilons = list(dict.fromkeys(key[0] for key in means))
    lines = [
        [other, *(signs((means[each, method] - means[each, other]) * BETTER) for each in epsilons)]
        for other in others
        if other != method
    ]
    return table([f"{method} against", *(f"eps {each:g}" for each in epsilons)], lines)


def signs(gains: np.ndarray) -> str:
    mean, half, _ = interval(gains)
    return " ".join("=" if abs(m) <= h else "+" if m > 0 else "-" for m, h in zip(mean, half, strict=True))


def distinct(found: Iterable[tuple], place: int) -> list:
    """Different values at one place of keys, such as the methods of a summary (2), in order of appearance."""
    return list(dict.fromkeys(key[place] for key in found))


def of_methods(text: str, name: str, rows: Callable[[], Iterable[list]], methods: Iterable[str]) -> None:
    """Main program of a benchmark with one table: methods down, data across; run, or read what was run, and fill it."""
    parser = command_line(text)
    parser.add_argument("--work", type=Path, default=Path("out/heatmaps"), help="raw scores; what is there is not run")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    found = summary(raw_rows(args.work / f"{name}.csv", rows, time.perf_counter))
    cases = list(dict.fromkeys(key[:2] for key in found))
    heads = (f"{data}, eps {epsilon:g}" for data, epsilon in cases)
    body = ([each, *(" / ".join(map(short, found[*case, each][0])) for case in cases)] for each in methods)
    lines = table(["SIM / CC / KL / EMD", *heads], body)
    print("\n".join(lines))
    fill(args.out, name, lines)


def wins(found: dict[str, Summary], method: str, fitted: str, letters: dict[str, str]) -> list[str]:
    """Other methods with the better mean of each metric; * where it is also better than the mean of `fitted`.

    `found` has the experiments by the names of their rows, with {} for the setting.
    """
    lines = []
    for label, each in found.items():
        for setting, epsilon in dict.fromkeys(key[:2] for key in each):
            here = {key[2]: value for key, value in each.items() if key[:2] == (setting, epsilon)}
            better: list[list[str]] = [[] for _ in METRICS]
            for other in (name for name in letters if name in here):
                over, also = (ahead(here[other], here[reference]) for reference in (method, fitted))
                for metric in np.flatnonzero(over):
                    better[metric].append(letters[other] + "*" * bool(also[metric]))
            lines.append([label.format(setting), f"{epsilon:g}", *(", ".join(names) for names in better)])
    return table(["data", "eps", *METRICS], lines)


def ahead(one: tuple[np.ndarray, np.ndarray, int], other: tuple[np.ndarray, np.ndarray, int]) -> np.ndarray:
    """(4,) whether the first mean is better by more than the wider of the two intervals' half widths."""
    return (one[0] - other[0]) * BETTER > np.maximum(one[1], other[1])


def short(value: float) -> str:
    """Three figures behind the point, none before it where that is 0; one behind it from 10 on."""
    text = f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"
    return re.sub(r"^(-?)0\.", r"\1.", text)
