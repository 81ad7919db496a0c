"""Cells of a study: the grid, random streams, and the simulation of one cell from its seed to the measured numbers."""

import hashlib
import inspect
import json
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

import numpy as np
import threadpoolctl

from dpppsynth.core.arguments import positive, probability, whole
from dpppsynth.core.errors import (
    DpppsynthError,
    InformationWarning,
    InputError,
    PrivacyCheckError,
    QualityError,
    ReleaseBlocked,
)
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
# Columns of the tables beside the measures.
TAKEN = (*KEYS, "refused", "message", "seconds", "cells")
# Errors that are results: what a mechanism may answer instead of a release.
REFUSALS = (InputError, PrivacyCheckError, ReleaseBlocked, QualityError)


@dataclass(frozen=True)
class Finished:
    """Kept results of a cell: values in the order of the measures, nan where refused, and the refusal.

    `refused` is the class of the refusal, of a measure's own "measure: class", and `message` what it said.
    """

    cell: Cell
    refused: str | None
    message: str | None
    values: tuple[float, ...]
    seconds: float


def stream(*key: str | float) -> np.random.Generator:
    """Random generator seeded by the SHA-256 of a key's JSON: the same whatever else is drawn before or beside it.

    Examples
    --------
    >>> one, again, other = stream(0, "a", 1), stream(0, "a", 1), stream(0, "a", 2)
    >>> float(one.random()) == float(again.random()) != float(other.random())
    True
    """
    digest = hashlib.sha256(json.dumps(key).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


@dataclass(frozen=True, eq=False, repr=False)
class StudyGrid:
    """The grid of a study, without a way to run it; `Study` explains each field."""

    scenarios: Mapping[str, Scenario]
    synthesizers: Mapping[str, Callable[[Scenario, float, float, int], Any]]
    epsilon: Sequence[float]
    delta: Sequence[float | str]
    repeats: int
    measures: Mapping[str, Callable[[Outcome], float]]
    patterns: int = 1
    seed: int = 0
    version: str = "1"

    def __post_init__(self) -> None:
        for name in ("scenarios", "synthesizers", "measures"):
            object.__setattr__(self, name, _named(name, getattr(self, name)))
        for name, scenario in self.scenarios.items():
            if not isinstance(scenario, Scenario):
                msg = f"scenarios: {name!r} must be a Scenario, got {type(scenario).__name__}."
                raise InputError(msg)
        for kind in ("synthesizers", "measures"):
            for name, part in getattr(self, kind).items():
                if not callable(part):
                    msg = f"{kind}: {name!r} must be a function, got {type(part).__name__}."
                    raise InputError(msg)
        taken = {name for name in self.measures if name in TAKEN or name.endswith("_se")}
        if taken:
            msg = f"measures: {sorted(taken)} are columns of the tables already, or end in '_se'; rename them."
            raise InputError(msg)
        budgets = (float(positive("epsilon", each)) for each in _listed("epsilon", self.epsilon))
        object.__setattr__(self, "epsilon", _distinct("epsilon", budgets))
        object.__setattr__(self, "delta", _distinct("delta", map(_delta, _listed("delta", self.delta))))
        for name, least in (("repeats", 1), ("patterns", 0), ("seed", 0)):
            object.__setattr__(self, name, whole(name, getattr(self, name), least))
        if not isinstance(self.version, str) or not self.version:
            msg = f"version: must be text that is not empty, got {self.version!r}; give '2', for instance."
            raise InputError(msg)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self.scenarios)} scenarios, {len(self.synthesizers)} synthesizers, "
            f"{len(self.epsilon) * len(self.delta)} budgets, {self.repeats} repeats, seed {self.seed})"
        )

    def cells(self) -> list[Cell]:
        """All cells, in the order of the table: by scenario, synthesizer, epsilon, delta, repeat as given."""
        grid = product(self.scenarios, self.synthesizers, self.epsilon, self.delta, range(self.repeats))
        return [Cell(*place) for place in grid]


def _named(name: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping) or not given or not all(isinstance(key, str) and key for key in given):
        got = "an empty one" if given == {} else type(given).__name__
        msg = f"{name}: needs a mapping of names, which are text, to at least one entry, got {got}."
        raise InputError(msg)
    return dict(given)


def _listed(name: str, given: Any) -> list[Any]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        msg = f"{name}: needs a sequence, such as [{given!r}]."
        raise InputError(msg)
    return list(given)


