"""Originals, mechanisms and measures of the tables in Kim & Lim's paper.

`reproduce_point_synthesis.py` puts them together. A mechanism is a function of (scenario, epsilon, delta, n), whose
result releases a pattern and draws synthetic sets; a measure is a function of an `Outcome`.
"""

# ruff: noqa: ARG001 - mechanisms have one signature

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd

import dpppsynth as dps
from dpppsynth.contract import rules
from dpppsynth.evaluation.distances import misplaced_share, total_variation
from dpppsynth.evaluation.experiments import Outcome, Scenario
from dpppsynth.evaluation.kfunction import default_distances, k_function
from dpppsynth.evaluation.metrics import mean_integrated_squared_error, propensity_mse
from dpppsynth.linear_network import LinearNetwork, network_mesh
from dpppsynth.mechanisms.lgcp.clusters import ClusteredRelease
from dpppsynth.models import PoweredExponential, regular_squares, regular_triangulation
from dpppsynth.privacy import kim_lim_38, kim_lim_ratio
from dpppsynth.spatial.gaussian_kernel import kernel_density
from dpppsynth.spatial.intensity import LogLinearMean, PiecewiseConstant, PiecewiseLinear
from dpppsynth.spatial.mesh import Floats, Mesh
from dpppsynth.spatial.sampling import binomial_pattern, poisson_pattern
from dpppsynth.spatial.second_order import KFunction

# Baselines are no part of the package.
sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

SMALL_DELTA = 1e-6
KNOTS = (11, 11)
# Below the limit of Corollary 3.9 for 11 x 11 knots, which must not be reached.
BELOW = 0.999
# Metres: privacy radius and longest segment on streets, side of the squares in which places are compared.
ALPHA, SEGMENT, SIDE = 25.0, 50.0, 150.0
# K is not changed by thinning, and that of millions of points takes hours: it is then that of so many of them.
MOST_POINTS, STEPS = 1500, 60
# Of a posterior's draws, how many there are to one that its mean intensity is taken over.
THINNED = 5
# Share of epsilon for clusters.
CLUSTERS = 0.3


# What originals are drawn from.


def lambda1(xy: Floats) -> Floats:
    return np.full(len(xy), 10.0)


def lambda1_twice(xy: Floats) -> Floats:
    return np.full(len(xy), 20.0)


def lambda2(xy: Floats) -> Floats:
    return np.exp(-(xy**2).sum(axis=1) / 25)


def lambda3(xy: Floats) -> Floats:
    return 0.5 + 5 * np.exp(-((xy[:, 0] - xy[:, 1]) ** 2))


def lambda4(xy: Floats) -> Floats:
    return 5 * np.exp(-((xy - 3) ** 2).sum(axis=1) / 2) + 5 * np.exp(-((xy + 3) ** 2).sum(axis=1) / 2)


@dataclass(frozen=True)
class Poisson:
    """Draws a Poisson pattern; between the vertices of a fine mesh the intensity is taken as linear."""

    window: dps.Window
    intensity: Callable[[Floats], Floats]

    def __call__(self, rng: np.random.Generator) -> dps.PointPattern:
        return poisson_pattern(self.interpolant, rng)

    @cached_property
    def interpolant(self) -> PiecewiseLinear:
        mesh = regular_triangulation(self.window, shape=(101, 101))
        return PiecewiseLinear(mesh, self.intensity(mesh.vertices))


def simulated(low: float, high: float, intensity: Callable[[Floats], Floats]) -> Scenario:
    window = dps.Window.rectangle(low, low, high, high)
    alpha = BELOW * (high - low) / ((KNOTS[0] - 1) * np.sqrt(2))
    return Scenario(window, Poisson(window, intensity), alpha, intensity)


def soho(_: np.random.Generator) -> dps.PointPattern:
    return dps.datasets.soho_deaths(on="streets")


def arizona(_: np.random.Generator) -> dps.PointPattern:
    return dps.datasets.geodanet_crimes(on="streets")


