"""`recommend`: the choice of one mechanism whose guarantee holds, from the study's evidence."""

from typing import Any

from dpppsynth.contract.mesh_sizes import fineness
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.synthesizer import AnySynthesizer, point_relation, public_size, require_true_lengths
from dpppsynth.core.arguments import positive
from dpppsynth.core.errors import DpppsynthError, InputError
from dpppsynth.evaluation.recommendation.evidence import CANDIDATES, Case, PrivacyTerms, Ranked, rank, study
from dpppsynth.evaluation.recommendation.recommended import (
    Alternative,
    Recommendation,
    figure,
    is_useful,
    left_out,
    passed_over,
    reasons,
)
from dpppsynth.privacy.bounds import require_small_delta, void_delta
from dpppsynth.privacy.relations import CappedRelation
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mesh import Mesh


def recommend(
    domain: Domain,
    n: float,
    epsilon: float,
    delta: float = 0.0,
    alpha: float | None = None,
    *,
    relation: CappedRelation | None = None,
) -> Recommendation:
    """Recommend a mechanism for a budget, from public parameters alone; no data are touched.

    Reads the package's simulation study: the mechanism whose released intensity has the smallest expected total
    variation distance to the true one, among those that the budget admits (docs/results/recommend.md); with a posterior
    that is the posterior mean's. Its plan is made and its guarantee checked before it is recommended. Where a release
    lies outside the study on its bad side (fewer points, a smaller budget, a long or thin window), figures are lower
    bounds at best and `useful` is None: rehearse it.

    Parameters
    ----------
    domain : Window or LinearNetwork
    n : int
        Public number of points; under `AddRemove`, where it is secret, a public guess of it.
    epsilon : float
        Budget.
    delta : float
        Second half of the budget; 0 leaves out the mechanisms that spend it.
    alpha : float, optional
        Privacy radius in the domain's unit; None protects a move anywhere (replace-one).
    relation : CappedRelation, optional
        Neighbouring relation, instead of alpha, such as `AddRemove()`.

    Raises
    ------
    InputError
        When an argument is not what it should be, or no mechanism can make a release.

    Examples
    --------
    >>> from dpppsynth.spatial.domains import Window
    >>> soho = Window.rectangle(529100, 180680, 529770, 181350, "EPSG:27700")
    >>> advice = recommend(soho, n=392, epsilon=1.0, alpha=25.0)
    >>> advice.mechanism, advice.useful
    ('lgcp-tents', True)
    >>> advice.synthesizer.check(soho, n=392).theorem
    'tents'
    """
    require_true_lengths(domain)
    positive("epsilon", epsilon, remedy="1 is a usual start")
    protected = point_relation(relation, alpha)
    public = protected.n_is_public
    size = public_size(protected, *((n, None) if public else (None, n)))
    sizes = {"n": int(n)} if public else {"expected_n": size}
    _require_delta(delta, **sizes)
    budget, evidence = PrivacyTerms(float(epsilon), float(delta), protected), study()
    case = Case.of(domain, n, budget)
    ranked = rank(evidence, case)
    refused: list[Alternative] = []
    for k, each in enumerate(ranked):
        settled = _settle(each, budget, domain, sizes)
        if isinstance(settled, Alternative):
            refused.append(settled)
            continue
        synthesizer, plan = settled
        return Recommendation(
            synthesizer=synthesizer,
            plan=plan,
            sizes=sizes,
            settings=settings(plan),
            expected=each.distance,
            reading=each.answer.reading,
            uniform=evidence.uniform[case.kind],
            alternatives=(*refused, *passed_over(each, ranked[k + 1 :]), *left_out(evidence, case)),
            reasons=reasons(each, ranked[k + 1 :], evidence.uniform[case.kind], domain, case),
        )
    msg = f"epsilon: no mechanism can make a release here: {'; '.join(map(str, refused))}"
    raise InputError(msg)


def _settle(
    each: Ranked, budget: PrivacyTerms, domain: Domain, sizes: dict[str, Any]
) -> tuple[AnySynthesizer, ReleasePlan] | Alternative:
    """Synthesizer and plan, its guarantee checked, or why there is none."""
    try:
        synthesizer = each.candidate.build(budget)
        plan = synthesizer.plan(domain, **sizes)
        plan.guarantee.require(budget.epsilon, budget.delta)
    except DpppsynthError as error:
        return Alternative(each.candidate.mechanism, each.distance, f"refused: {error}", each.answer.reading)
    return synthesizer, plan


