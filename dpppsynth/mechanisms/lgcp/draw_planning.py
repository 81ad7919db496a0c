"""Plans of the mechanisms that release one posterior draw, and whether exact draws are feasible."""

import math
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np

from dpppsynth.contract import rules
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.synthesizer import safe_digits
from dpppsynth.core.errors import InformationWarning, InputError, PrivacyCheckError, QualityError
from dpppsynth.core.wording import mention
from dpppsynth.mechanisms.lgcp.bound.kim_lim import RandomScale, carries_no_information, kim_lim_ratio
from dpppsynth.mechanisms.lgcp.bound.posterior_draw import largest_intercept_sd, largest_sigma, point_sd
from dpppsynth.mechanisms.lgcp.draw_statistic import Drawn, DrawStatistic
from dpppsynth.mechanisms.lgcp.draw_statistics import KimLimStatistic, LipschitzStatistic, PosteriorDrawStatistic
from dpppsynth.mechanisms.lgcp.request import LGCPRequest, admissible_covariance, field_mesh, settled
from dpppsynth.models.covariances import Covariance, PoweredExponential
from dpppsynth.models.kim_lim_model import require_small_network
from dpppsynth.models.lgcp import tent_masses
from dpppsynth.models.nested_boxes import NestedBoxes
from dpppsynth.models.target_posterior import proximal_factor
from dpppsynth.privacy.lengths import on_map
from dpppsynth.privacy.profiles import gaussian_mu
from dpppsynth.privacy.relations import AddRemove, AlphaNeighbours
from dpppsynth.spatial.mesh import Floats, Mesh
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


# Share of the budget that is left to the intercept at least, where n is secret.
LITTLE = 1e-3


def posterior_draw(request: LGCPRequest) -> ReleasePlan:
    """A posterior draw under a Gaussian prior."""
    mesh = field_mesh(request)
    plan = choose_sampler(lambda sampler: _draw_with(request, mesh, sampler), request.settings.sampler, "proximal")
    return ReleasePlan("lgcp-posterior-draw", plan, Drawn(request.settings.offset))


def _draw_with(request: LGCPRequest, mesh: Mesh, sampler: str) -> PosteriorDrawStatistic:
    s, relation = request.settings, request.settings.neighbouring()
    factor = proximal_factor() if sampler == "proximal" else 1.0
    given = s.sigma is not None or s.covariance is not None

    def largest(shape: Covariance, mu: float) -> float:
        # Under add/remove a field that is given may take all but a little of what it shares with the intercept.
        tiny = LITTLE * mu if given and isinstance(relation, AddRemove) else None
        return largest_sigma(mesh, shape, relation, mu, factor=factor, intercept_sd=tiny)

    covariance = admissible_covariance(request, mesh, largest, cap=rules.DRAW_SIGMA)
    intercept_sd = None
    if isinstance(relation, AddRemove):
        mu = gaussian_mu(s.epsilon, s.delta)
        field_sd = point_sd(covariance.matrix(mesh))
        intercept_sd = largest_intercept_sd(relation, mu, field_sd, factor=factor)
    return PosteriorDrawStatistic(
        mesh,
        covariance,
        *settled(request),
        sampler=sampler,
        engine=s.engine,
        offset=s.offset,
        intercept_sd=intercept_sd,
    )


def lipschitz(request: LGCPRequest) -> ReleasePlan:
    """A posterior draw under a prior of bounded slope."""
    s, relation, domain = request.settings, request.settings.neighbouring(), request.domain
    mesh = field_mesh(request, request.rules.smooth_mesh)
    # Where no path's length is known an infinite reach is refused by the theorem, in words.
    moved = on_map(relation, domain).reach
    reach = min(moved, domain.diameter if math.isinf(moved) else domain.longest_path)
    slope = s.epsilon / (2 * reach * relation.max_points_per_person) * (1 - 1e-12)
    length_scale = request.length_scale

    def build(sampler: str) -> LipschitzStatistic:
        sigma = s.sigma or rules.lipschitz_sigma(slope, length_scale, request.size, sampler)
        covariance = s.covariance or PoweredExponential(sigma, length_scale, mesh.smoothest_power)
        return LipschitzStatistic(
            mesh, covariance, *settled(request), sampler=sampler, engine=s.engine, offset=s.offset, slope=slope
        )

    many = s.sampler == "auto" and request.size > rules.LIPSCHITZ_EXACT
    plan = build("nuts") if many else choose_sampler(build, s.sampler, "nuts")
    return ReleasePlan("lgcp-lipschitz", plan, Drawn(s.offset))


def kim_lim(request: LGCPRequest, bound: str) -> ReleasePlan:
    """Kim and Lim's own synthesizer, by their bound "3.8" or "3.9"."""
    s, relation = request.settings, request.settings.neighbouring()
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
    mesh = field_mesh(request, request.rules.kim_lim_mesh)
    require_small_network(mesh)
    length_scale = request.length_scale
    largest = kim_lim_ratio(mesh, relation, epsilon=s.epsilon, delta=s.delta, corollary=bound == "3.9")
    unit = RandomScale(1.0, mesh.smoothest_power).at(length_scale).sigma
    ratio = largest if s.sigma is None else s.sigma / unit
    if ratio > largest:
        msg = (
            f"sigma: {s.sigma:g} is more than Kim & Lim's bound {bound} admits for this budget; at most "
            f"{safe_digits(largest * unit)} at length scale {length_scale:g}."
        )
        raise PrivacyCheckError(msg)
    covariance = RandomScale(ratio, mesh.smoothest_power).at(length_scale)
    plan = KimLimStatistic(
        mesh, covariance, *settled(request), sampler="nuts", engine=s.engine, bound=bound, ratio=ratio
    )
    if carries_no_information(covariance.sigma):
        msg = (
            f"mechanism: under Kim & Lim's bound {bound} the field has a standard deviation of about "
            f"{covariance.sigma:.2g}: the synthetic pattern carries no spatial information. Take mechanism "
            "'tents', 'field' or 'posterior-draw'."
        )
        warnings.warn(msg, InformationWarning, stacklevel=2)
    return ReleasePlan(f"lgcp-kim-lim-{bound}", plan, Drawn())


# By the settings' `mechanism`.
PLANNERS: dict[str, Callable[[LGCPRequest], ReleasePlan]] = {
    "posterior-draw": posterior_draw,
    "lipschitz": lipschitz,
    "kim-lim-3.8": partial(kim_lim, bound="3.8"),
    "kim-lim-3.9": partial(kim_lim, bound="3.9"),
}
