"""A netCDF-4 file of plain arrays, laid out byte by byte: the same arrays give the same file on every machine.

Libraries that write such files choose where things lie, by version, and leave room between: whether a file holds
anything beside its arrays could then not be told. Here it can: write what was read, and compare. And no library need
parse a file of unknown origin. There are no chunks, no compression, no links elsewhere and no types but numbers.

One group holds variables and notes. A variable that is named like its only dimension is that dimension's scale.
Numbers of sections refer to the HDF5 File Format Specification, version 2.0 of the superblock's format 0.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]
UNDEFINED = 2**64 - 1
# Least size of a collection in the global heap.
HEAP = 4096
# Where the sizes of an array stand in its header: behind three prefixes, those of header, message and dataspace.
SHAPE = 32
OTHER = "the file is not what is written of its own arrays"
DATASPACE, LINK_INFO, DATATYPE, FILL_VALUE, LINK, LAYOUT, GROUP_INFO, ATTRIBUTE = 1, 2, 3, 5, 6, 8, 10, 12
# Datatypes: class and version, bits, size, and what follows for numbers: where sign, exponent and mantissa are.
DATATYPES = {
    "<i4": struct.pack("<BBBBIHH", 0x10, 8, 0, 0, 4, 0, 32),
    "<f4": struct.pack("<BBBBIHHBBBBI", 0x11, 0x20, 31, 0, 4, 0, 32, 23, 8, 0, 23, 127),
    "<f8": struct.pack("<BBBBIHHBBBBI", 0x11, 0x20, 63, 0, 8, 0, 64, 52, 11, 0, 52, 1023),
}
REFERENCE = struct.pack("<BBBBI", 0x17, 0, 0, 0, 8)
# Lists of references, whose elements lie in the global heap.
REFERENCES = struct.pack("<BBBBI", 0x19, 0, 0, 0, 16) + REFERENCE


@dataclass(frozen=True, eq=False)
class Variable:
    """An array (of kind i4, f4 or f8, little-endian), its dimensions by name, and text beside it."""

    dimensions: tuple[str, ...]
    values: Numbers
    notes: Mapping[str, str]

    @property
    def content(self) -> bytes:
        """The numbers as they are stored."""
        return np.ascontiguousarray(self.values).tobytes()


def written(group: str, variables: Mapping[str, Variable], notes: Mapping[str, Numbers]) -> bytes:
    """The file: superblock, headers, references, and then the arrays in their order, each from a multiple of 8 on.

    Parameters
    ----------
    group : str
    variables : mapping
        By name; every dimension is the name of one of them.
    notes : mapping
        Arrays of numbers (k,), 8 bytes each, that are attributes of the group.
    """
    # Sizes do not depend on addresses.
    sizes = [len(block) for block in _blocks(group, variables, notes, dict.fromkeys(_places(variables), 0))]
    starts = np.cumsum([0, *sizes]).tolist()
    blocks = _blocks(group, variables, notes, dict(zip(_places(variables), starts, strict=True)))
    return b"".join(blocks)


def read(
    content: bytes, group: str, variables: Mapping[str, Variable], notes: Mapping[str, Numbers]
) -> tuple[dict[str, Numbers], dict[str, Numbers]]:
    """Arrays and notes of a file that differs from that of other variables and notes in sizes and numbers alone.

    Parameters
    ----------
    content : bytes
        Of unknown origin. Nothing larger than itself is made of it.
    group : str
    variables : mapping
        With the names, kinds, numbers of dimensions and texts of those in the file, of any size.
    notes : mapping
        As many numbers as in the file.

    Raises
    ------
    ValueError
        When `written` does not give this very file.
    """
    names = _places(variables)
    lengths = map(len, _blocks(group, variables, notes, dict.fromkeys(names, 0)))
    at = dict(zip(names, np.cumsum([0, *lengths]).tolist(), strict=True))
    found, start = {}, at[names[names.index("heap") + 1]]
    for name, variable in variables.items():
        shape = _unpacked(f"{variable.values.ndim}Q", content, at[f"header {name}"] + SHAPE)
        end = start + math.prod(shape) * variable.values.itemsize
        if end > len(content):
            raise ValueError(OTHER)
        found[name] = np.frombuffer(content[start:end], variable.values.dtype).reshape(shape)
        start = end + -end % 8
    told = _notes_before(at[names[3]], content, notes)
    arrays = {name: replace(variables[name], values=values) for name, values in found.items()}
    if written(group, arrays, told) != content:
        raise ValueError(OTHER)
    return found, told


def _notes_before(end: int, content: bytes, notes: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Notes at the end of the group's header: the numbers are the last of each message."""
    told = {}
    for name, values in reversed(list(notes.items())):
        told[name] = np.frombuffer(content[end - values.nbytes : end], values.dtype)
        end -= len(_note(name, values))
    return {name: told[name] for name in notes}


