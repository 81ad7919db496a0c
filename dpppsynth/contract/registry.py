"""`Mechanism`, the record of a mechanism for all tools, and the registry of records by name.

Records are loaded when asked for. To add a mechanism, write its folder and add a line here
(docs/adding_a_mechanism.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeGuard, TypeVar

from dpppsynth.contract.estimator import Estimator
from dpppsynth.contract.examples import Example, Refusal
from dpppsynth.contract.result import MechanismResult, Result, ResultType, StratifiedType
from dpppsynth.contract.settings import Settings
from dpppsynth.contract.statistic import Measured, Statistic, require
from dpppsynth.contract.words import MechanismWords
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Json

if TYPE_CHECKING:
    from dpppsynth.contract.audits.statistic_audit import StatisticAudit

P = TypeVar("P", bound=Statistic)
R = TypeVar("R", bound=MechanismResult)
HOME = "dpppsynth.mechanisms"
# Name on certificates, and the module and variable of the record.
PLACES = {
    "laplace-cells": f"{HOME}.lgcp.mechanism:LAPLACE_CELLS",
    "laplace-tents": f"{HOME}.lgcp.mechanism:LAPLACE_TENTS",
    "bounded-cells": f"{HOME}.bounded.mechanism:CELLS",
    "planar-laplace": f"{HOME}.planar_laplace.mechanism:POINTS",
    "lgcp-tents": f"{HOME}.lgcp.mechanism:TENTS",
    "lgcp-cells": f"{HOME}.lgcp.mechanism:CELLS",
    "lgcp-clusters": f"{HOME}.lgcp.clusters:CLUSTERS",
    "lgcp-moved": f"{HOME}.lgcp.moved:MOVED",
    "lgcp-field": f"{HOME}.lgcp.mechanism:FIELD",
    "lgcp-posterior-draw": f"{HOME}.lgcp.draws:POSTERIOR_DRAW",
    "lgcp-lipschitz": f"{HOME}.lgcp.draws:LIPSCHITZ",
    "lgcp-kim-lim-3.8": f"{HOME}.lgcp.draws:KIM_LIM_38",
    "lgcp-kim-lim-3.9": f"{HOME}.lgcp.draws:KIM_LIM_39",
    "kernel": f"{HOME}.kernel.mechanism:KERNEL",
    "kernel-diffusion": f"{HOME}.kernel.mechanism:DIFFUSION",
    "heatmap": f"{HOME}.heatmap.mechanism:HEATMAP",
    "marked-tents": f"{HOME}.marked.mechanism:TENTS",
    "marked-moved": f"{HOME}.marked.mechanism:MOVED",
    "pair-sums": f"{HOME}.pairs.mechanism:POINTS",
    "pair-sums-persons": f"{HOME}.pairs.mechanism:PERSONS",
    "disk-area": f"{HOME}.local.mechanism:DISK_AREA",
    "hybrid-area": f"{HOME}.local.mechanism:HYBRID_AREA",
    "square-wave": f"{HOME}.local.mechanism:SQUARE_WAVE",
    "subset-exponential": f"{HOME}.local.mechanism:SUBSET_EXPONENTIAL",
    "uniform-grid": f"{HOME}.local.mechanism:UNIFORM_GRID",
    "adaptive-grid": f"{HOME}.local.mechanism:ADAPTIVE_GRID",
    "range-hierarchy": f"{HOME}.local.mechanism:RANGE_HIERARCHY",
    "trajectories": f"{HOME}.local.mechanism:TRAJECTORIES",
    "displacements": f"{HOME}.local.mechanism:DISPLACEMENTS",
}
# The result of a release by levels, unless that of each level has one of its own (`series`).
STRATIFIED = "dpppsynth.release.stratified_release:StratifiedRelease"


@dataclass(frozen=True, kw_only=True, eq=False)
class Mechanism(Generic[P, R]):
    """Record of a mechanism, from its settings to its examples; every field is required.

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
        """Estimator class of a kind, as certificates name it.

        Raises
        ------
        InputError
            When this mechanism has none of that kind.
        """
        known = {each.kind: each for each in self.estimators}
        require(isinstance(kind, str) and kind in known, f"the estimator is {' or '.join(known)}")
        return known[kind]

    def build_release(self, measured: Measured[P], estimator: Estimator[P] | None, *, entry: str | None = None) -> R:
        """Release of a measured statistic, before any inference."""
        return self.result.of(self.name, measured, estimator, entry=entry)


# A record as tools reach it by name, which tells nothing about the classes of its statistics and results.
AnyMechanism = Mechanism[Statistic, MechanismResult]


def names() -> list[str]:
    """Names of all registered mechanisms."""
    return list(PLACES)


def is_known(name: object) -> TypeGuard[str]:
    """Whether a mechanism of this name is registered."""
    return isinstance(name, str) and name in PLACES


def mechanism(name: object) -> AnyMechanism:
    """The record of a mechanism; errors as in `require_known`."""
    record: AnyMechanism = loaded(PLACES[require_known(name)])
    return record


def require_known(name: object) -> str:
    """The name of a registered mechanism, checked without loading its record; InputError otherwise.

    Raises
    ------
    InputError
        When none of this name is registered.
    """
    if not is_known(name):
        msg = f"mechanism: {name!r} is not known to this version; it has {', '.join(PLACES)}."
        raise InputError(msg)
    return name


def require_fit(name: object, plan: Statistic) -> AnyMechanism:
    """The record of a mechanism, which must spend its budget on such a statistic.

    Raises
    ------
    InputError
        When none of this name is registered, or it has other plans.
    """
    record = mechanism(name)
    if not isinstance(plan, record.statistic) or not plan.implements(record.name):
        got = "one of another mechanism" if isinstance(plan, record.statistic) else f"a {type(plan).__name__}"
        msg = (
            f"mechanism: {name} spends its budget on a {record.statistic.__name__}, got {got}; take a plan that a "
            "synthesizer made."
        )
        raise InputError(msg)
    return record


def measuring(plan: Statistic) -> AnyMechanism:
    """The record of a mechanism that uses a statistic, by the statistic's class.

    A class derived from a registered one is taken for it: a variant that keeps its promise, or a planted fault.

    Raises
    ------
    InputError
        When none is registered.
    """
    records = [mechanism(name) for name in PLACES]
    for kind in type(plan).__mro__:
        for record in records:
            if record.statistic is kind:
                return record
    msg = f"mechanism: no registered one has plans like {type(plan).__name__}; it has no entry in the registry."
    raise InputError(msg)


def of(release: Result) -> AnyMechanism:
    """The record of a release's mechanism; of a stratified release, that of its levels."""
    return mechanism(next(iter(release.parts.values())).mechanism)


def stratified(releases: Mapping[str, Result]) -> StratifiedType:
    """The class of one release for each level of a mark."""
    first = next(iter(releases.values()))
    own = getattr(type(first), "series", None)
    kind: StratifiedType = own if own is not None and own.fits(releases) else loaded(STRATIFIED)
    return kind


@cache
def loaded(place: str) -> Any:
    """The variable at an import path, such as "package.module:NAME", whose module is loaded now."""
    module, variable = place.split(":")
    return getattr(import_module(module), variable)


@cache
def later(place: str) -> Callable[[Any], Any]:
    """Callable loaded from a place when first called."""

    def make(given: Any) -> Any:
        return loaded(place)(given)

    return make
