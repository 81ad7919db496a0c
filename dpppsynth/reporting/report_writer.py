"""`write_report`: verification, drawing, rendering and atomic replacement of an earlier report."""

from collections.abc import Callable
from pathlib import Path

from dpppsynth.core.atomic_files import whole_file
from dpppsynth.core.errors import InputError
from dpppsynth.release import certificate
from dpppsynth.release.folder import release_folder
from dpppsynth.reporting.page import MARK, page
from dpppsynth.reporting.subject import open_subject
from dpppsynth.spatial.offset import Offset

FILENAME = certificate.REPORT
# Where the mark of a report stands, in bytes from the beginning.
HEAD = 1000


def write_report(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    population: Offset | None = None,
    progress: Callable[[str], object] | None = None,
    limit: bool = True,
) -> Path:
    """Write one self-contained HTML page about a saved release, from its public folder alone.

    Parameters
    ----------
    folder : str or Path
        Folder of a saved release, or its certificate.
    out : str or Path, optional
        File to write, ending in .html; ``report.html`` in the folder unless given. An earlier report is replaced, any
        other file is not. Folders above it are made as needed.
    population : Offset, optional
        Public inhabitants, as counts: the page then says how many live within the privacy radius.
    progress : callable, optional
        Is told what is being done; large patterns take seconds.
    limit : bool
        As in `verify`: refuse what would take long to verify.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        There is no readable release, or `out` is no place for a report.
    PrivacyCheckError
        The certificate does not hold; nothing is written. A release whose certificate says itself that it must not be
        published, such as that of a seeded run, gets a report that says so first.

    Examples
    --------
    >>> import tempfile
    >>> from dpppsynth import LaplaceSynthesizer, PointPattern, Window
    >>> square = Window.rectangle(0, 0, 1000, 1000, "EPSG:27700")
    >>> release = LaplaceSynthesizer(1.0, alpha=25.0).release(PointPattern([[400, 300], [500, 700]], square))
    >>> with tempfile.TemporaryDirectory() as place:
    ...     written = write_report(release.save(place))
    >>> written.name
    'report.html'
    """
    place = release_folder(folder)
    target = _place(place / FILENAME if out is None else out)
    text = render_report(place, progress, population=population, limit=limit)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as file:
            file.write(text.encode())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no name for a file here"
        msg = f"out: cannot write {target} ({reason}); choose another place"
        raise InputError(msg) from None
    return target


def render_report(
    folder: str | Path,
    progress: Callable[[str], object] | None = None,
    *,
    population: Offset | None = None,
    limit: bool = True,
) -> str:
    """The page that `write_report` writes, as text; errors as there, but for those of `out`."""
    return page(open_subject(folder, progress, limit=limit), progress, population)


def is_report(path: Path) -> bool:
    """Whether a file is a report that was written here, and may be replaced by another."""
    try:
        with path.open("rb") as file:
            return MARK.encode() in file.read(HEAD)
    except (OSError, ValueError):
        return False


def _place(out: str | Path) -> Path:
    """Path of the report; a file that is no earlier report is refused, before any work is done."""
    try:
        target = Path(out)
        # Python's own answer to a name with a NUL has changed over time.
        taken = "\0" not in str(target) and target.exists()
    except (TypeError, ValueError, OSError):
        msg = f"out: must be the name of a file ending in .html, this {type(out).__name__} is none; such as {FILENAME}"
        raise InputError(msg) from None
    if target.suffix.lower() != ".html" or "\0" in str(target):
        msg = f"out: a report is a file ending in .html, got {target.name!r}; such as {FILENAME}"
        raise InputError(msg)
    if taken and not is_report(target):
        msg = f"out: {target} exists and is no earlier report, which alone is replaced; choose another name"
        raise InputError(msg)
    return target
