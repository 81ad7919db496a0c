"""The simulation study, interpolated between its rows, and the mechanisms that it ranks (docs/results/recommend.md)."""

import csv
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from dpppsynth.contract import registry
from dpppsynth.contract.synthesizer import AnySynthesizer, Synthesizer
from dpppsynth.core.arguments import instance
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.privacy.profiles import GaussianDP, gaussian_mu
from dpppsynth.privacy.relations import AddRemove, AlphaNeighbours, CappedRelation
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Floats

DOCUMENT = "docs/results/recommend.md"
# Delta of the study, where one is spent.
DELTA = 1e-6
# Share of the extent at which a move counts as one to anywhere: noise hardly grows beyond it.
ANYWHERE = 1.0
# Values of the table's column `relation` that are not a privacy radius.
REPLACE_ONE, ADD_REMOVE, UNIFORM = "replace-one", "add-remove", "uniform"
# Row of points moved by planar Laplace noise and smoothed by the best kernel, as nobody knows it before.
JITTER = "jitter"
# Start of the kinds of domain with gentle intensities, those of the study mixed with a uniform one, and the mechanism
# that was measured on them.
GENTLE, GENTLY = "gentle ", "lgcp-tents"
# The study's windows are squares: a longer bounding box, or one that is filled less, is no longer like them.
LONGEST, EMPTIEST = 2.0, 0.5

# Readings of a distance: as it is; as a lower bound; or unknown, the nearest row being far away.
Reading = Literal["about", "at least", "unknown"]


@dataclass(frozen=True)
class Outside:
    """One respect in which a release lies outside the study, and whether that worsens the result."""

    words: str
    worse: bool

    def __str__(self) -> str:
        return f"{self.words}, so expect {'worse' if self.worse else 'better'}"


@dataclass(frozen=True, eq=False)
class Answer:
    """Expected total variation distance to the true normalised intensity, by the study; NaN where it has no row for it.

    The nearest row was used where the release lies `outside` the study.
    """

    distance: float
    outside: tuple[Outside, ...] = ()

    @property
    def reading(self) -> Reading:
        """Qualification of the distance: "about"; "at least" if all deviations worsen it, "unknown" if only some do."""
        if not any(each.worse for each in self.outside):
            return "about"
        return "at least" if all(each.worse for each in self.outside) else "unknown"


@dataclass(frozen=True, eq=False)
class Grid:
    """Distances of one mechanism on one kind of domain: (relation, n, epsilon), axes increasing."""

    shares: Floats
    sizes: Floats
    budgets: Floats
    distance: Floats

    def __call__(self, share: float | None, n: float, epsilon: float) -> Answer:
        """Interpolate the logarithm of the distance, linear in the logarithm of each axis; no extrapolation."""
        axes = {"n": self.sizes, "epsilon": self.budgets}
        at = {"n": n, "epsilon": epsilon}
        if share is not None:
            axes, at = {"alpha": self.shares} | axes, {"alpha": share} | at
        values = np.log(self.distance)
        if share is None:
            values = values[0]
        for name, axis in axes.items():
            values = _along_first(np.log(axis), values, math.log(max(at[name], sys.float_info.min)))
        found = (_outside(name, axes[name], at[name]) for name in axes)
        return Answer(float(np.exp(values)), tuple(each for each in found if each is not None))


@dataclass(frozen=True, eq=False)
class Evidence:
    """The table of the study: rows with kind, mechanism, relation, n, epsilon and distance, as text."""

    rows: tuple[Mapping[str, str], ...]

    @cached_property
    def uniform(self) -> dict[str, float]:
        """Distance of a uniform intensity, which needs no data, by kind of domain."""
        return {row["kind"]: float(row["distance"]) for row in self.rows if row["mechanism"] == UNIFORM}

    @cached_property
    def _grids(self) -> dict[tuple[str, str, bool], Grid]:
        rows: dict[tuple[str, str, bool], list[Mapping[str, str]]] = {}
        for row in self.rows:
            rows.setdefault((row["kind"], row["mechanism"], row["relation"] == ADD_REMOVE), []).append(row)
        return {key: _grid(each) for key, each in rows.items() if key[1] != UNIFORM}

    def expect(self, mechanism: str, kind: str, share: float | None, n: float, epsilon: float) -> Answer:
        """Expected distance of a mechanism; NaN where the study has no row of it.

        `share` is the privacy radius as a share of the domain's extent, 1 for moves anywhere and None where points
        come and go; epsilon the budget with which the study's mechanisms, at its delta and with one point per person,
        had the same noise.

        Examples
        --------
        >>> near, far = (study().expect("lgcp-tents", "window", share, 392, 1.0) for share in (0.04, 1.0))
        >>> near.distance < far.distance
        True
        """
        grid = self._grids.get((kind, mechanism, share is None))
        return Answer(math.nan) if grid is None else grid(share, n, epsilon)