def _require_delta(delta: Any, n: int | None = None, expected_n: float | None = None) -> None:
    """Refuse a delta that promises nothing; unlike for mechanisms there is no override."""
    require_small_delta(delta, n, expected_n=expected_n, allow_large_delta=True)
    if delta >= void_delta(n, expected_n):
        msg = (
            f"delta: must be below 1/n, because publishing one random record whole satisfies delta = 1/n, got "
            f"{delta!r}; take a delta far below 1/n, or 0."
        )
        raise InputError(msg)


def no_better_than_uniform(plan: Any) -> str | None:
    """A sentence where the simulation study says so of a plan's mechanism, number of points and budget, else None.

    Examples
    --------
    >>> from dpppsynth import LGCPSynthesizer, ReplaceOne, Window
    >>> square = Window.rectangle(0, 0, 1000, 1000)
    >>> made = [LGCPSynthesizer(epsilon=epsilon, relation=ReplaceOne()) for epsilon in (0.1, 2.0)]
    >>> [no_better_than_uniform(each.plan(square, n=50)) is None for each in made]
    [False, True]
    """
    guarantee, domain = plan.guarantee, plan.domain
    n = plan.statistic.expected_n if plan.n is None else plan.n
    candidate = next((each for each in CANDIDATES if each.mechanism == plan.mechanism), None)
    if candidate is None or n is None or not isinstance(guarantee.relation, CappedRelation):
        return None
    terms = PrivacyTerms(guarantee.epsilon(), guarantee.profile.at, guarantee.relation)
    if candidate.gaussian and not terms.delta:
        return None
    evidence = study()
    case = Case.of(domain, n, terms)
    answer, uniform = case.ask(evidence, candidate), evidence.uniform[case.kind]
    if is_useful(answer.distance, answer.reading, uniform) is not False:
        return None
    return (
        f"epsilon: with this budget and number of points nothing better than a uniform pattern, which needs no data, "
        f"is to be expected of {plan.mechanism}: {figure(answer.distance, answer.reading)} from the truth, against "
        f"{figure(uniform)}, in the simulation study that `dpppsynth recommend` reads."
    )


def settings(plan: ReleasePlan) -> dict[str, Any]:
    """Settings of one release by the default rules.

    Returns
    -------
    dict
        Those of these that the mechanism has: "bandwidth"; "mesh", "vertices" and "spacing" of what is measured or
        drawn; "sigma" and "length_scale" of the field that the budget is spent on; "noise", the scale of Laplace noise
        in points, or the standard deviation of Gaussian noise on smooth functionals; "sampler"; "field_vertices",
        "field_sigma", "length_scales" and "inference" of the posterior behind it. Lengths are in the domain's unit.

    Examples
    --------
    >>> from dpppsynth.spatial.domains import Window
    >>> from dpppsynth.synthesizers import LGCPSynthesizer
    >>> plan = LGCPSynthesizer(1.0, alpha=25.0).plan(Window.rectangle(0, 0, 670, 670), n=392)
    >>> {name: value for name, value in settings(plan).items() if name in ("vertices", "spacing", "field_sigma")}
    {'vertices': 49, 'spacing': (111.66666666666667, 111.66666666666667), 'field_sigma': 2.0}
    """
    statistic, estimator = plan.statistic, plan.estimator
    found: dict[str, Any] = {}
    for name in ("bandwidth", "sampler"):
        if hasattr(statistic, name):
            found[name] = getattr(statistic, name)
    if hasattr(statistic, "mesh"):
        found |= _size(statistic.mesh)
    if hasattr(statistic, "covariance"):
        found |= {"sigma": statistic.covariance.sigma, "length_scale": statistic.covariance.length_scale}
    if hasattr(statistic, "noise_scale"):
        found["noise"] = statistic.noise_scale
    return found if estimator is None else found | estimator.public_numbers()


def _size(mesh: Mesh) -> dict[str, Any]:
    return {"mesh": f"{mesh.kind}s", "vertices": len(mesh.vertices), "spacing": fineness(mesh)}
