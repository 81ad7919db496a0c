"""Feasibility of exact posterior draws, from public parameters alone.

The exact sampler takes as many attempts as it needs, and their number depends on the data. So the choice is made
before, on surrogate patterns: the worst of three kinds must expect its first draw within a minute.
"""

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from dpppsynth.core.errors import InputError, QualityError
from dpppsynth.core.wording import mention
from dpppsynth.mechanisms.lgcp.posterior_sampling import DrawStatistic
from dpppsynth.models.lgcp import tent_masses
from dpppsynth.models.nested_boxes import NestedBoxes
from dpppsynth.spatial.mesh import Floats
from dpppsynth.spatial.sampling import binomial_pattern
from dpppsynth.spatial.surrogates import SEED, surrogates

# Longest expected time to the first draw, in seconds. It is estimated from batches of attempts, until enough of them
# are accepted or some seconds have gone.
PATIENCE, TRIALS, ENOUGH, TRYING = 60.0, 2000, 10, 3.0
# Points of the largest surrogate pattern.
MOST_POINTS = 1e7

P = TypeVar("P", bound=DrawStatistic)


def choose_sampler(build: Callable[[str], P], asked: str, otherwise: str) -> P:
    """Settle "auto", and refuse "exact" where it is not feasible.

    Parameters
    ----------
    build : callable
        ReleasePlan from the name of a sampler.
    asked : str
        The caller's choice.
    otherwise : str
        Sampler of "auto" where exact draws are not feasible.
    """
    if asked not in ("auto", "exact"):
        return build(asked)
    exact = build("exact")
    seconds, kind = expected_seconds(exact)
    if seconds <= PATIENCE:
        return exact
    if asked == "auto":
        return build(otherwise)
    figure = f"about {seconds:.0f} s" if seconds < 10 * PATIENCE else "many minutes"
    msg = (
        f"sampler: exact draws are not feasible here: on a surrogate pattern ({kind}) the first is expected to take "
        f"{figure}, and {PATIENCE:.0f} s is the limit. Take a longer length scale, a smaller sigma, or "
        f"{mention('sampler', repr(otherwise))}."
    )
    raise InputError(msg)


def expected_seconds(plan: DrawStatistic) -> tuple[float, str]:
    """Expected time of the first exact draw, on the worst kind of surrogate pattern, and that kind's name."""
    size = float(plan.n if plan.n is not None else plan.expected_n or 1.0)
    if size > MOST_POINTS:
        return float("inf"), "more points than are tried"
    times = []
    for surrogate in surrogates(plan.mesh, plan.root, size, plan.covariance.length_scale):
        rng = np.random.default_rng(SEED)
        pattern = binomial_pattern(surrogate.intensity, round(size), rng)
        times.append((_first_draw(plan, tent_masses(pattern, plan.mesh), rng), surrogate.name))
    return max(times)


def _first_draw(plan: DrawStatistic, masses: Floats, rng: np.random.Generator) -> float:
    """Set-up, and time of attempts divided by the number accepted among them."""
    start = time.perf_counter()
    try:
        boxes = NestedBoxes(plan.prior.posterior(masses))
    except QualityError:
        return float("inf")
    ready = time.perf_counter()
    accepted = 0.0
    while accepted < ENOUGH and time.perf_counter() - ready < TRYING:
        fields, log_accept = boxes.attempts(TRIALS, rng)
        probability = np.exp(log_accept)
        accepted += float((probability if plan.support is None else probability * plan.support(fields)).sum())
    if not accepted:
        return float("inf")
    return ready - start + (time.perf_counter() - ready) / accepted
