"""Atomic, durable file writes, and locks that let one process write at a time."""

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from dpppsynth.core.errors import InformationWarning

# Suffix of a file while it is being written.
TEMPORARY = ".tmp"
# Prefix of the folders, beside a file, in which it is written.
DRAFT = ".writing_"


@contextmanager
def whole_file(path: Path, mode: int = 0o666, *, ready: Callable[[], None] | None = None) -> Iterator[IO[bytes]]:
    """Write a file atomically: its old or its new content is complete whenever the process or the machine stops.

    Where writing fails, nothing of it is left.

    Parameters
    ----------
    path : Path
    mode : int
        Permissions of the file, less the umask.
    ready : callable, optional
        Called when all is written, right before it takes its name; by raising, it leaves the old file.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    temporary.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if ready is not None:
            ready()
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_names(path.parent)


def sync_names(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    if os.name == "posix":
        sync(folder)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def name_leftovers(folder: Path, prefix: str, holds: str) -> None:
    """Warn, by name, of temporary files left by killed processes; they may still be in use.

    Parameters
    ----------
    folder : Path
    prefix : str
        Prefix of such names.
    holds : str
        Their content, in words.
    """
    try:
        left = sorted(str(path) for path in folder.iterdir() if path.name.startswith(prefix))
    except OSError:
        return
    if left:
        msg = (
            f"leftovers: {', '.join(left)} of an earlier run that was stopped; {holds} Delete it, unless it still runs."
        )
        warnings.warn(msg, InformationWarning, stacklevel=4)


@contextmanager
def drafted(target: Path, holds: str) -> Iterator[Path]:
    """Name for a draft of a file, in a temporary folder beside it; leftovers of other processes are named.

    Parameters
    ----------
    target : Path
    holds : str
        Content of such a folder, in words.
    """
    name_leftovers(target.parent, DRAFT, holds)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=DRAFT) as folder:
        yield Path(folder) / target.name


@contextmanager
def locked(path: Path, *, timeout: float = 0.0) -> Iterator[Callable[[], bool]]:
    """Hold an operating-system lock on a separate file; it is released when the process ends, however it ends.

    Parameters
    ----------
    path : Path
        The lock's own file; it is made, and stays.
    timeout : float
        Seconds to wait for another process.

    Yields
    ------
    callable
        Tells whether the lock still excludes others: it does not once its file was deleted or replaced.

    Raises
    ------
    TimeoutError
        When another process holds the lock for longer.
    OSError
        When the file cannot be made.
    """
    from filelock import FileLock

    # Not once for all of a process: two objects of one process must exclude each other as well.
    lock = FileLock(path, timeout=timeout, is_singleton=False)
    with lock:
        yield lambda: _stands_at(lock._context.lock_file_fd, path)  # noqa: SLF001 - the lock shows no other handle


def _stands_at(descriptor: int | None, path: Path) -> bool:
    """Whether an open file is the one of that name."""
    try:
        return descriptor is not None and os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False
