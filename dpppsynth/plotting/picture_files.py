"""Saving of pictures, and the mark that keeps confidential ones out of every release."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpppsynth.core.errors import InputError
from dpppsynth.release.certificate import FILENAME

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The label of a figure that shows sensitive points.
CONFIDENTIAL = "CONFIDENTIAL"
WARNING = "#b00020"


def mark_confidential(figure: Any, why: str, *, size: float = 64) -> None:
    """Label a figure, so that `save_picture` keeps it out of every release, and write across it what it is."""
    figure.set_label(CONFIDENTIAL)
    figure.suptitle(f"{CONFIDENTIAL}: {why}, not for release", color=WARNING, fontsize=12, weight="bold")
    figure.text(
        0.5, 0.48, CONFIDENTIAL, rotation=24, ha="center", va="center", fontsize=size, color=WARNING, alpha=0.13,
        weight="bold", zorder=10,
    )  # fmt: skip


def save_picture(axes: Axes | Sequence[Axes], path: str | Path, *, dpi: int = 150) -> Path:
    """Write the figure of some axes as PNG; folders are made as needed.

    Raises
    ------
    InputError
        A confidential picture would land in the folder of a release (one that holds certificate.json) or below it.
    """
    ax = axes[0] if isinstance(axes, Sequence) else axes
    figure: Any = ax.figure
    target = Path(path)
    confidential = figure.get_label() == CONFIDENTIAL
    if confidential:
        refuse_release_folder(target.parent)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700 if confidential else 0o777)
    # A confidential file is readable by its owner alone from the moment it exists.
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if confidential else 0o666)
    with os.fdopen(handle, "wb") as stream:
        if confidential:
            target.chmod(0o600)
        figure.savefig(stream, format="png", dpi=dpi)
    return target


def refuse_release_folder(folder: str | Path, argument: str = "confidential") -> None:
    """Refuse a folder that belongs to a release, where only the release itself may write.

    Parameters
    ----------
    folder : str or Path
    argument : str
        Name of the file in errors.

    Raises
    ------
    InputError
        The folder, or one above it, holds certificate.json.
    """
    place = Path(folder).resolve()
    for each in (place, *place.parents):
        if (each / FILENAME).exists():
            msg = f"{argument}: {folder} lies in the public folder of a release ({each}); choose a folder outside it"
            raise InputError(msg)
