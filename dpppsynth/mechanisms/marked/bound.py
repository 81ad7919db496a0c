"""Bound of masses of tents in space times hats in time times types (docs/theory/marks.md)."""

import math

from dpppsynth.core.arguments import instance, positive
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import either
from dpppsynth.privacy import bounds
from dpppsynth.privacy.catalogue import Code, Statement
from dpppsynth.privacy.guarantee import Guarantee, PureDP, on_ground
from dpppsynth.privacy.relations import PUBLIC, AddRemove, AlphaNeighbours, CappedRelation, MovedPoint
from dpppsynth.spatial.mark_space import Marks, Times
from dpppsynth.spatial.mesh import Mesh

# Binary digits of the values of hats. Those of tents have digits of their own: the factors are rounded one by one, as a
# rounded product may change by more than the bound of the factors.
TIME_BITS = 14
# Two roundings of a hat and its neighbour change their L1 distance by at most 2; the rest is room for floating point.
TIME_ROUNDING = 4
MARKS = "public-marks"
OWN_TYPES = "public-types"
TIMES_AS_READ = "times-as-read"


def marks_sensitivity(mesh: Mesh, marks: Marks, relation: CappedRelation, *, reach: float | None = None) -> int:
    """L1 sensitivity of the masses in units of `2^-(20 + bits of hats)`.

    With D_x and D_t the changes of the rounded tents and hats of one point, and 2^a and 2^b their sums, the products
    change by at most `min(2 2^(a+b), 2^b D_x + 2^a D_t)` under a move, by `2 2^(a+b)` where the type may change, and by
    `2^(a+b)` under add/remove; times the cap on points per person.

    Parameters
    ----------
    mesh : Mesh
    marks : Marks
    relation : CappedRelation
        Says of all marks whether they are protected, unless points come and go.
    reach : float, optional
        Distance moved on the map, by which alone points change, instead of all that the relation allows.
    """
    instance("relation", relation, CappedRelation, bounds.EXAMPLE)
    cap, bits = relation.max_points_per_person, time_bits(marks)
    unit = 2 ** (bounds.LATTICE_BITS + bits)
    if isinstance(relation, AddRemove):
        return cap * unit
    moved = require_told(relation, marks)
    space = 2**bits * bounds.tents_sensitivity(mesh, relation, reach=reach) // cap
    if reach is not None:
        return cap * min(2 * unit, space)
    if moved.marks_reach[1]:
        return cap * 2 * unit
    time = time_on_clock(marks.times, moved)
    return cap * min(2 * unit, space + 2**bounds.LATTICE_BITS * times_sensitivity(marks.times, time))


def time_on_clock(times: Times | None, relation: MovedPoint) -> float:
    """Largest change of a measured time under the relation, changes of the clock's offset included.

    A clock that is t + o(t) at the instant t, with offsets o, changes by at most |t - t'| and the largest difference of
    its offsets.
    """
    reach = relation.marks_reach[0]
    return reach + (times.clock_change or 0.0) if times is not None and reach else 0.0


def times_sensitivity(times: Times | None, reach: float) -> int:
    """Largest change of one point's rounded hats, in units of `2^-TIME_BITS`, where its time changes by `reach`."""
    if times is None or not reach:
        return 0
    unit = 2**TIME_BITS
    change = unit * times.slope * min(reach, times.length)
    return 2 * unit if change >= 2 * unit else min(2 * unit, math.floor(change * (1 + 1e-12)) + TIME_ROUNDING)


def change_of_marks(marks: Marks, relation: CappedRelation) -> float:
    """Largest change of the masses, in points, where a point keeps its place and changes its marks, before rounding."""
    if isinstance(relation, AddRemove):
        return 0.0
    moved = require_told(relation, marks)
    slope = 0.0 if marks.times is None else marks.times.slope
    return 2.0 if moved.marks_reach[1] else min(2.0, slope * time_on_clock(marks.times, moved))


def time_bits(marks: Marks) -> int:
    """Binary digits of the values of hats: none without times."""
    return 0 if marks.times is None else TIME_BITS


