"""Comparison of mechanisms by their distance to the truth, by domain, number of points, privacy radius and budget.

The table that `dpppsynth.recommend` reads is made here, and what it is worth is measured: by how much a recommendation
misses the best mechanism on an intensity that the table has not seen.

Truths, originals and scores are described in docs/results/recommend.md, whose tables are filled; its sentences are
written by hand, so read them again beside new tables.

    OMP_NUM_THREADS=1 python benchmarks/recommend.py --folder out/recommend --repeats 1 \\
        --table dpppsynth/evaluation/recommendation/study.csv --out docs/results/recommend.md
"""

import csv
import itertools
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from network_rules import Town, geometric, towns
from pages import command_line, fill, write_rows
from pages import table as tabled
from scipy.ndimage import gaussian_filter
from utility import apart, truths

import dpppsynth as dps
from dpppsynth import PoissonRelease
from dpppsynth.contract import rules
from dpppsynth.core.errors import InputError
from dpppsynth.evaluation.experiments import Scenario, Study
from dpppsynth.evaluation.recommendation.evidence import (
    ADD_REMOVE,
    ANYWHERE,
    CANDIDATES,
    DELTA,
    GENTLE,
    GENTLY,
    JITTER,
    REPLACE_ONE,
    UNIFORM,
    Case,
    Evidence,
    PrivacyTerms,
    rank,
)
from dpppsynth.evaluation.recommendation.recommended import USELESS, settings
from dpppsynth.inference import lgcp_inference as field
from dpppsynth.models import regular_triangulation
from dpppsynth.spatial.intensity import LogLinear, PiecewiseLinear
from dpppsynth.spatial.sampling import binomial_pattern

SIDE, GRID = 1000.0, 64
SIZES = (80, 400, 2000)
SHARES = (0.02, 1 / 14, 0.25)
BUDGETS = (0.1, 0.5, 1.0, 2.0, 10.0)
FACTORS = (0.5, 2.0)
# By how much a step that cannot help must seem to help before it is counted.
LUCKY = 0.07
# Pixels along a side, and bandwidths in shares of it, of kernels on points moved by hand.
PIXELS, BANDWIDTHS = 128, np.geomspace(0.01, 1.0, 25)
# Points and originals of each truth of the comparison of posterior means with draws, and draws of each release.
DRAWN_SIZE, DRAWN_REPEATS, DRAWN = 100, 4, 20
# Distance of a uniform intensity from the gentle ones, which are the others mixed with a uniform one.
GENTLE_UNIFORM = 0.2
COLUMNS = ("kind", "mechanism", "relation", "n", "epsilon", "distance")
# Means over a tenth of the posterior draws that a release keeps: three times as fast, and the mean hardly changes.
field.KEPT_DRAWS = 200


@dataclass(frozen=True)
class Place:
    """A truth on a domain, and the places where intensities are compared.

    Attributes
    ----------
    intensity : object
        The truth, at the vertices of a fine mesh.
    xy : (k, 2) array
    weight : (k,) array
        Area or length that each place stands for.
    truth : (k,) array
    """

    domain: Any
    intensity: Any
    xy: np.ndarray
    weight: np.ndarray
    truth: np.ndarray

    def distance(self, values: np.ndarray) -> float:
        return apart(values * self.weight, self.truth * self.weight)

    @property
    def uniform(self) -> float:
        return self.distance(np.ones(len(self.truth)))


@dataclass(frozen=True)
class Posed(Scenario):
    """A scenario that also tells its truth, and its relation as the table has it."""

    place: str = ""
    word: str = ""


@cache
def square() -> dps.Window:
    return dps.Window.rectangle(0, 0, SIDE, SIDE)


@cache
def on_square(name: str) -> Place:
    """A published intensity, moved onto the common square."""
    window, truth = truths()[name]
    x0, y0, x1, _ = window.bounds
    mesh = regular_triangulation(square(), shape=(101, 101))
    scale = (x1 - x0) / SIDE
    intensity = PiecewiseLinear(mesh, truth(np.array([x0, y0]) + scale * mesh.vertices))
    t = (np.arange(GRID) + 0.5) * SIDE / GRID
    xy = np.column_stack([each.ravel() for each in np.meshgrid(t, t)])
    return Place(square(), intensity, xy, np.ones(len(xy)), intensity(xy))


