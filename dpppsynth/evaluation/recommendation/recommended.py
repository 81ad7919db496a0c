"""`recommend`: one mechanism whose guarantee holds, from the study's evidence; its alternatives and the reasons."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.statistic import fineness
from dpppsynth.contract.synthesizer import AnySynthesizer, point_relation, public_size, require_true_lengths
from dpppsynth.core.arguments import positive
from dpppsynth.core.errors import DpppsynthError, InputError
from dpppsynth.core.html_card import html_text
from dpppsynth.evaluation.recommendation.evidence import (
    CANDIDATES,
    DELTA,
    DOCUMENT,
    GENTLE,
    JITTER,
    MARGIN,
    Answer,
    Candidate,
    Case,
    Evidence,
    PrivacyTerms,
    Ranked,
    Reading,
    rank,
    study,
)
from dpppsynth.privacy.bounds import require_small_delta, void_delta
from dpppsynth.privacy.relations import CappedRelation
from dpppsynth.spatial.domains import Domain, Window

# Least ratio of an expected distance to a uniform intensity's that is no use: the study is good to 10 to 20 %.
USELESS = 0.85


@dataclass(frozen=True)
class Alternative:
    """A mechanism that is not recommended.

    Attributes
    ----------
    mechanism : str
    expected : float or None
        Total variation distance that the study lets expect; None where it has measured none.
    why_not : str
    reading : {"about", "at least", "unknown"}
        Qualification of `expected`, as in `Recommendation`.
    """

    mechanism: str
    expected: float | None
    why_not: str
    reading: Reading = "about"

    def __str__(self) -> str:
        shown = "" if self.expected is None else f" (expected {figure(self.expected, self.reading)})"
        return f"{self.mechanism}{shown}: {self.why_not}"


@dataclass(frozen=True, eq=False, repr=False)
class Recommendation:
    """A mechanism for a budget, from public parameters alone.

    Attributes
    ----------
    synthesizer : Synthesizer
        Ready to use: `synthesizer.release(pattern)`; where the number of points is secret, with `**sizes`.
    plan : ReleasePlan
        ReleasePlan by the synthesizer's rules; its guarantee was checked against the budget.
    sizes : dict
        Public size, as `check` and `plan` of the synthesizer take it: `{"n": ...}`, or `{"expected_n": ...}`.
    settings : dict
        Length scales, mesh, spacing, bandwidth, sigma: see `settings`.
    expected : float
        Total variation distance between the true normalised intensity and the released one, between 0 and 1, that the
        study lets expect, to about 10 to 20 %. With a posterior the study took its mean, and released is its middle,
        which came a little closer; single posterior draws, `sample(source="draws")`, lie farther off.
    reading : {"about", "at least", "unknown"}
        Qualification of `expected`: an estimate within the study; a lower bound beyond its bad side; unknown, the
        nearest row's, where the release lies beyond good and bad sides.
    uniform : float
        The same distance of a uniform intensity, which needs no data, on the study's intensities.
    gentle : float
        Expected distance of tents with a posterior on intensities that vary little; NaN where it was not measured.
    gentle_uniform : float
        The same distance of a uniform intensity on those.
    gentle_reading : {"about", "at least", "unknown"}
        Qualification of `gentle`.
    alternatives : tuple of Alternative
        The other mechanisms, and why they are not recommended.
    reasons : tuple of str
        Why this one, and what the figure rests on.
    """

    _: KW_ONLY
    synthesizer: AnySynthesizer
    plan: ReleasePlan
    sizes: dict[str, Any]
    settings: dict[str, Any]
    expected: float
    reading: Reading
    uniform: float
    gentle: float
    gentle_uniform: float
    gentle_reading: Reading
    alternatives: tuple[Alternative, ...]
    reasons: tuple[str, ...]
    evidence: str = DOCUMENT

    @property
    def mechanism(self) -> str:
        """Name of the mechanism on certificates."""
        return self.plan.mechanism

    @property
    def useful(self) -> bool | None:
        """Whether a smaller distance than a uniform intensity's is expected, also where the intensity varies little.

        None where it is not known.
        """
        return False if self._steep_alone else is_useful(self.expected, self.reading, self.uniform)

    @property
    def _steep_alone(self) -> bool:
        """Whether a uniform intensity is as close wherever the intensity varies little."""
        return is_useful(self.gentle, self.gentle_reading, self.gentle_uniform) is False

    @property
    def headline(self) -> str:
        """The mechanism and its rating, in a line."""
        if is_useful(self.expected, self.reading, self.uniform) is not False and self._steep_alone:
            return f"No use, unless it is known that the intensity varies strongly: {self.mechanism}."
        heads = {True: "Recommended", False: "No use", None: "Outside the study, perhaps the best"}
        return f"{heads[self.useful]}: {self.mechanism}."

    def __repr__(self) -> str:
        expected = figure(self.expected, self.reading)
        return f"Recommendation({self.mechanism}, expected {expected}, uniform {figure(self.uniform)})"

    def _repr_html_(self) -> str:
        return html_text("Recommendation", self)

    def __str__(self) -> str:
        unit = self.plan.domain.unit
        lines = [self.headline, f"Guarantee: {self.plan.guarantee}", "Because:"]
        lines += [f"  - {reason}" for reason in self.reasons]
        lines += [f"Settled by public rules (lengths in {unit}):"]
        lines += [f"  {name}: {in_words(value)}" for name, value in self.settings.items()]
        lines += ["Not recommended:", *(f"  {each}" for each in self.alternatives)]
        return "\n".join([*lines, f"Evidence: {self.evidence}"])


def is_useful(expected: float, reading: Reading, uniform: float) -> bool | None:
    """Whether a distance is clearly below that of a uniform intensity; None where the study cannot tell."""
    if reading == "unknown":
        return None
    if expected >= USELESS * uniform:
        return False
    return True if reading == "about" else None


def figure(distance: float, reading: Reading = "about") -> str:
    """A distance in the digits that the study supports, with its qualification.

    Examples
    --------
    >>> figure(0.1234), figure(0.1234, "at least"), figure(0.1234, "unknown")
    ('0.12', 'at least 0.12', 'unknown; nearest row 0.12')
    """
    before = {"about": "", "at least": "at least ", "unknown": "unknown; nearest row "}
    return f"{before[reading]}{distance:.2f}"


def in_words(value: Any) -> str:
    """A setting with four digits."""
    if isinstance(value, tuple):
        return ", ".join(map(in_words, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# Budget times points from which on sums over pairs are larger than their noise.
CLUSTERS_FROM = 100
# Mechanisms whose field is dense on windows with few points.
NUTS_ON_WINDOWS = ("lgcp-tents", "lgcp-field")


def reasons(
    chosen: Ranked, others: Sequence[Ranked], evidence: Evidence, domain: Domain, case: Case
) -> tuple[str, ...]:
    """Reasons for the chosen mechanism, and the basis of the figure."""
    return (
        _verdict(chosen.answer, evidence.uniform[case.kind]),
        *_gentle(evidence, case),
        *_compared(chosen, others),
        *_jitter(evidence, case),
        *(f"Outside the study: {each}; the nearest row was used." for each in chosen.answer.outside),
        *_approximations(chosen.candidate, domain, case),
        *_clusters(chosen.candidate, case),
        "The study has one repeat on four intensities of each kind: inside it, figures are good to about 10 to 20 %.",
    )


def passed_over(chosen: Ranked, others: Sequence[Ranked]) -> Iterator[Alternative]:
    """Admissible mechanisms that the study finds no better."""
    for each in others:
        ratio = each.distance / chosen.distance
        if ratio == 1:
            why = f"level with it{_in_nearest_row(chosen, each)}, but {_lacks(each.candidate, chosen.candidate)}"
        elif _in_nearest_row(chosen, each):
            why = f"{ratio:.2g} times as far from the truth{_in_nearest_row(chosen, each)}"
        else:
            why = f"expected to be {ratio:.2g} times as far from the truth"
        yield Alternative(each.candidate.mechanism, each.distance, why + _own(each.answer, chosen), each.answer.reading)


def left_out(evidence: Evidence, case: Case) -> Iterator[Alternative]:
    """Excluded mechanisms, with the expected result of those excluded for the lack of a delta alone."""
    for candidate in CANDIDATES:
        needs_delta = candidate.spends_delta and case.budget.delta == 0
        budget = replace(case.budget, delta=DELTA) if needs_delta else case.budget
        answer = case.ask(evidence, candidate, budget)
        known = math.isfinite(answer.distance)
        if not needs_delta and known:
            continue
        try:
            candidate.build(budget)
        except DpppsynthError as error:
            yield Alternative(candidate.mechanism, None, f"refused: {error}")
        else:
            why = f"needs a delta; the figure is for delta = {DELTA:g}" if needs_delta and known else "not in the study"
            yield Alternative(candidate.mechanism, answer.distance if known else None, why, answer.reading)


def _verdict(answer: Answer, uniform: float) -> str:
    useful, shown = is_useful(answer.distance, answer.reading, uniform), figure(answer.distance, answer.reading)
    figures = (
        f"total variation distance of the released intensity {shown}; a uniform one has {figure(uniform)} on the "
        "study's intensities"
    )
    if useful is None:
        return f"The study says nothing here; rehearse it before you rely on it: {figures}."
    if not useful:
        return (
            f"No mechanism beats a uniform pattern here: {figures}, without any data. Spend more, protect a smaller "
            "radius, or publish no points."
        )
    return f"It is expected to keep the geography: {figures}."


def _gentle(evidence: Evidence, case: Case) -> Iterator[str]:
    """Sentence on intensities that vary little, where the study has measured them."""
    answer, uniform = case.ask_gentle(evidence), evidence.uniform.get(GENTLE + case.kind)
    if uniform is None or not math.isfinite(answer.distance):
        return
    shown = figure(answer.distance, answer.reading)
    advice = ": nothing is gained" if is_useful(answer.distance, answer.reading, uniform) is False else ""
    yield (
        f"Where the intensity varies so little that a uniform one is {figure(uniform)} away, tents with a posterior "
        f"come to {shown}{advice}. On a flat pattern nothing beats a uniform one."
    )


def _compared(chosen: Ranked, others: Sequence[Ranked]) -> Iterator[str]:
    level = [each.candidate.mechanism for each in others if each.distance == chosen.distance]
    if level:
        near = _in_nearest_row(chosen, *others[: len(level)])
        yield f"The study cannot tell {' and '.join(level)} from it{near}: they differ by less than {MARGIN - 1:.0%}."
    elif others:
        near = _in_nearest_row(chosen, *others)
        yield f"No other mechanism that the budget admits {'came' if near else 'is expected to come'} closer{near}."


def _jitter(evidence: Evidence, case: Case) -> Iterator[str]:
    """Sentence on what points moved by hand would give, where the study has measured it."""
    terms = case.budget
    known = evidence.expect(JITTER, case.kind, case.share, case.n, terms.epsilon / terms.relation.max_points_per_person)
    if math.isfinite(known.distance):
        yield (
            "Points moved by planar Laplace noise of the same epsilon and alpha, and smoothed by the kernel that is "
            f"best in hindsight, come to {figure(known.distance, known.reading)}."
        )


def _in_nearest_row(*compared: Ranked) -> str:
    """Basis of a comparison where one of the distances is not to be read as it is."""
    return "" if all(each.answer.reading == "about" for each in compared) else " in the study's nearest row"


def _own(answer: Answer, chosen: Ranked) -> str:
    """Properties that put an alternative outside the study, but not the recommended mechanism."""
    return "".join(f"; outside the study: {each}" for each in answer.outside if each not in chosen.answer.outside)


def _lacks(other: Candidate, chosen: Candidate) -> str:
    """Reason for the choice between two mechanisms of equal distance."""
    if other.spends_delta and not chosen.spends_delta:
        return "it spends a delta"
    if chosen.has_posterior and not other.has_posterior:
        return "it has no posterior behind it"
    return f"{chosen.what} are preferred"


def _approximations(candidate: Candidate, domain: Domain, case: Case) -> Iterator[str]:
    if candidate.has_posterior:
        yield (
            "The study's figures are those of the released intensity, the posterior's middle. Single posterior draws "
            "lie 1.4 to 1.7 times as far off, because they carry the release's uncertainty; sample() draws patterns "
            "from them with source='draws' (on the command line --source draws)."
        )
    if candidate.mechanism in NUTS_ON_WINDOWS and isinstance(domain, Window):
        yield (
            "The study infers by Laplace approximation (inference='laplace'); on windows NUTS is the default below "
            "1000 points. In two rows NUTS came as close (docs/results/utility_nuts.md)."
        )
    if isinstance(domain, Window) and not domain.is_rectangle:
        yield "The study's windows are squares; this one is compared by the square root of its area."
    k = case.budget.relation.max_points_per_person
    if k > 1:
        yield f"The study has one point per person; a cap of {k} is read as a budget {k} times as small."


def _clusters(candidate: Candidate, case: Case) -> Iterator[str]:
    """Advice on a share of the budget for how points huddle, which the study did not measure."""
    if candidate.mechanism != "lgcp-tents":
        return
    if case.n * candidate.epsilon(case.budget) < CLUSTERS_FROM:
        yield "Patterns repeat the intensity alone; for a share for clusters (clusters=0.3) the budget is too small."
        return
    yield (
        "Patterns repeat the intensity alone. Who studies near pairs (K-functions, near-repeats, outbreaks) adds "
        "clusters=0.3 (on the command line --clusters 0.3), which costs the intensity that share of epsilon "
        "(docs/results/clusters.md)."
    )


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
    ranked, gentle = rank(evidence, case), case.ask_gentle(evidence)
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
            gentle=gentle.distance,
            gentle_reading=gentle.reading,
            gentle_uniform=evidence.uniform.get(GENTLE + case.kind, math.nan),
            alternatives=(*refused, *passed_over(each, ranked[k + 1 :]), *left_out(evidence, case)),
            reasons=reasons(each, ranked[k + 1 :], evidence, domain, case),
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
    >>> plan = LGCPSynthesizer(1.0, alpha=25.0, mechanism="tents").plan(Window.rectangle(0, 0, 670, 670), n=392)
    >>> {name: value for name, value in settings(plan).items() if name in ("vertices", "spacing", "field_sigma")}
    {'vertices': 49, 'spacing': (111.66666666666667, 111.66666666666667), 'field_sigma': 2.0}
    """
    statistic, estimator = plan.statistic, plan.estimator
    found: dict[str, Any] = {}
    for name in ("bandwidth", "sampler"):
        if hasattr(statistic, name):
            found[name] = getattr(statistic, name)
    if hasattr(statistic, "mesh"):
        mesh = statistic.mesh
        found |= {"mesh": f"{mesh.kind}s", "vertices": len(mesh.vertices), "spacing": fineness(mesh)}
    if hasattr(statistic, "covariance"):
        found |= {"sigma": statistic.covariance.sigma, "length_scale": statistic.covariance.length_scale}
    if hasattr(statistic, "noise_scale"):
        found["noise"] = statistic.noise_scale
    return found if estimator is None else found | estimator.public_numbers()
