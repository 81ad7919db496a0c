"""k-median clustering of persons' locations: a private coreset, and a solver that runs on it.

The cost of k centres C is `sum_x min(|c - x|_1 for c in C)`. It changes by at most the Earth Mover's norm of a change
of the masses, since the distance to the nearest centre is 1-Lipschitz and never above 2 in the unit square. So noisy
masses that are close in that norm serve any choice of centres, and the solver needs no noise of its own.
"""

import math

import numpy as np
import numpy.typing as npt

from baselines.heatmap_arrays import Users, sparse_aggregate
from dpppsynth.core.arguments import positive, real_array, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.mechanisms.heatmap.bound import DEEPEST
from dpppsynth.spatial.mesh import Floats, Ints
from dpppsynth.spatial.minimum_cost_flow import nonnegative_grid

# Cells kept per level where k asks for fewer: the default of the heat maps.
FEWEST_CELLS = 20
RESTARTS = 8
MOST_RESTARTS = 1000
MOST_CENTRES = 10_000
# Lloyd's steps end when the cost falls by less than this share.
PROGRESS = 1e-6
# Restarts look at sums over blocks of finer grids: at most so many blocks along a side.
COARSE = 256
# Factor by which blocks shrink before the centres are moved again.
FINER = 4
# Cells whose distances are worked out together, few enough for the processor's cache.
BATCH = 2**14


def coreset_depth(k: int, epsilon: float, n: int) -> int:
    """Level of the grid on which a coreset lives: `max(0, ceil(log2(epsilon n / sqrt(k))))`, and at most 12.

    Snapping moves n persons by at most `2 n / 2**depth`, which is `2 sqrt(k) / epsilon` or less, the order of the
    noise, unless the grid would have more than 4096 cells on a side.

    Examples
    --------
    >>> coreset_depth(k=4, epsilon=1.0, n=512)
    8
    """
    k, epsilon, n = whole("k", k, 1), positive("epsilon", epsilon), whole("n", n, 1)
    return min(DEEPEST, max(0, math.ceil(math.log2(epsilon) + math.log2(n) - math.log2(k) / 2)))


def kmedian_coreset(
    points: npt.ArrayLike,
    k: int,
    *,
    epsilon: float,
    n: int,
    w: int | None = None,
    variant: str = "practical",
    decay: float | None = None,
    rng: RngLike = None,
) -> Floats:
    """Private masses on a grid whose k-median cost is close to that of the points, for all k centres at once.

    Parameters
    ----------
    points : array_like, shape (m, 2)
        One location in `[0, 1) x [0, 1)` for each person. None at all is fine.
    k : int
        Number of centres that the coreset is for.
    epsilon : float
        Pure differential privacy under adding or removing one person.
    n : int
        **Public** number of persons, or a public guess of it. It sets the resolution alone and is not compared with the
        points: to take `len(points)` here would publish that number without noise.
    w : int, optional
        Cells kept per level; None takes `max(20, k)`. The theorem asks for `O(k / lambda**2)`, constant not stated.
    variant, decay
        As in `aggregate`.
    rng : None, int or Generator
        None: secret noise. Anything else makes the run reproducible and therefore not private.

    Returns
    -------
    (side, side) array
        Masses in persons, **not normalised**; `[i, j]` lies at `(i / side, j / side)`.

    Raises
    ------
    InputError
        An argument breaks its rule, or a point lies outside the unit square.

    Notes
    -----
    With suitable w the cost of every k centres is kept within a factor `1 +- lambda` and `O(sqrt(k) / epsilon)`,
    however many persons there are.

    References
    ----------
    Ghazi et al. (2023), Differentially private heatmaps, AAAI; the printed resolution is corrected.

    Examples
    --------
    >>> masses = kmedian_coreset([[0.3, 0.3]] * 90 + [[0.7, 0.5]] * 30, 2, epsilon=2.0, n=100, rng=1)
    >>> kmedian(masses, 2, rng=1).round(1).tolist()
    [[0.3, 0.3], [0.7, 0.5]]
    """
    depth = coreset_depth(k, epsilon, n)
    kept = max(FEWEST_CELLS, k) if w is None else w
    xy = _points(points)
    users = Users.from_points(xy, np.arange(len(xy)), side=2**depth)
    return sparse_aggregate(users, epsilon=epsilon, w=kept, variant=variant, decay=decay, rng=rng).masses