@cache
def town(name: str) -> Town:
    return next(each for each in towns() if each.name == name)


@cache
def on_streets(name: str) -> Place:
    """A truth of the study of rules on networks, such as "Soho: hot spot"."""
    where, _, truth = name.partition(": ")
    mesh, values = town(where).fine, town(where).truths[truth]
    middle = town(where).network.coordinates(town(where).places)
    intensity = LogLinear(mesh, values)
    return Place(town(where).network, intensity, middle, mesh.element_measure, intensity(middle))


ON_STREETS = ("Soho: smoothed points", "Soho: hot spot", "Arizona: smoothed points", "Arizona: field, l = 0.15")
PLACES = {"window": tuple(truths()), "network": ON_STREETS}
PLACES |= {GENTLE + kind: tuple(GENTLE + name for name in names) for kind, names in PLACES.items()}


def place(name: str) -> Place:
    if name.startswith(GENTLE):
        return gentle(name.removeprefix(GENTLE))
    return on_square(name) if name in PLACES["window"] else on_streets(name)


@cache
def gentle(name: str) -> Place:
    """A truth mixed with a uniform intensity, until that is `GENTLE_UNIFORM` away."""
    steep = place(name)
    share, level = GENTLE_UNIFORM / steep.uniform, np.average(steep.truth, weights=steep.weight)
    mesh, logarithmic = steep.intensity.mesh, isinstance(steep.intensity, LogLinear)
    values = np.exp(steep.intensity.log_values) if logarithmic else steep.intensity.values
    mixed = share * values + (1 - share) * level
    flat = LogLinear(mesh, np.log(mixed)) if logarithmic else PiecewiseLinear(mesh, mixed)
    return replace(steep, intensity=flat, truth=flat(steep.xy))


def kind(name: str) -> str:
    return next(kind for kind, names in PLACES.items() if name in names)


def domain_of(name: str) -> str:
    """Name of the domain that a truth lies on."""
    return "square" if kind(name).endswith("window") else name.removeprefix(GENTLE).partition(": ")[0]


def drawn(name: str, n: int, rng: np.random.Generator) -> dps.PointPattern:
    """An original: n points of the truth."""
    pattern = binomial_pattern(place(name).intensity, n, rng)
    return dps.PointPattern.at(pattern.positions, place(name).domain)


def relation_of(word: str, extent: float) -> Any:
    known = {REPLACE_ONE: dps.ReplaceOne(), ADD_REMOVE: dps.AddRemove()}
    return known[word] if word in known else dps.AlphaNeighbours(float(word) * extent)


def posed(name: str, word: str, n: int) -> Posed:
    domain = place(name).domain
    alpha = getattr(relation_of(word, domain.extent), "alpha", None)
    return Posed(domain, partial(drawn, name, n), alpha, place=name, word=word)


RELATIONS = (*(f"{share:.4g}" for share in SHARES), REPLACE_ONE, ADD_REMOVE)
# Of gentle intensities: what tells where nothing is gained.
GENTLE_RELATIONS, GENTLE_SIZES, GENTLE_BUDGETS = (RELATIONS[0], *RELATIONS[-2:]), (30, 80, 400), (0.1, 1.0, 10.0)


def name_of(name: str, word: str, n: int) -> str:
    return f"{name} | {word} | {n}"


def scenarios(kind: str) -> dict[str, Posed]:
    """Every truth with every relation and number of points."""
    relations, sizes = (GENTLE_RELATIONS, GENTLE_SIZES) if kind.startswith(GENTLE) else (RELATIONS, SIZES)
    keys = itertools.product(relations, sizes, PLACES[kind])
    return {name_of(name, word, n): posed(name, word, n) for word, n, name in keys}


