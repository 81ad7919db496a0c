"""Guarantee of discrete Laplace noise on a pyramid of cell counts (docs/theory/heatmaps.md, Theorem H).

Every person holds masses on the cells of a square grid of side `2^depth` that add up to at most one, rounded on their
own to multiples of `2^-LATTICE_BITS`. Level i of the pyramid sums them over `4^i` squares, so a person weighs at most
one on every level, exactly, and independent noise on each spends the sum of the levels' epsilons.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpppsynth.core.arguments import elements, instance, one_of, positive, shown, whole
from dpppsynth.core.errors import InformationWarning, InputError
from dpppsynth.core.rounding import budget_parts, sum_up
from dpppsynth.core.wording import either
from dpppsynth.privacy.bounds import DISCRETE, LATTICE_BITS, NOT_EMPTY, ONE_RELEASE, SNAPPED, WIDE_CAP, laplace_scale
from dpppsynth.privacy.catalogue import Code, Statement
from dpppsynth.privacy.guarantee import Guarantee, PureDP
from dpppsynth.privacy.relations import AddRemove, AddRemovePerson, Relation

# Grids up to 4096 x 4096 cells.
DEEPEST = 12
# Lattices up to 2^-40 of a person.
MOST_BITS = 40
# A share of the budget that pays for the rounding of scales and sums.
SPARE = 1e-12

# Levels that are measured: two of them whole, or as published.
PUBLISHED = ("practical", "theory")
VARIANTS = ("two-level", *PUBLISHED)
# Cells kept of each level where nothing is said.
COMMON_W = 20
# Of two measured levels the coarse one has cells so many levels larger. Its share of the budget was measured: thirds to
# halves do best (docs/results/heatmaps.md).
BETWEEN, COARSE_SHARE = 2, 0.5
# Levels that are counted whole have at most 1024 x 1024 cells.
DEEPEST_WHOLE = 10
# Cells that are counted, per square root of epsilon times the number of persons, and that number unless one is given.
# At most 128 x 128 by the rule: a field behind these takes 20 seconds.
DENSITY, USUAL_PERSONS, DEEPEST_BY_RULE = 18.0, 1000.0, 7
# Fits of masses to the noised counts: free post-processing, named on certificates.
FITS = ("field", "least-squares", "l1")
# Decay of the levels' budgets away from the start level: the best constant of the error bound, and the proof's, which
# needs more than one half.
NEEDED_DECAY = 0.5
DECAY = {"practical": math.sqrt(0.5), "theory": 0.8}

PUBLIC = "public-heatmap-settings"
WHOLE_PERSON = "mark-tells-persons"


@dataclass(frozen=True)
class LevelBudgets:
    """Budgets of the measured levels.

    Attributes
    ----------
    first : int
        First measured level.
    epsilons : tuple of float
        Of levels `first`, `first + step`, ...; the last is the grid. All positive.
    step : int
        1 where every level from the first on is measured; beyond, levels between are skipped.
    """

    first: int
    epsilons: tuple[float, ...]
    step: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", whole("first", self.first, 0, most=DEEPEST))
        object.__setattr__(self, "epsilons", _of_levels("epsilons", self.epsilons))
        object.__setattr__(self, "step", whole("step", self.step, 1, most=DEEPEST))

    @property
    def levels(self) -> tuple[int, ...]:
        """The measured levels, from coarse to fine."""
        return tuple(self.first + self.step * k for k in range(len(self.epsilons)))

    @property
    def depth(self) -> int:
        """The level of the grid."""
        return self.levels[-1]


def grid_depth(shape: tuple[int, int]) -> int:
    """Depth of the smallest square grid of side `2^depth` that holds (nx, ny) cells.

    Examples
    --------
    >>> grid_depth((320, 240))
    9
    """
    return max(0, (max(shape) - 1).bit_length())


def start_level(w: int, depth: int) -> int:
    """Largest level with at most `w` cells, and at most the grid's: it gets the largest budget.

    Parameters
    ----------
    w : int
        Cells kept per level.
    depth : int
        The grid has side `2^depth`.

    Examples
    --------
    >>> [start_level(w, 8) for w in (3, 4, 20, 64)]
    [0, 1, 2, 3]
    """
    w, depth, level = whole("w", w, 1), whole("depth", depth, 0, most=DEEPEST), 0
    while level < depth and 4 ** (level + 1) <= w:
        level += 1
    return level


def level_budgets(
    epsilon: float, depth: int, w: int = 20, *, variant: str = "practical", decay: float | None = None
) -> LevelBudgets:
    """Split a budget over the levels: largest at the start level, decaying both ways.

    Parameters
    ----------
    epsilon : float
    depth : int
        The grid has side `2^depth`.
    w : int
        Cells kept per level.
    variant : {"practical", "theory", "two-level"}
        "theory" measures all levels, "practical" those from the start level on, "two-level" the grid and cells of four
        times its side, for any `w`.
    decay : float, optional
        In (0, 1]; None takes `1/sqrt(2)` (practical) or 0.8 (theory). The error bound needs more than 1/2. There is
        none between two levels.

    Returns
    -------
    LevelBudgets
        Its epsilons sum to `epsilon`.

    References
    ----------
    Ghazi et al. (2023), Differentially private heatmaps, AAAI.

    Examples
    --------
    >>> [round(each, 6) for each in level_budgets(1.0, 8).epsilons[:3]]
    [0.321292, 0.227188, 0.160646]
    """
    epsilon, q = positive("epsilon", epsilon), start_level(w, depth)
    if one_of("variant", variant, VARIANTS) == "two-level":
        return _two_levels(epsilon, depth, decay)
    rate = DECAY[variant] if decay is None else require_decay(decay)
    first = 0 if variant == "theory" else q
    weights = [rate ** abs(level - q) for level in range(first, depth + 1)]
    return LevelBudgets(first, budget_parts(epsilon, weights))


def _two_levels(epsilon: float, depth: int, decay: float | None) -> LevelBudgets:
    """Budgets of the grid and of a level above it."""
    require_plain("two-level", COMMON_W, decay)
    if depth > DEEPEST_WHOLE:
        msg = (
            f"measure: 'two-level' counts all cells, at most {2**DEEPEST_WHOLE} along a side, got {2**depth}; take "
            "fewer, or variant 'practical'."
        )
        raise InputError(msg)
    step = min(BETWEEN, depth)
    epsilons = budget_parts(epsilon, (COARSE_SHARE, 1 - COARSE_SHARE)) if step else (epsilon,)
    return LevelBudgets(depth - step, epsilons, max(step, 1))


def require_plain(variant: str, w: int, decay: float | None) -> None:
    """Refuse a number of kept cells, and a decay of budgets, where two levels are counted whole."""
    if one_of("variant", variant, VARIANTS) == "two-level" and w != COMMON_W:
        msg = f"w: the two levels keep all their cells; leave it out, or take variant 'practical', got {w!r}."
        raise InputError(msg)
    if variant == "two-level" and decay is not None:
        msg = f"decay: the two levels have equal budgets; leave it out, or take variant 'practical', got {decay!r}."
        raise InputError(msg)


def measured_depth(cells: Sequence[int], epsilon: float, persons: float | None) -> int:
    """Level, up to 7, whose number of cells is nearest to `18 sqrt(epsilon * persons)`, in ratio.

    Parameters
    ----------
    cells : sequence of int
        Number of cells of every level that lie in the window, from the root on.
    epsilon : float
    persons : float or None
        Public guess; None takes 1000.

    Examples
    --------
    >>> [2 ** measured_depth([4**level for level in range(9)], 1.0, n) for n in (20, 200, 5000, 100_000)]
    [8, 16, 32, 64]
    """
    aim = math.log(DENSITY) + (math.log(epsilon) + math.log(USUAL_PERSONS if persons is None else persons)) / 2
    return min(range(min(len(cells), DEEPEST_BY_RULE + 1)), key=lambda level: abs(math.log(cells[level]) - aim))


def require_measure(measure: int, depth: int) -> int:
    """Level with `measure` cells along a side, a power of two and at most the grid's `2^depth`; else an InputError."""
    side = whole("measure", measure, 1, remedy="cells along a side of the finest level that is counted")
    if side.bit_count() != 1 or side > 2**depth:
        msg = f"measure: must be a power of two, and at most the {2**depth} cells that hold the grid, got {side}."
        raise InputError(msg)
    return side.bit_length() - 1


