"""Output folders: new, with room on the disk before anything is spent, and on the disk once they are written."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dpppsynth.core.errors import InputError


def in_use(folder: Path) -> bool:
    """Whether something other than an empty folder has this name."""
    return folder.exists() and (not folder.is_dir() or any(folder.iterdir()))


def require_new_folder(folder: Path, argument: str = "path") -> None:
    """Refuse an output folder that is in use or cannot be made, before anything is spent, with an InputError."""
    if in_use(folder):
        msg = f"{argument}: {folder} exists and is not an empty folder; choose another, releases are never overwritten."
        raise InputError(msg)
    above = _existing(folder)
    try:
        tempfile.TemporaryDirectory(dir=above).cleanup()
    except OSError:
        msg = f"{argument}: no folder can be made in {above}; choose a place where you may write."
        raise InputError(msg) from None


def scratch_prefix(folder: Path) -> str:
    """Prefix of the temporary folders, beside the target, in which it is written."""
    return f".{folder.name}-"


@contextmanager
def room_for(folder: Path, small: int, large: int) -> Iterator[Callable[[], None]]:
    """Hold bytes of the disk for a folder, which the function that is given gives back right before they are needed.

    Parameters
    ----------
    folder : Path
    small : int
        Bytes that are held.
    large : int
        Bytes that must be free besides, for files that are written later.

    Raises
    ------
    InputError
        When the disk has too little room.
    """
    above = _existing(folder)
    free = shutil.disk_usage(above).free
    if free < small + large:
        msg = (
            f"path: {free / 1e6:,.0f} MB are free in {above}, and about {(small + large) / 1e6:,.0f} are needed; make "
            "room, or choose another disk."
        )
        raise InputError(msg)
    with tempfile.TemporaryDirectory(dir=above, prefix=scratch_prefix(folder)) as scratch:
        held = Path(scratch) / "room"
        try:
            held.write_bytes(bytes(small))
            _sync(held)
        except OSError as err:
            msg = f"path: cannot write in {above}: {err.strerror}; choose another disk."
            raise InputError(msg) from None
        yield lambda: held.unlink(missing_ok=True)


def make_durable(folder: Path) -> None:
    """Wait until all files of a folder, and their names, are on the disk."""
    for path in folder.iterdir():
        _sync(path)
    sync_names(folder)


def sync_names(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    if os.name == "posix":
        _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _existing(folder: Path) -> Path:
    """The nearest folder above that there is."""
    return next(each for each in folder.absolute().parents if each.exists())