@dataclass(frozen=True)
class Settled:
    """A plan that is made once and used for every repeat."""

    made: Any

    def release(self, pattern: dps.PointPattern, rng: Any = None, **_: Any) -> Any:
        return self.made.release(pattern, rng)


def size(relation: Any, n: int) -> dict[str, int]:
    return {"n": n} if relation.n_is_public else {"expected_n": n}


def synthesizer(mechanism: str, relation: Any, epsilon: float) -> Any:
    """A mechanism with its default rules, and the faster of two kinds of inference or of drawing."""
    candidate = next(each for each in CANDIDATES if each.mechanism == mechanism)
    made = candidate.build(PrivacyTerms(epsilon, DELTA, relation))
    if not isinstance(made, dps.LGCPSynthesizer):
        return made
    # Trying whether exact draws are feasible takes longer than drawing.
    drawn = {"sampler": "proximal"} if made.mechanism == "posterior-draw" else {"inference": "laplace"}
    return replace(made, **drawn)


@cache
def planned(mechanism: str, where: str, word: str, epsilon: float, n: int) -> Settled:
    """The plan that all truths on one domain share."""
    domain = square() if where == "square" else town(where).network
    relation = relation_of(word, domain.extent)
    return Settled(synthesizer(mechanism, relation, epsilon).plan(domain, **size(relation, n)))


def ruled(mechanism: str, scenario: Posed, epsilon: float, _: float, n: int) -> Settled:
    return planned(mechanism, domain_of(scenario.place), scenario.word, epsilon, n)


@dataclass(frozen=True)
class MovedPoints:
    """Points (n, 2) moved by hand: an outcome that holds no patterns."""

    xy: np.ndarray
    patterns: tuple[()] = ()


@dataclass(frozen=True)
class Moved:
    """Points of the square moved by planar Laplace noise, put back into it, as custodians do by hand."""

    scale: float

    def release(self, pattern: dps.PointPattern, rng: Any = None, **_: Any) -> MovedPoints:
        generator = np.random.default_rng(rng)
        length, angle = generator.gamma(2.0, self.scale, len(pattern)), generator.uniform(0, 2 * np.pi, len(pattern))
        moved = pattern.xy + length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
        return MovedPoints(np.clip(moved, 0, SIDE))


def by_hand(scenario: Posed, epsilon: float, *_: Any) -> Moved:
    if scenario.alpha is None:
        msg = "alpha: points are moved by hand where a radius is given; take another relation."
        raise InputError(msg)
    return Moved(scenario.alpha / epsilon)


def smoothed(where: Place, moved: np.ndarray) -> float:
    """Distance of the best Gaussian kernel; what would leave the square is reflected at its border."""
    counts = np.histogram2d(*moved.T, bins=PIXELS, range=[(0, SIDE)] * 2)[0]
    i, j = np.minimum((where.xy / SIDE * PIXELS).astype(int), PIXELS - 1).T
    return min(where.distance(gaussian_filter(counts, width * PIXELS, mode="reflect")[i, j]) for width in BANDWIDTHS)


def distance(outcome: Any) -> float:
    """Total variation distance to the truth."""
    where, release = place(outcome.scenario.place), outcome.release
    if isinstance(release, MovedPoints):
        return smoothed(where, release.xy)
    if isinstance(release, PoissonRelease):
        return where.distance(release.statistic.definition.density(outcome.original, where.xy))
    return where.distance(release.intensity(where.xy))


MECHANISMS = {each.mechanism: partial(ruled, each.mechanism) for each in CANDIDATES}


def study(kind: str, repeats: int) -> Study:
    """Every mechanism; but not the kernel on networks, where one plan takes a minute, and one on gentle intensities."""
    made = {name: each for name, each in MECHANISMS.items() if (kind, name) != ("network", "kernel")}
    made |= {JITTER: by_hand} if kind == "window" else {}
    budgets = BUDGETS
    if kind.startswith(GENTLE):
        made, budgets = {GENTLY: MECHANISMS[GENTLY]}, GENTLE_BUDGETS
    return Study(scenarios(kind), made, budgets, [DELTA], repeats, {"distance": distance}, 0, 6)