def _unpacked(form: str, content: bytes, start: int) -> tuple[int, ...]:
    try:
        return struct.unpack_from("<" + form, content, start)
    except struct.error:
        raise ValueError(OTHER) from None


def _places(variables: Mapping[str, Variable]) -> list[str]:
    headers, arrays = [f"header {name}" for name in variables], [f"array {name}" for name in variables]
    return ["superblock", "root", "group", *headers, "heap", *arrays, "end"]


def _blocks(
    group: str, variables: Mapping[str, Variable], notes: Mapping[str, Numbers], at: Mapping[str, int]
) -> list[bytes]:
    scales = [name for name, variable in variables.items() if variable.dimensions == (name,)]
    links = {name: at[f"header {name}"] for name in variables}
    told = [_note(name, values) for name, values in notes.items()]
    return [
        _superblock(at["root"], at["end"]),
        _header(_group({group: at["group"]})),
        _header(_group(links) + told),
        *(_header(_dataset(name, each, scales, at)) for name, each in variables.items()),
        _heap([links[name] for name in scales]),
        *(_padded(each.content) for each in variables.values()),
    ]


def _superblock(root: int, end: int) -> bytes:
    """Section II.A, version 0, with the entry of the root group at its end."""
    versions = struct.pack("<8s8BHHI", b"\x89HDF\r\n\x1a\n", 0, 0, 0, 0, 0, 8, 8, 0, 4, 16, 0)
    addresses = struct.pack("<QQQQ", 0, UNDEFINED, end, UNDEFINED)
    return versions + addresses + struct.pack("<QQII16x", 0, root, 0, 0)


def _header(messages: Sequence[bytes]) -> bytes:
    """Section IV.A.1.a: an object's header, version 1."""
    body = b"".join(messages)
    return struct.pack("<BxHII4x", 1, len(messages), 1, len(body)) + body


def _message(kind: int, content: bytes) -> bytes:
    content = _padded(content)
    return struct.pack("<HHB3x", kind, len(content), 0) + content


def _group(links: Mapping[str, int]) -> list[bytes]:
    """Messages of a group whose few links stand in its header."""
    info = _message(LINK_INFO, struct.pack("<BBQQ", 0, 0, UNDEFINED, UNDEFINED))
    named = [
        _message(LINK, struct.pack("<BBB", 1, 0, len(name)) + name.encode("ascii") + struct.pack("<Q", address))
        for name, address in links.items()
    ]
    return [info, _message(GROUP_INFO, bytes(2)), *named]


def _dataset(name: str, variable: Variable, scales: Sequence[str], at: Mapping[str, int]) -> list[bytes]:
    """Messages of an array that is stored in one piece."""
    layout = struct.pack("<BBQQ", 3, 1, at[f"array {name}"], variable.values.nbytes)
    messages = [
        _message(DATASPACE, _dataspace(variable.values.shape)),
        _message(DATATYPE, _datatype(variable.values)),
        _message(FILL_VALUE, struct.pack("<BBBBI", 2, 2, 2, 1, 0)),
        _message(LAYOUT, layout),
        *(_text(key, text) for key, text in variable.notes.items()),
    ]
    if name in scales:
        return [*messages, _text("CLASS", "DIMENSION_SCALE"), _text("NAME", name)]
    listed = [struct.pack("<IQI", 1, at["heap"], 1 + scales.index(each)) for each in variable.dimensions]
    return [*messages, _attribute("DIMENSION_LIST", REFERENCES, (len(listed),), b"".join(listed))]


def _heap(references: Sequence[int]) -> bytes:
    """Section III.E: a collection of references, and what of it is free."""
    used = b"".join(struct.pack("<HH4xQQ", 1 + k, 1, 8, each) for k, each in enumerate(references))
    free = HEAP - 16 - len(used)
    return struct.pack("<4sB3xQ", b"GCOL", 1, HEAP) + used + struct.pack("<HH4xQ", 0, 0, free) + bytes(free - 16)


def _datatype(values: Numbers) -> bytes:
    return DATATYPES[values.dtype.newbyteorder("<").str]


def _dataspace(shape: tuple[int, ...]) -> bytes:
    return struct.pack(f"<BBBB4x{len(shape)}Q", 1, len(shape), 0, 0, *shape)


def _note(name: str, values: Numbers) -> bytes:
    return _attribute(name, _datatype(values), values.shape, values.tobytes())


def _text(name: str, text: str) -> bytes:
    content = text.encode("ascii") + b"\0"
    return _attribute(name, struct.pack("<BBBBI", 0x13, 0, 0, 0, len(content)), (), content)


def _attribute(name: str, datatype: bytes, shape: tuple[int, ...], content: bytes) -> bytes:
    called, space = name.encode("ascii") + b"\0", _dataspace(shape)
    sizes = struct.pack("<BxHHH", 1, len(called), len(datatype), len(space))
    return _message(ATTRIBUTE, sizes + _padded(called) + _padded(datatype) + _padded(space) + content)


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 8)
