"""The certificate of a release: every public parameter, the guarantee, and hashes, as canonical JSON.

The content hash covers the whole certificate but itself. It shows edits, not origin: sign the file with a tool made for
that if origin matters.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from dpppsynth.contract.result import Result
from dpppsynth.core.errors import InputError, TooLargeError
from dpppsynth.core.published_files import MEBI, PublishedFolder, plain_text, reason, strict_json
from dpppsynth.core.types import Json, JsonObject, JsonRead
from dpppsynth.privacy.bounds import Size, all_points, void_delta
from dpppsynth.spatial.domains import canonical_json

SCHEMA_VERSION = 1
FILENAME, STATISTIC = "certificate.json", "statistic.json"
COUNTS, PAIR_SUMS = "counts.geojson", "pair_sums.csv"
DOMAIN = "domain.geojson"
REPORT = "report.html"
SYNTHETIC = re.compile(r"synthetic_(?P<source>draw_|mean_)?(?P<number>\d+)\.geojson")
STATISTICS = re.compile(r"(level_\d+_|[\w.-]+=[\w.-]+_)?statistic\.json", re.ASCII)
POSTERIORS = re.compile(r"(level_\d+_|[\w.-]+=[\w.-]+_)?posterior\.nc", re.ASCII)
# Marks and levels that may stand in names of files on all systems.
PLAIN = re.compile(r"[A-Za-z0-9][\w.-]{0,59}", re.ASCII)
# Bytes of a certificate.
MOST_CERTIFICATE = 16 * MEBI
# Codes of warnings.
LARGE_DELTA, UNSURE_DELTA, SEEDED = "large-delta", "unsure-delta", "seeded"
# Fields that change when patterns are added to a release.
RENEWED = ("files", "versions", "content_hash")
PRINTED_VERSIONS = ("dpppsynth", "opendp", "numpy", "scipy", "shapely")


def large_delta(delta: float, sizes: Iterable[Size]) -> str | None:
    """Code of the warning that a delta promises nothing for releases of these sizes, or None."""
    n, expected_n = all_points(sizes)
    if delta < void_delta(n, expected_n):
        return None
    return UNSURE_DELTA if n is None else LARGE_DELTA


def prefixes(by: str, levels: Sequence[object]) -> list[str]:
    """Beginnings of the names of the files of each level: mark and level, or numbers where a system may refuse those.

    Examples
    --------
    >>> prefixes("year", [1982, 1983]), prefixes("part of day", ["a/m", "p/m"])
    (['year=1982_', 'year=1983_'], ['level_000_', 'level_001_'])
    """
    names = [str(level) for level in levels]
    # Some systems take "a" and "A" for one name.
    different = len({name.casefold() for name in names}) == len(names)
    if different and all(map(PLAIN.fullmatch, [by, *names])):
        return [f"{by}={name}_" for name in names]
    return [f"level_{k:03d}_" for k in range(len(names))]


def content_hash(certificate: JsonRead) -> str:
    """SHA-256 of the canonical JSON of everything but `content_hash`."""
    body = {key: value for key, value in certificate.items() if key != "content_hash"}
    return hashlib.sha256(canonical_json(body).encode()).hexdigest()


def statement_hash(certificate: JsonRead, *, estimator: bool = True) -> str:
    """SHA-256 of the part of a certificate that a ledger records and further sampling leaves unchanged.

    Of the files it covers what was paid for: private statistics, or the patterns where nothing else was released.
    Software versions are left out; so is, without `estimator`, how an intensity is made from a statistic, which
    inferring again may change.
    """
    body = {key: value for key, value in certificate.items() if key not in RENEWED}
    stated = dict(body["parameters"])
    if not estimator:
        stated.pop("estimator", None)
        if "strata" in stated:
            stated["strata"] = [
                part | {"parameters": {k: v for k, v in part["parameters"].items() if k != "estimator"}}
                for part in stated["strata"]
            ]
    return hashlib.sha256(
        canonical_json(body | {"parameters": stated, "bought": _bought(certificate)}).encode()
    ).hexdigest()


def _bought(certificate: JsonRead) -> dict[str, str]:
    """SHA-256 of the files that were paid for, by name."""
    files = certificate["files"]
    paid = STATISTICS if any(map(STATISTICS.fullmatch, files)) else SYNTHETIC
    return {name: digest for name, digest in files.items() if paid.fullmatch(name)}


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def build(release: Result, hashes: Mapping[str, str]) -> JsonObject:
    """The certificate of a release whose files have the given SHA-256, by name."""
    domain = release.domain
    place = {"file": DOMAIN, "fingerprint": domain.fingerprint(), "crs": domain.crs, "unit": domain.unit}
    certificate = {
        "schema_version": SCHEMA_VERSION,
        "mechanism": release.mechanism,
        "parameters": release.parameters(),
        "guarantee": release.guarantee.to_dict(),
        "domain": place | {"scale_factor": domain.scale_factor},
        "noise": release.noise,
        "seeded": release.seeded,
        "warning": release.warning or (SEEDED if release.seeded else None),
        "releasable": not release.seeded and release.warning is None,
        "versions": {name: version(name) for name in PRINTED_VERSIONS},
        "files": dict(hashes),
    }
    if release.entry is not None:
        certificate["ledger"] = release.entry
    if release.snap is not None:
        certificate["snap"] = release.snap
    if release.shuffled is not None:
        certificate["shuffled"] = release.shuffled.to_dict()
    return certificate | {"content_hash": content_hash(certificate)}


def write(certificate: JsonRead, folder: Path) -> None:
    """Write `certificate.json`, indented for people; the hash is over the canonical form."""
    (folder / FILENAME).write_text(json.dumps(certificate, indent=2, sort_keys=True, allow_nan=False) + "\n")


def find(path: str | Path) -> Path:
    """The certificate file: `path` itself, or the one in the folder of that name.

    Raises
    ------
    InputError
        When `path` cannot be the name of a file.
    """
    try:
        return Path(path) / FILENAME if Path(path).is_dir() else Path(path)
    except (TypeError, OSError):
        msg = f"path: must name a certificate or the folder of a release; this {type(path).__name__} names no file."
        raise InputError(msg) from None


@dataclass(frozen=True)
class Published:
    """A certificate that was read, and the folder around it, held open.

    Attributes
    ----------
    path : Path
        Of the certificate.
    folder : PublishedFolder
    certificate : dict
    """

    path: Path
    folder: PublishedFolder
    certificate: JsonObject

    def content(self, name: str) -> bytes:
        """Bytes of a file beside the certificate, refused if the certificate lists the file with another hash.

        Raises
        ------
        OSError
            When there is no such plain file, or it is another one than the certificate states.
        TooLargeError
        """
        found = self.folder.read(name)
        if self.certificate["files"].get(name, hashlib.sha256(found).hexdigest()) != hashlib.sha256(found).hexdigest():
            msg = f"{name} is not as it was released"
            raise OSError(msg)
        return found

    def document(self, name: str) -> Json:
        """Strict JSON of a file in the layout of `plain_text`; ValueError or RecursionError when it is none."""
        content = self.content(name)
        document = strict_json(content)
        if plain_text(document).encode() != content:
            msg = f"{name} has another layout than what is saved"
            raise ValueError(msg)
        return document


@contextmanager
def published(path: str | Path, *, limit: bool = True) -> Iterator[Published]:
    """Open a folder once, by itself or by its certificate, and read the certificate; errors as in `read`."""
    path = find(path)
    try:
        held = PublishedFolder(path.parent, limit=limit)
    except (OSError, ValueError) as err:
        raise _unreadable(path, err) from None
    with held as folder:
        yield Published(path, folder, _read(path, folder))


def read(path: str | Path, *, limit: bool = True) -> JsonObject:
    """Read a certificate (or the one in a folder) and check it against the schema.

    Parameters
    ----------
    path : str or Path
        No link, and none among its parents.
    limit : bool
        Whether its size is bounded.

    Raises
    ------
    InputError
        When the file is missing or no regular file, is not JSON, or is not a certificate of a known version.
    TooLargeError
        When it is larger than any that a release needs.
    """
    with published(path, limit=limit) as found:
        return found.certificate


def _read(path: Path, folder: PublishedFolder) -> JsonObject:
    try:
        data = strict_json(folder.read(path.name, MOST_CERTIFICATE))
    except TooLargeError as err:
        msg = f"certificate: {err}"
        raise TooLargeError(msg) from None
    except (OSError, ValueError, RecursionError) as err:
        raise _unreadable(path, err) from None
    _require_schema(data, path)
    return dict(data)


def _unreadable(path: Path, error: Exception) -> InputError:
    why = reason(error) if isinstance(error, OSError) else "it is not JSON, or says something twice"
    return InputError(f"certificate: cannot read {path}: {why}.")


def _require_schema(data: Json, path: Path) -> None:
    import jsonschema

    problem = next(jsonschema.Draft202012Validator(schema()).iter_errors(data), None)
    if problem is not None:
        where = "/".join(map(str, problem.absolute_path)) or "top level"
        msg = f"certificate: {path} is not a certificate of version {SCHEMA_VERSION} (at {where}: {problem.validator})."
        raise InputError(msg)


def parameters_make_sense(parameters: JsonRead) -> bool:
    """Whether the parameters have the entries of every release; `read` does not check, so that edits are reported."""
    import jsonschema

    whole = schema()
    part = {"$defs": whole["$defs"], "$ref": "#/$defs/parameters"}
    return bool(jsonschema.Draft202012Validator(part).is_valid(parameters))


def schema() -> JsonObject:
    """The JSON Schema of certificates."""
    return json.loads((files("dpppsynth.release") / "certificate.schema.json").read_text())