def tidy(table: pd.DataFrame) -> pd.DataFrame:
    """Mean over repeats, one row for every truth, relation, n, mechanism and epsilon; refusals are left out."""
    parts = table["scenario"].str.split(" | ", regex=False, expand=True)
    named = table.assign(truth=parts[0], relation=parts[1], n=parts[2].astype(int), mechanism=table["synthesizer"])
    named["kind"] = named["truth"].map(kind)
    keys = ["kind", "truth", "relation", "n", "mechanism", "epsilon"]
    return named.dropna(subset="distance").groupby(keys, as_index=False)["distance"].mean()


def averaged(scores: pd.DataFrame) -> list[dict[str, str]]:
    """Rows of the table that is shipped: geometric means over truths, and what a uniform intensity scores."""
    keys = ["kind", "mechanism", "relation", "n", "epsilon"]
    rows = scores.groupby(keys, as_index=False)["distance"].agg(geometric)
    rows["order"] = rows["relation"].map(RELATIONS.index)
    rows = rows.sort_values(["kind", "mechanism", "order", "n", "epsilon"])
    found = [
        dict(zip(COLUMNS, (*map(str, row[:3]), f"{row[3]}", f"{row[4]:g}", f"{row[5]:.4f}"), strict=True))
        for row in rows[list(COLUMNS)].itertuples(index=False)
    ]
    for each, part in scores.groupby("kind"):
        score = geometric([place(name).uniform for name in part["truth"].unique()])
        found.append(dict(zip(COLUMNS, (each, UNIFORM, "", "", "", f"{score:.4f}"), strict=True)))
    return found


# Other choices than the rules': what is changed, and its share of the rule's choice (0: the rule).
CHANGES = (
    ("lgcp-tents", "spacing", (0.5, 2.0)),
    ("lgcp-tents", "one length scale", (0.5, 1.0, 2.0)),
    ("lgcp-field", "length scale", (0.5, 2.0)),
    ("lgcp-posterior-draw", "length scale", (0.5, 2.0)),
    ("laplace-tents", "spacing", (0.5, 2.0)),
    ("laplace-cells", "spacing", (0.5, 2.0)),
    ("kernel", "bandwidth", (0.5, 2.0)),
)
CHANGED_SIZE, CHANGED_SHARE, CHANGED_BUDGETS = 400, f"{1 / 14:.4g}", (0.1, 1.0, 10.0)
CHANGED_PLACES = {"window": PLACES["window"], "network": ON_STREETS[:2]}


def changed(mechanism: str, what: str, factor: float, scenario: Posed, epsilon: float, _: float, n: int) -> Settled:
    """A mechanism with one choice of its rules multiplied."""
    domain, where = place(scenario.place).domain, domain_of(scenario.place)
    relation = relation_of(scenario.word, domain.extent)
    rule = planned(mechanism, where, scenario.word, epsilon, n).made
    own = rules.BY_DOMAIN[type(domain)]
    made, scale = synthesizer(mechanism, relation, epsilon), factor * own.length_scale(domain, n)
    if what == "bandwidth":
        made = replace(made, bandwidth=factor * rule.statistic.bandwidth)
    elif what == "spacing":
        spacing = factor * np.max(settings(rule)["spacing"])
        mesh = own.spaced_mesh(domain, "cells" if mechanism == "laplace-cells" else "tents", spacing)
        made = replace(made, mesh=mesh)
    elif mechanism == "lgcp-field":
        # Only of the field that the budget is spent on: behind it the posterior averages as always.
        statistic = replace(made, length_scale=scale).plan(domain, **size(relation, n)).statistic
        made = replace(made, covariance=statistic.covariance)
    else:
        made = replace(made, length_scale=scale)
    return Settled(made.plan(domain, **size(relation, n)))


