"""Public description of the marks of points: their types, a finite list, and times, on a line or around a clock."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import elements, finite, flag, instance, one_of, real_array, shown, whole, writable
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.core.types import Floats, Ints, JsonObject, JsonRead
from dpppsynth.spatial.marks import (
    CLOCK_DATES,
    STEPS,
    clock_change,
    days_between,
    is_number,
    later_days,
    stepped_days,
    words,
    zone_of,
)

# Columns that files of points need for themselves.
TAKEN = ("x", "y", "geometry", "edge", "offset")
MOST_TYPES, MOST_HATS = 1000, 10_000
# Times are told apart to this share of a hat's width at least; coarser numbers would make hats of rounding.
RESOLUTION = 2.0**-30
HOURS_OF_DAY, HOURS_OF_WEEK = 24.0, 168.0
# How dates may stand in files.
FORMS = ("iso", "dmy", "mdy", "month", "excel")


@dataclass(frozen=True)
class Types:
    """Public list of the types that points may have.

    Parameters
    ----------
    name : str
        Of the mark, as in a column of a file.
    values : sequence of str
        All types, chosen without looking at the points; at least two. Whole numbers are taken as their texts.
    edges : sequence of float
        Of bins, one more than there are types; none where types are no bins of numbers. See `bins`.

    Examples
    --------
    >>> Types("offence", ["burglary", "theft"]).indices(["theft", "burglary", "theft"])
    array([1, 0, 1])
    """

    name: str
    values: tuple[str, ...]
    edges: tuple[float, ...] = ()

    def __init__(self, name: str, values: Any, edges: Any = ()) -> None:
        found = elements(values)
        if isinstance(values, str) or found is None or not 2 <= len(found) <= MOST_TYPES:
            msg = f"types: needs 2 to {MOST_TYPES} values, such as ['burglary', 'theft'], got {shown(values)}."
            raise InputError(msg)
        texts = tuple(words(found).tolist())
        for text in texts:
            if not text or not writable(text):
                msg = f"types: every value must be a text that can be written, got {shown(text)}."
                raise InputError(msg)
        if len(set(texts)) < len(texts):
            msg = "types: values must differ from each other; leave out repeated ones."
            raise InputError(msg)
        object.__setattr__(self, "name", mark_name("types", name))
        object.__setattr__(self, "values", texts)
        object.__setattr__(self, "edges", bin_edges(edges, texts))

    @classmethod
    def bins(cls, name: str, edges: Any, labels: Any = None) -> Self:
        """Bins of numbers as types: half open, and the last one closed.

        Numbers are rounded to their bin: what lies within is lost, and `numbers` spreads synthetic ones evenly over it.

        Parameters
        ----------
        name : str
        edges : sequence of float
            Ascending, chosen without looking at the points.
        labels : sequence of str, optional
            One for each bin, none of them a number; unless given, such as "18 to <40".

        Examples
        --------
        >>> Types.bins("age", [0, 18, 65, 120]).values
        ('0 to <18', '18 to <65', '65 to 120')
        """
        ends = real_array(edges)
        if ends is None or ends.ndim != 1 or len(ends) < 3:
            msg = f"edges: needs three numbers or more, such as [0, 18, 40, 65, 120], got {shown(edges)}."
            raise InputError(msg)
        if labels is None:
            pairs = list(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))
            labels = [f"{low:g} to <{high:g}" for low, high in pairs[:-1]] + [f"{pairs[-1][0]:g} to {pairs[-1][1]:g}"]
        return cls(name, labels, ends.tolist())

    def numbers(self, column: Any, rng: RngLike = None) -> Floats:
        """(n,) numbers of points with these types, uniform in their bins: a public rule, at no privacy cost."""
        if not self.edges:
            msg = f"{self.name}: its types are no bins of numbers; Types.bins makes such."
            raise InputError(msg)
        kinds, ends = self.indices(column), np.array(self.edges)
        return np.asarray(generator(rng).uniform(ends[kinds], ends[kinds + 1]))

    def indices(self, column: Any) -> Ints:
        """(n,) number of each point's type in the list; numbers have the number of the bin in which they lie.

        Raises
        ------
        InputError
            When a point has a type that is not in the list; the message does not say which.
        """
        found = self.places(column)
        if (found < 0).any():
            msg = f"{self.name}: a point has a type that is not in the public list; complete the list, or leave it out."
            raise InputError(msg)
        return found

    def places(self, column: Any) -> Ints:
        """(n,) number of each value's type in the list, -1 where there is none."""
        given = np.asarray(column)
        if self.edges and given.dtype.kind in "iuf":
            ends = np.array(self.edges)
            inside = (given >= ends[0]) & (given <= ends[-1])
            return np.where(inside, np.clip(np.searchsorted(ends, given, "right") - 1, 0, len(ends) - 2), -1)
        place = {value: k for k, value in enumerate(self.values)}
        return np.array([place.get(value, -1) for value in words(column).tolist()], dtype=np.int64)

    def to_dict(self) -> JsonObject:
        """JSON form."""
        return {"name": self.name, "values": list(self.values)} | ({"edges": list(self.edges)} if self.edges else {})