def require_decay(decay: float) -> float:
    """The decay, a number in (0, 1]; InputError otherwise."""
    remedy = f"above 1/2 the error bound holds, and {either('None takes the best', 'without it the best is taken')}"
    return positive("decay", decay, rule="lie in (0, 1]", most=1, remedy=remedy)


def advise_decay(decay: float | None) -> None:
    """Warn of a decay that the error bound does not cover; the privacy bound holds for all of them."""
    if decay is not None and (rate := require_decay(decay)) <= NEEDED_DECAY:
        msg = f"decay: {rate:g} leaves the finest levels so little that the error bound is lost; take more than 0.5."
        warnings.warn(msg, InformationWarning, stacklevel=3)


def level_scales(budgets: LevelBudgets, bits: int = LATTICE_BITS) -> tuple[float, ...]:
    """Scales of discrete Laplace noise in units of `2^-bits`, one for each measured level; `bits` from 0 to 40."""
    epsilons = instance("budgets", budgets, LevelBudgets).epsilons
    unit = 2 ** whole("bits", bits, 0, most=MOST_BITS)
    return tuple(laplace_scale(unit, epsilon * (1 - SPARE)) for epsilon in epsilons)


def layout(first: int, depth: int, w: int, step: int = 1) -> tuple[int, ...]:
    """Numbers of measured cells by level: all of the first, then those in at most `w` cells of the one before.

    Examples
    --------
    >>> layout(2, 5, 20), layout(2, 4, 256, 2)
    ((16, 64, 80, 80), (16, 256))
    """
    counts = [4**first]
    for level in range(first, depth, step):
        counts.append(4**step * (counts[0] if level == first else min(w, counts[-1])))
    return tuple(counts)


