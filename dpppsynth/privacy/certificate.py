"""The certificate of a release: every public parameter, the guarantee, and hashes, as canonical JSON.

The content hash covers the whole certificate but itself. It shows edits, not origin: sign the file with a tool made for
that if origin matters.
"""

import hashlib
import json
import re
import stat
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from dpppsynth.domains import canonical_json
from dpppsynth.errors import InputError
from dpppsynth.privacy.guarantee import Guarantee

# The sentences of a guarantee belong to the schema version: to reword one, raise it and keep the old sentence.
SCHEMA_VERSION = 1
FILENAME, STATISTIC, POSTERIOR, OFFSET = "certificate.json", "statistic.json", "posterior.nc", "offset.geojson"
COUNTS = "counts.geojson"
SYNTHETIC = re.compile(r"synthetic_\d+\.geojson")
STATISTICS = re.compile(r"(level_\d+_)?statistic\.json")
ABSURD = 1e30
LARGE_DELTA = "Its delta is 1/n or more, which publishing one random record whole satisfies: it promises nothing."
SEEDED = "This run was seeded: it is reproducible, and therefore not private."
# Fields that change when patterns are added to a release.
RENEWED = ("files", "versions", "content_hash")
PRINTED_VERSIONS = ("dpppsynth", "opendp", "numpy", "scipy", "shapely")


def synthetic(k: int) -> str:
    """Name of the file of the k-th synthetic pattern."""
    return f"synthetic_{k:03d}.geojson"


def content_hash(certificate: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON of everything but `content_hash`."""
    body = {key: value for key, value in certificate.items() if key != "content_hash"}
    return hashlib.sha256(canonical_json(body).encode()).hexdigest()


def statement_hash(certificate: Mapping[str, Any]) -> str:
    """SHA-256 of what a ledger records: all that sampling and inferring again leave as it is.

    Of the files it covers what was paid for: private statistics, or the patterns where nothing else was released.
    Software versions are left out, and how an intensity is made from a statistic.
    """
    body = {key: value for key, value in certificate.items() if key not in RENEWED}
    stated = dict(body["parameters"])
    stated.pop("estimator", None)
    if "strata" in stated:
        stated["strata"] = [
            part | {"parameters": {k: v for k, v in part["parameters"].items() if k != "estimator"}}
            for part in stated["strata"]
        ]
    return hashlib.sha256(
        canonical_json(body | {"parameters": stated, "bought": _bought(certificate)}).encode()
    ).hexdigest()


def _bought(certificate: Mapping[str, Any]) -> dict[str, str]:
    """SHA-256 of the files that were paid for, by name."""
    files = certificate["files"]
    paid = STATISTICS if any(map(STATISTICS.fullmatch, files)) else SYNTHETIC
    return {name: digest for name, digest in files.items() if paid.fullmatch(name)}


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def build(
    *,
    mechanism: str,
    parameters: Mapping[str, Any],
    guarantee: Guarantee,
    domain: Mapping[str, Any],
    noise: str,
    seeded: bool,
    warning: str | None,
    hashes: Mapping[str, str],
    entry: str | None = None,
) -> dict[str, Any]:
    """Assemble a certificate.

    Parameters
    ----------
    mechanism : str
        For instance "lgcp-tents".
    parameters : mapping
        Public parameters from which `recompute` derives the bound again.
    guarantee : Guarantee
    domain : mapping
        File name, hash, CRS and unit of the domain.
    noise : str
        Sampler and entropy of the noise.
    seeded : bool
        True when the noise can be reproduced.
    warning : str or None
        Why it must not be released even if it is not seeded.
    hashes : mapping
        SHA-256 of every released file, by name.
    entry : str, optional
        What a ledger calls its authorisation of this release.
    """
    certificate = {
        "schema_version": SCHEMA_VERSION,
        "mechanism": mechanism,
        "parameters": dict(parameters),
        "guarantee": guarantee.to_dict(),
        "domain": dict(domain),
        "noise": noise,
        "seeded": seeded,
        "warning": warning or (SEEDED if seeded else None),
        "releasable": not seeded and warning is None,
        "versions": {name: version(name) for name in PRINTED_VERSIONS},
        "files": dict(hashes),
    }
    if entry is not None:
        certificate["ledger"] = entry
    return certificate | {"content_hash": content_hash(certificate)}


def write(certificate: Mapping[str, Any], folder: Path) -> None:
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


def read(path: str | Path) -> dict[str, Any]:
    """Read a certificate (or the one in a folder) and check it against the schema.

    Raises
    ------
    InputError
        When the file is missing or no regular file, is not JSON, or is not a certificate of a known version.
    """
    path = find(path)
    try:
        # Opening a pipe would wait for somebody to write into it.
        regular = stat.S_ISREG(path.stat().st_mode)
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"), **STRICT) if regular else {}
    except (OSError, ValueError, RecursionError) as err:
        fault = "it is not JSON, or says something twice"
        reason = (err.strerror or "it cannot be opened") if isinstance(err, OSError) else fault
        msg = f"certificate: cannot read {path}: {reason}."
        raise InputError(msg) from None
    if not regular:
        msg = f"certificate: cannot read {path}: it is not a regular file."
        raise InputError(msg)
    import jsonschema

    problem = next(jsonschema.Draft202012Validator(schema()).iter_errors(data), None)
    if problem is not None:
        where = "/".join(map(str, problem.absolute_path)) or "top level"
        msg = f"certificate: {path} is not a certificate of version {SCHEMA_VERSION} (at {where}: {problem.validator})."
        raise InputError(msg)
    return data


def parameters_make_sense(parameters: Mapping[str, Any]) -> bool:
    """Whether parameters have the names and kinds of values of a release; read() leaves that open, to report edits."""
    import jsonschema

    whole = schema()
    part = {"$defs": whole["$defs"], "$ref": "#/$defs/parameters"}
    return bool(jsonschema.Draft202012Validator(part).is_valid(parameters))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that stands twice: a reader would see one value, and the hash would cover the other."""
    if len(dict(pairs)) != len(pairs):
        msg = "repeated key"
        raise ValueError(msg)
    return dict(pairs)


def _refuse(constant: str) -> Any:
    msg = f"{constant} is not JSON"
    raise ValueError(msg)


def _number(kind: Callable[[str], Any], text: str) -> Any:
    """Refuse numbers that no release has, on which arithmetic would overflow."""
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


def schema() -> dict[str, Any]:
    """The JSON Schema of certificates."""
    return json.loads((files("dpppsynth.privacy") / "certificate.schema.json").read_text())
