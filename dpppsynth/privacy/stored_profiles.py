"""Privacy profiles of every kind from their JSON form, as certificates and ledgers store it."""

from collections.abc import Callable, Mapping
from typing import Any

from dpppsynth.core.arguments import entries, several, shown
from dpppsynth.core.errors import InputError
from dpppsynth.privacy.composed import Composed
from dpppsynth.privacy.losses import DiscreteLosses
from dpppsynth.privacy.profiles import ApproximateDP, GaussianDP, PoissonGaussianDP, Profile, PureDP, SmallestOf

__all__ = ["profile_from_dict"]


def profile_from_dict(data: Mapping[str, Any]) -> Profile:
    """Profile from its JSON form; InputError for a kind this version does not know, or without what it needs."""
    makers: dict[str, tuple[Callable[..., Profile], tuple[str, ...]]] = {
        "pure": (PureDP, ("epsilon",)),
        "gaussian": (GaussianDP, ("mu", "delta")),
        "poisson-gaussian": (PoissonGaussianDP, ("ratio", "rate", "delta")),
        "approximate": (ApproximateDP, ("level", "slack")),
        "discrete-losses": (lambda *_: DiscreteLosses.from_dict(data), ("rows", "delta")),
        "truncated-laplace": (lambda *_: _truncated(data), ("scale", "bound", "shifts", "delta")),
        "smallest": (lambda parts, at: SmallestOf(_read(parts), at), ("parts", "delta")),
        "composed": (lambda parts, at: Composed(_read(parts), at), ("parts", "delta")),
    }
    kind = entries("profile", data).get("kind")
    if not isinstance(kind, str) or kind not in makers:
        known = ", ".join(map(repr, makers))
        msg = f"profile: kind {shown(kind)} is not known to this version; expected one of {known}."
        raise InputError(msg)
    make, keys = makers[kind]
    entries("profile", data, keys)
    return make(*(data[key] for key in keys))


def _truncated(data: Mapping[str, Any]) -> Profile:
    from dpppsynth.privacy.truncated_profile import TruncatedLaplaceDP

    return TruncatedLaplaceDP.from_dict(data)


def _read(parts: Any) -> tuple[Profile, ...]:
    return tuple(map(profile_from_dict, several("parts", parts, Mapping)))