def _distinct(name: str, given: Iterable[Any]) -> tuple[Any, ...]:
    values = tuple(given)
    if not values or len(set(values)) < len(values):
        msg = f"{name}: needs at least one value, each once, got {list(values)}."
        raise InputError(msg)
    return values


def _delta(value: Any) -> float | str:
    if isinstance(value, str) and value == "1/n":
        return value
    return float(probability("delta", value, zero=True, remedy="'1/n' is another choice"))


def run_cell(study: StudyGrid, cell: Cell) -> Finished | CellError:
    """Draw, synthesize and measure one cell, or return the error that was not a refusal.

    On one thread of linear algebra: sums depend on how many there are.
    """
    start = time.perf_counter()
    try:
        with threadpoolctl.threadpool_limits(1), warnings.catch_warnings():
            # A study looks at useless budgets on purpose.
            warnings.simplefilter("ignore", InformationWarning)
            refusals, values = _measured(study, cell)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, the study stops with the cell's name
        # In words: not every exception survives the way between processes.
        failed = CellError(f"cell ({cell}): {type(error).__name__}: {error}")
        failed.add_note(traceback.format_exc())
        return failed
    kinds, messages = ("; ".join(each) or None for each in zip(*refusals, strict=True)) if refusals else (None, None)
    return Finished(cell, kinds, messages, values, time.perf_counter() - start)


def _measured(study: StudyGrid, cell: Cell) -> tuple[list[tuple[str, str]], tuple[float, ...]]:
    """Class and message of each refusal, and the values of the measures."""
    original = original_of(study, cell)
    try:
        outcome = outcome_of(study, cell, original)
    except REFUSALS as refusal:
        return [(type(refusal).__name__, str(refusal))], (float("nan"),) * len(study.measures)
    values, refusals = [], []
    for name, measure in study.measures.items():
        try:
            values.append(float(measure(outcome)))
        except REFUSALS as refusal:
            values.append(float("nan"))
            refusals.append((f"{name}: {type(refusal).__name__}", f"{name}: {refusal}"))
    return refusals, tuple(values)


def original_of(study: StudyGrid, cell: Cell) -> PointPattern:
    """Draw the original of a cell; all synthesizers and budgets share it, as its random key names neither.

    TypeError where what is drawn is no pattern in the scenario's domain: no mechanism may refuse it.
    """
    scenario = study.scenarios[cell.scenario]
    drawn = scenario.draw(stream(study.seed, "original", cell.scenario, cell.repeat))
    if not isinstance(drawn, PointPattern):
        msg = f"the scenario's draw must return a PointPattern, got {type(drawn).__name__}"
        raise TypeError(msg)
    if drawn.domain is not scenario.domain and drawn.domain.fingerprint() != scenario.domain.fingerprint():
        msg = f"the scenario's draw must return a pattern in {scenario.domain!r}, got one in {drawn.domain!r}"
        raise TypeError(msg)
    return drawn


def outcome_of(study: StudyGrid, cell: Cell, original: PointPattern) -> Outcome:
    """Synthesize an original with the synthesizer and budget of a cell; refusals are raised."""
    scenario, n = study.scenarios[cell.scenario], len(original)
    if cell.delta == "1/n" and n == 0:
        msg = "delta: an empty original has no 1/n."
        raise InputError(msg)
    delta = 1 / n if cell.delta == "1/n" else float(cell.delta)
    key = (study.seed, "release", cell.scenario, cell.synthesizer, cell.epsilon, cell.delta, cell.repeat)
    rng = stream(*key)
    synthesizer = study.synthesizers[cell.synthesizer](scenario, cell.epsilon, delta, n)
    # Where patterns are the mechanism, all are paid for at once; releases of an intensity give them away afterwards.
    planned = inspect.signature(synthesizer.plan).parameters if hasattr(synthesizer, "plan") else ()
    options = {"patterns": max(1, study.patterns)} if "patterns" in planned else {}
    release = synthesizer.release(original, rng, **options)
    patterns = release.patterns if hasattr(release, "patterns") else release.sample(study.patterns, rng)
    synthetic = tuple(patterns)[: study.patterns]
    if len(synthetic) < study.patterns:
        msg = f"a release gave {len(synthetic)} of the {study.patterns} patterns that the study asks for"
        raise TypeError(msg)
    return Outcome(scenario, original, release, synthetic, cell.epsilon, delta)
