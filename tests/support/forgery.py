"""Certificates that are edited, and hashed again as a forger would."""

import copy
import json
from functools import reduce
from operator import getitem

from dpppsynth.privacy import verify
from dpppsynth.release.certificate import content_hash, file_hash


def read(folder):
    return json.loads((folder / "certificate.json").read_text())


def at(value, path):
    return reduce(getitem, path, value)


def put(cert, path, value):
    """A copy of a certificate with another value at a place."""
    changed = copy.deepcopy(cert)
    at(changed, path[:-1])[path[-1]] = value
    return changed


def reseal(folder, cert, *files):
    """Write a certificate with hashes of these files, and its own, made again."""
    for name in files:
        cert["files"][name] = file_hash(folder / name)
    cert["content_hash"] = content_hash(cert)
    (folder / "certificate.json").write_text(json.dumps(cert))


def failed(folder):
    """Names of the checks that fail."""
    return {check.name for check in verify(folder).checks if not check.holds}