@lru_cache(maxsize=1)
def study() -> Evidence:
    """The study that comes with the package."""
    text = files(__package__).joinpath("study.csv").read_text(encoding="utf-8")
    return Evidence(tuple(csv.DictReader(text.splitlines())))


def shape_of(domain: Domain) -> tuple[Outside, ...]:
    """Warning that a window is far from a square, the study's only shape; empty for other domains."""
    if not isinstance(domain, Window):
        return ()
    x0, y0, x1, y1 = domain.bounds
    short, long = sorted((x1 - x0, y1 - y0))
    if long <= LONGEST * short and domain.size >= EMPTIEST * short * long:
        return ()
    return (Outside("the window is far from a square, the study's only shape", worse=True),)


def _grid(rows: list[Mapping[str, str]]) -> Grid:
    radii = [ANYWHERE if row["relation"] in (REPLACE_ONE, ADD_REMOVE) else float(row["relation"]) for row in rows]
    keys = np.array([(share, float(row["n"]), float(row["epsilon"])) for share, row in zip(radii, rows, strict=True)])
    (shares, i), (sizes, j), (budgets, k) = (np.unique(axis, return_inverse=True) for axis in keys.T)
    distance = np.full((len(shares), len(sizes), len(budgets)), np.nan)
    distance[i, j, k] = [float(row["distance"]) for row in rows]
    return Grid(shares, sizes, budgets, monotone(distance))


def monotone(distance: Floats) -> Floats:
    """Distances that neither more points nor more budget raise, nor a larger privacy radius lowers.

    A release of less can be had for more, so where a study shows the opposite it shows its noise. Means of the largest
    such distances below and the smallest above; what is missing stays NaN.
    """
    above, below = distance, distance
    for axis, rises in enumerate((True, False, False)):
        above, below = (_so_far(each, take, axis, rises) for each, take in ((above, np.fmax), (below, np.fmin)))
    return np.where(np.isnan(distance), np.nan, (above + below) / 2)


def _so_far(values: Floats, take: np.ufunc, axis: int, rises: bool) -> Floats:
    """Largest values up to each place where they shall rise, smallest from each on; the other way where they fall."""
    ahead = rises == (take is np.fmax)
    turned = values if ahead else np.flip(values, axis)
    found = take.accumulate(turned, axis)
    return found if ahead else np.flip(found, axis)


def _along_first(axis: Floats, values: Floats, at: float) -> Floats:
    """Linear interpolation along the first axis of an array; outside, the nearest value."""
    if len(axis) == 1:
        return values[0]
    k = int(np.clip(np.searchsorted(axis, at) - 1, 0, len(axis) - 2))
    t = float(np.clip((at - axis[k]) / (axis[k + 1] - axis[k]), 0, 1))
    # A row that is missing must not spoil one that is met exactly.
    return values[k + 1] if t == 1 else values[k] if t == 0 else (1 - t) * values[k] + t * values[k + 1]


def _outside(name: str, axis: Floats, at: float) -> Outside | None:
    if axis[0] * (1 - 1e-9) <= at <= axis[-1] * (1 + 1e-9):
        return None
    # Never the number of points itself: it may be secret.
    words = {"n": "the number of points", "epsilon": "the budget (in terms of epsilon)", "alpha": "alpha / extent"}
    side, bound = ("below", axis[0]) if at < axis[0] else ("above", axis[-1])
    # A smaller radius asks for less noise, fewer points and a smaller budget bring more.
    worse = (side == "below") != (name == "alpha")
    return Outside(f"{words[name]} lies {side} {bound:.3g}", worse)


@dataclass(frozen=True)
class PrivacyTerms:
    """Available budget and the persons it protects."""

    epsilon: float
    delta: float
    relation: CappedRelation

    @property
    def neighbours(self) -> dict[str, Any]:
        """Arguments of a synthesizer that say who is protected, as short as they can be."""
        relation = self.relation
        if isinstance(relation, AlphaNeighbours) and relation == AlphaNeighbours(relation.alpha):
            return {"alpha": relation.alpha}
        return {"relation": relation}


@dataclass(frozen=True)
class Candidate:
    """A mechanism, by its name on certificates of windows, and the settings of its synthesizer other than the budget.

    `gaussian` tells whether its noise depends on the budget through `gaussian_mu` alone.
    """

    mechanism: str
    what: str
    settings: Mapping[str, str]
    spends_delta: bool
    has_posterior: bool
    gaussian: bool = False

    def build(self, budget: PrivacyTerms) -> AnySynthesizer:
        """Synthesizer with a budget."""
        delta = {"delta": budget.delta} if self.spends_delta else {}
        given = {"epsilon": budget.epsilon, **delta, **budget.neighbours, **self.settings}
        synthesizer: AnySynthesizer = instance(
            "mechanism", registry.mechanism(self.mechanism).settings(**given), Synthesizer
        )
        return synthesizer

    def epsilon(self, budget: PrivacyTerms) -> float:
        """Equivalent budget of this mechanism at the study's delta and with one point per person.

        Laplace noise has scale `k Delta / epsilon`, so a cap of k points divides epsilon. Gaussian mechanisms feel
        `mu / k` with the mu of (epsilon, delta); it is stated as its epsilon at the study's delta. The kernel
        is treated like the former, which is rough.
        """
        k = budget.relation.max_points_per_person
        if not self.gaussian:
            return budget.epsilon / k
        mu = gaussian_mu(budget.epsilon, budget.delta) / k
        return GaussianDP(mu, at=DELTA).epsilon(DELTA)