def metre(domain: Any) -> float:
    """A metre in the domain's unit of length."""
    return 1 / 0.3048 if "foot" in domain.unit else 1.0


@dataclass(frozen=True)
class Held:
    """Draws one pattern that is there already."""

    pattern: dps.PointPattern

    def __call__(self, _: np.random.Generator) -> dps.PointPattern:
        return self.pattern


def own_town(points: Path, network: Path, *, crs: str, x: str | None, y: str | None, snap: float) -> Scenario:
    """Points along streets from two files, such as crimes as cities publish them.

    Streets are cut at crossings, and their largest component is taken. Points that lie farther off it than `snap` are
    left out, as the paper leaves out those outside its box, and so are rows of a CSV file without a place.
    """
    streets = dps.io.read_network(network, to_crs=crs, node=True, largest_component=True)
    near: dict[str, Any] = {"snap": snap, "skip_outside": True}
    if not points.name.endswith((".csv", ".csv.gz")):
        return town(Held(dps.io.read_pattern(points, streets, crs=crs, **near)))
    # Cities leave coordinates blank where they hide or lack them.
    places = pd.read_csv(points, usecols=[x or "x", y or "y"]).dropna()
    frame = gpd.GeoDataFrame(geometry=gpd.points_from_xy(places[x or "x"], places[y or "y"], crs=crs))
    return town(Held(dps.PointPattern.from_geodataframe(frame, streets, **near)))


def town(draw: Callable[[np.random.Generator], dps.PointPattern]) -> Scenario:
    network = draw(np.random.default_rng(0)).domain
    return Scenario(network, draw, ALPHA * metre(network))


def simulations() -> dict[str, Scenario]:
    return {
        "lambda1": simulated(0, 1, lambda1),
        "lambda1, doubled": simulated(0, 1, lambda1_twice),
        "lambda2": simulated(-10, 10, lambda2),
        "lambda3": simulated(0, 10, lambda3),
        "lambda4": simulated(-5, 5, lambda4),
    }


# Streets of one's own by name, in place of the shipped ones.
OWN: dict[str, Scenario] = {}


def towns() -> dict[str, Scenario]:
    return OWN or {"Soho": town(soho), "Arizona": town(arizona)}


# How synthetic sets are made.


@dataclass(frozen=True)
class Synthetic:
    """One synthetic set, or where it is too large some of its points; the intensity it was drawn from, if known."""

    pattern: dps.PointPattern
    points: int
    intensity: Any


@dataclass(frozen=True)
class KernelMean:
    """Expected intensity of what a kernel synthesizer draws: not private."""

    pattern: dps.PointPattern
    bandwidth: float

    @property
    def total(self) -> float:
        return float(len(self.pattern))

    def __call__(self, xy: Floats) -> Floats:
        return kernel_density(self.pattern.xy, self.pattern.domain, self.bandwidth, xy)


def drawn(intensity: Any, rng: np.random.Generator, clusters: Any = None) -> Synthetic:
    """A set from an intensity, or from a release's clusters over it; thinned where there are too many points."""
    points = int(rng.poisson(intensity.total))
    kept = min(points, MOST_POINTS)
    if clusters is None:
        return Synthetic(binomial_pattern(intensity, kept, rng), points, intensity)
    whole = clusters.drawn(intensity, points, rng, "mean")
    # Points come in random order.
    some = dps.PointPattern.at(whole.positions[:kept], whole.domain, synthetic=True)
    return Synthetic(some, points, intensity)


def clusters_of(release: Any) -> Any:
    """The release where its patterns have clusters, else nothing."""
    return release if isinstance(release, ClusteredRelease) else None


@dataclass(frozen=True)
class Uniform:
    """Homogeneous Poisson patterns, which need n alone."""

    def release(self, pattern: dps.PointPattern, rng: np.random.Generator) -> Synthetic:
        domain = pattern.domain
        mesh: Mesh = (
            network_mesh(domain, SEGMENT * metre(domain))
            if isinstance(domain, LinearNetwork)
            else mesh_of(domain, "squares")
        )
        return drawn(PiecewiseConstant(mesh, np.full(len(mesh.elements), len(pattern) / domain.size)), rng)


