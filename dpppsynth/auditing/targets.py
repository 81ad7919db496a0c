"""From a synthesizer, a plan or a saved release to what is audited: its measurement, at a hard pair.

Everything after the measurement is post-processing, so auditing what the budget was spent on is the stronger audit.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpppsynth.arguments import instance
from dpppsynth.auditing.local import clients_of, local_target
from dpppsynth.auditing.pairs import changed, hard_pair, require_neighbours
from dpppsynth.auditing.stated import as_stated
from dpppsynth.auditing.statistics import Pair, built_in, named
from dpppsynth.auditing.target import Statistic, Target, require_two
from dpppsynth.auditing.trajectories import trace_target
from dpppsynth.auditing.weaker import alike, weakened
from dpppsynth.domains import Domain
from dpppsynth.draw import DrawPlan
from dpppsynth.errors import DpppsynthError, InputError, ReleaseBlocked
from dpppsynth.heatmaps.plan import HeatmapPlan
from dpppsynth.kernel_plan import PatternPlan
from dpppsynth.models.recipes import domain_from_geojson
from dpppsynth.moved_plan import MovedPlan
from dpppsynth.offset import Offset
from dpppsynth.patterns import PointPattern
from dpppsynth.privacy import certificate
from dpppsynth.privacy.derive import STRATA
from dpppsynth.privacy.guarantee import Guarantee, guarantee_from_dict
from dpppsynth.privacy.profiles import Profile
from dpppsynth.privacy.relations import Relation, relation_from_dict
from dpppsynth.release.measurements import measurement
from dpppsynth.statistic import MeasurementPlan
from dpppsynth.synthesizers import Plan, StratifiedPlan, Synthesizer
from dpppsynth.trace_plan import TracePlan

# What building a mechanism of parameters that make no sense raises, and a pair for it.
UNUSABLE = (OSError, LookupError, AttributeError, TypeError, ValueError, ArithmeticError, MemoryError, RecursionError)
# Runs blocked by their diagnostics one after the other, after which an audit gives up.
MOST_BLOCKED = 20


@dataclass(frozen=True, eq=False)
class Measure:
    """One run of a measurement, with secret randomness; `plan` is what the budget is spent on."""

    plan: Any

    def __call__(self, pattern: PointPattern) -> Any:
        """What is released; a run that its diagnostics block is run again, since the claim is about releases.

        Raises
        ------
        ReleaseBlocked
            When many runs in a row are blocked.
        """
        for _ in range(MOST_BLOCKED - 1):
            try:
                return self.plan.measure(pattern)
            except ReleaseBlocked:
                continue
        return self.plan.measure(pattern)


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
    """Measurement, pair, claim and statistics of one of the package's own mechanisms.

    Parameters
    ----------
    thing : Synthesizer, Plan, StratifiedPlan, MeasurementPlan, MovedPlan, DrawPlan, PatternPlan, HeatmapPlan or
        Randomizer
        Of a `StratifiedPlan` the level with the largest epsilon is audited: levels are released separately. Of a local
        mechanism, or its plan, the report of one client; of several rounds, that with the largest epsilon. Of
        LDPTrace all reports of one client.
    domain : Window or LinearNetwork
        For a synthesizer, with `n` or `expected_n` as in its `plan`, and its `options`. Not needed for a local
        mechanism.
    pair : tuple of PointPattern, optional
        Two patterns of your own, neighbouring under the relation; unless given, `hard_pair`. Of a local mechanism two
        values of one client; unless given, `hard_values`.
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
    if isinstance(thing, Synthesizer) and not (domain is None and clients_of(thing)):
        if domain is None:
            msg = "domain: needed to audit a synthesizer, with n= (or expected_n= under add/remove)."
            raise InputError(msg)
        thing = thing.plan(domain, n=n, expected_n=expected_n, **options)
    elif any(each is not None for each in (domain, n, expected_n)) or options:
        msg = "domain, n: settled by the plan already; leave them out."
        raise InputError(msg)
    level = ""
    if isinstance(thing, StratifiedPlan):
        by = thing.by
        name, thing = max(thing.plans.items(), key=lambda item: item[1].guarantee.epsilon())
        level = f", {_of_level(by, name)}"
    clients = clients_of(thing)
    if clients is not None:
        return local_target(clients, guarantee=getattr(thing, "guarantee", None), pair=pair, statistics=statistics)
    held = getattr(thing, "statistic", thing)
    if isinstance(held, TracePlan):
        return trace_target(held, guarantee=getattr(thing, "guarantee", None), pair=pair, statistics=statistics)
    if isinstance(thing, Plan):
        return _target(thing.statistic, thing.mechanism + level, thing.guarantee.profile, pair, statistics)
    if isinstance(thing, MeasurementPlan | MovedPlan | DrawPlan | PatternPlan | HeatmapPlan):
        return _target(thing, type(thing).__name__, _claim(thing).profile, pair, statistics)
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
    """The same of a folder that is open."""
    cert = found.certificate
    claim = guarantee_from_dict(cert["guarantee"])
    try:
        domain = domain_from_geojson(found.document(cert["domain"]["file"]))
        plan, name = _rebuilt(cert, relation_from_dict(cert["guarantee"]["relation"]), domain)
        if isinstance(plan, DrawPlan) and cert["parameters"]["estimator"]["offset"] is not None:
            plan = replace(plan, offset=Offset.from_geojson(found.document(certificate.OFFSET)))
        clients = clients_of(plan)
        if clients is not None:
            return local_target(clients, guarantee=claim, statistics=more)
        if isinstance(plan, TracePlan):
            return trace_target(plan, guarantee=claim, statistics=more)
        return _target(plan, name, claim.profile, None, more)
    except DpppsynthError:
        raise
    except UNUSABLE:
        msg = f"certificate: {found.path} does not hold the public parameters of a mechanism, so nothing can be run."
        raise InputError(msg) from None