def changes(kind: str, repeats: int) -> Study:
    """The rules' choices beside half and twice as much."""
    keys = [(name, CHANGED_SHARE, CHANGED_SIZE) for name in CHANGED_PLACES[kind]]
    made = {f"{m} | rule | 1": partial(ruled, m) for m, _, _ in CHANGES}
    made |= {f"{m} | {what} | {f:g}": partial(changed, m, what, f) for m, what, factors in CHANGES for f in factors}
    if kind == "network":
        made = {name: each for name, each in made.items() if not name.startswith("kernel")}
    posed_by = {name_of(*key): posed(*key) for key in keys}
    return Study(posed_by, made, CHANGED_BUDGETS, [DELTA], repeats, {"distance": distance}, 0, 6)


def ratios(tables: list[pd.DataFrame]) -> list[str]:
    """Distance with a choice changed over that of the rule, on the same originals: geometric means."""
    table = pd.concat(tables)
    names = table["synthesizer"].str.split(" | ", regex=False, expand=True)
    table = table.assign(mechanism=names[0], what=names[1], factor=names[2], kind=table["scenario"].map(kind_named))
    keys = ["scenario", "mechanism", "epsilon", "repeat"]
    base = table[table["what"] == "rule"].set_index(keys)["distance"].rename("rule")
    rest = table[table["what"] != "rule"].join(base, on=keys)
    rest["ratio"] = rest["distance"] / rest["rule"]
    columns = [(k, e) for k in PLACES for e in CHANGED_BUDGETS]
    lines = []
    for mechanism, what, factors in CHANGES:
        for factor in factors:
            part = rest[(rest["mechanism"] == mechanism) & (rest["what"] == what) & (rest["factor"] == f"{factor:g}")]
            cells = []
            for k, epsilon in columns:
                values = part[(part["kind"] == k) & (part["epsilon"] == epsilon)]["ratio"]
                known = values.dropna()
                cells.append(f"{geometric(known):.2f}" if len(known) else "refused" if len(values) else "")
            lines.append([mechanism, f"{what} x {factor:g}", *cells])
    return tabled(["mechanism", "choice", *(f"{k}, eps {e:g}" for k, e in columns)], lines)


def kind_named(scenario: str) -> str:
    return kind(scenario.partition(" | ")[0])


def case(row: Any, delta: float) -> Case:
    """Arguments of the recommender for the setting of a row."""
    share = None if row.relation == ADD_REMOVE else ANYWHERE if row.relation == REPLACE_ONE else float(row.relation)
    return Case(row.kind, share, row.n, PrivacyTerms(row.epsilon, delta, relation_of(row.relation, 1.0)))


KEYS = ["kind", "truth", "relation", "n", "epsilon"]


def regrets(scores: pd.DataFrame, delta: float) -> pd.DataFrame:
    """Distance of a recommendation over the best in hindsight, on a truth that the table has or has not seen."""
    seen, rows = Evidence(tuple(averaged(scores))), []
    unseen = {t: Evidence(tuple(averaged(scores[scores["truth"] != t]))) for t in scores["truth"].unique()}
    admitted = [each.mechanism for each in CANDIDATES if delta > 0 or not each.spends_delta]
    for key, part in scores[scores["mechanism"].isin(admitted)].groupby(KEYS):
        measured = dict(zip(part["mechanism"], part["distance"], strict=True))
        asked = case(part.iloc[0], delta)
        # As `recommend` does, which passes over what makes no release: moved points under other relations.
        ranked = {"recommended": rank(unseen[key[1]], asked), "recommended, truth seen": rank(seen, asked)}
        picks = {
            who: next(each.candidate.mechanism for each in found if each.candidate.mechanism in measured)
            for who, found in ranked.items()
        } | {f"always {each}": each for each in admitted if each in measured}
        best = min(measured.values())
        rows += [(*key, who, measured[m] / best) for who, m in picks.items()]
    return pd.DataFrame(rows, columns=[*KEYS, "who", "ratio"])


def luck(rows: list[dict[str, str]]) -> tuple[int, int]:
    """Steps to a larger privacy radius at which lgcp-tents come clearly closer, which only chance can do, of all."""
    table = {tuple(r[c] for c in COLUMNS[:-1]): float(r["distance"]) for r in rows if r["mechanism"] == "lgcp-tents"}
    radii = [word for word in RELATIONS if word != ADD_REMOVE]
    larger = dict(itertools.pairwise(radii))
    steps = [
        table[kind, mechanism, larger[word], n, epsilon] / distance
        for (kind, mechanism, word, n, epsilon), distance in table.items()
        if word in larger
    ]
    return sum(step < 1 - LUCKY for step in steps), len(steps)