@dataclass(frozen=True)
class DrawnAnew:
    """A Poisson number of the original's own points, with replacement: what chance alone costs."""

    def release(self, pattern: dps.PointPattern, rng: np.random.Generator) -> Synthetic:
        chosen = rng.integers(0, len(pattern), rng.poisson(len(pattern)))
        copy = dps.PointPattern.at(pattern.positions[chosen], pattern.domain, synthetic=True)
        return Synthetic(copy, len(copy), None)


@dataclass(frozen=True)
class Anew:
    """Releases made anew for every synthetic set, as in the paper's tables; no two of them share a budget."""

    synthesizer: Any
    source: str = "draws"

    def release(self, pattern: dps.PointPattern, rng: object) -> "Releases":
        planned = isinstance(self.synthesizer, dps.KernelSynthesizer | dps.LGCPSynthesizer | dps.LaplaceSynthesizer)
        plan = self.synthesizer.plan(pattern.domain, n=len(pattern)) if planned else self.synthesizer
        return Releases(plan, pattern, self.source)


class Releases:
    """Releases of one pattern, made when synthetic sets are asked for."""

    def __init__(self, plan: Any, pattern: dps.PointPattern, source: str = "draws") -> None:
        self.plan, self.pattern, self.source = plan, pattern, source
        self.sets: list[Synthetic] = []

    def sample(self, m: int, rng: np.random.Generator) -> list[dps.PointPattern]:
        self.sets = [self._one(rng) for _ in range(m)]
        return [each.pattern for each in self.sets]

    def _one(self, rng: np.random.Generator) -> Synthetic:
        release = self.plan.release(self.pattern, rng)
        if isinstance(release, Synthetic):
            return release
        if isinstance(release, dps.PoissonRelease):
            planar = isinstance(self.pattern.domain, dps.Window)
            mean = KernelMean(self.pattern, self.plan.statistic.bandwidth) if planar else None
            return Synthetic(release.patterns[0], len(release.patterns[0]), mean)
        return drawn(sources(release, self.source, 1, rng)[0], rng, clusters_of(release))


def sources(release: Any, source: str, m: int, rng: np.random.Generator) -> list[Any]:
    """Intensities that `CoxRelease.sample` draws m patterns from, so that each set can be scored by its own."""
    posterior = isinstance(release, dps.CoxRelease)
    return list(release.intensities(m, rng, source=source)) if posterior else [release.intensity] * m


@dataclass(frozen=True)
class Once:
    """All synthetic sets from one release: from different draws of its posterior, or its mean. They cost no more."""

    synthesizer: Any
    source: str

    def release(self, pattern: dps.PointPattern, rng: object) -> "OneRelease":
        return OneRelease(self.synthesizer.release(pattern, rng), self.source)


class OneRelease:
    """A released intensity, and the sets that were drawn from it."""

    def __init__(self, release: dps.CoxRelease, source: str) -> None:
        self.release, self.source = release, source
        (mean,) = release.intensities(1, np.random.default_rng(0), source="mean")
        # Two thousand draws take seconds at every look, and tell hardly more about their mean.
        self.intensity = LogLinearMean(mean.mesh, mean.fields[::THINNED]) if source == "mean" else mean
        self.sets: list[Synthetic] = []

    def sample(self, m: int, rng: np.random.Generator) -> list[dps.PointPattern]:
        mean = self.source == "mean"
        found = [self.intensity] * m if mean else sources(self.release, self.source, m, rng)
        self.sets = [drawn(each, rng, clusters_of(self.release)) for each in found]
        return [each.pattern for each in self.sets]


def uniform(_: Scenario, epsilon: float, delta: float, n: int) -> Anew:
    return Anew(Uniform())


def drawn_anew(_: Scenario, epsilon: float, delta: float, n: int) -> Anew:
    return Anew(DrawnAnew())


