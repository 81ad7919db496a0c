"""Safe reading of untrusted release folders: regular files alone, of limited size, without following links.

Whoever publishes a folder also chooses what lies in it: a pipe that waits for ever, a link to a device without end, a
file that changes between two looks. So a folder is opened once and held, its files are opened from there by name
without following links, and their sizes are known before anything is read.
"""

from __future__ import annotations

import contextlib
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

# On systems without these (Windows) a name is looked at before and after it is opened.
HELD = hasattr(os, "O_NOFOLLOW") and hasattr(os, "O_DIRECTORY") and os.open in os.supports_dir_fd
_CLOSED = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | _CLOSED
# A pipe that takes the place of a file is opened at once, and then refused.
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | _CLOSED


def beyond_limits(folder: Path) -> bool:
    """Whether a release's files are more, or larger, than are read of an unknown publisher."""
    sizes = [each.stat().st_size for each in folder.iterdir()]
    return max(sizes, default=0) > MOST_BYTES or sum(sizes) > MOST_IN_ALL or len(sizes) > MOST_NAMES


class PublishedFolder:
    """A folder held open by descriptor, so that it cannot be replaced while it is read.

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
        self._descriptor: int | None = None
        self._digested = 0
        if HELD:
            self._descriptor = _descend(path)
        else:
            _look(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def read(self, name: str, most: int = MOST_BYTES) -> bytes:
        """All bytes of a file, of which there are at most so many.

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
        try:
            os.stat(self._place(name), dir_fd=self._descriptor, follow_symlinks=False)
        except (OSError, ValueError):
            return False
        return True

    def names(self) -> list[str]:
        """Sorted names of all that lies in the folder.

        Raises
        ------
        TooLargeError
            When there are too many.
        """
        found = []
        with os.scandir(self.path if self._descriptor is None else self._descriptor) as entries:
            for entry in entries:
                found.append(entry.name)
                if self.limit and len(found) > MOST_NAMES:
                    msg = f"path: {self.path} holds more than {MOST_NAMES} files: {REMEDY}."
                    raise TooLargeError(msg)
        return sorted(found)

    def _place(self, name: str) -> str | Path:
        return name if self._descriptor is not None else self.path / name

    def _blocks(self, name: str, most: int) -> Iterator[bytes]:
        descriptor = self._opened(name)
        with contextlib.closing(os.fdopen(descriptor, "rb", buffering=0)) as file:
            size = os.fstat(descriptor).st_size
            self._bound(name, size, most)
            while block := file.read(BLOCK):
                size -= len(block)
                # It grows while it is read.
                if size < 0:
                    raise refused()
                yield block

    def _opened(self, name: str) -> int:
        """Descriptor of a plain file."""
        place = self._place(name)
        before = os.stat(place, dir_fd=self._descriptor, follow_symlinks=False)
        # Merely to open a device may set it going.
        if not stat.S_ISREG(before.st_mode) or "/" in name or "\\" in name:
            raise refused()
        descriptor = os.open(place, _FILE, dir_fd=self._descriptor)
        after = os.fstat(descriptor)
        if not stat.S_ISREG(after.st_mode) or not os.path.samestat(before, after):
            os.close(descriptor)
            raise refused()
        return descriptor

    def _bound(self, name: str, size: int, most: int) -> None:
        if self.limit and size > most:
            msg = f"{name}: holds {size} bytes, more than {max(most, 0)}: {REMEDY}."
            raise TooLargeError(msg)


def _descend(path: Path) -> int:
    """Descriptor of a folder, opened part by part from where the path begins."""
    start, *parts = path.parts if path.is_absolute() else (".", *path.parts)
    if path.is_absolute() and parts and Path(start, parts[0]).is_symlink():
        parts[:1] = Path(start, parts[0]).resolve().parts[1:]
    descriptor = os.open(start, _FOLDER)
    for part in parts:
        try:
            inner = os.open(part, _FOLDER, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def _look(path: Path) -> None:
    """Refuse a folder that is a link, or reached through one, where folders cannot be held."""
    for part in (path, *path.parents):
        if part.is_symlink() or getattr(part, "is_junction", bool)():
            raise refused()
    if not path.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def refused() -> OSError:
    """The error for what is no plain file, or no folder of its own."""
    return OSError(errno.ELOOP, LINK)


def reason(error: OSError) -> str:
    """Reason why something could not be opened; systems refuse links under several names."""
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
        return LINK
    return error.strerror or str(error) or "it cannot be opened"


def strict_json(content: bytes) -> Any:
    """A JSON document in which nothing is said twice, no number is absurd, and nothing lies very deep.

    Raises
    ------
    ValueError, RecursionError
        When it is none.
    """
    document = json.loads(content.decode("utf-8"), **STRICT)
    _shallow(document)
    return document


def plain_text(document: Any) -> str:
    """The one layout of published documents: keys in order, nothing between that could hold something."""
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
