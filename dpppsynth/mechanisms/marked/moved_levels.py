"""`MovedLevels`: base of fields of places, one for each type and instant, behind counts of their moved points."""

import math
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpppsynth.contract.additive_noise import LatticeStatistic
from dpppsynth.contract.statistic import require
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import JsonObject
from dpppsynth.core.wording import Rows
from dpppsynth.inference.field_inference import require_somewhere
from dpppsynth.inference.judged_inference import JudgedInference
from dpppsynth.inference.sparse_inference import require_increasing
from dpppsynth.mechanisms.marked.inference import GridInference
from dpppsynth.mechanisms.marked.moved_statistic import MarkedMoves
from dpppsynth.models.level_fields import LevelField, level_covariance, level_root
from dpppsynth.models.marked_fields import LEVEL_SD, clock_field
from dpppsynth.models.moved_posterior import MovedLikelihood, lattice_mode
from dpppsynth.models.spectral_fields import SpectralField
from dpppsynth.models.whitened_fields import WhitenedField
from dpppsynth.spatial.mesh import Floats

# Standard deviation of the numbers of instants, on the log scale, and the range of their curve as a share of all times.
TIME_SIGMA, TIME_RANGE = 1.5, 1 / 3
# Types times instants at most: their covariances are dense, and have a root for every prior that is tried.
MOST_KINDS = 1000
# Seconds of processor time that inference takes, about: for whatever is tried, and for each value of the fields.
SECONDS, SECONDS_EACH = 5.0, 1e-3


class MovedLevels(GridInference, JudgedInference):
    """Base of estimators by fields of places, one for each type and instant, that share some of their variance.

    The prior is chosen by how well one half of the moved points foretells the other.

    Attributes
    ----------
    combining : tuple of str
        Names of the settings of which priors are all combinations; the last two are the following.
    owns : tuple of float
        Shares of the variance that each type has to itself, from 0, where all types are alike, to 1, where they are
        independent, and up to 2, where pairs attract or repel each other as their points do; 0 alone for a single type.
    togethers : tuple of float
        Shares of the variance that change with the time; 0 alone without times.
    """

    combining: ClassVar[tuple[str, ...]]
    owns: tuple[float, ...]
    togethers: tuple[float, ...]

    def require_shares(self) -> None:
        """Refuse shares that make no sense for the marks, or more kinds of points than can be inferred; InputError."""
        types, hats, _ = self.grid.shape
        if types * hats > MOST_KINDS:
            msg = (
                f"marks: {types} types times {hats} instants are {types * hats} kinds of points, and {MOST_KINDS} the "
                "most of which places are inferred from moved points; join rare types, or take fewer instants (hats)."
            )
            raise InputError(msg)
        require_increasing("owns", self.owns, 0.0, 2.0 if types > 1 else 0.0)
        require_increasing("togethers", self.togethers, 0.0, 1.0 if hats > 1 else 0.0)
        self.require_inference()
        for name in self.combining:
            object.__setattr__(self, name, tuple(map(float, getattr(self, name))))
        for each in self.measure.reshape(types * hats, -1):
            require_somewhere(each)

    def require(self, plan: LatticeStatistic) -> None:
        require(isinstance(plan, MarkedMoves), "fields of types and times stand behind counts of their moved points")

    @property
    def lists(self) -> dict[str, tuple[float, ...]]:
        return {name: getattr(self, name) for name in self.combining}

    @property
    def leading(self) -> tuple[int, ...]:
        types, hats, _ = self.grid.shape
        return (types * hats,)

    def levels_of(
        self,
        likelihood: MovedLikelihood,
        each: SpectralField | WhitenedField,
        own: float,
        together: float,
        columns: Floats | None,
    ) -> LevelField:
        """Prior of all fields, from the law of one, two shares of its variance, and covariates.

        Above 1 correlations of types are those at the mode of independent types, times `own - 1`. They come from the
        points of the likelihood alone: of those of both halves they would foretell the other half's noise.
        """
        types, pairs = self.grid.shape[0], None
        if own > 1:
            apart = self.levels_of(likelihood, each, 1.0, together, columns)
            measure = likelihood.measure.reshape(self.leading[0], -1).sum(axis=0)
            pairs = apart.correlations(lattice_mode(likelihood, apart).mode, types, measure)
        mixing = level_root(level_covariance(types, self._clock, own, together, pairs))
        return LevelField(each, mixing, self._numbers(min(own, 1.0)), columns)

    @cached_property
    def _clock(self) -> Floats:
        """(K, K) correlations of the instants."""
        times = self.grid.marks.times
        if times is None:
            return np.ones((1, 1))
        curve = clock_field(times, TIME_RANGE * times.length)
        return np.asarray(curve.placement @ np.linalg.inv(curve.precision.toarray()) @ curve.placement.T.toarray())

    def _numbers(self, own: float) -> Floats:
        """(L, P) root of the covariance of the levels' numbers: one of each type, and curves of times."""
        types, hats, _ = self.grid.shape
        parts = [LEVEL_SD * np.kron(np.eye(types), np.ones((hats, 1)))]
        if hats > 1:
            parts.append(TIME_SIGMA * level_root(level_covariance(types, self._clock, own, 1.0)))
        return np.hstack(parts)

    def share_rows(self) -> Rows:
        """Rows of a table with the shares, the inference and public layers."""
        types, hats, _ = self.grid.shape
        rows: Rows = []
        if types > 1:
            shares = tuple(each for each in self.owns if each <= 1)
            pairs = ", or pairs attract and repel each other" if shares != self.owns else ""
            rows.append(("of each type", f"{listed(shares)} of the variance{pairs}"))
        if hats > 1:
            rows.append(("of each time", f"{listed(self.togethers)} of the variance"))
        # NUTS states its own time.
        takes: Rows = [] if self.inference == "nuts" else [("takes", f"some {self._seconds} s of processor time")]
        rows += [("inference", self.way), *takes]
        return [*rows, *self.public_rows()]

    @property
    def _seconds(self) -> int:
        """Processor time of an inference to one digit, by the number of values alone."""
        found = SECONDS + SECONDS_EACH * len(self.measure)
        return int(round(found, -math.floor(math.log10(found))))

    def public_numbers(self) -> JsonObject:
        return {"field_vertices": len(self.grid.space.vertices), **{n: list(getattr(self, n)) for n in self.combining}}


def listed(values: tuple[float, ...]) -> str:
    """Values of a setting in words."""
    return " or ".join(f"{each:.4g}" for each in values)
