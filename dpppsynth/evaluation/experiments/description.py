"""What a folder remembers of its study, and how another study is told apart from it."""

import functools
import hashlib
import inspect
import pickle
import sys
from collections.abc import Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from dpppsynth.errors import InputError

if TYPE_CHECKING:
    from dpppsynth.evaluation.experiments.study import Study

# Entries of a description that may grow from run to run; whatever is in both must agree.
GROWING = ("scenarios", "synthesizers")


def describe_study(study: "Study") -> dict[str, Any]:
    """Return names, seed and functions of a study, as JSON can hold them.

    Budgets and repeats stay out: they are in every cell's name.
    """
    return {
        "dpppsynth": version("dpppsynth"),
        "seed": study.seed,
        "patterns": study.patterns,
        "measures": _each(study.measures),
        "scenarios": _each(study.scenarios),
        "synthesizers": _each(study.synthesizers),
    }


def differences(kept: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Say in words what keeps two descriptions from being of the same study."""
    found = []
    for name, value in new.items():
        one, other = kept.get(name), value
        if name in GROWING and isinstance(one, Mapping):
            shared = [key for key in other if key in one]
            one, other = {key: one[key] for key in shared}, {key: other[key] for key in shared}
        if one == other:
            continue
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
            found += [f"{name}[{key!r}] was {one.get(key)}, is {other.get(key)}" for key in keys]
        else:
            found.append(f"{name} was {one}, is {other}")
    return found


def require_importable(study: "Study", executor: Executor | None) -> None:
    """Refuse functions that another process cannot find.

    Processes that Python starts read the script that runs again, so its functions are known there; an interactive
    session's are not, nor are a script's on a cluster.
    """
    reads_script = executor is None or isinstance(executor, ProcessPoolExecutor | ThreadPoolExecutor)
    elsewhere = not (reads_script and hasattr(sys.modules["__main__"], "__file__"))
    for kind in ("scenarios", "synthesizers", "measures"):
        for name, part in getattr(study, kind).items():
            try:
                sent = pickle.dumps(part)
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                msg = (
                    f"{kind}: {name!r} cannot be sent to another process ({error}); define its functions at the top "
                    "level of a module, not as a lambda or inside another function, or run with workers=1."
                )
                raise InputError(msg) from None
            if elsewhere and b"__main__" in sent:
                msg = (
                    f"{kind}: {name!r} is defined in the script or session that runs, which the workers do not know; "
                    "move it to a module of its own, or run with workers=1."
                )
                raise InputError(msg)


def _each(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: describe(part) for name, part in parts.items()}


def describe(part: Any) -> Any:
    """Describe a function by its qualified name, settings by their values, anything else by its type."""
    if part is None or isinstance(part, str | bool | int | float):
        return part if isinstance(part, str) else repr(part)
    if hasattr(part, "fingerprint"):
        return f"{type(part).__name__} {part.fingerprint()}"
    if isinstance(part, np.ndarray):
        return f"array {part.shape} {hashlib.sha256(np.ascontiguousarray(part).tobytes()).hexdigest()}"
    if isinstance(part, functools.partial):
        settings = [*map(describe, part.args), {name: describe(part.keywords[name]) for name in sorted(part.keywords)}]
        return {describe(part.func): settings}
    if isinstance(part, Mapping):
        return {str(name): describe(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [describe(value) for value in part]
    if is_dataclass(part) and not isinstance(part, type):
        return {_name(type(part)): {field.name: describe(getattr(part, field.name)) for field in fields(part)}}
    if inspect.ismethod(part):
        return {_name(part): describe(part.__self__)}
    return _name(part) if hasattr(part, "__qualname__") else _name(type(part))


def _name(part: Any) -> str:
    return f"{part.__module__}.{part.__qualname__}"
