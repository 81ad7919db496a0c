"""Write a report: check the release, draw, fill the page, replace an earlier report and nothing else."""

from pathlib import Path

from dpppsynth.durable import whole_file
from dpppsynth.errors import InputError
from dpppsynth.reporting.page import MARK, page
from dpppsynth.reporting.subject import open_subject

FILENAME = "report.html"
# Where the mark of a report stands, in bytes from the beginning.
HEAD = 1000


def write_report(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write one self-contained HTML page about a saved release, from its public folder alone.

    Parameters
    ----------
    folder : str or Path
        Folder of a saved release, or its certificate.
    out : str or Path, optional
        File to write, ending in .html; ``report.html`` in the folder unless given. An earlier report is replaced, any
        other file is not. Folders above it are made as needed.

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
    given = Path(folder)
    target = Path(out) if out is not None else (given if given.is_dir() else given.parent) / FILENAME
    _require_place(target)
    text = render_report(given)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as file:
            file.write(text.encode())
    except OSError as error:
        msg = f"out: cannot write {target} ({error.strerror}); choose another place"
        raise InputError(msg) from None
    return target


def render_report(folder: str | Path) -> str:
    """The page that `write_report` writes, as text; errors as there, but for those of `out`."""
    return page(open_subject(folder))


def _require_place(target: Path) -> None:
    """Refuse a file that is no earlier report, before any work is done."""
    if target.suffix.lower() != ".html":
        msg = f"out: a report is a file ending in .html, got {target.name!r}; such as {FILENAME}"
        raise InputError(msg)
    if not target.exists():
        return
    try:
        with target.open("rb") as file:
            own = MARK.encode() in file.read(HEAD)
    except OSError:
        own = False
    if not own:
        msg = f"out: {target} exists and is no earlier report, which alone is replaced; choose another name"
        raise InputError(msg)
