"""Hierarchical counts and degree sequences of Hay, Rastogi, Miklau & Suciu, with consistency after the noise.

For comparisons: the noise is floating-point, so nothing drawn here may be released.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from baselines.baseline_arguments import checked_epsilon, noise_scale
from dpppsynth.core.arguments import one_of, whole
from dpppsynth.core.errors import InputError
from dpppsynth.core.randomness import RngLike, generator
from dpppsynth.mechanisms.local.grids.rectangles import MOST_CELLS, reals
from dpppsynth.privacy.truncated.truncated_laplace import LARGEST, in_range
from dpppsynth.spatial.mesh import Floats


@dataclass(frozen=True, eq=False, repr=False)
class NoisyTree:
    """Counts in a tree of bins: never to be released.

    Attributes
    ----------
    counts : (m,) array
        Consistent counts of the given bins, without those that filled up the tree.
    nodes : (K,) array
        Consistent counts of all nodes, from the root down, level by level.
    raw : (K,) array
        The same with their noise alone.
    branching : int
    scale : float
        Of the noise of every node.
    epsilon, delta : float
        Spent; delta is 0.
    seeded : bool
        Whether the noise can be reproduced.

    Examples
    --------
    >>> tree = hay_tree([3, 5, 6], epsilon=1.0, rng=1)
    >>> tree, tree.nodes.shape
    (NoisyTree(3 bins, epsilon=1: not to be released), (7,))
    """

    counts: Floats
    nodes: Floats
    raw: Floats
    branching: int
    scale: float
    epsilon: float
    delta: float
    seeded: bool

    def __repr__(self) -> str:
        return f"NoisyTree({len(self.counts)} bins, epsilon={self.epsilon:g}: not to be released)"


@dataclass(frozen=True, eq=False, repr=False)
class NoisyDegrees:
    """A sorted sequence of counts: never to be released.

    Attributes
    ----------
    sequence : (m,) array
        Increasing sequence nearest to the noisy one.
    raw : (m,) array
        With its noise alone.
    scale, epsilon, delta : float
        Delta is 0.
    seeded : bool
        Whether the noise can be reproduced.

    Examples
    --------
    >>> hay_degree([3, 1, 1, 8], epsilon=1.0, sensitivity=2.0, rng=1).scale
    2.0
    """

    sequence: Floats
    raw: Floats
    scale: float
    epsilon: float
    delta: float
    seeded: bool

    def __repr__(self) -> str:
        return f"NoisyDegrees({len(self.sequence)}, epsilon={self.epsilon:g}: not to be released)"


def hay_tree(
    counts: Any, *, epsilon: float, branching: int = 2, relation: str = "add-remove", rng: RngLike = None
) -> NoisyTree:
    """Bin counts from noisy counts of all nodes of a tree above them, by least squares.

    Parameters
    ----------
    counts : (m,) array
        At least one; the bins are filled up with empty ones to a power of `branching`.
    epsilon : float
    branching : int
        Children of a node, at least 2.
    relation : {"add-remove", "replace-one"}
        Adding a record changes one node of each of h levels, replacing one two nodes of each below the root, whose
        count is constant then: the L1 sensitivity is h or `2 (h - 1)`. All nodes have the same noise, as published.
    rng : None, int or Generator

    Raises
    ------
    InputError

    References
    ----------
    Hay, Rastogi, Miklau & Suciu (2010), Boosting the accuracy of differentially private histograms through
    consistency, PVLDB 3.

    Examples
    --------
    >>> result = hay_tree([3, 5, 6, 1], epsilon=1.0, rng=1)
    >>> result.scale, bool(abs(result.nodes[0] - result.counts.sum()) < 1e-9)
    (3.0, True)
    """
    bins, epsilon = reals("counts", counts, (None,)), checked_epsilon(epsilon)
    branching = whole("branching", branching, 2, most=MOST_CELLS, remedy="2 is usual")
    one_of("relation", relation, ("add-remove", "replace-one"))
    if not len(bins):
        msg = "counts: needs at least one bin, got none."
        raise InputError(msg)
    if not np.abs(bins).sum() < LARGEST:
        msg = f"counts: must add up to less than {LARGEST:g}; nothing that is counted does."
        raise InputError(msg)
    levels = _tree_of_sums(bins, branching)
    sensitivity = len(levels) if relation == "add-remove" else 2 * (len(levels) - 1)
    exact, scale = np.concatenate(levels), noise_scale(sensitivity / epsilon) if sensitivity else 0.0
    raw = exact + generator(rng).laplace(0, scale, len(exact))
    nodes = tree_consistency(raw, branching=branching)
    leaves = nodes[-len(levels[-1]) :][: len(bins)]
    return NoisyTree(leaves, nodes, raw, branching, scale, epsilon, 0.0, rng is not None)


def tree_consistency(nodes: Any, *, branching: int = 2) -> Floats:
    """Least squares among trees in which every node is the sum of its children.

    One pass up the tree pools a node with its children, `z = ((k^l - k^(l-1)) y + (k^(l-1) - 1) sum z') / (k^l - 1)`
    at height l above the leaves, which have height 1; one down shares out what is left over.

    Parameters
    ----------
    nodes : (K,) array
        Of a full tree, from the root down, level by level, with errors of equal variance.
    branching : int
        Children k of a node, at least 2.

    Returns
    -------
    (K,) array

    Examples
    --------
    >>> tree_consistency([20, 9, 8, 3, 5, 6, 1]).round(5).tolist()
    [18.42857, 9.71429, 8.71429, 3.85714, 5.85714, 6.85714, 1.85714]
    """
    branching = whole("branching", branching, 2, most=MOST_CELLS, remedy="2 is usual")
    noisy = _levels(reals("nodes", nodes, (None,)), branching)
    pooled = [noisy[-1]]
    for height, level in enumerate(reversed(noisy[:-1]), 2):
        sums, rest = pooled[0].reshape(-1, branching).sum(axis=1), float(branching) ** -height
        own = (1 - 1 / branching) / (1 - rest)
        pooled.insert(0, own * level + (1 - own) * sums)
    agreed = pooled[:1]
    for level in pooled[1:]:
        missing = agreed[-1] - level.reshape(-1, branching).sum(axis=1)
        agreed.append(level + np.repeat(missing / branching, branching))
    return np.concatenate(agreed)


def hay_degree(sequence: Any, *, epsilon: float, sensitivity: float = 1.0, rng: RngLike = None) -> NoisyDegrees:
    """A degree sequence, or any counts whose order does not matter: sorted, noised, and made increasing again.

    Parameters
    ----------
    sequence : (m,) array
        At least one count, in any order.
    epsilon : float
    sensitivity : float
        L1 sensitivity of the counts; sorting does not enlarge it. Adding an edge to a graph changes two degrees: 2.
    rng : None, int or Generator

    References
    ----------
    As `hay_tree`.

    Examples
    --------
    >>> bool((np.diff(hay_degree([3, 1, 1, 8], epsilon=1.0, rng=1).sequence) >= 0).all())
    True
    """
    from scipy.optimize import isotonic_regression

    degrees, epsilon = reals("sequence", sequence, (None,)), checked_epsilon(epsilon)
    if not len(degrees):
        msg = "sequence: needs at least one count, got none."
        raise InputError(msg)
    scale = noise_scale(in_range("sensitivity", sensitivity) / epsilon)
    raw = np.sort(degrees) + generator(rng).laplace(0, scale, len(degrees))
    return NoisyDegrees(isotonic_regression(raw).x, raw, scale, epsilon, 0.0, rng is not None)


def _tree_of_sums(bins: Floats, branching: int) -> list[Floats]:
    """Levels from the root to the bins, filled up with empty ones."""
    number = 1
    while number < len(bins):
        number *= branching
    if number > MOST_CELLS:
        msg = f"branching: fills the tree up to more than {MOST_CELLS} bins; take a smaller one."
        raise InputError(msg)
    levels = [np.append(bins, np.zeros(number - len(bins)))]
    while len(levels[0]) > 1:
        levels.insert(0, levels[0].reshape(-1, branching).sum(axis=1))
    return levels


def _levels(nodes: Floats, branching: int) -> list[Floats]:
    """The nodes of a full tree level by level, or an InputError where their number is that of none."""
    levels, start, size = [], 0, 1
    while start + size <= len(nodes):
        levels.append(nodes[start : start + size])
        start, size = start + size, size * branching
    if not levels or start != len(nodes):
        msg = f"nodes: must be 1 + k + k^2 + ... of a full tree with k = {branching}, got {len(nodes)}."
        raise InputError(msg)
    return levels
