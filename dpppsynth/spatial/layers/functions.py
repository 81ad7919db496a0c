"""`FunctionLayer`: a function of coordinates, such as the distance to a place."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpppsynth.core.errors import InputError
from dpppsynth.spatial.domains import Domain, as_reals
from dpppsynth.spatial.layers.public_layer import PublicLayer
from dpppsynth.spatial.mesh import Floats


class FunctionLayer(PublicLayer):
    """A public function from coordinates (n, 2) to values (n,), such as the distance to a public place.

    Parameters
    ----------
    function : callable
        It is only ever called with public places, never with points of a pattern.
    label : str
        Name in messages.
    """

    def __init__(self, function: Callable[[Floats], Any], *, label: str = "function") -> None:
        if not callable(function):
            msg = f"{label}: needs a function of coordinates (n, 2), got {type(function).__name__}."
            raise InputError(msg)
        self.function, self.label, self.crs = function, label, None

    def __call__(self, xy: Floats) -> Floats:
        """(n,) values at coordinates (n, 2)."""
        values = as_reals(self._answer(xy), f"{self.label}: values must be real numbers.")
        if values.shape != (len(xy),):
            msg = f"{self.label}: must give one number for each of {len(xy)} places, got shape {values.shape}."
            raise InputError(msg)
        return values

    def _answer(self, xy: Floats) -> Any:
        """The function's own answer; whatever it raises is told with the function's name."""
        try:
            return self.function(np.array(xy))
        except Exception as cause:
            msg = (
                f"{self.label}: the function failed with {type(cause).__name__}; it must take coordinates (n, 2), here "
                f"n = {len(xy)}, and give values (n,)."
            )
            raise InputError(msg) from cause

    def filling(self, argument: str) -> str:
        """Remedy for gaps: nothing but the function fills them."""
        return "let the function give a number everywhere"

    def missing(self, domain: Domain) -> float:
        """Zero: whether a function has a value is seen where it is asked."""
        return 0.0
