"""`MarkedSynthesizer`: points with types and times from one private statistic (docs/theory/marks.md)."""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

from dpppsynth.contract import rules
from dpppsynth.contract.mark_settings import DESCRIBED, PROTECTION, described_marks, protection, require_unprotected
from dpppsynth.contract.moved_counts import MOST_NODES, nodes_beyond
from dpppsynth.contract.object_options import (
    COVARIATES,
    OFFSET,
    OFFSET_BY,
    RESOLUTION,
    layers_of,
    require_fineness,
    tent_mesh,
)
from dpppsynth.contract.release_plan import ReleasePlan
from dpppsynth.contract.rules import network_rules, planar_rules
from dpppsynth.contract.settings import (
    ALPHA,
    CAP,
    EPSILON,
    RELATION,
    SPACING,
    USER,
    ParsedOptions,
    Setting,
    made_of,
    setting,
)
from dpppsynth.contract.synthesizer import (
    MeshSynthesizer,
    exact_or_guess,
    need_size,
    point_relation,
    require_true_lengths,
)
from dpppsynth.core.arguments import instance, one_of, positive
from dpppsynth.core.errors import InputError
from dpppsynth.linear_network import LinearNetwork, NetworkMesh, network_mesh
from dpppsynth.linear_network.mesh import SegmentCells
from dpppsynth.mechanisms.marked.bound import change_of_marks, require_kept, require_told
from dpppsynth.mechanisms.marked.inference import REGULAR, MarkedInference, field_nodes
from dpppsynth.mechanisms.marked.intensity import MarkedMesh
from dpppsynth.mechanisms.marked.moved_inference import MarkedMovesInference
from dpppsynth.mechanisms.marked.moved_statistic import MarkedMoves
from dpppsynth.mechanisms.marked.moved_street_inference import MarkedStreetMovesInference
from dpppsynth.mechanisms.marked.release import MarkedRelease
from dpppsynth.mechanisms.marked.statistic import MarkedMasses
from dpppsynth.models.recipes import around, trace_mesh
from dpppsynth.models.regular_meshes import refine
from dpppsynth.privacy.planar_moves import rate
from dpppsynth.privacy.relations import (
    PROTECTED,
    PUBLIC,
    AddRemove,
    AlphaNeighbours,
    CappedRelation,
    MovedPoint,
    ReplaceOne,
)
from dpppsynth.spatial.covariates import covariates_from
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.mark_space import Marks
from dpppsynth.spatial.marked_offset import MarkedOffset
from dpppsynth.spatial.mesh import Mesh
from dpppsynth.spatial.offset import require_offset

# Standard deviations of the noise that a number holds at least on average, over the square root of the hats' number:
# instants have much in common.
HOLDS = 3.0
# Numbers at most, for minutes of inference, and vertices along a side.
MOST_BY_RULE, SIDES = 20_000, range(4, 61)


def tents_by_rule(domain: Domain, marks: Marks, n: float, epsilon: float, relation: CappedRelation) -> Mesh:
    """Finest mesh of tents with `n / numbers >= max(1, 3 sqrt2 Delta / (epsilon sqrt(hats)))`, at most 20 000 numbers.

    Numbers are types times hats times vertices.
    """
    kind = rules.BY_DOMAIN[type(domain)]
    types, hats = marks.shape
    aside, best = change_of_marks(marks, relation), SIDES[0]
    for m in SIDES[1:]:
        vertices, moved = kind.tents_size(domain, m, relation)
        change = 1.0 if isinstance(relation, AddRemove) else min(2.0, moved + aside)
        noise = math.sqrt(2) * relation.max_points_per_person * change / epsilon
        numbers = types * hats * vertices
        if numbers <= MOST_BY_RULE and n / numbers >= max(1.0, HOLDS * noise / math.sqrt(hats)):
            best = m
    found: Mesh = kind.sided_mesh(domain, best)
    return found


def field_mesh(tents: Mesh, marks: Marks) -> Mesh:
    """Mesh at whose vertices a field inferred from tents has values: theirs, made finer by the rule of any field."""
    builder = tents.recipe["builder"]
    if builder not in REGULAR:
        return tents
    times = planar_rules.times_finer(tents, math.prod(marks.shape))
    if builder == "regular":
        return refine(tents, times)
    nx, ny = tents.recipe["shape"]
    return trace_mesh(tents.domain, shape=(times * (nx - 1) + 1, times * (ny - 1) + 1))  # type: ignore[arg-type]


# Sizes of the parts of the field that are averaged over, as in `MarkedPrior`, and the range of curves of times as a
# share of the range of times.
OWNS, TIME_SIGMAS, TOGETHERS, TIME_RANGE = (0.1, 0.25, 0.6, 1.5), (0.2, 0.6, 1.5), (0.0, 0.25, 0.6), 1 / 3


