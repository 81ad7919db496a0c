"""Rehearsals: runs of a mechanism on surrogate patterns, before the data are touched.

A refusal, a time or a diagnostic of a run on the data is the custodian's secret, and choosing settings by it is an
unaccounted query. A rehearsal shows what to expect from public parameters alone, at no cost.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpppsynth.contract import rules
from dpppsynth.contract.statistic import Releasing, Statistic, Trial
from dpppsynth.core.errors import InputError, QualityError, ReleaseBlocked
from dpppsynth.core.html_card import html_text
from dpppsynth.core.progress import Progress, inner_progress, silent
from dpppsynth.core.wording import mention
from dpppsynth.models.covariances import PoweredExponential, factor
from dpppsynth.spatial.intensity import mass_distance
from dpppsynth.spatial.marked_offset import AnyOffset
from dpppsynth.spatial.patterns import PointPattern
from dpppsynth.spatial.sampling import binomial_pattern
from dpppsynth.spatial.surrogates import Surrogate, surrogates


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
        Worst R-hat and effective sample size of NUTS.
    distance : float or None
        Total variation distance between the normalised intensities, the surrogate's and the released one's. Between
        heat maps the earth mover's distance on 32 x 32 squares, as a share of the window's sides.
    uniform : float
        The same distance for a uniform intensity or map, or one that is proportional to the public offset: neither
        needs data.
    pareto_k, coverage : float or None
        Worst Pareto k of a Laplace approximation, and coverage of its nominal 90 % intervals
        (`dpppsynth.inference.field_inference.FitNotes`).
    clusters : float or None
        Posterior probability of clusters, where they are measured.
    """

    surrogate: str
    seconds: float
    passed: bool
    attempts: int | None
    rhat: float | None
    ess: float | None
    distance: float | None
    uniform: float
    pareto_k: float | None = None
    coverage: float | None = None
    clusters: float | None = None


@dataclass(frozen=True)
class Rehearsal:
    """Expected time, diagnostics and utility of a release, from runs on surrogate data.

    Attributes
    ----------
    mechanism : str
    runs : tuple of Run
        One for each kind of surrogate; where clusters are measured, one of clusters as well.
    measure : str
        What the distances are.
    """

    mechanism: str
    runs: tuple[Run, ...]
    measure: str = Statistic.distance

    @property
    def passed(self) -> bool:
        """Whether every run would have been released."""
        return all(run.passed for run in self.runs)

    def _repr_html_(self) -> str:
        return html_text("Rehearsal", self)

    def __str__(self) -> str:
        return "\n".join(
            [f"Rehearsal of {self.mechanism} on surrogate data:", *(_line(run, self.measure) for run in self.runs)]
        )


def rehearse(
    mechanism: str,
    plan: Statistic,
    release: Callable[..., Any],
    rng: np.random.Generator,
    say: Progress = silent,
    offset: AnyOffset | None = None,
) -> Rehearsal:
    """Run a mechanism on the three kinds of surrogate patterns, and one of clusters where these are measured.

    Parameters
    ----------
    mechanism : str
        Its name.
    plan : Statistic
        What the budget is to be spent on.
    release : callable
        From a pattern and a generator to a whole release; `progress=` is told how far it is.
    rng : Generator
    say : callable, optional
        Told which surrogate is at work, and how far.
    offset : Offset or MarkedOffset, optional
        Public offset that surrogates follow, their types and times as well.
    """
    size = plan.n if plan.n is not None else plan.expected_n
    if size is None:
        msg = (
            f"expected_n: a rehearsal needs a public guess of the number of {plan.individuals}, such as "
            f"{mention('expected_n', '500')}."
        )
        raise InputError(msg)
    # A mesh of its own: what to expect of a mechanism is not measured on its own mesh.
    rule = rules.BY_DOMAIN[type(plan.domain)]
    mesh = rule.fine_mesh(plan.domain)
    scale = rule.length_scale(plan.domain, size)
    covariance = getattr(plan, "covariance", None)
    scale = scale if covariance is None else covariance.length_scale
    root = factor(PoweredExponential(rules.FIELD_SIGMA, scale, mesh.smoothest_power).matrix(mesh))
    runs = []
    base = offset if offset is not None and offset(mesh.midpoints()[0]).any() else None
    drawn = list(surrogates(mesh, root, float(size), scale, base))
    further = plan.further_surrogate(drawn[0].intensity, round(size), rng)
    if further is not None:
        drawn.append(Surrogate(further[0], drawn[0].intensity))
    for k, surrogate in enumerate(drawn):
        inner = inner_progress(say, f"surrogate pattern: {surrogate.name}", k, len(drawn))
        own = None if further is None or surrogate.name != further[0] else further[1]
        bare = own or binomial_pattern(surrogate.intensity, round(size), rng)
        pattern = plan.with_surrogate_marks(bare, base, rng)
        runs.append(_run(plan, partial(release, progress=inner), surrogate, pattern, rng))
    return Rehearsal(mechanism, tuple(runs), plan.distance)


def _run(
    plan: Statistic, release: Releasing, surrogate: Surrogate, pattern: PointPattern, rng: np.random.Generator
) -> Run:
    xy, weight = surrogate.intensity.mesh.midpoints()
    truth = surrogate.intensity(xy) * weight
    offset = getattr(surrogate.intensity, "offset", None)
    unknowing = weight if offset is None else offset(xy) * weight
    start = time.perf_counter()
    trial, estimate = Trial(None), None
    try:
        trial = plan.rehearsal_run(release, pattern, rng)
        estimate = None if trial.estimate is None else trial.estimate(xy)
    except (QualityError, ReleaseBlocked):
        pass
    seconds = time.perf_counter() - start
    distance, uniform = trial.distances or (None, mass_distance(unknowing, truth))
    if estimate is not None:
        distance = mass_distance(estimate * weight, truth)
    passed = distance is not None
    rhat, ess, pareto_k, coverage = trial.fit
    told = trial.attempts, rhat, ess, distance, uniform, pareto_k, coverage, trial.clusters
    return Run(surrogate.name, seconds, passed, *told)


def _line(run: Run, measure: str) -> str:
    parts = [f"{run.seconds:.1f} s", "passed" if run.passed else "would be blocked"]
    parts += [] if run.attempts is None else [f"{run.attempts} attempts"]
    parts += [] if run.rhat is None else [f"R-hat {run.rhat:.3f}, effective sample size {run.ess:.0f}"]
    parts += [] if run.pareto_k is None else [f"Pareto k {run.pareto_k:.2f}"]
    parts += [] if run.coverage is None else [f"90 % intervals cover {run.coverage:.0%}"]
    parts += [] if run.clusters is None else [f"clusters {run.clusters:.0%} likely"]
    parts += [] if run.distance is None else [f"{measure} {run.distance:.3f} (uniform {run.uniform:.3f})"]
    return f"  {run.surrogate}: " + ", ".join(parts)
