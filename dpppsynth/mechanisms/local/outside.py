"""Treatment of persons outside the grid."""

from typing import Any

import numpy as np

from dpppsynth.core.arguments import one_of
from dpppsynth.core.errors import InputError
from dpppsynth.core.types import Floats

# Treatments of a person outside: both leave the number of reports unchanged.
OUTSIDE = ("raise", "clip")
DROP = "drop"


def everybody(outside: Any, *, study: bool = False) -> str:
    """Return the validated treatment of persons outside the window; leaving them out is for studies alone.

    Raises
    ------
    InputError
        For an unknown word, and where persons are left out and the result could be released: the number of reports is
        public, and would tell that somebody is outside.
    """
    if one_of("outside", outside, (*OUTSIDE, DROP)) == DROP and not study:
        msg = (
            "outside: 'drop' would show in the number of reports, which is public; take 'clip', and a person outside "
            "reports the nearest cell. A study may leave them out: simulate(..., rng=1) or fast=True."
        )
        raise InputError(msg)
    return outside


def held_in_box(places: Floats, bounds: Any, outside: str) -> Floats:
    """Points (n, 2) in a box (x0, y0, x1, y1): those outside are refused, left out or moved to its border."""
    low, high = np.array(bounds[:2]), np.array(bounds[2:])
    if outside == "clip":
        return np.clip(places, low, high)
    inside = ((places >= low) & (places <= high)).all(axis=1)
    if outside == "raise" and not inside.all():
        msg = (
            "xy: some points lie outside the window's bounding box; take a public window that holds them all, or say "
            "outside='clip': then they report the nearest cell."
        )
        raise InputError(msg)
    return places[inside]