MECHANISMS = ("auto", "tents", "moved")
# Values of the field behind moved points at most, of all types and instants together, and nodes along a side at least.
MOST_MOVED, FEWEST_MOVED = 40_000, 16
# Points in a square of the noise's scale, on average, up to which moved points tell more than tents on windows: fewer
# than without marks, as hats and types of tents share strength; but more where kinds of points, types times instants,
# are many, since tents of each grow wide. On streets, as if they filled a square of the extent's side, it is more too:
# wide tents do not tell streets apart (docs/results/marked_moves.md and marked_k.md).
MOVED_POINTS, MANY_KINDS, MOVED_KINDS, MOVED_ON_STREETS = 0.5, 16, 1.5, 2.0
# Shares of the variance of such a field that each type has to itself, and that change with the time.
OWN_SHARES, TIME_SHARES = (0.0, 0.05, 0.2, 0.5, 1.0, 2.0), (0.0, 0.1, 0.3, 0.7)


def moved_mesh(domain: Domain, marks: Marks, scale: float) -> Mesh:
    """Mesh at whose vertices moved points of every type and instant are counted, by their noise's scale on the map.

    That without marks, or a coarser one of at most 40 000 nodes for all types and instants together.
    """
    rule = rules.BY_DOMAIN[type(domain)]
    by_rule: Mesh = rule.moved_mesh(domain, scale)
    short, long = sorted(_sides(domain))
    most = math.floor(math.sqrt(MOST_MOVED / math.prod(marks.shape) * long / short))
    wanted = max(by_rule.recipe["shape"])
    return by_rule if wanted <= most else rule.sided_mesh(domain, max(most, FEWEST_MOVED))


def moved_cells(network: LinearNetwork, marks: Marks, scale: float) -> NetworkMesh:
    """Segments of the field behind moved points of every type and instant.

    Those without marks, or longer ones of which there are at most 40 000 for all types and instants together, or as
    many as there are edges.
    """
    by_rule = network_rules.moved_cells(network, scale)
    most = MOST_MOVED // math.prod(marks.shape)
    if len(by_rule.elements) <= most:
        return by_rule
    return network_mesh(network, network.length / max(1, most - len(network.edges)))


def fits(domain: Domain, marks: Marks, scale: float) -> bool:
    """Whether moved points of all types and instants may be counted on that mesh and beyond, and places inferred."""
    kinds = math.prod(marks.shape)
    nx, ny = moved_mesh(domain, marks, scale).recipe["shape"]
    beyond = nodes_beyond(scale, domain, max(side / (n - 1) for side, n in zip(_sides(domain), (nx, ny), strict=True)))
    places = max(FEWEST_MOVED**2, len(domain.edges) if isinstance(domain, LinearNetwork) else 0)
    return kinds * places <= MOST_MOVED and kinds * (nx + 2 * beyond) * (ny + 2 * beyond) <= MOST_NODES


def _sides(domain: Domain) -> tuple[float, float]:
    """Sides of the box over which moved points are counted."""
    x0, y0, x1, y1 = around(domain) if isinstance(domain, LinearNetwork) else domain.bounds
    return x1 - x0, y1 - y0


RADIUS = Setting(name="alpha", option="--alpha", kind=float, **ALPHA)


