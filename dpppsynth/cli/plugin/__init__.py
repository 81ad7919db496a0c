"""Plugin of QGIS: a Processing provider whose algorithms call the installed command.

`dpppsynth qgis-plugin` copies this folder. There it runs under the Python of QGIS, which need not have this package, so
modules here import Python's own and QGIS's, and each other by relative names. Points are a file for the command alone:
QGIS does not open it, and logs of QGIS have what the command prints, in which there is no row.
"""

from __future__ import annotations

from typing import Any


def classFactory(iface: Any) -> Any:  # noqa: ARG001, N802 - as QGIS calls it
    """The plugin."""
    from .provider import Plugin

    return Plugin()