def kmedian_cost(
    centres: npt.ArrayLike, masses: npt.ArrayLike | None = None, *, points: npt.ArrayLike | None = None
) -> float:
    """Sum of l1 distances to the nearest centre, of masses on a grid or of single points.

    Parameters
    ----------
    centres : array_like, shape (k, 2)
        In the unit square's coordinates.
    masses : array_like, shape (a, b), optional
        Non-negative; `[i, j]` lies at `(i / a, j / b)`.
    points : array_like, shape (m, 2), optional
        Instead of masses: points of weight one.

    Examples
    --------
    >>> kmedian_cost([[0.0, 0.0]], [[1.0, 2.0], [0.0, 3.0]])
    4.0
    >>> kmedian_cost([[0.0, 0.0], [1.0, 1.0]], points=[[0.5, 0.25], [1.0, 0.75]])
    1.0
    """
    at = _points(centres, "centres")
    if not len(at):
        msg = "centres: needs at least one, as no distance is defined without; got none."
        raise InputError(msg)
    if (masses is None) == (points is None):
        msg = "masses, points: give one of them, masses on a grid or single points."
        raise InputError(msg)
    if points is not None:
        x, y = _points(points).T
        weight = np.ones(len(x))
    else:
        grid = nonnegative_grid(masses, "masses")
        i, j = np.nonzero(grid)
        x, y, weight = i / grid.shape[0], j / grid.shape[1], grid[i, j]
    with np.errstate(over="ignore"):
        cost = float(weight @ _nearest(x, y, at)[1])
    if cost == math.inf:
        msg = "masses, points, centres: the cost is no floating-point number; divide them by a constant first."
        raise InputError(msg)
    return cost


