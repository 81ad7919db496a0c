"""Area mechanisms on a grid: cells in a disk, or in nested disks, around the value are reported more often.

At radius 0 all of them are randomised response over the cells, and at radius 1 the disk and the nested disks agree.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpppsynth.core.arguments import flag
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats
from dpppsynth.mechanisms.local.randomizers.area_law import AreaRandomizer
from dpppsynth.mechanisms.local.randomizers.footprint import high, high_shares, offsets, reached

# Integers out of 2^62 express no larger epsilon, and far beyond it exponentials overflow.
BEYOND = 50.0


@dataclass(frozen=True, kw_only=True, eq=False)
class DiskArea(AreaRandomizer):
    """Disk area mechanism: cells in the disk weigh e^epsilon, cells on its border in between, all others 1.

    Attributes
    ----------
    epsilon, cells, radius
        As of every area mechanism.
    shrink : bool
        Whether cells that the disk only reaches into count with their shrunken area, and not at all otherwise.
    tight : bool
        Whether only cells are reported whose centre lies in the disk of some value; not with `shrink`.

    References
    ----------
    Numerical Estimation of Spatial Distributions under Differential Privacy (disk area mechanism), section VI.

    Examples
    --------
    >>> law = DiskArea(epsilon=1.0, cells=5, radius=1)
    >>> law.matrix().shape, round(float(law.matrix().max()), 6), round(law.spent, 6)
    ((49, 25), 0.046252, 1.0)
    >>> reports = law.draw(np.zeros(1000, dtype=int), np.random.default_rng(1))
    >>> law.reported(law.count(reports))
    1000
    """

    shrink: bool = True
    tight: bool = False
    kind: ClassVar[str] = "disk-area"

    def __post_init__(self) -> None:
        for name in ("shrink", "tight"):
            object.__setattr__(self, name, flag(name, getattr(self, name)))
        if self.tight and self.shrink:
            msg = "tight: goes without shrunken border cells, which reach beyond the tight domain; give shrink=False."
            raise InputError(msg)
        super().__post_init__()

    @property
    def weights(self) -> Floats:
        """(2 radius + 1, 2 radius + 1) weights: `1 + (e^epsilon - 1) share`."""
        at = offsets(self.radius)
        share = high_shares(*at, self.radius) if self.shrink else high(*at, self.radius)
        return 1 + math.expm1(min(self.exponent, BEYOND)) * share

    @property
    def member(self) -> np.ndarray:
        """(2 radius + 1, 2 radius + 1) truth values: cells that the disk holds or reaches into, or its centres only."""
        return (high if self.tight else reached)(*offsets(self.radius), self.radius)


@dataclass(frozen=True, kw_only=True, eq=False)
class HybridArea(AreaRandomizer):
    """Hybrid uniform-exponential mechanism: weights fall from e^epsilon by rings of one cell, to 1 outside the disk.

    Cells that a circle between two rings cuts are split by their shrunken area, so that the law is a mixture of nested
    disks. Radius 1 is the disk area mechanism.

    References
    ----------
    Numerical Estimation of Spatial Distributions under Differential Privacy (disk area mechanism), appendix; the main
    text lacks epsilon in the exponent.

    Examples
    --------
    >>> law = HybridArea(epsilon=1.0, cells=5, radius=2)
    >>> law.weights[2:, 2].round(6).tolist()
    [2.718282, 2.718282, 1.648721]
    """

    kind: ClassVar[str] = "hybrid-area"

    @property
    def weights(self) -> Floats:
        """(2 radius + 1, 2 radius + 1) weights of the rings, those of cut cells in between."""
        x, y = offsets(self.radius)
        ring = np.maximum(np.ceil(np.sqrt(x**2 + y**2)).astype(np.int64), 1)
        # A cell's nearest point is less than a cell nearer than its centre: only the ring's inner circle can cut it.
        cut = np.where(ring > 1, high_shares(x, y, np.minimum(ring - 1, self.radius)), 0.0)
        levels = self._levels()
        outer = np.minimum(ring, len(levels) - 1)
        return np.where(self.member, levels[outer] + cut * (levels[outer - 1] - levels[outer]), 1.0)

    def _levels(self) -> Floats:
        """Weights of ring 1 to radius and of everything outside; the first belongs to no ring."""
        steps = np.arange(max(self.radius, 1)) / max(self.radius, 1)
        levels = np.exp((1 - steps) * min(self.exponent, BEYOND))
        return np.concatenate([levels[:1], levels, [1.0]])


@dataclass(frozen=True, kw_only=True, eq=False)
class LiteralHybridArea(HybridArea):
    """Hybrid mechanism as the main text prints it, without epsilon in the exponent: for comparison, never for release.

    It spends 1 whatever epsilon is: too much below 1, too little above. Only radius 0 obeys epsilon.

    Attributes
    ----------
    epsilon, cells, radius
        As of every area mechanism.
    unsafe : bool
        Has to be True where the law spends more than epsilon.

    References
    ----------
    Numerical Estimation of Spatial Distributions under Differential Privacy (disk area mechanism), section IV.

    Examples
    --------
    >>> round(LiteralHybridArea(epsilon=3.5, cells=5, radius=2).spent, 9)
    1.0
    """

    unsafe: bool = False
    kind: ClassVar[str] = "literal-hybrid-area"

    def __post_init__(self) -> None:
        object.__setattr__(self, "unsafe", flag("unsafe", self.unsafe))
        super().__post_init__()
        if self.spent > self.epsilon and not self.unsafe:
            msg = (
                f"epsilon: the printed law spends {self.spent:.3g} and not {self.epsilon:g}; take HybridArea, or "
                "unsafe=True for a comparison on data that are not private."
            )
            raise InputError(msg)

    @property
    def exponent(self) -> float:
        """Logarithm of the largest weight: 1, or epsilon where there are no rings."""
        return 1.0 if self.radius else self.epsilon
