"""Rounding of numbers in reports, towards less privacy."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal


def upward(value: float, digits: int = 6) -> str:
    """An epsilon, a delta or a bound on errors in a few digits, rounded towards what promises less.

    Examples
    --------
    >>> upward(0.12345601), upward(0.0), upward(0.9999999999999998), upward(1e-5), upward(2.3451, 3)
    ('0.123457', '0', '1', '1e-05', '2.35')
    """
    # The shortest decimal that reads as this number: 1e-5 itself is stored as a little more.
    return _rounded(repr(float(value)), digits, ROUND_CEILING)


def downward(value: float, digits: int = 4) -> str:
    """A distance up to which an epsilon holds, in a few digits; what is below by rounding alone counts as whole.

    Examples
    --------
    >>> downward(17.6799), downward(24.999999999999996)
    ('17.67', '25')
    """
    return _rounded(f"{value:.12g}", digits, ROUND_FLOOR)


def _rounded(written: str, digits: int, rounding: str) -> str:
    return f"{float(Context(prec=digits, rounding=rounding).create_decimal(Decimal(written))):.{digits}g}"
