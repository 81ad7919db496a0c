"""Rounding of budgets and reported numbers towards less privacy, and of coordinates to public decimal grids."""

import math
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpppsynth.core.types import Floats

# Digits and a minus sign as exponents.
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def sum_up(terms: Iterable[float | Fraction]) -> float:
    """The smallest floating-point number that is no less than an exact sum of epsilons.

    Examples
    --------
    >>> sum_up([0.1, 0.2]), 0.1 + 0.2, sum_up([0.1] * 3 + [Fraction(1, 3)])
    (0.30000000000000004, 0.30000000000000004, 0.6333333333333334)
    """
    given = list(terms)
    if math.inf in given:
        return math.inf
    exact = sum((Fraction(each) for each in given), Fraction(0))
    nearest = float(exact)
    return math.nextafter(nearest, math.inf) if nearest < exact else nearest


def budget_parts(epsilon: float, weights: Sequence[float]) -> tuple[float, ...]:
    """Parts of a budget in proportion to positive weights, rounded down: their exact sum is no more than the budget.

    Examples
    --------
    >>> budget_parts(1.0, [0.5, 0.5]), budget_parts(0.3, [1.0, 2.0])
    ((0.5, 0.5), (0.09999999999999999, 0.19999999999999998))
    """
    whole = sum(map(Fraction, weights))
    return tuple(-sum_up([-Fraction(epsilon) * Fraction(each) / whole]) for each in weights)


def upward(value: float, digits: int = 6) -> str:
    """An epsilon, a delta or an error bound in a few digits, rounded up.

    Examples
    --------
    >>> upward(0.12345601), upward(0.0), upward(0.9999999999999998), upward(1e-5), upward(2.3451, 3)
    ('0.123457', '0', '1', '1e-05', '2.35')
    """
    # The shortest decimal that reads as this number: 1e-5 itself is stored as a little more.
    return _rounded(repr(float(value)), digits, ROUND_CEILING)


def stated(value: float, digits: int = 4) -> str:
    """An epsilon or a delta in plain digits, rounded up.

    Examples
    --------
    >>> stated(0.9999999999999998), stated(1e-6), stated(2.34512e-6), stated(5437.2, 3)
    ('1', '10⁻⁶', '2.346 × 10⁻⁶', '5,440')
    """
    return in_words(upward(value, digits))


def downward(value: float, digits: int = 4) -> str:
    """A distance up to which an epsilon holds, in a few digits, rounded down but for float error.

    Examples
    --------
    >>> downward(17.6799), downward(24.999999999999996)
    ('17.67', '25')
    """
    return _rounded(f"{value:.12g}", digits, ROUND_FLOOR)


def in_words(number: str) -> str:
    """A number in text: commas at the thousands, a power of ten in place of an exponent.

    Examples
    --------
    >>> in_words("1e-06"), in_words("2.346e-06"), in_words("5.44e+03"), in_words("0.5"), in_words("12500")
    ('10⁻⁶', '2.346 × 10⁻⁶', '5,440', '0.5', '12,500')
    """
    value = Decimal(number)
    if value == 0 or 1e-4 <= abs(value) < 1e15:
        return f"{value.normalize():,f}"
    power = value.adjusted()
    raised = f"10{str(power).translate(RAISED)}"
    mantissa = f"{value.scaleb(-power).normalize():f}"
    return raised if mantissa == "1" else f"{mantissa} × {raised}"  # noqa: RUF001 - a sign of multiplication


def _rounded(written: str, digits: int, rounding: str) -> str:
    return f"{float(Context(prec=digits, rounding=rounding).create_decimal(Decimal(written))):.{digits}g}"


def round_length(rough: float, *, least: bool = False) -> float:
    """Largest length of 1, 2 or 5 times a power of ten up to a rough one, or smallest from it on if `least`.

    Examples
    --------
    >>> round_length(168.0), round_length(168.0, least=True), round_length(2.6, least=True)
    (100.0, 200.0, 5.0)
    """
    power = 10.0 ** math.floor(math.log10(rough))
    if least:
        return next(step * power for step in (1, 2, 5, 10) if step * power >= rough * (1 - 1e-9))
    return max(step * power for step in (1, 2, 5) if step * power <= rough)


def power_of_ten(bound: float) -> float:
    """The largest power of ten <= a positive bound.

    Examples
    --------
    >>> power_of_ten(0.03), power_of_ten(250.0), power_of_ten(0.001)
    (0.01, 100.0, 0.001)
    """
    exponent = math.floor(math.log10(bound)) + 1
    while float(f"1e{exponent}") > bound:
        exponent -= 1
    return float(f"1e{exponent}")


def multiples(numbers: NDArray[np.generic], step: float) -> Floats:
    """Whole multiples of a power of ten, each the float nearest to the decimal number: 3 times 0.1 is 0.3.

    Examples
    --------
    >>> multiples(np.array([3, 425924019]), 0.001).tolist(), 425924019 * 0.001
    ([0.003, 425924.019], 425924.01900000003)
    """
    # Powers of ten below one are no floats, but their inverses are, and a quotient is rounded once.
    whole = np.asarray(numbers, dtype=np.float64)
    return whole / round(1 / step) if step < 1 else whole * step


def nearest_multiples(values: Floats, step: float) -> Floats:
    """Multiples of a power of ten nearest to values.

    Examples
    --------
    >>> nearest_multiples(np.array([425924.01900000003, 0.1234567]), 0.001).tolist()
    [425924.019, 0.123]
    """
    return multiples(np.round(values / step), step)
