"""Validation of public arguments, one function for each kind; messages name argument, rule, value and remedy.

They stand at the doors of the package, where a call costs a microsecond, and not in loops behind them.
"""

import inspect
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from dpppsynth.core.errors import InputError

# Characters of a value that a message shows.
WIDTH = 80
LARGEST = sys.float_info.max
COMMON = "1e-6 is a common choice"


def shown(value: Any) -> str:
    """Text of a number or string for a message, shortened; the type name of anything else, which may be sensitive."""
    if isinstance(value, list | tuple) and len(value) == 1:
        return f"[{shown(value[0])}]"
    if isinstance(value, int) and value.bit_length() > 4 * WIDTH:
        return f"a whole number of {value.bit_length()} bits"
    if value is not None and not isinstance(value, bool | int | float | complex | str | np.generic):
        return f"a {type(value).__name__}" if not isinstance(value, type) else f"the type {value.__name__}"
    text = repr(value[:WIDTH] if isinstance(value, str) else value)
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}..."


def writable(text: str) -> bool:
    """Whether UTF-8 can hold a text, all of it on one line."""
    return not any(unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") for sign in text)


def real(value: Any) -> float | None:
    """The value as an int or a float; None unless it is a real number in the range of floats and not a boolean."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    if isinstance(value, Integral):
        value = int(value)
    elif isinstance(value, np.floating):
        value = float(value)
    if not -LARGEST <= value <= LARGEST:
        return None
    return value if isinstance(value, int) else float(value)


def whole_number(value: Any) -> int | None:
    """The value as an int, 2.0 as well as 2; None unless it is a whole number."""
    number = real(value)
    return None if number is None or number != int(number) else int(number)


def positive(
    name: str, value: Any, *, rule: str = "be a positive finite number", remedy: str = "", most: float = LARGEST
) -> float:
    """Return a number above zero and at most `most`; for others raise an InputError that states `rule`."""
    number = real(value)
    if number is None or not 0 < number <= most:
        raise InputError(_wrong(f"{name}: must {rule}", value, remedy))
    return number


def finite(name: str, value: Any, *, least: float = -LARGEST) -> float:
    """Return a finite number of at least `least`; for others an InputError."""
    number = real(value)
    if number is None or number < least:
        rule = "finite" if least == -LARGEST else f"finite and at least {least:g}"
        raise InputError(_wrong(f"{name}: must be {rule}", value))
    return number


def probability(name: str, value: Any, *, zero: bool = False, remedy: str = COMMON) -> float:
    """Return a number between 0 and 1, 0 only where that is allowed; for others an InputError."""
    number = real(value)
    if number is None or not 0 <= number < 1 or (number == 0 and not zero):
        rule = "lie in [0, 1)" if zero else "lie strictly between 0 and 1"
        raise InputError(_wrong(f"{name}: must {rule}", value, remedy))
    return number


def whole(name: str, value: Any, least: int, *, most: float = LARGEST, remedy: str = "") -> int:
    """Return a whole number from `least` to `most` as an int; for others an InputError."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= most:
        top = "" if most == LARGEST else f" and at most {most}"
        raise InputError(_wrong(f"{name}: needs a whole number of at least {least}{top}", value, remedy))
    return int(value)


def flag(name: str, value: Any) -> bool:
    """The truth value; anything else is an InputError."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(_wrong(f"{name}: must be True or False", value))
    return bool(value)


def one_of(name: str, value: Any, known: Iterable[str], where: str = "") -> str:
    """Return a word that is among those known `where`; for others an InputError that lists them."""
    words = tuple(known)
    if not isinstance(value, str) or value not in words:
        raise InputError(_wrong(f"{name}: expected one of {', '.join(map(repr, words))}{where}", value))
    return value


def instance(name: str, value: Any, kind: type, remedy: str = "") -> Any:
    """Return an instance of the given class; for others an InputError."""
    if not isinstance(value, kind):
        end = f"; {remedy}" if remedy else ""
        msg = f"{name}: needs a {kind.__name__}, got {type(value).__name__}{end}."
        raise InputError(msg)
    return value


def function(name: str, value: Any, *given: str) -> Callable[..., Any]:
    """Return a function that can be called with the named arguments; for others an InputError."""
    try:
        inspect.signature(value).bind(*given)
    except (TypeError, ValueError):
        raise InputError(_wrong(f"{name}: must be a function of {', '.join(given)}", value)) from None
    return value


def each(value: Any) -> Iterator[Any] | None:
    """Iterate over elements; None for values without any: a number, a text, a mapping, an array of no dimension."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0:
        return None
    return iter(value)


def elements(value: Any) -> list[Any] | None:
    """The elements of a sequence; None for what has no elements, as `each` tells."""
    found = each(value)
    return None if found is None else list(found)


def plain_array(value: Any) -> np.ndarray | None:
    """An array of any type as numpy reads it; None where rows are ragged or numpy.ma hides an entry."""
    if np.ma.is_masked(value):
        return None
    try:
        return np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        return None


def real_array(values: Any) -> npt.NDArray[np.float64] | None:
    """Copy of an array of real numbers as floats; None for text, complex numbers and ragged rows."""
    try:
        array = np.asarray(values)
        return np.array(array, dtype=np.float64) if array.dtype.kind in "biufO" else None
    except (TypeError, ValueError, OverflowError):
        return None


def several(name: str, value: Any, kind: type, remedy: str = "") -> list[Any]:
    """The elements of a sequence, which may be none; an InputError where one is of another kind."""
    found = elements(value)
    # One look at each object, however often it is among them.
    distinct = {id(each): each for each in found or ()}.values()
    wrong = [value] if found is None else [each for each in distinct if not isinstance(each, kind)]
    if found is None or wrong:
        end = f"; {remedy}" if remedy else ""
        msg = f"{name}: needs a sequence of {kind.__name__}, got {type(wrong[0]).__name__}{end}."
        raise InputError(msg)
    return found


def entries(name: str, data: Any, keys: Sequence[str] = ()) -> Mapping[str, Any]:
    """Return a mapping with all required keys; for others an InputError."""
    if not isinstance(data, Mapping):
        msg = f"{name}: needs a mapping as its to_dict() gives it, got {type(data).__name__}."
        raise InputError(msg)
    lacking = [key for key in keys if key not in data]
    if lacking:
        msg = f"{name}: lacks {', '.join(map(repr, lacking))}; its to_dict() gives them."
        raise InputError(msg)
    return data


def _wrong(rule: str, value: Any, remedy: str = "") -> str:
    return f"{rule}, got {shown(value)}{'; ' if remedy else ''}{remedy}."