def heatmap(scales: Sequence[float], *, bits: int = LATTICE_BITS, user: str | None = None) -> Guarantee:
    """Guarantee of noised pyramid levels, one scale of discrete Laplace noise (lattice units) for each level.

    Pure `sum(2^bits / scale)` under adding or removing one person with all their points, or one point where every point
    is a person. Which cells of a level are looked at may depend on the noised levels above.

    Parameters
    ----------
    scales : sequence of float
    bits : int
        The lattice spacing is `2^-bits` of a person.
    user : str, optional
        Mark that identifies persons; None where every point is a person.
    """
    unit = 2 ** whole("bits", bits, 0, most=MOST_BITS)
    spent = sum_up(unit / Fraction(scale) for scale in _of_levels("scales", scales))
    relation: Relation = AddRemove() if user is None else AddRemovePerson(user)
    people: Code = WIDE_CAP if user is None else Statement(WHOLE_PERSON, user=user)
    assumed = (PUBLIC, people, DISCRETE, ONE_RELEASE, SNAPPED, NOT_EMPTY)
    return Guarantee(relation, PureDP(spent), "pyramid", assumed)


def _of_levels(name: str, values: Sequence[float]) -> tuple[float, ...]:
    """Positive numbers, one for each measured level; InputError where one is none, or there are none."""
    given = elements(values)
    if not given:
        msg = f"{name}: needs one number for each measured level, got {shown(values)}."
        raise InputError(msg)
    return tuple(float(positive(name, each)) for each in given)
