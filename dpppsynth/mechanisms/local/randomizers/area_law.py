"""Client laws on a grid that depend on the offset from the value: sampling, counts, likelihood, estimates.

All are a footprint of weights around the value's cell over a base weight of 1, on an output domain so large that the
footprint of every value lies in it. The sum of weights is then the same for every value, and no ratio of two of them
exceeds e^epsilon. Radius 0 is randomised response over the cells.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dpppsynth.core.arguments import finite, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats, Ints
from dpppsynth.mechanisms.local import grid_limits
from dpppsynth.mechanisms.local.randomizers.cell_randomizer import CellRandomizer
from dpppsynth.mechanisms.local.randomizers.em import (
    Fit,
    FootprintConvolution,
    em_settings,
    expectation_maximisation,
    mask,
    neighbour_smoothing,
)
from dpppsynth.mechanisms.local.randomizers.footprint import offsets, output_mask, reached
from dpppsynth.mechanisms.local.randomizers.weights import TOTAL, ExcessLaw, draws, excess_law, with_likelier
from dpppsynth.models.channel_likelihood import FastChannel

# Clients whose reports are drawn or counted at a time.
CHUNK = 1_000_000
LARGEST_MATRIX = 100_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class AreaRandomizer(CellRandomizer):
    """Base of the area mechanisms on a square grid: a cell in, a cell of the grid or of a rim around it out.

    Attributes
    ----------
    epsilon : float
    cells : int
        Along each axis of the grid; cell (i, j) is value `i * cells + j`.
    radius : int
        Of the disk and of the rim, in cells, at least 0; `grid_radius(epsilon, cells)` is a good one.
    """

    radius: int
    columns: ClassVar[tuple[str, ...]] = ("i", "j")

    def __post_init__(self) -> None:
        fewer = "take fewer, larger cells"
        object.__setattr__(self, "cells", whole("cells", self.cells, 1, most=grid_limits.AREA_SIDE, remedy=fewer))
        most = (grid_limits.AREA_BOX - self.cells) // 2
        object.__setattr__(self, "radius", whole("radius", self.radius, 0, most=most, remedy="it is counted in cells"))
        super().__post_init__()

    @property
    def weights(self) -> Floats:
        """(2 radius + 1, 2 radius + 1) weights of offsets from the value, from 1 to e^epsilon."""
        raise NotImplementedError

    @property
    def member(self) -> np.ndarray:
        """(2 radius + 1, 2 radius + 1) truth values: offsets whose cells are outputs for every value."""
        return reached(*offsets(self.radius), self.radius)

    @property
    def exponent(self) -> float:
        """Logarithm of the largest weight: epsilon, except for what is not private."""
        return self.epsilon

    @property
    def clones(self) -> float:
        """Probability of a clone, which is larger where no two disks have a cell in common."""
        # Devices draw reports without it.
        from dpppsynth.privacy.shuffling import lone_clone_probability

        return super().clones if self.radius else lone_clone_probability(self.spent)

    @property
    def size(self) -> int:
        """Number of cells that are reported, those of the rim included."""
        return len(self.outputs)

    @property
    def spent(self) -> float:
        """Epsilon that the integer weights certify."""
        return self.law.spent

    @cached_property
    def box(self) -> np.ndarray:
        """(cells + 2 radius, cells + 2 radius) truth values: cells from -radius on that are reported."""
        return output_mask(self.member, self.cells)

    @cached_property
    def outputs(self) -> Ints:
        """(size, 2) indices (i, j) of the cells that are reported, in the order of counts: lexicographic."""
        return np.argwhere(self.box) - self.radius

    @cached_property
    def near(self) -> Ints:
        """(F, 2) offsets of the cells near a value that weigh more than 1, the heaviest first."""
        weights = self.weights
        order = np.argsort(-weights, axis=None, kind="stable")[: int((weights > 1).sum())]
        return np.column_stack(np.unravel_index(order, weights.shape)) - self.radius

    @cached_property
    def law(self) -> ExcessLaw:
        """Integer weights that reports are drawn with."""
        heaviest_first = self.weights[tuple((self.near + self.radius).T)]
        return excess_law(heaviest_first, self.size, self.exponent)

    @cached_property
    def _excess(self) -> Ints:
        table = np.zeros((2 * self.radius + 1,) * 2, dtype=np.int64)
        table[tuple((self.near + self.radius).T)] = self.law.excess
        return table

    @cached_property
    def _position(self) -> Ints:
        """Place in the order of counts of every cell of the box, -1 where none is reported."""
        return np.where(self.box, np.cumsum(self.box).reshape(self.box.shape) - 1, -1)

    def column(self, value: int) -> Ints:
        """(size,) integer weights out of 2^62 of all reports given one value."""
        i, j = divmod(whole("value", value, 0, most=self.inputs - 1), self.cells)
        box = np.zeros(self.box.shape, dtype=np.int64)
        box[i : i + 2 * self.radius + 1, j : j + 2 * self.radius + 1] = self._excess
        return box[self.box] + self.law.base

    def matrix(self) -> Floats:
        """(size, inputs) probabilities of the reports given each value; columns sum to one.

        Raises
        ------
        InputError
            It has more than a hundred million entries; estimates and `column` need no matrix.
        """
        if self.size * self.inputs > LARGEST_MATRIX:
            msg = f"cells: a matrix of {self.size} x {self.inputs} entries is too large; `column(value)` gives parts."
            raise InputError(msg)
        matrix = np.empty((self.size, self.inputs))
        for value in range(self.inputs):
            matrix[:, value] = self.column(value) / TOTAL
        return matrix

    def draw(self, values: Ints, rng: np.random.Generator) -> Ints:
        """(n, 2) noisy cells of clients in the cells `values` (n,); those outside the grid are as legitimate."""
        values = self.values(values)
        reports = np.empty((len(values), 2), dtype=np.int64)
        for part in _chunks(len(values)):
            split = self.law.split(draws(rng, len(values[part])))
            around = np.column_stack(np.divmod(values[part], self.cells)) + self.near[split.near]
            reports[part] = np.where((split.output < 0)[:, None], around, self.outputs[split.output])
        return reports

    def count(self, reports: Ints) -> Ints:
        """(size,) numbers of reports of each output cell, in lexicographic order."""
        cells, counts = self.rows(reports), np.zeros(self.size, dtype=np.int64)
        for part in _chunks(len(cells)):
            counts += np.bincount(self._places(cells[part]), minlength=self.size)
        return counts

    def reported(self, counts: Ints) -> int:
        """Number of reports: every one is counted once."""
        return int(self.tallies(counts).sum())

    def _places(self, cells: Ints) -> Ints:
        if cells.size and not (-self.radius <= cells.min() and cells.max() < self.cells + self.radius):
            raise InputError(self._foreign())
        places = self._position[tuple((cells + self.radius).T)]
        if (places < 0).any():
            raise InputError(self._foreign())
        return places

    def _foreign(self) -> str:
        return (
            f"reports: some cell is none that a client with {self.cells} cells a side and radius {self.radius} sends; "
            "aggregate reports by the mechanism they were made with."
        )

    def binomials(self, counts: Ints, value: int) -> tuple[Ints, Floats]:
        """(size + 1,) counts, with that of the likelier reports together, and their chances."""
        return with_likelier(counts, self.column(value))

    def log_ratio(self, reports: Ints, value: int, other: int) -> Floats:
        """(n,) logarithms of Pr[report | value] / Pr[report | other]."""
        places = self._places(self.rows(reports))
        first, second = self.column(value)[places], self.column(other)[places]
        # The difference is exact, so that small ratios keep their digits.
        return np.log1p((first - second) / second)

    def published_settings(self, **given: Any) -> dict[str, Any]:
        """Settings `tolerance`, `max_iter` and `smoothing`, defaults filled in.

        Expectation maximisation stops when the log-likelihood changes by less than `tolerance`, by default
        `0.001 e^epsilon`. `smoothing` is the weight of each of four neighbours relative to the cell, by default 0.
        """
        smoothing = float(finite("smoothing", given.pop("smoothing", 0.0), least=0.0))
        return em_settings(given, tolerance=1e-3 * math.exp(self.epsilon)) | {"smoothing": smoothing}

    @cached_property
    def convolution(self) -> FootprintConvolution:
        """Products with the client's matrix, by fast Fourier transforms."""
        excess, base = self._excess / TOTAL, self.law.base / TOTAL
        return FootprintConvolution(cells=self.cells, radius=self.radius, excess=excess, base=base, outputs=self.box)

    @cached_property
    def channel(self) -> FastChannel:
        """Products with the client's matrix; reports are grouped by blocks of the box."""
        return FastChannel(
            (self.cells, self.cells), self.convolution.product, self.convolution.transposed, self._grouped
        )

    def _grouped(self, side: int) -> Ints:
        i, j = (self.outputs // side).T
        return np.unique(i * len(self.box) + j, return_inverse=True)[1]

    def fit(self, counts: Ints, n: int, *, inside: Any = None, **settings: Any) -> Fit:
        """Shares of the cells by expectation maximisation, with how the iteration ended."""
        counts, settings = self.tallies(counts), self.published_settings(**settings)
        if whole("n", n, 1) != counts.sum():
            msg = "n: must be the number of reports behind the counts, which is their sum."
            raise InputError(msg)
        grid, weight = (self.cells, self.cells), settings.pop("smoothing")
        possible = np.full(self.inputs, True) if inside is None else mask("inside", inside, (self.inputs,))

        def smooth(theta: Floats) -> Floats:
            return neighbour_smoothing(theta.reshape(grid), weight, inside=possible.reshape(grid)).ravel()

        return expectation_maximisation(
            self.convolution.forward,
            self.convolution.backward,
            counts,
            start=possible.astype(float),
            smooth=smooth if weight else None,
            **settings,
        )

    def published_estimate(self, counts: Ints, n: int, *, inside: Any = None, **settings: Any) -> Floats:
        """(inputs,) shares of the cells, the maximum likelihood ones up to the tolerance unless smoothed."""
        return self.fit(counts, n, inside=inside, **settings).warned().shares


def _chunks(n: int) -> Iterator[slice]:
    return (slice(start, start + CHUNK) for start in range(0, n, CHUNK))
