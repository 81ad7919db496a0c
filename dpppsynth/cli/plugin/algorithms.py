"""The four algorithms. Each is a command: its parameters are options, its log what the command prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qgis.core import (
    QgsProcessing,
    QgsProcessingAlgorithm,
    QgsProcessingContext,
    QgsProcessingException,
    QgsProcessingOutputBoolean,
    QgsProcessingOutputString,
    QgsProcessingParameterBoolean,
    QgsProcessingParameterDefinition,
    QgsProcessingParameterEnum,
    QgsProcessingParameterFile,
    QgsProcessingParameterFolderDestination,
    QgsProcessingParameterNumber,
    QgsProcessingParameterString,
    QgsProcessingParameterVectorLayer,
    QgsProviderRegistry,
    QgsVectorLayer,
    QgsWkbTypes,
)

from .call import MISSING, Answer, address, command, run, words

# Codes with which the command ends: done, and a certificate that does not hold.
DONE, FAILS = 0, 3
RELATIONS = ("", "alpha", "replace-one", "add-remove")
SAID = (
    "alpha where a privacy radius is given, else replace-one",
    "a point moves within the privacy radius",
    "a point moves anywhere",
    "a point is added or removed: their number is secret",
)
FORMATS = ("gpkg", "geojson", "csv", "parquet")


class Algorithm(QgsProcessingAlgorithm):
    """Base of the four: one command, with what it prints as output REPORT."""

    title, what = "", ""

    def name(self) -> str:
        return type(self).__name__.lower()

    def displayName(self) -> str:  # noqa: N802
        return self.title

    def shortHelpString(self) -> str:  # noqa: N802
        return self.what

    def createInstance(self) -> Algorithm:  # noqa: N802
        return type(self)()

    def initAlgorithm(self, configuration: Any = None) -> None:  # noqa: N802
        self.declare()
        more = QgsProcessingParameterString(
            "OPTIONS", f"Further options, as of `dpppsynth {self.name()}`", "", optional=True
        )
        where = QgsProcessingParameterString(
            "COMMAND", "Path of the command dpppsynth, where it is not found", "", optional=True
        )
        for each in (more, where):
            each.setFlags(each.flags() | QgsProcessingParameterDefinition.FlagAdvanced)
            self.addParameter(each)
        self.addOutput(QgsProcessingOutputString("REPORT", "What the command printed"))

    def declare(self) -> None:
        """Add the parameters and outputs of the algorithm's own."""
        raise NotImplementedError

    def called(self, options: list[str], parameters: Any, context: QgsProcessingContext, feedback: Any) -> Answer:
        """The command's answer; its text is told."""
        found = command(self.parameterAsString(parameters, "COMMAND", context))
        if found is None:
            raise QgsProcessingException(MISSING)
        answer = run([found, self.name(), *options], feedback.pushInfo, feedback.isCanceled)
        feedback.pushInfo(answer.text)
        return answer

    def require(self, answer: Answer, feedback: Any) -> None:
        """Fail where the command failed: it said why."""
        if feedback.isCanceled():
            msg = "Stopped. What a ledger had authorised counts as spent."
            raise QgsProcessingException(msg)
        if answer.code != DONE:
            msg = f"dpppsynth {self.name()} ended with exit code {answer.code}; the log says why."
            raise QgsProcessingException(msg)


