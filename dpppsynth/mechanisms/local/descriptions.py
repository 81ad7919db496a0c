"""Public descriptions of mechanisms, from which devices make their reports."""

import json
from pathlib import Path
from typing import Any

from dpppsynth.core.arguments import instance
from dpppsynth.core.atomic_files import whole_file
from dpppsynth.core.errors import InputError
from dpppsynth.mechanisms.local.client import FORMAT, Client, content_hash
from dpppsynth.mechanisms.local.grid_synthesizer import Round
from dpppsynth.mechanisms.local.saved_counts import new_counts_file
from dpppsynth.mechanisms.local.synthesizer import CellMechanism, require_window
from dpppsynth.spatial.domains import Window


def description(mechanism: CellMechanism | Round, window: Window) -> str:
    """JSON text that a device makes its reports from; everything in it is public.

    Parameters
    ----------
    mechanism : CellMechanism or Round
        All of whose clients report at once, such as `DiskAreaMechanism`, `RangeHierarchy`, `UniformGrid`, or one round
        of an adaptive grid.
    window : Window
        Whose cells the reports are about.

    Examples
    --------
    >>> from dpppsynth.local import DiskAreaMechanism
    >>> text = description(DiskAreaMechanism(epsilon=1.0, cells=3), Window.rectangle(0, 0, 9, 9))
    >>> Client.from_json(text, most_epsilon=1.0)
    Client(disk-area, epsilon=1, 9 cells)
    """
    if not isinstance(mechanism, CellMechanism | Round):
        msg = (
            f"mechanism: needs one whose clients report at once about one place, or a round of a grid; got "
            f"{mechanism!r}. Devices that report about trajectories call LineTrace.client, or LDPTrace.first.clients."
        )
        raise InputError(msg)
    place = require_window(instance("window", window, Window, "Window.rectangle(0, 0, 1, 1) is one"))
    grid: dict[str, Any] = {"bounds": list(place.bounds)}
    if isinstance(mechanism, Round):
        mechanism.own_window(place)
        grid = mechanism.grid.to_dict()
    else:
        grid["cells"] = mechanism.cells
    crs = None if place.crs is None else str(place.crs)
    data = {
        "format": FORMAT,
        "mechanism": mechanism.fingerprint,
        "randomizer": mechanism.randomizer.parameters(),
        "grid": grid,
        "crs": crs,
    }
    # As a device reads it: floats are written so that they come back as they were.
    text = json.dumps(data | {"hash": content_hash(data)})
    Client.from_json(text)
    return text


def write_description(mechanism: CellMechanism | Round, path: str | Path, *, window: Window) -> Path:
    """Write a mechanism's public description to a new file, for `Client.read` on devices.

    Parameters
    ----------
    mechanism, window
        As in `description`.
    path : str or Path
        New file ending in .json.

    Raises
    ------
    InputError
        When the file exists, or the mechanism has several rounds.
    """
    target, text = new_counts_file(path), description(mechanism, window)
    with whole_file(target) as file:
        file.write(text.encode())
    return target
