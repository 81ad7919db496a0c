"""Maximum likelihood shares from counts of reports by expectation maximisation, with optional smoothing.

A client law with probabilities M (reports, values) makes the counts multinomial with probabilities `M shares`. Every
step of expectation maximisation raises their likelihood and keeps the shares non-negative with sum one, and needs M
only in the products `M shares` and `M^T ratios`. On a grid these are convolutions with the footprint of the law.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpppsynth.core.arguments import finite, function, plain_array, whole
from dpppsynth.core.errors import InformationWarning, InputError
from dpppsynth.core.types import Floats

MOST_STEPS = 10_000
Product = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Fit:
    """Shares that expectation maximisation stopped at.

    Attributes
    ----------
    shares : (inputs,) array
        Non-negative, with sum one.
    iterations : int
        Steps taken.
    change : float
        Of the log-likelihood in the last step, absolute; 0 where no step was needed.
    converged : bool
        Whether `change` fell below the tolerance within the steps allowed.
    log_likelihood : float
        Of the counts, by natural logarithms and without the multinomial coefficient, which is the same for all shares.
    """

    shares: Floats
    iterations: int
    change: float
    converged: bool
    log_likelihood: float

    def warned(self) -> "Fit":
        """The fit itself, with an InformationWarning where it was not done within the steps allowed."""
        if not self.converged:
            msg = (
                f"estimate: expectation maximisation was not done after max_iter = {self.iterations} steps; "
                "allow more, or a larger tolerance."
            )
            warnings.warn(msg, InformationWarning, stacklevel=3)
        return self


def expectation_maximisation(
    forward: Product,
    backward: Product,
    counts: Any,
    *,
    start: Any,
    tolerance: float,
    max_iter: int = MOST_STEPS,
    smooth: Product | None = None,
) -> Fit:
    """Shares of values that make counts of reports as likely as they can be.

    Parameters
    ----------
    forward : function
        From shares (inputs,) to probabilities of the reports (outputs,): the product with the client's matrix M.
    backward : function
        From numbers (outputs,) to (inputs,): the product with the transpose of M.
    counts : (outputs,) array
        Numbers of reports, not negative and not all zero; need not be whole.
    start : (inputs,) array
        Shares to begin with, not negative; what is zero stays zero.
    tolerance : float
        Stop when a step changes the log-likelihood by less; 0 takes all the steps.
    max_iter : int
        Most steps; `Fit.converged` tells whether they were enough.
    smooth : function, optional
        From shares to shares, after every step; the shares are divided by their sum again. The likelihood may then
        fall, and the result is no maximum of it.

    Raises
    ------
    InputError
        Arguments break their rules, or `start` rules out a report that was counted.

    References
    ----------
    Dempster, Laird and Rubin (1977), Maximum likelihood from incomplete data via the EM algorithm, JRSS B 39; Li et al.
    (2020), Estimating numerical distributions under local differential privacy, SIGMOD, for the smoothing.

    Examples
    --------
    >>> law = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> fit = expectation_maximisation(law.__matmul__, law.T.__matmul__, [65, 35], start=[0.5, 0.5], tolerance=1e-9)
    >>> fit.shares.round(3).tolist(), fit.converged
    ([0.8, 0.2], True)
    """
    function("forward", forward, "shares"), function("backward", backward, "ratios")
    if smooth is not None:
        function("smooth", smooth, "shares")
    seen, shares = _masses("counts", counts), _masses("start", start)
    shares = shares / shares.sum()
    tolerance = finite("tolerance", tolerance, least=0.0)
    max_iter = whole("max_iter", max_iter, 1)
    likely = _likely(_shaped("forward", forward, shares, seen), seen)
    steps, change = 0, np.inf
    while steps < max_iter and not change < tolerance:
        ratios = np.divide(seen, likely, out=np.zeros_like(seen), where=seen > 0)
        shares = shares * _shaped("backward", backward, ratios, shares)
        if smooth is not None:
            shares = _shaped("smooth", smooth, shares, shares)
        shares = shares / shares.sum()
        before, likely = likely, _likely(_shaped("forward", forward, shares, seen), seen)
        # A sum of small logarithms; the difference of two likelihoods has fewer digits.
        change = abs(_weighted_logs(seen, likely, before))
        steps += 1
    ends = _weighted_logs(seen, likely, np.ones_like(likely))
    return Fit(shares, steps, float(change), bool(change < tolerance), ends)


def em_settings(given: Mapping[str, Any], *, tolerance: float) -> dict[str, Any]:
    """Settings `tolerance` and `max_iter` in JSON form from those given, with this default of the first.

    Raises
    ------
    InputError
        A name is unknown or a value breaks its rule.
    """
    settings = {"tolerance": tolerance, "max_iter": MOST_STEPS} | dict(given)
    unknown = [name for name in settings if name not in ("tolerance", "max_iter")]
    if unknown:
        msg = f"settings: the estimator takes tolerance and max_iter, not {', '.join(map(str, unknown))}."
        raise InputError(msg)
    return {
        "tolerance": float(finite("tolerance", settings["tolerance"], least=0.0)),
        "max_iter": whole("max_iter", settings["max_iter"], 1),
    }


def binomial_smoothing(shares: Floats, *, inside: Any = None) -> Floats:
    """Shares (d,) in a row averaged over neighbours with weights 1, 2, 1; at the two ends with 2, 1 alone.

    Their sum may change a little. A single share stays as it is.

    Parameters
    ----------
    shares : (d,) array
    inside : (d,) array of bool, optional
        Cells that exist; where one is missing the row ends. Shares of the others become 0.

    Examples
    --------
    >>> binomial_smoothing(np.array([0.0, 0.0, 12.0, 0.0])).tolist()
    [0.0, 3.0, 6.0, 4.0]
    """
    values = _array("shares", shares, 1)
    exists = np.ones(values.shape, dtype=bool) if inside is None else mask("inside", inside, values.shape)
    summed, weights = (np.convolve(np.where(exists, each, 0.0), [1.0, 2.0, 1.0])[1:-1] for each in (values, 1.0))
    return np.where(exists, summed / np.maximum(weights, 1.0), 0.0)


def neighbour_smoothing(shares: Floats, weight: float, *, inside: Any = None) -> Floats:
    """Shares (nx, ny) averaged with their four neighbours, each with `weight` relative to the cell itself.

    The weight of a neighbour that does not exist goes to the cell itself, so that the sum stays the same.

    Parameters
    ----------
    shares : (nx, ny) array
    weight : float
        At least 0; 0 changes nothing, 0.25 halves a cell's own say.
    inside : (nx, ny) array of bool, optional
        Cells that exist; shares of the others are left alone.

    Examples
    --------
    >>> neighbour_smoothing(np.array([[8.0, 0.0], [0.0, 0.0]]), 0.25).tolist()
    [[6.0, 1.0], [1.0, 0.0]]
    """
    values = _array("shares", shares, 2)
    weight = finite("weight", weight, least=0.0)
    exists = np.ones(values.shape, dtype=bool) if inside is None else mask("inside", inside, values.shape)
    around, there = np.pad(values, 1), np.pad(exists, 1)
    middle = np.s_[1:-1]
    sides = ((np.s_[:-2], middle), (np.s_[2:], middle), (middle, np.s_[:-2]), (middle, np.s_[2:]))
    gained = sum(np.where(there[side] & exists, around[side] - values, 0.0) for side in sides)
    return np.asarray(values + weight / (1 + 4 * weight) * gained)


@dataclass(frozen=True, kw_only=True, eq=False)
class FootprintConvolution:
    """Both products with a client's matrix on a grid, where reports near the value have an excess of probability.

    `Pr[o | v] = base[o] + excess[o - v]`. Outputs are cells of the box from -radius to cells - 1 + radius along both
    axes, in lexicographic order of those that `outputs` marks.

    Attributes
    ----------
    cells : int
        Along each axis of the square grid of values.
    radius : int
        Of the footprint, in cells, and therefore of the rim around the grid.
    excess : (2 radius + 1, 2 radius + 1) array
        Probabilities above the base of outputs at offsets -radius .. radius from the value, not negative.
    base : float or (outputs,) array
        Probabilities that outputs have whatever the value, not negative.
    outputs : (cells + 2 radius, cells + 2 radius) array of bool
        Cells of the box that are reported at all.

    Examples
    --------
    >>> law = FootprintConvolution(cells=2, radius=0, excess=[[0.2]], base=0.2, outputs=np.full((2, 2), True))
    >>> law.forward(np.array([1.0, 0.0, 0.0, 0.0])).round(3).tolist()
    [0.4, 0.2, 0.2, 0.2]
    """

    cells: int
    radius: int
    excess: Any
    base: Any
    outputs: Any

    def __post_init__(self) -> None:
        cells, radius = whole("cells", self.cells, 1), whole("radius", self.radius, 0)
        outputs = mask("outputs", self.outputs, (cells + 2 * radius,) * 2)
        excess, base = _array("excess", self.excess, 2), plain_array(self.base)
        if excess.shape != (2 * radius + 1,) * 2 or (excess < 0).any():
            msg = f"excess: must be ({2 * radius + 1}, {2 * radius + 1}) numbers that are not negative."
            raise InputError(msg)
        if base is None or base.shape not in {(), (outputs.sum(),)} or base.dtype.kind not in "iuf":
            msg = f"base: must be a number, or one for each of the {outputs.sum()} outputs."
            raise InputError(msg)
        if not (np.isfinite(base) & (base >= 0)).all():
            msg = "base: must be finite and not negative; it is a probability of each output."
            raise InputError(msg)
        for name, value in (("excess", excess), ("base", base.astype(float)), ("outputs", outputs)):
            object.__setattr__(self, name, value)

    def forward(self, shares: Floats) -> Floats:
        """(outputs,) probabilities of the reports of clients whose values have shares (cells^2,)."""
        values = _sized("shares", shares, self.cells**2)
        # Exact sums are not negative; rounding may leave some of them just below zero.
        return np.asarray(self.base * values.sum() + np.maximum(self._spread(values), 0.0))

    def backward(self, ratios: Floats) -> Floats:
        """(cells^2,) sums of ratios (outputs,) weighted by the probabilities of the outputs given each value."""
        ratios = _sized("ratios", ratios, int(self.outputs.sum()))
        return np.asarray((self.base * ratios).sum() + np.maximum(self._gathered(ratios), 0.0))

    def product(self, values: Floats) -> Floats:
        """(outputs,) product of values (cells^2,) of any sign with the matrix."""
        return np.asarray(self.base * values.sum() + self._spread(values))

    def transposed(self, numbers: Floats) -> Floats:
        """(cells^2,) product of numbers (outputs,) of any sign with the transpose of the matrix."""
        return np.asarray((self.base * numbers).sum() + self._gathered(numbers))

    def _spread(self, values: Floats) -> Floats:
        side = len(self.outputs)
        spread = self._back(self._ahead(values.reshape(self.cells, self.cells)) * self._transform)
        return np.asarray(spread[:side, :side][self.outputs])

    def _gathered(self, numbers: Floats) -> Floats:
        box = np.zeros(self.outputs.shape)
        box[self.outputs] = numbers
        gathered = self._back(self._ahead(box) * self._transform.conj())
        return np.asarray(gathered[: self.cells, : self.cells].ravel())

    @cached_property
    def _size(self) -> int:
        """Period long enough that nothing wraps around into the box."""
        from scipy import fft  # devices draw reports without it

        return int(fft.next_fast_len(len(self.outputs), real=True))

    @cached_property
    def _transform(self) -> Any:
        return self._ahead(self.excess)

    def _ahead(self, values: Floats) -> Any:
        from scipy import fft

        return fft.rfft2(values, (self._size, self._size))

    def _back(self, transformed: Any) -> Floats:
        from scipy import fft

        return np.asarray(fft.irfft2(transformed, (self._size, self._size)))


def mask(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Truth values of the given shape, at least one of them true; InputError otherwise."""
    array = plain_array(value)
    if array is None or array.shape != shape or array.dtype != bool or not array.any():
        msg = f"{name}: must be truth values of shape {shape}, at least one of them True."
        raise InputError(msg)
    return array