class Planned(Algorithm):
    """Base of those that plan a release: domain, budget and relation."""

    def declare(self) -> None:
        kinds = [QgsProcessing.TypeVectorPolygon, QgsProcessing.TypeVectorLine]
        self.addParameter(
            QgsProcessingParameterVectorLayer("DOMAIN", "Public domain: polygons of an area, or streets", kinds)
        )
        self.addParameter(QgsProcessingParameterString("METHOD", "Method", "lgcp"))
        real, whole = QgsProcessingParameterNumber.Double, QgsProcessingParameterNumber.Integer
        self.addParameter(QgsProcessingParameterNumber("EPSILON", "Privacy budget epsilon", real, 1.0, False, 0.0))
        self.addParameter(
            QgsProcessingParameterNumber("ALPHA", "Privacy radius alpha, in the domain's unit", real, None, True, 0.0)
        )
        self.addParameter(
            QgsProcessingParameterEnum("RELATION", "Neighbouring patterns", SAID, False, 0, optional=True)
        )
        self.addParameter(
            QgsProcessingParameterNumber("N", "Number of points, where it is public", whole, None, True, 1)
        )

    def planned(self, parameters: Any, context: QgsProcessingContext) -> dict[str, object]:
        """Options of the plan."""
        layer = self.parameterAsVectorLayer(parameters, "DOMAIN", context)
        streets = layer is not None and layer.geometryType() == QgsWkbTypes.LineGeometry
        return {
            "network" if streets else "window-file": _file_of(layer),
            "method": self.parameterAsString(parameters, "METHOD", context),
            "epsilon": self.parameterAsDouble(parameters, "EPSILON", context),
            "alpha": _given(parameters, "ALPHA") and self.parameterAsDouble(parameters, "ALPHA", context),
            "relation": RELATIONS[self.parameterAsEnum(parameters, "RELATION", context)],
            "n": _given(parameters, "N") and self.parameterAsInt(parameters, "N", context),
        }

    def more(self, parameters: Any, context: QgsProcessingContext) -> str:
        """Further options, as a shell would read them."""
        found: str = self.parameterAsString(parameters, "OPTIONS", context)
        return found


class Check(Planned):
    """`dpppsynth check`."""

    title = "1. Check a guarantee"
    what = "The privacy guarantee of a release that is planned, from public parameters alone: no points are read."

    def processAlgorithm(self, parameters: Any, context: Any, feedback: Any) -> dict[str, object]:  # noqa: N802
        options = words(self.planned(parameters, context), self.more(parameters, context))
        answer = self.called(options, parameters, context, feedback)
        self.require(answer, feedback)
        return {"REPORT": answer.text}


class Synthesize(Planned):
    """`dpppsynth synthesize`."""

    title = "2. Synthesize a pattern"
    what = (
        "Spends the budget once, and writes synthetic points with their certificate. The sensitive points are a file "
        "that the command reads, not a layer: QGIS neither opens nor copies it. Check first: nothing can be tried "
        "again for free. With a ledger the budget is authorised before a row is read."
    )

    def declare(self) -> None:
        # A layer would be opened, and QGIS might copy it; a layer of a GeoPackage stands behind its name.
        self.addParameter(QgsProcessingParameterFile("POINTS", "File of sensitive points, or FILE.gpkg:LAYER"))
        super().declare()
        whole = QgsProcessingParameterNumber.Integer
        self.addParameter(QgsProcessingParameterNumber("PATTERNS", "Number of synthetic patterns", whole, 1, False, 0))
        self.addParameter(QgsProcessingParameterFile("LEDGER", "Ledger of the data set", optional=True))
        self.addParameter(QgsProcessingParameterBoolean("YES", "Go on in spite of warnings", defaultValue=False))
        self.addParameter(QgsProcessingParameterFolderDestination("OUT", "New folder for the release"))
        self.addOutput(QgsProcessingOutputString("CERTIFICATE", "Certificate"))

    def processAlgorithm(self, parameters: Any, context: Any, feedback: Any) -> dict[str, object]:  # noqa: N802
        out = Path(self.parameterAsString(parameters, "OUT", context))
        options = {
            **self.planned(parameters, context),
            "patterns": self.parameterAsInt(parameters, "PATTERNS", context),
            "ledger": self.parameterAsString(parameters, "LEDGER", context),
            "yes": self.parameterAsBool(parameters, "YES", context),
            "out": out,
        }
        points = self.parameterAsString(parameters, "POINTS", context)
        line = [points, *words(options, self.more(parameters, context))]
        answer = self.called(line, parameters, context, feedback)
        self.require(answer, feedback)
        _load([*sorted(out.glob("synthetic_*.geojson"))[:1]], context)
        return {"OUT": str(out), "CERTIFICATE": str(out / "certificate.json"), "REPORT": answer.text}


