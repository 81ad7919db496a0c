"""`Report` and `Counts`: the message of one client, and the sufficient statistic of an aggregator."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpppsynth.core.arguments import flag, instance, plain_array, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Ints

JSON = "a report is a JSON object with mechanism, report and seeded, as Report.to_json() gives it"


@dataclass(frozen=True)
class Report:
    """Message of one person. Everything in it is randomised already.

    Attributes
    ----------
    mechanism : str
        Fingerprint of the client mechanism.
    values : tuple of int
        The report itself, a few integers.
    seeded : bool
        True when its random bits can be reproduced: then nothing is private.
    """

    mechanism: str
    values: tuple[int, ...]
    seeded: bool = False

    def __post_init__(self) -> None:
        instance("mechanism", self.mechanism, str, JSON)
        if not isinstance(self.values, tuple | list) or not self.values:
            msg = f"values: a report needs at least one whole number; {JSON}."
            raise InputError(msg)
        numbers = tuple(whole("values", value, -(2**62), most=2**63 - 1) for value in self.values)
        object.__setattr__(self, "values", numbers)
        flag("seeded", self.seeded)

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps({"mechanism": self.mechanism, "report": list(self.values), "seeded": self.seeded})

    @classmethod
    def from_json(cls, text: str) -> "Report":
        """Inverse of `to_json`; InputError for anything else."""
        try:
            data = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            msg = f"report: not JSON; {JSON}."
            raise InputError(msg) from None
        if not isinstance(data, dict) or not {"mechanism", "report", "seeded"} <= data.keys():
            msg = f"report: something is missing; {JSON}."
            raise InputError(msg)
        return cls(data["mechanism"], data["report"], data["seeded"])


@dataclass(frozen=True, eq=False, repr=False)
class Reports:
    """Reports of many persons, one row each.

    Attributes
    ----------
    mechanism : str
        Fingerprint of the client mechanism that all of them come from.
    columns : tuple of str
        Names of a report's integers.
    rows : (n, columns) array of int
    seeded : bool
        True when the random bits of any of them can be reproduced.
    """

    mechanism: str
    columns: tuple[str, ...]
    rows: Ints
    seeded: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Reports({len(self)} of mechanism {self.mechanism})"

    def __iter__(self) -> Iterator[Report]:
        return (Report(self.mechanism, tuple(row), self.seeded) for row in self.rows.tolist())


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """An aggregator's counts of reports, additive over machines and over any partition of the reports.

    Attributes
    ----------
    mechanism : LocalMechanism
        Mechanism whose clients sent them.
    values : (size,) array of int
    n : int
        Number of reports.
    seeded : bool
        True when the random bits of any report can be reproduced: then nothing is private.
    runs : tuple of str
        Random numbers of the drawings and countings that were read from files; none is added twice.
    """

    mechanism: Any
    values: Ints
    n: int
    seeded: bool = False
    runs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given = plain_array(self.values)
        if given is None or given.ndim != 1 or given.dtype.kind not in "iu":
            msg = "values: must be whole numbers, one for each that the mechanism counts; aggregate() makes them."
            raise InputError(msg)
        values = given.astype(np.int64)
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n} reports to {self.mechanism!r})"

    def __add__(self, other: Any) -> "Counts":
        """Counts of the reports of both; InputError where the mechanisms differ."""
        if not isinstance(other, Counts):
            return NotImplemented
        if self.mechanism.fingerprint != other.mechanism.fingerprint:
            msg = f"counts: those of {other.mechanism!r} cannot be added to those of {self.mechanism!r}."
            raise InputError(msg)
        if not set(self.runs).isdisjoint(other.runs):
            msg = (
                "counts: the same reports, or the same counting of some, are in both and would count twice; add every "
                "file once, and none beside a sum that it is part of."
            )
            raise InputError(msg)
        seeded, runs = self.seeded or other.seeded, tuple(sorted((*self.runs, *other.runs)))
        return type(self)(self.mechanism, self.values + other.values, self.n + other.n, seeded, runs)

    def __radd__(self, other: Any) -> "Counts":
        """Support for `sum(parts)`, which starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def release(self, domain: Any = None) -> Any:
        """Private intensity, certificate and synthetic patterns.

        Parameters
        ----------
        domain : Window
            Window whose grid the reports are about.

        Returns
        -------
        CoxRelease
        """
        return self.mechanism.release_counts(self, domain)
