"""Rehearsals: runs of a mechanism on surrogate patterns, before the data are touched.

A refusal, a time or a diagnostic of a run on the data is the custodian's secret, and choosing settings by it is an
unaccounted query. A rehearsal shows what to expect from public parameters alone, at no cost.
"""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpppsynth.contract import rules
from dpppsynth.core.errors import InputError, QualityError, ReleaseBlocked
from dpppsynth.mechanisms.heatmap.exact_maps import heat_maps
from dpppsynth.mechanisms.heatmap.plan import HeatmapPlan
from dpppsynth.mechanisms.kernel.plan import PatternPlan
from dpppsynth.mechanisms.lgcp.posterior_sampling import DrawPlan
from dpppsynth.mechanisms.planar_laplace.plan import MovedPlan
from dpppsynth.models.covariances import PoweredExponential, factor
from dpppsynth.release import CoxRelease
from dpppsynth.release.drawn import Drawn
from dpppsynth.release.lgcp_inference import SIGMA, Progress
from dpppsynth.spatial.intensity import mass_distance
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.sampling import binomial_pattern
from dpppsynth.spatial.surrogates import Surrogate, surrogates

if TYPE_CHECKING:
    from dpppsynth.contract.base import Plan


TOTAL_VARIATION, EARTH_MOVERS = "total variation", "earth mover's distance"


@dataclass(frozen=True)
class Run:
    """The mechanism on one surrogate.

    Attributes
    ----------
    surrogate : str
        Its kind.
    seconds : float
    passed : bool
        Whether the diagnostics, where there are any, would have let the release through.
    attempts : int or None
        Attempts of the exact sampler.
    rhat, ess : float or None
        Worst R-hat and effective sample size of a draw by NUTS.
    distance : float or None
        Total variation distance between the normalised intensities, the surrogate's and the released one's. Between
        heat maps the earth mover's distance on 32 x 32 squares, as a share of the window's sides.
    uniform : float
        The same distance for a uniform intensity or map, which needs no data.
    """

    surrogate: str
    seconds: float
    passed: bool
    attempts: int | None
    rhat: float | None
    ess: float | None
    distance: float | None
    uniform: float


@dataclass(frozen=True)
class Rehearsal:
    """Expected time, diagnostics and utility of a release, from runs on surrogate data.

    Attributes
    ----------
    mechanism : str
    runs : tuple of Run
        One for each kind of surrogate.
    measure : str
        What the distances are.
    """

    mechanism: str
    runs: tuple[Run, ...]
    measure: str = TOTAL_VARIATION

    @property
    def passed(self) -> bool:
        """Whether every run would have been released."""
        return all(run.passed for run in self.runs)

    def __str__(self) -> str:
        return "\n".join(
            [f"Rehearsal of {self.mechanism} on surrogate data:", *(_line(run, self.measure) for run in self.runs)]
        )


def rehearse(plan: "Plan", rng: np.random.Generator, say: Progress | None = None) -> Rehearsal:
    """Run a plan on the three kinds of surrogate patterns."""
    statistic = plan.statistic
    size = statistic.n if statistic.n is not None else statistic.expected_n
    if size is None:
        msg = f"expected_n: a rehearsal needs a public guess of the number of {_counted(plan)}, such as expected_n=500."
        raise InputError(msg)
    # A separate mesh: a mechanism is not assessed on its own.
    rule = rules.of(plan.domain)
    mesh = rule.fine_mesh(plan.domain)
    scale = rule.length_scale(plan.domain, size)
    covariance = getattr(statistic, "covariance", None)
    scale = scale if covariance is None else covariance.length_scale
    root = factor(PoweredExponential(SIGMA, scale, mesh.smoothest_power).matrix(mesh))
    runs = []
    for surrogate in surrogates(mesh, root, float(size), scale):
        if say is not None:
            say(f"surrogate pattern: {surrogate.name}")
        pattern = binomial_pattern(surrogate.intensity, round(size), rng)
        run = _heatmap_run if _is_heatmap(plan) else _run
        runs.append(run(plan, surrogate, _of_persons(pattern, plan), rng))
    return Rehearsal(plan.mechanism, tuple(runs), EARTH_MOVERS if _is_heatmap(plan) else TOTAL_VARIATION)


def _is_heatmap(plan: "Plan") -> bool:
    return isinstance(plan.statistic, HeatmapPlan)


def _counted(plan: "Plan") -> str:
    """Unit that the size of a surrogate counts, such as points or persons."""
    return "persons" if _is_heatmap(plan) else "points"


def _of_persons(pattern: PointPattern, plan: "Plan") -> PointPattern:
    """The same points, marked as those of so many persons where a plan asks whose they are."""
    user = getattr(plan.statistic, "user", None)
    if user is None:
        return pattern
    return PointPattern.at(pattern.positions, pattern.domain, {user: np.arange(len(pattern))})


def _run(plan: "Plan", surrogate: Surrogate, pattern: PointPattern, rng: np.random.Generator) -> Run:
    xy, weight = surrogate.intensity.mesh.midpoints()
    truth = surrogate.intensity(xy) * weight
    attempts, diagnostics, estimate = None, None, None
    start = time.perf_counter()
    try:
        if isinstance(plan.statistic, DrawPlan):
            fit = plan.statistic.fit(pattern, rng)
            attempts, diagnostics = fit.attempts, fit.diagnostics
            estimate = CoxRelease(plan.mechanism, fit.draw, Drawn(plan.statistic.offset)).intensity(xy)
        elif isinstance(plan.statistic, PatternPlan | MovedPlan):
            plan.statistic.measure(pattern, rng)
            estimate = plan.statistic.density(pattern, xy)
        else:
            estimate = plan.release(pattern, rng).intensity(xy)
    except (QualityError, ReleaseBlocked):
        pass
    seconds = time.perf_counter() - start
    return Run(
        surrogate.name,
        seconds,
        estimate is not None,
        attempts,
        None if diagnostics is None else diagnostics.rhat,
        None if diagnostics is None else diagnostics.ess,
        None if estimate is None else mass_distance(estimate * weight, truth),
        mass_distance(weight, truth),
    )


def _heatmap_run(plan: "Plan", surrogate: Surrogate, pattern: PointPattern, rng: np.random.Generator) -> Run:
    """Rehearsal of a heat map, scored by earth mover's distance: masses of single fine cells are mostly noise."""
    start = time.perf_counter()
    release = plan.release(pattern, rng)
    seconds = time.perf_counter() - start
    maps = heat_maps(release, pattern)
    distance, uniform = maps.moved(maps.released), maps.moved(maps.uniform)
    return Run(surrogate.name, seconds, True, None, None, None, distance, uniform)


def _line(run: Run, measure: str) -> str:
    parts = [f"{run.seconds:.1f} s", "passed" if run.passed else "would be blocked"]
    parts += [] if run.attempts is None else [f"{run.attempts} attempts"]
    parts += [] if run.rhat is None else [f"R-hat {run.rhat:.3f}, effective sample size {run.ess:.0f}"]
    parts += [] if run.distance is None else [f"{measure} {run.distance:.3f} (uniform {run.uniform:.3f})"]
    return f"  {run.surrogate}: " + ", ".join(parts)
