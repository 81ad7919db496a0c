"""Local mechanisms on a square grid of cells: area mechanisms, square wave, subset exponential."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

from dpppsynth.contract.settings import EXPERT, setting
from dpppsynth.mechanisms.local.randomizers.area import DiskArea, HybridArea
from dpppsynth.mechanisms.local.randomizers.matching import matched_epsilon
from dpppsynth.mechanisms.local.randomizers.radius import grid_radius
from dpppsynth.mechanisms.local.randomizers.randomizer import Randomizer
from dpppsynth.mechanisms.local.randomizers.square_wave import SquareWave, square_wave_half_width
from dpppsynth.mechanisms.local.randomizers.subset_exponential import SubsetExponential, subset_size
from dpppsynth.mechanisms.local.synthesizer import CellMechanism

TOLERANCE: dict[str, Any] = {
    "help": "Growth of the log-likelihood at which expectation maximisation stops",
    "panel": EXPERT,
}
ITERATIONS: dict[str, Any] = {
    "help": "Most iterations of expectation maximisation",
    "option": "--max-iterations",
    "panel": EXPERT,
}


@dataclass(frozen=True)
class AreaMechanism(CellMechanism):
    """Base of area mechanisms: a report is a cell near the person's with high probability, any other with low.

    Reports lie up to `radius` cells beyond the grid. The estimate is found by expectation maximisation.

    Parameters
    ----------
    epsilon : float
    cells : int
        Along each side of the grid.
    radius : int, optional
        Of the likely cells, in cells. None takes the one that the reports tell most with, `grid_radius`.
    tolerance : float, optional
        Expectation maximisation stops when the log-likelihood grows by less. None takes `0.001 e^epsilon`.
    max_iter : int
        Most iterations.
    smoothing : float
        Weight of each neighbouring cell in a smoothing step after every iteration; 0 for none.
    """

    _: KW_ONLY
    radius: int | None = setting(
        None, help="Radius of the likely cells, in cells", otherwise="the one that the reports tell most with"
    )
    tolerance: float | None = setting(None, **TOLERANCE, otherwise="0.001 e^epsilon")
    max_iter: int = setting(10_000, **ITERATIONS)
    smoothing: float = setting(
        0.0, help="Weight of each neighbouring cell in a smoothing step after every iteration", panel=EXPERT
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.settings()

    def settings(self) -> dict[str, Any]:
        """Settings of the estimator."""
        given: dict[str, Any] = {} if self.tolerance is None else {"tolerance": self.tolerance}
        return self.randomizer.settings(**given, max_iter=self.max_iter, smoothing=self.smoothing)

    def _radius(self) -> int:
        return grid_radius(self.epsilon, self.cells) if self.radius is None else self.radius


@dataclass(frozen=True)
class DiskAreaMechanism(AreaMechanism):
    """Disk area mechanism: all cells in a disk around the person's are equally likely, by `e^epsilon` more than others.

    Parameters
    ----------
    shrink : bool
        Count cells that the circle cuts for a share of theirs; otherwise for whole if their centre is inside, else not.

    Notes
    -----
    Other parameters are those of `AreaMechanism`.

    References
    ----------
    Numerical estimation of spatial distributions under differential privacy: disk area mechanism, Algorithms 1 and 2.

    Examples
    --------
    >>> mechanism = DiskAreaMechanism(epsilon=3.5)
    >>> mechanism.randomizer.radius, mechanism.matrix().shape
    (3, (437, 225))
    >>> report = mechanism.client((7, 2))
    """

    _: KW_ONLY
    shrink: bool = setting(True, help="Count cells that the circle cuts for a share of theirs", panel=EXPERT)

    def _randomizer(self) -> Randomizer:
        return DiskArea(epsilon=self.epsilon, cells=self.cells, radius=self._radius(), shrink=self.shrink)


@dataclass(frozen=True)
class HybridUniformExponential(AreaMechanism):
    """Hybrid uniform-exponential mechanism: the probability falls off in rings around the person's cell.

    Parameters are those of `AreaMechanism`.

    References
    ----------
    As `DiskAreaMechanism`, with the rings of the paper's appendix.
    """

    def _randomizer(self) -> Randomizer:
        return HybridArea(epsilon=self.epsilon, cells=self.cells, radius=self._radius())


@dataclass(frozen=True)
class MultidimensionalSquareWave(CellMechanism):
    """Square wave on one coordinate, chosen at random; the estimate is the product of the coordinates' distributions.

    It takes the coordinates for independent: where they are not, more reports do not help.

    Parameters
    ----------
    epsilon : float
    cells : int
        Along each side of the grid.
    half_width : int, optional
        Of the likely cells on an axis. None takes the one that the reports tell most with.
    tolerance : float
        Expectation maximisation with smoothing stops when the log-likelihood changes by less.
    max_iter : int
        Most iterations.

    References
    ----------
    Li et al. (2020), Estimating numerical distributions under local differential privacy, SIGMOD.
    """

    _: KW_ONLY
    half_width: int | None = setting(
        None,
        help="Half width of the likely cells on an axis, in cells",
        otherwise="the one that the reports tell most with",
        panel=EXPERT,
    )
    tolerance: float = setting(1e-3, **TOLERANCE)
    max_iter: int = setting(10_000, **ITERATIONS)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.settings()

    def settings(self) -> dict[str, Any]:
        """Settings of the estimator."""
        return self.randomizer.settings(tolerance=self.tolerance, max_iter=self.max_iter)

    def _randomizer(self) -> Randomizer:
        width = square_wave_half_width(self.epsilon, self.cells) if self.half_width is None else self.half_width
        return SquareWave(epsilon=self.epsilon, cells=self.cells, half_width=width)


@dataclass(frozen=True)
class SEMGeoI(CellMechanism):
    """Subset exponential mechanism: geo-indistinguishability, which hides where a person is from those nearby.

    It is not local differential privacy: locations d cells apart are told apart by up to `d * epsilon`.

    Parameters
    ----------
    epsilon : float
        For locations one cell apart.
    cells : int
        Along each side of the grid.
    subset : int, optional
        Cells in a report. None takes the rule `subset_size`.

    References
    ----------
    Wang, Nie, Wang, Xu, Yang & Huang (2017), Local private ordinal data distribution estimation, INFOCOM.
    """

    _: KW_ONLY
    subset: int | None = setting(
        None, help="Cells in a report", option="--subset-size", otherwise="a rule", panel=EXPERT
    )

    @classmethod
    def matching(cls, epsilon: float, *, cells: int = 15, empty: bool = False) -> "SEMGeoI":
        """The mechanism that leaves one Bayesian adversary with the same error as the disk area mechanism at `epsilon`.

        Parameters
        ----------
        epsilon : float
            Of the disk area mechanism.
        cells : int
        empty : bool
            Let the adversary look at empty reports too, which published comparisons leave out. At small epsilon
            there is no match without it.
        """
        match = matched_epsilon(epsilon, cells, empty=empty)
        return cls(match.epsilon, cells=cells, subset=match.subset)

    def _randomizer(self) -> Randomizer:
        size = subset_size(self.epsilon, self.cells) if self.subset is None else self.subset
        return SubsetExponential(epsilon=self.epsilon, cells=self.cells, subset=size)