@dataclass(frozen=True, eq=False)
class MarkedSynthesizer(MeshSynthesizer[MarkedRelease]):
    """Synthetic points with types and times, from one private statistic of places, times and types together.

    Parameters
    ----------
    epsilon : float
        Budget; the release is (epsilon, 0)-differentially private.
    marks : Marks
        Public list of types, public range of times, or both.
    relation : CappedRelation, optional
        Neighbouring relation, which says what is protected of each mark:
        `AlphaNeighbours(50.0, time=1.0, types="public")` for a move by at most 50 in space and 1 in time of a point
        that keeps its type. Without it any point may become any other, `ReplaceOne`.
    mechanism : {"auto", "tents", "moved"}
        What is made private. "tents": shares of the points in tents, hats and types, with discrete Laplace noise.
        "moved": counts of points that were each moved by planar Laplace noise and keep their types and times, for
        moves by alpha where these are public. "auto" takes one of them by a public rule; `check` says which.
    spacing : float, optional
        Side of the mesh, or longest segment on a network; None takes a public rule of domain, marks, n, epsilon and
        relation.
    mesh : Mesh, optional
        Instead of a spacing.
    offset : Offset or mapping, optional
        Public base intensity of places, such as population density, that multiplies the fitted one: of all types and
        times; or by the names of all types; or by instants, from each of which on one holds, such as the beginnings of
        years.
    covariates : Covariates or mapping, optional
        Public layers by name, whose effects on the intensity, the same for all types and times, are found with the
        field: `release.effects`.

    Examples
    --------
    >>> from dpppsynth.privacy.relations import AlphaNeighbours
    >>> from dpppsynth.spatial.domains import Window
    >>> from dpppsynth.spatial.mark_space import Marks, Times, Types
    >>> marks = Marks(Types("offence", ["burglary", "theft"]), Times.day("hour"))
    >>> near = AlphaNeighbours(50.0, time=1.0, types="public")
    >>> MarkedSynthesizer(1.0, marks=marks, relation=near).check(Window.rectangle(0, 0, 5000, 5000), n=2000).theorem
    'marked-tents'
    """

    epsilon: float = setting(**EPSILON)
    _: KW_ONLY
    marks: Marks = made_of(*DESCRIBED)
    relation: CappedRelation | None = made_of(RELATION, RADIUS, CAP, USER, *PROTECTION)
    mechanism: str = setting("auto", help="What is made private", choices=MECHANISMS)
    spacing: float | None = setting(None, **SPACING)
    mesh: Mesh | None = made_of(RESOLUTION)
    offset: Any = made_of(*OFFSET, OFFSET_BY)
    covariates: Any = made_of(*COVARIATES)
    method: ClassVar[str] = "marked"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        f"marked-{mechanism}": {"mechanism": mechanism} for mechanism in MECHANISMS if mechanism != "auto"
    }

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        instance("marks", self.marks, Marks, "such as Marks(Types('offence', ['burglary', 'theft']))")
        super().__post_init__()
        one_of("mechanism", self.mechanism, MECHANISMS)
        if isinstance(self.offset, Mapping):
            object.__setattr__(self, "offset", MarkedOffset.of(self.offset, self.marks))
        if not isinstance(self.offset, MarkedOffset):
            require_offset(self.offset)
        if self.covariates is not None:
            object.__setattr__(self, "covariates", covariates_from(self.covariates))
        self.neighbouring()

    def neighbouring(self) -> CappedRelation:
        """The relation in force; by default a point that moves anywhere may change its marks as well."""
        found = point_relation(self.relation, None, marks=True)
        if isinstance(found, ReplaceOne):
            time = found.time if self.marks.times is None else found.time or PROTECTED
            types = found.types if self.marks.types is None else found.types or PROTECTED
            found = replace(found, time=time, types=types)
        if not isinstance(found, MovedPoint):
            return found
        require_told(found, self.marks)
        times = self.marks.times
        return found if times is None or found.time == PUBLIC else replace(found, time_unit=times.unit)

    @classmethod
    def require_options(cls, options: ParsedOptions) -> None:
        """Refuse points without types and times, and combinations that are wrong on any domain; InputError."""
        super().require_options(options)
        cls.marks_from(options)
        cls.relation_from(options)

    @classmethod
    def objects(cls, options: ParsedOptions, domain: Domain) -> dict[str, Any]:
        require_fineness(options["resolution"], domain, spacing=options["spacing"])
        made: dict[str, Any] = {"marks": cls.marks_from(options), "relation": cls.relation_from(options)}
        mesh = {} if options["resolution"] is None else {"mesh": tent_mesh(options, domain)}
        # Without a name the domain, the number of points and the relation decide.
        chosen = {} if options.named or cls.preset(options)["mechanism"] == "moved" else {"mechanism": "auto"}
        return made | layers_of(options, domain) | mesh | chosen

    @classmethod
    def relation_from(cls, options: ParsedOptions) -> CappedRelation:
        marks, found = cls.marks_from(options), super().relation_from(options)
        if isinstance(found, AddRemove):
            require_unprotected(options.values)
            return found
        told = protection(options.values, marks, near=options["alpha"] is not None)
        return cls(1.0, marks=marks, relation=replace(found, **told)).neighbouring()

    @classmethod
    def marks_from(cls, options: ParsedOptions) -> Marks:
        """Types and times, as the columns of a file are read; InputError where there are neither."""
        found = described_marks(options.values)
        if found is None:
            msg = f"types: {options.called} needs types, times or both, such as --types offence=burglary,theft"
            raise InputError(msg)
        return found

    def require_levels(self) -> None:
        super().require_levels()
        msg = (
            "by: types are released together, and a mark that follows from a time is protected with it; name the mark "
            "among the types instead, or take another mechanism."
        )
        raise InputError(msg)

    def plan(self, domain: Domain, *, n: int | None = None, expected_n: float | None = None) -> ReleasePlan:
        require_true_lengths(domain)
        size = self.public_size(n, expected_n)
        mechanism, reason = choice(self, domain, size) if self.mechanism == "auto" else (self.mechanism, "")
        plan = self._moved(domain, n) if mechanism == "moved" else self._tents(domain, n, size)
        return replace(plan, reason=reason) if reason else plan

    def _tents(self, domain: Domain, n: int | None, size: float | None) -> ReleasePlan:
        """Plan of masses with noise, and of a field behind them."""
        relation = self.neighbouring()
        mesh = self.laid_mesh(
            domain, "tents", lambda: tents_by_rule(domain, self.marks, need_size(size), float(self.epsilon), relation)
        )
        statistic = MarkedMasses(mesh, self.marks, relation, *exact_or_guess(n, size), float(self.epsilon))
        return ReleasePlan("marked-tents", statistic, self._estimator(mesh))

    def _moved(self, domain: Domain, n: int | None) -> ReleasePlan:
        """Plan of counts of moved points, and of fields inferred from them by the law of the moves."""
        relation, epsilon = require_kept(self.neighbouring(), self.marks), float(self.epsilon)
        scale = 1 / rate(relation, epsilon, domain)
        mesh = self.laid_mesh(domain, "tents", lambda: moved_mesh(domain, self.marks, scale))
        statistic = MarkedMoves(mesh, relation, int(need_size(n)), epsilon, self.marks)
        types, hats = self.marks.shape
        shares: dict[str, Any] = {
            "owns": OWN_SHARES if types > 1 else (0.0,),
            "togethers": TIME_SHARES if hats > 1 else (0.0,),
        }
        if isinstance(domain, LinearNetwork):
            return ReleasePlan("marked-moved", statistic, self._street_field(domain, scale, **shares))
        offset = None if self.offset is None else self.offset.on(domain)
        smaller = () if offset is None else planar_rules.RISK_SIGMAS
        field = MarkedMovesInference(
            MarkedMesh(mesh, self.marks, offset),
            ranges=planar_rules.moved_ranges(mesh, scale),
            sigmas=tuple(sorted({*planar_rules.MOVED_SIGMAS, *smaller})),
            details=planar_rules.MOVED_DETAILS,
            even=True,
            covariates=None if self.covariates is None else self.covariates.on(mesh, offset),
            **shares,
        )
        return ReleasePlan("marked-moved", statistic, field)

    def _street_field(self, network: LinearNetwork, scale: float, **shares: Any) -> MarkedStreetMovesInference:
        """Fields of the plane plus ones along streets."""
        cells = SegmentCells.of(moved_cells(network, self.marks, scale))
        offset = None if self.offset is None else self.offset.on(network)
        return MarkedStreetMovesInference(
            MarkedMesh(cells, self.marks, offset),
            network_rules.street_plane(network),
            **network_rules.moved_street_lists(network),
            even=True,
            covariates=None if self.covariates is None else self.covariates.on(cells, offset),
            **shares,
        )

    def _estimator(self, mesh: Mesh) -> MarkedInference:
        types, hats = self.marks.shape
        times = self.marks.times
        offset = None if self.offset is None else self.offset.on(mesh.domain)
        places = field_mesh(mesh, self.marks)
        return MarkedInference(
            MarkedMesh(places, self.marks, offset),
            ranges=planar_rules.matern_ranges(mesh),
            owns=OWNS if types > 1 else (0.0,),
            time_sigmas=TIME_SIGMAS if hats > 1 else (0.0,),
            togethers=TOGETHERS if hats > 1 else (0.0,),
            time_range=0.0 if times is None else TIME_RANGE * times.length,
            covariates=None if self.covariates is None else self.covariates.on(places, offset),
            lattice=field_nodes(mesh, self.marks),
        )


def choice(s: MarkedSynthesizer, domain: Domain, size: float | None) -> tuple[str, str]:
    """Mechanism that "auto" takes, and why, in words."""
    relation = s.neighbouring()
    if not isinstance(relation, AlphaNeighbours):
        return "tents", "this relation hides more than where nearby a point was"
    if not {relation.time, relation.types} <= {None, PUBLIC}:
        return "tents", "moved points would keep the types and times that are protected"
    if s.spacing is not None or s.mesh is not None:
        return "tents", "a mesh is asked for that goes with them"
    n, scale = need_size(size), 1 / rate(relation, float(s.epsilon), domain)
    if not fits(domain, s.marks, scale):
        return "tents", "there are too many types and instants for a lattice of each"
    if isinstance(domain, LinearNetwork):
        if rules.moves_tell(domain, n, scale, MOVED_ON_STREETS):
            return "moved", "moved points tell streets apart, for which tents of every type and instant are too wide"
    elif n < planar_rules.MANY:
        return "tents", f"there are fewer than {planar_rules.MANY} points"
    many = math.prod(s.marks.shape) >= MANY_KINDS
    return rules.moved_or_tents(domain, n, scale, MOVED_KINDS if many else MOVED_POINTS)
