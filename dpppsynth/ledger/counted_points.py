"""The parts of a data set that releases read, and their public numbers of points.

Under a relation with a public n, a part that is chosen by where points lie has another n as soon as one of them moves
across its border. Only what neighbouring patterns share may choose it: the domain, and values of marks.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Integral
from typing import Any

from dpppsynth.core.arguments import shown, whole, writable
from dpppsynth.core.errors import InputError
from dpppsynth.core.wording import mention
from dpppsynth.privacy.relations import Relation

# Names of marks, sorted, each with one value.
Values = tuple[tuple[str, str], ...]
Counts = tuple[tuple[str, int | None], ...]


@dataclass(frozen=True)
class CountedPoints:
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
    levels: Counts = ()

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

    def numbers(self) -> Iterator[tuple[Values, int | None]]:
        """Counted parts and their numbers of points: those of the release, then those of its levels."""
        yield self.subset, self.n
        for level, number in self.levels:
            yield tuple(sorted((*self.subset, (str(self.by), level)))), number

    def lacks(self, values: Values) -> bool:
        """Whether these levels omit some values of marks, which no point then has."""
        level = dict(values).get(str(self.by))
        return self.by is not None and {*self.subset} <= {*values} and level not in (None, *dict(self.levels))

    def without_numbers(self) -> "CountedPoints":
        """The same points before any were counted."""
        return replace(self, n=None, levels=tuple((level, None) for level, _ in self.levels))

    def difference(self, later: "CountedPoints") -> str | None:
        """The first of subset, n and levels that differs from `later`, which may know more; None otherwise."""
        if self.subset != later.subset:
            return "subset"
        if None not in (self.n, later.n) and (self.n, self.count_unit) != (later.n, later.count_unit):
            return "n"
        mine, other = dict(self.levels), dict(later.levels)
        same = all(None in (mine[level], other[level]) or mine[level] == other[level] for level in mine.keys() & other)
        return None if self.by is None or (self.by == later.by and mine.keys() == other.keys() and same) else "levels"

    @property
    def marks(self) -> frozenset[str]:
        """Marks whose values n depends on: neighbouring patterns must share them."""
        return frozenset([*dict(self.subset), *filter(None, (self.count_unit, self.by))])

    def to_dict(self) -> dict[str, Any]:
        """JSON form: the arguments of `counted_points`."""
        levels = None if self.by is None else {self.by: dict(self.levels)}
        return {"n": self.n, "count_unit": self.count_unit, "subset": dict(self.subset) or None, "levels": levels}


def points_json(points: CountedPoints | None) -> dict[str, Any] | None:
    """JSON form of the points that a release reads; None where their number is secret."""
    return None if points is None else points.to_dict()


def described(values: Values) -> str:
    """Points with some values of marks, in words."""
    chosen = " and ".join(f"{mark} = {value}" for mark, value in values)
    return f"the points with {chosen}" if chosen else "all points"


def counted_points(relation: Relation, n: Any, count_unit: Any, subset: Any, levels: Any) -> CountedPoints | None:
    """The points that a release reads under a ledger's relation; None where their number is secret."""
    if not relation.n_is_public:
        for name, value in (("n", n), ("subset", subset), ("levels", levels)):
            if value is not None:
                msg = (
                    f"{name}: the number of points is secret under the ledger's relation, {relation.name}, which "
                    f"protects all that a rule picks by looking at each point alone; leave {mention(name)} out."
                )
                raise InputError(msg)
        return None
    by, counts = (None, ()) if levels is None else _levels(levels)
    if n is None and counts and None not in dict(counts).values():
        n = sum(number or 0 for _, number in counts)
    if count_unit is not None and not _is_text(count_unit):
        msg = f"count_unit: needs the name of the mark that tells what n counts, got {shown(count_unit)}."
        raise InputError(msg)
    chosen = () if subset is None else _subset(subset)
    return CountedPoints(None if n is None else _number("n", n), count_unit, chosen, by, counts)


def _subset(given: Any) -> Values:
    """Marks and their values, sorted; levels of a mark are texts, as on certificates."""
    if not isinstance(given, Mapping) or not given or not all(map(_is_text, given)) or not _all_values(given.values()):
        msg = (
            "subset: needs a dictionary with one value, a text without control characters or a whole number, for each "
            f"mark, such as {{'year': 2021}}; leave it out for all points, got {shown(given)}."
        )
        raise InputError(msg)
    return tuple(sorted((mark, str(value)) for mark, value in given.items()))


def _levels(given: Any) -> tuple[str, Counts]:
    """A mark and the numbers of its levels."""
    by, counts = next(iter(given.items())) if isinstance(given, Mapping) and len(given) == 1 else ("", {})
    fit = _is_text(by) and isinstance(counts, Mapping) and len(counts) > 0 and _all_values(counts)
    if not fit or len({*map(str, counts)}) < len(counts):
        msg = (
            "levels: needs the mark, each of its levels once, and their numbers of points (None where not known yet), "
            f"such as {{'year': {{2021: 120, 2022: 80}}}}, got {shown(given)}."
        )
        raise InputError(msg)
    found = {str(level): None if number is None else _number("levels", number) for level, number in counts.items()}
    return str(by), tuple(sorted(found.items()))


def _number(name: str, given: Any) -> int:
    return whole(name, given, 1, most=2**53, remedy="the public number of points")


def _all_values(values: Any) -> bool:
    """Whether all are values of a mark: texts or whole numbers."""
    return all(_is_text(each) or (isinstance(each, Integral) and not isinstance(each, bool)) for each in values)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != "" and writable(value)


@lru_cache(maxsize=10_000)
def contradiction(now: CountedPoints, before: CountedPoints) -> str | None:
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


def _bounds(points: CountedPoints, values: Values) -> tuple[int, float]:
    """Lower and upper bound on the number of points with some values of marks."""
    if points.lacks(values):
        return 0, 0
    parts, wanted = [({*part}, number) for part, number in points.numbers()], {*values}
    # A level whose number is not known yet has a point at least.
    least = [1 if number is None else number for part, number in parts if part >= wanted]
    most = [number for part, number in parts if part <= wanted and number is not None]
    return max(least, default=0), min(most, default=math.inf)