def drawn_lines() -> list[str]:
    """Posterior means, single posterior draws and plain tents on the same originals."""
    lines = []
    relation = dps.AlphaNeighbours(SIDE / 14)
    for name in PLACES["window"]:
        where, rng, found = place(name), np.random.default_rng(11), []
        for _ in range(DRAWN_REPEATS):
            pattern = drawn(name, DRAWN_SIZE, rng)
            released, tents = (
                synthesizer(mechanism, relation, 1.0).release(pattern, rng)
                for mechanism in ("lgcp-tents", "laplace-tents")
            )
            mean = released.intensities(1, rng, source="mean")[0]
            draws = [where.distance(each(where.xy)) for each in released.intensities(DRAWN, rng, source="draws")]
            found.append((where.distance(mean(where.xy)), np.mean(draws), where.distance(tents.intensity(where.xy))))
        lines.append([name, *(f"{each:.2f}" for each in np.mean(found, axis=0))])
    return tabled(["truth", "posterior mean", "posterior draws", "laplace-tents"], lines)


def regret_lines(scores: pd.DataFrame) -> list[str]:
    """Geometric mean and 90 % quantile of regrets, by kind of domain and delta."""
    tables = {(k, d): regrets(scores[scores["kind"] == k], d) for k in scores["kind"].unique() for d in (0.0, DELTA)}
    whos = list(dict.fromkeys(who for table in tables.values() for who in table["who"]))
    lines = []
    for who in whos:
        parts = [table[table["who"] == who]["ratio"] for table in tables.values()]
        cells = [f"{geometric(each):.2f} ({each.quantile(0.9):.2f})" if len(each) else "" for each in parts]
        lines.append([who, *cells])
    return tabled(["choice", *(f"{k}s, delta = {d:g}" for k, d in tables)], lines)


def interpolation_lines(scores: pd.DataFrame) -> list[str]:
    """Leave-one-out predictions of the table, over the measured distances."""
    rows = pd.DataFrame(averaged(scores))
    rows = rows[rows["mechanism"] != UNIFORM]
    measured = rows.astype({"n": int, "epsilon": float, "distance": float})
    middle = {"n": [f"{SIZES[1]}"], "epsilon": [f"{e:g}" for e in BUDGETS[1:-1]], "relation": list(RELATIONS[1:3])}
    lines = []
    for column, values in middle.items():
        found = []
        for value in values:
            kept = Evidence(tuple(rows[rows[column] != value].to_dict("records")))
            asked = measured[rows[column] == value].itertuples()
            found += [kept.expect(row.mechanism, *coordinates(row)).distance / row.distance for row in asked]
        low, mid, high = np.nanquantile(found, [0.05, 0.5, 0.95])
        lines.append([column, *(f"{each:.2f}" for each in (mid, low, high))])
    return tabled(["taken out", "median ratio", "from", "to"], lines)


def coordinates(row: Any) -> tuple[str, float | None, float, float]:
    asked = case(row, DELTA)
    return asked.kind, asked.share, asked.n, row.epsilon


def chosen_lines(rows: list[dict[str, str]], kind: str) -> list[str]:
    """Recommended mechanism for every number of points, radius and budget."""
    evidence = Evidence(tuple(rows))
    lines = []
    for word, n in itertools.product(RELATIONS, SIZES):
        cells = []
        for epsilon in BUDGETS:
            row = SimpleNamespace(kind=kind, relation=word, n=n, epsilon=epsilon)
            pure, spent = (rank(evidence, case(row, delta))[:1] for delta in (0.0, DELTA))
            if not pure:
                cells.append("")
                continue
            words = f"{pure[0].candidate.mechanism} {pure[0].distance:.2f}"
            if spent[0].candidate.spends_delta:
                words += f"; {spent[0].candidate.mechanism} {spent[0].distance:.2f}"
            useless = pure[0].distance >= USELESS * evidence.uniform[kind]
            cells.append(words + (" (no better than uniform)" if useless else ""))
        lines.append([word, f"{n}", *cells])
    return tabled(["alpha / extent", "n", *(f"eps {e:g}" for e in BUDGETS)], lines)