def kernel(
    scenario: Scenario,
    epsilon: float,
    delta: float,
    n: int,
    *,
    bound: str = "superposition",
    small: bool = False,
    alpha: float | None = None,
) -> Anew:
    delta, alpha = SMALL_DELTA if small else delta, alpha or scenario.alpha
    return Anew(dps.KernelSynthesizer(epsilon, delta=delta, alpha=alpha, bound=bound, allow_large_delta=True))


def mesh_of(window: dps.Window, kind: str) -> Mesh:
    build = {"triangles": regular_triangulation, "squares": regular_squares}[kind]
    return build(window, shape=KNOTS)


def bound_39(
    scenario: Scenario, epsilon: float, delta: float, n: int, *, kind: str = "triangles", sampler: str = "exact"
) -> Any:
    """The paper's Cox synthesizer under Corollary 3.9.

    NUTS draws the length scale too; exact draws have the package's, and the sigma that the corollary admits for it.
    """
    mesh = mesh_of(scenario.domain, kind)
    if sampler == "nuts":
        budget: dict[str, Any] = {"mechanism": "kim-lim-3.9", "delta": delta, "allow_large_delta": True}
        return Anew(dps.LGCPSynthesizer(epsilon, alpha=scenario.alpha, mesh=mesh, **budget))
    ratio = kim_lim_ratio(mesh, scenario.alpha, epsilon=epsilon, delta=delta, corollary=True)
    sigma = ratio * rules.BY_DOMAIN[type(scenario.domain)].length_scale(scenario.domain, n)
    return posterior_draw(scenario, epsilon, delta, n, sigma=sigma, mesh=mesh)


def bound_38(scenario: Scenario, epsilon: float, delta: float, n: int) -> Any:
    """The same under Theorem 3.8, whose delta is quadratic in sigma."""
    mesh = segments(scenario)
    covariance = PoweredExponential(1e-6, rules.BY_DOMAIN[type(scenario.domain)].length_scale(scenario.domain, n), 1.0)
    tiny = kim_lim_38(mesh, covariance, scenario.alpha, epsilon=epsilon).delta(epsilon)
    sigma = covariance.sigma * np.sqrt(delta / tiny)
    return posterior_draw(scenario, epsilon, delta, n, sigma=float(sigma), mesh=mesh)


def posterior_draw(
    scenario: Scenario, epsilon: float, delta: float, n: int, *, small: bool = False, kind: str = "", **given: Any
) -> Anew:
    """One posterior draw under Theorem A: exact, but on networks where sigma is large."""
    if kind:
        given["mesh"] = mesh_of(scenario.domain, kind)
    if isinstance(scenario.domain, dps.Window) or "sigma" in given:
        given["sampler"] = "exact"
    delta = SMALL_DELTA if small else delta
    options = {"mechanism": "posterior-draw", "delta": delta, "allow_large_delta": True} | given
    return Anew(dps.LGCPSynthesizer(epsilon, alpha=scenario.alpha, **options))


def posterior(
    scenario: Scenario,
    epsilon: float,
    delta: float,
    n: int,
    *,
    mechanism: str = "tents",
    source: str = "draws",
    clusters: float | None = None,
) -> Any:
    """Noised masses with a posterior: sets from single draws of it or from its mean, with clusters where asked for."""
    options = {"mechanism": mechanism, "delta": 0.0 if mechanism == "tents" else SMALL_DELTA, "clusters": clusters}
    given = dps.LGCPSynthesizer(epsilon, alpha=scenario.alpha, inference="laplace", **options)
    return Once(given, source) if isinstance(scenario.domain, dps.Window) else Anew(given, source)


def printed_laplace(scenario: Scenario, epsilon: float, delta: float, n: int) -> Anew:
    from baselines.paper_laplace import PaperLaplaceSynthesizer

    planar = isinstance(scenario.domain, dps.Window)
    cells = {"shape": KNOTS} if planar else {"resolution": SEGMENT * metre(scenario.domain)}
    return Anew(PaperLaplaceSynthesizer(epsilon, **cells))


