"""Posterior draw mechanisms: feasibility of exact draws, plans and records."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from dpppsynth.contract import rules
from dpppsynth.contract.registry import Mechanism
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.synthesizer import safe_digits
from dpppsynth.core.errors import InformationWarning, InputError, PrivacyCheckError, QualityError
from dpppsynth.core.wording import mention
from dpppsynth.mechanisms.lgcp import examples, words
from dpppsynth.mechanisms.lgcp.bound.kim_lim import RandomScale, carries_no_information, kim_lim_ratio
from dpppsynth.mechanisms.lgcp.bound.posterior_draw import largest_intercept_sd, largest_sigma, point_sd
from dpppsynth.mechanisms.lgcp.draw_statistic import Drawn, DrawStatistic
from dpppsynth.mechanisms.lgcp.draw_statistics import KimLimStatistic, LipschitzStatistic, PosteriorDrawStatistic
from dpppsynth.mechanisms.lgcp.synthesizer import (
    LGCPSynthesizer,
    admissible_covariance,
    field_mesh,
    length_scale,
    relation_and_budget,
)
from dpppsynth.models.covariances import Covariance, PoweredExponential
from dpppsynth.models.kim_lim_model import require_small_network
from dpppsynth.models.lgcp import tent_masses
from dpppsynth.models.nested_boxes import NestedBoxes
from dpppsynth.models.target_posterior import proximal_factor
from dpppsynth.privacy.guarantee import on_map
from dpppsynth.privacy.profiles import gaussian_mu
from dpppsynth.privacy.relations import AddRemove, AlphaNeighbours
from dpppsynth.release.cox import CoxRelease
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Floats, Mesh
from dpppsynth.spatial.sampling import binomial_pattern
from dpppsynth.spatial.surrogates import SEED, surrogates

if TYPE_CHECKING:
    from dpppsynth.contract.audits.statistic_audit import StatisticAudit

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


# Share of the budget that is left to the intercept at least, where n is secret.
LITTLE = 1e-3


def _posterior_draw(s: LGCPSynthesizer, domain: Domain, n: int | None, size: float) -> ReleasePlan:
    """A posterior draw under a Gaussian prior."""
    mesh = field_mesh(s, domain)
    plan = choose_sampler(lambda sampler: _draw_with(s, mesh, n, size, sampler), s.sampler, "proximal")
    return ReleasePlan("lgcp-posterior-draw", plan, Drawn(s.offset))


def _draw_with(s: LGCPSynthesizer, mesh: Mesh, n: int | None, size: float, sampler: str) -> PosteriorDrawStatistic:
    relation = s.neighbouring()
    factor = proximal_factor() if sampler == "proximal" else 1.0
    given = s.sigma is not None or s.covariance is not None

    def largest(shape: Covariance, mu: float) -> float:
        # Under add/remove a field that is given may take all but a little of what it shares with the intercept.
        tiny = LITTLE * mu if given and isinstance(relation, AddRemove) else None
        return largest_sigma(mesh, shape, relation, mu, factor=factor, intercept_sd=tiny)

    covariance = admissible_covariance(s, mesh, size, largest, cap=rules.DRAW_SIGMA)
    intercept_sd = None
    if isinstance(relation, AddRemove):
        mu = gaussian_mu(s.epsilon, s.delta)
        field_sd = point_sd(covariance.matrix(mesh))
        intercept_sd = largest_intercept_sd(relation, mu, field_sd, factor=factor)
    return PosteriorDrawStatistic(
        mesh,
        covariance,
        *relation_and_budget(s, n, size),
        sampler=sampler,
        engine=s.engine,
        offset=s.offset,
        intercept_sd=intercept_sd,
    )


def _lipschitz(s: LGCPSynthesizer, domain: Domain, n: int | None, size: float) -> ReleasePlan:
    """A posterior draw under a prior of bounded slope."""
    relation = s.neighbouring()
    mesh = field_mesh(s, domain, rules.BY_DOMAIN[type(domain)].smooth_mesh)
    # Where no path's length is known an infinite reach is refused by the theorem, in words.
    moved = on_map(relation, domain).reach
    reach = min(moved, domain.diameter if math.isinf(moved) else domain.longest_path)
    slope = s.epsilon / (2 * reach * relation.max_points_per_person) * (1 - 1e-12)
    scale = length_scale(s, domain, size)

    def build(sampler: str) -> LipschitzStatistic:
        sigma = s.sigma or rules.lipschitz_sigma(slope, scale, size, sampler)
        covariance = s.covariance or PoweredExponential(sigma, scale, mesh.smoothest_power)
        return LipschitzStatistic(
            mesh,
            covariance,
            *relation_and_budget(s, n, size),
            sampler=sampler,
            engine=s.engine,
            offset=s.offset,
            slope=slope,
        )

    many = s.sampler == "auto" and size > rules.LIPSCHITZ_EXACT
    plan = build("nuts") if many else choose_sampler(build, s.sampler, "nuts")
    return ReleasePlan("lgcp-lipschitz", plan, Drawn(s.offset))


def _kim_lim(s: LGCPSynthesizer, domain: Domain, n: int | None, size: float) -> ReleasePlan:
    """Kim and Lim's own synthesizer, by their bound "3.8" or "3.9"."""
    bound = s.mechanism.rpartition("-")[2]
    relation = s.neighbouring()
    if not isinstance(relation, AlphaNeighbours) or relation.max_points_per_person > 1:
        msg = (
            f"relation: Kim & Lim's bounds are for alpha-neighbours with one point per person; give {mention('alpha')}."
        )
        raise InputError(msg)
    for given in ("covariance", "offset"):
        if getattr(s, given) is not None:
            msg = (
                f"{given}: Kim & Lim's synthesizer has none but {mention('sigma')} and {mention('length_scale')}; "
                "leave it out."
            )
            raise InputError(msg)
    mesh = field_mesh(s, domain, rules.BY_DOMAIN[type(domain)].kim_lim_mesh)
    require_small_network(mesh)
    scale = length_scale(s, domain, size)
    largest = kim_lim_ratio(mesh, relation, epsilon=s.epsilon, delta=s.delta, corollary=bound == "3.9")
    unit = RandomScale(1.0, mesh.smoothest_power).at(scale).sigma
    ratio = largest if s.sigma is None else s.sigma / unit
    if ratio > largest:
        msg = (
            f"sigma: {s.sigma:g} is more than Kim & Lim's bound {bound} admits for this budget; at most "
            f"{safe_digits(largest * unit)} at length scale {scale:g}."
        )
        raise PrivacyCheckError(msg)
    covariance = RandomScale(ratio, mesh.smoothest_power).at(scale)
    plan = KimLimStatistic(
        mesh, covariance, *relation_and_budget(s, n, size), sampler="nuts", engine=s.engine, bound=bound, ratio=ratio
    )
    if carries_no_information(covariance.sigma):
        msg = (
            f"mechanism: under Kim & Lim's bound {bound} the field has a standard deviation of about "
            f"{covariance.sigma:.2g}: the synthetic pattern carries no spatial information. Take mechanism "
            "'tents', 'field' or 'posterior-draw'."
        )
        warnings.warn(msg, InformationWarning, stacklevel=2)
    return ReleasePlan(f"lgcp-kim-lim-{bound}", plan, Drawn())


