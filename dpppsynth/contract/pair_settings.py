"""Settings of pair sums: radii, caps and shares from plain values, and their consistency."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpppsynth.core.arguments import elements, positive, real, several, shown, whole, whole_number
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import JsonObject
from dpppsynth.models.pair_sums import CAP_BITS, MOST_STEPS

MOST_RADII = 20


def numbers(name: str) -> Callable[[str], tuple[float, ...]]:
    """Reader of numbers in a text such as "15,40"."""

    def read(text: str) -> tuple[float, ...]:
        try:
            return tuple(map(float, text.split(",")))
        except ValueError:
            msg = f"{name}: needs numbers with commas between them, such as 15,40; got {text!r}"
            raise InputError(msg) from None

    return read


def reals(name: str, values: Any) -> tuple[float, ...]:
    """Positive numbers, at least one."""
    given = elements(values) if real(values) is None else [values]
    if not given:
        msg = f"{name}: needs a list of numbers, such as [15.0, 40.0], got {shown(values)}."
        raise InputError(msg)
    return tuple(float(positive(name, each)) for each in given)


def increasing_reals(name: str, values: Any) -> tuple[float, ...]:
    """Positive numbers that increase."""
    given = reals(name, values)
    require_increasing(name, given)
    return given


def require_increasing(name: str, values: Sequence[float]) -> None:
    """Refuse numbers that are not strictly increasing."""
    if not (np.diff(values) > 0).all():
        msg = f"{name}: must increase from one to the next; sort them."
        raise InputError(msg)


def caps_of(values: Any, count: int, *, name: str = "cap") -> tuple[int, ...]:
    """Whole numbers, one for each radius; one alone stands for all."""
    given = elements(values) if real(values) is None else [values]
    caps = [whole_number(each) for each in given or []]
    if caps and len(caps) not in (1, count):
        msg = f"{name}: needs one number, or one for each of the {count} radii, got {len(caps)}."
        raise InputError(msg)
    if not caps or None in caps or min(cap or 0 for cap in caps) < 1:
        msg = f"{name}: needs a whole number of at least 1, or one for each radius, got {shown(values)}."
        raise InputError(msg)
    found = [whole(name, cap, 1, most=2**CAP_BITS) for cap in caps]
    return tuple(found * count if len(found) == 1 else found)


def listed(form: JsonObject) -> JsonObject:
    """Form of a list with a value of the given form for each radius."""
    return {"type": "array", "items": form, "minItems": 1, "maxItems": MOST_RADII}


def require_levels(radii: Sequence[float], caps: Any, shares: Sequence[float], steps: Any) -> None:
    """Refuse inconsistent radii, caps, shares and steps."""
    levels = radii, caps, shares, steps
    if not 1 <= len(radii) <= MOST_RADII or any(len(each) != len(radii) for each in levels):
        msg = f"radii: need 1 to {MOST_RADII} of them, and one cap, share and number of steps for each."
        raise InputError(msg)
    for radius, share in zip(radii, shares, strict=True):
        positive("radii", radius)
        positive("shares", share)
    require_increasing("radii", radii)
    if not abs(math.fsum(shares) - 1) <= 1e-12:
        msg = f"shares: must add up to 1, got {sum(shares):.6g}; divide each by their sum."
        raise InputError(msg)
    for cap, each in zip(several("caps", caps, int), several("steps", steps, int), strict=True):
        whole("cap", cap, 1, most=2**CAP_BITS)
        whole("steps", each, 1, most=MOST_STEPS)