def counts(scenario: Scenario, epsilon: float, delta: float, n: int) -> Anew:
    domain = scenario.domain
    planar = isinstance(domain, dps.Window)
    spacing = domain.extent / (KNOTS[0] - 1) if planar else SEGMENT * metre(domain)
    return Anew(dps.LaplaceSynthesizer(epsilon, alpha=scenario.alpha, spacing=spacing, postprocess="plain"))


def tents(scenario: Scenario, epsilon: float, delta: float, n: int) -> Anew:
    return Anew(dps.LaplaceSynthesizer(epsilon, alpha=scenario.alpha, basis="tents", postprocess="plain"))


def segments(scenario: Scenario) -> Any:
    return network_mesh(scenario.domain, SEGMENT * metre(scenario.domain))


# In windows: the paper's mechanisms under its own bounds, and what to release instead.
PUBLISHED = {
    "Kernel, bound 3.6": partial(kernel, bound="kim-lim-3.6"),
    "Kernel, bound 3.6, alpha = 0.1": partial(kernel, bound="kim-lim-3.6", alpha=0.1),
    "LGCP, bound 3.9": bound_39,
    "Laplace, as printed": printed_laplace,
    "homogeneous Poisson": uniform,
}
NEW = {
    "Kernel, superposition": kernel,
    "Kernel, superposition, small delta": partial(kernel, small=True),
    "LGCP, posterior draw": posterior_draw,
    "LGCP, posterior draw, small delta": partial(posterior_draw, small=True),
    "LGCP, tents + posterior, draws": posterior,
    "LGCP, tents + posterior, mean": partial(posterior, source="mean"),
    "LGCP, tents + posterior, clusters": partial(posterior, source="mean", clusters=CLUSTERS),
    "Laplace, counts, n kept": counts,
    "Laplace, tents, n kept": tents,
}
STREETS = {
    "LGCP, bound 3.8": bound_38,
    "LGCP, posterior draw": posterior_draw,
    "LGCP, posterior draw, small delta": partial(posterior_draw, small=True),
    "LGCP, tents + posterior, draws": posterior,
    "LGCP, tents + posterior, mean": partial(posterior, source="mean"),
    "LGCP, tents + posterior, clusters": partial(posterior, source="mean", clusters=CLUSTERS),
    "LGCP, field + posterior, draws": partial(posterior, mechanism="field"),
    "LGCP, field + posterior, mean": partial(posterior, mechanism="field", source="mean"),
    "Laplace, as printed": printed_laplace,
    "Laplace, counts, n kept": counts,
    "Laplace, tents, n kept": tents,
    "kernel (heat flow)": partial(kernel, small=True),
    "homogeneous Poisson": uniform,
    "original drawn anew": drawn_anew,
}
TESSELLATIONS = {
    f"{name}, {kind}": partial(method, kind=kind)
    for name, method in (("bound 3.9", bound_39), ("posterior draw", posterior_draw))
    for kind in ("triangles", "squares")
}
BY_NUTS = {
    f"bound 3.9 by NUTS, {kind}": partial(bound_39, kind=kind, sampler="nuts") for kind in ("triangles", "squares")
}
# What a mechanism spends. A delta of 1/n the package refuses to release, unless it is told to.
DELTAS = {
    "Kernel, bound 3.6": "1/n",
    "Kernel, bound 3.6, alpha = 0.1": "1/n",
    "Kernel, superposition": "1/n",
    "Kernel, superposition, small delta": "1e-6",
    "LGCP, bound 3.8": "1/n, averaged",
    "LGCP, bound 3.9": "1/n, averaged",
    "LGCP, posterior draw": "1/n",
    "LGCP, posterior draw, small delta": "1e-6",
    "LGCP, tents + posterior, draws": "0",
    "LGCP, tents + posterior, mean": "0",
    "LGCP, tents + posterior, clusters": "0",
    "LGCP, field + posterior, draws": "1e-6",
    "LGCP, field + posterior, mean": "1e-6",
    "Laplace, as printed": "0",
    "Laplace, counts, n kept": "0",
    "Laplace, tents, n kept": "0",
    "kernel (heat flow)": "1e-6",
    "homogeneous Poisson": "nothing spent",
    "original drawn anew": "no privacy",
    **{name: "1/n" if name.startswith("posterior draw") else "1/n, averaged" for name in {**TESSELLATIONS, **BY_NUTS}},
}


