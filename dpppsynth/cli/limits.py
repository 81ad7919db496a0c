"""Error bounds of releases, in words."""

from dpppsynth.contract import registry
from dpppsynth.contract.words import largest_error_plan
from dpppsynth.release import Release, StratifiedRelease


def error_bound(release: Release | StratifiedRelease, by: str | None = None) -> str | None:
    """Error bound of a release, in the words of its report; None where there is none.

    Parameters
    ----------
    release : Release or StratifiedRelease
    by : str, optional
        Mark over whose levels counts were made smoother.
    """
    return " ".join(registry.of(release).words.errors(largest_error_plan(release.plans), by)) or None
