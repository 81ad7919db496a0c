"""Version of the installed package."""

from importlib.metadata import version

__version__ = version("dpppsynth")
