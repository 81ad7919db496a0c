"""Writing a release to disk: plain files that an auditor, QGIS or the next script can open. No pickle."""

import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import Protocol

from dpppsynth.contract.result import Result
from dpppsynth.core.atomic_files import name_leftovers
from dpppsynth.core.errors import InputError
from dpppsynth.core.progress import Progress, ProgressLike, announced, part_progress
from dpppsynth.core.published_files import plain_text
from dpppsynth.core.types import JsonObject
from dpppsynth.release import certificate
from dpppsynth.release.certificate import DOMAIN, SYNTHETIC, synthetic
from dpppsynth.spatial.patterns import PointPattern

# Contents of a folder that a killed process left behind: nothing is written before it is private.
WRITING = "writing synthetic patterns"
UNFINISHED = (
    "it holds no more than a release does: parts of one, or in `old` a whole one that was being replaced, which may be "
    "moved back if it is missing."
)


def scratch_prefix(folder: Path) -> str:
    """Prefix of the temporary folders, beside the target, in which a release is written."""
    return f".{folder.name}-"


class Writable(Result, Protocol):
    """A result that writes its own files."""

    def write(self, folder: Path) -> None:
        """Write what the budget was spent on and what was made of it, beside domain, patterns and certificate."""


def save(
    release: Writable,
    folder: Path,
    patterns: list[PointPattern],
    source: str | None = None,
    *,
    progress: ProgressLike = None,
) -> Path:
    """Write everything into a temporary folder beside `folder`, then rename it into place.

    Names of patterns tell their source, where that is not the released intensity.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        msg = f"path: {folder} exists and is not an empty folder; choose another, releases are never overwritten."
        raise InputError(msg)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        msg = f"path: cannot make the folder {folder.parent}: {err.strerror}; choose another."
        raise InputError(msg) from None
    name_leftovers(folder.parent, scratch_prefix(folder), UNFINISHED)
    scratch_of = tempfile.TemporaryDirectory(dir=folder.parent, prefix=scratch_prefix(folder))
    with announced(progress) as say, scratch_of as scratch:
        work = Path(scratch) / "release"
        work.mkdir()
        put(plain_text(release.domain.to_geojson()), work / DOMAIN)
        release.write(work)
        for k, pattern in enumerate(patterns):
            _write_pattern(pattern, work / synthetic(k, source), part_progress(say, WRITING, k, len(patterns)))
        _write_certificate(release, work, {f.name for f in work.iterdir()})
        if folder.exists():
            folder.rmdir()
        work.replace(folder)
    return folder


def append_patterns(
    folder: Path,
    release: Writable,
    patterns: list[PointPattern],
    source: str | None = None,
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
    listed = certificate.read(folder)["files"]
    known, seen = set(listed), {value for name, value in listed.items() if SYNTHETIC.fullmatch(name)}
    first = 1 + max((int(match["number"]) for match in map(SYNTHETIC.fullmatch, known) if match), default=-1)
    name_leftovers(folder.parent, scratch_prefix(folder), UNFINISHED)
    scratch_of = tempfile.TemporaryDirectory(dir=folder.parent, prefix=scratch_prefix(folder))
    with announced(progress) as say, scratch_of as scratch:
        work = Path(scratch) / "release"
        shutil.copytree(folder, work, symlinks=True, copy_function=_copy)
        for k, pattern in enumerate(patterns, first):
            known.add(synthetic(k, source))
            _write_pattern(pattern, work / synthetic(k, source), part_progress(say, WRITING, k - first, len(patterns)))
            # Patterns without points are alike by chance.
            if len(pattern) and certificate.file_hash(work / synthetic(k, source)) in seen:
                msg = "seed: the release holds a pattern of this seed already; draw with another, or with none."
                raise InputError(msg)
        _write_certificate(release, work, known)
        old = Path(scratch) / "old"
        folder.replace(old)
        try:
            work.replace(folder)
        except OSError:
            old.replace(folder)
            raise


def _write_pattern(pattern: PointPattern, path: Path, say: Progress) -> None:
    # The formats of files of points are loaded where some are written: certificates are verified without them.
    from dpppsynth.io import write_pattern

    write_pattern(pattern, path, progress=say)


def _copy(source: str, target: str) -> None:
    """Copy what lies beside a release, links as such; a pipe or a device would keep the copy busy for ever."""
    if not Path(source).is_symlink() and not Path(source).is_file():
        msg = f"release: {source} is no plain file; take it out of the folder."
        raise InputError(msg)
    shutil.copy2(source, target, follow_symlinks=False)


def _write_certificate(release: Writable, work: Path, names: set[str]) -> None:
    cert = certificate.build(release, {name: certificate.file_hash(work / name) for name in sorted(names)})
    certificate.write(cert, work)


def put(text: str, path: Path) -> None:
    """Write a text file, the same on all systems."""
    path.write_text(text, encoding="utf-8", newline="\n")


def certificate_dict(release: Result) -> JsonObject:
    """The certificate of a release, saved or not, with the files that were paid for alone."""
    hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in release.paid_files().items()}
    return certificate.build(release, hashes)
