"""Results of the simulation study, interpolated between its rows (docs/results/recommend.md)."""

import csv
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import Literal

import numpy as np

from dpppsynth.linear_network import LinearNetwork
from dpppsynth.privacy.relations import AddRemove, CappedRelation
from dpppsynth.spatial.domains import Domain, Window
from dpppsynth.spatial.mesh import Floats

DOCUMENT = "docs/results/recommend.md"
# Delta of the study, where one is spent.
DELTA = 1e-6
# Share of the extent at which a move counts as one to anywhere: noise hardly grows beyond it.
ANYWHERE = 1.0
# Values of the table's column `relation` that are not a privacy radius.
REPLACE_ONE, ADD_REMOVE, UNIFORM = "replace-one", "add-remove", "uniform"
# The study's windows are squares: a longer bounding box, or one that is filled less, is no longer like them.
LONGEST, EMPTIEST = 2.0, 0.5

# Readings of a distance: as it is; as a lower bound; or unknown, the nearest row being far away.
Reading = Literal["about", "at least", "unknown"]


def kind_of(domain: Domain) -> str:
    """Name of this kind of domain in the study: "network" or "window"."""
    return "network" if isinstance(domain, LinearNetwork) else "window"


@dataclass(frozen=True)
class Outside:
    """One respect in which a release lies outside the study, and whether it is worse for it than the nearest row."""

    words: str
    worse: bool

    def __str__(self) -> str:
        return f"{self.words}, so expect {'worse' if self.worse else 'better'}"


@dataclass(frozen=True, eq=False)
class Answer:
    """Expected total variation distance to the true normalised intensity, by the study; NaN without a row of it.

    The nearest row was used where the release lies `outside` the study.
    """

    distance: float
    outside: tuple[Outside, ...] = ()

    @property
    def reading(self) -> Reading:
        """Qualification of the distance: "at least" on the study's bad side, "unknown" where a good side adds to it."""
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
        outside = tuple(_outside(name, axes[name], at[name]) for name in axes if _is_outside(axes[name], at[name]))
        return Answer(float(np.exp(values)), outside)


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
        keys = {(row["kind"], row["mechanism"], row["relation"] == ADD_REMOVE) for row in self.rows}
        return {key: _grid(list(self._of(key))) for key in sorted(keys) if key[1] != UNIFORM}

    def _of(self, key: tuple[str, str, bool]) -> Iterator[Mapping[str, str]]:
        return (r for r in self.rows if (r["kind"], r["mechanism"], r["relation"] == ADD_REMOVE) == key)

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


def share_of(domain: Domain, relation: CappedRelation) -> float | None:
    """Privacy radius as a share of the domain's extent, at most 1; None where points come and go."""
    return None if isinstance(relation, AddRemove) else min(relation.reach / domain.extent, ANYWHERE)


def shape_of(domain: Domain) -> tuple[Outside, ...]:
    """Warning that a window is far from a square, the study's only shape; none for others."""
    if not isinstance(domain, Window):
        return ()
    x0, y0, x1, y1 = domain.bounds
    short, long = sorted((x1 - x0, y1 - y0))
    if long <= LONGEST * short and domain.size >= EMPTIEST * short * long:
        return ()
    return (Outside("the window is far from a square, the study's only shape", worse=True),)


def _grid(rows: list[Mapping[str, str]]) -> Grid:
    keys = np.array([(_share(row["relation"]), float(row["n"]), float(row["epsilon"])) for row in rows])
    (shares, i), (sizes, j), (budgets, k) = (np.unique(axis, return_inverse=True) for axis in keys.T)
    distance = np.full((len(shares), len(sizes), len(budgets)), np.nan)
    distance[i, j, k] = [float(row["distance"]) for row in rows]
    return Grid(shares, sizes, budgets, distance)


def _share(relation: str) -> float:
    return ANYWHERE if relation in (REPLACE_ONE, ADD_REMOVE) else float(relation)


def _along_first(axis: Floats, values: Floats, at: float) -> Floats:
    """Linear interpolation along the first axis of an array; outside, the nearest value."""
    if len(axis) == 1:
        return values[0]
    k = int(np.clip(np.searchsorted(axis, at) - 1, 0, len(axis) - 2))
    t = float(np.clip((at - axis[k]) / (axis[k + 1] - axis[k]), 0, 1))
    # A row that is missing must not spoil one that is met exactly.
    return values[k + 1] if t == 1 else values[k] if t == 0 else (1 - t) * values[k] + t * values[k + 1]


def _is_outside(axis: Floats, at: float) -> bool:
    return not axis[0] * (1 - 1e-9) <= at <= axis[-1] * (1 + 1e-9)


def _outside(name: str, axis: Floats, at: float) -> Outside:
    # Never the number of points itself: it may be secret.
    words = {"n": "the number of points", "epsilon": "the budget (in terms of epsilon)", "alpha": "alpha / extent"}
    side, bound = ("below", axis[0]) if at < axis[0] else ("above", axis[-1])
    # A smaller radius asks for less noise, fewer points and a smaller budget bring more.
    worse = (side == "below") != (name == "alpha")
    return Outside(f"{words[name]} lies {side} {bound:.3g}", worse)