def marked_tents(mesh: Mesh, marks: Marks, relation: CappedRelation, *, scale: float) -> Guarantee:
    """Guarantee of the masses with discrete Laplace noise of the given scale (lattice units)."""
    scale = positive("scale", scale)
    epsilon = marks_sensitivity(mesh, marks, relation) / scale
    own: list[Code] = [bounds.DISCRETE, MARKS]
    if isinstance(relation, MovedPoint) and relation.types == PUBLIC:
        own.append(OWN_TYPES)
    if isinstance(relation, MovedPoint) and isinstance(relation.time, float) and marks.times is not None:
        change, unit = marks.times.clock_change, marks.times.unit
        own.append(Statement("clock-changes", by=change, unit=unit) if change else TIMES_AS_READ)
    return Guarantee(
        relation,
        PureDP(epsilon),
        "marked-tents",
        bounds.assumptions(relation, tuple(own), domain=mesh.domain),
        on_ground(_curve(mesh, marks, relation, scale), mesh.domain),
    )


def _curve(mesh: Mesh, marks: Marks, relation: CappedRelation, scale: float) -> list[tuple[float, float]]:
    """(d, epsilon) for one point that moves by d on the map and keeps its marks."""
    if isinstance(relation, AddRemove):
        return []
    cap = relation.max_points_per_person
    farthest = min(mesh.domain.diameter, 2.5 / mesh.tent_slope)
    lengths = [farthest * k / 40 for k in range(1, 41)]
    return [(d, marks_sensitivity(mesh, marks, relation, reach=d) / cap / scale) for d in lengths]


def tents_instead() -> str:
    """The mechanism to take where points may not be moved."""
    return either("mechanism='tents'", "--mechanism marked-tents")


def require_kept(relation: CappedRelation, marks: Marks) -> AlphaNeighbours:
    """The relation, refused unless it hides where nearby a point was and leaves its type and its time as they are.

    Raises
    ------
    InputError
        Also where it does not state the protection of exactly the marks there are.
    """
    if not isinstance(relation, AlphaNeighbours):
        msg = (
            "relation: mechanism 'moved' hides where nearby a point was, at a price that grows with the distance; give "
            f"AlphaNeighbours(25.0, ...) instead, or take {tents_instead()} for this relation."
        )
        raise InputError(msg)
    require_told(relation, marks)
    for name, protection in (("time", relation.time), ("types", relation.types)):
        if protection not in (None, PUBLIC):
            msg = (
                f"relation: mechanism 'moved' hides where a point was and keeps its {name}, which must be public; take "
                f"{tents_instead()} to protect it."
            )
            raise InputError(msg)
    return relation


def kept_marks(marks: Marks) -> tuple[Code, ...]:
    """Assumptions where moved points keep their types and times."""
    return (MARKS, *((OWN_TYPES,) if marks.types is not None else ()))


def require_told(relation: CappedRelation, marks: Marks) -> MovedPoint:
    """The relation, refused unless it states the protection of exactly the marks there are; InputError."""
    moved: MovedPoint = instance("relation", relation, MovedPoint, "such as AlphaNeighbours(25.0, types='public')")
    for name, there, said, example in (
        ("time", marks.times is not None, moved.time is not None, "time=1.0 (protected within 1) or 'protected'"),
        ("types", marks.types is not None, moved.types is not None, "types='public' or types='protected'"),
    ):
        if there and not said:
            msg = f"relation: must say what is protected of the {name}; give {example}."
            raise InputError(msg)
        if said and not there:
            msg = f"relation: speaks of {name}, which the points do not have here; leave it out."
            raise InputError(msg)
    if marks.times is not None and moved.time_unit not in (None, marks.times.unit):
        msg = f"relation: time_unit must be that of the times, {marks.times.unit!r}, got {moved.time_unit!r}."
        raise InputError(msg)
    if isinstance(moved.time, float) and marks.times is not None and moved.time > marks.times.length:
        longest = f"must be at most the range's length, {marks.times.length:g};"
        msg = either(
            f"relation: time {longest} 'protected' covers any change.",
            f"--protect-time: {longest} --protect-time all covers any change.",
        )
        raise InputError(msg)
    return moved
