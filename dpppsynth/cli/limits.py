"""Error bounds of releases, in words."""

from dpppsynth.mechanisms.bounded.words import errors, measured
from dpppsynth.release import Release, StratifiedRelease


def error_bound(release: Release | StratifiedRelease) -> str | None:
    """Error bound of a release, in the words of its report; None where there is none."""
    by = release.by if isinstance(release, StratifiedRelease) else None
    return " ".join(errors(measured(release), by)) or None
