"""Ledgers that fail when a test wants them to."""

from dpppsynth.ledger import Ledger


def unrecorded(path, error):
    """The ledger of a file, in which no release can be recorded."""

    class Unrecorded(Ledger):
        def record(self, *_args, **_options):
            raise error

    return Unrecorded.open(path)