def kmedian(masses: npt.ArrayLike, k: int, rng: RngLike = None, *, restarts: int = RESTARTS) -> Floats:
    """Centres, k of them, of small cost for masses on a grid; without noise, so private only where the masses are.

    Centres are seeded one by one at cells drawn in proportion to mass times distance from the nearest centre so far,
    then moved to the coordinate-wise weighted medians of their cells until the cost stays. On grids with more than 256
    cells along a side they first move for sums over blocks, which get smaller step by step.

    Parameters
    ----------
    masses : array_like, shape (a, b)
        Non-negative. Without any mass all cells count alike, as in `aggregate`.
    k : int
        At most 10000.
    rng : None, int or Generator
    restarts : int
        At most 1000.

    Returns
    -------
    (k, 2) array
        Grid points `(i / a, j / b)` in lexicographic order; some coincide where fewer than k cells have mass.

    Notes
    -----
    A local optimum: the seeding alone is within `O(log k)` of the best on average (Arthur and Vassilvitskii 2007,
    k-means++, SODA, for powers of the distance); restarts promise no more. A step takes `O(k a b)`; ten centres about
    half a second at 256 x 256, and a quarter of a minute and 1.6 GB at 4096 x 4096.

    Examples
    --------
    >>> kmedian([[5.0, 0.0], [0.0, 3.0]], 2, rng=1).tolist()
    [[0.0, 0.0], [0.5, 0.5]]
    """
    grid, k, rng = nonnegative_grid(masses, "masses"), whole("k", k, 1, most=MOST_CENTRES), generator(rng)
    restarts = whole("restarts", restarts, 1, most=MOST_RESTARTS)
    if not grid.any():
        grid = np.ones(grid.shape)
    block = -(-max(grid.shape) // COARSE)
    coarse = _block_sums(grid, block)
    runs = [_settled(coarse, _seeds(coarse, k, rng)) for _ in range(restarts)]
    best = min(runs, key=lambda run: run[0])[1]
    while block > 1:
        middle = np.minimum(best * block + block // 2, np.array(grid.shape) - 1)
        block = max(1, block // FINER)
        best = _settled(_block_sums(grid, block), middle // block)[1]
    return best[np.lexsort(best.T[::-1])] / grid.shape


def _block_sums(grid: Floats, block: int) -> Floats:
    """Sums over blocks of so many rows and columns, fewer in the last; in units of the largest mass of a cell."""
    rows, columns = (np.arange(0, side, block) for side in grid.shape)
    return np.add.reduceat(np.add.reduceat(grid / grid.max(), rows, axis=0), columns, axis=1)


def _seeds(grid: Floats, k: int, rng: np.random.Generator) -> Ints:
    """(k, 2) cells, drawn in turn in proportion to mass times distance from those drawn before."""
    i, j = np.nonzero(grid)
    # Shares of the largest mass: their sums neither overflow nor vanish.
    weight = grid[i, j] / grid.max()
    drawn = [int(rng.choice(len(i), p=weight / weight.sum()))]
    distance = np.full(len(i), np.inf)
    while len(drawn) < k:
        last = drawn[-1]
        distance = np.minimum(distance, abs(i - i[last]) / grid.shape[0] + abs(j - j[last]) / grid.shape[1])
        odds = weight * distance
        drawn.append(int(rng.choice(len(i), p=odds / odds.sum())) if odds.any() else last)
    return np.column_stack([i[drawn], j[drawn]])


def _settled(grid: Floats, centres: Ints) -> tuple[float, Ints]:
    """Cost and (k, 2) cells of centres once Lloyd's steps no longer lower the cost."""
    i, j = np.nonzero(grid)
    weight = grid[i, j] / grid.max()
    cost = math.inf
    while True:
        nearest, distance = _nearest(i / grid.shape[0], j / grid.shape[1], centres / grid.shape)
        last, cost = cost, float(weight @ distance)
        if not cost < last * (1 - PROGRESS):
            return cost, centres
        axes = [(i, grid.shape[0]), (j, grid.shape[1])]
        moved = [_medians(nearest, at, weight, (len(centres), cells)) for at, cells in axes]
        served = np.bincount(nearest, minlength=len(centres)) > 0
        centres = np.where(served[:, None], np.column_stack(moved), centres)


def _nearest(x: Floats, y: Floats, centres: Floats) -> tuple[Ints, Floats]:
    """Number of, and l1 distance to, the nearest of the centres (k, 2); the first of equally near ones."""
    nearest, least = np.zeros(len(x), dtype=np.int64), np.full(len(x), np.inf)
    for start in range(0, len(x), BATCH):
        part = slice(start, start + BATCH)
        for number, (cx, cy) in enumerate(centres):
            distance = abs(x[part] - cx) + abs(y[part] - cy)
            np.copyto(nearest[part], number, where=distance < least[part])
            np.minimum(least[part], distance, out=least[part])
    return nearest, least


def _medians(group: Ints, at: Ints, weight: Floats, shape: tuple[int, int]) -> Ints:
    """(k,) lower weighted median of whole numbers `at` in each group; shape is (groups, numbers there are)."""
    mass = np.bincount(group * shape[1] + at, weights=weight, minlength=shape[0] * shape[1]).reshape(shape)
    below = np.cumsum(mass, axis=1)
    return np.asarray(np.argmax(below >= below[:, -1:] / 2, axis=1), dtype=np.int64)


def _points(array: npt.ArrayLike, name: str = "points") -> Floats:
    """(m, 2) coordinates, of which there may be none; InputError unless finite."""
    at = real_array(array)
    if at is None or not (at.shape == (0,) or (at.ndim == 2 and at.shape[1] == 2)) or not np.isfinite(at).all():
        msg = f"{name}: needs finite coordinates in an array (number, 2)."
        raise InputError(msg)
    return at.reshape(-1, 2)