def _array(name: str, value: Any, dimensions: int) -> Floats:
    array = plain_array(value)
    real = array is not None and array.ndim == dimensions and array.size and array.dtype.kind in "iuf"
    if array is None or not real or not np.isfinite(array).all():
        msg = f"{name}: must be finite numbers in an array of {dimensions} dimension{'s' if dimensions > 1 else ''}."
        raise InputError(msg)
    return array.astype(float)


def _sized(name: str, value: Any, size: int) -> Floats:
    array = _array(name, value, 1)
    if len(array) != size:
        msg = f"{name}: must be {size} numbers, got {len(array)}."
        raise InputError(msg)
    return array


def _masses(name: str, value: Any) -> Floats:
    array = _array(name, value, 1)
    with np.errstate(over="ignore"):
        total = array.sum()
    if (array < 0).any() or not 0 < total < np.inf:
        msg = f"{name}: must not be negative, not all zero, and have a finite sum."
        raise InputError(msg)
    return array


def _shaped(name: str, product: Product, values: Floats, like: Floats) -> Floats:
    """Result of a given function of values, which must have the shape of `like`."""
    try:
        made = np.asarray(product(values), dtype=float)
    except (TypeError, ValueError):
        made = np.empty(0)
    if made.shape != like.shape:
        msg = f"{name}: must give an array of shape {like.shape} for one of {values.shape}; check start and counts."
        raise InputError(msg)
    return made


def _likely(probabilities: Floats, seen: Floats) -> Floats:
    """Probabilities of the reports, checked: none that was counted is impossible."""
    likely = np.asarray(probabilities, dtype=float)
    if likely.shape != seen.shape:
        msg = f"counts: must be {likely.size} numbers, one for each output of `forward`, got {seen.size}."
        raise InputError(msg)
    if not (likely[seen > 0] > 0).all():
        msg = "start: rules out reports that were counted; give every possible value a share."
        raise InputError(msg)
    return likely


def _weighted_logs(seen: Floats, likely: Floats, before: Floats) -> float:
    some = seen > 0
    return float(seen[some] @ np.log(likely[some] / before[some]))
