"""Safe reading of untrusted release folders: regular files alone, of limited size, without following links.

A folder that somebody else published may hold a pipe that waits for ever, or a link to a device without end. So files
are looked at before they are opened, and their sizes are known before anything is read.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self

from dpppsynth.core.errors import TooLargeError

MEBI = 2**20
# Bytes of one file, of all files whose digests are taken, and names in one folder.
MOST_BYTES, MOST_IN_ALL, MOST_NAMES = 64 * MEBI, 2048 * MEBI, 100_000
BLOCK = MEBI
# Numbers that no published document has, on which arithmetic would overflow; and how deep its parts lie.
ABSURD, DEEPEST = 1e30, 64
REMEDY = "too large to verify; use --no-limit (in Python limit=False) if you trust who published it"
LINK = "it is not a regular file or folder, or is reached through a link; name it by its own path (realpath)"


def beyond_limits(folder: Path) -> bool:
    """Whether a release's files are more, or larger, than are read of an unknown publisher."""
    sizes = [each.stat().st_size for each in folder.iterdir()]
    return max(sizes, default=0) > MOST_BYTES or sum(sizes) > MOST_IN_ALL or len(sizes) > MOST_NAMES


class PublishedFolder:
    """An untrusted folder, whose files are read with limits of size and without following links.

    Parameters
    ----------
    path : Path
        No link, and with no link among its parents. Those that lie in the root itself, such as ``/tmp`` on macOS, are
        the machine's own and are followed.
    limit : bool
        Whether sizes are bounded.

    Raises
    ------
    OSError
        When it is missing, or it or one of its parents is a link or no folder.
    """

    def __init__(self, path: Path, *, limit: bool = True) -> None:
        self.path, self.limit = path, limit
        self._digested = 0
        for part in (path, *path.parents):
            linked = part.is_symlink() or getattr(part, "is_junction", bool)()
            if linked and not (path.is_absolute() and len(part.parts) == 2):
                raise refused()
        if not path.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self, name: str, most: int = MOST_BYTES) -> bytes:
        """All bytes of a file, of which there are `most` at most.

        Raises
        ------
        OSError
            When there is no plain file of this name.
        TooLargeError
            When it is larger.
        """
        return b"".join(self._blocks(name, most))

    def digest(self, name: str) -> str:
        """SHA-256 of a file's bytes; all files together may be large, and are then refused as in `read`."""
        found = hashlib.sha256()
        for block in self._blocks(name, MOST_IN_ALL - self._digested):
            found.update(block)
            self._digested += len(block)
        return found.hexdigest()

    def has(self, name: str) -> bool:
        """Whether there is anything of this name, a file or not."""
        return os.path.lexists(self.path / name)

    def names(self) -> list[str]:
        """Sorted names of all files and folders in the folder; TooLargeError when there are too many."""
        found = []
        with os.scandir(self.path) as entries:
            for entry in entries:
                found.append(entry.name)
                if self.limit and len(found) > MOST_NAMES:
                    msg = f"path: {self.path} holds more than {MOST_NAMES} files: {REMEDY}."
                    raise TooLargeError(msg)
        return sorted(found)

    def _blocks(self, name: str, most: int) -> Iterator[bytes]:
        place = self.path / name
        before = place.lstat()
        # Merely to open a device may set it going.
        if not stat.S_ISREG(before.st_mode) or "/" in name or "\\" in name:
            raise refused()
        with place.open("rb", buffering=0) as file:
            found = os.fstat(file.fileno())
            if not os.path.samestat(before, found):
                raise refused()
            size = found.st_size
            if self.limit and size > most:
                msg = f"{name}: holds {size} bytes, more than {max(most, 0)}: {REMEDY}."
                raise TooLargeError(msg)
            while block := file.read(BLOCK):
                size -= len(block)
                # It grows while it is read.
                if size < 0:
                    raise refused()
                yield block


def refused() -> OSError:
    """The error where a plain file, or a folder that is not a link, is required."""
    return OSError(errno.ELOOP, LINK)


def reason(error: OSError) -> str:
    """Reason why something could not be opened; systems refuse links under several names."""
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
        return LINK
    return error.strerror or str(error) or "it cannot be opened"


def strict_json(content: bytes) -> Any:
    """Parse a JSON document without duplicate keys, out-of-range numbers or deep nesting.

    Raises
    ------
    ValueError, RecursionError
        When it is none.
    """
    document = json.loads(content.decode("utf-8"), **STRICT)
    _shallow(document)
    return document


def plain_text(document: Any) -> str:
    """Canonical text of published documents: sorted keys."""
    return json.dumps(document, sort_keys=True, allow_nan=False) + "\n"


def _shallow(document: Any) -> None:
    level, depth = [document], 0
    while level:
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, dict | list)
        ]
        depth += 1
        if depth > DEEPEST:
            msg = "parts lie too deep"
            raise ValueError(msg)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that stands twice: a reader would see one value, and the hash would cover the other."""
    found: Mapping[str, Any] = dict(pairs)
    if len(found) != len(pairs):
        msg = "repeated key"
        raise ValueError(msg)
    return dict(found)


def _refuse(constant: str) -> Any:
    msg = f"{constant} is not JSON"
    raise ValueError(msg)


def _number(kind: Callable[[str], Any], text: str) -> Any:
    value = kind(text)
    if not abs(value) < ABSURD:
        msg = f"{text[:20]}... is too large"
        raise ValueError(msg)
    return value


STRICT: dict[str, Any] = {
    "object_pairs_hook": _unique,
    "parse_constant": _refuse,
    "parse_int": partial(_number, int),
    "parse_float": partial(_number, float),
}
