"""`Design`: the validated grid of a study."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from dpppsynth.core.arguments import positive, probability, whole
from dpppsynth.core.errors import InputError
from dpppsynth.evaluation.experiments.cells import KEYS, Cell, Outcome, Scenario

# Columns of the tables beside the measures.
TAKEN = (*KEYS, "refused", "message", "seconds", "cells")


@dataclass(frozen=True, eq=False, repr=False)
class Design:
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
        object.__setattr__(self, "epsilon", _distinct("epsilon", map(_epsilon, _listed("epsilon", self.epsilon))))
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


def _epsilon(value: Any) -> float:
    return float(positive("epsilon", value))


def _delta(value: Any) -> float | str:
    if isinstance(value, str) and value == "1/n":
        return value
    return float(probability("delta", value, zero=True, remedy="'1/n' is another choice"))
