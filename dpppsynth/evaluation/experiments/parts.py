"""Scenarios, synthesizers and measures in words, so that a changed one is told apart from the one it was.

A Python function is known by its name, a digest of its compiled code, its defaults and what it closes over. What it
calls, global variables that it reads and methods of objects other than the one called are not looked at.
"""

import enum
import functools
import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

# The package's own functions are known by its version.
PACKAGE = __name__.partition(".")[0]
Describe = Callable[[Any], Any]


class UnknownPart(Exception):
    """Nothing but its type is known of an object."""


def describe(part: Any, within: tuple[int, ...] = ()) -> Any:
    """Describe a function by name, code and what it keeps, settings by their values, as JSON can hold them.

    Parameters
    ----------
    part : object
    within : tuple of int
        Identities of what is being described around it: functions may close over themselves.

    Raises
    ------
    UnknownPart

    Examples
    --------
    >>> describe([1, 1.0, "1", True])
    ['1', '1.0', "'1'", 'True']
    """
    if part is None or (isinstance(part, str | bool | int | float | complex) and not isinstance(part, enum.Enum)):
        return repr(part.item() if isinstance(part, np.generic) else part)
    if id(part) in within:
        return f"itself, {len(within) - within.index(id(part))} up"
    inner = functools.partial(describe, within=(*within, id(part)))
    mark = None if isinstance(part, type) else getattr(part, "fingerprint", None)
    if mark is not None:
        return f"{_name(type(part))} {mark() if callable(mark) else mark}"
    if callable(part):
        return _callable(part, inner)
    return _settings(part, inner)


def _callable(part: Any, inner: Describe) -> Any:
    if isinstance(part, functools.partial):
        return ["partial", inner(part.func), [inner(each) for each in part.args], inner(part.keywords)]
    if inspect.ismethod(part):
        return [inner(part.__func__), inner(part.__self__)]
    if isinstance(part, FunctionType):
        return _function(part, inner)
    if hasattr(part, "__wrapped__"):
        return [_name(type(part)), inner(part.__wrapped__)]
    if isinstance(part, type):
        methods = {name: _digest(each.__code__) for name, each in vars(part).items() if isinstance(each, FunctionType)}
        return _name(part) if _ours(part) else f"{_name(part)}, code {_hashed(sorted(methods.items()))}"
    if isinstance(part, BuiltinFunctionType) and not isinstance(part.__self__, ModuleType | None):
        return [part.__name__, inner(part.__self__)]
    if hasattr(part, "__name__"):
        return _name(part)
    called = type(part).__call__
    return [inner(called) if isinstance(called, FunctionType) else "", _settings(part, inner)]


def _function(part: FunctionType, inner: Describe) -> Any:
    """Name and code, and beside them what the function keeps."""
    if _ours(part):
        return _name(part)
    known = f"{_name(part)}, code {_digest(part.__code__)}"
    cells = zip(part.__code__.co_freevars, part.__closure__ or (), strict=True)
    kept = {
        "defaults": [inner(each) for each in part.__defaults__ or ()],
        "keywords": inner(part.__kwdefaults__ or {}),
        "closure": {name: _of_cell(cell, inner) for name, cell in cells},
    }
    given = {name: each for name, each in kept.items() if each}
    return {known: given} if given else known


def _of_cell(cell: Any, inner: Describe) -> Any:
    try:
        value = cell.cell_contents
    except ValueError:
        return "nothing yet"
    return inner(value)


def _settings(part: Any, inner: Describe) -> Any:
    if isinstance(part, np.ndarray):
        data = json.dumps(inner(part.tolist())).encode() if part.dtype.hasobject else part.tobytes()
        return f"array {part.shape} {part.dtype} {hashlib.sha256(data).hexdigest()}"
    if isinstance(part, np.generic | enum.Enum | PurePath | range | slice):
        return f"{_name(type(part))} {part}"
    if isinstance(part, bytes | bytearray):
        return f"bytes {hashlib.sha256(part).hexdigest()}"
    if isinstance(part, Mapping):
        return {name if isinstance(name, str) else repr(inner(name)): inner(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [inner(value) for value in part]
    if isinstance(part, set | frozenset):
        return sorted(map(json.dumps, map(inner, part)))
    if is_dataclass(part):
        return {_name(type(part)): {field.name: inner(getattr(part, field.name)) for field in fields(part)}}
    if isinstance(part, ModuleType):
        return part.__name__
    msg = f"an object of the type {_name(type(part))}"
    raise UnknownPart(msg)


def _digest(code: CodeType) -> str:
    """Digest of what a code object does: neither file names nor line numbers, constants by their values."""
    consts = [_digest(each) if isinstance(each, CodeType) else _constant(each) for each in code.co_consts]
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return _hashed([code.co_code.hex(), code.co_exceptiontable.hex(), consts, counts, names])


def _constant(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_constant, value))})"
    # Their order changes from process to process.
    return f"{{{', '.join(sorted(map(_constant, value)))}}}" if isinstance(value, frozenset) else repr(value)


def _hashed(parts: Iterable[Any]) -> str:
    return hashlib.sha256(json.dumps(list(parts)).encode()).hexdigest()[:16]


def _ours(part: Any) -> bool:
    return str(part.__module__).partition(".")[0] == PACKAGE


def _name(part: Any) -> str:
    return f"{getattr(part, '__module__', None)}.{getattr(part, '__qualname__', part.__name__)}"
