"""`Progress`: a function that is told in words what is going on."""

from collections.abc import Callable
from typing import Any

from dpppsynth.core.arguments import shown
from dpppsynth.core.errors import InputError

Progress = Callable[[str], None]


def require_progress(progress: Any) -> None:
    """Refuse anything but a function of one text: found out in the middle of a release, it would cost the budget."""
    if progress is not None and not callable(progress):
        msg = f"progress: must be a function of one text, such as print, got {shown(progress)}."
        raise InputError(msg)