@dataclass(frozen=True)
class Times:
    """Public range of the times that points may have, with hat functions on it.

    Parameters
    ----------
    name : str
        Of the mark, as in a column of a file.
    start, end : float
        In the unit; around a clock the end is the start again.
    hats : int
        Number of hat functions: one for each of so many even instants, linear in between.
    periodic : bool
        Whether the range is a clock.
    unit : str
    origin : str
        Date or instant, such as "2019-01-01", from which days are counted; none where times are plain numbers.
    zone : str
        Time zone of the clock or of the dates, such as "Europe/London": instants with an offset are taken there. Those
        without are local time as they stand.
    clock_change : float, optional
        Largest difference of the zone's offsets in the range, in the unit: so much more than the time that passed may
        pass on the clock. Follows from the zone unless given; at least that. Without a zone, 0 unless given.
    form : {"iso", "dmy", "mdy", "month", "excel"}
        How dates stand in files that are read: 2024-12-31, which is always understood; 31.12.2024 or 31/12/2024; the
        American 12/31/2024; 2024-12, for its middle; or the number 45657.

    Examples
    --------
    >>> Times.day("hour", zone="Europe/London").clock_change
    1.0
    >>> Times.day("hour", hats=4).nodes
    array([ 0.,  6., 12., 18.])
    >>> Times("year", 2010, 2020, hats=6, unit="years").nodes
    array([2010., 2012., 2014., 2016., 2018., 2020.])
    """

    name: str
    start: float
    end: float
    hats: int
    periodic: bool = False
    unit: str = ""
    origin: str = ""
    zone: str = ""
    clock_change: float | None = None
    form: str = "iso"
    FEWEST: ClassVar[int] = 3

    def __post_init__(self) -> None:
        mark_name("time", self.name)
        start, end = (
            float(finite(f"time {word}", value)) for word, value in (("start", self.start), ("end", self.end))
        )
        if not start < end:
            msg = f"time: its start must come before its end, got {start:g} and {end:g}."
            raise InputError(msg)
        whole("hats", self.hats, self.FEWEST, most=MOST_HATS)
        flag("periodic", self.periodic)
        if not writable(instance("unit", self.unit, str)):
            msg = f"unit: must be a text that can be written, got {shown(self.unit)}."
            raise InputError(msg)
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "end", end)
        if instance("zone", self.zone, str):
            zone_of(self.zone)
        if instance("origin", self.origin, str):
            days_between(self.origin, self.origin)
        self._require_form()
        object.__setattr__(self, "clock_change", self._clock_change())
        if max(abs(start), abs(end)) * np.finfo(float).eps > self.spacing * RESOLUTION:
            msg = (
                "time: its range is too narrow for numbers of that size; count from a later start, or take fewer hats."
            )
            raise InputError(msg)

    def _require_form(self) -> None:
        one_of("form", self.form, FORMS)
        if self.form != "iso" and not (self.origin or self.periodic):
            msg = "form: goes with a clock or with dates; leave it out."
            raise InputError(msg)
        ends = later_days(self.origin, np.array([self.start, self.end])) if self.origin else ["a clock"]
        if self.form == "month" and not all(each.endswith("-01T00:00:00") for each in ends):
            msg = "form: months need a range of whole months, such as from 2023-01-01 to 2024-01-01."
            raise InputError(msg)

    def _clock_change(self) -> float:
        if self.zone and not (self.origin or self.periodic):
            msg = "zone: goes with a clock or with dates; leave it out."
            raise InputError(msg)
        dates = (self.origin, str(later_days(self.origin, np.array([self.end]))[0])) if self.origin else CLOCK_DATES
        hours = clock_change(self.zone, *dates) if self.zone else 0.0
        least = hours / HOURS_OF_DAY if self.origin else hours
        if self.clock_change is None:
            return least
        stated = float(finite("clock_change", self.clock_change))
        if stated < least:
            msg = (
                f"clock_change: the offset of {self.zone} differs by {least:g} {self.unit} in the range; leave it out."
            )
            raise InputError(msg)
        return stated

    @classmethod
    def day(cls, name: str, hats: int = 8, *, zone: str = "", form: str = "iso") -> Self:
        """Hour of the day, from 0 to 24."""
        return cls(name, 0.0, HOURS_OF_DAY, hats, periodic=True, unit="hours", zone=zone, form=form)

    @classmethod
    def week(cls, name: str, hats: int = 14, *, zone: str = "", form: str = "iso") -> Self:
        """Hour of the week, from 0 on Monday to 168."""
        return cls(name, 0.0, HOURS_OF_WEEK, hats, periodic=True, unit="hours", zone=zone, form=form)

    @classmethod
    def between(cls, name: str, start: str, end: str, hats: int = 8, *, zone: str = "", form: str = "iso") -> Self:
        """Days since a date, up to another one; `dates` tells which date a number is.

        Parameters
        ----------
        name : str
        start, end : str
            ISO dates or local instants, such as "2019-01-01"; times may lie at both.
        hats : int
        zone, form : str

        Examples
        --------
        >>> years = Times.between("when", "2019-01-01", "2024-01-01", hats=6)
        >>> years.end, years.dates([365.5]).tolist()
        (1826.0, ['2020-01-01'])
        """
        return cls(name, 0.0, days_between(start, end), hats, unit="days", origin=start, zone=zone, form=form)

    def dates(self, times: Any) -> npt.NDArray[np.str_]:
        """(n,) ISO dates of numbers of days since the origin, as fine as `step`."""
        if not self.origin:
            msg = f"{self.name}: its times are not counted from a date; Times.between makes such."
            raise InputError(msg)
        return later_days(self.origin, self._inside(self.require(times)), self.step)

    @property
    def step(self) -> str:
        """Finest part of dates that are written: "month", "day", "hour" or "minute", no finer than the hats are apart.

        Hats tell nothing of what is finer. A range that begins within a day has hours or minutes.
        """
        if self.form == "month":
            return "month"
        begun = (step for step in ("day", "hour") if stepped_days(self.origin, np.zeros(1), step)[0] == 0)
        return next((step for step in begun if STEPS[step][1] <= self.spacing), "minute")

    def settled(self, times: Floats) -> Floats:
        """(n,) times without digits of which the hats tell nothing: dates of `step`, other numbers in powers of ten."""
        if self.origin:
            return stepped_days(self.origin, self._inside(times), self.step)
        digits = -int(np.floor(np.log10(self.spacing / 10)))
        return np.clip(np.round(times, digits), self.start, self.end)

    def _inside(self, times: Floats) -> Floats:
        """Times in the last month where they are at its end, which is the first of the next."""
        return np.minimum(times, self.end - 0.5) if self.form == "month" else times

    @property
    def length(self) -> float:
        """Length of the range."""
        return self.end - self.start

    @property
    def spacing(self) -> float:
        """Distance of one instant with a hat to the next."""
        return self.length / self.whiles

    @property
    def whiles(self) -> int:
        """Number of whiles between one instant with a hat and the next."""
        return self.hats if self.periodic else self.hats - 1

    @property
    def slope(self) -> float:
        """L1 Lipschitz constant of the hats, per unit of time."""
        return 2 / self.spacing

    @property
    def farthest(self) -> float:
        """Largest distance of two times."""
        return self.length / 2 if self.periodic else self.length

    @cached_property
    def nodes(self) -> Floats:
        """(K,) instants at which each hat is one."""
        return np.asarray(self.start + self.spacing * np.arange(self.hats), dtype=np.float64)

    @cached_property
    def measure(self) -> Floats:
        """(K,) integrals of the hats."""
        found = np.full(self.hats, self.spacing)
        if not self.periodic:
            found[[0, -1]] /= 2
        return found

    def require(self, column: Any) -> Floats:
        """(n,) times as numbers.

        Raises
        ------
        InputError
            When one is no number, or lies outside the range; the message does not say which.
        """
        try:
            times = np.asarray(column, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            times = np.array([np.nan])
        if times.ndim != 1 or not np.isfinite(times).all():
            msg = f"{self.name}: every point needs a time, a finite number; repair or leave out the others."
            raise InputError(msg)
        # The end of a clock is its start; rounded hours may say either.
        if not ((times >= self.start) & (times <= self.end)).all():
            msg = (
                f"{self.name}: every time must lie between {self.start:g} and {self.end:g}; widen the public range, or "
                "leave these points out."
            )
            raise InputError(msg)
        return times

    def values(self, times: Floats) -> tuple[Ints, Floats]:
        """(n, 2) numbers of the two hats about each time, and their values (n, 2)."""
        at = (times - self.start) / self.spacing
        cell = np.clip(np.floor(at).astype(np.int64), 0, self.whiles - 1)
        later = np.clip(at - cell, 0.0, 1.0)
        return np.column_stack([cell, (cell + 1) % self.hats]), np.column_stack([1 - later, later])

    def nearest(self, times: Floats) -> Ints:
        """(n,) numbers of the instants nearest to each time."""
        at = np.rint((times - self.start) / self.spacing).astype(np.int64)
        return at % self.hats if self.periodic else np.clip(at, 0, self.hats - 1)

    def lattice(self, times: Floats, bits: int) -> tuple[Ints, Ints]:
        """(n, 2) numbers of the two hats about each time, and their values in whole units of `2^-bits`."""
        hat, value = self.values(times)
        later = np.rint(value[:, 1] * 2**bits).astype(np.int64)
        return hat, np.column_stack([2**bits - later, later])

    def distance(self, first: Floats, second: Floats) -> Floats:
        """(n,) distances of times, around the clock where there is one."""
        apart: Floats = np.abs(first - second)
        return np.asarray(np.minimum(apart, self.length - apart) if self.periodic else apart, dtype=np.float64)

    def to_dict(self) -> JsonObject:
        """JSON form."""
        always = ("name", "start", "end", "hats", "periodic", "unit")
        dated = ("origin", "zone", "clock_change")
        told = {name: value for name in always + dated if (value := getattr(self, name)) or name in always}
        return told | ({} if self.form == "iso" else {"form": self.form})


@dataclass(frozen=True)
class Marks:
    """Public description of the marks that a release keeps: types, times or both.

    Attributes
    ----------
    types : Types, optional
    times : Times, optional

    Examples
    --------
    >>> Marks(Types("offence", ["burglary", "theft"]), Times.day("hour")).shape
    (2, 8)
    """

    types: Types | None = None
    times: Times | None = None

    def __post_init__(self) -> None:
        for name, kind in (("types", Types), ("times", Times)):
            value = getattr(self, name)
            if value is not None:
                instance(name, value, kind, "such as Types('offence', ['burglary', 'theft']) or Times.day('hour')")
        if not self.names:
            msg = "marks: needs types, times or both; without, take LGCPSynthesizer."
            raise InputError(msg)
        if len(set(self.names)) < len(self.names):
            msg = "marks: types and times need names of their own."
            raise InputError(msg)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the marks."""
        return tuple(each.name for each in (self.types, self.times) if each is not None)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of types and of hats; one where there are none."""
        return (1 if self.types is None else len(self.types.values), 1 if self.times is None else self.times.hats)

    def require(self, marks: Mapping[str, npt.NDArray[Any]] | None) -> tuple[Ints, Floats]:
        """(n,) type numbers and (n,) times of points with these marks; zeros where there are no types, or no times."""
        given = marks or {}
        self.require_names(set(given))
        n = len(next(iter(given.values())))
        kinds = np.zeros(n, dtype=np.int64) if self.types is None else self.types.indices(given[self.types.name])
        times = np.zeros(n) if self.times is None else self.times.require(given[self.times.name])
        return kinds, times

    def levels(self, kinds: Ints, times: Floats) -> Ints:
        """(n,) numbers of types and nearest instants together, in the order of types and of the instants of each."""
        return kinds if self.times is None else kinds * self.times.hats + self.times.nearest(times)

    def require_names(self, names: AbstractSet[str]) -> None:
        """Refuse other marks than these types and times, by their names alone; InputError."""
        if names != set(self.names):
            wanted = " and ".join(repr(name) for name in self.names)
            msg = f"pattern: needs exactly the marks {wanted}, which the release describes; drop or name the others so."
            raise InputError(msg)

    def columns(self, kinds: Ints, times: Floats) -> dict[str, npt.NDArray[Any]]:
        """Marks of points with these type numbers (n,) and times (n,)."""
        found: dict[str, npt.NDArray[Any]] = {}
        if self.types is not None:
            found[self.types.name] = np.array(self.types.values)[kinds]
        if self.times is not None:
            found[self.times.name] = times
        return found

    def to_dict(self) -> JsonObject:
        """JSON form."""
        return {name: mark and mark.to_dict() for name, mark in (("types", self.types), ("times", self.times))}

    @classmethod
    def from_dict(cls, data: JsonRead) -> Self:
        """Inverse of `to_dict`; InputError."""
        try:
            types, times = data["types"], data["times"]
            made = cls(None if types is None else Types(**types), None if times is None else Times(**times))
        except (LookupError, TypeError) as error:
            msg = "marks: must have types and times, as a release describes them."
            raise InputError(msg) from error
        if made.to_dict() != data:
            msg = "marks: must be written as a release describes them."
            raise InputError(msg)
        return made


def bin_edges(edges: Any, labels: tuple[str, ...]) -> tuple[float, ...]:
    """Edges of bins with these labels, or none; InputError unless they ascend and no label is a number."""
    found = real_array(edges)
    if found is not None and found.size == 0:
        return ()
    if (
        found is None
        or found.shape != (len(labels) + 1,)
        or not np.isfinite(found).all()
        or (np.diff(found) <= 0).any()
    ):
        msg = f"edges: needs {len(labels) + 1} ascending finite numbers for {len(labels)} bins, got {shown(edges)}."
        raise InputError(msg)
    if any(is_number(label) for label in labels):
        msg = "labels: must not be numbers, which are themselves put into bins; write '18 to 39' for 18."
        raise InputError(msg)
    return tuple(map(float, found))


def mark_name(argument: str, name: object) -> str:
    """The name of a mark; InputError for names that a column of a mark cannot have."""
    if not isinstance(name, str) or not name.strip() or not writable(name) or name in TAKEN:
        msg = f"{argument}: needs the name of a column, none of {', '.join(TAKEN)}, got {shown(name)}."
        raise InputError(msg)
    return name