def seconds_per_trial(target: Target) -> float:
    """Time of a run on each of the two inputs, looked at by all statistics; a first run, which compiles, is not timed.

    Parameters
    ----------
    target : Target
    """

    def look(pattern: Any) -> None:
        released = target.run(pattern)
        for statistic in target.statistics:
            statistic.features(released)

    look(target.pair[0])
    start = time.perf_counter()
    for pattern in target.pair:
        look(pattern)
    return time.perf_counter() - start


def _rebuilt(cert: dict[str, Any], relation: Relation, domain: Domain) -> tuple[Any, str]:
    """The measurement on a certificate and its name; of several levels the one with the largest epsilon."""
    mechanism, parameters = cert["mechanism"], cert["parameters"]
    if mechanism != STRATA:
        return measurement(mechanism, parameters, relation, domain), mechanism
    parts = [measurement(part["mechanism"], part["parameters"], relation, domain) for part in parameters["strata"]]
    weakest = int(np.argmax([part.guarantee.epsilon() for part in parts]))
    name = parameters["strata"][weakest]["mechanism"]
    return parts[weakest], f"{name}, {_of_level(parameters['by'], parameters['levels'][weakest])}"


def _claim(plan: Any) -> Guarantee:
    guarantee: Guarantee = plan.guarantee
    return guarantee


def _of_level(by: str, level: str) -> str:
    return f"the weakest of the levels, {by} {level}"


def _target(
    plan: Any, name: str, claimed: Profile, pair: Pair | None, statistics: Iterable[Statistic | Callable[[Any], Any]]
) -> Target:
    relation = plan.relation
    if pair is None:
        pair = hard_pair(plan, relation)
    else:
        _require_patterns(pair)
        require_neighbours(pair, relation)
    return Target(
        run=Measure(plan),
        pair=pair,
        claimed=as_stated(plan, pair, claimed),
        statistics=(*built_in(plan, pair), *named(statistics)),
        words=f"{name}: {_what_changes(pair, relation)}",
        weakened=weakened(plan, pair),
        alike=alike(plan, pair),
    )


def _require_patterns(pair: Any) -> None:
    require_two(pair)
    for each in pair:
        instance("pair", each, PointPattern, "give two patterns")


def _what_changes(pair: Pair, relation: Relation) -> str:
    """The difference between the two patterns, which are made up from public parameters, in words."""
    domain = pair[0].domain
    gone, came = changed(pair)
    where = " and ".join(
        f"({', '.join(f'{v:.7g}' for v in domain.coordinates(places)[0])})" for places in (gone, came) if len(places)
    )
    if relation.n_is_public:
        return f"{len(gone)} of {len(pair[0])} made-up points at one or the other of {where}"
    return f"{max(len(gone), len(came))} of {max(map(len, pair))} made-up points at {where}, or not there"