class OfRelease(Algorithm):
    """Base of those that read a release."""

    def declare(self) -> None:
        folder = QgsProcessingParameterFile.Folder
        self.addParameter(QgsProcessingParameterFile("RELEASE", "Folder of a release", folder))


class Verify(OfRelease):
    """`dpppsynth verify`."""

    title = "3. Verify a release"
    what = "Derives the guarantee of a release again from its certificate, and checks its files; no data are needed."

    def declare(self) -> None:
        super().declare()
        self.addOutput(QgsProcessingOutputBoolean("HOLDS", "Whether the certificate holds"))

    def processAlgorithm(self, parameters: Any, context: Any, feedback: Any) -> dict[str, object]:  # noqa: N802
        more = words({}, self.parameterAsString(parameters, "OPTIONS", context))
        line = [self.parameterAsString(parameters, "RELEASE", context), *more]
        answer = self.called(line, parameters, context, feedback)
        if answer.code == FAILS:
            feedback.reportError("The certificate does not hold: do not rely on this release.")
        else:
            self.require(answer, feedback)
        return {"HOLDS": answer.code == DONE, "REPORT": answer.text}


class Export(OfRelease):
    """`dpppsynth export`."""

    title = "4. Export a release"
    what = (
        "Synthetic patterns and the intensity of a release, as cells or streets with credible intervals, opened in "
        "colours. What is exported is public, and costs nothing."
    )

    def declare(self) -> None:
        super().declare()
        self.addParameter(QgsProcessingParameterEnum("FORMAT", "Format of patterns", FORMATS, False, 0))
        self.addParameter(
            QgsProcessingParameterBoolean("INTENSITY", "The intensity too, as a GeoPackage", defaultValue=True)
        )
        self.addParameter(QgsProcessingParameterFolderDestination("OUT", "New folder"))

    def processAlgorithm(self, parameters: Any, context: Any, feedback: Any) -> dict[str, object]:  # noqa: N802
        out = Path(self.parameterAsString(parameters, "OUT", context))
        options = {
            "format": FORMATS[self.parameterAsEnum(parameters, "FORMAT", context)],
            "intensity": "gpkg" if self.parameterAsBool(parameters, "INTENSITY", context) else None,
            "out": out,
        }
        more = self.parameterAsString(parameters, "OPTIONS", context)
        line = [self.parameterAsString(parameters, "RELEASE", context), *words(options, more)]
        answer = self.called(line, parameters, context, feedback)
        self.require(answer, feedback)
        _load(sorted(out.glob("*.gpkg")), context)
        return {"OUT": str(out), "REPORT": answer.text}


def _given(parameters: Any, name: str) -> Any:
    """Whether an optional parameter has a value, as one that `and` joins to it."""
    return True if parameters.get(name) not in (None, "") else None


def _file_of(layer: QgsVectorLayer | None) -> str:
    """The file of a layer, as the command reads it."""
    parts: Any = {}
    if layer is not None and layer.providerType() == "ogr":
        parts = QgsProviderRegistry.instance().decodeUri("ogr", layer.source())
    found = address(parts)
    if found is None:
        msg = "DOMAIN: must be a layer of a file, and all of it; save it as a GeoPackage, without a filter, first."
        raise QgsProcessingException(msg)
    return found


def _load(files: list[Path], context: QgsProcessingContext) -> None:
    """Let QGIS open all layers of public files in the project, where there is one."""
    project = context.project()
    if project is None:
        return
    for file in files:
        whole = QgsVectorLayer(str(file), file.stem, "ogr")
        names = [each.split("!!::!!")[1] for each in whole.dataProvider().subLayers()]
        for name in names:
            source = f"{file}|layername={name}" if file.suffix == ".gpkg" else str(file)
            title = file.stem if len(names) == 1 else f"{file.stem}: {name}"
            details = QgsProcessingContext.LayerDetails(title, project)
            context.addLayerToLoadOnCompletion(source, details)
