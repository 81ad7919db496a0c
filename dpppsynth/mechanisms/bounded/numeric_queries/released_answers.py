"""`Answers`: released answers, their noise law, their guarantee and the bound on their errors."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpppsynth.core.arguments import entries, finite, flag
from dpppsynth.core.errors import InputError
from dpppsynth.inference.filters.series import Filtered
from dpppsynth.inference.filters.smoother import by_method
from dpppsynth.mechanisms.bounded.numeric_queries.terms import ErrorTerms
from dpppsynth.mechanisms.bounded.numeric_queries.values import whole_values
from dpppsynth.privacy.noise import TRUNCATED, OpenDPLaplace, SeededLaplace
from dpppsynth.privacy.profiles import Profile
from dpppsynth.privacy.truncated.error_bounds import LARGEST
from dpppsynth.spatial.mesh import Floats, Ints

MECHANISM = "bounded-answers"
# Relative difference between computers of a number that is derived again.
DERIVED = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """Released answers: public.

    Attributes
    ----------
    terms : ErrorTerms
        Terms of the release, from public parameters alone.
    raw : (N,) array of int
        Noised answers; some may be negative.
    noise : str
        Name of the sampler.
    seeded : bool
        True when the noise can be reproduced: then nothing is private.
    """

    terms: ErrorTerms
    raw: Ints
    noise: str
    seeded: bool

    def __post_init__(self) -> None:
        self.raw.flags.writeable = False

    def __repr__(self) -> str:
        budget = f"epsilon={self.epsilon:g}, delta={self.delta:.3g}, max_error={self.max_error:g}"
        return f"Answers(n={len(self.raw)}, {budget}{', seeded: not private' if self.seeded else ''})"

    @property
    def epsilon(self) -> float:
        """Budget of all answers together."""
        return self.terms.epsilon

    @property
    def delta(self) -> float:
        """Budget of all answers together."""
        return self.terms.delta

    @property
    def log_delta(self) -> float:
        """Natural logarithm of delta."""
        return self.terms.log_delta

    @property
    def max_error(self) -> float:
        """Bound on the error of every raw answer."""
        return self.terms.max_error

    @property
    def filtered_bound(self) -> float:
        """Bound on the error of every filtered answer: twice `max_error`."""
        return 2 * self.max_error

    @property
    def profile(self) -> Profile:
        """Privacy profile of all answers together."""
        return self.terms.profile

    @cached_property
    def filtered(self) -> Floats:
        """(N,) answers made smoother by `filter` with its own settings; as private as `raw`."""
        return self.filter(rng=0).estimate if len(self.raw) else np.empty(0)

    def filter(self, *, method: str = "particles", step: Any = "likely", **settings: Any) -> Filtered:
        """Series that a filter or smoother finds behind the raw answers; free, since it sees nothing else.

        It is accurate where answers change little from one to the next, beside the noise. How much they change it finds
        in the raw answers (`filters.likely_step`), unless `step` says; answers that have nothing to do with each other
        it leaves about as they are. Its own error may be twice `max_error`.

        Parameters
        ----------
        method : {"particles", "smoother"}
            A particle filter, which sees the answers up to each; or `filters.pooled_smoother`, which also sees later
            ones and knows jumps: the more accurate of the two.
        step
            As in `filters.particle_filter`.
        **settings
            Of `filters.particle_filter`: `particles`, `proposal`, `resample`, `rng` and others.

        Raises
        ------
        InputError
        """
        law: dict[str, Any] = {"scale": self.terms.scale, "bound": self.max_error, "step": step}
        return by_method(method, self.raw, law, settings)

    def to_dict(self) -> dict[str, Any]:
        """JSON form, inverse of `from_dict`: answers and terms, all of them public; a `max_error` of None is none."""
        released = {"raw": self.raw.tolist(), "noise": self.noise, "seeded": self.seeded}
        promised = {**asdict(self.terms), "delta": self.delta, "scale": self.terms.scale}
        most = None if self.max_error == math.inf else self.max_error
        return {"mechanism": MECHANISM, **released, **promised, "max_error": most}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Answers":
        """Inverse of `to_dict`; delta and scale are derived again.

        Raises
        ------
        InputError
            Something is missing or wrong, or delta or scale are not those of the other numbers.
        """
        stated = ("epsilon", "max_error", "sensitivity", "queries", "joint")
        data = entries("answers", data, ("mechanism", "raw", "noise", "seeded", "delta", "scale", *stated))
        most = math.inf if data["max_error"] is None else data["max_error"]
        terms = ErrorTerms(**{name: data[name] for name in stated} | {"max_error": most})
        for name, found in (("delta", terms.delta), ("scale", terms.scale)):
            if not math.isclose(finite(name, data[name]), found, rel_tol=DERIVED):
                msg = f"{name}: {found!r} follows from the other numbers, not what is stated; the file was changed."
                raise InputError(msg)
        seeded = flag("seeded", data["seeded"])
        sampler = SeededLaplace.name if seeded else OpenDPLaplace.name
        expected = (MECHANISM, sampler if terms.max_error == math.inf else TRUNCATED + sampler)
        if (data["mechanism"], data["noise"]) != expected:
            msg = f"mechanism, noise: must be {expected[0]!r} and {expected[1]!r} here; the file was changed."
            raise InputError(msg)
        # The largest answers with the largest noise.
        raw = whole_values(data["raw"], 2 * LARGEST)
        terms.require_room(len(raw))
        return cls(terms, raw, data["noise"], seeded)
