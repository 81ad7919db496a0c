"""The plugin for QGIS at work: the lines of docs/qgis.md, run under `qgis_process` without a screen, and a map.

Run it with `python examples/into_qgis.py [folder]`; it installs the plugin in the folder (out/into_qgis unless given),
checks, synthesizes, verifies and exports the deaths of Soho by its algorithms, and draws the release in the style that
its GeoPackage carries. It needs QGIS from 3.22 on (`apt install qgis python3-qgis qgis-providers`), and says so where
it is missing. That no coordinate of the sensitive points is in QGIS's log is asserted.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import geopandas

import dpppsynth as dps
from dpppsynth.datasets import path

PAGE = Path(__file__).parents[1] / "docs" / "qgis.md"
PICTURE = r"""
import sys
from qgis.core import *
from qgis.PyQt.QtCore import QSize
from qgis.PyQt.QtGui import QColor

QgsApplication.setPrefixPath("/usr", True)
app = QgsApplication([], False)
app.initQgis()
files, target = sys.argv[1:-1], sys.argv[-1]
layers = [QgsVectorLayer(file, file, "ogr") for file in files]
assert all(layer.isValid() for layer in layers)
heat = layers[-1]
assert heat.renderer().type() == "graduatedSymbol", "the GeoPackage's own style was not applied"
layers[0].renderer().symbol().setSize(1.1)
layers[0].renderer().symbol().setColor(QColor("#2b2b2b"))
settings = QgsMapSettings()
settings.setLayers(layers)
settings.setDestinationCrs(heat.crs())
settings.setExtent(heat.extent().buffered(15))
settings.setOutputSize(QSize(800, 800))
settings.setBackgroundColor(QColor("white"))
job = QgsMapRendererParallelJob(settings)
job.start()
job.waitForFinished()
assert job.renderedImage().save(target)
# QGIS must not end before what it made.
del heat, layers, settings, job
app.exitQgis()
"""


def lines_of_shell() -> list[list[str]]:
    """The page's calls of `qgis_process`, as words."""
    text = "\n".join(re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE))
    return [shlex.split(line) for line in text.replace("\\\n", " ").splitlines() if line.startswith("qgis_process")]


def program() -> str | None:
    """The program without Debian's wrapper, which gives it options that it does not know."""
    return shutil.which("qgis_process.bin") or shutil.which("qgis_process")


def surroundings(folder: Path) -> dict[str, str]:
    """Environment of QGIS: no screen, a profile and plugins of its own, and this installation's command."""
    own = {
        "QT_QPA_PLATFORM": "offscreen",
        "QGIS_CUSTOM_CONFIG_PATH": str(folder / "profile"),
        "QGIS_PLUGINPATH": str(folder / "plugins"),
        "DPPPSYNTH": str(Path(sys.executable).with_name("dpppsynth")),
    }
    return os.environ | own


def run(words: list[str], folder: Path) -> tuple[dict, str]:
    """Results of an algorithm, and all that QGIS printed."""
    done = subprocess.run(words, cwd=folder, env=surroundings(folder), capture_output=True, text=True, check=False)  # noqa: S603
    log = done.stdout + done.stderr
    assert done.returncode == 0, log
    return json.loads(done.stdout[done.stdout.index("{") :]) if "--json" in words else {}, log


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/into_qgis").resolve()
    qgis = program()
    if qgis is None:
        sys.exit("qgis_process is not at hand: install QGIS 3.22 or later; nothing was run")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    deaths = dps.datasets.soho_deaths()
    shutil.copy(path("soho_addresses"), folder / "deaths.csv")
    geopandas.GeoSeries([deaths.domain.geometry], crs=deaths.domain.crs).to_file(folder / "soho.gpkg", layer="area")
    command = [str(Path(sys.executable).with_name("dpppsynth")), "qgis-plugin", "--out", str(folder / "plugins")]
    subprocess.run(command, check=True)  # noqa: S603
    results, log = {}, ""
    for line in lines_of_shell():
        found, said = run([qgis, *line[1:]], folder)
        log += said
        print(shlex.join(line), *found.get("results", {}).items(), sep="\n  ")
        results |= found.get("results", {})
    assert results["HOLDS"]
    assert (folder / "release" / "certificate.json").is_file()
    require_silent(log, deaths)
    draw(folder)


def require_silent(log: str, pattern: dps.PointPattern) -> None:
    """No coordinate of a sensitive point stands in what QGIS printed, or in its profile's files."""
    texts = {f"{each:.2f}".rstrip("0").rstrip(".") for each in pattern.xy.ravel()}
    # Corners of the public window are no secret.
    texts -= {f"{each:g}" for each in pattern.domain.bounds}
    assert not [each for each in texts if each in log]


def draw(folder: Path) -> None:
    """Draw the exported pattern over the intensity, in the style of its GeoPackage."""
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else "python3"
    exported = folder / "exported"
    layers = [exported / "synthetic_000.gpkg", f"{exported / 'intensity.gpkg'}|layername=intensity"]
    words = [python, "-c", PICTURE, *map(str, layers), str(folder / "qgis.png")]
    subprocess.run(words, env=surroundings(folder), check=True)  # noqa: S603
    print(folder / "qgis.png")


if __name__ == "__main__":
    main()
