"""`Partial`: exact sum over some of the points, before noise is added to the sum over all of them."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dpppsynth.core.arguments import instance
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Confidential
from dpppsynth.spatial.mesh import Ints
from dpppsynth.spatial.patterns import PointPattern

Kind = TypeVar("Kind")
# Points of one release: sums of so many, each of at most 34 binary digits, have room in 64 bits beside their noise.
MOST = 2**28


@dataclass(frozen=True, eq=False, repr=False)
class Partial(Confidential):
    """Exact numbers of some points, as sensitive as these: `ReleasePlan.finish` alone adds the noise.

    Sums of whole numbers are exact, so that nothing which decides who counts what (batches, processes, machines) shows
    in the total. It can be sent between processes of the custodian, and is never saved.

    Attributes
    ----------
    numbers : (k,) array of int
        In lattice units of the plan.
    n : int
        Number of points.
    plan : str
        Fingerprint of the plan, whose partial sums alone may be added to it.
    refusal : InputError or None
        Reason why the values of some of the points cannot be measured. Then there are no numbers.
    snap : float or None
        Public tolerance within which points were moved onto the domain, the largest of them.
    runs : frozenset of str
        A random name of every sum that is part of it: none counts twice.
    """

    numbers: Ints
    n: int
    plan: str
    refusal: InputError | None = None
    snap: float | None = None
    runs: frozenset[str] = field(default_factory=lambda: frozenset({secrets.token_hex(16)}))

    def __repr__(self) -> str:
        return "Partial(confidential)"

    def __add__(self, other: Any) -> Partial:
        if not isinstance(other, Partial):
            return NotImplemented
        if other.plan != self.plan:
            msg = "partials: they are of different plans; make all of them with the plan that finishes them."
            raise InputError(msg)
        if not self.runs.isdisjoint(other.runs):
            msg = "partials: one of them is part of another, and its points would count twice; add each up once."
            raise InputError(msg)
        if self.n + other.n > MOST:
            msg = f"partials: at most {MOST:,} points can be added up; release parts of the domain by themselves."
            raise InputError(msg)
        refusal, runs = self.refusal or other.refusal, self.runs | other.runs
        numbers = self.numbers[:0] if refusal else self.numbers + other.numbers
        snap = max((each.snap for each in (self, other) if each.snap is not None), default=None)
        return Partial(numbers, self.n + other.n, self.plan, refusal, snap, runs)

    @property
    def exact(self) -> Ints:
        """(k,) the numbers; InputError where the values of some of the points cannot be measured."""
        if self.refusal is not None:
            raise self.refusal
        return self.numbers


def total(partials: Iterable[Partial]) -> Partial:
    """Sum of partial sums, which are taken one after the other; InputError without any."""
    found: Partial | None = None
    for each in each_of("partials", partials, Partial):
        found = each if found is None else found + each
    if found is None:
        msg = "partials: there is none; a release needs at least one point."
        raise InputError(msg)
    return found


def require_whole(found: Partial, plan: str, n: int | None) -> None:
    """Refuse a sum of another plan, or of a number of points other than the public n, with an InputError."""
    if found.plan != plan:
        msg = "partials: they are of another plan; finish them with the plan that made them."
        raise InputError(msg)
    if n is not None and found.n != n:
        msg = "n: the release was planned for another number of points; plan with that of all partial sums together."
        raise InputError(msg)


def batches_of(points: PointPattern | Iterable[PointPattern]) -> Iterator[PointPattern]:
    """Patterns one by one; a single pattern is one batch."""
    return each_of("points", (points,) if isinstance(points, PointPattern) else points, PointPattern)


def each_of(argument: str, values: Iterable[Kind], kind: type[Kind]) -> Iterator[Kind]:
    """Values one by one, all required to be of one kind."""
    if not isinstance(values, Iterable):
        msg = f"{argument}: must be of {kind.__name__}s one after the other; got {type(values).__name__}"
        raise InputError(msg)
    for value in values:
        instance(argument, value, kind)
        yield value