def gentle_lines(rows: list[dict[str, str]]) -> list[str]:
    """Distances on gentle intensities, by radius, number of points and budget."""
    at = {tuple(row[c] for c in COLUMNS[:-1]): row["distance"] for row in rows}
    lines = []
    for k, word, n in itertools.product(PLACES, GENTLE_RELATIONS, GENTLE_SIZES):
        if k.startswith(GENTLE):
            cells = (f"{float(at[k, GENTLY, word, f'{n}', f'{epsilon:g}']):.3f}" for epsilon in GENTLE_BUDGETS)
            lines.append([k.removeprefix(GENTLE), word, f"{n}", *cells])
    return tabled(["domain", "alpha / extent", "n", *(f"eps {e:g}" for e in GENTLE_BUDGETS)], lines)


def with_kept(rows: list[dict[str, str]], path: Path) -> list[dict[str, str]]:
    """Rows, and those of a table that were not measured anew."""
    keys = COLUMNS[:-1]
    with path.open(newline="", encoding="utf-8") as stream:
        found = {tuple(row[c] for c in keys): row for row in [*csv.DictReader(stream), *rows]}
    order = [*RELATIONS, ""]
    return sorted(
        found.values(), key=lambda row: (*map(row.get, keys[:2]), order.index(row["relation"]), *numbers(row))
    )


def numbers(row: dict[str, str]) -> tuple[float, float]:
    """Number of points and budget of a row, zero for the uniform intensity."""
    return float(row["n"] or 0), float(row["epsilon"] or 0)


def fill_choices(page: Path, rows: list[dict[str, str]]) -> None:
    """Tables that follow from the table that is shipped."""
    for each in ("network", "window"):
        fill(page, each, chosen_lines(rows, each))
    fill(page, "gentle", gentle_lines(rows))


def fill_all(page: Path, scores: pd.DataFrame, beside: list[pd.DataFrame]) -> None:
    """Tables that follow from every measured distance; what the page's sentences say of luck is printed."""
    rows = averaged(scores)
    scores = scores[~scores["kind"].str.startswith(GENTLE)]
    fill(page, "misses", regret_lines(scores))
    fill(page, "draws", drawn_lines())
    fill(page, "between", interpolation_lines(scores))
    fill(page, "rules", ratios(beside))
    lucky, steps = luck(rows)
    print(f"{lucky} of {steps} steps to a larger radius bring lgcp-tents closer by more than {LUCKY:.0%}")
    print(f"uniform: {Evidence(tuple(rows)).uniform}")


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="finished cells are kept here, and taken up again")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--kinds", nargs="*", choices=list(PLACES), default=list(PLACES), help="rows of others are kept"
    )
    parser.add_argument("--table", type=Path, help="dpppsynth/evaluation/recommendation/study.csv")
    args = parser.parse_args()
    found: list[pd.DataFrame] = []
    for each in args.kinds:
        part, folder = study(each, args.repeats), args.folder / each.replace(" ", "-")
        part.run(folder, workers=args.workers)
        found.append(part.seconds(folder))
    scores = tidy(pd.concat(found))
    rows = averaged(scores)
    if args.table:
        rows = with_kept(rows, args.table)
        write_rows(args.table, COLUMNS, (row.values() for row in rows))
    if args.out:
        fill_choices(args.out, rows)
    if args.out and set(args.kinds) == set(PLACES):
        beside = []
        for each in CHANGED_PLACES:
            part = changes(each, args.repeats)
            part.run(args.folder / "changes", workers=args.workers)
            beside.append(part.seconds(args.folder / "changes"))
        fill_all(args.out, scores, beside)


if __name__ == "__main__":
    # Under its own name, by which worker processes find its functions.
    from recommend import main as run

    run()