# Those of the study whose table comes with the package; others would need a study of their own.
# In the order in which they are preferred where the study cannot tell them apart: a promise without delta and a
# posterior first, then either, then neither.
CANDIDATES = (
    Candidate("lgcp-tents", "noisy tent masses with a posterior behind them", {"mechanism": "tents"}, False, True),
    Candidate("lgcp-moved", "moved points with a posterior behind them", {"mechanism": "moved"}, False, True),
    Candidate("laplace-tents", "noisy tent masses with a field behind them", {"basis": "tents"}, False, True),
    Candidate("laplace-cells", "noisy counts with a field behind them", {"basis": "cells"}, False, True),
    Candidate(
        "lgcp-field", "noisy smooth functionals with a posterior behind them", {"mechanism": "field"}, True, True, True
    ),
    Candidate("lgcp-posterior-draw", "one posterior draw", {"mechanism": "posterior-draw"}, True, False, True),
    Candidate("kernel", "patterns around the points", {}, True, False),
)


# Expected distances within this ratio of the smallest count as equal: the study's own error is about as large, and a
# smaller margin follows its noise (docs/results/recommend.md).
MARGIN = 1.1


@dataclass(frozen=True)
class Case:
    """Public facts of a release, as a query of the study.

    `share` is the privacy radius as a share of the extent, None where points come and go; `shape` the respects in which
    the domain's shape lies outside the study, whatever the mechanism.
    """

    kind: str
    share: float | None
    n: float
    budget: PrivacyTerms
    shape: tuple[Outside, ...] = ()

    @classmethod
    def of(cls, domain: Domain, n: float, budget: PrivacyTerms) -> "Case":
        """The case of a release in a domain."""
        kind = "network" if isinstance(domain, LinearNetwork) else "window"
        open_size, reach = isinstance(budget.relation, AddRemove), budget.relation.reach
        share = None if open_size else min(reach / domain.extent, ANYWHERE)
        return cls(kind, share, float(n), budget, shape_of(domain))

    def ask(self, evidence: Evidence, candidate: Candidate, budget: PrivacyTerms | None = None) -> Answer:
        """Expected distance of a candidate, optionally with another budget."""
        budget = budget or self.budget
        answer = evidence.expect(candidate.mechanism, self.kind, self.share, self.n, candidate.epsilon(budget))
        return Answer(answer.distance, (*self.shape, *answer.outside, *_other_delta(candidate, budget)))

    def ask_gentle(self, evidence: Evidence) -> Answer:
        """Expected distance of tents with a posterior where the intensity varies little."""
        epsilon = self.budget.epsilon / self.budget.relation.max_points_per_person
        answer = evidence.expect(GENTLY, GENTLE + self.kind, self.share, self.n, epsilon)
        return Answer(answer.distance, (*self.shape, *answer.outside))


@dataclass(frozen=True)
class Ranked:
    """A candidate with its expected result."""

    candidate: Candidate
    answer: Answer

    @property
    def distance(self) -> float:
        return self.answer.distance


def rank(evidence: Evidence, case: Case) -> list[Ranked]:
    """Candidates that the budget admits, best first; those that the study has not measured are left out.

    Candidates within the margin of the smallest distance are as good, so they have that one, and among these the order
    of `CANDIDATES` decides: no delta spent first, then a posterior. The smallest distance is monotone as all are.
    """
    admitted = (each for each in CANDIDATES if not (each.spends_delta and case.budget.delta == 0))
    asked = (Ranked(each, case.ask(evidence, each)) for each in admitted)
    found = sorted((each for each in asked if math.isfinite(each.distance)), key=lambda each: each.distance)
    level = [each for each in found if each.distance <= MARGIN * found[0].distance]
    equal = [Ranked(each.candidate, replace(each.answer, distance=found[0].distance)) for each in level]
    return sorted(equal, key=lambda each: CANDIDATES.index(each.candidate)) + found[len(level) :]


def _other_delta(candidate: Candidate, budget: PrivacyTerms) -> tuple[Outside, ...]:
    """Note that the kernel was measured at another delta, which the study cannot convert."""
    if candidate.gaussian or not candidate.spends_delta or budget.delta in (0, DELTA):
        return ()
    return (Outside(f"the kernel was measured at delta = {DELTA:g} alone", worse=budget.delta < DELTA),)