# What is measured, each a mean over the sets of a cell.


def mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def points(outcome: Outcome) -> float:
    return mean([each.points for each in outcome.release.sets])


def points_sd(outcome: Outcome) -> float:
    sets = outcome.release.sets
    return float(np.std([each.points for each in sets], ddof=1)) if len(sets) > 1 else float("nan")


def propensity(outcome: Outcome, *, balanced: bool = False) -> float:
    """The paper's pMSE: from the true intensity and that of the synthesizer."""
    return propensity_of(outcome, outcome.release.sets, balanced=balanced)


def propensity_of(outcome: Outcome, sets: Sequence[Synthetic], *, balanced: bool) -> float:
    """Mean over the sets that have points; nan, if none has."""
    truth, original = outcome.scenario.intensity, outcome.original
    some = [each for each in sets if each.points]
    return mean([propensity_mse(original, s.pattern, truth, s.intensity, balanced=balanced) for s in some])


@dataclass(frozen=True)
class HalfAWindowAway:
    """An intensity on a square, looked up half a window away along both axes."""

    intensity: Any
    domain: Any

    @property
    def total(self) -> float:
        return float(self.intensity.total)

    def __call__(self, xy: Floats) -> Floats:
        lower, upper = np.reshape(self.domain.bounds, (2, 2))
        return np.asarray(self.intensity(lower + (xy - lower + (upper - lower) / 2) % (upper - lower)))


def propensity_displaced(outcome: Outcome) -> float:
    """The same with the synthesizer's intensity looked up in the wrong place; see the findings."""
    domain = outcome.scenario.domain
    moved = [replace(each, intensity=HalfAWindowAway(each.intensity, domain)) for each in outcome.release.sets]
    return propensity_of(outcome, moved, balanced=False)


def errors(outcome: Outcome, *, weighted: bool) -> float:
    """MISE of K-functions at distances up to a quarter of the domain's side; a set of fewer points than two has none.

    Weighted by the true intensity for the original and the synthesizer's for its sets: inhomogeneous K-functions.
    """
    r = default_distances(outcome.scenario.domain, STEPS)

    def estimate(pattern: dps.PointPattern, intensity: Any) -> KFunction:
        return k_function(pattern, r, intensity if weighted else None, normalise=True)

    original = estimate(outcome.original, outcome.scenario.intensity)
    nothing = replace(original, k=np.zeros(len(r)))
    sets = [estimate(s.pattern, s.intensity) if len(s.pattern) > 1 else nothing for s in outcome.release.sets]
    return mean_integrated_squared_error(original, sets) / metre(outcome.scenario.domain)


def to_truth(outcome: Outcome) -> float:
    """Total variation distance to the true intensity; that of sets with one intensity is found once."""
    intensities = dict.fromkeys(each.intensity for each in outcome.release.sets)
    return mean([total_variation(each, outcome.scenario.intensity, outcome.scenario.domain) for each in intensities])


def misplaced(outcome: Outcome) -> float:
    side = SIDE * metre(outcome.scenario.domain)
    return mean([misplaced_share(outcome.original, each, side) for each in outcome.synthetic])


PLANAR_MEASURES = {
    "pmse": propensity,
    "pmse_balanced": partial(propensity, balanced=True),
    "pmse_displaced": propensity_displaced,
    "points": points,
    "mise": partial(errors, weighted=False),
    "mise_weighted": partial(errors, weighted=True),
    "tv": to_truth,
}
STREET_MEASURES = {
    "mise": partial(errors, weighted=False),
    "misplaced": misplaced,
    "points": points,
    "points_sd": points_sd,
}
