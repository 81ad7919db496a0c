"""Choice between a particle filter and a smoother of released series."""

from collections.abc import Mapping
from typing import Any

from dpppsynth.core.arguments import one_of
from dpppsynth.core.errors import InputError
from dpppsynth.release.filters.filtered_series import Filtered
from dpppsynth.release.filters.particle import particle_filter
from dpppsynth.release.filters.pooled_smoother import pooled_smoother

METHODS = ("particles", "smoother")
# Settings of particles unless given.
USUAL = {"particles": 1000, "proposal": "bootstrap", "resample": True, "rng": None}


def by_method(method: str, observations: Any, law: Mapping[str, Any], settings: Mapping[str, Any]) -> Filtered:
    """Series (N,) or (N, T) by one of METHODS; `law` has scale, bound and step, `settings` are those of particles.

    Raises
    ------
    InputError
    """
    if one_of("method", method, METHODS) == "particles":
        return particle_filter(observations, **law, **settings)
    for name, value in settings.items():
        if name not in USUAL or value != USUAL[name]:
            msg = f"{name}: belongs to method='particles'; a smoother draws none. Leave it out."
            raise InputError(msg)
    return pooled_smoother(observations, **law)
