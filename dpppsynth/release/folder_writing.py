"""Writing a release to disk: plain files that an auditor, QGIS or the next script can open. No pickle."""

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from dpppsynth.contract.result import Result, marks_of
from dpppsynth.core.atomic_files import name_leftovers, sync_names
from dpppsynth.core.errors import InputError
from dpppsynth.core.output_folder import in_use, make_durable, require_new_folder, scratch_prefix
from dpppsynth.core.progress import Progress, ProgressLike, announced, part_progress, silent
from dpppsynth.core.published_files import plain_text
from dpppsynth.core.types import JsonObject
from dpppsynth.release import certificate
from dpppsynth.release.certificate import DOMAIN, SYNTHETIC
from dpppsynth.spatial.pattern_sources import synthetic
from dpppsynth.spatial.patterns import PointPattern

# Contents of a folder that a killed process left behind: nothing is written before it is private.
WRITING = "writing synthetic patterns"
UNFINISHED = "it holds no more than a release does."


class Writable(Result, Protocol):
    """A result that writes its own files."""

    def write(self, folder: Path) -> None:
        """Write the paid files and those derived from them, beside domain, patterns and certificate."""


def save(
    release: Writable,
    folder: Path,
    patterns: list[PointPattern],
    *,
    progress: ProgressLike = None,
) -> Path:
    """Write everything into a temporary folder beside `folder`, then rename it into place.

    Names of patterns tell their source, where that is not the released intensity. A folder in which `keep` wrote the
    same release is completed.
    """
    mine = is_kept(release, folder)
    if not mine:
        require_new_folder(folder)
    with announced(progress) as say, _draft(folder) as work:
        _fill(release, work, patterns, say)
        if mine:
            _move_into(work, folder)
        else:
            _rename(work, folder)
    return folder


def keep(release: Writable, folder: Path, patterns: list[PointPattern]) -> Path:
    """Write the paid files to a new folder, durably, and return its name.

    Where another process took the folder meanwhile, the name has a number behind it.
    """
    with _draft(folder) as work:
        _fill(release, work, patterns, silent)
        make_durable(work)
        names = (folder.with_name(f"{folder.name}-{k}") for k in range(2, 10_000))
        for target in (folder, *names):
            try:
                _rename(work, target)
            except OSError:
                if not in_use(target):
                    raise
            else:
                sync_names(target.parent)
                return target
    msg = f"path: {folder} and all names like it are in use; choose another."
    raise InputError(msg)


def is_kept(release: Result, folder: Path) -> bool:
    """Whether a folder holds the paid files of this release, and nothing derived from them."""
    if not (folder / certificate.FILENAME).is_file():
        return False
    listed = certificate.read(folder)
    paid = _hashes(release)
    drawn = any(map(SYNTHETIC.fullmatch, listed["files"]))
    same = {name: listed["files"].get(name) for name in paid} == paid and listed.get("ledger") == release.entry
    return same and not drawn


def append_patterns(
    folder: Path,
    release: Writable,
    patterns: list[PointPattern],
    *,
    progress: ProgressLike = None,
) -> None:
    """Add synthetic patterns to a saved release, numbered on, and renew the certificate's file list.

    Names of patterns tell their source, as in `save`.

    Files that are not the release's own stay out of the certificate.

    Raises
    ------
    InputError
        When a pattern stands in the release already, as drawing with a seed twice would have it: patterns that count as
        independent must not be the same.
    """
    hashes = dict(certificate.read(folder)["files"])
    seen = {value for name, value in hashes.items() if SYNTHETIC.fullmatch(name)}
    first = 1 + max((int(match["number"]) for match in map(SYNTHETIC.fullmatch, hashes) if match), default=-1)
    with announced(progress) as say, _draft(folder) as work:
        for k, pattern in enumerate(patterns, first):
            path = work / synthetic(k, pattern.source)
            _write_pattern(release, pattern, path, part_progress(say, WRITING, k - first, len(patterns)))
            hashes[path.name] = certificate.file_hash(path)
            # Patterns without points are alike by chance.
            if len(pattern) and hashes[path.name] in seen:
                msg = "seed: the release holds a pattern of this seed already; draw with another, or with none."
                raise InputError(msg)
        certificate.write(certificate.build(release, hashes), work)
        _move_into(work, folder)


@contextmanager
def _draft(folder: Path) -> Iterator[Path]:
    """A new folder beside the target, in which files are written before they take their places."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        msg = f"path: cannot make the folder {folder.parent}: {err.strerror}; choose another."
        raise InputError(msg) from None
    name_leftovers(folder.parent, scratch_prefix(folder), UNFINISHED)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=scratch_prefix(folder)) as scratch:
        work = Path(scratch) / "release"
        work.mkdir()
        yield work


def _fill(release: Writable, work: Path, patterns: list[PointPattern], say: Progress) -> None:
    put(plain_text(release.domain.to_geojson()), work / DOMAIN)
    release.write(work)
    for k, pattern in enumerate(patterns):
        path = work / synthetic(k, pattern.source)
        _write_pattern(release, pattern, path, part_progress(say, WRITING, k, len(patterns)))
    hashes = {path.name: certificate.file_hash(path) for path in sorted(work.iterdir())}
    certificate.write(certificate.build(release, hashes), work)


def _rename(work: Path, folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    work.rename(folder)


def _move_into(work: Path, folder: Path) -> None:
    """Give the files of a draft their names in a release; the certificate is the last, as it says which files count."""
    make_durable(work)
    for path in sorted(work.iterdir(), key=lambda path: path.name == certificate.FILENAME):
        path.replace(folder / path.name)
    sync_names(folder)


def _write_pattern(release: Writable, pattern: PointPattern, path: Path, say: Progress) -> None:
    # The formats of files of points are loaded where some are written: certificates are verified without them.
    from dpppsynth.io import write_pattern

    write_pattern(pattern, path, described=marks_of(release), progress=say)


def put(text: str, path: Path) -> None:
    """Write a text file, the same on all systems."""
    path.write_text(text, encoding="utf-8", newline="\n")


def certificate_dict(release: Result) -> JsonObject:
    """The certificate of a release, saved or not, listing the paid files alone."""
    return certificate.build(release, _hashes(release))


def _hashes(release: Result) -> dict[str, str]:
    """SHA-256 of the files that were paid for, by name."""
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in release.paid_files().items()}