PLANNERS = {
    "posterior-draw": _posterior_draw,
    "lipschitz": _lipschitz,
    "kim-lim-3.8": _kim_lim,
    "kim-lim-3.9": _kim_lim,
}


# Loaded when an audit is wanted.
def _posterior_draw_audit(plan: PosteriorDrawStatistic) -> StatisticAudit:
    from dpppsynth.mechanisms.lgcp.audit import PosteriorDrawAudit

    return PosteriorDrawAudit(plan)


def _draw_audit(plan: DrawStatistic) -> StatisticAudit:
    from dpppsynth.mechanisms.lgcp.audit import DrawAudit

    return DrawAudit(plan)


POSTERIOR_DRAW = Mechanism(
    name="lgcp-posterior-draw",
    settings=LGCPSynthesizer,
    statistic=PosteriorDrawStatistic,
    estimators=(Drawn,),
    result=CoxRelease,
    audit=_posterior_draw_audit,
    words=words.POSTERIOR_DRAW,
    examples=examples.posterior_draw,
)

LIPSCHITZ = Mechanism(
    name="lgcp-lipschitz",
    settings=LGCPSynthesizer,
    statistic=LipschitzStatistic,
    estimators=(Drawn,),
    result=CoxRelease,
    audit=_draw_audit,
    words=words.LIPSCHITZ,
    examples=examples.lipschitz,
)

KIM_LIM_38 = Mechanism(
    name="lgcp-kim-lim-3.8",
    settings=LGCPSynthesizer,
    statistic=KimLimStatistic,
    estimators=(Drawn,),
    result=CoxRelease,
    audit=_draw_audit,
    words=words.KIM_LIM_38,
    examples=partial(examples.kim_lim, "3.8"),
)

KIM_LIM_39 = Mechanism(
    name="lgcp-kim-lim-3.9",
    settings=LGCPSynthesizer,
    statistic=KimLimStatistic,
    estimators=(Drawn,),
    result=CoxRelease,
    audit=_draw_audit,
    words=words.KIM_LIM_39,
    examples=partial(examples.kim_lim, "3.9"),
)
