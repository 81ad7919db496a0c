"""The parts of a data set that releases read, and their public numbers of points.

Under a relation with a public n, a part that is chosen by where points lie has another n as soon as one of them moves
across its border. Only what neighbouring patterns share may choose it: the domain, and values of marks.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

from dpppsynth.core.arguments import shown, whole, writable
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention
from dpppsynth.privacy.relations import Relation

SHAPE = (
    "needs a dictionary with one value, a text without control characters or a whole number, for each mark, such as "
    "{'year': 2021}"
)
BY_LEVEL = (
    "needs the mark, its levels and their numbers of points (None where not known yet), such as "
    "{'year': {2021: 120, 2022: 80}}"
)
# Names of marks, sorted, each with one value.
Values = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Reading:
    """All points of a domain, or those of one value of a mark, and their public number.

    Attributes
    ----------
    n : int or None
        None as long as it is not known.
    count_unit : str or None
        Mark that tells what n counts, such as trajectories; None counts points.
    subset : tuple of (str, str)
        Names of marks, sorted, and the value that all these points have; empty for all points of the domain.
    by : str or None
        Mark of which each level is released by itself.
    levels : tuple of (str, int or None)
        All levels of this mark among these points, sorted, and how many points each has, where that is known.
    """

    n: int | None = None
    count_unit: str | None = None
    subset: Values = ()
    by: str | None = None
    levels: tuple[tuple[str, int | None], ...] = ()

    def __post_init__(self) -> None:
        if self.by is None:
            return
        if self.by in dict(self.subset) or self.count_unit is not None:
            msg = (
                f"levels: points are counted, and by another mark than that of {mention('subset')}; got "
                f"{shown(self.by)}."
            )
            raise InputError(msg)
        if self.complete and self.n != (total := sum(number or 0 for _, number in self.levels)):
            msg = f"levels: they have {total} points together, and n = {self.n} is the number of all of them."
            raise InputError(msg)

    @property
    def complete(self) -> bool:
        """Whether the numbers of all levels are known."""
        return self.by is not None and all(number is not None for _, number in self.levels)

    @property
    def by_level(self) -> dict[str, dict[str, int | None]]:
        """The mark, its levels and their numbers; empty unless levels are released."""
        return {} if self.by is None else {self.by: dict(self.levels)}

    def numbers(self) -> Iterator[tuple[Values, int | None]]:
        """Counted parts and their numbers of points: those of the release, then those of its levels."""
        yield self.subset, self.n
        for level, number in self.levels:
            yield tuple(sorted((*self.subset, (str(self.by), level)))), number

    def lacks(self, values: Values) -> bool:
        """Whether these levels omit some values of marks, which no point then has."""
        level = dict(values).get(str(self.by))
        return self.by is not None and {*self.subset} <= {*values} and level not in (None, *dict(self.levels))

    def without_numbers(self) -> "Reading":
        """The same reading before any points were counted."""
        return replace(self, n=None, levels=tuple((level, None) for level, _ in self.levels))

    def differs(self, later: "Reading") -> str | None:
        """The first of subset, n and levels that is not as `later` tells it, who may know more; None otherwise."""
        if self.subset != later.subset:
            return "subset"
        if None not in (self.n, later.n) and (self.n, self.count_unit) != (later.n, later.count_unit):
            return "n"
        mine, other = dict(self.levels), dict(later.levels)
        same = all(None in (mine[level], other[level]) or mine[level] == other[level] for level in mine.keys() & other)
        return None if self.by is None or (self.by == later.by and mine.keys() == other.keys() and same) else "levels"

    @property
    def marks(self) -> frozenset[str]:
        """Marks without which n would not be what it is: neighbouring patterns must share them."""
        return frozenset([*dict(self.subset), *filter(None, (self.count_unit, self.by))])

    def describe(self) -> str:
        """The points in words."""
        return described(self.subset)

    def to_dict(self) -> dict[str, Any]:
        """JSON form, inverse of `reading_from_dict`."""
        subset = dict(self.subset)
        return {"n": self.n, "count_unit": self.count_unit, "subset": subset, "levels": self.by_level}


def described(values: Values) -> str:
    """Points with some values of marks, in words."""
    chosen = " and ".join(f"{mark} = {value}" for mark, value in values)
    return f"the points with {chosen}" if chosen else "all points"


def reading_from_dict(data: Mapping[str, Any]) -> Reading:
    """Reading from its JSON form."""
    n = None if data["n"] is None else whole("n", data["n"], 1)
    subset = _chosen(data["subset"]) if data["subset"] else ()
    return Reading(n, data["count_unit"], subset, *_levels(data["levels"] or None))


def reading(relation: Relation, n: Any, count_unit: Any, subset: Any, levels: Any) -> Reading | None:
    """The points that a release reads under a ledger's relation; None where their number is secret.

    Raises
    ------
    InputError
        When n is no number or secret, `subset` names no value of a mark, or `levels` no numbers of its levels.
    """
    if relation.n_is_public:
        by, counts = _levels(levels)
        if n is None and counts and None not in dict(counts).values():
            n = sum(number or 0 for _, number in counts)
        number = None if n is None else _number("n", n)
        if count_unit is not None and (not isinstance(count_unit, str) or not count_unit):
            msg = f"count_unit: needs the name of the mark that tells what n counts, got {shown(count_unit)}."
            raise InputError(msg)
        return Reading(number, count_unit, () if subset is None else _chosen(subset), by, counts)
    for name, given in (("n", n), ("levels", levels)):
        if given is not None:
            what = "it is" if name == "n" else "their numbers are"
            msg = f"{name}: {what} secret under the ledger's relation, {relation.name}; leave {mention(name)} out."
            raise InputError(msg)
    if subset is not None:
        msg = (
            f"subset: the number of points is secret under the ledger's relation, {relation.name}, which protects "
            f"every part of the points that a rule picks by looking at each of them alone; leave {mention('subset')} "
            "out."
        )
        raise InputError(msg)
    return None


def _chosen(subset: Any) -> tuple[tuple[str, str], ...]:
    """Marks and their values, sorted; levels of a mark are texts, as on certificates."""
    items = list(subset.items()) if isinstance(subset, Mapping) else []
    fit = all(_word(mark) and _named(value) for mark, value in items)
    if not items and subset == {}:
        msg = f"subset: it {SHAPE}; leave it out for a release of all points."
        raise InputError(msg)
    if not items or not fit:
        msg = f"subset: {SHAPE}, got {shown(subset)}."
        raise InputError(msg)
    return tuple(sorted((mark, str(value)) for mark, value in items))


def _levels(given: Any) -> tuple[str | None, tuple[tuple[str, int | None], ...]]:
    """A mark and the numbers of its levels."""
    if given is None:
        return None, ()
    (by, counts), *more = given.items() if isinstance(given, Mapping) and given else [(None, None)]
    if more or not _word(by) or not isinstance(counts, Mapping) or not counts or not all(map(_named, counts)):
        msg = f"levels: {BY_LEVEL}, got {shown(given)}."
        raise InputError(msg)
    found = {str(level): None if number is None else _number("levels", number) for level, number in counts.items()}
    if len(found) < len(counts):
        msg = f"levels: each of them once, got {shown(given)}."
        raise InputError(msg)
    return by, tuple(sorted(found.items()))


def _number(name: str, given: Any) -> int:
    return whole(name, given, 1, most=2**53, remedy="the public number of points")


def _named(value: Any) -> bool:
    """Whether it is a value of a mark."""
    return _word(value) or _whole(value)


def _word(value: Any) -> bool:
    return isinstance(value, str) and value != "" and writable(value)


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def contradiction(now: Reading, before: Reading) -> str | None:
    """The number stated by `before` that `now` makes impossible, in words; None where both can be true.

    Parts have at most as many points as the whole, and a level that a release of all levels does not have, none.
    """
    if now.count_unit != before.count_unit:
        return None
    for values, number in before.numbers():
        if number is None:
            continue
        least, most = _bounds(now, values)
        if not least <= number <= most:
            other = "another" if least == most else "more of them" if number < least else "fewer"
            return f"{described(values)} of this domain have n = {number}, and this one {other}"
    lacking = next((values for values, _ in now.numbers() if before.lacks(values)), None)
    return None if lacking is None else f"{described(lacking)} of this domain have n = 0, and this one another"


def _bounds(reading: Reading, values: Values) -> tuple[int, float]:
    """Lower and upper bound on the number of points with some values of marks, by what a release tells."""
    if reading.lacks(values):
        return 0, 0
    told, wanted = [({*points}, number) for points, number in reading.numbers()], {*values}
    # A level whose number is not known yet has a point at least.
    least = [1 if number is None else number for points, number in told if points >= wanted]
    most = [number for points, number in told if points <= wanted and number is not None]
    return max(least, default=0), min(most, default=math.inf)
