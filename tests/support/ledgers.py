"""Ledgers that fail when a test wants them to, and what their files hold."""

import json

from dpppsynth.ledger import Ledger
from dpppsynth.ledger.document import dump, hash_of, identify


def events_of(raw):
    """The events of a ledger file."""
    return [json.loads(line) for line in raw.splitlines()[1:]]


def chained(events):
    """A file whose hashes are right, whatever its events say."""
    done, renamed = [], {}
    for old in events:
        new = {**old, "previous": identify(done[-1]) if done else None}
        if "entry" in new:
            new["entry"] = renamed.get(new["entry"], new["entry"])
        done.append(new)
        renamed[identify(old)] = identify(new)
    return dump(done)


def linked(lines, before):
    """A file of edited lines whose hashes are right; without an edit they were `before`."""
    done, names = [], {}
    for line, old in zip(lines[1:], before[1:], strict=True):
        for name, other in names.items():
            line = line.replace(name, other)  # noqa: PLW2901
        done.append(line)
        names[hash_of(old).encode()] = hash_of(line).encode()
    head = hash_of(before[-1]).encode()
    return b"\n".join([lines[0].replace(head, names[head]), *done, b""])


def unrecorded(path, error):
    """The ledger of a file, in which no release can be recorded."""

    class Unrecorded(Ledger):
        def record(self, *_args, **_options):
            raise error

    return Unrecorded.open(path)
