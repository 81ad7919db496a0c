"""Moved points, and a log-Gaussian field inferred from them: plan, record, words and examples."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, cast

from dpppsynth.contract.examples import RELATIONS, Example, Refusal, ring, square, streets
from dpppsynth.contract.moved_counts import MovedCounts
from dpppsynth.contract.registry import later
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.rules import network_rules, planar_rules
from dpppsynth.contract.synthesizer import covering
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention
from dpppsynth.inference.moved_inference import MovedInference
from dpppsynth.inference.moved_street_inference import MovedStreetInference
from dpppsynth.inference.sparse_inference import LONGEST, SHORTEST
from dpppsynth.linear_network import LinearNetwork
from dpppsynth.linear_network.mesh import SegmentCells
from dpppsynth.mechanisms.lgcp.mechanism import fitted, quarters, small_mesh
from dpppsynth.mechanisms.lgcp.synthesizer import LGCPSynthesizer, way_of
from dpppsynth.models.recipes import window
from dpppsynth.privacy.planar_moves import rate
from dpppsynth.privacy.relations import AlphaNeighbours
from dpppsynth.spatial.domains import Domain


def planned(s: LGCPSynthesizer, domain: Domain, n: int, _size: float) -> ReleasePlan:
    """Plan of counts of moved points, and of a field inferred from them by the law of the moves."""
    # Other relations are refused with the settings, and under this one n is public.
    relation, epsilon = cast(AlphaNeighbours, s.neighbouring()), float(s.epsilon)
    scale = 1 / rate(relation, epsilon, domain)
    if isinstance(domain, LinearNetwork):
        mesh = network_rules.moved_mesh(domain, scale) if s.mesh is None else covering(domain, s.mesh)
        return ReleasePlan("lgcp-moved", MovedCounts(mesh, relation, int(n), epsilon), _street_field(s, domain, scale))
    space = window(domain)
    mesh = planar_rules.moved_mesh(space, scale) if s.mesh is None else covering(domain, s.mesh)
    statistic = MovedCounts(mesh, relation, int(n), epsilon)
    ranges = (_range(s.length_scale, domain),) if s.length_scale else planar_rules.moved_ranges(mesh, scale)
    settings: dict[str, Any] = {
        "offset": s.offset,
        "covariates": None if s.covariates is None else s.covariates.on(mesh, s.offset),
        # Whoever gives a length scale has a prior of their own.
        "even": s.length_scale is None,
        "details": (0.0,) if s.length_scale else planar_rules.MOVED_DETAILS,
        **way_of(s),
    }
    smaller = () if s.offset is None else planar_rules.RISK_SIGMAS
    sigmas = tuple(sorted({*planar_rules.MOVED_SIGMAS, *smaller}))
    return ReleasePlan("lgcp-moved", statistic, MovedInference(mesh, ranges, sigmas, **settings))


def _street_field(s: LGCPSynthesizer, network: LinearNetwork, scale: float) -> MovedStreetInference:
    """The field of the plane plus one along streets."""
    cells = SegmentCells.of(network_rules.moved_cells(network, scale))
    lists = network_rules.moved_street_lists(network)
    if s.length_scale:
        lists["ranges"] = (_range(s.length_scale, network),)
    return MovedStreetInference(
        cells,
        network_rules.street_plane(network),
        **lists,
        offset=s.offset,
        even=s.length_scale is None,
        covariates=None if s.covariates is None else s.covariates.on(cells, s.offset),
        **way_of(s),
    )


def _range(length_scale: float, domain: Domain) -> float:
    """The range asked for, refused where its field would be even, or have no neighbours."""
    most = LONGEST * domain.extent
    if not SHORTEST * most <= length_scale <= most:
        kind = "network" if isinstance(domain, LinearNetwork) else "window"
        msg = (
            f"length_scale: must lie between {SHORTEST * most:g} and {most:g} in this {kind}, got {length_scale!r}; "
            f"leave {mention('length_scale')} out for a public rule."
        )
        raise InputError(msg)
    return length_scale


PLANNERS: Mapping[str, Callable[..., ReleasePlan]] = {"moved": planned}


def examples() -> Iterator[Example | Refusal]:
    """Examples of moves by alpha, a hole, an offset and levels; other relations and streets are refused."""
    # So much noise that hardly any node is empty.
    build = partial(LGCPSynthesizer, 0.1, mechanism="moved")
    coarse = partial(build, mesh=small_mesh("moved", square()), length_scale=450.0)
    for relation in RELATIONS[:2]:
        yield Example(str(relation), partial(coarse, relation=relation), square())
    yield Example("polygon with a hole", partial(build, alpha=100.0), ring())
    yield Example("offset", partial(coarse, alpha=25.0, offset=quarters()), square())
    yield Example("levels", partial(coarse, alpha=25.0), square(), levels=True)
    rule = r"^relation: mechanism 'moved' hides where nearby a point was"
    for relation in RELATIONS[2:]:
        yield Refusal(relation, partial(build, relation=relation), square(), rule)
    yield Example("streets", partial(build, alpha=25.0, length_scale=200.0), streets())


MOVED = fitted(
    "lgcp-moved",
    MovedCounts,
    (MovedInference, MovedStreetInference),
    examples,
    "were each moved at random, by a distance and in a direction of their own, and the moved points were counted on a "
    "public lattice.",
    later("dpppsynth.contract.audits.moved_counts:MovedCountsAudit"),
)
