"""Which points a release reads, and their public number: releases of different parts would tell points apart.

Under a relation with a public n, a part that is chosen by where points lie has another n as soon as one of them moves
across its border. Only what neighbouring patterns share may choose it: the domain, and values of marks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from dpppsynth.arguments import shown, whole, writable
from dpppsynth.errors import InputError
from dpppsynth.privacy.relations import Relation

SHAPE = (
    "needs a dictionary with one value, a text without control characters or a whole number, for each mark, such as "
    "{'year': 2021}"
)


@dataclass(frozen=True)
class Reading:
    """All points of a domain, or those of one value of a mark, and their public number.

    Attributes
    ----------
    n : int or None
        None as long as it is not known.
    counted_by : str or None
        Mark that tells what n counts, such as trajectories; None counts points.
    subset : tuple of (str, str)
        Names of marks, sorted, and the value that all these points have; empty for all points of the domain.
    """

    n: int | None = None
    counted_by: str | None = None
    subset: tuple[tuple[str, str], ...] = ()

    def counts_as(self, other: "Reading | None") -> bool:
        """Whether both read the same points of a domain, so that they have one number."""
        return other is not None and (self.counted_by, self.subset) == (other.counted_by, other.subset)

    @property
    def marks(self) -> frozenset[str]:
        """Marks without which n would not be what it is: neighbouring patterns must share them."""
        return frozenset(mark for mark, _ in self.subset) | ({self.counted_by} if self.counted_by else frozenset())

    def describe(self) -> str:
        """The points in words."""
        chosen = " and ".join(f"{mark} = {value}" for mark, value in self.subset)
        return f"the points with {chosen}" if chosen else "all points"

    def to_dict(self) -> dict[str, Any]:
        """JSON form, inverse of `reading_from_dict`."""
        return {"n": self.n, "counted_by": self.counted_by, "subset": dict(self.subset)}


def reading_from_dict(data: Mapping[str, Any]) -> Reading:
    """Reading from its JSON form."""
    n = None if data["n"] is None else whole("n", data["n"], 1)
    return Reading(n, data["counted_by"], _chosen(data["subset"]) if data["subset"] else ())


def reading(relation: Relation, n: Any, counted_by: Any, subset: Any) -> Reading | None:
    """What a release under a ledger's relation says about the points it reads; None where their number is secret.

    Raises
    ------
    InputError
        When n is no number or secret, or `subset` names no value of a mark.
    """
    if relation.n_is_public:
        number = None if n is None else whole("n", n, 1, most=2**53, remedy="the public number of points")
        if counted_by is not None and (not isinstance(counted_by, str) or not counted_by):
            msg = f"counted_by: needs the name of the mark that tells what n counts, got {shown(counted_by)}."
            raise InputError(msg)
        return Reading(number, counted_by, () if subset is None else _chosen(subset))
    if n is not None:
        msg = f"n: it is secret under the ledger's relation, {relation.name}; leave it out."
        raise InputError(msg)
    if subset is not None:
        msg = (
            f"subset: the number of points is secret under the ledger's relation, {relation.name}, which protects "
            "every part of the points that a rule picks by looking at each of them alone; leave subset= out."
        )
        raise InputError(msg)
    return None


def _chosen(subset: Any) -> tuple[tuple[str, str], ...]:
    """Marks and their values, sorted; levels of a mark are texts, as on certificates."""
    items = list(subset.items()) if isinstance(subset, Mapping) else []
    fit = all(_word(mark) and (_word(value) or _whole(value)) for mark, value in items)
    if not items and subset == {}:
        msg = f"subset: it {SHAPE}; leave it out for a release of all points."
        raise InputError(msg)
    if not items or not fit:
        msg = f"subset: {SHAPE}, got {shown(subset)}."
        raise InputError(msg)
    return tuple(sorted((mark, str(value)) for mark, value in items))


def _word(value: Any) -> bool:
    return isinstance(value, str) and value != "" and writable(value)


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
