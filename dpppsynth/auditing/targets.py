"""Construction of audit targets from synthesizers, plans and saved releases."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpppsynth.auditing.laws import laws_of
from dpppsynth.auditing.pairs import neighbours, what_changes
from dpppsynth.auditing.repeats import draws_of
from dpppsynth.auditing.stated import as_stated, excess
from dpppsynth.auditing.statistics import Pair, built_in, named
from dpppsynth.auditing.strata import strata_target
from dpppsynth.auditing.target import Statistic, Target
from dpppsynth.auditing.trials import Task, run_block
from dpppsynth.auditing.weaker import alike, weakened
from dpppsynth.auditing.whole import Measure, Whole
from dpppsynth.contract.additive_noise import MeasurementPlan
from dpppsynth.contract.plan import Plan
from dpppsynth.contract.stratified_plan import STRATA, StratifiedPlan
from dpppsynth.contract.synthesizer import Synthesizer
from dpppsynth.core.errors import DpppsynthError, InputError
from dpppsynth.mechanisms.heatmap.plan import HeatmapPlan
from dpppsynth.mechanisms.kernel.plan import PatternPlan
from dpppsynth.mechanisms.lgcp.posterior_sampling import DrawPlan
from dpppsynth.mechanisms.local.audit import clients_of, local_target
from dpppsynth.mechanisms.local.audit_reports import ReportCounts
from dpppsynth.mechanisms.local.audit_trajectories import trace_target
from dpppsynth.mechanisms.local.trajectory_plan import TracePlan
from dpppsynth.mechanisms.planar_laplace.plan import MovedPlan
from dpppsynth.models.recipes import domain_of_release
from dpppsynth.privacy.guarantee import Guarantee, guarantee_from_dict
from dpppsynth.privacy.relations import Relation
from dpppsynth.release import certificate
from dpppsynth.release.folder import plan_of
from dpppsynth.spatial.domains import Domain

# Errors of building a mechanism, and a pair for it, from invalid parameters.
UNUSABLE = (OSError, LookupError, AttributeError, TypeError, ValueError, ArithmeticError, MemoryError, RecursionError)


def target_of(
    thing: Any,
    domain: Domain | None = None,
    *,
    n: int | None = None,
    expected_n: float | None = None,
    pair: Pair | None = None,
    statistics: Iterable[Statistic | Callable[[Any], Any]] = (),
    **options: Any,
) -> Target:
    """Releases, pair, claim and statistics of one of the package's own mechanisms.

    A run is a whole release by `Plan.release`, without the inference that follows on a private statistic.

    Parameters
    ----------
    thing : Synthesizer, Plan, StratifiedPlan, MeasurementPlan, MovedPlan, DrawPlan, PatternPlan, HeatmapPlan or
        Randomizer
        Of a `StratifiedPlan` all levels are released, and audited, at once. Of a local
        mechanism, or its plan, the report of one client; of several rounds, that with the largest epsilon. Of
        LDPTrace all reports of one client.
    domain : Window or LinearNetwork
        For a synthesizer, with `n` or `expected_n` as in its `plan`, and its `options`. Not needed for a local
        mechanism.
    pair : tuple of PointPattern, optional
        Two patterns of your own, neighbouring under the relation; unless given, `hard_pair`. Of a `StratifiedPlan`
        those of the level with the largest epsilon, unmarked. Of a local mechanism two values of one client; unless
        given, `hard_values`.
    statistics : sequence of Statistic or callable
        Looked at beside the built-in ones.

    Raises
    ------
    InputError
        When nothing is known about such a mechanism, or the pair is not neighbouring.

    Examples
    --------
    >>> from dpppsynth import LaplaceSynthesizer, Window
    >>> target = target_of(LaplaceSynthesizer(1.0, alpha=25.0), Window.rectangle(0, 0, 500, 500), n=40)
    >>> round(target.claimed.epsilon(0.0), 9), len(target.pair[0])
    (1.0, 40)
    """
    relation = None
    if isinstance(thing, Synthesizer) and not (domain is None and clients_of(thing)):
        if domain is None:
            msg = "domain: needed to audit a synthesizer, with n= (or expected_n= under add/remove)."
            raise InputError(msg)
        # The requested relation, not the plan's own.
        relation = thing.neighbouring()
        thing = thing.plan(domain, n=n, expected_n=expected_n, **options)
    elif any(each is not None for each in (domain, n, expected_n)) or options:
        msg = "domain, n: settled by the plan already; leave them out."
        raise InputError(msg)
    if isinstance(thing, StratifiedPlan):
        return strata_target(thing, thing.guarantee, pair, named(statistics))
    clients = clients_of(thing)
    if clients is not None:
        made = local_target(clients, guarantee=getattr(thing, "guarantee", None), pair=pair, statistics=statistics)
        return replace(made, counted=ReportCounts.of(thing))
    held = getattr(thing, "statistic", thing)
    if isinstance(held, TracePlan):
        return trace_target(held, guarantee=getattr(thing, "guarantee", None), pair=pair, statistics=statistics)
    if isinstance(thing, Plan):
        return _target(Whole(thing), thing.mechanism, thing.guarantee, pair, statistics, relation)
    if isinstance(thing, MeasurementPlan | MovedPlan | DrawPlan | PatternPlan | HeatmapPlan):
        claim: Guarantee = thing.guarantee
        return _target(Measure(thing), type(thing).__name__, claim, pair, statistics)
    msg = (
        f"target: needs a Synthesizer, a plan, the path of a saved release, or a callable with pair=, claimed= and "
        f"statistics=, got {type(thing).__name__}."
    )
    raise InputError(msg)


def target_of_release(
    path: str | Path, statistics: Iterable[Statistic | Callable[[Any], Any]] = (), *, limit: bool = True
) -> Target:
    """The mechanism of a saved release, rebuilt from its certificate's public parameters, with what that claims.

    Parameters
    ----------
    path : str or Path
        `certificate.json`, or the folder that holds it and the domain file.
    statistics : sequence of Statistic or callable
        Looked at beside the built-in ones.
    limit : bool
        As in `verify`.

    Raises
    ------
    InputError, PrivacyCheckError
        When there is no readable certificate, or no mechanism follows from it.
    """
    with certificate.published(path, limit=limit) as found:
        return target_of_published(found, named(statistics))


def target_of_published(found: certificate.Published, more: tuple[Statistic, ...]) -> Target:
    """Audit target of an open folder of a release."""
    cert = found.certificate
    claim = guarantee_from_dict(cert["guarantee"])
    try:
        domain = domain_of_release(found.document(cert["domain"]["file"]), cert["domain"].get("scale_factor"))
        plan = _rebuilt(found, claim.relation, domain)
        if isinstance(plan, StratifiedPlan):
            return strata_target(plan, claim, None, more)
        clients = clients_of(plan)
        if clients is not None:
            made = local_target(clients, guarantee=claim, statistics=more)
            return replace(made, counted=ReportCounts.of(plan))
        if isinstance(plan.statistic, TracePlan):
            return trace_target(plan.statistic, guarantee=claim, statistics=more)
        return _target(Whole(plan), plan.mechanism, claim, None, more)
    except DpppsynthError:
        raise
    except UNUSABLE:
        msg = f"certificate: {found.path} does not hold the public parameters of a mechanism, so nothing can be run."
        raise InputError(msg) from None


def seconds_per_trial(target: Target) -> float:
    """Time of a run on each input with its statistics; a first run, which compiles, is not timed.

    Parameters
    ----------
    target : Target
    """
    run_block(target, Task(0, 1))
    start = time.perf_counter()
    for side in (0, 1):
        run_block(target, Task(side, 1))
    return time.perf_counter() - start


def _rebuilt(found: certificate.Published, relation: Relation, domain: Domain) -> Plan | StratifiedPlan:
    """The plan of a release, from its certificate."""
    mechanism, parameters = found.certificate["mechanism"], found.certificate["parameters"]

    def plan(mechanism: str, parameters: dict[str, Any]) -> Plan:
        return Plan(*plan_of(found, domain, relation, mechanism, parameters))

    if mechanism != STRATA:
        return plan(mechanism, parameters)
    parts = zip(parameters["levels"], parameters["strata"], strict=True)
    plans = {level: plan(part["mechanism"], part["parameters"]) for level, part in parts}
    return StratifiedPlan(parameters["by"], plans)


def _target(
    run: Measure | Whole,
    name: str,
    claim: Guarantee,
    pair: Pair | None,
    statistics: Iterable[Statistic | Callable[[Any], Any]],
    relation: Relation | None = None,
) -> Target:
    """Target of releases that claim a guarantee, under the relation asked for, or else under the guarantee's own."""
    plan, relation = run.plan, claim.relation if relation is None else relation
    given, pair = pair is not None, neighbours(plan, relation, pair)
    return Target(
        run=run,
        pair=pair,
        claimed=as_stated(plan, pair, claim.profile),
        statistics=(*built_in(plan, pair), *named(statistics)),
        words=f"{name}: {what_changes(pair, relation, given=given)}",
        weakened=weakened(plan, pair),
        alike=alike(plan, pair),
        draws=draws_of(plan, pair),
        laws=laws_of(plan, pair),
        excess=excess(plan, pair, claim.profile),
    )
