"""`dpppsynth qgis-plugin`: the Processing provider for QGIS, as a folder for its plugins."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

from dpppsynth.cli import common_options as o
from dpppsynth.cli.console import show_line
from dpppsynth.core.output_folder import require_new_folder

NAME = "dpppsynth_qgis"
OutOption = Annotated[
    Path,
    o.option(
        "Folder of plugins, such as ~/.local/share/QGIS/QGIS3/profiles/default/python/plugins; the plugin is a new "
        "folder in it.",
        o.WRITING,
    ),
]


def qgis_plugin(out: OutOption) -> None:
    """Write a plugin for QGIS, from 3.22 on: check, synthesize, verify and export as Processing algorithms.

    They call this command, which they find on the path, by the environment variable DPPPSYNTH, or by their parameter
    COMMAND. QGIS does not open the sensitive points. Enable the plugin under Plugins, or by `qgis_process plugins
    enable dpppsynth_qgis`.
    """
    folder = out / NAME
    require_new_folder(folder, "out")
    folder.mkdir(parents=True, exist_ok=True)
    for file in files("dpppsynth.cli.plugin").iterdir():
        if file.name.endswith((".py", ".txt")):
            (folder / file.name).write_bytes(file.read_bytes())
    show_line(str(folder))
