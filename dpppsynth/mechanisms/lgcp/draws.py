"""Posterior draw mechanisms: feasibility of exact draws, plans, and records with words and examples."""

import math
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np

from dpppsynth.contract import rules
from dpppsynth.contract.examples import RELATIONS, Example, Refusal, ring, square, streets
from dpppsynth.contract.registry import HOME, Mechanism, later
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.synthesizer import safe_digits
from dpppsynth.contract.words import MechanismWords
from dpppsynth.core.errors import InformationWarning, InputError, PrivacyCheckError, QualityError
from dpppsynth.core.wording import instead, mention
from dpppsynth.mechanisms.lgcp.bound.increments import point_sd
from dpppsynth.mechanisms.lgcp.bound.kim_lim import RandomScale, carries_no_information, kim_lim_ratio
from dpppsynth.mechanisms.lgcp.bound.posterior_draw import largest_intercept_sd, largest_sigma
from dpppsynth.mechanisms.lgcp.draw_statistic import (
    Drawn,
    DrawStatistic,
    KimLimStatistic,
    LipschitzStatistic,
    PosteriorDrawStatistic,
)
from dpppsynth.mechanisms.lgcp.mechanism import example, quarters
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
from dpppsynth.privacy.relations import AddRemove, AlphaNeighbours, ReplaceOne
from dpppsynth.release.cox import CoxRelease
from dpppsynth.spatial.domains import Domain
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
            f"{covariance.sigma:.2g}: the synthetic pattern carries no spatial information. Take "
            f"{instead('tents', 'field', 'posterior-draw')}."
        )
        warnings.warn(msg, InformationWarning, stacklevel=2)
    return ReleasePlan(f"lgcp-kim-lim-{bound}", plan, Drawn())


PLANNERS = {
    "posterior-draw": _posterior_draw,
    "lipschitz": _lipschitz,
    "kim-lim-3.8": _kim_lim,
    "kim-lim-3.9": _kim_lim,
}


ONE_MOVE = r"^relation: Kim & Lim's bounds are for alpha-neighbours with one point per person"
SLOPE = r"^relation: 'add-remove' has no guarantee from the slope"
CONVEX = r"^relation: 'replace-one' needs a convex window here"
BUDGET: dict[str, Any] = {"epsilon": 200.0, "delta": 5e-4}


def posterior_draw() -> Iterator[Example]:
    """Examples of all samplers."""
    draw = partial(example, "posterior-draw", delta=1e-6)
    for relation in RELATIONS:
        yield draw(relation, sampler="exact")
    yield draw(AddRemove(), sampler="proximal")
    yield draw(ReplaceOne(), sampler="auto", offset=quarters())
    yield draw(RELATIONS[0], ring())
    for relation in (RELATIONS[0], RELATIONS[3], RELATIONS[5]):
        yield draw(relation, streets(), sampler="exact")
    yield draw(RELATIONS[0], sampler="exact", levels=True)
    yield draw(RELATIONS[0], sampler="nuts", slow=True)


def lipschitz() -> Iterator[Example | Refusal]:
    """Examples of fields of bounded slope."""
    draw = partial(example, "lipschitz", sampler="exact")
    for relation in RELATIONS[:4]:
        yield draw(relation)
    yield draw(RELATIONS[0], ring())
    yield draw(RELATIONS[0], streets())
    for relation in RELATIONS[4:]:
        yield refusal("lipschitz", relation, square(), SLOPE)
    yield refusal("lipschitz", ReplaceOne(), ring(), CONVEX)


def kim_lim(bound: str) -> Iterator[Example | Refusal]:
    """Examples with one point per person; Corollary 3.9 on windows alone."""
    name = f"kim-lim-{bound}"
    yield example(name, RELATIONS[0], **BUDGET)
    if bound == "3.8":
        yield example(name, AlphaNeighbours(25.0), streets(), **BUDGET)
    for relation in RELATIONS[1:]:
        yield refusal(name, relation, square(), ONE_MOVE, delta=1e-6)


def refusal(mechanism: str, relation: Any, domain: Domain, rule: str, **options: Any) -> Refusal:
    """A mechanism under an unsupported relation."""
    return Refusal(
        relation, partial(LGCPSynthesizer, 1.0, relation=relation, mechanism=mechanism, **options), domain, rule
    )


def record(
    name: str,
    statistic: type[P],
    examples: Callable[[], Iterator[Example | Refusal]],
    description: str,
    audit: str = "DrawAudit",
) -> Mechanism[P, Any]:
    """Record of a mechanism that releases one drawn intensity."""
    return Mechanism(
        name=name,
        settings=LGCPSynthesizer,
        statistic=statistic,
        estimators=(Drawn,),
        result=CoxRelease,
        audit=later(f"{HOME}.lgcp.audit:{audit}"),
        words=MechanismWords(
            description=f"One intensity {description} The synthetic points were drawn from that intensity.",
            intensity="the released draw",
            title="Private intensity, one posterior draw",
        ),
        examples=examples,
    )


FROM_POINTS = "was drawn at random from what a log-Gaussian Cox model makes of the points"
POSTERIOR_DRAW = record(
    "lgcp-posterior-draw",
    PosteriorDrawStatistic,
    posterior_draw,
    f"{FROM_POINTS}. No noise was added: the randomness of the draw protects.",
    "PosteriorDrawAudit",
)
LIPSCHITZ = record(
    "lgcp-lipschitz",
    LipschitzStatistic,
    lipschitz,
    f"that changes only gently from place to place {FROM_POINTS}. The randomness of the draw and the gentle slope "
    "protect.",
)
KIM_LIM_38, KIM_LIM_39 = (
    record(
        f"lgcp-kim-lim-{bound}",
        KimLimStatistic,
        partial(kim_lim, bound),
        f"{FROM_POINTS}, as published by Kim and Lim (their {theorem} {bound}).",
    )
    for bound, theorem in (("3.8", "Theorem"), ("3.9", "Corollary"))
)
