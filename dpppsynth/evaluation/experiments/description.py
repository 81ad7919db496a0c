"""What a folder remembers of its study, and how another study is told apart from it."""

import pickle
import sys
from collections.abc import Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from dpppsynth.errors import InputError
from dpppsynth.evaluation.experiments.parts import UnknownPart, describe

if TYPE_CHECKING:
    from dpppsynth.evaluation.experiments.study import Study

# Entries of a description that may grow from run to run; whatever is in both must agree.
GROWING = ("scenarios", "synthesizers")


def describe_study(study: "Study") -> dict[str, Any]:
    """Return names, seed and functions of a study, as JSON can hold them.

    Budgets and repeats stay out: they are in every cell's name.

    Raises
    ------
    InputError
        A scenario, synthesizer or measure holds something that cannot be told apart from another.
    """
    return {
        "dpppsynth": version("dpppsynth"),
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "seed": study.seed,
        "patterns": study.patterns,
        "measures": _each("measures", study.measures),
        "scenarios": _each("scenarios", study.scenarios),
        "synthesizers": _each("synthesizers", study.synthesizers),
    }


def differences(kept: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Say in words what keeps two descriptions from being of the same study."""
    if (was := kept.get("python")) != new["python"]:
        return [f"python was {was}, is {new['python']}, and compiled code can be compared within one Python alone"]
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


def _each(kind: str, parts: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, part in parts.items():
        try:
            found[name] = describe(part)
        except UnknownPart as error:
            msg = (
                f"{kind}: {name!r} holds {error}, which cannot be told apart from another one in a later run; make it "
                "a dataclass, numbers, text or an array, or give it a method `fingerprint()`."
            )
            raise InputError(msg) from None
    return found
