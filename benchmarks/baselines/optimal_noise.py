"""The smallest delta of any additive noise with a bound, and the staircase noise that attains it.

Where noise stays within `[-A, A]` and the truth may shift by up to D, what matters is epsilon and the ratio `A / D`. At
whole ratios truncated Laplace noise is optimal; half way between them a staircase over blocks as wide as D is, which on
whole numbers with D = 1 is `TruncatedGeometric`. Elsewhere the optimum is that of a linear program.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpppsynth.core.arguments import finite, positive, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.privacy.truncated.geometric import TruncatedGeometric, truncated_geometric_delta
from dpppsynth.privacy.truncated.truncated_laplace import (
    LARGEST_PART,
    SMALLEST_PART,
    draws_shape,
    in_range,
    numbers,
    truncated_laplace_delta,
)
from dpppsynth.spatial.mesh import Floats

# Coefficients of the program range from 1 to e^epsilon; up to here its solution was seen to be right to 2e-7.
LARGEST_EPSILON = 10.0
TOLERANCE = 1e-10
# Cells times shifts of a linear program that takes less than a few seconds.
MOST_ROWS = 5000
MOST_STEPS = 100_000
LARGEST_RATIO = 1e15


@dataclass(frozen=True)
class TruncatedStaircase:
    """Noise of constant density on `2 steps + 1` blocks as wide as the sensitivity, whose heights fall by `e^-epsilon`.

    Of all additive noises within the bound `(steps + 1/2) sensitivity` it has the smallest delta at its epsilon.

    Attributes
    ----------
    epsilon : float
        From 1e-50 to 1e50.
    steps : int
        Blocks on each side of the middle one, from 1 to 100000.
    sensitivity : float, optional
        From 1e-50 to 1e50.

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> law = TruncatedStaircase(epsilon=1.0, steps=2)
    >>> law.bound, round(law.exposed(1.0), 6), round(truncated_laplace_delta(1.0, 2.5), 6)
    (2.5, 0.067451, 0.076829)
    """

    epsilon: float
    steps: int
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", in_range("epsilon", self.epsilon, SMALLEST_PART, LARGEST_PART))
        object.__setattr__(self, "steps", whole("steps", self.steps, 1, most=MOST_STEPS))
        object.__setattr__(self, "sensitivity", in_range("sensitivity", self.sensitivity, SMALLEST_PART, LARGEST_PART))

    @property
    def bound(self) -> float:
        """Largest error."""
        return (self.steps + 0.5) * self.sensitivity

    @property
    def blocks(self) -> TruncatedGeometric:
        """Law of the number of the block, 0 for the middle one."""
        return TruncatedGeometric(1 / self.epsilon, self.steps)

    def pdf(self, z: Any) -> Floats:
        """Densities at z, of any shape; 0 beyond the bound."""
        size = np.abs(numbers("z", z))
        inside = size <= self.bound
        block = np.floor(np.where(inside, size, 0.0) / self.sensitivity + 0.5)
        return np.where(inside, self.blocks.pmf(np.minimum(block, self.steps)) / self.sensitivity, 0.0)

    @property
    def variance(self) -> float:
        """Mean of z^2."""
        return self.sensitivity**2 * (self.blocks.variance + 1 / 12)

    def exposed(self, shift: float) -> float:
        """Probability of answers that are impossible once the truth shifts, by at least 0.

        At a shift by the sensitivity, and at no smaller one, it is the smallest delta.
        """
        whole_blocks = min(finite("shift", shift, least=0.0) / self.sensitivity, 2.0 * self.steps + 1)
        low = math.floor(whole_blocks)
        part = whole_blocks - low
        return (1 - part) * self.blocks.exposed(low) + part * self.blocks.exposed(low + 1)

    def sample(self, size: Any = (), rng: RngLike = None) -> Floats:
        """Draws in floating point, for studies and never for a release: an array of the shape that `size` tells."""
        shape, rng = draws_shape(size), generator(rng)
        numbered = np.arange(-self.steps, self.steps + 1)
        probabilities = self.blocks.pmf(numbered)
        drawn = rng.choice(numbered, size=shape, p=probabilities / probabilities.sum())
        return self.sensitivity * (drawn + rng.random(shape) - 0.5)


def smallest_delta(epsilon: float, ratio: float) -> float:
    """Smallest delta of any additive noise with a bound, where it is known in closed form.

    The noise in blocks as wide as the sensitivity: the leftmost j of them hold at most
    `delta (e^(j epsilon) - 1) / (e^epsilon - 1)`, and so do the rightmost; together they hold everything.

    Parameters
    ----------
    epsilon : float
        From 1e-50 to 1e50.
    ratio : float
        Bound over sensitivity: a multiple of one half.

    Raises
    ------
    InputError
        An argument breaks its rule; `optimal_delta` takes other ratios.

    Examples
    --------
    >>> [round(smallest_delta(1.0, ratio), 6) for ratio in (1, 2, 2.5)]
    [0.5, 0.134471, 0.067451]
    """
    epsilon = in_range("epsilon", epsilon, SMALLEST_PART, LARGEST_PART)
    doubled = 2 * positive("ratio", ratio, most=LARGEST_RATIO)
    if doubled != int(doubled):
        msg = f"ratio: must be a multiple of one half, got {ratio!r}; optimal_delta() takes others."
        raise InputError(msg)
    steps, half = divmod(int(doubled), 2)
    if not half:
        return truncated_laplace_delta(epsilon, float(steps))
    return truncated_geometric_delta(epsilon, steps) if steps else 1.0


def optimal_delta(epsilon: float, ratio: float, *, cells: int = 4) -> float:
    """Smallest delta of any additive noise with a bound, by a linear program over noises constant on cells.

    That restriction costs nothing: noise averaged over cells has no larger delta at shifts by whole cells, and noise
    constant on cells none at the shifts between. So the result does not depend on `cells`.

    Parameters
    ----------
    epsilon : float
        From 0 to 10.
    ratio : float
        Bound over sensitivity, at least one half; `2 ratio cells` must be whole.
    cells : int, optional
        Per sensitivity. The program has `2 ratio cells^2` rows, at most 5000.

    Returns
    -------
    float
        With an absolute error below 1e-6, and 1e-11 up to epsilon = 3. It is never below `smallest_delta` of the next
        ratio that is a multiple of one half, hence never 0: deltas as small as that have no digits otherwise.

    Raises
    ------
    InputError
        An argument breaks its rule.

    Examples
    --------
    >>> round(optimal_delta(1.0, 1.5), 6), round(truncated_laplace_delta(1.0, 1.5), 6)
    (0.211942, 0.24676)
    """
    epsilon, cells = finite("epsilon", epsilon, least=0.0), whole("cells", cells, 1, most=MOST_ROWS)
    n = 2 * positive("ratio", ratio, most=LARGEST_RATIO) * cells
    if epsilon > LARGEST_EPSILON or ratio < 1 / 2 or n != int(n) or n * cells > MOST_ROWS:
        msg = (
            f"epsilon, ratio, cells: needs epsilon of at most {LARGEST_EPSILON:g}, a ratio of at least one half, "
            f"2 ratio cells whole, and at most {MOST_ROWS} times their product with cells."
        )
        raise InputError(msg)
    # Delta falls with the ratio and with epsilon, so a closed form at no smaller ones is no larger.
    least = smallest_delta(max(epsilon, SMALLEST_PART), math.ceil(2 * ratio) / 2)
    return max(_program(epsilon, int(n), cells), least)


def _program(epsilon: float, n: int, cells: int) -> float:
    """Optimum of the linear program for noises on n cells, within the absolute error of its solver."""
    from scipy.optimize import linprog

    rows, total = _constraints(math.exp(epsilon), n, cells)
    objective = np.zeros(rows.shape[1])
    objective[total.size] = 1.0
    weights = np.concatenate([total, np.zeros(rows.shape[1] - total.size)])
    exact = {"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE}
    found = linprog(
        objective, A_ub=rows, b_ub=np.zeros(rows.shape[0]), A_eq=weights[None, :], b_eq=[1.0], options=exact
    )
    return float(min(max(found.fun, 0.0), 1.0))


def _constraints(factor: float, n: int, cells: int) -> tuple[Any, Floats]:
    """Rows that must not be above 0, and what half the cells count for in the sum of masses, which must be 1.

    Variables are the masses of half of the n cells, the other half being their mirror image; delta; and for each shift
    by 1, ..., `cells` cells what each mass exceeds `factor` times the shifted one by. These excesses sum to at most
    delta.
    """
    from scipy.sparse import block_array, coo_array, eye_array, kron

    half = (n + 1) // 2
    mirrored = np.minimum(np.arange(n), n - 1 - np.arange(n))
    masses = coo_array((np.ones(n), (np.arange(n), mirrored)), shape=(n, half)).tocsr()
    gains = [masses - factor * (eye_array(n, k=-shift) @ masses) for shift in range(1, cells + 1)]
    excess = block_array([[gain] for gain in gains])
    sums = kron(eye_array(cells), np.ones((1, n)))
    rows = block_array([[excess, None, -eye_array(n * cells)], [None, -np.ones((cells, 1)), sums]], format="csr")
    return rows, np.asarray(masses.sum(axis=0), dtype=float)
