"""`Randomizer` and `CellRandomizer`: public numbers, a law, reports, counts and an estimate; client laws by name.

One is a log-Gaussian field behind the cells, which learns from their neighbours; the other is the published estimator.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpppsynth.core.arguments import entries, instance, one_of, plain_array, positive, shown, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local.randomizers.exact_sampling import with_likelier
from dpppsynth.models.channel_likelihood import Channel, Law, Multinomial, ReportLikelihood
from dpppsynth.spatial.simplex import possible

if TYPE_CHECKING:
    from dpppsynth.contract.audits.statistic_audit import OwnAudit


# Cells along a side of grids whose shares are estimated by a field: its mode takes up to some minutes.
FIELD_SIDE = 256


def fingerprint(identity: Mapping[str, Any]) -> str:
    """Sixteen digits that name a client mechanism with all its public numbers: reports of others are refused.

    Examples
    --------
    >>> fingerprint({"cells": 3, "epsilon": 1.0}) == fingerprint({"epsilon": 1.0, "cells": 3})
    True
    """
    text = json.dumps(identity, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# Beyond it whole numbers do not fit into 64 bits.
LARGEST = 2**63 - 1
# Numbers of reports that are in memory at once, 32 MiB of them; and reports that are drawn together.
ROOM, BATCH = 2**22, 1_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Randomizer:
    """Base of all client mechanisms: a value from a public list in, a randomised report out.

    A report is a few integers. Reports of many clients are rows of an integer array; what an aggregator keeps of them
    are counts, which add up over any partition of the reports.

    Attributes
    ----------
    epsilon : float
        Budget of one report (per unit of distance under geo-indistinguishability).
    """

    epsilon: float
    kind: ClassVar[str] = ""
    # Names of a report's integers, the columns of files of reports.
    columns: ClassVar[tuple[str, ...]] = ()
    # Whether a report tells values apart less the nearer they are, instead of all alike.
    metric: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", float(positive("epsilon", self.epsilon)))
        # Refuse before anybody reports what integers cannot express.
        self.spent  # noqa: B018

    @property
    def inputs(self) -> int:
        """Number of values: 0, 1, ..., inputs - 1."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Length of the vector of counts."""
        raise NotImplementedError

    @property
    def spent(self) -> float:
        """Epsilon that the integer weights certify: `epsilon`, or less by at most a billionth of it."""
        raise NotImplementedError

    @property
    def clones(self) -> float:
        """Probability that a shuffled report passes for one about either of two values (docs/theory/shuffling.md)."""
        # Devices draw reports without it.
        from dpppsynth.privacy.shuffling import clone_probability

        return clone_probability(self.spent)

    def matrix(self) -> Floats:
        """(reports, inputs) probabilities of every possible report given each value; columns sum to one."""
        raise NotImplementedError

    def draw(self, values: Ints, rng: np.random.Generator) -> Ints:
        """(n, columns) reports of clients with the given values (n,), each drawn from its own random bits."""
        values = self.values(values)
        instance("rng", rng, np.random.Generator, "dpppsynth.core.randomness.generator() makes one")
        reports = np.empty((len(values), len(self.columns)), dtype=np.int64)
        for part in self._batches(len(values)):
            reports[part] = self._drawn(values[part], rng)
        return reports

    def _drawn(self, values: Ints, rng: np.random.Generator) -> Ints:
        """Reports (k, columns) of some clients."""
        raise NotImplementedError

    @property
    def _batch(self) -> int:
        """Reports that are drawn, or read, together."""
        return BATCH

    def _batches(self, n: int) -> list[slice]:
        """Parts of n reports whose numbers are held in memory together."""
        return [slice(start, start + self._batch) for start in range(0, n, self._batch)]

    def tally(self, values: Ints, rng: np.random.Generator, *, most: int = BATCH) -> Ints:
        """(size,) counts of the reports of clients with the given values (n,); no report outlives its batch."""
        counts = np.zeros(self.size, dtype=np.int64)
        step = self.at_once(most)
        for start in range(0, len(values), step):
            counts += self.count(self.draw(values[start : start + step], rng))
        return counts

    def fast_tally(self, values: Ints, rng: np.random.Generator) -> Ints:
        """(size,) counts of reports drawn at once from their law, in floating point: for studies, never private.

        One by one where the counts have no multinomial law for each value.
        """
        held = np.bincount(self.values(values), minlength=self.inputs)
        known = getattr(self, "fast_counts", None)
        if known is not None:
            return np.asarray(known(held, rng), dtype=np.int64)
        matrix = self.matrix()
        if len(matrix) != self.size:
            return self.tally(values, rng)
        drawn = [rng.multinomial(held[k], matrix[:, k] / matrix[:, k].sum()) for k in np.flatnonzero(held)]
        return np.asarray(np.sum(drawn, axis=0), dtype=np.int64)

    def count(self, reports: Ints) -> Ints:
        """(size,) counts of reports (n, columns), additive over reports; InputError for impossible reports."""
        raise NotImplementedError

    def reported(self, counts: Ints) -> int | None:
        """Number of reports behind counts; None where they do not tell it, an InputError where no reports have them."""
        raise NotImplementedError

    def estimate(self, counts: Ints, n: int, *, inside: Any = None, **settings: Any) -> Floats:
        """(inputs,) estimated shares of the values, non-negative and with sum one.

        Parameters
        ----------
        counts : (size,) array of int
        n : int
            Number of reports behind them.
        inside : (inputs,) array of bool, optional
            Values that anybody can have at all; the others get nothing.
        **settings
            Of the estimator, all with defaults; `settings()` names them.
        """
        raise NotImplementedError

    def settings(self, **given: Any) -> dict[str, Any]:
        """Settings of the estimator in JSON form, defaults filled in; InputError for unknown or wrong ones."""
        raise NotImplementedError

    def log_ratio(self, reports: Ints, value: int, other: int) -> Floats:
        """(n,) logarithms of Pr[report | value] / Pr[report | other], the likelihood ratio of an audit."""
        raise NotImplementedError

    def binomials(self, counts: Ints, value: int) -> tuple[Ints, Floats]:
        """Numbers (m,) with binomial laws made of counts (size,) of reports about one value, and chances (m,) of each.

        A chance is the probability that a report adds one to the number, by the stated law.
        """
        raise NotImplementedError

    def own_audit(self) -> "OwnAudit":
        """Audit of one report."""
        # Clients need nothing of an audit.
        from dpppsynth.mechanisms.local.audit_clients import ClientAudit

        return ClientAudit(self)

    def at_once(self, most: int) -> int:
        """Number of reports held at once: `most`, or fewer where each report is long, as in unary encodings."""
        return max(1, min(most, ROOM // max(1, len(self.columns))))

    def parameters(self) -> dict[str, Any]:
        """Public numbers in JSON form, with the kind: enough to make the randomizer again."""
        return {"kind": self.kind} | {each.name: getattr(self, each.name) for each in fields(self)}

    def to_dict(self) -> dict[str, Any]:
        """JSON form: the public numbers."""
        return self.parameters()

    def values(self, values: Any) -> Ints:
        """(n,) values, checked: whole numbers from 0 to inputs - 1."""
        array = plain_array(values)
        if array is None or array.ndim != 1 or not _whole(array) or not _within(array, 0, self.inputs - 1):
            msg = f"values: must be whole numbers from 0 to {self.inputs - 1}, one for each client."
            raise InputError(msg)
        return array.astype(np.int64)

    def rows(self, reports: Any) -> Ints:
        """(n, columns) reports, checked for their shape and kind."""
        array, width = plain_array(reports), len(self.columns)
        shaped = array is not None and array.ndim == 2 and array.shape[1] == width
        if array is None or not shaped or not _whole(array) or not _within(array, -LARGEST, LARGEST):
            msg = f"reports: must be whole numbers of shape (n, {width}), columns {', '.join(self.columns)}."
            raise InputError(msg)
        return array.astype(np.int64)

    def tallies(self, counts: Any) -> Ints:
        """(size,) counts, checked: whole numbers that are not negative, and not all zero."""
        array = plain_array(counts)
        if array is None or array.shape != (self.size,):
            got = shown(counts) if array is None else f"shape {array.shape}"
            msg = f"counts: must be {self.size} whole numbers, got {got}."
            raise InputError(msg)
        if not _counts(array):
            msg = "counts: must be whole numbers, none negative; some are not."
            raise InputError(msg)
        if not array.any():
            msg = "counts: all are zero; there are no reports to estimate from."
            raise InputError(msg)
        return array.astype(np.int64)

    def counts_of(self, counts: Any, n: int) -> Ints:
        """(size,) counts, checked to be possible for n reports; InputError otherwise."""
        checked, n = self.tallies(counts), whole("n", n, 1, most=2**53)
        if self.reported(checked) not in (None, n) or checked.max() > n:
            msg = (
                "n: must be the number of reports behind the counts, which are not those of so many reports; give both "
                "as they were aggregated."
            )
            raise InputError(msg)
        return checked


def _whole(array: Any) -> bool:
    """Whether entries are whole numbers; there may be none at all."""
    return array.dtype.kind in "iu" or not array.size


def _within(array: Any, least: int, most: int) -> bool:
    return not array.size or (int(array.min()) >= least and int(array.max()) <= most)


def _counts(array: Any) -> bool:
    """Whether entries are whole numbers from 0 on, floats allowed."""
    if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        return False
    return bool((array == np.floor(array)).all() and (array >= 0).all() and (array <= LARGEST).all())


def known_settings(given: Mapping[str, Any], **defaults: Any) -> dict[str, Any]:
    """Settings of an estimator, defaults filled in; InputError for others."""
    unknown = [str(name) for name in given if name not in defaults]
    if unknown:
        msg = f"settings: {', '.join(unknown)} unknown; this estimator has {', '.join(defaults) or 'none'}."
        raise InputError(msg)
    return defaults | dict(given)


FIELD, EM, LEAST_SQUARES = "field", "em", "least-squares"


@dataclass(frozen=True, kw_only=True, eq=False)
class CellRandomizer(Randomizer):
    """Base of client laws on a square grid, with `cells` along a side; the value of cell (i, j) is `i * cells + j`."""

    cells: int
    # Name of the published estimator.
    published: ClassVar[str] = EM

    @property
    def inputs(self) -> int:
        return self.cells**2

    @property
    def channel(self) -> Channel:
        """Probabilities of the reports, as they are counted, given the cell."""
        raise NotImplementedError

    @property
    def has_field(self) -> bool:
        """Whether the grid is small enough for a field."""
        return self.cells <= FIELD_SIDE

    def column(self, value: int) -> Ints:
        """(size,) integer weights out of 2^62 of all reports given one value."""
        raise NotImplementedError

    def places(self, reports: Ints) -> Ints:
        """(n,) places in the order of counts of reports (n, columns); InputError for reports that no client sends."""
        raise NotImplementedError

    def count(self, reports: Ints) -> Ints:
        rows, counts = self.rows(reports), np.zeros(self.size, dtype=np.int64)
        for part in self._batches(len(rows)):
            counts += np.bincount(self.places(rows[part]), minlength=self.size)
        return counts

    def log_ratio(self, reports: Ints, value: int, other: int) -> Floats:
        places = self.places(self.rows(reports))
        first, second = self.column(value)[places], self.column(other)[places]
        # The difference is exact, so that small ratios keep their digits.
        return np.log1p((first - second) / second)

    def reported(self, counts: Ints) -> int:
        return int(self.tallies(counts).sum())

    def binomials(self, counts: Ints, value: int) -> tuple[Ints, Floats]:
        return with_likelier(counts, self.column(value))

    def counts_law(self, n: int) -> Law:
        """Law of the counts of n reports."""
        return Multinomial(float(n))

    def settings(self, **given: Any) -> dict[str, Any]:
        """Settings of the estimator in JSON form, defaults filled in.

        `estimator="field"` has no others. Without `estimator` they are those of the published estimator.

        Raises
        ------
        InputError
            A setting is unknown or breaks its rule, or the grid is too large for a field.
        """
        chosen = one_of("estimator", given.pop("estimator", self.published), (FIELD, self.published))
        if chosen == self.published:
            return self.published_settings(**given)
        if given:
            msg = (
                f"settings: {', '.join(map(str, given))} belong to estimator={self.published!r}; say so, or leave them "
                "out."
            )
            raise InputError(msg)
        if not self.has_field:
            got = f"at most {FIELD_SIDE} x {FIELD_SIDE} cells, got {self.cells} x {self.cells}"
            msg = f"estimator: a field is for {got}; take estimator='em'."
            raise InputError(msg)
        return {"estimator": FIELD}

    def estimate(self, counts: Ints, n: int, *, inside: Any = None, **settings: Any) -> Floats:
        chosen = self.settings(**settings)
        if chosen.pop("estimator", self.published) == self.published:
            return self.published_estimate(counts, n, inside=inside, **chosen)
        return self.field_estimate(self.counts_of(counts, n), n, possible(inside, self.inputs))

    def field_estimate(self, counts: Ints, n: int, inside: npt.NDArray[np.bool_]) -> Floats:
        """(inputs,) shares by a field, of checked counts."""
        # Devices draw reports without it.
        from dpppsynth.models.channel_posterior import field_shares

        likelihood = ReportLikelihood(self.channel, counts / 1.0, self.counts_law(n), inside / 1.0)
        return field_shares(likelihood)

    def published_settings(self, **given: Any) -> dict[str, Any]:
        """Settings of the published estimator in JSON form; InputError for unknown or wrong ones."""
        raise NotImplementedError

    def published_estimate(self, counts: Ints, n: int, *, inside: Any = None, **settings: Any) -> Floats:
        """(inputs,) shares by the published estimator."""
        raise NotImplementedError


# Module and class of each kind.
KINDS = {
    "randomized-response": ("oracles", "RandomizedResponse"),
    "local-hashing": ("oracles", "LocalHashing"),
    "optimized-unary": ("unary", "OptimizedUnary"),
    "symmetric-unary": ("unary", "SymmetricUnary"),
    "hadamard-response": ("hadamard", "HadamardResponse"),
    "subset-selection": ("unary", "SubsetSelection"),
    "projective-response": ("projective", "ProjectiveResponse"),
    "disk-area": ("area", "DiskArea"),
    "hybrid-area": ("area", "HybridArea"),
    "square-wave": ("square_wave", "SquareWave"),
    "subset-exponential": ("subset_exponential", "SubsetExponential"),
    "range-hierarchy": ("hierarchy", "RangeHierarchyLaw"),
    "displacements": ("displacements", "DisplacementLaw"),
}


def law_of(kind: str) -> type[Randomizer]:
    """Class of a kind of client mechanism."""
    module, name = KINDS[kind]
    found: type[Randomizer] = getattr(import_module(f"{__package__}.{module}"), name)
    return found


def randomizer_from_dict(data: Mapping[str, Any]) -> Randomizer:
    """Inverse of `Randomizer.parameters`; InputError unless exactly the fields of a known kind are there."""
    data = entries("randomizer", data, ("kind", "epsilon"))
    if not isinstance(data["kind"], str) or data["kind"] not in KINDS:
        msg = f"randomizer: kind {shown(data['kind'])} is not known; expected one of {', '.join(sorted(KINDS))}."
        raise InputError(msg)
    kind = law_of(data["kind"])
    names = {each.name for each in fields(kind)}
    if data.keys() != names | {"kind"}:
        msg = f"randomizer: {kind.kind} is stated by exactly {', '.join(sorted(names))}."
        raise InputError(msg)
    made = kind(**{name: data[name] for name in names})
    if made.parameters() != dict(data):
        msg = "randomizer: its numbers are not those that it has; check what was stated."
        raise InputError(msg)
    return made
