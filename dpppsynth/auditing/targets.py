"""Construction of audit targets from synthesizers, plans and saved releases."""

import time
from pathlib import Path
from typing import Any

from dpppsynth.auditing.power import half_missing
from dpppsynth.auditing.trials import Task, run_block
from dpppsynth.auditing.whole import Measure, Whole, strata_target
from dpppsynth.contract.audits.neighbouring_pairs import Pair
from dpppsynth.contract.audits.statistic_audit import Audited, More, StatisticAudit
from dpppsynth.contract.audits.statistics import named
from dpppsynth.contract.audits.target import AuditStatistic, Target
from dpppsynth.contract.registry import measuring, mechanism
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.statistic import Statistic
from dpppsynth.contract.stratified_plan import STRATA, StratifiedPlan
from dpppsynth.contract.synthesizer import Synthesizer
from dpppsynth.core.errors import DpppsynthError, InputError
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
    statistics: More = (),
    **options: Any,
) -> Target:
    """Releases, pair, claim and statistics of one of the package's own mechanisms.

    A run is a whole release by `ReleasePlan.release`, without the inference that follows on a private statistic.

    Parameters
    ----------
    thing : Synthesizer, ReleasePlan, StratifiedPlan, Statistic or Randomizer
        Of a `StratifiedPlan` all levels are released, and audited, at once. Of a local mechanism, or its plan, the
        report of one client; of several rounds, that with the largest epsilon. Of LDPTrace all reports of one client.
    domain : Window or LinearNetwork
        For a synthesizer, with `n` or `expected_n` as in its `plan`, and its `options`. Not needed for a local
        mechanism.
    pair : tuple of PointPattern, optional
        Two patterns of your own, neighbouring under the relation; unless given, the hardest. Of a `StratifiedPlan`
        those of the level with the largest epsilon, unmarked. Of a local mechanism two values of one client; unless
        given, those that a client hides least well.
    statistics : sequence of AuditStatistic or callable
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
    own = thing.own_audit() if isinstance(thing, Audited) else None
    if isinstance(thing, Synthesizer) and (domain is not None or own is None):
        if domain is None:
            msg = "domain: needed to audit a synthesizer, with n= (or expected_n= under add/remove)."
            raise InputError(msg)
        # The requested relation, not the plan's own.
        relation = thing.neighbouring()
        thing = thing.plan(domain, n=n, expected_n=expected_n, **options)
    elif any(each is not None for each in (domain, n, expected_n)) or options:
        msg = "domain, n: settled by the plan already; leave them out."
        raise InputError(msg)
    if isinstance(thing, ReleasePlan | StratifiedPlan):
        return _of_plan(thing, thing.guarantee, pair, statistics, relation)
    asked: dict[str, Any] = {"margin": half_missing, "pair": pair, "statistics": statistics}
    if isinstance(thing, Statistic):
        return audit_of(thing).target(Measure(thing), type(thing).__name__, thing.guarantee, **asked)
    if own is not None:
        return own.target(**asked)
    msg = (
        f"target: needs a Synthesizer, a plan, the path of a saved release, or a callable with pair=, claimed= and "
        f"statistics=, got {type(thing).__name__}."
    )
    raise InputError(msg)


def _of_plan(
    plan: ReleasePlan | StratifiedPlan, claim: Guarantee, pair: Any, statistics: More, relation: Relation | None = None
) -> Target:
    """Target of whole releases by a plan."""
    if isinstance(plan, StratifiedPlan):
        return strata_target(plan, claim, pair, named(statistics))
    asked: dict[str, Any] = {"margin": half_missing, "pair": pair, "statistics": statistics, "relation": relation}
    return mechanism(plan.mechanism).audit(plan.statistic).target(Whole(plan), plan.mechanism, claim, **asked)


def audit_of(plan: Statistic) -> StatisticAudit:
    """Audit of a bare statistic by the mechanisms that use it.

    Raises
    ------
    InputError
        When no registered mechanism does.
    """
    return measuring(plan).audit(plan)


def target_of_release(path: str | Path, statistics: More = (), *, limit: bool = True) -> Target:
    """The mechanism of a saved release, rebuilt from its certificate's public parameters, and the certificate's claim.

    Parameters
    ----------
    path : str or Path
        `certificate.json`, or the folder that holds it and the domain file.
    statistics : sequence of AuditStatistic or callable
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


def target_of_published(found: certificate.Published, more: tuple[AuditStatistic, ...]) -> Target:
    """Audit target of an open folder of a release."""
    cert = found.certificate
    claim = guarantee_from_dict(cert["guarantee"])
    try:
        domain = domain_of_release(found.document(cert["domain"]["file"]), cert["domain"]["scale_factor"])
        return _of_plan(_rebuilt(found, claim.relation, domain), claim, None, more)
    except DpppsynthError:
        raise
    except UNUSABLE:
        msg = f"certificate: {found.path} does not hold the public parameters of a mechanism, so nothing can be run."
        raise InputError(msg) from None


def seconds_per_trial(target: Target) -> float:
    """Time of a run on each input with its statistics; a first run, which compiles, is not timed."""
    run_block(target, Task(0, 1))
    start = time.perf_counter()
    for side in (0, 1):
        run_block(target, Task(side, 1))
    return time.perf_counter() - start


def _rebuilt(found: certificate.Published, relation: Relation, domain: Domain) -> ReleasePlan | StratifiedPlan:
    """The plan of a release, from its certificate."""
    name, parameters = found.certificate["mechanism"], found.certificate["parameters"]

    def plan(name: str, parameters: dict[str, Any]) -> ReleasePlan:
        return ReleasePlan(name, *plan_of(found, domain, relation, name, parameters))

    if name != STRATA:
        return plan(name, parameters)
    parts = zip(parameters["levels"], parameters["strata"], strict=True)
    plans = {str(level): plan(part["mechanism"], part["parameters"]) for level, part in parts}
    return StratifiedPlan(parameters["by"], plans, tuple(parameters["levels"]))
