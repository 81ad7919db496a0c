"""Plans of the mechanisms that release one posterior draw."""

import math
import warnings
from collections.abc import Callable
from functools import partial

from dpppsynth.contract import rules
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.synthesizer import safe_digits
from dpppsynth.core.errors import InformationWarning, InputError, PrivacyCheckError
from dpppsynth.core.wording import mention
from dpppsynth.mechanisms.lgcp.bound.kim_lim import RandomScale, carries_no_information, kim_lim_ratio
from dpppsynth.mechanisms.lgcp.bound.posterior_draw import largest_intercept_sd, largest_sigma, point_sd
from dpppsynth.mechanisms.lgcp.posterior_sampling.feasibility import choose_sampler
from dpppsynth.mechanisms.lgcp.posterior_sampling.kim_lim_statistic import KimLimStatistic
from dpppsynth.mechanisms.lgcp.posterior_sampling.lipschitz_statistic import LipschitzStatistic
from dpppsynth.mechanisms.lgcp.posterior_sampling.posterior_draw_statistic import PosteriorDrawStatistic
from dpppsynth.mechanisms.lgcp.request import LGCPRequest, admissible_covariance, field_mesh, settled
from dpppsynth.models.covariances import Covariance, PoweredExponential
from dpppsynth.models.kim_lim_model import require_small_network
from dpppsynth.models.proximal import proximal_factor
from dpppsynth.privacy.lengths import on_map
from dpppsynth.privacy.profiles import gaussian_mu
from dpppsynth.privacy.relations import AddRemove, AlphaNeighbours
from dpppsynth.release.drawn import Drawn
from dpppsynth.spatial.mesh import Mesh

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
