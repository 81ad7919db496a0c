"""Output folders: new, with room on the disk before anything is spent, and on the disk once they are written."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dpppsynth.core.atomic_files import name_leftovers, sync, sync_names
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


def require_room(folder: Path, size: int) -> None:
    """Refuse a disk without room for `size` bytes, with an InputError."""
    above = _existing(folder)
    free = shutil.disk_usage(above).free
    if free < size:
        msg = (
            f"path: {free / 1e6:,.1f} MB are free in {above}, and about {size / 1e6:,.1f} are needed; make room, or "
            "choose another disk."
        )
        raise InputError(msg)


@contextmanager
def room_held(folder: Path, size: int) -> Iterator[Callable[[], None]]:
    """Reserve disk space for a folder; yield a function that frees it right before it is needed.

    Raises
    ------
    InputError
        When nothing can be written there.
    """
    above, prefix = _existing(folder), f".{folder.name}.room-"
    name_leftovers(above, prefix, "it holds nothing but zeros.")
    with ExitStack() as made:
        try:
            scratch = tempfile.TemporaryDirectory(dir=above, prefix=prefix)
            held = Path(made.enter_context(scratch)) / "room"
            held.write_bytes(bytes(size))
            sync(held)
        except OSError as err:
            msg = f"path: cannot write in {above}: {err.strerror}; choose another disk."
            raise InputError(msg) from None
        yield lambda: held.unlink(missing_ok=True)


def make_durable(folder: Path) -> None:
    """Wait until all files of a folder, and their names, are on the disk."""
    for path in folder.iterdir():
        sync(path)
    sync_names(folder)


def _existing(folder: Path) -> Path:
    """The nearest folder above that there is."""
    return next(each for each in folder.absolute().parents if each.exists())
