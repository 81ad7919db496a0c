"""`Mechanism`: the record by which all tools reach a mechanism."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from dpppsynth.contract.estimator import Estimator
from dpppsynth.contract.examples import Example, Refusal
from dpppsynth.contract.result import MechanismResult, ResultType
from dpppsynth.contract.settings import Settings
from dpppsynth.contract.statistic import Measured, Statistic, require
from dpppsynth.contract.words import MechanismWords
from dpppsynth.core.types import Json

if TYPE_CHECKING:
    from dpppsynth.contract.audits.statistic_audit import StatisticAudit

P = TypeVar("P", bound=Statistic)
R = TypeVar("R", bound=MechanismResult)


@dataclass(frozen=True, kw_only=True, eq=False)
class Mechanism(Generic[P, R]):
    """A mechanism, from its settings to its examples; every field is required.

    That statistic, estimator, audit, result and words fit together is checked where a record is written.

    Attributes
    ----------
    name : str
        As on certificates.
    settings : type of Synthesizer
        Class that users call; its fields are the options of the command line.
    statistic : type of Statistic
        What the budget is spent on: `guarantee`, `measure`, `parameters`, `from_parameters`, `validate_released`.
    estimators : tuple of types of Estimator
        From what was measured to an intensity, one kind each; none where patterns are all that is released.
    result : type of Release
    audit : callable
        The `StatisticAudit` of a statistic; called when one is wanted.
    words : MechanismWords
        Text for reports, pictures and the command line.
    examples : callable
        Settings that conformance runs, and those that it sees refused; called when they are wanted.
    """

    name: str
    settings: type[Settings]
    statistic: type[P]
    estimators: tuple[type[Estimator[P]], ...]
    result: ResultType[R]
    audit: Callable[[P], StatisticAudit]
    words: MechanismWords[P, R]
    examples: Callable[[], Iterable[Example | Refusal]]

    def estimator(self, kind: Json) -> type[Estimator[P]]:
        """The estimator of a kind, as certificates name it.

        Raises
        ------
        InputError
            When this mechanism has none of that kind.
        """
        known = {each.kind: each for each in self.estimators}
        require(isinstance(kind, str) and kind in known, f"the estimator is {' or '.join(known)}")
        return known[kind]

    def build_release(self, measured: Measured[P], estimator: Estimator[P] | None, *, entry: str | None = None) -> R:
        """The release of what was measured, before anything is inferred from it."""
        return self.result.of(self.name, measured, estimator, entry=entry)


# A record as tools reach it by name, which tells nothing about the classes of its statistics and results.
AnyMechanism = Mechanism[Statistic, MechanismResult]
