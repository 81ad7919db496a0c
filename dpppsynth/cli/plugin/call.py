"""Command lines of the installed command, and its answers; nothing of QGIS."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

COMMAND = "dpppsynth"
# Environment variable that names the command where it is not on the path, as in a virtual environment.
VARIABLE = "DPPPSYNTH"
# Variables by which QGIS tells its own Python where it lives, of which another one must not know.
OWN = ("PYTHONHOME", "PYTHONPATH", "PYTHONEXECUTABLE")
# Seconds between two looks whether the user wants to stop.
PAUSE = 0.2
MISSING = (
    "The command dpppsynth is not found. Install the package, and give the path of the command (such as "
    f".venv/bin/dpppsynth) as COMMAND or in the environment variable {VARIABLE}."
)


class Answer(NamedTuple):
    """Exit code of a command, and what it printed as its result."""

    code: int
    text: str


def command(stated: str = "") -> str | None:
    """Path of the command: as stated, as the environment says, or on the path; None where there is none.

    Examples
    --------
    >>> command("no such command") is None
    True
    """
    return shutil.which(stated or os.environ.get(VARIABLE, "") or COMMAND)


def words(options: Mapping[str, object], more: str = "") -> list[str]:
    """Words of options by their names, without those that are not given, and further words as a shell reads them.

    Examples
    --------
    >>> words({"epsilon": 1.0, "alpha": None, "n": 392, "relation": "", "yes": True}, "--offset-fill 0")
    ['--epsilon', '1.0', '--n', '392', '--yes', '--offset-fill', '0']
    >>> words({"patterns": 0, "json": False})
    ['--patterns', '0']
    """
    found: list[str] = []
    for name, value in options.items():
        if value is True:
            found.append(f"--{name}")
        elif value is not None and value is not False and value != "":
            found += [f"--{name}", str(value)]
    return [*found, *shlex.split(more)]


def address(parts: Mapping[str, object]) -> str | None:
    """A layer of a file, as the command reads it; None of one that is no file, or not all of one.

    `parts` are what QGIS takes the source of a layer apart into.

    Examples
    --------
    >>> address({"path": "/maps/city.gpkg", "layerName": "streets"}), address({"path": "/maps/area.geojson"})
    ('/maps/city.gpkg:streets', '/maps/area.geojson')
    >>> address({"path": "/maps/city.gpkg", "layerName": "streets", "subset": "kind = 1"}), address({}), address("")
    (None, None, None)
    """
    if not isinstance(parts, Mapping):
        return None
    path, layer = str(parts.get("path") or ""), parts.get("layerName")
    if not path or parts.get("subset"):
        return None
    return f"{path}:{layer}" if layer and path.lower().endswith(".gpkg") else path


def run(line: Iterable[str], say: Callable[[str], object], stopped: Callable[[], bool]) -> Answer:
    """Run a command, telling its progress line by line; ended where the user has `stopped` it.

    Examples
    --------
    >>> import sys
    >>> told = []
    >>> run([sys.executable, "-c", "import sys; print('yes'); print('step', file=sys.stderr)"], told.append, bool)
    Answer(code=0, text='yes')
    >>> told
    ['step']
    """
    kept = {name: value for name, value in os.environ.items() if name not in OWN}
    told: list[str] = []
    results: list[str] = []
    said = 0
    with subprocess.Popen(  # noqa: S603 - no shell reads these words
        [*line],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=kept | {"PYTHONIOENCODING": "utf-8", "COLUMNS": "120"},
        encoding="utf-8",
        errors="replace",
    ) as process:
        pipes = ((process.stderr, told), (process.stdout, results))
        readers = [threading.Thread(target=lines.extend, args=(pipe or (),)) for pipe, lines in pipes]
        for reader in readers:
            reader.start()
        while waiting := [reader for reader in readers if reader.is_alive()]:
            waiting[0].join(PAUSE)
            if stopped():
                process.terminate()
            said = _tell(told, said, say)
    _tell(told, said, say)
    return Answer(process.returncode, "".join(results).strip())


def _tell(lines: list[str], said: int, say: Callable[[str], object]) -> int:
    """Tell the lines that are new, in the thread that called; their number."""
    for line in lines[said:]:
        say(line.rstrip())
        said += 1
    return said
