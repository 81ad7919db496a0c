"""Parts of a study: scenarios, cells of the grid with their random streams, and kept results."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from dpppsynth.core.errors import DpppsynthError
from dpppsynth.spatial.domains import Domain
from dpppsynth.spatial.patterns import PointPattern


class CellError(DpppsynthError):
    """A cell of a study failed for another reason than a refusal; the message names the cell."""


@dataclass(frozen=True, eq=False)
class Scenario:
    """Law of a study's originals: public knowledge of a simulation.

    Parameters
    ----------
    domain : Window or LinearNetwork
    draw : callable
        Takes a `numpy.random.Generator` and returns a `PointPattern` in the domain; all its randomness must come from
        that generator.
    alpha : float or None
        Privacy radius that synthesizers are to protect, in the domain's unit; None for a move anywhere.
    intensity : callable, optional
        The truth, at coordinates (n, 2), for measures that compare with it.
    """

    domain: Domain
    draw: Callable[[np.random.Generator], PointPattern]
    alpha: float | None
    intensity: Callable[..., Any] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Outcome:
    """Input of a cell's measures.

    Attributes
    ----------
    scenario : Scenario
    original : PointPattern
        The same for all synthesizers and budgets of a repeat.
    release : CoxRelease, PoissonRelease or what else the synthesizer returns
    synthetic : tuple of PointPattern
        As many as the study's `patterns`.
    epsilon, delta : float
        The budget; a delta of "1/n" is a number here.
    """

    scenario: Scenario
    original: PointPattern
    release: Any
    synthetic: tuple[PointPattern, ...]
    epsilon: float
    delta: float


@dataclass(frozen=True)
class Cell:
    """One place in the grid of a study; `delta` is a number or "1/n"."""

    scenario: str
    synthesizer: str
    epsilon: float
    delta: float | str
    repeat: int

    def __str__(self) -> str:
        budget = f"epsilon {self.epsilon:g}, delta {self.delta}"
        return f"{self.scenario}, {self.synthesizer}, {budget}, repeat {self.repeat}"


KEYS = [field.name for field in fields(Cell)]


@dataclass(frozen=True)
class Finished:
    """Kept results of a cell.

    Attributes
    ----------
    cell : Cell
    refused : str or None
        Class of the refusal; of a measure's own, "measure: class".
    message : str or None
        Message of the refusal.
    values : tuple of float
        In the order of the study's measures; nan where refused.
    seconds : float
    """

    cell: Cell
    refused: str | None
    message: str | None
    values: tuple[float, ...]
    seconds: float


@dataclass(frozen=True)
class Failed:
    """An error that is no refusal, in words: not every exception survives the way between processes."""

    cell: Cell
    error: str
    trace: str

    def exception(self) -> CellError:
        """The error to raise, the worker's traceback as a note on it."""
        error = CellError(f"cell ({self.cell}): {self.error}")
        error.add_note(self.trace)
        return error


def stream(*key: str | float) -> np.random.Generator:
    """The random stream that belongs to a key, whatever else is drawn before or beside it: SHA-256 of the key's JSON.

    Examples
    --------
    >>> one, again, other = stream(0, "a", 1), stream(0, "a", 1), stream(0, "a", 2)
    >>> float(one.random()) == float(again.random()) != float(other.random())
    True
    """
    digest = hashlib.sha256(json.dumps(key).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))
