"""Neighbouring relations: the pairs of patterns that a release must not tell apart.

Distances are geodesic, the length of the shortest path inside the domain. Under the capped relations a person
contributes at most `max_points_per_person` points, a public cap; with a cap of one the unit of privacy is the point.
The caller vouches for the cap; or names the mark that tells persons (`user`), and then all points of a person change,
however many, since only so many of them, drawn at random, are measured (docs/theory.md, section 1).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

from dpppsynth.core.arguments import entries, instance, one_of, positive, shown, whole, whole_number, writable
from dpppsynth.core.errors import InputError
from dpppsynth.core.units import lengths_in

MARK = "it names the mark that tells persons apart"
# How relations, which know no domain, speak of lengths and paths.
UNIT_OF_COORDINATES, INSIDE = "(in the unit of the domain's coordinates)", "along a path inside the domain"
# Protected data of a person under local privacy, one each.
LOCATION, TRAJECTORY = "location", "trajectory"


def require_mark(user: str | None) -> str | None:
    """The name of the mark that identifies persons, or None; InputError for an empty text or anything else."""
    if user is not None and not instance("user", user, str, MARK):
        msg = f"user: needs the name of a mark, got an empty text; {MARK}."
        raise InputError(msg)
    return user


class KeptCap(NamedTuple):
    """Mark that identifies persons, and the number of points of each, drawn at random, that are measured."""

    user: str
    most: int


@dataclass(frozen=True)
class Relation:
    """Base of all relations."""

    name: ClassVar[str] = ""
    n_is_public: ClassVar[bool] = True

    @property
    def unit(self) -> str:
        """The word "point" when a person has one point, "person" otherwise."""
        raise NotImplementedError

    @property
    def reach(self) -> float:
        """Largest distance one point may move; infinite when it may go anywhere."""
        return float("inf")

    @property
    def user_cap(self) -> KeptCap | None:
        """The cap on a person's points that the release itself enforces; None where all points are measured."""
        return None

    def described_in(self, unit: str) -> str:
        """`describe` with lengths in a unit, such as "metre"; "unit" is that of coordinates whose unit is not known."""
        said, reach = self.describe(), self.reach
        if math.isfinite(reach):
            said = said.replace(f"{reach:g} {UNIT_OF_COORDINATES}", lengths_in(reach, unit))
        return said

    def implies(self, other: "Relation") -> bool:
        """Whether the same bound under this relation is also a bound under `other` (more pairs protected here)."""
        return isinstance(other, Relation) and self == other

    def covers(self, other: "Relation") -> bool:
        """Whether a bound under this relation is one under `other`, if no mark is read that this one leaves open."""
        return self.implies(other)

    def describe(self) -> str:
        """The relation in words."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """JSON form, inverse of `relation_from_dict`."""
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        return {"name": self.name} | {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True, repr=False)
class CappedRelation(Relation):
    """Base of relations under which the points of one person change, at most as many as a public cap.

    Attributes
    ----------
    max_points_per_person : int
        Public cap on the points of one person, all of which may change at once.
    user : str, optional
        Mark that tells persons: of each at most `max_points_per_person` points, drawn at random from theirs, are
        measured, and all of them are protected, however many. Without it the caller vouches for the cap.
    """

    max_points_per_person: int = 1
    user: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        require_mark(self.user)
        k = whole_number(self.max_points_per_person)
        if k is None or k < 1:
            got = shown(self.max_points_per_person)
            msg = f"max_points_per_person: needs a whole number of at least 1, got {got}."
            raise InputError(msg)
        object.__setattr__(self, "max_points_per_person", k)

    @property
    def unit(self) -> str:
        return "point" if self.max_points_per_person == 1 and self.user is None else "person"

    @property
    def user_cap(self) -> KeptCap | None:
        return None if self.user is None else KeptCap(self.user, self.max_points_per_person)

    def __repr__(self) -> str:
        told = ((each.name, getattr(self, each.name)) for each in fields(self))
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in told if value is not None)})"

    def implies(self, other: Relation) -> bool:
        if not isinstance(other, CappedRelation):
            return False
        same = type(self) is type(other) or (isinstance(self, ReplaceOne) and isinstance(other, AlphaNeighbours))
        return same and self._covers_person(other) and self.reach >= other.reach

    def _covers_person(self, other: "CappedRelation") -> bool:
        """Whether as many points of a person are covered: all of them where a mark tells persons."""
        if other.user is not None:
            return self.user == other.user
        if self.user is None:
            return self.max_points_per_person >= other.max_points_per_person
        # Several points of one person to `other` may be of several persons to the mark, and are several steps then. Of
        # a person who stays with some points and loses others, other points may be drawn.
        return self.n_is_public and other.max_points_per_person == 1

    def _who(self, singular: str, plural: str) -> str:
        if self.user is not None:
            told = f"all points of one person, however many (those that have one value of the mark {self.user!r}),"
            return f"{told} {plural.removeprefix('up to {k} points of one person ')}"
        k = self.max_points_per_person
        return singular if k == 1 else plural.format(k=k)

    @property
    def _counted(self) -> str:
        """Public numbers of points, in words."""
        return f"the number of points{'' if self.user is None else ' of every person'} is public"


# Words for marks that never change, and that may change to any.
PUBLIC, PROTECTED = "public", "protected"


@dataclass(frozen=True, repr=False)
class MovedPoint(CappedRelation):
    """Base of relations under which a point moves, and its marks change with it as far as the relation states.

    Attributes
    ----------
    time : float or {"public", "protected"}, optional
        By how much its time changes at most, in the unit of the times; "public" not at all, "protected" to any. None
        where points have no times.
    types : {"public", "protected"}, optional
        Whether its type stays ("public") or becomes any other ("protected"). None where points have no types.
    time_unit : str, optional
        Unit of the times, where they may change: changes in different units are not compared. A plan fills it in.
    """

    time: float | str | None = field(default=None, kw_only=True)
    types: str | None = field(default=None, kw_only=True)
    time_unit: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.types is not None:
            one_of("types", self.types, (PUBLIC, PROTECTED))
        if isinstance(self.time, str):
            one_of("time", self.time, (PUBLIC, PROTECTED), ", or a number in the unit of the times")
        elif self.time is not None:
            rule = "be a positive finite number in the unit of the times, or 'public' or 'protected'"
            object.__setattr__(self, "time", float(positive("time", self.time, rule=rule)))
        if self.time_unit is not None:
            if self.time in (None, PUBLIC):
                msg = f"time_unit: goes with a time that may change, and time is {self.time!r}; leave it out."
                raise InputError(msg)
            if not writable(instance("time_unit", self.time_unit, str)):
                msg = f"time_unit: must be a text that can be written, got {shown(self.time_unit)}."
                raise InputError(msg)

    @property
    def marks_reach(self) -> tuple[float, float]:
        """Largest change of a time, and of a type: infinite where it may be any, 0 where it stays or there is none."""
        reach = {None: 0.0, PUBLIC: 0.0, PROTECTED: float("inf")}
        time = self.time if isinstance(self.time, float) else reach[self.time]
        return time, reach[self.types]

    @property
    def time_change(self) -> str:
        """Largest change of a time that is a number, with its unit, in words."""
        unit = (self.time_unit or "").removesuffix("s" if self.time == 1 else "")
        return f"{self.time or 0:g} {unit}".rstrip()

    @property
    def without_marks(self) -> Self:
        """The same relation with nothing said of times and types."""
        return replace(self, time=None, types=None, time_unit=None)

    @property
    def has_marks(self) -> bool:
        """Whether something is said of times or types."""
        return self.time is not None or self.types is not None

    def implies(self, other: Relation) -> bool:
        if not super().implies(other) or not isinstance(other, MovedPoint):
            return False
        (time, types), (other_time, other_types) = self.marks_reach, other.marks_reach
        comparable = self.time_unit == other.time_unit or time == math.inf or not other_time
        return comparable and time >= other_time and types >= other_types

    def covers(self, other: Relation) -> bool:
        return replace(self, time=self.time or PROTECTED, types=self.types or PROTECTED).implies(other)

    @property
    def _marks_told(self) -> str:
        """End of a sentence about times and types."""
        told = {PUBLIC: "stays", PROTECTED: "becomes any other"}
        time = told[self.time] if isinstance(self.time, str) else f"changes by at most {self.time_change}"
        times = "" if self.time is None else f", the time {time}"
        return times if self.types is None else f"{times}, the type {told[self.types]}"


@dataclass(frozen=True, repr=False)
class AlphaNeighbours(MovedPoint):
    """Moves of one point (or of the points of one person) by at most `alpha`; the number of points is public.

    Attributes
    ----------
    alpha : float
        Privacy radius, in the domain's unit of length; positive.
    time, types, time_unit
        Of points with marks, as in `MovedPoint`.

    Examples
    --------
    >>> ReplaceOne().implies(AlphaNeighbours(25.0))
    True
    >>> AlphaNeighbours(25.0).implies(AlphaNeighbours(50.0))
    False
    """

    max_points_per_person: int = field(default=1, kw_only=True)
    alpha: float
    name: ClassVar[str] = "alpha-neighbours"

    def __post_init__(self) -> None:
        rule = "be a positive finite number in the domain's unit of length"
        object.__setattr__(self, "alpha", float(positive("alpha", self.alpha, rule=rule, remedy="such as 25.0")))
        super().__post_init__()

    @property
    def reach(self) -> float:
        return self.alpha

    def describe(self) -> str:
        who = self._who("one point moves", "up to {k} points of one person move")
        return f"{self._counted} and {who} by at most {self.alpha:g} {UNIT_OF_COORDINATES} {INSIDE}{self._marks_told}"


@dataclass(frozen=True, repr=False)
class ReplaceOne(MovedPoint):
    """Moves of one point (or of the points of one person) anywhere in the domain; the number of points is public.

    Attributes
    ----------
    time, types, time_unit
        Of points with marks, as in `MovedPoint`.
    """

    name: ClassVar[str] = "replace-one"

    def describe(self) -> str:
        who = self._who("one point moves", "up to {k} points of one person move")
        return f"{self._counted} and {who} anywhere in the domain{self._marks_told}"


@dataclass(frozen=True, repr=False)
class AddRemove(CappedRelation):
    """Addition or removal of one point (or of the points of one person); the number of points is secret.

    Examples
    --------
    >>> AddRemove(3, user="patient").implies(AddRemovePerson("patient")), AddRemove(3).implies(AddRemove())
    (True, True)
    """

    name: ClassVar[str] = "add-remove"
    n_is_public: ClassVar[bool] = False

    def implies(self, other: Relation) -> bool:
        whole = isinstance(other, AddRemovePerson) and self.user == other.user
        return whole or super().implies(other)

    def describe(self) -> str:
        who = self._who("one point is", "up to {k} points of one person are")
        return f"the number of points is secret and {who} added or removed"


@dataclass(frozen=True)
class AddRemovePerson(Relation):
    """Addition or removal of one person with all their points, however many; the number of persons is secret.

    Attributes
    ----------
    user : str
        Mark that tells the persons. Persons told by another mark are another unit of privacy.

    Examples
    --------
    >>> AddRemovePerson("patient").implies(AddRemovePerson("household"))
    False
    """

    user: str = "user"
    name: ClassVar[str] = "add-remove-person"
    n_is_public: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_mark(instance("user", self.user, str, MARK))

    @property
    def unit(self) -> str:
        return "person"

    def implies(self, other: Relation) -> bool:
        return super().implies(other) or (isinstance(other, AddRemove) and other.user == self.user)

    def describe(self) -> str:
        return (
            "one person is added or removed, with all their points (those that have one value of the mark "
            f"{self.user!r}); the numbers of persons and points are secret"
        )


class ReportRelation(Relation):
    """Base of relations of reports, of which each person sends one, where a mark tells persons."""

    user: str | None

    @property
    def unit(self) -> str:
        return "person"

    @property
    def user_cap(self) -> KeptCap | None:
        return None if self.user is None else KeptCap(self.user, 1)


@dataclass(frozen=True)
class Local(ReportRelation):
    """Local differential privacy: a person's report hides their location, or their trajectory, from everybody.

    Any location may be exchanged for any other, so the same bound holds between patterns of which one point is
    replaced, for a person who has one point. Any trajectory may be exchanged for any other, and two that differ in one
    location are two trajectories, so the bound for trajectories is one for locations as well. It says nothing about a
    person who has several trajectories, nor, unless a mark tells persons, about one who has several points.

    Attributes
    ----------
    of : {"location", "trajectory"}
        Protected data of a person, one each.
    user : str, optional
        Mark that tells persons: each reports one of their points, drawn at random, and all of them are protected,
        however many (docs/theory/local.md). Without it every point is a person of its own.

    Examples
    --------
    >>> Local().implies(ReplaceOne()), Local().implies(ReplaceOne(2)), ReplaceOne().implies(Local())
    (True, False, False)
    >>> Local("trajectory").implies(Local()), Local().implies(Local("trajectory"))
    (True, False)
    >>> Local(user="patient").implies(ReplaceOne(5, user="patient")), Local(user="patient").implies(Local())
    (True, True)
    """

    of: str = "location"
    user: str | None = field(default=None, kw_only=True)
    name: ClassVar[str] = "local"

    def __post_init__(self) -> None:
        one_of("of", self.of, (LOCATION, TRAJECTORY))
        if require_mark(self.user) is not None and self.of == TRAJECTORY:
            msg = "user: a trajectory holds all points of a person; leave user out."
            raise InputError(msg)

    def implies(self, other: Relation) -> bool:
        # Compared as relations only: arrays do not compare to one truth.
        known = isinstance(other, Relation)
        return known and (super().implies(other) or other == Local() or ReplaceOne(user=self.user).implies(other))

    def describe(self) -> str:
        if self.of == TRAJECTORY:
            return (
                "one person has another trajectory, of any length and anywhere, and everybody else's reports stay as "
                "they are; the number of persons who report is public"
            )
        others = "everybody else's reports stay as they are; the number of reports is public"
        if self.user is None:
            return f"one person has another location, anywhere, and {others}"
        return (
            f"one person has other points, as many as may be and anywhere (those with one value of the mark "
            f"{self.user!r}), and {others}"
        )

    def to_dict(self) -> dict[str, Any]:
        # Of locations the name says it all.
        return {name: value for name, value in super().to_dict().items() if value != LOCATION or name != "of"}


@dataclass(frozen=True)
class GeoIndistinguishability(ReportRelation):
    """Local privacy with a bound for adjacent cells of a public grid that grows with the distance of cells.

    Attributes
    ----------
    cells : int
        Cells along each side of the grid. Cells whose centres are d sides apart, in a straight line, are told apart by
        at most d times epsilon.
    user : str, optional
        Mark that tells persons: each reports one of their points, drawn at random, and all of them may move so far.

    Examples
    --------
    >>> GeoIndistinguishability(8, user="patient").implies(GeoIndistinguishability(8))
    True
    """

    cells: int = 1
    user: str | None = field(default=None, kw_only=True)
    name: ClassVar[str] = "geo-indistinguishability"

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", whole("cells", self.cells, 1))
        require_mark(self.user)

    def implies(self, other: Relation) -> bool:
        return isinstance(other, Relation) and other in (self, replace(self, user=None))

    def describe(self) -> str:
        n = self.cells
        who, each, count = "one person's location moves", "", "the number of reports is"
        if self.user is not None:
            who = f"all points of one person, however many (those with one value of the mark {self.user!r}), move"
            each, count = " each", "the number of points of every person is"
        return (
            f"{who}{each} by one cell of a public grid of {n} by {n} cells (by d cells, in a straight line: d times "
            f"the epsilon stated), and everybody else's reports stay as they are; {count} public"
        )


def as_relation(relation: CappedRelation | float) -> CappedRelation:
    """The relation itself, or `AlphaNeighbours` where a privacy radius is given."""
    return relation if isinstance(relation, CappedRelation) else AlphaNeighbours(relation)


RELATIONS: dict[Any, type[Relation]] = {
    each.name: each
    for each in (AlphaNeighbours, ReplaceOne, AddRemove, AddRemovePerson, Local, GeoIndistinguishability)
}
NEEDED = {AlphaNeighbours.name: "alpha", AddRemovePerson.name: "user", GeoIndistinguishability.name: "cells"}


def relation_from_dict(data: Mapping[str, Any]) -> Relation:
    """Relation from its JSON form; InputError for a name this version does not know."""
    data = entries("relation", data)
    name = data.get("name")
    if isinstance(name, str) and name in RELATIONS and NEEDED.get(name, "name") in data:
        return RELATIONS[name](**{each.name: data[each.name] for each in fields(RELATIONS[name]) if each.name in data})
    msg = (
        f"relation: {shown(name)} is not known; expected 'alpha-neighbours' with alpha, 'replace-one', 'add-remove', "
        "'add-remove-person' with user, 'local' or 'geo-indistinguishability' with cells."
    )
    raise InputError(msg)
