"""The plugin, and its provider of algorithms."""

from __future__ import annotations

from qgis.core import QgsApplication, QgsProcessingProvider

from .algorithms import Check, Export, Synthesize, Verify


class Provider(QgsProcessingProvider):
    """Algorithms `dpppsynth:check`, `dpppsynth:synthesize`, `dpppsynth:verify` and `dpppsynth:export`."""

    def id(self) -> str:
        return "dpppsynth"

    def name(self) -> str:
        return "dpppsynth: private point patterns"

    def loadAlgorithms(self) -> None:  # noqa: N802
        for each in (Check, Synthesize, Verify, Export):
            self.addAlgorithm(each())


class Plugin:
    """Adds the provider while it is loaded."""

    def __init__(self) -> None:
        self.provider: Provider | None = None

    def initProcessing(self) -> None:  # noqa: N802
        """Add the provider; `qgis_process` calls this alone."""
        self.provider = Provider()
        QgsApplication.processingRegistry().addProvider(self.provider)

    def initGui(self) -> None:  # noqa: N802
        """Add the provider to the toolbox."""
        self.initProcessing()

    def unload(self) -> None:
        """Take the provider out again."""
        QgsApplication.processingRegistry().removeProvider(self.provider)
