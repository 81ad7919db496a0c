"""Exceptions and warnings of the package; `dpppsynth.cli.console` has their exit codes."""

import inspect


class DpppsynthError(Exception):
    """Root of all errors raised by this package."""


class InputError(DpppsynthError, ValueError):
    """An argument or a file breaks a stated rule; the message names argument, rule, value and remedy."""


class NoFieldError(InputError):
    """No field can be estimated from this statistic; a plain estimate can."""


class CRSError(InputError):
    """A coordinate reference system is unknown, or cannot be used."""


class NoLengthsError(CRSError):
    """Coordinates of this system are no lengths: it is in degrees, no projection, or stretches them."""


class TooLargeError(DpppsynthError):
    """Untrusted input takes more work to read or to verify than the limit allows."""


class PrivacyCheckError(DpppsynthError):
    """A privacy bound does not hold, or a certificate does not support its claim."""


class BudgetError(DpppsynthError):
    """A release would exceed the privacy budget."""


class ReleaseBlocked(DpppsynthError):
    """A release was refused after the data were touched; it counts as spent."""


class QualityError(DpppsynthError):
    """Inference on a private statistic failed its diagnostics.

    The statistic is already private, so nothing leaks and nothing is lost: `error.release.infer(...)` tries again at no
    privacy cost, and `error.release.save(path, patterns=0)` keeps it for later.

    Attributes
    ----------
    release : CoxRelease or None
        The paid-for release, its intensity still to be inferred.
    """

    def __init__(self, message: str, release: object = None) -> None:
        super().__init__(message)
        self.release = release


class InformationWarning(UserWarning):
    """A release keeps its privacy bound, but may be of little use."""


PACKAGE = __name__.partition(".")[0]


def outside() -> int:
    """The `stacklevel` of the package's caller, at whose line a warning points."""
    level, frame = 1, inspect.currentframe()
    frame = None if frame is None else frame.f_back
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        level, frame = level + 1, frame.f_back
    return level
